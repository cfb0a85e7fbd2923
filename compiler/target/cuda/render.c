/* render.c - kernels as CUDA C. See render.h. */
#include "compiler/target/cuda/render.h"

#include "compiler/kernel/text.h"
#include "compiler/ops/op.h"
#include "compiler/target/cuda/layout.h"

#include <stdio.h>

enum { CUDA_DEAR = 24, CUDA_BLOCKS_OF_DEAR = 1024 };

typedef struct cuda_text {
    ty_ktext t;
    ty_cuda_layout l;
    ty_arena arena;
    uint8_t *before; /* by instruction: the same for all rows */
    int dear;        /* operations of those */
} cuda_text;

/* ---- loops ---- */

static void cuda_close(cuda_text *c)
{
    c->t.indent--;
    ty_ktext_linef(&c->t, "}\n");
}

/* The type of loop variables; without a sign, as they are divided: by shifts and high words of products. */
static const char *cuda_index(const cuda_text *c)
{
    return c->t.narrow ? "int" : "long";
}

static const char *cuda_number(const cuda_text *c)
{
    return c->t.narrow ? "unsigned" : "unsigned long";
}

/* Variables from the number of a point; the first one needs no remainder. `from` is used up. */
static void cuda_decode(cuda_text *c, const int *var, int n, const char *from)
{
    for (int i = n - 1; i >= 0; i--) {
        long extent = (long)c->t.k->extent[var[i]];
        if (i > 0)
            ty_ktext_linef(&c->t, "const %s i%d = (%s)%s %% %ldu; %s = (%s)%s / %ldu;\n", cuda_index(c), var[i],
                           cuda_number(c), from, extent, from, cuda_number(c), from, extent);
        else
            ty_ktext_linef(&c->t, "const %s i%d = %s;\n", cuda_index(c), var[i], from);
    }
}

static bool cuda_is_columns(const cuda_text *c)
{
    return c->l.form == TY_CUDA_BY_COLUMN;
}

/* ---- which instructions where ---- */

static bool cuda_same_operand(const cuda_text *c, uint32_t instr)
{
    return instr == TY_NONE || c->before[instr];
}

static bool cuda_address_is_same(const cuda_text *c, ty_ix ix)
{
    const ty_ix_node *node = ty_ix_at(&c->t.k->ix, ix);
    for (int i = 0; i < node->n_terms; i++) {
        const ty_atom *atom = &c->t.k->ix.atom[node->term[i].atom];
        if (atom->kind == TY_ATOM_VAR || (atom->kind == TY_ATOM_DATA && !c->before[atom->arg]) ||
            (atom->kind != TY_ATOM_DATA && !cuda_address_is_same(c, atom->arg)))
            return false;
    }
    return true;
}

/* What depends on no variable and no result of a row is computed once a thread. */
static void cuda_find_before(cuda_text *c)
{
    const ty_kernel *k = c->t.k;
    c->before = TY_NEW_ARRAY(&c->arena, uint8_t, k->n_instrs + 1);
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        const ty_kinstr *instr = &k->instr[i];
        bool same = instr->vars == 0 && instr->kop != TY_K_RESULT && cuda_same_operand(c, instr->a) &&
                    cuda_same_operand(c, instr->b) && cuda_same_operand(c, instr->c) &&
                    cuda_same_operand(c, instr->guard);
        if (instr->kop == TY_K_LOAD || instr->kop == TY_K_INDEX || instr->kop == TY_K_INSIDE)
            same = same && cuda_address_is_same(c, instr->addr);
        c->before[i] = same;
        c->dear += same && instr->kop == TY_K_OP ? ty_op_row_of(instr->op)->weight : 0;
    }
}

/* Of columns and of elements all is inside the loop: what depends on a column that is none must not be read. */
static bool cuda_in_loop(const cuda_text *c, const ty_kinstr *instr)
{
    for (int i = 0; i < c->l.n_inner; i++)
        if (instr->vars >> c->l.inner[i] & 1)
            return true;
    return cuda_is_columns(c) || c->l.form == TY_CUDA_FLAT;
}

