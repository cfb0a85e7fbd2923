/* fuse_domain.c - the loop nest that two kernels share as one: where they reduce alike, where one has no reductions and
 * is as large as the other, or its rows; and where one reduces rows and the other sums columns of bands of these rows.
 */
#include "compiler/passes/fuse.h"

/* Sums of columns beside reductions of rows: each thread keeps, for all columns of its rows, the sums and some numbers
 * of the row. */
#define FUSE_BAND_ROWS    16 /* fewest of a band */
#define FUSE_BAND_COLUMNS 128
#define FUSE_BAND_KEPT    (1 << 14) /* most columns, times reductions of both kinds and one */

/* ---- bands ---- */

enum { BAND, BAND_ROW, BAND_COLUMN, BAND_RANK }; /* axes of their domain */

static bool fuse_sums_columns(const ty_unit *u)
{
    return u->n_reduces && u->domain.rank == BAND_RANK && u->reduced_axes == 1u << BAND_ROW && u->band_axes == 0;
}

/* Elements of a row, where the last axes are reduced and no others; else 0. */
static int64_t fuse_row_length(const ty_unit *u)
{
    int64_t n = 1;
    int axis = u->domain.rank;
    for (; axis > 0 && u->reduced_axes >> (axis - 1) & 1; axis--)
        n *= u->domain.dim[axis - 1];
    return (u->reduced_axes & ((1u << axis) - 1)) == 0 ? n : 0;
}

/* Whether all that are not yet part of a kernel of bands are sums of floats, for which it has memory. */
static bool fuse_are_float(const ty_fusion *f, const ty_unit *u)
{
    for (int i = 0; fuse_sums_columns(u) && i < u->n_reduces; i++)
        if (ty_graph_type(f->g, ty_val_make(u->reduce[i], 0))->dtype != TY_F32)
            return false;
    return true;
}

static bool fuse_has_bands(const ty_fusion *f, const ty_type *domain, int n_reduces)
{
    const int64_t *dim = domain->dim;
    return f->limits.bands && dim[BAND] >= f->limits.bands && dim[BAND_ROW] >= FUSE_BAND_ROWS &&
           dim[BAND_COLUMN] >= FUSE_BAND_COLUMNS && dim[BAND_COLUMN] * (n_reduces + 1) <= FUSE_BAND_KEPT;
}

/* Rows of the one unit are rows of the bands of which the other one, or both, sum columns. */
static bool fuse_bands(const ty_fusion *f, const ty_unit *a, const ty_unit *b, ty_unit *out)
{
    bool of_a = a->band_axes || fuse_sums_columns(a), of_b = b->band_axes || fuse_sums_columns(b);
    const ty_unit *columns = of_a ? a : b, *rows = of_a ? b : a;
    const ty_type *domain = &columns->domain;
    out->domain = *domain;
    out->reduced_axes = 1u << BAND_COLUMN;
    out->band_axes = 1u << BAND_ROW;
    if (!of_a && !of_b)
        return false;
    bool same_rows = of_a && of_b ? ty_type_same_shape(&rows->domain, domain)
                                  : ty_type_elems(&rows->domain) == ty_type_elems(domain) &&
                                        fuse_row_length(rows) == domain->dim[BAND_COLUMN];
    return same_rows && fuse_has_bands(f, domain, a->n_reduces + b->n_reduces) && fuse_are_float(f, a) &&
           fuse_are_float(f, b);
}

/* ---- all ---- */

static int64_t fuse_rows(const ty_type *domain, uint32_t axes)
{
    int64_t rows = 1;
    for (int i = 0; i < domain->rank; i++)
        rows *= axes >> i & 1 ? 1 : domain->dim[i];
    return rows;
}

bool ty_fuse_domain(const ty_fusion *f, const ty_unit *a, const ty_unit *b, ty_unit *out)
{
    const ty_unit *lead = a->n_reduces ? a : b;
    if (a->n_reduces && b->n_reduces &&
        (!ty_type_same_shape(&a->domain, &b->domain) || a->reduced_axes != b->reduced_axes ||
         a->band_axes != b->band_axes))
        return fuse_bands(f, a, b, out);
    const ty_unit *other = lead == a ? b : a;
    int64_t elems = ty_type_elems(&lead->domain), rows = fuse_rows(&lead->domain, lead->reduced_axes);
    int64_t other_elems = ty_type_elems(&other->domain);
    if (other_elems != elems && !(lead->n_reduces && other_elems == rows))
        return false;
    out->domain = lead->domain;
    out->reduced_axes = lead->reduced_axes;
    out->band_axes = lead->band_axes;
    return true;
}
