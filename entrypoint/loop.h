/* loop.h - the training loop: the order in which things happen, and nothing else.
 *
 * It knows no file, no model and no signal; all it does it does through callbacks, so that its rules can be tested with
 * a table of numbers:
 *   - step t takes batches t * accumulate ... of the endless sequence of epochs; a run that resumes at step t starts
 * there.
 *   - after a step, in this order: metric line if due, evaluation if due, checkpoint if due. A span of epochs is due
 * after the step that takes the last batch of an epoch, or the first one beyond it.
 *   - an evaluation may ask for a checkpoint of its step (TY_LOOP_BETTER), or end the run (TY_LOOP_ENOUGH).
 *   - a stop is obeyed between two steps: checkpoint (unless this step's is there), then return.
 *   - at the end of a complete run: evaluation and checkpoint, unless the last step had them.
 *   - a loss or gradient norm that is not finite is an error before anything of it is saved.
 *   - several steps may be under way: a step's result is taken, judged and reported when in_flight - 1 more have begun,
 *     and all results are taken before an evaluation, a checkpoint and the end.
 *   - epochs of a stream are as long as they turn out to be (batches_per_epoch 0): the batch itself tells that it was
 *     its epoch's last. Batches that make no whole step at the end of the last epoch are dropped.
 */
#ifndef TY_ENTRYPOINT_LOOP_H
#define TY_ENTRYPOINT_LOOP_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Every so many steps, or every so many epochs. n 0: never. */
typedef struct ty_cadence {
    int64_t n;
    bool epochs;
} ty_cadence;

typedef struct ty_loop_plan {
    int64_t first_step;        /* steps that are done already */
    int64_t total_steps;       /* 0, with batches_per_epoch 0: until the epochs end; then it becomes their number */
    int64_t batches_per_epoch; /* 0: not known before an epoch ends */
    int64_t accumulate;        /* batches a step, >= 1 */
    ty_cadence report, evaluate, checkpoint;
    int in_flight;  /* steps that are begun before the first one's result is taken; 0 is 1. At most TY_LOOP_IN_FLIGHT */
    int64_t epochs; /* batches_per_epoch 0: the run ends with these at the latest */
    int64_t first_epoch, first_batch; /* batches_per_epoch 0: where first_step stands */
    bool enough;                      /* an evaluation has ended the run: nothing is left to do */
} ty_loop_plan;

enum { TY_LOOP_IN_FLIGHT = 16 };

typedef struct ty_step_result {
    double loss, lr, grad_norm; /* grad_norm < 0: not known */
    double loss_scale;          /* 0: the loss is not scaled. Else a gradient that is not finite skips the step */
} ty_step_result;

/* Where the run is, after a step. */
typedef struct ty_loop_position {
    int64_t step;         /* steps done */
    int64_t epoch, batch; /* of the batch to come */
} ty_loop_position;

/* What has happened since the last report. */
typedef struct ty_loop_report {
    ty_loop_position at;
    double mean_loss; /* over the steps since */
    double lr, grad_norm, loss_scale;
    int64_t n_steps;
} ty_loop_report;

/* What a batch returns that was the last one of its epoch; only batches_per_epoch 0 makes a difference of it. */
#define TY_LOOP_EPOCH_ENDS 1
/* There is no batch, since the run was told to stop while it waited for one. */
#define TY_LOOP_STOPPED 2

/* What an evaluation returns that was better than all before it, and is to be saved; and one that ends the run. */
#define TY_LOOP_BETTER 3
#define TY_LOOP_ENOUGH 4

/* All get `ctx`. Those that return int return -1 with err filled to end the run. Optional ones may be NULL. */
typedef struct ty_loop_calls {
    void *ctx;
    /* One batch through the model; `last`: of its step, weights are updated. May only begin. */
    int (*batch)(void *ctx, bool last, ty_error *err);
    /* Epochs have ended with batches that make no whole step: what they left is dropped. Optional. */
    int (*drop)(void *ctx, ty_error *err);
    /* Of the oldest step that was begun; waits for it. */
    int (*result)(void *ctx, ty_step_result *result, ty_error *err);
    int (*evaluate)(void *ctx, const ty_loop_position *at, ty_error *err);   /* optional */
    int (*checkpoint)(void *ctx, const ty_loop_position *at, ty_error *err); /* optional */
    int (*report)(void *ctx, const ty_loop_report *report, ty_error *err);   /* optional */
    void (*progress)(void *ctx, const ty_loop_position *at,
                     const ty_step_result *last); /* optional: after every result */
    bool (*stop_requested)(void *ctx);            /* optional */
} ty_loop_calls;

typedef struct ty_loop_result {
    int64_t steps_done; /* whose results were taken, and those before first_step */
    bool stopped;       /* by request, before the last step */
    double last_loss;   /* NAN if no step was made */
} ty_loop_result;

int ty_loop_run(ty_loop_plan *plan, const ty_loop_calls *calls, ty_loop_result *result, ty_error *err);
/* Whether a run that begins at first_step has nothing to do. */
bool ty_loop_is_over(const ty_loop_plan *plan);
/* The position after `step` steps; with batches_per_epoch 0 only that of first_step is known. */
ty_loop_position ty_loop_position_at(const ty_loop_plan *plan, int64_t step);
/* Whether a cadence is due after the step that led from one position to the next. */
bool ty_cadence_due(const ty_cadence *c, const ty_loop_position *before, const ty_loop_position *after);

#endif
