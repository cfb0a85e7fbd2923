/* onednn_attend.c - attention in tiles of ATTEND_BLOCK queries: small products by oneDNN, the softmax between them
 * here.
 *
 * A thread works on one head and one block of queries against all keys that the block may see: scores
 * [ATTEND_BLOCK, S] stay in its cache. The gradient goes through the blocks of a head from last to first, since the
 * last one sees every key and can write dk and dv where the others add to them. Cuts depend on shapes alone and each
 * product runs on one thread: bits do not depend on the number of threads.
 *
 * A mask changes a block's scores when they are there, before the softmax. Where it is learned, a block's part in its
 * gradient is added to what all that share the number have there. They are dealt into items that share none; of few,
 * entries are dealt too, into sums of their own, which are added up in order at last.
 */
#include "compiler/ops/attend.h"
#include "compiler/target/cpu/clones.h"
#include "compiler/target/cpu/onednn.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { ATTEND_BLOCK = 64, ATTEND_LANES = 16 };

typedef struct attend_call {
    const ty_onednn *lib;
    ty_attend_sizes a;
    float scale;
    int mask_at; /* its number among the operands; -1: none */
    ty_attend_mask mask;
    bool learns;         /* it has a gradient */
    int64_t mask_n;      /* its numbers */
    int64_t head_mask_n; /* those of one head */
    int64_t planes;      /* items of a learned mask that share no number of it */
    int64_t splits;      /* sums that each of these has */
    int threads;
    int64_t ld; /* floats from one row of scores to the next */
} attend_call;

/* Matrices of one head; a row begins `ld` floats after the one before. */
typedef struct attend_matrix {
    const float *at;
    int64_t ld;
} attend_matrix;

/* Head `head` of `heads` of x [outer, heads, rows, n] or [outer, rows, heads, n]. */
static attend_matrix attend_head(const attend_call *c, const float *x, int64_t outer, int64_t heads, int64_t head,
                                 int64_t rows, int64_t n)
{
    if (c->a.inside)
        return (attend_matrix){x + (outer * rows * heads + head) * n, heads * n};
    return (attend_matrix){x + (outer * heads + head) * rows * n, n};
}

static attend_matrix attend_rows(attend_matrix m, int64_t first)
{
    return (attend_matrix){m.at + first * m.ld, m.ld};
}

/* c [m, n] = alpha a b + beta c */
static void attend_product(const attend_call *call, char trans_a, char trans_b, int64_t m, int64_t n, int64_t k,
                           float alpha, attend_matrix a, attend_matrix b, float beta, attend_matrix c)
{
    call->lib->sgemm(trans_a, trans_b, m, n, k, alpha, a.at, a.ld, b.at, b.ld, beta, (float *)(uintptr_t)c.at, c.ld);
}

/* ---- rows of scores ---- */

/* A float as the bits that hold it. */
typedef union attend_bits {
    uint32_t bits;
    float value;
} attend_bits;

/* exp of x <= 0, to 1e-7 of the result: the polynomial of generated kernels (prelude.c). Below e^-87 it is 0. Without a
 * comparison of floats, which would keep the loops around it from being vectorised: the larger negative float has the
 * larger bits, up to those of -inf, and adding and taking away 1.5 x 2^23 rounds to an integer. */
TY_CPU_INLINE float attend_exp(float x)
{
    attend_bits d = {.value = x}, power;
    const uint32_t low = d.bits - 0xC2AE0001u < 0xFF800000u - 0xC2AE0000u; /* below -87; a NaN stays */
    d.bits = low ? 0xC2AE0000u : d.bits;
    float n = d.value * 0x1.715476p+0f + 0x1.8p23f - 0x1.8p23f;
    float r = d.value - n * 0x1.62e400p-1f - n * 0x1.7f7d1cp-20f, p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    power.bits = low ? 0 : (uint32_t)((int32_t)n + 127) << 23;
    return p * power.value;
}

