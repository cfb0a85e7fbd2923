/* native_rnn.c - recurrent layers step by step: all steps in one call, float32.
 *
 * Weights of 16 bits are multiplied as pairs of bfloat16 where the machine has the instruction, else as float32; what
 * they multiply is rounded to their type, by each thread for itself.
 *
 * The recurrent weights are packed once a call (panel.h). A step is then, for each thread's share of rows and units, a
 * product with what the step before has left and the gates on its result (native_rnn_cell.c). The gates go row by row:
 * the series are long and cold, and what is read in the order of memory comes in time. All of it is one parallel
 * region. Rows of the batch know nothing of each other: threads that share the rows out never wait for one another, but
 * each reads all weights. Threads that share the units out read their own weights alone and wait for each other once a
 * step. What is quicker depends on the sizes (rnn_split). Every element is computed in one way whoever computes it, so
 * the bits do not depend on the threads.
 */
#include "compiler/target/cpu/native_rnn.h"

#include "compiler/target/cpu/native.h"
#include "compiler/target/cpu/panel.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RNN_SERIAL_FLOPS 2e6 /* all steps together: less is not worth waking threads for */
#define RNN_WAIT_COST    4e3 /* cycles that a step loses when threads wait for each other */
#define RNN_NEAR_COST    4   /* cycles for a row of a panel from the second cache, hidden behind those of its rows */
#define RNN_FAR_COST     25  /* more cycles for it where a thread's panels are larger than that cache */
#define RNN_CACHE_BYTES  (1 << 20) /* of the second cache, where the system does not say */
#define RNN_ALIGN_FLOATS 16        /* a cache line */
#define RNN_ROUND        256       /* numbers that are rounded at a time */

typedef struct rnn_call {
    ty_recurrence r;
    int64_t blocks; /* of TY_PANEL units */
    int threads;
    long cache_bytes;     /* for a thread's panels */
    bool grad, two_parts; /* two_parts: GRU with the reset before the product */
    bool pairs;           /* panels and left sides of products are pairs of bfloat16 */
    const ty_panel_kernels *panels;
} rnn_call;

/* The values of all steps; what nobody reads has room for `period` of them only. */
typedef struct rnn_series {
    float *data;
    int64_t step, period; /* period 0: all are there */
} rnn_series;

static float *series_at(const rnn_series *s, int64_t i)
{
    return s->data + (s->period ? i % s->period : i) * s->step;
}

/* One run of a call. */
typedef struct rnn_job {
    const rnn_call *call;
    const float *const *in;
    rnn_series h, gates, kept, dpre, drec;
    float *carry, *dh0;
    float *left;    /* of products, rounded: each thread's own */
    float *widened; /* weights */
    float *panel;
    float *sum;  /* of products: [gates, or at most 2 back][B][units of all blocks] */
    float *free; /* scratch that is still free */
} rnn_job;

/* A thread's share: rows by blocks of units. */
typedef struct rnn_part {
    int64_t row, rows, block, end_block;
    bool waits; /* others have other units of the same rows */
} rnn_part;

/* ---- sizes of scratch, in floats ---- */

static int64_t rnn_rounded(int64_t floats)
{
    return (floats + RNN_ALIGN_FLOATS - 1) / RNN_ALIGN_FLOATS * RNN_ALIGN_FLOATS;
}

/* Of n numbers that a product adds up. */
static int64_t rnn_depth(const rnn_call *c, int64_t n)
{
    return c->pairs ? n / 2 : n;
}

static int64_t rnn_panel_floats(const rnn_call *c)
{
    return c->blocks * rnn_depth(c, c->r.width) * TY_PANEL;
}

/* Of a thread's left sides. */
static int64_t rnn_left_floats(const rnn_call *c)
{
    return c->r.rounds ? rnn_rounded(c->r.batch * rnn_depth(c, c->grad ? c->r.width : c->r.hidden)) : 0;
}

static int64_t rnn_widened_floats(const rnn_call *c)
{
    return c->r.rounds && !c->pairs ? c->r.width * c->r.hidden : 0;
}

/* Of one product. */
static int64_t rnn_sum_floats(const rnn_call *c)
{
    return c->r.batch * c->blocks * TY_PANEL;
}

