/* mistakes.h - calls that differ between ranks, or cannot be: a text on all ranks with both sides, and no rank waits.
 */
#ifndef TY_TESTS_API_MISTAKES_H
#define TY_TESTS_API_MISTAKES_H

#include "elements.h"

/* ---- errors: on all ranks, with both sides, and no rank waits ---- */

static void error_shapes(void)
{
    int rank = trainyard_rank(), size = trainyard_size();
    float x[64] = {0};
    trainyard_tensor out = {0};
    if (size == 1)
        return;
    CHECK_FAILS(trainyard_allreduce(trainyard_f32(x, 17 + (rank == size - 1)), NULL, trainyard_with(.name = "loss")),
                TRAINYARD_E_MISMATCH);
    CHECK_TEXT("rank 0: allreduce \"loss\" average f32[17]; rank ");
    CHECK_TEXT("allreduce \"loss\" average f32[18]");
    /* As many elements, another shape. */
    CHECK_FAILS(trainyard_allreduce(rank == 1 ? trainyard_f32(x, 3, 4) : trainyard_f32(x, 4, 3), NULL, NULL),
                TRAINYARD_E_MISMATCH);
    CHECK_FAILS(trainyard_allreduce(rank == 1 ? trainyard_f32(x, 12) : trainyard_f32(x, 4, 3), NULL, NULL),
                TRAINYARD_E_MISMATCH);
    /* Only first dimensions of gathers are free. */
    CHECK_FAILS(trainyard_allgather(trainyard_f32(x, 2, 3 + (rank == 1)), &out, NULL), TRAINYARD_E_MISMATCH);
    CHECK_TEXT("f32[*,4]");
    CHECK_FAILS(trainyard_reducescatter(trainyard_f32(x, 4 + (rank == 1)), &out, NULL), TRAINYARD_E_MISMATCH);
    CHECK_FAILS(trainyard_broadcast(trainyard_f32(x, 4 + (rank == 1)), 0, NULL), TRAINYARD_E_MISMATCH);
    CHECK(out.data == NULL);
    CHECK_OK(trainyard_barrier(NULL));
}

static void error_types_and_options(void)
{
    int rank = trainyard_rank(), size = trainyard_size();
    double x[16] = {0};
    if (size == 1)
        return;
    CHECK_FAILS(trainyard_allreduce(rank ? trainyard_f32(x, 4) : trainyard_i32(x, 4), NULL, NULL),
                TRAINYARD_E_MISMATCH);
    CHECK_TEXT("i32[4]");
    CHECK_TEXT("f32[4]");
    CHECK_FAILS(
        trainyard_allreduce(trainyard_f32(x, 4), NULL, trainyard_with(.op = rank ? TRAINYARD_SUM : TRAINYARD_MAX)),
        TRAINYARD_E_MISMATCH);
    CHECK_FAILS(trainyard_allreduce(trainyard_f32(x, 4), NULL, trainyard_with(.name = rank ? "a" : "b")),
                TRAINYARD_E_MISMATCH);
    CHECK_FAILS(trainyard_allreduce(trainyard_f32(x, 4), NULL, trainyard_with(.compression = rank ? 1 : 2)),
                TRAINYARD_E_MISMATCH);
    CHECK_FAILS(trainyard_allreduce(trainyard_f32(x, 4), NULL, trainyard_with(.prescale = rank ? 1 : 2)),
                TRAINYARD_E_MISMATCH);
    /* Another call altogether. */
    CHECK_FAILS(rank ? trainyard_barrier(NULL) : trainyard_broadcast(trainyard_f32(x, 4), 0, NULL),
                TRAINYARD_E_MISMATCH);
    CHECK_TEXT("rank 0: broadcast from root 0 f32[4]; rank 1: barrier");
    /* One tensor of a group. */
    trainyard_tensor group[] = {*trainyard_f32(x, 4), *trainyard_f32(x, 5), *trainyard_f32(x, 6 - (rank == 1))};
    CHECK_FAILS(trainyard_grouped_allreduce(group, NULL, 3, trainyard_with(.name = "g")), TRAINYARD_E_MISMATCH);
    CHECK_TEXT("tensor 2: f32[6]; rank 1: tensor 2: f32[5]");
    CHECK_OK(trainyard_allreduce(trainyard_f32(x, 4), NULL, NULL));
}