static bool cuda_is_printed(const cuda_text *c, uint32_t i)
{
    return !c->before[i] && (c->l.groups == 0 || c->l.hold.needed[i]);
}

/* ---- accesses ---- */

static const char *cuda_memory(ty_dtype dtype)
{
    return ty_ctypes[dtype].memory;
}

/* Moves of `bytes` each between an array of the thread and memory. */
static void cuda_move(cuda_text *c, const char *word, const char *array, uint32_t number, uint32_t buffer, ty_ix addr,
                      int bytes)
{
    int each = bytes / (int)ty_dtype_bytes(c->t.k->buffer[buffer].dtype);
    for (int at = 0; at < c->l.width; at += each) {
        ty_ktext_line(&c->t);
        ty_buf_addf(c->t.out, "%s%d(%s%u + %d, &", word, bytes, array, number, at);
        ty_ktext_element(&c->t, buffer, addr);
        ty_buf_addf(c->t.out, " + %d);\n", at);
    }
}

static void cuda_load(cuda_text *c, uint32_t id)
{
    const ty_kinstr *instr = &c->t.k->instr[id];
    ty_ktext_linef(&c->t, "TY_ALIGNED %s x%u[%d]%s;\n", cuda_memory(instr->dtype), id, c->l.width,
                   instr->guard == TY_NONE ? "" : " = {0}");
    if (instr->guard != TY_NONE) {
        ty_ktext_linef(&c->t, "if (v%u) {\n", instr->guard);
        c->t.indent++;
    }
    cuda_move(c, "TY_GET", "x", id, instr->buffer, instr->addr, c->l.load[id]);
    if (instr->guard != TY_NONE)
        cuda_close(c);
}

static void cuda_store(cuda_text *c, int number)
{
    const ty_kstore *store = &c->t.k->store[number];
    bool guarded = store->guard != TY_NONE;
    if (guarded) {
        ty_ktext_linef(&c->t, "if (v%u) {\n", store->guard);
        c->t.indent++;
    }
    cuda_move(c, "TY_PUT", "y", (uint32_t)number, store->buffer, store->addr, c->l.store[number]);
    if (guarded)
        cuda_close(c);
}

/* ---- reductions ---- */

/* A float sum of a row is added up in float by each thread and in double between them, as on the CPU between blocks. */
static bool cuda_is_double(const cuda_text *c, const ty_kreduction *red)
{
    return !cuda_is_columns(c) && red->how == TY_SUM && ty_dtype_is_float(red->dtype);
}

static const char *cuda_sum_type(const cuda_text *c, const ty_kreduction *red)
{
    return cuda_is_double(c, red) ? "double" : ty_ctypes[red->dtype].value;
}

/* acc and v become acc. A NaN stays. */
static void cuda_combine(cuda_text *c, ty_combine how, const char *acc, const char *v)
{
    if (how == TY_SUM || how == TY_PROD)
        ty_ktext_linef(&c->t, "%s %s= %s;\n", acc, how == TY_SUM ? "+" : "*", v);
    else
        ty_ktext_linef(&c->t, "%s = %s %c %s || %s != %s ? %s : %s;\n", acc, v, how == TY_MAX ? '>' : '<', acc, v, v, v,
                       acc);
}

static void cuda_begin_sums(cuda_text *c, int stage)
{
    for (int i = 0; i < c->t.k->n_reductions; i++) {
        const ty_kreduction *red = &c->t.k->reduction[i];
        const char *type = ty_ctypes[red->dtype].value;
        if (red->stage != stage)
            continue;
        if (!cuda_is_columns(c))
            ty_ktext_linef(&c->t, "%s t%d = %s;\n", type, i, ty_ktext_identity(red));
        else
            ty_ktext_linef(&c->t, "%s t%d[%d]; TY_UNROLL for (int w = 0; w < %d; w++) t%d[w] = %s;\n", type, i,
                           c->l.width, c->l.width, i, ty_ktext_identity(red));
    }
}

