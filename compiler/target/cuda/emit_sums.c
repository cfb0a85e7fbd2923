/* emit_sums.c - reductions: partial results of threads become one of the row. All trees are fixed. See emit.h. */
#include "compiler/target/cuda/emit.h"

#include <stdio.h>

/* A float sum of a row is added up in float by each thread and in double between them, as on the CPU between blocks. */
static bool emit_is_double(const ty_cuda_emit *c, const ty_kreduction *red)
{
    return !ty_emit_is_columns(c) && red->how == TY_SUM && ty_dtype_is_float(red->dtype);
}

static const char *emit_sum_type(const ty_cuda_emit *c, const ty_kreduction *red)
{
    return emit_is_double(c, red) ? "double" : ty_ctypes[red->dtype].value;
}

/* acc and v become acc. A NaN stays. */
static void emit_combine(ty_cuda_emit *c, const ty_kreduction *red, const char *acc, const char *v)
{
    ty_combine how = red->how;
    if (how == TY_SUM || how == TY_PROD)
        ty_ktext_linef(&c->t, "%s %s= %s;\n", acc, how == TY_SUM ? "+" : "*", v);
    else if (ty_dtype_is_float(red->dtype) && red->dtype != TY_F64)
        ty_ktext_linef(&c->t, "%s = ty_%s(%s, %s);\n", acc, how == TY_MAX ? "most" : "least", acc, v);
    else
        ty_ktext_linef(&c->t, "%s = %s %c %s || %s != %s ? %s : %s;\n", acc, v, how == TY_MAX ? '>' : '<', acc, v, v, v,
                       acc);
}

void ty_emit_begin_sums(ty_cuda_emit *c, int stage)
{
    for (int i = 0; i < c->t.k->n_reductions; i++) {
        const ty_kreduction *red = &c->t.k->reduction[i];
        const char *type = ty_ctypes[red->dtype].value;
        if (red->stage != stage || red->columns)
            continue;
        if (!ty_emit_is_columns(c))
            ty_ktext_linef(&c->t, "%s t%d = %s;\n", type, i, ty_ktext_identity(red));
        else
            ty_ktext_linef(&c->t, "%s t%d[%d]; TY_UNROLL for (int w = 0; w < %d; w++) t%d[w] = %s;\n", type, i,
                           c->l.width, c->l.width, i, ty_ktext_identity(red));
    }
}

void ty_emit_add_sums(ty_cuda_emit *c, int stage)
{
    char acc[24], value[24];
    for (int i = 0; i < c->t.k->n_reductions; i++) {
        const ty_kreduction *red = &c->t.k->reduction[i];
        if (red->stage != stage)
            continue;
        snprintf(acc, sizeof acc, red->columns ? "c%d[j][w]" : ty_emit_is_columns(c) ? "t%d[w]" : "t%d", i);
        snprintf(value, sizeof value, "v%u", red->value);
        emit_combine(c, red, acc, value);
    }
}

static char emit_shuffle_letter(const ty_cuda_emit *c, const ty_kreduction *red)
{
    bool wide = emit_is_double(c, red) || red->dtype == TY_F64;
    return wide ? 'D' : ty_dtype_is_float(red->dtype) ? 'F' : 'L';
}

/* All lanes of a row that are in one warp get what theirs come to. */
static void emit_butterfly(ty_cuda_emit *c, int number)
{
    const ty_kreduction *red = &c->t.k->reduction[number];
    const char *type = emit_sum_type(c, red);
    int lanes = c->l.lanes < TY_CUDA_WARP ? c->l.lanes : TY_CUDA_WARP;
    char acc[24];
    snprintf(acc, sizeof acc, "r%d", number);
    ty_ktext_linef(&c->t, "%s r%d = t%d;\n", type, number, number);
    if (lanes == 1)
        return;
    ty_ktext_linef(&c->t, "TY_UNROLL for (int m = %d; m > 0; m /= 2) {\n", lanes / 2);
    c->t.indent++;
    ty_ktext_linef(&c->t, "const %s o = (%s)TY_SHUFFLE_%c(r%d, m);\n", type, type, emit_shuffle_letter(c, red), number);
    emit_combine(c, red, acc, "o");
    ty_emit_close(c);
}

