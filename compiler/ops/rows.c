/* rows.c - a table of which few rows change: what a row-sparse update is made of.
 *
 * find_rows sorts the numbers of a batch, sum_rows adds up what goes to the same row of the table, get_rows reads those
 * rows of the table (or of what is kept beside it) and set_rows writes them back. Their lists of rows are what
 * find_rows gives: distinct, in rising order, and then -1 to a length that is known before the numbers are, the smaller
 * of how many numbers and how many rows there are. Nothing is as large as the table but the table itself. Sorting is an
 * op of its own since tables that are read by the same numbers share it.
 *
 * None has a gradient: they come up where all gradients are known.
 */
#include "compiler/ir/build.h"
#include "compiler/ops/combine.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/families.h"
#include "compiler/ops/refiter.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- types ---- */

/* t with another first dim. */
static int rows_of(const ty_type *t, int64_t n, ty_type *res, ty_error *err)
{
    int64_t dim[TY_MAX_RANK];
    for (int i = 0; i < t->rank; i++)
        dim[i] = i ? t->dim[i] : n;
    return ty_expect_result((ty_dtype)t->dtype, t->rank, dim, res, err);
}

int ty_op_infer_find_rows(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)n_in;
    if (ty_expect_index("index", in[0], err) < 0 || ty_expect_rank("index", in[0], 1, 1, err) < 0)
        return -1;
    if (attr->index < 0 || attr->index == INT64_MAX)
        return ty_error_set(err, TY_E_SHAPE, "index: expected the number of rows of a table, found %" PRId64,
                            attr->index);
    int64_t n = in[0]->dim[0], k = n < attr->index ? n : attr->index, starts = k + 1;
    return ty_expect_result(TY_I64, 1, &k, &res[0], err) < 0 || ty_expect_result(TY_I64, 1, &n, &res[1], err) < 0
               ? -1
               : ty_expect_result(TY_I64, 1, &starts, &res[2], err);
}

int ty_op_infer_sum_rows(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)attr, (void)n_in;
    if (ty_expect_number("update", in[0], err) < 0 || ty_expect_rank("update", in[0], 1, TY_MAX_RANK, err) < 0 ||
        ty_expect_index("start", in[2], err) < 0 || ty_expect_rank("start", in[2], 1, 1, err) < 0)
        return -1;
    ty_type order = ty_type_make((ty_dtype)in[2]->dtype, 1, in[0]->dim);
    if (ty_expect_type("order", in[1], &order, err) < 0)
        return -1;
    if (in[2]->dim[0] < 1)
        return ty_error_set(err, TY_E_SHAPE, "start: expected at least one number, found none");
    return rows_of(in[0], in[2]->dim[0] - 1, res, err);
}

int ty_op_infer_get_rows(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    (void)attr, (void)n_in;
    if (ty_expect_rank("x", in[0], 1, TY_MAX_RANK, err) < 0 || ty_expect_index("rows", in[1], err) < 0 ||
        ty_expect_rank("rows", in[1], 1, 1, err) < 0)
        return -1;
    return rows_of(in[0], in[1]->dim[0], res, err);
}

int ty_op_infer_set_rows(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err)
{
    ty_type update;
    if (ty_op_infer_get_rows(attr, in, n_in, &update, err) < 0 || ty_expect_type("update", in[2], &update, err) < 0)
        return -1;
    *res = *in[0];
    return 0;
}

/* ---- meaning ---- */

/* A number of the index and its place. */
typedef struct rows_item {
    int64_t row, at;
} rows_item;

static int rows_compare(const void *a, const void *b)
{
    const rows_item *x = a, *y = b;
    return x->row != y->row ? (x->row > y->row) - (x->row < y->row) : (x->at > y->at) - (x->at < y->at);
}

/* One result after the other from the sorted numbers. */
static void rows_list(const rows_item *item, int64_t n, ty_ref *res)
{
    int64_t n_rows = ty_type_elems(&res[0].type), k = 0;
    for (int64_t i = 0; i < n; i++) {
        res[1].i[i] = item[i].at;
        if (i > 0 && item[i].row == item[i - 1].row)
            continue;
        res[0].i[k] = item[i].row;
        res[2].i[k++] = i;
    }
    for (; k <= n_rows; k++) {
        res[2].i[k] = n;
        if (k < n_rows)
            res[0].i[k] = -1;
    }
}

