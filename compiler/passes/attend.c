/* attend.c - attention in tiles.
 *
 * Taken apart, attention writes T x S probabilities a head, keeps them for the gradient and computes the causal half
 * that nobody may see. `attend` (compiler/ops/attend.c) works on one block of queries at a time and keeps one number a
 * row. Where q, k and v are all turned from [.., T, H, D], as they leave a linear layer, it reads them as they lie.
 *
 * A mask that is added has its numbers far below zero brought to two, once for all layers that share it. One that is
 * learned, as T5's and BEiT's are by places' distances, gets its gradient from the tiles too, in its own size; not on a
 * GPU, whose tiles of different entries run at once: there it leaves attention as it is.
 */
#include "compiler/ir/build.h"
#include "compiler/ir/clone.h"
#include "compiler/ops/attend.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/readers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ATTEND_Q, ATTEND_K, ATTEND_V, ATTEND_DY, ATTEND_MAX_IN = 5 + TY_ATTEND_N_DRAWN };

/* Below this a tile's products are too small for what is done around them: Swin's windows of 49, in heads of 32,
 * take 1.3 times as long in tiles as products of all heads and a softmax (Zen 5). */
#define ATTEND_MIN_ROWS 64
#define ATTEND_MIN_HEAD 16

/* Of a GPU's kernels (compiler/target/cuda/own_attend.c), which have 64 queries a block: what they take is quicker than
 * products, a softmax and the memory between them, unless a tile is nearly empty. */
#define ATTEND_GPU_MIN_ROWS 16
#define ATTEND_GPU_MAX_HEAD 128

/* A mask is added to scores by their scale, or taken apart by it; what it hides is to stay a number. */
#define ATTEND_MIN_SCALE 1e-6
/* A score that is set to less hides its key, whatever the number: others are not so low. Added, it must be lower, so
 * that even the sum hides it. */
#define ATTEND_HIDES_SET   (-5e3)
#define ATTEND_HIDES_ADDED (-1e5)

typedef bool attend_pays_fn(const ty_attend_sizes *a, ty_dtype dtype);

typedef struct attend_pass {
    attend_pays_fn *pays;
    bool learns;      /* tiles make gradients of masks */
    uint8_t *trained; /* by node: it is a mask, of which somebody wants the gradient */
} attend_pass;

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

/* Of attention, or of its gradient; TY_NONE: none. */
static ty_val attend_mask_of(const ty_graph *g, uint32_t id)
{
    int at = ty_graph_op(g, id) == TY_OP_ATTENTION ? 3 : 4;
    int n = ty_attend_n_given(ty_graph_attr(g, id), (int)ty_graph_node(g, id)->n_in);
    return n > at ? ty_graph_in(g, id, (uint32_t)at) : TY_NONE;
}

static bool attend_is_learned(const ty_graph *g, uint32_t id, const attend_pass *p)
{
    ty_val mask = attend_mask_of(g, id);
    return mask != TY_NONE && p->trained[ty_val_node(mask)];
}

static bool attend_takes_mask(const ty_graph *g, uint32_t id, const attend_pass *p)
{
    ty_val mask = attend_mask_of(g, id);
    const ty_attr *attr = ty_graph_attr(g, id);
    ty_attend_mask m;
    if (mask == TY_NONE)
        return true;
    const ty_type *t = ty_graph_type(g, mask);
    if (attend_is_learned(g, id, p) && (!p->learns || t->dtype != TY_F32))
        return false;
    return !(attr->flags & TY_ATTEND_CAUSAL) && attr->value >= ATTEND_MIN_SCALE &&
           (t->dtype != TY_BOOL || attr->value2 <= ATTEND_HIDES_SET) &&
           ty_attend_mask_of(0, ty_graph_type(g, ty_graph_in(g, id, ATTEND_Q)), t, &m);
}

