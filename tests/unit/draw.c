/* draw.c - random words that a kernel draws for a stretch of its loop at a time (compiler/target/cpu/draw.h) are those
 * that base/rng.h draws one by one, wherever a stretch begins and however long it is; and they are drawn so. So are
 * those of a GPU's thread for its neighbouring elements, here on the fibers of compiler/target/cuda/head.c. */
#include "base/rng.h"
#include "compiler/ir/build.h"
#include "compiler/passes/fuse.h"
#include "compiler/program.h"
#include "compiler/target/cpu/render.h"
#include "compiler/target/cuda/render.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SEED      0x123456789ABCl /* more than one word */
#define STEP      70000
#define STREAM    5
#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

enum { ALONE, SHORT, BESIDE_A_SUM, BESIDE_A_MAXIMUM, IN_COLUMNS, TURNED, CUT, FORMS, MAX_BUFFERS = 8 };

/* Words of rows x columns, from number 4 billion and some on where `far`: a slice of more than there is memory for. */
typedef struct draw_case {
    int form;
    int64_t rows, columns;
    bool far;
    bool drawn, by_fours; /* some of its words at once: on the CPU, on a GPU */
} draw_case;

static int64_t first_word(const draw_case *c)
{
    return c->far ? (INT64_C(1) << 34) + c->rows : 0;
}

static uint32_t expected_word(const draw_case *c, int64_t row, int64_t column)
{
    return ty_rng_u32(SEED, STREAM, STEP, (uint64_t)(first_word(c) + row * c->columns + column));
}

static ty_val words(ty_graph *g, const draw_case *c)
{
    const int64_t n = c->rows * c->columns, first = first_word(c);
    ty_val seed = ty_b_scalar(g, TY_I64, (double)SEED), step = ty_b_scalar(g, TY_I64, STEP);
    if (!c->far)
        return ty_b_rng(g, seed, step, STREAM, 2, DIMS(c->rows, c->columns));
    ty_val all = ty_b_rng(g, seed, step, STREAM, 1, DIMS(first + n));
    return ty_b_reshape(g, ty_b_slice_axis(g, all, 0, first, first + n), 2, DIMS(c->rows, c->columns));
}

/* Without the lower bits. Sums of up to 4096 numbers of 12 bits are exact in float32 in any order. */
static ty_val upper(ty_graph *g, ty_val w, double lower)
{
    return ty_b_cast(g, ty_b_binary(g, TY_OP_SHR, w, ty_b_full_like(g, w, lower)), TY_F32);
}

/* As signed integers, the results of a program that are compared. */
static ty_val bits_of(ty_graph *g, ty_val w, const draw_case *c)
{
    const ty_attr attr = {.type = ty_type_make(TY_I32, 2, DIMS(c->rows, c->columns))};
    return ty_graph_emit(g, TY_OP_BITCAST, &attr, &w, 1);
}

static ty_graph *make(const draw_case *c)
{
    ty_graph *g = ty_graph_new();
    ty_val w = words(g, c), u = upper(g, w, 20);
    ty_val y = c->form == SHORT ? ty_b_cast(g, upper(g, w, 25), TY_BF16) : bits_of(g, w, c);
    if (c->form == TURNED)
        y = ty_b_transpose(g, y, DIMS(1, 0));
    if (c->form == CUT) {
        ty_val parts[] = {y, ty_b_unary(g, TY_OP_NOT, y)};
        y = ty_b_concat(g, parts, 2, 1);
    }
    ty_graph_add_output(g, "y", y, TY_TAPE_EVAL);
    if (c->form == BESIDE_A_SUM)
        ty_graph_add_output(g, "sum", ty_b_sum(g, u, 2, false), TY_TAPE_EVAL);
    if (c->form == BESIDE_A_MAXIMUM)
        ty_graph_add_output(g, "sum", ty_b_reduce(g, u, TY_MAX, 2, false), TY_TAPE_EVAL);
    if (c->form == IN_COLUMNS)
        ty_graph_add_output(g, "sum", ty_b_sum(g, u, 1, false), TY_TAPE_EVAL);
    return g;
}

/* ---- what comes of it ---- */

static void expect_short_words(const draw_case *c, const uint16_t *y)
{
    for (int64_t i = 0; i < c->rows * c->columns; i++)
        assert_true(ty_bf16_to_f32(y[i]) == (float)(expected_word(c, i / c->columns, i % c->columns) >> 25));
}

static void expect_words(const draw_case *c, const int32_t *y)
{
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->columns; j++) {
            int32_t e = (int32_t)expected_word(c, i, j);
            int64_t wide = 2 * c->columns;
            int32_t f = c->form == TURNED ? y[j * c->rows + i]
                        : c->form == CUT  ? y[i * wide + j]
                                          : y[i * c->columns + j];
            if (c->form == CUT)
                assert_int_equal(y[i * wide + c->columns + j], ~e);
            if (f != e)
                fail_msg("form %d, %lld x %lld: word [%lld, %lld]: expected %lld, found %lld", c->form,
                         (long long)c->rows, (long long)c->columns, (long long)i, (long long)j, (long long)e,
                         (long long)f);
        }
}

