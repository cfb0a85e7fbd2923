/* bucket.c - weights are updated as soon as their gradients are there.
 *
 * All gradients of a group lie in one flat concatenation, and the update of the group is arithmetic on whole arenas,
 * one element of gradient, weight and moments at a time. Done so, all gradients must be in memory at once: as much as
 * the weights. But what is done element by element can be done piece by piece. The concatenation is cut at the borders
 * of tensors into buckets; each is updated, written over its stretch of the arenas (order.c), and its gradients' memory
 * is free again while backward goes on.
 *
 * With several replicas a part is a sum over them that is still on its way when its operand is there. On a slow
 * network most of them are until backward is over, and an update that waits for one would keep backward waiting: so
 * updates come after the last sum has begun, bucket by bucket, each while the next ones travel; on a CPU even in the
 * next step, in front of what needs the weights. Their memory is not free before. Small groups are cut likewise: not
 * memory is saved there but time.
 *
 * Not where an element of the update depends on all gradients, as with clipping by the global norm or a loss scale:
 * then there is nothing to gain. The norm that is only reported becomes sums of BUCKET_ROW squares, whose sum is taken
 * at the end; all buckets of whole rows share one kernel, for every number of rows.
 */
#include "compiler/ir/build.h"
#include "compiler/ir/clone.h"
#include "compiler/ops/op.h"
#include "compiler/passes/passes.h"

#include <stdlib.h>

#define BUCKET_MIN_GROUP ((int64_t)2 << 20)   /* elements: smaller groups stay whole */
#define BUCKET_MIN       ((int64_t)512 << 10) /* elements of a bucket, */
#define BUCKET_MIN_GPU   ((int64_t)4 << 20)   /* likewise on a GPU: 80 MB to move, next to which a launch is short, */
#define BUCKET_SHARED    ((int64_t)16 << 10)  /* likewise with several replicas, */
#define BUCKET_MOST      64                   /* or this share of the group if that is more */
#define BUCKET_ROW       256
#define BUCKET_TAKEN     16 /* results of a group: new weights, moments, averages, a norm */

/* What a node is to the gradients. */
typedef enum bucket_part {
    BUCKET_OUTSIDE, /* nothing */
    BUCKET_FLAT,    /* computed from them element by element */
    BUCKET_BEHIND   /* depends on all of them */
} bucket_part;

/* A flat node that is assigned or summed, and what came of it in the buckets so far. */
typedef struct bucket_taken {
    uint32_t node;
    bool assigned, summed;
    ty_val *piece; /* one a bucket */
    ty_val *sum;   /* of rows: one or two a bucket */
    int n_sums;
} bucket_taken;

/* The gradients of a group, and what their buckets have become so far. */
typedef struct bucket_group {
    uint32_t concat;
    bool whole; /* something needs them all at once */
    int n_buckets;
    int *part;       /* n_buckets + 1: number of a bucket's first part */
    int64_t *at;     /* likewise: its first element */
    uint32_t *ready; /* node after which all its parts are there */
    bucket_taken taken[BUCKET_TAKEN];
    int n_taken;
} bucket_group;

typedef struct bucketing {
    ty_clone c;
    bool gpu;
    ty_arena arena;
    bucket_group *group;
    int n_groups;
    uint8_t *part; /* bucket_part by node */
    int *of;       /* by node: its group, if FLAT */
    ty_val *piece; /* by node: its value in the bucket at hand */
    uint32_t *stamp, now;
} bucketing;

/* ---- which gradients ---- */

static int64_t bucket_elems(const ty_graph *g, uint32_t node)
{
    return ty_type_elems(ty_graph_type(g, ty_val_make(node, 0)));
}

