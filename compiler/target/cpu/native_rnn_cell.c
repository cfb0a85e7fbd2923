/* native_rnn_cell.c - gates of a recurrent step, forward and back. See native_rnn.h; formulas in recurrence.h.
 *
 * Each function is a loop over a tile's rows around a loop over its units that vectorises: unit strides, no branches,
 * restrict pointers but for what may share memory: gates may be written over xw, dpre over gates, each element after it
 * was read. The logistic function and tanh are one exponential each, e^x = 2^n (1 + p) with p = e^r - 1 for
 * |r| <= ln 2 / 2, by Cephes' polynomial as in prelude.c. tanh x = q / (q + 2) with q = e^2x - 1 keeps its digits near
 * 0, because q = 2^n p + (2^n - 1) does.
 */
#include "compiler/target/cpu/native_rnn.h"

#include "compiler/target/cpu/clones.h"

#include <string.h>

#if !defined(__clang__)
#pragma GCC optimize("no-trapping-math", "no-math-errno") /* else a division under a condition does not vectorise */
#endif

/* ---- mathematics ---- */

/* 2^n and p of e^x, -87 <= x <= 87 or NaN. Adding 1.5 2^23 rounds to an integer, which the low bits then hold. */
TY_CPU_INLINE float cell_exp(float x, float *p)
{
    float shifted = x * 0x1.715476p+0f + 12582912.0f, n = shifted - 12582912.0f;
    float r = (x - n * 0x1.62e400p-1f) - n * 0x1.7f7d1cp-20f;
    float q = 1.9875691500e-4f;
    q = q * r + 1.3981999507e-3f;
    q = q * r + 8.3334519073e-3f;
    q = q * r + 4.1665795894e-2f;
    q = q * r + 1.6666665459e-1f;
    q = q * r + 5.0000001201e-1f;
    *p = q * (r * r) + r;
    uint32_t bits;
    float scale;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 127) << 23;
    memcpy(&scale, &bits, sizeof scale);
    return scale;
}

TY_CPU_INLINE float cell_clamp(float x, float most)
{
    float low = x > most ? most : x;
    return low < -most ? -most : low;
}

TY_CPU_INLINE float cell_logistic(float x)
{
    float p, scale = cell_exp(cell_clamp(-x, 87.0f), &p);
    return 1.0f / (1.0f + (scale + scale * p));
}

TY_CPU_INLINE float cell_tanh(float x)
{
    float p, scale = cell_exp(cell_clamp(2.0f * x, 40.0f), &p);
    float q = scale * p + (scale - 1.0f);
    return q / (q + 2.0f);
}

/* ---- where a row of a tile lies ---- */

TY_CPU_INLINE int64_t cell_wide(const ty_recurrence *r, const ty_rnn_tile *t, int64_t row, int k)
{
    return (t->row + row) * r->width + r->block[k] * r->hidden + t->unit;
}

TY_CPU_INLINE int64_t cell_thin(const ty_recurrence *r, const ty_rnn_tile *t, int64_t row)
{
    return (t->row + row) * r->hidden + t->unit;
}

TY_CPU_INLINE const float *cell_sum(const ty_rnn_tile *t, int64_t row, int k)
{
    return t->sum + k * t->sum_product + row * t->sum_row;
}

TY_CPU_INLINE const float *cell_bias(const ty_recurrence *r, const ty_rnn_tile *t, const float *bias, int k)
{
    return bias + r->block[k] * r->hidden + t->unit;
}

#define CELL_ROWS(function, tile, ...)               \
    for (int64_t row = 0; row < (tile)->rows; row++) \
        function(row, (tile)->units, __VA_ARGS__);

/* ---- vanilla ---- */

TY_CPU_INLINE void vanilla_row(int64_t row, int64_t n, const ty_recurrence *r, const ty_rnn_tile *t,
                               const ty_rnn_step *s)
{
    int64_t at = cell_thin(r, t, row);
    const float *restrict sum = cell_sum(t, row, 0), *xw = s->xw + at, *restrict bias = s->bias + t->unit;
    float *restrict h = s->h_new + at, *gate = s->gates + at;
    if (r->relu) {
#pragma omp simd
        for (int64_t u = 0; u < n; u++) {
            float x = xw[u] + bias[u] + sum[u];
            gate[u] = h[u] = x < 0.0f ? 0.0f : x;
        }
        return;
    }
#pragma omp simd
    for (int64_t u = 0; u < n; u++)
        gate[u] = h[u] = cell_tanh(xw[u] + bias[u] + sum[u]);
}

