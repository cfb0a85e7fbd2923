/* prefetch.h - batches made ready by a thread while the model works on the one before.
 *
 * A bounded ring: the thread fills free batches in order and sleeps when there is none; the consumer sleeps only when
 * the ring is empty. Nobody polls. Errors of the thread arrive at the consumer in their place in the sequence.
 *
 *     while (ty_prefetch_next(p, &batch, err) == 0 && batch != NULL) {
 *         step(batch);
 *         ty_prefetch_release(p, batch);
 *     }
 *
 * One consumer thread. The dataset must outlive the prefetch.
 */
#ifndef TY_CONTAINER_INPUT_PREFETCH_H
#define TY_CONTAINER_INPUT_PREFETCH_H

#include "base/tensor.h"
#include "container/input/dataset.h"
#include "container/input/sampler.h"

#define TY_BATCH_ALIGN 64

typedef struct ty_batch {
    ty_position at;
    int64_t n_valid;        /* rows that count; the rest is padding (see ty_tail) */
    int64_t n_rows;         /* batch_size */
    int n_fields;           /* as in the dataset, same order */
    ty_tensor *field;       /* [batch_size, sample shape ...], data aligned to 64 bytes */
    const int64_t *samples; /* n_rows sample numbers */
} ty_batch;

typedef struct ty_prefetch_config {
    const ty_dataset *dataset;
    ty_sampler_config sampler; /* n_samples is taken from the dataset */
    ty_position start;
    int64_t until_epoch; /* the first epoch that is not read; 0: no end */
    int depth;           /* batches in the ring, 2 to 16; 0: 3 */
} ty_prefetch_config;

typedef struct ty_prefetch ty_prefetch;

int ty_prefetch_start(const ty_prefetch_config *config, ty_prefetch **out, ty_error *err);
/* Stops the thread and waits for it: at most the time of one batch. Batches still held become invalid. NULL is fine. */
void ty_prefetch_stop(ty_prefetch *p);

/* The next batch, or *out = NULL at the end. At most `depth` batches may be held at once; asking for more is an
 * internal error. After a failure every further call fails in the same way. */
int ty_prefetch_next(ty_prefetch *p, const ty_batch **out, ty_error *err);
/* Gives the oldest held batch back. */
void ty_prefetch_release(ty_prefetch *p, const ty_batch *batch);

int64_t ty_prefetch_batches_per_epoch(const ty_prefetch *p);
/* Time that the consumer has spent asleep in ty_prefetch_next, waiting for data. */
double ty_prefetch_waited_ms(const ty_prefetch *p);
/* Memory of the ring. */
size_t ty_prefetch_bytes(const ty_prefetch *p);

#endif
