/* fuse.c - which values get memory, and what kernels move, seen in the plan of a program. */
#include "base/rng.h"
#include "compiler/ir/build.h"
#include "compiler/ir/interpret.h"
#include "compiler/ops/op.h"
#include "compiler/passes/passes.h"
#include "compiler/program.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

enum { ROWS = 70, WIDTH = 96 };

static ty_val input(ty_graph *g, const char *name, int64_t rows, int64_t columns)
{
    return ty_b_input(g, ty_graph_add_input(g, name, ty_type_make(TY_F32, 2, (const int64_t[]){rows, columns})));
}

/* Rows over their deviation, before and behind a product. */
static ty_graph *make_normalised(void)
{
    ty_graph *g = ty_graph_new();
    ty_val x = input(g, "x", ROWS, WIDTH), w = input(g, "w", WIDTH, WIDTH);
    ty_val var = ty_b_add_s(g, ty_b_mean(g, ty_b_square(g, x), 2, true), 0.25);
    ty_val by = ty_b_broadcast(g, ty_b_unary(g, TY_OP_RSQRT, var), 2, (const int64_t[]){ROWS, WIDTH});
    ty_graph_add_output(g, "y", ty_b_mul(g, ty_b_matmul(g, ty_b_mul(g, x, by), w), by), TY_TAPE_EVAL);
    return g;
}

static int buffers_of(const ty_tape_facts *tape, int64_t elems)
{
    int n = 0;
    for (int i = 0; i < tape->n_buffers; i++)
        n += ty_type_elems(&tape->buffer[i].type) == elems;
    return n;
}

/* What two kernels need of a row has memory for a number a row; what it is broadcast to has none. */
static void memory_is_before_the_broadcast(void **state)
{
    (void)state;
    ty_arena arena;
    ty_tape_facts tape;
    ty_error err = {0};
    ty_program *p = NULL;
    ty_compile_options opt = {.backend = TY_BACKEND_CPU, .threads = 2};
    assert_int_equal(ty_program_of_graph(make_normalised(), TY_TAPE_EVAL, &opt, &p, &err), 0);
    ty_arena_init(&arena);
    assert_int_equal(ty_program_describe(p, TY_RUN_EVAL, &arena, &tape, &err), 0);
    assert_int_equal(buffers_of(&tape, ROWS), 1);
    assert_int_equal(buffers_of(&tape, (int64_t)ROWS * WIDTH),
                     2); /* the operand of the product; the product, over which y is written */
    ty_arena_fini(&arena);
    ty_program_free(p);
}

/* Both halves of x are read, and the whole counts; x twice at the same places is read once. */
static void each_place_is_read_once(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_program *p = NULL;
    ty_compile_options opt = {.backend = TY_BACKEND_CPU, .threads = 2};
    ty_call_info info;
    ty_graph *g = ty_graph_new();
    ty_val x = input(g, "x", ROWS, WIDTH);
    ty_val left = ty_b_slice_axis(g, x, 1, 0, WIDTH / 2), right = ty_b_slice_axis(g, x, 1, WIDTH / 2, WIDTH);
    ty_val far = ty_b_square(g, ty_b_sub(g, left, ty_b_mean(g, left, 2, true)));
    ty_graph_add_output(g, "y", ty_b_sum(g, ty_b_mul(g, far, right), 2, false), TY_TAPE_EVAL);
    assert_int_equal(ty_program_of_graph(g, TY_TAPE_EVAL, &opt, &p, &err), 0);
    assert_int_equal(ty_program_n_calls(p, TY_RUN_EVAL), 1);
    ty_program_call(p, TY_RUN_EVAL, 0, &info);
    assert_int_equal(info.read_bytes, 4 * ROWS * WIDTH);
    assert_int_equal(info.written_bytes, 4 * ROWS);
    ty_program_free(p);
}

/* ---- what joins for a GPU ---- */

/* Rows less their mean: one kernel, or one for the mean and one for the rest. */
static ty_graph *make_centred(int64_t rows, int64_t columns)
{
    ty_graph *g = ty_graph_new();
    ty_val x = input(g, "x", rows, columns);
    ty_graph_add_output(g, "y", ty_b_sub(g, x, ty_b_mean(g, x, 2, true)), TY_TAPE_EVAL);
    return g;
}