/* Results of a row's warps, of all reductions of a stage at once; added in the order of the warps. */
static void emit_meet_write(ty_cuda_emit *c, int number)
{
    ty_ktext_linef(&c->t, "TY_SHARED %s s%d[%d];\n", emit_sum_type(c, &c->t.k->reduction[number]), number,
                   TY_CUDA_THREADS / TY_CUDA_WARP);
    ty_ktext_linef(&c->t, "if (TY_THREAD %% %d == 0) s%d[TY_THREAD / %d] = r%d;\n", TY_CUDA_WARP, number, TY_CUDA_WARP,
                   number);
}

static void emit_meet_read(ty_cuda_emit *c, int number)
{
    const ty_kreduction *red = &c->t.k->reduction[number];
    int warps = c->l.lanes / TY_CUDA_WARP;
    char acc[24], value[96], first[64] = "";
    if (c->l.lanes < TY_CUDA_THREADS)
        snprintf(first, sizeof first, "TY_THREAD / %d * %d + ", c->l.lanes, warps);
    snprintf(acc, sizeof acc, "r%d", number);
    snprintf(value, sizeof value, "s%d[%sw]", number, first);
    ty_ktext_linef(&c->t, "r%d = s%d[%s0];\n", number, number, first);
    ty_ktext_linef(&c->t, "TY_UNROLL for (int w = 1; w < %d; w++) {\n", warps);
    c->t.indent++;
    emit_combine(c, red, acc, value);
    ty_emit_close(c);
}

/* Rows across: threads of a row are as far apart as rows are many; a row's results meet in the order of its threads. */
static void emit_across_write(ty_cuda_emit *c, int number)
{
    ty_ktext_linef(&c->t, "TY_SHARED %s s%d[%d];\n", emit_sum_type(c, &c->t.k->reduction[number]), number,
                   TY_CUDA_THREADS);
    ty_ktext_linef(&c->t, "s%d[TY_THREAD] = t%d;\n", number, number);
}

static void emit_across_read(ty_cuda_emit *c, int number)
{
    const ty_kreduction *red = &c->t.k->reduction[number];
    int rows = c->l.points_per_block;
    char acc[24], value[64];
    snprintf(acc, sizeof acc, "r%d", number);
    snprintf(value, sizeof value, "s%d[TY_THREAD %% %d + w * %d]", number, rows, rows);
    ty_ktext_linef(&c->t, "%s r%d = s%d[TY_THREAD %% %d];\n", emit_sum_type(c, red), number, number, rows);
    ty_ktext_linef(&c->t, "TY_UNROLL for (int w = 1; w < %d; w++) {\n", c->l.lanes);
    c->t.indent++;
    emit_combine(c, red, acc, value);
    ty_emit_close(c);
}

/* Partial results of threads become results that every thread of the row has. Before the next row writes s comes the
 * barrier in front of the stage that uses the result. */
void ty_emit_end_sums(ty_cuda_emit *c, int stage)
{
    static void (*const in_block[])(ty_cuda_emit *, int) = {emit_butterfly, emit_meet_write, emit_meet_read};
    static void (*const across[])(ty_cuda_emit *, int) = {emit_across_write, emit_across_read};
    bool is_across = c->l.form == TY_CUDA_ROWS_ACROSS;
    int n_steps = is_across ? 2 : c->l.lanes > TY_CUDA_WARP ? 3 : 1;
    for (int step = 0; step < n_steps; step++) {
        int n = 0;
        for (int i = 0; i < c->t.k->n_reductions; i++)
            if (c->t.k->reduction[i].stage == stage && !c->t.k->reduction[i].columns)
                (is_across ? across : in_block)[step](c, i), n++;
        if (step == n_steps - 2 && n)
            ty_ktext_linef(&c->t, "TY_BARRIER();\n");
    }
}

ty_emit_thread ty_emit_thread_of_columns(const ty_cuda_emit *c)
{
    ty_emit_thread t = {.of = TY_CUDA_THREADS / c->l.points_per_block, .text = "TY_THREAD"};
    if (t.of < TY_CUDA_THREADS)
        snprintf(t.text, sizeof t.text, "(TY_THREAD %% %d)", t.of);
    return t;
}

/* Threads of a group of columns have written what they have side by side. */
static void emit_column_write(ty_cuda_emit *c, int number)
{
    const char *type = ty_ctypes[c->t.k->reduction[number].dtype].value;
    ty_ktext_linef(&c->t, "TY_SHARED %s s%d[%d];\n", type, number, TY_CUDA_THREADS * c->l.width);
    ty_ktext_linef(&c->t, "TY_UNROLL for (int w = 0; w < %d; w++) s%d[TY_THREAD * %d + w] = t%d[w];\n", c->l.width,
                   number, c->l.width, number);
}

