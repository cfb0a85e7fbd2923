/* range.c - see range.h.
 *
 * Followed are ops that hand on elements unchanged (movement, integer casts), sums with one number, and two forms of
 * select: wrapping of negative indices, (x < 0 ? x + n : x), and replacing of an ignored label, (x == c ? .. : x). Any
 * other arithmetic ends the search: then no limit is known.
 */
#include "compiler/passes/range.h"

#include "compiler/ir/build.h"

#include <inttypes.h>

typedef struct range_search {
    ty_graph *g;
    ty_step_range *ranges;
} range_search;

/* ---- narrowing ------------------------------------------------------------------------------------------------------
 */

static bool range_allows(const ty_step_range *r, int64_t v)
{
    return (v >= r->lo && v <= r->hi) || (r->has_also && r->also == v);
}

static void range_narrow(ty_step_range *have, const ty_step_range *more)
{
    if (!have->what) {
        *have = *more;
        return;
    }
    ty_step_range out = *have;
    if (more->lo > have->lo || more->hi < have->hi)
        out.what = more->what;
    out.lo = more->lo > have->lo ? more->lo : have->lo;
    out.hi = more->hi < have->hi ? more->hi : have->hi;
    out.has_also = false;
    if (have->has_also && range_allows(more, have->also)) {
        out.has_also = true;
    } else if (more->has_also && range_allows(have, more->also)) {
        out.has_also = true;
        out.also = more->also;
    }
    *have = out;
}

/* ---- following ------------------------------------------------------------------------------------------------------
 */

static void range_follow(range_search *s, ty_val v, ty_step_range limit);

static bool range_is_integer(const ty_graph *g, ty_val v)
{
    ty_dtype d = ty_b_dtype(g, v);
    return !ty_dtype_is_float(d) && d != TY_BOOL;
}

static bool range_is_number(const ty_graph *g, ty_val v, int64_t *out)
{
    double d;
    if (!ty_graph_splat_value(g, v, &d))
        return false;
    *out = (int64_t)d;
    return true;
}

/* (x < 0 ? x + n : x): the limit of x, that of the result being lo to hi. */
static bool range_wraps(const ty_graph *g, ty_val cond, ty_val then, ty_val other, int64_t *n)
{
    uint32_t c = ty_val_node(cond), t = ty_val_node(then);
    int64_t zero;
    if (ty_graph_op(g, c) != TY_OP_LT || ty_graph_in(g, c, 0) != other ||
        !range_is_number(g, ty_graph_in(g, c, 1), &zero) || zero != 0 || ty_graph_op(g, t) != TY_OP_ADD)
        return false;
    ty_val a = ty_graph_in(g, t, 0), b = ty_graph_in(g, t, 1);
    return (a == other && range_is_number(g, b, n)) || (b == other && range_is_number(g, a, n));
}

/* (x == c ? any : x) */
static bool range_excepts(const ty_graph *g, ty_val cond, ty_val other, int64_t *c)
{
    uint32_t id = ty_val_node(cond);
    if (ty_graph_op(g, id) != TY_OP_EQ)
        return false;
    ty_val a = ty_graph_in(g, id, 0), b = ty_graph_in(g, id, 1);
    return (a == other && range_is_number(g, b, c)) || (b == other && range_is_number(g, a, c));
}

static void range_select(range_search *s, uint32_t id, ty_step_range limit)
{
    ty_val cond = ty_graph_in(s->g, id, 0), then = ty_graph_in(s->g, id, 1), other = ty_graph_in(s->g, id, 2);
    int64_t n;
    if (range_wraps(s->g, cond, then, other, &n)) {
        if (limit.lo - n < limit.lo)
            limit.lo -= n;
        range_follow(s, other, limit);
    } else if (range_excepts(s->g, cond, other, &n)) {
        limit.has_also = true;
        limit.also = n;
        range_follow(s, other, limit);
    }
}

