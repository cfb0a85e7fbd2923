/* raise_attention.c - attention: softmax(scale q k' + mask) v.
 *
 *     dot(softmax(masked(dot(q, k'))), v)
 *
 * The scale may stand on q, on k (PyTorch puts its root on both) or on the product. The mask is added, or chosen by a
 * condition, or both: GPT-2 hides the future by a condition, then adds a mask. In TensorFlow a mask may be taken away
 * from the scores, or they are multiplied by ones and zeros before a number is taken away where the zeros are. Two
 * masks may be added, as a bias of places is before one of what is seen. Each product may be in a shape of its own, in
 * which batch and heads are one axis, and so may the masks. k' is a transpose of k, or k is read transposed by the
 * product. Keys and values that were repeated for groups of queries, or that a product stretches over all heads, are
 * taken before that.
 *
 * PyTorch writes p == p ? p : 0 around a softmax p whose mask may hide a whole row. Where it can, the row of the result
 * is 0.
 *
 * Probabilities may be dropped behind the softmax, in its shape (raise_dropout.c).
 *
 * A mask that hides just the future, however it was written (raise_mask.c), makes the attention causal and falls away.
 */
#include "compiler/ir/build.h"
#include "compiler/ops/attend.h"
#include "compiler/passes/raise.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define ATTENTION_HIDDEN (-1e9) /* what is added to, or put for, a score that shall not count */

/* Chosen is a condition, or a second mask. Seed and step are of dropout. */
enum {
    ATTENTION_Q,
    ATTENTION_K,
    ATTENTION_V,
    ATTENTION_MASK,
    ATTENTION_CHOSEN,
    ATTENTION_SEED,
    ATTENTION_STEP,
    ATTENTION_N_IN
};

typedef struct attention_find {
    ty_val q, k, v; /* k: as the product reads it */
    bool k_swapped; /* k is [.., D, S] */
    ty_val mask;    /* added, or bool; TY_NONE: none */
    ty_val chosen;  /* beside an added mask: bool, scores it hides are `fill` before the mask is added; else TY_NONE */
    ty_val more;    /* beside an added mask and no chosen one: added too, to the same scores in a shape of its own */
    int64_t more_dim[TY_MAX_RANK]; /* of `more`, for the scores of the other mask */
    ty_val taken;                  /* weighted: what is taken away, of constants; else TY_NONE */
    bool inverted;                 /* bool mask, or chosen: true hides */
    bool guarded;                  /* a row that the mask hides whole gives 0 */
    bool negated;                  /* mask is taken away, not added */
    bool weighted;                 /* mask is ones and zeros in place of true and false */
    double fill;                   /* in place of scores that a bool mask hides */
    double scale;
    ty_type scores;
    ty_raise_dropout drop; /* seed is TY_NONE: nothing is dropped */
} attention_find;

/* ---- masks ---- */

/* A score with this number of the mask: counts (1), does not (0), or is changed (-1). */
static int attention_lets(const attention_find *f, bool is_bool, double v)
{
    if (is_bool)
        return (v != 0) != f->inverted;
    v = f->negated ? -v : v;
    return v == 0 ? 1 : v <= ATTENTION_HIDDEN ? 0 : -1;
}

/* The mask has one number up to the diagonal that ends in the last corner, another behind it. */
static bool attention_is_step(const ty_raise *r, const attention_find *f, ty_val mask, ty_raise_step *step)
{
    int rank = f->scores.rank;
    int64_t n_t = f->scores.dim[rank - 2], n_s = f->scores.dim[rank - 1];
    const ty_type *t = ty_graph_type(r->g, mask);
    return n_s >= n_t && t->dim[rank - 2] == n_t && t->dim[rank - 1] == n_s && ty_raise_find_step(r, mask, step) &&
           step->at == n_s - n_t;
}

/* The mask hides what is behind the diagonal that ends in the last corner, and nothing else. Where a condition does so,
 * an added mask may repeat it. */
static bool attention_is_causal(const ty_raise *r, const attention_find *f)
{
    ty_raise_step step, added;
    ty_val mask = f->chosen != TY_NONE ? f->chosen : f->mask;
    if (mask == TY_NONE || !(f->fill <= ATTENTION_HIDDEN) || !attention_is_step(r, f, mask, &step))
        return false;
    bool is_bool = f->weighted || ty_graph_type(r->g, mask)->dtype == TY_BOOL;
    if (attention_lets(f, is_bool, step.value[0]) != 1 || attention_lets(f, is_bool, step.value[1]) != 0)
        return false;
    return f->chosen == TY_NONE || (attention_is_step(r, f, f->mask, &added) && added.value[0] == 0 &&
                                    (f->negated ? -added.value[1] : added.value[1]) <= 0);
}

