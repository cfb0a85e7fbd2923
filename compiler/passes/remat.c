/* remat.c - see remat.h. Chen et al., Training Deep Nets with Sublinear Memory Cost, arXiv:1604.06174. */
#include "compiler/passes/remat.h"

#include "compiler/ir/build.h"
#include "compiler/ir/clone.h"
#include "compiler/ops/op.h"
#include "compiler/ops/work.h"
#include "compiler/passes/fuse.h"
#include "compiler/passes/passes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum remat_kind {
    REMAT_NOTHING, /* not of a training tape, or a leaf */
    REMAT_WEIGHT,  /* of weights alone: kept by them */
    REMAT_FORWARD,
    REMAT_BACKWARD /* needs a gradient */
} remat_kind;

enum { REMAT_KEEP, REMAT_LOOPS, REMAT_ALL };

struct ty_remat {
    ty_arena arena;
    const ty_graph *g;
    uint8_t *live;
    uint8_t *kind;    /* remat_kind by node */
    uint8_t *read;    /* by node: read in backward */
    uint8_t *crosses; /* by node: read by forward in a later segment */
    int *segment;     /* by node */
    int n_segments, n_items;
    int64_t era; /* latest `again` there is (chunk.c) */
    ty_remat_item *item;
};

/* ---- forward and backward ---- */

static remat_kind remat_kind_of(const ty_remat *r, uint32_t id)
{
    const ty_graph *g = r->g;
    ty_op_class class_ = ty_op_row_of(ty_graph_op(g, id))->class_;
    const ty_node *n = ty_graph_node(g, id);
    bool weight = n->n_in > 0;
    if (ty_graph_op(g, id) == TY_OP_STATE)
        return ty_type_elems(ty_graph_type(g, ty_val_make(id, 0))) > 1 ? REMAT_WEIGHT : REMAT_NOTHING;
    if (!r->live[id] || class_ == TY_CLASS_LEAF || class_ == TY_CLASS_EFFECT)
        return REMAT_NOTHING;
    if (ty_origin_is_gradient(ty_graph_origin_of(g, id)))
        return REMAT_BACKWARD;
    for (uint32_t i = 0; i < n->n_in; i++) {
        ty_val in = ty_graph_in(g, id, (int)i);
        if (in != TY_NONE && r->kind[ty_val_node(in)] == REMAT_BACKWARD)
            return REMAT_BACKWARD;
        weight &=
            in == TY_NONE || r->kind[ty_val_node(in)] == REMAT_WEIGHT || ty_graph_op(g, ty_val_node(in)) == TY_OP_CONST;
    }
    return weight ? REMAT_WEIGHT : REMAT_FORWARD;
}

/* What comes after the first node of backward is backward too: of logits in chunks the second chunk's. */
static void remat_kinds(ty_remat *r)
{
    const ty_graph *g = r->g;
    bool backward = false;
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++) {
        r->kind[id] = (uint8_t)remat_kind_of(r, id);
        if (r->kind[id] == REMAT_FORWARD && backward)
            r->kind[id] = REMAT_BACKWARD;
        backward |= r->kind[id] == REMAT_BACKWARD;
        if (ty_graph_op(g, id) == TY_OP_AGAIN && ty_graph_attr(g, id)->index > r->era)
            r->era = ty_graph_attr(g, id)->index;
        for (uint32_t i = 0; i < ty_graph_node(g, id)->n_in && r->kind[id] == REMAT_BACKWARD; i++)
            if (ty_graph_in(g, id, (int)i) != TY_NONE)
                r->read[ty_val_node(ty_graph_in(g, id, (int)i))] = 1;
    }
}

/* ---- segments ---- */

static int64_t remat_bytes(const ty_graph *g, uint32_t id)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < ty_graph_node(g, id)->n_res; i++) {
        ty_val v = ty_val_make(id, i);
        bytes += ty_view_of(g, v).base == v ? (int64_t)ty_type_bytes(ty_graph_type(g, v)) : 0;
    }
    return bytes;
}

/* Bytes of forward values that are made before each node and read by it or after it. */
static int64_t *remat_crossing(const ty_remat *r, ty_arena *a)
{
    const ty_graph *g = r->g;
    uint32_t n = ty_graph_n_nodes(g);
    uint32_t *last = TY_NEW_ARRAY(a, uint32_t, n + 1);
    int64_t *change = TY_NEW_ARRAY(a, int64_t, n + 2), live = 0;
    for (uint32_t id = n; id-- > 0;)
        for (uint32_t i = 0; i < ty_graph_node(g, id)->n_in && r->kind[id] == REMAT_FORWARD; i++) {
            ty_val in = ty_graph_in(g, id, (int)i);
            uint32_t base = in == TY_NONE ? id : ty_val_node(ty_view_of(g, in).base);
            last[base] = id > last[base] ? id : last[base];
        }
    for (uint32_t id = 0; id < n; id++)
        if (r->kind[id] == REMAT_FORWARD && last[id] > id) {
            change[id + 1] += remat_bytes(g, id);
            change[last[id] + 1] -= remat_bytes(g, id);
        }
    for (uint32_t id = 0; id < n; id++)
        live = change[id] += live;
    return change;
}

