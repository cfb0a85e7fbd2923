/* chunk.c - wide rows in chunks: the logits of a large vocabulary are never all in memory.
 *
 * A language model ends in x W', a product of R rows and V columns with V far larger than the width of x, and a loss
 * that reduces each row to a number. Forward and backward are one graph, and what the loss needs besides the logits
 * (labels, the number of rows that count) is known before them. So the rows can be taken C at a time: logits, loss and
 * gradient of C rows, their share of the gradient of x and of W, then the next C rows in the same memory. What W and
 * its bias get is a sum over rows and is added up from chunk to chunk, in place (dot with a third operand).
 *
 * Nothing here knows a loss. From a product on (the root), nodes are followed that work row by row (ROWS), and sums
 * over rows (SUM); what reads anything else of them is behind. Inside, computed chunk by chunk, is what is wide or
 * leads to something wide. What leaves the inside must be narrow: terms, maxima, gradients of x. Where something wide
 * leaves, as logits that are an output, all stays as it is.
 */
#include "compiler/passes/chunk.h"

#include "compiler/ir/build.h"
#include "compiler/ir/clone.h"
#include "compiler/ops/op.h"
#include "compiler/passes/passes.h"

#define CHUNK_MIN_BYTES ((int64_t)32 << 20) /* of all logits */
#define CHUNK_WIDER     4                   /* columns of the logits for each of x, at least */
#define CHUNK_ALIGN     16                  /* rows of a chunk are a multiple */
#define CHUNK_MOST      32                  /* chunks */

/* What a node is to the root. */
typedef enum chunk_part {
    CHUNK_OUTSIDE, /* does not depend on it */
    CHUNK_ROWS,    /* row r of its results depends on row r of the root */
    CHUNK_SUM,     /* a sum over the rows */
    CHUNK_BEHIND   /* depends on results of the whole */
} chunk_part;

/* How operand of a node is read if only some rows of the node are computed. */
typedef enum chunk_read { CHUNK_NO, CHUNK_CUT, CHUNK_WHOLE } chunk_read;

typedef struct chunking {
    const ty_graph *g;
    ty_arena arena;
    uint8_t *live;
    uint8_t *part;   /* chunk_part by node */
    uint8_t *inside; /* by node: computed chunk by chunk */
    uint32_t root;
    int64_t rows, width; /* of the root */
    int64_t each;        /* rows of a chunk; the last one may have fewer */
    ty_clone c;
    ty_val *piece;   /* by value of g: its rows in the chunk at hand */
    int *stamp;      /* by node: 1 + the chunk for which its pieces were made */
    ty_val **pieces; /* by value of g, if it leaves the inside: its rows in each chunk */
    int n_chunks, at;
} chunking;

/* ---- what can be computed row by row ---- */

static const ty_type *chunk_type(const chunking *k, ty_val v)
{
    return ty_graph_type(k->g, v);
}

static bool chunk_has_rows(const chunking *k, ty_val v)
{
    const ty_type *t = chunk_type(k, v);
    return t->rank > 0 && t->dim[0] == k->rows;
}

static bool chunk_is_wide(const chunking *k, ty_val v)
{
    return 2 * (ty_type_elems(chunk_type(k, v)) / k->rows) > k->width;
}

static chunk_read chunk_cut_if(bool cut)
{
    return cut ? CHUNK_CUT : CHUNK_NO;
}

/* The gradient of x. A wide product behind the root would be a network of layers, not a loss. */
static chunk_read chunk_read_of_dot(const chunking *k, uint32_t id, int i)
{
    ty_val y = ty_val_make(id, 0);
    bool one =
        chunk_type(k, y)->rank == 2 && !(ty_graph_attr(k->g, id)->flags & TY_DOT_TRANS_A) && !chunk_is_wide(k, y);
    return !one ? CHUNK_NO : i == 1 ? CHUNK_WHOLE : CHUNK_CUT;
}

static chunk_read chunk_read_of_gather(const ty_attr *a, int i)
{
    return (a->axis == 0) == (i == 1) ? CHUNK_CUT : CHUNK_WHOLE;
}

