/* emit_rows.c - kernels with rows, stage by stage, and with columns. See emit.h. */
#include "compiler/target/cuda/emit.h"

#include <stdio.h>
#include <string.h>

/* Bytes; registers for what a loop has loaded, and with what columns sum up beside it; and of a number that is loaded
 * from a place of its own, with its address. */
enum { EMIT_REGISTER = 4, EMIT_LOADS = 40, EMIT_KEPT = 52, EMIT_HELD = 112, EMIT_AHEAD = 72, EMIT_ALONE = 4 };

/* How far behind a multiple of the width the row begins, in elements of the memory that is aligned. */
static void emit_shift(ty_cuda_emit *c)
{
    ty_ktext_linef(&c->t, "%s shift;\n", ty_emit_index(c));
    ty_ktext_linef(&c->t, "{\n");
    c->t.indent++;
    ty_ktext_linef(&c->t, "const %s i%d = 0;\n", ty_emit_index(c), c->l.fast);
    ty_ktext_line(&c->t);
    ty_buf_adds(c->t.out, "shift = (int)((unsigned long)(&");
    ty_ktext_element(&c->t, c->l.begin, c->l.at.begin);
    ty_buf_addf(c->t.out, " - b%u) %% %du);\n", c->t.alias[c->l.begin], c->l.width);
    ty_emit_close(c);
}

/* The same elements one by one: the first and the last of a row. */
static void emit_ends(ty_cuda_emit *c, int stage)
{
    const uint8_t *vector = c->t.vector;
    int width = c->l.width;
    c->t.vector = NULL;
    c->l.width = 1;
    ty_ktext_linef(&c->t, "for (%s i%d = e < 0 ? 0 : e; i%d < e + %d && i%d < %ld; i%d++) {\n", ty_emit_index(c),
                   c->l.fast, c->l.fast, width, c->l.fast, (long)c->l.row, c->l.fast);
    c->t.indent++;
    ty_emit_group(c, stage);
    ty_emit_close(c);
    c->t.vector = vector;
    c->l.width = width;
}

/* Whether where it loads depends on one of some variables. */
static bool emit_moves(const ty_cuda_emit *c, const ty_kinstr *load, const int *var, int n)
{
    bool inside = false, moves = false;
    for (int i = 0; i < n && !moves; i++)
        moves = ty_ix_coef(&c->t.k->ix, load->addr, (uint32_t)var[i], &inside) != 0 || inside;
    return moves;
}

/* Whether the places of neighbours follow from each other by a quotient or a remainder alone. */
static bool emit_is_strewn(const ty_cuda_emit *c, const ty_kinstr *load)
{
    bool inside = false;
    if (c->l.fast >= 0)
        ty_ix_coef(&c->t.k->ix, load->addr, (uint32_t)c->l.fast, &inside);
    return inside;
}

/* The same in all turns of the loop. */
static bool emit_is_fixed(const ty_cuda_emit *c, const ty_kinstr *load)
{
    return load->guard == TY_NONE && !emit_moves(c, load, c->l.inner, c->l.n_inner);
}

/* Registers for what a turn of the loop loads: numbers of 16 bits lie two in one if they are loaded together. */
static int emit_loaded(const ty_cuda_emit *c, uint32_t i)
{
    int each = (int)ty_dtype_bytes(c->t.k->instr[i].dtype), room = each > EMIT_REGISTER ? each : EMIT_REGISTER;
    return c->l.width * (c->l.load && c->l.load[i] ? each : room) / EMIT_REGISTER;
}

/* How many turns of a loop are under way at a time: no more loads than registers take. */
static const char *emit_unroll(const ty_cuda_emit *c, int stage)
{
    int moving = 0, fixed = 0;
    for (uint32_t i = 0; i < c->t.k->n_instrs; i++) {
        const ty_kinstr *instr = &c->t.k->instr[i];
        if (instr->kop == TY_K_LOAD && instr->stage == stage)
            *(emit_is_fixed(c, instr) ? &fixed : &moving) += emit_loaded(c, i);
    }
    int sums = ty_emit_is_columns(c) ? c->t.k->n_reductions * c->l.width : 0;
    int room = sums + EMIT_LOADS <= EMIT_KEPT ? EMIT_LOADS : EMIT_KEPT - sums;
    return fixed + 4 * moving + sums <= EMIT_LOADS ? "TY_UNROLL_4"
           : fixed + 2 * moving <= room            ? "TY_UNROLL_2"
                                                   : "TY_UNROLL_1";
}

