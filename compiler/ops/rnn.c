/* rnn.c - a recurrent layer in one direction: vanilla, GRU, LSTM (recurrence.h has the formulas).
 *
 *     x [T, B, I], w [G H, I], r [G H, H], bias [G H] (reset_after: [G H + H]), h [B, H], c [B, H] for LSTM
 *     -> y [T, B, H], and the LSTM's cell, or else the state, after the last step [B, H]
 *
 * x, w and r may have 16 bits where all else is float32: all products then have operands of 16 bits and sums of 32, and
 * what a step leaves behind is not rounded.
 *
 * All that does not have to wait for the step before is done for all steps at once: the input's part of the gates is
 * one product, and so are the gradients of w, r and x. What is left is in rnn_steps and rnn_grad (rnn_steps.c). lower
 * and grad build the same rnn_steps; equal nodes exist once, so that the gradient finds the gates of the forward pass.
 */
#include "compiler/ir/build.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/recurrence.h"

#include <inttypes.h>
#include <stdlib.h>

int ty_op_infer_rnn(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    const ty_type *x = in[TY_RNN_X], *weight = in[TY_RNN_WEIGHT], *w = in[TY_RNN_W];
    if (ty_expect_float("x", x, err) < 0 || ty_expect_rank("x", x, 3, 3, err) < 0 ||
        ty_expect_rank("w", w, 2, 2, err) < 0 || ty_expect_rank("r", weight, 2, 2, err) < 0 ||
        ty_expect_dtype("r", weight, (ty_dtype)x->dtype, err) < 0)
        return -1;
    ty_recurrence r = ty_recurrence_of(attr, x, weight);
    ty_dtype dtype = (ty_dtype)in[TY_RNN_BIAS]->dtype;
    if (dtype != x->dtype && dtype != ty_wide_dtype((ty_dtype)x->dtype))
        return ty_expect_dtype("bias", in[TY_RNN_BIAS], ty_wide_dtype((ty_dtype)x->dtype), err);
    ty_type w_type = ty_type_make(x->dtype, 2, (int64_t[]){r.width, x->dim[2]});
    ty_type xw = ty_type_make(dtype, 3, (int64_t[]){r.steps, r.batch, r.width});
    const ty_type *steps_in[] = {&xw, weight, in[TY_RNN_BIAS], in[TY_RNN_H0], n_in > TY_RNN_C0 ? in[TY_RNN_C0] : NULL};
    ty_type steps_res[TY_STEPS_N_RES] = {0};
    if (ty_expect_type("w", w, &w_type, err) < 0 || ty_op_infer_rnn_steps(attr, steps_in, n_in - 1, steps_res, err) < 0)
        return -1;
    res[0] = ty_type_make(dtype, 3, (int64_t[]){r.steps, r.batch, r.hidden});
    res[1] = *in[TY_RNN_H0];
    return 0;
}

/* ---- meaning ---- */

/* xw = x w' over all steps. */
static void rnn_ref_input(const ty_ref *x, const ty_ref *w, double *xw)
{
    int64_t rows = x->type.dim[0] * x->type.dim[1], n_in = x->type.dim[2], width = w->type.dim[0];
    for (int64_t row = 0; row < rows; row++)
        for (int64_t j = 0; j < width; j++) {
            double sum = 0;
            for (int64_t i = 0; i < n_in; i++)
                sum += x->f[row * n_in + i] * w->f[j * n_in + i];
            xw[row * width + j] = sum;
        }
}

int ty_op_ref_rnn(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    ty_recurrence r = ty_recurrence_of(attr, &in[TY_RNN_X].type, &in[TY_RNN_WEIGHT].type);
    int64_t plane = r.batch * r.hidden, rows = r.steps * r.batch;
    bool lstm = r.gates == TY_RNN_LSTM;
    ty_ref steps_in[] = {{.type = in[TY_RNN_X].type}, in[TY_RNN_WEIGHT], in[TY_RNN_BIAS], in[TY_RNN_H0], in[n_in - 1]};
    ty_ref out[TY_STEPS_N_RES] = {0};
    double *memory = calloc((size_t)(2 * rows * r.width + 2 * (r.steps + 1) * plane) + 1, sizeof *memory);
    if (!memory)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %" PRId64 " steps", r.steps);
    steps_in[TY_STEPS_XW].type.dim[2] = r.width;
    steps_in[TY_STEPS_XW].type.dtype = in[TY_RNN_BIAS].type.dtype;
    steps_in[TY_STEPS_XW].f = memory;
    out[TY_STEPS_GATES].f = memory + rows * r.width;
    out[TY_STEPS_H].f = memory + 2 * rows * r.width;
    out[TY_STEPS_KEPT].f = out[TY_STEPS_H].f + (r.steps + 1) * plane;
    rnn_ref_input(&in[TY_RNN_X], &in[TY_RNN_W], memory);
    int rc = ty_op_ref_rnn_steps(attr, steps_in, n_in - 1, out, err);
    for (int64_t i = 0; rc == 0 && i < r.steps * plane; i++)
        res[0].f[i] = out[TY_STEPS_H].f[i + (r.backward ? 0 : plane)];
    for (int64_t i = 0; rc == 0 && i < plane; i++)
        res[1].f[i] = out[lstm ? TY_STEPS_KEPT : TY_STEPS_H].f[ty_recurrence_before(&r, r.steps) * plane + i];
    free(memory);
    return rc;
}

