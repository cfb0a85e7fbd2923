/* tf_variables.c - the variables of a file: which nodes they are, where their bytes lie, which are trained.
 *
 * What a checkpoint calls a variable is told by the graph of objects (tf_objects.c), and where that says nothing, by
 * the graph that restores it: RestoreV2 gives tensors by key, and each is assigned to a variable. TF1 has these nodes
 * in its graph, TF2 in a function that the saver names.
 */
#include "compiler/import/tensorflow/tf_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

/* ---- which nodes --------------------------------------------------------------------------------------------------
 */

static int declare_variable(tf_file *f, tf_raw *raw, tf_variable *v, ty_error *err)
{
    if (tf_body_attrs(f, f->body, raw, err) < 0)
        return -1;
    tf_node n = tf_raw_view(raw);
    tf_shape shape = {0};
    ty_dtype dtype = tf_dtype(tf_attr_type(&n, "dtype", 0));
    *v = (tf_variable){.name = raw->node.name, .type = {.dtype = TY_N_DTYPES}};
    if (dtype == TY_N_DTYPES || !tf_attr_shape(&n, &f->arena, "shape", &shape) || shape.rank < 0 ||
        ty_dims_elems_checked(shape.rank, shape.dim, ty_dtype_bytes(dtype)) < 0)
        return 0;
    v->type = ty_type_make(dtype, shape.rank, shape.dim);
    return 0;
}

/* Tables of floats: what a frozen graph has instead of variables; single numbers only where there are no tables.
 * Numbers and small lists of other types are part of the arithmetic. */
static int declare_const(tf_file *f, tf_raw *raw, tf_variable *v, bool scalars, bool *is_weight, ty_error *err)
{
    *is_weight = false;
    if (tf_body_attrs(f, f->body, raw, err) < 0)
        return -1;
    tf_node n = tf_raw_view(raw);
    const tf_attr_value *value = tf_find_attr(&n, "value");
    if (!value || !value->tensor || scalars != (!value->tensor->shape || value->tensor->shape->dims.n == 0))
        return 0;
    ty_dtype dtype = tf_dtype(value->tensor->data_type);
    if (dtype == TY_N_DTYPES || !ty_dtype_is_float(dtype))
        return 0;
    *v = (tf_variable){.name = raw->node.name, .is_const = true};
    if (tf_tensor_value(value->tensor, &f->arena, &v->type, &v->data, err) < 0)
        return ty_error_wrap(err, "node \"%.120s\"", raw->node.name);
    *is_weight = v->data != NULL;
    return 0;
}

static int list_variables(tf_file *f, bool consts, bool scalars, ty_error *err)
{
    int room = 0;
    for (int i = 0; i < f->body->n; i++)
        room += consts ? strcmp(f->body->raw[i].node.op, "Const") == 0 : tf_op_is_variable(f->body->raw[i].node.op);
    f->variable = TY_NEW_ARRAY(&f->arena, tf_variable, room);
    f->entry = TY_NEW_ARRAY(&f->arena, tf_entry *, room);
    f->object = TY_NEW_ARRAY(&f->arena, const tf_saved_variable *, room);
    int *node = TY_NEW_ARRAY(&f->arena, int, room);
    for (int i = 0; i < f->body->n; i++) {
        tf_raw *raw = &f->body->raw[i];
        tf_variable *v = &f->variable[f->n_variables];
        bool found = false;
        if (consts && strcmp(raw->node.op, "Const") == 0) {
            if (declare_const(f, raw, v, scalars, &found, err) < 0)
                return -1;
        } else if (!consts && tf_op_is_variable(raw->node.op)) {
            if (declare_variable(f, raw, v, err) < 0)
                return -1;
            found = true;
        }
        if (found) {
            raw->variable = f->n_variables;
            node[f->n_variables++] = i;
        }
    }
    f->variable_node = node;
    return 0;
}

/* ---- keys of the checkpoint ---------------------------------------------------------------------------------------
 */

/* Through Identity to the node that makes a value. */
static tf_in origin_of(tf_file *f, const tf_body *b, tf_in in)
{
    for (int depth = 0; depth < 8 && in.kind == TF_IN_NODE; depth++) {
        tf_raw *raw = &b->raw[in.at];
        if (strcmp(raw->node.op, "Identity") != 0 || tf_body_inputs(f, b, raw, NULL) < 0 || raw->n_in < 1)
            break;
        in = raw->in[0];
    }
    return in;
}

