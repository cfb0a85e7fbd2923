/* split.c - reductions of a large tensor to one number, or to one row, become two steps, so that all threads take part.
 *
 * The gradient norm of a large model, the mean of a large loss: as one row they would run on one thread. The gradient
 * of a bias, the sum of 100,000 rows of 64 columns: one block of columns, and a long chain of roundings. The tensor is
 * cut into equal parts, and a remainder if no convenient number divides it: without one the norm can join the kernel of
 * the update, which reads the same gradient. How many parts does not depend on the number of threads, so neither do the
 * bits.
 *
 * On a GPU a reduction is also split whose results are too few for it: of a batch of images to a number a channel,
 * where the batch comes first, each image by itself and then over them; of a few long rows, each in parts.
 */
#include "compiler/ir/build.h"
#include "compiler/ir/clone.h"
#include "compiler/passes/passes.h"

#define SPLIT_PARTS     64 /* with a remainder, or at least, without one */
#define SPLIT_MOST      1024
#define SPLIT_MIN_ELEMS (1 << 17)
#define SPLIT_MIN_ROWS  2048
#define SPLIT_GPU_ONE   (1 << 15) /* to one number, which one block would do: .16 ms on an H200 for a loss of 65,536 */
#define SPLIT_GPU_ELEMS (1 << 22)
#define SPLIT_GPU_ROWS  132 /* results: a block for each multiprocessor of a large GPU */
#define SPLIT_GPU_LONG  32  /* rows that are worth taking apart, though what reads them is then another kernel */
/* A GPU that sums columns has a block for up to 256 of them and a part. Of these a large one runs four on each
 * multiprocessor, 528 at a time: of 768 the last 240 would run with most of it idle, so there are three times as many.
 * A part has at least 64 rows, and what is left to be added up is no longer than 512: BERT's step on an H200 takes 40.0
 * ms with 64, 40.1 with 128 and 40.3 with 32. */
#define SPLIT_GPU_BLOCKS  1536
#define SPLIT_GPU_COLUMNS 256
#define SPLIT_GPU_PART    64
#define SPLIT_GPU_MOST    512

/* The number of rows that are combined: leading axes are reduced and all others stay; 0: another kind of reduction. */
static int64_t split_rows(const ty_type *x, uint32_t axes)
{
    int64_t rows = 1;
    int i = 0;
    for (; i < x->rank && axes >> i & 1; i++)
        rows *= x->dim[i];
    return i > 0 && axes == (1u << i) - 1 ? rows : 0;
}

static bool split_wants(const ty_graph *g, uint32_t id, bool gpu)
{
    const ty_type *x = ty_graph_type(g, ty_graph_in(g, id, 0));
    bool one = ty_type_elems(ty_graph_type(g, ty_val_make(id, 0))) == 1;
    return ty_type_elems(x) >= (gpu && one ? SPLIT_GPU_ONE : SPLIT_MIN_ELEMS) &&
           (one || split_rows(x, ty_graph_attr(g, id)->axes) >= SPLIT_MIN_ROWS);
}

/* The first number from `least` on that divides n; else the usual one, with a remainder. */
static int64_t split_parts(int64_t n, int64_t least)
{
    for (int64_t parts = least; parts <= SPLIT_MOST; parts++)
        if (n % parts == 0)
            return parts;
    return least > SPLIT_PARTS ? split_parts(n, SPLIT_PARTS) : SPLIT_PARTS;
}

static int64_t split_least(bool gpu, int64_t n, int64_t width)
{
    int64_t blocks = (width + SPLIT_GPU_COLUMNS - 1) / SPLIT_GPU_COLUMNS, parts = SPLIT_GPU_BLOCKS / blocks;
    parts = parts < n / SPLIT_GPU_PART ? parts : n / SPLIT_GPU_PART;
    parts = parts < SPLIT_GPU_MOST ? parts : SPLIT_GPU_MOST;
    return gpu && width > 1 && parts > SPLIT_PARTS ? parts : SPLIT_PARTS;
}

static ty_val split_combine(ty_graph *g, ty_combine how, ty_val a, ty_val b)
{
    return how == TY_SUM ? ty_b_add(g, a, b) : how == TY_MAX ? ty_b_max(g, a, b) : ty_b_min(g, a, b);
}

