/* beside.c - see beside.h.
 *
 * along: the variable inside a row; across: the fastest of the outer variables, along which rows lie side by side.
 * Point (i, c) of a tile is element i of row at + c. What later loops need of a row stands in arrays w, what they need
 * of its elements in tiles h (hold.h); tiles x and y are what is read and written.
 *
 *     for (c) for (i) x0[i][c] = b0[3 * (at + c) + i];                 in
 *     for (i) for (c) { v0 = x0[i][c]; r0[c] = max(r0[c], v0); }       points of stage 0
 *     for (c) { v6 = r0[c]; w6[c] = v6; b3[at + c] = v6; }             rows of stage 1
 *     for (i) for (c) { v7 = x0[i][c] - w6[c]; ... y0[i][c] = v8; }    points of stage 2
 *     for (c) for (i) b4[3 * (at + c) + i] = y0[i][c];                 out
 *
 * Loops over points take all rows of a tile, though fewer may be left: what they compute of the others is not written.
 */
#include "compiler/target/cpu/beside.h"

#include "compiler/kernel/hold.h"
#include "compiler/ops/op.h"
#include "compiler/target/cpu/turn.h"

#include <stdio.h>

enum {
    BESIDE_LONGEST = 31, /* elements of a row, */
    BESIDE_LONG = 63,    /* or where they cost much: with an operation of this weight */
    BESIDE_DEAR = 8,
    BESIDE_ROWS = 64, /* side by side, */
    BESIDE_FEW = 16,  /* or where there are few */
    BESIDE_MANY = 256,
    BESIDE_STAGES = 32
};

/* What an instruction depends on. */
typedef enum beside_of { BESIDE_ALL, BESIDE_OF_POINT, BESIDE_OF_ROW, BESIDE_OF_BOTH } beside_of;

typedef struct beside {
    ty_ktext *t;
    const uint8_t *constant;
    int across, along;
    long n, rows; /* extents of a tile */
    ty_khold hold;
    uint8_t *what;  /* by instruction: a beside_of */
    uint64_t *used; /* by instruction: the loops that need it, 2 * stage, + 1 over points */
} beside;

static void beside_find(const ty_kernel *k, int *across, int *along, int *n_inner)
{
    *across = *along = -1;
    *n_inner = 0;
    for (int i = 0; i < k->n_order; i++) {
        bool outer = k->outer >> k->order[i] & 1;
        *(outer ? across : along) = k->order[i];
        *n_inner += !outer;
    }
}

/* ---- what suits ---- */

static bool beside_suits_instr(const ty_kernel *k, const ty_kinstr *instr, int across, int along)
{
    bool addressed = instr->kop == TY_K_LOAD || instr->kop == TY_K_INDEX || instr->kop == TY_K_INSIDE;
    if (addressed && ty_ix_at(&k->ix, instr->addr)->data)
        return false;
    if (instr->kop == TY_K_RESULT)
        return instr->vars >> across & 1;
    return instr->kop != TY_K_LOAD || instr->guard == TY_NONE || !(instr->vars >> along & 1);
}

static bool beside_suits_store(const ty_kernel *k, const ty_kstore *store)
{
    return !ty_ix_at(&k->ix, store->addr)->data && (store->stage & 1 || store->guard == TY_NONE);
}

/* Long rows gain by what a vector's last elements cost, if they cost much; else they are turned in vain. */
static bool beside_is_dear(const ty_kernel *k, int along)
{
    bool dear = false;
    for (uint32_t i = 0; i < k->n_instrs && !dear; i++)
        dear = k->instr[i].kop == TY_K_OP && k->instr[i].vars >> along & 1 &&
               ty_op_row_of(k->instr[i].op)->weight >= BESIDE_DEAR;
    return dear;
}

