/* native_attend.c - attention in tiles of up to ATTEND_BLOCK queries: products of panels (panel.h), the softmax between
 * them.
 *
 * A thread works on one head and one block of queries against all keys that the block may see: scores
 * [ATTEND_BLOCK, S] stay in its cache. Keys and values are packed once for all blocks of the heads that share them. The
 * gradient goes through the blocks of a head from last to first, since the last one sees every key and can write dk and
 * dv where the others add to them. Cuts depend on shapes alone, and each product runs on one thread: bits do not depend
 * on the number of threads.
 *
 * Dropout draws the words of a block's scores, once for each direction, and puts zeros into what the softmax has made.
 *
 * A mask changes a block's scores when they are there, before the softmax. Where it is learned, a block's part in its
 * gradient is added to what all that share the number have there. They are dealt into items that share none; of few,
 * entries are dealt too, into sums of their own, which are added up in order at last.
 */
#include "compiler/ops/attend.h"
#include "compiler/target/cpu/attend_rows.h"
#include "compiler/target/cpu/clones.h"
#include "compiler/target/cpu/native.h"
#include "compiler/target/cpu/panel.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATTEND_BLOCK = 64, ATTEND_CAUSAL_BLOCK = 32 };

/* Below this a second thread costs more than it does. */
#define ATTEND_SERIAL_FLOPS 1e5

typedef enum attend_kind { ATTEND_FORWARD, ATTEND_BACK, ATTEND_LEARN } attend_kind;

/* What a thread has room for. Panels are those of panel.h. */
typedef enum attend_part {
    ATTEND_SCORES,   /* [ATTEND_BLOCK, ld] */
    ATTEND_DS,       /* the same, of their gradient, first of that of probabilities */
    ATTEND_K_TURNED, /* scale k', for scores: a panel for 32 keys */
    ATTEND_V_TURNED, /* v', for the gradient of probabilities */
    ATTEND_K,        /* k, for dq: a panel for 32 of its numbers */
    ATTEND_V,        /* v, for y */
    ATTEND_Q,        /* q of a block, for dk */
    ATTEND_DY,       /* dy of a block, for dv */
    ATTEND_LAST,     /* the columns of a last panel, of which not all are wanted */
    ATTEND_PARTS
} attend_part;

typedef struct attend_call {
    const ty_panel_kernels *kernels;
    ty_attend_sizes a;
    float scale;
    int mask_at; /* its number among the operands; -1: none */
    ty_attend_mask mask;
    int drawn_at; /* the number of a seed among the operands, which a step follows; -1: nothing is dropped */
    ty_attend_dropout dropout;
    bool learns;         /* it has a gradient */
    int64_t mask_n;      /* its numbers */
    int64_t head_mask_n; /* those of one head */
    int64_t planes;      /* items of a learned mask that share no number of it */
    int64_t splits;      /* sums that each of these has */
    int threads;
    int64_t ld;                   /* floats from one row of scores to the next */
    int64_t at[ATTEND_PARTS + 1]; /* where a thread's parts begin; at last, how many floats it has */
    char text[48];
} attend_call;

/* A thread's parts, and the head of keys that is packed there; -1: none. */
typedef struct attend_room {
    float *part[ATTEND_PARTS];
    int64_t group;
} attend_room;

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

/* Up to whole panels. */
static int64_t attend_whole(int64_t n)
{
    return ty_panels_of(n) * TY_PANEL;
}

/* ---- room ---- */

/* Rows of scores do not lie a power of two apart: their lines would fall into few sets of the first cache. */
static void attend_lay_out(attend_call *c, attend_kind kind)
{
    const ty_attend_sizes *a = &c->a;
    const int64_t d = attend_whole(a->d), e = attend_whole(a->e), s = attend_whole(a->s);
    const bool back = kind != ATTEND_FORWARD;
    c->ld = s + TY_ATTEND_LANES;
    const int64_t floats[ATTEND_PARTS] = {
        [ATTEND_SCORES] = ATTEND_BLOCK * c->ld,
        [ATTEND_DS] = back ? ATTEND_BLOCK * c->ld : 0,
        [ATTEND_K_TURNED] = a->d * s,
        [ATTEND_V_TURNED] = back ? a->e * s : 0,
        [ATTEND_K] = back ? a->s * d : 0,
        [ATTEND_V] = back ? 0 : a->s * e,
        [ATTEND_Q] = back ? ATTEND_BLOCK * d : 0,
        [ATTEND_DY] = back ? ATTEND_BLOCK * e : 0,
        [ATTEND_LAST] = (a->s > ATTEND_BLOCK ? a->s : ATTEND_BLOCK) * TY_PANEL,
    };
    for (int i = 0; i < ATTEND_PARTS; i++)
        c->at[i + 1] = c->at[i] + floats[i];
}

