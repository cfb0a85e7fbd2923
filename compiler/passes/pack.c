/* pack.c - attention reads q, k and v where one linear layer has left them, and leaves their gradients there too.
 *
 * The layer makes [.., T, 3 H D], of which q, k and v are slices: copies, unless what reads them takes them as they
 * lie, and their gradients are put together again by three pads and two sums: another copy. A GPU's attention takes all
 * three as one operand (compiler/ops/attend.h). Then the layer's bias can be its product's epilogue (epilogue.c), and
 * between product and attention no kernel is left.
 */
#include "compiler/ir/build.h"
#include "compiler/ir/clone.h"
#include "compiler/ops/attend.h"
#include "compiler/passes/passes.h"

#include <stdlib.h>

enum { PACK_PARTS = 3, PACK_Y = PACK_PARTS };

typedef struct pack {
    ty_val
        *whole; /* by node: of attention, its one operand; of its gradient, that of this; of the new graph or TY_NONE */
} pack;

/* A cast between float32 and the type of the attention: in the end numbers are rounded to the latter once. */
static bool pack_is_cast(const ty_graph *g, uint32_t node, ty_dtype dtype)
{
    ty_dtype to = (ty_dtype)ty_graph_type(g, ty_val_make(node, 0))->dtype;
    return ty_graph_op(g, node) == TY_OP_CAST && (to == dtype || to == TY_F32);
}

/* All of x but for its last axis, of which it is part `part` of three. */
static bool pack_is_part(const ty_type *x, const int64_t *first, const int64_t *end, int part)
{
    int64_t each = x->dim[x->rank - 1] / PACK_PARTS;
    for (int i = 0; i < x->rank - 1; i++)
        if (first[i] != 0 || end[i] != x->dim[i])
            return false;
    return x->dim[x->rank - 1] == PACK_PARTS * each && first[x->rank - 1] == part * each &&
           end[x->rank - 1] == (part + 1) * each;
}

/* ---- forward ---- */

/* What an operand is part `part` of, behind reshapes and casts; else TY_NONE. */
static ty_val pack_sliced(const ty_graph *g, ty_val v, int part)
{
    ty_dtype dtype = (ty_dtype)ty_graph_type(g, v)->dtype;
    uint32_t node = ty_val_node(v);
    for (; ty_graph_op(g, node) != TY_OP_SLICE; node = ty_val_node(v)) {
        if (ty_graph_op(g, node) != TY_OP_RESHAPE && !pack_is_cast(g, node, dtype))
            return TY_NONE;
        v = ty_graph_in(g, node, 0);
    }
    ty_val x = ty_graph_in(g, node, 0);
    const ty_attr *attr = ty_graph_attr(g, node);
    const ty_type *t = ty_graph_type(g, x);
    for (int i = 0; i < t->rank; i++)
        if (attr->step[i] != 1)
            return TY_NONE;
    return (t->dtype == dtype || t->dtype == TY_F32) && pack_is_part(t, attr->lo, attr->hi, part) ? x : TY_NONE;
}

/* What q, k and v of an attention are parts of; else TY_NONE. A part's numbers are those of all heads of a row. */
static ty_val pack_source(const ty_graph *g, uint32_t id)
{
    const ty_type *q = ty_graph_type(g, ty_graph_in(g, id, 0));
    uint32_t flags = ty_graph_attr(g, id)->flags;
    ty_val x = pack_sliced(g, ty_graph_in(g, id, 0), 0);
    if (!(flags & TY_ATTEND_INSIDE) || flags & TY_ATTEND_PACKED || x == TY_NONE)
        return TY_NONE;
    for (int i = 0; i < PACK_PARTS; i++)
        if (pack_sliced(g, ty_graph_in(g, id, (uint32_t)i), i) != x ||
            !ty_type_same(ty_graph_type(g, ty_graph_in(g, id, (uint32_t)i)), q))
            return TY_NONE;
    const ty_type *t = ty_graph_type(g, x);
    return t->dim[t->rank - 1] == PACK_PARTS * q->dim[q->rank - 2] * q->dim[q->rank - 1] ? x : TY_NONE;
}

static bool pack_attend(pack *p, ty_clone *c, uint32_t id)
{
    ty_graph *g = c->to;
    ty_val x = pack_source(c->from, id);
    if (x == TY_NONE)
        return false;
    ty_attr attr = *ty_graph_attr(c->from, id);
    ty_type q = *ty_graph_type(c->from, ty_graph_in(c->from, id, 0));
    attr.flags |= TY_ATTEND_PACKED;
    q.dim[q.rank - 2] *= PACK_PARTS;
    ty_graph_origin(g, ty_graph_origin_of(c->from, id));
    ty_val whole = p->whole[id] = ty_b_reshape(g, ty_b_cast(g, c->map[x], (ty_dtype)q.dtype), q.rank, q.dim);
    ty_val in[TY_ATTEND_MASK_AT + 1 + TY_ATTEND_N_DRAWN];
    ty_clone_inputs(c, id, in);
    in[0] = in[1] = in[2] = whole;
    ty_val y = ty_graph_emit(g, TY_OP_ATTEND, &attr, in, (int)ty_graph_node(c->from, id)->n_in);
    for (uint32_t i = 0; i < 2 && y != TY_NONE; i++)
        c->map[ty_val_make(id, i)] = ty_val_make(ty_val_node(y), i);
    return true;
}

/* ---- backward ---- */

