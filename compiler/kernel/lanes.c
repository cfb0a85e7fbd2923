/* lanes.c - see lanes.h. */
#include "compiler/kernel/lanes.h"

#include <stdlib.h>

enum { LANES_BYTES = 16 };

static int64_t lanes_gcd(int64_t a, int64_t b)
{
    a = llabs(a), b = llabs(b);
    while (b) {
        int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

/* Do the points stay between two multiples of d? They begin at a multiple of unit. */
static bool lanes_within(const ty_lanes *l, ty_lane_ix at, int64_t d)
{
    return at.known && (at.step == 0 || (at.step > 0 && at.step * (l->width - 1) < lanes_gcd(at.unit, d)));
}

static ty_lane_ix lanes_atom(const ty_lanes *l, const ty_atom *atom)
{
    const ty_lane_ix same = {true, 0, 1};
    if (atom->kind == TY_ATOM_VAR)
        return (int)atom->arg == l->var ? (ty_lane_ix){true, 1, l->anywhere ? 1 : l->width} : same;
    if (atom->kind == TY_ATOM_DATA)
        return l->same[atom->arg] ? same : (ty_lane_ix){.known = false};
    ty_lane_ix arg = ty_lanes_ix(l, atom->arg, 0);
    if (!lanes_within(l, arg, atom->d))
        return (ty_lane_ix){.known = false};
    return atom->kind == TY_ATOM_DIV ? same : (ty_lane_ix){true, arg.step, lanes_gcd(arg.unit, atom->d)};
}

ty_lane_ix ty_lanes_ix(const ty_lanes *l, ty_ix ix, int64_t less)
{
    const ty_ix_node *node = ty_ix_at(&l->k->ix, ix);
    ty_lane_ix sum = {true, 0, llabs(node->c - less)};
    for (int i = 0; i < node->n_terms && sum.known; i++) {
        ty_lane_ix term = lanes_atom(l, &l->k->ix.atom[node->term[i].atom]);
        sum.known = term.known;
        sum.step += term.step * node->term[i].coef;
        sum.unit = lanes_gcd(sum.unit, term.unit * node->term[i].coef);
    }
    return sum;
}

bool ty_lanes_step(const ty_lanes *l, ty_ix addr, int64_t less, int64_t *step)
{
    bool apart = false;
    ty_ix_coef(&l->k->ix, addr, (uint32_t)l->var, &apart);
    if (!apart)
        return false;
    ty_lane_ix at = ty_lanes_ix(l, addr, less);
    *step = at.step;
    return at.known;
}

static bool lanes_same_operand(const ty_lanes *l, uint32_t instr)
{
    return instr == TY_NONE || l->same[instr];
}

static bool lanes_same(const ty_lanes *l, const ty_kinstr *instr)
{
    if (!(instr->vars >> l->var & 1))
        return true;
    if (instr->kop == TY_K_OP)
        return lanes_same_operand(l, instr->a) && lanes_same_operand(l, instr->b) && lanes_same_operand(l, instr->c);
    if (instr->kop != TY_K_LOAD && instr->kop != TY_K_INDEX && instr->kop != TY_K_INSIDE)
        return false;
    ty_lane_ix at = ty_lanes_ix(l, instr->addr, 0);
    if (instr->kop == TY_K_INSIDE)
        return at.known && lanes_within(l, at, lanes_gcd(instr->lo, instr->hi));
    return at.known && at.step == 0 && lanes_same_operand(l, instr->guard);
}

static void lanes_find_same(ty_lanes *l, ty_arena *arena)
{
    l->same = TY_NEW_ARRAY(arena, uint8_t, l->k->n_instrs + 1);
    for (uint32_t i = 0; i < l->k->n_instrs; i++)
        l->same[i] = lanes_same(l, &l->k->instr[i]);
}

ty_lanes ty_lanes_make(const ty_kernel *k, int var, int64_t width, ty_arena *arena)
{
    ty_lanes l = {.k = k, .var = var, .width = width};
    lanes_find_same(&l, arena);
    return l;
}

ty_lanes ty_lanes_make_anywhere(const ty_kernel *k, int var, int64_t width, ty_ix begin, ty_arena *arena)
{
    ty_lanes l = {.k = k, .var = var, .width = width, .anywhere = true, .begin = begin};
    lanes_find_same(&l, arena);
    return l;
}

int ty_lanes_access(const ty_lanes *l, ty_ix addr, uint32_t guard, int64_t less, ty_dtype dtype, int align)
{
    int64_t size = (int64_t)ty_dtype_bytes(dtype), bytes = LANES_BYTES;
    ty_lane_ix at = ty_lanes_ix(l, addr, less);
    if (!at.known || at.step != 1 || !lanes_same_operand(l, guard))
        return 0;
    if (l->anywhere)
        return addr == l->begin && align % bytes == 0 && l->width * size == bytes ? (int)bytes : 0;
    while (bytes > size && (bytes > l->width * size || align % bytes || at.unit * size % bytes))
        bytes /= 2;
    return bytes > size ? (int)bytes : 0;
}
