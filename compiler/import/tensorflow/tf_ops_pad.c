/* tf_ops_pad.c - what lies around, and space moved into depth or batch and back. */
#include "compiler/import/tensorflow/tf_ops.h"

#include <string.h>

enum { MAX_BLOCK = 1 << 15 };
#define MAX_EDGE ((int64_t)1 << 40)

/* Input 1: [rank, 2]. */
static bool paddings(tf_ctx *c, ty_val x, int64_t *lo, int64_t *hi)
{
    const int64_t *v;
    int64_t n;
    if (!tf_const_ints(c, 1, &v, &n))
        return false;
    if (n != 2 * tf_rank(c, x)) {
        tf_fail_input(c, 1, TY_E_SHAPE, "must be [%d, 2]", tf_rank(c, x));
        return false;
    }
    for (int i = 0; i < tf_rank(c, x); i++) {
        lo[i] = v[2 * i];
        hi[i] = v[2 * i + 1];
        if (lo[i] < 0 || hi[i] < 0 || lo[i] > MAX_EDGE || hi[i] > MAX_EDGE)
            tf_fail_input(c, 1, TY_E_SHAPE, "must not be negative, nor far too large");
    }
    return !c->failed;
}

void tf_op_pad(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    int64_t lo[TY_MAX_RANK], hi[TY_MAX_RANK];
    double value = 0;
    if (paddings(c, x, lo, hi) && (!tf_has(c, 2) || tf_const_float(c, 2, &value)))
        tf_set(c, 0, ty_b_pad(c->g, x, lo, hi, value));
}

/* One axis mirrored at its ends; `edge`: the last entry itself comes again. */
static ty_val mirror(tf_ctx *c, ty_val x, int axis, int64_t lo, int64_t hi, bool edge)
{
    ty_val part[3];
    int n = 0;
    int64_t size = tf_dim(c, x, axis), skip = edge ? 0 : 1;
    if (lo)
        part[n++] = ty_b_reverse(c->g, ty_b_slice_axis(c->g, x, axis, skip, skip + lo), 1u << axis);
    part[n++] = x;
    if (hi)
        part[n++] = ty_b_reverse(c->g, ty_b_slice_axis(c->g, x, axis, size - skip - hi, size - skip), 1u << axis);
    return n == 1 ? x : ty_b_concat(c->g, part, n, axis);
}

/* The gradient: what was copied is added where it came from. */
static ty_val unmirror(tf_ctx *c, ty_val dy, int axis, int64_t lo, int64_t hi, bool edge)
{
    ty_graph *g = c->g;
    int64_t size = tf_dim(c, dy, axis) - lo - hi, skip = edge ? 0 : 1, front[TY_MAX_RANK] = {0},
            back[TY_MAX_RANK] = {0};
    ty_val x = ty_b_slice_axis(g, dy, axis, lo, lo + size);
    if (lo) {
        ty_val part = ty_b_reverse(g, ty_b_slice_axis(g, dy, axis, 0, lo), 1u << axis);
        front[axis] = skip;
        back[axis] = size - skip - lo;
        x = ty_b_add(g, x, ty_b_pad(g, part, front, back, 0));
    }
    if (hi) {
        ty_val part = ty_b_reverse(g, ty_b_slice_axis(g, dy, axis, lo + size, lo + size + hi), 1u << axis);
        front[axis] = size - skip - hi;
        back[axis] = skip;
        x = ty_b_add(g, x, ty_b_pad(g, part, front, back, 0));
    }
    return x;
}

/* arg 1: the gradient. */
void tf_op_mirror_pad(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    int64_t lo[TY_MAX_RANK], hi[TY_MAX_RANK];
    bool edge = strcmp(tf_text(c, "mode", "REFLECT"), "SYMMETRIC") == 0;
    if (!paddings(c, x, lo, hi))
        return;
    for (int i = 0; i < tf_rank(c, x); i++) {
        int64_t size = tf_dim(c, x, i) - (c->row->arg ? lo[i] + hi[i] : 0), most = edge ? size : size - 1;
        if (lo[i] > most || hi[i] > most) {
            tf_fail_input(c, 1, TY_E_SHAPE, "is more than there is along axis %d", i);
            return;
        }
    }
    for (int i = 0; i < tf_rank(c, tf_in(c, 0)) && x != TY_NONE; i++)
        x = c->row->arg ? unmirror(c, x, i, lo[i], hi[i], edge) : mirror(c, x, i, lo[i], hi[i], edge);
    tf_set(c, 0, x);
}