static int rnn_n_sums(const rnn_call *c)
{
    return c->two_parts ? 2 : c->grad ? 1 : c->r.gates;
}

/* Gates of a step; states of two steps for each of h and c; gradients of two steps, twice; what is carried. */
static int64_t rnn_spare_floats(const rnn_call *c)
{
    int64_t wide = rnn_rounded(c->r.batch * c->r.width), thin = rnn_rounded(c->r.batch * c->r.hidden);
    return c->grad ? 4 * wide + thin : wide + 4 * thin;
}

static float *job_take(rnn_job *j, int64_t floats)
{
    float *at = j->free;
    j->free += rnn_rounded(floats);
    return at;
}

/* The result, or scratch for `period` steps of it. */
static rnn_series job_series(rnn_job *j, void *result, int64_t width, int64_t period)
{
    rnn_series s = {result, j->call->r.batch * width, 0};
    if (!result)
        s = (rnn_series){job_take(j, period * rnn_rounded(s.step)), s.step, period};
    return s;
}

/* ---- sharing out ---- */

/* Cycles of a thread for a step where `rows` by `columns` threads share it. */
static double rnn_cost(const rnn_call *c, int rows, int columns)
{
    int64_t height = (c->r.batch + rows - 1) / rows, blocks = (c->blocks + columns - 1) / columns;
    int64_t each = height > RNN_NEAR_COST ? height : RNN_NEAR_COST, lines = blocks * rnn_depth(c, c->r.width);
    if (lines * TY_PANEL * (int64_t)sizeof(float) > c->cache_bytes)
        each += RNN_FAR_COST;
    return (double)(lines * each) + (columns > 1 ? RNN_WAIT_COST : 0);
}

/* How many of n threads share out the columns; n / that many share out the rows. */
static int rnn_split(const rnn_call *c, int n)
{
    int best = 1;
    for (int columns = 2; columns <= n && columns <= c->blocks && !c->two_parts; columns++)
        if (n % columns == 0 && rnn_cost(c, n / columns, columns) < rnn_cost(c, n / best, best))
            best = columns;
    return best;
}

static rnn_part rnn_part_of(const rnn_job *j, int thread, int n_threads)
{
    const rnn_call *c = j->call;
    int columns = rnn_split(c, n_threads), rows = n_threads / columns, row = thread / columns,
        column = thread % columns;
    int64_t height = (c->r.batch + rows - 1) / rows, blocks = (c->blocks + columns - 1) / columns;
    rnn_part p = {.row = row * height, .block = column * blocks, .waits = columns > 1};
    p.rows = p.row >= c->r.batch ? 0 : p.row + height > c->r.batch ? c->r.batch - p.row : height;
    p.end_block = p.block + blocks > c->blocks ? c->blocks : p.block + blocks;
    return p;
}

static float *rnn_sum_at(const rnn_job *j, int k, int64_t row, int64_t block)
{
    return j->sum + k * rnn_sum_floats(j->call) + (row * j->call->blocks + block) * TY_PANEL;
}

static ty_rnn_tile rnn_tile_of(const rnn_job *j, const rnn_part *p)
{
    const rnn_call *c = j->call;
    int64_t unit = p->block * TY_PANEL, end = p->end_block * TY_PANEL;
    return (ty_rnn_tile){p->row,
                         p->rows,
                         unit,
                         (end < c->r.hidden ? end : c->r.hidden) - unit,
                         rnn_sum_at(j, 0, p->row, p->block),
                         c->blocks * TY_PANEL,
                         rnn_sum_floats(c)};
}

static void rnn_wait(const rnn_part *p)
{
    if (p->waits) {
#pragma omp barrier
    }
}

/* ---- packing ---- */

/* Forward: panel [H, 32] for each block and gate: 32 rows of r, turned. Back: [G H, 32] for each block: 32 columns. */
static float *rnn_panel(const rnn_job *j, int64_t block, int64_t gate)
{
    const rnn_call *c = j->call;
    int64_t hidden = rnn_depth(c, c->r.hidden), width = rnn_depth(c, c->r.width);
    if (c->grad) /* the panel's rows of the gate */
        return j->panel + block * width * TY_PANEL + gate * hidden * c->panels->strip;
    return j->panel + (block * c->r.gates + gate) * hidden * TY_PANEL;
}

