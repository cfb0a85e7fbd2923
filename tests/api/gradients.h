/* gradients.h - sets of parameters whose gradients travel in buckets. */
#ifndef TY_TESTS_API_GRADIENTS_H
#define TY_TESTS_API_GRADIENTS_H

#include "elements.h"

/* ---- gradients ---- */

enum { N_PARAMETERS = 7 };

static const int64_t parameter_elems[N_PARAMETERS] = {3000, 30, 70000, 1, 0, 40000, 10};

static void parameters(trainyard_parameter list[N_PARAMETERS])
{
    static const char *const names[] = {"conv1/kernel", "conv1/bias", "dense/kernel", "scale",
                                        "empty",        "table",      "head"};
    for (int i = 0; i < N_PARAMETERS; i++)
        list[i] = (trainyard_parameter){names[i], i == 5 ? TRAINYARD_F64 : TRAINYARD_F32, 1, {parameter_elems[i]}};
}

static double gradient(int rank, int parameter, int64_t i, int step)
{
    return (double)((i * 3 + parameter * 5 + step) % 17) + 2 * rank;
}

static void write_gradient(void *to, int rank, int p, int step)
{
    for (int64_t i = 0; i < parameter_elems[p]; i++)
        if (p == 5)
            ((double *)to)[i] = gradient(rank, p, i, step);
        else
            ((float *)to)[i] = (float)gradient(rank, p, i, step);
}

/* times the sum over ranks 0 ... n - 1 of the gradients. */
static int wrong_gradient(const void *found, int n, int p, int step, double times)
{
    int wrong = 0;
    for (int64_t i = 0; i < parameter_elems[p]; i++) {
        double sum = 0, got = p == 5 ? ((const double *)found)[i] : ((const float *)found)[i];
        for (int r = 0; r < n; r++)
            sum += gradient(r, p, i, step);
        wrong += fabs(got - sum * times) > 1e-5 * (1 + sum);
    }
    return wrong;
}

/* Ready in an order that differs between ranks and steps; from memory of the caller's and in place. */
static void gradients_any_order(void)
{
    int rank = trainyard_rank(), size = trainyard_size();
    trainyard_parameter list[N_PARAMETERS];
    trainyard_gradients *g = NULL;
    double *memory = malloc(70000 * sizeof *memory);
    parameters(list);
    CHECK_OK(trainyard_gradients_new(list, N_PARAMETERS, &(trainyard_gradients_options){.bucket_bytes = 100000}, &g));
    CHECK(trainyard_gradients_buckets(g) == 5); /* head; table; empty and scale; dense; conv1 */
    for (int step = 0; step < 5; step++) {
        for (int k = 0; k < N_PARAMETERS; k++) {
            int p = (k * (1 + step % 3) + rank * 3 + step) % N_PARAMETERS;
            void *buffer = trainyard_gradients_buffer(g, p);
            CHECK((uintptr_t)buffer % 64 == 0);
            write_gradient(step % 2 ? buffer : memory, rank, p, step);
            CHECK_OK(trainyard_gradients_ready(g, p, step % 2 ? NULL : memory));
        }
        if (step == 2) {
            CHECK_OK(trainyard_gradients_wait_one(g, 2));
            CHECK(wrong_gradient(trainyard_gradients_buffer(g, 2), size, 2, step, 1.0 / size) == 0);
        }
        CHECK_OK(trainyard_gradients_wait(g));
        for (int p = 0; p < N_PARAMETERS; p++)
            CHECK(wrong_gradient(trainyard_gradients_buffer(g, p), size, p, step, 1.0 / size) == 0);
    }
    CHECK_OK(trainyard_gradients_free(g));
    free(memory);
}

/* What is ready travels while the rest is computed: a result is there before other gradients exist. */
static void gradients_early(void)
{
    int rank = trainyard_rank(), size = trainyard_size();
    trainyard_parameter list[N_PARAMETERS];
    trainyard_gradients *g = NULL;
    parameters(list);
    CHECK_OK(trainyard_gradients_new(list, N_PARAMETERS, NULL, &g));
    for (int step = 0; step < 3; step++) {
        for (int p = N_PARAMETERS - 1; p >= 0; p--) {
            write_gradient(trainyard_gradients_buffer(g, p), rank, p, step);
            CHECK_OK(trainyard_gradients_ready(g, p, NULL));
            if (p == 6 || p == 5) {
                CHECK_FAILS(trainyard_gradients_wait_one(g, 4), TRAINYARD_E_STATE);
                CHECK(p == 5 || trainyard_gradients_wait_one(g, 5) == TRAINYARD_E_STATE);
            }
            if (p == 4) { /* the types change behind 6 and behind 5: two buckets are complete */
                CHECK_OK(trainyard_gradients_wait_one(g, 6));
                CHECK_OK(trainyard_gradients_wait_one(g, 5));
                CHECK(wrong_gradient(trainyard_gradients_buffer(g, 6), size, 6, step, 1.0 / size) == 0);
                CHECK(wrong_gradient(trainyard_gradients_buffer(g, 5), size, 5, step, 1.0 / size) == 0);
            }
        }
        CHECK_OK(trainyard_gradients_wait(g));
    }
    CHECK_OK(trainyard_gradients_free(g));
}

