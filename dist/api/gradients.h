/* gradients.h - gradients that are summed in buckets while the caller computes the others.
 *
 * Parameters are laid out once, last to first, in buckets: ranges of one arena, in slots aligned to 64 bytes. Buckets
 * travel in their order on a channel of their own, each when all its gradients are ready and the ones before it are
 * under way, so that ranks agree on the order whatever the order of their calls. One exchange of words a step stands in
 * front of the first bucket: there a rank that has joined is found, and a request to stop is told.
 */
#ifndef TY_DIST_API_GRADIENTS_H
#define TY_DIST_API_GRADIENTS_H

#include "dist/api/channel.h"

/* trainyard_gradients: what the program holds. */
typedef struct trainyard_gradients ty_gradients;

/* By all ranks of the parent channel: lists are compared, and a second comm of the same ranks is made. */
int ty_gradients_new(ty_channel *parent, const trainyard_parameter *parameters, int n,
                     const trainyard_gradients_options *options, ty_gradients **gradients, ty_error *err);
/* By all ranks of the parent channel; where they do not agree the gradients stay. */
int ty_gradients_free(ty_channel *parent, ty_gradients *g, ty_error *err);
/* Without asking anybody: the job is over. */
void ty_gradients_drop(ty_gradients *g);

void *ty_gradients_buffer(const ty_gradients *g, int parameter);
int ty_gradients_ready(ty_gradients *g, int parameter, const void *gradient, ty_error *err);
int ty_gradients_wait_one(ty_gradients *g, int parameter, ty_error *err);
/* *stop is set where a rank was told to stop. */
int ty_gradients_wait(ty_gradients *g, bool *stop, ty_error *err);
int ty_gradients_buckets(const ty_gradients *g);
ty_channel *ty_gradients_channel(const ty_gradients *g);
int ty_gradients_set(const ty_gradients *g); /* the process set they were made for */

#endif
