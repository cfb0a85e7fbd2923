/* elements.h - what all checks use: a check that counts, and numbers of every type whose reductions are known. */
#ifndef TY_TESTS_API_ELEMENTS_H
#define TY_TESTS_API_ELEMENTS_H

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

#endif
