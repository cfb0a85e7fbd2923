/* winograd.c - convolutions by Winograd's algorithm: which are marked, and that their numbers are those of the
 * definition. */
#include "base/rng.h"
#include "compiler/ops/sliding.h"
#include "compiler/passes/passes.h"
#include "compiler/program.h"
#include "tests/unit/evaluate.h"

#include <math.h>

typedef struct conv_case {
    int64_t batch, in, out, height, width, size, step, pad, groups;
    bool marked;
} conv_case;

static ty_attr case_attr(const conv_case *c, uint32_t flags)
{
    ty_attr a = {.n = 2, .groups = c->groups, .flags = flags};
    for (int i = 0; i < 2; i++) {
        a.step[i] = c->step;
        a.dil[i] = 1;
        a.lo[i] = a.hi[i] = c->pad;
    }
    return a;
}

/* y, and the gradients of x and w when y's is g; channels-last if the flags say so. */
static ty_graph *case_graph(const conv_case *c, uint32_t flags, uint8_t dtype)
{
    ty_graph *g = ty_graph_new();
    ty_attr attr = case_attr(c, flags);
    bool last = flags & TY_SLIDING_LAST;
    ty_val x = last ? new_input(g, dtype, SHAPE(c->batch, c->height, c->width, c->in))
                    : new_input(g, dtype, SHAPE(c->batch, c->in, c->height, c->width));
    ty_val w = new_input(g, dtype, SHAPE(c->out, c->in / c->groups, c->size, c->size));
    ty_val y = ty_graph_emit(g, TY_OP_CONV, &attr, (ty_val[]){x, w}, 2);
    expect_ok(g);
    const ty_type *t = ty_graph_type(g, y);
    ty_val grad = new_input(g, dtype, t->rank, t->dim);
    attr.type = *ty_graph_type(g, x);
    ty_val dx = ty_graph_emit(g, TY_OP_CONV_DX, &attr, (ty_val[]){grad, w}, 2);
    attr.type = *ty_graph_type(g, w);
    ty_val dw = ty_graph_emit(g, TY_OP_CONV_DW, &attr, (ty_val[]){x, grad}, 2);
    ty_graph_add_output(g, "y", y, TY_TAPE_EVAL);
    ty_graph_add_output(g, "dx", dx, TY_TAPE_EVAL);
    ty_graph_add_output(g, "dw", dw, TY_TAPE_EVAL);
    expect_ok(g);
    return g;
}

/* ---- what is marked ---- */

static const conv_case rules[] = {
    {8, 64, 64, 56, 56, 3, 1, 1, 1, true},   {8, 48, 80, 20, 13, 3, 1, 0, 1, true},
    {8, 512, 512, 7, 7, 3, 1, 1, 1, true},  /* 32 tiles */
    {7, 512, 512, 7, 7, 3, 1, 1, 1, false}, /* 28 */
    {1, 256, 256, 14, 14, 3, 1, 1, 1, true}, {8, 24, 24, 56, 56, 3, 1, 1, 1, true},
    {8, 16, 24, 56, 56, 3, 1, 1, 1, false},                                          /* few channels */
    {8, 8, 96, 56, 56, 3, 1, 1, 1, false},   {8, 64, 64, 56, 56, 3, 2, 1, 1, false}, /* windows too far apart */
    {8, 64, 64, 56, 56, 5, 1, 1, 1, false},                                          /* too large */
    {8, 64, 64, 56, 56, 3, 1, 2, 1, false},                                          /* too far outside */
    {8, 64, 128, 56, 56, 3, 1, 1, 2, false},                                         /* in groups */
};

static int n_marked(const ty_graph *g)
{
    int n = 0;
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++) {
        ty_op op = ty_graph_op(g, id);
        if (op == TY_OP_CONV || op == TY_OP_CONV_DX || op == TY_OP_CONV_DW)
            n += (ty_graph_attr(g, id)->flags & TY_SLIDING_WINOGRAD) != 0;
    }
    return n;
}

static void check_marks(const conv_case *c, uint32_t flags, uint8_t dtype, int want)
{
    ty_graph *g = case_graph(c, flags, dtype), *to;
    ty_error err = {0};
    if (ty_pass_winograd(g, &to, &err) < 0 || ty_graph_verify(to, &err) < 0)
        fail_msg("%s", err.message);
    if (n_marked(to) != want)
        fail_msg("%jd images of %jd x %jd, %jd to %jd channels: %d of its convolutions are marked", (intmax_t)c->batch,
                 (intmax_t)c->height, (intmax_t)c->width, (intmax_t)c->in, (intmax_t)c->out, n_marked(to));
    ty_graph_free(to);
    ty_graph_free(g);
}

static void what_is_marked(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        for (uint32_t flags = 0; flags <= TY_SLIDING_LAST; flags++)
            check_marks(&rules[i], flags, TY_F32, rules[i].marked ? 3 : 0);
}

