/* expect.c - see expect.h. */
#include "compiler/ops/expect.h"

#include "compiler/ops/combine.h"

#include <inttypes.h>
#include <stdio.h>

#define TYPE_TEXT_BYTES 160

int ty_expect_float(const char *what, const ty_type *t, ty_error *err)
{
    if (ty_dtype_is_float(t->dtype))
        return 0;
    return ty_error_set(err, TY_E_SHAPE, "%s: expected a float type, found %s", what, ty_dtype_text(t->dtype));
}

int ty_expect_number(const char *what, const ty_type *t, ty_error *err)
{
    if (t->dtype != TY_BOOL)
        return 0;
    return ty_error_set(err, TY_E_SHAPE, "%s: expected a number type, found bool", what);
}

int ty_expect_index(const char *what, const ty_type *t, ty_error *err)
{
    if (t->dtype == TY_I32 || t->dtype == TY_I64)
        return 0;
    return ty_error_set(err, TY_E_SHAPE, "%s: expected i32 or i64, found %s", what, ty_dtype_text(t->dtype));
}

int ty_expect_dtype(const char *what, const ty_type *t, ty_dtype dtype, ty_error *err)
{
    if (t->dtype == dtype)
        return 0;
    return ty_error_set(err, TY_E_SHAPE, "%s: expected %s, found %s", what, ty_dtype_text(dtype),
                        ty_dtype_text(t->dtype));
}

int ty_expect_rank(const char *what, const ty_type *t, int lo, int hi, ty_error *err)
{
    char text[TYPE_TEXT_BYTES];
    if (t->rank >= lo && t->rank <= hi)
        return 0;
    ty_type_text(t, text, sizeof text);
    if (lo == hi)
        return ty_error_set(err, TY_E_SHAPE, "%s: expected rank %d, found %s", what, lo, text);
    return ty_error_set(err, TY_E_SHAPE, "%s: expected rank %d to %d, found %s", what, lo, hi, text);
}

int ty_expect_type(const char *what, const ty_type *t, const ty_type *expected, ty_error *err)
{
    char want[TYPE_TEXT_BYTES], have[TYPE_TEXT_BYTES];
    if (ty_type_same(t, expected))
        return 0;
    return ty_error_set(err, TY_E_SHAPE, "%s: expected %s, found %s", what, ty_type_text(expected, want, sizeof want),
                        ty_type_text(t, have, sizeof have));
}

int ty_expect_axis(const ty_attr *attr, const ty_type *t, ty_error *err)
{
    char text[TYPE_TEXT_BYTES];
    if (attr->axis >= 0 && attr->axis < t->rank)
        return 0;
    return ty_error_set(err, TY_E_SHAPE, "axis: expected 0 to %d for %s, found %" PRId64, t->rank - 1,
                        ty_type_text(t, text, sizeof text), attr->axis);
}

int ty_expect_flags(const ty_attr *attr, uint32_t known, ty_error *err)
{
    if ((attr->flags & ~known) == 0)
        return 0;
    return ty_error_set(err, TY_E_GRAPH, "flags: expected bits of %" PRIu32 ", found %" PRIu32, known, attr->flags);
}

int ty_expect_mode(const ty_attr *attr, uint32_t allowed, ty_error *err)
{
    if (attr->mode <= TY_SET && (allowed >> attr->mode & 1))
        return 0;
    char list[64] = "";
    size_t len = 0;
    for (ty_combine m = TY_SUM; m <= TY_SET; m++)
        if (allowed >> m & 1)
            len += (size_t)snprintf(list + len, sizeof list - len, "%s%s", len ? ", " : "", ty_combine_name(m));
    return ty_error_set(err, TY_E_GRAPH, "mode: expected one of %s, found %s (%" PRIu32 ")", list,
                        ty_combine_name((ty_combine)attr->mode), attr->mode);
}

int ty_expect_result(ty_dtype dtype, int rank, const int64_t *dim, ty_type *res, ty_error *err)
{
    if (rank > TY_MAX_RANK)
        return ty_error_set(err, TY_E_SHAPE, "result: expected rank 0 to %d, found %d", TY_MAX_RANK, rank);
    if (ty_dims_elems_checked(rank, dim, ty_dtype_bytes(dtype)) < 0)
        return ty_error_set(err, TY_E_SHAPE, "result: expected a size below 2^63 bytes, found more");
    *res = ty_type_make(dtype, rank, dim);
    return 0;
}
