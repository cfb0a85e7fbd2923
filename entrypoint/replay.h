/* replay.h - one step of a training run again, with every value looked at.
 *
 * The state before the step comes from the newest checkpoint at or before it, or from the model's own weights; steps
 * between are run as training ran them. A resumed run has the bits of one that was never interrupted, so the step is
 * the one that was, batch and random numbers included. Nothing is written.
 *
 *     job.replay_step = 38;
 *     ty_session_open_for_steps(&s, err);
 *     ty_replay_run(&s, &replay, err);
 *     if (replay.is_wrong)      ty_session_explain(&s, &text);
 */
#ifndef TY_ENTRYPOINT_REPLAY_H
#define TY_ENTRYPOINT_REPLAY_H

#include "entrypoint/session.h"

typedef struct ty_replay {
    ty_loop_position at; /* of the step's first batch; at.step steps were done before it */
    int64_t from_step;   /* of the checkpoint; 0: of the model's own weights */
    ty_step_result result;
    bool is_wrong; /* loss, gradient norm or a state is not finite. What was found is in the session's check */
} ty_replay;

int ty_replay_run(ty_session *s, ty_replay *out, ty_error *err);

#endif