/* Text `i` of a string constant; NULL: there is none. */
static const char *const_text(tf_file *f, const tf_body *b, tf_in in, int i)
{
    in = origin_of(f, b, in);
    if (in.kind != TF_IN_NODE)
        return NULL;
    tf_raw *raw = &b->raw[in.at];
    if (strcmp(raw->node.op, "Const") != 0 || tf_body_attrs(f, b, raw, NULL) < 0)
        return NULL;
    tf_node n = tf_raw_view(raw);
    const tf_attr_value *v = tf_find_attr(&n, "value");
    const ty_wire_list *texts = v && v->tensor ? &v->tensor->string_val : NULL;
    if (!texts || i < 0 || (size_t)i >= texts->n)
        return NULL;
    const ty_bytes *t = TF_AT(*texts, ty_bytes, i);
    return memchr(t->data, 0, t->n) ? NULL : ty_arena_strndup(&f->arena, (const char *)t->data, t->n);
}

/* A slice of a partitioned variable, "100 20 0,50:-": whole shape, then start and length of each dim. Gives the entry
 * that holds exactly it. */
static tf_entry *find_slice(const tf_file *f, const tf_entry *whole, const char *text)
{
    int64_t start[TY_MAX_RANK] = {0}, length[TY_MAX_RANK] = {0};
    const char *at = strrchr(text, ' ');
    int rank = 0;
    for (at = at ? at + 1 : text; *at && rank < TY_MAX_RANK; rank++) {
        char *end;
        length[rank] = -1;
        if (*at == '-')
            end = (char *)(uintptr_t)at + 1;
        else {
            start[rank] = strtoll(at, &end, 10);
            if (*end != ',')
                return NULL;
            length[rank] = strtoll(end + 1, &end, 10);
        }
        at = *end == ':' ? end + 1 : end;
        if (at == end && *end)
            return NULL;
    }
    return rank == whole->type.rank ? tf_bundle_find_slice(&f->bundle, whole, start, length) : NULL;
}

/* The variable at a node, or -1. */
static int variable_at(const tf_file *f, tf_in in)
{
    return in.kind == TF_IN_NODE ? f->body->raw[in.at].variable : -1;
}

static void bind_key(tf_file *f, int v, const char *key, const char *slice)
{
    tf_entry *e = tf_bundle_find(&f->bundle, key);
    if (e && slice && *slice)
        e = find_slice(f, e, slice);
    if (!e || f->entry[v])
        return;
    f->entry[v] = e;
    f->variable[v].key = key;
}

/* Every assignment in a body whose value RestoreV2 gives. call: the node that calls the body, whose inputs its
 * arguments are; NULL: the file's graph. */
static void bind_restored(tf_file *f, const tf_body *b, const tf_raw *call)
{
    for (int i = 0; i < b->n; i++) {
        tf_raw *raw = &b->raw[i];
        bool assigns = strcmp(raw->node.op, "AssignVariableOp") == 0 || strcmp(raw->node.op, "Assign") == 0;
        if (!assigns || tf_body_inputs(f, b, raw, NULL) < 0 || raw->n_in < 2)
            continue;
        tf_in value = origin_of(f, b, raw->in[1]), target = raw->in[0];
        if (value.kind != TF_IN_NODE || strcmp(b->raw[value.at].node.op, "RestoreV2") != 0)
            continue;
        tf_raw *restore = &b->raw[value.at];
        if (target.kind == TF_IN_ARG)
            target = call && target.at < call->n_in ? call->in[target.at] : (tf_in){TF_IN_CONTROL, 0, 0};
        else if (call)
            continue;
        int v = variable_at(f, target);
        if (v < 0 || tf_body_inputs(f, b, restore, NULL) < 0 || restore->n_in < 3)
            continue;
        const char *key = const_text(f, b, restore->in[1], value.out);
        if (key)
            bind_key(f, v, key, const_text(f, b, restore->in[2], value.out));
    }
}

static int bind_keys(tf_file *f, ty_error *err)
{
    const char *restore = f->meta && f->meta->saver ? f->meta->saver->restore_op : "";
    int at = ty_names_find(&f->body->names, restore);
    if (tf_bind_objects(f, err) < 0)
        return -1;
    bind_restored(f, f->body, NULL);
    if (at >= 0) {
        const tf_function *fn;
        tf_raw *call = &f->body->raw[at];
        int i = tf_called(f, f->body, call, err);
        if (i < -1 || tf_body_inputs(f, f->body, call, err) < 0 || (i >= 0 && tf_load_function(f, i, &fn, err) < 0))
            return -1;
        if (i >= 0)
            bind_restored(f, fn->body, call);
    }
    for (int v = 0; v < f->n_variables; v++)
        if (!f->entry[v])
            bind_key(f, v, f->variable[v].name, NULL);
    return 0;
}

/* ---- bytes --------------------------------------------------------------------------------------------------------
 */

