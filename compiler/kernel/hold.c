/* hold.c - see hold.h. */
#include "compiler/kernel/hold.h"

#include "compiler/kernel/keep.h"
#include "compiler/ops/op.h"

#include <string.h>

enum { HOLD_CHEAP = 8, HOLD_DEAR = 1000, HOLD_SHARED = 2 };

typedef struct hold_state {
    const ty_kernel *k;
    const uint32_t *first; /* by instruction: the first that computes the same */
    uint32_t *earliest;    /* by such a first one: the one of the earliest stage */
    uint64_t inner;        /* variables inside a row */
    ty_khold out;
} hold_state;

static bool hold_in_row(const hold_state *h, uint32_t i)
{
    return h->k->instr[i].vars & h->inner;
}

static void hold_find_earliest(hold_state *h)
{
    for (uint32_t i = 0; i < h->k->n_instrs; i++) {
        uint32_t *best = &h->earliest[h->first[i]];
        if (*best == TY_NONE || h->k->instr[i].stage < h->k->instr[*best].stage)
            *best = i;
    }
}

static int hold_cost(const hold_state *h, uint32_t i);

static int hold_cost_of_index(const hold_state *h, ty_ix ix)
{
    const ty_ix_node *node = ty_ix_at(&h->k->ix, ix);
    return node->data ? HOLD_DEAR : 1;
}

/* Operations from what is there to instruction i; more than HOLD_CHEAP if it is far. */
static int hold_cost(const hold_state *h, uint32_t i)
{
    if (i == TY_NONE || !hold_in_row(h, i) || h->out.held[h->earliest[h->first[i]]])
        return 0;
    const ty_kinstr *instr = &h->k->instr[i];
    if (instr->kop == TY_K_LOAD)
        return instr->guard == TY_NONE && !(instr->vars & ~h->inner) ? HOLD_SHARED : HOLD_DEAR;
    if (instr->kop != TY_K_OP)
        return hold_cost_of_index(h, instr->addr);
    int weight = ty_op_row_of(instr->op)->weight, sum = weight > 1 ? weight : 1;
    const uint32_t operand[] = {instr->a, instr->b, instr->c};
    for (int o = 0; o < 3 && sum <= HOLD_CHEAP; o++)
        sum += hold_cost(h, operand[o]);
    return sum;
}

static void hold_need(hold_state *h, uint32_t i);

static void hold_need_address(hold_state *h, ty_ix ix)
{
    const ty_ix_node *node = ty_ix_at(&h->k->ix, ix);
    for (int t = 0; t < node->n_terms; t++) {
        const ty_atom *atom = &h->k->ix.atom[node->term[t].atom];
        if (atom->kind == TY_ATOM_DATA)
            hold_need(h, atom->arg);
        else if (atom->kind != TY_ATOM_VAR)
            hold_need_address(h, atom->arg);
    }
}

/* Is it there from an earlier stage, or worth being held from then on? */
static bool hold_takes(hold_state *h, uint32_t i)
{
    uint32_t there = h->earliest[h->first[i]];
    bool earlier = hold_in_row(h, i) && h->k->instr[there].stage < h->k->instr[i].stage && h->out.needed[there];
    if (!earlier || h->k->instr[i].kop == TY_K_CONST || (!h->out.held[there] && hold_cost(h, i) <= HOLD_CHEAP))
        return false;
    h->out.n += !h->out.held[there];
    h->out.held[there] = 1;
    h->out.from[i] = there;
    return true;
}

static void hold_need(hold_state *h, uint32_t i)
{
    if (i == TY_NONE || h->out.needed[i])
        return;
    const ty_kinstr *instr = &h->k->instr[i];
    h->out.needed[i] = 1;
    if (!(instr->stage & 1) && hold_takes(h, i))
        return;
    hold_need(h, instr->a);
    hold_need(h, instr->b);
    hold_need(h, instr->c);
    hold_need(h, instr->guard);
    if (instr->kop == TY_K_LOAD || instr->kop == TY_K_INDEX || instr->kop == TY_K_INSIDE)
        hold_need_address(h, instr->addr);
}

static void hold_stage(hold_state *h, int stage)
{
    const ty_kernel *k = h->k;
    for (int i = 0; i < k->n_reductions; i++)
        if (k->reduction[i].stage == stage)
            hold_need(h, k->reduction[i].value);
    for (int i = 0; i < k->n_stores; i++) {
        if (k->store[i].stage != stage)
            continue;
        hold_need(h, k->store[i].value);
        hold_need(h, k->store[i].guard);
        hold_need_address(h, k->store[i].addr);
    }
}

ty_khold ty_kernel_hold(const ty_kernel *k, ty_arena *arena)
{
    hold_state h = {.k = k,
                    .earliest = TY_NEW_ARRAY(arena, uint32_t, k->n_instrs + 1),
                    .out = {.held = TY_NEW_ARRAY(arena, uint8_t, k->n_instrs + 1),
                            .from = TY_NEW_ARRAY(arena, uint32_t, k->n_instrs + 1),
                            .needed = TY_NEW_ARRAY(arena, uint8_t, k->n_instrs + 1)}};
    memset(h.out.from, 0xFF, sizeof *h.out.from * k->n_instrs);
    if (k->form == TY_FORM_COLUMNS || k->n_stages < 3) {
        memset(h.out.needed, 1, k->n_instrs);
        return h.out;
    }
    for (int i = 0; i < k->n_order; i++)
        h.inner |= k->outer >> k->order[i] & 1 ? 0 : 1ull << k->order[i];
    h.first = ty_kernel_firsts(k, arena);
    memset(h.earliest, 0xFF, sizeof *h.earliest * k->n_instrs);
    hold_find_earliest(&h);
    for (int stage = 0; stage < k->n_stages; stage++)
        hold_stage(&h, stage);
    return h.out;
}
