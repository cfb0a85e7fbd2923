/* uniform.c - see uniform.h.
 *
 * Written twice, a Keras EfficientNet's padded swishes take 2.7 in place of 37 ms (Zen 4, GCC 12).
 */
#include "compiler/target/cpu/uniform.h"

static bool uniform_decides(const ty_kinstr *instr, uint32_t condition)
{
    return instr->guard == condition || (instr->kop == TY_K_OP && instr->op == TY_OP_SELECT && instr->a == condition);
}

/* Whether it decides anything inside the loop. */
static bool uniform_matters(const ty_ahead *a, int stage, uint32_t condition, int innermost)
{
    const ty_kernel *k = a->t->k;
    bool matters = false;
    for (uint32_t i = condition + 1; i < k->n_instrs && !matters; i++)
        matters = k->instr[i].stage == stage && ty_ahead_depth(a, k->instr[i].vars) == innermost &&
                  uniform_decides(&k->instr[i], condition);
    return matters;
}

int ty_uniform_conditions(const ty_ahead *a, int stage, const uint8_t *constant, uint32_t *condition)
{
    const ty_kernel *k = a->t->k;
    int innermost = a->n_inner + (a->column >= 0), n = 0;
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        const ty_kinstr *instr = &k->instr[i];
        if (instr->dtype != TY_BOOL || constant[i] || i == a->t->row_guard ||
            ty_ahead_depth(a, instr->vars) >= innermost || !uniform_matters(a, stage, i, innermost))
            continue;
        if (n == TY_UNIFORM_MAX)
            return 0;
        condition[n++] = i;
    }
    return n;
}