bool ty_beside_suits(const ty_kernel *k)
{
    int across, along, n_inner;
    beside_find(k, &across, &along, &n_inner);
    if (k->form != TY_FORM_ROWS || k->n_reductions == 0 || n_inner != 1 || across < 0 || k->n_stages > BESIDE_STAGES ||
        k->extent[along] > (beside_is_dear(k, along) ? BESIDE_LONG : BESIDE_LONGEST) ||
        k->extent[across] < BESIDE_FEW || ty_kernel_row_guard(k) != TY_NONE)
        return false;
    for (uint32_t i = 0; i < k->n_instrs; i++)
        if (!beside_suits_instr(k, &k->instr[i], across, along))
            return false;
    for (int i = 0; i < k->n_stores; i++)
        if (!beside_suits_store(k, &k->store[i]))
            return false;
    return true;
}

/* ---- instructions ---- */

static beside_of beside_what(const beside *b, uint32_t i)
{
    return (beside_of)b->what[i];
}

/* What stands in a tile is there for each point, and so is what is made of it, though all rows may have the same. */
static void beside_find_what(beside *b)
{
    const ty_kernel *k = b->t->k;
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        const ty_kinstr *instr = &k->instr[i];
        const uint32_t of[] = {instr->a, instr->b, instr->c, instr->guard};
        b->what[i] =
            (instr->vars >> b->across & 1 ? BESIDE_OF_ROW : 0) | (instr->vars >> b->along & 1 ? BESIDE_OF_POINT : 0);
        if (b->hold.held[i] || b->hold.from[i] != TY_NONE)
            b->what[i] = BESIDE_OF_BOTH;
        for (int n = 0; n < 4; n++)
            if (of[n] != TY_NONE && b->what[of[n]] == BESIDE_OF_BOTH && k->instr[of[n]].stage == instr->stage)
                b->what[i] = BESIDE_OF_BOTH;
    }
}

static bool beside_prints(const beside *b, uint32_t i, int stage, beside_of what)
{
    return b->hold.needed[i] && !b->constant[i] && b->t->k->instr[i].stage == stage && beside_what(b, i) == what;
}

/* Is there anything to do for rows? */
static bool beside_any(const beside *b, int stage)
{
    const ty_kernel *k = b->t->k;
    bool any = false;
    for (uint32_t i = 0; i < k->n_instrs && !any; i++)
        any = beside_prints(b, i, stage, BESIDE_OF_ROW);
    for (int i = 0; i < k->n_stores && !any; i++)
        any = stage & 1 && k->store[i].stage == stage;
    return any;
}

static int beside_loop(const beside *b, uint32_t i)
{
    return 2 * b->t->k->instr[i].stage + (beside_what(b, i) != BESIDE_OF_ROW);
}

static void beside_use(beside *b, uint32_t i, int loop)
{
    if (i != TY_NONE)
        b->used[i] |= 1ull << loop;
}

static void beside_find_uses(beside *b)
{
    const ty_kernel *k = b->t->k;
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        const ty_kinstr *instr = &k->instr[i];
        if (!b->hold.needed[i] || b->hold.from[i] != TY_NONE)
            continue;
        beside_use(b, instr->a, beside_loop(b, i));
        beside_use(b, instr->b, beside_loop(b, i));
        beside_use(b, instr->c, beside_loop(b, i));
        beside_use(b, instr->guard, beside_loop(b, i));
    }
    for (int i = 0; i < k->n_reductions; i++)
        beside_use(b, k->reduction[i].value, 2 * k->reduction[i].stage + 1);
    for (int i = 0; i < k->n_stores; i++) {
        int loop = 2 * k->store[i].stage + !(k->store[i].stage & 1);
        beside_use(b, k->store[i].value, loop);
        beside_use(b, k->store[i].guard, loop);
    }
}

/* Whether a number of each row is needed in other loops than its own. */
static bool beside_is_carried(const beside *b, uint32_t i)
{
    return b->hold.needed[i] && !b->constant[i] && beside_what(b, i) == BESIDE_OF_ROW &&
           b->used[i] & ~(1ull << beside_loop(b, i));
}

/* A truth among numbers keeps a loop from being vectorised. */
static const char *beside_type(ty_dtype dtype)
{
    return dtype == TY_BOOL ? "int" : ty_ctypes[dtype].value;
}

/* ---- loops ---- */

static void beside_close(beside *b, int n)
{
    for (; n > 0; n--) {
        b->t->indent--;
        ty_ktext_linef(b->t, "}\n");
    }
}

