/* sort.c - sort(x) along an axis: values and where they came from. */
#include "compiler/ir/build.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/refiter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SORT_DESCENDING 1u

int ty_op_infer_sort(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)n_in;
    if (ty_expect_axis(attr, in[0], err) < 0 || ty_expect_flags(attr, SORT_DESCENDING, err) < 0)
        return -1;
    res[0] = *in[0];
    return ty_expect_result(TY_I64, in[0]->rank, in[0]->dim, &res[1], err);
}

/* A value as a number that orders the same as unsigned integers do, and its place. */
typedef struct sort_item {
    uint64_t key;
    int64_t at;
} sort_item;

/* Floats order like their bits once negative ones are inverted and positive ones lifted above them. Both zeros are
 * equal; all NaN are equal and above infinity. */
static uint64_t sort_key(const ty_ref *x, int64_t k)
{
    const uint64_t sign = UINT64_C(1) << 63;
    uint64_t bits;
    if (!x->f)
        return x->type.dtype == TY_U64 ? (uint64_t)x->i[k] : (uint64_t)x->i[k] ^ sign;
    double v = x->f[k] == 0 ? 0 : x->f[k];
    if (isnan(v))
        return UINT64_MAX;
    memcpy(&bits, &v, sizeof bits);
    return bits & sign ? ~bits : bits | sign;
}

/* Equal keys order by place, which makes any sort a stable one. */
static int sort_compare(const void *a, const void *b)
{
    const sort_item *p = a, *q = b;
    if (p->key != q->key)
        return p->key < q->key ? -1 : 1;
    return p->at < q->at ? -1 : p->at > q->at;
}

int ty_op_ref_sort(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    int64_t outer, n, inner;
    uint64_t flip = attr->flags & SORT_DESCENDING ? UINT64_MAX : 0;
    (void)n_in;
    ty_refiter_split(&in[0].type, attr->axis, &outer, &n, &inner);
    sort_item *item = calloc((size_t)n + 1, sizeof *item);
    if (!item)
        return ty_error_set(err, TY_E_LIMIT, "no memory to sort rows of %lld elements", (long long)n);
    for (int64_t row = 0; row < outer * inner; row++) {
        int64_t start = row / inner * n * inner + row % inner;
        for (int64_t k = 0; k < n; k++)
            item[k] = (sort_item){sort_key(&in[0], start + k * inner) ^ flip, k};
        qsort(item, (size_t)n, sizeof *item, sort_compare);
        for (int64_t k = 0; k < n; k++) {
            ty_refiter_copy(&res[0], start + k * inner, &in[0], start + item[k].at * inner);
            res[1].i[start + k * inner] = item[k].at;
        }
    }
    free(item);
    return 0;
}

/* Each gradient goes back to where its value came from; the indices have none. */
void ty_op_grad_sort(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din)
{
    if (dres[0] == TY_NONE)
        return;
    ty_val zeros = ty_b_full_like(g, dres[0], 0);
    din[0] = ty_b_put(g, zeros, ty_val_make(node, 1), dres[0], (int)ty_graph_attr(g, node)->axis, TY_SET);
}
