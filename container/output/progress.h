/* progress.h - how far the run is, for a person who watches stderr.
 *
 *   bar     a terminal: one line that is redrawn at most 10 times a second, cut to the terminal's width
 *   plain   anything else: whole lines, at the start, then each 30 s or 5 % (whichever comes later), at the end of an
 *           epoch and at a checkpoint. No '\r', no escape sequence ever
 *   json    as plain, each line a JSON object
 *   none    nothing
 *
 *     step 1200/12000 10% | loss 0.23417 | 18211.4 samples/s | eta 5m12s | data 3% compute 97%
 *
 * Rank 0 alone shows progress. Writing never fails the run: a closed or full stderr is ignored, and a descriptor that
 * would block is skipped for this line. Time comes from the caller as monotonic seconds, so that tests can be exact.
 */
#ifndef TY_CONTAINER_OUTPUT_PROGRESS_H
#define TY_CONTAINER_OUTPUT_PROGRESS_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum ty_progress_mode {
    TY_PROGRESS_AUTO, /* bar when `fd` is a terminal that can redraw, else plain */
    TY_PROGRESS_PLAIN,
    TY_PROGRESS_BAR,
    TY_PROGRESS_NONE,
    TY_PROGRESS_JSON,
} ty_progress_mode;

typedef enum ty_progress_event {
    TY_PROGRESS_STEP,       /* a step ended: shown when it is time */
    TY_PROGRESS_EPOCH,      /* an epoch ended: shown in any case */
    TY_PROGRESS_CHECKPOINT, /* a checkpoint was written: shown in any case */
} ty_progress_event;

/* How things stand. A share below 0, a NaN loss rate and so on are left out of the line. */
typedef struct ty_progress_state {
    int64_t step, epoch;
    double loss;                                  /* NAN is shown as nan */
    double samples_per_s;                         /* <= 0: not shown */
    double data_share, comm_share, compute_share; /* of the time since the last report, 0 to 1; < 0: not shown */
    double comm_ms;                               /* of a step, beside comm_share */
    const char *data_cause;                       /* beside data_share: "parsing"; NULL: not shown */
} ty_progress_state;

/* Fields are private, but the struct may live on the stack; no memory is owned. */
typedef struct ty_progress {
    int fd;
    ty_progress_mode mode; /* never AUTO after init */
    int64_t first_step, total_steps;
    double start_s, last_s; /* last_s: when something was last shown */
    int64_t last_step;
    double seen_s; /* for the smoothed step time */
    int64_t seen_step;
    double step_s; /* smoothed seconds per step; 0: not known */
    bool drawn;    /* bar: a line stands there without a newline */
} ty_progress;

/* "auto", "plain", "bar", "none" or "json". */
int ty_progress_mode_parse(const char *text, ty_progress_mode *out, ty_error *err);

/* total_steps 0: not known. first_step: where a resumed run goes on, so that its rate is not overrated. */
void ty_progress_init(ty_progress *p, int fd, ty_progress_mode mode, int64_t first_step, int64_t total_steps,
                      double now_s);
void ty_progress_update(ty_progress *p, ty_progress_event event, const ty_progress_state *state, double now_s);
/* Takes the bar away, so that other output can be written; the next update draws it again. */
void ty_progress_clear(ty_progress *p);
/* Leaves the last state as a full line. */
void ty_progress_finish(ty_progress *p, const ty_progress_state *state, double now_s);

/* "42s", "5m12s", "1h02m", "3d04h" into out[16]. Returns out. */
char *ty_progress_duration(double s, char out[16]);

#endif
