/* broadcasts.h - one rank's numbers on all. */
#ifndef TY_TESTS_API_BROADCASTS_H
#define TY_TESTS_API_BROADCASTS_H

#include "elements.h"

/* ---- broadcast ---- */

static void broadcast_types(void)
{
    int rank = trainyard_rank(), size = trainyard_size();
    for (int t = 0; t < N_TYPES; t++)
        for (int root = 0; root < size; root++) {
            double x[32];
            trainyard_tensor view = tensor(types[t], x, 2, 4, 5, 0);
            for (int i = 0; i < 20; i++)
                set(types[t], x, i, types[t] == TRAINYARD_BOOL ? rank % 2 : rank + i);
            CHECK_OK(trainyard_broadcast(&view, root, NULL));
            CHECK(get(types[t], x, 19) == (types[t] == TRAINYARD_BOOL ? root % 2 : root + 19));
        }
}

static void broadcast_variables(void)
{
    int rank = trainyard_rank(), root = trainyard_size() - 1;
    float w[12], b[3];
    int64_t step = rank == root ? 1234567890123 : 0;
    for (int i = 0; i < 12; i++)
        w[i] = b[i % 3] = (float)(rank * 100 + i);
    trainyard_tensor all[] = {*trainyard_f32(w, 4, 3), *trainyard_f32(b, 3), *trainyard_i64(&step),
                              *trainyard_f32(NULL, 0)};
    CHECK_OK(trainyard_broadcast_variables(all, 4, root, NULL));
    CHECK(w[11] == (float)(root * 100 + 11) && b[2] == (float)(root * 100 + 11) && step == 1234567890123);
    w[0] = (float)rank;
    int64_t h = trainyard_broadcast_async(trainyard_f32(w, 1), 0, NULL);
    CHECK_OK(trainyard_wait(h));
    CHECK(w[0] == 0);
}

/* Bytes of which only the root knows how many there are. */
static void broadcast_object(void)
{
    for (int root = 0; root < trainyard_size(); root++) {
        static const char text[] = "{\"epoch\": 3, \"best\": 0.97}";
        bool mine = trainyard_rank() == root;
        int64_t n = mine ? (int64_t)sizeof text - root % 3 : 0;
        CHECK_OK(trainyard_broadcast(trainyard_i64(&n, 1), root, NULL));
        CHECK(n == (int64_t)sizeof text - root % 3);
        char *bytes = calloc(1, sizeof text);
        if (mine)
            memcpy(bytes, text, (size_t)n);
        CHECK_OK(trainyard_broadcast(trainyard_view(bytes, TRAINYARD_U8, n), root, NULL));
        CHECK(memcmp(bytes, text, (size_t)n) == 0);
        free(bytes);
    }
}

#endif
