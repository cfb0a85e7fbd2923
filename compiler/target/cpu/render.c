/* render.c - kernels as C text. See render.h.
 *
 * Loops are written so that the compiler's vectoriser needs no proof: the fastest loop carries `omp simd`, memory is
 * `restrict`, mathematics is inline and without branches, and buffers that share memory share the pointer.
 */
#include "compiler/target/cpu/render.h"

#include "compiler/kernel/keep.h"
#include "compiler/kernel/text.h"
#include "compiler/target/cpu/ahead.h"
#include "compiler/target/cpu/beside.h"
#include "compiler/target/cpu/draw.h"
#include "compiler/target/cpu/even.h"
#include "compiler/target/cpu/turn.h"
#include "compiler/target/cpu/uniform.h"

#include <stdio.h>

typedef struct render {
    ty_ktext t;
    int inner[TY_K_MAX_VARS]; /* loop variables inside a row, slowest first */
    int n_inner;
    int column; /* COLUMNS: the variable of the block, else -1 */
    ty_arena *arena;
    const uint8_t *constant; /* by instruction: stands in front of all loops */
    uint8_t *drawn;          /* by instruction: random words that are drawn for the stretch that is being written */
    ty_lanes lanes; /* of the loop that is being written, where even.h knows more of its addresses than the compiler */
} render;

/* ---- reductions ---- */

/* A float sum over a row runs in two levels: blocks of RENDER_BLOCK elements in float, the blocks in double. Means of
 * many elements come out as good as their inputs (normalisation magnifies their error), and vectors stay whole. */
#define RENDER_BLOCK 256

/* A loop that asks for memory ahead does so in short stretches, so that what it asks for comes in while it computes:
 * with 256 elements it takes a tenth longer. */
#define RENDER_STRETCH 64

static bool render_is_blocked(const render *r, const ty_kreduction *red)
{
    return r->column < 0 && red->how == TY_SUM && ty_dtype_is_float(red->dtype);
}

static const char *render_accumulator(const render *r, const ty_kreduction *red)
{
    return render_is_blocked(r, red) ? "double" : ty_ctypes[red->dtype].value;
}

/* The lanes of a vector are put together by a maximum that loses a NaN, so whether there was one is kept beside it. */
static bool render_is_flagged(const render *r, const ty_kreduction *red)
{
    return r->column < 0 && (red->how == TY_MAX || red->how == TY_MIN) && ty_dtype_is_float(red->dtype);
}

static void render_combine(render *r, int number, const char *acc)
{
    const ty_kreduction *red = &r->t.k->reduction[number];
    if (render_is_flagged(r, red))
        ty_ktext_linef(&r->t, "%s = v%u %c %s ? v%u : %s, n%d |= v%u != v%u;\n", acc, red->value,
                       red->how == TY_MAX ? '>' : '<', acc, red->value, acc, number, red->value, red->value);
    else
        ty_ktext_combine(&r->t, red, acc);
}

static void render_simd(render *r, int stage)
{
    static const char *const sign[] = {[TY_SUM] = "+", [TY_MAX] = "max", [TY_MIN] = "min", [TY_PROD] = "*"};
    ty_ktext_line(&r->t);
    ty_buf_adds(r->t.out, "#pragma omp simd");
    for (int i = 0; i < r->t.k->n_reductions; i++)
        if (r->t.k->reduction[i].stage == stage && r->column < 0) {
            const ty_kreduction *red = &r->t.k->reduction[i];
            ty_buf_addf(r->t.out, " reduction(%s: %c%d)", sign[red->how], render_is_blocked(r, red) ? 't' : 'r', i);
            if (render_is_flagged(r, red))
                ty_buf_addf(r->t.out, " reduction(|: n%d)", i);
        }
    ty_buf_adds(r->t.out, "\n");
}

