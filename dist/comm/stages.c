/* stages.c - the ways of each kind of collective: which calls of the engine its pieces go through.
 *
 *     plain sum        all_reduce, where the engine adds up at no cost: threads
 *     ordered sum      all_to_all of the piece's parts; each rank adds up its part in rank order; all_gather
 *     small sum        all_gather; each rank adds up all, in rank order
 *     by levels        the ranks of a host share the piece out and add up their parts; of each part, the ranks of all
 *                      hosts that have it make a sum, plain or on a wire; the ranks of a host gather the parts
 *     reduce_scatter   all_to_all; sum in rank order
 *
 * By levels, each byte leaves a host once, and all ranks of a host use its network at the same time.
 * The ordered sum moves as many bytes as the best plain one. 16-bit floats always take it: they are added up in
 * float32 and rounded once on each way, where an engine would round after each rank. Over MPI all sums take it: that of
 * Open MPI 4.1 which does not block goes up and down a tree for less than four ranks, so that each link is idle in one
 * direction; and the one that blocks spins.
 */
#include "dist/comm/comm_state.h"
#include "dist/comm/reduce.h"
#include "dist/comm/wire.h"

#include <stdlib.h>
#include <string.h>

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t elem_bytes(const comm_journey *j)
{
    return (int64_t)ty_dtype_bytes(j->what->dtype);
}

static bool is_wired(const comm_journey *j)
{
    return j->travels != j->what->dtype;
}

/* For an average on a 16-bit wire: what elements are multiplied with before they leave. */
static float wire_scale(const comm_journey *j)
{
    return j->what->reduce == TY_REDUCE_AVERAGE ? 1.0f / (float)j->c->size : 1.0f;
}

/* How parts that came over the wire are reduced: averages of a 16-bit wire were divided before. */
static ty_reduce reduce_after(const comm_journey *j)
{
    return is_wired(j) && j->what->reduce == TY_REDUCE_AVERAGE ? TY_REDUCE_SUM : j->what->reduce;
}

/* Even parts of n into counts[0] and counts[1] (offsets). */
static void even_parts(comm_slot *slot, int size, int64_t n)
{
    for (int r = 0; r < size; r++)
        slot->counts[0][r] = ty_comm_part(n, size, r, &slot->counts[1][r]);
}

/* A call that sends counts[0] elements to each rank and gets `own` from each, into slot->got. */
static void exchange(const comm_journey *j, comm_slot *slot, ty_dtype dtype, const void *from, int64_t own,
                     ty_engine_call *call)
{
    for (int r = 0; r < j->c->engine->size(slot->group); r++) {
        slot->counts[2][r] = own;
        slot->counts[3][r] = own * r;
    }
    *call = (ty_engine_call){.kind = TY_ENGINE_ALL_TO_ALL,
                             .elem_bytes = (int)ty_dtype_bytes(dtype),
                             .in = from,
                             .out = slot->got,
                             .in_counts = slot->counts[0],
                             .in_offsets = slot->counts[1],
                             .out_counts = slot->counts[2],
                             .out_offsets = slot->counts[3]};
}

/* Adds up what exchange() got: `own` elements of `dtype` from each rank. */
static void add_up(const comm_journey *j, comm_slot *slot, ty_dtype dtype, ty_reduce reduce, int64_t own, ty_dtype to,
                   void *out)
{
    const void *in[COMM_MAX_RANKS];
    int size = j->c->engine->size(slot->group);
    for (int r = 0; r < size; r++)
        in[r] = (const char *)slot->got + (size_t)(own * r) * ty_dtype_bytes(dtype);
    ty_reduce_ranks(dtype, reduce, in, size, j->c->size, to, out, own);
}

