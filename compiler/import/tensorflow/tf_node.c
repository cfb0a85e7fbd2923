/* tf_node.c - what the functions of operations ask of a node: inputs, outputs, constants, axes; and how they refuse. */
#include "compiler/import/tensorflow/tf_ops.h"
#include "compiler/ops/ref.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_CONST_ELEMS = 1 << 22 };

/* ---- inputs and outputs -------------------------------------------------------------------------------------------
 */

void *tf_alloc(tf_ctx *c, size_t n, size_t elem_bytes)
{
    return ty_arena_alloc_array(&c->imp->arena, n + 1, elem_bytes);
}

bool tf_has(const tf_ctx *c, int i)
{
    return i < c->n_in;
}

ty_val tf_in(const tf_ctx *c, int i)
{
    if (i >= c->n_in)
        return TY_NONE;
    if (c->in[i].kind == TF_VARIABLE)
        return tf_present(c->imp, c->in[i].variable);
    return c->in[i].kind == TF_TENSOR ? c->in[i].val : TY_NONE;
}

ty_val tf_in_parts(const tf_ctx *c, int i, ty_val *imag)
{
    bool is_complex = i < c->n_in && c->in[i].kind == TF_COMPLEX;
    *imag = is_complex ? c->in[i].imag : TY_NONE;
    return is_complex ? c->in[i].val : tf_in(c, i);
}

void tf_set_parts(tf_ctx *c, int i, ty_val real, ty_val imag)
{
    tf_set_item(c, i, &(tf_item){.kind = TF_COMPLEX, .val = real, .imag = imag, .variable = -1});
}

ty_val tf_in_rows(const tf_ctx *c, int i)
{
    return i < c->n_in && c->in[i].kind == TF_ROWS ? c->in[i].val : TY_NONE;
}

void tf_set_item(tf_ctx *c, int i, const tf_item *item)
{
    if (i >= c->n_out)
        return;
    c->out[i] = *item;
    c->out[i].origin = c->node->op;
}

void tf_set(tf_ctx *c, int i, ty_val v)
{
    tf_item item = tf_tensor_item(v);
    tf_set_item(c, i, &item);
}

void tf_set_list(tf_ctx *c, int i, const tf_list *list)
{
    tf_set_item(c, i, &(tf_item){.kind = TF_LIST, .val = TY_NONE, .variable = -1, .list = list});
}

void tf_set_other(tf_ctx *c, int i)
{
    tf_set_item(c, i, &(tf_item){.kind = TF_OTHER, .val = TY_NONE, .variable = -1});
}

const tf_list *tf_in_list(tf_ctx *c, int i)
{
    if (i < c->n_in && c->in[i].kind == TF_LIST)
        return c->in[i].list;
    tf_fail_input(c, i, TY_E_UNSUPPORTED, "must be a list of tensors");
    return NULL;
}

int tf_rank(const tf_ctx *c, ty_val v)
{
    return ty_b_rank(c->g, v);
}

int64_t tf_dim(const tf_ctx *c, ty_val v, int axis)
{
    return ty_b_dim(c->g, v, axis);
}

ty_dtype tf_dtype_of(const tf_ctx *c, ty_val v)
{
    return v == TY_NONE ? TY_F32 : ty_b_dtype(c->g, v);
}

const ty_type *tf_type(const tf_ctx *c, ty_val v)
{
    static const ty_type none = {.dtype = TY_F32};
    return v == TY_NONE ? &none : ty_graph_type(c->g, v);
}

bool tf_is_float(const tf_ctx *c, ty_val v)
{
    return ty_dtype_is_float(tf_dtype_of(c, v));
}

ty_dtype tf_attr_dtype(tf_ctx *c, const char *name, ty_dtype absent)
{
    int64_t type = tf_attr_type(c->node, name, 0);
    ty_dtype dtype = type == 0 ? absent : tf_dtype(type);
    if (dtype == TY_N_DTYPES && absent != TY_N_DTYPES) {
        tf_fail_attr(c, name, "asks for %s, in which no step computes", tf_data_type_text(type));
        return absent;
    }
    return dtype;
}

const char *tf_text(tf_ctx *c, const char *name, const char *absent)
{
    return tf_attr_text(c->node, &c->imp->arena, name, absent);
}

/* ---- constants ----------------------------------------------------------------------------------------------------
 */