static bool remat_keeps(const ty_remat *r, uint32_t id)
{
    return r->kind[id] == REMAT_FORWARD && r->read[id];
}

/* A cut near each equal share of what is kept, where least crosses. */
static void remat_cut(ty_remat *r, int n_segments)
{
    const ty_graph *g = r->g;
    uint32_t n = ty_graph_n_nodes(g), best = 0;
    ty_arena scratch;
    ty_arena_init(&scratch);
    int64_t *crossing = remat_crossing(r, &scratch), total = 0, kept = 0;
    for (uint32_t id = 0; id < n; id++)
        total += remat_keeps(r, id) ? remat_bytes(g, id) : 0;
    uint8_t *cut = TY_NEW_ARRAY(&scratch, uint8_t, n + 1);
    int window = 0; /* number of the share around which a cut is sought */
    for (uint32_t id = 0; id < n && total > 0; id++) {
        int now = (int)((double)kept / (double)total * n_segments + 0.5);
        if (now != window) {
            cut[best] = window > 0;
            window = now;
            best = id;
        }
        if (r->kind[id] == REMAT_FORWARD && crossing[id] < crossing[best])
            best = id;
        kept += remat_keeps(r, id) ? remat_bytes(g, id) : 0;
    }
    r->n_segments = 1;
    for (uint32_t id = 0; id < n; id++)
        r->segment[id] = (r->n_segments += cut[id]) - 1;
    ty_arena_fini(&scratch);
}

static void remat_cross(ty_remat *r)
{
    const ty_graph *g = r->g;
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++)
        for (uint32_t i = 0; i < ty_graph_node(g, id)->n_in && r->kind[id] == REMAT_FORWARD; i++) {
            ty_val in = ty_graph_in(g, id, (int)i);
            if (in != TY_NONE && r->segment[ty_val_node(in)] != r->segment[id])
                r->crosses[ty_val_node(in)] = 1;
        }
}

/* ---- items ---- */

static bool remat_may(const ty_remat *r, uint32_t id, int level)
{
    if (r->kind[id] != REMAT_FORWARD || r->crosses[id] || level == REMAT_KEEP)
        return false;
    return level == REMAT_ALL || ty_op_row_of(ty_graph_op(r->g, id))->class_ != TY_CLASS_LIBRARY;
}

static const char *remat_layer(const ty_graph *g, uint32_t id)
{
    return ty_graph_origin_of(g, id);
}

static void remat_items(ty_remat *r)
{
    const ty_graph *g = r->g;
    int n = r->n_segments - 1;
    r->n_items = 2 * n;
    r->item = TY_NEW_ARRAY(&r->arena, ty_remat_item, r->n_items + 1);
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++) {
        if (r->kind[id] != REMAT_FORWARD || r->segment[id] >= n)
            continue;
        ty_remat_item *both[2] = {&r->item[r->segment[id]], &r->item[n + r->segment[id]]};
        bool library = !remat_may(r, id, REMAT_LOOPS);
        for (int k = 0; k < 2; k++) {
            both[k]->products = k == 1;
            both[k]->from = both[k]->from ? both[k]->from : remat_layer(g, id);
            both[k]->to = *remat_layer(g, id) ? remat_layer(g, id) : both[k]->to;
        }
        if (remat_keeps(r, id) && !r->crosses[id])
            both[library]->kept_bytes += remat_bytes(g, id);
        if (remat_may(r, id, REMAT_ALL))
            both[library]->flop += ty_node_flop(g, id);
    }
}

ty_remat *ty_remat_new(const ty_graph *g, int n_segments)
{
    ty_arena arena;
    ty_arena_init(&arena);
    ty_remat *r = TY_NEW(&arena, ty_remat);
    size_t n = (size_t)ty_graph_n_nodes(g) + 1;
    r->arena = arena;
    r->g = g;
    r->live = TY_NEW_ARRAY(&r->arena, uint8_t, n);
    r->kind = TY_NEW_ARRAY(&r->arena, uint8_t, n);
    r->read = TY_NEW_ARRAY(&r->arena, uint8_t, n);
    r->crosses = TY_NEW_ARRAY(&r->arena, uint8_t, n);
    r->segment = TY_NEW_ARRAY(&r->arena, int, n);
    ty_graph_mark_live(g, TY_TAPE_LAST | TY_TAPE_MICRO, r->live);
    remat_kinds(r);
    remat_cut(r, n_segments);
    remat_cross(r);
    remat_items(r);
    return r;
}

int ty_remat_n_items(const ty_remat *r)
{
    return r->n_items;
}

const ty_remat_item *ty_remat_item_of(const ty_remat *r, int i)
{
    return &r->item[i];
}

void ty_remat_free(ty_remat *r)
{
    if (!r)
        return;
    ty_arena arena = r->arena;
    ty_arena_fini(&arena);
}

/* ---- the new graph ---- */

