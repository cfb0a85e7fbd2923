/* keras_ops_matrix.c - matrices: inverted, solved for, taken apart; diagonals; vectors. */
#include "compiler/import/keras/keras_ops.h"
#include "compiler/import/linear.h"

enum { MATRIX_MOST = 1 << 22 }; /* positions */

/* ---- systems of equations ---- */

static ty_val matrix_read(keras_call *c, const char *name)
{
    ty_val x = keras_op_in(c, 0, name);
    if (x == TY_NONE)
        return x;
    if (!ty_dtype_is_float(ty_b_dtype(c->g, x)))
        x = ty_b_cast(c->g, x, TY_F32);
    if (!ty_linear_fits(c->g, x)) {
        keras_fail(c, TY_E_UNSUPPORTED, "%s: expected square matrices of up to %d x %d", c->layer->class_name,
                   TY_LINEAR_MOST, TY_LINEAR_MOST);
        return TY_NONE;
    }
    return x;
}

void keras_op_inverse(keras_call *c)
{
    ty_val x = matrix_read(c, "x");
    if (x != TY_NONE)
        keras_set(c, 0, ty_linear_inverse(c->g, x));
}

void keras_op_determinant(keras_call *c)
{
    ty_val x = matrix_read(c, "x");
    if (x != TY_NONE)
        keras_set(c, 0, ty_linear_determinant(c->g, x));
}

/* arg 1: sign and size; 0: the size alone. */
void keras_op_log_determinant(keras_call *c)
{
    ty_val x = matrix_read(c, "x"), size, sign;
    if (x == TY_NONE)
        return;
    ty_linear_log_determinant(c->g, x, &size, &sign);
    if (c->layer->op->arg)
        keras_set(c, 0, sign);
    keras_set(c, c->layer->op->arg, size);
}

/* arg 1: of a triangle. */
void keras_op_solve(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val a = matrix_read(c, "a"), b = keras_op_in(c, 1, "b");
    if (a == TY_NONE || b == TY_NONE)
        return;
    if (c->layer->op->arg)
        a = ty_linear_triangle(g, a, keras_flag(c, "lower", false));
    bool is_vector = ty_b_rank(g, b) == ty_b_rank(g, a) - 1;
    b = ty_b_cast(g, b, ty_b_dtype(g, a));
    ty_val y = ty_b_matmul(g, ty_linear_inverse(g, a), is_vector ? ty_b_unsqueeze(g, b, ty_b_rank(g, b)) : b);
    keras_set(c, 0, is_vector && y != TY_NONE ? ty_b_squeeze(g, y, ty_b_rank(g, y) - 1) : y);
}

/* arg 1: the inverse of the matrix that a factor is of. */
void keras_op_cholesky(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = matrix_read(c, "x");
    bool upper = keras_flag(c, "upper", false);
    if (x == TY_NONE)
        return;
    if (c->layer->op->arg) {
        ty_val inverse = ty_linear_inverse(g, ty_linear_triangle(g, x, !upper)), turned = ty_linear_turned(g, inverse);
        keras_set(c, 0, upper ? ty_b_matmul(g, inverse, turned) : ty_b_matmul(g, turned, inverse));
        return;
    }
    ty_val y = ty_linear_cholesky(g, x);
    keras_set(c, 0, upper ? ty_linear_turned(g, y) : y);
}

/* ---- diagonals ---- */

/* Where diagonal k of rows x columns begins, and how long it is. */
static int64_t diagonal_of(int64_t rows, int64_t columns, int64_t k, int64_t *n)
{
    int64_t row = k < 0 ? -k : 0, column = k > 0 ? k : 0;
    int64_t down = rows - row, across = columns - column;
    *n = down < across ? down : across;
    *n = *n > 0 ? *n : 0;
    return row * columns + column;
}

/* x [.., rows, columns] to its diagonal [.., n]. */
static ty_val diagonal_take(keras_call *c, ty_val x, int64_t k)
{
    ty_graph *g = c->g;
    const ty_type t = *ty_graph_type(g, x);
    int64_t rows = t.dim[t.rank - 2], columns = t.dim[t.rank - 1], n, dim[] = {1, rows * columns};
    int64_t at = diagonal_of(rows, columns, k, &n), *index = keras_alloc(c, (size_t)n + 1, sizeof *index);
    for (int64_t i = 0; i < n; i++)
        index[i] = at + i * (columns + 1);
    for (int i = 0; i < t.rank - 2; i++)
        dim[0] *= t.dim[i];
    ty_val flat = ty_b_reshape(g, x, 2, dim), places = ty_b_const_copy(g, ty_type_make(TY_I64, 1, &n), index);
    int64_t out[TY_MAX_RANK];
    for (int i = 0; i < t.rank - 2; i++)
        out[i] = t.dim[i];
    out[t.rank - 2] = n;
    return ty_b_reshape(g, ty_b_gather(g, flat, places, 1), t.rank - 1, out);
}

