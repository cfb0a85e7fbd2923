/* render.c - kernels as CUDA C. See render.h. */
#include "compiler/target/cuda/render.h"

#include "compiler/kernel/text.h"

#include <stdio.h>

#define CUDA_THREADS     256
#define CUDA_WARP        32
#define CUDA_ROW_THREAD  4    /* longest row that one thread takes */
#define CUDA_ROW_WARP    1024 /* longest row that one warp takes */
#define CUDA_COLUMNS     32   /* columns of a block */
#define CUDA_COLUMN_ROWS (CUDA_THREADS / CUDA_COLUMNS)

typedef enum cuda_form { CUDA_FLAT, CUDA_ROW_BY_THREAD, CUDA_ROW_BY_WARP, CUDA_ROW_BY_BLOCK, CUDA_BY_COLUMN } cuda_form;

typedef struct cuda_text {
    ty_ktext t;
    cuda_form form;
    int column;                        /* BY_COLUMN: its variable, else -1 */
    int outer[TY_K_MAX_VARS], n_outer; /* variables from slowest to fastest, without the column */
    int inner[TY_K_MAX_VARS], n_inner; /* likewise */
    int64_t n_rows, row;               /* points of the outer and of the inner space */
} cuda_text;

/* ---- the layout ---- */

static int64_t cuda_extent(const ty_kernel *k, const int *var, int n)
{
    int64_t points = 1;
    for (int i = 0; i < n; i++)
        points *= k->extent[var[i]];
    return points;
}

static cuda_form cuda_form_of(const cuda_text *c)
{
    const ty_kernel *k = c->t.k;
    if (k->form == TY_FORM_COLUMNS)
        return CUDA_BY_COLUMN;
    if (k->n_reductions == 0 && k->n_stages == 1)
        return CUDA_FLAT;
    return c->row <= CUDA_ROW_THREAD ? CUDA_ROW_BY_THREAD
           : c->row <= CUDA_ROW_WARP ? CUDA_ROW_BY_WARP
                                     : CUDA_ROW_BY_BLOCK;
}

static cuda_text cuda_text_of(const ty_kernel *k)
{
    cuda_text c = {.t = {.k = k}, .column = k->form == TY_FORM_COLUMNS ? k->order[k->n_order - 1] : -1};
    for (int i = 0; i < k->n_order; i++) {
        int var = k->order[i];
        if (!(k->outer >> var & 1))
            c.inner[c.n_inner++] = var;
        else if (var != c.column)
            c.outer[c.n_outer++] = var;
    }
    c.n_rows = cuda_extent(k, c.outer, c.n_outer);
    c.row = cuda_extent(k, c.inner, c.n_inner);
    c.form = cuda_form_of(&c);
    return c;
}

/* Rows that a block has at a time; of BY_COLUMN, blocks of columns. */
static int64_t cuda_rows_of_block(cuda_form form)
{
    return form == CUDA_ROW_BY_THREAD ? CUDA_THREADS : form == CUDA_ROW_BY_WARP ? CUDA_THREADS / CUDA_WARP : 1;
}

static int64_t cuda_column_blocks(const cuda_text *c)
{
    return (c->t.k->extent[c->column] + CUDA_COLUMNS - 1) / CUDA_COLUMNS;
}

ty_cuda_launch ty_cuda_launch_of(const ty_kernel *k)
{
    cuda_text c = cuda_text_of(k);
    int64_t units = c.form == CUDA_FLAT        ? c.n_rows * c.row
                    : c.form == CUDA_BY_COLUMN ? c.n_rows * cuda_column_blocks(&c)
                                               : c.n_rows;
    int64_t each = c.form == CUDA_FLAT ? CUDA_THREADS : cuda_rows_of_block(c.form);
    return (ty_cuda_launch){CUDA_THREADS, (units + each - 1) / each, c.form > CUDA_ROW_BY_THREAD};
}

/* ---- loops ---- */

static void cuda_close(cuda_text *c)
{
    c->t.indent--;
    ty_ktext_line(&c->t);
    ty_buf_adds(c->t.out, "}\n");
}

