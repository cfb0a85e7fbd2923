/* feed.h - what the ring of batches (prefetch.h) is filled from: samples by number, or records that stream by.
 *
 * A batch is made in two moves. take() decides what it consists of; one thread at a time calls it, in order, so that
 * the order of batches is the feed's alone, however many threads there are. fill() decodes that into the batch's
 * tensors; any number of threads do it at once, each with a draft of its own.
 *
 * The order of an epoch is a pure function of (data, seed, epoch, settings), so that a position is two integers: the
 * epoch, and the number of the batch in it. start() goes there, which costs a data set nothing and a stream the bytes
 * that lie before.
 */
#ifndef TY_CONTAINER_INPUT_FEED_H
#define TY_CONTAINER_INPUT_FEED_H

#include "container/input/dataset.h"
#include "container/input/sampler.h"

/* A batch that was taken and not filled yet. Its owner (prefetch.c) has room for feed->n_rows samples. */
typedef struct ty_draft {
    ty_position at;
    int64_t n_valid; /* rows that count, from the first; fill() may make it smaller where it leaves out bad records */
    bool ends_epoch; /* the last of its epoch */
    int64_t epoch_records; /* with ends_epoch: samples of a data set; records that a stream had, before they were
                              divided among ranks (by files: in the files of this one) */
    int64_t longest;       /* ty_sampler_longest; of a stream 0 */
    int64_t *samples;      /* [n_rows]; a stream's: numbers of records in their epoch */
    void *impl;            /* the feed's, made by open_draft */
} ty_draft;

typedef struct ty_data_feed ty_data_feed;

typedef struct ty_data_feed_ops {
    /* Before the first take, once. until_epoch: the first epoch that is not read; 0: no end. A position behind the end
     * of a stream's epoch is the beginning of the next; of a data set it is refused. */
    int (*start)(ty_data_feed *feed, ty_position at, int64_t until_epoch, ty_error *err);
    /* What the feed keeps with a draft. Both NULL: nothing. close_draft may find impl NULL. */
    int (*open_draft)(ty_data_feed *feed, ty_draft *draft, ty_error *err);
    void (*close_draft)(ty_data_feed *feed, ty_draft *draft);
    /* 1 with everything in *draft set, 0 at the end of all, -1; after 0 or -1 it is not called again. An epoch without
     * a batch is one batch without a valid row that ends it. */
    int (*take)(ty_data_feed *feed, ty_draft *draft, ty_error *err);
    /* out[i]: n_rows samples of field i, C order. Rows behind n_valid are copies of valid ones, or zeros. */
    int (*fill)(ty_data_feed *feed, ty_draft *draft, void *const *out, ty_error *err);
    /* From the thread that takes: the next take begins epoch + 1, unless it would begin a later one anyway. */
    int (*skip_epoch)(ty_data_feed *feed, int64_t epoch, ty_error *err);
    /* From any thread: a take() that sleeps comes back soon, with 0 or -1, and so does every later one. NULL: none
     * sleeps. */
    void (*stop)(ty_data_feed *feed);
    /* Memory that a draft has come to, beside its samples. NULL: none. */
    size_t (*draft_bytes)(const ty_draft *draft);
    /* Memory that a thread takes while it fills a draft, beside it: the most that one has come to, or what is known of
     * it before. NULL: none. */
    size_t (*work_bytes)(const ty_data_feed *feed);
    /* Where a row of a draft that has been filled comes from: file and line, or record and byte. */
    void (*place)(const ty_data_feed *feed, const ty_draft *draft, int field, int64_t row, char *out, size_t n);
    void (*close)(ty_data_feed *feed); /* frees it; no drafts are left */
} ty_data_feed_ops;

struct ty_data_feed {
    const ty_data_feed_ops *ops;
    int n_fields;
    const ty_field_info *field; /* types are known; smallest and largest values where the data were looked at */
    int64_t n_rows;             /* of a batch */
    int64_t epoch_batches;      /* of an epoch; 0: not known before it ends */
    size_t kept_bytes;          /* memory that the feed may come to, beside drafts: what is read, the shuffle buffer,
                                   the numbers of all samples in their order */
    int64_t asleep_ns;          /* that take() has waited for bytes; of the thread that takes */
};

/* Samples by number, in the sampler's order. n_samples is taken from the data set, which must outlive the feed.
 * augment: ty_pick. */
int ty_dataset_feed(const ty_dataset *dataset, const ty_sampler_config *order, bool augment, ty_data_feed **out,
                    ty_error *err);
void ty_data_feed_close(ty_data_feed *feed); /* NULL is fine */

#endif
