/* exchange.c - which calls a planned program exchanges by, and their text. See exchange.h. */
#include "compiler/exchange.h"

#include "compiler/ops/op.h"
#include "compiler/ops/work.h"
#include "compiler/program.h"

#include <inttypes.h>

static const char *const exchange_texts[TY_N_EXCHANGE_KINDS] = {
    [TY_EXCHANGE_SUM] = "sum", [TY_EXCHANGE_GATHER] = "gather"};

const char *ty_exchange_text(ty_exchange_kind kind)
{
    return exchange_texts[kind];
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

/* The node of the unit at a position of the plan, or TY_NONE if that is no exchange. */
static uint32_t exchange_at(const ty_plan *plan, int at)
{
    const ty_unit *u = &plan->f->unit[plan->order[at]];
    bool is_one = u->kind == TY_UNIT_LIBRARY && ty_op_work(ty_graph_op(plan->f->g, u->node)) == TY_WORK_EXCHANGE;
    return is_one ? u->node : TY_NONE;
}

static void exchange_add(ty_program *p, ty_run run, uint32_t node)
{
    const ty_type *in = ty_graph_type(p->graph, ty_graph_in(p->graph, node, 0));
    p->exchanges[p->n_exchanges++] = (ty_exchange_call){
        .kind = ty_graph_op(p->graph, node) == TY_OP_ALL_GATHER ? TY_EXCHANGE_GATHER : TY_EXCHANGE_SUM,
        .dtype = (ty_dtype)in->dtype,
        .elems = ty_type_elems(in),
        .run = run,
        .gradients = ty_graph_attr(p->graph, node)->flags & TY_OF_GRADIENTS,
        .name = exchange_name(p, node)};
}

void ty_program_list_exchanges(ty_program *p)
{
    int n = 0;
    for (int run = 0; run < TY_N_RUNS; run++)
        for (int at = 0; p->plan[run] && at < p->plan[run]->n_order; at++)
            n += exchange_at(p->plan[run], at) != TY_NONE;
    p->exchanges = TY_NEW_ARRAY(&p->arena, ty_exchange_call, n + 1);
    for (int run = 0; run < TY_N_RUNS; run++)
        for (int at = 0; p->plan[run] && at < p->plan[run]->n_order; at++)
            if (exchange_at(p->plan[run], at) != TY_NONE)
                exchange_add(p, (ty_run)run, exchange_at(p->plan[run], at));
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

static void schedule_run(const ty_program *p, int run, int *call, ty_buf *out)
{
    static const char *const runs[TY_N_RUNS] = {"micro", "last", "eval"};
    const ty_plan *plan = p->plan[run];
    for (int at = 0; plan && at < plan->n_order; at++) {
        uint32_t node = exchange_at(plan, at);
        if (node == TY_NONE)
            continue;
        const ty_exchange_call *c = &p->exchanges[*call];
        ty_buf_addf(out, "%d %s %s %s[%" PRId64 "] %s%s\n", (*call)++, runs[run], ty_exchange_text(c->kind),
                    ty_dtype_text(c->dtype), c->elems, c->gradients ? "may be rounded: " : "", c->name);
        schedule_tensors(p, node, out);
    }
}

int ty_program_schedule(const ty_program *p, ty_buf *out, ty_error *err)
{
    int call = 0;
    ty_buf_addf(out, "%d replicas, %d calls\n", p->replicas, p->n_exchanges);
    for (int run = 0; run < TY_N_RUNS; run++)
        schedule_run(p, run, &call, out);
    return out->failed ? ty_error_set(err, TY_E_LIMIT, "the schedule of exchanges is too long") : 0;
}
