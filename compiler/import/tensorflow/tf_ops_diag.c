/* tf_ops_diag.c - diagonals of matrices: made, read, set.
 *
 * Several diagonals lie in rows [.., diagonals, longest], the highest first; shorter ones begin left or right. Source:
 * tensorflow/core/kernels/linalg/matrix_diag_op.cc.
 */
#include "compiler/import/tensorflow/tf_ops.h"

#include <string.h>

enum { DIAG_MOST = 1 << 22 }; /* positions */

/* Diagonal d has the entries (row, row + d); those from lo to hi of matrices rows x columns. */
typedef struct diag_band {
    int64_t lo, hi, rows, columns, longest;
    bool above_right, below_right; /* those above the main one, and below, begin right where they are shorter */
} diag_band;

static int64_t diag_length(const diag_band *b, int64_t d)
{
    int64_t across = b->columns - (d > 0 ? d : 0), down = b->rows + (d < 0 ? d : 0);
    return across < down ? across : down;
}

/* Where in the row of its diagonal a diagonal begins. */
static int64_t diag_offset(const diag_band *b, int64_t d)
{
    bool right = (d >= 0 && b->above_right) || (d <= 0 && b->below_right);
    return right ? b->longest - diag_length(b, d) : 0;
}

/* lo and hi from input i, a number or two; arg 1: where short diagonals begin is an attribute. */
static bool diag_read_band(tf_ctx *c, int i, diag_band *b)
{
    const int64_t *k;
    int64_t n;
    const char *align = tf_text(c, "align", c->row->arg ? "RIGHT_LEFT" : "LEFT_LEFT");
    *b = (diag_band){.above_right = strncmp(align, "RIGHT", 5) == 0, .below_right = strstr(align, "_RIGHT") != NULL};
    if (i < 0)
        return true;
    if (!tf_const_ints(c, i, &k, &n))
        return false;
    if (n < 1 || n > 2 || k[0] > k[n - 1] || k[0] < -DIAG_MOST || k[n - 1] > DIAG_MOST) {
        tf_fail_input(c, i, TY_E_SHAPE, "must be one number, or two of which the second is not less");
        return false;
    }
    b->lo = k[0];
    b->hi = k[n - 1];
    return true;
}

/* Of matrices of a size. */
static bool diag_fit(tf_ctx *c, diag_band *b, int64_t rows, int64_t columns)
{
    b->rows = rows;
    b->columns = columns;
    if (b->lo <= -rows || b->hi >= columns || rows > DIAG_MOST / (columns > 0 ? columns : 1)) {
        tf_fail(c, TY_E_SHAPE, "diagonals %lld to %lld do not lie in matrices %lld x %lld, or these are too large",
                (long long)b->lo, (long long)b->hi, (long long)rows, (long long)columns);
        return false;
    }
    for (int64_t d = b->lo; d <= b->hi; d++)
        b->longest = diag_length(b, d) > b->longest ? diag_length(b, d) : b->longest;
    return true;
}

/* x [.., ] with `n` last axes as one, [batch, elements], and behind them one more element: the value for what has none
 * of its own. */
static ty_val diag_flat(tf_ctx *c, ty_val x, int n, ty_val value)
{
    ty_graph *g = c->g;
    const ty_type t = *tf_type(c, x);
    int64_t dim[] = {1, 1};
    for (int i = 0; i < t.rank; i++)
        dim[i >= t.rank - n] *= t.dim[i];
    ty_val flat = ty_b_reshape(g, x, 2, dim);
    dim[1] = 1;
    value = value == TY_NONE ? ty_b_scalar(g, (ty_dtype)t.dtype, 0) : value;
    return ty_b_concat(g, (ty_val[]){flat, ty_b_broadcast(g, value, 2, dim)}, 2, 1);
}

/* For each position of a matrix which element of the diagonals it is, `none` where it is on none of them. */
static int64_t *diag_positions(tf_ctx *c, const diag_band *b, int64_t none)
{
    int64_t *at = tf_alloc(c, (size_t)(b->rows * b->columns) + 1, sizeof *at);
    for (int64_t row = 0; row < b->rows; row++)
        for (int64_t column = 0; column < b->columns; column++) {
            int64_t d = column - row, *here = &at[row * b->columns + column];
            *here =
                d < b->lo || d > b->hi ? none : (b->hi - d) * b->longest + (d > 0 ? row : column) + diag_offset(b, d);
        }
    return at;
}

