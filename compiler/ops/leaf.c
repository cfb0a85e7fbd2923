/* leaf.c - values from outside, constants, counters, random words, and the assign effect. */
#include "base/rng.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/refiter.h"

int ty_op_infer_typed(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)in;
    (void)n_in;
    if (attr->axis != 0 && (attr->axis < 0 || attr->axis >= attr->type.rank))
        return ty_error_set(err, TY_E_SHAPE, "no axis %lld in rank %d", (long long)attr->axis, attr->type.rank);
    return ty_expect_result((ty_dtype)attr->type.dtype, attr->type.rank, attr->type.dim, res, err);
}

int ty_op_infer_rng(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)n_in;
    ty_type scalar = ty_type_scalar(TY_I64);
    if (ty_expect_type("seed", in[0], &scalar, err) < 0 || ty_expect_type("step", in[1], &scalar, err) < 0)
        return -1;
    if (attr->index < 0 || attr->index > UINT32_MAX)
        return ty_error_set(err, TY_E_GRAPH, "stream %lld is not in 0 to 2^32 - 1", (long long)attr->index);
    if (attr->type.dtype != TY_U32)
        return ty_error_set(err, TY_E_GRAPH, "random words are u32, not %s", ty_dtype_text((ty_dtype)attr->type.dtype));
    return ty_expect_result(TY_U32, attr->type.rank, attr->type.dim, res, err);
}

int ty_op_infer_assign(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)attr; /* that the state exists and has this type is the graph's to check */
    (void)n_in;
    (void)err;
    res[0] = *in[0];
    return 0;
}

int ty_op_ref_iota(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    (void)in;
    (void)n_in;
    (void)err;
    ty_refiter it;
    for (ty_refiter_start(&it, &res->type); it.more; ty_refiter_next(&it)) {
        int64_t k = res->type.rank > 0 ? it.at[attr->axis] : 0;
        if (res->f)
            res->f[it.flat] = (double)k;
        else
            res->i[it.flat] = ty_refiter_wrap((ty_dtype)res->type.dtype, k);
    }
    return 0;
}

int ty_op_ref_rng(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    (void)n_in;
    (void)err;
    for (int64_t k = 0, n = ty_type_elems(&res->type); k < n; k++)
        res->i[k] = ty_rng_u32((uint64_t)in[0].i[0], (uint32_t)attr->index, (uint32_t)in[1].i[0], (uint64_t)k);
    return 0;
}