static void cuda_add_sums(cuda_text *c, int stage)
{
    char acc[24], value[24];
    for (int i = 0; i < c->t.k->n_reductions; i++) {
        const ty_kreduction *red = &c->t.k->reduction[i];
        if (red->stage != stage)
            continue;
        snprintf(acc, sizeof acc, cuda_is_columns(c) ? "t%d[w]" : "t%d", i);
        snprintf(value, sizeof value, "v%u", red->value);
        cuda_combine(c, red->how, acc, value);
    }
}

static char cuda_shuffle_letter(const cuda_text *c, const ty_kreduction *red)
{
    bool wide = cuda_is_double(c, red) || red->dtype == TY_F64;
    return wide ? 'D' : ty_dtype_is_float(red->dtype) ? 'F' : 'L';
}

/* All lanes of a row that are in one warp get what theirs come to. */
static void cuda_butterfly(cuda_text *c, int number)
{
    const ty_kreduction *red = &c->t.k->reduction[number];
    const char *type = cuda_sum_type(c, red);
    int lanes = c->l.lanes < TY_CUDA_WARP ? c->l.lanes : TY_CUDA_WARP;
    char acc[24];
    snprintf(acc, sizeof acc, "r%d", number);
    ty_ktext_linef(&c->t, "%s r%d = t%d;\n", type, number, number);
    if (lanes == 1)
        return;
    ty_ktext_linef(&c->t, "TY_UNROLL for (int m = %d; m > 0; m /= 2) {\n", lanes / 2);
    c->t.indent++;
    ty_ktext_linef(&c->t, "const %s o = (%s)TY_SHUFFLE_%c(r%d, m);\n", type, type, cuda_shuffle_letter(c, red), number);
    cuda_combine(c, red->how, acc, "o");
    cuda_close(c);
}

/* Results of a block's warps, of all reductions of a stage at once; added in the order of the warps. */
static void cuda_meet_write(cuda_text *c, int number)
{
    ty_ktext_linef(&c->t, "TY_SHARED %s s%d[%d];\n", cuda_sum_type(c, &c->t.k->reduction[number]), number,
                   TY_CUDA_THREADS / TY_CUDA_WARP);
    ty_ktext_linef(&c->t, "if (TY_THREAD %% %d == 0) s%d[TY_THREAD / %d] = r%d;\n", TY_CUDA_WARP, number, TY_CUDA_WARP,
                   number);
}

static void cuda_meet_read(cuda_text *c, int number)
{
    const ty_kreduction *red = &c->t.k->reduction[number];
    char acc[24], value[24];
    snprintf(acc, sizeof acc, "r%d", number);
    snprintf(value, sizeof value, "s%d[w]", number);
    ty_ktext_linef(&c->t, "r%d = s%d[0];\n", number, number);
    ty_ktext_linef(&c->t, "TY_UNROLL for (int w = 1; w < %d; w++) {\n", TY_CUDA_THREADS / TY_CUDA_WARP);
    c->t.indent++;
    cuda_combine(c, red->how, acc, value);
    cuda_close(c);
}

/* Partial results of threads become results that every thread of the row has. Before the next row writes s comes the
 * barrier in front of the stage that uses the result. */
static void cuda_end_sums(cuda_text *c, int stage)
{
    static void (*const steps[])(cuda_text *, int) = {cuda_butterfly, cuda_meet_write, cuda_meet_read};
    int n_steps = c->l.form == TY_CUDA_ROW_BY_BLOCK ? 3 : 1;
    for (int step = 0; step < n_steps; step++) {
        int n = 0;
        for (int i = 0; i < c->t.k->n_reductions; i++)
            if (c->t.k->reduction[i].stage == stage)
                steps[step](c, i), n++;
        if (step == 1 && n)
            ty_ktext_linef(&c->t, "TY_BARRIER();\n");
    }
}

