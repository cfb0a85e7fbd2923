/* gradients.h - gradients judged by central differences.
 *
 * Given a function that builds y from float inputs, checks that autodiff of sum(w * y), w random, agrees with
 * (f(x + h) - f(x - h)) / 2h in the double interpreter, for every element of every input.
 *
 *     static ty_val build_exp(ty_graph *g, const ty_val *x, const void *ctx) { return ty_b_exp(g, x[0]); }
 *     gradcheck(&(gradcheck_case){.name = "exp", .build = build_exp, .n_in = 1, .in = {GRAD_IN(2, 3)}});
 *
 * Inputs are f64, uniform in [lo, hi] (default -1 to 1), the same in every run; `gap` keeps them that far from 0 and
 * from each other's ties (for kinks such as abs, max and sort: values become distinct multiples of it).
 */
#ifndef TY_TESTS_GRADIENTS_H
#define TY_TESTS_GRADIENTS_H

#include "base/rng.h"
#include "compiler/ir/build.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/verify.h"
#include "compiler/ops/op.h"
#include "compiler/passes/passes.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define GRADCHECK_MAX_IN 6

typedef struct gradcheck_input {
    int rank;
    int64_t dim[TY_MAX_RANK];
} gradcheck_input;

#define GRAD_IN(...)                                                                              \
    {                                                                                             \
        .rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .dim = { __VA_ARGS__ } \
    }
#define GRAD_SCALAR \
    {               \
        .rank = 0   \
    }

typedef struct gradcheck_case {
    const char *name;
    /* y, any float value, from the inputs; ctx is passed on. */
    ty_val (*build)(ty_graph *g, const ty_val *x, const void *ctx);
    const void *ctx;
    int n_in;
    gradcheck_input in[GRADCHECK_MAX_IN];
    double lo, hi;    /* range of inputs; both 0: -1 to 1 */
    double gap;       /* 0: none */
    double tolerance; /* relative to max(1, |gradient|); 0: 1e-6 */
    double h;         /* 0: 1e-5 */
} gradcheck_case;

static inline double gradcheck_uniform(uint32_t stream, uint64_t i)
{
    return ty_rng_u32(42, stream, 0, i) * 0x1p-32;
}

/* Distinct odd multiples of gap / 2 in random order, centred on (lo + hi) / 2: at least `gap` from each other. */
static inline void gradcheck_spread(double *x, int64_t n, uint32_t stream, double gap, double middle)
{
    uint32_t *order = malloc(sizeof *order * (size_t)(n > 0 ? n : 1));
    assert_non_null(order);
    ty_rng_permutation(42, stream, 0, n, order);
    for (int64_t k = 0; k < n; k++)
        x[k] = middle + gap * ((double)order[k] - (double)n / 2 + 0.5 * (n % 2) + 0.25 + 0.05 * stream);
    free(order);
}

static inline void gradcheck_fill(const gradcheck_case *c, int input, double *x, int64_t n)
{
    double lo = c->lo, hi = c->hi;
    if (lo == 0 && hi == 0) {
        lo = -1;
        hi = 1;
    }
    if (c->gap > 0) {
        gradcheck_spread(x, n, (uint32_t)input, c->gap, (lo + hi) / 2);
        return;
    }
    for (int64_t k = 0; k < n; k++)
        x[k] = lo + (hi - lo) * gradcheck_uniform((uint32_t)input, (uint64_t)k);
}

/* sum(w * y), with w a constant. */
static inline ty_val gradcheck_loss(ty_graph *g, ty_val y)
{
    assert_false(ty_graph_failed(g, NULL));
    assert_int_not_equal(y, TY_NONE);
    ty_type type = *ty_graph_type(g, y);
    int64_t n = ty_type_elems(&type);
    assert_int_equal(type.dtype, TY_F64);
    double *w = ty_arena_alloc(ty_graph_arena(g), sizeof *w * (size_t)n);
    for (int64_t k = 0; k < n; k++)
        w[k] = 0.5 + gradcheck_uniform(99, (uint64_t)k);
    return ty_b_sum(g, ty_b_mul(g, y, ty_b_const(g, type, w)), ty_b_all_axes(g, y), false);
}

