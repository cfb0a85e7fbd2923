/* native_dot.c - products of float32 matrices, and the gradients of weights of bfloat16 ones, on the loops of panel.h.
 *
 * The result is dealt to threads in rectangles: nothing is shared and nobody waits. A thread goes through its rectangle
 * in blocks of DOT_COLUMNS columns and DOT_SUM of the sum; there it packs the right side into panels, and, in blocks of
 * DOT_ROWS rows, the left side into tiles if it is transposed. A panel stays in the first cache while the rows of a
 * block pass by, which stay in the second.
 *
 * Every element is the sum of at most k / DOT_SUM sums, each in the order of k, whoever computes it: the bits depend on
 * the shape alone. The scheme is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication",
 * 2008.
 *
 * oneDNN is no quicker with AVX2, within 4 %, and writes its code anew in every process (35 ms). Where a side of the
 * result is shorter than about a thousand it multiplies operands where they lie, half as fast where rows that are read
 * together lie a power of two apart (gradients of weights); where it packs, it gets memory for that in each call (1.4
 * of our time in a step for 1024 x 1248 x 128). It is quicker where packing does not pay, since a turned right side
 * meets few rows. With AVX-512 it was the quicker one everywhere (the products of an LSTM in 0.79 of our time), so that
 * there these loops are left with what must not depend on the number of threads (dot_pays).
 *
 * Of bfloat16 oneDNN is the quicker one too, but for gradients of large weights, of a vocabulary say. Their sums go
 * down both matrices, whose pairs (panel.h) are joined as they are packed.
 */
#include "compiler/target/cpu/native.h"
#include "compiler/target/cpu/onednn.h"
#include "compiler/target/cpu/panel.h"
#include "compiler/target/cpu/product.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DOT_SUM = 256, DOT_ROWS = 240, DOT_COLUMNS = 1024, DOT_ALIGN = 64 };
#define DOT_SERIAL_FLOPS 1e6 /* some ten microseconds of one core */
#define DOT_PACK_COST    8   /* multiply-adds in the time that packing an element takes */
/* Measured on two cores of an AMD EPYC with AVX2 (Zen 3), own / sgemm: transposed left side 0.46 (1024 x 256 x 2048) to
 * 1.02, neither 0.54 (256 x 3072 x 768) to 1.04, both where m x n is large; turned right side 0.98 to 1.03 with 1,024
 * rows and more, 1.02 to 1.13 with 64 to 512. */
#define DOT_TURNED_ROWS 1024
#define DOT_LEAST_ELEMS (1 << 14)
/* Gradients of weights of bfloat16, own / oneDNN on two cores of a Zen 4: 0.76 to 0.80 (50257 x 768 x 256), 0.78 to
 * 0.88 (151936 x 896 x 128), 0.91 to 0.94 (30522 x 768 x 512), 0.90 to 0.97 (8192 x 1024 x 256); less than that 0.95 to
 * 1.28. */
#define DOT_PAIRS_ELEMS (1 << 23)

typedef struct dot_call {
    const ty_panel_kernels *kernels;
    ty_product of;
    int joined;                                /* of one column, in a float of a panel or tile: 1; 2 of bfloat16 */
    int64_t depth;                             /* of the sum, in those */
    int matrix_parts, row_parts, column_parts; /* threads are their product */
    int64_t panel_floats, tile_floats;         /* of a thread */
    char text[80];
} dot_call;

/* One matrix and the part of its result that a thread computes. */
typedef struct dot_part {
    const dot_call *call;
    const float *a, *b, *adds_to; /* a, b: or bfloat16 */
    float *c, *panels, *tiles;
    int64_t row, end_row, column, end_column;
} dot_part;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* An element of an operand, and those behind it. */
static const float *dot_at(const dot_call *d, const void *operand, int64_t element)
{
    return (const float *)((const char *)operand + element * (int64_t)sizeof(float) / d->joined);
}

/* Panels of columns [column, column + n) for the sum's [at, at + k). */
static void dot_pack_right(const dot_part *p, int64_t column, int64_t n, int64_t at, int64_t k)
{
    const dot_call *d = p->call;
    for (int64_t j = 0; j < n; j += TY_PANEL) {
        int64_t width = least(TY_PANEL, n - j);
        if (d->of.trans_b)
            d->kernels->pack_turned(p->panels + j * k, k, p->b + (column + j) * d->of.k + at, d->of.k, k, width);
        else
            d->kernels->pack(p->panels + j * k, k, dot_at(d, p->b, at * d->joined * d->of.n + column + j), d->of.n, k,
                             width);
    }
}

