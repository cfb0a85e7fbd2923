/* tf_ops_random.c - numbers drawn anew in every step, from the counter-based generator of base/rng.h.
 *
 * Each node has its own stream. TensorFlow's seeds, keys and counters are read by nobody: they are there to make
 * numbers differ from step to step, and ours do. The numbers are not TensorFlow's.
 */
#include "compiler/import/tensorflow/tf_ops.h"

#include <math.h>

enum { STREAM_PARTS = 8, FIRST_STREAM = 1 << 20 };

ty_val tf_uniform(tf_ctx *c, int64_t part, int rank, const int64_t *dim)
{
    ty_graph *g = c->g;
    const ty_model_binding *b = c->imp->binding;
    if (b->seed == TY_NONE || b->step == TY_NONE) {
        tf_fail(c, TY_E_UNSUPPORTED, "random numbers can be drawn in training only");
        return TY_NONE;
    }
    int64_t stream = FIRST_STREAM + c->imp->serial * STREAM_PARTS + part;
    ty_val words = ty_b_rng(g, b->seed, b->step, stream & UINT32_MAX, rank, dim);
    ty_val top = ty_b_cast(g, ty_b_binary(g, TY_OP_SHR, words, ty_b_full_like(g, words, 8)), TY_F32);
    return ty_b_mul_s(g, top, 0x1p-24);
}

static bool random_shape_at(tf_ctx *c, int input, const int64_t **dim, int *rank)
{
    int64_t n;
    if (!tf_const_ints(c, input, dim, &n) || !tf_shape_ok(c, n, *dim))
        return false;
    *rank = (int)n;
    return true;
}

static bool random_shape(tf_ctx *c, const int64_t **dim, int *rank)
{
    return random_shape_at(c, 0, dim, rank);
}

static ty_dtype random_dtype(tf_ctx *c)
{
    return tf_attr_dtype(c, "dtype", TY_F32);
}

void tf_op_random_uniform(tf_ctx *c)
{
    const int64_t *dim;
    int rank;
    if (random_shape(c, &dim, &rank))
        tf_set(c, 0, ty_b_cast(c->g, tf_uniform(c, 0, rank, dim), random_dtype(c)));
}

/* Box and Muller: sqrt(-2 log(1 - u)) cos(2 pi v). */
static ty_val normal(tf_ctx *c, int64_t part, int rank, const int64_t *dim)
{
    ty_graph *g = c->g;
    ty_val u = tf_uniform(c, part, rank, dim), v = tf_uniform(c, part + 1, rank, dim);
    ty_val radius = ty_b_unary(g, TY_OP_SQRT, ty_b_mul_s(g, ty_b_unary(g, TY_OP_LOG1P, ty_b_neg(g, u)), -2));
    return ty_b_mul(g, radius, ty_b_unary(g, TY_OP_COS, ty_b_mul_s(g, v, 2 * M_PI)));
}

void tf_op_random_normal(tf_ctx *c)
{
    const int64_t *dim;
    int rank;
    if (random_shape(c, &dim, &rank))
        tf_set(c, 0, ty_b_cast(c->g, normal(c, 0, rank, dim), random_dtype(c)));
}

/* Within two deviations: what lies outside is drawn again, three times, which leaves 1 in 200,000, and then halved. */
static ty_val truncated(tf_ctx *c, int rank, const int64_t *dim)
{
    ty_graph *g = c->g;
    ty_val z = normal(c, 0, rank, dim);
    for (int again = 1; again <= 4 && z != TY_NONE; again++) {
        ty_val other = again < 4 ? normal(c, 2 * again, rank, dim) : ty_b_mul_s(g, z, 0.5);
        ty_val outside = ty_b_lt(g, ty_b_full_like(g, z, 2), ty_b_unary(g, TY_OP_ABS, z));
        z = ty_b_select(g, outside, other, z);
    }
    return z;
}

void tf_op_truncated_normal(tf_ctx *c)
{
    const int64_t *dim;
    int rank;
    if (random_shape(c, &dim, &rank))
        tf_set(c, 0, ty_b_cast(c->g, truncated(c, rank, dim), random_dtype(c)));
}

/* Integers of [low, high): shape, [seeds ..], low, high; or generator, algorithm, shape, low, high. arg: inputs in
 * front of low. */