/* Axes axis1 and axis2 come last. */
static ty_val diagonal_turned(keras_call *c, ty_val x)
{
    int64_t perm[TY_MAX_RANK];
    int rank = ty_b_rank(c->g, x), one, two, n = 0;
    if (rank < 2 || !keras_axis(c, keras_int(c, "axis1", 0), rank, &one) ||
        !keras_axis(c, keras_int(c, "axis2", 1), rank, &two) || one == two) {
        if (!c->failed)
            keras_fail(c, TY_E_SHAPE, "%s: expected two axes", c->layer->class_name);
        return TY_NONE;
    }
    for (int i = 0; i < rank; i++)
        if (i != one && i != two)
            perm[n++] = i;
    perm[n++] = one;
    perm[n] = two;
    return ty_b_transpose(c->g, x, perm);
}

/* arg 1: its sum. */
void keras_op_diagonal(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    x = x == TY_NONE ? x : diagonal_turned(c, x);
    if (x == TY_NONE)
        return;
    ty_val y = diagonal_take(c, x, keras_int(c, "offset", 0));
    ty_dtype dtype = ty_b_dtype(c->g, y);
    if (c->layer->op->arg && ty_dtype_bytes(dtype) < 4 && !ty_dtype_is_float(dtype))
        y = ty_b_cast(c->g, y, TY_I32);
    keras_set(c, 0, c->layer->op->arg ? ty_b_sum(c->g, y, 1u << (ty_b_rank(c->g, y) - 1), false) : y);
}

/* [n] as diagonal k of a matrix. */
static ty_val diagonal_put(keras_call *c, ty_val x, int64_t k)
{
    ty_graph *g = c->g;
    int64_t n = ty_b_dim(g, x, 0), size = n + (k < 0 ? -k : k), dim[] = {size, size}, all = size * size, length;
    if (size > MATRIX_MOST / (size > 0 ? size : 1)) {
        keras_fail(c, TY_E_LIMIT, "%s: a matrix of %lld rows is too large", c->layer->class_name, (long long)size);
        return TY_NONE;
    }
    int64_t at = diagonal_of(size, size, k, &length), *index = keras_alloc(c, (size_t)all + 1, sizeof *index);
    for (int64_t i = 0; i < all; i++)
        index[i] = n;
    for (int64_t i = 0; i < n; i++)
        index[at + i * (size + 1)] = i;
    ty_val none = ty_b_full(g, ty_b_dtype(g, x), 1, (int64_t[]){1}, 0);
    ty_val from = ty_b_concat(g, (ty_val[]){x, none}, 2, 0);
    ty_val places = ty_b_const_copy(g, ty_type_make(TY_I64, 1, &all), index);
    return ty_b_reshape(g, ty_b_gather(g, from, places, 0), 2, dim);
}

/* A vector as a diagonal, a matrix's diagonal; arg 1: anything as a vector. */
void keras_op_diag(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    int64_t k = keras_int(c, "k", 0);
    if (x == TY_NONE || c->failed)
        return;
    if (c->layer->op->arg)
        x = ty_b_flatten(c->g, x);
    int rank = ty_b_rank(c->g, x);
    if (rank != 1 && rank != 2)
        keras_fail(c, TY_E_SHAPE, "Diag: expected a vector or a matrix");
    else
        keras_set(c, 0, rank == 1 ? diagonal_put(c, x, k) : diagonal_take(c, x, k));
}

/* ---- vectors ---- */

