/* plan.c - what a collective needs before its first piece: is it one at all, how is it cut, where do parts lie. */
#include "dist/comm/comm_state.h"
#include "dist/comm/reduce.h"

#include <stdlib.h>
#include <string.h>

static const char *const kinds[TY_N_COLLECTIVES] = {
    [TY_ALL_REDUCE] = "all_reduce", [TY_REDUCE_SCATTER] = "reduce_scatter", [TY_ALL_GATHER] = "all_gather",
    [TY_BROADCAST] = "broadcast",   [TY_ALL_TO_ALL] = "all_to_all",         [TY_BARRIER] = "barrier",
};

static const char *const reduces[TY_N_REDUCES] = {
    [TY_REDUCE_SUM] = "sum", [TY_REDUCE_AVERAGE] = "average", [TY_REDUCE_MIN] = "min",
    [TY_REDUCE_MAX] = "max", [TY_REDUCE_PRODUCT] = "product",
};

const char *ty_collective_text(ty_collective_kind kind)
{
    return (unsigned)kind < TY_N_COLLECTIVES ? kinds[kind] : "?";
}

const char *ty_reduce_text(ty_reduce reduce)
{
    return (unsigned)reduce < TY_N_REDUCES ? reduces[reduce] : "?";
}

int64_t ty_comm_part(int64_t n, int size, int index, int64_t *offset)
{
    int64_t base = n / size, more = n % size;
    if (offset)
        *offset = base * index + (index < more ? index : more);
    return base + (index < more);
}

/* --- checks --- */

static bool reduces_something(const ty_collective *w)
{
    return w->kind == TY_ALL_REDUCE || w->kind == TY_REDUCE_SCATTER;
}

static int check_reduce(const ty_collective *w, ty_error *err)
{
    if ((unsigned)w->reduce >= TY_N_REDUCES)
        return ty_error_set(err, TY_E_RANGE, "there is no way to reduce with number %d", (int)w->reduce);
    if (!ty_reduce_allowed(w->dtype, w->reduce))
        return ty_error_set(err, TY_E_TYPE, "%s has no %s", ty_dtype_text(w->dtype), ty_reduce_text(w->reduce));
    if ((unsigned)w->wire >= TY_N_WIRES)
        return ty_error_set(err, TY_E_RANGE, "there is no wire with number %d", (int)w->wire);
    return 0;
}

static int check_counts(const ty_comm *c, const int64_t *counts, const char *which, int64_t *sum, ty_error *err)
{
    *sum = 0;
    for (int r = 0; r < c->size; r++) {
        if (counts[r] < 0 || counts[r] > INT32_MAX)
            return ty_error_set(err, TY_E_RANGE, "%s[%d] is %lld, expected 0 to %d", which, r, (long long)counts[r],
                                INT32_MAX);
        *sum += counts[r];
    }
    return 0;
}

/* Elements of the side that consists of parts. */
static int check_parts(const ty_comm *c, const ty_collective *w, ty_error *err)
{
    int64_t whole = w->kind == TY_ALL_GATHER ? w->n * c->size : w->n, from = 0;
    int64_t expected = w->kind == TY_ALL_GATHER && w->counts ? w->counts[c->rank] : w->n;
    if (w->counts && check_counts(c, w->counts, "counts", &whole, err) < 0)
        return -1;
    if (w->kind != TY_ALL_GATHER)
        expected = whole;
    if (expected != w->n)
        return ty_error_set(err, TY_E_SHAPE, "n is %lld, but counts say %lld", (long long)w->n, (long long)expected);
    if (w->from_counts && check_counts(c, w->from_counts, "from_counts", &from, err) < 0)
        return -1;
    if (whole > INT32_MAX || from > INT32_MAX)
        return ty_error_set(err, TY_E_LIMIT, "%lld elements at once, at most %d are possible; make it several calls",
                            (long long)(whole > from ? whole : from), INT32_MAX);
    if (w->kind != TY_ALL_TO_ALL)
        return 0;
    if (!w->counts != !w->from_counts)
        return ty_error_set(err, TY_E_CONFIG, "counts and from_counts are given both or neither");
    if (!w->counts && w->n % c->size)
        return ty_error_set(err, TY_E_SHAPE, "%lld elements cannot be dealt evenly to %d ranks", (long long)w->n,
                            c->size);
    return 0;
}

static int check_call(const ty_comm *c, const ty_collective *w, ty_error *err)
{
    if ((unsigned)w->dtype >= TY_N_DTYPES)
        return ty_error_set(err, TY_E_TYPE, "there is no element type with number %d", (int)w->dtype);
    if (w->n < 0)
        return ty_error_set(err, TY_E_RANGE, "n is %lld", (long long)w->n);
    if (reduces_something(w) && check_reduce(w, err) < 0)
        return -1;
    if (w->kind == TY_BROADCAST && (w->root < 0 || w->root >= c->size))
        return ty_error_set(err, TY_E_RANGE, "root is %d, ranks are 0 to %d", w->root, c->size - 1);
    if (w->kind == TY_REDUCE_SCATTER || w->kind == TY_ALL_GATHER || w->kind == TY_ALL_TO_ALL)
        return check_parts(c, w, err);
    return 0;
}

