/* exchanges.h - all to all: a part of everybody's for everybody. */
#ifndef TY_TESTS_API_EXCHANGES_H
#define TY_TESTS_API_EXCHANGES_H

#include "elements.h"

/* ---- all to all ---- */

static void alltoall_equal(void)
{
    int rank = trainyard_rank(), size = trainyard_size();
    for (int t = 1; t < N_TYPES; t++) {
        double in[64];
        int64_t received[16];
        trainyard_tensor out = {0}, from = tensor(types[t], in, 2, size, 3, 0);
        for (int i = 0; i < 3 * size; i++)
            set(types[t], in, i, rank * 5 + i / 3); /* to rank i / 3 */
        CHECK_OK(trainyard_alltoall(&from, NULL, &out, received, NULL));
        CHECK(out.shape[0] == size && out.shape[1] == 3);
        int wrong = 0;
        for (int i = 0; i < 3 * size; i++)
            wrong += get(types[t], out.data, i) != i / 3 * 5 + rank || received[i / 3] != 1;
        CHECK(wrong == 0);
        trainyard_free(out.data);
    }
}

/* Rank r sends r + d rows to rank d. */
static void alltoall_splits(void)
{
    int rank = trainyard_rank(), size = trainyard_size(), n = 0, wrong = 0, at = 0;
    int64_t splits[16], received[16];
    int32_t x[256];
    trainyard_tensor out = {0};
    for (int d = 0; d < size; d++) {
        splits[d] = rank + d;
        for (int i = 0; i < rank + d; i++, n++)
            x[2 * n] = x[2 * n + 1] = rank * 100 + d;
    }
    CHECK_OK(trainyard_alltoall(trainyard_i32(x, n, 2), splits, &out, received, trainyard_with(.name = "uneven")));
    for (int r = 0; r < size; r++) {
        wrong += received[r] != r + rank;
        for (int i = 0; i < 2 * (r + rank); i++, at++)
            wrong += ((int32_t *)out.data)[at] != r * 100 + rank;
    }
    CHECK(wrong == 0 && out.shape[0] * 2 == at);
    trainyard_free(out.data);
}

/* Rank 0 sends nothing, the last rank receives nothing; then nobody sends anything; then one rank has all. */
static void alltoall_zero_splits(void)
{
    int rank = trainyard_rank(), size = trainyard_size();
    int64_t splits[16] = {0}, received[16];
    float x[32];
    trainyard_tensor out = {0};
    for (int i = 0; i < 32; i++)
        x[i] = (float)rank;
    int n = 0;
    for (int d = 0; d < size - 1 && rank > 0; d++)
        n += (int)(splits[d] = 1);
    CHECK_OK(trainyard_alltoall(trainyard_f32(x, n), splits, &out, received, NULL));
    CHECK(out.shape[0] == (rank == size - 1 ? 0 : size - 1) && received[0] == 0);
    if (rank < size - 1)
        CHECK(((float *)out.data)[size - 2] == (float)(size - 1));
    trainyard_free(out.data);
    out = (trainyard_tensor){0};
    memset(splits, 0, sizeof splits);
    CHECK_OK(trainyard_alltoall(trainyard_f32(NULL, 0, 3), splits, &out, NULL, NULL));
    CHECK(out.shape[0] == 0 && out.shape[1] == 3);
    trainyard_free(out.data);
    out = (trainyard_tensor){0};
    splits[0] = rank == size - 1 ? 4 : 0;
    int64_t h = trainyard_alltoall_async(trainyard_f32(x, splits[0]), splits, &out, received, NULL);
    CHECK_OK(trainyard_wait(h));
    CHECK(out.shape[0] == (rank == 0 ? 4 : 0) && received[size - 1] == (rank == 0 ? 4 : 0));
    trainyard_free(out.data);
}

static void alltoall_refused(void)
{
    int rank = trainyard_rank(), size = trainyard_size();
    int64_t splits[16] = {0};
    float x[32] = {0};
    trainyard_tensor out = {0};
    if (size > 1) {
        CHECK_FAILS(trainyard_alltoall(trainyard_f32(x, size + 1), NULL, &out, NULL, NULL), TRAINYARD_E_ARGUMENT);
        CHECK_TEXT("give splits");
    }
    splits[0] = rank == 0 ? 3 : 2; /* wrong on one rank */
    CHECK_FAILS(trainyard_alltoall(trainyard_f32(x, 2), splits, &out, NULL, NULL), TRAINYARD_E_ARGUMENT);
    CHECK_TEXT("rank 0");
    splits[0] = 1;
    CHECK_FAILS(trainyard_alltoall(trainyard_f32(x, 2), splits, &out, NULL, NULL), TRAINYARD_E_ARGUMENT);
    CHECK_TEXT("splits add up to 1");
    float room[1];
    out = *trainyard_f32(room, rank == 0);
    splits[0] = 1;
    CHECK_FAILS(trainyard_alltoall(trainyard_f32(x, 1), splits, &out, NULL, NULL),
                size > 1 ? TRAINYARD_E_ARGUMENT : TRAINYARD_OK);
}

#endif