/* Variables from the number of a point; the first one needs no remainder. `from` is used up. */
static void cuda_decode(cuda_text *c, const int *var, int n, const char *from)
{
    for (int i = n - 1; i >= 0; i--) {
        long extent = (long)c->t.k->extent[var[i]];
        ty_ktext_line(&c->t);
        if (i > 0)
            ty_buf_addf(c->t.out, "const long i%d = %s %% %ldl; %s /= %ldl;\n", var[i], from, extent, from, extent);
        else
            ty_buf_addf(c->t.out, "const long i%d = %s;\n", var[i], from);
    }
}

static void cuda_open_points(cuda_text *c, const char *name, const char *first, const char *stride, int64_t n)
{
    ty_ktext_line(&c->t);
    ty_buf_addf(c->t.out, "for (long %s0 = %s; %s0 < %ldl; %s0 += %s) {\n", name, first, name, (long)n, name, stride);
    c->t.indent++;
    ty_ktext_line(&c->t);
    ty_buf_addf(c->t.out, "long %s = %s0; (void)%s;\n", name, name, name);
}

/* ---- instructions ---- */

static bool cuda_in_loop(const cuda_text *c, const ty_kinstr *instr)
{
    for (int i = 0; i < c->n_inner; i++)
        if (instr->vars >> c->inner[i] & 1)
            return true;
    return c->form == CUDA_BY_COLUMN;
}

/* which: 0: those outside the loop over a row, 1: those inside, -1: all. Of columns all are inside: what depends on a
 * column that is none must not be read. */
static void cuda_instrs(cuda_text *c, int stage, int which)
{
    for (uint32_t i = 0; i < c->t.k->n_instrs; i++) {
        const ty_kinstr *instr = &c->t.k->instr[i];
        if (instr->stage == stage && (which < 0 || cuda_in_loop(c, instr) == (which == 1)))
            ty_ktext_instr(&c->t, i);
    }
}

static void cuda_stores(cuda_text *c, int stage)
{
    for (int i = 0; i < c->t.k->n_stores; i++)
        if (c->t.k->store[i].stage == stage)
            ty_ktext_store(&c->t, &c->t.k->store[i]);
}

static bool cuda_has_stores(const cuda_text *c, int stage)
{
    for (int i = 0; i < c->t.k->n_stores; i++)
        if (c->t.k->store[i].stage == stage)
            return true;
    return false;
}

/* ---- reductions ---- */

/* A float sum of a row is added up in float by each thread and in double between them, as on the CPU between blocks. */
static bool cuda_is_double(const cuda_text *c, const ty_kreduction *red)
{
    return c->form != CUDA_BY_COLUMN && red->how == TY_SUM && ty_dtype_is_float(red->dtype);
}

static const char *cuda_sum_type(const cuda_text *c, const ty_kreduction *red)
{
    return cuda_is_double(c, red) ? "double" : ty_ctypes[red->dtype].value;
}

/* acc and v become acc. A NaN stays. */
static void cuda_combine(cuda_text *c, ty_combine how, const char *acc, const char *v)
{
    ty_ktext_line(&c->t);
    if (how == TY_SUM || how == TY_PROD)
        ty_buf_addf(c->t.out, "%s %s= %s;\n", acc, how == TY_SUM ? "+" : "*", v);
    else
        ty_buf_addf(c->t.out, "%s = %s %c %s || %s != %s ? %s : %s;\n", acc, v, how == TY_MAX ? '>' : '<', acc, v, v, v,
                    acc);
}

static void cuda_begin_sums(cuda_text *c, int stage)
{
    for (int i = 0; i < c->t.k->n_reductions; i++) {
        const ty_kreduction *red = &c->t.k->reduction[i];
        if (red->stage != stage)
            continue;
        ty_ktext_line(&c->t);
        ty_buf_addf(c->t.out, "%s t%d = %s;\n", ty_ctypes[red->dtype].value, i, ty_ktext_identity(red));
    }
}