TY_CPU_CLONES void ty_rnn_cell_vanilla(const ty_recurrence *r, const ty_rnn_tile *t,
                                       const ty_rnn_step *s){CELL_ROWS(vanilla_row, t, r, t, s)}

TY_CPU_INLINE
    void vanilla_back_row(int64_t row, int64_t n, const ty_recurrence *r, const ty_rnn_tile *t, const ty_rnn_back *s)
{
    int64_t at = cell_thin(r, t, row);
    const float *restrict sum = cell_sum(t, row, 0), *restrict dy = s->dy + at, *restrict y = s->h_new + at;
    float *restrict d = s->dpre + at;
    float relu = r->relu;
#pragma omp simd
    for (int64_t u = 0; u < n; u++) {
        float step = y[u] > 0.0f ? 1.0f : 0.0f, slope = relu > 0.0f ? step : 1.0f - y[u] * y[u];
        d[u] = (dy[u] + sum[u]) * slope;
    }
}

TY_CPU_CLONES void ty_rnn_back_vanilla(const ty_recurrence *r, const ty_rnn_tile *t,
                                       const ty_rnn_back *s){CELL_ROWS(vanilla_back_row, t, r, t, s)}

/* ---- LSTM ---- */

TY_CPU_INLINE void lstm_row(int64_t row, int64_t n, const ty_recurrence *r, const ty_rnn_tile *t, const ty_rnn_step *s)
{
    const float *restrict sum[TY_RNN_LSTM], *xw[TY_RNN_LSTM], *restrict bias[TY_RNN_LSTM];
    float *gate[TY_RNN_LSTM];
    for (int k = 0; k < TY_RNN_LSTM; k++) {
        sum[k] = cell_sum(t, row, k);
        xw[k] = s->xw + cell_wide(r, t, row, k);
        bias[k] = cell_bias(r, t, s->bias, k);
        gate[k] = s->gates + cell_wide(r, t, row, k);
    }
    int64_t at = cell_thin(r, t, row);
    const float *restrict c = s->c + at;
    float *restrict c_new = s->kept + at, *restrict h_new = s->h_new + at;
#pragma omp simd
    for (int64_t u = 0; u < n; u++) {
        float i = cell_logistic(xw[TY_RNN_I][u] + bias[TY_RNN_I][u] + sum[TY_RNN_I][u]);
        float f = cell_logistic(xw[TY_RNN_F][u] + bias[TY_RNN_F][u] + sum[TY_RNN_F][u]);
        float g = cell_tanh(xw[TY_RNN_G][u] + bias[TY_RNN_G][u] + sum[TY_RNN_G][u]);
        float o = cell_logistic(xw[TY_RNN_O][u] + bias[TY_RNN_O][u] + sum[TY_RNN_O][u]);
        float cell = f * c[u] + i * g;
        gate[TY_RNN_I][u] = i;
        gate[TY_RNN_F][u] = f;
        gate[TY_RNN_G][u] = g;
        gate[TY_RNN_O][u] = o;
        c_new[u] = cell;
        h_new[u] = o * cell_tanh(cell);
    }
}

TY_CPU_CLONES void ty_rnn_cell_lstm(const ty_recurrence *r, const ty_rnn_tile *t,
                                    const ty_rnn_step *s){CELL_ROWS(lstm_row, t, r, t, s)}

TY_CPU_INLINE
    void lstm_back_row(int64_t row, int64_t n, const ty_recurrence *r, const ty_rnn_tile *t, const ty_rnn_back *s)
{
    const float *gate[TY_RNN_LSTM];
    float *d[TY_RNN_LSTM];
    for (int k = 0; k < TY_RNN_LSTM; k++) {
        gate[k] = s->gates + cell_wide(r, t, row, k);
        d[k] = s->dpre + cell_wide(r, t, row, k);
    }
    int64_t at = cell_thin(r, t, row);
    const float *restrict sum = cell_sum(t, row, 0), *restrict dy = s->dy + at;
    const float *restrict c = s->c + at, *restrict c_new = s->c_new + at;
    float *restrict carry = s->carry + at;
#pragma omp simd
    for (int64_t u = 0; u < n; u++) {
        float i = gate[TY_RNN_I][u], f = gate[TY_RNN_F][u], g = gate[TY_RNN_G][u], o = gate[TY_RNN_O][u];
        float dh = dy[u] + sum[u], squashed = cell_tanh(c_new[u]);
        float dc = carry[u] + dh * o * (1.0f - squashed * squashed);
        d[TY_RNN_I][u] = dc * g * (i * (1.0f - i));
        d[TY_RNN_F][u] = dc * c[u] * (f * (1.0f - f));
        d[TY_RNN_G][u] = dc * i * (1.0f - g * g);
        d[TY_RNN_O][u] = dh * squashed * (o * (1.0f - o));
        carry[u] = dc * f;
    }
}

