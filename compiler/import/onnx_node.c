/* onnx_node.c - how an operator's function reads its node: inputs, attributes, constants. */
#include "compiler/import/onnx_import.h"
#include "compiler/ops/ref.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Constants that importers look into (shapes, axes, scales, weights of a Resize) are small; larger ones are refused. */
enum { MAX_CONST_ELEMS = 1 << 22 };

/* ---- inputs and outputs -------------------------------------------------------------------------------------------
 */

ty_val onnx_in(const onnx_ctx *c, int i)
{
    return i < c->n_in && c->in[i] ? c->in[i]->val : TY_NONE;
}

bool onnx_has(const onnx_ctx *c, int i)
{
    return i < c->n_in && c->in[i];
}

bool onnx_wants(const onnx_ctx *c, int i)
{
    return i < (int)c->node->outputs.n && ONNX_TEXT(c->node->outputs, i)[0];
}

void onnx_set(onnx_ctx *c, int i, ty_val v)
{
    if (i >= c->n_out)
        return;
    c->out[i].kind = ONNX_TENSOR;
    c->out[i].val = v;
}

void onnx_set_sequence(onnx_ctx *c, int i, const ty_val *seq, int n)
{
    if (i >= c->n_out)
        return;
    c->out[i].kind = ONNX_SEQUENCE;
    c->out[i].seq = seq;
    c->out[i].n_seq = n;
}

void onnx_unset(onnx_ctx *c, int i, const char *reason)
{
    if (i < c->n_out)
        c->out[i].unset_reason = reason;
}

const ty_type *onnx_type_of(const onnx_ctx *c, ty_val v)
{
    static const ty_type none = {.dtype = TY_F32};
    return v == TY_NONE ? &none : ty_graph_type(c->g, v);
}

int onnx_rank(const onnx_ctx *c, ty_val v)
{
    return onnx_type_of(c, v)->rank;
}

int64_t onnx_dim(const onnx_ctx *c, ty_val v, int axis)
{
    return axis >= 0 && axis < TY_MAX_RANK ? onnx_type_of(c, v)->dim[axis] : 0;
}

ty_dtype onnx_dtype_of(const onnx_ctx *c, ty_val v)
{
    return (ty_dtype)onnx_type_of(c, v)->dtype;
}

void *onnx_alloc(onnx_ctx *c, size_t n, size_t elem_bytes)
{
    return ty_arena_alloc(&c->imp->arena, n * elem_bytes);
}

/* ---- attributes ---------------------------------------------------------------------------------------------------
 */

static const onnx_attr *find_in(const ty_wire_list *attrs, const char *name)
{
    for (size_t i = 0; i < attrs->n; i++)
        if (strcmp(ONNX_AT(*attrs, onnx_attr, i)->name, name) == 0)
            return ONNX_AT(*attrs, onnx_attr, i);
    return NULL;
}

/* An attribute inside a function may stand for one of the call, or for its default. */
static const onnx_attr *find_attr(const onnx_node *node, const onnx_scope *scope, const char *name)
{
    const onnx_attr *attr = find_in(&node->attrs, name);
    while (attr && attr->ref[0]) {
        while (scope && !scope->call)
            scope = scope->parent;
        if (!scope)
            return NULL;
        const char *ref = attr->ref;
        attr = find_in(&scope->call->attrs, ref);
        if (!attr)
            return find_in(&scope->function->attr_defaults, ref);
        scope = scope->call_scope;
    }
    return attr;
}

static void note_asked(onnx_importer *imp, const char *name)
{
    if (!imp->asked || ty_names_find(imp->asked, name) >= 0)
        return;
    ty_names_put(imp->asked, name, imp->n_asked);
    if (imp->n_asked < (int)(sizeof imp->asked_name / sizeof imp->asked_name[0]))
        imp->asked_name[imp->n_asked++] = name;
}

const onnx_attr *onnx_find_attr(const onnx_ctx *c, const char *name)
{
    note_asked(c->imp, name);
    return find_attr(c->node, c->scope, name);
}

int64_t onnx_attr_int(onnx_ctx *c, const char *name, int64_t absent)
{
    const onnx_attr *a = onnx_find_attr(c, name);
    if (a && !a->has_i && a->type != ONNX_ATTR_INT)
        onnx_fail_attr(c, name, "must be an integer");
    return a ? a->i : absent;
}

double onnx_attr_float(onnx_ctx *c, const char *name, double absent)
{
    const onnx_attr *a = onnx_find_attr(c, name);
    if (a && !a->has_f && a->type != ONNX_ATTR_FLOAT)
        onnx_fail_attr(c, name, "must be a float");
    return a ? (double)a->f : absent;
}

const char *onnx_attr_text(onnx_ctx *c, const char *name, const char *absent)
{
    const onnx_attr *a = onnx_find_attr(c, name);
    if (!a)
        return absent;
    if (!a->has_s && a->type != ONNX_ATTR_STRING)
        onnx_fail_attr(c, name, "must be a string");
    char *text = onnx_alloc(c, a->s.n + 1, 1);
    if (a->s.n)
        memcpy(text, a->s.data, a->s.n);
    return text;
}