static attend_room attend_room_of(const attend_call *c, void *scratch)
{
    attend_room room = {.group = -1};
    for (int i = 0; i < ATTEND_PARTS; i++)
        room.part[i] = (float *)scratch + omp_get_thread_num() * c->at[ATTEND_PARTS] + c->at[i];
    return room;
}

/* ---- products ---- */

/* Panels of the columns of m [rows, n]. */
static void attend_pack(const attend_call *c, float *panels, attend_matrix m, int64_t rows, int64_t n)
{
    for (int64_t j = 0; j < n; j += TY_PANEL)
        c->kernels->pack(panels + j * rows, rows, m.at + j, m.ld, rows, n - j < TY_PANEL ? n - j : TY_PANEL);
}

/* Panels of the rows of m [rows, n], which are the columns of m'. */
static void attend_pack_turned(const attend_call *c, float *panels, attend_matrix m, int64_t rows, int64_t n)
{
    for (int64_t j = 0; j < rows; j += TY_PANEL)
        c->kernels->pack_turned(panels + j * n, n, m.at + j * m.ld, m.ld, n, rows - j < TY_PANEL ? rows - j : TY_PANEL);
}

/* What is computed of a last panel goes to the n columns that are wanted. */
static void attend_put(const float *last, int64_t rows, int64_t n, float *to, int64_t step, bool adds)
{
    for (int64_t i = 0; i < rows; i++, last += TY_PANEL, to += step)
        for (int64_t j = 0; j < n; j++)
            to[j] = adds ? to[j] + last[j] : last[j];
}

/* to [rows, n] = left [rows, k] times panels [k, n]; adds: to what is there. left is read as `by` reads it, all rows of
 * the panels belong to the sum. */
static void attend_product(ty_panel_rows_fn *by, attend_matrix left, int64_t rows, int64_t k, const float *panels,
                           int64_t depth, attend_matrix to, int64_t n, bool adds, float *last)
{
    float *at = (float *)(uintptr_t)to.at;
    for (int64_t j = 0; j < n; j += TY_PANEL, panels += depth * TY_PANEL)
        if (n - j >= TY_PANEL) {
            by(left.at, left.ld, rows, k, panels, depth, at + j, to.ld, adds);
        } else {
            by(left.at, left.ld, rows, k, panels, depth, last, TY_PANEL, false);
            attend_put(last, rows, n - j, at + j, to.ld, adds);
        }
}

/* Packs what all blocks of the heads that share head `group` of keys read. */
static void attend_pack_keys(const attend_call *c, const float *const *in, int64_t group, bool back, attend_room *room)
{
    const ty_attend_sizes *a = &c->a;
    attend_matrix k = attend_head(c, in[1], group / a->groups, a->groups, group % a->groups, a->s, a->d);
    attend_matrix v = attend_head(c, in[2], group / a->groups, a->groups, group % a->groups, a->s, a->e);
    attend_pack_turned(c, room->part[ATTEND_K_TURNED], k, a->s, a->d);
    ty_attend_scale_rows(room->part[ATTEND_K_TURNED], 0, 1, a->d * attend_whole(a->s), &c->scale);
    if (back) {
        attend_pack_turned(c, room->part[ATTEND_V_TURNED], v, a->s, a->e);
        attend_pack(c, room->part[ATTEND_K], k, a->s, a->d);
    } else {
        attend_pack(c, room->part[ATTEND_V], v, a->s, a->e);
    }
    room->group = group;
}

/* ---- blocks of queries ---- */

/* One block of one head. */
typedef struct attend_block {
    int64_t head, outer, h;
    int64_t first, rows, width; /* queries, and keys that the last of them sees */
} attend_block;

/* Keys that query t sees. */
static int64_t attend_seen(const ty_attend_sizes *a, int64_t t)
{
    return a->causal ? t + a->s - a->t + 1 : a->s;
}

/* Blocks are nearly equal. Where only a part of the keys is seen, smaller ones compute less of what is not. */
static int64_t attend_blocks(const ty_attend_sizes *a)
{
    int64_t most = a->causal ? ATTEND_CAUSAL_BLOCK : ATTEND_BLOCK;
    return (a->t + most - 1) / most;
}

