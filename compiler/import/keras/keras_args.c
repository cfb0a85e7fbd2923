/* keras_args.c - arguments of a call, from JSON to values. Source: keras/src/saving/serialization_lib.py. */
#include "compiler/import/keras/keras_walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct args_reader {
    keras_walk *w;
    const struct keras_net *net;
    const keras_item *items;
    bool ready; /* all results that are named are there */
    ty_error *err;
} args_reader;

static int args_read(args_reader *r, const ty_doc *d, keras_arg *out);

/* ---- tensors ------------------------------------------------------------------------------------------------------
 */

static bool args_is_unmasked(const keras_walk *w, ty_val v)
{
    for (int i = 0; i < w->n_unmasked; i++)
        if (w->unmasked[i] == v)
            return true;
    return false;
}

static int args_read_ref(args_reader *r, const keras_ref *ref, keras_arg *out)
{
    int node = keras_find_node(r->net, ref, false);
    if (node < 0)
        return ty_error_set(r->err, TY_E_MODEL_FILE, "reads layer \"%.120s\", which has no such call", ref->layer);
    const keras_item *item = &r->items[node];
    *out = (keras_arg){.kind = KERAS_TENSOR, .val = TY_NONE, .mask = TY_NONE};
    if (!item->is_ready) {
        r->ready = false;
        return 0;
    }
    if (ref->tensor < 0 || ref->tensor >= item->n_out)
        return ty_error_set(r->err, TY_E_MODEL_FILE, "reads output %lld of layer \"%.120s\", which has %d",
                            (long long)ref->tensor, ref->layer, item->n_out);
    out->val = item->out[ref->tensor];
    out->mask = args_is_unmasked(r->w, out->val) ? TY_NONE : item->mask[ref->tensor];
    return 0;
}

/* ---- arrays -------------------------------------------------------------------------------------------------------
 */

typedef struct args_array {
    ty_type type;
    double *number;
    int64_t n, room;
} args_array;

static int args_array_shape(const ty_doc *d, args_array *a, ty_error *err)
{
    int64_t n = 1;
    for (; d && d->kind == TY_DOC_LIST; d = ty_doc_at(d, 0)) {
        if (a->type.rank == TY_MAX_RANK)
            return ty_error_set(err, TY_E_LIMIT, "an array among the arguments has more than %d axes", TY_MAX_RANK);
        a->type.dim[a->type.rank++] = d->n_items;
        n = d->n_items && n > KERAS_MAX_ARRAY / (int64_t)d->n_items ? KERAS_MAX_ARRAY + 1 : n * d->n_items;
    }
    if (n > KERAS_MAX_ARRAY)
        return ty_error_set(err, TY_E_LIMIT, "an array among the arguments has more than %d numbers", KERAS_MAX_ARRAY);
    a->room = n;
    return 0;
}

static int args_array_fill(const ty_doc *d, args_array *a, int axis, ty_error *err)
{
    if (d && axis < a->type.rank) {
        if (d->kind != TY_DOC_LIST || (int64_t)d->n_items != a->type.dim[axis])
            return ty_error_set(err, TY_E_MODEL_FILE, "an array among the arguments has rows of different lengths");
        for (uint32_t i = 0; i < d->n_items; i++)
            if (args_array_fill(ty_doc_at(d, i), a, axis + 1, err) < 0)
                return -1;
        return 0;
    }
    double v = 0;
    if (d && d->kind == TY_DOC_BOOL)
        v = d->boolean;
    else if (!d || ty_doc_float(d, &v, NULL) < 0)
        return ty_error_set(err, TY_E_UNSUPPORTED, "an array among the arguments holds something else than numbers");
    a->number[a->n++] = v;
    return 0;
}

