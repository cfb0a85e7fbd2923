/* across.c - what replicas of a graph do together: the sum of a value over all of them, their values side by side.
 *
 * A reference sees one replica. It computes what comes out if all of them hold the same operand, so that constants fold
 * and one replica can be run for all, on the same batch: a sum is then a multiple, and a loss that was divided by the
 * counts of all replicas is the one that each has alone.
 */
#include "compiler/ir/build.h"
#include "compiler/ops/combine.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/refiter.h"

#include <inttypes.h>

static int across_expect_replicas(const ty_attr *attr, ty_error *err)
{
    if (attr->replicas >= 1 && attr->replicas <= TY_MAX_REPLICAS)
        return 0;
    return ty_error_set(err, TY_E_ATTRIBUTE, "replicas: expected 1 to %d, found %" PRId64, TY_MAX_REPLICAS,
                        attr->replicas);
}

int ty_op_infer_all_reduce(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)n_in;
    if (across_expect_replicas(attr, err) < 0 || ty_expect_number("x", in[0], err) < 0)
        return -1;
    *res = *in[0];
    return 0;
}

int ty_op_infer_all_gather(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)n_in;
    if (across_expect_replicas(attr, err) < 0 || ty_expect_rank("x", in[0], 1, TY_MAX_RANK, err) < 0)
        return -1;
    if (in[0]->dim[0] > INT64_MAX / TY_MAX_REPLICAS)
        return ty_error_set(err, TY_E_SHAPE, "x: %" PRId64 " rows are too many to gather", in[0]->dim[0]);
    int64_t dim[TY_MAX_RANK];
    for (int i = 0; i < in[0]->rank; i++)
        dim[i] = in[0]->dim[i] * (i ? 1 : attr->replicas);
    return ty_expect_result((ty_dtype)in[0]->dtype, in[0]->rank, dim, res, err);
}

int ty_op_infer_reduce_scatter(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)n_in;
    if (across_expect_replicas(attr, err) < 0 || ty_expect_number("x", in[0], err) < 0 ||
        ty_expect_rank("x", in[0], 1, 1, err) < 0 || ty_expect_rank("replica", in[1], 0, 0, err) < 0 ||
        ty_expect_dtype("replica", in[1], TY_I64, err) < 0)
        return -1;
    if (in[0]->dim[0] % attr->replicas)
        return ty_error_set(err, TY_E_SHAPE, "x: %" PRId64 " elements are no equal parts for %" PRId64 " replicas",
                            in[0]->dim[0], attr->replicas);
    int64_t dim = in[0]->dim[0] / attr->replicas;
    return ty_expect_result((ty_dtype)in[0]->dtype, 1, &dim, res, err);
}

int ty_op_ref_all_reduce(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    int64_t n = ty_type_elems(&in[0].type);
    (void)n_in, (void)err;
    for (int64_t r = 0; r < attr->replicas; r++)
        for (int64_t k = 0; k < n; k++)
            ty_combine_into(TY_SUM, &res[0], k, &in[0], k);
    return 0;
}

int ty_op_ref_reduce_scatter(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    int64_t n = ty_type_elems(&res[0].type), replica = (int64_t)in[1].f[0];
    (void)n_in;
    if (replica < 0 || replica >= attr->replicas)
        return ty_error_set(err, TY_E_RANGE, "replica: number %" PRId64 " of %" PRId64, replica, attr->replicas);
    for (int64_t r = 0; r < attr->replicas; r++)
        for (int64_t k = 0; k < n; k++)
            ty_combine_into(TY_SUM, &res[0], k, &in[0], replica * n + k);
    return 0;
}

int ty_op_ref_all_gather(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    int64_t n = ty_type_elems(&in[0].type);
    (void)n_in, (void)err;
    for (int64_t r = 0; r < attr->replicas; r++)
        for (int64_t k = 0; k < n; k++)
            ty_refiter_copy(&res[0], r * n + k, &in[0], k);
    return 0;
}

/* What is differentiated is the sum of the replicas' losses, in each of which the sum has a part. */
void ty_op_grad_all_reduce(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    din[0] = ty_b_all_reduce(g, dres[0], ty_graph_attr(g, node)->replicas);
}