void tf_op_random_int(tf_ctx *c)
{
    ty_graph *g = c->g;
    const int64_t *dim;
    int rank;
    if (!random_shape_at(c, c->row->arg == 3 ? 2 : 0, &dim, &rank))
        return;
    ty_val low = tf_in(c, c->row->arg), high = tf_in(c, c->row->arg + 1), u = tf_uniform(c, 0, rank, dim);
    ty_val span = ty_b_cast(g, ty_b_sub(g, high, low), TY_F32);
    ty_val at = ty_b_cast(g, ty_b_unary(g, TY_OP_FLOOR, ty_b_mul(g, u, span)), tf_dtype_of(c, low));
    tf_set(c, 0, ty_b_add(g, ty_b_min(g, at, ty_b_add_s(g, ty_b_sub(g, high, low), -1)), low));
}

/* Keys and counters (arg bit 0), algorithms (bit 1), of which nothing depends. */
void tf_op_random_key(tf_ctx *c)
{
    static const int64_t sizes[] = {1, 2};
    int n = 0;
    for (int i = 0; i < 2 && c->row->arg & 1; i++)
        tf_set(c, n++, ty_b_full(c->g, TY_U64, 1, &sizes[i], 0));
    if (c->row->arg & 2)
        tf_set(c, n, ty_b_scalar(c->g, TY_I32, 1));
}

/* The state of a generator, as numbers of which nothing depends. */
void tf_op_random_state(tf_ctx *c)
{
    int64_t n = 3;
    tf_set(c, 0, ty_b_full(c->g, TY_I64, 1, &n, 0));
}

/* generator, algorithm, shape; arg 0: uniform, 1: normal, 2: truncated. */
void tf_op_stateful_random(tf_ctx *c)
{
    const int64_t *dim;
    int rank, kind = c->row->arg;
    if (!random_shape_at(c, 2, &dim, &rank))
        return;
    ty_val y = kind == 2 ? truncated(c, rank, dim) : kind ? normal(c, 0, rank, dim) : tf_uniform(c, 0, rank, dim);
    tf_set(c, 0, ty_b_cast(c->g, y, random_dtype(c)));
}

/* The rows of a tensor in another order: that of random numbers. */
void tf_op_random_shuffle(tf_ctx *c)
{
    ty_val x = tf_in(c, 0), order;
    if (tf_rank(c, x) < 1) {
        tf_set(c, 0, x);
        return;
    }
    ty_val number = tf_uniform(c, 0, 1, tf_type(c, x)->dim);
    if (number == TY_NONE)
        return;
    ty_b_sort(c->g, number, 0, false, &order);
    tf_set(c, 0, ty_b_gather(c->g, x, order, 0));
}

/* logits [rows, classes], how many: a class each with its probability. By the largest of logits and Gumbel noise; E. J.
 * Gumbel, Statistical Theory of Extreme Values (1954). */
void tf_op_multinomial(tf_ctx *c)
{
    ty_graph *g = c->g;
    ty_val logits = tf_in(c, 0);
    int64_t n;
    if (!tf_const_int(c, 1, &n))
        return;
    int64_t dim[] = {tf_rank(c, logits) == 2 ? tf_dim(c, logits, 0) : 0, n,
                     tf_rank(c, logits) == 2 ? tf_dim(c, logits, 1) : 0};
    if (tf_rank(c, logits) != 2 || n < 0 || !tf_shape_ok(c, 3, dim)) {
        tf_fail_input(c, 0, TY_E_SHAPE, "must be [rows, classes], and the number of samples not negative");
        return;
    }
    ty_val u = tf_uniform(c, 0, 3, dim);
    if (u == TY_NONE)
        return;
    ty_val noise =
        ty_b_neg(g, ty_b_log(g, ty_b_neg(g, ty_b_log(g, ty_b_add_s(g, ty_b_mul_s(g, u, 1 - 0x1p-24), 0x1p-25)))));
    ty_val score = ty_b_add(g, ty_b_unsqueeze(g, ty_b_cast(g, logits, TY_F32), 1), noise);
    ty_val y = ty_b_argreduce(g, score, TY_MAX, 2, false);
    tf_set(c, 0, ty_b_cast(g, y, tf_attr_dtype(c, "output_dtype", TY_I64)));
}