/* {"value": nested lists, "dtype": "int32"} as a constant. */
static int args_read_array(args_reader *r, const ty_doc *config, keras_arg *out)
{
    args_array a = {0};
    const ty_doc *value = ty_doc_find(config, "value");
    const char *text = keras_string(ty_doc_find(config, "dtype"));
    ty_dtype dtype = TY_F32;
    if (text && !ty_dtype_parse(text, &dtype))
        return ty_error_set(r->err, TY_E_UNSUPPORTED, "an array among the arguments is of type %.40s", text);
    if (args_array_shape(value, &a, r->err) < 0)
        return -1;
    a.number = TY_NEW_ARRAY(&r->w->arena, double, a.room + 1);
    if (args_array_fill(value, &a, 0, r->err) < 0)
        return -1;
    ty_type wide = a.type;
    wide.dtype = TY_F64;
    *out = (keras_arg){.kind = KERAS_TENSOR, .mask = TY_NONE};
    out->val = ty_b_cast(r->w->g, ty_b_const_copy(r->w->g, wide, a.number), ty_dtype_is_float(dtype) ? TY_F32 : dtype);
    return 0;
}

/* ---- the rest -----------------------------------------------------------------------------------------------------
 */

static int args_compare(const void *a, const void *b)
{
    return strcmp(((const keras_arg *)a)->key, ((const keras_arg *)b)->key);
}

static int args_read_items(args_reader *r, const ty_doc *d, keras_arg *out)
{
    out->n_items = (int)ty_doc_len(d);
    out->item = TY_NEW_ARRAY(&r->w->arena, keras_arg, out->n_items + 1);
    for (int i = 0; i < out->n_items; i++) {
        if (args_read(r, ty_doc_at(d, (size_t)i), &out->item[i]) < 0)
            return -1;
        out->item[i].key = ty_doc_at(d, (size_t)i)->key;
    }
    return 0;
}

static int args_read_slice(args_reader *r, const ty_doc *config, keras_arg *out)
{
    static const char *const part[] = {"start", "stop", "step"};
    *out = (keras_arg){.kind = KERAS_SLICE, .n_items = 3, .item = TY_NEW_ARRAY(&r->w->arena, keras_arg, 3)};
    for (int i = 0; i < 3; i++)
        if (ty_doc_find(config, part[i]) && args_read(r, ty_doc_find(config, part[i]), &out->item[i]) < 0)
            return -1;
    return 0;
}

/* A map with class_name is an object. */
static int args_read_object(args_reader *r, const ty_doc *d, const char *class_name, keras_arg *out)
{
    const ty_doc *config = ty_doc_find(d, "config");
    if (strcmp(class_name, "__ellipsis__") == 0)
        *out = (keras_arg){.kind = KERAS_ELLIPSIS};
    else if (strcmp(class_name, "__slice__") == 0)
        return args_read_slice(r, config, out);
    else if (strcmp(class_name, "__numpy__") == 0 || strcmp(class_name, "__tensor__") == 0)
        return args_read_array(r, config, out);
    else if (strcmp(class_name, "__lambda__") == 0)
        return ty_error_set(r->err, TY_E_UNSUPPORTED, "an argument holds Python code, which is not run");
    else if (strcmp(class_name, "DTypePolicy") == 0 && keras_string(ty_doc_find(config, "name")))
        *out = (keras_arg){.kind = KERAS_TEXT, .text = keras_string(ty_doc_find(config, "name"))};
    else
        return args_read_items(r, d, out);
    return 0;
}

static int args_read(args_reader *r, const ty_doc *d, keras_arg *out)
{
    keras_ref ref;
    const char *class_name = keras_string(ty_doc_find(d, "class_name"));
    *out = (keras_arg){.kind = KERAS_NONE, .val = TY_NONE, .mask = TY_NONE};
    if (keras_read_ref(d, &ref) ||
        (r->net->is_keras2 && keras_read_history(d, &ref) && ty_names_find(&r->net->names, ref.layer) >= 0)) {
        int rc = args_read_ref(r, &ref, out);
        out->doc = d;
        return rc;
    }
    switch (d->kind) {
    case TY_DOC_NULL:
        break;
    case TY_DOC_BOOL:
        *out = (keras_arg){.kind = KERAS_BOOL, .flag = d->boolean};
        break;
    case TY_DOC_INT:
        *out = (keras_arg){.kind = KERAS_INT, .integer = d->integer};
        break;
    case TY_DOC_FLOAT:
        *out = (keras_arg){.kind = KERAS_FLOAT, .number = d->number};
        break;
    case TY_DOC_STRING:
        *out = (keras_arg){.kind = KERAS_TEXT, .text = d->string};
        break;
    default:
        out->kind = d->kind == TY_DOC_LIST ? KERAS_LIST : KERAS_DICT;
        if (class_name ? args_read_object(r, d, class_name, out) < 0 : args_read_items(r, d, out) < 0)
            return -1;
        if (out->kind == KERAS_DICT)
            qsort(out->item, (size_t)out->n_items, sizeof *out->item, args_compare);
    }
    out->doc = d;
    return 0;
}