static void emit_column_read(ty_cuda_emit *c, int number, int columns)
{
    const ty_kreduction *red = &c->t.k->reduction[number];
    const ty_emit_thread thread = ty_emit_thread_of_columns(c);
    char acc[24], value[128], first[64] = "TY_THREAD";
    if (thread.of < TY_CUDA_THREADS)
        snprintf(first, sizeof first, "TY_THREAD / %d * %d + TY_THREAD %% %d", thread.of, thread.of * c->l.width,
                 thread.of);
    snprintf(acc, sizeof acc, "r%d", number);
    snprintf(value, sizeof value, "s%d[%s + w * %d]", number, first, columns);
    ty_ktext_linef(&c->t, "%s r%d = s%d[%s];\n", ty_ctypes[red->dtype].value, number, number, first);
    ty_ktext_linef(&c->t, "for (int w = 1; w < %d; w++) {\n", thread.of / c->l.lanes);
    c->t.indent++;
    emit_combine(c, red, acc, value);
    ty_emit_close(c);
}

/* Partial results of a column, one of each row of threads, are added in the order of these rows. */
void ty_emit_end_column_sums(ty_cuda_emit *c, int columns)
{
    const ty_emit_thread thread = ty_emit_thread_of_columns(c);
    for (int i = 0; i < c->t.k->n_reductions; i++)
        emit_column_write(c, i);
    ty_ktext_linef(&c->t, "TY_BARRIER();\n");
    ty_ktext_linef(&c->t, "if (%s < %d && first + %s < %ld) {\n", thread.text, columns, thread.text,
                   (long)c->t.k->extent[c->l.column]);
    c->t.indent++;
    ty_ktext_linef(&c->t, "const %s i%d = first + %s; (void)i%d;\n", ty_emit_index(c), c->l.column, thread.text,
                   c->l.column);
    for (int i = 0; i < c->t.k->n_reductions; i++)
        emit_column_read(c, i, columns);
}

/* ---- columns of a band ---- */

void ty_emit_begin_band_sums(ty_cuda_emit *c)
{
    for (int i = 0; i < c->t.k->n_reductions; i++) {
        const ty_kreduction *red = &c->t.k->reduction[i];
        if (!red->columns)
            continue;
        ty_ktext_linef(&c->t, "%s c%d[%d][%d];\n", ty_ctypes[red->dtype].value, i, c->l.groups, c->l.width);
        ty_ktext_linef(&c->t,
                       "TY_UNROLL for (int j = 0; j < %d; j++)\n  TY_UNROLL for (int w = 0; w < %d; w++) c%d[j][w] = "
                       "%s;\n",
                       c->l.groups, c->l.width, i, ty_ktext_identity(red));
    }
}

/* Partial results of the rows that a block has at a time are added in the order of these rows. */
void ty_emit_band_sum(ty_cuda_emit *c, int number)
{
    const ty_kreduction *red = &c->t.k->reduction[number];
    int rows = TY_CUDA_THREADS / c->l.lanes, column = c->l.fast;
    long row = (long)c->l.row;
    char acc[24], value[48];
    ty_ktext_linef(&c->t, "TY_UNROLL for (int j = 0; j < %d; j++)\n", c->l.groups);
    ty_ktext_linef(&c->t, " TY_UNROLL for (int w = 0; w < %d; w++) {\n", c->l.width);
    c->t.indent += 2;
    ty_ktext_linef(&c->t, "const int e = (j * %d + TY_THREAD %% %d) * %d + w;\n", c->l.lanes, c->l.lanes, c->l.width);
    ty_ktext_linef(&c->t, "if (e < %ld) d[TY_THREAD / %d * %ld + e] = c%d[j][w];\n", row, c->l.lanes, row, number);
    c->t.indent--;
    ty_emit_close(c);
    ty_ktext_linef(&c->t, "TY_BARRIER();\n");
    ty_ktext_linef(&c->t, "for (int i%d = TY_THREAD; i%d < %ld; i%d += %d) {\n", column, column, row, column,
                   TY_CUDA_THREADS);
    c->t.indent++;
    ty_ktext_linef(&c->t, "%s r%d = d[i%d];\n", ty_ctypes[red->dtype].value, number, column);
    snprintf(acc, sizeof acc, "r%d", number);
    snprintf(value, sizeof value, "d[i%d + w * %ld]", column, row);
    ty_ktext_linef(&c->t, "for (int w = 1; w < %d; w++) {\n", rows);
    c->t.indent++;
    emit_combine(c, red, acc, value);
    ty_emit_close(c);
}
