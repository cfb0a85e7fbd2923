/* What `trainyard perf` takes for wrong: a carrier of one rank that changes the last bit of what it was given. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "dist/comm/perf.h"

#include <stdlib.h>
#include <string.h>

static int take(void *ctx, size_t bytes, char **out, ty_error *err)
{
    (void)ctx, (void)err;
    *out = calloc(1, bytes);
    return 0;
}

static void give(void *ctx, char *at)
{
    (void)ctx;
    free(at);
}

static int put(void *ctx, char *to, const void *from, size_t bytes, ty_error *err)
{
    (void)ctx, (void)err;
    memcpy(to, from, bytes);
    return 0;
}

/* Of each number the last bit, as rounding may. */
static int get(void *ctx, void *to, const char *from, size_t bytes, ty_error *err)
{
    (void)err;
    size_t elem = *(const size_t *)ctx;
    memcpy(to, from, bytes);
    for (size_t i = 0; i < bytes; i += elem)
        ((char *)to)[i] ^= 1;
    return 0;
}

static int run(void *ctx, const ty_collective *what, ty_error *err)
{
    (void)ctx, (void)err;
    memmove(what->out, what->in, (size_t)what->n * ty_dtype_bytes(what->dtype));
    return 0;
}

static int settle(void *ctx, ty_error *err)
{
    (void)ctx, (void)err;
    return 0;
}

static void note(void *ctx, const ty_perf_row *row)
{
    *(int64_t *)ctx = row->out_of_place.wrong;
}

/* How many of eight numbers are wrong. */
static int64_t wrong(ty_dtype dtype, ty_reduce reduce, bool divides_first)
{
    ty_error err = {0};
    ty_comm *comm;
    size_t elem = ty_dtype_bytes(dtype);
    int64_t found = -1, bytes = 8 * (int64_t)elem;
    const ty_perf_carrier carrier = {.ctx = &elem,
                                     .alloc = take,
                                     .free = give,
                                     .put = put,
                                     .get = get,
                                     .run = run,
                                     .wait = settle,
                                     .divides_first = divides_first};
    const ty_perf_options options = {.kind = TY_ALL_REDUCE,
                                     .min_bytes = bytes,
                                     .max_bytes = bytes,
                                     .factor = 2,
                                     .dtype = dtype,
                                     .reduce = reduce,
                                     .iterations = 1,
                                     .check = true};
    assert_int_equal(ty_comm_open_threads(NULL, 1, &comm, &err), 0);
    if (ty_perf_run(comm, &carrier, &options, note, &found, &err) < 0)
        fail_msg("%s", err.message);
    ty_comm_close(comm, true);
    return found;
}

static void averages_of_divided_parts_may_be_rounded(void **state)
{
    (void)state;
    assert_int_equal(wrong(TY_F32, TY_REDUCE_AVERAGE, true), 0);
    assert_int_equal(wrong(TY_F32, TY_REDUCE_AVERAGE, false), 8);
    assert_int_equal(wrong(TY_BF16, TY_REDUCE_AVERAGE, false), 8);
    assert_int_equal(wrong(TY_F32, TY_REDUCE_SUM, true), 8);
    assert_int_equal(wrong(TY_I32, TY_REDUCE_AVERAGE, true), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(averages_of_divided_parts_may_be_rounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
