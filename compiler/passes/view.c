/* view.c - values that are a contiguous part of another value, and so need no memory of their own. */
#include "compiler/passes/fuse.h"

static bool view_slice(const ty_type *in, const ty_type *out, const ty_attr *attr, int64_t *offset)
{
    int64_t stride = 1, off = 0;
    bool must_be_one = false; /* once an axis is cut, all slower ones may have one entry only */
    for (int i = in->rank - 1; i >= 0; i--) {
        if (attr->step[i] != 1 || (must_be_one && out->dim[i] != 1))
            return false;
        must_be_one |= out->dim[i] != in->dim[i];
        off += attr->lo[i] * stride;
        stride *= in->dim[i];
    }
    *offset += off;
    return true;
}

/* A permutation that moves only axes of extent 1 leaves the order of elements. */
static bool view_transpose(const ty_type *in, const ty_attr *attr)
{
    int64_t last = -1;
    for (uint32_t i = 0; i < attr->n; i++) {
        if (in->dim[attr->lo[i]] == 1)
            continue;
        if (attr->lo[i] < last)
            return false;
        last = attr->lo[i];
    }
    return true;
}

static bool view_step(const ty_graph *g, uint32_t node, int64_t *offset)
{
    const ty_type *in, *out = ty_graph_type(g, ty_val_make(node, 0));
    switch (ty_graph_op(g, node)) {
    case TY_OP_RESHAPE:
    case TY_OP_AGAIN:
        return true;
    case TY_OP_BROADCAST:
        in = ty_graph_type(g, ty_graph_in(g, node, 0));
        return ty_type_elems(in) == ty_type_elems(out);
    case TY_OP_SLICE:
        in = ty_graph_type(g, ty_graph_in(g, node, 0));
        return view_slice(in, out, ty_graph_attr(g, node), offset);
    case TY_OP_TRANSPOSE:
        return view_transpose(ty_graph_type(g, ty_graph_in(g, node, 0)), ty_graph_attr(g, node));
    default:
        return false;
    }
}

ty_view ty_view_of(const ty_graph *g, ty_val v)
{
    ty_view view = {v, 0};
    while (view_step(g, ty_val_node(view.base), &view.offset))
        view.base = ty_graph_in(g, ty_val_node(view.base), 0);
    return view;
}
