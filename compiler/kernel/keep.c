/* keep.c - see keep.h. */
#include "compiler/kernel/keep.h"

#include "compiler/ops/op.h"

#include <string.h>

#define KEEP_MIN_WEIGHT 8            /* of the operation: less is computed as fast as it is read */
#define KEEP_MAX_BYTES  (512 * 1024) /* of a row: it comes back from the second-level cache, not from memory */
#define KEEP_OWN_BYTES  (256 * 1024) /* of a row on the stack */

typedef struct keep_place {
    const ty_kstore *store; /* of the later stage */
    uint32_t early, late;   /* instructions that compute the same */
    int own;                /* variable of the row that is kept apart from the result, or -1 */
} keep_place;

static bool keep_same(const ty_kinstr *a, const ty_kinstr *b, const uint32_t *first)
{
    const uint32_t of_a[4] = {a->a, a->b, a->c, a->guard}, of_b[4] = {b->a, b->b, b->c, b->guard};
    bool same = a->kop == b->kop && a->op == b->op && a->dtype == b->dtype && a->buffer == b->buffer &&
                a->reduction == b->reduction && a->addr == b->addr && a->lo == b->lo && a->hi == b->hi &&
                memcmp(&a->imm, &b->imm, sizeof a->imm) == 0 && a->imm_int == b->imm_int;
    for (int i = 0; i < 4 && same; i++)
        same = of_a[i] == of_b[i] || (of_a[i] != TY_NONE && of_b[i] != TY_NONE && first[of_a[i]] == first[of_b[i]]);
    return same;
}

const uint32_t *ty_kernel_firsts(const ty_kernel *k, ty_arena *arena)
{
    uint32_t *first = TY_NEW_ARRAY(arena, uint32_t, k->n_instrs);
    for (uint32_t i = 0; i < k->n_instrs; i++)
        for (first[i] = 0; first[i] < i && !keep_same(&k->instr[first[i]], &k->instr[i], first);)
            first[i]++;
    return first;
}

/* Does every point of the kernel store an element of its own? *row: elements of a row. */
static bool keep_is_whole(const ty_kernel *k, const ty_kstore *store, size_t *row)
{
    const ty_ix_node *addr = ty_ix_at(&k->ix, store->addr);
    bool whole = store->guard == TY_NONE && !store->row && !addr->data;
    *row = 1;
    for (int i = 0; i < k->n_order; i++) {
        whole &= addr->vars >> k->order[i] & 1;
        *row *= k->outer >> k->order[i] & 1 ? 1 : (size_t)k->extent[k->order[i]];
    }
    return whole;
}

/* The only variable inside a row, or -1. */
static int keep_row_variable(const ty_kernel *k)
{
    int var = -1, n = 0;
    for (int i = 0; i < k->n_order; i++)
        if (!(k->outer >> k->order[i] & 1)) {
            var = k->order[i];
            n++;
        }
    return n == 1 ? var : -1;
}

/* Is there room for a row of numbers, in the result or, where that has 16 bits, beside it? Of the numbers' type. */
static bool keep_has_room(const ty_kernel *k, keep_place *p, ty_dtype *dtype)
{
    size_t row;
    *dtype = k->buffer[p->store->buffer].dtype;
    if (!keep_is_whole(k, p->store, &row) || !ty_dtype_is_float(*dtype))
        return false;
    if (*dtype == TY_F32 || *dtype == TY_F64)
        return row * ty_dtype_bytes(*dtype) <= KEEP_MAX_BYTES;
    *dtype = TY_F32;
    p->own = keep_row_variable(k);
    return p->own >= 0 && row * ty_dtype_bytes(*dtype) <= KEEP_OWN_BYTES;
}

/* The dearest instruction behind the store that an earlier stage has computed. */
static bool keep_find(const ty_kernel *k, const uint32_t *first, ty_dtype dtype, keep_place *p)
{
    uint64_t fastest = 0; /* of the variables inside a row */
    for (int i = 0; i < k->n_order; i++)
        fastest = k->outer >> k->order[i] & 1 ? fastest : 1ull << k->order[i];
    for (uint32_t i = k->n_instrs; i-- > 0;) {
        const ty_kinstr *late = &k->instr[i], *early = &k->instr[first[i]];
        if (late->stage != p->store->stage || early->stage >= late->stage || early->stage & 1 || late->kop != TY_K_OP)
            continue;
        if (ty_op_row_of(late->op)->weight < KEEP_MIN_WEIGHT || !(late->vars & fastest) || late->dtype != dtype)
            continue;
        p->early = first[i];
        p->late = i;
        return true;
    }
    return false;
}

static void keep_need(uint8_t *needed, uint32_t instr)
{
    if (instr != TY_NONE)
        needed[instr] = 1;
}

static void keep_need_address(const ty_kernel *k, uint8_t *needed, ty_ix ix)
{
    const ty_ix_node *node = ty_ix_at(&k->ix, ix);
    for (int i = 0; i < node->n_terms; i++) {
        const ty_atom *atom = &k->ix.atom[node->term[i].atom];
        if (atom->kind == TY_ATOM_DATA)
            keep_need(needed, atom->arg);
        else if (atom->kind != TY_ATOM_VAR)
            keep_need_address(k, needed, atom->arg);
    }
}

