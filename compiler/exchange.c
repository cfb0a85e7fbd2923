/* exchange.c - which calls a planned program exchanges by, and their text. See exchange.h. */
#include "compiler/exchange.h"

#include "compiler/ops/op.h"
#include "compiler/program.h"
#include "compiler/target/halves.h"
#include "compiler/target/pending.h"

#include <inttypes.h>
#include <string.h>

static const char *const exchange_texts[TY_N_EXCHANGE_KINDS] = {
    [TY_EXCHANGE_SUM] = "sum", [TY_EXCHANGE_GATHER] = "gather", [TY_EXCHANGE_PART] = "part"};

const char *ty_exchange_text(ty_exchange_kind kind)
{
    return exchange_texts[kind];
}

/* ---- what a program is given ---- */

/* All replicas have the same numbers: all refuse, or none. */
static int exchange_check_groups(const ty_program *p, const ty_compile_options *opt, ty_error *err)
{
    int inside = opt->cross_inside > 0 ? opt->cross_inside : p->replicas / 2;
    if (opt->cross_device != TY_CROSS_HIERARCHICAL || (inside > 0 && p->replicas % inside == 0))
        return 0;
    ty_error_set(err, TY_E_CONFIG,
                 "cross_device: hierarchical_copy is for groups of equal size, found %d ranks and %d in each",
                 p->replicas, inside);
    return ty_error_help(err, "use nccl or reduction_to_one_device, or one rank less");
}

static int exchange_check(const ty_program *p, const ty_compile_options *opt, ty_error *err)
{
    if (!opt->exchange) {
        ty_error_set(err, TY_E_UNSUPPORTED, "replicas: %d on the CPU, and nothing that they exchange by", p->replicas);
        return ty_error_help(err, "train with several processes, on GPUs, or with one replica");
    }
    if (opt->backend == TY_BACKEND_INTERPRETER)
        return ty_error_set(err, TY_E_UNSUPPORTED, "replicas: %d in the interpreter, which knows one", p->replicas);
    if (opt->backend == TY_BACKEND_CUDA && !opt->exchange->meet)
        return ty_error_set(err, TY_E_UNSUPPORTED, "replicas: %d on GPUs, and no way to find each other", p->replicas);
    if (opt->exchange->replica < 0 || opt->exchange->replica >= p->replicas)
        return ty_error_set(err, TY_E_RANGE, "replicas: number %d of %d", opt->exchange->replica, p->replicas);
    return opt->backend == TY_BACKEND_CUDA ? exchange_check_groups(p, opt, err) : 0;
}

/* Calls between replicas need replicas, unless one speaks for all. */
static int exchange_check_replicas(const ty_program *p, const ty_compile_options *opt, ty_error *err)
{
    bool runs = !opt->plan_only && !opt->stop_after, alone = opt->backend == TY_BACKEND_CUDA && !opt->exchange;
    int n_gpus = opt->gpus ? opt->n_gpus : 1;
    if (runs && alone && n_gpus != p->replicas)
        return ty_error_set(err, TY_E_CONFIG, "replicas: %d on %d GPUs, each of which runs one", p->replicas, n_gpus);
    if (!runs || p->replicas == 1 || opt->replicas_alike || alone)
        return 0;
    return exchange_check(p, opt, err);
}

/* What failed counts as in flight: nobody knows how far it came. */
static int exchange_begin(void *ctx, int call, const void *in, void *out, ty_error *err)
{
    ty_program *p = ctx;
    p->n_in_flight++;
    return p->given_exchange.begin(p->given_exchange.ctx, p->first_exchange + call, in, out, err);
}

static int exchange_wait(void *ctx, int call, ty_error *err)
{
    ty_program *p = ctx;
    if (p->given_exchange.wait(p->given_exchange.ctx, p->first_exchange + call, err) < 0)
        return -1;
    p->n_in_flight--;
    return 0;
}

int ty_program_take_exchange(ty_program *p, const ty_compile_options *opt, ty_error *err)
{
    if (p->replicas > 1 && opt->exchange && !opt->replicas_alike && opt->backend != TY_BACKEND_INTERPRETER) {
        p->given_exchange = *opt->exchange;
        p->exchange = (ty_exchange){.ctx = p,
                                    .replica = opt->exchange->replica,
                                    .begin = opt->exchange->begin ? exchange_begin : NULL,
                                    .wait = exchange_wait};
        p->replica = opt->exchange->replica;
    }
    return exchange_check_replicas(p, opt, err);
}

/* ---- the list ---- */