static void expect_sums(const draw_case *c, const float *sum)
{
    bool columns = c->form == IN_COLUMNS;
    for (int64_t k = 0; k < (columns ? c->columns : c->rows); k++) {
        float e = 0;
        for (int64_t i = 0; i < (columns ? c->rows : c->columns); i++) {
            float one = (float)(expected_word(c, columns ? i : k, columns ? k : i) >> 20);
            e = c->form == BESIDE_A_MAXIMUM ? (one > e ? one : e) : e + one;
        }
        assert_true(sum[k] == e);
    }
}

static void judge(const draw_case *c, int threads, bool grid)
{
    ty_error err = {0};
    ty_program *p = NULL;
    ty_compile_options opt = {.backend = TY_BACKEND_CPU, .threads = threads, .grid = grid};
    if (ty_program_of_graph(make(c), ty_program_tape_of(TY_RUN_EVAL), &opt, &p, &err) < 0 ||
        ty_program_run(p, TY_RUN_EVAL, NULL, &err) < 0)
        fail_msg("%s", err.message);
    if (c->form == SHORT)
        expect_short_words(c, ty_program_output(p, TY_RUN_EVAL, "y")->data);
    else
        expect_words(c, ty_program_output(p, TY_RUN_EVAL, "y")->data);
    if (ty_program_output(p, TY_RUN_EVAL, "sum"))
        expect_sums(c, ty_program_output(p, TY_RUN_EVAL, "sum")->data);
    ty_program_free(p);
}

/* ---- how it is written ---- */

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
        n++;
    return n;
}

/* How often a kernel's text, for the CPU or for a GPU, asks for several words at once. */
static int drawn_in(const draw_case *c, bool gpu)
{
    ty_graph *g = make(c);
    ty_fusion *f = NULL;
    ty_error err = {0};
    int n = 0;
    const uint32_t alias[MAX_BUFFERS] = {0, 1, 2, 3, 4, 5, 6, 7};
    const int64_t base[MAX_BUFFERS] = {0};
    assert_int_equal(ty_pass_fuse(g, TY_TAPE_EVAL, gpu ? TY_FUSE_GPU : 1, &f, &err), 0);
    for (uint32_t u = 0; u < f->n_units; u++) {
        if (f->unit[u].kind != TY_UNIT_KERNEL)
            continue;
        ty_buf text;
        ty_buf_init(&text, 1 << 20);
        if (gpu)
            ty_cuda_render_kernel(&(ty_cuda_kernel){f->unit[u].kernel, alias, base, NULL, 0}, "k", &text);
        else
            ty_render_kernel(f->unit[u].kernel, alias, base, &text);
        n += count(text.data, gpu ? "ty_rng_block(" : "ty_rng_words(");
        ty_buf_fini(&text);
    }
    ty_fusion_free(f);
    ty_graph_free(g);
    return n;
}

static void test_words_are_those_of_the_stream(void **state)
{
    static const draw_case cases[] = {
        {ALONE, 1, 1, false, false, false},
        {ALONE, 1, 1000, false, true, true},
        {ALONE, 77, 131, true, true, false},
        {ALONE, 77, 132, false, true, true},
        {SHORT, 12, 80, false, true, true},
        {BESIDE_A_SUM, 9, 300, false, true, true},
        {BESIDE_A_SUM, 7, 64, true, true, false},
        {BESIDE_A_SUM, 5, 256, false, true, true},
        {BESIDE_A_SUM, 3, 1027, true, true, false},
        {BESIDE_A_SUM, 40, 17, false, false, false},
        {BESIDE_A_SUM, 6, 5, false, false, false},
        {BESIDE_A_MAXIMUM, 9, 515, true, true, false},
        {BESIDE_A_MAXIMUM, 8, 3000, false, true, true},
        {IN_COLUMNS, 90, 132, false, true, false},
        {IN_COLUMNS, 33, 64, true, true, false},
        {IN_COLUMNS, 21, 700, true, true, false},
        {TURNED, 70, 50, false, false, false},
        {TURNED, 19, 300, true, false, false},
        {CUT, 12, 100, false, false, false},
        {CUT, 3, 517, true, false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int threads = 1; threads <= 3; threads++)
            judge(&cases[i], threads, false);
        judge(&cases[i], 1, true);
        for (int gpu = 0; gpu < 2; gpu++)
            if ((gpu ? cases[i].by_fours : cases[i].drawn) && drawn_in(&cases[i], gpu) == 0)
                fail_msg("form %d, %lld x %lld, %s: words are made one by one", cases[i].form, (long long)cases[i].rows,
                         (long long)cases[i].columns, gpu ? "GPU" : "CPU");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_words_are_those_of_the_stream)};
    return cmocka_run_group_tests_name("draw", tests, NULL, NULL);
}