static void cuda_add_sums(cuda_text *c, int stage)
{
    char acc[24], value[24];
    for (int i = 0; i < c->t.k->n_reductions; i++) {
        const ty_kreduction *red = &c->t.k->reduction[i];
        if (red->stage != stage)
            continue;
        snprintf(acc, sizeof acc, "t%d", i);
        snprintf(value, sizeof value, "v%u", red->value);
        cuda_combine(c, red->how, acc, value);
    }
}

static char cuda_shuffle_letter(const cuda_text *c, const ty_kreduction *red)
{
    bool wide = cuda_is_double(c, red) || red->dtype == TY_F64;
    return wide ? 'D' : ty_dtype_is_float(red->dtype) ? 'F' : 'L';
}

/* All lanes of the warp get what theirs come to. */
static void cuda_butterfly(cuda_text *c, int number)
{
    const ty_kreduction *red = &c->t.k->reduction[number];
    const char *type = cuda_sum_type(c, red);
    char acc[24];
    snprintf(acc, sizeof acc, "r%d", number);
    ty_ktext_line(&c->t);
    ty_buf_addf(c->t.out, "for (int m = %d; m > 0; m /= 2) {\n", CUDA_WARP / 2);
    c->t.indent++;
    ty_ktext_line(&c->t);
    ty_buf_addf(c->t.out, "const %s o = (%s)TY_SHUFFLE_%c(r%d, m);\n", type, type, cuda_shuffle_letter(c, red), number);
    cuda_combine(c, red->how, acc, "o");
    cuda_close(c);
}

/* All threads of the block get what its warps come to, added in their order. Before the next row writes s comes the
 * barrier in front of the stage that uses the result. */
static void cuda_over_warps(cuda_text *c, int number)
{
    const ty_kreduction *red = &c->t.k->reduction[number];
    char acc[24];
    snprintf(acc, sizeof acc, "r%d", number);
    ty_ktext_line(&c->t);
    ty_buf_addf(c->t.out, "TY_SHARED %s s%d[%d];\n", cuda_sum_type(c, red), number, CUDA_THREADS / CUDA_WARP);
    ty_ktext_line(&c->t);
    ty_buf_addf(c->t.out, "if (TY_THREAD %% %d == 0) s%d[TY_THREAD / %d] = r%d;\n", CUDA_WARP, number, CUDA_WARP,
                number);
    ty_ktext_line(&c->t);
    ty_buf_addf(c->t.out, "TY_BARRIER();\n");
    ty_ktext_line(&c->t);
    ty_buf_addf(c->t.out, "r%d = s%d[0];\n", number, number);
    ty_ktext_line(&c->t);
    ty_buf_addf(c->t.out, "for (int w = 1; w < %d; w++) {\n", CUDA_THREADS / CUDA_WARP);
    c->t.indent++;
    ty_ktext_line(&c->t);
    ty_buf_addf(c->t.out, "const %s o = s%d[w];\n", cuda_sum_type(c, red), number);
    cuda_combine(c, red->how, acc, "o");
    cuda_close(c);
}

/* Eight threads a column: each gets what they come to, added in their order. */
static void cuda_over_column(cuda_text *c, int number)
{
    const ty_kreduction *red = &c->t.k->reduction[number];
    char acc[24];
    snprintf(acc, sizeof acc, "r%d", number);
    ty_ktext_line(&c->t);
    ty_buf_addf(c->t.out, "TY_SHARED %s s%d[%d];\n", cuda_sum_type(c, red), number, CUDA_THREADS);
    ty_ktext_line(&c->t);
    ty_buf_addf(c->t.out, "s%d[TY_THREAD] = r%d;\n", number, number);
    ty_ktext_line(&c->t);
    ty_buf_addf(c->t.out, "TY_BARRIER();\n");
    ty_ktext_line(&c->t);
    ty_buf_addf(c->t.out, "r%d = s%d[TY_THREAD %% %d];\n", number, number, CUDA_COLUMNS);
    ty_ktext_line(&c->t);
    ty_buf_addf(c->t.out, "for (int w = 1; w < %d; w++) {\n", CUDA_COLUMN_ROWS);
    c->t.indent++;
    ty_ktext_line(&c->t);
    ty_buf_addf(c->t.out, "const %s o = s%d[TY_THREAD %% %d + w * %d];\n", cuda_sum_type(c, red), number, CUDA_COLUMNS,
                CUDA_COLUMNS);
    cuda_combine(c, red->how, acc, "o");
    cuda_close(c);
    ty_ktext_line(&c->t);
    ty_buf_addf(c->t.out, "TY_BARRIER();\n");
}