/* Rows of the left side times one panel, into c. */
static void dot_multiply(const dot_part *p, int64_t row, int64_t rows, int64_t at, int64_t k, const float *panel,
                         float *c, int64_t c_step, bool adds)
{
    const dot_call *d = p->call;
    if (d->of.trans_a)
        d->kernels->tiles(p->tiles, rows, k, panel, k, c, c_step, adds);
    else
        d->kernels->rows(p->a + row * d->of.k + at, d->of.k, rows, k, panel, k, c, c_step, adds);
}

/* The last panel, of fewer columns than 32. */
static void dot_multiply_narrow(const dot_part *p, int64_t row, int64_t rows, int64_t at, int64_t k, const float *panel,
                                int64_t column, int64_t width, bool adds)
{
    _Alignas(DOT_ALIGN) float whole[DOT_ROWS * TY_PANEL];
    float *c = p->c + row * p->call->of.n + column;
    dot_multiply(p, row, rows, at, k, panel, whole, TY_PANEL, false);
    for (int64_t r = 0; r < rows; r++, c += p->call->of.n)
        for (int64_t j = 0; j < width; j++)
            c[j] = adds ? c[j] + whole[r * TY_PANEL + j] : whole[r * TY_PANEL + j];
}

/* What the product is added to must lie where the result will. */
static void dot_start(const dot_part *p, int64_t row, int64_t rows, int64_t column, int64_t n)
{
    if (!p->adds_to || p->adds_to == p->c)
        return;
    for (int64_t r = row; r < row + rows; r++)
        memcpy(p->c + r * p->call->of.n + column, p->adds_to + r * p->call->of.n + column, (size_t)n * sizeof *p->c);
}

/* A block of rows times the packed columns. */
static void dot_rows(const dot_part *p, int64_t row, int64_t rows, int64_t column, int64_t n, int64_t at, int64_t k)
{
    const dot_call *d = p->call;
    bool adds = at > 0 || d->of.adds;
    if (at == 0)
        dot_start(p, row, rows, column, n);
    if (d->of.trans_a)
        d->kernels->pack_tiles(p->tiles, dot_at(d, p->a, at * d->joined * d->of.m + row), rows, k, d->of.m);
    for (int64_t j = 0; j < n; j += TY_PANEL)
        if (n - j < TY_PANEL)
            dot_multiply_narrow(p, row, rows, at, k, p->panels + j * k, column + j, n - j, adds);
        else
            dot_multiply(p, row, rows, at, k, p->panels + j * k, p->c + row * d->of.n + column + j, d->of.n, adds);
}

static void dot_rectangle(const dot_part *p)
{
    const dot_call *d = p->call;
    for (int64_t column = p->column; column < p->end_column; column += DOT_COLUMNS) {
        int64_t n = least(DOT_COLUMNS, p->end_column - column);
        for (int64_t at = 0; at < d->depth; at += DOT_SUM) {
            int64_t k = least(DOT_SUM, d->depth - at);
            dot_pack_right(p, column, n, at, k);
            for (int64_t row = p->row; row < p->end_row; row += DOT_ROWS)
                dot_rows(p, row, least(DOT_ROWS, p->end_row - row), column, n, at, k);
        }
    }
}

/* Where part `i` of `parts` begins, in whole units. */
static int64_t dot_border(int64_t n, int64_t unit, int64_t i, int64_t parts)
{
    return least(n, (n + unit - 1) / unit * i / parts * unit);
}

/* Part `t`: every so manieth matrix, a rectangle of each. */
static void dot_run_part(const dot_call *d, int t, const void *const *in, void *out, float *buffer)
{
    int i = t / d->column_parts % d->row_parts, j = t % d->column_parts;
    dot_part p = {.call = d, .panels = buffer, .tiles = buffer + d->panel_floats};
    p.row = dot_border(d->of.m, d->kernels->tile_rows, i, d->row_parts);
    p.end_row = dot_border(d->of.m, d->kernels->tile_rows, i + 1, d->row_parts);
    p.column = dot_border(d->of.n, TY_PANEL, j, d->column_parts);
    p.end_column = dot_border(d->of.n, TY_PANEL, j + 1, d->column_parts);
    for (int64_t one = t / (d->row_parts * d->column_parts); one < d->of.batch; one += d->matrix_parts) {
        p.a = dot_at(d, in[0], one * d->of.m * d->of.k);
        p.b = dot_at(d, in[1], one * d->of.k * d->of.n);
        p.c = (float *)out + one * d->of.m * d->of.n;
        p.adds_to = d->of.adds ? (const float *)in[2] + one * d->of.m * d->of.n : NULL;
        dot_rectangle(&p);
    }
}

static void dot_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const dot_call *d = prepared;
    int threads = d->matrix_parts * d->row_parts * d->column_parts;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int t = 0; t < threads; t++)
        dot_run_part(d, t, in, out[0], (float *)scratch + t * (d->panel_floats + d->tile_floats));
}

/* ---- preparing ---- */

