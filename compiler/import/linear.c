/* linear.c - see linear.h. */
#include "compiler/import/linear.h"

#include "compiler/import/special.h"
#include "compiler/ir/build.h"

bool ty_linear_fits(const ty_graph *g, ty_val a)
{
    const ty_type *t = ty_graph_type(g, a);
    return t->rank >= 2 && t->dim[t->rank - 1] == t->dim[t->rank - 2] && t->dim[t->rank - 1] <= TY_LINEAR_MOST &&
           t->dim[t->rank - 1] >= 1;
}

ty_val ty_linear_turned(ty_graph *g, ty_val a)
{
    int64_t perm[TY_MAX_RANK];
    int rank = ty_b_rank(g, a);
    for (int i = 0; i < rank; i++)
        perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    return ty_b_transpose(g, a, perm);
}

static ty_val linear_number_rows(ty_graph *g, int64_t n, int axis)
{
    return ty_b_iota(g, ty_type_make(TY_I64, 2, (int64_t[]){n, n}), axis);
}

ty_val ty_linear_triangle(ty_graph *g, ty_val a, bool lower)
{
    int64_t n = ty_b_dim(g, a, ty_b_rank(g, a) - 1);
    ty_val row = linear_number_rows(g, n, 0), column = linear_number_rows(g, n, 1);
    ty_val keep = lower ? ty_b_le(g, column, row) : ty_b_le(g, row, column);
    return ty_b_select(g, keep, a, ty_b_full_like(g, a, 0));
}

/* ---- elimination ---- */

typedef struct linear_steps {
    ty_graph *g;
    int64_t batch, n;
    ty_val m;          /* [batch, n, 2 n] what is left of the matrix, and what it becomes beside it */
    ty_val row;        /* [1, n, 1] numbers of rows */
    ty_val size, sign; /* [batch, 1, 1] of the pivots: sum of logarithms, product of signs */
} linear_steps;

/* 1 in the row of that number, [batch or 1, n, 1]. */
static ty_val linear_mark(const linear_steps *s, ty_val number)
{
    return ty_b_cast(s->g, ty_b_eq(s->g, s->row, number), TY_F64);
}

/* The marked row, [batch, 1, 2 n]. */
static ty_val linear_take(const linear_steps *s, ty_val mark)
{
    return ty_b_sum(s->g, ty_b_mul(s->g, s->m, mark), 1u << 1, true);
}

/* Of rows k and below the one with the largest number in column k, as [batch, 1, 1]. */
static ty_val linear_find_pivot(const linear_steps *s, int64_t k)
{
    ty_graph *g = s->g;
    ty_val size = ty_b_unary(g, TY_OP_ABS, ty_b_slice_axis(g, s->m, 2, k, k + 1));
    ty_val is_done = ty_b_lt(g, s->row, ty_b_scalar(g, TY_I64, (double)k));
    ty_val open = ty_b_select(g, is_done, ty_b_full_like(g, size, -1), size);
    ty_val at = ty_b_argreduce(g, open, TY_MAX, 1, false);
    return ty_b_cast(g, ty_b_reshape(g, at, 3, (int64_t[]){s->batch, 1, 1}), TY_I64);
}

/* Row k and the pivot's change places; column k becomes 0 but for a 1 in row k. */
static void linear_step(linear_steps *s, int64_t k)
{
    ty_graph *g = s->g;
    ty_val here = ty_b_scalar(g, TY_I64, (double)k), at = linear_find_pivot(s, k);
    ty_val mark_here = linear_mark(s, here), mark_at = linear_mark(s, at);
    ty_val row_here = linear_take(s, mark_here), row_at = linear_take(s, mark_at);
    ty_val apart = ty_b_sub(g, row_at, row_here);
    s->m = ty_b_add(g, s->m, ty_b_mul(g, ty_b_sub(g, mark_here, mark_at), apart));
    ty_val pivot = ty_b_slice_axis(g, row_at, 2, k, k + 1);
    ty_val column = ty_b_sub(g, ty_b_slice_axis(g, s->m, 2, k, k + 1), mark_here);
    s->m = ty_b_sub(g, s->m, ty_b_mul(g, column, ty_b_div(g, row_at, pivot)));
    ty_val one = ty_b_full_like(g, pivot, 1), other = ty_b_full_like(g, pivot, -1);
    ty_val swapped = ty_b_select(g, ty_b_eq(g, at, here), one, other);
    s->size = ty_b_add(g, s->size, ty_b_log(g, ty_b_unary(g, TY_OP_ABS, pivot)));
    s->sign = ty_b_mul(g, s->sign, ty_b_mul(g, swapped, ty_b_sign(g, pivot)));
}

