/* world.h - all that a process has of a job: its channels, process sets, gradients and handles.
 *
 * The public functions (trainyard.c) keep one of these for the process; a test has one a thread.
 */
#ifndef TY_DIST_API_WORLD_H
#define TY_DIST_API_WORLD_H

#include "dist/api/channel.h"
#include "dist/api/gradients.h"

#include <stdatomic.h>

#define TY_WORLD_SETS      64
#define TY_WORLD_GRADIENTS 256

typedef struct ty_world ty_world;

/* Takes the comm, also where it fails. told: set when this process is asked to stop; must outlive the world. */
int ty_world_open(ty_comm *comm, const atomic_int *told, ty_world **world, ty_error *err);
/* By all ranks. Frees the world in any case. */
int ty_world_close(ty_world *w, ty_error *err);

ty_comm *ty_world_comm(const ty_world *w);
bool ty_world_stops(ty_world *w); /* what the last calls on the world agreed on */

/* Carries out a call that ty_call_init and its owner filled, on the set of its options; call->root is a rank of the
 * world. The call is finished (ty_call_fini) in any case; call->err tells. */
int ty_world_now(ty_world *w, ty_call *call);
/* The same later: the call was malloc'ed and is the world's. Returns a handle, or a code with *err. */
int64_t ty_world_later(ty_world *w, ty_call *call, ty_error *err);
int ty_world_poll(ty_world *w, int64_t handle, ty_error *err);
int ty_world_wait(ty_world *w, int64_t handle, ty_error *err);

int ty_world_join(ty_world *w, ty_error *err); /* the last rank, or a code */

int ty_world_set_new(ty_world *w, const int *ranks, int n, ty_error *err); /* its number, or a code */
int ty_world_set_free(ty_world *w, int set, ty_error *err);
int ty_world_set_rank(ty_world *w, int set, ty_error *err);
int ty_world_set_size(ty_world *w, int set, ty_error *err);

int ty_world_gradients_new(ty_world *w, const trainyard_parameter *parameters, int n,
                           const trainyard_gradients_options *options, ty_gradients **g, ty_error *err);
int ty_world_gradients_free(ty_world *w, ty_gradients *g, ty_error *err);
int ty_world_gradients_wait(ty_world *w, ty_gradients *g, ty_error *err);

#endif
