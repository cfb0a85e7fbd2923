/* fourier.c - see fourier.h. */
#include "compiler/import/fourier.h"

#include "compiler/ir/build.h"
#include "compiler/ops/ref.h"

#include <math.h>
#include <stdlib.h>

/* Rows are entries that are read, and their parts; columns are entries of the result, and theirs. */
typedef struct fourier_matrix {
    ty_fourier f;
    int64_t rows, columns; /* entries */
    int row_parts, column_parts;
} fourier_matrix;

static fourier_matrix matrix_of(ty_fourier f, int64_t entries, int parts)
{
    int64_t half = f.n / 2 + 1, read = f.is_inverse && f.is_half ? half : f.n;
    return (fourier_matrix){.f = f,
                            .rows = entries < read ? entries : read,
                            .columns = f.is_half && !f.is_inverse ? half : f.n,
                            .row_parts = parts,
                            .column_parts = f.is_half && f.is_inverse ? 1 : 2};
}

bool ty_fourier_fits(ty_fourier f, int64_t entries, int parts)
{
    fourier_matrix m = matrix_of(f, entries, parts);
    return m.rows * m.row_parts <= TY_FOURIER_MAX / (m.columns * m.column_parts);
}

/* By what entry k is multiplied, of which the conjugate may be left out. */
static double fourier_scale(const ty_fourier *f, int64_t k)
{
    return f->is_inverse ? (f->is_half && k > 0 && 2 * k != f->n ? 2 : 1) / (double)f->n : 1;
}

/* turn[i]: cosine and sine of i of n parts of a circle, the way in which the transform goes round. */
static void fourier_turns(const ty_fourier *f, double (*turn)[2])
{
    for (int64_t i = 0; i < f->n; i++) {
        double angle = 2 * M_PI * (double)i / (double)f->n;
        turn[i][0] = cos(angle);
        turn[i][1] = f->is_inverse ? sin(angle) : -sin(angle);
    }
}

/* Entry k adds (c + i s) times itself to entry j. With x = a + ib: real parts are a c - b s, imaginary ones a s + b c.
 * first: where those of one part each begin in the four of them, 0: c, 1: s. */
static void matrix_fill(const fourier_matrix *m, const double (*turn)[2], int first, double *v)
{
    int64_t width = m->columns * m->column_parts;
    for (int64_t k = 0; k < m->rows; k++)
        for (int64_t j = 0, at = 0; j < m->columns; j++, at += at + k < m->f.n ? k : k - m->f.n) {
            double scale = fourier_scale(&m->f, k), c = scale * turn[at][0], s = scale * turn[at][1];
            double part[2][2] = {{c, s}, {-s, c}};
            for (int p = 0; p < m->row_parts; p++)
                for (int q = 0; q < m->column_parts; q++)
                    v[(k * m->row_parts + p) * width + j * m->column_parts + q] = part[p][q + first];
        }
}

/* As a constant [rows and their parts, columns and theirs]; TY_NONE without memory. */
static ty_val matrix_const(ty_graph *g, const fourier_matrix *m, int first, ty_dtype dtype)
{
    ty_type type = ty_type_make(dtype, 2, (int64_t[]){m->rows * m->row_parts, m->columns * m->column_parts});
    ty_ref ref = {.type = type, .f = malloc((size_t)ty_type_elems(&type) * sizeof(double) + 1)};
    double(*turn)[2] = malloc((size_t)m->f.n * sizeof *turn);
    void *data = malloc(ty_type_bytes(&type) + 1);
    ty_val v = TY_NONE;
    if (ref.f && turn && data) {
        fourier_turns(&m->f, turn);
        matrix_fill(m, turn, first, ref.f);
        ty_ref_store(&ref, data);
        v = ty_b_const_copy(g, type, data);
    }
    free(ref.f);
    free(turn);
    free(data);
    return v;
}

/* x [.., rows of the matrix and their parts], in rank - axis axes, times the matrix: dims dim. */
static ty_val fourier_product(ty_graph *g, ty_val x, int axis, const fourier_matrix *m, int first, const int64_t *dim)
{
    int64_t flat[] = {1, m->rows * m->row_parts};
    for (int i = 0; i < axis; i++)
        flat[0] *= dim[i];
    ty_val matrix = matrix_const(g, m, first, ty_b_dtype(g, x));
    return ty_b_reshape(g, ty_b_dot_full(g, ty_b_reshape(g, x, 2, flat), matrix), ty_b_rank(g, x), dim);
}

