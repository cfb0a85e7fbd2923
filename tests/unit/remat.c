/* remat.c - forward computed again in backward: memory within a limit, and the same losses. */
#include "base/rng.h"
#include "compiler/ir/build.h"
#include "compiler/passes/passes.h"
#include "compiler/program.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* A stack of blocks x + dropout(gelu(norm(x) W)) V with attention-like softmax rows between, and SGD. */
enum { ROWS = 128, WIDTH = 64, INNER = 256, BLOCKS = 12, BLOCK = 2 * WIDTH * INNER, ALL = BLOCKS * BLOCK };

static ty_val weight(ty_graph *g, ty_val flat, int64_t at, int64_t rows, int64_t columns)
{
    ty_val v = ty_b_slice_axis(g, flat, 0, at, at + rows * columns);
    return ty_b_reshape(g, v, 2, (const int64_t[]){rows, columns});
}

static ty_val block(ty_graph *g, ty_val x, ty_val w, ty_val v, ty_val step, int number)
{
    const ty_attr tanh_form = {.flags = 1};
    ty_val h = ty_b_dot(g, ty_b_norm(g, x, TY_NONE, TY_NONE, 1, 1e-5, false), w, false, false);
    h = ty_graph_emit(g, TY_OP_GELU, &tanh_form, &h, 1);
    ty_val drawn = ty_b_rng(g, step, step, number, 2, (const int64_t[]){ROWS, INNER});
    ty_val keep = ty_b_lt(g, ty_b_cast(g, drawn, TY_F32), ty_b_scalar(g, TY_F32, 3e9));
    h = ty_b_select(g, keep, h, ty_b_full_like(g, h, 0));
    return ty_b_add(g, x, ty_b_softmax(g, ty_b_dot(g, h, v, false, false), 1, false));
}

static int add_state(ty_graph *g, const char *name, ty_type type, ty_state_role role, const void *bytes)
{
    const void *init[] = {bytes};
    ty_segment whole = {name, type, 0};
    ty_state s = {name, type, role, &whole, 1, init};
    return ty_graph_add_state(g, &s);
}

static ty_graph *make(void)
{
    static float start[ALL];
    static const int64_t n = ALL, zero = 0;
    for (int i = 0; i < ALL; i++)
        start[i] = 0.3f * (ty_rng_uniform(ty_rng_u32(3, 0, 0, (uint64_t)i)) - 0.5f);
    ty_graph *g = ty_graph_new();
    int p = add_state(g, "p", ty_type_make(TY_F32, 1, &n), TY_STATE_PARAM, start);
    int count = add_state(g, "step", ty_type_scalar(TY_I64), TY_STATE_COUNTER, &zero);
    ty_val flat = ty_b_state(g, p), step = ty_b_state(g, count), leaf[2 * BLOCKS], grad[2 * BLOCKS];
    ty_val input = ty_b_input(g, ty_graph_add_input(g, "x", ty_type_make(TY_F32, 2, (const int64_t[]){ROWS, WIDTH})));
    ty_val x = input;
    ty_error err = {0};
    for (int i = 0; i < BLOCKS; i++) {
        leaf[2 * i] = weight(g, flat, (int64_t)i * BLOCK, WIDTH, INNER);
        leaf[2 * i + 1] = weight(g, flat, (int64_t)i * BLOCK + BLOCK / 2, INNER, WIDTH);
        x = block(g, x, leaf[2 * i], leaf[2 * i + 1], step, i);
    }
    ty_val loss = ty_b_mean(g, ty_b_square(g, ty_b_sub(g, x, ty_b_mul_s(g, input, 2))), 3, false);
    ty_graph_add_output(g, "loss", loss, TY_TAPE_LAST);
    if (ty_pass_autodiff(g, loss, leaf, 2 * BLOCKS, grad, &err) < 0)
        fail_msg("%s", err.message);
    ty_graph_origin(g, "update");
    for (int i = 0; i < 2 * BLOCKS; i++)
        grad[i] = ty_b_flatten(g, grad[i]);
    ty_graph_add_assign(g, p, ty_b_sub(g, flat, ty_b_mul_s(g, ty_b_concat(g, grad, 2 * BLOCKS, 0), 5)), TY_TAPE_LAST);
    ty_graph_add_assign(g, count, ty_b_add_s(g, step, 1), TY_TAPE_LAST);
    return g;
}