/* The node after which v is there but for its shape and type: flattening is asked for when all gradients are known. */
static uint32_t bucket_made_by(const ty_graph *g, ty_val v)
{
    while (ty_graph_op(g, ty_val_node(v)) == TY_OP_RESHAPE || ty_graph_op(g, ty_val_node(v)) == TY_OP_CAST)
        v = ty_graph_in(g, ty_val_node(v), 0);
    return ty_val_node(v);
}

/* Is the first part a sum over replicas? Then all are. */
static bool bucket_is_shared(const ty_graph *g, uint32_t concat)
{
    return ty_graph_op(g, bucket_made_by(g, ty_graph_in(g, concat, 0))) == TY_OP_ALL_REDUCE;
}

static bool bucket_is_concat(const bucketing *b, uint32_t id)
{
    const ty_graph *g = b->c.from;
    if (ty_graph_op(g, id) != TY_OP_CONCAT || ty_graph_type(g, ty_val_make(id, 0))->rank != 1 ||
        ty_graph_node(g, id)->n_in < 2)
        return false;
    return bucket_elems(g, id) >= (bucket_is_shared(g, id) ? 2 * BUCKET_SHARED
                                   : b->gpu                ? 2 * BUCKET_MIN_GPU
                                                           : BUCKET_MIN_GROUP);
}

/* Can one stretch of v be computed from the same stretch of states and from scalars? */
static bool bucket_can_cut(const bucketing *b, ty_val v)
{
    const ty_graph *g = b->c.from;
    uint32_t id = ty_val_node(v);
    if (b->part[id] == BUCKET_BEHIND)
        return false;
    switch (ty_graph_op(g, id)) {
    case TY_OP_STATE:
        return true;
    case TY_OP_BROADCAST:
        return bucket_elems(g, ty_val_node(ty_graph_in(g, id, 0))) == 1;
    default:
        break;
    }
    bool can = ty_op_row_of(ty_graph_op(g, id))->class_ == TY_CLASS_ELEMENTWISE;
    for (uint32_t i = 0; i < ty_graph_node(g, id)->n_in && can && b->part[id] != BUCKET_FLAT; i++)
        can = bucket_can_cut(b, ty_graph_in(g, id, (int)i));
    return can;
}

static void bucket_take(bucketing *b, int group, uint32_t id, bool summed)
{
    bucket_group *t = &b->group[group];
    int i = 0;
    while (i < t->n_taken && t->taken[i].node != id)
        i++;
    if (i == BUCKET_TAKEN) {
        t->whole = true;
        return;
    }
    t->n_taken += i == t->n_taken;
    t->taken[i].node = id;
    *(summed ? &t->taken[i].summed : &t->taken[i].assigned) = true;
}

/* An elementwise node that reads gradients: one of them too, if all else it reads can be cut likewise. */
static void bucket_elementwise(bucketing *b, uint32_t id, int group)
{
    const ty_graph *g = b->c.from;
    bool ok = bucket_elems(g, id) == bucket_elems(g, b->group[group].concat);
    b->part[id] = BUCKET_FLAT;
    b->of[id] = group;
    for (uint32_t i = 0; i < ty_graph_node(g, id)->n_in; i++) {
        uint32_t in = ty_val_node(ty_graph_in(g, id, (int)i));
        ok &= b->part[in] == BUCKET_FLAT ? b->of[in] == group : bucket_can_cut(b, ty_val_make(in, 0));
    }
    b->group[group].whole |= !ok;
}

static void bucket_use(bucketing *b, uint32_t id, uint32_t in)
{
    const ty_graph *g = b->c.from;
    ty_op op = ty_graph_op(g, id);
    int group = b->of[in];
    b->part[id] = BUCKET_BEHIND;
    if (op == TY_OP_ASSIGN && in == b->group[group].concat)
        b->group[group].whole = true; /* made of pieces already: shard.h */
    else if (op == TY_OP_ASSIGN || (op == TY_OP_REDUCE && ty_graph_attr(g, id)->mode == TY_SUM))
        bucket_take(b, group, in, op == TY_OP_REDUCE);
    else if (ty_op_row_of(op)->class_ == TY_CLASS_ELEMENTWISE)
        bucket_elementwise(b, id, group);
    else
        b->group[group].whole = true;
}