TY_CPU_CLONES void ty_rnn_back_lstm(const ty_recurrence *r, const ty_rnn_tile *t,
                                    const ty_rnn_back *s){CELL_ROWS(lstm_back_row, t, r, t, s)}

/* ---- GRU, the reset gate on the product ---- */

TY_CPU_INLINE void gru_row(int64_t row, int64_t n, const ty_recurrence *r, const ty_rnn_tile *t, const ty_rnn_step *s)
{
    const float *restrict sum[TY_RNN_GRU], *xw[TY_RNN_GRU], *restrict bias[TY_RNN_GRU];
    float *gate[TY_RNN_GRU];
    for (int k = 0; k < TY_RNN_GRU; k++) {
        sum[k] = cell_sum(t, row, k);
        xw[k] = s->xw + cell_wide(r, t, row, k);
        bias[k] = cell_bias(r, t, s->bias, k);
        gate[k] = s->gates + cell_wide(r, t, row, k);
    }
    int64_t at = cell_thin(r, t, row);
    const float *restrict own = s->bias + r->width + t->unit, *restrict h = s->h + at;
    float *restrict kept = s->kept + at, *restrict h_new = s->h_new + at;
#pragma omp simd
    for (int64_t u = 0; u < n; u++) {
        float z = cell_logistic(xw[TY_RNN_Z][u] + bias[TY_RNN_Z][u] + sum[TY_RNN_Z][u]);
        float reset = cell_logistic(xw[TY_RNN_R][u] + bias[TY_RNN_R][u] + sum[TY_RNN_R][u]);
        float part = sum[TY_RNN_N][u] + own[u];
        float fresh = cell_tanh(xw[TY_RNN_N][u] + bias[TY_RNN_N][u] + reset * part);
        gate[TY_RNN_Z][u] = z;
        gate[TY_RNN_R][u] = reset;
        gate[TY_RNN_N][u] = fresh;
        kept[u] = part;
        h_new[u] = (1.0f - z) * fresh + z * h[u];
    }
}

TY_CPU_CLONES void ty_rnn_cell_gru(const ty_recurrence *r, const ty_rnn_tile *t,
                                   const ty_rnn_step *s){CELL_ROWS(gru_row, t, r, t, s)}

TY_CPU_INLINE
    void gru_back_row(int64_t row, int64_t n, const ty_recurrence *r, const ty_rnn_tile *t, const ty_rnn_back *s)
{
    const float *gate[TY_RNN_GRU];
    float *d[TY_RNN_GRU], *restrict rec[TY_RNN_GRU];
    for (int k = 0; k < TY_RNN_GRU; k++) {
        gate[k] = s->gates + cell_wide(r, t, row, k);
        d[k] = s->dpre + cell_wide(r, t, row, k);
        rec[k] = s->drec + cell_wide(r, t, row, k);
    }
    int64_t at = cell_thin(r, t, row);
    const float *restrict sum = cell_sum(t, row, 0), *restrict dy = s->dy + at;
    const float *restrict h = s->h + at, *restrict kept = s->kept + at;
    float *restrict carry = s->carry + at;
#pragma omp simd
    for (int64_t u = 0; u < n; u++) {
        float z = gate[TY_RNN_Z][u], reset = gate[TY_RNN_R][u], fresh = gate[TY_RNN_N][u];
        float dh = dy[u] + (sum[u] + carry[u]);
        float dn = dh * (1.0f - z) * (1.0f - fresh * fresh), dz = dh * (h[u] - fresh) * (z * (1.0f - z));
        float dr = dn * kept[u] * (reset * (1.0f - reset));
        d[TY_RNN_Z][u] = rec[TY_RNN_Z][u] = dz;
        d[TY_RNN_R][u] = rec[TY_RNN_R][u] = dr;
        d[TY_RNN_N][u] = dn;
        rec[TY_RNN_N][u] = dn * reset;
        carry[u] = dh * z;
    }
}

TY_CPU_CLONES void ty_rnn_back_gru(const ty_recurrence *r, const ty_rnn_tile *t,
                                   const ty_rnn_back *s){CELL_ROWS(gru_back_row, t, r, t, s)}

/* ---- GRU, the reset gate before the product ---- */

