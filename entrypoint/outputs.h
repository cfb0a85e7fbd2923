/* outputs.h - everything a run says about itself while it runs: metric lines on stdout, metrics.jsonl, TensorBoard
 * events, progress on stderr.
 *
 * One call a report feeds them all. A file that cannot be written any more is reported once and then left alone: a full
 * disk costs curves, not the training.
 */
#ifndef TY_ENTRYPOINT_OUTPUTS_H
#define TY_ENTRYPOINT_OUTPUTS_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct ty_value_named {
    const char *name;
    double value;
} ty_value_named;

typedef struct ty_outputs ty_outputs;

typedef struct ty_outputs_config {
    const char *metrics_path;       /* metrics.jsonl */
    const char *tensorboard_folder; /* gets train/ and validation/; NULL: no events */
    const char *progress;           /* mode; NULL: auto */
    const char *config_digest;
    uint64_t seed;
    int world_size; /* ranks that train together; 0 is 1 */
    int64_t first_step, total_steps;
    bool resumed;
    bool fresh; /* what earlier runs left in these files is removed */
} ty_outputs_config;

int ty_outputs_open(const ty_outputs_config *config, ty_outputs **out, ty_error *err);
/* One report of a split. Values in the order to print. */
int ty_outputs_add(ty_outputs *o, bool validation, int64_t step, int64_t epoch, const ty_value_named *values, int n,
                   ty_error *err);
/* How quick it is, since the run began. Shares are parts of the time. */
typedef struct ty_outputs_pace {
    double samples_per_s;
    double data_share, comm_share; /* waited for data; for other ranks, below 0: there are none */
    double comm_ms;                /* of a step, waited for other ranks */
    const char *data_cause;        /* what makes data late: "parsing"; NULL: they are not */
} ty_outputs_pace;
/* For TensorBoard, at a report: the share of the time since the last one in which the step waited for data, and what
 * bounded the rate: "reading", "framing", "parsing" or "the step". */
void ty_outputs_input(ty_outputs *o, int64_t step, double wait_share, const char *bottleneck);
/* event: 's' a step, 'e' an epoch, 'c' a checkpoint. */
void ty_outputs_progress(ty_outputs *o, char event, int64_t step, int64_t epoch, double loss,
                         const ty_outputs_pace *pace);
/* Brings everything to the disk: at checkpoints and at the end of epochs. */
void ty_outputs_flush(ty_outputs *o);
/* NULL is fine. */
void ty_outputs_close(ty_outputs *o);

#endif
