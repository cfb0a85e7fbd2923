/* bases.c - where a kernel's pointers point: at the first element that it touches of each buffer, so that kernels which
 * work on different stretches of an arena have the same text. See text.h.
 */
#include "compiler/kernel/text.h"

static void bases_lower(const ty_kernel *k, ty_ix addr, int64_t *base)
{
    int64_t c = ty_ix_at(&k->ix, addr)->c;
    *base = c < *base ? (c > 0 ? c : 0) : *base;
}

void ty_ktext_bases(const ty_kernel *k, const uint32_t *alias, int64_t *base)
{
    for (int i = 0; i < k->n_buffers; i++)
        base[i] = INT64_MAX;
    for (uint32_t i = 0; i < k->n_instrs; i++)
        if (k->instr[i].kop == TY_K_LOAD)
            bases_lower(k, k->instr[i].addr, &base[alias[k->instr[i].buffer]]);
    for (int i = 0; i < k->n_stores; i++)
        bases_lower(k, k->store[i].addr, &base[alias[k->store[i].buffer]]);
    for (int i = 0; i < k->n_buffers; i++)
        base[i] = base[alias[i]] == INT64_MAX ? 0 : base[alias[i]];
}
