/* served.h - training with weights that live in parameter servers (dist/server/client.h).
 *
 * The worker computes gradients and nothing else: before a step it has the servers' weights, after it the servers have
 * its gradient. The compiled step is that of plain training with one change: its update is SGD with momentum, whose
 * memory begins each step at zero. After the step that memory is the gradient, clipped and averaged as the recipe says;
 * what the update made of the weights is overwritten by those that are pulled next. The rule that counts is the
 * recipe's, applied by the servers; the schedule's rate travels with each push.
 *
 * A pull is begun as soon as a step is pushed, and waited for before the weights are read: so reading the next batch
 * hides it.
 */
#ifndef TY_ENTRYPOINT_SERVED_H
#define TY_ENTRYPOINT_SERVED_H

#include "compiler/compiler.h"
#include "dist/server/client.h"

typedef struct ty_served_options {
    const char *const *servers; /* addresses, a shard each */
    int n_servers;
    int worker, workers; /* this one of so many; 0 gives the first values */
    ty_server_mode mode;
    int staleness, backup;
    const char *interface; /* or NULL */
} ty_served_options;

typedef struct ty_served ty_served;

/* Makes of a specification that of a worker, and *rule of its optimizer. TY_E_CONFIG: what servers cannot do, such as
 * weight decay, averages or accumulation, by name. */
int ty_served_prepare(ty_train_spec *spec, ty_rule *rule, ty_error *err);
/* Servers get the program's weights as first values, unless they have some; then these are on their way here. */
int ty_served_open(const ty_served_options *o, const ty_rule *rule, ty_program *p, int64_t steps_done, ty_served **out,
                   ty_error *err);
/* Waits for the weights that were asked for last. Before anything reads them. */
int ty_served_settle(ty_served *r, ty_error *err);
/* The gradient of the next step, at this rate, goes out; the next weights are asked for. */
int ty_served_push(ty_served *r, double rate, ty_error *err);
/* Servers that have a folder save, in two places by turns. From worker 0 only; the others do nothing. A save that fails
 * is a warning: training goes on. */
void ty_served_save(ty_served *r);
/* NULL is fine. `finished`: no other worker needs to wait for this one any more. */
void ty_served_close(ty_served *r, bool finished);

/* "127.0.0.1:8891,10.0.0.2:8891", "0/2" and "async", "bounded:4", "sync" or "sync:1" into options. */
int ty_served_parse(const char *servers, const char *worker, const char *mode, ty_arena *a, ty_served_options *out,
                    ty_error *err);

#endif