/* The partial sums of a block, before or behind its loop. */
static void render_partials(render *r, int stage, bool before)
{
    for (int i = 0; i < r->t.k->n_reductions; i++) {
        const ty_kreduction *red = &r->t.k->reduction[i];
        if (red->stage != stage || !render_is_blocked(r, red))
            continue;
        ty_ktext_line(&r->t);
        if (before)
            ty_buf_addf(r->t.out, "%s t%d = 0;\n", ty_ctypes[red->dtype].value, i);
        else
            ty_buf_addf(r->t.out, "r%d += t%d;\n", i, i);
    }
}

static bool render_has_partials(const render *r, int stage)
{
    for (int i = 0; i < r->t.k->n_reductions; i++)
        if (r->t.k->reduction[i].stage == stage && render_is_blocked(r, &r->t.k->reduction[i]))
            return true;
    return false;
}

static bool render_has_reductions(const render *r, int stage)
{
    for (int i = 0; i < r->t.k->n_reductions; i++)
        if (r->t.k->reduction[i].stage == stage)
            return true;
    return false;
}

/* ---- stages ---- */

static ty_ahead render_place(render *r)
{
    return (ty_ahead){&r->t, r->inner, r->n_inner, r->column};
}

static bool render_is_constant_operand(const render *r, uint32_t instr)
{
    return instr == TY_NONE || r->constant[instr];
}

/* Is it the same in all units? */
static bool render_is_constant(const render *r, uint32_t i)
{
    const ty_kinstr *instr = &r->t.k->instr[i];
    bool reads = instr->kop == TY_K_LOAD || instr->kop == TY_K_INDEX || instr->kop == TY_K_INSIDE;
    return instr->vars == 0 && instr->kop != TY_K_RESULT && !(reads && ty_ix_at(&r->t.k->ix, instr->addr)->data) &&
           render_is_constant_operand(r, instr->a) && render_is_constant_operand(r, instr->b) &&
           render_is_constant_operand(r, instr->c) && render_is_constant_operand(r, instr->guard);
}

/* In front of all loops. A compiler takes what is constant out of the innermost one alone, and would compute for each
 * stretch what Adam needs once: two powers, a root and two divisions. */
static void render_constants(render *r)
{
    uint8_t *constant = TY_NEW_ARRAY(r->arena, uint8_t, r->t.k->n_instrs + 1);
    r->constant = constant;
    r->drawn = TY_NEW_ARRAY(r->arena, uint8_t, r->t.k->n_instrs + 1);
    r->t.indent = 1;
    for (uint32_t i = 0; i < r->t.k->n_instrs; i++) {
        constant[i] = render_is_constant(r, i);
        if (constant[i])
            ty_ktext_instr(&r->t, i);
    }
}

/* depth: how many loops inside of a unit they stand in; -1: all of the stage. */
static void render_instrs(render *r, int stage, int depth)
{
    const ty_ahead place = render_place(r);
    for (uint32_t i = 0; i < r->t.k->n_instrs; i++)
        if (r->t.k->instr[i].stage == stage && !r->constant[i] &&
            (depth < 0 || ty_ahead_depth(&place, r->t.k->instr[i].vars) == depth))
            ty_ktext_instr(&r->t, i);
    if (depth >= 0)
        ty_ahead_render(&place, stage, depth);
}

static void render_stores(render *r, int stage)
{
    for (int i = 0; i < r->t.k->n_stores; i++)
        if (r->t.k->store[i].stage == stage)
            ty_ktext_store(&r->t, &r->t.k->store[i]);
}

static void render_reduces(render *r, int stage)
{
    char acc[32];
    for (int i = 0; i < r->t.k->n_reductions; i++) {
        if (r->t.k->reduction[i].stage != stage)
            continue;
        bool blocked = render_is_blocked(r, &r->t.k->reduction[i]);
        snprintf(acc, sizeof acc, r->column >= 0 ? "r%d[c]" : blocked ? "t%d" : "r%d", i);
        render_combine(r, i, acc);
    }
}