TY_CPU_INLINE float attend_max(const float *x, int64_t n)
{
    float most = -INFINITY;
#pragma omp simd reduction(max : most)
    for (int64_t i = 0; i < n; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

TY_CPU_INLINE float attend_sum(const float *x, int64_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

/* x <- exp(x - most) */
TY_CPU_INLINE void attend_exps(float *x, int64_t n, float most)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        x[i] = attend_exp(x[i] - most);
}

/* A row of a mask at a row of scores. Where there is one number for all keys, step is 0. */
TY_CPU_CLONES static void attend_add_row(float *x, const float *mask, int64_t step, int64_t n)
{
    if (step == 0)
        for (int64_t i = 0; i < n; i++)
            x[i] += mask[0];
    else
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            x[i] += mask[i];
}

TY_CPU_CLONES static void attend_choose_row(float *x, const uint8_t *mask, int64_t step, int64_t n, float hidden)
{
    if (step == 0)
        for (int64_t i = 0; i < n; i++)
            x[i] = mask[0] ? x[i] : hidden;
    else
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            x[i] = mask[i] ? x[i] : hidden;
}

/* The scores of the queries from `first` on, of a head. */
static void attend_mask_rows(const attend_call *c, const float *const *in, int64_t head, int64_t first, int64_t rows,
                             float *x)
{
    const ty_attend_mask *m = &c->mask;
    if (c->mask_at < 0)
        return;
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = ty_attend_mask_at(m, head / c->a.heads, head % c->a.heads, first + i);
        if (m->chooses)
            attend_choose_row(x + i * c->ld, (const uint8_t *)in[c->mask_at] + at, m->key_step, c->a.s,
                              (float)m->hidden);
        else
            attend_add_row(x + i * c->ld, in[c->mask_at] + at, m->key_step, c->a.s);
    }
}

/* A row of scores becomes exp(score - maximum), zero behind the n keys that it sees; returns 1 / sum. */
TY_CPU_CLONES static float attend_forward_row(float *x, int64_t n, int64_t width, float *lse)
{
    float most = attend_max(x, n);
    attend_exps(x, n, most);
    float sum = attend_sum(x, n);
    memset(x + n, 0, (size_t)(width - n) * sizeof *x);
    *lse = most + logf(sum);
    if (most < (float)TY_ATTEND_IS_HIDDEN)
        *lse = most < (float)TY_ATTEND_IS_UNSEEN ? NAN : (float)TY_ATTEND_HIDDEN * sum;
    return 1 / sum + (*lse - *lse); /* NaN where that is */
}

TY_CPU_CLONES static void attend_scale_row(float *x, int64_t n, float by)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        x[i] *= by;
}

/* A row of scores becomes probabilities: of one in which all is hidden, the same for all that is not unseen. */
TY_CPU_CLONES static void attend_probs_row(float *x, int64_t n, int64_t width, float lse)
{
    if (lse < (float)TY_ATTEND_IS_HIDDEN)
        for (int64_t i = 0; i < n; i++)
            x[i] = x[i] < (float)TY_ATTEND_IS_UNSEEN ? 0 : (float)TY_ATTEND_HIDDEN / lse;
    else
        attend_exps(x, n, lse);
    memset(x + n, 0, (size_t)(width - n) * sizeof *x);
}

/* Bools have set all scores of a row, given its lse: no product has a part in them. */
static bool attend_is_blind(const attend_call *c, float lse)
{
    return c->mask_at >= 0 && c->mask.blind && lse < (float)TY_ATTEND_IS_HIDDEN;
}

/* p <- scale p (dp - dy y'): the gradient of the products q k'. */
TY_CPU_CLONES static void attend_back_row(float *p, const float *dp, int64_t n, const float *dy, const float *y,
                                          int64_t e, float scale)
{
    float delta = 0;
#pragma omp simd reduction(+ : delta)
    for (int64_t i = 0; i < e; i++)
        delta += dy[i] * y[i];
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        p[i] = scale * p[i] * (dp[i] - delta);
}

/* dmask += by ds, where ds is the gradient of the products. */
TY_CPU_CLONES static void attend_learn_row(float *dmask, const float *ds, int64_t step, int64_t n, float by)
{
    if (step == 0)
        dmask[0] += by * attend_sum(ds, n);
    else
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            dmask[i] += by * ds[i];
}

static void attend_learn_rows(const attend_call *c, float *dmask, int64_t head, int64_t first, int64_t rows,
                              const float *ds)
{
    for (int64_t i = 0; i < rows; i++)
        attend_learn_row(dmask + ty_attend_mask_at(&c->mask, head / c->a.heads, head % c->a.heads, first + i),
                         ds + i * c->ld, c->mask.key_step, c->a.s, 1 / c->scale);
}

