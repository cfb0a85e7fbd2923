/* adapt.h - low-rank adapters: what is learnt of a frozen matrix are two narrow ones.
 *
 * Source: Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", ICLR 2022. In place of W [d0, d1] a product
 * reads W + scale L R, with L [d0, rank] and R [rank, d1]; the sum is never made: a product x W becomes
 *
 *     x W + scale (x L) R
 *
 * so that no gradient of W's size exists. The factor on the side that is summed over begins with random numbers, the
 * other one with zeros: training begins with the model as it is.
 *
 * The pass runs on each import of a model, between raise and precision: products are still those of float32.
 */
#ifndef TY_COMPILER_PASSES_ADAPT_H
#define TY_COMPILER_PASSES_ADAPT_H

#include "compiler/ir/graph.h"

typedef struct ty_adapter {
    int weight, left, right; /* inputs of the graph: W, L, R */
    double scale;
    bool is_met;            /* set: a product reads W */
    bool is_read_by_others; /* set: so does something else */
    bool sums_rows;         /* set: the first product sums over d0, and L is next to what it multiplies */
} ty_adapter;

/* Carries over from `in` into `to` what held[n_held] need, with adapters at all products of matrices. Input i of `in`
 * becomes bound[i], a value of `to`; `in` has no states. On success held[] are the values of `to`. */
int ty_pass_adapt(const ty_graph *in, ty_graph *to, const ty_val *bound, ty_adapter *adapters, int n_adapters,
                  ty_val *held, int n_held, ty_error *err);

#endif