/* A call that gives even parts of n, each lying in its place, to all ranks of the slot's group. */
static void gather_parts(const comm_journey *j, comm_slot *slot, ty_dtype dtype, void *whole, int64_t n,
                         ty_engine_call *call)
{
    even_parts(slot, j->c->engine->size(slot->group), n);
    *call = (ty_engine_call){.kind = TY_ENGINE_ALL_GATHER,
                             .elem_bytes = (int)ty_dtype_bytes(dtype),
                             .out = whole,
                             .out_counts = slot->counts[0],
                             .out_offsets = slot->counts[1]};
}

/* --- all_reduce, plain --- */

static bool plain_sum(const comm_journey *j, comm_slot *slot, ty_engine_call *call)
{
    ty_reduce r = j->what->reduce;
    *call = (ty_engine_call){.kind = TY_ENGINE_ALL_REDUCE,
                             .elem_bytes = (int)elem_bytes(j),
                             .dtype = j->what->dtype,
                             .reduce = r == TY_REDUCE_AVERAGE ? TY_REDUCE_SUM : r,
                             .in = slot->in,
                             .out = slot->out,
                             .n = slot->n};
    if (call->dtype == TY_BOOL) {
        call->dtype = TY_U8;
        call->reduce = ty_reduce_of_bools(r);
    }
    return true;
}

static bool plain_end(const comm_journey *j, comm_slot *slot, ty_engine_call *call)
{
    (void)call;
    if (j->what->reduce == TY_REDUCE_AVERAGE)
        ty_reduce_divide(j->what->dtype, slot->out, slot->n, j->c->size);
    return false;
}

static const comm_stage plain_stages[] = {{plain_sum}, {plain_end}, {NULL}};

/* --- all_reduce, in rank order --- */

static bool ordered_scatter(const comm_journey *j, comm_slot *slot, ty_engine_call *call)
{
    int size = j->c->engine->size(slot->group);
    even_parts(slot, size, slot->n);
    if (is_wired(j))
        ty_wire_narrow(j->travels, (const float *)slot->in, wire_scale(j), slot->sent, slot->n);
    exchange(j, slot, j->travels, is_wired(j) ? slot->sent : slot->in, slot->counts[0][j->c->engine->rank(slot->group)],
             call);
    return true;
}

static bool ordered_gather(const comm_journey *j, comm_slot *slot, ty_engine_call *call)
{
    int rank = j->c->engine->rank(slot->group);
    char *whole = is_wired(j) ? slot->sent : slot->out;
    gather_parts(j, slot, j->travels, whole, slot->n, call);
    add_up(j, slot, j->travels, reduce_after(j), slot->counts[0][rank], j->travels,
           whole + (size_t)slot->counts[1][rank] * ty_dtype_bytes(j->travels));
    return true;
}

static bool ordered_end(const comm_journey *j, comm_slot *slot, ty_engine_call *call)
{
    (void)call;
    if (is_wired(j))
        ty_wire_widen(j->travels, slot->sent, (float *)slot->out, slot->n);
    return false;
}

static const comm_stage ordered_stages[] = {{ordered_scatter}, {ordered_gather}, {ordered_end}, {NULL}};

/* --- all_reduce of few elements: one way there is all the time it takes --- */

static bool small_gather(const comm_journey *j, comm_slot *slot, ty_engine_call *call)
{
    for (int r = 0; r < j->c->size; r++) {
        slot->counts[0][r] = slot->n;
        slot->counts[1][r] = slot->n * r;
    }
    *call = (ty_engine_call){.kind = TY_ENGINE_ALL_GATHER,
                             .elem_bytes = (int)elem_bytes(j),
                             .in = slot->in,
                             .out = slot->got,
                             .out_counts = slot->counts[0],
                             .out_offsets = slot->counts[1]};
    return true;
}

static bool small_sum(const comm_journey *j, comm_slot *slot, ty_engine_call *call)
{
    (void)call;
    add_up(j, slot, j->what->dtype, j->what->reduce, slot->n, j->what->dtype, slot->out);
    return false;
}

static const comm_stage small_stages[] = {{small_gather}, {small_sum}, {NULL}};

