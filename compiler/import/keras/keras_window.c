/* keras_window.c - see keras_window.h. */
#include "compiler/import/keras/keras_window.h"

#include <string.h>

bool keras_has_planes(keras_call *c, int n)
{
    int rank = c->n_in == 1 ? ty_b_rank(c->g, c->in[0]) : 0;
    if (c->n_in == 1 && rank == n + 2)
        return true;
    if (c->n_in != 1)
        keras_fail(c, TY_E_SHAPE, "expected one input, found %d", c->n_in);
    else
        keras_fail(c, TY_E_SHAPE, "expected an input of %d dimensions (batch, channels and %d of space), found %d",
                   n + 2, n, rank);
    return false;
}

int keras_channel_axis(bool first, int n)
{
    return first ? 1 : n + 1;
}

int keras_space_axis(bool first, int i)
{
    return first ? i + 2 : i + 1;
}

ty_val keras_to_first(keras_call *c, ty_val x, bool first)
{
    int64_t perm[TY_MAX_RANK] = {0};
    if (first || x == TY_NONE)
        return x;
    int rank = ty_b_rank(c->g, x);
    for (int i = 1; i < rank; i++)
        perm[i] = i == 1 ? rank - 1 : i - 1;
    return ty_b_transpose(c->g, x, perm);
}

ty_val keras_from_first(keras_call *c, ty_val x, bool first)
{
    int64_t perm[TY_MAX_RANK] = {0};
    if (first || x == TY_NONE)
        return x;
    int rank = ty_b_rank(c->g, x);
    for (int i = 1; i < rank; i++)
        perm[i] = i == rank - 1 ? 1 : i + 1;
    return ty_b_transpose(c->g, x, perm);
}

/* ---- windows ---- */

static bool window_in_range(keras_call *c, const char *key, int n, const int64_t *v)
{
    for (int i = 0; i < n; i++)
        if (v[i] < 1 || v[i] > KERAS_WINDOW_MOST) {
            keras_fail_key(c, key, "expected numbers from 1 to %d", KERAS_WINDOW_MOST);
            return false;
        }
    return true;
}

static bool window_strides(keras_call *c, int n, bool is_pool, keras_window *w)
{
    if (is_pool && !keras_config(c, "strides")) {
        memcpy(w->attr.step, w->attr.size, sizeof w->attr.step);
        return true;
    }
    return keras_ints(c, "strides", n, 1, w->attr.step) && window_in_range(c, "strides", n, w->attr.step);
}

bool keras_window_settings(keras_call *c, int n, const char *key, int64_t absent, bool is_pool, keras_window *w)
{
    static const char *const usual[] = {"valid", "same", NULL}, *const causal[] = {"valid", "same", "causal", NULL};
    *w = (keras_window){.attr = {.n = (uint32_t)n}};
    if (absent == 0 && !keras_config(c, key)) {
        keras_fail(c, TY_E_ATTRIBUTE, "%s is missing in the layer's configuration", key);
        return false;
    }
    if (!keras_ints(c, key, n, absent, w->attr.size) || !window_in_range(c, key, n, w->attr.size) ||
        !window_strides(c, n, is_pool, w))
        return false;
    for (int i = 0; i < n; i++)
        w->attr.dil[i] = 1;
    if (!is_pool &&
        (!keras_ints(c, "dilation_rate", n, 1, w->attr.dil) || !window_in_range(c, "dilation_rate", n, w->attr.dil)))
        return false;
    bool can_be_causal = !is_pool && c->layer->row && strcmp(c->layer->row->class_name, "Conv1D") == 0;
    w->padding = (keras_padding)keras_choice(c, "padding", "valid", can_be_causal ? causal : usual);
    w->first = keras_channels_first(c);
    for (int i = 0; i < n; i++)
        w->extent[i] = (w->attr.size[i] - 1) * w->attr.dil[i] + 1;
    return !c->failed;
}

