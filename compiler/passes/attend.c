/* attend.c - attention in tiles.
 *
 * Taken apart, attention writes T x S probabilities a head, keeps them for the gradient and computes the causal half
 * that nobody may see. `attend` (compiler/ops/attend.c) works on one block of queries at a time and keeps one number a
 * row. Where q, k and v are all turned from [.., T, H, D], as they leave a linear layer, it reads them as they lie.
 */
#include "compiler/ir/build.h"
#include "compiler/ir/clone.h"
#include "compiler/ops/attend.h"
#include "compiler/passes/passes.h"

enum { ATTEND_Q, ATTEND_K, ATTEND_V, ATTEND_DY, ATTEND_MAX_IN = 5 };

/* Below this the products of one tile are too small for speed, while one call for all heads keeps it. Measured with
 * AVX-512, one core, as a share of a large product: 64 x 64 x 64 0.85, 64 x 64 x 32 0.7, 32 x 32 x 32 0.4. */
#define ATTEND_MIN_ROWS 64
#define ATTEND_MIN_HEAD 16

/* Of a GPU's kernels (compiler/target/cuda/own_attend.c), which have 64 queries a block: what they take is quicker than
 * products, a softmax and the memory between them, unless a tile is nearly empty. */
#define ATTEND_GPU_MIN_ROWS 16
#define ATTEND_GPU_MAX_HEAD 128

typedef bool attend_pays_fn(const ty_attend_sizes *a, ty_dtype dtype);

static bool attend_pays_cpu(const ty_attend_sizes *a, ty_dtype dtype)
{
    return dtype == TY_F32 && a->t >= ATTEND_MIN_ROWS && a->s >= ATTEND_MIN_ROWS && a->d >= ATTEND_MIN_HEAD &&
           a->e >= ATTEND_MIN_HEAD && a->outer * a->groups > 1;
}

static bool attend_pays_gpu(const ty_attend_sizes *a, ty_dtype dtype)
{
    return (dtype == TY_BF16 || dtype == TY_F16) && a->t >= ATTEND_GPU_MIN_ROWS && a->s >= ATTEND_GPU_MIN_ROWS &&
           a->d >= 16 && a->e >= 16 && a->d % 16 == 0 && a->e % 16 == 0 && a->d <= ATTEND_GPU_MAX_HEAD &&
           a->e <= ATTEND_GPU_MAX_HEAD;
}

static bool attend_pays(const ty_graph *g, uint32_t id, attend_pays_fn *pays)
{
    const ty_node *node = ty_graph_node(g, id);
    int mask = node->op == TY_OP_ATTENTION ? 3 : 4;
    const ty_type *q = ty_graph_type(g, ty_graph_in(g, id, ATTEND_Q)),
                  *k = ty_graph_type(g, ty_graph_in(g, id, ATTEND_K));
    const ty_type *v = ty_graph_type(g, ty_graph_in(g, id, ATTEND_V));
    if (q->rank < 3 || ((int)node->n_in > mask && ty_graph_in(g, id, mask) != TY_NONE))
        return false;
    ty_attend_sizes a = ty_attend_sizes_of(0, q, k, v);
    if ((ty_graph_attr(g, id)->flags & TY_ATTEND_CAUSAL) && a.s < a.t)
        return false; /* a query without a key is NaN, which no sum of exponentials gives */
    if (ty_graph_attr(g, id)->value <= 0)
        return false; /* the greatest score is to be that of the greatest product */
    return pays(&a, (ty_dtype)q->dtype);
}

/* Heads and rows change places. */
static ty_val attend_turn(ty_graph *g, ty_val v)
{
    int64_t perm[TY_MAX_RANK];
    int r = ty_b_rank(g, v);
    for (int i = 0; i < r; i++)
        perm[i] = i == r - 3 ? r - 2 : i == r - 2 ? r - 3 : i;
    return ty_b_transpose(g, v, perm);
}

/* What was turned, rounded if it was rounded behind that; TY_NONE if v was not turned. */
static ty_val attend_turned(ty_graph *g, ty_val v)
{
    uint32_t node = ty_val_node(v);
    if (ty_graph_op(g, node) == TY_OP_CAST) {
        ty_val x = attend_turned(g, ty_graph_in(g, node, 0));
        return x == TY_NONE ? TY_NONE : ty_b_cast(g, x, ty_b_dtype(g, v));
    }
    bool turn = ty_graph_op(g, node) == TY_OP_TRANSPOSE && ty_attend_is_turn(g, node);
    return turn ? ty_graph_in(g, node, 0) : TY_NONE;
}

static void attend_node(ty_clone *c, uint32_t id)
{
    const ty_attr *from = ty_graph_attr(c->from, id);
    ty_val in[ATTEND_MAX_IN], *q = in;
    ty_clone_inputs(c, id, in);
    ty_graph *g = c->to;
    if (ty_graph_failed(g, NULL))
        return;
    ty_graph_origin(g, ty_graph_origin_of(c->from, id));
    const ty_val turned[] = {attend_turned(g, q[0]), attend_turned(g, q[1]), attend_turned(g, q[2])};
    bool inside = turned[0] != TY_NONE && turned[1] != TY_NONE && turned[2] != TY_NONE;
    ty_attr attr = {.flags = from->flags | (inside ? TY_ATTEND_INSIDE : 0), .value = from->value};
    for (int i = ATTEND_Q; i <= ATTEND_V && inside; i++)
        in[i] = turned[i];
    ty_val y = ty_graph_emit(g, TY_OP_ATTEND, &attr, in, 3);
    if (ty_graph_op(c->from, id) == TY_OP_ATTENTION) {
        c->map[ty_val_make(id, 0)] = inside ? attend_turn(g, y) : y;
        return;
    }
    ty_val dy = inside ? attend_turn(g, in[ATTEND_DY]) : in[ATTEND_DY];
    if (y == TY_NONE)
        return;
    ty_val d =
        ty_graph_emit(g, TY_OP_ATTEND_GRAD, &attr,
                      (ty_val[]){in[ATTEND_Q], in[ATTEND_K], in[ATTEND_V], y, ty_val_make(ty_val_node(y), 1), dy}, 6);
    for (uint32_t i = ATTEND_Q; i <= ATTEND_V && d != TY_NONE; i++) {
        ty_val di = ty_val_make(ty_val_node(d), i);
        c->map[ty_val_make(id, i)] = inside ? attend_turn(g, di) : di;
    }
    c->map[ty_val_make(id, 3)] = ty_b_scalar(g, TY_F32, 0); /* there is no mask */
}

static bool attend_rewrite(ty_clone *c, uint32_t id, void *pays)
{
    ty_op op = ty_graph_op(c->from, id);
    if ((op != TY_OP_ATTENTION && op != TY_OP_ATTENTION_GRAD) ||
        !attend_pays(c->from, id, *(attend_pays_fn *const *)pays))
        return false;
    attend_node(c, id);
    return true;
}

int ty_pass_attend(const ty_graph *in, ty_graph **out, ty_error *err)
{
    attend_pays_fn *pays = attend_pays_cpu;
    return ty_clone_rewrite(in, attend_rewrite, &pays, out, err);
}

int ty_pass_attend_gpu(const ty_graph *in, ty_graph **out, ty_error *err)
{
    attend_pays_fn *pays = attend_pays_gpu;
    return ty_clone_rewrite(in, attend_rewrite, &pays, out, err);
}
