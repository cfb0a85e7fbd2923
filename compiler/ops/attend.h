/* attend.h - what attention, tiled attention and their implementations have in common: sizes, masks, dropout. */
#ifndef TY_COMPILER_OPS_ATTEND_H
#define TY_COMPILER_OPS_ATTEND_H

#include "base/rng.h"
#include "compiler/ir/graph.h"

/* Flags of attend and attend_grad; attention has the first and the last one. */
#define TY_ATTEND_CAUSAL 1u
#define TY_ATTEND_INSIDE 2u
#define TY_ATTEND_PACKED 4u
#define TY_ATTEND_NEVER  8u
#define TY_ATTEND_FLOWS  16u
#define TY_ATTEND_DROPS  32u

/* Scores that a mask hides, in place of any number below -1e5: float32 has none so low beside which others count, and
 * sums of these are numbers still. A row of nothing else has their number times this for its lse, from which its
 * probabilities come, 1 / number each; a row of nothing but scores that are never seen is NaN. */
#define TY_ATTEND_HIDDEN    (-1e30)
#define TY_ATTEND_UNSEEN    (-2e30)
#define TY_ATTEND_IS_HIDDEN (-5e29) /* where a score, or an lse, is below this */
#define TY_ATTEND_IS_UNSEEN (-1.5e30)

/* q [outer, heads, t, d], k [outer, groups, s, d], v [outer, groups, s, e]; inside: [outer, t, heads, d] and so on.
 * packed: all three are parts of one operand [outer, t, 3 heads, d], inside. */
typedef struct ty_attend_sizes {
    int64_t outer, heads, groups, t, s, d, e;
    bool inside, causal, packed;
} ty_attend_sizes;

/* Where a mask [.., H, T, S], each dim of which may be 1, has its number for a pair of a query and a key:
 * outer / div % mod * outer_step + head * head_step + query * query_step + key * key_step. */
typedef struct ty_attend_mask {
    bool chooses;  /* bools, which say what is seen; else float32, added */
    bool blind;    /* they set scores, so that no gradient comes from one that is hidden */
    double hidden; /* what a score becomes where they say no */
    int64_t div, mod, outer_step, head_step, query_step, key_step;
} ty_attend_mask;

/* Of the first key. */
static inline int64_t ty_attend_mask_at(const ty_attend_mask *m, int64_t outer, int64_t head, int64_t query)
{
    return outer / m->div % m->mod * m->outer_step + head * m->head_step + query * m->query_step;
}

/* Dropout of probabilities, as a layer that stands behind the softmax would do it: a key is dropped where the upper 24
 * bits of its word are below a number, as a number drawn from [0, 1) is below the rate; others are multiplied so that
 * the expected sum stays. The words are those of a stream (base/rng.h) in the order of the scores [.., H, T, S]. With
 * TY_ATTEND_DROPS the last two operands are its seed and step, i64[]; attributes: index is the stream, dropped the
 * number.
 */
typedef struct ty_attend_dropout {
    uint32_t below, stream;
    double factor; /* of keys that are kept */
} ty_attend_dropout;

enum { TY_ATTEND_N_DRAWN = 2, TY_ATTEND_DRAW_BITS = 24 };

static inline ty_attend_dropout ty_attend_dropout_of(const ty_attr *attr)
{
    double all = 1 << TY_ATTEND_DRAW_BITS;
    return (ty_attend_dropout){(uint32_t)attr->dropped, (uint32_t)attr->index, all / (all - (double)attr->dropped)};
}

static inline bool ty_attend_keeps(const ty_attend_dropout *d, uint32_t word)
{
    return word >> (32 - TY_ATTEND_DRAW_BITS) >= d->below;
}

/* Operands without seed and step. */
static inline int ty_attend_n_given(const ty_attr *attr, int n_in)
{
    return n_in - (attr->flags & TY_ATTEND_DROPS ? TY_ATTEND_N_DRAWN : 0);
}

/* The number of the operand that may be a mask. */
enum { TY_ATTEND_MASK_AT = 3, TY_ATTEND_GRAD_MASK_AT = 6 };
/* The number of the result that is its gradient. */
enum { TY_ATTEND_DMASK = 3 };

/* Refuses seeds, steps and attributes that are no dropout's, and such attributes where nothing is dropped. */
int ty_attend_expect_dropout(const ty_attr *attr, const ty_type *const *in, int n_in, ty_error *err);

/* False where the dims before the heads are 1 in between others that are not. */
bool ty_attend_mask_of(uint32_t flags, const ty_type *q, const ty_type *mask, ty_attend_mask *out);

/* A transpose in which rows and heads change places. */
bool ty_attend_is_turn(const ty_graph *g, uint32_t transpose);

ty_attend_sizes ty_attend_sizes_of(uint32_t flags, const ty_type *q, const ty_type *k, const ty_type *v);

#endif
