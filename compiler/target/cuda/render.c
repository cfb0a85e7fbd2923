/* render.c - kernels as CUDA C. See render.h. */
#include "compiler/target/cuda/render.h"

#include "compiler/kernel/text.h"

#include <stdio.h>

#define CUDA_THREADS     256
#define CUDA_WARP        32
#define CUDA_ROW_THREAD  4                             /* longest row that one thread takes */
#define CUDA_ROW_WARP    1024                          /* longest row that one warp takes */
#define CUDA_COLUMNS     32                            /* columns of a block */
#define CUDA_WARPS       (CUDA_THREADS / CUDA_WARP)    /* of a block */
#define CUDA_COLUMN_ROWS (CUDA_THREADS / CUDA_COLUMNS) /* threads of a column */

/* Numbers inside of text. */
#define CUDA_TEXT_OF(x) #x
#define CUDA_TEXT(x)    CUDA_TEXT_OF(x)
#define CUDA_WARP_OF    "TY_THREAD / " CUDA_TEXT(CUDA_WARP)
#define CUDA_LANE_OF    "TY_THREAD % " CUDA_TEXT(CUDA_WARP)
#define CUDA_COLUMN_OF  "TY_THREAD % " CUDA_TEXT(CUDA_COLUMNS)

typedef enum cuda_form { CUDA_FLAT, CUDA_ROW_BY_THREAD, CUDA_ROW_BY_WARP, CUDA_ROW_BY_BLOCK, CUDA_BY_COLUMN } cuda_form;

/* What a thread takes of a sequence. */
typedef struct cuda_walk {
    const char *first, *stride;
    const char *only; /* "... && " where it takes none; NULL: always some */
} cuda_walk;

/* Partial results meet in an array of the block: threads write theirs, then each adds up n of them. */
typedef struct cuda_meeting {
    int slots;
    const char *writer, *slot; /* "if (...) " or "" */
    cuda_walk read;
    int n;
} cuda_meeting;

static const cuda_meeting cuda_of_warps = {
    CUDA_WARPS, "if (" CUDA_LANE_OF " == 0) ", CUDA_WARP_OF, {.first = "0", .stride = "1"}, CUDA_WARPS};
static const cuda_meeting cuda_of_column = {
    CUDA_THREADS, "", "TY_THREAD", {.first = CUDA_COLUMN_OF, .stride = CUDA_TEXT(CUDA_COLUMNS)}, CUDA_COLUMN_ROWS};

/* How threads share the work. A point is a row; of FLAT, an element; of BY_COLUMN, a block of columns. */
typedef struct cuda_layout {
    const char *name;
    int points; /* of a block at a time */
    cuda_walk point, element;
    const char *one;             /* the thread of a row that stores its scalars; NULL: the row has no other */
    const char *barrier;         /* for the threads of a row; NULL likewise */
    bool butterfly;              /* partial results of a warp meet, then */
    const cuda_meeting *meeting; /* those of the block, unless NULL */
} cuda_layout;

