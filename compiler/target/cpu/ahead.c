/* ahead.c - see ahead.h.
 *
 * The text is the kernel's own, some turns later: a block in which loop variables of the same names have other values,
 * so that the address of the row comes out as the kernel will compute it.
 *
 *     { const long n3 = i3 + 16l, n0 = i0 + (n3 >= 39l), ...;  { const long i0 = n0, i3 = ...;
 *       const long v0 = b0[39l * i0 + i3];
 *       for (long i2 = 0; i2 < 32l; i2 += 16) __builtin_prefetch(&b1[i2 + 32l * (long)v0]); } }
 *
 * What is asked for may be no memory at all, if the place is wrong: that is the reader's business, asking cannot fail.
 */
#include "compiler/target/cpu/ahead.h"

#include <stdio.h>

/* Distances from 8 to 24 rows are alike: 0.24 of the time without for rows of 128 bytes at random in 15 MB. */
#define AHEAD_ROWS  16
#define AHEAD_TABLE (1 << 20) /* bytes: smaller ones stay in a cache */
#define AHEAD_BYTES 512       /* of a row: the rest of a long one is read in order, which hardware sees */
#define AHEAD_LINE  64

enum { AHEAD_MAX_CHAIN = 12 };

typedef struct ahead_chain {
    uint32_t id[AHEAD_MAX_CHAIN]; /* instructions, operands before users */
    int n;
} ahead_chain;

int ty_ahead_depth(const ty_ahead *a, uint64_t vars)
{
    if (a->column >= 0 && vars >> a->column & 1)
        return a->n_inner + 1;
    for (int d = a->n_inner; d > 0; d--)
        if (vars >> a->inner[d - 1] & 1)
            return d;
    return 0;
}

/* All that instruction `id` is computed of, itself last. False if that is much, or more than memory and arithmetic. */
static bool ahead_collect(const ty_kernel *k, uint32_t id, ahead_chain *c)
{
    const ty_kinstr *instr = &k->instr[id];
    const uint32_t operand[] = {instr->kop == TY_K_OP ? instr->a : TY_NONE, instr->kop == TY_K_OP ? instr->b : TY_NONE,
                                instr->kop == TY_K_OP ? instr->c : TY_NONE, instr->guard};
    for (int i = 0; i < c->n; i++)
        if (c->id[i] == id)
            return true;
    if (instr->kop == TY_K_RESULT || (instr->kop != TY_K_OP && ty_ix_at(&k->ix, instr->addr)->data))
        return false;
    for (size_t i = 0; i < sizeof operand / sizeof *operand; i++)
        if (operand[i] != TY_NONE && !ahead_collect(k, operand[i], c))
            return false;
    if (c->n == AHEAD_MAX_CHAIN)
        return false;
    c->id[c->n++] = id;
    return true;
}

/* The instruction that names the row of a load: the one number from memory in its address; TY_NONE: there is none, or
 * there are several. */
static uint32_t ahead_place(const ty_kernel *k, const ty_kinstr *load)
{
    const ty_ix_node *addr = ty_ix_at(&k->ix, load->addr);
    uint32_t place = TY_NONE;
    for (int i = 0; i < addr->n_terms; i++) {
        const ty_atom *atom = &k->ix.atom[addr->term[i].atom];
        if (!atom->data)
            continue;
        if (atom->kind != TY_ATOM_DATA || place != TY_NONE)
            return TY_NONE;
        place = atom->arg;
    }
    return place;
}

/* The variable whose loop takes a row a turn: of the loop around instructions at this depth, or of the units. The only
 * outer variable in *unit, -1 if there are several. */
static int ahead_step(const ty_ahead *a, int depth, int *unit)
{
    const ty_kernel *k = a->t->k;
    int n = 0;
    *unit = -1;
    for (int i = 0; i < k->n_order; i++)
        if (k->outer >> k->order[i] & 1 && k->order[i] != a->column) {
            *unit = k->order[i];
            n++;
        }
    if (n != 1)
        *unit = -1;
    return depth > 0 ? a->inner[depth - 1] : *unit;
}

/* Whether units are counted by *unit alone, so that the next one is the next number. */
static bool ahead_unit_is_row(const ty_ahead *a)
{
    return a->column < 0 || a->t->k->extent[a->column] <= TY_COLUMN_BLOCK;
}