/* By instruction: do stores or reductions need it? */
static const uint8_t *keep_needed(const ty_kernel *k, ty_arena *arena)
{
    uint8_t *needed = TY_NEW_ARRAY(arena, uint8_t, k->n_instrs);
    for (int i = 0; i < k->n_stores; i++) {
        keep_need(needed, k->store[i].value);
        keep_need(needed, k->store[i].guard);
        keep_need_address(k, needed, k->store[i].addr);
    }
    for (int i = 0; i < k->n_reductions; i++)
        keep_need(needed, k->reduction[i].value);
    for (uint32_t i = k->n_instrs; i-- > 0;) {
        const ty_kinstr *instr = &k->instr[i];
        if (!needed[i])
            continue;
        keep_need(needed, instr->a);
        keep_need(needed, instr->b);
        keep_need(needed, instr->c);
        keep_need(needed, instr->guard);
        if (instr->kop == TY_K_LOAD || instr->kop == TY_K_INDEX || instr->kop == TY_K_INSIDE)
            keep_need_address(k, needed, instr->addr);
    }
    return needed;
}

/* Is the place free from the early stage on? There, what lies under the result may be read at the same element; behind
 * it, nothing but the number may be. */
static bool keep_is_free(const ty_kernel *k, const uint32_t *alias, const keep_place *p, const uint8_t *needed)
{
    uint32_t memory = alias[p->store->buffer];
    int from = k->instr[p->early].stage;
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        const ty_kinstr *load = &k->instr[i];
        if (load->kop != TY_K_LOAD || alias[load->buffer] != memory || !needed[i] || load->stage < from || i == p->late)
            continue;
        bool there = load->stage == from && load->addr == p->store->addr && load->guard == TY_NONE &&
                     ty_dtype_bytes(load->dtype) == ty_dtype_bytes(k->buffer[p->store->buffer].dtype);
        if (!there)
            return false;
    }
    int n = 0;
    for (int i = 0; i < k->n_stores; i++)
        n += alias[k->store[i].buffer] == memory;
    return n == 2; /* the number and the result */
}

/* A row of a thread's own, and the address of an element in it. The kernel's pool stays as it is. */
static uint32_t keep_own_row(const ty_kernel *k, int var, ty_arena *arena, ty_kernel *out, ty_ix *addr)
{
    out->buffer = TY_NEW_ARRAY(arena, ty_kbuffer, k->n_buffers + 1);
    memcpy(out->buffer, k->buffer, sizeof *k->buffer * (size_t)k->n_buffers);
    out->buffer[k->n_buffers] =
        (ty_kbuffer){.val = TY_NONE, .dtype = TY_F32, .written = true, .own = true, .span_elems = k->extent[var]};
    out->n_buffers = out->cap_buffers = k->n_buffers + 1;
    ty_ix_copy(&k->ix, arena, &out->ix);
    *addr = ty_ix_var(&out->ix, (uint32_t)var, k->extent[var]);
    return (uint32_t)k->n_buffers;
}

static void keep_apply(const ty_kernel *k, const keep_place *p, ty_arena *arena, ty_kernel *out)
{
    uint32_t buffer = p->store->buffer;
    ty_ix addr = p->store->addr;
    *out = *k;
    if (p->own >= 0)
        buffer = keep_own_row(k, p->own, arena, out, &addr);
    out->instr = ty_arena_copy(arena, k->instr, sizeof *k->instr * k->n_instrs);
    out->store = TY_NEW_ARRAY(arena, ty_kstore, k->n_stores + 1);
    memcpy(out->store, k->store, sizeof *k->store * (size_t)k->n_stores);
    out->store[out->n_stores++] = (ty_kstore){
        .buffer = buffer, .value = p->early, .guard = TY_NONE, .addr = addr, .stage = k->instr[p->early].stage};
    ty_kinstr *late = &out->instr[p->late];
    late->kop = TY_K_LOAD;
    late->a = late->b = late->c = TY_NONE;
    late->buffer = buffer;
    late->addr = addr;
    late->vars = ty_ix_at(&out->ix, addr)->vars;
}

static bool keep_at(const ty_kernel *k, const uint32_t *alias, const uint32_t *first, int store, ty_arena *arena,
                    ty_kernel *out)
{
    keep_place p = {.store = &k->store[store], .own = -1};
    ty_dtype dtype;
    if (!keep_has_room(k, &p, &dtype) || !keep_find(k, first, dtype, &p))
        return false;
    keep_apply(k, &p, arena, out);
    const uint8_t *needed = keep_needed(out, arena);
    if (p.own < 0 && !keep_is_free(out, alias, &p, needed))
        return false;
    for (uint32_t i = 0; i < out->n_instrs; i++)
        out->instr[i].stage = needed[i] ? out->instr[i].stage : -1;
    return true;
}

bool ty_kernel_keep(const ty_kernel *k, const uint32_t *alias, ty_arena *arena, ty_kernel *out)
{
    if (k->form != TY_FORM_ROWS || k->n_stages < 3 || k->n_order == 0)
        return false;
    const uint32_t *first = ty_kernel_firsts(k, arena);
    for (int i = 0; i < k->n_stores; i++)
        if (keep_at(k, alias, first, i, arena, out))
            return true;
    return false;
}
