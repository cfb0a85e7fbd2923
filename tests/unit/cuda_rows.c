/* cuda_rows.c - kernels as they are printed for a GPU, run by fibers on the host (compiler/target/cuda/head.c): rows
 * and columns of every form and more of them than a grid of three blocks takes at a time, in three orders of threads,
 * against the interpreter. Random graphs and trainings are run by tests/grid.sh. */
#include "base/rng.h"
#include "compiler/ir/build.h"
#include "compiler/passes/passes.h"
#include "compiler/program.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* x [rows, n] reduced over one axis, once or twice, and what makes use of it: as scalars of the row, and in the row.
 * With one reduction a barrier between stages is all that keeps the next row's results from those of this one. */
static ty_graph *make(int64_t rows, int64_t n, int axis, bool twice)
{
    ty_graph *g = ty_graph_new();
    const int64_t dim[] = {rows, n};
    ty_val x = ty_b_input(g, ty_graph_add_input(g, "x", ty_type_make(TY_F32, 2, dim)));
    ty_val found = ty_b_sum(g, ty_b_mul(g, x, x), 1u << axis, true);
    if (twice)
        found = ty_b_add(g, found, ty_b_reduce(g, x, TY_MAX, 1u << axis, true));
    ty_graph_add_output(g, "scalar", ty_b_unary(g, TY_OP_SQRT, found), TY_TAPE_EVAL);
    ty_graph_add_output(g, "row", ty_b_div(g, x, ty_b_add_s(g, found, 1)), TY_TAPE_EVAL);
    ty_graph_add_output(g, "flat", ty_b_add_s(g, ty_b_unary(g, TY_OP_TANH, x), 1), TY_TAPE_EVAL);
    return g;
}

/* x [rows, n] with three of its rows for all others: a thread goes down rows. */
static ty_graph *make_down(int64_t rows, int64_t n)
{
    ty_graph *g = ty_graph_new();
    const int64_t dim[] = {rows, n};
    ty_val x = ty_b_input(g, ty_graph_add_input(g, "x", ty_type_make(TY_F32, 2, dim)));
    ty_val a[3];
    for (int i = 0; i < 3; i++)
        a[i] = ty_b_slice_axis(g, x, 0, i, i + 1);
    ty_graph_add_output(g, "y", ty_b_add(g, ty_b_mul(g, ty_b_sub(g, x, a[0]), a[1]), a[2]), TY_TAPE_EVAL);
    return g;
}

static ty_program *compile(ty_graph *g, const ty_compile_options *opt)
{
    ty_error err = {0};
    ty_program *p = NULL;
    if (ty_program_of_graph(g, TY_TAPE_EVAL, opt, &p, &err) < 0)
        fail_msg("compiling: %s", err.message);
    return p;
}

static void run(ty_program *p, const float *x)
{
    ty_error err = {0};
    const void *inputs[] = {x};
    if (ty_program_run(p, TY_RUN_EVAL, inputs, &err) < 0)
        fail_msg("running: %s", err.message);
}

static void compare(ty_program *p, ty_program *q, const char *what)
{
    for (int i = 0; i < ty_program_n_outputs(p, TY_RUN_EVAL); i++) {
        const char *name = ty_program_output_name(p, TY_RUN_EVAL, i);
        const ty_tensor *found = ty_program_output(p, TY_RUN_EVAL, name);
        const ty_tensor *expected = ty_program_output(q, TY_RUN_EVAL, name);
        for (int64_t e = 0; e < ty_type_elems(&found->type); e++) {
            double a = ((const float *)found->data)[e], b = ((const float *)expected->data)[e];
            if (!(fabs(a - b) <= 1e-5 * (1 + fabs(b))))
                fail_msg("%s: output \"%s\", element %lld: expected %.9g, found %.9g", what, name, (long long)e, b, a);
        }
    }
}

typedef struct form_case {
    const char *what;
    int64_t rows, n;
    int axis;
} form_case;

static void check_form(const form_case *c, bool twice, int order, const float *x)
{
    char what[64], digit[] = {(char)('0' + order), 0};
    snprintf(what, sizeof what, "%s, %s, order %d", c->what, twice ? "two reductions" : "one reduction", order);
    setenv("TY_GRID_ORDER", digit, 1);
    ty_program *p =
        compile(make(c->rows, c->n, c->axis, twice), &(ty_compile_options){.backend = TY_BACKEND_CPU, .grid = true});
    ty_program *q =
        compile(make(c->rows, c->n, c->axis, twice), &(ty_compile_options){.backend = TY_BACKEND_INTERPRETER});
    run(p, x);
    run(q, x);
    compare(p, q, what);
    ty_program_free(p);
    ty_program_free(q);
}