/* The largest number of buffers of a kernel goes to *most; returns the number of kernels. The graph's end. */
static int kernels_of(ty_graph *g, int n_threads, int *most)
{
    ty_fusion *f = NULL;
    ty_error err = {0};
    int n = 0;
    assert_int_equal(ty_pass_fuse(g, TY_TAPE_EVAL, n_threads, &f, &err), 0);
    *most = 0;
    for (uint32_t u = 0; u < f->n_units; u++)
        if (f->unit[u].kind == TY_UNIT_KERNEL) {
            n++;
            *most = f->unit[u].kernel->n_buffers > *most ? f->unit[u].kernel->n_buffers : *most;
        }
    ty_fusion_free(f);
    ty_graph_free(g);
    return n;
}

static void few_rows_keep_a_large_loop_apart_on_a_gpu(void **state)
{
    (void)state;
    int most;
    assert_int_equal(kernels_of(make_centred(64, 1 << 17), 2, &most), 1);
    assert_int_equal(kernels_of(make_centred(64, 1 << 17), TY_FUSE_GPU, &most), 2);
    assert_int_equal(kernels_of(make_centred(64, 1024), TY_FUSE_GPU, &most), 1);
    assert_int_equal(kernels_of(make_centred(512, 1 << 14), TY_FUSE_GPU, &most), 1);
}

/* Statistics of rows of something that is computed from x, which may be wanted too. */
static ty_graph *make_statistics(int64_t rows, int64_t columns, bool keeps)
{
    ty_graph *g = ty_graph_new();
    ty_val x = input(g, "x", rows, columns),
           v = ty_b_mul(g, ty_b_add(g, ty_b_mul(g, x, x), x), ty_b_exp(g, ty_b_mul_s(g, x, 0.5)));
    ty_graph_add_output(g, "sum", ty_b_reduce(g, v, TY_SUM, 2, false), TY_TAPE_EVAL);
    ty_graph_add_output(g, "squares", ty_b_reduce(g, ty_b_mul(g, v, v), TY_SUM, 2, false), TY_TAPE_EVAL);
    if (keeps)
        ty_graph_add_output(g, "v", v, TY_TAPE_EVAL);
    return g;
}

static void few_rows_take_a_large_loop_that_spares_them_reading(void **state)
{
    (void)state;
    int most;
    assert_int_equal(kernels_of(make_statistics(64, 1 << 17, false), TY_FUSE_GPU, &most), 1);
    assert_int_equal(kernels_of(make_statistics(64, 1 << 17, true), TY_FUSE_GPU, &most), 2);
}

/* Pairs of inputs, each with a result of its own: alike in shape, joined by the one factor that all read. */
static ty_graph *make_pairs(int n)
{
    ty_graph *g = ty_graph_new();
    ty_val by = input(g, "by", ROWS, WIDTH);
    for (int i = 0; i < n; i++) {
        char name[2][8] = {{'x', (char)('a' + i)}, {'y', (char)('a' + i)}};
        ty_graph_add_output(g, name[1], ty_b_mul(g, by, input(g, name[0], ROWS, WIDTH)), TY_TAPE_EVAL);
    }
    return g;
}

static void a_kernel_of_a_gpu_has_no_more_buffers_than_registers_address(void **state)
{
    (void)state;
    int most;
    assert_int_equal(kernels_of(make_pairs(16), 2, &most), 1);
    assert_int_equal(most, 33);
    assert_in_range(kernels_of(make_pairs(16), TY_FUSE_GPU, &most), 2, 3);
    assert_in_range(most, 12, 24);
}

/* Rows without their mean, and sums of columns of bands of what is centred, or of x. */
static ty_graph *make_bands(int64_t bands, int64_t rows, int64_t columns, bool of_centred)
{
    ty_graph *g = make_centred(bands * rows, columns);
    ty_val y = ty_graph_output(g, 0)->val, v = of_centred ? y : ty_graph_in(g, ty_val_node(y), 0);
    ty_graph_add_output(
        g, "sums", ty_b_reduce(g, ty_b_reshape(g, v, 3, (const int64_t[]){bands, rows, columns}), TY_SUM, 2, false),
        TY_TAPE_EVAL);
    return g;
}