/* A group that the row's beginning or end cuts, of which each thread has one at most; then the whole ones. */
static void emit_shifted_stage(ty_cuda_emit *c, int stage)
{
    const char *index = ty_emit_index(c);
    int step = c->l.lanes * c->l.width;
    ty_emit_begin_sums(c, stage);
    ty_emit_instrs(c, stage, false);
    ty_ktext_linef(&c->t, "{\n");
    c->t.indent++;
    ty_ktext_linef(&c->t, "%s e = TY_THREAD * %d - shift;\n", index, c->l.width);
    ty_ktext_linef(&c->t, "if (e < 0) {\n");
    c->t.indent++;
    emit_ends(c, stage);
    ty_ktext_linef(&c->t, "e += %d;\n", step);
    ty_emit_close(c);
    ty_ktext_linef(&c->t, "%s for (; e <= %ld; e += %d) {\n", emit_unroll(c, stage), (long)(c->l.row - c->l.width),
                   step);
    c->t.indent++;
    ty_ktext_linef(&c->t, "const %s i%d = e;\n", index, c->l.fast);
    ty_emit_group(c, stage);
    ty_emit_close(c);
    ty_ktext_linef(&c->t, "if (e < %ld) {\n", (long)c->l.row);
    c->t.indent++;
    emit_ends(c, stage);
    ty_emit_close(c);
    ty_emit_close(c);
    ty_emit_end_sums(c, stage);
}

/* Whether what all groups load does not fit into registers beside what is held. The compiler would ask for all of it at
 * once, as far as addresses are known from the first. */
static bool emit_is_crowded(const ty_cuda_emit *c, int stage)
{
    int loaded = 0, held = 0;
    for (uint32_t i = 0; i < c->t.k->n_instrs; i++) {
        const ty_kinstr *instr = &c->t.k->instr[i];
        if (instr->kop == TY_K_LOAD && instr->stage == stage)
            loaded += (emit_is_strewn(c, instr) ? EMIT_ALONE : 1) * emit_loaded(c, i);
        held += c->l.hold.held[i] ? c->l.width : 0;
    }
    return c->t.narrow && c->l.groups * (loaded + held) > EMIT_HELD;
}

/* ---- what a thread holds of a row ---- */

/* for (j ...) { where a group of the row begins; closed by the caller. anew: its place is no matter of an earlier j. */
static void emit_open_groups(ty_cuda_emit *c, int first, int n, bool anew)
{
    int64_t step = (int64_t)c->l.lanes * c->l.width;
    char lane[32];
    ty_emit_lane(c, lane, sizeof lane);
    ty_ktext_linef(&c->t, "TY_UNROLL for (int j = 0; j < %d; j++) {\n", n);
    c->t.indent++;
    ty_ktext_linef(&c->t, "%s e = ((j + %d) * %d + %s) * %d;\n", ty_emit_index(c), first, c->l.lanes, lane, c->l.width);
    if (anew)
        ty_ktext_linef(&c->t, "TY_ANEW(e);\n");
    if ((first + n) * step > c->l.row)
        ty_ktext_linef(&c->t, "if (e >= %ld) continue;\n", (long)c->l.row);
    ty_emit_decode(c, c->l.inner, c->l.n_inner, "e");
}

/* The elements of a row that a thread takes, some of them again and again: groups [first, first + n) that it holds. */
static void emit_held_groups(ty_cuda_emit *c, int stage, int first, int n)
{
    emit_open_groups(c, first, n, emit_is_crowded(c, stage));
    ty_emit_group(c, stage);
    ty_emit_close(c);
}

/* Loads of the row's own, whose address is no number that is loaded itself. */
static bool emit_is_ahead(const ty_cuda_emit *c, uint32_t i, int stage)
{
    const ty_kinstr *instr = &c->t.k->instr[i];
    return ty_emit_is_wide_load(c, i, stage) && instr->guard == TY_NONE && !ty_ix_at(&c->t.k->ix, instr->addr)->data &&
           emit_moves(c, instr, c->l.outer, c->l.n_outer);
}

/* What groups load of the row is asked for before the first of them is worked on, as far as registers go: a warp that
 * has one row has nothing else that memory could do meanwhile, and behind a store the compiler asks for nothing early.
 */