/* Each gradient is a slice of the one, for whom it may concern. */
static bool pack_attend_grad(pack *p, ty_clone *c, uint32_t id)
{
    ty_graph *g = c->to;
    ty_val forward = ty_graph_in(c->from, id, PACK_Y), in[TY_ATTEND_GRAD_MASK_AT + 1 + TY_ATTEND_N_DRAWN];
    ty_val whole =
        ty_graph_op(c->from, ty_val_node(forward)) == TY_OP_ATTEND ? p->whole[ty_val_node(forward)] : TY_NONE;
    if (whole == TY_NONE || pack_source(c->from, id) == TY_NONE)
        return false;
    ty_clone_inputs(c, id, in);
    in[0] = in[1] = in[2] = whole;
    ty_attr attr = *ty_graph_attr(c->from, id);
    attr.flags |= TY_ATTEND_PACKED;
    ty_graph_origin(g, ty_graph_origin_of(c->from, id));
    ty_val d = p->whole[id] = ty_graph_emit(g, TY_OP_ATTEND_GRAD, &attr, in, (int)ty_graph_node(c->from, id)->n_in);
    int axis = ty_graph_type(c->from, ty_val_make(id, 0))->rank - 2;
    int64_t heads = ty_graph_type(c->from, ty_val_make(id, 0))->dim[axis];
    for (int i = 0; i < PACK_PARTS && d != TY_NONE; i++)
        c->map[ty_val_make(id, (uint32_t)i)] = ty_b_slice_axis(g, d, axis, i * heads, (i + 1) * heads);
    return true;
}

/* The result of attend_grad that v is, behind reshapes, casts and turns that end where they began; else TY_NONE. */
static ty_val pack_gradient(const ty_graph *g, ty_val v, ty_dtype dtype)
{
    bool turned = false;
    for (;;) {
        uint32_t node = ty_val_node(v);
        ty_op op = ty_graph_op(g, node);
        if (op == TY_OP_ATTEND_GRAD)
            return turned ? TY_NONE : v;
        if (op == TY_OP_TRANSPOSE && ty_attend_is_turn(g, node))
            turned = !turned;
        else if (!pack_is_cast(g, node, dtype) && (op != TY_OP_RESHAPE || turned))
            return TY_NONE;
        v = ty_graph_in(g, node, 0);
    }
}

/* v is a gradient of the attention `grad`, with zeros around it: marks which. Of the first one met, finds `grad`. */
static bool pack_padded(const ty_graph *g, ty_val v, uint32_t *grad, bool *met)
{
    uint32_t node = ty_val_node(v);
    const ty_type *t = ty_graph_type(g, v);
    const ty_attr *attr = ty_graph_attr(g, node);
    int64_t end[TY_MAX_RANK];
    if (ty_graph_op(g, node) != TY_OP_PAD || attr->value != 0 || t->rank == 0)
        return false;
    ty_val d = pack_gradient(g, ty_graph_in(g, node, 0), (ty_dtype)t->dtype);
    if (d == TY_NONE || (*grad != TY_NONE && ty_val_node(d) != *grad))
        return false;
    for (int i = 0; i < t->rank; i++)
        end[i] = t->dim[i] - attr->hi[i];
    *grad = ty_val_node(d);
    int part = (int)ty_val_result(d);
    bool is_new = part < PACK_PARTS && !met[part];
    met[part] = true;
    return is_new && pack_is_part(t, attr->lo, end, part);
}

/* v adds up such, in whatever order. */
static bool pack_is_sum(const ty_graph *g, ty_val v, uint32_t *grad, bool *met)
{
    uint32_t node = ty_val_node(v);
    if (ty_graph_op(g, node) != TY_OP_ADD)
        return pack_padded(g, v, grad, met);
    return pack_is_sum(g, ty_graph_in(g, node, 0), grad, met) && pack_is_sum(g, ty_graph_in(g, node, 1), grad, met);
}

static bool pack_sum(pack *p, ty_clone *c, uint32_t id)
{
    uint32_t grad = TY_NONE;
    bool met[TY_MAX_RESULTS] = {false};
    ty_val v = ty_val_make(id, 0);
    const ty_type *t = ty_graph_type(c->from, v);
    if (!pack_is_sum(c->from, v, &grad, met) || !met[0] || !met[1] || !met[2] || p->whole[grad] == TY_NONE)
        return false;
    c->map[v] = ty_b_cast(c->to, ty_b_reshape(c->to, p->whole[grad], t->rank, t->dim), (ty_dtype)t->dtype);
    return true;
}

/* ---- the pass ---- */

static bool pack_rewrite(ty_clone *c, uint32_t id, void *ctx)
{
    if (ty_graph_failed(c->to, NULL))
        return false;
    switch (ty_graph_op(c->from, id)) {
    case TY_OP_ATTEND:
        return pack_attend(ctx, c, id);
    case TY_OP_ATTEND_GRAD:
        return pack_attend_grad(ctx, c, id);
    case TY_OP_ADD:
        return pack_sum(ctx, c, id);
    default:
        return false;
    }
}

int ty_pass_pack(const ty_graph *in, ty_graph **out, ty_error *err)
{
    uint32_t n = ty_graph_n_nodes(in);
    pack p = {malloc((n + (size_t)1) * sizeof *p.whole)};
    *out = NULL;
    if (!p.whole)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a pass over %u nodes", n);
    for (uint32_t i = 0; i < n; i++)
        p.whole[i] = TY_NONE;
    int rc = ty_clone_rewrite(in, pack_rewrite, &p, out, err);
    free(p.whole);
    return rc;
}