/* Panels of gate k, of n units from `unit` on. */
static void rnn_pack_gate(const rnn_job *j, float *panel, int64_t k, int64_t unit, int64_t n)
{
    const rnn_call *c = j->call;
    int64_t hidden = c->r.hidden, depth = rnn_depth(c, hidden), width = rnn_depth(c, c->r.width);
    /* back in the order of blocks: the gradient of all gates is one row */
    int64_t at = c->grad ? k * hidden * hidden + unit : (c->r.block[k] * hidden + unit) * hidden;
    const void *given = j->in[c->grad ? TY_RGRAD_WEIGHT : TY_STEPS_WEIGHT];
    const float *weight = (j->widened ? j->widened : (const float *)given) + rnn_depth(c, at);
    if (c->grad)
        c->panels->pack(panel, width, weight, hidden, depth, n);
    else
        c->panels->pack_turned(panel, depth, weight, depth, depth, n);
}

static void rnn_widen(const rnn_job *j)
{
    const ty_recurrence *r = &j->call->r;
    const void *weight = j->in[j->call->grad ? TY_RGRAD_WEIGHT : TY_STEPS_WEIGHT];
#pragma omp for schedule(static)
    for (int64_t row = 0; row < r->width; row++)
        ty_native_load_short(r->weight, (const uint16_t *)weight + row * r->hidden, j->widened + row * r->hidden,
                             (int)r->hidden);
}

static void rnn_pack(const rnn_job *j)
{
    const ty_recurrence *r = &j->call->r;
    if (j->widened)
        rnn_widen(j);
#pragma omp for collapse(2) schedule(static)
    for (int64_t block = 0; block < j->call->blocks; block++)
        for (int64_t k = 0; k < r->gates; k++) {
            int64_t unit = block * TY_PANEL, n = r->hidden - unit < TY_PANEL ? r->hidden - unit : TY_PANEL;
            rnn_pack_gate(j, rnn_panel(j, block, k), k, unit, n);
        }
}

/* ---- products ---- */

static void rnn_round(const rnn_call *c, const float *from, float *to, int64_t n)
{
    uint16_t rounded[RNN_ROUND];
    if (c->pairs)
        ty_native_store_short(c->r.weight, from, (uint16_t *)to, (int)n);
    for (int64_t at = 0; at < n && !c->pairs; at += RNN_ROUND) {
        int each = (int)(n - at < RNN_ROUND ? n - at : RNN_ROUND);
        ty_native_store_short(c->r.weight, from + at, rounded, each);
        ty_native_load_short(c->r.weight, rounded, to + at, each);
    }
}

/* n numbers of each of a share's rows, as panels multiply them. *step: from a row to the next. */
static const float *rnn_left(const rnn_job *j, const rnn_part *p, const float *a, int64_t n, int64_t *step)
{
    const rnn_call *c = j->call;
    float *to = j->left + omp_get_thread_num() * rnn_left_floats(c);
    int64_t depth = rnn_depth(c, n);
    if (!c->r.rounds)
        return a + p->row * *step;
    for (int64_t row = 0; row < p->rows; row++)
        rnn_round(c, a + (p->row + row) * *step, to + row * depth, n);
    *step = depth;
    return to;
}

/* ---- forward ---- */

/* sum[k] = rows of a times the panels of gate `gate`, for `n` gates from that one and sum 0 on. */
static void forward_products(const rnn_job *j, const rnn_part *p, const float *a, int gate, int n)
{
    int64_t step = j->call->r.hidden, depth = rnn_depth(j->call, step);
    const float *left = rnn_left(j, p, a, step, &step);
    for (int64_t block = p->block; block < p->end_block && p->rows > 0; block++)
        for (int k = 0; k < n; k++)
            j->call->panels->rows(left, step, p->rows, depth, rnn_panel(j, block, gate + k), depth,
                                  rnn_sum_at(j, k, p->row, block), j->call->blocks * TY_PANEL, false);
}

