/* lengths.h - how long samples are, of fields whose rows are filled up to the longest (max_length).
 *
 * A row's length is what is left of it without the filling at its end, or at its beginning where it is filled up there:
 * the place behind the last element that is not the value that fills up. A sample is as long as its longest row. What
 * lies beyond holds nothing but filling, and a batch of short samples can do without it (sampler.h brings them
 * together).
 */
#ifndef TY_CONTAINER_INPUT_LENGTHS_H
#define TY_CONTAINER_INPUT_LENGTHS_H

#include "container/input/dataset.h"

/* A field of a data set whose rows are [longest, ...]. */
typedef struct ty_filled {
    int field;
    double fill; /* what fills up, as it is in the batch */
    bool left;   /* rows begin with it */
} ty_filled;

/* What fills a declared field up. */
ty_filled ty_filled_of(const ty_field *declared, int field);

/* Reads these fields of n samples, which lie evenly among all (n_samples: all), on n_threads threads (0: as many as
 * there are processors); length[n]: 0 to the longest row's. */
int ty_lengths_measure(const ty_dataset *ds, const ty_filled *filled, int n_filled, int n_threads, int64_t n,
                       uint32_t *length, ty_error *err);

/* The columns that n_rows rows of `longest` keep in rows of `length`, copied to `to`: the last ones where they are
 * filled up on the left, else the first. inner_bytes: of a column. */
void ty_filled_cut(const ty_filled *f, const void *from, int64_t n_rows, int64_t longest, int64_t length,
                   size_t inner_bytes, void *to);

#endif
