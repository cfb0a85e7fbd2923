/* reductions.h - ranks, and what they reduce: every type, operation, shape and way to ask for it. */
#ifndef TY_TESTS_API_REDUCTIONS_H
#define TY_TESTS_API_REDUCTIONS_H

#include "elements.h"

/* ---- ranks ---- */

static void ranks_and_sizes(void)
{
    int rank = trainyard_rank(), size = trainyard_size();
    CHECK(rank >= 0 && rank < size);
    CHECK(trainyard_local_size() >= 1 && trainyard_local_size() <= size);
    CHECK(trainyard_local_rank() >= 0 && trainyard_local_rank() < trainyard_local_size());
    int64_t mine = rank, sum = 0;
    CHECK_OK(trainyard_allreduce(trainyard_i64(&mine, 1), trainyard_i64(&sum, 1), trainyard_with(.op = TRAINYARD_SUM)));
    CHECK(sum == (int64_t)size * (size - 1) / 2);
    CHECK(mine == rank);
}

/* ---- allreduce ---- */

static void allreduce_types_ops_dims(void)
{
    static const int dims[][3] = {{17, 0, 0}, {5, 17, 0}, {3, 5, 7}};
    for (int t = 0; t < N_TYPES; t++)
        for (int op = TRAINYARD_AVERAGE; op <= TRAINYARD_PRODUCT; op++)
            for (int d = 0; d < 3; d++) {
                double in[128], out[128];
                int n = dims[d][0] * (d > 0 ? dims[d][1] : 1) * (d > 1 ? dims[d][2] : 1);
                trainyard_tensor from = tensor(types[t], in, d + 1, dims[d][0], dims[d][1], dims[d][2]), to = from;
                to.data = out;
                fill(types[t], op, in, n);
                if (types[t] == TRAINYARD_BOOL && op == TRAINYARD_AVERAGE) {
                    CHECK_FAILS(trainyard_allreduce(&from, &to, trainyard_with(.op = op)), TRAINYARD_E_ARGUMENT);
                    continue;
                }
                CHECK_OK(trainyard_allreduce(&from, &to, trainyard_with(.op = op)));
                CHECK(count_wrong(types[t], op, out, n) == 0);
                CHECK_OK(trainyard_allreduce(&from, NULL, trainyard_with(.op = op)));
                CHECK(count_wrong(types[t], op, in, n) == 0);
            }
}

/* A number without dimensions, no elements at all, and more than a piece of the wire. */
static void allreduce_sizes(void)
{
    float one = (float)trainyard_rank(), nothing = 0;
    CHECK_OK(trainyard_allreduce(trainyard_f32(&one), NULL, trainyard_with(.op = TRAINYARD_MAX)));
    CHECK(one == (float)(trainyard_size() - 1));
    CHECK_OK(trainyard_allreduce(trainyard_f32(&nothing, 0, 4), NULL, NULL));
    int64_t n = 700001;
    float *many = malloc((size_t)n * sizeof *many);
    for (int64_t i = 0; i < n; i++)
        many[i] = (float)(i % 1000 + trainyard_rank());
    CHECK_OK(trainyard_allreduce(trainyard_f32(many, n), NULL, trainyard_with(.op = TRAINYARD_SUM)));
    int wrong = 0, size = trainyard_size();
    for (int64_t i = 0; i < n; i++)
        wrong += many[i] != (float)(i % 1000 * size + size * (size - 1) / 2);
    CHECK(wrong == 0);
    free(many);
}

static void allreduce_scales(void)
{
    int size = trainyard_size();
    for (int t = 1; t < N_TYPES; t++) {
        double in[16], out[16];
        trainyard_tensor from = tensor(types[t], in, 1, 16, 0, 0), to = from;
        to.data = out;
        fill(types[t], TRAINYARD_PRODUCT, in, 16); /* 1 and 2 */
        CHECK_OK(trainyard_allreduce(&from, &to, trainyard_with(.op = TRAINYARD_SUM, .prescale = 3)));
        for (int i = 0; i < 16; i++) {
            double sum = 0;
            for (int r = 0; r < size; r++)
                sum += value(types[t], TRAINYARD_PRODUCT, r, i);
            CHECK(get(types[t], out, i) == 3 * sum);
        }
        CHECK_OK(trainyard_allreduce(&from, &to, trainyard_with(.op = TRAINYARD_SUM, .postscale = 0.5)));
        double half = (size + size / 2) * 0.5; /* rank r has 1 + r % 2 at 0 */
        CHECK(get(types[t], out, 0) == (is_float(types[t]) ? half : trunc(half)));
        CHECK(get(types[t], in, 0) == 1 + trainyard_rank() % 2);
    }
}