static const cuda_layout cuda_layouts[] = {
    [CUDA_FLAT] = {.name = "flat",
                   .points = CUDA_THREADS,
                   .point = {"TY_BLOCK * " CUDA_TEXT(CUDA_THREADS) " + TY_THREAD",
                             "TY_BLOCKS * " CUDA_TEXT(CUDA_THREADS)}},
    [CUDA_ROW_BY_THREAD] = {.name = "thread",
                            .points = CUDA_THREADS,
                            .point = {"TY_BLOCK * " CUDA_TEXT(CUDA_THREADS) " + TY_THREAD",
                                      "TY_BLOCKS * " CUDA_TEXT(CUDA_THREADS)},
                            .element = {"0", "1"}},
    [CUDA_ROW_BY_WARP] = {.name = "warp",
                          .points = CUDA_WARPS,
                          .point = {"TY_BLOCK * " CUDA_TEXT(CUDA_WARPS) " + " CUDA_WARP_OF,
                                    "TY_BLOCKS * " CUDA_TEXT(CUDA_WARPS)},
                          .element = {CUDA_LANE_OF, CUDA_TEXT(CUDA_WARP)},
                          .one = CUDA_LANE_OF " == 0",
                          .barrier = "TY_WARP_BARRIER();",
                          .butterfly = true},
    [CUDA_ROW_BY_BLOCK] = {.name = "block",
                           .points = 1,
                           .point = {"TY_BLOCK", "TY_BLOCKS"},
                           .element = {"TY_THREAD", CUDA_TEXT(CUDA_THREADS)},
                           .one = "TY_THREAD == 0",
                           .barrier = "TY_BARRIER();",
                           .butterfly = true,
                           .meeting = &cuda_of_warps},
    [CUDA_BY_COLUMN] = {.name = "column",
                        .points = 1,
                        .point = {"TY_BLOCK", "TY_BLOCKS"},
                        .element = {"TY_THREAD / " CUDA_TEXT(CUDA_COLUMNS), CUDA_TEXT(CUDA_COLUMN_ROWS),
                                    "is_column && "},
                        .one = "is_column && TY_THREAD < " CUDA_TEXT(CUDA_COLUMNS),
                        .barrier = "TY_BARRIER();",
                        .meeting = &cuda_of_column},
};

typedef struct cuda_text {
    ty_ktext t;
    cuda_form form;
    const cuda_layout *layout;         /* of the form */
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
    c.layout = &cuda_layouts[c.form];
    return c;
}

static int64_t cuda_column_blocks(const cuda_text *c)
{
    return (c->t.k->extent[c->column] + CUDA_COLUMNS - 1) / CUDA_COLUMNS;
}

static int64_t cuda_points(const cuda_text *c)
{
    return c->n_rows * (c->form == CUDA_FLAT ? c->row : c->form == CUDA_BY_COLUMN ? cuda_column_blocks(c) : 1);
}

ty_cuda_launch ty_cuda_launch_of(const ty_kernel *k)
{
    cuda_text c = cuda_text_of(k);
    int64_t each = c.layout->points;
    return (ty_cuda_launch){c.layout->name, CUDA_THREADS, (cuda_points(&c) + each - 1) / each,
                            c.layout->barrier != NULL};
}

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

static void cuda_open_points(cuda_text *c, const char *name, const cuda_walk *walk, int64_t n)
{
    ty_ktext_linef(&c->t, "for (%s %s0 = %s; %s%s0 < %ld; %s0 += %s) {\n", cuda_index(c), name, walk->first,
                   walk->only ? walk->only : "", name, (long)n, name, walk->stride);
    c->t.indent++;
    ty_ktext_linef(&c->t, "%s %s = %s0; (void)%s;\n", cuda_index(c), name, name, name);
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
        if (red->stage != stage)
            continue;
        ty_ktext_linef(&c->t, "%s t%d = %s;\n", ty_ctypes[red->dtype].value, i, ty_ktext_identity(red));
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
    ty_ktext_linef(&c->t, "for (int m = %d; m > 0; m /= 2) {\n", CUDA_WARP / 2);
    c->t.indent++;
    ty_ktext_linef(&c->t, "const %s o = (%s)TY_SHUFFLE_%c(r%d, m);\n", type, type, cuda_shuffle_letter(c, red), number);
    cuda_combine(c, red->how, acc, "o");
    cuda_close(c);
}

/* Before the next row writes s comes the barrier in front of the stage that uses the result. */
static void cuda_meet(cuda_text *c, int number)
{
    const ty_kreduction *red = &c->t.k->reduction[number];
    const cuda_meeting *m = c->layout->meeting;
    const char *type = cuda_sum_type(c, red);
    char acc[24];
    snprintf(acc, sizeof acc, "r%d", number);
    ty_ktext_linef(&c->t, "TY_SHARED %s s%d[%d];\n", type, number, m->slots);
    ty_ktext_linef(&c->t, "%ss%d[%s] = r%d;\n", m->writer, number, m->slot, number);
    ty_ktext_linef(&c->t, "TY_BARRIER();\n");
    ty_ktext_linef(&c->t, "r%d = s%d[%s];\n", number, number, m->read.first);
    ty_ktext_linef(&c->t, "for (int w = 1; w < %d; w++) {\n", m->n);
    c->t.indent++;
    ty_ktext_linef(&c->t, "const %s o = s%d[%s + w * %s];\n", type, number, m->read.first, m->read.stride);
    cuda_combine(c, red->how, acc, "o");
    cuda_close(c);
}

