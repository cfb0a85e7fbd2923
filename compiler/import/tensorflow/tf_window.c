/* tf_window.c - see tf_window.h. */
#include "compiler/import/tensorflow/tf_window.h"

#include <string.h>

enum { MAX_EXTENT = 1 << 24 };

bool tf_window_layout(tf_ctx *c, tf_window *w, int rank)
{
    const char *format = tf_text(c, "data_format", rank == 5 ? "NDHWC" : "NHWC");
    *w = (tf_window){.n = rank - 2, .last = format[0] && format[1] != 'C'};
    if (rank < 3 || rank > 5)
        tf_fail_input(c, 0, TY_E_SHAPE, "must have 4 or 5 dimensions");
    else if (strcmp(format, "NHWC") != 0 && strcmp(format, "NCHW") != 0 && strcmp(format, "NDHWC") != 0 &&
             strcmp(format, "NCDHW") != 0)
        tf_fail_attr(c, "data_format", "\"%.30s\" is not supported; NHWC and NCHW are", format);
    return !c->failed;
}

int64_t tf_window_spatial(const tf_window *w, const int64_t *dim, int i)
{
    return dim[i + (w->last ? 1 : 2)];
}

int64_t tf_window_channels(const tf_window *w, const int64_t *dim)
{
    return dim[w->last ? w->n + 1 : 1];
}

/* A list with an entry for each axis of x, of which the spatial ones count. */
static bool read_list(tf_ctx *c, const tf_window *w, const char *name, int64_t *out)
{
    const int64_t *v;
    int64_t n;
    for (int i = 0; i < w->n; i++)
        out[i] = 1;
    if (!tf_attr_ints(c->node, name, &v, &n) || n == 0)
        return true;
    if (n != w->n + 2) {
        tf_fail_attr(c, name, "must have %d entries", w->n + 2);
        return false;
    }
    for (int i = 0; i < w->n; i++) {
        out[i] = tf_window_spatial(w, v, i);
        if (out[i] < 1 || out[i] > MAX_EXTENT)
            tf_fail_attr(c, name, "has an entry %lld", (long long)out[i]);
    }
    if (v[0] != 1 || tf_window_channels(w, v) != 1)
        tf_fail_attr(c, name, "must be 1 for batch and channels");
    return !c->failed;
}

/* What lies around x: for SAME so much that there are ceil(in / step) results, the odd one behind. */
static void pad_same(tf_window *w, const int64_t *in)
{
    for (int i = 0; i < w->n; i++) {
        int64_t out = (in[i] + w->step[i] - 1) / w->step[i];
        int64_t total = (out - 1) * w->step[i] + (w->size[i] - 1) * w->dil[i] + 1 - in[i];
        total = total > 0 ? total : 0;
        w->lo[i] = total / 2;
        w->hi[i] = total - w->lo[i];
    }
}

static bool pad_explicit(tf_ctx *c, tf_window *w)
{
    const int64_t *v;
    int64_t n;
    if (!tf_attr_ints(c->node, "explicit_paddings", &v, &n) || n != 2 * (w->n + 2)) {
        tf_fail_attr(c, "explicit_paddings", "must have %d entries", 2 * (w->n + 2));
        return false;
    }
    for (int i = 0; i < w->n; i++) {
        int at = 2 * (i + (w->last ? 1 : 2));
        w->lo[i] = v[at];
        w->hi[i] = v[at + 1];
        if (v[at] < 0 || v[at] > MAX_EXTENT || v[at + 1] < 0 || v[at + 1] > MAX_EXTENT)
            tf_fail_attr(c, "explicit_paddings", "must not be negative");
    }
    return !c->failed;
}

bool tf_window_read(tf_ctx *c, tf_window *w, const int64_t *size, const int64_t *in)
{
    const char *padding = tf_text(c, "padding", "VALID");
    if (!read_list(c, w, "strides", w->step) || !read_list(c, w, "dilations", w->dil))
        return false;
    if (!size && !read_list(c, w, "ksize", w->size))
        return false;
    for (int i = 0; i < w->n && size; i++)
        w->size[i] = size[i];
    if (strcmp(padding, "EXPLICIT") == 0)
        return pad_explicit(c, w);
    if (strcmp(padding, "SAME") == 0)
        pad_same(w, in);
    else if (strcmp(padding, "VALID") != 0)
        tf_fail_attr(c, "padding", "must be SAME, VALID or EXPLICIT");
    return !c->failed;
}

ty_attr tf_window_attr(const tf_window *w)
{
    ty_attr a = {.n = (uint32_t)w->n, .groups = 1};
    for (int i = 0; i < w->n; i++) {
        a.size[i] = w->size[i];
        a.step[i] = w->step[i];
        a.dil[i] = w->dil[i];
        a.lo[i] = w->lo[i];
        a.hi[i] = w->hi[i];
    }
    return a;
}

ty_val tf_window_first(tf_ctx *c, const tf_window *w, ty_val x)
{
    int64_t perm[TY_MAX_RANK] = {0, w->n + 1};
    for (int i = 0; i < w->n; i++)
        perm[i + 2] = i + 1;
    return w->last ? ty_b_transpose(c->g, x, perm) : x;
}

ty_val tf_window_back(tf_ctx *c, const tf_window *w, ty_val y)
{
    int64_t perm[TY_MAX_RANK] = {0};
    for (int i = 0; i < w->n; i++)
        perm[i + 1] = i + 2;
    perm[w->n + 1] = 1;
    return w->last ? ty_b_transpose(c->g, y, perm) : y;
}

ty_type tf_window_type(const tf_window *w, ty_dtype dtype, const int64_t *dim)
{
    int64_t first[TY_MAX_RANK] = {dim[0], tf_window_channels(w, dim)};
    for (int i = 0; i < w->n; i++)
        first[i + 2] = tf_window_spatial(w, dim, i);
    return ty_type_make(dtype, w->n + 2, first);
}