static int read_value(tf_file *f, int i, ty_error *err)
{
    tf_variable *v = &f->variable[i];
    tf_entry *e = f->entry[i];
    if (!e || e->type.dtype == TY_N_DTYPES)
        return 0;
    if (v->type.dtype != TY_N_DTYPES && !ty_type_same(&v->type, &e->type)) {
        char expected[160], found[160];
        if (e->type.dtype != v->type.dtype || ty_type_elems(&e->type) != ty_type_elems(&v->type))
            return ty_error_set(err, TY_E_MODEL_FILE, "variable \"%.120s\": expected %s in the checkpoint, found %s",
                                v->name, ty_type_text(&v->type, expected, sizeof expected),
                                ty_type_text(&e->type, found, sizeof found));
    } else
        v->type = e->type;
    return tf_bundle_value(&f->bundle, e, &f->arena, &v->data, err);
}

/* ---- trained or not ------------------------------------------------------------------------------------------------
 */

/* Where weights go in: for the constants of a frozen graph, which say nothing themselves. */
static const struct {
    const char *op;
    int input;
    bool is_running;
} weight_inputs[] = {
    {"MatMul", 0, false},
    {"MatMul", 1, false},
    {"BatchMatMul", 1, false},
    {"BatchMatMulV2", 1, false},
    {"BatchMatMulV3", 1, false},
    {"Einsum", 1, false},
    {"Conv2D", 1, false},
    {"Conv3D", 1, false},
    {"DepthwiseConv2dNative", 1, false},
    {"Conv2DBackpropInput", 1, false},
    {"Conv3DBackpropInputV2", 1, false},
    {"BiasAdd", 1, false},
    {"Add", 0, false},
    {"Add", 1, false},
    {"AddV2", 0, false},
    {"AddV2", 1, false},
    {"Mul", 0, false},
    {"Mul", 1, false},
    {"GatherV2", 0, false},
    {"Gather", 0, false},
    {"FusedBatchNorm", 1, false},
    {"FusedBatchNorm", 2, false},
    {"FusedBatchNormV2", 1, false},
    {"FusedBatchNormV2", 2, false},
    {"FusedBatchNormV3", 1, false},
    {"FusedBatchNormV3", 2, false},
    {"FusedBatchNorm", 3, true},
    {"FusedBatchNorm", 4, true},
    {"FusedBatchNormV2", 3, true},
    {"FusedBatchNormV2", 4, true},
    {"FusedBatchNormV3", 3, true},
    {"FusedBatchNormV3", 4, true},
};

/* A table of one number is a factor of the arithmetic. */
static bool is_single_factor(const tf_variable *v)
{
    return v->type.rank > 0 && ty_type_elems(&v->type) == 1;
}

static void mark_uses(tf_file *f)
{
    for (int i = 0; i < f->body->n; i++) {
        tf_raw *raw = &f->body->raw[i];
        for (size_t k = 0; k < sizeof weight_inputs / sizeof *weight_inputs; k++) {
            if (strcmp(weight_inputs[k].op, raw->node.op) != 0 || tf_body_inputs(f, f->body, raw, NULL) < 0 ||
                raw->n_in <= weight_inputs[k].input)
                continue;
            int v = variable_at(f, origin_of(f, f->body, raw->in[weight_inputs[k].input]));
            if (v < 0 || !f->variable[v].is_const || is_single_factor(&f->variable[v]))
                continue;
            f->variable[v].is_running |= weight_inputs[k].is_running;
            f->variable[v].trainable |= !weight_inputs[k].is_running;
        }
    }
}

/* ---- all of it ----------------------------------------------------------------------------------------------------
 */

static void mark_running(tf_file *f)
{
    static const char *const ends[] = {"moving_mean", "moving_variance", "moving_mean_1", "moving_variance_1"};
    for (int i = 0; i < f->n_variables; i++) {
        tf_variable *v = &f->variable[i];
        for (size_t k = 0; k < sizeof ends / sizeof *ends && !v->is_const; k++)
            v->is_running |= !v->trainable && ends_with(v->name, ends[k]);
        v->trainable &= v->type.dtype != TY_N_DTYPES && ty_dtype_is_float((ty_dtype)v->type.dtype) && !v->is_running;
    }
}

int tf_read_variables(tf_file *f, ty_error *err)
{
    bool has_any = false;
    for (int i = 0; i < f->body->n && !has_any; i++)
        has_any = tf_op_is_variable(f->body->raw[i].node.op);
    if (list_variables(f, !has_any, false, err) < 0 ||
        (f->n_variables == 0 && list_variables(f, !has_any, true, err) < 0))
        return -1;
    if (!has_any)
        mark_uses(f);
    else if (f->has_bundle) {
        if (bind_keys(f, err) < 0)
            return -1;
        for (int i = 0; i < f->n_variables; i++)
            if (read_value(f, i, err) < 0)
                return -1;
    }
    if (has_any && tf_mark_trainable(f, err) < 0)
        return -1;
    mark_running(f);
    return 0;
}

int tf_n_variables(const tf_file *f)
{
    return f->n_variables;
}

const tf_variable *tf_variable_at(const tf_file *f, int i)
{
    return &f->variable[i];
}
