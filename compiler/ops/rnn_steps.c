/* rnn_steps.c - the part of a recurrent layer that runs step by step, and its gradient. recurrence.h has the formulas.
 *
 * rnn_steps keeps what the gradient needs: the gates after their activation, and per kind
 *     LSTM                     the cells, [T + 1, B, H], the first one included
 *     GRU                      r h, the operand of n's product; with reset_after R h + b', its result: [T, B, H]
 * rnn_grad goes through the steps in reverse. It yields the gradient of the gates before their activation and of the
 * first states; sums over steps (the gradients of weights) are products that others make of them.
 */
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/recurrence.h"
#include "compiler/ops/ref.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* ---- types ---- */

static int steps_expect_attr(const ty_attr *attr, ty_error *err)
{
    uint32_t n = attr->n, seen = 0;
    uint32_t known = n == TY_RNN_VANILLA ? TY_RNN_RELU : n == TY_RNN_GRU ? TY_RNN_RESET_AFTER : 0;
    if (n != TY_RNN_VANILLA && n != TY_RNN_GRU && n != TY_RNN_LSTM)
        return ty_error_set(err, TY_E_GRAPH, "gates: expected 1 (vanilla), 3 (GRU) or 4 (LSTM), found %" PRIu32, n);
    for (uint32_t k = 0; k < n; k++)
        if (attr->lo[k] >= 0 && attr->lo[k] < n)
            seen |= 1u << attr->lo[k];
    if (seen != (1u << n) - 1)
        return ty_error_set(err, TY_E_GRAPH, "blocks of gates: expected each of 0 to %" PRIu32 " once", n - 1);
    return ty_expect_flags(attr, known | TY_RNN_BACKWARD, err);
}

/* attr, a series [T, B, wide] and r [G H, H], of the series' type or of 16 bits where that has 32. */
static int steps_expect_sizes(const ty_attr *attr, const char *what, const ty_type *series, const ty_type *weight,
                              ty_error *err)
{
    if (steps_expect_attr(attr, err) < 0 || ty_expect_float(what, series, err) < 0 ||
        ty_expect_rank(what, series, 3, 3, err) < 0 || ty_expect_rank("r", weight, 2, 2, err) < 0)
        return -1;
    if (series->dim[0] < 1 || weight->dim[1] < 1)
        return ty_error_set(err, TY_E_SHAPE, "%s, r: expected at least one step and one unit, found none", what);
    bool is_short = ty_wide_dtype((ty_dtype)weight->dtype) == series->dtype;
    ty_type expected = ty_type_make(is_short ? weight->dtype : series->dtype, 2,
                                    (int64_t[]){attr->n * weight->dim[1], weight->dim[1]});
    return ty_expect_type("r", weight, &expected, err);
}

static ty_type steps_series(const ty_recurrence *r, ty_dtype dtype, int64_t steps, int64_t width)
{
    return ty_type_make(dtype, 3, (int64_t[]){steps, r->batch, width});
}

static int64_t steps_n_kept(const ty_recurrence *r)
{
    return r->steps + (r->gates == TY_RNN_LSTM);
}

static int steps_expect_cell(const ty_recurrence *r, const ty_type *c, const ty_type *state, ty_error *err)
{
    if ((r->gates == TY_RNN_LSTM) != (c != NULL))
        return ty_error_set(err, TY_E_GRAPH, "c: expected for an LSTM, and for no other kind");
    return c ? ty_expect_type("c", c, state, err) : 0;
}

