/* optimizer.h - update rules on flat vectors. Formulas: PyTorch's, as train-cases/README.md writes them down.
 *
 * A rule is a row of the table in optimizer.c: which vectors it remembers, and how it makes the next parameter and the
 * next vectors. All vectors of a group have one length, so each group's update is one elementwise expression. What
 * depends on the step alone (rates, bias corrections) is scalar f64, rounded to f32 where it meets a vector.
 */
#ifndef TY_COMPILER_PASSES_OPTIMIZER_H
#define TY_COMPILER_PASSES_OPTIMIZER_H

#include "compiler/compiler.h"
#include "compiler/ir/graph.h"

#define TY_OPT_MAX_MOMENTS 3

/* Vectors that a rule remembers between steps. All start at zero. */
typedef struct ty_opt_moments {
    int n;
    const char *name[TY_OPT_MAX_MOMENTS]; /* "m", "v" */
} ty_opt_moments;

ty_opt_moments ty_optimizer_moments(const ty_optimizer *o);

/* What a step knows beside the vectors; one for all groups. */
typedef struct ty_opt_clock {
    ty_val k;       /* f64[]: number of this step, from 1 */
    ty_val lr;      /* f64[] */
    ty_val product; /* nadam: product of u(1) ... u(k-1); TY_NONE for others */
} ty_opt_clock;

/* nadam's next product, else TY_NONE: the caller keeps it in a state that starts at 1. */
ty_val ty_optimizer_next_product(ty_graph *g, const ty_optimizer *o, const ty_opt_clock *clock);
bool ty_optimizer_needs_product(const ty_optimizer *o);

/* The update of one group. decay: the group's weight decay. grad: clipped. next[i]: of moment i. Returns the next p. */
ty_val ty_optimizer_update(ty_graph *g, const ty_optimizer *o, const ty_opt_clock *clock, double decay, ty_val p,
                           ty_val grad, const ty_val *moment, ty_val *next);

/* "adamw" */
const char *ty_optimizer_text(ty_optimizer_kind kind);

#endif