/* ---- what lower and grad share ---- */

/* Types of x, w and r, and of all else. */
typedef struct rnn_types {
    ty_dtype x, state;
} rnn_types;

static rnn_types rnn_types_of(const ty_graph *g, const ty_val *in)
{
    return (rnn_types){(ty_dtype)ty_graph_type(g, in[TY_RNN_X])->dtype,
                       (ty_dtype)ty_graph_type(g, in[TY_RNN_BIAS])->dtype};
}

/* A matrix as it is, a series as one of all its steps; of x's type. */
static ty_val rnn_matrix(ty_graph *g, rnn_types types, ty_val v)
{
    v = ty_b_cast(g, v, types.x);
    if (v == TY_NONE || ty_graph_type(g, v)->rank == 2)
        return v;
    const ty_type *t = ty_graph_type(g, v);
    int64_t dim[] = {t->dim[0] * t->dim[1], t->dim[2]};
    return ty_b_reshape(g, v, 2, dim);
}

/* The gradient of a weight: a product over all steps, of x's type. */
static ty_val rnn_dot_weight(ty_graph *g, rnn_types types, ty_val dgates, ty_val by)
{
    return ty_b_dot(g, rnn_matrix(g, types, dgates), rnn_matrix(g, types, by), true, false);
}

/* x w' over all steps, of the states' type. */
static ty_val rnn_dot_input(ty_graph *g, rnn_types types, ty_val x, ty_val w)
{
    x = rnn_matrix(g, types, x);
    return types.x == types.state ? ty_b_dot(g, x, w, false, true) : ty_b_dot_wide(g, x, w, false, true);
}

/* Result 0 of rnn_steps. */
static ty_val rnn_steps(ty_graph *g, const ty_attr *attr, const ty_recurrence *r, const ty_val *in, int n_in)
{
    int64_t dim[] = {r->steps, r->batch, r->width};
    ty_val xw = rnn_dot_input(g, rnn_types_of(g, in), in[TY_RNN_X], in[TY_RNN_W]);
    ty_val steps_in[] = {ty_b_reshape(g, xw, 3, dim), in[TY_RNN_WEIGHT], in[TY_RNN_BIAS], in[TY_RNN_H0], in[n_in - 1]};
    return ty_graph_emit(g, TY_OP_RNN_STEPS, attr, steps_in, n_in - 1);
}

static ty_val rnn_result(ty_val steps, uint32_t k)
{
    return steps == TY_NONE ? TY_NONE : ty_val_make(ty_val_node(steps), k);
}

/* T of the T + 1 states: those before the steps, or those after. */
static ty_val rnn_states(ty_graph *g, const ty_recurrence *r, ty_val states, bool after)
{
    int64_t lo = after != r->backward;
    return ty_b_slice_axis(g, states, 0, lo, lo + r->steps);
}

void ty_op_lower_rnn(ty_graph *g, const ty_attr *attr, const ty_val *in, int n_in, ty_val *res)
{
    ty_recurrence r = ty_recurrence_of(attr, ty_graph_type(g, in[TY_RNN_X]), ty_graph_type(g, in[TY_RNN_WEIGHT]));
    ty_val steps = rnn_steps(g, attr, &r, in, n_in);
    uint32_t last = r.gates == TY_RNN_LSTM ? TY_STEPS_KEPT : TY_STEPS_H;
    int64_t at = ty_recurrence_before(&r, r.steps);
    res[0] = rnn_states(g, &r, rnn_result(steps, TY_STEPS_H), true);
    res[1] = ty_b_squeeze(g, ty_b_slice_axis(g, rnn_result(steps, last), 0, at, at + 1), 0);
}

/* ---- gradient ---- */

typedef struct rnn_grads {
    ty_recurrence r;
    rnn_types types;
    ty_val h_before; /* [T, B, H] */
    ty_val kept;
    ty_val dpre; /* [T, B, G H]: to the gates before their activation */
    ty_val drec; /* the same to R h + bias of the step: differs in gate n with reset_after */
} rnn_grads;

/* The gradient of y, with what comes through the last state. */
static ty_val rnn_grad_outputs(ty_graph *g, const ty_recurrence *r, const ty_type *y, const ty_val *dres)
{
    ty_val dy = dres[0] == TY_NONE ? ty_b_full(g, y->dtype, 3, y->dim, 0) : dres[0];
    if (r->gates == TY_RNN_LSTM || dres[1] == TY_NONE)
        return dy;
    int64_t at = ty_recurrence_time(r, r->steps - 1);
    int64_t lo[] = {at, 0, 0}, hi[] = {r->steps - 1 - at, 0, 0};
    return ty_b_add(g, dy, ty_b_pad(g, ty_b_unsqueeze(g, dres[1], 0), lo, hi, 0));
}