/* Matrices of diagonals; positions on none of them have the value. prefix: axes of batches, with their sizes. */
static ty_val diag_spread(tf_ctx *c, const diag_band *b, ty_val diagonals, ty_val value, const ty_type *like,
                          int prefix)
{
    int64_t n = (b->hi - b->lo + 1) * b->longest, dim[TY_MAX_RANK], flat = b->rows * b->columns;
    for (int i = 0; i < prefix; i++)
        dim[i] = like->dim[i];
    dim[prefix] = b->rows;
    dim[prefix + 1] = b->columns;
    ty_val all = diag_flat(c, diagonals, tf_rank(c, diagonals) - prefix, value);
    ty_val y = ty_b_gather(c->g, all, tf_ints(c, TY_I64, diag_positions(c, b, n), flat), 1);
    return ty_b_reshape(c->g, y, prefix + 2, dim);
}

/* Rows and columns of what MatrixDiag makes: given, or as few as hold the diagonals. */
static bool diag_size(tf_ctx *c, diag_band *b, int64_t longest)
{
    int64_t rows = -1, columns = -1, least_rows = longest - (b->hi < 0 ? b->hi : 0),
            least_columns = longest + (b->lo > 0 ? b->lo : 0);
    if (tf_has(c, 2) && (!tf_const_int(c, 2, &rows) || !tf_const_int(c, 3, &columns)))
        return false;
    if (rows < 0 && columns < 0)
        rows = columns = least_rows > least_columns ? least_rows : least_columns;
    rows = rows < 0 ? least_rows : rows;
    columns = columns < 0 ? least_columns : columns;
    if (!diag_fit(c, b, rows, columns))
        return false;
    if (b->longest != longest)
        tf_fail_input(c, 0, TY_E_SHAPE, "has diagonals of %lld, those of %lld x %lld have %lld", (long long)longest,
                      (long long)rows, (long long)columns, (long long)b->longest);
    return b->longest == longest;
}

/* How many axes diagonals have beside batches; 0 (and failed): they are not as many as the band. */
static int diag_axes(tf_ctx *c, int input, const diag_band *b)
{
    int n = b->lo == b->hi ? 1 : 2, rank = tf_rank(c, tf_in(c, input));
    if (rank >= n && (n == 1 || tf_dim(c, tf_in(c, input), rank - 2) == b->hi - b->lo + 1))
        return n;
    tf_fail_input(c, input, TY_E_SHAPE, "must be [.., %sentries]", n == 2 ? "diagonals, " : "");
    return 0;
}

/* diagonals; of later versions also which, rows, columns, the value elsewhere */
void tf_op_matrix_diag(tf_ctx *c)
{
    diag_band b;
    ty_val x = tf_in(c, 0);
    if (!diag_read_band(c, tf_has(c, 1) ? 1 : -1, &b))
        return;
    int n = diag_axes(c, 0, &b), prefix = tf_rank(c, x) - n;
    if (n == 0 || !diag_size(c, &b, tf_dim(c, x, tf_rank(c, x) - 1)))
        return;
    if (prefix + 2 > TY_MAX_RANK)
        tf_fail_input(c, 0, TY_E_SHAPE, "has too many dimensions");
    else
        tf_set(c, 0, diag_spread(c, &b, x, tf_in(c, 4), tf_type(c, x), prefix));
}

static bool diag_is_matrix(tf_ctx *c, ty_val x)
{
    if (tf_rank(c, x) < 2)
        tf_fail_input(c, 0, TY_E_SHAPE, "must be a matrix");
    return !c->failed;
}