static bool attend_pays(const ty_graph *g, uint32_t id, const attend_pass *p)
{
    const ty_type *q = ty_graph_type(g, ty_graph_in(g, id, ATTEND_Q)),
                  *k = ty_graph_type(g, ty_graph_in(g, id, ATTEND_K));
    const ty_type *v = ty_graph_type(g, ty_graph_in(g, id, ATTEND_V));
    if (q->rank < 3 || !attend_takes_mask(g, id, p))
        return false;
    ty_attend_sizes a = ty_attend_sizes_of(0, q, k, v);
    if ((ty_graph_attr(g, id)->flags & TY_ATTEND_CAUSAL) && a.s < a.t)
        return false; /* a query without a key is NaN, which no sum of exponentials gives */
    if (ty_graph_attr(g, id)->value <= 0)
        return false; /* the greatest score is to be that of the greatest product */
    return p->pays(&a, (ty_dtype)q->dtype);
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

/* v is one of two numbers: which by the condition returned, of v's shape; else TY_NONE. */
static ty_val attend_one_of(const ty_graph *g, ty_val v, double *yes, double *no)
{
    uint32_t node = ty_val_node(v);
    double least;
    if (ty_graph_op(g, node) == TY_OP_SELECT)
        return ty_graph_splat_value(g, ty_graph_in(g, node, 1), yes) &&
                       ty_graph_splat_value(g, ty_graph_in(g, node, 2), no)
                   ? ty_graph_in(g, node, 0)
                   : TY_NONE;
    if (ty_graph_op(g, node) != TY_OP_MAX || !ty_graph_splat_value(g, ty_graph_in(g, node, 1), &least))
        return TY_NONE;
    ty_val is_yes = attend_one_of(g, ty_graph_in(g, node, 0), yes, no);
    *yes = fmax(*yes, least);
    *no = fmax(*no, least);
    return is_yes;
}

/* Of a mask that adds 0 or hides: where it does not; else TY_NONE. A byte each, where it was four. */
static ty_val attend_shown(ty_graph *g, ty_val mask, uint32_t *flags)
{
    double yes = 0, no = 0;
    ty_val shown = attend_one_of(g, mask, &yes, &no);
    double hidden = yes == 0 ? no : yes;
    if (shown == TY_NONE || (yes != 0 && no != 0) || !(hidden <= ATTEND_HIDES_ADDED))
        return TY_NONE;
    *flags |= TY_ATTEND_FLOWS | (isinf(hidden) ? TY_ATTEND_NEVER : 0);
    return yes == 0 ? shown : ty_b_unary(g, TY_OP_NOT, shown);
}

/* The mask as tiles take it, or TY_NONE; flags gets what they have to know of it. */
static ty_val attend_mask(ty_graph *g, ty_val mask, bool learned, const ty_attr *from, uint32_t *flags)
{
    if (mask == TY_NONE)
        return TY_NONE;
    if (ty_b_dtype(g, mask) == TY_BOOL) {
        *flags |= isinf(from->value2) ? TY_ATTEND_NEVER : 0;
        return mask;
    }
    ty_val shown = learned ? TY_NONE : attend_shown(g, mask, flags);
    if (shown != TY_NONE)
        return shown;
    mask = ty_b_cast(g, mask, TY_F32);
    ty_val hidden = ty_b_full_like(g, mask, TY_ATTEND_HIDDEN), unseen = ty_b_full_like(g, mask, TY_ATTEND_UNSEEN);
    ty_val is_hidden = ty_b_le(g, mask, ty_b_full_like(g, mask, ATTEND_HIDES_ADDED));
    ty_val is_unseen = ty_b_eq(g, mask, ty_b_full_like(g, mask, -INFINITY));
    return ty_b_select(g, is_hidden, ty_b_select(g, is_unseen, unseen, hidden), mask);
}

/* Of n operands and n_more others. */
static ty_val attend_emit(ty_graph *g, ty_op op, const ty_attr *attr, const ty_val *in, int n, const ty_val *more,
                          int n_more)
{
    ty_val all[TY_ATTEND_GRAD_MASK_AT + 1 + TY_ATTEND_N_DRAWN];
    memcpy(all, in, sizeof *in * (size_t)n);
    memcpy(all + n, more, sizeof *more * (size_t)n_more);
    return ty_graph_emit(g, op, attr, all, n + n_more);
}

static void attend_node(ty_clone *c, uint32_t id, bool learned)
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
    ty_attr attr = {.flags = from->flags | (inside ? TY_ATTEND_INSIDE : 0),
                    .value = from->value,
                    .index = from->index,
                    .dropped = from->dropped};
    ty_val given = attend_mask_of(c->from, id);
    ty_val mask = attend_mask(g, given == TY_NONE ? TY_NONE : c->map[given], learned, from, &attr.flags);
    for (int i = ATTEND_Q; i <= ATTEND_V && inside; i++)
        in[i] = turned[i];
    const int n_in = (int)ty_graph_node(c->from, id)->n_in, n_drawn = n_in - ty_attend_n_given(from, n_in);
    ty_val more[1 + TY_ATTEND_N_DRAWN]; /* operands that may be there, or not */
    int n_more = 0;
    if (mask != TY_NONE)
        more[n_more++] = mask;
    for (int i = n_in - n_drawn; i < n_in; i++)
        more[n_more++] = in[i];
    ty_val y = attend_emit(g, TY_OP_ATTEND, &attr, (ty_val[]){in[ATTEND_Q], in[ATTEND_K], in[ATTEND_V]},
                           TY_ATTEND_MASK_AT, more, n_more);
    if (ty_graph_op(c->from, id) == TY_OP_ATTENTION) {
        c->map[ty_val_make(id, 0)] = inside ? attend_turn(g, y) : y;
        return;
    }
    ty_val dy = inside ? attend_turn(g, in[ATTEND_DY]) : in[ATTEND_DY];
    if (y == TY_NONE)
        return;
    ty_val d = attend_emit(g, learned ? TY_OP_ATTEND_BIAS_GRAD : TY_OP_ATTEND_GRAD, &attr,
                           (ty_val[]){in[ATTEND_Q], in[ATTEND_K], in[ATTEND_V], y, ty_val_make(ty_val_node(y), 1), dy},
                           TY_ATTEND_GRAD_MASK_AT, more, n_more);
    for (uint32_t i = ATTEND_Q; i <= ATTEND_V && d != TY_NONE; i++) {
        ty_val di = ty_val_make(ty_val_node(d), i);
        c->map[ty_val_make(id, i)] = inside ? attend_turn(g, di) : di;
    }
    c->map[ty_val_make(id, TY_ATTEND_DMASK)] = learned && d != TY_NONE
                                                   ? ty_val_make(ty_val_node(d), TY_ATTEND_DMASK)
                                                   : ty_b_scalar(g, TY_F32, 0); /* which nobody reads */
}

