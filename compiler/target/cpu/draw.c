/* draw.c - see draw.h. */
#include "compiler/target/cpu/draw.h"

/* Words come in groups that begin at a multiple of four: of the first group up to three are not wanted, and the last
 * one is whole (ty_rng_words in prelude.c). */
enum { DRAW_GROUP = 64, DRAW_BEFORE = 3 };

static bool draw_is_in_order(const ty_kernel *k, const ty_kinstr *word, int var)
{
    bool inside = false;
    return word->kop == TY_K_INDEX && word->dtype == TY_I64 && !ty_ix_at(&k->ix, word->addr)->data &&
           ty_ix_coef(&k->ix, word->addr, (uint32_t)var, &inside) == 1 && !inside;
}

static bool draw_is_drawn(const ty_ahead *a, const ty_kinstr *instr, int stage, int var, const uint8_t *constant)
{
    const ty_kernel *k = a->t->k;
    return instr->stage == stage && instr->kop == TY_K_OP && instr->op == TY_OP_RNG && constant[instr->a] &&
           constant[instr->b] && draw_is_in_order(k, &k->instr[instr->c], var);
}

bool ty_draw_any(const ty_ahead *a, int stage, int var, const uint8_t *constant)
{
    const ty_kernel *k = a->t->k;
    for (uint32_t i = 0; i < k->n_instrs; i++)
        if (draw_is_drawn(a, &k->instr[i], stage, var, constant))
            return true;
    return false;
}

void ty_draw_stretch(const ty_ahead *a, int stage, int var, const uint8_t *constant, const char *first,
                     const char *count, int n, uint8_t *drawn)
{
    const ty_kernel *k = a->t->k;
    const int room = (DRAW_BEFORE + n + DRAW_GROUP - 1) / DRAW_GROUP * DRAW_GROUP;
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        const ty_kinstr *instr = &k->instr[i];
        drawn[i] = draw_is_drawn(a, instr, stage, var, constant);
        if (!drawn[i])
            continue;
        ty_ktext_linef(a->t, "TY_WORDS u%u[%d]; const unsigned *w%u; { const long i%d = %s;\n", i, room, i, var, first);
        ty_ktext_instr(a->t, instr->c);
        ty_ktext_linef(a->t, "w%u = ty_rng_words(u%u, %s, v%u, v%u, v%u, %ldu); }\n", i, i, count, instr->a, instr->b,
                       instr->c, (long)instr->imm_int);
    }
}