static attend_block attend_block_of(const attend_call *c, int64_t head, int64_t block)
{
    const ty_attend_sizes *a = &c->a;
    int64_t blocks = attend_blocks(a);
    attend_block b = {.head = head, .outer = head / a->heads, .h = head % a->heads, .first = block * a->t / blocks};
    b.rows = (block + 1) * a->t / blocks - b.first;
    b.width = attend_seen(a, b.first + b.rows - 1);
    return b;
}

/* The block's rows of x, which has n numbers a query and head. */
static attend_matrix attend_of_block(const attend_call *c, const attend_block *b, const float *x, int64_t n)
{
    return attend_rows(attend_head(c, x, b->outer, c->a.heads, b->h, c->a.t, n), b->first);
}

/* Where the mask has its number for the block's first query and the first key. */
static int64_t attend_mask_of_block(const attend_call *c, const attend_block *b)
{
    return ty_attend_mask_at(&c->mask, b->outer, b->h, b->first);
}

/* Scores of a block, masked. */
static ty_attend_scores attend_scores(const attend_call *c, const float *const *in, const attend_block *b,
                                      const attend_room *room)
{
    const ty_attend_sizes *a = &c->a;
    const ty_attend_scores s = {room->part[ATTEND_SCORES], c->ld, b->rows, attend_seen(a, b->first), a->causal};
    attend_product(c->kernels->rows, attend_of_block(c, b, in[0], a->d), b->rows, a->d, room->part[ATTEND_K_TURNED],
                   a->d, (attend_matrix){s.x, s.step}, attend_whole(b->width), false, NULL);
    if (c->mask_at >= 0 && c->mask.chooses)
        ty_attend_choose_rows(&s, (const uint8_t *)in[c->mask_at] + attend_mask_of_block(c, b), c->mask.query_step,
                              c->mask.key_step, (float)c->mask.hidden);
    else if (c->mask_at >= 0)
        ty_attend_add_rows(&s, in[c->mask_at] + attend_mask_of_block(c, b), c->mask.query_step, c->mask.key_step);
    return s;
}

/* The words of a block's scores. */
static ty_attend_words attend_words_of(const attend_call *c, const float *const *in, const attend_block *b)
{
    const int64_t *seed = (const int64_t *)(const void *)in[c->drawn_at],
                  *step = (const int64_t *)(const void *)in[c->drawn_at + 1];
    return (ty_attend_words){.dropout = c->dropout,
                             .seed = (uint64_t)*seed,
                             .first = (uint64_t)((b->head * c->a.t + b->first) * c->a.s),
                             .step = (uint32_t)*step,
                             .row_step = c->a.s};
}

/* The softmax of a block's scores but for 1 / sum, by which y is to be multiplied, and without what is dropped. */
static void attend_forward_scores(const attend_call *c, const float *const *in, const attend_block *b,
                                  const ty_attend_scores *s, float *lse, float *inverse)
{
    ty_attend_softmax_rows(s, lse, inverse);
    if (c->drawn_at < 0)
        return;
    const ty_attend_words words = attend_words_of(c, in, b);
    ty_attend_drop_rows(s, &words);
    for (int64_t i = 0; i < b->rows; i++)
        inverse[i] *= (float)c->dropout.factor;
}

static void attend_forward_block(const attend_call *c, const float *const *in, float *const *out, int64_t head,
                                 int64_t block, attend_room *room)
{
    const ty_attend_sizes *a = &c->a;
    const attend_block b = attend_block_of(c, head, block);
    attend_matrix y = attend_of_block(c, &b, out[0], a->e);
    float inverse[ATTEND_BLOCK];
    if (room->group != head / (a->heads / a->groups))
        attend_pack_keys(c, in, head / (a->heads / a->groups), false, room);
    const ty_attend_scores s = attend_scores(c, in, &b, room);
    attend_forward_scores(c, in, &b, &s, out[1] + head * a->t + b.first, inverse);
    attend_product(c->kernels->rows, (attend_matrix){s.x, s.step}, b.rows, b.width, room->part[ATTEND_V], a->s, y, a->e,
                   false, room->part[ATTEND_LAST]);
    ty_attend_scale_rows((float *)(uintptr_t)y.at, y.ld, b.rows, a->e, inverse);
}

/* Bools have set all scores of a row, given its lse: no product has a part in them. */
static bool attend_is_blind(const attend_call *c, float lse)
{
    return c->mask_at >= 0 && c->mask.blind && lse < (float)TY_ATTEND_IS_HIDDEN;
}

