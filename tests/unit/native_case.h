/* native_case.h - one call of an op by hand-written code against its reference function.
 *
 *     native_agrees(TY_OP_SCAN, attr, TYPES(TYPE(TY_F32, DIMS(3, 5))), NATIVE_TIES, 0);
 *
 * Operands are made up from a seed; the call is prepared for one, two and three threads, which must give the same bits,
 * and those must be the reference's: integers exactly, floats within the tolerance. Every buffer lies at an odd
 * multiple of four bytes and ends where its memory does, so that a sanitizer sees each access too many. Include after
 * cmocka.h.
 */
#ifndef TY_TESTS_UNIT_NATIVE_CASE_H
#define TY_TESTS_UNIT_NATIVE_CASE_H

#include "compiler/ops/op.h"
#include "compiler/ops/ref.h"
#include "compiler/ops/sliding.h"
#include "compiler/target/cpu/native.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NATIVE_MAX_IN 6

#define DIMS(...)                                                                \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) \
    {                                                                            \
        __VA_ARGS__                                                              \
    }
#define TYPE(dtype, dims) ty_type_make(dtype, dims)
#define TYPES(...)        (const ty_type[]){__VA_ARGS__}, (int)(sizeof((ty_type[]){__VA_ARGS__}) / sizeof(ty_type))

/* What float operands are made of; integers are small numbers always. */
typedef enum native_fill {
    NATIVE_NOISE, /* (-1, 1) */
    NATIVE_TIES,  /* few different numbers, both zeros, some NaN and infinities */
    NATIVE_LEAST, /* minus infinity */
} native_fill;

typedef struct native_buffers {
    void *block[NATIVE_MAX_IN + TY_MAX_RESULTS]; /* what to free */
    void *in[NATIVE_MAX_IN], *out[TY_MAX_RESULTS];
    ty_type in_type[NATIVE_MAX_IN], res_type[TY_MAX_RESULTS];
    int n_in, n_res;
    bool loose; /* not `deterministic: strict` */
} native_buffers;

typedef ty_library_prepare_fn *native_prepare;

/* What prepares the op; pools of channels-last tensors have functions of their own. */
static inline native_prepare native_of(ty_op op, bool last)
{
    static const struct {
        ty_op op;
        native_prepare prepare;
    } table[] = {
        {TY_OP_POOL_MAX, ty_native_prepare_last_max},   {TY_OP_POOL_MAX_GRAD, ty_native_prepare_last_max_grad},
        {TY_OP_POOL_SUM, ty_native_prepare_last_sum},   {TY_OP_POOL_SUM_GRAD, ty_native_prepare_last_sum_grad},
        {TY_OP_POOL_MAX, ty_native_prepare_pool_max},   {TY_OP_POOL_MAX_GRAD, ty_native_prepare_pool_max_grad},
        {TY_OP_POOL_SUM, ty_native_prepare_pool_sum},   {TY_OP_POOL_SUM_GRAD, ty_native_prepare_pool_sum_grad},
        {TY_OP_SCATTER, ty_native_prepare_scatter},     {TY_OP_PUT, ty_native_prepare_put},
        {TY_OP_FIND_ROWS, ty_native_prepare_find_rows}, {TY_OP_SUM_ROWS, ty_native_prepare_sum_rows},
        {TY_OP_ARGREDUCE, ty_native_prepare_argreduce}, {TY_OP_SCAN, ty_native_prepare_scan},
        {TY_OP_SORT, ty_native_prepare_sort},           {TY_OP_RNN_STEPS, ty_native_prepare_rnn_steps},
        {TY_OP_RNN_GRAD, ty_native_prepare_rnn_grad},   {TY_OP_DOT, ty_native_prepare_dot},
        {TY_OP_CONV, ty_native_prepare_thin},           {TY_OP_CONV_DW, ty_native_prepare_thin_dw},
    };
    for (size_t i = last ? 0 : 4; i < sizeof table / sizeof *table; i++)
        if (table[i].op == op)
            return table[i].prepare;
    return NULL;
}