/* Keras 2: a list of [layer, node, tensor, kwargs], which are the first argument; kwargs of the first count. */
static int args_read_keras2(args_reader *r, const ty_doc *data, keras_arg *args, keras_arg *kwargs)
{
    keras_ref ref;
    bool is_bare = keras_read_history(data, &ref);
    const ty_doc *first = is_bare ? data : ty_doc_at(data, 0), *named = NULL;
    keras_arg *tensors = TY_NEW(&r->w->arena, keras_arg);
    if (is_bare || (ty_doc_len(data) == 1 && keras_read_history(first, &ref))) {
        if (args_read_ref(r, &ref, tensors) < 0)
            return -1;
    } else if (args_read(r, data, tensors) < 0) {
        return -1;
    }
    if (keras_read_history(first, &ref))
        named = ty_doc_at(first, 3);
    args->item = tensors;
    args->n_items = 1;
    return named && named->kind == TY_DOC_MAP ? args_read_items(r, named, kwargs) : 0;
}

bool keras_read_arguments(keras_walk *w, const struct keras_net *net, const keras_item *items, const ty_doc *data,
                          keras_arg *args, keras_arg *kwargs, bool *ready, ty_error *err)
{
    args_reader r = {.w = w, .net = net, .items = items, .ready = true, .err = err};
    *args = (keras_arg){.kind = KERAS_LIST};
    *kwargs = (keras_arg){.kind = KERAS_DICT};
    int rc = 0;
    const ty_doc *positional = ty_doc_find(data, "args"), *named = ty_doc_find(data, "kwargs");
    if (!net->is_keras2 && ((positional && positional->kind != TY_DOC_LIST) || (named && named->kind != TY_DOC_MAP)))
        return ty_error_set(err, TY_E_MODEL_FILE, "expected a list as args and a map as kwargs"), false;
    if (net->is_keras2)
        rc = args_read_keras2(&r, data, args, kwargs);
    else if (positional && (rc = args_read_items(&r, positional, args)) == 0)
        rc = named ? args_read_items(&r, named, kwargs) : 0;
    *ready = r.ready;
    return rc == 0;
}

/* ---- flattening ---------------------------------------------------------------------------------------------------
 */

static void args_flat_add(keras_walk *w, keras_flat *f, ty_val val, ty_val mask)
{
    if (f->n == f->room) {
        int room = f->room ? 2 * f->room : 8;
        ty_val *vals = TY_NEW_ARRAY(&w->arena, ty_val, room), *masks = TY_NEW_ARRAY(&w->arena, ty_val, room);
        if (f->n) {
            memcpy(vals, f->val, sizeof *vals * (size_t)f->n);
            memcpy(masks, f->mask, sizeof *masks * (size_t)f->n);
        }
        f->val = vals, f->mask = masks, f->room = room;
    }
    f->val[f->n] = val;
    f->mask[f->n++] = mask;
}

/* Items of a dict are sorted by key when it is read. */
void keras_flatten(keras_walk *w, const keras_arg *arg, keras_flat *out)
{
    if (arg->kind == KERAS_TENSOR)
        args_flat_add(w, out, arg->val, arg->mask);
    for (int i = 0; i < arg->n_items; i++)
        keras_flatten(w, &arg->item[i], out);
}