/* ---- the elements that a thread takes at a time ---- */

/* Row kernels compute outside the loop what does not depend on it. */
static bool cuda_is_of(const cuda_text *c, uint32_t i, int stage, bool in_loop)
{
    const ty_kinstr *instr = &c->t.k->instr[i];
    return instr->stage == stage && cuda_is_printed(c, i) && cuda_in_loop(c, instr) == in_loop;
}

static void cuda_instrs(cuda_text *c, int stage, bool in_loop)
{
    for (uint32_t i = 0; i < c->t.k->n_instrs; i++)
        if (cuda_is_of(c, i, stage, in_loop))
            ty_ktext_instr(&c->t, i);
}

static void cuda_stores(cuda_text *c, int stage)
{
    for (int i = 0; i < c->t.k->n_stores; i++)
        if (c->t.k->store[i].stage == stage)
            ty_ktext_store(&c->t, &c->t.k->store[i]);
}

/* From here on later stages may have it. */
static void cuda_hold(cuda_text *c, int stage)
{
    for (uint32_t i = 0; c->l.groups && i < c->t.k->n_instrs; i++)
        if (c->l.hold.held[i] && c->t.k->instr[i].stage == stage)
            ty_ktext_linef(&c->t, "h%u[j][w] = v%u;\n", i, i);
}

static bool cuda_is_held(const cuda_text *c, uint32_t i)
{
    return c->l.groups && c->l.hold.from[i] != TY_NONE;
}

/* What is the same for all lanes, and wide loads. */
static void cuda_group_begin(cuda_text *c, int stage)
{
    for (uint32_t i = 0; i < c->t.k->n_instrs; i++) {
        if (!cuda_is_of(c, i, stage, true) || cuda_is_held(c, i))
            continue;
        if (c->l.at.same[i])
            ty_ktext_instr(&c->t, i);
        else if (c->l.load[i])
            cuda_load(c, i);
    }
    for (int i = 0; i < c->t.k->n_stores; i++)
        if (c->t.k->store[i].stage == stage && c->l.store[i])
            ty_ktext_linef(&c->t, "TY_ALIGNED %s y%d[%d];\n",
                           cuda_memory(c->t.k->buffer[c->t.k->store[i].buffer].dtype), i, c->l.width);
}

static void cuda_lane_stores(cuda_text *c, int stage)
{
    for (int i = 0; i < c->t.k->n_stores; i++) {
        const ty_kstore *store = &c->t.k->store[i];
        if (store->stage != stage)
            continue;
        if (!c->l.store[i]) {
            ty_ktext_store(&c->t, store);
            continue;
        }
        ty_ktext_line(&c->t);
        ty_buf_addf(c->t.out, "y%d[w] = ", i);
        ty_ktext_stored(&c->t, store);
        ty_buf_adds(c->t.out, ";\n");
    }
}

static void cuda_lanes(cuda_text *c, int stage)
{
    ty_ktext_linef(&c->t, "TY_UNROLL for (int w = 0; w < %d; w++) {\n", c->l.width);
    c->t.indent++;
    ty_ktext_linef(&c->t, "const %s l = i%d + w;\n", cuda_index(c), c->l.fast);
    ty_ktext_linef(&c->t, "{\n");
    c->t.indent++;
    ty_ktext_linef(&c->t, "const %s i%d = l; (void)i%d;\n", cuda_index(c), c->l.fast, c->l.fast);
    for (uint32_t i = 0; i < c->t.k->n_instrs; i++)
        if (cuda_is_of(c, i, stage, true) && (!c->l.at.same[i] || cuda_is_held(c, i)))
            ty_ktext_instr(&c->t, i);
    cuda_hold(c, stage);
    cuda_add_sums(c, stage);
    cuda_lane_stores(c, stage);
    cuda_close(c);
    cuda_close(c);
}