/* Rows of gate k in the gradient of r, where each gate has a product of its own: n multiplies r h, not h. */
static ty_val rnn_grad_weight_parts(ty_graph *g, const rnn_grads *d)
{
    const ty_recurrence *r = &d->r;
    ty_val part[TY_RNN_MAX_GATES];
    for (int k = 0; k < r->gates; k++) {
        ty_val dgate = ty_b_slice_axis(g, d->dpre, 2, r->block[k] * r->hidden, (r->block[k] + 1) * r->hidden);
        ty_val by = k == TY_RNN_N ? d->kept : d->h_before;
        part[r->block[k]] = rnn_dot_weight(g, d->types, dgate, by);
    }
    return ty_b_concat(g, part, r->gates, 0);
}

static ty_val rnn_grad_weight(ty_graph *g, const rnn_grads *d)
{
    if (d->r.gates == TY_RNN_GRU && !d->r.reset_after)
        return rnn_grad_weight_parts(g, d);
    return rnn_dot_weight(g, d->types, d->drec, d->h_before);
}

static ty_val rnn_grad_bias(ty_graph *g, const rnn_grads *d)
{
    ty_val sum = ty_b_sum(g, d->dpre, 3, false);
    int64_t lo = d->r.block[TY_RNN_N] * d->r.hidden;
    if (!d->r.reset_after)
        return sum;
    ty_val own = ty_b_sum(g, ty_b_slice_axis(g, d->drec, 2, lo, lo + d->r.hidden), 3, false);
    return ty_b_concat(g, (ty_val[]){sum, own}, 2, 0);
}

/* All results of rnn_grad; result 0 is returned. */
static ty_val rnn_grad_steps(ty_graph *g, uint32_t node, const ty_recurrence *r, ty_val steps, const ty_val *dres)
{
    const ty_attr attr = *ty_graph_attr(g, node);
    const ty_type y = *ty_graph_type(g, ty_val_make(node, 0)), last = *ty_graph_type(g, ty_val_make(node, 1));
    static const int n_in[] = {[TY_RNN_VANILLA] = 3, [TY_RNN_GRU] = 5, [TY_RNN_LSTM] = 6};
    ty_val in[] = {rnn_grad_outputs(g, r, &y, dres), ty_graph_in(g, node, TY_RNN_WEIGHT),
                   rnn_result(steps, TY_STEPS_H),    rnn_result(steps, TY_STEPS_GATES),
                   rnn_result(steps, TY_STEPS_KEPT), dres[1]};
    if (dres[1] == TY_NONE)
        in[TY_RGRAD_DC] = ty_b_full(g, last.dtype, 2, last.dim, 0);
    return ty_graph_emit(g, TY_OP_RNN_GRAD, &attr, in, n_in[r->gates]);
}

void ty_op_grad_rnn(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    const ty_attr attr = *ty_graph_attr(g, node);
    int n_in = (int)ty_graph_node(g, node)->n_in;
    ty_val in[TY_RNN_C0 + 1];
    for (int k = 0; k < n_in; k++)
        in[k] = ty_graph_in(g, node, k);
    const ty_type x = *ty_graph_type(g, in[TY_RNN_X]);
    rnn_grads d = {.r = ty_recurrence_of(&attr, &x, ty_graph_type(g, in[TY_RNN_WEIGHT])), .types = rnn_types_of(g, in)};
    ty_val steps = rnn_steps(g, &attr, &d.r, in, n_in);
    d.dpre = rnn_grad_steps(g, node, &d.r, steps, dres);
    if (d.dpre == TY_NONE)
        return;
    d.drec = d.r.reset_after ? rnn_result(d.dpre, TY_RGRAD_DREC) : d.dpre;
    d.h_before = rnn_states(g, &d.r, rnn_result(steps, TY_STEPS_H), false);
    d.kept = rnn_result(steps, TY_STEPS_KEPT);
    ty_val dx = ty_b_dot(g, rnn_matrix(g, d.types, d.dpre), in[TY_RNN_W], false, false);
    din[TY_RNN_X] = ty_b_reshape(g, dx, 3, x.dim);
    din[TY_RNN_W] = rnn_dot_weight(g, d.types, d.dpre, in[TY_RNN_X]);
    din[TY_RNN_WEIGHT] = rnn_grad_weight(g, &d);
    din[TY_RNN_BIAS] = rnn_grad_bias(g, &d);
    din[TY_RNN_H0] = rnn_result(d.dpre, TY_RGRAD_DH0);
    if (n_in > TY_RNN_C0)
        din[TY_RNN_C0] = rnn_result(d.dpre, TY_RGRAD_DC0);
}