/* ---- blocks of queries ---- */

/* Keys that query t sees. */
static int64_t attend_seen(const ty_attend_sizes *a, int64_t t)
{
    return a->causal ? t + a->s - a->t + 1 : a->s;
}

static int64_t attend_blocks(const ty_attend_sizes *a)
{
    return (a->t + ATTEND_BLOCK - 1) / ATTEND_BLOCK;
}

static int64_t attend_block_rows(const ty_attend_sizes *a, int64_t first)
{
    return a->t - first < ATTEND_BLOCK ? a->t - first : ATTEND_BLOCK;
}

static void attend_forward_block(const attend_call *c, const float *const *in, float *const *out, int64_t head,
                                 int64_t block, float *scores)
{
    const ty_attend_sizes *a = &c->a;
    int64_t outer = head / a->heads, h = head % a->heads, g = h / (a->heads / a->groups);
    int64_t first = block * ATTEND_BLOCK, rows = attend_block_rows(a, first), width = attend_seen(a, first + rows - 1);
    attend_matrix q = attend_rows(attend_head(c, in[0], outer, a->heads, h, a->t, a->d), first);
    attend_matrix k = attend_head(c, in[1], outer, a->groups, g, a->s, a->d);
    attend_matrix v = attend_head(c, in[2], outer, a->groups, g, a->s, a->e);
    attend_matrix y = attend_rows(attend_head(c, out[0], outer, a->heads, h, a->t, a->e), first);
    attend_matrix s = {scores, c->ld};
    float inverse[ATTEND_BLOCK];
    attend_product(c, 'N', 'T', rows, width, a->d, c->scale, q, k, 0, s);
    attend_mask_rows(c, in, head, first, rows, scores);
    for (int64_t i = 0; i < rows; i++)
        inverse[i] =
            attend_forward_row(scores + i * c->ld, attend_seen(a, first + i), width, &out[1][head * a->t + first + i]);
    attend_product(c, 'N', 'N', rows, a->e, width, 1, s, v, 0, y);
    for (int64_t i = 0; i < rows; i++)
        attend_scale_row((float *)(uintptr_t)attend_rows(y, i).at, a->e, inverse[i]);
}

/* The part of one block in dq, dk, dv. The first block of a head of keys to come writes dk and dv, later ones add. */
static void attend_back_block(const attend_call *c, const float *const *in, float *const *out, int64_t head,
                              int64_t block, bool add, float *p)
{
    const ty_attend_sizes *a = &c->a;
    int64_t outer = head / a->heads, h = head % a->heads, g = h / (a->heads / a->groups);
    int64_t first = block * ATTEND_BLOCK, rows = attend_block_rows(a, first), width = attend_seen(a, first + rows - 1);
    attend_matrix q = attend_rows(attend_head(c, in[0], outer, a->heads, h, a->t, a->d), first);
    attend_matrix dq = attend_rows(attend_head(c, out[0], outer, a->heads, h, a->t, a->d), first);
    attend_matrix y = attend_rows(attend_head(c, in[3], outer, a->heads, h, a->t, a->e), first);
    attend_matrix dy = attend_rows(attend_head(c, in[5], outer, a->heads, h, a->t, a->e), first);
    attend_matrix k = attend_head(c, in[1], outer, a->groups, g, a->s, a->d);
    attend_matrix v = attend_head(c, in[2], outer, a->groups, g, a->s, a->e);
    attend_matrix dk = attend_head(c, out[1], outer, a->groups, g, a->s, a->d);
    attend_matrix dv = attend_head(c, out[2], outer, a->groups, g, a->s, a->e);
    attend_matrix s = {p, c->ld}, ds = {p + ATTEND_BLOCK * c->ld, c->ld};
    float beta = add ? 1 : 0;
    attend_product(c, 'N', 'T', rows, width, a->d, c->scale, q, k, 0, s);
    attend_mask_rows(c, in, head, first, rows, p);
    for (int64_t i = 0; i < rows; i++)
        attend_probs_row(p + i * c->ld, attend_seen(a, first + i), width, in[4][head * a->t + first + i]);
    attend_product(c, 'T', 'N', width, a->e, rows, 1, s, dy, beta, dv);
    attend_product(c, 'N', 'T', rows, width, a->e, 1, dy, v, 0, ds);
    for (int64_t i = 0; i < rows; i++)
        attend_back_row(p + i * c->ld, ds.at + i * c->ld, width, attend_rows(dy, i).at, attend_rows(y, i).at, a->e,
                        attend_is_blind(c, in[4][head * a->t + first + i]) ? 0 : c->scale);
    if (c->learns)
        attend_learn_rows(c, out[TY_ATTEND_DMASK], head, first, rows, p);
    attend_product(c, 'N', 'N', rows, a->d, width, 1, s, k, 0, dq);
    attend_product(c, 'T', 'N', width, a->d, rows, 1, s, q, beta, dk);
}

