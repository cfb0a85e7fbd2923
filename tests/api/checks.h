/* checks.h - what every rank checks, through the public header alone: the cases of Horovod's parallel tests.
 *
 * Included by tests/unit/api.c, where ranks are threads of one program, and by tests/api/parallel.c, where they are
 * processes. All ranks run the same checks in the same order; a check that fails counts and goes on, so that ranks stay
 * together.
 */
#ifndef TY_TESTS_API_CHECKS_H
#define TY_TESTS_API_CHECKS_H

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trainyard/trainyard.h>
#include <unistd.h>

static atomic_int failures;

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            atomic_fetch_add(&failures, 1);                                                                  \
            printf("rank %d: %s:%d: %s; last error: %s\n", trainyard_rank(), __func__, __LINE__, #condition, \
                   trainyard_error());                                                                       \
            fflush(stdout);                                                                                  \
        }                                                                                                    \
    } while (0)
#define CHECK_OK(call)          CHECK((call) == TRAINYARD_OK)
#define CHECK_FAILS(call, code) CHECK((call) == (code))
#define CHECK_TEXT(words)       CHECK(strstr(trainyard_error(), (words)) != NULL)

enum { MAX_ELEMS = 4096 };

static const int types[] = {TRAINYARD_BOOL, TRAINYARD_I8,  TRAINYARD_U8,  TRAINYARD_I16, TRAINYARD_U16,
                            TRAINYARD_I32,  TRAINYARD_U32, TRAINYARD_I64, TRAINYARD_U64, TRAINYARD_F16,
                            TRAINYARD_BF16, TRAINYARD_F32, TRAINYARD_F64};
static const int sizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
enum { N_TYPES = sizeof types / sizeof *types };

/* ---- elements as doubles ---- */

static double get(int type, const void *data, int i)
{
    union {
        float f;
        uint32_t bits;
    } b;
    switch (type) {
    case TRAINYARD_I8:
        return ((const int8_t *)data)[i];
    case TRAINYARD_I16:
        return ((const int16_t *)data)[i];
    case TRAINYARD_U16:
        return ((const uint16_t *)data)[i];
    case TRAINYARD_I32:
        return ((const int32_t *)data)[i];
    case TRAINYARD_U32:
        return ((const uint32_t *)data)[i];
    case TRAINYARD_I64:
        return (double)((const int64_t *)data)[i];
    case TRAINYARD_U64:
        return (double)((const uint64_t *)data)[i];
    case TRAINYARD_F16:
        return (double)((const _Float16 *)data)[i];
    case TRAINYARD_BF16:
        b.bits = (uint32_t)((const uint16_t *)data)[i] << 16;
        return b.f;
    case TRAINYARD_F32:
        return ((const float *)data)[i];
    case TRAINYARD_F64:
        return ((const double *)data)[i];
    default:
        return ((const uint8_t *)data)[i];
    }
}

/* v is a number that the type holds exactly. */
static void set(int type, void *data, int i, double v)
{
    union {
        float f;
        uint32_t bits;
    } b = {.f = (float)v};
    switch (type) {
    case TRAINYARD_I16:
    case TRAINYARD_U16:
        ((int16_t *)data)[i] = (int16_t)v;
        break;
    case TRAINYARD_I32:
    case TRAINYARD_U32:
        ((int32_t *)data)[i] = (int32_t)v;
        break;
    case TRAINYARD_I64:
    case TRAINYARD_U64:
        ((int64_t *)data)[i] = (int64_t)v;
        break;
    case TRAINYARD_F16:
        ((_Float16 *)data)[i] = (_Float16)v;
        break;
    case TRAINYARD_BF16:
        ((uint16_t *)data)[i] = (uint16_t)(b.bits >> 16);
        break;
    case TRAINYARD_F32:
        ((float *)data)[i] = (float)v;
        break;
    case TRAINYARD_F64:
        ((double *)data)[i] = v;
        break;
    default:
        ((int8_t *)data)[i] = (int8_t)v;
    }
}

static bool is_float(int type)
{
    return type >= TRAINYARD_F16;
}

static bool is_signed(int type)
{
    return is_float(type) || type == TRAINYARD_I8 || type == TRAINYARD_I16 || type == TRAINYARD_I32 ||
           type == TRAINYARD_I64;
}

/* What rank r has at place i: small, so that sums and products of all ranks fit every type. */
static double value(int type, int op, int r, int i)
{
    if (type == TRAINYARD_BOOL)
        return (i + r) % 3 == 0;
    if (op == TRAINYARD_PRODUCT)
        return 1 + (i + r) % 2;
    return (i * 7 + r * 3) % 11 - (is_signed(type) ? 5 : 0);
}

static double combine(int op, double a, double b)
{
    switch (op) {
    case TRAINYARD_MIN:
        return a < b ? a : b;
    case TRAINYARD_MAX:
        return a > b ? a : b;
    case TRAINYARD_PRODUCT:
        return a * b;
    default:
        return a + b;
    }
}

/* The reduction over ranks 0 ... n - 1. */
static double reduced(int type, int op, int n, int i)
{
    double v = value(type, op, 0, i);
    for (int r = 1; r < n; r++)
        v = combine(op, v, value(type, op, r, i));
    if (type == TRAINYARD_BOOL)
        return op == TRAINYARD_SUM ? v > 0 : v;
    if (op == TRAINYARD_AVERAGE)
        return is_float(type) ? v / n : trunc(v / n);
    return v;
}

