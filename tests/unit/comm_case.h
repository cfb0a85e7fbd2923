/* comm_case.h - collectives whose results are known exactly, as each rank of a comm checks them. Elements are small
 * integers, so that every order of sums has the same bits. The unit test runs them on threads, tests/tools/ranks.c on
 * processes. */
#ifndef TY_TESTS_COMM_CASE_H
#define TY_TESTS_COMM_CASE_H

#include "dist/comm/comm.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Element i of rank r: small, of both signs where the type has them, and for a product 1 or 2. A multiple of 12 for an
 * average, so that it is a whole number for 1, 2, 3 and 4 ranks. */
static int case_value(ty_dtype dtype, ty_reduce reduce, int r, int64_t i)
{
    if (dtype == TY_BOOL)
        return (i + r) % 3 == 0 || i % 7 == 0;
    if (reduce == TY_REDUCE_PRODUCT)
        return 1 + (i + r) % 2;
    int x = (int)((i * 7 + r * 3) % 11);
    if (reduce == TY_REDUCE_AVERAGE)
        return x % 3 * 12;
    return ty_dtype_is_float(dtype) || ty_dtype_is_signed(dtype) ? x - 5 : x;
}

static void case_put(ty_dtype dtype, void *to, int64_t i, double x)
{
    switch (dtype) {
    case TY_F16:
        ((uint16_t *)to)[i] = ty_f32_to_f16((float)x);
        break;
    case TY_BF16:
        ((uint16_t *)to)[i] = ty_f32_to_bf16((float)x);
        break;
    case TY_F32:
        ((float *)to)[i] = (float)x;
        break;
    case TY_F64:
        ((double *)to)[i] = x;
        break;
    case TY_I16:
        ((int16_t *)to)[i] = (int16_t)x;
        break;
    case TY_U16:
        ((uint16_t *)to)[i] = (uint16_t)x;
        break;
    case TY_I32:
        ((int32_t *)to)[i] = (int32_t)x;
        break;
    case TY_U32:
        ((uint32_t *)to)[i] = (uint32_t)x;
        break;
    case TY_I64:
        ((int64_t *)to)[i] = (int64_t)x;
        break;
    case TY_U64:
        ((uint64_t *)to)[i] = (uint64_t)x;
        break;
    default:
        ((int8_t *)to)[i] = (int8_t)x;
    }
}

static double case_reduced(ty_dtype dtype, ty_reduce reduce, int size, int64_t i)
{
    double x = case_value(dtype, reduce, 0, i);
    for (int r = 1; r < size; r++) {
        double y = case_value(dtype, reduce, r, i);
        if (dtype == TY_BOOL)
            x = reduce == TY_REDUCE_SUM || reduce == TY_REDUCE_MAX ? (x != 0 || y != 0) : (x != 0 && y != 0);
        else if (reduce == TY_REDUCE_MIN || reduce == TY_REDUCE_MAX)
            x = (reduce == TY_REDUCE_MIN) == (y < x) ? y : x;
        else
            x = reduce == TY_REDUCE_PRODUCT ? x * y : x + y;
    }
    return reduce == TY_REDUCE_AVERAGE ? x / size : x;
}

/* Two buffers with a guard behind them, `in` filled with what this rank gives. */
typedef struct case_memory {
    char *in, *out, *expected;
    size_t in_bytes, out_bytes;
} case_memory;

enum { CASE_GUARD = 64 };

static case_memory case_allocate(ty_dtype dtype, int64_t n_in, int64_t n_out)
{
    case_memory m = {.in_bytes = (size_t)n_in * ty_dtype_bytes(dtype),
                     .out_bytes = (size_t)n_out * ty_dtype_bytes(dtype)};
    m.in = malloc(m.in_bytes + m.out_bytes + CASE_GUARD);
    m.out = malloc(m.in_bytes + m.out_bytes + CASE_GUARD);
    m.expected = malloc(m.out_bytes + CASE_GUARD);
    memset(m.in, 0x5a, m.in_bytes + m.out_bytes + CASE_GUARD);
    memset(m.out, 0x5a, m.in_bytes + m.out_bytes + CASE_GUARD);
    memset(m.expected, 0x5a, m.out_bytes + CASE_GUARD);
    return m;
}

/* Runs the call and compares; says what is wrong. Frees the memory. */
static int case_check(ty_comm *c, const ty_collective *w, case_memory *m, const char *place)
{
    ty_error err = {0};
    int rc = ty_comm_run(c, w, &err);
    size_t bad = 0;
    while (rc == 0 && bad < m->out_bytes && ((char *)w->out)[bad] == m->expected[bad])
        bad++;
    if (rc < 0)
        printf("rank %d: %s\n", ty_comm_rank(c), err.message);
    else if (bad < m->out_bytes)
        printf("rank %d of %d: %s %s %s n %lld %s: byte %zu is %d, expected %d\n", ty_comm_rank(c), ty_comm_size(c),
               ty_collective_text(w->kind), ty_dtype_text(w->dtype), ty_reduce_text(w->reduce), (long long)w->n, place,
               bad, ((char *)w->out)[bad], m->expected[bad]);
    free(m->in);
    free(m->out);
    free(m->expected);
    return rc == 0 && bad == m->out_bytes ? 0 : -1;
}

