/* even.c - see even.h. */
#include "compiler/target/cpu/even.h"

/* Vectors have 16 floats; what asks for memory ahead does so every 64 elements (render.c). A shorter stretch leaves
 * part of a vector empty, but an address that is divided for each of 16 points takes longer than the whole rest: the
 * gradient of a GPT-NeoX's queries and keys, turned by eights, takes 2.3 in place of 7.5 ms in stretches of 8 (Zen 4).
 */
static const int even_lengths[] = {64, 32, 16, 8, 4};

/* Is the variable taken apart in it? */
static bool even_needs(const ty_kernel *k, ty_ix addr, int var)
{
    bool inside = false;
    ty_ix_coef(&k->ix, addr, (uint32_t)var, &inside);
    return inside;
}

/* How many addresses of the stage are even in these stretches, of those that need it. */
static int even_count(const ty_lanes *lanes, int stage)
{
    const ty_kernel *k = lanes->k;
    int64_t step;
    int n = 0;
    for (uint32_t i = 0; i < k->n_instrs; i++)
        if (k->instr[i].stage == stage && k->instr[i].kop == TY_K_LOAD)
            n += ty_lanes_step(lanes, k->instr[i].addr, 0, &step);
    for (int i = 0; i < k->n_stores; i++)
        if (k->store[i].stage == stage)
            n += ty_lanes_step(lanes, k->store[i].addr, 0, &step);
    return n;
}

/* Whether any address of the stage needs stretches at all. */
static bool even_is_needed(const ty_kernel *k, int stage, int var)
{
    bool needed = false;
    for (uint32_t i = 0; i < k->n_instrs; i++)
        needed |= k->instr[i].stage == stage && k->instr[i].kop == TY_K_LOAD && even_needs(k, k->instr[i].addr, var);
    for (int i = 0; i < k->n_stores; i++)
        needed |= k->store[i].stage == stage && even_needs(k, k->store[i].addr, var);
    return needed;
}

static bool even_divides(const int64_t *cut, int n, int length)
{
    for (int i = 0; i <= n; i++)
        if (cut[i] % length)
            return false;
    return true;
}

int ty_even_length(const ty_kernel *k, int stage, int var, ty_arena *arena, ty_lanes *lanes)
{
    int64_t cut[TY_K_MAX_CUTS + 1];
    int most = 0, longest = 0;
    if (!even_is_needed(k, stage, var))
        return 0;
    int n = ty_kernel_cuts(k, stage, var, cut);
    for (size_t i = 0; i < sizeof even_lengths / sizeof *even_lengths; i++) {
        if (!even_divides(cut, n, even_lengths[i]))
            continue;
        ty_lanes these = ty_lanes_make(k, var, even_lengths[i], arena);
        int count = even_count(&these, stage);
        if (count <= most)
            continue;
        most = count;
        longest = even_lengths[i];
        *lanes = these;
    }
    return longest;
}