int ty_op_infer_rnn_steps(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    const ty_type *xw = in[TY_STEPS_XW], *weight = in[TY_STEPS_WEIGHT];
    if (steps_expect_sizes(attr, "xw", xw, weight, err) < 0)
        return -1;
    ty_dtype dtype = (ty_dtype)xw->dtype;
    ty_recurrence r = ty_recurrence_of(attr, xw, weight);
    ty_type gates = steps_series(&r, dtype, r.steps, r.width);
    ty_type bias = ty_type_make(dtype, 1, (int64_t[]){ty_recurrence_bias(&r)});
    ty_type state = ty_type_make(dtype, 2, (int64_t[]){r.batch, r.hidden});
    if (ty_expect_type("xw", xw, &gates, err) < 0 || ty_expect_type("bias", in[TY_STEPS_BIAS], &bias, err) < 0 ||
        ty_expect_type("h", in[TY_STEPS_H0], &state, err) < 0 ||
        steps_expect_cell(&r, n_in > TY_STEPS_C0 ? in[TY_STEPS_C0] : NULL, &state, err) < 0)
        return -1;
    int64_t states[] = {r.steps + 1, r.batch, r.hidden};
    if (ty_expect_result(dtype, 3, states, &res[TY_STEPS_H], err) < 0)
        return -1;
    res[TY_STEPS_GATES] = gates;
    res[TY_STEPS_KEPT] = steps_series(&r, dtype, steps_n_kept(&r), r.hidden);
    return 0;
}

int ty_op_infer_rnn_grad(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    const ty_type *dy = in[TY_RGRAD_DY], *weight = in[TY_RGRAD_WEIGHT];
    if (steps_expect_sizes(attr, "dy", dy, weight, err) < 0)
        return -1;
    ty_dtype dtype = (ty_dtype)dy->dtype;
    ty_recurrence r = ty_recurrence_of(attr, dy, weight);
    ty_type y = steps_series(&r, dtype, r.steps, r.hidden), h = steps_series(&r, dtype, r.steps + 1, r.hidden);
    ty_type gates = steps_series(&r, dtype, r.steps, r.width);
    ty_type kept = steps_series(&r, dtype, steps_n_kept(&r), r.hidden);
    ty_type state = ty_type_make(dtype, 2, (int64_t[]){r.batch, r.hidden});
    if (ty_expect_type("dy", dy, &y, err) < 0 || ty_expect_type("h", in[TY_RGRAD_H], &h, err) < 0 ||
        steps_expect_cell(&r, n_in > TY_RGRAD_DC ? in[TY_RGRAD_DC] : NULL, &state, err) < 0)
        return -1;
    if (r.gates != TY_RNN_VANILLA && n_in <= TY_RGRAD_KEPT)
        return ty_error_set(err, TY_E_GRAPH, "expected the gates and what was kept, found %d inputs", n_in);
    if (r.gates != TY_RNN_VANILLA && (ty_expect_type("gates", in[TY_RGRAD_GATES], &gates, err) < 0 ||
                                      ty_expect_type("kept", in[TY_RGRAD_KEPT], &kept, err) < 0))
        return -1;
    res[TY_RGRAD_DPRE] = res[TY_RGRAD_DREC] = gates;
    res[TY_RGRAD_DH0] = res[TY_RGRAD_DC0] = state;
    return 0;
}

/* ---- meaning: one row of one step ---- */

/* What is multiplied by r. */
static double steps_operand(const ty_recurrence *r, double v)
{
    return r->rounds ? ty_ref_round_one(r->weight, v) : v;
}

/* gate k: W x + b + R h for unit u, from one row of xw and h. */
static double steps_sum(const ty_recurrence *r, const ty_ref *in, const double *xw, const double *h, int k, int64_t u)
{
    int64_t at = r->block[k] * r->hidden + u;
    const double *weight = in[TY_STEPS_WEIGHT].f + at * r->hidden;
    double sum = xw[at] + in[TY_STEPS_BIAS].f[at];
    for (int64_t i = 0; h && i < r->hidden; i++)
        sum += weight[i] * steps_operand(r, h[i]);
    return sum;
}

static double steps_logistic(double x)
{
    return 1 / (1 + exp(-x));
}

typedef struct steps_row {
    const double *xw, *h, *c; /* c: LSTM's cell */
    double *gates, *kept, *h_new;
} steps_row;

