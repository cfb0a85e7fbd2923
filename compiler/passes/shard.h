/* shard.h - the update divided among replicas (ty_train_spec.optimizer_sharding). Internal to step.c.
 *
 * All replicas have all weights, but each keeps the optimizer's moments, and computes the update, of an equal part of
 * them: ZeRO's first stage (Rajbhandari et al., "ZeRO", SC 2020). The arena of a group is cut into stretches near the
 * borders of its tensors; a replica gets the sum of its own part of each stretch of the gradient, updates that part,
 * and all hand their parts to all, stretch by stretch, while others are still computed:
 *
 *     gradient [lo, hi)  --reduce_scatter-->  own part  --update-->  own new weights  --all_gather-->  weights [lo, hi)
 *
 * Stretches have a multiple of replicas x 16 elements, so that parts begin at whole cache lines. What is left behind
 * the last one, and small groups, all replicas update alike: the last piece, which is `whole`.
 *
 * Moments are states of `elems` elements, piece behind piece. Averages of weights (ema), gradient sums of micro-batches
 * and tables that are updated by rows are not divided. Refused is what needs norms of single tensors.
 */
#ifndef TY_COMPILER_PASSES_SHARD_H
#define TY_COMPILER_PASSES_SHARD_H

#include "compiler/passes/parameters.h"

typedef struct ty_shard_piece {
    int64_t lo, hi;    /* elements of the group's arena */
    int64_t at, elems; /* in a replica's moments; elems: hi - lo, or that divided by the replicas */
    bool whole;
    ty_val grad; /* of all replicas, of these elements */
} ty_shard_piece;

typedef struct ty_shards {
    ty_shard_piece *piece;
    int n;         /* 0: the group is not divided */
    int64_t elems; /* of a replica's moments */
} ty_shards;

/* A state of moments that is divided so. */
typedef struct ty_step_parts {
    int state;
    int64_t elems; /* of all replicas' parts together */
    const ty_shards *shards;
} ty_step_parts;

bool ty_shard_is_asked(const ty_train_spec *spec);
int ty_shard_check(const ty_train_spec *spec, ty_error *err);
/* Where to cut. */
void ty_shard_cut(const ty_param_set *set, const ty_param_group *group, const ty_train_spec *spec, ty_shards *out);
/* Fills the pieces' gradients from those of the group's members; sums: what earlier micro-batches have left, flat, or
 * TY_NONE; wire: what they travel as. */
void ty_shard_gradients(const ty_param_set *set, const ty_param_group *group, ty_graph *g, ty_val sums, ty_val replica,
                        ty_dtype wire, ty_shards *s);
/* The weights of piece i before the update, as this replica updates them. */
ty_val ty_shard_weights(const ty_param_set *set, const ty_param_group *group, ty_graph *g, ty_val replica,
                        const ty_shards *s, int i);
/* The new weights of piece i, of all replicas, from this one's own. */
ty_val ty_shard_hand_on(const ty_param_set *set, ty_graph *g, const ty_shards *s, int i, ty_val own);
/* A state of moments, zeros. */
int ty_shard_add_state(const ty_param_set *set, const ty_param_group *group, ty_graph *g, const char *prefix,
                       const ty_shards *s);

#endif