/* Where direct sums take half the time, those of y and of its gradient need more channels and larger images. */
static void what_is_marked_of_bfloat16(void **state)
{
    (void)state;
    static const struct {
        conv_case conv;
        int marked;
    } cases[] = {
        {{8, 64, 64, 56, 56, 3, 1, 1, 1, true}, 3},  {{8, 128, 128, 28, 28, 3, 1, 1, 1, true}, 3},
        {{8, 128, 32, 28, 28, 3, 1, 1, 1, true}, 3}, {{8, 128, 32, 14, 14, 3, 1, 1, 1, true}, 1},
        {{8, 24, 24, 56, 56, 3, 1, 1, 1, true}, 1},  {{8, 16, 64, 56, 56, 3, 1, 1, 1, true}, 0},
        {{8, 64, 16, 56, 56, 3, 1, 1, 1, true}, 0},  {{8, 512, 512, 7, 7, 3, 1, 1, 1, true}, 1},
        {{8, 64, 64, 56, 56, 3, 2, 1, 1, false}, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint32_t flags = 0; flags <= TY_SLIDING_LAST; flags++) {
            check_marks(&cases[i].conv, flags, TY_BF16, cases[i].marked);
            check_marks(&cases[i].conv, flags, TY_F16, 0);
        }
}

/* ---- what is computed ---- */

static ty_program *compile(const conv_case *c, uint32_t flags, ty_compile_options opt)
{
    ty_program *p = NULL;
    ty_error err = {0};
    if (ty_program_of_graph(case_graph(c, flags, TY_F32), TY_TAPE_EVAL, &opt, &p, &err) < 0)
        fail_msg("%s", err.message);
    return p;
}

static void run(ty_program *p)
{
    const void *inputs[3];
    ty_error err = {0};
    for (int k = 0; k < 3; k++) {
        int64_t n = ty_type_elems(&ty_program_input(p, k)->type);
        float *x = malloc((size_t)n * sizeof *x);
        assert_non_null(x);
        for (int64_t i = 0; i < n; i++)
            x[i] = (float)(2.0 * ty_rng_u32(5, (uint32_t)k, 0, (uint64_t)i) * 0x1p-32 - 1);
        inputs[k] = x;
    }
    if (ty_program_run(p, TY_RUN_EVAL, inputs, &err) < 0)
        fail_msg("%s", err.message);
    for (int k = 0; k < 3; k++)
        free((void *)(uintptr_t)inputs[k]);
}

static const char *const results[] = {"y", "dx", "dw"};

/* The largest difference between results, in units of the root mean square of the second. */
static double distance(const ty_program *a, const ty_program *b, const char *name)
{
    const ty_tensor *p = ty_program_output(a, TY_RUN_EVAL, name), *q = ty_program_output(b, TY_RUN_EVAL, name);
    double most = 0, squares = 0;
    int64_t n = ty_type_elems(&q->type);
    assert_true(ty_type_same(&p->type, &q->type));
    for (int64_t i = 0; i < n; i++) {
        double x = ((const float *)p->data)[i], y = ((const float *)q->data)[i];
        most = fabs(x - y) > most ? fabs(x - y) : most;
        squares += y * y;
    }
    return most / sqrt(squares / (double)n);
}

/* What a float32 sum of n terms of like size may be off, in units of its own size: four roundings of a random walk. */
static double tolerance(const conv_case *c)
{
    double n = (double)(c->batch * c->height * c->width);
    return fmax(2e-5, 4 * sqrt(n) * 0x1p-24);
}

static void numbers_are_those_of_the_definition(void **state)
{
    (void)state;
    static const conv_case cases[] = {
        {4, 64, 48, 17, 22, 3, 1, 1, 1, true},
        {4, 32, 64, 26, 26, 3, 1, 0, 1, true},
        {5, 48, 64, 13, 12, 3, 1, 0, 1, true},
        {6, 48, 48, 62, 62, 3, 1, 1, 1, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ty_program *fast = compile(&cases[i], TY_SLIDING_LAST, (ty_compile_options){.threads = 2});
        ty_program *one = compile(&cases[i], TY_SLIDING_LAST, (ty_compile_options){.threads = 1});
        ty_program *slow = compile(&cases[i], TY_SLIDING_LAST, (ty_compile_options){.backend = TY_BACKEND_INTERPRETER});
        run(fast);
        run(one);
        run(slow);
        for (int k = 0; k < 3; k++) {
            if (!(distance(fast, slow, results[k]) < tolerance(&cases[i])))
                fail_msg("case %zu, %s: off by %g", i, results[k], distance(fast, slow, results[k]));
            assert_true(distance(fast, one, results[k]) == 0);
        }
        ty_program_free(fast);
        ty_program_free(one);
        ty_program_free(slow);
    }
}

/* Strict determinism computes plainly, on any number of threads: the same bits as without the pass, which Winograd's
 * are not. */
static void strict_is_plain(void **state)
{
    (void)state;
    static const conv_case c = {4, 64, 64, 16, 16, 3, 1, 1, 1, true};
    static const char *const skip[] = {"winograd"};
    ty_program *strict = compile(&c, TY_SLIDING_LAST, (ty_compile_options){.threads = 2, .deterministic_strict = true});
    ty_program *plain = compile(
        &c, TY_SLIDING_LAST,
        (ty_compile_options){.threads = 1, .deterministic_strict = true, .skip_passes = skip, .n_skip_passes = 1});
    ty_program *fast = compile(&c, TY_SLIDING_LAST, (ty_compile_options){.threads = 1});
    run(strict);
    run(plain);
    run(fast);
    for (int k = 0; k < 3; k++) {
        assert_true(distance(strict, plain, results[k]) == 0);
        assert_true(distance(fast, plain, results[k]) < tolerance(&c));
        if (distance(fast, plain, results[k]) == 0)
            fail_msg("%s: not computed by Winograd's algorithm", results[k]);
    }
    ty_program_free(strict);
    ty_program_free(plain);
    ty_program_free(fast);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_marked),
        cmocka_unit_test(what_is_marked_of_bfloat16),
        cmocka_unit_test(numbers_are_those_of_the_definition),
        cmocka_unit_test(strict_is_plain),
    };
    return cmocka_run_group_tests_name("winograd", tests, NULL, NULL);
}
