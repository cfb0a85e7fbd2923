/* turn.c - see turn.h.
 *
 * down: the variable inside a row, along which the result is contiguous; across: the outer variable along which the
 * operand is. Units are counted along that first, and as many rows as a range of them has are done together:
 *
 *     y[r * sy + c] = x[r + c * sx]      r < w (across), c < n (down)
 */
#include "compiler/target/cpu/turn.h"

bool ty_turn_has(ty_dtype dtype)
{
    return ty_dtype_bytes(dtype) == 2 || ty_dtype_bytes(dtype) == 4;
}

typedef struct turn {
    int down, across;
    int64_t x_step, y_step; /* elements: of the operand along `down`, of the result along `across` */
} turn;

static bool turn_coef(const ty_kernel *k, ty_ix addr, int var, int64_t *coef)
{
    bool inside = false;
    *coef = ty_ix_coef(&k->ix, addr, (uint32_t)var, &inside);
    return !inside;
}

static bool turn_is_copy(const ty_kernel *k)
{
    return k->form == TY_FORM_ROWS && !k->n_reductions && k->n_stages == 1 && k->n_instrs == 1 && k->n_stores == 1 &&
           k->instr[0].kop == TY_K_LOAD && k->instr[0].guard == TY_NONE && k->store[0].guard == TY_NONE &&
           !k->store[0].row && !k->buffer[k->instr[0].buffer].unaligned && ty_turn_has(k->instr[0].dtype) &&
           !ty_ix_at(&k->ix, k->instr[0].addr)->data;
}

/* Whether the variable is one that a tile of the copy may lie along: contiguous in one address, with a step in the
 * other. */
static bool turn_lies(const ty_kernel *k, int var, ty_ix along, ty_ix apart, int64_t *step)
{
    int64_t one;
    return k->extent[var] >= TY_TURN_TILE && turn_coef(k, along, var, &one) && turn_coef(k, apart, var, step) &&
           one == 1 && *step > 1;
}

static bool turn_find(const ty_kernel *k, turn *f)
{
    int n_inner = 0;
    *f = (turn){.across = -1, .down = -1};
    if (!turn_is_copy(k))
        return false;
    ty_ix x = k->instr[0].addr, y = k->store[0].addr;
    for (int i = 0; i < k->n_order; i++) {
        int var = k->order[i];
        int64_t step;
        bool outer = k->outer >> var & 1;
        n_inner += !outer;
        if (outer && turn_lies(k, var, x, y, &step))
            f->across = var, f->y_step = step;
        if (!outer && turn_lies(k, var, y, x, &step))
            f->down = var, f->x_step = step;
    }
    return n_inner == 1 && f->across >= 0 && f->down >= 0;
}

/* Outer variables from the unit number, and how many rows from here lie side by side. */
static void turn_rows(ty_ktext *t, const turn *f)
{
    const ty_kernel *k = t->k;
    int outer[TY_K_MAX_VARS], n = 0;
    for (int i = 0; i < k->n_order; i++)
        if (k->order[i] != f->down && k->order[i] != f->across)
            outer[n++] = k->order[i];
    outer[n++] = f->across;
    ty_buf_adds(t->out, "  long q = p;\n");
    ty_ktext_outer(t, outer, n);
    ty_buf_addf(t->out, "  const long left = %ldl - i%d, w = left < hi - p ? left : hi - p, i%d = 0;\n",
                (long)k->extent[f->across], f->across, f->down);
}

bool ty_turn_render(ty_ktext *t)
{
    const ty_kernel *k = t->k;
    turn f;
    if (!turn_find(k, &f))
        return false;
    ty_buf_adds(t->out, " for (long p = lo; p < hi;) {\n");
    turn_rows(t, &f);
    ty_buf_addf(t->out, "  ty_turn_%d(&", (int)ty_dtype_bytes(k->instr[0].dtype));
    ty_ktext_element(t, k->store[0].buffer, k->store[0].addr);
    ty_buf_addf(t->out, ", %ldl, &", (long)f.y_step);
    ty_ktext_element(t, k->instr[0].buffer, k->instr[0].addr);
    ty_buf_addf(t->out, ", %ldl, %ldl, w);\n  p += w;\n }\n", (long)f.x_step, (long)k->extent[f.down]);
    return true;
}