static void rows_and_columns_of_bands_are_one_kernel_on_a_gpu(void **state)
{
    (void)state;
    int most;
    assert_int_equal(kernels_of(make_bands(128, 64, 256, false), TY_FUSE_GPU, &most), 1);
    assert_int_equal(most, 3);
    assert_int_equal(kernels_of(make_bands(128, 64, 256, true), TY_FUSE_GPU, &most), 1);
    assert_int_equal(kernels_of(make_bands(128, 64, 256, false), 2, &most), 2);
    assert_int_equal(kernels_of(make_bands(96, 64, 256, false), TY_FUSE_GPU, &most), 2);   /* too few bands */
    assert_int_equal(kernels_of(make_bands(128, 8, 256, false), TY_FUSE_GPU, &most), 2);   /* of too few rows, */
    assert_int_equal(kernels_of(make_bands(128, 64, 64, false), TY_FUSE_GPU, &most), 2);   /* which are short */
    assert_int_equal(kernels_of(make_bands(128, 64, 8192, false), TY_FUSE_GPU, &most), 2); /* or too long */
}

/* ---- reductions to a few numbers, for a GPU ---- */

static int reductions_of(const ty_graph *g)
{
    int n = 0;
    for (uint32_t node = 0; node < ty_graph_n_nodes(g); node++)
        n += ty_graph_op(g, node) == TY_OP_REDUCE;
    return n;
}

static int split_reductions(int rank, const int64_t *dim, uint32_t axes, bool gpu)
{
    ty_graph *g = ty_graph_new(), *out;
    ty_error err = {0};
    ty_val x = ty_b_input(g, ty_graph_add_input(g, "x", ty_type_make(TY_F32, rank, dim)));
    ty_graph_add_output(g, "y", ty_b_reduce(g, x, TY_MAX, axes, false), TY_TAPE_EVAL);
    assert_int_equal((gpu ? ty_pass_split_gpu : ty_pass_split)(g, &out, &err), 0);
    const ty_type *before = ty_graph_type(g, ty_graph_output(g, 0)->val),
                  *after = ty_graph_type(out, ty_graph_output(out, 0)->val);
    assert_true(ty_type_same(before, after));
    int n = reductions_of(out);
    ty_graph_free(g);
    ty_graph_free(out);
    return n;
}

static void few_results_are_split_on_a_gpu(void **state)
{
    (void)state;
    const int64_t images[] = {32, 64, 56, 56}, few[] = {2, 64, 56, 56}, rows[] = {16, 1 << 19}, logits[] = {128, 50257};
    assert_int_equal(split_reductions(4, images, 13, true), 2); /* to a number a channel */
    assert_int_equal(split_reductions(4, images, 13, false), 1);
    assert_int_equal(split_reductions(4, few, 13, true), 1);    /* a small tensor */
    assert_int_equal(split_reductions(4, images, 12, true), 1); /* 2,048 results are enough */
    assert_int_equal(split_reductions(2, rows, 2, true), 2);
    assert_int_equal(split_reductions(2, logits, 2, true), 1); /* stays with what reads the rows */
    const int64_t losses[] = {1 << 16}, batch[] = {1 << 14};
    assert_int_equal(split_reductions(1, losses, 1, true), 2); /* one block would be long at it */
    assert_int_equal(split_reductions(1, losses, 1, false), 1);
    assert_int_equal(split_reductions(1, batch, 1, true), 1);
}

/* Numbers of two graphs of one input and one output. */
static void expect_same(const ty_graph *a, const ty_graph *b, const float *x)
{
    const ty_graph *graph[] = {a, b};
    const void *inputs[] = {x};
    ty_interp *it[2];
    ty_error err = {0};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ty_interp_new(graph[i], &it[i], &err), 0);
        assert_int_equal(ty_interp_run(it[i], TY_TAPE_EVAL, inputs, false, &err), 0);
    }
    const ty_ref *found = ty_interp_output(it[1], 0), *expected = ty_interp_output(it[0], 0);
    for (int64_t e = 0; e < ty_type_elems(&expected->type); e++)
        assert_true(found->f[e] == expected->f[e]);
    ty_interp_free(it[0]);
    ty_interp_free(it[1]);
}