/* The gradient of a block's scores; its part in dv is taken on the way, of the probabilities. */
static ty_attend_scores attend_back_scores(const attend_call *c, const float *const *in, const attend_block *b,
                                           attend_matrix dv, bool add, const attend_room *room)
{
    const ty_attend_sizes *a = &c->a;
    const ty_attend_scores p = attend_scores(c, in, b, room);
    float *dp = room->part[ATTEND_DS], scale[ATTEND_BLOCK];
    attend_matrix y = attend_of_block(c, b, in[3], a->e), dy = attend_of_block(c, b, in[5], a->e);
    const float *lse = in[4] + b->head * a->t + b->first;
    ty_attend_probs_rows(&p, lse);
    attend_product(c->kernels->rows, dy, b->rows, a->e, room->part[ATTEND_V_TURNED], a->e, (attend_matrix){dp, c->ld},
                   attend_whole(b->width), false, NULL);
    for (int64_t i = 0; i < b->rows; i++)
        scale[i] = attend_is_blind(c, lse[i]) ? 0 : c->scale;
    const ty_attend_numbers dy_rows = {dy.at, dy.ld, a->e}, y_rows = {y.at, y.ld, a->e};
    if (c->drawn_at >= 0) {
        const ty_attend_words words = attend_words_of(c, in, b);
        ty_attend_back_dropped_rows(&p, dp, &dy_rows, &y_rows, scale, &words);
    } else {
        ty_attend_back_rows(&p, dp, &dy_rows, &y_rows, scale);
    }
    attend_pack(c, room->part[ATTEND_DY], dy, b->rows, a->e);
    attend_product(c->kernels->columns, (attend_matrix){p.x, p.step}, b->width, b->rows, room->part[ATTEND_DY], b->rows,
                   dv, a->e, add, room->part[ATTEND_LAST]);
    return (ty_attend_scores){dp, p.step, p.rows, p.seen, p.more};
}

/* The part of one block in dq, dk, dv. The first block of a head of keys to come writes dk and dv, later ones add. */
static void attend_back_block(const attend_call *c, const float *const *in, float *const *out, int64_t head,
                              int64_t block, bool add, const attend_room *room)
{
    const ty_attend_sizes *a = &c->a;
    const attend_block b = attend_block_of(c, head, block);
    const int64_t g = b.h / (a->heads / a->groups);
    attend_matrix dk = attend_head(c, out[1], b.outer, a->groups, g, a->s, a->d);
    attend_matrix dv = attend_head(c, out[2], b.outer, a->groups, g, a->s, a->e);
    const ty_attend_scores s = attend_back_scores(c, in, &b, dv, add, room);
    attend_matrix ds = {s.x, s.step};
    if (c->learns)
        ty_attend_learn_rows(&s, out[TY_ATTEND_DMASK] + attend_mask_of_block(c, &b), c->mask.query_step,
                             c->mask.key_step, 1 / c->scale);
    attend_product(c->kernels->rows, ds, b.rows, b.width, room->part[ATTEND_K], a->s,
                   attend_of_block(c, &b, out[0], a->d), a->d, false, room->part[ATTEND_LAST]);
    attend_pack(c, room->part[ATTEND_Q], attend_of_block(c, &b, in[0], a->d), b.rows, a->d);
    attend_product(c->kernels->columns, ds, b.width, b.rows, room->part[ATTEND_Q], b.rows, dk, a->d, add,
                   room->part[ATTEND_LAST]);
}

/* All blocks of the heads that share head `i` of keys. */
static void attend_back_group(const attend_call *c, const float *const *in, float *const *out, int64_t i,
                              attend_room *room)
{
    int64_t blocks = attend_blocks(&c->a), shared = c->a.heads / c->a.groups;
    attend_pack_keys(c, in, i, true, room);
    for (int64_t k = 0; k < shared * blocks; k++)
        attend_back_block(c, in, out, i * shared + k / blocks, blocks - 1 - k % blocks, k > 0, room);
}

/* ---- learned masks ---- */

/* The sum that split `split` adds to: the first one is the result. */
static float *attend_learned(const attend_call *c, float *const *out, float *sums, int64_t split)
{
    return split == 0 ? out[TY_ATTEND_DMASK] : sums + (split - 1) * c->mask_n;
}

