/* kernel_loops.c - loops that are written otherwise for the sake of memory: rows of a table and streams that are asked
 * for before their turn, and tiles that are turned. Where that is done, and that numbers stay. */
#include "base/arena.h"
#include "base/file.h"
#include "compiler/compiler.h"
#include "compiler/ir/build.h"
#include "compiler/passes/fuse.h"
#include "compiler/target/cpu/render.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 48, FIELDS = 39, WIDTH = 32, STEPS = 3 };

/* Sums over fields of rows times values, as in DeepFM: the kernel that gathers adds up columns. */
static const char gather_text[] =
    "#include <trainyard/model.h>\n"
    "void model(ty_net *net)\n"
    "{\n"
    "    ty_var ids = ty_input(net, \"ids\", \"i64[batch,39]\"), x = ty_input(net, \"x\", \"f32[batch,39]\");\n"
    "    ty_var e = ty_embedding(net, \"table\", ids, %d, 32, .weight = ty_normal(0, 0.1));\n"
    "    e = ty_mul(net, e, ty_unsqueeze(net, x, 2));\n"
    "    ty_var y = ty_reduce_sum(net, e, ty_dims(1), false);\n"
    "    ty_output(net, \"y\", ty_add(net, y, ty_square(net, y)));\n"
    "}\n";

/* What the models below work on. */
#define NUMBERS_OF_ROWS                                                                                          \
    "    ty_var ids = ty_input(net, \"ids\", \"i64[batch,39]\"), x = ty_input(net, \"x\", \"f32[batch,39]\");\n" \
    "    x = ty_add(net, x, ty_squeeze(net, ty_embedding(net, \"table\", ids, 50, 1), 2));\n"

/* What one product gives is turned for the next one, and the gradient on its way back: copies that do nothing else. */
static const char turn_text[] =
    "#include <trainyard/model.h>\n"
    "enum { N = %d };\n"
    "void model(ty_net *net)\n"
    "{\n"
    "    ty_var ids = ty_input(net, \"ids\", \"i64[batch,39]\"), x = ty_input(net, \"x\", \"f32[batch,39]\");\n"
    "    ty_var row = ty_embedding(net, \"table\", ids, 50, 1);\n"
    "    x = ty_add(net, x, ty_squeeze(net, row, 2));\n"
    "    ty_var w = ty_parameter(net, \"w\", ty_dims(39, 19 * N), ty_normal(0, 0.1));\n"
    "    ty_var e = ty_reshape(net, ty_matmul(net, x, w), ty_dims(-1, 19, N));\n"
    "    e = ty_flatten(net, ty_transpose(net, e, ty_dims(0, 2, 1)), 1);\n"
    "    ty_output(net, \"y\", ty_linear(net, \"out\", e, 32));\n"
    "}\n";

/* An activation that computes much, and a norm over long rows: loops in one stage and in several, and sums of columns
 * on the way back. */
static const char stream_text[] =
    "#include <trainyard/model.h>\n"
    "void model(ty_net *net)\n"
    "{\n" NUMBERS_OF_ROWS "    ty_var h = ty_gelu(net, ty_linear(net, \"wide\", x, %d));\n"
    "    h = ty_softmax(net, h, 1);\n"
    "    ty_output(net, \"y\", ty_linear(net, \"out\", h, 32));\n"
    "}\n";

/* A product in three parts, whose gradient is written piece by piece while its columns are summed. */
static const char parts_text[] = "#include <trainyard/model.h>\n"
                                 "enum { N = %d };\n"
                                 "void model(ty_net *net)\n"
                                 "{\n" NUMBERS_OF_ROWS "    ty_var h = ty_linear(net, \"wide\", x, 3 * N);\n"
                                 "    ty_var a = ty_slice(net, h, 1, 0, N), b = ty_slice(net, h, 1, N, 2 * N);\n"
                                 "    h = ty_add(net, ty_mul(net, a, b), ty_slice(net, h, 1, 2 * N, 3 * N));\n"
                                 "    ty_output(net, \"y\", ty_linear(net, \"out\", h, 32));\n"
                                 "}\n";

