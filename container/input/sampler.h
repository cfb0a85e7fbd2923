/* sampler.h - which samples make which batch.
 *
 * The order of an epoch is a pure function of (seed, stream, epoch): 0..n-1, or a permutation drawn from the counter
 * based generator. So a position is two integers, to save one costs nothing, and to return to one costs nothing but the
 * permutation of its epoch.
 *
 * Order is defined on the global sequence. With n_shards processes a global batch is n_shards * batch_size rows, and
 * shard r takes rows r * batch_size .. (r + 1) * batch_size - 1 of it: the same global batches for every division of
 * the same global batch size.
 *
 * Where samples have lengths, batches can be of samples that are nearly as long (`length`): of every so many batches of
 * the order the samples are sorted by length, as tf.data's bucket_by_sequence_length and Hugging Face's group_by_length
 * do it, and then all full batches of the epoch get an order of their own. What is left of the last one stays where it
 * is, so that which samples are left out does not depend on their lengths.
 */
#ifndef TY_CONTAINER_INPUT_SAMPLER_H
#define TY_CONTAINER_INPUT_SAMPLER_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* The generator's stream for the order of training data, so that it meets no other use of the seed. */
#define TY_STREAM_SHUFFLE 0x53485546u

/* The same for the order of batches whose samples are sorted. */
#define TY_STREAM_LENGTHS 0x4c454e47u

/* Up to so many samples the order of an epoch is a table; beyond, each place is worked out when it is asked for:
 * another permutation, and no memory. */
#define TY_SAMPLER_TABLE (INT64_C(1) << 28)
/* What the table takes; 0 beyond. */
size_t ty_sampler_table_bytes(int64_t n_samples);

typedef enum ty_tail {
    TY_TAIL_DROP, /* training: a last batch that is not full is left out (other samples each epoch, if shuffled) */
    TY_TAIL_PAD   /* evaluation: it is filled up with samples from the start, and n_valid says how many count */
} ty_tail;

typedef struct ty_sampler_config {
    int64_t n_samples;
    int64_t batch_size; /* rows of this shard */
    bool shuffle;
    uint64_t seed;
    uint32_t stream;         /* TY_STREAM_SHUFFLE */
    int64_t shard, n_shards; /* n_shards 0 counts as 1 */
    ty_tail tail;
    const uint32_t *length; /* [n_samples], outlives the sampler; NULL: nothing is known of lengths */
    int64_t sorted_batches; /* global batches whose samples are sorted among themselves; 0: none. With length and no
                               more samples than TY_SAMPLER_TABLE */
    int64_t epoch_batches;  /* of an epoch, where processes with samples of their own agreed on a number; 0: what is
                               there. TY_TAIL_DROP: at most that; TY_TAIL_PAD may have more, without valid rows */
} ty_sampler_config;

typedef struct ty_position {
    int64_t epoch, batch; /* the batch to come next; batch < n_batches */
} ty_position;

typedef struct ty_sampler {
    ty_sampler_config config;
    int64_t n_batches;     /* an epoch, the same for every shard; at least 1 */
    uint32_t *permutation; /* of `permuted_epoch`; NULL without any order, or without a table. Private. */
    int64_t permuted_epoch;
    uint64_t *by_length;   /* room to sort in; NULL: nothing is sorted. Private, as are these: */
    uint32_t *batch_order; /* of the epoch's full batches */
    int64_t n_full;
} ty_sampler;

/* Refuses a batch size below 1, a shard outside its number, no samples, and with TY_TAIL_DROP fewer samples than one
 * global batch (it would never train). */
int ty_sampler_init(ty_sampler *s, const ty_sampler_config *config, ty_error *err);
void ty_sampler_fini(ty_sampler *s);
/* Memory of its table. */
size_t ty_sampler_bytes(const ty_sampler *s);

/* Sample numbers of the batch at a position, to out[batch_size]; returns how many of them are valid, counted from the
 * first (0 is possible for a late shard of a padded batch). */
int64_t ty_sampler_batch(ty_sampler *s, ty_position at, int64_t *out);

/* Of all rows of the global batch at that position the longest; 0 where nothing is known of lengths. Of the epoch that
 * was drawn last. */
int64_t ty_sampler_longest(const ty_sampler *s, ty_position at);

/* The position behind `at`. */
ty_position ty_sampler_after(const ty_sampler *s, ty_position at);
/* Position of the batch number `step` counted from the start of epoch 0. */
ty_position ty_sampler_at_step(const ty_sampler *s, int64_t step);

#endif