static void beside_open_points(beside *b)
{
    ty_ktext_linef(b->t, "for (long i%d = 0; i%d < %ldl; i%d++) {\n", b->along, b->along, b->n, b->along);
    b->t->indent++;
}

/* all: rows of the tile, else those that there are. */
static void beside_open_rows(beside *b, bool all)
{
    char rows[24] = "w";
    if (all)
        snprintf(rows, sizeof rows, "%ldl", b->rows);
    ty_ktext_linef(b->t, "for (long c = 0; c < %s; c++) { const long i%d = at + c; (void)i%d;\n", rows, b->across,
                   b->across);
    b->t->indent++;
}

static void beside_open_vector(beside *b, bool all)
{
    ty_ktext_linef(b->t, "#pragma omp simd\n");
    beside_open_rows(b, all);
}

/* The numbers of rows that this loop has from earlier ones. */
static void beside_take(beside *b, int loop)
{
    for (uint32_t i = 0; i < b->t->k->n_instrs; i++)
        if (b->used[i] >> loop & 1 && beside_is_carried(b, i) && beside_loop(b, i) != loop)
            ty_ktext_linef(b->t, "const %s v%u = w%u[c];\n", ty_ctypes[b->t->k->instr[i].dtype].value, i, i);
}

static void beside_rows(beside *b, int stage)
{
    const ty_kernel *k = b->t->k;
    if (!beside_any(b, stage))
        return;
    beside_open_vector(b, false);
    beside_take(b, 2 * stage);
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        if (!beside_prints(b, i, stage, BESIDE_OF_ROW))
            continue;
        ty_ktext_instr(b->t, i);
        if (beside_is_carried(b, i))
            ty_ktext_linef(b->t, "w%u[c] = v%u;\n", i, i);
    }
    for (int i = 0; i < k->n_stores && stage & 1; i++)
        if (k->store[i].stage == stage)
            ty_ktext_store(b->t, &k->store[i]);
    beside_close(b, 1);
}

static bool beside_is_read(const beside *b, uint32_t i, int stage)
{
    return beside_prints(b, i, stage, BESIDE_OF_BOTH) && b->hold.from[i] == TY_NONE &&
           b->t->k->instr[i].kop == TY_K_LOAD;
}

/* What was read lies in its own tile anyway. */
static bool beside_is_held(const beside *b, uint32_t i)
{
    return b->hold.held[i] && b->t->k->instr[i].kop != TY_K_LOAD;
}

/* Rows that lie one after the other and fill a vector are turned: elements from one to the next; else -1. */
static int64_t beside_step(const beside *b, uint32_t buffer, ty_ix addr)
{
    const ty_ix_pool *ix = &b->t->k->ix;
    bool inside = false;
    int64_t step = ty_ix_coef(ix, addr, (uint32_t)b->across, &inside);
    bool rows = ty_ix_coef(ix, addr, (uint32_t)b->along, &inside) == 1 && !inside;
    const ty_kbuffer *memory = &b->t->k->buffer[buffer];
    return rows && b->n >= TY_TURN_TILE && !memory->unaligned && ty_turn_has(memory->dtype) ? step : -1;
}

/* Between a tile and its rows in memory, in the order in which these lie. */
static void beside_copy(beside *b, char tile, uint32_t number, uint32_t buffer, ty_ix addr, bool in)
{
    bool inside = false;
    bool side = ty_ix_coef(&b->t->k->ix, addr, (uint32_t)b->across, &inside) == 1 && !inside;
    if (side) {
        beside_open_points(b);
        beside_open_vector(b, false);
    } else {
        beside_open_rows(b, false);
        beside_open_points(b);
    }
    ty_ktext_line(b->t);
    if (in)
        ty_buf_addf(b->t->out, "%c%u[i%d][c] = ", tile, number, b->along);
    ty_ktext_element(b->t, buffer, addr);
    if (!in)
        ty_buf_addf(b->t->out, " = %c%u[i%d][c]", tile, number, b->along);
    ty_buf_adds(b->t->out, ";\n");
    beside_close(b, 2);
}