/* a: [batch, n, n] */
static linear_steps linear_eliminate(ty_graph *g, ty_val a)
{
    linear_steps s = {.g = g, .batch = ty_b_dim(g, a, 0), .n = ty_b_dim(g, a, 2)};
    int64_t one[] = {s.batch, 1, 1}, square[] = {s.batch, s.n, s.n};
    ty_val unit = ty_b_eq(g, linear_number_rows(g, s.n, 0), linear_number_rows(g, s.n, 1));
    unit = ty_b_broadcast(g, ty_b_cast(g, unit, TY_F64), 3, square);
    s.m = ty_b_concat(g, (ty_val[]){ty_special_held(g, a), unit}, 2, 2);
    s.row = ty_b_iota(g, ty_type_make(TY_I64, 3, (int64_t[]){1, s.n, 1}), 1);
    s.size = ty_b_full(g, TY_F64, 3, one, 0);
    s.sign = ty_b_full(g, TY_F64, 3, one, 1);
    for (int64_t k = 0; k < s.n; k++)
        linear_step(&s, k);
    return s;
}

/* [.., n, n] as [batch, n, n] of doubles. */
static ty_val linear_batches(ty_graph *g, ty_val a)
{
    const ty_type t = *ty_graph_type(g, a);
    int64_t n = t.dim[t.rank - 1], dim[] = {ty_type_elems(&t) / (n * n), n, n};
    return ty_b_reshape(g, ty_b_cast(g, a, TY_F64), 3, dim);
}

static ty_val linear_found_inverse(const linear_steps *s)
{
    return ty_special_held(s->g, ty_b_slice_axis(s->g, s->m, 2, s->n, 2 * s->n));
}

ty_val ty_linear_inverse(ty_graph *g, ty_val a)
{
    const ty_type t = *ty_graph_type(g, a);
    ty_val matrices = linear_batches(g, a);
    linear_steps s = linear_eliminate(g, matrices);
    ty_val found = linear_found_inverse(&s), missed = ty_b_matmul(g, matrices, found);
    ty_val unit = ty_b_eq(g, linear_number_rows(g, s.n, 0), linear_number_rows(g, s.n, 1));
    ty_val twice = ty_b_mul_s(g, ty_b_cast(g, unit, TY_F64), 2);
    ty_val x = ty_b_matmul(g, found, ty_b_sub(g, twice, missed));
    return ty_b_cast(g, ty_b_reshape(g, x, t.rank, t.dim), (ty_dtype)t.dtype);
}

void ty_linear_log_determinant(ty_graph *g, ty_val a, ty_val *log_size, ty_val *sign)
{
    const ty_type t = *ty_graph_type(g, a);
    ty_val matrices = linear_batches(g, a);
    linear_steps s = linear_eliminate(g, matrices);
    ty_val slope = ty_linear_turned(g, linear_found_inverse(&s));
    ty_val trace = ty_b_sum(g, ty_b_mul(g, slope, matrices), 1u << 1 | 1u << 2, true);
    ty_val size = ty_b_add(g, ty_special_held(g, s.size), ty_b_sub(g, trace, ty_special_held(g, trace)));
    *log_size = ty_b_cast(g, ty_b_reshape(g, size, t.rank - 2, t.dim), (ty_dtype)t.dtype);
    *sign = ty_b_cast(g, ty_b_reshape(g, ty_special_held(g, s.sign), t.rank - 2, t.dim), (ty_dtype)t.dtype);
}

ty_val ty_linear_determinant(ty_graph *g, ty_val a)
{
    ty_val size, sign;
    ty_linear_log_determinant(g, a, &size, &sign);
    return ty_b_mul(g, sign, ty_b_exp(g, size));
}

/* ---- Cholesky ---- */

/* Column by column: what is left of it, once the columns before are taken away, over the root of its first number. */
ty_val ty_linear_cholesky(ty_graph *g, ty_val a)
{
    const ty_type t = *ty_graph_type(g, a);
    ty_val left = linear_batches(g, a), column[TY_LINEAR_MOST];
    int64_t n = t.dim[t.rank - 1];
    ty_val row = ty_b_iota(g, ty_type_make(TY_I64, 3, (int64_t[]){1, n, 1}), 1);
    for (int64_t k = 0; k < n; k++) {
        ty_val all = ty_b_slice_axis(g, left, 2, k, k + 1), root = ty_b_slice_axis(g, all, 1, k, k + 1);
        ty_val is_above = ty_b_lt(g, row, ty_b_scalar(g, TY_I64, (double)k));
        column[k] = ty_b_select(g, is_above, ty_b_full_like(g, all, 0), all);
        column[k] = ty_b_div(g, column[k], ty_b_unary(g, TY_OP_SQRT, root));
        left = ty_b_sub(g, left, ty_b_mul(g, column[k], ty_linear_turned(g, column[k])));
    }
    ty_val l = ty_b_concat_many(g, column, (int)n, 2);
    return ty_b_cast(g, ty_b_reshape(g, l, t.rank, t.dim), (ty_dtype)t.dtype);
}