static void emit_ahead(ty_cuda_emit *c, int stage)
{
    int registers = 0;
    for (uint32_t i = 0; i < c->t.k->n_instrs; i++) {
        c->ahead[i] = emit_is_ahead(c, i, stage);
        registers += (c->ahead[i] ? emit_loaded(c, i) : 0) + (c->l.hold.held[i] ? c->l.width : 0);
    }
    if (c->l.groups < 2 || c->l.spare || c->l.groups * registers > EMIT_AHEAD)
        memset(c->ahead, 0, c->t.k->n_instrs);
    for (uint32_t i = 0; i < c->t.k->n_instrs; i++) {
        if (!c->ahead[i])
            continue;
        ty_ktext_linef(&c->t, "TY_ALIGNED %s a%u[%d][%d];\n", ty_emit_memory((ty_dtype)c->t.k->instr[i].dtype), i,
                       c->l.groups, c->l.width);
        emit_open_groups(c, 0, c->l.groups, false);
        ty_emit_load_ahead(c, i);
        ty_emit_close(c);
    }
}

/* In registers, then what these do not take: in shared memory, of which each thread sees its own part alone. */
static void emit_held(ty_cuda_emit *c, int stage)
{
    emit_ahead(c, stage);
    emit_held_groups(c, stage, 0, c->l.groups);
    if (c->l.spare == 0)
        return;
    c->t.held = "q", c->t.held_at = "[TY_THREAD]";
    emit_held_groups(c, stage, c->l.groups, c->l.spare);
    c->t.held = "h", c->t.held_at = "";
}

static void emit_loop_stage(ty_cuda_emit *c, int stage)
{
    char lane[32];
    ty_emit_lane(c, lane, sizeof lane);
    ty_emit_begin_sums(c, stage);
    ty_emit_instrs(c, stage, false);
    if (c->l.groups) {
        emit_held(c, stage);
    } else {
        ty_ktext_linef(&c->t, "%s for (%s e0 = (%s) * %d; e0 < %ld; e0 += %ld) {\n", emit_unroll(c, stage),
                       ty_emit_index(c), lane, c->l.width, (long)c->l.row, (long)c->l.lanes * c->l.width);
        c->t.indent++;
        ty_ktext_linef(&c->t, "%s e = e0; (void)e;\n", ty_emit_index(c));
        ty_emit_decode(c, c->l.inner, c->l.n_inner, "e");
        ty_emit_group(c, stage);
        ty_emit_close(c);
    }
    ty_emit_end_sums(c, stage);
}

static bool emit_has(const ty_cuda_emit *c, int stage)
{
    for (uint32_t i = 0; i < c->t.k->n_instrs; i++)
        if (c->t.k->instr[i].stage == stage)
            return true;
    for (int i = 0; i < c->t.k->n_stores; i++)
        if (c->t.k->store[i].stage == stage)
            return true;
    return false;
}

/* Scalars of a row: every thread computes them, one stores. */
static void emit_row_stage(ty_cuda_emit *c, int stage)
{
    char lane[32];
    ty_emit_lane(c, lane, sizeof lane);
    ty_emit_instrs(c, stage, false);
    ty_ktext_linef(&c->t, "if (%s == 0) {\n", lane);
    c->t.indent++;
    ty_emit_stores(c, stage);
    ty_emit_close(c);
}

static void emit_declare_held(ty_cuda_emit *c)
{
    for (uint32_t i = 0; c->l.groups && i < c->t.k->n_instrs; i++) {
        const char *type = ty_ctypes[c->t.k->instr[i].dtype].value;
        if (!c->l.hold.held[i])
            continue;
        ty_ktext_linef(&c->t, "%s h%u[%d][%d];\n", type, i, c->l.groups, c->l.width);
        if (c->l.spare)
            ty_ktext_linef(&c->t, "TY_SHARED %s q%u[%d][%d][%d];\n", type, i, c->l.spare, c->l.width, TY_CUDA_THREADS);
    }
}

static const char *emit_barrier(const ty_cuda_emit *c)
{
    if (c->l.form == TY_CUDA_ROW_BY_THREAD)
        return "";
    return c->l.form == TY_CUDA_ROWS_ACROSS || c->l.lanes > TY_CUDA_WARP ? "TY_BARRIER();\n" : "TY_WARP_BARRIER();\n";
}

/* What one stage has written another may read. */
static void emit_stages(ty_cuda_emit *c, int n)
{
    const char *barrier = emit_barrier(c);
    emit_declare_held(c);
    if (c->l.shifted)
        emit_shift(c);
    for (int stage = 0; stage < n; stage++) {
        if (stage % 2 && stage + 1 < n && !emit_has(c, stage))
            continue; /* the next one has its own barrier */
        if (stage && *barrier)
            ty_ktext_linef(&c->t, "%s", barrier);
        if (stage & 1)
            emit_row_stage(c, stage);
        else if (c->l.shifted)
            emit_shifted_stage(c, stage);
        else
            emit_loop_stage(c, stage);
    }
}