/* Of a node whose results have the rows. */
static chunk_read chunk_read_of(const chunking *k, uint32_t id, int i)
{
    const ty_attr *a = ty_graph_attr(k->g, id);
    ty_op op = ty_graph_op(k->g, id);
    if (ty_op_is_elementwise(op))
        return CHUNK_CUT;
    switch (op) {
    case TY_OP_RESHAPE:
        return CHUNK_CUT;
    case TY_OP_BROADCAST:
        return chunk_type(k, ty_graph_in(k->g, id, 0))->dim[0] == 1 ? CHUNK_WHOLE : CHUNK_CUT;
    case TY_OP_REDUCE:
    case TY_OP_REVERSE:
        return chunk_cut_if(!(a->axes & 1));
    case TY_OP_ARGREDUCE:
    case TY_OP_SCAN:
    case TY_OP_SORT:
    case TY_OP_TAKE:
    case TY_OP_CONCAT:
        return chunk_cut_if(a->axis != 0);
    case TY_OP_GATHER:
        return chunk_read_of_gather(a, i);
    case TY_OP_SLICE:
        return chunk_cut_if(a->lo[0] == 0 && a->hi[0] == k->rows && a->step[0] == 1);
    case TY_OP_PAD:
        return chunk_cut_if(a->lo[0] == 0 && a->hi[0] == 0);
    case TY_OP_TRANSPOSE:
        return chunk_cut_if(a->lo[0] == 0);
    case TY_OP_DOT:
        return id == k->root ? i == 1 ? CHUNK_WHOLE : CHUNK_CUT : chunk_read_of_dot(k, id, i);
    default:
        return CHUNK_NO;
    }
}

static bool chunk_can_cut(const chunking *k, ty_val v);

/* Can some rows of the node be computed from the same rows of what it reads? */
static bool chunk_is_rows(const chunking *k, uint32_t id)
{
    const ty_node *n = ty_graph_node(k->g, id);
    bool is = true;
    for (uint32_t r = 0; r < n->n_res; r++)
        is &= chunk_has_rows(k, ty_val_make(id, r));
    for (uint32_t i = 0; i < n->n_in && is; i++) {
        ty_val in = ty_graph_in(k->g, id, (int)i);
        chunk_read how = in == TY_NONE ? CHUNK_WHOLE : chunk_read_of(k, id, (int)i);
        is = how == CHUNK_CUT ? chunk_can_cut(k, in)
                              : how == CHUNK_WHOLE && (in == TY_NONE || k->part[ty_val_node(in)] == CHUNK_OUTSIDE);
    }
    return is;
}

/* Is v outside, wide and not in memory? Then its rows are computed in each chunk too: comparisons of the column's
 * number with the label. */
static bool chunk_is_made(const chunking *k, ty_val v)
{
    ty_op_class class_ = ty_op_row_of(ty_graph_op(k->g, ty_val_node(v)))->class_;
    bool loop = class_ == TY_CLASS_ELEMENTWISE || class_ == TY_CLASS_LOOP;
    return loop && k->part[ty_val_node(v)] == CHUNK_OUTSIDE && chunk_has_rows(k, v) && chunk_is_wide(k, v);
}

static bool chunk_can_cut(const chunking *k, ty_val v)
{
    uint32_t id = ty_val_node(v);
    ty_op op = ty_graph_op(k->g, id);
    double number;
    if (!chunk_has_rows(k, v) || k->part[id] == CHUNK_SUM || k->part[id] == CHUNK_BEHIND)
        return false;
    if (k->part[id] == CHUNK_ROWS || !chunk_is_wide(k, v) || ty_graph_splat_value(k->g, v, &number))
        return true;
    if (op == TY_OP_IOTA)
        return ty_graph_attr(k->g, id)->axis != 0;
    return ty_op_row_of(op)->class_ == TY_CLASS_LEAF || (chunk_is_made(k, v) && chunk_is_rows(k, id));
}