/* Three parts of a product whose heads are put first, N wide each: their gradients, head after head in memory, are read
 * side by side into one row while its columns are summed. On the way forward the row is cut where no stretch begins. */
static const char heads_text[] =
    "#include <trainyard/model.h>\n"
    "enum { N = %d, HEADS = 6 };\n"
    "static ty_var part(ty_net *net, ty_var h, int i)\n"
    "{\n"
    "    ty_var x = ty_slice(net, h, 1, i * HEADS * N, (i + 1) * HEADS * N);\n"
    "    x = ty_reshape(net, x, ty_dims(-1, 8, HEADS, N));\n"
    "    return ty_transpose(net, x, ty_dims(0, 2, 1, 3));\n"
    "}\n"
    "void model(ty_net *net)\n"
    "{\n" NUMBERS_OF_ROWS "    ty_var h = ty_linear(net, \"wide\", x, 3 * HEADS * N);\n"
    "    ty_var s = ty_matmul(net, part(net, h, 0), ty_transpose(net, part(net, h, 1), ty_dims(0, 1, 3, 2)));\n"
    "    h = ty_matmul(net, ty_tanh(net, s), part(net, h, 2));\n"
    "    h = ty_reshape(net, ty_transpose(net, h, ty_dims(0, 2, 1, 3)), ty_dims(-1, HEADS * N));\n"
    "    ty_var odd = ty_square(net, ty_slice(net, h, 1, 0, 8)), rest = ty_slice(net, h, 1, 8, HEADS * N);\n"
    "    h = ty_concat(net, 1, odd, rest);\n"
    "    ty_output(net, \"y\", ty_linear(net, \"out\", h, 32));\n"
    "}\n";

/* Planes of N channels with a margin, of what costs an exponential; two of them in one loop, and in the stages of a
 * norm. */
static const char margin_text[] =
    "#include <trainyard/model.h>\n"
    "enum { N = %d };\n"
    "void model(ty_net *net)\n"
    "{\n" NUMBERS_OF_ROWS "    ty_var h = ty_reshape(net, ty_linear(net, \"wide\", x, 9 * N), ty_dims(-1, 3, 3, N));\n"
    "    ty_var a = ty_pad(net, ty_silu(net, h), ty_dims(0, 1, 0, 0), ty_dims(0, 0, 1, 0), 0.5);\n"
    "    ty_var b = ty_pad(net, ty_tanh(net, h), ty_dims(0, 0, 1, 0), ty_dims(0, 1, 0, 0), 0);\n"
    "    h = ty_softmax(net, ty_mul(net, a, b), -1);\n"
    "    ty_output(net, \"y\", ty_linear(net, \"out\", ty_flatten(net, h, 1), 32));\n"
    "}\n";

typedef struct scratch {
    ty_arena a;
    char dir[64];
} scratch;