static void steps_vanilla(const ty_recurrence *r, const ty_ref *in, const steps_row *row)
{
    for (int64_t u = 0; u < r->hidden; u++) {
        double sum = steps_sum(r, in, row->xw, row->h, 0, u);
        row->gates[u] = row->h_new[u] = !r->relu ? tanh(sum) : sum > 0 || isnan(sum) ? sum : 0;
    }
}

static double *steps_gate(const ty_recurrence *r, double *gates, int k)
{
    return gates + r->block[k] * r->hidden;
}

static void steps_gru(const ty_recurrence *r, const ty_ref *in, const steps_row *row)
{
    double *z = steps_gate(r, row->gates, TY_RNN_Z), *reset = steps_gate(r, row->gates, TY_RNN_R);
    double *n = steps_gate(r, row->gates, TY_RNN_N), *kept = row->kept;
    const double *weight = in[TY_STEPS_WEIGHT].f + r->block[TY_RNN_N] * r->hidden * r->hidden;
    for (int64_t u = 0; u < r->hidden; u++) {
        z[u] = steps_logistic(steps_sum(r, in, row->xw, row->h, TY_RNN_Z, u));
        reset[u] = steps_logistic(steps_sum(r, in, row->xw, row->h, TY_RNN_R, u));
        kept[u] = r->reset_after ? in[TY_STEPS_BIAS].f[r->width + u] : reset[u] * row->h[u];
        for (int64_t i = 0; r->reset_after && i < r->hidden; i++)
            kept[u] += weight[u * r->hidden + i] * steps_operand(r, row->h[i]);
    }
    for (int64_t u = 0; u < r->hidden; u++) {
        double sum = r->reset_after ? steps_sum(r, in, row->xw, NULL, TY_RNN_N, u) + reset[u] * kept[u]
                                    : steps_sum(r, in, row->xw, kept, TY_RNN_N, u);
        n[u] = tanh(sum);
        row->h_new[u] = (1 - z[u]) * n[u] + z[u] * row->h[u];
    }
}

static void steps_lstm(const ty_recurrence *r, const ty_ref *in, const steps_row *row)
{
    for (int64_t u = 0; u < r->hidden; u++) {
        double gate[TY_RNN_MAX_GATES];
        for (int k = 0; k < r->gates; k++) {
            double sum = steps_sum(r, in, row->xw, row->h, k, u);
            gate[k] = k == TY_RNN_G ? tanh(sum) : steps_logistic(sum);
            steps_gate(r, row->gates, k)[u] = gate[k];
        }
        row->kept[u] = gate[TY_RNN_F] * row->c[u] + gate[TY_RNN_I] * gate[TY_RNN_G];
        row->h_new[u] = gate[TY_RNN_O] * tanh(row->kept[u]);
    }
}

typedef void steps_fn(const ty_recurrence *r, const ty_ref *in, const steps_row *row);

int ty_op_ref_rnn_steps(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    static steps_fn *const kinds[] = {
        [TY_RNN_VANILLA] = steps_vanilla, [TY_RNN_GRU] = steps_gru, [TY_RNN_LSTM] = steps_lstm};
    ty_recurrence r = ty_recurrence_of(attr, &in[TY_STEPS_XW].type, &in[TY_STEPS_WEIGHT].type);
    int64_t plane = r.batch * r.hidden, first = ty_recurrence_before(&r, 0) * plane;
    double *h = res[TY_STEPS_H].f, *kept = res[TY_STEPS_KEPT].f;
    bool lstm = n_in > TY_STEPS_C0;
    (void)err;
    for (int64_t i = 0; i < plane; i++)
        h[first + i] = in[TY_STEPS_H0].f[i];
    for (int64_t i = 0; lstm && i < plane; i++)
        kept[first + i] = in[TY_STEPS_C0].f[i];
    for (int64_t k = 0; k < r.steps; k++)
        for (int64_t b = 0; b < r.batch; b++) {
            int64_t t = ty_recurrence_time(&r, k), wide = (t * r.batch + b) * r.width;
            int64_t old = (ty_recurrence_before(&r, k) * r.batch + b) * r.hidden;
            int64_t new = (ty_recurrence_after(&r, k) * r.batch + b) * r.hidden;
            steps_row row = {.xw = in[TY_STEPS_XW].f + wide,
                             .h = h + old,
                             .c = kept + old,
                             .gates = res[TY_STEPS_GATES].f + wide,
                             .kept = kept + (lstm ? new : (t * r.batch + b) * r.hidden),
                             .h_new = h + new};
            kinds[r.gates](&r, in, &row);
        }
    return 0;
}