static void render_open_column(render *r)
{
    ty_ktext_linef(&r->t, "for (long c = %s; c < %s; c++) { const long i%d = c0 + c; (void)i%d;\n",
                   r->t.cut >= 0 ? "from" : "0", r->t.cut >= 0 ? "to" : "cn", r->column, r->column);
    r->t.indent++;
}

static void render_close(render *r, int n)
{
    for (; n > 0; n--) {
        r->t.indent--;
        ty_ktext_linef(&r->t, "}\n");
    }
}

/* What is known of how often a vectorised loop goes round spares the compiler the loop for what vectors leave over,
 * which is longer than the loop itself: `& -16l` where it is a multiple of 16. "" where no vector divides it. */
static const char *render_multiple(int64_t n)
{
    return n % 64 == 0 ? " & -64l" : n % 32 == 0 ? " & -32l" : n % 16 == 0 ? " & -16l" : n % 8 == 0 ? " & -8l" : "";
}

/* The loop over stretch j of n elements in all along `var`; most have a length that the compiler knows. */
static void render_open_stretch(render *r, int var, int64_t n, int length)
{
    if (n % length == 0)
        ty_ktext_linef(&r->t, "for (long k = 0; k < %d; k++) { const long i%d = j + k;\n", length, var);
    else
        ty_ktext_linef(&r->t, "for (long k = 0; k < jn; k++) { const long i%d = j + k;\n", var);
    r->t.indent++;
}

/* A loop over the whole extent of `var`. */
static void render_open_loop(render *r, int var)
{
    ty_ktext_line(&r->t);
    if (r->t.cut == var)
        ty_buf_addf(r->t.out, "for (long i%d = %ldl; i%d < %ldl; i%d++) {\n", var, (long)r->t.cut_lo, var,
                    (long)r->t.cut_hi, var);
    else
        ty_buf_addf(r->t.out, "for (long i%d = 0; i%d < %ldl; i%d++) {\n", var, var, (long)r->t.k->extent[var], var);
    r->t.indent++;
}

/* Opens the loop over stretches j of what lies between two expressions, each jn long, or `length` if all are whole. A
 * length that the compiler knows spares it a second loop for what is left over. */
static void render_open_stretches(render *r, const char *from, const char *to, int length, bool whole,
                                  const char *multiple)
{
    if (whole)
        ty_ktext_linef(&r->t, "for (long j = %s; j < %s; j += %d) {\n", from, to, length);
    else
        ty_ktext_linef(&r->t, "for (long j = %s; j < %s; j += %d) { const long jn = (%s - j < %d ? %s - j : %d)%s;\n",
                       from, to, length, to, length, to, length, multiple);
    r->t.indent++;
}

/* Whether what lies between the ends of a run of blocks, or of a piece of it, is whole stretches. */
static bool render_is_whole(const render *r, int stretch)
{
    _Static_assert(TY_COLUMN_BLOCK % RENDER_STRETCH == 0, "a block begins with a stretch");
    bool cut = r->t.cut >= 0;
    int64_t lo = cut ? r->t.cut_lo : 0, hi = cut ? r->t.cut_hi : r->t.k->extent[r->column];
    return lo % stretch == 0 && hi % stretch == 0;
}

/* Random words of a stretch of at most n points. */
static void render_draw(render *r, int stage, int var, const char *first, const char *count, int n)
{
    const ty_ahead place = render_place(r);
    if (n < TY_DRAW_LEAST || n > TY_DRAW_MOST)
        return;
    ty_draw_stretch(&place, stage, var, r->constant, first, count, n, r->drawn);
    r->t.drawn = r->drawn;
}