static int set_up(void **state)
{
    scratch *s = calloc(1, sizeof *s);
    ty_arena_init(&s->a);
    strcpy(s->dir, "/tmp/ty-kernel-loops-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    scratch *s = *state;
    ty_file_remove_tree(s->dir, NULL);
    ty_arena_fini(&s->a);
    free(s);
    return 0;
}

static ty_program *compile(scratch *s, const char *model_text, int n, ty_backend backend, int threads)
{
    ty_binding inputs[3] = {{"ids", ty_type_make(TY_I64, 2, (int64_t[]){ROWS, FIELDS})},
                            {"x", ty_type_make(TY_F32, 2, (int64_t[]){ROWS, FIELDS})},
                            {"t", ty_type_make(TY_F32, 2, (int64_t[]){ROWS, WIDTH})}};
    ty_loss_term loss = {.kind = TY_LOSS_MSE, .output = "y", .target = "t", .weight = 1};
    ty_train_spec spec = {.inputs = inputs,
                          .n_inputs = 3,
                          .loss = &loss,
                          .n_loss = 1,
                          .optimizer = {.kind = TY_OPT_SGD, .lr = 0.1},
                          .schedule = {.kind = TY_SCHED_CONSTANT},
                          .accumulate = 1,
                          .seed = 1};
    /* Strict: products must not depend on the number of threads either. */
    ty_compile_options options = {.backend = backend,
                                  .threads = threads,
                                  .deterministic_strict = true,
                                  .dump_dir = ty_arena_printf(&s->a, "%s/dump%d", s->dir, n)};
    const char *text = ty_arena_printf(&s->a, model_text, n), *path = ty_arena_printf(&s->a, "%s/model.c", s->dir);
    ty_model *model = NULL;
    ty_program *program = NULL;
    ty_error err = {0};
    if (ty_file_write(path, text, strlen(text), 0600, &err) < 0 || ty_model_open(path, &model, &err) < 0 ||
        ty_compile_train(model, &spec, &options, &program, &err) < 0)
        fail_msg("%s", err.message);
    ty_model_free(model);
    return program;
}

/* Whether the kernels of the last program of this size have these words. */
static bool has_words(scratch *s, int n, const char *words)
{
    bool has = false;
    for (int unit = 0; unit < 2; unit++) {
        ty_buf text;
        ty_buf_init(&text, 1 << 22);
        const char *path = ty_arena_printf(&s->a, "%s/dump%d/k%d.c", s->dir, n, unit);
        if (ty_file_exists(path))
            assert_int_equal(ty_file_read(path, &text, NULL), 0);
        ty_buf_addc(&text, 0);
        has = has || strstr(text.data, words);
        ty_buf_fini(&text);
    }
    return has;
}

static void losses_of(ty_program *p, int n_ids, double *loss)
{
    static int64_t ids[ROWS * FIELDS];
    static float x[ROWS * FIELDS], target[ROWS * WIDTH];
    ty_error err = {0};
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < ROWS * FIELDS; i++) {
            ids[i] = (int64_t)(((unsigned)i * 2654435761u + (unsigned)step) % (unsigned)n_ids);
            x[i] = 0.125f * (float)(i % 7);
        }
        for (int i = 0; i < ROWS * WIDTH; i++)
            target[i] = 0.25f * (float)(i % 5);
        if (ty_program_run(p, TY_RUN_LAST, (const void *[]){ids, x, target}, &err) < 0)
            fail_msg("%s", err.message);
        loss[step] = (double)*(const float *)ty_program_output(p, TY_RUN_LAST, "loss")->data;
    }
    ty_program_free(p);
}

/* Compiled as interpreted, and the same bits on one thread and on two. */
static void expect_numbers(scratch *s, const char *text, int n, int n_ids)
{
    double judge[STEPS], one[STEPS], two[STEPS];
    losses_of(compile(s, text, n, TY_BACKEND_INTERPRETER, 1), n_ids, judge);
    losses_of(compile(s, text, n, TY_BACKEND_CPU, 2), n_ids, two);
    losses_of(compile(s, text, n, TY_BACKEND_CPU, 1), n_ids, one);
    for (int step = 0; step < STEPS; step++) {
        assert_true(one[step] == two[step]);
        assert_true(fabs(two[step] - judge[step]) <= 1e-5 * fabs(judge[step]));
    }
}

static void large_tables_are_asked_for_ahead(void **state)
{
    scratch *s = *state;
    for (int rows = 900; rows <= 9000; rows += 8100) {
        expect_numbers(s, gather_text, rows, rows);
        assert_int_equal(has_words(s, rows, "__builtin_prefetch(&b"), rows == 9000);
    }
}

/* Rows of whole stretches, of none, and short ones, of which there are too few to leave a cache. */
static void streams_are_asked_for_ahead(void **state)
{
    scratch *s = *state;
    static const int widths[] = {16384, 16001, 600};
    for (int i = 0; i < 3; i++) {
        expect_numbers(s, stream_text, widths[i], 50);
        assert_int_equal(has_words(s, widths[i], "TY_ASK4(0, &b"), widths[i] > 600);
    }
    for (int n = 5001; n <= 5120; n += 119) {
        expect_numbers(s, parts_text, n, 50);
        assert_true(has_words(s, n, "TY_ASK4(1, &b"));
    }
}