/* ---- the pattern ---- */

/* Reshapes that keep the last two dims: batch and heads as one axis, or as two. */
static ty_val attention_split(const ty_raise *r, ty_val v)
{
    while (ty_raise_is(r, v, TY_OP_RESHAPE)) {
        const ty_type *out = ty_graph_type(r->g, v), *in = ty_graph_type(r->g, ty_raise_in(r, v, 0));
        if (in->rank < 2 || out->rank < 2 || in->dim[in->rank - 1] != out->dim[out->rank - 1] ||
            in->dim[in->rank - 2] != out->dim[out->rank - 2])
            break;
        v = ty_raise_in(r, v, 0);
    }
    return v;
}

/* v without stretching, where what is left has the rank still. */
static ty_val attention_unstretched(const ty_raise *r, ty_val v)
{
    return ty_raise_is(r, v, TY_OP_BROADCAST) ? ty_raise_in(r, v, 0) : v;
}

static bool attention_is_product(const ty_raise *r, ty_val v, attention_find *f)
{
    f->scale = 1;
    v = attention_split(r, ty_raise_unscaled(r, attention_split(r, v), &f->scale));
    if (!ty_raise_is(r, v, TY_OP_DOT))
        return false;
    uint32_t flags = ty_graph_attr(r->g, ty_val_node(v))->flags;
    if (flags & TY_DOT_TRANS_A)
        return false;
    f->q = ty_raise_unscaled(r, ty_raise_in(r, v, 0), &f->scale);
    f->k = ty_raise_unscaled(r, ty_raise_in(r, v, 1), &f->scale);
    f->k_swapped = !(flags & TY_DOT_TRANS_B);
    if (f->k_swapped)
        f->k = attention_split(r, f->k);
    return !f->k_swapped || ty_raise_is(r, attention_split(r, attention_unstretched(r, f->k)), TY_OP_TRANSPOSE);
}

static bool attention_is_added(const ty_raise *r, ty_val v, attention_find *f);

/* v = condition ? product : number, or the other way round. Or product + mask in place of the product. */
static bool attention_is_chosen(const ty_raise *r, ty_val v, attention_find *f)
{
    v = attention_split(r, v);
    for (int i = 1; i < 3 && ty_raise_is(r, v, TY_OP_SELECT); i++) {
        ty_val scores = ty_raise_in(r, v, i);
        if (!ty_graph_splat_value(r->g, ty_raise_in(r, v, 3 - i), &f->fill))
            continue;
        ty_val condition = attention_unstretched(r, ty_raise_in(r, v, 0));
        f->scores = *ty_graph_type(r->g, v);
        f->inverted = i == 2;
        f->mask = condition;
        if (attention_is_product(r, scores, f))
            return !isnan(f->fill);
        if (ty_raise_is(r, scores, TY_OP_ADD) && f->fill <= ATTENTION_HIDDEN && attention_is_added(r, scores, f) &&
            f->chosen == TY_NONE && f->more == TY_NONE) {
            f->chosen = condition;
            return true;
        }
    }
    return false;
}

/* Dims of a mask that is added to scores of the shape `inner`, for the same scores in the shape `outer`. False where it
 * has some of the dims that become others together, and not all. */
static bool attention_regroup(const ty_type *mask, const ty_type *inner, const ty_type *outer, int64_t *dim)
{
    int i = 0, o = 0, n_in = inner->rank - 2, n_out = outer->rank - 2;
    while (i < n_in || o < n_out) {
        int64_t of_inner = 1, of_outer = 1;
        int first_in = i, first_out = o;
        bool has = false, lacks = false;
        do {
            if (i < n_in && of_inner <= of_outer)
                of_inner *= inner->dim[i++];
            else if (o < n_out)
                of_outer *= outer->dim[o++];
            else
                return false;
        } while (of_inner != of_outer);
        for (int k = first_in; k < i; k++) {
            has = has || mask->dim[k] != 1;
            lacks = lacks || mask->dim[k] != inner->dim[k];
        }
        if (has && lacks)
            return false;
        for (int k = first_out; k < o; k++)
            dim[k] = has ? outer->dim[k] : 1;
    }
    dim[n_out] = mask->dim[n_in];
    dim[n_out + 1] = mask->dim[n_in + 1];
    return true;
}