static int case_all_reduce(ty_comm *c, ty_dtype dtype, ty_reduce reduce, ty_wire wire, int64_t n, bool in_place)
{
    case_memory m = case_allocate(dtype, n, n);
    for (int64_t i = 0; i < n; i++) {
        case_put(dtype, m.in, i, case_value(dtype, reduce, ty_comm_rank(c), i));
        case_put(dtype, m.expected, i, case_reduced(dtype, reduce, ty_comm_size(c), i));
    }
    ty_collective w = {.kind = TY_ALL_REDUCE, .dtype = dtype, .reduce = reduce, .wire = wire, .in = m.in, .n = n};
    w.out = in_place ? m.in : m.out;
    return case_check(c, &w, &m, in_place ? "in place" : "out of place");
}

/* Parts of which some are empty and none are equal. */
static int64_t case_counts(int size, int64_t n, int64_t *counts)
{
    int64_t sum = 0;
    for (int r = 0; r < size; r++)
        sum += counts[r] = r % 3 == 1 ? 0 : n + r * 5;
    return sum;
}

/* place: 0 apart, 1 the own part in the whole, 2 both at one address. */
static int case_reduce_scatter(ty_comm *c, ty_dtype dtype, ty_reduce reduce, ty_wire wire, int64_t n, bool uneven,
                               int place)
{
    int size = ty_comm_size(c), rank = ty_comm_rank(c);
    int64_t counts[64], start = 0, whole = n, own;
    if (uneven) {
        whole = case_counts(size, n, counts);
        for (int r = 0; r < rank; r++)
            start += counts[r];
        own = counts[rank];
    } else {
        own = ty_comm_part(n, size, rank, &start);
    }
    case_memory m = case_allocate(dtype, whole, own);
    for (int64_t i = 0; i < whole; i++)
        case_put(dtype, m.in, i, case_value(dtype, reduce, rank, i));
    for (int64_t i = 0; i < own; i++)
        case_put(dtype, m.expected, i, case_reduced(dtype, reduce, size, start + i));
    ty_collective w = {
        .kind = TY_REDUCE_SCATTER, .dtype = dtype, .reduce = reduce, .wire = wire, .in = m.in, .n = whole};
    w.counts = uneven ? counts : NULL;
    w.out = place == 0 ? m.out : place == 1 ? m.in + (size_t)start * ty_dtype_bytes(dtype) : m.in;
    return case_check(c, &w, &m, uneven ? "uneven" : "even");
}

static int case_all_gather(ty_comm *c, ty_dtype dtype, int64_t n, bool uneven, int place)
{
    int size = ty_comm_size(c), rank = ty_comm_rank(c);
    int64_t counts[64], start = 0, whole = n * size, at = 0;
    if (uneven)
        whole = case_counts(size, n, counts);
    for (int r = 0; r < size && !uneven; r++)
        counts[r] = n;
    for (int r = 0; r < rank; r++)
        start += counts[r];
    case_memory m = case_allocate(dtype, counts[rank], whole);
    for (int r = 0; r < size; r++)
        for (int64_t i = 0; i < counts[r]; i++)
            case_put(dtype, m.expected, at++, case_value(dtype, TY_REDUCE_SUM, r, i));
    ty_collective w = {.kind = TY_ALL_GATHER, .dtype = dtype, .in = m.in, .out = m.out, .n = counts[rank]};
    w.counts = uneven ? counts : NULL;
    if (place)
        w.in = m.out + (place == 1 ? (size_t)start * ty_dtype_bytes(dtype) : 0);
    for (int64_t i = 0; i < counts[rank]; i++)
        case_put(dtype, (char *)(uintptr_t)w.in, i, case_value(dtype, TY_REDUCE_SUM, rank, i));
    return case_check(c, &w, &m, uneven ? "uneven" : "even");
}

static int case_broadcast(ty_comm *c, ty_dtype dtype, int64_t n, int root, bool in_place)
{
    bool is_root = ty_comm_rank(c) == root;
    case_memory m = case_allocate(dtype, n, n);
    for (int64_t i = 0; i < n; i++) {
        case_put(dtype, m.in, i, is_root ? case_value(dtype, TY_REDUCE_SUM, root, i) : 0);
        case_put(dtype, m.expected, i, case_value(dtype, TY_REDUCE_SUM, root, i));
    }
    ty_collective w = {.kind = TY_BROADCAST, .dtype = dtype, .in = is_root ? m.in : NULL, .n = n, .root = root};
    w.out = in_place ? m.in : m.out;
    return case_check(c, &w, &m, in_place ? "in place" : "out of place");
}

/* Rank r sends n + r elements to each rank above it and 2 n to the others; even: n to all. */
static int64_t case_sends(int64_t n, int from, int to, bool uneven)
{
    return !uneven ? n : from < to ? n + from : from == to ? 0 : 2 * n;
}