typedef struct remat_run {
    const ty_remat *r;
    ty_clone c;
    ty_val *copy; /* by value of the old graph: what computes it again */
    int n;        /* items taken */
} remat_run;

static bool remat_copies(const remat_run *run, uint32_t id)
{
    int of = run->r->n_segments - 1, segment = run->r->segment[id];
    int level = segment >= of           ? REMAT_KEEP
                : run->n > of + segment ? REMAT_ALL
                : run->n > segment      ? REMAT_LOOPS
                                        : REMAT_KEEP;
    return remat_may(run->r, id, level);
}

/* Node `id` with these inputs; its first result. */
static ty_val remat_emit(remat_run *run, uint32_t id, const ty_val *in)
{
    const ty_graph *g = run->r->g;
    return ty_graph_emit(run->c.to, ty_graph_op(g, id), ty_graph_attr(g, id), in, (int)ty_graph_node(g, id)->n_in);
}

static ty_val remat_again(remat_run *run, ty_val v);

/* What a copy in `segment` reads: another copy, or what was kept, under another name. Weights and constants as they
 * are. */
static ty_val remat_operand(remat_run *run, ty_val v, int segment)
{
    uint32_t id = v == TY_NONE ? 0 : ty_val_node(v);
    if (v == TY_NONE || run->r->kind[id] == REMAT_WEIGHT || ty_graph_op(run->r->g, id) == TY_OP_CONST)
        return v == TY_NONE ? TY_NONE : run->c.map[v];
    if (remat_copies(run, id) && run->r->segment[id] == segment)
        return remat_again(run, v);
    ty_attr attr = {.index = run->r->era + run->r->n_segments - segment};
    return ty_graph_emit(run->c.to, TY_OP_AGAIN, &attr, &run->c.map[v], 1);
}

static ty_val remat_again(remat_run *run, ty_val v)
{
    const ty_graph *g = run->r->g;
    uint32_t id = ty_val_node(v), n = ty_graph_node(g, id)->n_in;
    if (run->copy[v] != TY_NONE)
        return run->copy[v];
    ty_val *in = TY_NEW_ARRAY(ty_graph_arena(run->c.to), ty_val, n);
    char origin[320];
    for (uint32_t i = 0; i < n; i++)
        in[i] = remat_operand(run, ty_graph_in(g, id, (int)i), run->r->segment[id]);
    snprintf(origin, sizeof origin, TY_ORIGIN_GRADIENT "%s", ty_graph_origin_of(g, id));
    ty_graph_origin(run->c.to, origin);
    ty_val first = remat_emit(run, id, in);
    for (uint32_t i = 0; i < ty_graph_node(g, id)->n_res && first != TY_NONE; i++)
        run->copy[ty_val_make(id, i)] = i ? ty_val_make(ty_val_node(first), i) : first;
    return run->copy[v];
}

/* A node of backward, with copies in the place of what is not kept. True if there are any. */
static bool remat_reader(remat_run *run, uint32_t id)
{
    const ty_graph *g = run->r->g;
    uint32_t n = ty_graph_node(g, id)->n_in, n_copies = 0;
    for (uint32_t i = 0; i < n && run->r->kind[id] == REMAT_BACKWARD; i++)
        n_copies += ty_graph_in(g, id, (int)i) != TY_NONE && remat_copies(run, ty_val_node(ty_graph_in(g, id, (int)i)));
    if (n_copies == 0)
        return false;
    ty_val *in = TY_NEW_ARRAY(ty_graph_arena(run->c.to), ty_val, n);
    ty_clone_inputs(&run->c, id, in);
    for (uint32_t i = 0; i < n; i++) {
        ty_val v = ty_graph_in(g, id, (int)i);
        in[i] = v != TY_NONE && remat_copies(run, ty_val_node(v)) ? remat_again(run, v) : in[i];
    }
    ty_graph_origin(run->c.to, ty_graph_origin_of(g, id));
    ty_val first = remat_emit(run, id, in);
    for (uint32_t i = 0; i < ty_graph_node(g, id)->n_res && first != TY_NONE; i++)
        run->c.map[ty_val_make(id, i)] = i ? ty_val_make(ty_val_node(first), i) : first;
    return true;
}

static bool remat_node(ty_clone *c, uint32_t id, void *ctx)
{
    remat_run *run = ctx;
    run->c = *c;
    return remat_reader(run, id);
}

int ty_remat_apply(const ty_remat *r, int n, ty_graph **out, ty_error *err)
{
    size_t n_values = (size_t)ty_graph_n_nodes(r->g) * TY_MAX_RESULTS + 1;
    remat_run run = {.r = r, .copy = malloc(n_values * sizeof *run.copy), .n = n};
    if (!run.copy)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a pass over %u nodes", ty_graph_n_nodes(r->g));
    for (size_t i = 0; i < n_values; i++)
        run.copy[i] = TY_NONE;
    int rc = ty_clone_rewrite(r->g, remat_node, &run, out, err);
    free(run.copy);
    return rc;
}