static void error_roots(void)
{
    int rank = trainyard_rank(), size = trainyard_size();
    float x[4] = {0};
    if (size > 1) {
        CHECK_FAILS(trainyard_broadcast(trainyard_f32(x, 4), rank == 0, NULL), TRAINYARD_E_MISMATCH);
        CHECK_TEXT("root 1");
        CHECK_TEXT("root 0");
    }
    CHECK_FAILS(trainyard_broadcast(trainyard_f32(x, 4), size, NULL), TRAINYARD_E_ARGUMENT);
    CHECK_FAILS(trainyard_broadcast(trainyard_f32(x, 4), -1, NULL), TRAINYARD_E_ARGUMENT);
    /* On one rank: the others must not wait. */
    CHECK_FAILS(trainyard_broadcast(trainyard_f32(x, 4), rank == size - 1 ? 77 : 0, NULL), TRAINYARD_E_ARGUMENT);
    CHECK_TEXT("root 77 is not one of the");
    CHECK_OK(trainyard_broadcast(trainyard_f32(x, 4), size - 1, NULL));
}

static void error_arguments(void)
{
    int rank = trainyard_rank(), size = trainyard_size();
    float x[4] = {0};
    trainyard_tensor bad = *trainyard_f32(x, 4), out = {0};
    CHECK_FAILS(trainyard_allreduce(NULL, NULL, NULL), TRAINYARD_E_ARGUMENT);
    bad.dtype = 13;
    CHECK_FAILS(trainyard_allreduce(rank == size - 1 ? &bad : trainyard_f32(x, 4), NULL, NULL), TRAINYARD_E_ARGUMENT);
    CHECK_TEXT("dtype 13");
    bad = *trainyard_f32(x, 4);
    bad.ndim = 9;
    CHECK_FAILS(trainyard_allreduce(&bad, NULL, NULL), TRAINYARD_E_ARGUMENT);
    CHECK_FAILS(trainyard_allreduce(trainyard_f32(x, -4), NULL, NULL), TRAINYARD_E_ARGUMENT);
    CHECK_FAILS(trainyard_allreduce(trainyard_f32(NULL, 4), NULL, NULL), TRAINYARD_E_ARGUMENT);
    CHECK_FAILS(trainyard_allreduce(trainyard_f32(x, INT64_MAX / 2, 8), NULL, NULL), TRAINYARD_E_ARGUMENT);
    CHECK_FAILS(trainyard_allreduce(trainyard_f32(x, 4), trainyard_f32(x, 2, 2), NULL), TRAINYARD_E_ARGUMENT);
    CHECK_TEXT("must be alike");
    CHECK_FAILS(trainyard_allreduce(trainyard_f32(x, 4), NULL, trainyard_with(.op = 7)), TRAINYARD_E_ARGUMENT);
    CHECK_FAILS(trainyard_allreduce(trainyard_f32(x, 4), NULL, trainyard_with(.compression = 3)), TRAINYARD_E_ARGUMENT);
    CHECK_FAILS(trainyard_allreduce(trainyard_f32(x, 4), NULL, trainyard_with(.set = 5)), TRAINYARD_E_ARGUMENT);
    CHECK_TEXT("no process set 5");
    CHECK_FAILS(trainyard_allgather(trainyard_f32(x, 4), NULL, NULL), TRAINYARD_E_ARGUMENT);
    CHECK_FAILS(trainyard_allgather(NULL, &out, NULL), TRAINYARD_E_ARGUMENT);
    CHECK_FAILS(trainyard_grouped_allreduce(NULL, NULL, 2, NULL), TRAINYARD_E_ARGUMENT);
    CHECK_FAILS(trainyard_wait(0), TRAINYARD_E_STATE);
    int64_t h = trainyard_allreduce_async(trainyard_f32(NULL, 4), NULL, NULL); /* told when it is waited for */
    CHECK(h > 0);
    CHECK_FAILS(trainyard_wait(h), TRAINYARD_E_ARGUMENT);
    CHECK_OK(trainyard_barrier(NULL));
}

#endif