static void check_split(int rank, const int64_t *dim, uint32_t axes)
{
    ty_graph *g = ty_graph_new(), *out;
    ty_error err = {0};
    ty_type type = ty_type_make(TY_F32, rank, dim);
    int64_t n = ty_type_elems(&type);
    float *x = malloc(sizeof *x * (size_t)n);
    assert_non_null(x);
    for (int64_t e = 0; e < n; e++)
        x[e] = (float)(ty_rng_u32(3, 0, 0, (uint64_t)e) * 0x1p-32);
    ty_val v = ty_b_input(g, ty_graph_add_input(g, "x", type));
    ty_graph_add_output(g, "y", ty_b_reduce(g, v, TY_MAX, axes, false), TY_TAPE_EVAL);
    assert_int_equal(ty_pass_split_gpu(g, &out, &err), 0);
    assert_int_equal(reductions_of(out), 2);
    expect_same(g, out, x);
    ty_graph_free(g);
    ty_graph_free(out);
    free(x);
}

static void what_is_split_is_the_same(void **state)
{
    (void)state;
    check_split(4, (const int64_t[]){32, 9, 120, 128}, 13);
    check_split(2, (const int64_t[]){8, (1 << 19) + 1024}, 2);
}

/* x, turned and perhaps rounded, is reduced along its own axes: no turn is left but of the result, and numbers are the
 * same. kept: whether the result has its axes in another order. */
static void check_turned(const int64_t *perm, uint32_t axes, bool rounded, bool kept)
{
    const int64_t dim[] = {6, 5, 7, 4};
    float x[6 * 5 * 7 * 4];
    ty_graph *g = ty_graph_new(), *out;
    ty_error err = {0};
    for (int64_t e = 0; e < 6 * 5 * 7 * 4; e++)
        x[e] = (float)(ty_rng_u32(3, 0, 0, (uint64_t)e) >> 20); /* sums are exact in any order */
    ty_val v = ty_b_transpose(g, ty_b_input(g, ty_graph_add_input(g, "x", ty_type_make(TY_F32, 4, dim))), perm);
    v = rounded ? ty_b_cast(g, v, TY_BF16) : v;
    ty_graph_add_output(g, "y", ty_b_reduce(g, v, TY_SUM, axes, false), TY_TAPE_EVAL);
    assert_int_equal(ty_pass_split(g, &out, &err), 0);
    int turns = 0;
    uint8_t *live = calloc(ty_graph_n_nodes(out) + 1, 1);
    assert_non_null(live);
    ty_graph_mark_live(out, TY_TAPE_ALL, live);
    for (uint32_t node = 0; node < ty_graph_n_nodes(out); node++)
        turns += live[node] && ty_graph_op(out, node) == TY_OP_TRANSPOSE;
    assert_int_equal(turns, !kept);
    expect_same(g, out, x);
    free(live);
    ty_graph_free(g);
    ty_graph_free(out);
}

static void what_is_turned_is_reduced_as_it_lies(void **state)
{
    (void)state;
    const int64_t last[] = {0, 2, 3, 1}, other[] = {3, 1, 0, 2};
    check_turned(last, 7, false, true); /* a number a channel */
    check_turned(last, 7, true, true);  /* rounded on the way */
    check_turned(last, 8, false, true); /* channels */
    check_turned(other, 1, false, false);
    check_turned(other, 8, true, false);
    check_turned(other, 10, false, false);
}

/* A product reads a value computed from one of 16 bits, or from one of floats too; and the gradient, which needs what
 * comes of it, reads the value too. */
static ty_graph *make_kept(int64_t rows, bool two_products)
{
    ty_graph *g = ty_graph_new();
    ty_val x = input(g, "x", rows, WIDTH), w = input(g, "w", WIDTH, WIDTH), short_w = ty_b_cast(g, w, TY_BF16);
    ty_val p = ty_b_cast(g, ty_b_dot(g, ty_b_cast(g, x, TY_BF16), short_w, false, false), TY_F32);
    ty_val q = two_products ? ty_b_dot(g, x, w, false, false) : p;
    ty_val v = ty_b_add_s(g, ty_b_mul(g, ty_b_add_s(g, ty_b_square(g, p), 0.25), ty_b_add_s(g, q, 3)), 0.5);
    ty_val y = ty_b_dot(g, ty_b_cast(g, v, TY_BF16), short_w, false, false);
    ty_graph_origin(g, "gradient of layer");
    ty_graph_add_output(g, "dx", ty_b_mul(g, v, ty_b_cast(g, y, TY_F32)), TY_TAPE_LAST);
    return g;
}