static void cuda_group(cuda_text *c, int stage)
{
    if (c->l.width > 1) {
        cuda_group_begin(c, stage);
        cuda_lanes(c, stage);
        for (int i = 0; i < c->t.k->n_stores; i++)
            if (c->t.k->store[i].stage == stage && c->l.store[i])
                cuda_store(c, i);
        return;
    }
    if (c->l.groups || cuda_is_columns(c))
        ty_ktext_linef(&c->t, "const int w = 0;\n");
    cuda_instrs(c, stage, true);
    cuda_hold(c, stage);
    cuda_add_sums(c, stage);
    cuda_stores(c, stage);
}

/* ---- rows ---- */

/* A thread's number in its row. */
static void cuda_lane_text(const cuda_text *c, char *out, size_t n)
{
    if (c->l.lanes == TY_CUDA_THREADS)
        snprintf(out, n, "TY_THREAD");
    else if (c->l.lanes == 1)
        snprintf(out, n, "0");
    else
        snprintf(out, n, "TY_THREAD %% %d", c->l.lanes);
}

/* How far behind a multiple of the width the row begins, in elements of the memory that is aligned. */
static void cuda_shift(cuda_text *c)
{
    ty_ktext_linef(&c->t, "%s shift;\n", cuda_index(c));
    ty_ktext_linef(&c->t, "{\n");
    c->t.indent++;
    ty_ktext_linef(&c->t, "const %s i%d = 0;\n", cuda_index(c), c->l.fast);
    ty_ktext_line(&c->t);
    ty_buf_adds(c->t.out, "shift = (int)((unsigned long)(&");
    ty_ktext_element(&c->t, c->l.begin, c->l.at.begin);
    ty_buf_addf(c->t.out, " - b%u) %% %du);\n", c->t.alias[c->l.begin], c->l.width);
    cuda_close(c);
}

/* The same elements one by one: the first and the last of a row. */
static void cuda_ends(cuda_text *c, int stage)
{
    const uint8_t *vector = c->t.vector;
    int width = c->l.width;
    c->t.vector = NULL;
    c->l.width = 1;
    ty_ktext_linef(&c->t, "for (%s i%d = e < 0 ? 0 : e; i%d < e + %d && i%d < %ld; i%d++) {\n", cuda_index(c),
                   c->l.fast, c->l.fast, width, c->l.fast, (long)c->l.row, c->l.fast);
    c->t.indent++;
    cuda_group(c, stage);
    cuda_close(c);
    c->t.vector = vector;
    c->l.width = width;
}

static void cuda_shifted_stage(cuda_text *c, int stage)
{
    cuda_begin_sums(c, stage);
    cuda_instrs(c, stage, false);
    ty_ktext_linef(&c->t, "for (%s e = TY_THREAD * %d - shift; e < %ld; e += %d) {\n", cuda_index(c), c->l.width,
                   (long)c->l.row, c->l.lanes * c->l.width);
    c->t.indent++;
    ty_ktext_linef(&c->t, "if (e >= 0 && e <= %ld) {\n", (long)(c->l.row - c->l.width));
    c->t.indent++;
    ty_ktext_linef(&c->t, "const %s i%d = e;\n", cuda_index(c), c->l.fast);
    cuda_group(c, stage);
    c->t.indent--;
    ty_ktext_linef(&c->t, "} else {\n");
    c->t.indent++;
    cuda_ends(c, stage);
    cuda_close(c);
    cuda_close(c);
    cuda_end_sums(c, stage);
}