/* The tensors whose gradients a node adds up: segments first .. end - 1 of a state; NULL if there are none. */
static const ty_state *exchange_tensors(const ty_graph *g, uint32_t node, int *first, int *end)
{
    const ty_attr *attr = ty_graph_attr(g, node);
    *first = *end = 0;
    if (!(attr->flags & TY_OF_GRADIENTS) || attr->n == 0)
        return NULL;
    const ty_state *state = ty_graph_state(g, (int)attr->index);
    while (*first < state->n_segments && state->segments[*first].offset < attr->lo[0])
        ++*first;
    for (*end = *first; *end < state->n_segments && state->segments[*end].offset < attr->hi[0];)
        ++*end;
    return *first < *end ? state : NULL;
}

static const char *exchange_name(ty_program *p, uint32_t node)
{
    int first, end;
    const ty_state *state = exchange_tensors(p->graph, node, &first, &end);
    if (!state)
        return ty_graph_origin_of(p->graph, node);
    const char *name = state->segments[first].name, *last = state->segments[end - 1].name;
    return end - first == 1 ? ty_arena_printf(&p->arena, "gradient of %s", name)
                            : ty_arena_printf(&p->arena, "gradients of %s .. %s", name, last);
}

static void exchange_add(ty_program *p, ty_run run, const ty_begin *b)
{
    uint32_t node = p->plan[run]->f->unit[p->plan[run]->order[b->unit]].node;
    p->exchange_node[p->n_exchanges] = node;
    p->exchanges[p->n_exchanges++] =
        (ty_exchange_call){.kind = ty_pending_kind(p->graph, node),
                           .dtype = (ty_dtype)ty_graph_type(p->graph, ty_graph_in(p->graph, node, 0))->dtype,
                           .elems = b->end - b->first,
                           .first = b->first,
                           .run = run,
                           .gradients = ty_graph_attr(p->graph, node)->flags & TY_OF_GRADIENTS,
                           .name = exchange_name(p, node)};
}

/* One for each piece that replicas have parts of. */
static void exchange_add_parts(ty_program *p, const ty_step_parts *parts)
{
    for (int i = 0; i < parts->shards->n; i++)
        if (!parts->shards->piece[i].whole)
            p->exchanges[p->n_exchanges++] = (ty_exchange_call){.kind = TY_EXCHANGE_GATHER,
                                                                .dtype = TY_F32,
                                                                .elems = parts->shards->piece[i].elems,
                                                                .run = TY_N_RUNS,
                                                                .name = ty_graph_state(p->graph, parts->state)->name};
}

void ty_program_list_exchanges(ty_program *p)
{
    int n = 0;
    for (int run = 0; run < TY_N_RUNS; run++) {
        if (!p->plan[run])
            continue;
        ty_begins *b = &p->begins[p->plan_of[run]];
        if (!b->list)
            *b = ty_begins_of(p->plan[run], &p->arena);
        n += b->n;
    }
    for (int i = 0; i < p->n_parts; i++)
        n += p->parts[i].shards->n;
    p->exchanges = TY_NEW_ARRAY(&p->arena, ty_exchange_call, n + 1);
    p->exchange_node = TY_NEW_ARRAY(&p->arena, uint32_t, n + 1);
    p->n_exchanges = 0;
    for (int run = 0; run < TY_N_RUNS; run++)
        for (int i = 0; p->plan[run] && i < p->begins[p->plan_of[run]].n; i++)
            exchange_add(p, (ty_run)run, &p->begins[p->plan_of[run]].list[i]);
    for (int i = 0; i < p->n_parts; i++)
        exchange_add_parts(p, &p->parts[i]);
}

const ty_exchange_call *ty_program_exchanges(const ty_program *p, int *n)
{
    *n = p->n_exchanges;
    return p->exchanges;
}

/* ---- the text ---- */

static void schedule_tensors(const ty_program *p, uint32_t node, ty_buf *out)
{
    int first, end;
    char type[160];
    const ty_state *state = exchange_tensors(p->graph, node, &first, &end);
    for (int i = first; state && i < end; i++)
        ty_buf_addf(out, "    %s %s at %" PRId64 "\n", state->segments[i].name,
                    ty_type_text(&state->segments[i].type, type, sizeof type),
                    state->segments[i].offset - ty_graph_attr(p->graph, node)->lo[0]);
}

static void schedule_call(const ty_program *p, int call, ty_buf *out)
{
    static const char *const runs[TY_N_RUNS + 1] = {"micro", "last", "eval", "rows", "whole"};
    const ty_exchange_call *c = &p->exchanges[call];
    ty_buf_addf(out, "%d %s %s %s[%" PRId64 "] %s%s", call, runs[c->run], ty_exchange_text(c->kind),
                ty_dtype_text(c->dtype), c->elems, c->gradients ? "may be rounded: " : "", c->name);
    if (c->first)
        ty_buf_addf(out, ", from element %" PRId64, c->first);
    ty_buf_addf(out, "\n");
    if (c->run != TY_N_RUNS && c->first == 0)
        schedule_tensors(p, p->exchange_node[call], out);
}