int ty_comm_check(const ty_comm *c, const ty_collective *w, ty_error *err)
{
    if ((unsigned)w->kind >= TY_N_COLLECTIVES)
        return ty_error_set(err, TY_E_RANGE, "there is no collective with number %d", (int)w->kind);
    if (w->kind == TY_BARRIER || check_call(c, w, err) == 0)
        return 0;
    return ty_error_wrap(err, "%s \"%s\"", ty_collective_text(w->kind), w->name ? w->name : "");
}

/* --- the journey --- */

/* Elements on both sides, and those of the longest part. */
static int64_t find_parts(comm_journey *j, int64_t *n_out)
{
    const ty_collective *w = j->what;
    ty_comm *c = j->c;
    int64_t longest = 0;
    for (int r = 0; r < c->size; r++) {
        int64_t part = w->counts                  ? w->counts[r]
                       : w->kind == TY_ALL_GATHER ? w->n
                                                  : ty_comm_part(w->n, c->size, r, NULL);
        j->start[r + 1] = j->start[r] + part;
        longest = part > longest ? part : longest;
    }
    *n_out = w->kind == TY_ALL_GATHER ? j->start[c->size] : j->start[c->rank + 1] - j->start[c->rank];
    return longest;
}

static int64_t sum_of(const int64_t *counts, int size, int64_t otherwise)
{
    int64_t sum = 0;
    for (int r = 0; counts && r < size; r++)
        sum += counts[r];
    return counts ? sum : otherwise;
}

static ty_dtype type_on_wire(const ty_collective *w)
{
    if (!reduces_something(w) || w->dtype != TY_F32 || w->wire == TY_WIRE_AS_IS)
        return w->dtype;
    return w->wire == TY_WIRE_F16 ? TY_F16 : TY_BF16;
}

/* `in` is copied where its place is written over while it is still read: where the two overlap otherwise than elements
 * of a sum do, or the own part in the whole. */
static int separate(comm_journey *j, int64_t n_out, ty_error *err)
{
    const ty_collective *w = j->what;
    size_t elem = ty_dtype_bytes(w->dtype), in_bytes = (size_t)w->n * elem, out_bytes = (size_t)n_out * elem;
    uintptr_t in = (uintptr_t)w->in, out = (uintptr_t)w->out;
    bool apart = in + in_bytes <= out || out + out_bytes <= in;
    size_t own = j->start ? (size_t)j->start[j->c->rank] * elem : 0;
    bool own_place = w->kind == TY_REDUCE_SCATTER ? out == in + own : w->kind == TY_ALL_GATHER && in == out + own;
    j->in = w->in;
    j->out = w->out;
    if (apart || own_place || !in_bytes)
        return 0;
    if (!(j->copy = malloc(in_bytes)))
        return ty_error_set(err, TY_E_LIMIT, "%s \"%s\": no memory for a copy of %zu bytes",
                            ty_collective_text(w->kind), w->name ? w->name : "", in_bytes);
    j->in = memcpy(j->copy, w->in, in_bytes);
    return 0;
}

static int plan_parts(comm_journey *j, ty_error *err)
{
    ty_comm *c = j->c;
    int64_t n_out = 0;
    j->start = c->start;
    int64_t longest = find_parts(j, &n_out);
    j->piece = j->piece / c->size > 1 ? j->piece / c->size : 1;
    j->n_pieces = (longest + j->piece - 1) / j->piece;
    return separate(j, n_out, err);
}

/* The root's `in` to its `out`; where it gives no `out`, its `in` is what is sent from. */
static void plan_broadcast(comm_journey *j)
{
    const ty_collective *w = j->what;
    bool root = w->root == j->c->rank;
    j->out = w->out;
    if (root && !w->out)
        j->out = (char *)(uintptr_t)w->in;
    else if (root && w->in && w->in != w->out && w->n)
        memmove(w->out, w->in, (size_t)w->n * ty_dtype_bytes(w->dtype));
}

int ty_comm_plan(ty_comm *c, const ty_collective *w, comm_journey *j, ty_error *err)
{
    *j = (comm_journey){.c = c, .what = w, .travels = type_on_wire(w), .in = w->in, .out = w->out};
    j->stages = ty_comm_stages(j);
    j->piece = c->options.piece_bytes / (int64_t)ty_dtype_bytes(w->dtype);
    if (w->kind == TY_REDUCE_SCATTER || w->kind == TY_ALL_GATHER)
        return plan_parts(j, err);
    if (w->kind == TY_BARRIER || w->kind == TY_ALL_TO_ALL) {
        j->n_pieces = 1;
        return w->kind == TY_BARRIER ? 0 : separate(j, sum_of(w->from_counts, c->size, w->n), err);
    }
    j->n_pieces = (w->n + j->piece - 1) / j->piece;
    if (w->kind == TY_BROADCAST)
        plan_broadcast(j);
    return 0;
}

void ty_comm_journey_end(comm_journey *j)
{
    free(j->copy);
}

void ty_comm_take_piece(const comm_journey *j, comm_slot *slot, int64_t i)
{
    int64_t elem = (int64_t)ty_dtype_bytes(j->what->dtype), left = j->what->n - i * j->piece;
    slot->index = i;
    slot->stage = 0;
    slot->group = slot->all;
    slot->in = (j->in ? j->in : j->out) + i * j->piece * elem;
    slot->out = j->out + i * j->piece * elem;
    slot->n = left < j->piece ? left : j->piece;
}
