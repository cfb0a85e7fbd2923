/* sliding.c - see sliding.h. */
#include "compiler/ops/sliding.h"

#include "compiler/ops/expect.h"
#include "compiler/ops/ref.h"

#include <inttypes.h>

/* ---- layouts ---- */

ty_type ty_sliding_first(const ty_attr *attr, const ty_type *t)
{
    ty_type first = *t;
    if (!(attr->flags & TY_SLIDING_LAST) || t->rank < 3)
        return first;
    first.dim[1] = t->dim[t->rank - 1];
    for (int i = 2; i < t->rank; i++)
        first.dim[i] = t->dim[i - 1];
    return first;
}

ty_type ty_sliding_laid(const ty_attr *attr, const ty_type *first)
{
    ty_type laid = *first;
    if (!(attr->flags & TY_SLIDING_LAST) || first->rank < 3)
        return laid;
    laid.dim[laid.rank - 1] = first->dim[1];
    for (int i = 2; i < laid.rank; i++)
        laid.dim[i - 1] = first->dim[i];
    return laid;
}

ty_attr ty_sliding_of_weights(const ty_attr *attr)
{
    return (ty_attr){.flags = attr->flags & TY_SLIDING_WEIGHTS_LAST ? TY_SLIDING_LAST : 0};
}

/* Moves between [n, c, plane] and [n, plane, c]. */
static void sliding_move(const ty_ref *first, const ty_ref *last, bool to_first)
{
    int64_t n = first->type.dim[0], c = first->type.dim[1], all = ty_type_elems(&first->type);
    int64_t plane = n * c > 0 ? all / (n * c) : 0;
    for (int64_t i = 0; i < all; i++) {
        int64_t at = (i / (c * plane) * plane + i % plane) * c + i / plane % c;
        if (first->f)
            *(to_first ? &first->f[i] : &last->f[at]) = to_first ? last->f[at] : first->f[i];
        else
            *(to_first ? &first->i[i] : &last->i[at]) = to_first ? last->i[at] : first->i[i];
    }
}

int ty_sliding_enter(const ty_attr *attr, const ty_ref *t, ty_ref *first, ty_error *err)
{
    *first = *t;
    if (!(attr->flags & TY_SLIDING_LAST))
        return 0;
    ty_type type = ty_sliding_first(attr, &t->type);
    if (ty_ref_init(first, &type, err) < 0)
        return -1;
    sliding_move(first, t, true);
    return 0;
}

void ty_sliding_leave(const ty_attr *attr, ty_ref *first, ty_ref *to)
{
    if (!(attr->flags & TY_SLIDING_LAST))
        return;
    if (to)
        sliding_move(first, to, false);
    ty_ref_fini(first);
}

/* ---- windows ---- */

/* Bound on every number of a window, so that sums and products of two stay inside 63 bits. */
#define SLIDING_MAX INT32_MAX

static int sliding_expect(const char *what, int axis, int64_t v, int64_t least, ty_error *err)
{
    if (v >= least && v <= SLIDING_MAX)
        return 0;
    return ty_error_set(err, TY_E_SHAPE, "%s of spatial axis %d: expected %" PRId64 " to %d, found %" PRId64, what,
                        axis, least, SLIDING_MAX, v);
}

/* Spatial axis `from` of attr and x becomes axis `to` of s. */
static int sliding_axis(ty_sliding *s, int to, const ty_attr *attr, const ty_type *x, const int64_t *size, int from,
                        ty_error *err)
{
    int64_t in = x->dim[2 + from], reach;
    if (sliding_expect("window", from, size[from], 1, err) < 0 ||
        sliding_expect("step", from, attr->step[from], 1, err) < 0 ||
        sliding_expect("dilation", from, attr->dil[from], 1, err) < 0 ||
        sliding_expect("low padding", from, attr->lo[from], 0, err) < 0 ||
        sliding_expect("high padding", from, attr->hi[from], 0, err) < 0 ||
        sliding_expect("input", from, in, 1, err) < 0)
        return -1;
    reach = attr->dil[from] * (size[from] - 1) + 1;
    int64_t padded = in + attr->lo[from] + attr->hi[from];
    if (reach > padded)
        return ty_error_set(err, TY_E_SHAPE,
                            "spatial axis %d: expected a window of at most %" PRId64
                            " (the padded input), found one that "
                            "spans %" PRId64,
                            from, padded, reach);
    s->in[to] = in;
    s->size[to] = size[from];
    s->step[to] = attr->step[from];
    s->dil[to] = attr->dil[from];
    s->lo[to] = attr->lo[from];
    s->out[to] = (padded - reach) / attr->step[from] + 1;
    return 0;
}