/* Of three: axis, or axisa and axisb. */
void keras_op_cross(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val in[2], part[2][3], out[3];
    static const char *const keys[] = {"axisa", "axisb"};
    if (!keras_op_pair(c, false, &in[0], &in[1]))
        return;
    bool is_one = keras_config(c, "axis") != NULL;
    int axis = 0;
    for (int i = 0; i < 2; i++) {
        if (!keras_axis(c, keras_int(c, is_one ? "axis" : keys[i], -1), ty_b_rank(g, in[i]), &axis))
            return;
        if (ty_b_dim(g, in[i], axis) != 3) {
            keras_fail(c, TY_E_UNSUPPORTED, "Cross: expected vectors of 3, found %lld",
                       (long long)ty_b_dim(g, in[i], axis));
            return;
        }
        for (int k = 0; k < 3; k++)
            part[i][k] = ty_b_squeeze(g, ty_b_slice_axis(g, in[i], axis, k, k + 1), axis);
    }
    for (int k = 0; k < 3; k++) {
        int next = (k + 1) % 3, last = (k + 2) % 3;
        out[k] = ty_b_sub(g, ty_b_mul(g, part[0][next], part[1][last]), ty_b_mul(g, part[0][last], part[1][next]));
    }
    int rank = out[0] == TY_NONE ? 0 : ty_b_rank(g, out[0]) + 1;
    if (rank == 0 || !keras_axis(c, keras_int(c, is_one ? "axis" : "axisc", -1), rank, &axis))
        return;
    for (int k = 0; k < 3; k++)
        out[k] = ty_b_unsqueeze(g, out[k], axis);
    keras_set(c, 0, ty_b_concat(g, out, 3, axis));
}

/* Each of a times all of b, block by block. */
void keras_op_kron(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val a, b;
    if (!keras_op_pair(c, false, &a, &b))
        return;
    while (ty_b_rank(g, a) < ty_b_rank(g, b))
        a = ty_b_unsqueeze(g, a, 0);
    while (ty_b_rank(g, b) < ty_b_rank(g, a))
        b = ty_b_unsqueeze(g, b, 0);
    int rank = ty_b_rank(g, a);
    int64_t wide_a[2 * TY_MAX_RANK], wide_b[2 * TY_MAX_RANK], dim[TY_MAX_RANK];
    if (2 * rank > TY_MAX_RANK) {
        keras_fail(c, TY_E_SHAPE, "Kron: expected at most %d dimensions", TY_MAX_RANK / 2);
        return;
    }
    for (int i = 0; i < rank; i++) {
        wide_a[2 * i] = ty_b_dim(g, a, i);
        wide_b[2 * i + 1] = ty_b_dim(g, b, i);
        wide_a[2 * i + 1] = wide_b[2 * i] = 1;
        dim[i] = wide_a[2 * i] * wide_b[2 * i + 1];
    }
    ty_val y = ty_b_mul(g, ty_b_reshape(g, a, 2 * rank, wide_a), ty_b_reshape(g, b, 2 * rank, wide_b));
    keras_set(c, 0, ty_b_reshape(g, y, rank, dim));
}

/* x[i + 1] - x[i], n times. */
void keras_op_diff(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = keras_op_in(c, 0, "a");
    int64_t n = keras_int(c, "n", 1);
    int axis;
    if (x == TY_NONE || c->failed || !keras_axis(c, keras_int(c, "axis", -1), ty_b_rank(g, x), &axis))
        return;
    if (n < 0 || n >= ty_b_dim(g, x, axis) || n > 64) {
        keras_fail_key(c, "n", "must be 0 or more, and less than the %lld elements", (long long)ty_b_dim(g, x, axis));
        return;
    }
    for (; n > 0; n--) {
        int64_t size = ty_b_dim(g, x, axis);
        x = ty_b_sub(g, ty_b_slice_axis(g, x, axis, 1, size), ty_b_slice_axis(g, x, axis, 0, size - 1));
    }
    keras_set(c, 0, x);
}

/* In quarter turns. */
void keras_op_rot90(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = keras_op_in(c, 0, "array");
    int64_t axes[2], k = ((keras_int(c, "k", 1) % 4) + 4) % 4, perm[TY_MAX_RANK];
    int one, two, rank = x == TY_NONE ? 0 : ty_b_rank(g, x);
    if (x == TY_NONE || !keras_ints(c, "axes", 2, 0, axes) || !keras_axis(c, axes[0], rank, &one) ||
        !keras_axis(c, axes[1], rank, &two))
        return;
    for (int i = 0; i < rank; i++)
        perm[i] = i == one ? two : i == two ? one : i;
    if (k == 1 || k == 2)
        x = ty_b_reverse(g, x, 1u << two);
    if (k == 2 || k == 3)
        x = ty_b_reverse(g, x, 1u << one);
    keras_set(c, 0, k % 2 ? ty_b_transpose(g, x, perm) : x);
}
