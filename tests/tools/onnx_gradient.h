/* onnx_gradient.h - judges the gradient of a graph's outputs by central differences.
 *
 * f = sum of w * y over all outputs y, w between 0.5 and 1.5; elements of y that are not finite (masked scores) do not
 * count. Where 16-bit floats are on the way, the w are sixteenths, which bfloat16 holds exactly, as it does sums of
 * them. x are states, which the interpreter keeps in double whatever their dtype; it does not round results either.
 * What is compared: the derivative along one random direction through all inputs at once, which every element's
 * gradient enters, and that of some elements alone. Elements of x that are not finite stay where they are.
 */
#ifndef TY_TESTS_ONNX_GRADIENT_H
#define TY_TESTS_ONNX_GRADIENT_H

#include "base/clock.h"
#include "base/rng.h"
#include "compiler/ir/build.h"
#include "compiler/ir/interpret.h"
#include "compiler/ops/op.h"
#include "compiler/passes/passes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum gradient_verdict { GRADIENT_RIGHT, GRADIENT_WRONG, GRADIENT_FLAT } gradient_verdict;

/* A graph without inputs, whose states are x[0 .. n_x - 1] and nothing else. */
typedef struct gradient_job {
    ty_graph *g;
    const ty_val *x, *y; /* y: f64 */
    double *const *data; /* values of x; changed and put back */
    int n_x, n_y;
    double tolerance; /* relative to 1 + |derivative| */
    bool sixteenths;  /* weights that a 16-bit float holds */
    char *reason;     /* GRADIENT_REASON_BYTES */
} gradient_job;

enum { GRADIENT_SAMPLES = 4, GRADIENT_REASON_BYTES = 2048 };
#define GRADIENT_STEP 1e-5
/* Graphs that take longer for one run are judged along one direction only. */
#define GRADIENT_SLOW_NS 20000000

static inline double gradient_uniform(uint32_t stream, int64_t i)
{
    return ty_rng_u32(7, stream, 0, (uint64_t)i) * 0x1p-32;
}

static inline gradient_verdict gradient_fail(const gradient_job *j, const char *what)
{
    snprintf(j->reason, GRADIENT_REASON_BYTES, "%s", what);
    return GRADIENT_WRONG;
}

/* Runs a tape at the present values of x. */
static inline int gradient_eval(const gradient_job *j, ty_interp *it, ty_tape tape, ty_error *err)
{
    for (int i = 0; i < j->n_x; i++)
        memcpy(ty_interp_state(it, i)->f, j->data[i],
               sizeof(double) * (size_t)ty_type_elems(ty_graph_type(j->g, j->x[i])));
    return ty_interp_run(it, tape, NULL, false, err);
}

/* Weights of y's elements: 0 for those that are not finite, which y may have or not. */
static inline double *gradient_weights(const gradient_job *j, int i, const double *y, bool *whole)
{
    int64_t n = ty_type_elems(ty_graph_type(j->g, j->y[i]));
    double *w = ty_arena_alloc(ty_graph_arena(j->g), sizeof *w * (size_t)(n + 1));
    *whole = true;
    for (int64_t k = 0; k < n; k++) {
        double u = gradient_uniform(99 + (uint32_t)i, k);
        w[k] = !isfinite(y[k]) ? 0 : 0.5 + (j->sixteenths ? floor(16 * u) / 16 : u);
        *whole &= w[k] != 0;
    }
    return w;
}

/* w * y summed, without the elements of y that are not finite; TY_NONE if y cannot be computed. */
static inline ty_val gradient_loss(const gradient_job *j, ty_error *err)
{
    ty_graph *g = j->g;
    ty_interp *it;
    double *w[64];
    bool whole[64];
    for (int i = 0; i < j->n_y; i++) {
        char name[32];
        snprintf(name, sizeof name, "y%d", i);
        ty_graph_add_output(g, name, j->y[i], TY_TAPE_EVAL);
    }
    if (ty_graph_failed(g, err) || ty_interp_new(g, &it, err) < 0)
        return TY_NONE;
    int rc = gradient_eval(j, it, TY_TAPE_EVAL, err);
    for (int i = 0; i < j->n_y && rc == 0; i++)
        w[i] = gradient_weights(j, i, ty_interp_output(it, i)->f, &whole[i]);
    ty_interp_free(it); /* it does not know the nodes that come now */
    ty_val loss = rc == 0 ? ty_b_scalar(g, TY_F64, 0) : TY_NONE;
    for (int i = 0; i < j->n_y && rc == 0; i++) {
        ty_val v = j->y[i], weight = ty_b_const(g, *ty_graph_type(g, v), w[i]), zero = ty_b_full_like(g, v, 0);
        v = whole[i] ? v : ty_b_select(g, ty_b_eq(g, weight, zero), zero, v);
        loss = ty_b_add(g, loss, ty_b_sum(g, ty_b_mul(g, v, weight), ty_b_all_axes(g, v), false));
    }
    return loss;
}

/* Moves every finite element of x by its direction times h. */
static inline void gradient_move(const gradient_job *j, double *const *at, double *const *direction, double h)
{
    for (int i = 0; i < j->n_x; i++)
        for (int64_t k = 0, n = ty_type_elems(ty_graph_type(j->g, j->x[i])); k < n; k++)
            j->data[i][k] = at[i][k] + (direction[i][k] != 0 ? h * direction[i][k] : 0);
}