/* Partial results of threads become results that every thread of the row has. */
static void cuda_end_sums(cuda_text *c, int stage)
{
    for (int i = 0; i < c->t.k->n_reductions; i++) {
        const ty_kreduction *red = &c->t.k->reduction[i];
        if (red->stage != stage)
            continue;
        ty_ktext_linef(&c->t, "%s r%d = t%d;\n", cuda_sum_type(c, red), i, i);
        if (c->layout->butterfly)
            cuda_butterfly(c, i);
        if (c->layout->meeting)
            cuda_meet(c, i);
    }
}

/* ---- stages ---- */

static void cuda_loop_stage(cuda_text *c, int stage)
{
    cuda_begin_sums(c, stage);
    cuda_instrs(c, stage, 0);
    cuda_open_points(c, "e", &c->layout->element, c->row);
    cuda_decode(c, c->inner, c->n_inner, "e");
    cuda_instrs(c, stage, 1);
    cuda_add_sums(c, stage);
    cuda_stores(c, stage);
    cuda_close(c);
    cuda_end_sums(c, stage);
}

static void cuda_open_one(cuda_text *c)
{
    ty_ktext_linef(&c->t, "if (%s) {\n", c->layout->one);
    c->t.indent++;
}

/* Scalars of a row: every thread computes them, one stores. But a column that is none must not be read. */
static void cuda_row_stage(cuda_text *c, int stage)
{
    bool only_one = c->form == CUDA_BY_COLUMN, is_open = c->layout->one && (only_one || cuda_has_stores(c, stage));
    if (only_one)
        cuda_open_one(c);
    cuda_instrs(c, stage, -1);
    if (is_open && !only_one)
        cuda_open_one(c);
    cuda_stores(c, stage);
    if (is_open)
        cuda_close(c);
}

/* What one stage has written another may read. */
static void cuda_stages(cuda_text *c)
{
    for (int stage = 0; stage < c->t.k->n_stages; stage++) {
        if (stage && c->layout->barrier)
            ty_ktext_linef(&c->t, "%s\n", c->layout->barrier);
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
    cuda_decode(c, all, n, "p");
    cuda_instrs(c, 0, -1);
    cuda_stores(c, 0);
}

static void cuda_column(cuda_text *c)
{
    long blocks = (long)cuda_column_blocks(c), extent = (long)c->t.k->extent[c->column];
    ty_ktext_linef(&c->t, "const %s i%d = p %% %ld * %d + %s; p /= %ld;\n", cuda_index(c), c->column, blocks,
                   CUDA_COLUMNS, CUDA_COLUMN_OF, blocks);
    ty_ktext_linef(&c->t, "const int is_column = i%d < %ld; (void)is_column;\n", c->column, extent);
}

static void cuda_body(cuda_text *c)
{
    cuda_open_points(c, "p", &c->layout->point, cuda_points(c));
    if (c->form == CUDA_FLAT) {
        cuda_flat(c);
    } else {
        if (c->form == CUDA_BY_COLUMN)
            cuda_column(c);
        cuda_decode(c, c->outer, c->n_outer, "p");
        cuda_stages(c);
    }
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
    c.t.narrow = ty_ktext_fits_int(k, base);
    c.t.out = out;
    c.t.cut = -1;
    c.t.row_guard = TY_NONE;
    c.t.indent = 1;
    ty_buf_adds(out, "(");
    cuda_parameters(k, alias, out);
    ty_buf_adds(out, ")\n{\n");
    cuda_body(&c);
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