/* x [.., entries, parts]: its last two axes. */
static ty_val fourier_last(ty_graph *g, ty_val x, ty_fourier f)
{
    int rank = ty_b_rank(g, x), axis = rank - 2;
    const ty_type t = *ty_graph_type(g, x);
    fourier_matrix m = matrix_of(f, t.dim[axis], (int)t.dim[axis + 1]);
    int64_t dim[TY_MAX_RANK];
    for (int i = 0; i < axis; i++)
        dim[i] = t.dim[i];
    dim[axis] = m.columns;
    dim[axis + 1] = m.column_parts;
    if (m.rows < t.dim[axis])
        x = ty_b_slice_axis(g, x, axis, 0, m.rows);
    return fourier_product(g, x, axis, &m, 0, dim);
}

ty_val ty_fourier_transform(ty_graph *g, ty_val x, int axis, ty_fourier f)
{
    int rank = ty_b_rank(g, x);
    int64_t swap[TY_MAX_RANK];
    for (int i = 0; i < rank; i++)
        swap[i] = i;
    swap[axis] = rank - 2;
    swap[rank - 2] = axis;
    ty_val y = fourier_last(g, axis == rank - 2 ? x : ty_b_transpose(g, x, swap), f);
    return axis == rank - 2 ? y : ty_b_transpose(g, y, swap);
}

/* x [.., entries]: cosines (part 0) or sines (part 1) of the last axis. */
static ty_val fourier_part(ty_graph *g, ty_val x, ty_fourier f, int part)
{
    int axis = ty_b_rank(g, x) - 1;
    const ty_type t = *ty_graph_type(g, x);
    fourier_matrix m = matrix_of(f, t.dim[axis], 1);
    int64_t dim[TY_MAX_RANK];
    m.column_parts = 1;
    for (int i = 0; i < axis; i++)
        dim[i] = t.dim[i];
    dim[axis] = m.columns;
    if (m.rows < t.dim[axis])
        x = ty_b_slice_axis(g, x, axis, 0, m.rows);
    return fourier_product(g, x, axis, &m, part, dim);
}

static ty_val fourier_swap(ty_graph *g, ty_val x, int axis)
{
    int rank = x == TY_NONE ? 0 : ty_b_rank(g, x);
    int64_t swap[TY_MAX_RANK];
    if (rank == 0 || axis == rank - 1)
        return x;
    for (int i = 0; i < rank; i++)
        swap[i] = i;
    swap[axis] = rank - 1;
    swap[rank - 1] = axis;
    return ty_b_transpose(g, x, swap);
}

void ty_fourier_parts(ty_graph *g, ty_val re, ty_val im, int axis, ty_fourier f, ty_val *out_re, ty_val *out_im)
{
    ty_val a = fourier_swap(g, re, axis), b = fourier_swap(g, im, axis);
    ty_val real = fourier_part(g, a, f, 0), imaginary = out_im ? fourier_part(g, a, f, 1) : TY_NONE;
    if (b != TY_NONE) {
        real = ty_b_sub(g, real, fourier_part(g, b, f, 1));
        imaginary = out_im ? ty_b_add(g, imaginary, fourier_part(g, b, f, 0)) : TY_NONE;
    }
    *out_re = fourier_swap(g, real, axis);
    if (out_im)
        *out_im = fourier_swap(g, imaginary, axis);
}

ty_val ty_fourier_frames(ty_graph *g, ty_val x, ty_val window, int64_t step, ty_fourier f)
{
    int64_t batch = ty_b_dim(g, x, 0), parts = ty_b_dim(g, x, 2), frames = 1 + (ty_b_dim(g, x, 1) - f.n) / step;
    ty_type plane = ty_type_make(TY_I64, 2, (int64_t[]){frames, f.n});
    ty_val at = ty_b_add(g, ty_b_mul_s(g, ty_b_iota(g, plane, 0), (double)step), ty_b_iota(g, plane, 1));
    ty_val y = ty_b_gather(g, x, ty_b_flatten(g, at), 1);
    y = ty_b_reshape(g, y, 4, (int64_t[]){batch, frames, f.n, parts});
    if (window != TY_NONE)
        y = ty_b_mul(g, y, ty_b_reshape(g, window, 4, (int64_t[]){1, 1, f.n, 1}));
    return fourier_last(g, y, f);
}
