/* sets.h - some of the ranks among themselves. */
#ifndef TY_TESTS_API_SETS_H
#define TY_TESTS_API_SETS_H

#include "elements.h"

/* ---- process sets ---- */

static void process_sets(void)
{
    int rank = trainyard_rank(), size = trainyard_size(), evens[8], odds[8], all[16], n_even = 0, n_odd = 0;
    for (int r = 0; r < size; r++)
        if (r % 2)
            odds[n_odd++] = r;
        else
            evens[n_even++] = r;
    for (int r = 0; r < size; r++)
        all[r] = size - 1 - r; /* in another order */
    int even = trainyard_process_set(evens, n_even), back = trainyard_process_set(all, size);
    CHECK(even == 1 && back == 2);
    int odd = n_odd ? trainyard_process_set(odds, n_odd) : 3;
    CHECK(odd == 3);
    CHECK(trainyard_process_set_size(even) == n_even && trainyard_process_set_size(0) == size);
    CHECK(trainyard_process_set_rank(back) == size - 1 - rank && trainyard_process_set_rank(0) == rank);
    CHECK(trainyard_process_set_rank(even) == (rank % 2 ? TRAINYARD_E_NOT_MEMBER : rank / 2));
    int mine = rank % 2 ? odd : even, n_mine = rank % 2 ? n_odd : n_even;
    float x = (float)rank, y = 1;
    CHECK_OK(trainyard_allreduce(trainyard_f32(&x, 1), NULL, trainyard_with(.op = TRAINYARD_SUM, .set = mine)));
    CHECK(x == (float)(rank % 2 ? n_odd * n_odd : n_even * (n_even - 1)));
    CHECK_OK(trainyard_allreduce(trainyard_f32(&y, 1), NULL, trainyard_with(.op = TRAINYARD_SUM, .set = back)));
    CHECK(y == (float)size);
    /* Rows in the set's order; roots are ranks of the world. */
    int32_t number = rank;
    trainyard_tensor out = {0};
    CHECK_OK(trainyard_allgather(trainyard_i32(&number, 1), &out, trainyard_with(.set = back)));
    CHECK(((int32_t *)out.data)[0] == size - 1);
    trainyard_free(out.data);
    CHECK_OK(trainyard_broadcast(trainyard_i32(&number, 1), rank % 2, trainyard_with(.set = mine)));
    CHECK(number == rank % 2);
    if (n_odd) {
        CHECK_FAILS(trainyard_broadcast(trainyard_i32(&number, 1), !(rank % 2), trainyard_with(.set = mine)),
                    TRAINYARD_E_ARGUMENT);
        CHECK_FAILS(trainyard_barrier(trainyard_with(.set = rank % 2 ? even : odd)), TRAINYARD_E_NOT_MEMBER);
        CHECK_TEXT("is not in process set");
    }
    if (n_mine > 1) {
        CHECK_FAILS(trainyard_allreduce(trainyard_f32(&x, rank < 2), NULL, trainyard_with(.set = mine)),
                    TRAINYARD_E_MISMATCH);
        CHECK_TEXT(rank % 2 ? "rank 1: allreduce" : "rank 0: allreduce"); /* numbers of the world */
    }
    CHECK_OK(trainyard_process_set_free(even));
    CHECK_FAILS(trainyard_process_set_size(even), TRAINYARD_E_ARGUMENT);
    CHECK(trainyard_process_set(evens, n_even) == even); /* the number is free again */
    CHECK_OK(trainyard_process_set_free(even));
    CHECK_OK(trainyard_process_set_free(back));
    if (n_odd)
        CHECK_OK(trainyard_process_set_free(odd));
}

static void process_sets_refused(void)
{
    int rank = trainyard_rank(), size = trainyard_size();
    int list[3] = {0, 0, size};
    CHECK_FAILS(trainyard_process_set(list, 0), TRAINYARD_E_ARGUMENT);
    CHECK_FAILS(trainyard_process_set(list + 2, 1), TRAINYARD_E_ARGUMENT);
    CHECK_FAILS(trainyard_process_set_free(0), TRAINYARD_E_ARGUMENT);
    CHECK_FAILS(trainyard_process_set_free(9), TRAINYARD_E_ARGUMENT);
    if (size > 1) {
        CHECK_FAILS(trainyard_process_set(list, 2), TRAINYARD_E_ARGUMENT);
        CHECK_TEXT("twice");
        list[0] = rank;
        CHECK_FAILS(trainyard_process_set(list, 1), TRAINYARD_E_MISMATCH);
        CHECK_TEXT("rank 0: ranks 0; rank 1: ranks 1");
    }
}

#endif
