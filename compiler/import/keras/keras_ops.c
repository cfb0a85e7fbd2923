/* keras_ops.c - arguments and types of operations, and which there are. */
#include "compiler/import/keras/keras_ops.h"

#include <string.h>

#define KERAS_OP(NAME, function, arg) void keras_op_##function(keras_call *c);
#include "compiler/import/keras/keras_ops.def"
#undef KERAS_OP

static const keras_op_row ops_rows[] = {
#define KERAS_OP(NAME, function, arg) {#NAME, NULL, keras_op_##function, arg},
#include "compiler/import/keras/keras_ops.def"
#undef KERAS_OP
};

/* Class names of operations are unique over the modules of keras.ops. */
const keras_op_row *keras_find_op(const char *class_name, const char *module)
{
    (void)module;
    for (size_t i = 0; i < sizeof ops_rows / sizeof *ops_rows; i++)
        if (strcmp(ops_rows[i].class_name, class_name) == 0)
            return &ops_rows[i];
    return NULL;
}

/* ---- types
 * -----------------------------------------------------------------------------------------------------------
 */

static bool is_integer(ty_dtype d)
{
    return d != TY_BOOL && !ty_dtype_is_float(d);
}

/* Of two integers that are not Python's. */
static ty_dtype promote_integers(ty_dtype a, ty_dtype b)
{
    static const ty_dtype wider[] = {[1] = TY_I16, [2] = TY_I32, [4] = TY_I64, [8] = TY_F32};
    size_t of_a = ty_dtype_bytes(a), of_b = ty_dtype_bytes(b);
    if (ty_dtype_is_signed(a) == ty_dtype_is_signed(b))
        return of_a >= of_b ? a : b;
    ty_dtype with = ty_dtype_is_signed(a) ? a : b, without = ty_dtype_is_signed(a) ? b : a;
    return ty_dtype_bytes(with) > ty_dtype_bytes(without) ? with : wider[ty_dtype_bytes(without)];
}

static ty_dtype promote_floats(ty_dtype a, ty_dtype b)
{
    if (a == b)
        return a;
    return a == TY_F64 || b == TY_F64 ? TY_F64 : TY_F32;
}

ty_dtype keras_promote(ty_dtype a, bool a_weak, ty_dtype b, bool b_weak)
{
    bool a_float = ty_dtype_is_float(a), b_float = ty_dtype_is_float(b);
    if (a_weak && b_weak)
        return a_float || b_float ? TY_F32 : is_integer(a) || is_integer(b) ? TY_I32 : TY_BOOL;
    if (a_weak || b_weak) {
        ty_dtype firm = a_weak ? b : a, weak = a_weak ? a : b;
        if (ty_dtype_is_float(firm))
            return firm;
        return ty_dtype_is_float(weak) ? TY_F32 : firm == TY_BOOL && weak != TY_BOOL ? TY_I32 : firm;
    }
    if (a_float && b_float)
        return promote_floats(a, b);
    if (a_float || b_float)
        return a_float ? a : b;
    return a == TY_BOOL ? b : b == TY_BOOL ? a : promote_integers(a, b);
}

ty_val keras_to(ty_graph *g, keras_operand x, ty_dtype dtype)
{
    return x.v == TY_NONE ? x.v : ty_b_cast(g, x.v, dtype);
}

ty_dtype keras_op_dtype(keras_call *c, const char *key, ty_dtype absent)
{
    ty_dtype dtype = absent;
    const char *text = keras_text(c, key, NULL);
    if (text && !ty_dtype_parse(text, &dtype))
        keras_fail_key(c, key, "is no type that is known here");
    return dtype;
}

/* ---- constants
 * -------------------------------------------------------------------------------------------------------
 */

typedef struct number_list {
    ty_type type;
    double *v;
    int64_t n, room;
    bool has_float, has_int, good;
} number_list;

static int64_t list_count(const keras_arg *a)
{
    int64_t n = 0;
    for (int i = 0; i < a->n_items && a->kind == KERAS_LIST; i++)
        n += list_count(&a->item[i]);
    return a->kind == KERAS_LIST ? n : 1;
}

static void list_fill(const keras_arg *a, number_list *l, int depth)
{
    if (a->kind == KERAS_LIST) {
        bool first = depth == l->type.rank;
        l->good &= depth < TY_MAX_RANK && (first ? l->n == 0 : l->type.dim[depth] == a->n_items);
        if (!l->good)
            return;
        if (first)
            l->type.dim[l->type.rank++] = a->n_items;
        for (int i = 0; i < a->n_items && l->good; i++)
            list_fill(&a->item[i], l, depth + 1);
        return;
    }
    l->good &= depth == l->type.rank && l->n < l->room &&
               (a->kind == KERAS_INT || a->kind == KERAS_FLOAT || a->kind == KERAS_BOOL);
    if (!l->good)
        return;
    l->has_float |= a->kind == KERAS_FLOAT;
    l->has_int |= a->kind == KERAS_INT;
    l->v[l->n++] = a->kind == KERAS_FLOAT ? a->number : a->kind == KERAS_INT ? (double)a->integer : a->flag;
}

static ty_val list_constant(keras_call *c, const keras_arg *a)
{
    number_list l = {.good = true, .room = list_count(a)};
    l.v = keras_alloc(c, (size_t)l.room + 1, sizeof *l.v);
    list_fill(a, &l, 0);
    if (!l.good) {
        keras_fail(c, TY_E_UNSUPPORTED, "expected a tensor, a number or a list of numbers of one shape");
        return TY_NONE;
    }
    l.type.dtype = TY_F64;
    return ty_b_cast(c->g, ty_b_const_copy(c->g, l.type, l.v), l.has_float ? TY_F32 : l.has_int ? TY_I32 : TY_BOOL);
}

