/* joining.h - ranks that have run out of data. */
#ifndef TY_TESTS_API_JOINING_H
#define TY_TESTS_API_JOINING_H

#include "elements.h"

/* ---- join ---- */

/* Rank r has r + 1 batches; who runs out first joins first. */
static void join_uneven(void)
{
    int rank = trainyard_rank(), size = trainyard_size();
    for (int step = 0; step <= rank; step++) {
        float x[100], low = (float)rank;
        int there = size - step; /* ranks step ... size - 1 */
        double sum = 0;
        for (int i = 0; i < 100; i++)
            x[i] = (float)(rank + 1);
        for (int r = step; r < size; r++)
            sum += r + 1;
        CHECK_OK(trainyard_allreduce(trainyard_f32(x, 100), NULL, NULL));
        CHECK(fabs(x[99] - sum / size) < 1e-5);
        CHECK_OK(trainyard_allreduce(trainyard_f32(&low, 1), NULL, trainyard_with(.op = TRAINYARD_MIN)));
        CHECK(low == (float)step);
        trainyard_tensor out = {0};
        CHECK_OK(trainyard_allgather(trainyard_f32(x, 2), &out, NULL));
        CHECK(out.shape[0] == 2 * there);
        trainyard_free(out.data);
        out = (trainyard_tensor){0};
        CHECK_OK(trainyard_reducescatter(trainyard_f32(x, size), &out, trainyard_with(.op = TRAINYARD_SUM)));
        CHECK(fabs(((float *)out.data)[0] - there * sum / size) < 1e-4);
        trainyard_free(out.data);
        int64_t n = step;
        CHECK_OK(trainyard_broadcast(trainyard_i64(&n, 1), size - 1, NULL));
        CHECK_OK(trainyard_barrier(NULL));
    }
    CHECK(trainyard_join() == size - 1);
    CHECK_OK(trainyard_barrier(NULL)); /* and on together */
}

static void join_refuses(void)
{
    int rank = trainyard_rank(), size = trainyard_size();
    float x[16] = {0};
    trainyard_tensor out = {0};
    if (size == 1) {
        CHECK(trainyard_join() == 0);
        return;
    }
    if (rank > 0) {
        CHECK_FAILS(trainyard_broadcast(trainyard_f32(x, 4), 0, NULL), TRAINYARD_E_MISMATCH);
        CHECK_TEXT("rank 0 has joined");
        CHECK_FAILS(trainyard_alltoall(trainyard_f32(x, size), NULL, &out, NULL, NULL), TRAINYARD_E_MISMATCH);
        /* A fault and a mismatch among the others. */
        CHECK_FAILS(trainyard_broadcast(trainyard_f32(x, 4), -1, NULL), TRAINYARD_E_ARGUMENT);
        if (size > 2)
            CHECK_FAILS(trainyard_allreduce(trainyard_f32(x, rank), NULL, NULL), TRAINYARD_E_MISMATCH);
    }
    CHECK(trainyard_join() > 0);
}

#endif