/* Bytes of a constant; *splat: one element stands for all. */
static const void *const_bytes(const ty_graph *g, ty_val v, bool *splat)
{
    const void *data = ty_graph_const_data(g, v);
    *splat = false;
    if (!data && ty_graph_op(g, ty_val_node(v)) == TY_OP_BROADCAST) {
        ty_val source = ty_graph_in(g, ty_val_node(v), 0);
        data = ty_type_elems(ty_graph_type(g, source)) == 1 ? ty_graph_const_data(g, source) : NULL;
        *splat = data != NULL;
    }
    return data;
}

static bool const_read(const tf_ctx *c, const ty_type *type, const void *data, bool splat, const int64_t **ints,
                       const double **floats, int64_t *n)
{
    if (!data || ty_type_elems(type) > MAX_CONST_ELEMS)
        return false;
    ty_dtype dtype = (ty_dtype)type->dtype;
    bool is_float = ty_dtype_is_float(dtype);
    *n = ty_type_elems(type);
    int64_t stored = splat ? 1 : *n;
    ty_arena *arena = &c->imp->arena;
    int64_t *i = TY_NEW_ARRAY(arena, int64_t, *n + 1);
    double *f = TY_NEW_ARRAY(arena, double, *n + 1);
    ty_ref ref = {.type = ty_type_make(dtype, 1, &stored), .f = is_float ? f : NULL, .i = is_float ? NULL : i};
    if (stored && *n)
        ty_ref_load(&ref, data);
    for (int64_t k = 0; k < *n; k++) {
        int64_t at = splat ? 0 : k;
        if (is_float)
            i[k] = fabs(f[at]) < 0x1p62 ? (int64_t)f[at] : 0, f[k] = f[at];
        else
            f[k] = (double)i[at], i[k] = i[at];
    }
    *ints = i;
    *floats = f;
    return true;
}

static bool const_elems(const tf_ctx *c, ty_val v, const int64_t **ints, const double **floats, int64_t *n)
{
    bool splat = false;
    const void *data = v == TY_NONE ? NULL : const_bytes(c->g, v, &splat);
    return data && const_read(c, tf_type(c, v), data, splat, ints, floats, n);
}

/* Floats of a frozen graph may be weights, but one that has to be known is as it is in the file. */
static bool const_weight(const tf_ctx *c, int i, const int64_t **ints, const double **floats, int64_t *n)
{
    int number = c->in[i].kind == TF_TENSOR ? c->in[i].variable : -1;
    const tf_variable *v = number >= 0 ? tf_variable_at(c->imp->file, number) : NULL;
    return v && v->is_const && const_read(c, &v->type, v->data, false, ints, floats, n);
}

bool tf_val_ints(const tf_ctx *c, ty_val v, const int64_t **out, int64_t *n)
{
    const double *floats;
    return const_elems(c, v, out, &floats, n);
}

bool tf_val_floats(const tf_ctx *c, ty_val v, const double **out, int64_t *n)
{
    const int64_t *ints;
    return const_elems(c, v, &ints, out, n);
}

static bool const_input(tf_ctx *c, int i, const int64_t **ints, const double **floats, int64_t *n)
{
    if (const_elems(c, tf_in(c, i), ints, floats, n) || const_weight(c, i, ints, floats, n))
        return true;
    tf_fail_input(c, i, TY_E_SHAPE, "must be known before training starts, but depends on the data");
    return false;
}

bool tf_const_ints(tf_ctx *c, int i, const int64_t **v, int64_t *n)
{
    const double *floats;
    if (tf_is_float(c, tf_in(c, i))) {
        tf_fail_input(c, i, TY_E_UNSUPPORTED, "must hold integers");
        return false;
    }
    return const_input(c, i, v, &floats, n);
}

bool tf_const_floats(tf_ctx *c, int i, const double **v, int64_t *n)
{
    const int64_t *ints;
    return const_input(c, i, &ints, v, n);
}

bool tf_const_int(tf_ctx *c, int i, int64_t *out)
{
    const int64_t *v;
    int64_t n;
    if (!tf_const_ints(c, i, &v, &n))
        return false;
    if (n != 1)
        tf_fail_input(c, i, TY_E_SHAPE, "must be one number");
    *out = n == 1 ? v[0] : 0;
    return n == 1;
}

bool tf_const_float(tf_ctx *c, int i, double *out)
{
    const double *v;
    int64_t n;
    if (!tf_const_floats(c, i, &v, &n))
        return false;
    if (n != 1)
        tf_fail_input(c, i, TY_E_SHAPE, "must be one number");
    *out = n == 1 ? v[0] : 0;
    return n == 1;
}

