/* step.h - a model and a training spec become one graph that is the whole training step.
 *
 * The graph holds forward, loss, backward, gradient sums, clipping, schedule, update, statistics, evaluation and
 * metrics, told apart by tape masks (TY_TAPE_MICRO, LAST, EVAL). What runs is reachable from the effects and outputs of
 * a tape.
 *
 *     ty_step step = {0};
 *     if (ty_step_build(model, &spec, &step, &err) < 0) ...
 *     ty_pass_lower(step.g, ...), fuse, plan, generate
 *     ty_step_fini(&step);
 *
 * Inputs of the graph: spec->inputs in order, then "valid" i64[] if spec->eval_valid_rows or train_valid_rows, then
 * "replica" i64[], the number of the replica, if spec->replicas > 1 (across.h tells what the step means then; "valid"
 * counts all rows).
 *
 * Outputs, by tape
 *     MICRO  "loss" f32[]: of this micro-batch alone
 *     LAST   "loss" f32[]: of the last micro-batch alone (the caller averages over the micro-batches of a step),
 *            "lr" f32[]: rate of this step, "grad_norm" f32[]: of the step's whole gradient before clipping
 *     EVAL   "loss.sum", "loss.count" f32[]: their quotient is the loss of the rows that count (all, or the first
 * "valid"); added up over batches they give the loss of the data. With one term they are that term's own sum and
 * divisor (times its weight); with several, count is the number of rows and sum the whole loss times that number.
 *            the metrics' sums, counts and scores ("<metric>.sum" ...: ty_metric); every model output under its own
 * name
 *
 * Rows behind "valid" may hold any numbers, NaN too, but their labels and ids must be legal (ty_step_range).
 *
 * States
 *     "param.0"  parameters with weight decay, "param.1" those without, each one flat f32[P] with a segment a tensor; a
 * group without members does not exist, and if spec->optimizer.weight_decay is 0 all are in "param.0". Those of the
 * first factor in spec->lr_scale are "param.2" and "param.3", and so on
 *     "param.<64 + i>"           a table that is updated by rows (tables.h), one each, in the model's order
 *     "ema.<group>"              averages of the parameters, if spec->ema_decay: after the first step the weights, then
 * ema = decay ema + (1 - decay) p
 *     "<kind>.<moment>.<group>"  "adam.m.0": as its group's parameters, same segments
 *     "grad.<group>"             gradient sums over micro-batches; only if accumulate > 1
 *     "buffer.<name>"            running statistics, one state each
 *     "step" i64[]; "seed" i64[] if the model draws random numbers, then also "micro" i64[] if accumulate > 1;
 *     "nadam.product" f64[]; "plateau" f64[TY_PLATEAU_NUMBERS], set by the caller between runs
 * Every number starts at its init bytes, or at zero. Init bytes belong to the model and to the spec: both must live
 * until they are loaded.
 *
 * Order inside a group: gradient readiness, that is the reverse order of first use in the model, tensors whose size is
 * a multiple of 16 elements first, all others behind them.
 */
#ifndef TY_COMPILER_PASSES_STEP_H
#define TY_COMPILER_PASSES_STEP_H

#include "compiler/compiler.h"
#include "compiler/ir/graph.h"
#include "compiler/passes/shard.h"

/* Where the present value of a weight of the model is. */
typedef struct ty_step_weight {
    const char *name; /* as in the file */
    ty_type type;
    int state;        /* number of a state (with spec->use_ema of the average), or -1: never changed (frozen, constant,
                         unused): the bytes of the file */
    int segment;      /* of that state */
    int64_t offset;   /* elements from the start of the state */
    const void *data; /* initial bytes, perhaps unaligned */
    bool trained;     /* false with state >= 0: a running statistic */
} ty_step_weight;

/* Values an input may take: lo <= value <= hi, or exactly `also` if has_also (ignore_index). lo > hi: no limit known.
 */
typedef struct ty_step_range {
    int64_t lo, hi;
    int64_t also;
    bool has_also;
    const char
        *what; /* "labels of the loss on \"logits\" (10 classes)", "rows of embedding.weight"; NULL without limit */
} ty_step_range;

typedef struct ty_step {
    ty_graph *g;             /* owned; refers to bytes of the model, which must live longer */
    ty_step_weight *weights; /* one a weight of the model, in the model's order: ty_model_weight(m, i) is weights[i] */
    int n_weights;
    ty_step_range *ranges; /* one a graph input */
    int n_inputs;
    ty_step_parts *parts; /* states of which each replica has a part */
    int n_parts;
    int replicas;             /* that share the step, at least 1 */
    int64_t n_trained;        /* numbers trained; tied ones count once */
    ty_composite_count found; /* in the model as it is trained; built for inference: as it is applied */
    ty_compile_phases phases;
} ty_step;

/* All that lives in the step is in the graph's arena. On failure *out is empty. */
int ty_step_build(const ty_model *m, const ty_train_spec *spec, ty_step *out, ty_error *err);
/* Of a model that trains itself (ty_model_trains_itself): its own step on LAST, step_own.c. Loss terms and metrics are
 * of EVAL alone; what else the spec says of training must be left out. ty_step_build comes here by itself. States are
 * "own.<name>", one a variable, then "step" and "seed"; LAST has "loss" as its only output. */
int ty_step_build_own(const ty_model *m, const ty_train_spec *spec, ty_step *out, ty_error *err);
/* The model as in inference: inputs in the model's order with the given types (found by name), TY_TAPE_EVAL only,
 * weights are constants, outputs by the model's names. */
int ty_step_build_infer(const ty_model *m, const ty_binding *inputs, int n_inputs, ty_step *out, ty_error *err);
void ty_step_fini(ty_step *s); /* an empty one is fine */

#endif
