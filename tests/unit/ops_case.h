/* ops_case.h - one case of an op: operands written as numbers, results expected as numbers, or a refusal.
 *
 *     case_expect(TY_OP_TAKE, (ty_attr){.axis = 1}, IN(F64(DIMS(1, 3), 5, 6, 7), INT(TY_I64, DIMS(1, 2), 2, 0)),
 *                 OUT(F64(DIMS(1, 2), 7, 5)));
 *
 * Goes to the row's infer and ref directly; no graph is built. Include after cmocka.h.
 */
#ifndef TY_TESTS_UNIT_OPS_CASE_H
#define TY_TESTS_UNIT_OPS_CASE_H

#include "base/arena.h"
#include "compiler/ops/op.h"
#include "compiler/ops/ref.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define DIMS(...)                                                                \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) \
    {                                                                            \
        __VA_ARGS__                                                              \
    }
#define SCALAR 0, NULL
#define F64(dims, ...) \
    case_f(TY_F64, dims, (const double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double))
#define FLOAT(dtype, dims, ...) \
    case_f(dtype, dims, (const double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double))
#define INT(dtype, dims, ...) \
    case_i(dtype, dims, (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
/* An operand of which only the type matters. */
#define TYPE(dtype, dims) case_typed(dtype, dims)
#define IN(...)           (ty_ref[]){__VA_ARGS__}, (int)(sizeof((ty_ref[]){__VA_ARGS__}) / sizeof(ty_ref))
#define OUT(...)    \
    (ty_ref[])      \
    {               \
        __VA_ARGS__ \
    }

static ty_arena case_arena; /* holds the operands; freed by case_teardown */

static inline int case_setup(void **state)
{
    (void)state;
    ty_arena_init(&case_arena);
    return 0;
}

static inline int case_teardown(void **state)
{
    (void)state;
    ty_arena_fini(&case_arena);
    return 0;
}

static inline ty_ref case_typed(ty_dtype dtype, int rank, const int64_t *dim)
{
    return (ty_ref){.type = ty_type_make(dtype, rank, dim)};
}

static inline ty_ref case_f(ty_dtype dtype, int rank, const int64_t *dim, const double *v, size_t n)
{
    ty_ref r = case_typed(dtype, rank, dim);
    assert_int_equal(ty_type_elems(&r.type), n);
    r.f = ty_arena_copy(&case_arena, v, n * sizeof *v);
    return r;
}

static inline ty_ref case_i(ty_dtype dtype, int rank, const int64_t *dim, const int64_t *v, size_t n)
{
    ty_ref r = case_typed(dtype, rank, dim);
    assert_int_equal(ty_type_elems(&r.type), n);
    r.i = ty_arena_copy(&case_arena, v, n * sizeof *v);
    return r;
}

/* A float operand of any size with numbers in (-1, 1) that look random and are the same everywhere. */
static inline ty_ref case_noise(int rank, const int64_t *dim, unsigned seed)
{
    ty_ref r = case_typed(TY_F64, rank, dim);
    int64_t n = ty_type_elems(&r.type);
    uint32_t s = seed * 2654435761u + 12345u;
    r.f = ty_arena_alloc(&case_arena, (size_t)n * sizeof *r.f);
    for (int64_t k = 0; k < n; k++) {
        s = s * 1664525u + 1013904223u;
        r.f[k] = (double)(s >> 8) / (1 << 23) - 1;
    }
    return r;
}

static inline void case_infer_types(const ty_ref *in, int n_in, const ty_type **out)
{
    for (int i = 0; i < n_in; i++)
        out[i] = &in[i].type;
}

/* Infers and runs; fails the test if either refuses. Results live in the arena. */
static inline void case_run(ty_op op, ty_attr attr, const ty_ref *in, int n_in, ty_ref *res)
{
    const ty_op_row *row = ty_op_row_of(op);
    const ty_type *types[16];
    ty_type out[TY_MAX_RESULTS] = {0};
    ty_error err = {0};
    case_infer_types(in, n_in, types);
    if (row->infer(&attr, types, n_in, out, &err) < 0)
        fail_msg("%s: infer: %s", row->text, err.message);
    for (int r = 0; r < row->n_res; r++) {
        size_t n = (size_t)ty_type_elems(&out[r]);
        res[r] = (ty_ref){.type = out[r]};
        if (ty_dtype_is_float(out[r].dtype))
            res[r].f = ty_arena_alloc(&case_arena, n * sizeof(double));
        else
            res[r].i = ty_arena_alloc(&case_arena, n * sizeof(int64_t));
    }
    if (row->ref(&attr, in, n_in, res, &err) < 0)
        fail_msg("%s: ref: %s", row->text, err.message);
}

/* The same numbers to within tol of the larger of 1 and the number; NaN equals NaN. */
static inline void case_same(const char *what, const ty_ref *got, const ty_ref *want, double tol)
{
    char a[160], b[160];
    if (!ty_type_same(&got->type, &want->type))
        fail_msg("%s: type %s, expected %s", what, ty_type_text(&got->type, a, sizeof a),
                 ty_type_text(&want->type, b, sizeof b));
    int64_t n = ty_type_elems(&got->type);
    for (int64_t k = 0; k < n; k++) {
        if (!got->f) {
            if (got->i[k] != want->i[k])
                fail_msg("%s: element %" PRId64 " is %" PRId64 ", expected %" PRId64, what, k, got->i[k], want->i[k]);
            continue;
        }
        double x = got->f[k], y = want->f[k];
        if (x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= tol * fmax(1, fabs(y)))
            continue;
        fail_msg("%s: element %" PRId64 " is %.17g, expected %.17g", what, k, x, y);
    }
}

static inline void case_expect(ty_op op, ty_attr attr, const ty_ref *in, int n_in, const ty_ref *want)
{
    ty_ref res[TY_MAX_RESULTS];
    const ty_op_row *row = ty_op_row_of(op);
    case_run(op, attr, in, n_in, res);
    for (int r = 0; r < row->n_res; r++) {
        char what[64];
        snprintf(what, sizeof what, "%s, result %d", row->text, r);
        case_same(what, &res[r], &want[r], 1e-12);
    }
}

/* infer refuses with `text` in its message. */
static inline void case_refused(ty_op op, ty_attr attr, const ty_ref *in, int n_in, const char *text)
{
    const ty_op_row *row = ty_op_row_of(op);
    const ty_type *types[16];
    ty_type out[TY_MAX_RESULTS] = {0};
    ty_error err = {0};
    case_infer_types(in, n_in, types);
    if (row->infer(&attr, types, n_in, out, &err) == 0)
        fail_msg("%s: accepted, expected \"%s\"", row->text, text);
    if (!strstr(err.message, text) || !strstr(err.message, "expected") || err.code == TY_E_NONE)
        fail_msg("%s: refused with \"%s\" (code %d), expected \"%s\"", row->text, err.message, err.code, text);
}

/* infer accepts the types and ref refuses the data. */
static inline void case_no_value(ty_op op, ty_attr attr, const ty_ref *in, int n_in, const char *text)
{
    const ty_op_row *row = ty_op_row_of(op);
    const ty_type *types[16];
    ty_type out[TY_MAX_RESULTS] = {0};
    ty_ref res[TY_MAX_RESULTS] = {0};
    ty_error err = {0};
    case_infer_types(in, n_in, types);
    assert_int_equal(row->infer(&attr, types, n_in, out, NULL), 0);
    for (int r = 0; r < row->n_res; r++)
        assert_int_equal(ty_ref_init(&res[r], &out[r], NULL), 0);
    int rc = row->ref(&attr, in, n_in, res, &err);
    for (int r = 0; r < row->n_res; r++)
        ty_ref_fini(&res[r]);
    assert_int_equal(rc, -1);
    assert_int_equal(err.code, TY_E_DATA_VALUE);
    if (!strstr(err.message, text))
        fail_msg("%s: refused with \"%s\", expected \"%s\"", row->text, err.message, text);
}

#endif
