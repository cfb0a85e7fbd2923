/* narrow.c - what is turned is turned in 16 bits where one side has no more: half the memory to read and write, and a
 * copy that a product reads as it is.
 *
 *     transpose(cast(x))   x of 16 bits                  cast(transpose(x))
 *     cast(transpose(x))   to 16 bits, read by it alone  transpose(cast(x))
 *
 * Casts round element by element, so numbers stay. In a gMLP, which mixes tokens on one side of a gate, the kernels of
 * a step in bfloat16 take half the time.
 */
#include "compiler/ir/build.h"
#include "compiler/ir/clone.h"
#include "compiler/ops/expect.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/readers.h"

static bool narrow_is_half(const ty_graph *g, ty_val v)
{
    ty_dtype dtype = (ty_dtype)ty_graph_type(g, v)->dtype;
    return ty_wide_dtype(dtype) != dtype;
}

/* A transpose behind which another axis is the last one: others leave rows whole, and are read as fast as they are. */
static bool narrow_turns(const ty_graph *g, uint32_t node)
{
    int last = ty_graph_type(g, ty_val_make(node, 0))->rank - 1;
    return ty_graph_op(g, node) == TY_OP_TRANSPOSE && last > 0 && ty_graph_attr(g, node)->lo[last] != last;
}

/* Whether the transpose is of what was 16 bits long before. */
static bool narrow_widened(const ty_graph *g, uint32_t transpose)
{
    uint32_t cast = ty_val_node(ty_graph_in(g, transpose, 0));
    return narrow_turns(g, transpose) && ty_graph_op(g, cast) == TY_OP_CAST &&
           narrow_is_half(g, ty_graph_in(g, cast, 0)) && !narrow_is_half(g, ty_val_make(cast, 0));
}

/* Whether the cast makes 16 bits of what a transpose has turned for it. */
static bool narrow_narrows(const ty_graph *g, uint32_t cast, const ty_readers *readers)
{
    if (ty_graph_op(g, cast) != TY_OP_CAST || !narrow_is_half(g, ty_val_make(cast, 0)))
        return false;
    ty_val turned = ty_graph_in(g, cast, 0);
    return ty_graph_type(g, turned)->dtype == TY_F32 && narrow_turns(g, ty_val_node(turned)) &&
           ty_readers_of(readers, turned) == 1;
}

static bool narrow_node(ty_clone *c, uint32_t id, void *ctx)
{
    bool widened = narrow_widened(c->from, id);
    if (!widened && !narrow_narrows(c->from, id, ctx))
        return false;
    uint32_t before = ty_val_node(ty_graph_in(c->from, id, 0)), transpose = widened ? id : before;
    ty_dtype dtype = (ty_dtype)ty_graph_type(c->from, ty_val_make(id, 0))->dtype;
    ty_val x = c->map[ty_graph_in(c->from, before, 0)];
    ty_graph_origin(c->to, ty_graph_origin_of(c->from, id));
    x = ty_b_transpose(c->to, widened ? x : ty_b_cast(c->to, x, dtype), ty_graph_attr(c->from, transpose)->lo);
    c->map[ty_val_make(id, 0)] = ty_b_cast(c->to, x, dtype);
    return true;
}

static bool narrow_any(const ty_graph *g, const ty_readers *readers)
{
    bool any = false;
    for (uint32_t id = 0; id < ty_graph_n_nodes(g) && !any; id++)
        any = narrow_widened(g, id) || narrow_narrows(g, id, readers);
    return any;
}

int ty_pass_narrow(const ty_graph *in, ty_graph **out, ty_error *err)
{
    ty_readers readers;
    *out = NULL;
    if (ty_readers_find(&readers, in, err) < 0)
        return -1;
    int rc = narrow_any(in, &readers) ? ty_clone_rewrite(in, narrow_node, &readers, out, err) : 0;
    ty_readers_free(&readers);
    return rc;
}