static void render_open_column_stretches(render *r, int stage, int stretch)
{
    const ty_ahead place = render_place(r);
    bool cut = r->t.cut >= 0, whole = render_is_whole(r, stretch);
    const char *from = cut ? "from" : "0", *to = cut ? "to" : "cn";
    ty_ahead_begin_columns(&place, stage, from, to);
    render_open_stretches(r, from, to, stretch, whole, cut ? "" : render_multiple(r->t.k->extent[r->column]));
    ty_ahead_columns(&place, stage, from, to, stretch);
    char length[16] = "jn";
    if (whole)
        snprintf(length, sizeof length, "%d", stretch);
    render_draw(r, stage, r->column, "c0 + j", length, stretch);
    render_simd(r, stage);
    ty_ktext_linef(&r->t, "for (long k = 0; k < %s; k++) { const long c = j + k, i%d = c0 + c; (void)i%d;\n", length,
                   r->column, r->column);
    r->t.indent++;
}

/* The length of stretches in which more is known of addresses; 0: none. */
static int render_even(render *r, int stage, int var, const char *first)
{
    int length = ty_even_length(r->t.k, stage, var, r->arena, &r->lanes);
    r->t.lanes = length ? &r->lanes : NULL;
    r->t.first = first;
    return length;
}

static void render_columns(render *r, int stage)
{
    const ty_ahead place = render_place(r);
    int64_t extent = r->t.k->extent[r->column];
    int even = render_even(r, stage, r->column, "(c0 + j)");
    bool draws = ty_draw_any(&place, stage, r->column, r->constant);
    bool stretches = even || draws || (extent > RENDER_STRETCH && ty_ahead_streams(&place, stage, r->column));
    if (stretches) {
        render_open_column_stretches(r, stage, even ? even : RENDER_STRETCH);
    } else {
        ty_ahead_stretch(&place, stage, r->column, "c0", (long)extent);
        render_simd(r, stage);
        render_open_column(r);
    }
    render_instrs(r, stage, r->n_inner + 1);
    render_reduces(r, stage);
    render_stores(r, stage);
    r->t.lanes = NULL;
    r->t.drawn = NULL;
    render_close(r, 1 + stretches);
}

/* Products of floats depend on where they are cut. */
static bool render_has_products(const render *r, int stage)
{
    for (int i = 0; i < r->t.k->n_reductions; i++)
        if (r->t.k->reduction[i].stage == stage && r->t.k->reduction[i].how == TY_PROD)
            return true;
    return false;
}

/* The length of the stretches in which the fastest loop of a row, n long, is walked: if it sums floats, asks for
 * memory, draws random words, or takes its variable apart. 0: it is walked as a whole. */
static int render_stretch(render *r, int stage, int64_t n)
{
    const ty_ahead place = render_place(r);
    if (n > RENDER_BLOCK && render_has_partials(r, stage))
        return RENDER_BLOCK;
    int even = render_has_reductions(r, stage) ? 0 : render_even(r, stage, r->inner[r->n_inner - 1], "j");
    if (even)
        return even;
    if (ty_draw_any(&place, stage, r->inner[r->n_inner - 1], r->constant) && !render_has_products(r, stage))
        return n < RENDER_BLOCK ? (int)n : RENDER_BLOCK;
    int length = render_has_reductions(r, stage) ? RENDER_BLOCK : RENDER_STRETCH;
    return n > length && !render_has_products(r, stage) && ty_ahead_streams(&place, stage, r->inner[r->n_inner - 1])
               ? length
               : 0;
}

static void render_open_rows(render *r, long from, long to, int length)
{
    char lo[32], hi[32];
    snprintf(lo, sizeof lo, "%ldl", from);
    snprintf(hi, sizeof hi, "%ldl", to);
    render_open_stretches(r, lo, hi, length, (to - from) % length == 0, render_multiple(to - from));
}

/* The loop over `var` between these numbers, in stretches if they have a length, and what is asked for before it. */
static void render_open_innermost(render *r, int stage, int var, int64_t from, int64_t to, int length)
{
    const ty_ahead place = render_place(r);
    char first[32], count[16];
    snprintf(first, sizeof first, "%ldl", (long)from);
    ty_ahead_stretch(&place, stage, var, length ? "j" : first, length ? length : (long)(to - from));
    if (length) {
        snprintf(count, sizeof count, "%d", length);
        render_draw(r, stage, var, "j", (to - from) % length == 0 ? count : "jn", length);
    }
    render_simd(r, stage);
    if (length)
        render_open_stretch(r, var, to - from, length);
    else
        render_open_loop(r, var);
}