static void forward_step(const rnn_job *j, const rnn_part *p, const ty_rnn_step *s)
{
    static ty_rnn_cell_fn *const cell[] = {
        [TY_RNN_VANILLA] = ty_rnn_cell_vanilla, [TY_RNN_GRU] = ty_rnn_cell_gru, [TY_RNN_LSTM] = ty_rnn_cell_lstm};
    const rnn_call *c = j->call;
    ty_rnn_tile tile = rnn_tile_of(j, p);
    forward_products(j, p, s->h, 0, rnn_n_sums(c));
    (c->two_parts ? ty_rnn_cell_reset : cell[c->r.gates])(&c->r, &tile, s);
    if (c->two_parts) {
        forward_products(j, p, s->kept, TY_RNN_N, 1);
        ty_rnn_cell_new(&c->r, &tile, s);
    }
}

static void forward_part(const rnn_job *j, const rnn_part *p)
{
    const ty_recurrence *r = &j->call->r;
    bool lstm = r->gates == TY_RNN_LSTM;
    for (int64_t k = 0; k < r->steps; k++) {
        int64_t t = ty_recurrence_time(r, k), before = ty_recurrence_before(r, k), after = ty_recurrence_after(r, k);
        ty_rnn_step s = {.xw = j->in[TY_STEPS_XW] + t * r->batch * r->width,
                         .bias = j->in[TY_STEPS_BIAS],
                         .h = series_at(&j->h, before),
                         .c = series_at(&j->kept, before),
                         .gates = series_at(&j->gates, t),
                         .kept = series_at(&j->kept, lstm ? after : t),
                         .h_new = series_at(&j->h, after)};
        forward_step(j, p, &s);
        rnn_wait(p);
    }
}

static rnn_job job_begin(const rnn_call *c, const void *const *in, void *scratch)
{
    rnn_job j = {.call = c, .in = (const float *const *)in, .free = scratch};
    j.panel = job_take(&j, rnn_panel_floats(c));
    j.sum = job_take(&j, rnn_n_sums(c) * rnn_sum_floats(c));
    j.left = job_take(&j, c->threads * rnn_left_floats(c));
    if (rnn_widened_floats(c) > 0)
        j.widened = job_take(&j, rnn_widened_floats(c));
    return j;
}

static void forward_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const rnn_call *c = prepared;
    const ty_recurrence *r = &c->r;
    rnn_job j = job_begin(c, in, scratch);
    size_t state_bytes = sizeof(float) * (size_t)(r->batch * r->hidden);
    int64_t first = ty_recurrence_before(r, 0);
    j.h = job_series(&j, out[TY_STEPS_H], r->hidden, 2);
    j.kept = job_series(&j, out[TY_STEPS_KEPT], r->hidden, 2);
    j.gates = job_series(&j, out[TY_STEPS_GATES], r->width, 1);
    memcpy(series_at(&j.h, first), in[TY_STEPS_H0], state_bytes);
    if (r->gates == TY_RNN_LSTM)
        memcpy(series_at(&j.kept, first), in[TY_STEPS_C0], state_bytes);
    if (r->gates == TY_RNN_VANILLA && out[TY_STEPS_KEPT])
        memset(out[TY_STEPS_KEPT], 0, state_bytes * (size_t)r->steps);
#pragma omp parallel num_threads(c->threads)
    {
        rnn_part p = rnn_part_of(&j, omp_get_thread_num(), omp_get_num_threads());
        rnn_pack(&j);
        forward_part(&j, &p);
    }
}

/* ---- back ---- */

/* sum[k] = the gradients of `width` gates' units, from block `from` of the weights on, times the panels. */
static void back_product(const rnn_job *j, const rnn_part *p, const float *d, int64_t from, int64_t width, int k)
{
    const rnn_call *c = j->call;
    int64_t step = c->r.width;
    const float *left = rnn_left(j, p, d + from * c->r.hidden, width, &step);
    for (int64_t block = p->block; block < p->end_block && p->rows > 0; block++)
        c->panels->rows(left, step, p->rows, rnn_depth(c, width), rnn_panel(j, block, from), rnn_depth(c, c->r.width),
                        rnn_sum_at(j, k, p->row, block), c->blocks * TY_PANEL, false);
}