bool onnx_attr_ints(onnx_ctx *c, const char *name, const int64_t **v, int64_t *n)
{
    const onnx_attr *a = onnx_find_attr(c, name);
    if (!a)
        return false;
    if (a->ints.n == 0 && a->type != ONNX_ATTR_INTS && a->type != 0)
        onnx_fail_attr(c, name, "must be a list of integers");
    *v = a->ints.data;
    *n = (int64_t)a->ints.n;
    return true;
}

bool onnx_attr_floats(onnx_ctx *c, const char *name, const double **v, int64_t *n)
{
    const onnx_attr *a = onnx_find_attr(c, name);
    if (!a)
        return false;
    if (a->floats.n == 0 && a->type != ONNX_ATTR_FLOATS && a->type != 0)
        onnx_fail_attr(c, name, "must be a list of floats");
    double *out = onnx_alloc(c, a->floats.n, sizeof *out);
    for (size_t i = 0; i < a->floats.n; i++) {
        float f;
        memcpy(&f, (const char *)a->floats.data + i * sizeof f, sizeof f);
        out[i] = (double)f;
    }
    *v = out;
    *n = (int64_t)a->floats.n;
    return true;
}

bool onnx_attr_int_list(onnx_ctx *c, const char *name, int64_t n, int64_t fill, int64_t *out)
{
    const int64_t *v = NULL;
    int64_t n_found = 0;
    bool given = onnx_attr_ints(c, name, &v, &n_found);
    if (given && n_found != n) {
        onnx_fail_attr(c, name, "must have %lld entries", (long long)n);
        return false;
    }
    for (int64_t i = 0; i < n; i++)
        out[i] = given ? v[i] : fill;
    return !c->failed;
}

int onnx_attr_choice(onnx_ctx *c, const char *name, const char *absent, const char *const *choices)
{
    const char *text = onnx_attr_text(c, name, absent);
    for (int i = 0; choices[i]; i++)
        if (strcmp(choices[i], text) == 0)
            return i;
    char list[128] = "";
    for (int i = 0; choices[i]; i++) {
        size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s\"%s\"", i ? ", " : "", choices[i]);
    }
    onnx_fail_attr(c, name, "must be one of %s", list);
    return 0;
}

/* ---- constants ----------------------------------------------------------------------------------------------------
 */

/* Type and bytes of a value that is a constant, also a stretched one (*splat: one element stands for all), or an
 * initializer that training may bind to a state: what decides about shapes is what the file says. */
static const void *const_bytes(const onnx_ctx *c, const onnx_item *item, ty_val v, ty_type *type, bool *splat)
{
    *type = *ty_graph_type(c->g, v);
    *splat = false;
    const void *data = ty_graph_const_data(c->g, v);
    if (!data && ty_graph_op(c->g, ty_val_node(v)) == TY_OP_BROADCAST) {
        ty_val source = ty_graph_in(c->g, ty_val_node(v), 0);
        data = ty_type_elems(ty_graph_type(c->g, source)) == 1 ? ty_graph_const_data(c->g, source) : NULL;
        *splat = data != NULL;
    }
    if (!data && item && item->initializer >= 0)
        data = c->imp->m->initializers[item->initializer].data;
    return data;
}