int ty_sliding_expect_axes(const ty_attr *attr, ty_error *err)
{
    if (attr->n >= 1 && attr->n <= TY_SLIDING_AXES)
        return 0;
    return ty_error_set(err, TY_E_SHAPE, "n: expected 1 to %d spatial axes, found %" PRIu32, TY_SLIDING_AXES, attr->n);
}

int ty_sliding_make(ty_sliding *s, const ty_attr *attr, const ty_type *x, const int64_t *size, ty_error *err)
{
    if (ty_sliding_expect_axes(attr, err) < 0)
        return -1;
    int n = (int)attr->n, ones = TY_SLIDING_AXES - n;
    if (ty_expect_flags(attr, TY_SLIDING_LAST | TY_SLIDING_WINOGRAD | TY_SLIDING_WEIGHTS_LAST, err) < 0 ||
        ty_expect_rank("x", x, 2 + n, 2 + n, err) < 0)
        return -1;
    ty_type first = ty_sliding_first(attr, x);
    *s = (ty_sliding){.in_elems = 1, .out_elems = 1, .size_elems = 1};
    for (int i = 0; i < ones; i++)
        s->in[i] = s->out[i] = s->size[i] = s->step[i] = s->dil[i] = 1;
    for (int i = 0; i < n; i++)
        if (sliding_axis(s, ones + i, attr, &first, size, i, err) < 0)
            return -1;
    if (ty_dims_elems_checked(TY_SLIDING_AXES, s->size, 1) < 0 ||
        ty_dims_elems_checked(TY_SLIDING_AXES, s->out, 1) < 0 || ty_dims_elems_checked(TY_SLIDING_AXES, s->in, 1) < 0)
        return ty_error_set(err, TY_E_SHAPE, "window: expected fewer than 2^63 elements, found more");
    for (int i = 0; i < TY_SLIDING_AXES; i++) {
        s->in_elems *= s->in[i];
        s->out_elems *= s->out[i];
        s->size_elems *= s->size[i];
    }
    return 0;
}

/* A window that starts at `start` holds an input position. */
static bool sliding_touches(const ty_sliding *s, int axis, int64_t start)
{
    int64_t skip = start < 0 ? (-start + s->dil[axis] - 1) / s->dil[axis] : 0; /* taps before the input */
    return skip < s->size[axis] && start + skip * s->dil[axis] < s->in[axis];
}

int ty_sliding_expect_inside(const ty_sliding *s, ty_error *err)
{
    for (int a = 0; a < TY_SLIDING_AXES; a++) {
        int64_t last = (s->out[a] - 1) * s->step[a] - s->lo[a];
        bool ok = sliding_touches(s, a, -s->lo[a]) && sliding_touches(s, a, last);
        /* Without dilation the ends decide. With it, taps of a window in the padding may step over a small input. */
        for (int64_t start = -s->lo[a]; ok && s->dil[a] > 1 && start < 0 && start <= last; start += s->step[a])
            ok = sliding_touches(s, a, start);
        if (!ok)
            return ty_error_set(
                err, TY_E_SHAPE,
                "padding: expected every window to hold an input element, found one that is all padding");
    }
    return 0;
}

int ty_sliding_result(const ty_sliding *s, const ty_attr *attr, ty_dtype dtype, int64_t n, int64_t c, ty_type *res,
                      ty_error *err)
{
    int64_t dim[2 + TY_SLIDING_AXES] = {n, c};
    for (int i = 0; i < (int)attr->n; i++)
        dim[2 + i] = s->out[TY_SLIDING_AXES - (int)attr->n + i];
    if (ty_expect_result(dtype, 2 + (int)attr->n, dim, res, err) < 0)
        return -1;
    *res = ty_sliding_laid(attr, res);
    return 0;
}

void ty_sliding_span(const ty_sliding *s, int axis, int64_t k, int64_t *first, int64_t *end, int64_t *at)
{
    int64_t shift = k * s->dil[axis] - s->lo[axis]; /* input position of output 0 */
    int64_t step = s->step[axis], room = s->in[axis] - shift;
    *first = shift < 0 ? (-shift + step - 1) / step : 0;
    *end = room > 0 ? (room - 1) / step + 1 : 0;
    if (*end > s->out[axis])
        *end = s->out[axis];
    *at = *first * step + shift;
}