/* One item: all entries that read part `part` of the mask, or one split of these, of one head of keys or of all. */
static void attend_learn(const attend_call *c, const float *const *in, float *const *out, float *sums, int64_t item,
                         attend_room *room)
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
            attend_back_group(c, in, mine, outer * a->groups + g, room);
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

static void attend_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const attend_call *c = prepared;
    int64_t blocks = attend_blocks(&c->a), n = c->a.outer * c->a.heads * blocks;
#pragma omp parallel num_threads(c->threads)
    {
        attend_room room = attend_room_of(c, scratch);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < n; i++)
            attend_forward_block(c, (const float *const *)in, (float *const *)out, i / blocks, i % blocks, &room);
    }
}

static void attend_run_back(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const attend_call *c = prepared;
#pragma omp parallel num_threads(c->threads)
    {
        attend_room room = attend_room_of(c, scratch);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < c->a.outer * c->a.groups; i++)
            attend_back_group(c, (const float *const *)in, (float *const *)out, i, &room);
    }
}

static void attend_run_learn(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const attend_call *c = prepared;
    float *sums = (float *)scratch + c->threads * c->at[ATTEND_PARTS];
#pragma omp parallel num_threads(c->threads)
    {
        attend_room room = attend_room_of(c, scratch);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < c->planes * c->splits; i++)
            attend_learn(c, (const float *const *)in, (float *const *)out, sums, i, &room);
#pragma omp for schedule(static)
        for (int64_t at = 0; at < c->mask_n; at += ATTEND_SUM_PART)
            attend_add_sums(c, (float *const *)out, sums, at);
    }
}

static void (*const attend_runs[])(void *, const void *const *, void *const *, void *) = {
    [ATTEND_FORWARD] = attend_run, [ATTEND_BACK] = attend_run_back, [ATTEND_LEARN] = attend_run_learn};

static void attend_fill(attend_call *c, const ty_library_shape *shape, attend_kind kind)
{
    const ty_attend_sizes a = ty_attend_sizes_of(shape->attr->flags, &shape->in[0], &shape->in[1], &shape->in[2]);
    const int mask_at = kind == ATTEND_FORWARD ? TY_ATTEND_MASK_AT : TY_ATTEND_GRAD_MASK_AT;
    const double flops = 2.0 * (double)(a.outer * a.heads * a.t * a.s * (a.d + a.e));
    *c = (attend_call){.kernels = ty_panel_best(),
                       .a = a,
                       .scale = (float)shape->attr->value,
                       .mask_at = -1,
                       .drawn_at = -1,
                       .learns = kind == ATTEND_LEARN,
                       .threads = flops < ATTEND_SERIAL_FLOPS ? 1 : shape->threads};
    const int n_given = ty_attend_n_given(shape->attr, shape->n_in);
    if (shape->attr->flags & TY_ATTEND_DROPS) {
        c->drawn_at = n_given;
        c->dropout = ty_attend_dropout_of(shape->attr);
    }
    if (n_given > mask_at) {
        c->mask_at = mask_at;
        ty_attend_mask_of(shape->attr->flags, &shape->in[0], &shape->in[mask_at], &c->mask);
    }
    if (c->learns)
        attend_deal(c, &shape->in[mask_at]);
    attend_lay_out(c, kind);
    snprintf(c->text, sizeof c->text, "native in tiles, %s", c->kernels->name);
}

static int attend_prepare(const ty_library_shape *shape, attend_kind kind, ty_library_call *out, ty_error *err)
{
    if (shape->in[0].dtype != TY_F32 || shape->attr->flags & TY_ATTEND_PACKED)
        return ty_error_set(err, TY_E_UNSUPPORTED, "attention in tiles: expected f32, q, k and v apart");
    attend_call *c = calloc(1, sizeof *c);
    if (!c)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a prepared attention");
    attend_fill(c, shape, kind);
    int64_t floats = c->threads * c->at[ATTEND_PARTS] + (c->learns ? (c->splits - 1) * c->mask_n : 0);
    *out = (ty_library_call){.run = attend_runs[kind],
                             .release = free,
                             .prepared = c,
                             .scratch_bytes = (size_t)floats * sizeof(float),
                             .text = c->text};
    return 0;
}

int ty_native_prepare_attend(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    return attend_prepare(shape, ATTEND_FORWARD, out, err);
}

int ty_native_prepare_attend_grad(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    return attend_prepare(shape, ATTEND_BACK, out, err);
}

int ty_native_prepare_attend_bias_grad(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    return attend_prepare(shape, ATTEND_LEARN, out, err);
}