/* matrices; of later versions also which, the value where a diagonal is shorter */
void tf_op_matrix_diag_part(tf_ctx *c)
{
    diag_band b;
    ty_val x = tf_in(c, 0);
    int rank = tf_rank(c, x);
    if (!diag_is_matrix(c, x) || !diag_read_band(c, tf_has(c, 1) ? 1 : -1, &b) ||
        !diag_fit(c, &b, tf_dim(c, x, rank - 2), tf_dim(c, x, rank - 1)))
        return;
    int64_t n = b.hi - b.lo + 1, *at = tf_alloc(c, (size_t)(n * b.longest) + 1, sizeof *at), dim[TY_MAX_RANK];
    for (int64_t d = b.hi, k = 0; d >= b.lo; d--)
        for (int64_t i = 0; i < b.longest; i++, k++) {
            int64_t entry = i - diag_offset(&b, d), row = entry + (d < 0 ? -d : 0), column = entry + (d > 0 ? d : 0);
            bool there = entry >= 0 && entry < diag_length(&b, d);
            at[k] = there ? row * b.columns + column : b.rows * b.columns;
        }
    for (int i = 0; i < rank - 2; i++)
        dim[i] = tf_dim(c, x, i);
    int out = rank - 2;
    if (n > 1)
        dim[out++] = n;
    dim[out++] = b.longest;
    ty_val y = ty_b_gather(c->g, diag_flat(c, x, 2, tf_in(c, 2)), tf_ints(c, TY_I64, at, n * b.longest), 1);
    tf_set(c, 0, ty_b_reshape(c->g, y, out, dim));
}

/* matrices, diagonals; of later versions also which */
void tf_op_matrix_set_diag(tf_ctx *c)
{
    ty_graph *g = c->g;
    diag_band b;
    ty_val x = tf_in(c, 0), d = tf_in(c, 1);
    int rank = tf_rank(c, x);
    if (!diag_is_matrix(c, x) || !diag_read_band(c, tf_has(c, 2) ? 2 : -1, &b) ||
        !diag_fit(c, &b, tf_dim(c, x, rank - 2), tf_dim(c, x, rank - 1)))
        return;
    int n = diag_axes(c, 1, &b);
    if (n == 0)
        return;
    if (tf_rank(c, d) - n != rank - 2 || tf_dim(c, d, tf_rank(c, d) - 1) != b.longest) {
        tf_fail_input(c, 1, TY_E_SHAPE, "does not fit the matrices");
        return;
    }
    ty_type t = ty_type_make(TY_I64, 2, (int64_t[]){b.rows, b.columns});
    ty_val across = ty_b_sub(g, ty_b_iota(g, t, 1), ty_b_iota(g, t, 0));
    ty_val is_in = ty_b_binary(g, TY_OP_AND, ty_b_le(g, ty_b_full_like(g, across, (double)b.lo), across),
                               ty_b_le(g, across, ty_b_full_like(g, across, (double)b.hi)));
    tf_set(c, 0, ty_b_select(g, is_in, diag_spread(c, &b, d, TY_NONE, tf_type(c, x), rank - 2), x));
}

/* x [a, b ..] to [a, b .., a, b ..]: its elements where both halves of the indices are the same. */
void tf_op_diag(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    const ty_type t = *tf_type(c, x);
    int64_t n = ty_type_elems(&t), dim[TY_MAX_RANK];
    if (t.rank < 1 || 2 * t.rank > TY_MAX_RANK) {
        tf_fail_input(c, 0, TY_E_SHAPE, "must have 1 to %d dimensions", TY_MAX_RANK / 2);
        return;
    }
    for (int i = 0; i < 2 * t.rank; i++)
        dim[i] = t.dim[i % t.rank];
    diag_band b = {0};
    if (!diag_fit(c, &b, n, n))
        return;
    ty_val y = diag_spread(c, &b, ty_b_flatten(c->g, x), TY_NONE, &t, 0);
    tf_set(c, 0, ty_b_reshape(c->g, y, 2 * t.rank, dim));
}

void tf_op_diag_part(tf_ctx *c)
{
    ty_val x = tf_in(c, 0);
    const ty_type t = *tf_type(c, x);
    int half = t.rank / 2;
    for (int i = 0; i < half; i++)
        if (t.rank % 2 || t.dim[i] != t.dim[half + i])
            tf_fail_input(c, 0, TY_E_SHAPE, "must have its dimensions twice");
    if (c->failed || t.rank < 2)
        return;
    int64_t n = 1;
    for (int i = 0; i < half; i++)
        n *= t.dim[i];
    int64_t *at = tf_alloc(c, (size_t)n + 1, sizeof *at);
    for (int64_t i = 0; i < n; i++)
        at[i] = i * (n + 1);
    ty_val y = ty_b_gather(c->g, ty_b_flatten(c->g, x), tf_ints(c, TY_I64, at, n), 0);
    tf_set(c, 0, ty_b_reshape(c->g, y, half, t.dim));
}
