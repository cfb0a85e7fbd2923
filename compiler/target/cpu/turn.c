/* turn.c - see turn.h.
 *
 * down: the variable inside a row, along which the result is contiguous; across: the fastest of the outer variables,
 * along which the operand is. As many rows as a unit range has side by side are done together:
 *
 *     y[r * sy + c] = x[r + c * sx]      r < w (across), c < n (down)
 *
 * Eight vectors of eight become their columns in three exchanges, of parts of 4, 2 and 1 elements between vectors as
 * far apart (Eklundh, A fast computer method for matrix transposing, 1972).
 */
#include "compiler/target/cpu/turn.h"

#include <stdio.h>

#define TURN_TILE 8

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

static bool turn_find(const ty_kernel *k, turn *f)
{
    int n_inner = 0, n_outer = 0;
    int64_t one_x, one_y;
    if (k->form != TY_FORM_ROWS || k->n_reductions || k->n_stages != 1 || k->n_instrs != 1 || k->n_stores != 1 ||
        k->instr[0].kop != TY_K_LOAD || k->instr[0].guard != TY_NONE || k->store[0].guard != TY_NONE ||
        k->store[0].row || k->buffer[k->instr[0].buffer].unaligned || ty_dtype_bytes(k->instr[0].dtype) != 4 ||
        ty_ix_at(&k->ix, k->instr[0].addr)->data)
        return false;
    for (int i = 0; i < k->n_order; i++) {
        bool outer = k->outer >> k->order[i] & 1;
        *(outer ? &f->across : &f->down) = k->order[i];
        n_outer += outer;
        n_inner += !outer;
    }
    return n_inner == 1 && n_outer > 0 && k->extent[f->down] >= TURN_TILE && k->extent[f->across] >= TURN_TILE &&
           turn_coef(k, k->instr[0].addr, f->down, &f->x_step) && turn_coef(k, k->instr[0].addr, f->across, &one_x) &&
           turn_coef(k, k->store[0].addr, f->across, &f->y_step) && turn_coef(k, k->store[0].addr, f->down, &one_y) &&
           one_x == 1 && one_y == 1 && f->x_step > 1 && f->y_step > 1;
}

/* Outer variables from the unit number, and how many rows from here lie side by side. */
static void turn_rows(ty_ktext *t, const turn *f)
{
    const ty_kernel *k = t->k;
    int outer[TY_K_MAX_VARS], n = 0;
    for (int i = 0; i < k->n_order; i++)
        if (k->order[i] != f->down)
            outer[n++] = k->order[i];
    ty_buf_adds(t->out, "  long q = p;\n");
    for (int i = n - 1; i >= 0; i--)
        if (i)
            ty_buf_addf(t->out, "  const long i%d = q %% %ldl; q /= %ldl;\n", outer[i], (long)k->extent[outer[i]],
                        (long)k->extent[outer[i]]);
        else
            ty_buf_addf(t->out, "  const long i%d = q;\n", outer[i]);
    ty_buf_addf(t->out, "  const long left = %ldl - i%d, w = left < hi - p ? left : hi - p, i%d = 0;\n",
                (long)k->extent[f->across], f->across, f->down);
}

/* Parts of `by` elements change places between the vectors k and k + by. */
static void turn_exchange(ty_ktext *t, int by)
{
    ty_buf_addf(t->out, "   for (int k = 0; k < 8; k++) if (!(k & %d)) { const v8 a = t[k], b = t[k + %d];\n", by, by);
    for (int half = 0; half < 2; half++) {
        ty_buf_addf(t->out, "    t[k%s] = __builtin_shuffle(a, b, (m8){",
                    half ? (by == 4   ? " + 4"
                            : by == 2 ? " + 2"
                                      : " + 1")
                         : "");
        for (int i = 0; i < TURN_TILE; i++)
            ty_buf_addf(t->out, "%s%d", i ? "," : "",
                        half ? (i & by ? TURN_TILE + i : i + by) : (i & by ? TURN_TILE + i - by : i));
        ty_buf_adds(t->out, "});\n");
    }
    ty_buf_adds(t->out, "   }\n");
}

static void turn_tiles(ty_ktext *t, const turn *f)
{
    const char *type = ty_ctypes[t->k->instr[0].dtype].memory;
    long n = (long)t->k->extent[f->down], sx = (long)f->x_step, sy = (long)f->y_step;
    ty_buf_addf(t->out, "  typedef %s v8 __attribute__((vector_size(32), aligned(4)));\n", type);
    ty_buf_adds(t->out, "  typedef int m8 __attribute__((vector_size(32)));\n  long r = 0;\n");
    ty_buf_addf(t->out, "  for (; r + 8 <= w; r += 8) {\n   long c = 0;\n   for (; c + 8 <= %ldl; c += 8) {\n", n);
    ty_buf_addf(t->out, "   v8 t[8];\n   for (int k = 0; k < 8; k++) t[k] = *(const v8 *)(x + r + (c + k) * %ldl);\n",
                sx);
    for (int by = 4; by > 0; by /= 2)
        turn_exchange(t, by);
    ty_buf_addf(t->out, "   for (int k = 0; k < 8; k++) *(v8 *)(y + (r + k) * %ldl + c) = t[k];\n   }\n", sy);
    ty_buf_addf(t->out, "   for (; c < %ldl; c++) for (int k = 0; k < 8; k++) ", n);
    ty_buf_addf(t->out, "y[(r + k) * %ldl + c] = x[r + k + c * %ldl];\n  }\n", sy, sx);
    ty_buf_addf(t->out, "  for (; r < w; r++) for (long c = 0; c < %ldl; c++) y[r * %ldl + c] = x[r + c * %ldl];\n", n,
                sy, sx);
}

bool ty_turn_render(ty_ktext *t)
{
    const ty_kernel *k = t->k;
    turn f;
    if (!turn_find(k, &f))
        return false;
    const char *type = ty_ctypes[k->instr[0].dtype].memory;
    ty_buf_adds(t->out, " for (long p = lo; p < hi;) {\n");
    turn_rows(t, &f);
    ty_buf_addf(t->out, "  const %s *restrict x = &", type);
    ty_ktext_element(t, k->instr[0].buffer, k->instr[0].addr);
    ty_buf_addf(t->out, ";\n  %s *restrict y = &", type);
    ty_ktext_element(t, k->store[0].buffer, k->store[0].addr);
    ty_buf_adds(t->out, ";\n");
    turn_tiles(t, &f);
    ty_buf_adds(t->out, "  p += w;\n }\n");
    return true;
}