/* ---- meaning of the gradient: one row of one step, backwards ---- */

typedef struct rgrad_row {
    const double *h, *h_new;    /* before and after the step */
    const double *c, *c_new;    /* LSTM */
    const double *gates, *kept; /* kept: GRU */
    double *dh, *dc;            /* in: to the states after the step; out: before it */
    double *dpre, *drec;
} rgrad_row;

/* to[i] = sum over rows of gate k's block of d[row] r[row, i] */
static void rgrad_through(const ty_recurrence *r, const double *weight, const double *d, int k, double *to)
{
    for (int64_t u = 0; u < r->hidden; u++) {
        int64_t at = r->block[k] * r->hidden + u;
        double of = steps_operand(r, d[at]);
        for (int64_t i = 0; i < r->hidden; i++)
            to[i] += of * weight[at * r->hidden + i];
    }
}

static void rgrad_vanilla(const ty_recurrence *r, const double *weight, const rgrad_row *row)
{
    for (int64_t u = 0; u < r->hidden; u++) {
        double y = row->h_new[u], slope = !r->relu ? 1 - y * y : y > 0 ? 1 : 0;
        row->drec[u] = row->dpre[u] = row->dh[u] * slope;
        row->dh[u] = 0;
    }
    rgrad_through(r, weight, row->drec, 0, row->dh);
}

static const double *rgrad_gate(const ty_recurrence *r, const double *gates, int k)
{
    return gates + r->block[k] * r->hidden;
}

/* dh becomes its direct part z dh; the products are added to it. With the reset before the product, r's gradient needs
 * n's product first, which is collected in r's own place. */
static void rgrad_gru(const ty_recurrence *r, const double *weight, const rgrad_row *row)
{
    const double *z = rgrad_gate(r, row->gates, TY_RNN_Z), *reset = rgrad_gate(r, row->gates, TY_RNN_R);
    const double *n = rgrad_gate(r, row->gates, TY_RNN_N);
    double *dz = steps_gate(r, row->dpre, TY_RNN_Z), *dr = steps_gate(r, row->dpre, TY_RNN_R);
    double *dn = steps_gate(r, row->dpre, TY_RNN_N);
    for (int64_t u = 0; u < r->hidden; u++) {
        dn[u] = row->dh[u] * (1 - z[u]) * (1 - n[u] * n[u]);
        dz[u] = row->dh[u] * (row->h[u] - n[u]) * z[u] * (1 - z[u]);
        dr[u] = r->reset_after ? dn[u] * row->kept[u] : 0;
        row->dh[u] *= z[u];
    }
    if (!r->reset_after)
        rgrad_through(r, weight, row->dpre, TY_RNN_N, dr);
    for (int64_t u = 0; u < r->hidden; u++) {
        row->dh[u] += r->reset_after ? 0 : dr[u] * reset[u];
        dr[u] *= (r->reset_after ? 1 : row->h[u]) * reset[u] * (1 - reset[u]);
    }
    for (int64_t u = 0; u < r->width; u++)
        row->drec[u] = row->dpre[u];
    for (int64_t u = 0; r->reset_after && u < r->hidden; u++)
        steps_gate(r, row->drec, TY_RNN_N)[u] *= reset[u];
    for (int k = 0; k < (r->reset_after ? 3 : 2); k++)
        rgrad_through(r, weight, row->drec, k, row->dh);
}