static void cuda_loop_stage(cuda_text *c, int stage)
{
    int64_t step = (int64_t)c->l.lanes * c->l.width;
    char lane[32];
    cuda_lane_text(c, lane, sizeof lane);
    cuda_begin_sums(c, stage);
    cuda_instrs(c, stage, false);
    if (c->l.groups) {
        ty_ktext_linef(&c->t, "TY_UNROLL for (int j = 0; j < %d; j++) {\n", c->l.groups);
        c->t.indent++;
        ty_ktext_linef(&c->t, "%s e = (j * %d + %s) * %d;\n", cuda_index(c), c->l.lanes, lane, c->l.width);
        if (c->l.row % step)
            ty_ktext_linef(&c->t, "if (e >= %ld) continue;\n", (long)c->l.row);
    } else {
        ty_ktext_linef(&c->t, "TY_UNROLL_4 for (%s e0 = (%s) * %d; e0 < %ld; e0 += %ld) {\n", cuda_index(c), lane,
                       c->l.width, (long)c->l.row, (long)step);
        c->t.indent++;
        ty_ktext_linef(&c->t, "%s e = e0; (void)e;\n", cuda_index(c));
    }
    cuda_decode(c, c->l.inner, c->l.n_inner, "e");
    cuda_group(c, stage);
    cuda_close(c);
    cuda_end_sums(c, stage);
}

static bool cuda_has(const cuda_text *c, int stage)
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
static void cuda_row_stage(cuda_text *c, int stage)
{
    char lane[32];
    cuda_lane_text(c, lane, sizeof lane);
    cuda_instrs(c, stage, false);
    ty_ktext_linef(&c->t, "if (%s == 0) {\n", lane);
    c->t.indent++;
    cuda_stores(c, stage);
    cuda_close(c);
}

static void cuda_declare_held(cuda_text *c)
{
    for (uint32_t i = 0; c->l.groups && i < c->t.k->n_instrs; i++)
        if (c->l.hold.held[i])
            ty_ktext_linef(&c->t, "%s h%u[%d][%d];\n", ty_ctypes[c->t.k->instr[i].dtype].value, i, c->l.groups,
                           c->l.width);
}

/* What one stage has written another may read. */
static void cuda_rows(cuda_text *c)
{
    const char *barrier = c->l.form == TY_CUDA_ROW_BY_BLOCK  ? "TY_BARRIER();\n"
                          : c->l.form == TY_CUDA_ROW_BY_WARP ? "TY_WARP_BARRIER();\n"
                                                             : "";
    cuda_decode(c, c->l.outer, c->l.n_outer, "p");
    cuda_declare_held(c);
    if (c->l.shifted)
        cuda_shift(c);
    for (int stage = 0; stage < c->t.k->n_stages; stage++) {
        if (stage % 2 && stage + 1 < c->t.k->n_stages && !cuda_has(c, stage))
            continue; /* the next one has its own barrier */
        if (stage && *barrier)
            ty_ktext_linef(&c->t, "%s", barrier);
        if (stage & 1)
            cuda_row_stage(c, stage);
        else if (c->l.shifted)
            cuda_shifted_stage(c, stage);
        else
            cuda_loop_stage(c, stage);
    }
}

/* ---- columns ---- */

/* Partial results of a column, one of each row of threads, are added in the order of these rows. */
static void cuda_column_sums(cuda_text *c, int columns)
{
    for (int i = 0; i < c->t.k->n_reductions; i++) {
        const char *type = ty_ctypes[c->t.k->reduction[i].dtype].value;
        ty_ktext_linef(&c->t, "TY_SHARED %s s%d[%d];\n", type, i, TY_CUDA_THREADS * c->l.width);
        ty_ktext_linef(&c->t, "TY_UNROLL for (int w = 0; w < %d; w++) s%d[TY_THREAD * %d + w] = t%d[w];\n", c->l.width,
                       i, c->l.width, i);
    }
    ty_ktext_linef(&c->t, "TY_BARRIER();\n");
    ty_ktext_linef(&c->t, "if (TY_THREAD < %d && first + TY_THREAD < %ld) {\n", columns,
                   (long)c->t.k->extent[c->l.column]);
    c->t.indent++;
    ty_ktext_linef(&c->t, "const %s i%d = first + TY_THREAD; (void)i%d;\n", cuda_index(c), c->l.column, c->l.column);
    for (int i = 0; i < c->t.k->n_reductions; i++) {
        const ty_kreduction *red = &c->t.k->reduction[i];
        char acc[24], value[48];
        snprintf(acc, sizeof acc, "r%d", i);
        snprintf(value, sizeof value, "s%d[TY_THREAD + w * %d]", i, columns);
        ty_ktext_linef(&c->t, "%s r%d = s%d[TY_THREAD];\n", ty_ctypes[red->dtype].value, i, i);
        ty_ktext_linef(&c->t, "for (int w = 1; w < %d; w++) {\n", TY_CUDA_THREADS / c->l.lanes);
        c->t.indent++;
        cuda_combine(c, red->how, acc, value);
        cuda_close(c);
    }
}