static void beside_turn(beside *b, char tile, uint32_t number, uint32_t buffer, ty_ix addr, bool in)
{
    long step = (long)beside_step(b, buffer, addr);
    if (step < 0) {
        beside_copy(b, tile, number, buffer, addr, in);
        return;
    }
    ty_ktext_linef(b->t, "{ const long i%d = at, i%d = 0; (void)i%d; ty_turn_%d(", b->across, b->along, b->along,
                   (int)ty_dtype_bytes(b->t->k->buffer[buffer].dtype));
    if (in)
        ty_buf_addf(b->t->out, "%c%u, %ldl, ", tile, number, b->rows);
    ty_buf_addc(b->t->out, '&');
    ty_ktext_element(b->t, buffer, addr);
    ty_buf_addf(b->t->out, ", %ldl", step);
    if (in)
        ty_buf_addf(b->t->out, ", w, %ldl); }\n", b->n);
    else
        ty_buf_addf(b->t->out, ", %c%u, %ldl, %ldl, w); }\n", tile, number, b->rows, b->n);
}

static void beside_in(beside *b, int stage)
{
    const ty_kinstr *instr = b->t->k->instr;
    for (uint32_t i = 0; i < b->t->k->n_instrs; i++)
        if (beside_is_read(b, i, stage))
            beside_turn(b, 'x', i, instr[i].buffer, instr[i].addr, true);
}

static void beside_out(beside *b, int stage)
{
    const ty_kstore *store = b->t->k->store;
    for (int i = 0; i < b->t->k->n_stores; i++)
        if (store[i].stage == stage)
            beside_turn(b, 'y', (uint32_t)i, store[i].buffer, store[i].addr, false);
}

/* A number that was read, of its type in memory, or is held. */
static void beside_take_point(beside *b, uint32_t i, uint32_t from)
{
    const ty_kinstr *instr = &b->t->k->instr[from];
    bool read = instr->kop == TY_K_LOAD;
    ty_ktext_linef(b->t, "const %s v%u = %s(%c%u[i%d][c]);\n", ty_ctypes[instr->dtype].value, i,
                   read ? ty_ktext_widening(instr->dtype) : "", read ? 'x' : 'h', from, b->along);
}

static void beside_point_instr(beside *b, uint32_t i, int stage)
{
    if (b->hold.from[i] != TY_NONE)
        beside_take_point(b, i, b->hold.from[i]);
    else if (beside_is_read(b, i, stage))
        beside_take_point(b, i, i);
    else
        ty_ktext_instr(b->t, i);
    if (beside_is_held(b, i))
        ty_ktext_linef(b->t, "h%u[i%d][c] = v%u;\n", i, b->along, i);
}

static void beside_reduce(beside *b, int stage)
{
    char acc[24];
    for (int i = 0; i < b->t->k->n_reductions; i++) {
        if (b->t->k->reduction[i].stage != stage)
            continue;
        snprintf(acc, sizeof acc, "r%d[c]", i);
        ty_ktext_combine(b->t, &b->t->k->reduction[i], acc);
    }
}

static void beside_put(beside *b, int store)
{
    ty_ktext_line(b->t);
    ty_buf_addf(b->t->out, "y%d[i%d][c] = ", store, b->along);
    ty_ktext_stored(b->t, &b->t->k->store[store]);
    ty_buf_adds(b->t->out, ";\n");
}

static void beside_points(beside *b, int stage)
{
    const ty_kernel *k = b->t->k;
    beside_open_points(b);
    for (uint32_t i = 0; i < k->n_instrs; i++)
        if (beside_prints(b, i, stage, BESIDE_OF_POINT))
            ty_ktext_instr(b->t, i);
    beside_open_vector(b, true);
    beside_take(b, 2 * stage + 1);
    for (uint32_t i = 0; i < k->n_instrs; i++)
        if (beside_prints(b, i, stage, BESIDE_OF_BOTH))
            beside_point_instr(b, i, stage);
    beside_reduce(b, stage);
    for (int i = 0; i < k->n_stores; i++)
        if (k->store[i].stage == stage)
            beside_put(b, i);
    beside_close(b, 2);
}