/* ---- space and depth ----------------------------------------------------------------------------------------------
 */

/* [N, H b, W b, C] to [N, H, W, b b C]; arg 1: back. */
void tf_op_space_to_depth(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    int64_t b = tf_attr_int(c->node, "block_size", 1);
    if (tf_rank(c, x) != 4 || strcmp(tf_text(c, "data_format", "NHWC"), "NHWC") != 0 || b < 1 || b > MAX_BLOCK) {
        tf_fail(c, TY_E_UNSUPPORTED, "4 dimensions in the format NHWC and blocks of 1 to %d are possible", MAX_BLOCK);
        return;
    }
    int64_t n = tf_dim(c, x, 0), h = tf_dim(c, x, 1), w = tf_dim(c, x, 2), ch = tf_dim(c, x, 3);
    if (c->row->arg ? ch % (b * b) : h % b || w % b) {
        tf_fail_input(c, 0, TY_E_SHAPE, "does not divide into blocks of %lld", (long long)b);
        return;
    }
    static const int64_t perm[] = {0, 1, 3, 2, 4, 5};
    if (c->row->arg) {
        int64_t split[] = {n, h, w, b, b, ch / (b * b)}, joined[] = {n, h * b, w * b, ch / (b * b)};
        x = ty_b_transpose(c->g, ty_b_reshape(c->g, x, 6, split), perm);
        tf_set(c, 0, ty_b_reshape(c->g, x, 4, joined));
        return;
    }
    int64_t split[] = {n, h / b, b, w / b, b, ch}, joined[] = {n, h / b, w / b, b * b * ch};
    x = ty_b_transpose(c->g, ty_b_reshape(c->g, x, 6, split), perm);
    tf_set(c, 0, ty_b_reshape(c->g, x, 4, joined));
}

typedef struct blocks {
    int m;                      /* axes */
    const int64_t *size, *edge; /* [m]; [m, 2]: padding or crops */
} blocks;

static bool blocks_read(tf_ctx *c, ty_val x, blocks *b)
{
    int64_t n, n_edge;
    if (!tf_const_ints(c, 1, &b->size, &n) || !tf_const_ints(c, 2, &b->edge, &n_edge))
        return false;
    b->m = (int)n;
    if (n < 1 || n_edge != 2 * n || n + 1 > tf_rank(c, x) || tf_rank(c, x) + n > TY_MAX_RANK)
        tf_fail(c, TY_E_SHAPE, "blocks do not fit %d dimensions", tf_rank(c, x));
    for (int64_t i = 0; i < n && !c->failed; i++)
        if (b->size[i] < 1 || b->size[i] > MAX_BLOCK || b->edge[2 * i] < 0 || b->edge[2 * i + 1] < 0 ||
            b->edge[2 * i] > MAX_EDGE || b->edge[2 * i + 1] > MAX_EDGE)
            tf_fail(c, TY_E_SHAPE, "blocks and their edges must not be negative, nor far too large");
    return !c->failed;
}

static int64_t times(tf_ctx *c, int64_t n, int64_t by)
{
    if (!__builtin_mul_overflow(n, by, &n))
        return n;
    tf_fail(c, TY_E_SHAPE, "the result is too large");
    return 0;
}

