/* cut.c - pieces of a loop in which guards are constant.
 *
 * A concatenation is a sum of padded parts, each behind a guard: of three parts every element would test three guards,
 * load what one of them allows and add two zeros. Cut where the guards change, a piece is a plain copy.
 */
#include "compiler/kernel/kernel.h"

/* *c: the guard is lo <= var + c < hi. */
static bool cut_compares(const ty_kernel *k, const ty_kinstr *guard, int var, int64_t *c)
{
    const ty_ix_node *x = ty_ix_at(&k->ix, guard->addr);
    if (guard->kop != TY_K_INSIDE || x->n_terms != 1 || x->term[0].coef != 1)
        return false;
    const ty_atom *atom = &k->ix.atom[x->term[0].atom];
    *c = x->c;
    return atom->kind == TY_ATOM_VAR && (int)atom->arg == var;
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
    int64_t c;
    cut[0] = 0;
    cut[1] = k->extent[var];
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        const ty_kinstr *guard = &k->instr[i];
        if (guard->stage != stage || !cut_compares(k, guard, var, &c))
            continue;
        if (!cut_add(cut, &n, guard->lo - c) || !cut_add(cut, &n, guard->hi - c)) {
            cut[1] = k->extent[var];
            return 1;
        }
    }
    return n;
}

int ty_kernel_guard(const ty_kernel *k, const ty_kinstr *guard, int var, int64_t lo, int64_t hi)
{
    int64_t c;
    if (!cut_compares(k, guard, var, &c))
        return -1;
    if (guard->lo <= lo + c && hi + c <= guard->hi)
        return 1;
    return guard->hi <= lo + c || hi + c <= guard->lo ? 0 : -1;
}