static void turned_copies_are_tiled(void **state)
{
    scratch *s = *state;
    static const int widths[] = {4, 8, 21, 64};
    for (int i = 0; i < 4; i++) {
        expect_numbers(s, turn_text, widths[i], 50);
        assert_int_equal(has_words(s, widths[i], " ty_turn_4(&b"), widths[i] >= 8);
    }
}

/* Heads of whole vectors: the place of a stretch's first element is all that is divided. */
static void heads_are_read_in_stretches(void **state)
{
    scratch *s = *state;
    static const int widths[] = {64, 32, 16, 128, 24, 36, 5};
    for (int i = 0; i < 7; i++) {
        expect_numbers(s, heads_text, widths[i], 50);
        assert_true(has_words(s, widths[i], ty_arena_printf(&s->a, "%% %dul", widths[i])));
        assert_int_equal(has_words(s, widths[i], " + k]"), widths[i] % 4 == 0);
    }
}

/* Whether a row lies in a margin is asked before its loop, which is there twice; of two margins, four times. */
static void margins_are_asked_for_once_a_row(void **state)
{
    scratch *s = *state;
    static const int widths[] = {64, 40, 7};
    for (int i = 0; i < 3; i++) {
        expect_numbers(s, margin_text, widths[i], 50);
        assert_true(has_words(s, widths[i], ") { const _Bool v"));
        assert_true(has_words(s, widths[i], " = 1;\n   if (v"));
    }
}

/* What is the same for all of a flat loop, a power and a root as in Adam's, stands in front of it, not in its
 * stretches. */
static void constants_stand_in_front(void **state)
{
    (void)state;
    enum { ELEMS = 1 << 20 };
    ty_graph *g = ty_graph_new();
    ty_error err = {0};
    ty_fusion *f = NULL;
    ty_buf text;
    ty_val x = ty_b_input(g, ty_graph_add_input(g, "x", ty_type_make(TY_F32, 1, (int64_t[]){ELEMS})));
    ty_val s = ty_b_input(g, ty_graph_add_input(g, "s", ty_type_make(TY_F64, 0, NULL)));
    ty_val factor = ty_b_cast(g, ty_b_unary(g, TY_OP_SQRT, ty_b_unary(g, TY_OP_EXP, s)), TY_F32);
    ty_val y = ty_b_mul(g, x, ty_b_broadcast(g, factor, 1, (int64_t[]){ELEMS}));
    ty_graph_add_output(g, "y", y, TY_TAPE_EVAL);
    assert_int_equal(ty_pass_fuse(g, TY_TAPE_EVAL, 2, &f, &err), 0);
    assert_int_equal(f->n_units, 1);
    const ty_kernel *k = f->unit[0].kernel;
    assert_int_equal(k->n_buffers, 3);
    ty_buf_init(&text, 1 << 16);
    ty_render_kernel(k, (uint32_t[]){0, 1, 2}, (int64_t[]){0, 0, 0}, &text);
    const char *root = strstr(text.data, "ty_sqrt_f64(v"),
               *loop = strstr(text.data, "for (long j = from; j < to; j += 64)");
    assert_true(root && loop && root < loop);
    assert_null(strstr(loop, "ty_exp_f64(v"));
    ty_buf_fini(&text);
    ty_fusion_free(f);
    ty_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(large_tables_are_asked_for_ahead, set_up, tear_down),
        cmocka_unit_test_setup_teardown(streams_are_asked_for_ahead, set_up, tear_down),
        cmocka_unit_test_setup_teardown(turned_copies_are_tiled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(heads_are_read_in_stretches, set_up, tear_down),
        cmocka_unit_test_setup_teardown(margins_are_asked_for_once_a_row, set_up, tear_down),
        cmocka_unit_test(constants_stand_in_front),
    };
    return cmocka_run_group_tests_name("kernel_loops", tests, NULL, NULL);
}