void ty_emit_rows(ty_cuda_emit *c)
{
    ty_emit_decode(c, c->l.outer, c->l.n_outer, "p");
    emit_stages(c, c->t.k->n_stages);
}

/* Stages of rows: all but the last, and but one before it that is empty. */
static int emit_stages_of_rows(const ty_cuda_emit *c)
{
    int n = c->t.k->n_stages - 1;
    while (n > 1 && !emit_has(c, n - 1))
        n--;
    return n;
}

static void emit_column_stores(ty_cuda_emit *c, int number)
{
    const ty_kernel *k = c->t.k;
    for (int i = 0; i < k->n_stores; i++) {
        uint32_t value = k->store[i].value;
        if (k->store[i].stage != k->n_stages - 1 || k->instr[value].reduction != (uint32_t)number)
            continue;
        ty_ktext_instr(&c->t, value);
        ty_ktext_store(&c->t, &k->store[i]);
    }
}

/* Before d is written again there is a barrier: in the rows of the next band, if they meet at one. */
static void emit_column_sums(ty_cuda_emit *c)
{
    const ty_kernel *k = c->t.k;
    bool first = true;
    ty_ktext_linef(&c->t, "TY_SHARED float d[%ld];\n", TY_CUDA_THREADS / c->l.lanes * (long)c->l.row);
    for (int i = 0; i < k->n_reductions; i++) {
        if (!k->reduction[i].columns)
            continue;
        if (!first)
            ty_ktext_linef(&c->t, "TY_BARRIER();\n");
        first = false;
        ty_emit_band_sum(c, i);
        emit_column_stores(c, i);
        ty_emit_close(c);
    }
    if (c->l.lanes == TY_CUDA_WARP)
        ty_ktext_linef(&c->t, "TY_BARRIER();\n");
}

/* A block goes through its band, several rows at a time; each of its threads has the same columns of all of them. */
void ty_emit_bands(ty_cuda_emit *c)
{
    const ty_kernel *k = c->t.k;
    const char *index = ty_emit_index(c);
    int band = c->l.outer[0], row = c->l.outer[1], rows = TY_CUDA_THREADS / c->l.lanes;
    ty_ktext_linef(&c->t, "const %s i%d = p;\n", index, band);
    ty_emit_begin_band_sums(c);
    ty_ktext_linef(&c->t, "TY_UNROLL_1 for (%s q = TY_THREAD / %d; q < %ld; q += %d) {\n", index, c->l.lanes,
                   (long)k->extent[row], rows);
    c->t.indent++;
    ty_ktext_linef(&c->t, "const %s i%d = q;\n", index, row);
    emit_stages(c, emit_stages_of_rows(c));
    ty_emit_close(c);
    emit_column_sums(c);
}

void ty_emit_columns(ty_cuda_emit *c)
{
    int lanes = c->l.lanes, columns = lanes * c->l.width;
    long extent = (long)c->t.k->extent[c->l.column], blocks = (extent + columns - 1) / columns;
    const char *index = ty_emit_index(c);
    const ty_emit_thread thread = ty_emit_thread_of_columns(c);
    ty_ktext_linef(&c->t, "const %s first = p %% %ld * %d; p /= %ld;\n", index, blocks, columns, blocks);
    ty_emit_decode(c, c->l.outer, c->l.n_outer, "p");
    ty_emit_begin_sums(c, 0);
    ty_ktext_linef(&c->t, "const %s start = first + TY_THREAD %% %d * %d;\n", index, lanes, c->l.width);
    if (extent % columns)
        ty_ktext_linef(&c->t, "if (start < %ld)\n", extent);
    ty_ktext_linef(&c->t, "%s for (%s e0 = %s / %d; e0 < %ld; e0 += %d) {\n", emit_unroll(c, 0), index, thread.text,
                   lanes, (long)c->l.row, thread.of / lanes);
    c->t.indent++;
    ty_ktext_linef(&c->t, "const %s i%d = start;\n %s e = e0; (void)e;\n", index, c->l.column, index);
    ty_emit_decode(c, c->l.inner, c->l.n_inner, "e");
    ty_emit_group(c, 0);
    ty_emit_close(c);
    ty_emit_end_column_sums(c, columns);
    ty_emit_instrs(c, 1, true);
    ty_emit_stores(c, 1);
    ty_emit_close(c);
    ty_ktext_linef(&c->t, "TY_BARRIER();\n"); /* before the next ones write s */
}