/* x, block shape, paddings */
void tf_op_space_to_batch(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    blocks b;
    int64_t lo[TY_MAX_RANK] = {0}, hi[TY_MAX_RANK] = {0}, split[TY_MAX_RANK], perm[TY_MAX_RANK], joined[TY_MAX_RANK];
    if (!blocks_read(c, x, &b))
        return;
    for (int i = 0; i < b.m; i++) {
        lo[i + 1] = b.edge[2 * i];
        hi[i + 1] = b.edge[2 * i + 1];
    }
    x = ty_b_pad(c->g, x, lo, hi, 0);
    int rank = tf_rank(c, x), n = 0;
    joined[0] = split[n++] = tf_dim(c, x, 0);
    for (int i = 1; i < rank; i++) {
        joined[i] = tf_dim(c, x, i);
        if (i > b.m) {
            split[n++] = joined[i];
            continue;
        }
        if (joined[i] % b.size[i - 1]) {
            tf_fail_input(c, 0, TY_E_SHAPE, "does not divide into blocks along axis %d", i);
            return;
        }
        split[n++] = joined[i] / b.size[i - 1];
        split[n++] = b.size[i - 1];
        joined[i] /= b.size[i - 1];
        joined[0] = times(c, joined[0], b.size[i - 1]);
    }
    int k = 0;
    for (int i = 0; i < b.m; i++)
        perm[k++] = 2 * i + 2;
    perm[k++] = 0;
    for (int i = 0; i < b.m; i++)
        perm[k++] = 2 * i + 1;
    for (int i = 2 * b.m + 1; i < n; i++)
        perm[k++] = i;
    x = ty_b_transpose(c->g, ty_b_reshape(c->g, x, n, split), perm);
    tf_set(c, 0, ty_b_reshape(c->g, x, rank, joined));
}

/* x, block shape, crops */
void tf_op_batch_to_space(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    blocks b;
    int64_t split[TY_MAX_RANK], perm[TY_MAX_RANK], joined[TY_MAX_RANK], lo[TY_MAX_RANK] = {0}, hi[TY_MAX_RANK];
    if (!blocks_read(c, x, &b))
        return;
    int rank = tf_rank(c, x), n = 0, k = 0;
    int64_t batch = tf_dim(c, x, 0);
    for (int i = 0; i < b.m; i++) {
        split[n++] = b.size[i];
        if (batch % b.size[i]) {
            tf_fail_input(c, 0, TY_E_SHAPE, "does not divide into blocks");
            return;
        }
        batch /= b.size[i];
    }
    joined[0] = split[n++] = batch;
    perm[k++] = b.m;
    for (int i = 1; i < rank; i++) {
        split[n++] = tf_dim(c, x, i);
        joined[i] = times(c, tf_dim(c, x, i), i <= b.m ? b.size[i - 1] : 1);
        perm[k++] = b.m + i;
        if (i <= b.m)
            perm[k++] = i - 1;
    }
    x = ty_b_transpose(c->g, ty_b_reshape(c->g, x, n, split), perm);
    x = ty_b_reshape(c->g, x, rank, joined);
    for (int i = 0; i < rank; i++) {
        bool cut = i > 0 && i <= b.m;
        lo[i] = cut ? b.edge[2 * i - 2] : 0;
        hi[i] = joined[i] - (cut ? b.edge[2 * i - 1] : 0);
    }
    tf_set(c, 0, ty_b_slice(c->g, x, lo, hi, NULL));
}

/* ---- matrices ------------------------------------------------------------------------------------------------------
 */

/* Zeros outside of the diagonals -lower .. upper; a negative number: all on that side stay. */
void tf_op_matrix_band_part(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = tf_in(c, 0);
    int rank = tf_rank(c, x);
    int64_t lower, upper;
    if (!tf_const_int(c, 1, &lower) || !tf_const_int(c, 2, &upper))
        return;
    if (rank < 2) {
        tf_fail_input(c, 0, TY_E_SHAPE, "must be a matrix");
        return;
    }
    ty_type t = ty_type_make(TY_I64, 2, tf_type(c, x)->dim + rank - 2);
    ty_val down = ty_b_sub(g, ty_b_iota(g, t, 0), ty_b_iota(g, t, 1)), keep = ty_b_full(g, TY_BOOL, 2, t.dim, 1);
    if (lower >= 0)
        keep = ty_b_binary(g, TY_OP_AND, keep, ty_b_le(g, down, ty_b_full_like(g, down, (double)lower)));
    if (upper >= 0)
        keep = ty_b_binary(g, TY_OP_AND, keep, ty_b_le(g, ty_b_neg(g, down), ty_b_full_like(g, down, (double)upper)));
    tf_set(c, 0, ty_b_select(g, keep, x, ty_b_full_like(g, x, 0)));
}