/* A sum over the rows, in numbers that do not round too early. */
static bool chunk_is_sum(const chunking *k, uint32_t id)
{
    const ty_graph *g = k->g;
    const ty_attr *a = ty_graph_attr(g, id);
    ty_dtype dtype = (ty_dtype)chunk_type(k, ty_val_make(id, 0))->dtype;
    if (dtype == TY_F16 || dtype == TY_BF16)
        return false;
    if (ty_graph_op(g, id) == TY_OP_REDUCE)
        return a->mode == TY_SUM && (a->axes & 1) && chunk_can_cut(k, ty_graph_in(g, id, 0));
    return ty_graph_op(g, id) == TY_OP_DOT && ty_graph_node(g, id)->n_in == 2 &&
           chunk_type(k, ty_val_make(id, 0))->rank == 2 &&
           (a->flags & (TY_DOT_TRANS_A | TY_DOT_TRANS_B)) == TY_DOT_TRANS_A &&
           chunk_can_cut(k, ty_graph_in(g, id, 0)) && chunk_can_cut(k, ty_graph_in(g, id, 1));
}

/* ---- what belongs to a root ---- */

static void chunk_parts(chunking *k)
{
    const ty_graph *g = k->g;
    k->part[k->root] = CHUNK_ROWS;
    for (uint32_t id = k->root + 1; id < ty_graph_n_nodes(g); id++) {
        int most = CHUNK_OUTSIDE;
        for (uint32_t i = 0; i < ty_graph_node(g, id)->n_in && k->live[id]; i++) {
            ty_val in = ty_graph_in(g, id, (int)i);
            most = in != TY_NONE && k->part[ty_val_node(in)] > most ? k->part[ty_val_node(in)] : most;
        }
        if (most == CHUNK_ROWS)
            most = chunk_is_rows(k, id) ? CHUNK_ROWS : chunk_is_sum(k, id) ? CHUNK_SUM : CHUNK_BEHIND;
        else if (most != CHUNK_OUTSIDE)
            most = CHUNK_BEHIND;
        k->part[id] = (uint8_t)most;
    }
}

/* Is v wide and a part of the chunks? */
static bool chunk_is_wide_part(const chunking *k, ty_val v)
{
    return v != TY_NONE && k->part[ty_val_node(v)] == CHUNK_ROWS && chunk_is_wide(k, v);
}

/* What is wide, what reads it, and what these need. The rest of what goes row by row, and sums of it, are left to be
 * computed for all rows. */
static void chunk_find_inside(chunking *k)
{
    const ty_graph *g = k->g;
    for (uint32_t id = ty_graph_n_nodes(g); id-- > k->root;) {
        uint32_t n_in = ty_graph_node(g, id)->n_in;
        if (!k->live[id] || (k->part[id] != CHUNK_ROWS && k->part[id] != CHUNK_SUM))
            continue;
        k->inside[id] |= chunk_is_wide_part(k, ty_val_make(id, 0));
        for (uint32_t i = 0; i < n_in; i++)
            k->inside[id] |= chunk_is_wide_part(k, ty_graph_in(g, id, (int)i));
        for (uint32_t i = 0; i < n_in && k->inside[id]; i++) {
            ty_val in = ty_graph_in(g, id, (int)i);
            if (in != TY_NONE && k->part[ty_val_node(in)] == CHUNK_ROWS)
                k->inside[ty_val_node(in)] = 1;
        }
    }
}

/* Results of nodes inside that others read, into k->pieces; false if one of them is wide. */
static bool chunk_leaves(chunking *k, ty_val v)
{
    if (!k->inside[ty_val_node(v)] || k->pieces[v])
        return true;
    k->pieces[v] = TY_NEW_ARRAY(&k->arena, ty_val, k->n_chunks);
    return k->part[ty_val_node(v)] == CHUNK_SUM || !chunk_is_wide(k, v);
}

static bool chunk_find_leaving(chunking *k)
{
    const ty_graph *g = k->g;
    bool narrow = true;
    for (uint32_t id = k->root; id < ty_graph_n_nodes(g) && narrow; id++)
        for (uint32_t i = 0; i < ty_graph_node(g, id)->n_in && k->live[id] && !k->inside[id]; i++)
            if (ty_graph_in(g, id, (int)i) != TY_NONE)
                narrow &= chunk_leaves(k, ty_graph_in(g, id, (int)i));
    for (int i = 0; i < ty_graph_n_outputs(g); i++)
        narrow &= chunk_leaves(k, ty_graph_output(g, i)->val);
    return narrow;
}