static int case_all_to_all(ty_comm *c, ty_dtype dtype, int64_t n, bool uneven, bool in_place)
{
    int size = ty_comm_size(c), rank = ty_comm_rank(c);
    int64_t to[64], from[64], n_in = 0, n_out = 0, at = 0;
    for (int r = 0; r < size; r++) {
        n_in += to[r] = case_sends(n, rank, r, uneven);
        n_out += from[r] = case_sends(n, r, rank, uneven);
    }
    case_memory m = case_allocate(dtype, n_in, n_out);
    for (int64_t i = 0; i < n_in; i++)
        case_put(dtype, m.in, i, case_value(dtype, TY_REDUCE_SUM, rank, i));
    for (int r = 0; r < size; r++) {
        int64_t start = 0;
        for (int k = 0; k < rank; k++)
            start += case_sends(n, r, k, uneven);
        for (int64_t i = 0; i < from[r]; i++)
            case_put(dtype, m.expected, at++, case_value(dtype, TY_REDUCE_SUM, r, start + i));
    }
    ty_collective w = {.kind = TY_ALL_TO_ALL, .dtype = dtype, .in = m.in, .n = n_in};
    if (uneven) {
        w.counts = to;
        w.from_counts = from;
    }
    w.out = in_place ? m.in : m.out;
    return case_check(c, &w, &m, uneven ? "uneven" : "even");
}

static int case_sums(ty_comm *c, ty_dtype dtype, int64_t n)
{
    int faults = 0;
    for (int reduce = 0; reduce < TY_N_REDUCES; reduce++) {
        if (dtype == TY_BOOL && reduce == TY_REDUCE_AVERAGE)
            continue;
        for (int wire = 0; wire < (dtype == TY_F32 ? TY_N_WIRES : 1); wire++) {
            faults -= case_all_reduce(c, dtype, (ty_reduce)reduce, (ty_wire)wire, n, n % 2);
            faults -= case_all_reduce(c, dtype, (ty_reduce)reduce, (ty_wire)wire, n + 1, n % 2);
            faults -= case_reduce_scatter(c, dtype, (ty_reduce)reduce, (ty_wire)wire, n, n % 2, reduce % 3);
            faults -= case_reduce_scatter(c, dtype, (ty_reduce)reduce, (ty_wire)wire, n + 1, n % 2, (reduce + 1) % 3);
        }
    }
    return faults;
}

static int case_moves(ty_comm *c, ty_dtype dtype, int64_t n)
{
    int faults = 0;
    for (int way = 0; way < 6; way++) {
        faults -= case_all_gather(c, dtype, n, way % 2, way / 2);
        faults -= case_all_to_all(c, dtype, n, way % 2, way / 2 % 2);
        faults -= case_broadcast(c, dtype, n, way % ty_comm_size(c), way % 2);
    }
    return faults;
}

/* Kinds and ways to reduce, of lengths around those of pieces, for every step-th type. The number of wrong results. */
static inline int case_types(ty_comm *c, int step)
{
    static const int64_t lengths[] = {4099, 3, 1023, 0, 64, 1};
    int faults = 0;
    for (int dtype = 0; dtype < TY_N_DTYPES; dtype += step)
        for (int k = 0; k < (step > 1 ? 2 : 6); k++)
            faults += case_sums(c, (ty_dtype)dtype, lengths[k]) + case_moves(c, (ty_dtype)dtype, lengths[k]);
    ty_collective barrier = {.kind = TY_BARRIER};
    return faults - ty_comm_run(c, &barrier, NULL);
}

static inline int case_everything(ty_comm *c)
{
    return case_types(c, 1);
}

static inline int case_something(ty_comm *c)
{
    return case_types(c, 4);
}

/* Numbers of very different size, whose sum has other bits in every order. */
static float case_uneven(int r, int i)
{
    return (float)(1 + i % 13 + r) / (float)(1 + (i * 31 + r * 17) % 1009);
}

static float case_travelled(float x, ty_wire wire)
{
    return wire == TY_WIRE_AS_IS ? x
           : wire == TY_WIRE_F16 ? ty_f16_to_f32(ty_f32_to_f16(x))
                                 : ty_bf16_to_f32(ty_f32_to_bf16(x));
}

/* Sums in rank order: the bits are those of additions one after the other, whatever carries them. */
static inline int case_rank_order(ty_comm *c)
{
    enum { N = 6000 };
    int faults = 0;
    float *x = malloc(N * sizeof *x);
    for (int wire = 0; wire < TY_N_WIRES; wire++) {
        for (int i = 0; i < N; i++)
            x[i] = case_uneven(ty_comm_rank(c), i);
        ty_collective w = {.kind = TY_ALL_REDUCE, .dtype = TY_F32, .wire = (ty_wire)wire, .in = x, .out = x, .n = N};
        faults -= ty_comm_run(c, &w, NULL);
        for (int i = 0; i < N; i++) {
            float sum = case_travelled(case_uneven(0, i), (ty_wire)wire);
            for (int r = 1; r < ty_comm_size(c); r++)
                sum += case_travelled(case_uneven(r, i), (ty_wire)wire);
            faults += x[i] != case_travelled(sum, (ty_wire)wire);
        }
    }
    free(x);
    return faults;
}

#endif