/* The derivative along a direction. */
static inline double gradient_slope(const gradient_job *j, ty_interp *it, int loss, double *const *at,
                                    double *const *direction)
{
    double f[2] = {NAN, NAN};
    ty_error err = {0};
    for (int side = 0; side < 2; side++) {
        gradient_move(j, at, direction, side ? GRADIENT_STEP : -GRADIENT_STEP);
        if (gradient_eval(j, it, TY_TAPE_LAST, &err) == 0)
            f[side] = ty_interp_output(it, loss)->f[0];
    }
    gradient_move(j, at, direction, 0);
    return (f[1] - f[0]) / (2 * GRADIENT_STEP);
}

static inline bool gradient_agrees(const gradient_job *j, double found, double expected, const char *where)
{
    if (fabs(found - expected) <= j->tolerance * (1 + fabs(expected)))
        return true;
    snprintf(j->reason, GRADIENT_REASON_BYTES, "gradient %s: %.9g, central differences say %.9g", where, found,
             expected);
    return false;
}

/* Compares with the gradient that the interpreter left in grad. */
static inline bool gradient_compare(const gradient_job *j, ty_interp *it, int loss, double *const *at,
                                    double *const *grad, double *const *direction, bool slow)
{
    double found = 0;
    for (int i = 0; i < j->n_x; i++)
        for (int64_t k = 0, n = ty_type_elems(ty_graph_type(j->g, j->x[i])); k < n; k++) {
            direction[i][k] = isfinite(at[i][k]) ? 2 * gradient_uniform(50 + (uint32_t)i, k) - 1 : 0;
            found += direction[i][k] != 0 ? grad[i][k] * direction[i][k] : 0;
        }
    if (!gradient_agrees(j, found, gradient_slope(j, it, loss, at, direction), "along a direction"))
        return false;
    for (int i = 0; i < j->n_x; i++)
        memset(direction[i], 0, sizeof(double) * (size_t)ty_type_elems(ty_graph_type(j->g, j->x[i])));
    for (int i = 0; i < j->n_x && !slow; i++) {
        int64_t n = ty_type_elems(ty_graph_type(j->g, j->x[i]));
        for (int s = 0; s < GRADIENT_SAMPLES && s < n; s++) {
            int64_t k = n <= GRADIENT_SAMPLES ? s : (int64_t)(gradient_uniform(70, s + 8 * i) * (double)n);
            char where[64];
            if (!isfinite(at[i][k]))
                continue;
            direction[i][k] = 1;
            double slope = gradient_slope(j, it, loss, at, direction);
            direction[i][k] = 0;
            snprintf(where, sizeof where, "of input %d, element %lld", i, (long long)k);
            if (!gradient_agrees(j, grad[i][k], slope, where))
                return false;
        }
    }
    return true;
}

/* Runs the backward tape, then compares. first: number of the output "loss"; the gradients follow it. */
static inline gradient_verdict gradient_run(const gradient_job *j, int first)
{
    ty_error err = {0};
    ty_interp *it;
    double **at = calloc((size_t)j->n_x, sizeof *at), **grad = calloc((size_t)j->n_x, sizeof *grad);
    double **direction = calloc((size_t)j->n_x, sizeof *direction);
    gradient_verdict verdict = GRADIENT_FLAT;
    if (ty_interp_new(j->g, &it, &err) < 0 || gradient_eval(j, it, TY_TAPE_MICRO, &err) < 0)
        verdict = gradient_fail(j, err.message);
    for (int i = 0; i < j->n_x && verdict != GRADIENT_WRONG; i++) {
        size_t n = (size_t)ty_type_elems(ty_graph_type(j->g, j->x[i])), bytes = sizeof(double) * n;
        const double *d = ty_interp_output(it, first + 1 + i)->f;
        at[i] = memcpy(ty_arena_alloc(ty_graph_arena(j->g), bytes + 1), j->data[i], bytes);
        grad[i] = memcpy(ty_arena_alloc(ty_graph_arena(j->g), bytes + 1), d, bytes);
        direction[i] = ty_arena_alloc(ty_graph_arena(j->g), bytes + 1);
        for (size_t k = 0; k < n && verdict == GRADIENT_FLAT; k++)
            verdict = d[k] != 0 ? GRADIENT_RIGHT : GRADIENT_FLAT;
    }
    int64_t start = ty_clock_ns();
    if (verdict != GRADIENT_WRONG && gradient_eval(j, it, TY_TAPE_LAST, &err) < 0)
        verdict = gradient_fail(j, err.message);
    bool slow = ty_clock_ns() - start > GRADIENT_SLOW_NS;
    if (verdict != GRADIENT_WRONG && !gradient_compare(j, it, first, at, grad, direction, slow))
        verdict = GRADIENT_WRONG;
    ty_interp_free(it);
    free(at);
    free(grad);
    free(direction);
    return verdict;
}

/* FLAT: all derivatives are 0, and central differences agree. */
static inline gradient_verdict gradient_judge(const gradient_job *j)
{
    ty_error err = {0};
    ty_val *grad = ty_arena_alloc(ty_graph_arena(j->g), sizeof *grad * (size_t)(j->n_x + 1));
    ty_val loss = gradient_loss(j, &err);
    int first = ty_graph_n_outputs(j->g);
    if (loss == TY_NONE || ty_pass_autodiff(j->g, loss, j->x, j->n_x, grad, &err) < 0)
        return gradient_fail(j, err.message);
    ty_graph_add_output(j->g, "loss", loss, TY_TAPE_LAST);
    for (int i = 0; i < j->n_x; i++) {
        char name[32];
        snprintf(name, sizeof name, "d%d", i);
        ty_graph_add_output(j->g, name, grad[i], TY_TAPE_MICRO);
    }
    if (ty_graph_failed(j->g, &err))
        return gradient_fail(j, err.message);
    return gradient_run(j, first);
}

#endif