static int64_t dot_units(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit;
}

/* The longest share of the arithmetic, and what packing adds to it: an element of the right side is packed for all rows
 * of a rectangle, one of the left side for all columns. */
static double dot_share_cost(const dot_call *d, int row_parts, int column_parts)
{
    double rows = (double)(dot_units(dot_units(d->of.m, d->kernels->tile_rows), row_parts) * d->kernels->tile_rows);
    double columns = (double)(dot_units(dot_units(d->of.n, TY_PANEL), column_parts) * TY_PANEL);
    return rows * columns + DOT_PACK_COST * (columns + (d->of.trans_a ? rows : 0));
}

/* Matrices, if there are enough for all; else rectangles of each, as square as can be. */
static void dot_deal(dot_call *d, int threads)
{
    d->matrix_parts = d->of.batch >= threads ? threads : 1;
    d->row_parts = d->column_parts = 1;
    threads /= d->matrix_parts;
    double best = dot_share_cost(d, threads, 1);
    for (int rows = 1; rows <= threads; rows++) {
        double cost = threads % rows ? best : dot_share_cost(d, rows, threads / rows);
        if (cost <= best) {
            best = cost;
            d->row_parts = rows;
            d->column_parts = threads / rows;
        }
    }
}

static int64_t dot_rounded(int64_t floats)
{
    return dot_units(floats, DOT_ALIGN / (int64_t)sizeof(float)) * (DOT_ALIGN / (int64_t)sizeof(float));
}

/* Places for a thread's panels and tiles. */
static size_t dot_measure(dot_call *d)
{
    int64_t k = least(d->depth, DOT_SUM);
    int64_t columns = least(DOT_COLUMNS, dot_units(dot_units(d->of.n, TY_PANEL), d->column_parts) * TY_PANEL);
    int64_t rows =
        least(DOT_ROWS, dot_units(dot_units(d->of.m, d->kernels->tile_rows), d->row_parts) * d->kernels->tile_rows);
    d->panel_floats = dot_rounded(columns * k);
    d->tile_floats = d->of.trans_a ? dot_rounded(rows * k) : 0;
    int threads = d->matrix_parts * d->row_parts * d->column_parts;
    return (size_t)(threads * (d->panel_floats + d->tile_floats)) * sizeof(float);
}

bool ty_native_dot_pays(const ty_attr *attr, const ty_type *result)
{
    if (result->dtype != TY_F32 || result->rank != 2 || ty_onednn_is_wide())
        return false;
    bool trans_b = attr->flags & TY_DOT_TRANS_B;
    return ty_type_elems(result) >= DOT_LEAST_ELEMS && (!trans_b || result->dim[0] >= DOT_TURNED_ROWS);
}

static int dot_prepare(const dot_call *call, const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    dot_call *d = malloc(sizeof *d);
    if (!d)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a prepared product");
    *d = *call;
    d->depth = d->of.k / d->joined;
    dot_deal(d, ty_product_flops(&d->of) < DOT_SERIAL_FLOPS ? 1 : shape->threads);
    char how[24];
    snprintf(how, sizeof how, "native %s", d->kernels->name);
    ty_product_text(&d->of, how, d->text, sizeof d->text);
    *out = (ty_library_call){.run = dot_run, .release = free, .prepared = d, .text = d->text};
    out->scratch_bytes = dot_measure(d);
    return 0;
}

int ty_native_prepare_dot(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    const dot_call call = {.kernels = ty_panel_best(), .of = ty_product_of(shape), .joined = 1};
    if (ty_product_flops(&call.of) == 0 || (!shape->strict && !ty_native_dot_pays(shape->attr, shape->res)))
        return ty_error_set(err, TY_E_UNSUPPORTED, "oneDNN multiplies these as fast");
    return dot_prepare(&call, shape, out, err);
}

int ty_native_prepare_dot_pairs(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    const dot_call call = {.kernels = ty_panel_pairs(), .of = ty_product_of(shape), .joined = 2};
    const ty_product *of = &call.of;
    bool types = shape->in[0].dtype == TY_BF16 && shape->in[1].dtype == TY_BF16 && shape->res[0].dtype == TY_F32;
    if (!types || shape->strict || !of->trans_a || of->trans_b || of->k % 2 != 0 || ty_product_flops(of) == 0 ||
        !call.kernels)
        return ty_error_set(err, TY_E_UNSUPPORTED, "no product of pairs");
    return dot_prepare(&call, shape, out, err);
}

int ty_native_prepare_dot_bf16(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    if (ty_onednn_has_amx() || ty_type_elems(&shape->res[0]) < DOT_PAIRS_ELEMS)
        return ty_error_set(err, TY_E_UNSUPPORTED, "oneDNN multiplies these as fast");
    return ty_native_prepare_dot_pairs(shape, out, err);
}
