/* precision.h - mixed precision: products, convolutions and attention of 16-bit floats.
 *
 * The pass runs on each import of a model, after raise and before loss and gradients exist; the gradient then has the
 * same precision by itself, since the gradient of a cast is a cast. What it makes is what PyTorch's autocast makes
 * (pytorch.org/docs/stable/amp.html), but for what happens between two products: there all is float32, and a tensor
 * between them is rounded once, where it is written, instead of after every operation.
 *
 *   products     dot, conv, attention: operands are cast, the result has 16 bits; sums inside are float32
 *   recurrences  operands of what is multiplied for all steps at once are cast; steps and the result are float32
 *   movement     reshape, transpose, slice ...: as their operands are
 *   all others   float32; the weights themselves, statistics, the loss and the optimizer are so in any case
 *
 * What a product reads is in memory in 16 bits anyway. If something else reads it too and autocast has it in 16 bits,
 * all read it so: the sums of a residual network, whose gradients then have 16 bits too. In a transformer they have 32,
 * as what enters it, and keep them.
 *
 * Layers can be kept float32 by name, and operations (compiler/ops/ops.def) in all layers: op:conv, op:attention. With
 * match_eager that goes for every operation, which is then not rounded.
 */
#ifndef TY_COMPILER_PASSES_PRECISION_H
#define TY_COMPILER_PASSES_PRECISION_H

#include "compiler/ir/graph.h"

typedef struct ty_precision_rules {
    ty_dtype dtype; /* TY_BF16 or TY_F16 */
    const char *const
        *keep; /* what stays float32: names or shell patterns of layers, or op:NAME, likewise of operations */
    int n_keep;
    bool must_meet;   /* a name or pattern of layers that meets none is refused */
    bool match_eager; /* round after every operation on 16-bit floats, as autocast does */
} ty_precision_rules;

/* Carries over from `in` into `to` what held[n_held] need. Input i of `in` becomes bound[i], a value of `to`; `in` has
 * no states. On success held[] are the values of `to`, of the types that they had. */
int ty_pass_precision(const ty_graph *in, ty_graph *to, const ty_val *bound, const ty_precision_rules *rules,
                      ty_val *held, int n_held, ty_error *err);

/* The gradient of a weight that was cast to 16 bits is a product of 16 bits, cast to float32. Yields the same as a
 * product whose float32 sums are not rounded in between; other values as they are. */
ty_val ty_precision_widen(ty_graph *g, ty_val gradient);

#endif
