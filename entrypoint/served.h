/* served.h - training with weights that live in parameter servers (dist/server/client.h).
 *
 * The worker computes gradients and nothing else: before a step it has the servers' weights, after it the servers have
 * its gradient. The compiled step is that of plain training with one change: its update is SGD with momentum, whose
 * memory begins each step at zero. After the step that memory is the gradient, clipped and averaged as the recipe says;
 * what the update made of the weights is overwritten by those that are pulled next. The rule that counts is the
 * recipe's, applied by the servers; the schedule's rate travels with each push.
 *
 * In a job (`is_job`) the workers are ranks of one training: they split its samples, and worker 0 alone reads and
 * writes checkpoints and writes the model. A checkpoint has what servers keep beside weights, so that a job goes on
 * from worker 0's folder alone, with any number of servers and workers. At its end worker 0 waits until all others have
 * left, so that what is measured, saved and written has all their steps.
 *
 * A pull is begun as soon as a step is pushed, and waited for before the weights are read: so reading the next batch
 * hides it. With sparse_rows tables travel by the rows that a batch names, both ways, and the pull waits for the batch;
 * whole tables are pulled where something reads them: an evaluation, a checkpoint, the model.
 */
#ifndef TY_ENTRYPOINT_SERVED_H
#define TY_ENTRYPOINT_SERVED_H

#include "compiler/compiler.h"
#include "dist/server/client.h"
#include "dist/server/seal.h"

typedef struct ty_served_options {
    const char *const *servers; /* addresses, a shard each */
    int n_servers;
    int worker, workers; /* this one of so many; 0 gives the first values */
    ty_server_mode mode;
    int staleness, backup;
    const char *interface; /* or NULL */
    ty_partitioner partitioner;
    const uint8_t *key;  /* [TY_SEAL_KEY_BYTES] what servers and workers prove to each other (dist/server/seal.h) */
    int64_t patience_ms; /* with a server that does not answer; 0: 10 minutes */
    bool is_job;
    int local, locals; /* job: this worker of those of its host */
    int host, hosts;   /* job: and its host of all */
} ty_served_options;

/* The number that tells jobs apart by accident; against intent there is the key. */
#define TY_SERVED_JOB UINT64_C(0x747261696e796172)

typedef struct ty_served ty_served;

/* Where a worker begins: its steps, and the batch to come. */
typedef struct ty_served_start {
    int64_t step, epoch, batch;
} ty_served_start;

/* Whether workers are ranks of one training. NULL: no. */
bool ty_served_is_job(const ty_served_options *o);

/* Makes of a specification that of a worker, and *rule of its optimizer. TY_E_CONFIG: what servers cannot do, such as
 * weight decay, averages or accumulation, by name. */
int ty_served_prepare(ty_train_spec *spec, ty_rule *rule, ty_error *err);
/* What servers cannot do of the model itself: hold weights to constraints. */
int ty_served_check_model(const ty_model *m, ty_error *err);
/* Lists the program's weights; nobody is called yet. */
int ty_served_new(const ty_served_options *o, const ty_rule *rule, ty_program *p, ty_served **out, ty_error *err);
/* What a checkpoint of worker 0 of a job has beside the program's states: name, type and memory of number i; false:
 * there are no more. */
bool ty_served_state(ty_served *r, int i, const char **name, ty_tensor *out);
/* Servers get the program's weights as first values, or, `resumed`, all that a checkpoint had, unless they have some;
 * then these are on their way here. *start: of this worker; in a job it becomes worker 0's. */
int ty_served_open(ty_served *r, bool resumed, ty_served_start *start, ty_error *err);
/* All weights are the servers'. Before anything but a step reads them. */
int ty_served_settle(ty_served *r, ty_error *err);
/* Those are that a step with these inputs reads. */
int ty_served_read(ty_served *r, const void *const *inputs, ty_error *err);
/* The gradient of the next step, at this rate, goes out; the next weights are asked for. rows: that it is the mean of;
 * in sync mode the step is the mean over the rows of all workers. */
int ty_served_push(ty_served *r, double rate, int64_t rows, ty_error *err);
/* Whether workers make each step together, so that they have to end together: sync mode without backup workers. */
bool ty_served_in_step(const ty_served_options *o);
/* Those: *v becomes the least that any worker asks with here, or the most. TY_E_STOPPED: told to stop meanwhile. */
int ty_served_agree(ty_served *r, bool most, int64_t *v, ty_error *err);
/* Job, worker 0: what ty_served_state lists becomes what servers have now. */
int ty_served_fetch(ty_served *r, ty_error *err);
/* Job, worker 0: waits until all other workers have left, then for the weights of then; others go on at once.
 * `stopped`: for those that came, a minute at most. Once: later calls do nothing. */
int ty_served_join(ty_served *r, bool stopped, ty_error *err);
/* Job: this worker is through. Before it is closed, after it was successful. */
int ty_served_leave(ty_served *r, ty_error *err);
/* Servers that have a folder save, in two places by turns. From worker 0 only; the others do nothing. A save that fails
 * is a warning: training goes on. */
void ty_served_save(ty_served *r);
/* NULL is fine. `finished`: no other worker needs to wait for this one any more. */
void ty_served_close(ty_served *r, bool finished);

/* What commands prove to each other: of the secret in TRAINYARD_SECRET; without it of a word that everybody knows. */
int ty_served_key(uint8_t key[TY_SEAL_KEY_BYTES], ty_error *err);
/* "127.0.0.1:8891,10.0.0.2:8891", "0/2" and "async", "bounded:4", "sync" or "sync:1" into options. */
int ty_served_parse(const char *servers, const char *worker, const char *mode, ty_arena *a, ty_served_options *out,
                    ty_error *err);

#endif