/* An entry of a list that must lie in [0, limit). */
static int rows_inside(const char *what, const ty_ref *list, int64_t k, int64_t limit, ty_error *err)
{
    if (list->i[k] >= 0 && list->i[k] < limit)
        return 0;
    return ty_error_set(err, TY_E_DATA_VALUE, "%s: expected 0 to %" PRId64 ", found %" PRId64 " at element %" PRId64,
                        what, limit - 1, list->i[k], k);
}

int ty_op_ref_find_rows(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    int64_t n = ty_type_elems(&in[0].type);
    (void)n_in;
    for (int64_t k = 0; k < n; k++)
        if (rows_inside("index", &in[0], k, attr->index, err) < 0)
            return -1;
    rows_item *item = calloc((size_t)n + 1, sizeof *item);
    if (!item)
        return ty_error_set(err, TY_E_LIMIT, "no memory to sort %" PRId64 " numbers", n);
    for (int64_t k = 0; k < n; k++)
        item[k] = (rows_item){in[0].i[k], k};
    qsort(item, (size_t)n, sizeof *item, rows_compare);
    rows_list(item, n, res);
    free(item);
    return 0;
}

int ty_op_ref_sum_rows(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    int64_t n = ty_type_elems(&in[1].type), inner = n ? ty_type_elems(&in[0].type) / n : 0;
    (void)attr, (void)n_in;
    for (int64_t j = 0; j < res->type.dim[0]; j++)
        for (int64_t p = in[2].i[j]; p < in[2].i[j + 1]; p++) {
            if (rows_inside("start", &in[2], j, n, err) < 0 || rows_inside("start", &in[2], j + 1, n + 1, err) < 0 ||
                rows_inside("order", &in[1], p, n, err) < 0)
                return -1;
            for (int64_t i = 0; i < inner; i++)
                ty_combine_into(TY_SUM, &res[0], j * inner + i, &in[0], in[1].i[p] * inner + i);
        }
    return 0;
}

/* Row number k of the list, -1 behind its end; refuses lists that are not what find_rows gives. */
static int rows_at(const ty_ref *rows, int64_t k, int64_t limit, int64_t *out, ty_error *err)
{
    int64_t row = *out = rows->i[k], before = k ? rows->i[k - 1] : -1;
    bool rises = row == -1 || (row > before && (k == 0 || before >= 0));
    if (row >= -1 && row < limit && rises)
        return 0;
    return ty_error_set(err, TY_E_DATA_VALUE,
                        "rows: expected rising numbers below %" PRId64 " and then -1, found %" PRId64
                        " at element %" PRId64,
                        limit, row, k);
}

int ty_op_ref_get_rows(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    int64_t outer, n, inner, row;
    (void)attr, (void)n_in;
    ty_refiter_split(&in[0].type, 0, &outer, &n, &inner);
    for (int64_t k = 0; k < ty_type_elems(&in[1].type); k++) {
        if (rows_at(&in[1], k, n, &row, err) < 0)
            return -1;
        for (int64_t i = 0; i < inner && row >= 0; i++)
            ty_refiter_copy(&res[0], k * inner + i, &in[0], row * inner + i);
    }
    return 0;
}

int ty_op_ref_set_rows(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err)
{
    int64_t outer, n, inner, row, elems = ty_type_elems(&in[0].type);
    (void)attr, (void)n_in;
    ty_refiter_split(&in[0].type, 0, &outer, &n, &inner);
    for (int64_t k = 0; k < elems; k++)
        ty_refiter_copy(&res[0], k, &in[0], k);
    for (int64_t k = 0; k < ty_type_elems(&in[1].type); k++) {
        if (rows_at(&in[1], k, n, &row, err) < 0)
            return -1;
        for (int64_t i = 0; i < inner && row >= 0; i++)
            ty_refiter_copy(&res[0], row * inner + i, &in[2], k * inner + i);
    }
    return 0;
}
