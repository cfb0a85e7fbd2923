/* probe.h - how long the steps of a training take here, by making some of them.
 *
 *     ty_session_open_for_steps(&s, err);
 *     ty_probe_run(&s, 10, &p, err);        // trains some steps in memory; nothing is written
 *
 * Steps are made by the training's own loop (loop.h), as many under way as there, and timed from result to result. The
 * median counts: one interruption by another process does not. Batches of an evaluation are timed one by one.
 */
#ifndef TY_ENTRYPOINT_PROBE_H
#define TY_ENTRYPOINT_PROBE_H

#include "entrypoint/session.h"

enum { TY_PROBE_WARM_UP = 5, TY_PROBE_MAX_STEPS = 10000 };

typedef struct ty_probe {
    int n_steps;                           /* timed, after the warm-up */
    double opening_s;                      /* recipe, model, data and compiling, before the first step */
    double compile_s;                      /* of it */
    double first_s;                        /* the first step */
    double step_s, step_min_s, step_max_s; /* waiting for data included; the median first */
    double batch_s;                        /* of an evaluation; 0: there is none */
    double load; /* average of the last minute before; more than nothing: others use the processors too */
} ty_probe;

/* steps: 1 to TY_PROBE_MAX_STEPS, behind TY_PROBE_WARM_UP that are not counted. opened_s: when opening began
 * (ty_session_now_s). */
int ty_probe_run(ty_session *s, int steps, double opened_s, ty_probe *out, ty_error *err);

#endif