/* The groups, and for every node what it is to them. */
static void bucket_find(bucketing *b, const uint8_t *live)
{
    const ty_graph *g = b->c.from;
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++) {
        int flat = -1;
        for (uint32_t i = 0; live[id] && i < ty_graph_node(g, id)->n_in; i++) {
            ty_val in = ty_graph_in(g, id, (int)i);
            if (in == TY_NONE)
                continue;
            if (b->part[ty_val_node(in)] == BUCKET_FLAT)
                flat = (int)i;
            else if (b->part[ty_val_node(in)] == BUCKET_BEHIND)
                b->part[id] = BUCKET_BEHIND;
        }
        if (flat >= 0)
            bucket_use(b, id, ty_val_node(ty_graph_in(g, id, flat)));
        else if (live[id] && bucket_is_concat(b, id)) {
            b->part[id] = BUCKET_FLAT;
            b->of[id] = b->n_groups;
            b->group[b->n_groups++].concat = id;
        }
    }
    for (int i = 0; i < ty_graph_n_outputs(g); i++) {
        uint32_t id = ty_val_node(ty_graph_output(g, i)->val);
        if (b->part[id] == BUCKET_FLAT)
            b->group[b->of[id]].whole = true;
    }
}

/* Borders at the ends of tensors. */
static void bucket_cut(bucketing *b, bucket_group *t)
{
    const ty_graph *g = b->c.from;
    int n_in = (int)ty_graph_node(g, t->concat)->n_in;
    int64_t total = bucket_elems(g, t->concat), at = 0;
    int64_t least = bucket_is_shared(g, t->concat) ? BUCKET_SHARED : b->gpu ? BUCKET_MIN_GPU : BUCKET_MIN;
    least = total / BUCKET_MOST > least ? total / BUCKET_MOST : least;
    t->part = TY_NEW_ARRAY(&b->arena, int, n_in + 1);
    t->at = TY_NEW_ARRAY(&b->arena, int64_t, n_in + 1);
    t->ready = TY_NEW_ARRAY(&b->arena, uint32_t, n_in + 1);
    for (int i = 0; i < n_in; i++) {
        ty_val part = ty_graph_in(g, t->concat, i);
        uint32_t *ready = &t->ready[t->n_buckets], made = bucket_made_by(g, part);
        *ready = made > *ready ? made : *ready;
        at += ty_type_elems(ty_graph_type(g, part));
        if (at - t->at[t->n_buckets] < least && i + 1 < n_in)
            continue;
        t->n_buckets++;
        t->part[t->n_buckets] = i + 1;
        t->at[t->n_buckets] = at;
    }
    for (int k = t->n_buckets - 2; k >= 0 && ty_graph_op(g, t->ready[k]) == TY_OP_ALL_REDUCE; k--)
        t->ready[k] = t->ready[k + 1] > t->ready[k] ? t->ready[k + 1] : t->ready[k];
    t->whole |= t->n_buckets < 2 || t->n_taken == 0;
    for (int r = 0; r < t->n_taken; r++) {
        t->taken[r].piece = TY_NEW_ARRAY(&b->arena, ty_val, t->n_buckets);
        t->taken[r].sum = TY_NEW_ARRAY(&b->arena, ty_val, 2 * t->n_buckets);
    }
}

/* ---- one bucket ---- */

/* What no gradient has a part in, in the new graph; carried over now if it has not come up yet. */
static ty_val bucket_outside(bucketing *b, ty_val v)
{
    if (b->c.map[v] == TY_NONE) {
        const ty_node *n = ty_graph_node(b->c.from, ty_val_node(v));
        for (uint32_t i = 0; i < n->n_in; i++)
            if (ty_graph_in(b->c.from, ty_val_node(v), (int)i) != TY_NONE)
                bucket_outside(b, ty_graph_in(b->c.from, ty_val_node(v), (int)i));
        ty_clone_node(&b->c, ty_val_node(v));
    }
    return b->c.map[v];
}