/* The product that node `id` is some rows of, by the left operand: TY_NONE if it is whole. */
static ty_val chunk_rows_from(const ty_graph *g, uint32_t id)
{
    ty_val x = ty_graph_in(g, id, 0);
    if (ty_graph_op(g, ty_val_node(x)) == TY_OP_AGAIN)
        x = ty_graph_in(g, ty_val_node(x), 0);
    return ty_graph_op(g, ty_val_node(x)) == TY_OP_SLICE ? ty_graph_in(g, ty_val_node(x), 0) : TY_NONE;
}

static bool chunk_is_root(const ty_graph *g, uint32_t id, const ty_chunk_rule *rule)
{
    if (ty_graph_op(g, id) != TY_OP_DOT || ty_graph_node(g, id)->n_in != 2 ||
        (ty_graph_attr(g, id)->flags & TY_DOT_TRANS_A))
        return false;
    const ty_type *t = ty_graph_type(g, ty_val_make(id, 0)), *x = ty_graph_type(g, ty_graph_in(g, id, 0));
    if (t->rank != 2 || chunk_rows_from(g, id) != TY_NONE || t->dim[0] < 2 * rule->rows ||
        t->dim[1] < CHUNK_WIDER * x->dim[1])
        return false;
    return !rule->large_only ||
           (t->dim[0] >= 2 * x->dim[1] && ty_type_elems(t) * (int64_t)sizeof(float) >= CHUNK_MIN_BYTES);
}

/* ---- the new graph ---- */

/* A value that does not depend on the root, in the new graph; carried over now if it has not come up yet. */
static ty_val chunk_outside(chunking *k, ty_val v)
{
    if (k->c.map[v] == TY_NONE) {
        uint32_t id = ty_val_node(v);
        for (uint32_t i = 0; i < ty_graph_node(k->g, id)->n_in; i++)
            if (ty_graph_in(k->g, id, (int)i) != TY_NONE)
                chunk_outside(k, ty_graph_in(k->g, id, (int)i));
        ty_clone_node(&k->c, id);
    }
    return k->c.map[v];
}

static int64_t chunk_first_row(const chunking *k)
{
    return k->at * k->each;
}

static int64_t chunk_end_row(const chunking *k)
{
    return k->at + 1 < k->n_chunks ? (k->at + 1) * k->each : k->rows;
}

static ty_val chunk_piece(chunking *k, ty_val v);

/* The node for the rows of this chunk. */
static void chunk_emit(chunking *k, uint32_t id)
{
    const ty_graph *g = k->g;
    const ty_node *n = ty_graph_node(g, id);
    ty_attr attr = *ty_graph_attr(g, id);
    ty_op op = ty_graph_op(g, id);
    bool sum = k->part[id] == CHUNK_SUM;
    int64_t rows = chunk_end_row(k) - chunk_first_row(k);
    ty_val *in = TY_NEW_ARRAY(&k->arena, ty_val, n->n_in + 1);
    for (uint32_t i = 0; i < n->n_in; i++) {
        ty_val v = ty_graph_in(g, id, (int)i);
        bool whole = v != TY_NONE && !sum && chunk_read_of(k, id, (int)i) == CHUNK_WHOLE;
        in[i] = v == TY_NONE ? TY_NONE : whole ? chunk_outside(k, v) : chunk_piece(k, v);
    }
    if (op == TY_OP_RESHAPE || op == TY_OP_BROADCAST || op == TY_OP_IOTA)
        attr.type.dim[0] = rows;
    if (op == TY_OP_SLICE)
        attr.hi[0] = rows;
    ty_graph_origin(k->c.to, ty_graph_origin_of(g, id));
    int n_in = (int)n->n_in;
    ty_val before = sum && k->at > 0 ? k->piece[ty_val_make(id, 0)] : TY_NONE;
    if (before != TY_NONE && op == TY_OP_DOT)
        in[n_in++] = before;
    ty_val first = ty_graph_emit(k->c.to, op, &attr, in, n_in);
    if (before != TY_NONE && op == TY_OP_REDUCE)
        first = ty_b_add(k->c.to, before, first);
    for (uint32_t r = 0; r < n->n_res && first != TY_NONE; r++)
        k->piece[ty_val_make(id, r)] = ty_val_make(ty_val_node(first), r ? r : ty_val_result(first));
    k->stamp[id] = k->at + 1;
}