static void range_add(range_search *s, uint32_t id, ty_step_range limit)
{
    for (int k = 0; k < 2; k++) {
        int64_t n;
        if (!range_is_number(s->g, ty_graph_in(s->g, id, 1 - k), &n))
            continue;
        limit.lo -= n;
        limit.hi -= n;
        limit.also -= n;
        range_follow(s, ty_graph_in(s->g, id, k), limit);
        return;
    }
}

static void range_follow(range_search *s, ty_val v, ty_step_range limit)
{
    if (!range_is_integer(s->g, v))
        return;
    uint32_t id = ty_val_node(v);
    switch (ty_graph_op(s->g, id)) {
    case TY_OP_INPUT:
        range_narrow(&s->ranges[ty_graph_attr(s->g, id)->index], &limit);
        return;
    case TY_OP_RESHAPE:
    case TY_OP_TRANSPOSE:
    case TY_OP_BROADCAST:
    case TY_OP_SLICE:
    case TY_OP_REVERSE:
    case TY_OP_PAD:
    case TY_OP_CAST:
        range_follow(s, ty_graph_in(s->g, id, 0), limit);
        return;
    case TY_OP_CONCAT:
        for (uint32_t k = 0; k < ty_graph_node(s->g, id)->n_in; k++)
            range_follow(s, ty_graph_in(s->g, id, (int)k), limit);
        return;
    case TY_OP_SELECT:
        range_select(s, id, limit);
        return;
    case TY_OP_ADD:
        range_add(s, id, limit);
        return;
    default:
        return;
    }
}

/* ---- lookups --------------------------------------------------------------------------------------------------------
 */

static void range_lookup(range_search *s, uint32_t id)
{
    ty_op op = ty_graph_op(s->g, id);
    ty_attr attr = *ty_graph_attr(s->g, id);
    ty_val table = ty_graph_in(s->g, id, 0), index = ty_graph_in(s->g, id, 1);
    ty_step_range limit = {.lo = 0};
    const char *origin = ty_graph_origin_of(s->g, id);
    if (op == TY_OP_XENT) {
        limit.hi = ty_b_dim(s->g, table, 1) - 1;
        limit.has_also = attr.index != TY_XENT_IGNORES_NONE;
        limit.also = attr.index;
        limit.what = ty_arena_printf(ty_graph_arena(s->g), "the %" PRId64 " classes of the loss", limit.hi + 1);
    } else {
        limit.hi = ty_b_dim(s->g, table, (int)attr.axis) - 1;
        limit.what = ty_arena_printf(ty_graph_arena(s->g), "the %" PRId64 " rows of the table in %s", limit.hi + 1,
                                     *origin ? origin : "the loss");
    }
    range_follow(s, index, limit);
}

void ty_range_find(ty_graph *g, ty_step_range *ranges)
{
    uint32_t n = ty_graph_n_nodes(g);
    uint8_t *live = TY_NEW_ARRAY(ty_graph_arena(g), uint8_t, n + 1);
    range_search search = {g, ranges};
    for (int i = 0; i < ty_graph_n_inputs(g); i++)
        ranges[i] = (ty_step_range){.lo = 0, .hi = -1};
    ty_graph_mark_live(g, TY_TAPE_ALL, live);
    for (uint32_t id = 0; id < n; id++) {
        ty_op op = ty_graph_op(g, id);
        bool lookup =
            op == TY_OP_GATHER || op == TY_OP_TAKE || op == TY_OP_SCATTER || op == TY_OP_PUT || op == TY_OP_XENT;
        if (live[id] && lookup)
            range_lookup(&search, id);
    }
}

void ty_range_list(ty_step *s)
{
    s->n_inputs = ty_graph_n_inputs(s->g);
    s->ranges = TY_NEW_ARRAY(ty_graph_arena(s->g), ty_step_range, s->n_inputs);
    ty_range_find(s->g, s->ranges);
}
