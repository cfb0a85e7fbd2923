/* local_engine.h - hosts of a local job as containers, over the `docker` command (Docker's own, or another engine's).
 *
 * All hosts are on a network of their own with names, so that algo-2 is found under this name; their trees are mounted
 * at /opt/ml; they run as the user who runs this, so that files are the user's. An engine without root maps its root to
 * that user, so there the containers are root's.
 */
#ifndef TY_ENTRYPOINT_LOCAL_ENGINE_H
#define TY_ENTRYPOINT_LOCAL_ENGINE_H

#include "base/arena.h"
#include "base/error.h"
#include "estimator_spec/stage.h"

typedef struct ty_engine {
    const char *image;
    const char *options; /* words for `docker run`; NULL: none */
    const char *network; /* what it is called, and what containers' names begin with */
    const char *user;    /* "1000:1000" */
    bool has_network;
} ty_engine;

/* Whether the engine has this image. *why: a sentence if not: no command, no engine, no image. */
bool ty_engine_has(const char *image, ty_arena *a, const char **why);
/* Makes the network. */
int ty_engine_open(ty_engine *e, const char *image, const char *options, ty_arena *a, ty_error *err);
/* What starts a host: `names` are variables that it gets as they are in the client's environment. words: behind
 * `train`; with an entrypoint of the job's own, that and its arguments instead. */
const char *const *ty_engine_command(const ty_engine *e, const ty_stage *s, const ty_stage_host *h,
                                     const char *const *names, const char *const *words, ty_arena *a);
const char *ty_engine_container(const ty_engine *e, const ty_stage_host *h, ty_arena *a);
/* Ends a container; waits for nothing. */
void ty_engine_kill(const char *container);
/* Removes containers and network. */
void ty_engine_close(ty_engine *e, const ty_stage *s, ty_arena *a);

#endif