/* Opens the block in which variables stand some rows ahead. */
static void ahead_open(const ty_ahead *a, int depth, int step, int unit)
{
    long extent = (long)a->t->k->extent[step], rows = extent < AHEAD_ROWS ? extent : AHEAD_ROWS;
    if (depth == 0) {
        ty_ktext_linef(a->t, "if (i%d + %dl < %ldl) { const long n%d = i%d + %dl; { const long i%d = n%d;\n", step,
                       AHEAD_ROWS, extent, step, step, AHEAD_ROWS, step, step);
        return;
    }
    if (depth == 1 && unit >= 0 && ahead_unit_is_row(a)) { /* the last rows of a unit look into the next one */
        ty_ktext_linef(a->t, "{ const long m = i%d + %ldl, n%d = m < %ldl ? m : m - %ldl;\n", step, rows, step, extent,
                       extent);
        ty_ktext_linef(a->t, "const long n%d = m < %ldl || i%d + 1 == %ldl ? i%d : i%d + 1;\n", unit, extent, unit,
                       (long)a->t->k->extent[unit], unit, unit);
        ty_ktext_linef(a->t, "{ const long i%d = n%d, i%d = n%d; (void)i%d;\n", step, step, unit, unit, unit);
        return;
    }
    ty_ktext_linef(a->t, "if (i%d + %ldl < %ldl) { const long n%d = i%d + %ldl; { const long i%d = n%d;\n", step, rows,
                   extent, step, step, rows, step, step);
}

/* Asks for a row, in a loop over the variable along which it is contiguous. */
static void ahead_ask(const ty_ahead *a, const ty_kinstr *load, int along)
{
    const ty_kernel *k = a->t->k;
    long each = (long)ty_dtype_bytes(load->dtype), n = (long)k->extent[along];
    long most = AHEAD_BYTES / each;
    ty_ktext_linef(a->t, "for (long i%d = 0; i%d < %ldl; i%d += %ld) __builtin_prefetch(&", along, along,
                   n < most ? n : most, along, AHEAD_LINE / each);
    ty_ktext_element(a->t, load->buffer, load->addr);
    ty_buf_adds(a->t->out, ");\n");
}

/* The row of the load is contiguous along a variable of a loop further inside, and no other variable of such a loop
 * chooses it: that variable, else -1. */
static int ahead_along(const ty_ahead *a, const ty_kinstr *load, int depth)
{
    const ty_kernel *k = a->t->k;
    int along = a->column >= 0 ? a->column : a->n_inner ? a->inner[a->n_inner - 1] : -1;
    bool inside = false;
    if (along < 0 || ty_ix_coef(&k->ix, load->addr, (uint32_t)along, &inside) != 1 || inside)
        return -1;
    for (int d = depth; d < a->n_inner; d++)
        if (a->inner[d] != along && load->vars >> a->inner[d] & 1)
            return -1;
    return along;
}

static void ahead_table(const ty_ahead *a, uint32_t id, int depth)
{
    const ty_kernel *k = a->t->k;
    const ty_kinstr *load = &k->instr[id];
    const ty_kbuffer *table = &k->buffer[load->buffer];
    ahead_chain chain = {.n = 0};
    uint32_t place = load->kop == TY_K_LOAD ? ahead_place(k, load) : TY_NONE;
    int unit, along, step = ahead_step(a, depth, &unit);
    if (place == TY_NONE || step < 0 || ty_ahead_depth(a, k->instr[place].vars) != depth ||
        (size_t)table->span_elems * ty_dtype_bytes(table->dtype) < AHEAD_TABLE || table->written ||
        (along = ahead_along(a, load, depth)) < 0 || step == along || !ahead_collect(k, place, &chain))
        return;
    ahead_open(a, depth, step, unit);
    for (int i = 0; i < chain.n; i++)
        ty_ktext_instr(a->t, chain.id[i]);
    ahead_ask(a, load, along);
    ty_ktext_linef(a->t, "} }\n");
}

void ty_ahead_render(const ty_ahead *a, int stage, int depth)
{
    for (uint32_t i = 0; i < a->t->k->n_instrs && depth <= a->n_inner; i++)
        if (a->t->k->instr[i].stage == stage)
            ahead_table(a, i, depth);
}