static inline uint32_t native_random(uint32_t *s)
{
    *s = *s * 1664525u + 1013904223u;
    return *s >> 8;
}

static inline double native_number(native_fill fill, uint32_t r)
{
    static const double odd[] = {NAN, -INFINITY, INFINITY, -0.0};
    if (fill == NATIVE_NOISE)
        return (double)r / (1 << 23) - 1;
    if (fill == NATIVE_LEAST)
        return -INFINITY;
    return r % 31 == 0 ? odd[r / 31 % 4] : (double)(r / 7 % 7) / 2 - 1;
}

/* n bytes that start at an odd multiple of 4 and end where the block does. */
static inline void *native_bytes(native_buffers *b, int slot, size_t n)
{
    b->block[slot] = aligned_alloc(4, (n + 4 + 3) / 4 * 4);
    assert_non_null(b->block[slot]);
    memset(b->block[slot], 0xa5, n + 4);
    return (char *)b->block[slot] + 4;
}

/* Operand 1, if of integers, is an index where limit is not 0: 0 <= index < limit. */
static inline void native_fill_operand(native_buffers *b, int i, native_fill fill, int64_t limit, uint32_t *seed)
{
    ty_ref r;
    assert_int_equal(ty_ref_init(&r, &b->in_type[i], NULL), 0);
    for (int64_t k = 0, n = ty_type_elems(&r.type); k < n; k++) {
        uint32_t v = native_random(seed);
        if (r.f)
            r.f[k] = native_number(fill, v);
        else
            r.i[k] = i == 1 && limit > 0 ? (int64_t)(v % limit) : (int64_t)(v % 9) - 4;
    }
    b->in[i] = native_bytes(b, i, ty_type_bytes(&r.type));
    ty_ref_store(&r, b->in[i]);
    ty_ref_fini(&r);
}

static inline void native_make(native_buffers *b, ty_op op, const ty_attr *attr, const ty_type *in, int n_in,
                               native_fill fill, int64_t limit)
{
    const ty_op_row *row = ty_op_row_of(op);
    const ty_type *types[NATIVE_MAX_IN];
    ty_error err = {0};
    uint32_t seed = 7;
    *b = (native_buffers){.n_in = n_in, .n_res = row->n_res};
    for (int i = 0; i < n_in; i++) {
        b->in_type[i] = in[i];
        types[i] = &b->in_type[i];
        native_fill_operand(b, i, fill, limit, &seed);
    }
    if (row->infer(attr, types, n_in, b->res_type, &err) < 0)
        fail_msg("%s: infer: %s", row->text, err.message);
}

/* Runs by `prepare`, or by the reference if it is NULL, into fresh results. */
static inline void native_call(native_buffers *b, ty_op op, const ty_attr *attr, native_prepare prepare, int threads)
{
    ty_library_shape shape = {attr, b->in_type, b->n_in, b->res_type, b->n_res, threads, !b->loose};
    ty_library_call call = {0};
    ty_error err = {0};
    int rc = prepare ? prepare(&shape, &call, &err) : ty_native_prepare_reference_of(op, &shape, &call, &err);
    if (rc < 0)
        fail_msg("%s: prepare: %s", ty_op_row_of(op)->text, err.message);
    for (int r = 0; r < b->n_res; r++)
        b->out[r] = native_bytes(b, NATIVE_MAX_IN + r, ty_type_bytes(&b->res_type[r]));
    void *scratch = aligned_alloc(64, (call.scratch_bytes + 63) / 64 * 64 + 64);
    call.run(call.prepared, (const void *const *)b->in, b->out, scratch);
    free(scratch);
    assert_true(!prepare || strncmp(call.text, "native", 6) == 0);
    if (call.release)
        call.release(call.prepared);
}

static inline void native_free_results(native_buffers *b)
{
    for (int r = 0; r < b->n_res; r++)
        free(b->block[NATIVE_MAX_IN + r]);
}