static void cuda_columns(cuda_text *c)
{
    int lanes = c->l.lanes, columns = lanes * c->l.width;
    long extent = (long)c->t.k->extent[c->l.column], blocks = (extent + columns - 1) / columns;
    const char *index = cuda_index(c);
    ty_ktext_linef(&c->t, "const %s first = p %% %ld * %d; p /= %ld;\n", index, blocks, columns, blocks);
    cuda_decode(c, c->l.outer, c->l.n_outer, "p");
    cuda_begin_sums(c, 0);
    ty_ktext_linef(&c->t, "const %s start = first + TY_THREAD %% %d * %d;\n", index, lanes, c->l.width);
    ty_ktext_linef(&c->t, "TY_UNROLL_4 for (%s e0 = TY_THREAD / %d; start < %ld && e0 < %ld; e0 += %d) {\n", index,
                   lanes, extent, (long)c->l.row, TY_CUDA_THREADS / lanes);
    c->t.indent++;
    ty_ktext_linef(&c->t, "const %s i%d = start;\n %s e = e0; (void)e;\n", index, c->l.column, index);
    cuda_decode(c, c->l.inner, c->l.n_inner, "e");
    cuda_group(c, 0);
    cuda_close(c);
    cuda_column_sums(c, columns);
    cuda_instrs(c, 1, true);
    cuda_stores(c, 1);
    cuda_close(c);
    ty_ktext_linef(&c->t, "TY_BARRIER();\n"); /* before the next ones write s */
}

/* ---- the kernel ---- */

static void cuda_flat(cuda_text *c)
{
    int all[TY_K_MAX_VARS], n = 0;
    for (int i = 0; i < c->l.n_outer; i++)
        all[n++] = c->l.outer[i];
    for (int i = 0; i < c->l.n_inner; i++)
        all[n++] = c->l.inner[i];
    if (c->l.width > 1)
        ty_ktext_linef(&c->t, "p *= %d;\n", c->l.width);
    cuda_decode(c, all, n, "p");
    cuda_group(c, 0);
}

static void cuda_body(cuda_text *c)
{
    int each = c->l.points_per_block;
    char own[32] = "";
    for (uint32_t i = 0; i < c->t.k->n_instrs; i++)
        if (c->before[i])
            ty_ktext_instr(&c->t, i);
    if (each > 1)
        snprintf(own, sizeof own, " + TY_THREAD / %d", TY_CUDA_THREADS / each);
    ty_ktext_linef(&c->t, "for (%s p0 = TY_BLOCK * %d%s; p0 < %ld; p0 += TY_BLOCKS * %d) {\n", cuda_index(c), each, own,
                   (long)c->l.points, each);
    c->t.indent++;
    ty_ktext_linef(&c->t, "%s p = p0; (void)p;\n", cuda_index(c));
    if (c->l.form == TY_CUDA_FLAT)
        cuda_flat(c);
    else if (cuda_is_columns(c))
        cuda_columns(c);
    else
        cuda_rows(c);
    cuda_close(c);
}