/* The fastest loop of a row, its partial sums begun and ended with each stretch. */
static void render_innermost(render *r, int stage)
{
    int var = r->n_inner ? r->inner[r->n_inner - 1] : -1;
    bool cut = var >= 0 && r->t.cut == var;
    int64_t from = cut ? r->t.cut_lo : 0, to = cut ? r->t.cut_hi : var >= 0 ? r->t.k->extent[var] : 0;
    int length = var >= 0 ? render_stretch(r, stage, to - from) : 0;
    if (length) {
        render_open_rows(r, (long)from, (long)to, length);
    } else {
        ty_ktext_linef(&r->t, "{\n");
        r->t.indent++;
    }
    render_partials(r, stage, true);
    if (var >= 0) {
        render_open_innermost(r, stage, var, from, to, length);
        render_instrs(r, stage, r->n_inner);
    }
    render_reduces(r, stage);
    render_stores(r, stage);
    r->t.lanes = NULL;
    r->t.drawn = NULL;
    render_close(r, var >= 0);
    render_partials(r, stage, false);
    render_close(r, 1);
}

/* Accumulators of a row, and what is made of them behind its loops. */
static void render_begin_rows(render *r, int stage)
{
    for (int i = 0; i < r->t.k->n_reductions; i++) {
        const ty_kreduction *red = &r->t.k->reduction[i];
        if (red->stage != stage || r->column >= 0)
            continue;
        ty_ktext_line(&r->t);
        ty_buf_addf(r->t.out, "%s r%d = %s;", render_accumulator(r, red), i, ty_ktext_identity(red));
        if (render_is_flagged(r, red))
            ty_buf_addf(r->t.out, " int n%d = 0;", i);
        ty_buf_adds(r->t.out, "\n");
    }
}

static void render_end_rows(render *r, int stage)
{
    for (int i = 0; i < r->t.k->n_reductions; i++)
        if (r->t.k->reduction[i].stage == stage && render_is_flagged(r, &r->t.k->reduction[i])) {
            ty_ktext_linef(&r->t, "if (n%d) r%d = __builtin_nanf(\"\");\n", i, i);
        }
}

/* The variable along which a stage is written piece by piece: the one whose loop is vectorised. In rows sums would be
 * cut too, and their order with them. */
static int render_cut_var(const render *r, int stage)
{
    if (r->column >= 0)
        return r->column;
    return render_has_reductions(r, stage) || r->n_inner == 0 ? -1 : r->inner[r->n_inner - 1];
}

static void render_open_piece(render *r, int var, int64_t lo, int64_t hi)
{
    r->t.cut = var;
    r->t.cut_lo = lo;
    r->t.cut_hi = hi;
    if (r->column < 0)
        return;
    ty_ktext_linef(&r->t, "if (c0 + cn > %ldl && c0 < %ldl) {\n", (long)lo, (long)hi);
    r->t.indent++;
    ty_ktext_linef(&r->t, "const long from = c0 < %ldl ? %ldl - c0 : 0, to = c0 + cn > %ldl ? %ldl - c0 : cn;\n",
                   (long)lo, (long)lo, (long)hi, (long)hi);
}

static void render_vectorised(render *r, int stage)
{
    if (r->column >= 0)
        render_columns(r, stage);
    else
        render_innermost(r, stage);
}