/* The gradient that reaches a share's states from the step after, whose gates' is drec; NULL: there is none. */
static void back_products(const rnn_job *j, const rnn_part *p, const float *drec)
{
    const rnn_call *c = j->call;
    const ty_recurrence *r = &c->r;
    int n = rnn_n_sums(c);
    for (int k = 0; k < n && drec; k++)
        back_product(j, p, drec, c->two_parts ? r->block[k] : 0, c->two_parts ? r->hidden : r->width, k);
    for (int64_t row = p->row; row < p->row + p->rows && !drec; row++)
        for (int k = 0; k < n; k++)
            memset(rnn_sum_at(j, k, row, p->block), 0,
                   sizeof(float) * TY_PANEL * (size_t)(p->end_block > p->block ? p->end_block - p->block : 0));
}

/* drec_next: of the step after, NULL in the last one. */
static void back_step(const rnn_job *j, const rnn_part *p, const ty_rnn_back *s, const float *drec_next)
{
    static ty_rnn_back_fn *const cell[] = {
        [TY_RNN_VANILLA] = ty_rnn_back_vanilla, [TY_RNN_GRU] = ty_rnn_back_gru, [TY_RNN_LSTM] = ty_rnn_back_lstm};
    const rnn_call *c = j->call;
    ty_rnn_tile tile = rnn_tile_of(j, p);
    back_products(j, p, drec_next);
    (c->two_parts ? ty_rnn_back_new : cell[c->r.gates])(&c->r, &tile, s);
    if (c->two_parts) {
        back_product(j, p, s->dpre, c->r.block[TY_RNN_N], c->r.hidden, 0);
        ty_rnn_back_reset(&c->r, &tile, s);
    }
}

/* What reaches the first states. */
static void back_first(const rnn_job *j, const rnn_part *p, const float *drec)
{
    const ty_recurrence *r = &j->call->r;
    ty_rnn_tile t = rnn_tile_of(j, p);
    back_products(j, p, drec);
    for (int64_t row = 0; row < t.rows; row++)
        for (int64_t u = 0; u < t.units; u++) {
            int64_t at = (t.row + row) * r->hidden + t.unit + u;
            float sum = t.sum[row * t.sum_row + u];
            if (j->call->two_parts)
                sum += t.sum[t.sum_product + row * t.sum_row + u];
            j->dh0[at] = r->gates == TY_RNN_GRU ? sum + j->carry[at] : sum;
        }
}

static void back_part(const rnn_job *j, const rnn_part *p)
{
    const ty_recurrence *r = &j->call->r;
    int64_t plane = r->batch * r->hidden;
    bool lstm = r->gates == TY_RNN_LSTM, gru = r->gates == TY_RNN_GRU;
    const float *next = NULL;
    for (int64_t k = r->steps - 1; k >= 0; k--) {
        int64_t t = ty_recurrence_time(r, k), before = ty_recurrence_before(r, k), after = ty_recurrence_after(r, k);
        ty_rnn_back s = {.dy = j->in[TY_RGRAD_DY] + t * plane,
                         .h = j->in[TY_RGRAD_H] + before * plane,
                         .h_new = j->in[TY_RGRAD_H] + after * plane,
                         .carry = j->carry,
                         .dpre = series_at(&j->dpre, t),
                         .drec = series_at(&j->drec, t)};
        if (lstm || gru)
            s.gates = j->in[TY_RGRAD_GATES] + t * r->batch * r->width;
        if (lstm) {
            s.c = j->in[TY_RGRAD_KEPT] + before * plane;
            s.c_new = j->in[TY_RGRAD_KEPT] + after * plane;
        } else if (gru)
            s.kept = j->in[TY_RGRAD_KEPT] + t * plane;
        back_step(j, p, &s, next);
        next = s.drec;
        rnn_wait(p);
    }
    if (j->dh0)
        back_first(j, p, next);
}