/* ---- the function ---- */

/* Outer variables from the unit number, and how many rows from here are done together. */
static void beside_units(beside *b)
{
    const ty_kernel *k = b->t->k;
    long last = (long)k->extent[b->across];
    int outer[TY_K_MAX_VARS], n = 0;
    ty_buf_addf(b->t->out, "  long q = p;\n  const long at = q %% %ldl; q /= %ldl;\n", last, last);
    for (int i = 0; i < k->n_order; i++)
        if (k->order[i] != b->across && k->order[i] != b->along)
            outer[n++] = k->order[i];
    ty_ktext_outer(b->t, outer, n);
    ty_buf_addf(b->t->out, "  const long more = %ldl - at < hi - p ? %ldl - at : hi - p;\n", last, last);
    ty_buf_addf(b->t->out, "  const long w = more < %ldl ? more : %ldl;\n", b->rows, b->rows);
}

static void beside_declare_tile(beside *b, const char *type, char name, uint32_t number)
{
    ty_buf_addf(b->t->out, "  %s %c%u[%ld][%ld];\n", type, name, number, b->n, b->rows);
}

static void beside_declare(beside *b)
{
    const ty_kernel *k = b->t->k;
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        const char *type = beside_type(k->instr[i].dtype);
        if (beside_is_carried(b, i))
            ty_buf_addf(b->t->out, "  %s w%u[%ld];\n", type, i, b->rows);
        if (beside_is_read(b, i, k->instr[i].stage))
            beside_declare_tile(b, ty_ctypes[k->instr[i].dtype].memory, 'x', i);
        if (beside_is_held(b, i))
            beside_declare_tile(b, type, 'h', i);
    }
    for (int i = 0; i < k->n_stores; i++)
        if (!(k->store[i].stage & 1))
            beside_declare_tile(b, ty_ctypes[k->buffer[k->store[i].buffer].dtype].memory, 'y', (uint32_t)i);
    for (int i = 0; i < k->n_reductions; i++) {
        ty_buf_addf(b->t->out, "  %s r%d[%ld];\n", ty_ctypes[k->reduction[i].dtype].value, i, b->rows);
        if (k->reduction[i].how == TY_SUM)
            ty_buf_addf(b->t->out, "  __builtin_memset(r%d, 0, sizeof r%d);\n", i, i);
        else
            ty_buf_addf(b->t->out, "  for (long c = 0; c < %ldl; c++) r%d[c] = %s;\n", b->rows, i,
                        ty_ktext_identity(&k->reduction[i]));
    }
}

static void beside_stages(beside *b)
{
    for (int stage = 0; stage < b->t->k->n_stages; stage++) {
        if (!(stage & 1))
            beside_in(b, stage);
        beside_rows(b, stage);
        if (stage & 1)
            continue;
        beside_points(b, stage);
        beside_out(b, stage);
    }
}

void ty_beside_render(ty_ktext *t, const uint8_t *constant, ty_arena *arena)
{
    const ty_kernel *k = t->k;
    int n_inner;
    beside b = {.t = t, .constant = constant, .hold = ty_kernel_hold(k, arena)};
    beside_find(k, &b.across, &b.along, &n_inner);
    b.n = (long)k->extent[b.along];
    b.rows = k->extent[b.across] < BESIDE_MANY ? BESIDE_FEW : BESIDE_ROWS;
    b.used = TY_NEW_ARRAY(arena, uint64_t, k->n_instrs + 1);
    b.what = TY_NEW_ARRAY(arena, uint8_t, k->n_instrs + 1);
    beside_find_what(&b);
    beside_find_uses(&b);
    ty_buf_adds(t->out, " for (long p = lo; p < hi;) {\n");
    t->indent = 2;
    t->columns = true;
    beside_units(&b);
    beside_declare(&b);
    for (int stage = 0; stage < k->n_stages; stage++)
        for (uint32_t i = 0; i < k->n_instrs; i++)
            if (beside_prints(&b, i, stage, BESIDE_ALL))
                ty_ktext_instr(t, i);
    beside_stages(&b);
    ty_buf_adds(t->out, "  p += w;\n }\n");
}