/* The vectorised loop for each value of these conditions, which decide for all of it. */
static void render_uniform(render *r, int stage, const uint32_t *condition, int n)
{
    if (n == 0) {
        render_vectorised(r, stage);
        return;
    }
    for (int value = 1; value >= 0; value--) {
        uint32_t v = condition[0];
        ty_ktext_linef(&r->t, "if (%sv%u) { const _Bool v%u = %d;\n", value ? "" : "!", v, v, value);
        r->t.indent++;
        render_uniform(r, stage, condition + 1, n - 1);
        render_close(r, 1);
    }
}

static void render_loops(render *r, int stage)
{
    int opened = 0;
    for (int d = 0; d + 1 < r->n_inner + (r->column >= 0); d++, opened++) {
        render_open_loop(r, r->inner[d]);
        render_instrs(r, stage, d + 1);
    }
    const ty_ahead place = render_place(r);
    uint32_t condition[TY_UNIFORM_MAX];
    render_uniform(r, stage, condition, ty_uniform_conditions(&place, stage, r->constant, condition));
    render_close(r, opened);
}

/* All of a stage, in pieces if its guards change along the vectorised loop. */
static void render_loop_stage(render *r, int stage)
{
    int64_t cut[TY_K_MAX_CUTS + 1];
    int var = render_cut_var(r, stage), n = var >= 0 ? ty_kernel_cuts(r->t.k, stage, var, cut) : 1;
    render_begin_rows(r, stage);
    render_instrs(r, stage, 0);
    if (r->t.row_guard != TY_NONE) {
        ty_ktext_linef(&r->t, "if (!v%u) continue;\n", r->t.row_guard);
    }
    for (int i = 0; i < n; i++) {
        if (n > 1)
            render_open_piece(r, var, cut[i], cut[i + 1]);
        render_loops(r, stage);
        render_close(r, n > 1 && r->column >= 0);
        r->t.cut = -1;
    }
    render_end_rows(r, stage);
}

static void render_row_stage(render *r, int stage)
{
    if (r->column >= 0)
        render_open_column(r);
    render_instrs(r, stage, -1);
    render_stores(r, stage);
    if (r->column >= 0)
        render_close(r, 1);
}

static void render_stages(render *r)
{
    for (int stage = 0; stage < r->t.k->n_stages; stage++) {
        if (stage & 1)
            render_row_stage(r, stage);
        else
            render_loop_stage(r, stage);
    }
}

/* ---- the function ---- */

static void render_pointers(render *r)
{
    for (int i = 0; i < r->t.k->n_buffers; i++) {
        if (r->t.alias[i] != (uint32_t)i)
            continue;
        const ty_kbuffer *buffer = &r->t.k->buffer[i];
        if (buffer->own) {
            ty_buf_addf(r->t.out, " %s b%d[%ld];\n", ty_ctypes[buffer->dtype].memory, i, (long)buffer->span_elems);
            continue;
        }
        if (buffer->unaligned) {
            ty_buf_addf(r->t.out,
                        " typedef const %s t%d __attribute__((aligned(1))); t%d *restrict b%d = (t%d *)b[%d];\n",
                        ty_ctypes[buffer->dtype].memory, i, i, i, i, i);
            continue;
        }
        ty_buf_addf(r->t.out, " %s%s *restrict b%d = (%s *)b[%d];\n", buffer->written ? "" : "const ",
                    ty_ctypes[buffer->dtype].memory, i, ty_ctypes[buffer->dtype].memory, i);
    }
}

/* A run of neighbouring blocks is walked as one, so that memory that is in no cache comes in whole rows or long
 * stretches of them: stretches of 1 KB in rows of 4 KB come at a third of the speed. What the columns add up to stays
 * the same. The accumulators of a run stay in the first-level cache, of which they take at most half. */
#define RENDER_RUN_BYTES (16 * 1024)
#define RENDER_APART     16 /* elements between accumulators, lest a column's lie whole pages apart */

