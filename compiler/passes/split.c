/* split.c - reductions of a large tensor to one number, or to one row, become two steps, so that all threads take part.
 *
 * The gradient norm of a large model, the mean of a large loss: as one row they would run on one thread. The gradient
 * of a bias, the sum of 100,000 rows of 64 columns: one block of columns, and a long chain of roundings. The tensor is
 * cut into equal parts, and a remainder if no convenient number divides it: without one the norm can join the kernel of
 * the update, which reads the same gradient. How many parts does not depend on the number of threads, so neither do the
 * bits.
 *
 * What is turned before it is reduced is reduced along its own axes instead, and what is left is turned: the gradient
 * of a bias of channels first, of a gradient that lies with channels last, reads it in the order in which it lies.
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

/* in, reduced along axes, is of this type. */
typedef struct split_reduction {
    ty_val in;
    ty_combine how;
    uint32_t axes;
    ty_type type;
} split_reduction;

/* The number of rows that are combined: leading axes are reduced and all others stay; 0: another kind of reduction. */
static int64_t split_rows(const ty_type *x, uint32_t axes)
{
    int64_t rows = 1;
    int i = 0;
    for (; i < x->rank && axes >> i & 1; i++)
        rows *= x->dim[i];
    return i > 0 && axes == (1u << i) - 1 ? rows : 0;
}

static bool split_wants(const ty_graph *g, const split_reduction *s, bool gpu)
{
    const ty_type *x = ty_graph_type(g, s->in);
    bool one = ty_type_elems(&s->type) == 1;
    return ty_type_elems(x) >= (gpu && one ? SPLIT_GPU_ONE : SPLIT_MIN_ELEMS) &&
           (one || split_rows(x, s->axes) >= SPLIT_MIN_ROWS);
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

/* TY_NONE: not split. */
static ty_val split_whole(ty_graph *g, const split_reduction *s, bool gpu)
{
    if (!split_wants(g, s, gpu))
        return TY_NONE;
    int64_t width = ty_type_elems(&s->type), n = ty_type_elems(ty_graph_type(g, s->in)) / width;
    int rank = width > 1 ? 2 : 1;
    ty_val flat = ty_b_reshape(g, s->in, rank, (const int64_t[]){n, width});
    int64_t n_parts = split_parts(n, split_least(gpu, n, width)), part = n / n_parts, whole = part * n_parts;
    ty_val parts =
        ty_b_reshape(g, ty_b_slice_axis(g, flat, 0, 0, whole), rank + 1, (const int64_t[]){n_parts, part, width});
    ty_val sum = ty_b_reduce(g, ty_b_reduce(g, parts, s->how, 2, false), s->how, 1, false);
    if (whole < n)
        sum = split_combine(g, s->how, sum, ty_b_reduce(g, ty_b_slice_axis(g, flat, 0, whole, n), s->how, 1, false));
    return ty_b_reshape(g, sum, s->type.rank, s->type.dim);
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

static ty_val split_few(ty_graph *g, const split_reduction *s)
{
    const ty_type *x = ty_graph_type(g, s->in);
    uint32_t inner = split_inner_axes(x, s->axes);
    int64_t rows = ty_type_elems(&s->type), n = split_row(x, s->axes), parts = n ? split_parts(n, SPLIT_PARTS) : 1;
    if (ty_type_elems(x) < SPLIT_GPU_ELEMS || rows >= SPLIT_GPU_ROWS ||
        (!inner && (n == 0 || n % parts || rows > SPLIT_GPU_LONG)))
        return TY_NONE;
    ty_val sum =
        inner ? ty_b_reduce(g, s->in, s->how, inner, false)
              : ty_b_reduce(g, ty_b_reshape(g, s->in, 3, (const int64_t[]){rows, parts, n / parts}), s->how, 4, false);
    sum = ty_b_reduce(g, sum, s->how, inner ? 1 : 2, false);
    return ty_b_reshape(g, sum, s->type.rank, s->type.dim);
}

/* ---- the pass ---- */

/* What is turned, perhaps cast then, becomes what it is of; perm: how the result is to be turned. False: it is not. */
static bool split_unturned(ty_graph *g, split_reduction *s, int64_t *perm)
{
    ty_val v = s->in;
    bool is_cast = ty_graph_op(g, ty_val_node(v)) == TY_OP_CAST;
    v = is_cast ? ty_graph_in(g, ty_val_node(v), 0) : v;
    if (ty_graph_op(g, ty_val_node(v)) != TY_OP_TRANSPOSE)
        return false;
    const int64_t *turn = ty_graph_attr(g, ty_val_node(v))->lo;
    uint32_t axes = 0;
    int rank = ty_b_rank(g, v), n = 0;
    for (int i = 0; i < rank; i++)
        axes |= (s->axes >> i & 1) << turn[i];
    for (int i = 0; i < rank; i++)
        if (!(s->axes >> i & 1)) /* its number among the axes that stay */
            perm[n++] = turn[i] - __builtin_popcount(axes & ((1u << turn[i]) - 1));
    const ty_type to = s->type;
    for (int i = 0; i < n; i++)
        s->type.dim[perm[i]] = to.dim[i];
    s->axes = axes;
    v = ty_graph_in(g, ty_val_node(v), 0);
    s->in = is_cast ? ty_b_cast(g, v, ty_b_dtype(g, s->in)) : v;
    return true;
}

static bool split_node(ty_clone *c, uint32_t id, void *ctx)
{
    const bool *gpu = ctx;
    int64_t perm[TY_MAX_RANK];
    if (ty_graph_op(c->from, id) != TY_OP_REDUCE || ty_graph_attr(c->from, id)->mode == TY_PROD ||
        ty_graph_failed(c->to, NULL))
        return false;
    const ty_attr *attr = ty_graph_attr(c->from, id);
    split_reduction s = {
        .how = (ty_combine)attr->mode, .axes = attr->axes, .type = *ty_graph_type(c->from, ty_val_make(id, 0))};
    ty_clone_inputs(c, id, &s.in);
    ty_graph_origin(c->to, ty_graph_origin_of(c->from, id));
    bool turned = split_unturned(c->to, &s, perm);
    ty_val y = split_whole(c->to, &s, *gpu);
    if (y == TY_NONE && *gpu)
        y = split_few(c->to, &s);
    if (y == TY_NONE && turned)
        y = ty_b_reduce(c->to, s.in, s.how, s.axes, false);
    if (y == TY_NONE)
        return ty_graph_failed(c->to, NULL);
    c->map[ty_val_make(id, 0)] = turned ? ty_b_transpose(c->to, y, perm) : y;
    return true;
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