int ty_program_schedule(const ty_program *p, ty_buf *out, ty_error *err)
{
    ty_buf_addf(out, "%d replicas, %d calls\n", p->replicas, p->n_exchanges);
    for (int call = 0; call < p->n_exchanges; call++)
        schedule_call(p, call, out);
    return out->failed ? ty_error_set(err, TY_E_LIMIT, "the schedule of exchanges is too long") : 0;
}

/* ---- parts ---- */

/* The number in the list of parts, or -1. */
static int parts_number(const ty_program *p, int state)
{
    for (int i = 0; i < p->n_parts; i++)
        if (p->parts[i].state == state)
            return i;
    return -1;
}

int64_t ty_program_whole_elems(const ty_program *p, int state)
{
    int i = parts_number(p, state);
    return i < 0 ? 0 : p->parts[i].elems;
}

/* The call that gathers the first piece of a state. */
static int parts_first_call(const ty_program *p, int number)
{
    int call = 0;
    while (call < p->n_exchanges && p->exchanges[call].run != TY_N_RUNS)
        call++;
    for (int i = 0; i < number; i++)
        for (int k = 0; k < p->parts[i].shards->n; k++)
            call += !p->parts[i].shards->piece[k].whole;
    return call;
}

int ty_program_divide(ty_program *p, ty_error *err)
{
    for (int i = 0; p->cuda && i < p->n_parts; i++)
        if (ty_mirror_divide(p->cuda, p->parts[i].state, err) < 0)
            return -1;
    return 0;
}

/* Replicas that are GPUs of this process. */
static bool parts_are_here(const ty_program *p)
{
    return p->cuda && ty_mirror_n(p->cuda) > 1;
}

/* A piece of a state's whole, and where a replica of this process keeps its part of it. */
static float *parts_at(const ty_program *p, int number, const ty_shard_piece *piece, int replica)
{
    int state = p->parts[number].state;
    float *own = parts_are_here(p) ? ty_mirror_state(p->cuda, replica, state) : p->state[state];
    return own + piece->at;
}

static void parts_put_together(const ty_program *p, int number, float *whole)
{
    const ty_shards *s = p->parts[number].shards;
    for (int i = 0; i < s->n; i++)
        for (int r = 0; r < (s->piece[i].whole ? 1 : p->replicas); r++)
            memcpy(whole + s->piece[i].lo + r * s->piece[i].elems, parts_at(p, number, &s->piece[i], r),
                   sizeof *whole * (size_t)s->piece[i].elems);
}

/* Between processes, piece by piece. */
static int parts_exchange(ty_program *p, int number, float *whole, ty_error *err)
{
    const ty_shards *s = p->parts[number].shards;
    int call = parts_first_call(p, number);
    for (int i = 0; i < s->n; i++) {
        const ty_shard_piece *piece = &s->piece[i];
        const float *own = parts_at(p, number, piece, 0);
        float *to = whole + piece->lo;
        if (piece->whole) {
            memcpy(to, own, sizeof *own * (size_t)piece->elems);
            continue;
        }
        if (p->exchange.begin(p->exchange.ctx, call, own, to, err) < 0 ||
            p->exchange.wait(p->exchange.ctx, call, err) < 0)
            return ty_error_wrap(err, "state \"%s\"", ty_graph_state(p->graph, p->parts[number].state)->name);
        call++;
    }
    return 0;
}

int ty_program_gather_state(ty_program *p, int state, void *whole, ty_error *err)
{
    int number = parts_number(p, state);
    if (number < 0 || !(p->exchange.begin || parts_are_here(p)))
        return ty_error_set(err, TY_E_INTERNAL, "state %d has no parts on other replicas", state);
    if (ty_program_fetch_states(p, err) < 0)
        return -1;
    if (!parts_are_here(p))
        return parts_exchange(p, number, whole, err);
    parts_put_together(p, number, whole);
    return 0;
}

static void parts_take(const ty_program *p, int number, int replica, int here, const float *whole)
{
    const ty_shards *s = p->parts[number].shards;
    for (int i = 0; i < s->n; i++) {
        const ty_shard_piece *piece = &s->piece[i];
        const float *from = whole + piece->lo + (piece->whole ? 0 : replica * piece->elems);
        memcpy(parts_at(p, number, piece, here), from, sizeof *from * (size_t)piece->elems);
    }
}

void ty_program_take_part(ty_program *p, int state, const void *whole)
{
    int number = parts_number(p, state), n = parts_are_here(p) ? p->replicas : 1;
    for (int i = 0; number >= 0 && i < n; i++)
        parts_take(p, number, (int)p->replica + i, i, whole);
}