static void allreduce_compressed(void)
{
    float x[1000], y[1000];
    for (int compression = TRAINYARD_COMPRESS_NONE; compression <= TRAINYARD_COMPRESS_BF16; compression++)
        for (int op = TRAINYARD_AVERAGE; op <= TRAINYARD_SUM; op++) {
            double part = compression == TRAINYARD_COMPRESS_NONE   ? 1e-6
                          : compression == TRAINYARD_COMPRESS_FP16 ? 2e-3
                                                                   : 2e-2;
            int wrong = 0;
            for (int i = 0; i < 1000; i++)
                x[i] = (float)(i + 1) / 7 * (float)(1 + trainyard_rank());
            CHECK_OK(trainyard_allreduce(trainyard_f32(x, 1000), trainyard_f32(y, 1000),
                                         trainyard_with(.op = op, .compression = compression)));
            for (int i = 0; i < 1000; i++) {
                double n = trainyard_size(), sum = (i + 1) / 7.0 * n * (n + 1) / 2;
                wrong += fabs(y[i] - (op == TRAINYARD_SUM ? sum : sum / n)) > part * sum;
            }
            CHECK(wrong == 0);
        }
    /* Averages are divided before they travel: no overflow of half precision. */
    for (int i = 0; i < 10; i++)
        x[i] = 60000;
    CHECK_OK(trainyard_allreduce(trainyard_f32(x, 10), NULL, trainyard_with(.compression = TRAINYARD_COMPRESS_FP16)));
    CHECK(fabsf(x[9] - 60000) < 60);
    /* Other types travel as they are. */
    int64_t whole = (int64_t)1 << 40;
    CHECK_OK(trainyard_allreduce(trainyard_i64(&whole, 1), NULL,
                                 trainyard_with(.op = TRAINYARD_MAX, .compression = TRAINYARD_COMPRESS_FP16)));
    CHECK(whole == (int64_t)1 << 40);
}

/* Many at once, mixed types, one of them empty. */
static void allreduce_grouped(void)
{
    double in[6][32], out[6][32];
    static const int of[] = {TRAINYARD_F32, TRAINYARD_I32, TRAINYARD_F32, TRAINYARD_F64, TRAINYARD_F16, TRAINYARD_F32};
    static const int n[] = {17, 4, 1, 32, 9, 0};
    trainyard_tensor from[6], to[6];
    for (int i = 0; i < 6; i++) {
        fill(of[i], TRAINYARD_SUM, in[i], n[i]);
        from[i] = tensor(of[i], in[i], 1, n[i], 0, 0);
        to[i] = tensor(of[i], out[i], 1, n[i], 0, 0);
    }
    CHECK_OK(trainyard_grouped_allreduce(from, to, 6, trainyard_with(.op = TRAINYARD_SUM, .name = "group")));
    for (int i = 0; i < 6; i++)
        CHECK(count_wrong(of[i], TRAINYARD_SUM, out[i], n[i]) == 0);
    CHECK_OK(trainyard_grouped_allreduce(from, NULL, 6, trainyard_with(.op = TRAINYARD_SUM, .name = "group")));
    for (int i = 0; i < 6; i++)
        CHECK(count_wrong(of[i], TRAINYARD_SUM, in[i], n[i]) == 0);
    CHECK_OK(trainyard_grouped_allreduce(NULL, NULL, 0, NULL));
}

static void allreduce_async(void)
{
    enum { N = 40 };
    float x[N][50];
    int64_t handles[N];
    for (int k = 0; k < N; k++) {
        fill(TRAINYARD_F32, TRAINYARD_SUM, x[k], 50);
        char name[16];
        snprintf(name, sizeof name, "t%d", k);
        handles[k] =
            trainyard_allreduce_async(trainyard_f32(x[k], 50), NULL, trainyard_with(.op = TRAINYARD_SUM, .name = name));
        CHECK(handles[k] > 0);
    }
    for (int k = N - 1; k >= 0; k--) { /* in any order */
        CHECK_OK(trainyard_wait(handles[k]));
        CHECK(count_wrong(TRAINYARD_F32, TRAINYARD_SUM, x[k], 50) == 0);
    }
    CHECK_FAILS(trainyard_wait(handles[0]), TRAINYARD_E_STATE);
    CHECK_FAILS(trainyard_poll(handles[0]), TRAINYARD_E_STATE);
    CHECK_TEXT("waited for once");
    int64_t h = trainyard_allreduce_async(trainyard_f32(x[0], 50), NULL, NULL);
    int done;
    while ((done = trainyard_poll(h)) == 0)
        usleep(100);
    CHECK(done == 1);
    CHECK_OK(trainyard_wait(h));
}

#endif
