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
void tf_op_truncated_normal(tf_ctx *c)
{
    ty_graph *g = c->g;
    const int64_t *dim;
    int rank;
    if (!random_shape(c, &dim, &rank))
        return;
    ty_val z = normal(c, 0, rank, dim);
    for (int again = 1; again <= 4 && z != TY_NONE; again++) {
        ty_val other = again < 4 ? normal(c, 2 * again, rank, dim) : ty_b_mul_s(g, z, 0.5);
        ty_val outside = ty_b_lt(g, ty_b_full_like(g, z, 2), ty_b_unary(g, TY_OP_ABS, z));
        z = ty_b_select(g, outside, other, z);
    }
    tf_set(c, 0, ty_b_cast(g, z, random_dtype(c)));
}

/* Integers of [low, high): shape, [seeds ..], low, high; arg: inputs in front of low. */
void tf_op_random_int(tf_ctx *c)
{
    ty_graph *g = c->g;
    const int64_t *dim;
    int rank;
    if (!random_shape(c, &dim, &rank))
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

/* generator, algorithm, shape; arg 1: normal. */
void tf_op_stateful_random(tf_ctx *c)
{
    const int64_t *dim;
    int rank;
    if (random_shape_at(c, 2, &dim, &rank))
        tf_set(c, 0,
               ty_b_cast(c->g, c->row->arg ? normal(c, 0, rank, dim) : tf_uniform(c, 0, rank, dim), random_dtype(c)));
}