/* v = product + mask, as one of two, of which the other is for the same scores in the shape `outer`. */
static bool attention_is_inner(const ty_raise *r, ty_val v, const ty_type *outer, attention_find *f)
{
    v = attention_split(r, v);
    for (int i = 0; i < 2 && ty_raise_is(r, v, TY_OP_ADD); i++)
        if (attention_is_product(r, ty_raise_in(r, v, i), f)) {
            f->more = attention_unstretched(r, ty_raise_in(r, v, 1 - i));
            const ty_type *mask = ty_graph_type(r->g, f->more), *inner = ty_graph_type(r->g, v);
            return mask->rank == inner->rank && attention_regroup(mask, inner, outer, f->more_dim);
        }
    return false;
}

/* v = product + mask, or (condition ? product : number) + mask; the mask may stand on either side. Or - mask. Or a mask
 * is there twice. */
static bool attention_is_added(const ty_raise *r, ty_val v, attention_find *f)
{
    v = attention_split(r, v);
    f->negated = ty_raise_is(r, v, TY_OP_SUB);
    for (int i = 0; i < (f->negated ? 1 : 2) && (f->negated || ty_raise_is(r, v, TY_OP_ADD)); i++) {
        ty_val masked = ty_raise_in(r, v, i);
        f->chosen = f->more = TY_NONE;
        bool plain = attention_is_product(r, masked, f);
        if (!plain && ty_raise_is(r, masked, TY_OP_SELECT)) {
            if (!attention_is_chosen(r, masked, f) || f->chosen != TY_NONE || !(f->fill <= ATTENTION_HIDDEN))
                continue;
            f->chosen = f->mask;
        } else if (!plain && !attention_is_inner(r, masked, ty_graph_type(r->g, v), f)) {
            continue;
        }
        f->scores = *ty_graph_type(r->g, v);
        f->mask = attention_unstretched(r, ty_raise_in(r, v, 1 - i));
        return true;
    }
    f->more = TY_NONE;
    return false;
}

/* v = product * ones - number * (1 - ones), where the ones are a step of constants: scores where they are, -number in
 * place of those where they are not. */
static bool attention_is_weighted(const ty_raise *r, ty_val v, attention_find *f)
{
    ty_raise_step ones, taken;
    ty_val kept = ty_raise_is(r, v, TY_OP_SUB) ? ty_raise_in(r, v, 0) : TY_NONE;
    for (int i = 0; i < 2 && ty_raise_is(r, kept, TY_OP_MUL); i++) {
        ty_val mask = attention_unstretched(r, ty_raise_in(r, kept, 1 - i));
        if (!attention_is_product(r, ty_raise_in(r, kept, i), f) || !ty_raise_find_step(r, mask, &ones) ||
            !ty_raise_find_step(r, attention_unstretched(r, ty_raise_in(r, v, 1)), &taken))
            continue;
        f->mask = mask;
        f->taken = ty_raise_in(r, v, 1);
        f->weighted = true;
        f->inverted = false;
        f->negated = false;
        f->fill = -taken.value[1];
        return ones.value[0] == 1 && ones.value[1] == 0 && taken.at == ones.at && taken.value[0] == 0 &&
               isfinite(f->fill);
    }
    return false;
}

/* v = p == p ? p : 0: p. Else v. */
static ty_val attention_unguarded(const ty_raise *r, ty_val v)
{
    double zero;
    if (!ty_raise_is(r, v, TY_OP_SELECT) || !ty_raise_is(r, ty_raise_in(r, v, 0), TY_OP_EQ) ||
        !ty_graph_splat_value(r->g, ty_raise_in(r, v, 2), &zero) || zero != 0)
        return v;
    ty_val cond = ty_raise_in(r, v, 0), p = ty_raise_in(r, v, 1);
    return ty_raise_in(r, cond, 0) == p && ty_raise_in(r, cond, 1) == p ? p : v;
}