static void test_forms(void **state)
{
    (void)state;
    static const form_case cases[] = {
        {"a thread a row", 1000, 3, 1},   {"a warp a row", 40, 100, 1},       {"a warp a short row", 40, 7, 1},
        {"a block a row", 11, 1500, 1},   {"a block a column", 70, 400, 0},   {"columns that are none", 5, 403, 0},
        {"a few lanes a row", 64, 16, 1}, {"a row in registers", 20, 768, 1}, {"a block's registers", 5, 6144, 1},
        {"several passes", 2, 8448, 1},   {"odd rows", 5, 8203, 1},           {"wide columns", 70, 4096, 0},
        {"few columns", 300, 6, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t n = cases[i].rows * cases[i].n;
        float *x = malloc(sizeof *x * (size_t)n);
        assert_non_null(x);
        for (int64_t e = 0; e < n; e++)
            x[e] = (float)(ty_rng_u32(7, 0, 0, (uint64_t)e) * 0x1p-32);
        for (int order = 0; order < 3; order++)
            for (int twice = 0; twice < 2; twice++)
                check_form(&cases[i], twice, order, x);
        free(x);
    }
}

static void test_down(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{3, 8}, {9, 24}, {100, 400}, {1001, 6}, {17, 2048}};
    for (size_t i = 0; i < 3 * (sizeof sizes / sizeof *sizes); i++) {
        const int64_t *size = sizes[i / 3], n = size[0] * size[1];
        char what[64], digit[] = {(char)('0' + i % 3), 0};
        snprintf(what, sizeof what, "down %d rows of %d, order %s", (int)size[0], (int)size[1], digit);
        setenv("TY_GRID_ORDER", digit, 1);
        float *x = malloc(sizeof *x * (size_t)n);
        assert_non_null(x);
        for (int64_t e = 0; e < n; e++)
            x[e] = (float)(ty_rng_u32(7, 0, 0, (uint64_t)e) * 0x1p-32);
        ty_program *p =
            compile(make_down(size[0], size[1]), &(ty_compile_options){.backend = TY_BACKEND_CPU, .grid = true});
        ty_program *q = compile(make_down(size[0], size[1]), &(ty_compile_options){.backend = TY_BACKEND_INTERPRETER});
        run(p, x);
        run(q, x);
        compare(p, q, what);
        ty_program_free(p);
        ty_program_free(q);
        free(x);
    }
}

enum { LABEL_ROWS = 5, LABEL_COLUMNS = 700 };

/* The number that a row's label points at, and the row's greatest. */
static ty_graph *make_labelled(void)
{
    ty_graph *g = ty_graph_new();
    const int64_t dim[] = {LABEL_ROWS, LABEL_COLUMNS};
    ty_val x = ty_b_input(g, ty_graph_add_input(g, "x", ty_type_make(TY_F32, 2, dim)));
    ty_val label = ty_b_input(g, ty_graph_add_input(g, "label", ty_type_make(TY_I64, 2, (int64_t[]){LABEL_ROWS, 1})));
    ty_val place = ty_b_iota(g, ty_type_make(TY_I64, 2, dim), 1);
    ty_val hit = ty_b_select(g, ty_b_eq(g, place, label), x, ty_b_full_like(g, x, 0));
    ty_graph_add_output(g, "hit", ty_b_sum(g, hit, 2, false), TY_TAPE_EVAL);
    ty_graph_add_output(g, "most", ty_b_reduce(g, x, TY_MAX, 2, false), TY_TAPE_EVAL);
    ty_graph_add_output(g, "least", ty_b_reduce(g, x, TY_MIN, 2, false), TY_TAPE_EVAL);
    return g;
}

/* Labels are compared as ints where loop variables are: 2^32 + 3 is not 3. A NaN is the greatest and the least. */
static void test_labels(void **state)
{
    (void)state;
    static float x[LABEL_ROWS * LABEL_COLUMNS];
    const int64_t label[LABEL_ROWS] = {3, -1, ((int64_t)1 << 32) + 3, LABEL_COLUMNS - 1, INT64_MIN};
    const float hit[LABEL_ROWS] = {4, 0, 0, LABEL_COLUMNS, 0};
    for (int i = 0; i < LABEL_ROWS * LABEL_COLUMNS; i++)
        x[i] = (float)(i % LABEL_COLUMNS + 1);
    x[LABEL_COLUMNS + 5] = NAN;
    for (int order = 0; order < 3; order++) {
        ty_error err = {0};
        setenv("TY_GRID_ORDER", (const char *[]){"0", "1", "2"}[order], 1);
        ty_program *p = compile(make_labelled(), &(ty_compile_options){.backend = TY_BACKEND_CPU, .grid = true});
        if (ty_program_run(p, TY_RUN_EVAL, (const void *[]){x, label}, &err) < 0)
            fail_msg("running: %s", err.message);
        const float *found = ty_program_output(p, TY_RUN_EVAL, "hit")->data;
        const float *most = ty_program_output(p, TY_RUN_EVAL, "most")->data;
        const float *least = ty_program_output(p, TY_RUN_EVAL, "least")->data;
        for (int i = 0; i < LABEL_ROWS; i++) {
            assert_float_equal(found[i], hit[i], 0);
            if (i == 1)
                assert_true(isnan(most[i]) && isnan(least[i]));
            else
                assert_true(most[i] == LABEL_COLUMNS && least[i] == 1);
        }
        ty_program_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms), cmocka_unit_test(test_down),
                                       cmocka_unit_test(test_labels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