/* A product reads so many products side by side, and the gradient reads them, too. */
static ty_graph *make_parts(int64_t rows, int parts)
{
    ty_graph *g = ty_graph_new();
    ty_val x = input(g, "x", rows, WIDTH), u = input(g, "u", WIDTH, WIDTH), part[4];
    static const char *const names[] = {"v", "w", "y", "z"};
    for (int i = 0; i < parts; i++)
        part[i] = ty_b_dot(g, x, input(g, names[i], WIDTH, WIDTH / parts), false, false);
    ty_val v = ty_b_concat(g, part, parts, 1);
    ty_val y = ty_b_dot(g, ty_b_cast(g, ty_b_square(g, v), TY_BF16), ty_b_cast(g, u, TY_BF16), false, false);
    ty_graph_origin(g, "gradient of layer");
    ty_graph_add_output(g, "dx", ty_b_mul(g, v, ty_b_cast(g, y, TY_F32)), TY_TAPE_LAST);
    return g;
}

/* A norm's result, or its sum with another operand, is read by a product and by the sum behind that; the gradient reads
 * the norm's distance from the mean. */
static ty_graph *make_passed_on(int64_t rows, bool two_operands)
{
    ty_graph *g = ty_graph_new();
    ty_val x = input(g, "x", rows, WIDTH), w = input(g, "w", WIDTH, WIDTH), short_w = ty_b_cast(g, w, TY_BF16);
    ty_val d = ty_b_sub(g, x, ty_b_mean(g, x, 2, true)), var = ty_b_mean(g, ty_b_square(g, d), 2, true);
    ty_val by = ty_b_unary(g, TY_OP_RSQRT, ty_b_add_s(g, var, 0.25));
    ty_val v = ty_b_add(g, ty_b_mul(g, d, by), two_operands ? input(g, "q", rows, WIDTH) : by);
    ty_val y = ty_b_dot(g, ty_b_cast(g, v, TY_BF16), short_w, false, false);
    ty_val z = ty_b_add(g, v, ty_b_cast(g, y, TY_F32));
    ty_val u = ty_b_dot(g, ty_b_cast(g, z, TY_BF16), short_w, false, false);
    ty_graph_origin(g, "gradient of layer");
    ty_graph_add_output(g, "dx", ty_b_mul(g, d, ty_b_cast(g, u, TY_F32)), TY_TAPE_LAST);
    return g;
}

/* Bytes that all calls write for an element of x, but for what is one for a row, and for the weight in 16 bits. */
static int64_t written_by_element(ty_graph *g, int64_t rows)
{
    ty_error err = {0};
    ty_program *p = NULL;
    ty_compile_options opt = {.backend = TY_BACKEND_CPU, .threads = 2};
    ty_call_info info;
    int64_t bytes = 0;
    assert_int_equal(ty_program_of_graph(g, TY_TAPE_LAST, &opt, &p, &err), 0);
    for (int i = 0; i < ty_program_n_calls(p, TY_RUN_LAST); i++) {
        ty_program_call(p, TY_RUN_LAST, i, &info);
        bytes += info.written_bytes;
    }
    ty_program_free(p);
    return (bytes - 2 * WIDTH * WIDTH) / (rows * WIDTH);
}

/* Backward computes a value again from a product that it would not have read, where that is no larger than the value;
 * else the value is written for it, and where it is small. */
static void what_is_smaller_is_kept_for_backward(void **state)
{
    (void)state;
    int64_t all = 2 + 2 + 2 + 2 + 4; /* x, the product, the value rounded, the other product, the gradient */
    assert_int_equal(written_by_element(make_kept(256, false), 256), all);
    assert_int_equal(written_by_element(make_kept(64, false), 64), all + 4);
    assert_int_equal(written_by_element(make_kept(256, true), 256), all + 4 + 4);
}

/* Forward does not write what it reads as quickly computed again; it does where that takes two operands. */
static void what_is_kept_for_backward_is_read_by_forward(void **state)
{
    (void)state;
    int64_t all = 2 + 2 + 2 + 2 + 4; /* the result rounded, a product, the sum, a product, the gradient */
    assert_int_equal(written_by_element(make_passed_on(256, false), 256), all);
    assert_int_equal(written_by_element(make_passed_on(256, true), 256), all + 4);
}