static inline double gradcheck_run(ty_interp *it, const void *const *inputs, const char *name)
{
    ty_error err = {0};
    if (ty_interp_run(it, TY_TAPE_LAST, inputs, false, &err) < 0)
        fail_msg("%s: %s", name, err.message);
    return ty_interp_output(it, 0)->f[0];
}

/* Compares one input's gradient, element by element. */
static inline void gradcheck_input_matches(const gradcheck_case *c, ty_interp *it, const void *const *inputs, int input,
                                           double *x, const double *found, int64_t n)
{
    double h = c->h > 0 ? c->h : 1e-5, tolerance = c->tolerance > 0 ? c->tolerance : 1e-6;
    for (int64_t k = 0; k < n; k++) {
        double at = x[k];
        x[k] = at + h;
        double above = gradcheck_run(it, inputs, c->name);
        x[k] = at - h;
        double below = gradcheck_run(it, inputs, c->name);
        x[k] = at;
        double expected = (above - below) / (2 * h);
        if (!(fabs(found[k] - expected) <= tolerance * fmax(1, fabs(expected))))
            fail_msg("%s: gradient of input %d, element %lld at %.9g: expected %.9g, found %.9g", c->name, input,
                     (long long)k, at, expected, found[k]);
    }
}

static inline void gradcheck(const gradcheck_case *c)
{
    ty_graph *g = ty_graph_new();
    ty_val x[GRADCHECK_MAX_IN], grad[GRADCHECK_MAX_IN];
    double *data[GRADCHECK_MAX_IN];
    const void *inputs[GRADCHECK_MAX_IN];
    double *found[GRADCHECK_MAX_IN];
    ty_error err = {0};
    for (int i = 0; i < c->n_in; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        ty_type type = ty_type_make(TY_F64, c->in[i].rank, c->in[i].dim);
        int64_t n = ty_type_elems(&type);
        x[i] = ty_b_input(g, ty_graph_add_input(g, name, type));
        data[i] = ty_arena_alloc(ty_graph_arena(g), sizeof(double) * (size_t)n);
        found[i] = ty_arena_alloc(ty_graph_arena(g), sizeof(double) * (size_t)n);
        inputs[i] = data[i];
        gradcheck_fill(c, i, data[i], n);
    }
    ty_val y = c->build(g, x, c->ctx);
    if (ty_graph_failed(g, &err))
        fail_msg("%s: %s", c->name, err.message);
    ty_val loss = gradcheck_loss(g, y);
    if (ty_pass_autodiff(g, loss, x, c->n_in, grad, &err) < 0)
        fail_msg("%s: %s", c->name, err.message);
    ty_graph_add_output(g, "loss", loss, TY_TAPE_LAST);
    for (int i = 0; i < c->n_in; i++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", i);
        ty_graph_add_output(g, name, grad[i], TY_TAPE_MICRO);
    }
    if (ty_graph_failed(g, &err) || ty_graph_verify(g, &err) < 0)
        fail_msg("%s: %s", c->name, err.message);
    ty_interp *it;
    assert_int_equal(ty_interp_new(g, &it, &err), 0);
    if (ty_interp_run(it, TY_TAPE_MICRO, inputs, false, &err) < 0)
        fail_msg("%s: %s", c->name, err.message);
    for (int i = 0; i < c->n_in; i++)
        for (int64_t k = 0, n = ty_type_elems(ty_graph_type(g, x[i])); k < n; k++)
            found[i][k] = ty_interp_output(it, i + 1)->f[k];
    for (int i = 0; i < c->n_in; i++)
        gradcheck_input_matches(c, it, inputs, i, data[i], found[i], ty_type_elems(ty_graph_type(g, x[i])));
    ty_interp_free(it);
    ty_graph_free(g);
}

#endif
