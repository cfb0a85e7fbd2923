/* uniform.c - see uniform.h.
 *
 * Written twice, a Keras EfficientNet's padded swishes take 2.7 in place of 37 ms (Zen 4, GCC 12).
 */
#include "compiler/target/cpu/uniform.h"

static bool uniform_decides(const ty_kinstr *instr, uint32_t condition)
{
    return instr->guard == condition || (instr->kop == TY_K_OP && instr->op == TY_OP_SELECT && instr->a == condition);
}

/* How many instructions inside the loop it decides. */
static int uniform_count(const ty_ahead *a, int stage, uint32_t condition, int innermost)
{
    const ty_kernel *k = a->t->k;
    int n = 0;
    for (uint32_t i = condition + 1; i < k->n_instrs; i++)
        n += k->instr[i].stage == stage && ty_ahead_depth(a, k->instr[i].vars) == innermost &&
             uniform_decides(&k->instr[i], condition);
    return n;
}

uint32_t ty_uniform_condition(const ty_ahead *a, int stage, const uint8_t *constant)
{
    const ty_kernel *k = a->t->k;
    int innermost = a->n_inner + (a->column >= 0), most = 0;
    uint32_t best = TY_NONE;
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        const ty_kinstr *instr = &k->instr[i];
        if (instr->stage != stage || instr->dtype != TY_BOOL || constant[i] || i == a->t->row_guard ||
            ty_ahead_depth(a, instr->vars) >= innermost)
            continue;
        int n = uniform_count(a, stage, i, innermost);
        best = n > most ? i : best;
        most = n > most ? n : most;
    }
    return best;
}