static void back_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const rnn_call *c = prepared;
    const ty_recurrence *r = &c->r;
    rnn_job j = job_begin(c, in, scratch);
    size_t state_bytes = sizeof(float) * (size_t)(r->batch * r->hidden);
    bool lstm = r->gates == TY_RNN_LSTM;
    bool one = !r->reset_after; /* the two gradients are the same */
    j.dpre = job_series(&j, one && !out[TY_RGRAD_DPRE] ? out[TY_RGRAD_DREC] : out[TY_RGRAD_DPRE], r->width, 2);
    j.drec = one ? j.dpre : job_series(&j, out[TY_RGRAD_DREC], r->width, 2);
    j.dh0 = out[TY_RGRAD_DH0];
    j.carry = lstm && out[TY_RGRAD_DC0] ? out[TY_RGRAD_DC0] : job_take(&j, r->batch * r->hidden);
    if (lstm)
        memcpy(j.carry, in[TY_RGRAD_DC], state_bytes);
    else
        memset(j.carry, 0, state_bytes);
#pragma omp parallel num_threads(c->threads)
    {
        rnn_part p = rnn_part_of(&j, omp_get_thread_num(), omp_get_num_threads());
        rnn_pack(&j);
        back_part(&j, &p);
    }
    if (one && out[TY_RGRAD_DREC] && out[TY_RGRAD_DPRE])
        memcpy(out[TY_RGRAD_DREC], out[TY_RGRAD_DPRE], sizeof(float) * (size_t)(r->steps * r->batch * r->width));
    if (!lstm && out[TY_RGRAD_DC0])
        memset(out[TY_RGRAD_DC0], 0, state_bytes);
}

/* ---- preparing ---- */

/* Pairs of a row are those of a sum only if a row begins with one. */
static void rnn_choose_panels(rnn_call *c, bool strict)
{
    bool even = c->r.hidden % 2 == 0, short_floats = c->r.rounds && c->r.weight == TY_BF16;
    c->pairs = even && short_floats && !strict && ty_panel_pairs();
    c->panels = c->pairs ? ty_panel_pairs() : ty_panel_best();
}

static int rnn_prepare(const ty_library_shape *shape, const ty_type *series, const ty_type *weight, bool grad,
                       ty_library_call *out, ty_error *err)
{
    if (series->dtype != TY_F32)
        return ty_error_set(err, TY_E_UNSUPPORTED, "recurrent steps: expected f32, found %s",
                            ty_dtype_text((ty_dtype)series->dtype));
    rnn_call *c = calloc(1, sizeof *c);
    if (!c)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a prepared recurrence");
    *c = (rnn_call){.r = ty_recurrence_of(shape->attr, series, weight), .grad = grad};
    c->blocks = ty_panels_of(c->r.hidden);
    c->two_parts = c->r.gates == TY_RNN_GRU && !c->r.reset_after;
    rnn_choose_panels(c, shape->strict);
    long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    c->cache_bytes = (cache > 0 ? cache : RNN_CACHE_BYTES) / 4 * 3; /* the rest is for what streams through */
    double flops = 2.0 * (double)c->r.steps * (double)c->r.batch * (double)c->r.width * (double)c->r.hidden;
    c->threads = flops < RNN_SERIAL_FLOPS ? 1 : shape->threads;
    int64_t floats = rnn_rounded(rnn_panel_floats(c)) + rnn_rounded(rnn_n_sums(c) * rnn_sum_floats(c)) +
                     c->threads * rnn_left_floats(c) + rnn_rounded(rnn_widened_floats(c)) + rnn_spare_floats(c);
    *out = (ty_library_call){.run = grad ? back_run : forward_run,
                             .release = free,
                             .prepared = c,
                             .scratch_bytes = sizeof(float) * (size_t)floats,
                             .text = "native",
                             .skips_unread = true};
    return 0;
}

int ty_native_prepare_rnn_steps(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    return rnn_prepare(shape, &shape->in[TY_STEPS_XW], &shape->in[TY_STEPS_WEIGHT], false, out, err);
}

int ty_native_prepare_rnn_grad(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    return rnn_prepare(shape, &shape->in[TY_RGRAD_DY], &shape->in[TY_RGRAD_WEIGHT], true, out, err);
}