/* --- all_reduce, by levels --- */

static bool level_scatter(const comm_journey *j, comm_slot *slot, ty_engine_call *call)
{
    slot->group = slot->local;
    slot->whole_n = slot->n;
    even_parts(slot, j->c->local_size, slot->n);
    exchange(j, slot, j->what->dtype, slot->in, slot->counts[0][j->c->engine->rank(slot->local)], call);
    return true;
}

/* From here on the slot's range is this rank's part, among the ranks of all hosts that have it. */
static bool level_sum(const comm_journey *j, comm_slot *slot, ty_engine_call *call)
{
    (void)call;
    ty_reduce reduce = j->what->reduce == TY_REDUCE_AVERAGE ? TY_REDUCE_SUM : j->what->reduce;
    int64_t offset, own = ty_comm_part(slot->n, j->c->local_size, j->c->engine->rank(slot->local), &offset);
    slot->whole = slot->out;
    slot->out += offset * elem_bytes(j);
    slot->in = slot->out;
    slot->n = own;
    add_up(j, slot, j->what->dtype, reduce, own, j->what->dtype, slot->out);
    slot->group = slot->cross;
    return false;
}

static bool level_gather(const comm_journey *j, comm_slot *slot, ty_engine_call *call)
{
    slot->group = slot->local;
    gather_parts(j, slot, j->what->dtype, slot->whole, slot->whole_n, call);
    return true;
}

static const comm_stage level_stages[] = {{level_scatter}, {level_sum},    {plain_sum},
                                          {plain_end},     {level_gather}, {NULL}};
static const comm_stage level_wired_stages[] = {
    {level_scatter}, {level_sum}, {ordered_scatter}, {ordered_gather}, {ordered_end}, {level_gather}, {NULL}};

/* --- kinds whose pieces are stretches of each rank's part --- */

/* Elements of part r in the slot's piece. */
static int64_t stretch(const comm_journey *j, const comm_slot *slot, int r)
{
    int64_t left = j->start[r + 1] - j->start[r] - slot->index * j->piece;
    return left < 0 ? 0 : min_of(left, j->piece);
}

/* Counts and offsets of all parts' stretches, as they lie in the whole, into counts[0] and counts[1]. */
static void stretches(const comm_journey *j, comm_slot *slot)
{
    for (int r = 0; r < j->c->size; r++) {
        slot->counts[0][r] = stretch(j, slot, r);
        slot->counts[1][r] = slot->counts[0][r] ? j->start[r] + slot->index * j->piece : 0;
    }
}

/* Parts' stretches through the wire's type, one after the other in slot->sent. */
static void narrow_stretches(const comm_journey *j, comm_slot *slot)
{
    int64_t at = 0;
    for (int r = 0; r < j->c->size; r++) {
        ty_wire_narrow(j->travels, (const float *)j->in + slot->counts[1][r], wire_scale(j),
                       (uint16_t *)slot->sent + at, slot->counts[0][r]);
        slot->counts[1][r] = at;
        at += slot->counts[0][r];
    }
}

static bool scatter_exchange(const comm_journey *j, comm_slot *slot, ty_engine_call *call)
{
    stretches(j, slot);
    if (is_wired(j))
        narrow_stretches(j, slot);
    exchange(j, slot, j->travels, is_wired(j) ? slot->sent : j->in, slot->counts[0][j->c->rank], call);
    return true;
}

static bool scatter_sum(const comm_journey *j, comm_slot *slot, ty_engine_call *call)
{
    (void)call;
    add_up(j, slot, j->travels, reduce_after(j), stretch(j, slot, j->c->rank), j->what->dtype,
           j->out + slot->index * j->piece * elem_bytes(j));
    return false;
}

static const comm_stage scatter_stages[] = {{scatter_exchange}, {scatter_sum}, {NULL}};