/* Sums, several passes, a parameter without a gradient, one that only one pass has. */
static void gradients_passes(void)
{
    int rank = trainyard_rank(), size = trainyard_size();
    trainyard_parameter list[N_PARAMETERS];
    trainyard_gradients *g = NULL;
    double *memory = malloc(70000 * sizeof *memory);
    parameters(list);
    for (int op = TRAINYARD_AVERAGE; op <= TRAINYARD_SUM; op++) {
        CHECK_OK(
            trainyard_gradients_new(list, N_PARAMETERS, &(trainyard_gradients_options){.op = op, .passes = 2}, &g));
        for (int step = 0; step < 2; step++) {
            for (int pass = 0; pass < 2; pass++) {
                for (int p = N_PARAMETERS - 1; p >= 0; p--) {
                    if (p == 0 || (p == 1 && pass == 1))
                        continue;
                    write_gradient(memory, rank, p, step);
                    CHECK_OK(trainyard_gradients_ready(g, p, memory));
                }
                CHECK_OK(trainyard_gradients_wait(g));
            }
            double of_one = op == TRAINYARD_SUM ? 1 : 0.5 / size;
            CHECK(wrong_gradient(trainyard_gradients_buffer(g, 0), size, 0, step, 0) == 0);
            CHECK(wrong_gradient(trainyard_gradients_buffer(g, 1), size, 1, step, of_one) == 0);
            for (int p = 2; p < N_PARAMETERS; p++)
                CHECK(wrong_gradient(trainyard_gradients_buffer(g, p), size, p, step, 2 * of_one) == 0);
        }
        CHECK_OK(trainyard_gradients_free(g));
    }
    free(memory);
}

static void gradients_compressed(void)
{
    trainyard_parameter one = {"w", TRAINYARD_F32, 2, {100, 10}};
    for (int compression = 1; compression <= 2; compression++) {
        trainyard_gradients *g = NULL;
        CHECK_OK(trainyard_gradients_new(&one, 1, &(trainyard_gradients_options){.compression = compression}, &g));
        float *w = trainyard_gradients_buffer(g, 0);
        for (int i = 0; i < 1000; i++)
            w[i] = (float)i / 3;
        CHECK_OK(trainyard_gradients_ready(g, 0, NULL));
        CHECK_OK(trainyard_gradients_wait(g));
        CHECK(fabsf(w[999] - 333) < 2 && (trainyard_size() == 1 || w[998] != 998 / 3.0f));
        CHECK_OK(trainyard_gradients_free(g));
    }
}

static void gradients_refused(void)
{
    int rank = trainyard_rank(), size = trainyard_size();
    trainyard_parameter list[N_PARAMETERS];
    trainyard_gradients *g = NULL;
    parameters(list);
    CHECK_FAILS(trainyard_gradients_new(list, 0, NULL, &g), TRAINYARD_E_ARGUMENT);
    list[1].name = list[0].name;
    CHECK_FAILS(trainyard_gradients_new(list, N_PARAMETERS, NULL, &g), TRAINYARD_E_ARGUMENT);
    CHECK_TEXT("two parameters are called \"conv1/kernel\"");
    parameters(list);
    list[2].dtype = TRAINYARD_I32;
    CHECK_FAILS(trainyard_gradients_new(list, N_PARAMETERS, NULL, &g), TRAINYARD_E_ARGUMENT);
    parameters(list);
    if (size > 1) {
        list[2].shape[0] = 70000 - (rank == 1);
        CHECK_FAILS(trainyard_gradients_new(list, N_PARAMETERS, NULL, &g), TRAINYARD_E_MISMATCH);
        CHECK_TEXT("parameter 2: 'dense/kernel' f32[70000]; rank 1: parameter 2: 'dense/kernel' f32[69999]");
        parameters(list);
    }
    CHECK_OK(trainyard_gradients_new(list, N_PARAMETERS, NULL, &g));
    CHECK_FAILS(trainyard_gradients_ready(g, N_PARAMETERS, NULL), TRAINYARD_E_ARGUMENT);
    CHECK(trainyard_gradients_buffer(g, -1) == NULL);
    CHECK_OK(trainyard_gradients_ready(g, 0, NULL));
    CHECK_FAILS(trainyard_gradients_ready(g, 0, NULL), TRAINYARD_E_STATE);
    CHECK_TEXT("once a pass");
    CHECK_FAILS(trainyard_gradients_wait_one(g, 0), TRAINYARD_E_STATE);
    CHECK_TEXT("the gradient of \"head\" is not ready");
    CHECK_OK(trainyard_gradients_wait(g));
    CHECK_OK(trainyard_gradients_free(g));
    CHECK_OK(trainyard_gradients_free(NULL));
    CHECK_FAILS(trainyard_gradients_wait(NULL), TRAINYARD_E_ARGUMENT);
}

