/* turns.c - see turns.h.
 *
 * Taken out without need, a transpose of another kind would be carried from the product behind it through all that
 * meets its result: a gMLP's halves were computed turned, with their norms, for one factor that is.
 */
#include "compiler/passes/turns.h"

#include "compiler/ops/op.h"

#include <stdlib.h>

/* Work on [N, C, spatial..] alone. */
static const uint8_t turns_window[TY_N_OPS] = {
    [TY_OP_CONV] = 1,     [TY_OP_CONV_DX] = 1,       [TY_OP_CONV_DW] = 1,       [TY_OP_POOL_MAX] = 1,
    [TY_OP_POOL_SUM] = 1, [TY_OP_POOL_MAX_GRAD] = 1, [TY_OP_POOL_SUM_GRAD] = 1, [TY_OP_BATCHNORM] = 1,
};

/* Elementwise ops aside: work in any order of axes. */
static const uint8_t turns_any_order[TY_N_OPS] = {
    [TY_OP_SLICE] = 1,   [TY_OP_PAD] = 1,  [TY_OP_CONCAT] = 1,    [TY_OP_REVERSE] = 1,
    [TY_OP_SOFTMAX] = 1, [TY_OP_GELU] = 1, [TY_OP_GELU_GRAD] = 1, [TY_OP_SILU] = 1,
};

static bool turns_carries(ty_op op)
{
    return turns_window[op] || turns_any_order[op] || ty_op_is_elementwise(op);
}

/* To [N, C, spatial..] from [N, spatial.., C], or back. */
static bool turns_is_turn(const ty_graph *g, uint32_t node)
{
    const int64_t *perm = ty_graph_attr(g, node)->lo;
    int rank = ty_graph_type(g, ty_val_make(node, 0))->rank;
    bool first = rank >= 3 && perm[0] == 0 && perm[1] == rank - 1,
         last = rank >= 3 && perm[0] == 0 && perm[rank - 1] == 1;
    for (int i = 2; i < rank; i++) {
        first &= perm[i] == i - 1;
        last &= perm[i - 1] == i;
    }
    return first || last;
}

/* Between two nodes, of which one reads the other: if one has the order of windows, the other has it too, or turns.
 * True if that is news. */
static bool turns_spread(const ty_graph *g, uint32_t from, uint32_t to, uint8_t *inside, uint8_t *turn)
{
    bool turns = ty_graph_op(g, to) == TY_OP_TRANSPOSE;
    uint8_t *mark = turns ? turn : inside;
    if (!inside[from] || mark[to] || !(turns ? turns_is_turn(g, to) : turns_carries(ty_graph_op(g, to))))
        return false;
    mark[to] = 1;
    return true;
}

static bool turns_link(const ty_graph *g, uint32_t id, uint8_t *inside, uint8_t *turn)
{
    bool news = false;
    for (uint32_t i = 0; i < ty_graph_node(g, id)->n_in; i++) {
        ty_val v = ty_graph_in(g, id, (int)i);
        if (v == TY_NONE)
            continue;
        news |= turns_spread(g, ty_val_node(v), id, inside, turn);
        news |= turns_spread(g, id, ty_val_node(v), inside, turn);
    }
    return news;
}

int ty_find_turns(const ty_graph *g, uint8_t *turn, ty_error *err)
{
    uint32_t n = ty_graph_n_nodes(g);
    uint8_t *inside = calloc((size_t)n + 1, 1);
    bool news = true;
    int found = 0;
    if (!inside)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a pass over %u nodes", n);
    for (uint32_t id = 0; id < n; id++)
        inside[id] = turns_window[ty_graph_op(g, id)];
    while (news) {
        news = false;
        for (uint32_t id = 0; id < n; id++)
            news |= turns_link(g, id, inside, turn);
        for (uint32_t id = n; id-- > 0;)
            news |= turns_link(g, id, inside, turn);
    }
    for (uint32_t id = 0; id < n; id++)
        found += turn[id];
    free(inside);
    return found;
}