static int render_run(const ty_kernel *k)
{
    size_t bytes = 0;
    for (int i = 0; i < k->n_reductions; i++)
        bytes += TY_COLUMN_BLOCK * ty_dtype_bytes(k->reduction[i].dtype);
    int64_t columns = k->extent[k->order[k->n_order - 1]];
    return columns <= TY_COLUMN_BLOCK || bytes == 0 ? 1
           : bytes < RENDER_RUN_BYTES               ? (int)(RENDER_RUN_BYTES / bytes)
                                                    : 1;
}

/* A single narrow block has a number of columns that the compiler knows. */
static void render_block(render *r, int64_t extent)
{
    if (extent <= TY_COLUMN_BLOCK) {
        ty_buf_addf(r->t.out, "  const long w = 1, c0 = 0, cn = %ldl;\n", (long)extent);
        return;
    }
    long e = (long)extent;
    int run = render_run(r->t.k);
    ty_buf_addf(r->t.out, "  const long blocks = (%ldl + %d) / %d, k0 = q %% blocks, c0 = k0 * %d; q /= blocks;\n", e,
                TY_COLUMN_BLOCK - 1, TY_COLUMN_BLOCK, TY_COLUMN_BLOCK);
    ty_buf_addf(r->t.out,
                "  const long left = blocks - k0 < hi - p ? blocks - k0 : hi - p, w = left < %d ? left : %d;\n", run,
                run);
    ty_buf_addf(r->t.out, "  const long cn = (%ldl - c0 < w * %d ? %ldl - c0 : w * %d)%s;\n", e, TY_COLUMN_BLOCK, e,
                TY_COLUMN_BLOCK, render_multiple(e));
}

/* Outer variables from the unit number. */
static void render_rows(render *r)
{
    const ty_kernel *k = r->t.k;
    int outer[TY_K_MAX_VARS], n = 0;
    for (int i = 0; i < k->n_order; i++)
        if (k->outer >> k->order[i] & 1 && k->order[i] != r->column)
            outer[n++] = k->order[i];
    ty_buf_adds(r->t.out, "  long q = p;\n");
    if (r->column >= 0)
        render_block(r, k->extent[r->column]);
    ty_ktext_outer(&r->t, outer, n);
    ty_buf_adds(r->t.out, "  (void)q;\n");
}

/* A sum begins with zeros, which all types write alike: a call is compiled in no time, a loop is not. */
static void render_accumulators(render *r)
{
    for (int i = 0; r->column >= 0 && i < r->t.k->n_reductions; i++) {
        const ty_kreduction *red = &r->t.k->reduction[i];
        ty_buf_addf(r->t.out, "  %s r%d[%d];\n", ty_ctypes[red->dtype].value, i,
                    render_run(r->t.k) * TY_COLUMN_BLOCK + RENDER_APART);
        if (red->how == TY_SUM)
            ty_buf_addf(r->t.out, "  __builtin_memset(r%d, 0, cn * sizeof *r%d);\n", i, i);
        else
            ty_buf_addf(r->t.out, "  for (long c = 0; c < cn; c++) r%d[c] = %s;\n", i, ty_ktext_identity(red));
    }
}

static bool render_is_flat(const ty_kernel *k)
{
    return k->form == TY_FORM_ROWS && k->n_reductions == 0 && k->n_order == 1 && k->outer >> k->order[0] & 1;
}

/* The piece of a flat loop between `from` and `to`. */
static void render_flat_piece(render *r, int var)
{
    const ty_ahead place = render_place(r);
    bool draws = ty_draw_any(&place, 0, var, r->constant);
    bool stretches = draws || (r->t.k->extent[var] > RENDER_STRETCH && ty_ahead_streams(&place, 0, var));
    int length = draws ? TY_DRAW_MOST : RENDER_STRETCH;
    if (stretches) {
        render_open_stretches(r, "from", "to", length, false, "");
        ty_ahead_stretch(&place, 0, var, "j", length);
        render_draw(r, 0, var, "j", "jn", length);
    }
    render_simd(r, 0);
    if (stretches)
        ty_ktext_linef(&r->t, "for (long k = 0; k < jn; k++) { const long i%d = j + k;\n", var);
    else
        ty_ktext_linef(&r->t, "for (long i%d = from; i%d < to; i%d++) {\n", var, var, var);
    r->t.indent++;
    render_instrs(r, 0, -1);
    render_stores(r, 0);
    r->t.drawn = NULL;
    render_close(r, 1 + stretches);
}