static bool gather_all(const comm_journey *j, comm_slot *slot, ty_engine_call *call)
{
    int64_t bytes = elem_bytes(j);
    bool in_place = j->in == j->out + j->start[j->c->rank] * bytes;
    stretches(j, slot);
    *call = (ty_engine_call){.kind = TY_ENGINE_ALL_GATHER,
                             .elem_bytes = (int)bytes,
                             .in = in_place ? NULL : j->in + slot->index * j->piece * bytes,
                             .out = j->out,
                             .out_counts = slot->counts[0],
                             .out_offsets = slot->counts[1]};
    return true;
}

static const comm_stage gather_stages[] = {{gather_all}, {NULL}};

/* --- the others --- */

static bool send_all(const comm_journey *j, comm_slot *slot, ty_engine_call *call)
{
    *call = (ty_engine_call){.kind = TY_ENGINE_BROADCAST,
                             .elem_bytes = (int)elem_bytes(j),
                             .out = slot->out,
                             .n = slot->n,
                             .root = j->what->root};
    return true;
}

static const comm_stage broadcast_stages[] = {{send_all}, {NULL}};

/* Counts of all_to_all: those given, or even ones. */
static void all_to_all_counts(const comm_journey *j, const int64_t *given, int64_t *counts, int64_t *offsets)
{
    int64_t at = 0;
    for (int r = 0; r < j->c->size; r++) {
        counts[r] = given ? given[r] : j->what->n / j->c->size;
        offsets[r] = at;
        at += counts[r];
    }
}

static bool swap_all(const comm_journey *j, comm_slot *slot, ty_engine_call *call)
{
    all_to_all_counts(j, j->what->counts, slot->counts[0], slot->counts[1]);
    all_to_all_counts(j, j->what->from_counts, slot->counts[2], slot->counts[3]);
    *call = (ty_engine_call){.kind = TY_ENGINE_ALL_TO_ALL,
                             .elem_bytes = (int)elem_bytes(j),
                             .in = j->in,
                             .out = j->out,
                             .in_counts = slot->counts[0],
                             .in_offsets = slot->counts[1],
                             .out_counts = slot->counts[2],
                             .out_offsets = slot->counts[3]};
    return true;
}

static const comm_stage swap_stages[] = {{swap_all}, {NULL}};

static bool meet_all(const comm_journey *j, comm_slot *slot, ty_engine_call *call)
{
    (void)j, (void)slot;
    *call = (ty_engine_call){.kind = TY_ENGINE_BARRIER, .elem_bytes = 1};
    return true;
}

static const comm_stage barrier_stages[] = {{meet_all}, {NULL}};

static const comm_stage *const stages_of[TY_N_COLLECTIVES] = {
    [TY_REDUCE_SCATTER] = scatter_stages, [TY_ALL_GATHER] = gather_stages, [TY_BROADCAST] = broadcast_stages,
    [TY_ALL_TO_ALL] = swap_stages,        [TY_BARRIER] = barrier_stages,
};

/* In all, of all ranks: less than a round trip costs on most networks. */
enum { SMALL_BYTES = 32 << 10 };

static bool is_small(const comm_journey *j)
{
    return j->what->n * j->c->size <= min_of(SMALL_BYTES, j->c->options.piece_bytes) / elem_bytes(j);
}

const comm_stage *ty_comm_stages(const comm_journey *j)
{
    if (j->what->kind != TY_ALL_REDUCE)
        return stages_of[j->what->kind];
    bool half = j->what->dtype == TY_F16 || j->what->dtype == TY_BF16, ours = j->c->engine->goes_on;
    if (ty_comm_has_levels(j->c) && !half)
        return is_wired(j) || ours ? level_wired_stages : level_stages;
    if (half || is_wired(j))
        return ordered_stages;
    if ((!j->c->options.rank_order && !ours) || j->c->size == 1)
        return plain_stages;
    return is_small(j) ? small_stages : ordered_stages;
}