/* Partial results of threads become results that every thread of the row has. */
static void cuda_end_sums(cuda_text *c, int stage)
{
    for (int i = 0; i < c->t.k->n_reductions; i++) {
        const ty_kreduction *red = &c->t.k->reduction[i];
        if (red->stage != stage)
            continue;
        ty_ktext_line(&c->t);
        ty_buf_addf(c->t.out, "%s r%d = t%d;\n", cuda_sum_type(c, red), i, i);
        if (c->form == CUDA_ROW_BY_WARP || c->form == CUDA_ROW_BY_BLOCK)
            cuda_butterfly(c, i);
        if (c->form == CUDA_ROW_BY_BLOCK)
            cuda_over_warps(c, i);
        if (c->form == CUDA_BY_COLUMN)
            cuda_over_column(c, i);
    }
}

/* ---- stages ---- */

/* First element of a thread and its stride through a row. */
static const struct {
    const char *first, *stride;
} cuda_walk[] = {
    [CUDA_ROW_BY_THREAD] = {"0", "1"},
    [CUDA_ROW_BY_WARP] = {"TY_THREAD % 32", "32"},
    [CUDA_ROW_BY_BLOCK] = {"TY_THREAD", "256"},
    [CUDA_BY_COLUMN] = {"is_column ? TY_THREAD / 32 : 0x7fffffffffffffffl", "8"},
};

static void cuda_loop_stage(cuda_text *c, int stage)
{
    cuda_begin_sums(c, stage);
    cuda_instrs(c, stage, 0);
    cuda_open_points(c, "e", cuda_walk[c->form].first, cuda_walk[c->form].stride, c->row);
    cuda_decode(c, c->inner, c->n_inner, "e");
    cuda_instrs(c, stage, 1);
    cuda_add_sums(c, stage);
    cuda_stores(c, stage);
    cuda_close(c);
    cuda_end_sums(c, stage);
}

/* Scalars of a row: every thread computes them, one stores. */
static void cuda_row_stage(cuda_text *c, int stage)
{
    static const char *const who[] = {[CUDA_ROW_BY_THREAD] = "1",
                                      [CUDA_ROW_BY_WARP] = "TY_THREAD % 32 == 0",
                                      [CUDA_ROW_BY_BLOCK] = "TY_THREAD == 0",
                                      [CUDA_BY_COLUMN] = "is_column && TY_THREAD < 32"};
    bool guarded = c->form == CUDA_BY_COLUMN; /* a column that is none must not be read */
    if (guarded) {
        ty_ktext_line(&c->t);
        ty_buf_addf(c->t.out, "if (%s) {\n", who[c->form]);
        c->t.indent++;
    }
    cuda_instrs(c, stage, -1);
    if (!guarded && cuda_has_stores(c, stage)) {
        ty_ktext_line(&c->t);
        ty_buf_addf(c->t.out, "if (%s) {\n", who[c->form]);
        c->t.indent++;
    }
    cuda_stores(c, stage);
    if (guarded || cuda_has_stores(c, stage))
        cuda_close(c);
}

/* What one stage has written another may read. */
static void cuda_between_stages(cuda_text *c)
{
    ty_ktext_line(&c->t);
    ty_buf_adds(c->t.out, c->form == CUDA_ROW_BY_WARP     ? "TY_WARP_BARRIER();\n"
                          : c->form == CUDA_ROW_BY_THREAD ? "\n"
                                                          : "TY_BARRIER();\n");
}

static void cuda_stages(cuda_text *c)
{
    for (int stage = 0; stage < c->t.k->n_stages; stage++) {
        if (stage)
            cuda_between_stages(c);
        if (stage & 1)
            cuda_row_stage(c, stage);
        else
            cuda_loop_stage(c, stage);
    }
}