static ty_val const_from(tf_ctx *c, ty_ref *ref)
{
    void *data = tf_alloc(c, ty_type_bytes(&ref->type), 1);
    if (ty_type_elems(&ref->type))
        ty_ref_store(ref, data);
    return ty_b_const_copy(c->g, ref->type, data);
}

ty_val tf_ints(tf_ctx *c, ty_dtype dtype, const int64_t *v, int64_t n)
{
    ty_ref ref = {.type = ty_type_make(dtype, 1, &n), .i = tf_alloc(c, (size_t)n, sizeof *v)};
    if (ty_dtype_is_float(dtype)) {
        double *f = tf_alloc(c, (size_t)n, sizeof *f);
        for (int64_t i = 0; i < n; i++)
            f[i] = (double)v[i];
        return tf_floats(c, dtype, 1, &n, f);
    }
    if (n)
        memcpy(ref.i, v, (size_t)n * sizeof *v);
    return const_from(c, &ref);
}

ty_val tf_floats(tf_ctx *c, ty_dtype dtype, int rank, const int64_t *dim, const double *v)
{
    ty_ref ref = {.type = ty_type_make(dtype, rank, dim), .f = (double *)(uintptr_t)v};
    if (!ty_dtype_is_float(dtype)) {
        tf_fail(c, TY_E_UNSUPPORTED, "its result must be of floating-point numbers");
        return TY_NONE;
    }
    return const_from(c, &ref);
}

/* ---- axes and shapes ----------------------------------------------------------------------------------------------
 */

bool tf_axis(tf_ctx *c, int64_t axis, int rank, int *out)
{
    if (axis < -rank || axis >= rank) {
        tf_fail(c, TY_E_SHAPE, "axis %lld is outside the %d dimensions", (long long)axis, rank);
        return false;
    }
    *out = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

bool tf_axis_in(tf_ctx *c, int i, int rank, int *out)
{
    int64_t axis;
    return tf_const_int(c, i, &axis) && tf_axis(c, axis, rank, out);
}

bool tf_axes(tf_ctx *c, const int64_t *axes, int64_t n, int rank, uint32_t *mask)
{
    *mask = 0;
    for (int64_t i = 0; i < n; i++) {
        int axis;
        if (!tf_axis(c, axes[i], rank, &axis))
            return false;
        *mask |= 1u << axis;
    }
    return true;
}

bool tf_shape_ok(tf_ctx *c, int64_t rank, const int64_t *dim)
{
    const int64_t max_elems = (int64_t)1 << 36;
    if (rank > TY_MAX_RANK) {
        tf_fail(c, TY_E_UNSUPPORTED, "the result would have %lld dimensions; at most %d are possible", (long long)rank,
                TY_MAX_RANK);
        return false;
    }
    int64_t n = ty_dims_elems_checked((int)rank, dim, 8);
    if (n < 0 || n > max_elems) {
        tf_fail(c, TY_E_SHAPE, "the result's shape is negative or far too large");
        return false;
    }
    return true;
}

/* ---- faults -------------------------------------------------------------------------------------------------------
 */

static void fail_text(tf_ctx *c, ty_code code, const char *head, const char *text)
{
    if (c->failed)
        return;
    c->failed = true;
    ty_error_set(&c->err, code, "%s: %s%s", c->node->op, head, text);
}

void tf_fail(tf_ctx *c, ty_code code, const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fail_text(c, code, "", text);
}

void tf_fail_attr(tf_ctx *c, const char *attr, const char *fmt, ...)
{
    char text[400], head[80];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    snprintf(head, sizeof head, "attribute %.60s ", attr);
    fail_text(c, TY_E_ATTRIBUTE, head, text);
}

void tf_fail_input(tf_ctx *c, int i, ty_code code, const char *fmt, ...)
{
    char text[400], head[300], type[160];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ty_val v = tf_in(c, i);
    if (v == TY_NONE)
        snprintf(head, sizeof head, "input %d ", i);
    else
        snprintf(head, sizeof head, "input %d (%.100s) ", i, ty_type_text(tf_type(c, v), type, sizeof type));
    fail_text(c, code, head, text);
}

void tf_help(tf_ctx *c, const char *fmt, ...)
{
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ty_error_help(&c->err, "%s", text);
}
