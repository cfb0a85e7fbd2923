/* prefetch.h - batches made ready by threads while the model works on the one before.
 *
 * A bounded ring: workers draw batches in order, one at a time, and decode them side by side; they sleep when the ring
 * is full, the consumer sleeps only while its next batch is not ready. Nobody polls. Batches come out in order and with
 * the same bits whatever the number of workers; errors arrive at the consumer in their place in the sequence.
 *
 *     while (ty_prefetch_next(p, &batch, err) == 0 && batch != NULL) {
 *         step(batch);
 *         ty_prefetch_release(p, batch);
 *     }
 *
 * One consumer thread. The data set or feed must outlive the prefetch.
 */
#ifndef TY_CONTAINER_INPUT_PREFETCH_H
#define TY_CONTAINER_INPUT_PREFETCH_H

#include "base/tensor.h"
#include "container/input/feed.h"

#define TY_BATCH_ALIGN 64

typedef struct ty_batch {
    ty_position at;
    int64_t n_valid;        /* rows that count; the rest is padding (see ty_tail) */
    int64_t n_rows;         /* batch_size */
    int64_t longest;        /* of the samples of all shards; 0: not known (ty_sampler_config.length) */
    bool ends_epoch;        /* the last of its epoch */
    int64_t epoch_records;  /* with ends_epoch: ty_draft */
    int n_fields;           /* as in the feed, same order */
    ty_tensor *field;       /* [batch_size, sample shape ...], data aligned to 64 bytes */
    const int64_t *samples; /* n_rows sample numbers */
} ty_batch;

typedef struct ty_prefetch_config {
    ty_data_feed *feed;        /* not started; NULL: of the data set in the sampler's order */
    const ty_dataset *dataset; /* without a feed, with what follows */
    ty_sampler_config sampler; /* n_samples is taken from the dataset */
    bool augment;              /* training data: fields that vary from epoch to epoch do, by the sampler's seed */
    ty_position start;
    int64_t until_epoch; /* the first epoch that is not read; 0: no end */
    int depth;           /* batches in the ring, 2 to 16; 0: 3, or max_workers + 2 if that is more */
    int max_depth;       /* that there may be later (ty_prefetch_set_depth); 0: depth */
    int n_workers;       /* threads that decode, up to 64; 0: 1 */
    int max_workers;     /* that there may be later (ty_prefetch_set_workers); 0: n_workers */
    size_t memory_bytes; /* all of it may take, with what the feed keeps, drafts, and what threads decode in: of
                            threads and batches there are as many as fit, and it is refused where that is less than
                            one and two; 0: no limit */
} ty_prefetch_config;

/* Where time goes. Sums since the start. */
typedef struct ty_prefetch_waits {
    double elapsed_ms;
    double step_ms;   /* the consumer slept for want of a batch */
    double source_ms; /* drawing batches slept for bytes: of a disk, a network, a FIFO */
    double draw_ms;   /* drawing batches worked: where records begin and end, their order */
    double parse_ms;  /* workers decoded, all of them together */
    double room_ms;   /* workers slept for want of a free batch */
    int n_workers;
    const char *cause; /* what bounds the rate: "the step", "reading", "framing", "parsing" */
} ty_prefetch_waits;

typedef struct ty_prefetch ty_prefetch;

int ty_prefetch_start(const ty_prefetch_config *config, ty_prefetch **out, ty_error *err);
/* Stops the threads and waits for them: at most the time of one batch. Batches still held become invalid. NULL is
 * fine. */
void ty_prefetch_stop(ty_prefetch *p);

/* Waits up to ms for what ty_prefetch_next is to give, be it a failure; false: it is still to come. For who may have
 * to leave while a FIFO gives nothing. */
bool ty_prefetch_wait(ty_prefetch *p, int64_t ms);
/* The next batch, or *out = NULL at the end. At most `depth` batches may be held at once; asking for more is an
 * internal error. After a failure every further call fails in the same way. */
int ty_prefetch_next(ty_prefetch *p, const ty_batch **out, ty_error *err);
/* Gives the oldest held batch back. */
void ty_prefetch_release(ty_prefetch *p, const ty_batch *batch);

/* Drops what is left of the epoch of the batch that was taken last: the next one is the first of the epoch behind it.
 * For ranks whose companions have run out. */
void ty_prefetch_skip_epoch(ty_prefetch *p);

/* Where a row of a batch that is held comes from, for messages. Returns out. */
const char *ty_prefetch_place(const ty_prefetch *p, const ty_batch *batch, int field, int64_t row, char *out, size_t n);

/* 0: not known before an epoch ends. */
int64_t ty_prefetch_batches_per_epoch(const ty_prefetch *p);
/* Time that the consumer has spent asleep in ty_prefetch_next, waiting for data. */
double ty_prefetch_waited_ms(const ty_prefetch *p);
void ty_prefetch_measure(ty_prefetch *p, ty_prefetch_waits *out);
/* The cause that these times show. */
const char *ty_prefetch_cause(const ty_prefetch_waits *w);
/* From now on n threads decode, 1 to max_workers; others sleep. Fewer where threads cannot be started. The order of
 * batches does not change. */
void ty_prefetch_set_workers(ty_prefetch *p, int n);
int ty_prefetch_max_workers(const ty_prefetch *p);
/* Batches that are in use at most, now and later; what was made stays. The order of batches does not change. */
int ty_prefetch_depth(ty_prefetch *p);
int ty_prefetch_max_depth(ty_prefetch *p); /* that memory allows */
void ty_prefetch_set_depth(ty_prefetch *p, int n);
/* Memory of the ring: of batches in use, with their drafts. */
size_t ty_prefetch_bytes(ty_prefetch *p);
/* What the threads decode in, all of them together. */
size_t ty_prefetch_work_bytes(ty_prefetch *p);

#endif
