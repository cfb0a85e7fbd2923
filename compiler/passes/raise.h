/* raise.h - composites put together again that an exporter took apart.
 *
 * Exporters write a layer norm as a mean, a difference, a square, a root and a quotient. Known as a whole, it has a
 * better gradient, and a target may have a kernel for it. The pass runs on each import of a model, before loss
 * and gradients exist, and replaces what it recognises by nodes of the composite. It means the same but for rounding.
 *
 * A pattern is a row of the table in raise.c and a function in its family's file: raise_norm.c, raise_softmax.c,
 * raise_activation.c, raise_attention.c, raise_rotary.c, raise_concat.c. Nodes are offered to the patterns from the
 * last to the first, so that the outermost node of a pattern comes first, and what a match has swallowed is not offered
 * any more.
 */
#ifndef TY_COMPILER_PASSES_RAISE_H
#define TY_COMPILER_PASSES_RAISE_H

#include "compiler/ir/graph.h"

/* Carries over from `in` into `to` what held[n_held] need, raised. Input i of `in` becomes bound[i], a value of `to`;
 * `in` has no states. On success held[] are the values of `to`. Keeps: origins, the order of what is kept. Outputs and
 * effects of `in` are not looked at: it is a model that is still being built into a step. */
int ty_pass_raise(const ty_graph *in, ty_graph *to, const ty_val *bound, ty_val *held, int n_held, ty_error *err);

/* ---- for the patterns ---- */

/* What a pattern may look at. */
typedef struct ty_raise {
    const ty_graph *g;
    const uint32_t *uses; /* by node: how many operands of needed nodes, and roots, it is */
} ty_raise;

#define TY_RAISE_MAX_IN 7

/* What stands for a node: op(in) with attr. */
typedef struct ty_raise_match ty_raise_match;
struct ty_raise_match {
    ty_op op;
    ty_attr attr;
    ty_val in[TY_RAISE_MAX_IN]; /* of the old graph; TY_NONE: absent */
    int n_in;
    /* NULL, or makes the value in the new graph where more than one node is needed: in[] are then the new values. */
    ty_val (*build)(ty_graph *to, const ty_raise_match *m, const ty_type *type, const ty_val *in);
};

/* True if node is the last node of the pattern; fills *m, which is zeroed. */
typedef bool ty_raise_fn(const ty_raise *r, uint32_t node, ty_raise_match *m);
ty_raise_fn ty_raise_attention, ty_raise_cross_entropy, ty_raise_softmax, ty_raise_norm, ty_raise_activation,
    ty_raise_rotary, ty_raise_concat;

static inline bool ty_raise_is(const ty_raise *r, ty_val v, ty_op op)
{
    return v != TY_NONE && ty_graph_op(r->g, ty_val_node(v)) == op;
}

static inline ty_val ty_raise_in(const ty_raise *r, ty_val v, int i)
{
    return ty_graph_in(r->g, ty_val_node(v), i);
}

/* v without the reshapes on top of it: the same elements in the same order. */
ty_val ty_raise_unshaped(const ty_raise *r, ty_val v);
/* v without multiplications by and divisions by a number, which go into *factor (multiplied). */
ty_val ty_raise_unscaled(const ty_raise *r, ty_val v, double *factor);
/* True if all that lies between root and stop[n_stop] serves root alone (constants and pure movement aside): if
 * something else needed a part, raising would compute that part twice. */
bool ty_raise_closed(const ty_raise *r, uint32_t root, const ty_val *stop, int n_stop);

/* True if v is a softmax of *x along *axis, or its logarithm, whole or in parts (raise_softmax.c). */
bool ty_raise_is_softmax(const ty_raise *r, ty_val v, bool log, ty_val *x, int *axis);

/* x with some of its numbers dropped: those whose random word has upper 24 bits below `below`; the others are
 * multiplied by 1 / (1 - below 2^-24). Words are those of x's elements in order, of a stream. */
typedef struct ty_raise_dropout {
    ty_val x, seed, step;
    int64_t stream;
    uint32_t below;
} ty_raise_dropout;

/* True if v is that (raise_dropout.c). */
bool ty_raise_is_dropout(const ty_raise *r, ty_val v, ty_raise_dropout *out);

/* A value of [.., T, S] that has one number where s <= t + at and another elsewhere. */
typedef struct ty_raise_step {
    bool is_step;
    int64_t at;
    double value[2]; /* on and below the diagonal; above it */
} ty_raise_step;

/* True if v is made of constants and is such a step (raise_mask.c). */
bool ty_raise_find_step(const ty_raise *r, ty_val v, ty_raise_step *out);

#endif