/* Two parts are as quickly read side by side; more are a loop each in every kernel that reads them. */
static void many_parts_are_put_together_once(void **state)
{
    (void)state;
    int64_t all = 4 + 2 + 2 + 4; /* the parts, their squares rounded, the product of those, the gradient */
    assert_int_equal(written_by_element(make_parts(256, 2), 256), all);
    assert_int_equal(written_by_element(make_parts(256, 4), 256), all + 4);
}

/* x times a vector that costs a few operations, or none, repeated for its rows or one number a row; both are read by
 * the gradient, too, which computes again what is cheap. */
static ty_graph *make_repeated(int64_t rows, bool dear, bool by_row)
{
    ty_graph *g = ty_graph_new();
    ty_val x = input(g, "x", rows, WIDTH), s = by_row ? input(g, "s", rows, 1) : input(g, "s", 1, WIDTH);
    ty_val t = dear ? ty_b_unary(g, TY_OP_TANH, ty_b_add_s(g, s, 1)) : ty_b_add_s(g, s, 1);
    ty_val by = ty_b_broadcast(g, t, 2, (const int64_t[]){rows, WIDTH});
    ty_graph_add_output(g, "y", ty_b_mul(g, x, by), TY_TAPE_EVAL);
    return g;
}

/* A kernel for the vector, where many rows would compute it again and it is no single operation. */
static void a_vector_for_many_rows_is_computed_once(void **state)
{
    (void)state;
    int most;
    assert_int_equal(kernels_of(make_repeated(4096, true, false), 2, &most), 2);
    assert_int_equal(kernels_of(make_repeated(4096, false, false), 2, &most), 1);
    assert_int_equal(kernels_of(make_repeated(4096, true, true), 2, &most), 1);
    assert_int_equal(kernels_of(make_repeated(4, true, false), 2, &most), 1);
    assert_int_equal(kernels_of(make_repeated(4096, true, false), TY_FUSE_GPU, &most), 1);
}

/* Rows of x, changed at some cost or at next to none, that are gathered so often. */
static ty_graph *make_gathered(int times, bool dear)
{
    const int64_t rows = 4096;
    ty_graph *g = ty_graph_new();
    ty_val x = input(g, "x", rows, WIDTH), t = ty_b_add_s(g, x, 1), sum = TY_NONE;
    t = dear ? ty_b_unary(g, TY_OP_TANH, t) : t;
    for (int i = 0; i < times; i++) {
        ty_val at = ty_b_input(g, ty_graph_add_input(g, i ? "j" : "i", ty_type_make(TY_I64, 1, &rows)));
        ty_val row = ty_b_gather(g, t, at, 0);
        sum = i ? ty_b_mul(g, sum, row) : row;
    }
    ty_graph_add_output(g, "y", sum, TY_TAPE_EVAL);
    return g;
}

/* What is gathered more than once is computed before, if it costs something: neighbours of neighbours would be sixteen.
 */
static void what_is_gathered_often_is_computed_once(void **state)
{
    (void)state;
    int most;
    assert_int_equal(kernels_of(make_gathered(2, true), 2, &most), 2);
    assert_int_equal(kernels_of(make_gathered(2, true), TY_FUSE_GPU, &most), 2);
    assert_int_equal(kernels_of(make_gathered(2, false), 2, &most), 1);
    assert_int_equal(kernels_of(make_gathered(1, true), 2, &most), 1);
}

/* The same for a block of numbers that is repeated for each image, where the gradient needs it, too: backward would
 * compute it again. The kernels: of the block, of the product's operand, of the gradient. */
static ty_graph *make_repeated_block(int64_t images)
{
    const int64_t one[] = {1, 256, WIDTH}, all[] = {images, 256, WIDTH};
    ty_graph *g = ty_graph_new();
    ty_val s = ty_b_input(g, ty_graph_add_input(g, "s", ty_type_make(TY_F32, 3, one)));
    ty_val x = ty_b_input(g, ty_graph_add_input(g, "x", ty_type_make(TY_F32, 3, all)));
    ty_val w = ty_b_input(g, ty_graph_add_input(g, "w", ty_type_make(TY_F32, 3, (int64_t[]){images, WIDTH, WIDTH})));
    ty_val by = ty_b_broadcast(g, ty_b_unary(g, TY_OP_TANH, ty_b_add_s(g, s, 1)), 3, all);
    ty_val y = ty_b_dot(g, ty_b_mul(g, x, by), w, false, false);
    ty_graph_origin(g, "gradient of layer");
    ty_graph_add_output(g, "dx", ty_b_mul(g, y, by), TY_TAPE_EVAL);
    return g;
}