/* Rank r has r + 1 steps; the others go on without it. */
static void gradients_join(void)
{
    int rank = trainyard_rank(), size = trainyard_size();
    trainyard_parameter list[N_PARAMETERS];
    trainyard_gradients *g = NULL;
    parameters(list);
    CHECK_OK(trainyard_gradients_new(list, N_PARAMETERS, NULL, &g));
    for (int step = 0; step <= rank; step++) {
        for (int p = N_PARAMETERS - 1; p >= 0; p--) {
            write_gradient(trainyard_gradients_buffer(g, p), 0, p, step); /* that of rank 0, on all */
            CHECK_OK(trainyard_gradients_ready(g, p, NULL));
        }
        CHECK_OK(trainyard_gradients_wait(g));
        for (int p = 0; p < N_PARAMETERS; p++)
            CHECK(wrong_gradient(trainyard_gradients_buffer(g, p), 1, p, step, (double)(size - step) / size) == 0);
    }
    CHECK(trainyard_join() == size - 1);
    CHECK_OK(trainyard_gradients_free(g));
}

/* Gradients of a smaller set, while all ranks do something else. */
static void gradients_of_a_set(void)
{
    int rank = trainyard_rank(), size = trainyard_size(), first[8], n = (size + 1) / 2;
    trainyard_parameter one = {"w", TRAINYARD_F32, 1, {1000}};
    trainyard_gradients *g = NULL;
    for (int r = 0; r < n; r++)
        first[r] = r;
    int set = trainyard_process_set(first, n);
    if (rank < n) {
        CHECK_OK(trainyard_gradients_new(&one, 1, &(trainyard_gradients_options){.op = TRAINYARD_SUM, .set = set}, &g));
        float *w = trainyard_gradients_buffer(g, 0);
        for (int i = 0; i < 1000; i++)
            w[i] = 1;
        CHECK_OK(trainyard_gradients_ready(g, 0, NULL));
    } else
        CHECK_FAILS(trainyard_gradients_new(&one, 1, &(trainyard_gradients_options){.set = set}, &g),
                    TRAINYARD_E_NOT_MEMBER);
    CHECK_OK(trainyard_barrier(NULL));
    CHECK_FAILS(trainyard_process_set_free(set), TRAINYARD_E_ARGUMENT);
    if (rank < n) {
        CHECK_OK(trainyard_gradients_wait(g));
        CHECK(((float *)trainyard_gradients_buffer(g, 0))[999] == (float)n);
        CHECK_OK(trainyard_gradients_free(g));
    }
    CHECK_OK(trainyard_process_set_free(set));
}

/* Rows of a table: each rank has numbers of its own, some of them twice; summed in the order of ranks, as IndexedSlices
 * are. */
static void gradients_of_rows(void)
{
    enum { WIDTH = 3, TABLE = 8 };
    int rank = trainyard_rank(), size = trainyard_size();
    int64_t numbers[4] = {rank % TABLE, 5, 5, (rank + 2) % TABLE};
    float rows[4][WIDTH], table[TABLE][WIDTH] = {{0}}, expected[TABLE] = {0};
    trainyard_tensor all_numbers = {0}, all_rows = {0};
    int n = 2 + rank % 3; /* 2 to 4 rows */
    for (int i = 0; i < n; i++)
        for (int k = 0; k < WIDTH; k++)
            rows[i][k] = (float)(rank + 1);
    CHECK_OK(trainyard_allgather(trainyard_i64(numbers, n), &all_numbers, NULL));
    CHECK_OK(trainyard_allgather(trainyard_f32(rows, n, WIDTH), &all_rows, NULL));
    CHECK(all_numbers.shape[0] == all_rows.shape[0]);
    for (int64_t i = 0; i < all_numbers.shape[0]; i++)
        for (int k = 0; k < WIDTH; k++)
            table[((int64_t *)all_numbers.data)[i]][k] += ((float *)all_rows.data)[i * WIDTH + k];
    for (int r = 0; r < size; r++) {
        int64_t of_rank[4] = {r % TABLE, 5, 5, (r + 2) % TABLE};
        for (int i = 0; i < 2 + r % 3; i++)
            expected[of_rank[i]] += (float)(r + 1);
    }
    for (int i = 0; i < TABLE; i++)
        CHECK(table[i][0] == expected[i] && table[i][WIDTH - 1] == expected[i]);
    trainyard_free(all_numbers.data);
    trainyard_free(all_rows.data);
}

#endif