static ty_program *compile(int64_t limit)
{
    ty_program *p = NULL;
    ty_error err = {0};
    const ty_compile_options opt = {.threads = 2, .temporary_bytes = limit};
    if (ty_program_of_graph(make(), TY_TAPE_LAST, &opt, &p, &err) < 0)
        fail_msg("%s", err.message);
    return p;
}

static void train(ty_program *p, float *losses, int n)
{
    static float x[ROWS * WIDTH];
    const void *in[] = {x};
    ty_error err = {0};
    for (int i = 0; i < ROWS * WIDTH; i++)
        x[i] = ty_rng_uniform(ty_rng_u32(4, 0, 0, (uint64_t)i)) - 0.5f;
    for (int i = 0; i < n; i++) {
        if (ty_program_run(p, TY_RUN_LAST, in, &err) < 0)
            fail_msg("%s", err.message);
        losses[i] = *(const float *)ty_program_output(p, TY_RUN_LAST, "loss")->data;
    }
}

/* But for products that are rounded before they are added, or not: that depends on the kernel they are in. */
static void same_weights(const ty_program *p, const ty_program *whole)
{
    const float *x = ty_program_state(p, 0, NULL).data, *y = ty_program_state(whole, 0, NULL).data;
    for (int i = 0; i < ALL; i++)
        if (!(fabs((double)x[i] - (double)y[i]) < 1e-6))
            fail_msg("weight %d: expected %.9g, found %.9g", i, (double)y[i], (double)x[i]);
}

/* From no limit to one that nothing fits. */
static void fits_with_the_same_numbers(void **state)
{
    (void)state;
    enum { STEPS = 4 };
    static const double shares[] = {0.95, 0.8, 0.6, 0.55, 1e-3};
    ty_program *whole = compile(0);
    float expected[STEPS], found[STEPS];
    size_t before = ty_program_report(whole)->slab_bytes, last = before;
    train(whole, expected, STEPS);
    assert_true(expected[STEPS - 1] < expected[0]);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        ty_program *p = compile((int64_t)(shares[i] * (double)before));
        const ty_compile_report *r = ty_program_report(p);
        assert_int_equal(r->remat.without_bytes, before);
        assert_int_equal(r->remat.with_bytes, r->slab_bytes);
        assert_true(r->slab_bytes <= last && r->remat.n_lines > 0);
        assert_true(shares[i] < 0.1 || (double)r->slab_bytes <= shares[i] * (double)before);
        assert_true(shares[i] > 0.1 || ((double)r->slab_bytes < 0.52 * (double)before && r->remat.share > 0.05));
        assert_true(r->remat.share < 0.4); /* forward is a third */
        last = r->slab_bytes;
        train(p, found, STEPS);
        for (int k = 0; k < STEPS; k++)
            assert_true(fabs((double)found[k] / (double)expected[k] - 1) < 1e-6);
        same_weights(p, whole);
        ty_program_free(p);
    }
    ty_program_free(whole);
}

/* What fits already stays as it is. */
static void leaves_alone_what_fits(void **state)
{
    (void)state;
    ty_program *whole = compile(0), *p = compile((int64_t)1 << 40);
    assert_int_equal(ty_program_report(p)->remat.n_lines, 0);
    assert_int_equal(ty_program_report(p)->slab_bytes, ty_program_report(whole)->slab_bytes);
    assert_string_equal(ty_program_hash(p), ty_program_hash(whole));
    ty_program_free(whole);
    ty_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fits_with_the_same_numbers),
        cmocka_unit_test(leaves_alone_what_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
