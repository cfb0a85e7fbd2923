/* ours_input.h - one input of the benchmark's step: an array [batches, B, ...] in a mapped .npy file. */
#ifndef TY_BENCH_OURS_INPUT_H
#define TY_BENCH_OURS_INPUT_H

#include "base/file.h"
#include "base/tensor.h"

typedef struct ours_input {
    const char *name;
    ty_file_view view;
    const uint8_t *data;
    ty_type type; /* of one batch */
    int64_t batches;
    size_t batch_bytes;
    void *aligned; /* a batch is copied here if it does not begin at a multiple of 64 */
} ours_input;

/* Fails on what is not little-endian in C order. After a failure too it is closed. */
int ours_input_open(ours_input *in, const char *name, const char *path, ty_error *err);
/* Batches of so many rows from now on: those of the first one, round and round. */
int ours_input_resize(ours_input *in, int64_t rows, ty_error *err);
void ours_input_close(ours_input *in);
/* The batch of a step, round and round; valid until the next call. */
const void *ours_input_batch(const ours_input *in, int step);

#endif