/* Rows of v in this chunk. What is outside and in memory is read there, under a name of its own for each chunk: kernels
 * of two chunks that read the same labels must not become one. */
static ty_val chunk_piece(chunking *k, ty_val v)
{
    uint32_t id = ty_val_node(v);
    ty_graph *to = k->c.to;
    ty_attr when = {.index = k->at};
    if (k->inside[id] || k->stamp[id] == k->at + 1)
        return k->piece[v];
    if (chunk_is_made(k, v) && chunk_is_rows(k, id)) {
        chunk_emit(k, id);
        return k->piece[v];
    }
    ty_val whole = chunk_outside(k, v);
    ty_graph_origin(to, ty_graph_origin_of(k->g, id));
    ty_val cut = ty_b_slice_axis(to, whole, 0, chunk_first_row(k), chunk_end_row(k));
    k->piece[v] = k->at > 0 ? ty_graph_emit(to, TY_OP_AGAIN, &when, &cut, 1) : cut;
    k->stamp[id] = k->at + 1;
    return k->piece[v];
}

/* What does not depend on the root comes before the first chunk, so that chunks run one after the other. */
static void chunk_emit_outside(chunking *k)
{
    for (uint32_t id = k->root; id < ty_graph_n_nodes(k->g); id++)
        for (uint32_t i = 0; i < ty_graph_node(k->g, id)->n_in && k->inside[id]; i++) {
            ty_val in = ty_graph_in(k->g, id, (int)i);
            if (in != TY_NONE && k->part[ty_val_node(in)] == CHUNK_OUTSIDE && !chunk_is_made(k, in))
                chunk_outside(k, in);
        }
}

static void chunk_emit_all(chunking *k)
{
    const ty_graph *g = k->g;
    size_t n_values = (size_t)ty_graph_n_nodes(g) * TY_MAX_RESULTS;
    chunk_emit_outside(k);
    for (k->at = 0; k->at < k->n_chunks && !ty_graph_failed(k->c.to, NULL); k->at++) {
        for (uint32_t id = k->root; id < ty_graph_n_nodes(g); id++)
            if (k->inside[id])
                chunk_emit(k, id);
        for (ty_val v = 0; v < n_values; v++)
            if (k->pieces[v])
                k->pieces[v][k->at] = k->piece[v];
    }
    for (ty_val v = 0; v < n_values && !ty_graph_failed(k->c.to, NULL); v++) {
        if (!k->pieces[v])
            continue;
        bool sum = k->part[ty_val_node(v)] == CHUNK_SUM;
        ty_graph_origin(k->c.to, ty_graph_origin_of(g, ty_val_node(v)));
        k->c.map[v] = sum ? k->pieces[v][k->n_chunks - 1] : ty_b_concat(k->c.to, k->pieces[v], k->n_chunks, 0);
    }
}

/* Does a node that is not inside read what is? */
static bool chunk_reads_inside(const chunking *k, uint32_t id)
{
    for (uint32_t i = 0; i < ty_graph_node(k->g, id)->n_in; i++)
        if (ty_graph_in(k->g, id, (int)i) != TY_NONE && k->inside[ty_val_node(ty_graph_in(k->g, id, (int)i))])
            return true;
    return false;
}

static int chunk_carry_over(chunking *k, ty_graph **out, ty_error *err)
{
    bool done = false;
    ty_clone_begin(&k->c, k->g);
    for (uint32_t id = 0; id < ty_graph_n_nodes(k->g) && !ty_graph_failed(k->c.to, NULL); id++) {
        if (!k->live[id] || k->inside[id])
            continue;
        if (!done && chunk_reads_inside(k, id)) {
            chunk_emit_all(k);
            done = true;
        }
        if (k->c.map[ty_val_make(id, 0)] == TY_NONE)
            ty_clone_node(&k->c, id);
    }
    if (!done && !ty_graph_failed(k->c.to, NULL))
        chunk_emit_all(k);
    return ty_clone_finish(&k->c, out, err);
}