TY_CPU_INLINE void reset_row(int64_t row, int64_t n, const ty_recurrence *r, const ty_rnn_tile *t, const ty_rnn_step *s)
{
    int64_t z_at = cell_wide(r, t, row, TY_RNN_Z), r_at = cell_wide(r, t, row, TY_RNN_R), at = cell_thin(r, t, row);
    const float *restrict z_bias = cell_bias(r, t, s->bias, TY_RNN_Z), *z_x = s->xw + z_at;
    const float *restrict r_bias = cell_bias(r, t, s->bias, TY_RNN_R), *r_x = s->xw + r_at;
    const float *restrict z_sum = cell_sum(t, row, TY_RNN_Z), *restrict r_sum = cell_sum(t, row, TY_RNN_R);
    const float *restrict h = s->h + at;
    float *z = s->gates + z_at, *reset = s->gates + r_at, *restrict kept = s->kept + at;
#pragma omp simd
    for (int64_t u = 0; u < n; u++) {
        float open = cell_logistic(r_x[u] + r_bias[u] + r_sum[u]);
        z[u] = cell_logistic(z_x[u] + z_bias[u] + z_sum[u]);
        reset[u] = open;
        kept[u] = open * h[u];
    }
}

TY_CPU_CLONES void ty_rnn_cell_reset(const ty_recurrence *r, const ty_rnn_tile *t,
                                     const ty_rnn_step *s){CELL_ROWS(reset_row, t, r, t, s)}

TY_CPU_INLINE void new_row(int64_t row, int64_t n, const ty_recurrence *r, const ty_rnn_tile *t, const ty_rnn_step *s)
{
    int64_t n_at = cell_wide(r, t, row, TY_RNN_N), at = cell_thin(r, t, row);
    const float *restrict bias = cell_bias(r, t, s->bias, TY_RNN_N), *xw = s->xw + n_at;
    const float *restrict sum = cell_sum(t, row, 0), *restrict h = s->h + at;
    const float *restrict z = s->gates + cell_wide(r, t, row, TY_RNN_Z);
    float *fresh = s->gates + n_at, *restrict h_new = s->h_new + at;
#pragma omp simd
    for (int64_t u = 0; u < n; u++) {
        float x = cell_tanh(xw[u] + bias[u] + sum[u]);
        fresh[u] = x;
        h_new[u] = (1.0f - z[u]) * x + z[u] * h[u];
    }
}

TY_CPU_CLONES void ty_rnn_cell_new(const ty_recurrence *r, const ty_rnn_tile *t,
                                   const ty_rnn_step *s){CELL_ROWS(new_row, t, r, t, s)}

TY_CPU_INLINE
    void new_back_row(int64_t row, int64_t n, const ty_recurrence *r, const ty_rnn_tile *t, const ty_rnn_back *s)
{
    int64_t z_at = cell_wide(r, t, row, TY_RNN_Z), n_at = cell_wide(r, t, row, TY_RNN_N), at = cell_thin(r, t, row);
    const float *restrict z_sum = cell_sum(t, row, 0), *restrict r_sum = cell_sum(t, row, 1);
    const float *z_gate = s->gates + z_at, *n_gate = s->gates + n_at;
    const float *restrict dy = s->dy + at, *restrict h = s->h + at;
    float *dz = s->dpre + z_at, *dn = s->dpre + n_at, *restrict carry = s->carry + at;
#pragma omp simd
    for (int64_t u = 0; u < n; u++) {
        float dh = dy[u] + (z_sum[u] + r_sum[u] + carry[u]), z = z_gate[u], fresh = n_gate[u];
        dn[u] = dh * (1.0f - z) * (1.0f - fresh * fresh);
        dz[u] = dh * (h[u] - fresh) * (z * (1.0f - z));
        carry[u] = dh * z;
    }
}

TY_CPU_CLONES void ty_rnn_back_new(const ty_recurrence *r, const ty_rnn_tile *t,
                                   const ty_rnn_back *s){CELL_ROWS(new_back_row, t, r, t, s)}

TY_CPU_INLINE
    void reset_back_row(int64_t row, int64_t n, const ty_recurrence *r, const ty_rnn_tile *t, const ty_rnn_back *s)
{
    int64_t r_at = cell_wide(r, t, row, TY_RNN_R), at = cell_thin(r, t, row);
    const float *restrict sum = cell_sum(t, row, 0), *gate = s->gates + r_at, *restrict h = s->h + at;
    float *dr = s->dpre + r_at, *restrict carry = s->carry + at;
#pragma omp simd
    for (int64_t u = 0; u < n; u++) {
        float reset = gate[u];
        dr[u] = sum[u] * h[u] * (reset * (1.0f - reset));
        carry[u] += sum[u] * reset;
    }
}

TY_CPU_CLONES void ty_rnn_back_reset(const ty_recurrence *r, const ty_rnn_tile *t, const ty_rnn_back *s)
{
    CELL_ROWS(reset_back_row, t, r, t, s)
}
