/* fuse_repeats.c - vectors that many rows would compute anew, and what is gathered again and again.
 *
 * A broadcast along other axes than the last repeats a vector: each row of a kernel that reads it would compute it
 * again. What is one number for a row is computed once for it anyway. A GPU computes sooner than it launches one kernel
 * more.
 */
#include "compiler/passes/fuse.h"

#define REPEATS_LEAST    4         /* times */
#define REPEATS_GATHERED 2         /* times */
#define REPEATS_WORTH    (1 << 18) /* scalar operations that are worth a kernel of their own */

bool ty_fuse_is_repeated(int64_t cost, int64_t elems)
{
    return cost > TY_FUSE_CHEAP && elems * cost >= REPEATS_WORTH;
}

static bool repeats_is_vector(const ty_type *x)
{
    return x->rank > 0 && x->dim[x->rank - 1] > 1;
}

static void repeats_note(const ty_graph *g, uint32_t node, int64_t *repeats)
{
    ty_val in = ty_graph_in(g, node, 0), v = ty_view_of(g, in).base;
    const ty_type *x = ty_graph_type(g, in);
    int64_t n = ty_type_elems(ty_graph_type(g, ty_val_make(node, 0)));
    if (repeats_is_vector(x) && n >= REPEATS_LEAST * ty_type_elems(x) && n > repeats[v])
        repeats[v] = n;
}

/* What such a vector is computed from is computed again, too. */
static void repeats_spread(const ty_fusion *f, uint32_t node)
{
    int64_t n = f->repeats[ty_val_make(node, 0)];
    if (!n || !ty_fuse_is_by_element(f->g, node))
        return;
    for (uint32_t i = 0; i < ty_graph_node(f->g, node)->n_in; i++) {
        ty_val in = ty_graph_in(f->g, node, (int)i);
        ty_val v = in == TY_NONE ? TY_NONE : ty_view_of(f->g, in).base;
        if (v != TY_NONE && repeats_is_vector(ty_graph_type(f->g, in)) && f->repeats[v] < n)
            f->repeats[v] = n;
    }
}

const int64_t *ty_fuse_find_repeats(ty_fusion *f)
{
    uint32_t n_nodes = ty_graph_n_nodes(f->g);
    size_t n_vals = (size_t)n_nodes * TY_MAX_RESULTS + 1;
    int64_t *direct = TY_NEW_ARRAY(&f->arena, int64_t, n_vals);
    for (uint32_t node = 0; node < n_nodes && !f->on_gpu; node++)
        if (f->live[node] && ty_graph_op(f->g, node) == TY_OP_BROADCAST)
            repeats_note(f->g, node, direct);
    f->repeats = ty_arena_copy(&f->arena, direct, sizeof *direct * n_vals);
    for (uint32_t node = n_nodes; node-- > 0;)
        repeats_spread(f, node);
    return direct;
}

int64_t *ty_fuse_find_gathered(ty_fusion *f)
{
    uint32_t n_nodes = ty_graph_n_nodes(f->g);
    int64_t *gathered = TY_NEW_ARRAY(&f->arena, int64_t, (size_t)n_nodes * TY_MAX_RESULTS + 1);
    for (uint32_t node = 0; node < n_nodes; node++)
        if (f->live[node] && ty_graph_op(f->g, node) == TY_OP_GATHER) {
            ty_val v = ty_view_of(f->g, ty_graph_in(f->g, node, 0)).base;
            gathered[v] += ty_type_elems(ty_graph_type(f->g, ty_val_make(node, 0)));
        }
    return gathered;
}

/* Four neighbours of a pixel, of which each would be computed from four of its own. */
bool ty_fuse_is_gathered(const ty_fusion *f, ty_val v, int64_t cost, int64_t elems)
{
    return elems >= REPEATS_GATHERED * ty_type_elems(ty_graph_type(f->g, v)) && ty_fuse_is_repeated(cost, elems);
}