static ty_val bucket_of_gradients(bucketing *b, const bucket_group *t, int k)
{
    int n = t->part[k + 1] - t->part[k];
    ty_val *part = TY_NEW_ARRAY(&b->arena, ty_val, n);
    for (int i = 0; i < n; i++)
        part[i] = bucket_outside(b, ty_graph_in(b->c.from, t->concat, t->part[k] + i));
    return n == 1 ? part[0] : ty_b_concat(b->c.to, part, n, 0);
}

/* The stretch of v that belongs to bucket k. */
static ty_val bucket_piece(bucketing *b, const bucket_group *t, int k, ty_val v)
{
    const ty_graph *g = b->c.from;
    uint32_t id = ty_val_node(v);
    int64_t n = t->at[k + 1] - t->at[k];
    ty_val in[4], piece;
    if (b->stamp[id] == b->now)
        return b->piece[id];
    ty_op op = ty_graph_op(g, id);
    if (op != TY_OP_STATE && op != TY_OP_BROADCAST && id != t->concat)
        for (uint32_t i = 0; i < ty_graph_node(g, id)->n_in; i++)
            in[i] = bucket_piece(b, t, k, ty_graph_in(g, id, (int)i));
    ty_graph_origin(b->c.to, ty_graph_origin_of(g, id));
    if (id == t->concat)
        piece = bucket_of_gradients(b, t, k);
    else if (op == TY_OP_STATE)
        piece = ty_b_slice_axis(b->c.to, bucket_outside(b, v), 0, t->at[k], t->at[k + 1]);
    else if (op == TY_OP_BROADCAST)
        piece = ty_b_broadcast(b->c.to, bucket_outside(b, ty_graph_in(g, id, 0)), 1, &n);
    else
        piece = ty_graph_emit(b->c.to, op, ty_graph_attr(g, id), in, (int)ty_graph_node(g, id)->n_in);
    b->stamp[id] = b->now;
    return b->piece[id] = piece;
}

/* Sums of rows, and of what is left. */
static void bucket_sum_rows(ty_graph *g, bucket_taken *taken, ty_val piece)
{
    int64_t elems = ty_b_dim(g, piece, 0), shape[2] = {elems / BUCKET_ROW, BUCKET_ROW};
    int64_t whole = shape[0] * BUCKET_ROW, one = 1;
    ty_val rows = ty_b_reshape(g, ty_b_slice_axis(g, piece, 0, 0, whole), 2, shape);
    taken->sum[taken->n_sums++] = ty_b_sum(g, rows, 2, false);
    if (whole == elems)
        return;
    ty_val rest = ty_b_sum(g, ty_b_slice_axis(g, piece, 0, whole, elems), 1, false);
    taken->sum[taken->n_sums++] = ty_b_reshape(g, rest, 1, &one);
}

/* Buckets whose last part is node `id`. */
static void bucket_emit(bucketing *b, uint32_t id)
{
    for (int i = 0; i < b->n_groups; i++) {
        bucket_group *t = &b->group[i];
        for (int k = 0; k < t->n_buckets && !t->whole; k++) {
            if (t->ready[k] != id)
                continue;
            b->now++;
            for (int r = 0; r < t->n_taken && !ty_graph_failed(b->c.to, NULL); r++) {
                bucket_taken *taken = &t->taken[r];
                taken->piece[k] = bucket_piece(b, t, k, ty_val_make(taken->node, 0));
                if (taken->summed)
                    bucket_sum_rows(b->c.to, taken, taken->piece[k]);
            }
        }
    }
}

/* ---- all of them ---- */