/* All blocks of the heads that share head `i` of keys. */
static void attend_back_group(const attend_call *c, const float *const *in, float *const *out, int64_t i, float *p)
{
    int64_t blocks = attend_blocks(&c->a), shared = c->a.heads / c->a.groups;
    for (int64_t k = 0; k < shared * blocks; k++)
        attend_back_block(c, in, out, i * shared + k / blocks, blocks - 1 - k % blocks, k > 0, p);
}

/* ---- learned masks ---- */

/* The sum that split `split` adds to: the first one is the result. */
static float *attend_learned(const attend_call *c, float *const *out, float *sums, int64_t split)
{
    return split == 0 ? out[TY_ATTEND_DMASK] : sums + (split - 1) * c->mask_n;
}

/* One item: all entries that read part `part` of the mask, or one split of these, of one head of keys or of all. */
static void attend_learn(const attend_call *c, const float *const *in, float *const *out, float *sums, int64_t item,
                         float *p)
{
    const ty_attend_sizes *a = &c->a;
    const ty_attend_mask *m = &c->mask;
    int64_t split = item % c->splits, plane = item / c->splits, own = m->head_step ? a->groups : 1;
    int64_t part = plane / own, first = m->head_step ? plane % own : 0, last = m->head_step ? first + 1 : a->groups;
    int64_t shared = a->heads / a->groups, entries = a->outer / m->mod;
    float *mine[] = {out[0], out[1], out[2], attend_learned(c, out, sums, split)};
    for (int64_t h = first * shared; h < last * shared; h++)
        memset(mine[TY_ATTEND_DMASK] + ty_attend_mask_at(m, part * m->div, h, 0), 0,
               sizeof(float) * (size_t)c->head_mask_n);
    for (int64_t n = entries * split / c->splits; n < entries * (split + 1) / c->splits; n++)
        for (int64_t g = first; g < last; g++) {
            int64_t outer = (n / m->div * m->mod + part) * m->div + n % m->div;
            attend_back_group(c, in, mine, outer * a->groups + g, p);
        }
}

enum { ATTEND_SUM_PART = 4096 };

TY_CPU_CLONES static void attend_add_sum(float *to, const float *from, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

static void attend_add_sums(const attend_call *c, float *const *out, float *sums, int64_t first)
{
    int64_t n = c->mask_n - first < ATTEND_SUM_PART ? c->mask_n - first : ATTEND_SUM_PART;
    for (int64_t split = 1; split < c->splits; split++)
        attend_add_sum(out[TY_ATTEND_DMASK] + first, attend_learned(c, out, sums, split) + first, n);
}

/* Items that keep many threads busy; more than that would be more sums to add. */
enum { ATTEND_ITEMS = 32 };

static void attend_deal(attend_call *c, const ty_type *mask)
{
    int64_t entries = c->a.outer / c->mask.mod;
    c->mask_n = ty_type_elems(mask);
    c->head_mask_n = mask->dim[mask->rank - 2] * mask->dim[mask->rank - 1];
    c->planes = c->mask.mod * (c->mask.head_step ? c->a.groups : 1);
    c->splits = (ATTEND_ITEMS + c->planes - 1) / c->planes;
    c->splits = c->splits < entries ? c->splits : entries;
}

/* ---- calls ---- */

/* Products inside run on the thread that calls them, also where only one thread runs. */
static void attend_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const attend_call *c = prepared;
    int64_t blocks = attend_blocks(&c->a), n = c->a.outer * c->a.heads * blocks;
    int before = ty_onednn_use_threads(1);
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < n; i++)
        attend_forward_block(c, (const float *const *)in, (float *const *)out, i / blocks, i % blocks,
                             (float *)scratch + omp_get_thread_num() * ATTEND_BLOCK * c->ld);
    ty_onednn_use_threads(before);
}