static bool attend_rewrite(ty_clone *c, uint32_t id, void *pass)
{
    ty_op op = ty_graph_op(c->from, id);
    if ((op != TY_OP_ATTENTION && op != TY_OP_ATTENTION_GRAD) || !attend_pays(c->from, id, pass))
        return false;
    attend_node(c, id, attend_is_learned(c->from, id, pass));
    return true;
}

/* Marks masks whose gradient somebody reads. */
static int attend_find_trained(attend_pass *p, const ty_graph *g, ty_error *err)
{
    ty_readers r;
    if (ty_readers_find(&r, g, err) < 0)
        return -1;
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++)
        if (ty_graph_op(g, id) == TY_OP_ATTENTION_GRAD && ty_readers_of(&r, ty_val_make(id, 3)) > 0 &&
            attend_mask_of(g, id) != TY_NONE)
            p->trained[ty_val_node(attend_mask_of(g, id))] = 1;
    ty_readers_free(&r);
    return 0;
}

static int attend_run(const ty_graph *in, attend_pays_fn *pays, bool learns, ty_graph **out, ty_error *err)
{
    attend_pass p = {pays, learns, calloc((size_t)ty_graph_n_nodes(in) + 1, 1)};
    *out = NULL;
    if (!p.trained)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a pass over %u nodes", ty_graph_n_nodes(in));
    int rc = attend_find_trained(&p, in, err);
    if (rc == 0)
        rc = ty_clone_rewrite(in, attend_rewrite, &p, out, err);
    free(p.trained);
    return rc;
}

int ty_pass_attend(const ty_graph *in, ty_graph **out, ty_error *err)
{
    return attend_run(in, attend_pays_cpu, true, out, err);
}

int ty_pass_attend_gpu(const ty_graph *in, ty_graph **out, ty_error *err)
{
    return attend_run(in, attend_pays_gpu, false, out, err);
}