static const bucket_taken *bucket_find_taken(const bucket_group *t, uint32_t id)
{
    for (int r = 0; r < t->n_taken; r++)
        if (t->taken[r].node == id)
            return &t->taken[r];
    return NULL;
}

/* True if node `id` needs no carrying over. */
static bool bucket_replaces(bucketing *b, uint32_t id)
{
    const ty_graph *g = b->c.from;
    if (b->part[id] == BUCKET_FLAT && !b->group[b->of[id]].whole)
        return true;
    if (ty_graph_op(g, id) != TY_OP_REDUCE)
        return b->c.map[ty_val_make(id, 0)] != TY_NONE;
    uint32_t in = ty_val_node(ty_graph_in(g, id, 0));
    if (b->part[in] != BUCKET_FLAT || b->group[b->of[in]].whole)
        return false;
    const bucket_taken *taken = bucket_find_taken(&b->group[b->of[in]], in);
    const ty_type *type = ty_graph_type(g, ty_val_make(id, 0));
    ty_graph_origin(b->c.to, ty_graph_origin_of(g, id));
    ty_val sum = ty_b_sum(b->c.to, ty_b_concat(b->c.to, taken->sum, taken->n_sums, 0), 1, false);
    b->c.map[ty_val_make(id, 0)] = ty_b_reshape(b->c.to, sum, type->rank, type->dim);
    return true;
}

static void bucket_assigned(bucketing *b)
{
    for (int i = 0; i < b->n_groups; i++) {
        const bucket_group *t = &b->group[i];
        for (int r = 0; r < t->n_taken && !t->whole; r++) {
            const bucket_taken *taken = &t->taken[r];
            ty_graph_origin(b->c.to, ty_graph_origin_of(b->c.from, taken->node));
            if (taken->assigned)
                b->c.map[ty_val_make(taken->node, 0)] = ty_b_concat(b->c.to, taken->piece, t->n_buckets, 0);
        }
    }
}

static void bucket_carry_over(bucketing *b, const uint8_t *live)
{
    uint32_t n = ty_graph_n_nodes(b->c.from);
    bucket_find(b, live);
    for (int i = 0; i < b->n_groups; i++)
        bucket_cut(b, &b->group[i]);
    for (uint32_t id = 0; id < n && !ty_graph_failed(b->c.to, NULL); id++) {
        if (!live[id])
            continue;
        if (!bucket_replaces(b, id))
            ty_clone_node(&b->c, id);
        bucket_emit(b, id);
    }
    if (!ty_graph_failed(b->c.to, NULL))
        bucket_assigned(b);
}

static int bucket_pass(const ty_graph *in, bool gpu, ty_graph **out, ty_error *err)
{
    size_t n = (size_t)ty_graph_n_nodes(in) + 1;
    bucketing b = {.gpu = gpu};
    ty_arena_init(&b.arena);
    uint8_t *live = TY_NEW_ARRAY(&b.arena, uint8_t, n);
    b.group = TY_NEW_ARRAY(&b.arena, bucket_group, n);
    b.part = TY_NEW_ARRAY(&b.arena, uint8_t, n);
    b.of = TY_NEW_ARRAY(&b.arena, int, n);
    b.piece = TY_NEW_ARRAY(&b.arena, ty_val, n);
    b.stamp = TY_NEW_ARRAY(&b.arena, uint32_t, n);
    ty_graph_mark_live(in, TY_TAPE_ALL, live);
    ty_clone_begin(&b.c, in);
    bucket_carry_over(&b, live);
    int rc = ty_clone_finish(&b.c, out, err);
    ty_arena_fini(&b.arena);
    return rc;
}

int ty_pass_bucket(const ty_graph *in, ty_graph **out, ty_error *err)
{
    return bucket_pass(in, false, out, err);
}

int ty_pass_bucket_gpu(const ty_graph *in, ty_graph **out, ty_error *err)
{
    return bucket_pass(in, true, out, err);
}