static int64_t chunk_ceil(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static void chunk_init(chunking *k, const ty_graph *g, uint32_t root, int64_t most)
{
    size_t n = (size_t)ty_graph_n_nodes(g) + 1;
    const ty_type *t = ty_graph_type(g, ty_val_make(root, 0));
    *k = (chunking){.g = g, .root = root, .rows = t->dim[0], .width = t->dim[1]};
    ty_arena_init(&k->arena);
    int64_t n_wanted = chunk_ceil(k->rows, most);
    k->each = chunk_ceil(k->rows, n_wanted < CHUNK_MOST ? n_wanted : CHUNK_MOST);
    k->each = chunk_ceil(k->each, CHUNK_ALIGN) * CHUNK_ALIGN;
    k->n_chunks = (int)chunk_ceil(k->rows, k->each);
    k->live = TY_NEW_ARRAY(&k->arena, uint8_t, n);
    k->part = TY_NEW_ARRAY(&k->arena, uint8_t, n);
    k->inside = TY_NEW_ARRAY(&k->arena, uint8_t, n);
    k->stamp = TY_NEW_ARRAY(&k->arena, int, n);
    k->piece = TY_NEW_ARRAY(&k->arena, ty_val, n * TY_MAX_RESULTS);
    k->pieces = TY_NEW_ARRAY(&k->arena, ty_val *, n * TY_MAX_RESULTS);
    ty_graph_mark_live(g, TY_TAPE_ALL, k->live);
}

/* 1: *out is the new graph; 0: something wide leaves; -1: failed. */
static int chunk_at(const ty_graph *g, uint32_t root, int64_t most, ty_graph **out, ty_error *err)
{
    chunking k;
    chunk_init(&k, g, root, most);
    int rc = 0;
    if (k.live[root]) {
        chunk_parts(&k);
        chunk_find_inside(&k);
        if (k.inside[root] && chunk_find_leaving(&k))
            rc = chunk_carry_over(&k, out, err) < 0 ? -1 : 1;
    }
    ty_arena_fini(&k.arena);
    return rc;
}

int ty_chunk(const ty_graph *in, const ty_chunk_rule *rule, ty_graph **out, int *n_cut, ty_error *err)
{
    const ty_graph *g = in;
    *out = NULL;
    *n_cut = 0;
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++) {
        ty_graph *next = NULL;
        int rc = chunk_is_root(g, id, rule) ? chunk_at(g, id, rule->rows, &next, err) : 0;
        if (rc == 0)
            continue;
        ty_graph_free(*out);
        *out = next;
        if (rc < 0)
            return -1;
        g = next;
        id = 0; /* the chunks are too few rows to be cut again */
        ++*n_cut;
    }
    return 0;
}

ty_chunk_report ty_chunk_find(const ty_graph *g)
{
    ty_chunk_report found = {0};
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++) {
        const ty_type *t = ty_graph_type(g, ty_val_make(id, 0));
        if (ty_graph_op(g, id) != TY_OP_DOT || t->rank != 2 || (ty_graph_attr(g, id)->flags & TY_DOT_TRANS_A))
            continue;
        ty_val x = ty_graph_in(g, id, 0), all = chunk_rows_from(g, id);
        size_t row = (size_t)t->dim[1] * ty_dtype_bytes((ty_dtype)t->dtype);
        int64_t rows = all == TY_NONE ? 0 : ty_graph_type(g, all)->dim[0];
        bool wide = t->dim[1] >= CHUNK_WIDER * ty_b_dim(g, x, 1);
        if (wide && rows > t->dim[0] && row * (size_t)rows > found.of_bytes)
            found = (ty_chunk_report){t->dim[0], rows, t->dim[1], row * (size_t)t->dim[0], row * (size_t)rows};
    }
    return found;
}

int ty_pass_chunk(const ty_graph *in, ty_graph **out, ty_error *err)
{
    static const ty_chunk_rule rule = {TY_CHUNK_ROWS, true};
    int n;
    return ty_chunk(in, &rule, out, &n, err);
}