/* ---- the kernel ---- */

static void cuda_flat(cuda_text *c)
{
    int all[TY_K_MAX_VARS], n = 0;
    for (int i = 0; i < c->n_outer; i++)
        all[n++] = c->outer[i];
    for (int i = 0; i < c->n_inner; i++)
        all[n++] = c->inner[i];
    cuda_open_points(c, "p", "TY_BLOCK * 256l + TY_THREAD", "TY_BLOCKS * 256l", c->n_rows * c->row);
    cuda_decode(c, all, n, "p");
    cuda_instrs(c, 0, -1);
    cuda_stores(c, 0);
    cuda_close(c);
}

static void cuda_rows(cuda_text *c)
{
    static const char *const first[] = {[CUDA_ROW_BY_THREAD] = "TY_BLOCK * 256l + TY_THREAD",
                                        [CUDA_ROW_BY_WARP] = "TY_BLOCK * 8l + TY_THREAD / 32",
                                        [CUDA_ROW_BY_BLOCK] = "TY_BLOCK"};
    static const char *const stride[] = {[CUDA_ROW_BY_THREAD] = "TY_BLOCKS * 256l",
                                         [CUDA_ROW_BY_WARP] = "TY_BLOCKS * 8l",
                                         [CUDA_ROW_BY_BLOCK] = "TY_BLOCKS"};
    cuda_open_points(c, "p", first[c->form], stride[c->form], c->n_rows);
    cuda_decode(c, c->outer, c->n_outer, "p");
    cuda_stages(c);
    cuda_close(c);
}

static void cuda_columns(cuda_text *c)
{
    long blocks = (long)cuda_column_blocks(c), extent = (long)c->t.k->extent[c->column];
    cuda_open_points(c, "p", "TY_BLOCK", "TY_BLOCKS", c->n_rows * blocks);
    ty_ktext_line(&c->t);
    ty_buf_addf(c->t.out, "const long i%d = p %% %ldl * %d + TY_THREAD %% %d; p /= %ldl;\n", c->column, blocks,
                CUDA_COLUMNS, CUDA_COLUMNS, blocks);
    ty_ktext_line(&c->t);
    ty_buf_addf(c->t.out, "const int is_column = i%d < %ldl; (void)is_column;\n", c->column, extent);
    cuda_decode(c, c->outer, c->n_outer, "p");
    cuda_stages(c);
    cuda_close(c);
}

static void cuda_parameters(const ty_kernel *k, const uint32_t *alias, ty_buf *out)
{
    bool first = true;
    for (int i = 0; i < k->n_buffers; i++) {
        if (alias[i] != (uint32_t)i)
            continue;
        ty_buf_addf(out, "%s%s%s *__restrict__ b%d", first ? "" : ", ", k->buffer[i].written ? "" : "const ",
                    ty_ctypes[k->buffer[i].dtype].memory, i);
        first = false;
    }
}

void ty_cuda_render_kernel(const ty_kernel *k, const uint32_t *alias, const int64_t *base, ty_buf *out)
{
    cuda_text c = cuda_text_of(k);
    c.t.alias = alias;
    c.t.base = base;
    c.t.out = out;
    c.t.cut = -1;
    c.t.row_guard = TY_NONE;
    c.t.indent = 1;
    ty_buf_adds(out, "(");
    cuda_parameters(k, alias, out);
    ty_buf_adds(out, ")\n{\n");
    if (c.form == CUDA_FLAT)
        cuda_flat(&c);
    else if (c.form == CUDA_BY_COLUMN)
        cuda_columns(&c);
    else
        cuda_rows(&c);
    ty_buf_adds(out, "}\n");
}

void ty_grid_render_kernel(const ty_kernel *k, const uint32_t *alias, const int64_t *base, ty_buf *out)
{
    ty_cuda_launch launch = ty_cuda_launch_of(k);
    bool first = true;
    ty_buf_addf(out, "TY_KERNEL(%d) TY_DEVICE(TY_NAME)", launch.threads);
    ty_cuda_render_kernel(k, alias, base, out);
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
