/* step_draft.h - the step while it is built. Private to step.c, which builds it, step_terms.c, which adds what the
 * recipe names, the terms of the loss and the metrics, and step_update.c.
 */
#ifndef TY_COMPILER_PASSES_STEP_DRAFT_H
#define TY_COMPILER_PASSES_STEP_DRAFT_H

#include "compiler/compiler.h"
#include "compiler/model.h"
#include "compiler/passes/loss.h"
#include "compiler/passes/loss_scale.h"
#include "compiler/passes/parameters.h"
#include "compiler/passes/shard.h"

typedef struct ty_step_draft {
    const ty_model *m;
    const ty_train_spec *spec;
    ty_graph *g;
    ty_arena arena; /* working memory, of the build */
    ty_param_set set;
    ty_val *input;  /* spec->inputs */
    ty_val rows;    /* bool[batch] by "valid", or TY_NONE */
    ty_val replica; /* its number, the last of the step's inputs; TY_NONE: there is one */
    int n_inputs;   /* of the step; those behind are leaves */
    int *leaf; /* by input number - n_inputs: number of the weight (+ n_params: of its average), or STEP_LEAF_... */
    int n_leaves;
    ty_val seed, draw; /* leaves for random numbers */
    ty_model_values train, eval;
    ty_loss_sums *train_term, *eval_term;  /* one a term */
    ty_val loss;                           /* of one micro-batch */
    const ty_val *own_loss;                /* of a model that trains itself: what its step gives; else NULL */
    ty_val grad[TY_PARAM_MAX_GROUPS];      /* flat, of loss / accumulate */
    ty_shards shards[TY_PARAM_MAX_GROUPS]; /* n 0: the group's update is not divided among replicas */
    ty_step_parts *parts;                  /* states of which each replica has a part */
    int n_parts;
    ty_loss_scale scale;
    ty_val due; /* bool[]: this step changes weights (ty_train_spec.update_every); TY_NONE: each does */
    int ema_state[TY_PARAM_MAX_GROUPS];
    int step_state, seed_state, micro_state; /* the latter two -1 without random numbers */
    ty_compile_phases phases;
} ty_step_draft;

/* Tapes that train: MICRO exists only with micro-batches. */
uint32_t ty_step_train_tapes(const ty_step_draft *d);
/* Number of the spec's input, or -1. */
int ty_step_find_input(const ty_step_draft *d, const char *name);

/* The step's inputs, d->input and d->rows. */
void ty_step_add_inputs(ty_step_draft *d);
/* What each input of the model is bound to. */
int ty_step_bind_inputs(const ty_step_draft *d, ty_val *bound, ty_error *err);
/* step_adapt.c: out[set.n_adapters], for an import for training or evaluation; and once that for training has met them,
 * their first values. Refuses adapters that no product has. */
void ty_step_bind_adapters(const ty_step_draft *d, bool evaluates, ty_model_adapter *out);
int ty_step_begin_adapters(const ty_step_draft *d, const ty_model_adapter *adapters, ty_error *err);
/* After the model's import: the terms on both tapes, d->loss and its output. */
int ty_step_loss(ty_step_draft *d, ty_error *err);
/* After the gradient: states of weights and moments, and what they become. */
int ty_step_update(ty_step_draft *d, ty_error *err);
/* After the loss: the outputs of EVAL. */
int ty_step_eval(ty_step_draft *d, ty_error *err);

#endif