/* No row of scores can become NaN by the mask: what it adds is finite. */
static bool attention_mask_is_finite(const ty_raise *r, const attention_find *f)
{
    double a, b;
    if (f->mask == TY_NONE)
        return true;
    return ty_raise_is(r, f->mask, TY_OP_SELECT) && ty_graph_splat_value(r->g, ty_raise_in(r, f->mask, 1), &a) &&
           ty_graph_splat_value(r->g, ty_raise_in(r, f->mask, 2), &b) && isfinite(a) && isfinite(b);
}

/* v without a number that is added to all of it, which no softmax sees: transformers adds one for XLA's sake. */
static ty_val attention_unshifted(const ty_raise *r, ty_val v)
{
    double s;
    while (ty_raise_is(r, v, TY_OP_ADD) && ty_graph_splat_value(r->g, ty_raise_in(r, v, 1), &s) && isfinite(s))
        v = ty_raise_in(r, v, 0);
    return v;
}

static bool attention_is_softmax(const ty_raise *r, ty_val v, attention_find *f)
{
    int axis;
    ty_val all = attention_split(r, v);
    v = attention_unguarded(r, all);
    f->guarded = v != all;
    f->scores = *ty_graph_type(r->g, v);
    if (!ty_raise_is_softmax(r, v, false, &v, &axis) || axis != f->scores.rank - 1 || f->scores.rank > TY_MAX_RANK - 1)
        return false;
    f->fill = -INFINITY;
    f->mask = f->chosen = f->more = f->taken = TY_NONE;
    v = attention_unshifted(r, v);
    if (attention_is_product(r, v, f) || attention_is_added(r, v, f)) {
        f->guarded = f->guarded && !attention_mask_is_finite(r, f);
        return true;
    }
    f->negated = false;
    return (attention_is_chosen(r, v, f) || attention_is_weighted(r, v, f)) && !f->guarded;
}

/* v without dropout of what is no less than v's last dims: its words are numbered as the scores are. */
static ty_val attention_undropped(const ty_raise *r, ty_val v, attention_find *f)
{
    f->drop.seed = f->drop.step = TY_NONE;
    return ty_raise_is_dropout(r, attention_split(r, v), &f->drop) ? f->drop.x : v;
}

/* ---- building ---- */

/* x with the leading dims of the scores and its own last two. */
static ty_val attention_lead(ty_graph *to, ty_val x, const ty_type *scores)
{
    ty_type t = *scores;
    t.dim[t.rank - 2] = ty_b_dim(to, x, ty_b_rank(to, x) - 2);
    t.dim[t.rank - 1] = ty_b_dim(to, x, ty_b_rank(to, x) - 1);
    return ty_b_reshape(to, x, t.rank, t.dim);
}

static bool attention_made_by(const ty_graph *g, ty_val v, ty_op op)
{
    return v != TY_NONE && ty_graph_op(g, ty_val_node(v)) == op;
}

/* The last two dims exchanged; below a stretching of others, so that it stays the last step. */
static ty_val attention_swap(ty_graph *to, ty_val x)
{
    int64_t perm[TY_MAX_RANK];
    ty_type t = *ty_graph_type(to, x);
    int r = t.rank;
    for (int i = 0; i < r; i++)
        perm[i] = i;
    perm[r - 2] = r - 1;
    perm[r - 1] = r - 2;
    if (!attention_made_by(to, x, TY_OP_BROADCAST))
        return ty_b_transpose(to, x, perm);
    int64_t last = t.dim[r - 1];
    t.dim[r - 1] = t.dim[r - 2];
    t.dim[r - 2] = last;
    return ty_b_broadcast(to, ty_b_transpose(to, ty_graph_in(to, ty_val_node(x), 0), perm), r, t.dim);
}

/* x [.., H, S, D] repeats each of G heads H / G times: the value before that, [.., G, S, D]; else TY_NONE. However the
 * dims are grouped: in the order of elements, outer * inner ones became outer * times * inner. */
