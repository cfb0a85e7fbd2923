/* gathers.h - rows of all ranks, and parts of a reduction. */
#ifndef TY_TESTS_API_GATHERS_H
#define TY_TESTS_API_GATHERS_H

#include "elements.h"

/* ---- gathers ---- */

static void allgather_rows(void)
{
    int rank = trainyard_rank(), size = trainyard_size();
    for (int t = 0; t < N_TYPES; t++) {
        double in[64];
        trainyard_tensor out = {0}, from = tensor(types[t], in, 2, rank + 1, 3, 0);
        for (int i = 0; i < 3 * (rank + 1); i++)
            set(types[t], in, i, types[t] == TRAINYARD_BOOL ? rank % 2 : rank * 3 + i % 3);
        CHECK_OK(trainyard_allgather(&from, &out, NULL));
        CHECK(out.dtype == types[t] && out.ndim == 2 && out.shape[0] == size * (size + 1) / 2 && out.shape[1] == 3);
        int wrong = 0, at = 0;
        for (int r = 0; r < size; r++)
            for (int i = 0; i < 3 * (r + 1); i++, at++)
                wrong += get(types[t], out.data, at) != (types[t] == TRAINYARD_BOOL ? r % 2 : r * 3 + i % 3);
        CHECK(wrong == 0);
        trainyard_free(out.data);
    }
}

static void allgather_room_and_nothing(void)
{
    int rank = trainyard_rank(), size = trainyard_size();
    int32_t mine = rank, all[64] = {0};
    trainyard_tensor out = {.data = all, .ndim = 1, .shape = {64}};
    CHECK_OK(trainyard_allgather(trainyard_i32(&mine), &out, NULL)); /* a number is a row */
    CHECK(out.data == all && out.ndim == 1 && out.shape[0] == size && all[size - 1] == size - 1);
    /* Only the last rank has a row. */
    out.shape[0] = 64;
    CHECK_OK(trainyard_allgather(trainyard_i32(&mine, rank == size - 1), &out, NULL));
    CHECK(out.shape[0] == 1 && all[0] == size - 1);
    /* No rank has one. */
    trainyard_tensor made = {0};
    CHECK_OK(trainyard_allgather(trainyard_i32(NULL, 0, 5), &made, NULL));
    CHECK(made.data && made.shape[0] == 0 && made.shape[1] == 5);
    trainyard_free(made.data);
    /* One rank has no room: all are told. */
    out.shape[0] = rank == size - 1 ? size - 1 : 64;
    CHECK_FAILS(trainyard_allgather(trainyard_i32(&mine), &out, NULL), TRAINYARD_E_ARGUMENT);
    CHECK_TEXT("out has room for");
}

static void allgather_async(void)
{
    int rank = trainyard_rank(), size = trainyard_size();
    float x[8][4];
    trainyard_tensor out[8] = {{0}};
    int64_t handles[8];
    for (int k = 0; k < 8; k++) {
        for (int i = 0; i < 4; i++)
            x[k][i] = (float)(k * 100 + rank);
        handles[k] = trainyard_allgather_async(trainyard_f32(x[k], k % 3, 2), &out[k], NULL);
    }
    for (int k = 0; k < 8; k++) {
        CHECK_OK(trainyard_wait(handles[k]));
        CHECK(out[k].shape[0] == k % 3 * size);
        if (k % 3)
            CHECK(((float *)out[k].data)[2 * (k % 3) * size - 1] == (float)(k * 100 + size - 1));
        trainyard_free(out[k].data);
    }
}

static void reducescatter_parts(void)
{
    int rank = trainyard_rank(), size = trainyard_size();
    for (int t = 0; t < N_TYPES; t++)
        for (int op = TRAINYARD_AVERAGE; op <= TRAINYARD_PRODUCT; op++)
            for (int rows = 0; rows <= 2 * size + 1;
                 rows += size > 1 ? size - 1 : 1) { /* even, uneven, fewer than ranks */
                double in[256];
                trainyard_tensor out = {0}, from = tensor(types[t], in, 2, rows, 3, 0);
                if (types[t] == TRAINYARD_BOOL && op == TRAINYARD_AVERAGE)
                    continue;
                fill(types[t], op, in, rows * 3);
                CHECK_OK(trainyard_reducescatter(&from, &out, trainyard_with(.op = op)));
                int mine = rows / size + (rank < rows % size), first = 0, wrong = 0;
                for (int r = 0; r < rank; r++)
                    first += rows / size + (r < rows % size);
                CHECK(out.ndim == 2 && out.shape[0] == mine && out.shape[1] == 3);
                for (int i = 0; i < mine * 3; i++)
                    wrong += !near(types[t], get(types[t], out.data, i), reduced(types[t], op, size, first * 3 + i));
                CHECK(wrong == 0);
                trainyard_free(out.data);
            }
}

static void reducescatter_scaled_and_refused(void)
{
    int size = trainyard_size();
    float x[64];
    trainyard_tensor out = {0};
    for (int i = 0; i < 2 * size; i++)
        x[i] = 1;
    CHECK_OK(trainyard_reducescatter(trainyard_f32(x, size, 2), &out,
                                     trainyard_with(.op = TRAINYARD_SUM, .prescale = 2, .postscale = 0.5)));
    CHECK(((float *)out.data)[1] == (float)size && x[0] == 1);
    trainyard_free(out.data);
    out = (trainyard_tensor){0};
    int64_t h = trainyard_reducescatter_async(trainyard_f32(x, size), &out, trainyard_with(.op = TRAINYARD_SUM));
    CHECK_OK(trainyard_wait(h));
    CHECK(out.shape[0] == 1 && ((float *)out.data)[0] == (float)size);
    trainyard_free(out.data);
    out = (trainyard_tensor){0};
    CHECK_FAILS(trainyard_reducescatter(trainyard_f32(x), &out, NULL), TRAINYARD_E_ARGUMENT);
    CHECK_TEXT("single number");
}

#endif