/* A window of one element is turned as a matrix: products take it as it lies. */
ty_val keras_window_turned(keras_call *c, ty_val kernel)
{
    if (kernel == TY_NONE)
        return kernel;
    const ty_type t = *ty_graph_type(c->g, kernel);
    int64_t perm[TY_MAX_RANK], dim[TY_MAX_RANK], flat[] = {t.dim[t.rank - 2], t.dim[t.rank - 1]};
    bool is_matrix = true;
    for (int i = 0; i < t.rank; i++) {
        perm[i] = i < 2 ? t.rank - 1 - i : i - 2;
        dim[i] = t.dim[perm[i]];
        is_matrix &= i < 2 || dim[i] == 1;
    }
    if (!is_matrix)
        return ty_b_transpose(c->g, kernel, perm);
    static const int64_t swap[] = {1, 0};
    return ty_b_reshape(c->g, ty_b_transpose(c->g, ty_b_reshape(c->g, kernel, 2, flat), swap), t.rank, dim);
}

bool keras_window_read(keras_call *c, int n, const char *key, int64_t absent, bool is_pool, keras_window *w)
{
    return keras_has_planes(c, n) && keras_window_settings(c, n, key, absent, is_pool, w);
}

bool keras_window_place(keras_call *c, keras_window *w, ty_val x)
{
    if (x == TY_NONE)
        return false;
    for (int i = 0; i < (int)w->attr.n; i++) {
        int64_t in = ty_b_dim(c->g, x, i + 2), step = w->attr.step[i], out = (in + step - 1) / step;
        int64_t total = w->padding == KERAS_PAD_SAME ? (out - 1) * step + w->extent[i] - in : 0;
        total = w->padding == KERAS_PAD_CAUSAL ? w->extent[i] - 1 : total > 0 ? total : 0;
        w->attr.lo[i] = w->padding == KERAS_PAD_CAUSAL ? total : total / 2;
        w->attr.hi[i] = total - w->attr.lo[i];
        if (in + total >= w->extent[i])
            continue;
        keras_fail(c, TY_E_SHAPE, "a window of %lld does not fit into %lld positions (spatial axis %d)",
                   (long long)w->extent[i], (long long)in, i);
        keras_help(c, "use larger inputs, a smaller window, or padding=\"same\"");
        return false;
    }
    return true;
}

/* ---- along an axis ---- */

ty_val keras_const(keras_call *c, ty_dtype dtype, int rank, const int64_t *dim, const double *v)
{
    ty_type type = ty_type_make(dtype == TY_F64 ? TY_F64 : TY_F32, rank, dim);
    int64_t n = ty_type_elems(&type);
    if (dtype == TY_F64)
        return ty_b_const_copy(c->g, type, v);
    float *narrow = keras_alloc(c, (size_t)n + 1, sizeof *narrow);
    for (int64_t i = 0; i < n; i++)
        narrow[i] = (float)v[i];
    return ty_b_cast(c->g, ty_b_const_copy(c->g, type, narrow), dtype);
}

ty_val keras_along(keras_call *c, ty_val x, int axis, int64_t out, const double *matrix)
{
    if (x == TY_NONE)
        return x;
    const ty_type t = *ty_graph_type(c->g, x);
    int64_t in = t.dim[axis], m_dim[] = {out, in}, outer = 1, inner = 1, dim[TY_MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        outer *= i < axis ? t.dim[i] : 1;
        inner *= i > axis ? t.dim[i] : 1;
        dim[i] = i == axis ? out : t.dim[i];
    }
    ty_val m = keras_const(c, (ty_dtype)t.dtype, 2, m_dim, matrix), y;
    int64_t flat[] = {outer, in}, blocks[] = {outer, in, inner};
    if (inner == 1)
        y = ty_b_dot(c->g, ty_b_reshape(c->g, x, 2, flat), m, false, true);
    else
        y = ty_b_matmul(c->g, m, ty_b_reshape(c->g, x, 3, blocks));
    return ty_b_reshape(c->g, y, t.rank, dim);
}

ty_val keras_pick(keras_call *c, ty_val x, int axis, int64_t out, const int64_t *index)
{
    ty_type type = ty_type_make(TY_I64, 1, &out);
    return x == TY_NONE ? x : ty_b_gather(c->g, x, ty_b_const_copy(c->g, type, index), axis);
}

ty_val keras_on_axis(keras_call *c, ty_val v, int axis, int rank)
{
    int64_t dim[TY_MAX_RANK];
    if (v == TY_NONE)
        return v;
    for (int i = 0; i < rank; i++)
        dim[i] = i == axis ? ty_b_dim(c->g, v, 0) : 1;
    return ty_b_reshape(c->g, v, rank, dim);
}