static void cuda_parameters(const ty_cuda_kernel *kernel, ty_buf *out)
{
    const ty_kernel *k = kernel->k;
    bool first = true;
    for (int i = 0; i < k->n_buffers; i++) {
        if (kernel->alias[i] != (uint32_t)i)
            continue;
        ty_buf_addf(out, "%s%s%s *__restrict__ b%d", first ? "" : ", ", k->buffer[i].written ? "" : "const ",
                    cuda_memory(k->buffer[i].dtype), i);
        first = false;
    }
}

/* Which loads are done wide, for ty_ktext. */
static const uint8_t *cuda_wide_loads(cuda_text *c)
{
    uint8_t *wide = TY_NEW_ARRAY(&c->arena, uint8_t, c->t.k->n_instrs + 1);
    for (uint32_t i = 0; c->l.width > 1 && i < c->t.k->n_instrs; i++)
        wide[i] = c->l.load[i] > 0;
    return wide;
}

static ty_cuda_launch cuda_launch(const cuda_text *c)
{
    static const char *const names[] = {[TY_CUDA_FLAT] = "flat",
                                        [TY_CUDA_ROW_BY_THREAD] = "thread",
                                        [TY_CUDA_ROW_BY_WARP] = "warp",
                                        [TY_CUDA_ROW_BY_BLOCK] = "block",
                                        [TY_CUDA_BY_COLUMN] = "column"};
    int64_t blocks = (c->l.points + c->l.points_per_block - 1) / c->l.points_per_block;
    if (c->dear >= CUDA_DEAR && blocks > CUDA_BLOCKS_OF_DEAR) /* or each block would compute it again */
        blocks = CUDA_BLOCKS_OF_DEAR;
    return (ty_cuda_launch){names[c->l.form], TY_CUDA_THREADS, blocks,
                            c->l.form != TY_CUDA_FLAT && c->l.form != TY_CUDA_ROW_BY_THREAD, c->l.wide};
}

ty_cuda_launch ty_cuda_render_kernel(const ty_cuda_kernel *kernel, const char *name, ty_buf *out)
{
    cuda_text c = {.t = {.k = kernel->k,
                         .alias = kernel->alias,
                         .base = kernel->base,
                         .out = out,
                         .indent = 1,
                         .narrow = ty_ktext_fits_int(kernel->k, kernel->base),
                         .cut = -1,
                         .row_guard = TY_NONE}};
    ty_arena_init(&c.arena);
    c.l = ty_cuda_layout_of(kernel, &c.arena);
    c.t.vector = cuda_wide_loads(&c);
    c.t.from = c.l.groups ? c.l.hold.from : NULL;
    cuda_find_before(&c);
    ty_buf_addf(out, "%s(%d) %s(", c.l.wide ? "TY_WIDE_KERNEL" : "TY_KERNEL", TY_CUDA_THREADS, name);
    cuda_parameters(kernel, out);
    ty_buf_adds(out, ")\n{\n");
    cuda_body(&c);
    ty_buf_adds(out, "}\n");
    ty_cuda_launch launch = cuda_launch(&c);
    ty_arena_fini(&c.arena);
    return launch;
}

void ty_grid_render_kernel(const ty_kernel *k, const uint32_t *alias, const int64_t *base, ty_buf *out)
{
    bool first = true;
    ty_cuda_launch launch =
        ty_cuda_render_kernel(&(ty_cuda_kernel){k, alias, base, NULL, 0}, "TY_DEVICE(TY_NAME)", out);
    ty_buf_adds(
        out, "static void TY_BODY(TY_NAME)(void *all)\n{\n char *const *b = (char *const *)all;\n TY_DEVICE(TY_NAME)(");
    for (int i = 0; i < k->n_buffers; i++) {
        if (alias[i] != (uint32_t)i)
            continue;
        ty_buf_addf(out, "%s(void *)b[%d]", first ? "" : ", ", i);
        first = false;
    }
    ty_buf_addf(out, ");\n}\nTY_CALL(TY_NAME, %d, %ldl, %d)\n", launch.threads, (long)launch.blocks,
                launch.has_barriers);
}