static bool near(int type, double found, double expected)
{
    double part = type == TRAINYARD_F16 ? 2e-3 : type == TRAINYARD_BF16 ? 2e-2 : type == TRAINYARD_F32 ? 1e-6 : 1e-12;
    return fabs(found - expected) <= part * (1 + fabs(expected));
}

static void fill(int type, int op, void *data, int n)
{
    for (int i = 0; i < n; i++)
        set(type, data, i, value(type, op, trainyard_rank(), i));
}

static int count_wrong(int type, int op, const void *data, int n)
{
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += !near(type, get(type, data, i), reduced(type, op, trainyard_size(), i));
    return wrong;
}

static trainyard_tensor tensor(int type, void *data, int ndim, int64_t a, int64_t b, int64_t c)
{
    return (trainyard_tensor){
        .data = data, .dtype = type, .ndim = ndim, .shape = {a, ndim > 1 ? b : 0, ndim > 2 ? c : 0}};
}

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

/* ---- what one rank does ---- */

static const char *folder; /* for files; of the test */

static void files(void)
{
    char path[300], *bytes = NULL;
    size_t n = 0;
    snprintf(path, sizeof path, "%s/new%d/folder/state", folder, trainyard_size());
    CHECK_OK(trainyard_read(path, (void **)&bytes, &n));
    CHECK(bytes == NULL && n == 0);
    CHECK_OK(trainyard_write(path, trainyard_rank() == 0 ? "weights" : NULL, trainyard_rank() == 0 ? 7 : 0));
    CHECK_OK(trainyard_read(path, (void **)&bytes, &n));
    CHECK(n == 7 && bytes && memcmp(bytes, "weights", 7) == 0);
    trainyard_free(bytes);
    CHECK_FAILS(trainyard_write("/proc/no/such/place", "x", 1), TRAINYARD_E_FILE);
    CHECK_TEXT("rank 0: ");
    CHECK_FAILS(trainyard_read("/proc/self/mem", (void **)&bytes, &n), TRAINYARD_E_ARGUMENT);
    CHECK_FAILS(trainyard_write("", "x", 1), TRAINYARD_E_ARGUMENT);
    CHECK_OK(trainyard_barrier(NULL)); /* before who made the folder removes it */
}

static void metrics(void)
{
    const char *const names[] = {"loss", "accuracy"}, *const bad[] = {"Loss"};
    double values[] = {trainyard_rank(), 0.5};
    CHECK_OK(trainyard_metrics(1200, 3, names, values, 2));
    CHECK(fabs(values[0] - (trainyard_size() - 1) / 2.0) < 1e-12 && values[1] == 0.5);
    CHECK_FAILS(trainyard_metrics(0, 0, bad, values, 1), TRAINYARD_E_ARGUMENT);
    CHECK_FAILS(trainyard_metrics(0, 0, names, values, 0), TRAINYARD_E_ARGUMENT);
}

static const struct check {
    const char *name;
    void (*run)(void);
} checks[] = {
    {"ranks and sizes", ranks_and_sizes},
    {"allreduce: types, operations, dimensions", allreduce_types_ops_dims},
    {"allreduce: nothing, one number, many", allreduce_sizes},
    {"allreduce: scaled before and after", allreduce_scales},
    {"allreduce: fp16 and bf16 on the wire", allreduce_compressed},
    {"allreduce: groups of mixed types", allreduce_grouped},
    {"allreduce: handles, waited for in any order", allreduce_async},
    {"allgather: first dimensions that differ", allgather_rows},
    {"allgather: own memory, empty parts", allgather_room_and_nothing},
    {"allgather: several under way", allgather_async},
    {"reducescatter: even, uneven, none", reducescatter_parts},
    {"reducescatter: scaled; a single number is refused", reducescatter_scaled_and_refused},
    {"alltoall: equal parts", alltoall_equal},
    {"alltoall: given splits", alltoall_splits},
    {"alltoall: ranks that send or receive nothing", alltoall_zero_splits},
    {"alltoall: wrong splits are refused", alltoall_refused},
    {"broadcast: types, every root", broadcast_types},
    {"broadcast: several variables", broadcast_variables},
    {"errors: shapes that differ", error_shapes},
    {"errors: types, operations, names, calls that differ", error_types_and_options},
    {"errors: roots", error_roots},
    {"errors: arguments", error_arguments},
    {"join: uneven data", join_uneven},
    {"join: what needs all ranks is refused", join_refuses},
    {"process sets", process_sets},
    {"process sets: refused", process_sets_refused},
    {"gradients: ready in any order", gradients_any_order},
    {"gradients: results before all are ready", gradients_early},
    {"gradients: passes, missing ones", gradients_passes},
    {"gradients: fp16 and bf16 on the wire", gradients_compressed},
    {"gradients: refused", gradients_refused},
    {"gradients: join", gradients_join},
    {"gradients: of a process set", gradients_of_a_set},
    {"files", files},
    {"metrics", metrics},
};
enum { N_CHECKS = sizeof checks / sizeof *checks };

#endif