static void backward_does_not_compute_again_what_many_rows_repeat(void **state)
{
    (void)state;
    int most;
    assert_int_equal(kernels_of(make_repeated_block(4), 2, &most), 3);
    assert_int_equal(kernels_of(make_repeated_block(3), 2, &most), 2);
}

/* The halves of a row change places, again and again. */
static ty_graph *make_turned(int times)
{
    ty_graph *g = ty_graph_new();
    ty_val v = input(g, "x", 256, WIDTH);
    for (int i = 0; i < times; i++) {
        ty_val half[] = {ty_b_slice_axis(g, v, 1, 8 + i, WIDTH), ty_b_slice_axis(g, v, 1, 0, 8 + i)};
        v = ty_b_concat(g, half, 2, 1);
    }
    ty_graph_add_output(g, "y", v, TY_TAPE_EVAL);
    return g;
}

/* Each element of the second would be asked three times where it is from, of the third six times: memory in between. */
static void parts_of_parts_of_parts_are_in_memory(void **state)
{
    (void)state;
    int most;
    assert_int_equal(kernels_of(make_turned(1), 2, &most), 1);
    assert_true(kernels_of(make_turned(3), 2, &most) > 1);
}

/* Of a matrix and one that lies across it: what is turned, the copy that turns it, and what reads both. A small one is
 * read where it lies, and so is one that a GPU's tiles turn, or whose rows stay rows. */
static ty_graph *make_across(int64_t n, bool turned)
{
    ty_graph *g = ty_graph_new();
    const int64_t dim[] = {8, n, n}, last[] = {0, 2, 1}, first[] = {1, 0, 2}, to[] = {n, 8, n};
    ty_val x = ty_b_input(g, ty_graph_add_input(g, "x", ty_type_make(TY_F32, 3, dim)));
    ty_val y = ty_b_input(g, ty_graph_add_input(g, "y", ty_type_make(TY_F32, 3, turned ? dim : to)));
    ty_val across = ty_b_transpose(g, ty_b_unary(g, TY_OP_TANH, x), turned ? last : first);
    ty_graph_add_output(g, "z", ty_b_mul(g, across, y), TY_TAPE_EVAL);
    return g;
}

static void what_is_read_across_is_turned_before(void **state)
{
    (void)state;
    int most;
    assert_int_equal(kernels_of(make_across(64, true), 2, &most), 3);
    assert_int_equal(kernels_of(make_across(32, true), 2, &most), 1);
    assert_int_equal(kernels_of(make_across(64, false), 2, &most), 1);
    assert_int_equal(kernels_of(make_across(768, true), TY_FUSE_GPU, &most), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_before_the_broadcast),
        cmocka_unit_test(each_place_is_read_once),
        cmocka_unit_test(few_rows_keep_a_large_loop_apart_on_a_gpu),
        cmocka_unit_test(few_rows_take_a_large_loop_that_spares_them_reading),
        cmocka_unit_test(a_kernel_of_a_gpu_has_no_more_buffers_than_registers_address),
        cmocka_unit_test(rows_and_columns_of_bands_are_one_kernel_on_a_gpu),
        cmocka_unit_test(few_results_are_split_on_a_gpu),
        cmocka_unit_test(what_is_split_is_the_same),
        cmocka_unit_test(what_is_turned_is_reduced_as_it_lies),
        cmocka_unit_test(what_is_smaller_is_kept_for_backward),
        cmocka_unit_test(what_is_kept_for_backward_is_read_by_forward),
        cmocka_unit_test(many_parts_are_put_together_once),
        cmocka_unit_test(a_vector_for_many_rows_is_computed_once),
        cmocka_unit_test(what_is_gathered_often_is_computed_once),
        cmocka_unit_test(backward_does_not_compute_again_what_many_rows_repeat),
        cmocka_unit_test(parts_of_parts_of_parts_are_in_memory),
        cmocka_unit_test(what_is_read_across_is_turned_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