static void rgrad_lstm(const ty_recurrence *r, const double *weight, const rgrad_row *row)
{
    for (int64_t u = 0; u < r->hidden; u++) {
        double gate[TY_RNN_MAX_GATES], d[TY_RNN_MAX_GATES], c = tanh(row->c_new[u]);
        for (int k = 0; k < r->gates; k++)
            gate[k] = rgrad_gate(r, row->gates, k)[u];
        double dc = row->dc[u] + row->dh[u] * gate[TY_RNN_O] * (1 - c * c);
        d[TY_RNN_O] = row->dh[u] * c;
        d[TY_RNN_I] = dc * gate[TY_RNN_G];
        d[TY_RNN_F] = dc * row->c[u];
        d[TY_RNN_G] = dc * gate[TY_RNN_I];
        for (int k = 0; k < r->gates; k++) {
            double slope = k == TY_RNN_G ? 1 - gate[k] * gate[k] : gate[k] * (1 - gate[k]);
            steps_gate(r, row->dpre, k)[u] = steps_gate(r, row->drec, k)[u] = d[k] * slope;
        }
        row->dc[u] = dc * gate[TY_RNN_F];
        row->dh[u] = 0;
    }
    for (int k = 0; k < r->gates; k++)
        rgrad_through(r, weight, row->drec, k, row->dh);
}

typedef void rgrad_fn(const ty_recurrence *r, const double *weight, const rgrad_row *row);

static rgrad_row rgrad_row_of(const ty_recurrence *r, const ty_ref *in, ty_ref *res, int64_t k, int64_t b)
{
    int64_t t = ty_recurrence_time(r, k) * r->batch + b, before = ty_recurrence_before(r, k) * r->batch + b;
    int64_t after = ty_recurrence_after(r, k) * r->batch + b;
    rgrad_row row = {.h = in[TY_RGRAD_H].f + before * r->hidden,
                     .h_new = in[TY_RGRAD_H].f + after * r->hidden,
                     .dh = res[TY_RGRAD_DH0].f + b * r->hidden,
                     .dc = res[TY_RGRAD_DC0].f + b * r->hidden,
                     .dpre = res[TY_RGRAD_DPRE].f + t * r->width,
                     .drec = res[TY_RGRAD_DREC].f + t * r->width};
    if (r->gates == TY_RNN_VANILLA)
        return row;
    row.gates = in[TY_RGRAD_GATES].f + t * r->width;
    row.kept = in[TY_RGRAD_KEPT].f + t * r->hidden;
    row.c = in[TY_RGRAD_KEPT].f + before * r->hidden;
    row.c_new = in[TY_RGRAD_KEPT].f + after * r->hidden;
    return row;
}

int ty_op_ref_rnn_grad(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    static rgrad_fn *const kinds[] = {
        [TY_RNN_VANILLA] = rgrad_vanilla, [TY_RNN_GRU] = rgrad_gru, [TY_RNN_LSTM] = rgrad_lstm};
    ty_recurrence r = ty_recurrence_of(attr, &in[TY_RGRAD_DY].type, &in[TY_RGRAD_WEIGHT].type);
    int64_t plane = r.batch * r.hidden;
    (void)err;
    for (int64_t i = 0; n_in > TY_RGRAD_DC && i < plane; i++)
        res[TY_RGRAD_DC0].f[i] = in[TY_RGRAD_DC].f[i];
    for (int64_t k = r.steps - 1; k >= 0; k--) {
        const double *dy = in[TY_RGRAD_DY].f + ty_recurrence_time(&r, k) * plane;
        for (int64_t i = 0; i < plane; i++)
            res[TY_RGRAD_DH0].f[i] += dy[i];
        for (int64_t b = 0; b < r.batch; b++) {
            rgrad_row row = rgrad_row_of(&r, in, res, k, b);
            kinds[r.gates](&r, in[TY_RGRAD_WEIGHT].f, &row);
        }
    }
    return 0;
}