static bool split_whole(ty_clone *c, uint32_t id, bool gpu)
{
    if (!split_wants(c->from, id, gpu))
        return false;
    ty_graph *g = c->to;
    ty_combine how = (ty_combine)ty_graph_attr(c->from, id)->mode;
    const ty_type *type = ty_graph_type(c->from, ty_val_make(id, 0));
    ty_val in;
    ty_clone_inputs(c, id, &in);
    ty_graph_origin(g, ty_graph_origin_of(c->from, id));
    int64_t width = ty_type_elems(type), n = ty_type_elems(ty_graph_type(g, in)) / width;
    int rank = width > 1 ? 2 : 1;
    ty_val flat = ty_b_reshape(g, in, rank, (const int64_t[]){n, width});
    int64_t n_parts = split_parts(n, split_least(gpu, n, width)), part = n / n_parts, whole = part * n_parts;
    ty_val parts =
        ty_b_reshape(g, ty_b_slice_axis(g, flat, 0, 0, whole), rank + 1, (const int64_t[]){n_parts, part, width});
    ty_val sum = ty_b_reduce(g, ty_b_reduce(g, parts, how, 2, false), how, 1, false);
    if (whole < n)
        sum = split_combine(g, how, sum, ty_b_reduce(g, ty_b_slice_axis(g, flat, 0, whole, n), how, 1, false));
    c->map[ty_val_make(id, 0)] = ty_b_reshape(g, sum, type->rank, type->dim);
    return true;
}

/* ---- for a GPU ---- */

/* Axes to combine first; 0: all at once. */
static uint32_t split_inner_axes(const ty_type *x, uint32_t axes)
{
    uint32_t inner = axes & ~1u;
    return axes & 1 && inner && x->dim[0] > 1 ? inner : 0;
}

/* Elements of a row, if the last axes are reduced and no others; else 0. */
static int64_t split_row(const ty_type *x, uint32_t axes)
{
    int64_t n = 1;
    int i = x->rank;
    for (; i > 0 && axes >> (i - 1) & 1; i--)
        n *= x->dim[i - 1];
    return axes >> i << i == axes && (axes & ((1u << i) - 1)) == 0 ? n : 0;
}

static bool split_few(ty_clone *c, uint32_t id)
{
    ty_graph *g = c->to;
    ty_combine how = (ty_combine)ty_graph_attr(c->from, id)->mode;
    const ty_type *x = ty_graph_type(c->from, ty_graph_in(c->from, id, 0)),
                  *type = ty_graph_type(c->from, ty_val_make(id, 0));
    uint32_t axes = ty_graph_attr(c->from, id)->axes, inner = split_inner_axes(x, axes);
    int64_t rows = ty_type_elems(type), n = split_row(x, axes), parts = n ? split_parts(n, SPLIT_PARTS) : 1;
    if (ty_type_elems(x) < SPLIT_GPU_ELEMS || rows >= SPLIT_GPU_ROWS ||
        (!inner && (n == 0 || n % parts || rows > SPLIT_GPU_LONG)))
        return false;
    ty_val in;
    ty_clone_inputs(c, id, &in);
    ty_graph_origin(g, ty_graph_origin_of(c->from, id));
    ty_val sum = inner
                     ? ty_b_reduce(g, in, how, inner, false)
                     : ty_b_reduce(g, ty_b_reshape(g, in, 3, (const int64_t[]){rows, parts, n / parts}), how, 4, false);
    sum = ty_b_reduce(g, sum, how, inner ? 1 : 2, false);
    c->map[ty_val_make(id, 0)] = ty_b_reshape(g, sum, type->rank, type->dim);
    return true;
}

/* ---- the pass ---- */

static bool split_node(ty_clone *c, uint32_t id, void *ctx)
{
    const bool *gpu = ctx;
    if (ty_graph_op(c->from, id) != TY_OP_REDUCE || ty_graph_attr(c->from, id)->mode == TY_PROD)
        return false;
    return split_whole(c, id, *gpu) || (*gpu && split_few(c, id));
}

int ty_pass_split(const ty_graph *in, ty_graph **out, ty_error *err)
{
    bool gpu = false;
    return ty_clone_rewrite(in, split_node, &gpu, out, err);
}

int ty_pass_split_gpu(const ty_graph *in, ty_graph **out, ty_error *err)
{
    bool gpu = true;
    return ty_clone_rewrite(in, split_node, &gpu, out, err);
}
