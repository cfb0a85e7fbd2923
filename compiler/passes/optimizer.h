/* optimizer.h - update rules on flat vectors.
 *
 * A rule is a row of the table in optimizer.c: which vectors it remembers, and how it makes the next parameter and the
 * next vectors. All vectors of a group have one length, so each group's update is one elementwise expression; lamb and
 * lars also reduce each tensor to its norm. What depends on the step alone (rates, bias corrections) is scalar f64,
 * rounded to f32 where it meets a vector.
 *
 * Formulas. p parameter, g clipped gradient, d weight decay, k step from 1; m, v and the like start at 0. Defaults are
 * the recipe's (entrypoint/recipe_keys.c).
 *
 *   sgd adam adamw nadam adamax rmsprop adagrad adadelta
 *       PyTorch's, torch.optim. d joins the gradient (g + d p), except in adamw. amsgrad exists for adam and adamw. For
 *       rows of a table adam and adamw are torch.optim.SparseAdam, which is keras_adam's formula below.
 *   lion        Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms" (arXiv 2302.06675), algorithm 2
 *       c = beta1 m + (1 - beta1) g;  p -= lr (sign(c) + d p);  m = beta2 m + (1 - beta2) g
 *   lamb        You et al. 2019, "Large Batch Optimization for Deep Learning" (arXiv 1904.00962), algorithm 2, with the
 *               identity for phi. For each tensor:
 *       r = M / (sqrt(V) + eps) + d p, with M and V adam's m and v divided by 1 - beta^k;  p -= lr (|p| / |r|) r
 *   lars        You et al. 2017, "Large Batch Training of Convolutional Networks" (arXiv 1708.03888), algorithm 1.
 *               For each tensor:
 *       q = trust |p| / (|g| + d |p| + eps);  m = momentum m + lr q (g + d p);  p -= m
 *       In both a ratio with a norm of 0 counts as 1. Tensors that are excluded from a decay that others have (biases,
 *       scales of normalizations) are not adapted: their ratio is 1, as in the authors' implementation.
 *   ftrl        McMahan et al. 2013, "Ad Click Prediction: a View from the Trenches", algorithm 1, in Keras' form
 *               (keras.optimizers.Ftrl). n starts at initial_accumulator, e = -lr_power:
 *       N = n + g^2;  z += g + 2 l2_shrinkage p - (N^e - n^e) / lr p;  n = N
 *       p = (clip(z, -l1, l1) - z) / (N^e / lr + 2 l2 + beta / lr)
 *
 * Keras' own rules, where they differ from PyTorch's (keras.optimizers 3). In all of them decay is decoupled: first
 * p -= lr d p, and then with the plain gradient
 *   keras_sgd       m = momentum m - lr g;  p += m, or with nesterov p += momentum m - lr g: the rate is in the memory
 *   keras_adam      p -= lr sqrt(1 - beta2^k) / (1 - beta1^k) m / (sqrt(v) + eps); amsgrad as in PyTorch
 *   keras_nadam     nadam with 0.96^i in the place of 0.96^(i momentum_decay)
 *   keras_adamax    s = max(beta2 s, |g|);  p -= lr / (1 - beta1^k) m / (s + eps)
 *   keras_rmsprop   v = alpha v + (1 - alpha) g^2;  q = lr g / sqrt(v - a^2 + eps), a only if centered: eps is inside
 *                   the root, and with momentum m = momentum m + q the rate is in the memory
 *   keras_adagrad   v += g^2;  p -= lr g / sqrt(v + eps)
 *   keras_adadelta  as adadelta, with decoupled decay
 *   keras_lamb      as lamb without d p in r: |p| is that of the decayed p
 * Where a rule of Keras squares a gradient (keras_adamax: takes its size), ty_opt_group.squares may stand for that
 * square: unmerged.h.
 */
#ifndef TY_COMPILER_PASSES_OPTIMIZER_H
#define TY_COMPILER_PASSES_OPTIMIZER_H

#include "compiler/compiler.h"
#include "compiler/ir/graph.h"
#include "compiler/passes/segment.h"

#define TY_OPT_MAX_MOMENTS 3

/* Vectors that a rule remembers between steps. All start at zero. */
typedef struct ty_opt_moments {
    int n;
    const char *name[TY_OPT_MAX_MOMENTS]; /* "m", "v" */
} ty_opt_moments;

ty_opt_moments ty_optimizer_moments(const ty_optimizer *o);

/* What a step knows beside the vectors. */
typedef struct ty_opt_clock {
    ty_val k;       /* f64[]: number of this step, from 1 */
    ty_val lr;      /* f64[]: of the group */
    ty_val product; /* nadam: product of u(1) ... u(k-1); TY_NONE for others */
} ty_opt_clock;

/* nadam's next product, else TY_NONE: the caller keeps it in a state that starts at 1. */
ty_val ty_optimizer_next_product(ty_graph *g, const ty_optimizer *o, const ty_opt_clock *clock);
bool ty_optimizer_needs_product(const ty_optimizer *o);

/* Parameters that are updated alike. */
typedef struct ty_opt_group {
    double decay;         /* weight decay: the optimizer's, or 0 */
    ty_segments segments; /* the tensors in the vector */
    bool by_rows;         /* rows of a table (tables.h), for which ty_optimizer_refuses_rows knows no reason */
    ty_val squares;       /* what stands for the square of the gradient; TY_NONE: its square */
} ty_opt_group;

/* The update of one group. grad: clipped. next[i]: of moment i. Returns the next p. */
ty_val ty_optimizer_update(ty_graph *g, const ty_optimizer *o, const ty_opt_clock *clock, const ty_opt_group *group,
                           ty_val p, ty_val grad, const ty_val *moment, ty_val *next);

/* Why the rule cannot be applied to some rows of a table alone (tables.h): "keeps a momentum ..."; NULL: it can. */
const char *ty_optimizer_refuses_rows(const ty_optimizer *o);

/* What a rule reads of a gradient beside itself. */
typedef enum ty_opt_reads { TY_OPT_READS_NOTHING, TY_OPT_READS_SQUARES, TY_OPT_READS_SIZES } ty_opt_reads;
ty_opt_reads ty_optimizer_reads(const ty_optimizer *o);

/* "adamw" */
const char *ty_optimizer_text(ty_optimizer_kind kind);

#endif
