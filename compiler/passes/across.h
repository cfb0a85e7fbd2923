/* across.h - a step that several replicas share. Internal to the builders of a step.
 *
 * All replicas have the same weights and run the same graph, each on a batch of its own. What the step means is what it
 * would mean for one device on all those batches together, the rows of replica 0 first, then those of replica 1:
 *
 *   loss       a term is a quotient of sums (loss.h): a replica's own sum is divided by the counts of all, so that the
 *              replicas' losses add up to the loss. Labels that are left out, weights of samples and of classes count
 *              as they do on one device
 *   gradient   the sum of the replicas' gradients, in buckets of whole tensors in the order in which they become ready,
 *              so that one bucket travels while the next one is computed. Only the last micro-batch exchanges anything
 *   update     loss scale, clipping and optimizer read the summed gradient: each replica computes the same update, and
 *              weights stay the same bits everywhere
 *   rows       tables that are updated by rows: numbers and gradients of all replicas side by side (tables.h)
 *   metrics    sums and counts added up; what is one number a row, side by side
 *   batch norm by each replica's own statistics, running ones being the mean of all replicas', or by those of all
 *   random     each replica draws from a seed of its own
 *
 * A replica learns its number from the input "replica" i64[], the last one of the graph. Without replicas (1) none of
 * this leaves a trace in the graph.
 */
#ifndef TY_COMPILER_PASSES_ACROSS_H
#define TY_COMPILER_PASSES_ACROSS_H

#include "compiler/passes/parameters.h"

#define TY_ACROSS_INPUT "replica"

/* How many there are, at least 1. */
int ty_across_replicas(const ty_train_spec *spec);
/* Refuses numbers of replicas that cannot be, and what has no meaning for several. */
int ty_across_check(const ty_train_spec *spec, ty_error *err);

/* What gradients travel as. */
ty_dtype ty_across_wire(const ty_train_spec *spec);
/* end[i]: the member of a group behind its bucket i; room for all members. Returns how many buckets there are. */
int ty_across_buckets(const ty_param_group *group, const ty_train_spec *spec, int *end);
/* The gradient of a group of weights, of all replicas, flat; sums: what earlier micro-batches have left, flat, or
 * TY_NONE. Reads the members' own gradients (ty_param.grad). */
ty_val ty_across_gradient(const ty_param_set *set, const ty_param_group *group, ty_graph *g, ty_val sums,
                          const ty_train_spec *spec);
/* The mean over all replicas of each v[i], floats. */
void ty_across_mean(ty_graph *g, ty_val *v, int n, int replicas);
/* After node `id` of a draft has been carried over: what replicas sum of it and of what came before. early[id]: NULL,
 * or such nodes, ended by TY_NONE; without them their sums would follow all of backward, where the draft has them. */
void ty_across_find_early(const ty_graph *g, const uint8_t *live, ty_arena *a, const uint32_t **early);

/* The seed of the replica of this number: the given one for replica 0. */
ty_val ty_across_seed(ty_graph *g, ty_val seed, ty_val replica);

#endif