static void attend_run_back(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const attend_call *c = prepared;
    int before = ty_onednn_use_threads(1);
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < c->a.outer * c->a.groups; i++)
        attend_back_group(c, (const float *const *)in, (float *const *)out, i,
                          (float *)scratch + omp_get_thread_num() * 2 * ATTEND_BLOCK * c->ld);
    ty_onednn_use_threads(before);
}

static void attend_run_learn(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const attend_call *c = prepared;
    float *sums = (float *)scratch + c->threads * 2 * ATTEND_BLOCK * c->ld;
    int before = ty_onednn_use_threads(1);
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < c->planes * c->splits; i++)
        attend_learn(c, (const float *const *)in, (float *const *)out, sums, i,
                     (float *)scratch + omp_get_thread_num() * 2 * ATTEND_BLOCK * c->ld);
    if (c->splits > 1)
#pragma omp parallel for num_threads(c->threads) schedule(static)
        for (int64_t at = 0; at < c->mask_n; at += ATTEND_SUM_PART)
            attend_add_sums(c, (float *const *)out, sums, at);
    ty_onednn_use_threads(before);
}

typedef enum attend_kind { ATTEND_FORWARD, ATTEND_BACK, ATTEND_LEARN } attend_kind;

static void (*const attend_runs[])(void *, const void *const *, void *const *, void *) = {
    [ATTEND_FORWARD] = attend_run, [ATTEND_BACK] = attend_run_back, [ATTEND_LEARN] = attend_run_learn};

/* Scores, or probabilities and their gradient, of each thread; behind them the sums of a learned mask. */
static size_t attend_scratch(const attend_call *c, attend_kind kind)
{
    int64_t rows = (kind == ATTEND_FORWARD ? 1 : 2) * c->threads * ATTEND_BLOCK;
    return (size_t)(rows * c->ld + (c->learns ? (c->splits - 1) * c->mask_n : 0)) * sizeof(float);
}

static int attend_prepare(const ty_library_shape *shape, attend_kind kind, ty_library_call *out, ty_error *err)
{
    const ty_onednn *lib;
    if (shape->in[0].dtype != TY_F32)
        return ty_error_set(err, TY_E_UNSUPPORTED, "attention in tiles: expected f32");
    if (ty_onednn_get(&lib, err) < 0)
        return -1;
    attend_call *c = calloc(1, sizeof *c);
    if (!c)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a prepared attention");
    ty_attend_sizes a = ty_attend_sizes_of(shape->attr->flags, &shape->in[0], &shape->in[1], &shape->in[2]);
    int mask_at = kind == ATTEND_FORWARD ? TY_ATTEND_MASK_AT : TY_ATTEND_GRAD_MASK_AT;
    *c = (attend_call){
        .lib = lib, .a = a, .scale = (float)shape->attr->value, .mask_at = -1, .learns = kind == ATTEND_LEARN};
    if (shape->n_in > mask_at) {
        c->mask_at = mask_at;
        ty_attend_mask_of(shape->attr->flags, &shape->in[0], &shape->in[mask_at], &c->mask);
    }
    if (c->learns)
        attend_deal(c, &shape->in[mask_at]);
    c->ld = (a.s + ATTEND_LANES - 1) / ATTEND_LANES * ATTEND_LANES;
    c->threads = ty_onednn_threads(shape, 2.0 * (double)(a.outer * a.heads * a.t * a.s * (a.d + a.e)));
    *out = (ty_library_call){.run = attend_runs[kind],
                             .release = free,
                             .prepared = c,
                             .scratch_bytes = attend_scratch(c, kind),
                             .text = "onednn sgemm in tiles"};
    return 0;
}

int ty_onednn_prepare_attend(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    return attend_prepare(shape, ATTEND_FORWARD, out, err);
}

int ty_onednn_prepare_attend_grad(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    return attend_prepare(shape, ATTEND_BACK, out, err);
}

int ty_onednn_prepare_attend_bias_grad(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    return attend_prepare(shape, ATTEND_LEARN, out, err);
}