static ty_val attention_before_repeat(ty_graph *to, ty_val x)
{
    ty_type t = *ty_graph_type(to, x);
    ty_val wide = attention_made_by(to, x, TY_OP_RESHAPE) ? ty_graph_in(to, ty_val_node(x), 0) : x;
    if (t.rank < 3 || !attention_made_by(to, wide, TY_OP_BROADCAST))
        return TY_NONE;
    ty_val thin = ty_graph_in(to, ty_val_node(wide), 0);
    const ty_type *w = ty_graph_type(to, wide), *n = ty_graph_type(to, thin);
    int64_t outer = 1, times = 1, inner = 1, batch = 1;
    for (int i = 0; i < w->rank; i++) {
        if (n->dim[i] != w->dim[i] && times > 1)
            return TY_NONE;
        *(n->dim[i] != w->dim[i] ? &times : times > 1 ? &inner : &outer) *= w->dim[i];
    }
    for (int i = 0; i < t.rank - 3; i++)
        batch *= t.dim[i];
    if (inner != t.dim[t.rank - 2] * t.dim[t.rank - 1] || outer % batch != 0 ||
        outer / batch * times != t.dim[t.rank - 3])
        return TY_NONE;
    t.dim[t.rank - 3] = outer / batch;
    return ty_b_reshape(to, thin, t.rank, t.dim);
}

/* y where the added mask lets a row see anything, else 0. *mask becomes finite, so that no row is NaN. */
static ty_val attention_guard(ty_graph *to, ty_val mask, ty_val y)
{
    ty_val most = ty_b_reduce(to, mask, TY_MAX, 1u << (ty_b_rank(to, mask) - 1), true);
    ty_val seen = ty_b_lt(to, ty_b_full_like(to, most, -INFINITY), most);
    const ty_type *t = ty_graph_type(to, y);
    return ty_b_select(to, ty_b_broadcast(to, seen, t->rank, t->dim), y, ty_b_full_like(to, y, 0));
}

static ty_val attention_finite(ty_graph *to, ty_val mask)
{
    ty_dtype dtype = ty_b_dtype(to, mask);
    double lowest = dtype == TY_F64 ? -DBL_MAX : dtype == TY_F16 ? -65504 : -0x1.fep127; /* bfloat16's, and float's */
    return ty_b_binary(to, TY_OP_MAX, mask, ty_b_full_like(to, mask, lowest));
}

/* The added mask and the condition before it as one mask to add: mask where the condition lets, mask + fill elsewhere.
 */
static ty_val attention_both(ty_graph *to, ty_val chosen, ty_val mask, bool inverted, double fill)
{
    ty_type t = *ty_graph_type(to, mask);
    for (int i = 0; i < t.rank; i++)
        if (t.dim[i] == 1)
            t.dim[i] = ty_b_dim(to, chosen, i);
    ty_val seen = ty_b_broadcast(to, mask, t.rank, t.dim);
    ty_val hidden = ty_b_add(to, seen, ty_b_full_like(to, seen, fill));
    chosen = ty_b_broadcast(to, chosen, t.rank, t.dim);
    return ty_b_select(to, chosen, inverted ? hidden : seen, inverted ? seen : hidden);
}

static ty_val attention_sum(ty_graph *to, ty_val mask, ty_val more)
{
    ty_type t = *ty_graph_type(to, mask);
    for (int i = 0; i < t.rank; i++)
        t.dim[i] = t.dim[i] == 1 ? ty_b_dim(to, more, i) : t.dim[i];
    return ty_b_add(to, ty_b_broadcast(to, mask, t.rank, t.dim), ty_b_broadcast(to, more, t.rank, t.dim));
}

/* attr.index: bits of `how`. attr.lo: dims of a second mask. attr.type: of the scores. attr.value2: what hidden scores
 * are. attr.dropped, attr.axis: of dropout, how many words are dropped and their stream. */
enum {
    HOW_SWAPPED = 1 /* k is [.., D, S] */,
    HOW_INVERTED = 2,
    HOW_GUARDED = 4,
    HOW_NEGATED = 8,
    HOW_WEIGHTED = 16,
    HOW_TWICE = 32
};