static void render_flat(render *r)
{
    int64_t cut[TY_K_MAX_CUTS + 1];
    int var = r->t.k->order[0], n = ty_kernel_cuts(r->t.k, 0, var, cut);
    for (int i = 0; i < n; i++) {
        long a = (long)cut[i], b = (long)cut[i + 1];
        r->t.cut = n > 1 ? var : -1, r->t.cut_lo = a, r->t.cut_hi = b;
        ty_buf_addf(r->t.out, " {\n const long from = lo > %ldl ? lo : %ldl, to = hi < %ldl ? hi : %ldl;\n", a, a, b,
                    b);
        r->t.indent = 1;
        render_flat_piece(r, var);
        ty_buf_adds(r->t.out, " }\n");
    }
    r->t.cut = -1;
}

static void render_units(render *r)
{
    bool columns = r->column >= 0;
    ty_buf_adds(r->t.out, columns ? " for (long p = lo; p < hi;) {\n" : " for (long p = lo; p < hi; p++) {\n");
    render_rows(r);
    render_accumulators(r);
    r->t.indent = 2;
    render_stages(r);
    ty_buf_adds(r->t.out, columns ? "  p += w;\n }\n" : " }\n");
}

static void render_kernel(const ty_kernel *k, const uint32_t *alias, const int64_t *base, ty_arena *arena, ty_buf *out)
{
    render r = {.t = {.k = k, .alias = alias, .base = base, .out = out, .drawn_at = "[k]", .cut = -1},
                .column = -1,
                .arena = arena};
    r.t.row_guard = render_is_flat(k) ? TY_NONE : ty_kernel_row_guard(k);
    if (k->form == TY_FORM_COLUMNS)
        r.column = k->order[k->n_order - 1];
    r.t.columns = r.column >= 0;
    for (int i = 0; i < k->n_order; i++)
        if (!(k->outer >> k->order[i] & 1))
            r.inner[r.n_inner++] = k->order[i];
    ty_buf_adds(out, "(char *const *b, long lo, long hi)\n{\n");
    render_pointers(&r);
    if (render_is_flat(k)) {
        render_constants(&r);
        render_flat(&r);
    } else if (!ty_turn_render(&r.t)) {
        render_constants(&r);
        if (ty_beside_suits(k))
            ty_beside_render(&r.t, r.constant, arena);
        else
            render_units(&r);
    }
    ty_buf_adds(out, "}\n");
}

/* With one value kept. A row of its own is a buffer more. */
static void render_kept(const ty_kernel *kept, int n, const uint32_t *alias, const int64_t *base, ty_arena *arena,
                        ty_buf *out)
{
    uint32_t *all = TY_NEW_ARRAY(arena, uint32_t, kept->n_buffers);
    int64_t *bases = TY_NEW_ARRAY(arena, int64_t, kept->n_buffers);
    for (int i = 0; i < kept->n_buffers; i++) {
        all[i] = i < n ? alias[i] : (uint32_t)i;
        bases[i] = i < n ? base[i] : 0;
    }
    render_kernel(kept, all, bases, arena, out);
}

void ty_render_kernel(const ty_kernel *k, const uint32_t *alias, const int64_t *base, ty_buf *out)
{
    ty_arena arena;
    ty_kernel kept;
    ty_arena_init(&arena);
    if (!ty_beside_suits(k) && ty_kernel_keep(k, alias, &arena, &kept))
        render_kept(&kept, k->n_buffers, alias, base, &arena, out);
    else
        render_kernel(k, alias, base, &arena, out);
    ty_arena_fini(&arena);
}