keras_operand keras_op_read(keras_call *c, const keras_arg *a)
{
    ty_graph *g = c->g;
    if (!a || a->kind == KERAS_NONE)
        return (keras_operand){TY_NONE, false};
    if (a->kind == KERAS_TENSOR)
        return (keras_operand){a->val, false};
    if (a->kind == KERAS_INT) {
        bool small = a->integer >= INT32_MIN && a->integer <= INT32_MAX;
        return (keras_operand){ty_b_scalar(g, small ? TY_I32 : TY_I64, (double)a->integer), small};
    }
    if (a->kind == KERAS_FLOAT)
        return (keras_operand){ty_b_scalar(g, TY_F32, a->number), true};
    if (a->kind == KERAS_BOOL)
        return (keras_operand){ty_b_scalar(g, TY_BOOL, a->flag), true};
    return (keras_operand){list_constant(c, a), false};
}

/* ---- arguments
 * -------------------------------------------------------------------------------------------------------
 */

static keras_operand operand_at(keras_call *c, int i, const char *name)
{
    keras_operand x = keras_op_read(c, keras_argument(c, i, name));
    if (x.v == TY_NONE && !c->failed && !ty_graph_failed(c->g, NULL))
        keras_fail(c, TY_E_MODEL_FILE, "%s: argument %d (%s) is missing", c->layer->class_name, i + 1, name);
    return x;
}

ty_val keras_op_in(keras_call *c, int i, const char *name)
{
    return operand_at(c, i, name).v;
}

ty_val keras_op_optional(keras_call *c, int i, const char *name)
{
    return keras_op_read(c, keras_argument(c, i, name)).v;
}

ty_val keras_op_float(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    return x == TY_NONE || ty_dtype_is_float(ty_b_dtype(c->g, x)) ? x : ty_b_cast(c->g, x, TY_F32);
}

bool keras_op_pair(keras_call *c, bool floats, ty_val *a, ty_val *b)
{
    ty_graph *g = c->g;
    const char *first = keras_argument(c, -1, "x") ? "x" : "x1", *second = keras_argument(c, -1, "y") ? "y" : "x2";
    keras_operand x = operand_at(c, 0, first), y = operand_at(c, 1, second);
    if (x.v == TY_NONE || y.v == TY_NONE)
        return false;
    ty_dtype dtype = keras_promote(ty_b_dtype(g, x.v), x.is_weak, ty_b_dtype(g, y.v), y.is_weak);
    if (floats && !ty_dtype_is_float(dtype))
        dtype = TY_F32;
    *a = keras_to(g, x, dtype);
    *b = keras_to(g, y, dtype);
    return true;
}

int keras_op_list(keras_call *c, const keras_arg *a, ty_val **out)
{
    int n = a && a->kind == KERAS_LIST ? a->n_items : a ? 1 : 0;
    if (n < 1) {
        keras_fail(c, TY_E_MODEL_FILE, "%s: expected a list of tensors", c->layer->class_name);
        return -1;
    }
    keras_operand *x = keras_alloc(c, (size_t)n, sizeof *x);
    ty_dtype dtype = TY_BOOL;
    bool weak = true;
    *out = keras_alloc(c, (size_t)n, sizeof **out);
    for (int i = 0; i < n; i++) {
        x[i] = keras_op_read(c, a->kind == KERAS_LIST ? &a->item[i] : a);
        if (x[i].v == TY_NONE)
            return -1;
        dtype = i == 0 ? ty_b_dtype(c->g, x[i].v) : keras_promote(dtype, weak, ty_b_dtype(c->g, x[i].v), x[i].is_weak);
        weak = weak && x[i].is_weak;
    }
    for (int i = 0; i < n; i++)
        (*out)[i] = keras_to(c->g, x[i], dtype);
    return n;
}

/* ---- configuration -------------------------------------------------------------------------------------------------
 */

bool keras_op_axes(keras_call *c, const char *key, int rank, uint32_t *axes)
{
    int64_t list[TY_MAX_RANK];
    int n = keras_list(c, key, TY_MAX_RANK, list), axis;
    *axes = n < 0 ? (1u << rank) - 1 : 0;
    for (int i = 0; i < n && !c->failed; i++)
        if (keras_axis(c, list[i], rank, &axis))
            *axes |= 1u << axis;
    return !c->failed;
}

bool keras_op_axis(keras_call *c, const char *key, int64_t absent, int rank, int *axis)
{
    *axis = -1;
    const ty_doc *given = ty_doc_find(c->config, key);
    if (given && given->kind == TY_DOC_NULL)
        return true;
    int64_t at = keras_int(c, key, absent);
    return !c->failed && keras_axis(c, at, rank, axis);
}

ty_val keras_op_index(keras_call *c, ty_val index, int64_t dim)
{
    ty_graph *g = c->g;
    if (index == TY_NONE)
        return index;
    ty_dtype dtype = ty_b_dtype(g, index);
    if (ty_dtype_is_float(dtype)) {
        keras_fail(c, TY_E_UNSUPPORTED, "%s: indices must be integers, found %s", c->layer->class_name,
                   ty_dtype_text(dtype));
        return TY_NONE;
    }
    if (dtype != TY_I32 && dtype != TY_I64)
        index = ty_b_cast(g, index, TY_I64);
    ty_val zero = ty_b_full_like(g, index, 0);
    return ty_b_select(g, ty_b_lt(g, index, zero), ty_b_add_s(g, index, (double)dim), index);
}