static inline void native_free_operands(native_buffers *b)
{
    for (int i = 0; i < b->n_in; i++)
        free(b->block[i]);
}

/* Both widened; NaN is NaN. */
static inline void native_compare(const char *what, const ty_type *type, const void *got, const void *want, double tol)
{
    ty_ref g, w;
    assert_int_equal(ty_ref_init(&g, type, NULL), 0);
    assert_int_equal(ty_ref_init(&w, type, NULL), 0);
    ty_ref_load(&g, got);
    ty_ref_load(&w, want);
    for (int64_t k = 0, n = ty_type_elems(type); k < n; k++) {
        if (!g.f && g.i[k] != w.i[k])
            fail_msg("%s: element %" PRId64 " is %" PRId64 ", expected %" PRId64, what, k, g.i[k], w.i[k]);
        if (!g.f || g.f[k] == w.f[k] || (isnan(g.f[k]) && isnan(w.f[k])) ||
            fabs(g.f[k] - w.f[k]) <= tol * fmax(1, fabs(w.f[k])))
            continue;
        fail_msg("%s: element %" PRId64 " is %.9g, expected %.9g", what, k, g.f[k], w.f[k]);
    }
    ty_ref_fini(&g);
    ty_ref_fini(&w);
}

/* Convolutions have several, by what is few: channels of a group, or filters. */
static inline native_prepare native_for(const native_buffers *b, ty_op op, const ty_attr *attr)
{
    bool conv = op == TY_OP_CONV || op == TY_OP_CONV_DW, last = op != TY_OP_DOT && attr->flags & TY_SLIDING_LAST;
    if (op == TY_OP_CONV_DX)
        return ty_native_prepare_taps_dx;
    if (op == TY_OP_CONV_DW && attr->groups > 1)
        return ty_native_prepare_depth_dw;
    if (conv && b->in_type[1].dim[op == TY_OP_CONV ? 0 : b->in_type[1].rank - 1] <= 4)
        return op == TY_OP_CONV ? ty_native_prepare_slim : ty_native_prepare_slim_dw;
    if (conv && b->in_type[0].dim[b->in_type[0].rank - 1] > 4)
        return op == TY_OP_CONV ? ty_native_prepare_taps : ty_native_prepare_taps_dw;
    return native_of(op, last);
}

/* Calls with 1 to 3 threads on what is in b, comparing each with `want`. */
static inline void native_check(native_buffers *b, ty_op op, const ty_attr *attr, void *const *want, double tol)
{
    native_buffers one;
    native_prepare by = native_for(b, op, attr);
    for (int threads = 1; threads <= 3; threads++) {
        native_call(b, op, attr, by, threads);
        for (int r = 0; r < b->n_res; r++) {
            char what[160];
            ty_type_text(&b->in_type[0], what, sizeof what);
            snprintf(what + strlen(what), sizeof what - strlen(what), " %s, result %d, %d threads",
                     ty_op_row_of(op)->text, r, threads);
            native_compare(what, &b->res_type[r], b->out[r], want[r], tol);
            if (threads > 1 && memcmp(b->out[r], one.out[r], ty_type_bytes(&b->res_type[r])))
                fail_msg("%s: bits differ from those of one thread", what);
        }
        if (threads == 1)
            one = *b;
        else
            native_free_results(b);
    }
    native_free_results(&one);
}

static inline void native_agrees_below(ty_op op, ty_attr attr, const ty_type *in, int n_in, native_fill fill,
                                       double tol, int64_t limit)
{
    native_buffers b;
    native_make(&b, op, &attr, in, n_in, fill, limit);
    native_call(&b, op, &attr, NULL, 1);
    native_buffers want = b;
    native_check(&b, op, &attr, want.out, tol);
    native_free_results(&want);
    native_free_operands(&b);
}

static inline void native_agrees(ty_op op, ty_attr attr, const ty_type *in, int n_in, native_fill fill, double tol)
{
    native_agrees_below(op, attr, in, n_in, fill, tol, 0);
}

#endif
