/* cut.c - pieces of a loop in which guards are constant.
 *
 * A concatenation is a sum of padded parts, each behind a guard: of three parts every element would test three guards,
 * load what one of them allows and add two zeros. Cut where the guards change, a piece is a plain copy.
 */
#include "compiler/kernel/kernel.h"

/* True if x is var + *c. */
static bool cut_is_sum(const ty_kernel *k, ty_ix x, int var, int64_t *c)
{
    const ty_ix_node *n = ty_ix_at(&k->ix, x);
    if (n->n_terms != 1 || n->term[0].coef != 1)
        return false;
    const ty_atom *atom = &k->ix.atom[n->term[0].atom];
    *c = n->c;
    return atom->kind == TY_ATOM_VAR && (int)atom->arg == var;
}

/* The guard is *from <= var < *to: it compares var + c, or (var + c) / d, as of heads that lie side by side, plus a
 * constant. */
static bool cut_compares(const ty_kernel *k, const ty_kinstr *guard, int var, int64_t *from, int64_t *to)
{
    int64_t c, d = 1;
    if (guard->kop != TY_K_INSIDE)
        return false;
    const ty_ix_node *x = ty_ix_at(&k->ix, guard->addr);
    const ty_atom *atom = x->n_terms == 1 && x->term[0].coef == 1 ? &k->ix.atom[x->term[0].atom] : NULL;
    *from = guard->lo;
    *to = guard->hi;
    if (atom && atom->kind == TY_ATOM_DIV && cut_is_sum(k, atom->arg, var, &c)) {
        d = atom->d;
        *from -= x->c;
        *to -= x->c;
    } else if (!cut_is_sum(k, guard->addr, var, &c)) {
        return false;
    }
    *from = *from * d - c;
    *to = *to * d - c;
    return true;
}

/* Keeps the list ascending and without repetitions. False: it is full. */
static bool cut_add(int64_t *cut, int *n, int64_t at)
{
    int i = *n;
    for (; i > 0 && cut[i] > at; i--)
        ;
    if (at <= 0 || at >= cut[*n] || cut[i] == at)
        return true;
    if (*n == TY_K_MAX_CUTS)
        return false;
    for (int j = ++*n; j > i + 1; j--)
        cut[j] = cut[j - 1];
    cut[i + 1] = at;
    return true;
}

int ty_kernel_cuts(const ty_kernel *k, int stage, int var, int64_t cut[TY_K_MAX_CUTS + 1])
{
    int n = 1;
    int64_t from, to;
    cut[0] = 0;
    cut[1] = k->extent[var];
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        const ty_kinstr *guard = &k->instr[i];
        if (guard->stage != stage || !cut_compares(k, guard, var, &from, &to))
            continue;
        if (!cut_add(cut, &n, from) || !cut_add(cut, &n, to)) {
            cut[1] = k->extent[var];
            return 1;
        }
    }
    return n;
}

int ty_kernel_guard(const ty_kernel *k, const ty_kinstr *guard, int var, int64_t lo, int64_t hi)
{
    int64_t from, to;
    if (!cut_compares(k, guard, var, &from, &to))
        return -1;
    if (from <= lo && hi <= to)
        return 1;
    return to <= lo || hi <= from ? 0 : -1;
}
