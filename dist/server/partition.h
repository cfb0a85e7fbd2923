/* partition.h - how a variable is cut into parts, and which shard gets which.
 *
 * TensorFlow's semantics (tensorflow/python/distribute/sharded_variable.py), always along axis 0:
 *     fixed      min(n, dim0) parts
 *     min size   as many parts as there can be with at least so many bytes each, at most max_shards
 *                (its defaults: 256 KiB, 1)
 *     max size   as few parts as there can be with at most so many bytes each (a part is at least one row);
 *                max_shards, if given, wins
 * A variable of rank 0 or with no row is one part.
 *
 * Rows go to parts by one of two rules, those of tf.nn.embedding_lookup:
 *     div   neighbours together: of R rows in P parts the first R % P parts have one more
 *     mod   row r in part r % P, there at r / P: hot rows that are neighbours are spread
 */
#ifndef TY_DIST_SERVER_PARTITION_H
#define TY_DIST_SERVER_PARTITION_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum ty_partitioner_kind {
    TY_PARTITION_FIXED,
    TY_PARTITION_MIN_SIZE,
    TY_PARTITION_MAX_SIZE
} ty_partitioner_kind;

typedef struct ty_partitioner {
    ty_partitioner_kind kind;
    int64_t bytes;  /* min size, max size; 0: 256 KiB */
    int max_shards; /* fixed: how many; min size: 0 is 1; max size: 0 is no limit */
} ty_partitioner;

/* Number of parts of a variable of `rows` rows of `row_bytes` each: at least 1. */
int ty_partition_count(const ty_partitioner *p, int64_t rows, int64_t row_bytes);

/* Rows of one part of `parts`. */
int64_t ty_partition_rows(int64_t rows, int parts, int part, bool mod);
/* Part and place of row r, 0 <= r < rows. */
void ty_partition_find(int64_t rows, int parts, bool mod, int64_t r, int *part, int64_t *place);
/* The row that stands at `place` of `part`: the inverse. */
int64_t ty_partition_row(int64_t rows, int parts, bool mod, int part, int64_t place);

/* Gives n parts of these sizes to shards so that bytes are even: the largest first, each to the shard that has least so
 * far (of several the lowest). shard[i] is filled. Deterministic: every host gets the same. */
void ty_partition_balance(const int64_t *bytes, int n, int n_shards, int *shard);

#endif