/* Elements of a constant as doubles or integers, whatever its type; false if it is none. */
static bool const_elems(const onnx_ctx *c, const onnx_item *item, ty_val v, const int64_t **ints, const double **floats,
                        int64_t *n)
{
    ty_type type;
    bool splat;
    const void *data = v == TY_NONE ? NULL : const_bytes(c, item, v, &type, &splat);
    if (!data || ty_type_elems(&type) > MAX_CONST_ELEMS)
        return false;
    *n = ty_type_elems(&type);
    int64_t n_stored = splat ? 1 : *n;
    ty_type flat = ty_type_make((ty_dtype)type.dtype, 1, &n_stored);
    ty_arena *arena = &c->imp->arena;
    int64_t *i = TY_NEW_ARRAY(arena, int64_t, *n + 1);
    double *f = TY_NEW_ARRAY(arena, double, *n + 1);
    bool is_float = ty_dtype_is_float((ty_dtype)type.dtype);
    ty_ref ref = {.type = flat, .f = is_float ? f : NULL, .i = is_float ? NULL : i};
    if (n_stored)
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

bool onnx_is_const(const onnx_ctx *c, int i)
{
    ty_type type;
    bool splat;
    ty_val v = onnx_in(c, i);
    return v != TY_NONE && const_bytes(c, c->in[i], v, &type, &splat);
}

static bool const_input(onnx_ctx *c, int i, const int64_t **ints, const double **floats, int64_t *n, bool want_float)
{
    ty_val v = onnx_in(c, i);
    if (v == TY_NONE) {
        onnx_fail_input(c, i, TY_E_SHAPE, "is missing");
        return false;
    }
    if (!const_elems(c, c->in[i], v, ints, floats, n)) {
        onnx_fail_input(c, i, TY_E_SHAPE, "must be known before training starts, but depends on the data");
        return false;
    }
    if (!want_float && ty_dtype_is_float(onnx_dtype_of(c, v))) {
        onnx_fail_input(c, i, TY_E_UNSUPPORTED, "must hold integers");
        return false;
    }
    return true;
}

bool onnx_const_ints(onnx_ctx *c, int i, const int64_t **v, int64_t *n)
{
    const double *floats;
    return const_input(c, i, v, &floats, n, false);
}

bool onnx_const_floats(onnx_ctx *c, int i, const double **v, int64_t *n)
{
    const int64_t *ints;
    return const_input(c, i, &ints, v, n, true);
}

bool onnx_const_int(onnx_ctx *c, int i, int64_t absent, int64_t *out)
{
    const int64_t *v;
    int64_t n;
    *out = absent;
    if (!onnx_has(c, i))
        return true;
    if (!onnx_const_ints(c, i, &v, &n))
        return false;
    if (n != 1) {
        onnx_fail_input(c, i, TY_E_SHAPE, "must be one number");
        return false;
    }
    *out = v[0];
    return true;
}

bool onnx_const_float(onnx_ctx *c, int i, double absent, double *out)
{
    const double *v;
    int64_t n;
    *out = absent;
    if (!onnx_has(c, i))
        return true;
    if (!onnx_const_floats(c, i, &v, &n))
        return false;
    if (n != 1) {
        onnx_fail_input(c, i, TY_E_SHAPE, "must be one number");
        return false;
    }
    *out = v[0];
    return true;
}

bool onnx_ints_either(onnx_ctx *c, const char *name, int i, const int64_t **v, int64_t *n)
{
    *v = NULL;
    *n = -1;
    if (onnx_has(c, i))
        return onnx_const_ints(c, i, v, n);
    onnx_attr_ints(c, name, v, n);
    return !c->failed;
}

bool onnx_val_ints(onnx_ctx *c, ty_val v, const int64_t **out, int64_t *n)
{
    const double *floats;
    return const_elems(c, NULL, v, out, &floats, n);
}

ty_val onnx_ints_const(onnx_ctx *c, const int64_t *v, int64_t n)
{
    int64_t none = 0;
    return ty_b_const_copy(c->g, ty_type_make(TY_I64, 1, &n), n ? v : &none);
}

ty_val onnx_int_const(onnx_ctx *c, int64_t v)
{
    return ty_b_const(c->g, ty_type_scalar(TY_I64), &v);
}

ty_val onnx_const_from(onnx_ctx *c, ty_dtype dtype, int rank, const int64_t *dim, const double *v)
{
    ty_type type = ty_type_make(dtype, rank, dim);
    int64_t n = ty_type_elems(&type);
    ty_ref ref = {.type = type, .f = NULL, .i = NULL};
    if (ty_dtype_is_float(dtype))
        ref.f = (double *)(uintptr_t)v;
    else {
        ref.i = onnx_alloc(c, (size_t)n + 1, sizeof(int64_t));
        for (int64_t k = 0; k < n; k++)
            ref.i[k] = (int64_t)v[k];
    }
    void *data = onnx_alloc(c, ty_type_bytes(&type) + 1, 1);
    if (n)
        ty_ref_store(&ref, data);
    return ty_b_const_copy(c->g, type, data);
}

/* ---- axes ---------------------------------------------------------------------------------------------------------
 */

bool onnx_axis(onnx_ctx *c, int64_t axis, int rank, int *out)
{
    if (axis < -rank || axis >= rank) {
        onnx_fail(c, TY_E_SHAPE, "%s: axis %lld is outside the %d dimensions", c->node->op_type, (long long)axis, rank);
        return false;
    }
    *out = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

bool onnx_axes(onnx_ctx *c, const int64_t *axes, int64_t n, int rank, uint32_t *mask)
{
    *mask = 0;
    for (int64_t i = 0; i < n; i++) {
        int axis;
        if (!onnx_axis(c, axes[i], rank, &axis))
            return false;
        if (*mask >> axis & 1) {
            onnx_fail(c, TY_E_SHAPE, "%s: axis %d is named twice", c->node->op_type, axis);
            return false;
        }
        *mask |= 1u << axis;
    }
    return true;
}

bool onnx_shape_ok(onnx_ctx *c, int rank, const int64_t *dim)
{
    if (rank > TY_MAX_RANK) {
        onnx_fail(c, TY_E_UNSUPPORTED, "%s: the result would have %d dimensions; at most %d are possible",
                  c->node->op_type, rank, TY_MAX_RANK);
        return false;
    }
    const int64_t max_elems = (int64_t)1 << 36;
    int64_t n = ty_dims_elems_checked(rank, dim, 8);
    if (n < 0 || n > max_elems) {
        onnx_fail(c, TY_E_SHAPE, "%s: the result's shape is negative or far too large", c->node->op_type);
        return false;
    }
    return true;
}