static ty_val attention_build(ty_graph *to, const ty_raise_match *m, const ty_type *type, const ty_val *in)
{
    ty_val k = attention_lead(to, m->attr.index & HOW_SWAPPED ? attention_swap(to, in[ATTENTION_K]) : in[ATTENTION_K],
                              &m->attr.type);
    ty_val q = attention_lead(to, in[ATTENTION_Q], &m->attr.type);
    ty_val v = attention_lead(to, in[ATTENTION_V], &m->attr.type), mask = in[ATTENTION_MASK];
    ty_val few_k = attention_before_repeat(to, k), few_v = attention_before_repeat(to, v);
    int heads = ty_b_rank(to, q) - 3;
    if (few_k != TY_NONE && few_v != TY_NONE && ty_b_dim(to, few_k, heads) == ty_b_dim(to, few_v, heads)) {
        k = few_k;
        v = few_v;
    }
    bool twice = m->attr.index & HOW_TWICE, both = in[ATTENTION_CHOSEN] != TY_NONE && !twice;
    if (m->attr.index & HOW_NEGATED)
        mask = ty_b_neg(to, mask);
    if (twice)
        mask = attention_sum(to, mask, ty_b_reshape(to, in[ATTENTION_CHOSEN], m->attr.type.rank, m->attr.lo));
    if (m->attr.index & HOW_WEIGHTED)
        mask = ty_b_ne(to, mask, ty_b_full_like(to, mask, 0));
    if (both)
        mask = attention_both(to, in[ATTENTION_CHOSEN], mask, m->attr.index & HOW_INVERTED, m->attr.value2);
    else if (m->attr.index & HOW_INVERTED)
        mask = ty_b_unary(to, TY_OP_NOT, mask);
    ty_attr attr = {.flags = m->attr.flags,
                    .value = m->attr.value,
                    .value2 = both ? 0 : m->attr.value2,
                    .index = m->attr.axis,
                    .dropped = m->attr.dropped};
    bool guarded = m->attr.index & HOW_GUARDED;
    ty_val finite = guarded ? attention_finite(to, mask) : mask;
    ty_val all[ATTENTION_N_IN] = {q, k, v, finite};
    int n = finite == TY_NONE ? ATTENTION_MASK : ATTENTION_MASK + 1;
    for (int i = ATTENTION_SEED; i <= ATTENTION_STEP && attr.flags & TY_ATTEND_DROPS; i++)
        all[n++] = in[i];
    ty_val y = ty_graph_emit(to, TY_OP_ATTENTION, &attr, all, n);
    if (guarded)
        y = attention_guard(to, mask, y);
    return ty_b_reshape(to, y, type->rank, type->dim);
}

bool ty_raise_attention(const ty_raise *r, uint32_t node, ty_raise_match *m)
{
    attention_find f = {0};
    ty_val root = ty_val_make(node, 0);
    if (!ty_raise_is(r, root, TY_OP_DOT) || ty_graph_attr(r->g, node)->flags != 0 ||
        !ty_dtype_is_float((ty_dtype)ty_graph_type(r->g, root)->dtype) ||
        !attention_is_softmax(r, attention_undropped(r, ty_raise_in(r, root, 0), &f), &f) || !isfinite(f.scale))
        return false;
    f.v = ty_raise_in(r, root, 1);
    ty_val stop[] = {f.q, f.k, f.v, f.mask, f.chosen, f.more, f.taken, f.drop.seed, f.drop.step};
    if (!ty_raise_closed(r, node, stop, sizeof stop / sizeof stop[0]))
        return false;
    bool causal = f.more == TY_NONE && attention_is_causal(r, &f);
    *m = (ty_raise_match){.op = TY_OP_ATTENTION,
                          .in = {f.q, f.k, f.v, TY_NONE, TY_NONE, f.drop.seed, f.drop.step},
                          .n_in = ATTENTION_N_IN};
    if (!causal) {
        m->in[ATTENTION_MASK] = f.mask;
        m->in[ATTENTION_CHOSEN] = f.chosen != TY_NONE ? f.chosen : f.more;
    }
    m->build = attention_build;
    m->attr.type = f.scores;
    m->attr.flags = causal ? TY_ATTEND_CAUSAL : 0;
    if (f.drop.seed != TY_NONE) {
        m->attr.flags |= TY_ATTEND_DROPS;
        m->attr.dropped = f.drop.below;
        m->attr.axis = f.drop.stream;
    }
    m->attr.value = f.scale;
    m->attr.index = f.k_swapped ? HOW_SWAPPED : 0;
    if (causal || f.mask == TY_NONE)
        return true;
    if (f.more != TY_NONE) {
        m->attr.index |= HOW_TWICE;
        memcpy(m->attr.lo, f.more_dim, sizeof f.more_dim);
    }
    m->attr.index |= (f.guarded ? HOW_GUARDED : 0) | (f.negated ? HOW_NEGATED : 0) | (f.weighted ? HOW_WEIGHTED : 0);
    if (f.weighted || f.chosen != TY_NONE || ty_graph_type(r->g, f.mask)->dtype == TY_BOOL) {
        m->attr.index |= f.inverted ? HOW_INVERTED : 0;
        m->attr.value2 = f.fill;
    }
    return true;
}
