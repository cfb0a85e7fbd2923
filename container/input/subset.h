/* subset.h - some samples of a data set, as a data set: for data that are divided into those to train on and those to
 * evaluate on.
 *
 *     ty_dataset_split(base, 0.1, seed, &rest, &split, err)     a tenth at random, by the seed
 */
#ifndef TY_CONTAINER_INPUT_SUBSET_H
#define TY_CONTAINER_INPUT_SUBSET_H

#include "container/input/dataset.h"

/* The generator's stream that decides which samples go where. */
#define TY_STREAM_SPLIT 0x53504c49u

/* How many of n samples are split off: at least one, and not all. */
int64_t ty_split_samples(int64_t n, double share);
/* Divides a data set in two, each with at least one sample, in the order that they had: *split has `share` of the
 * samples, rounded, drawn at random; of windows of text, which overlap with their neighbours, the last ones. *rest owns
 * the base, and is closed last. On failure nothing is made and the base stays the caller's. */
int ty_dataset_split(ty_dataset *base, double share, uint64_t seed, ty_dataset **rest, ty_dataset **split,
                     ty_error *err);

#endif
