/* cmodel_onnx.c - ty_onnx: any operator of onnx_ops.def, with attributes written as a YAML map. */
#include "base/yaml.h"
#include "compiler/import/cmodel_net.h"
#include "compiler/import/onnx_call.h"

#include <stdio.h>
#include <string.h>

/* Beside the small numbers of cmodel_random. */
#define ONNX_FIRST_STREAM ((int64_t)1 << 24)
#define ONNX_STREAMS      8 /* that a call may draw from */

/* ---- attributes: kinds are told by how a value is written; a whole number serves for a float, too ---------------- */

static ty_bytes attr_bytes(const ty_doc *d)
{
    return (ty_bytes){(const uint8_t *)d->string, strlen(d->string)};
}

static float attr_float(const ty_doc *d)
{
    return d->kind == TY_DOC_INT ? (float)d->integer : (float)d->number;
}

static bool attr_list_is(const ty_doc *list, ty_doc_kind kind, ty_doc_kind also)
{
    for (size_t i = 0; i < list->n_items; i++)
        if (list->items[i].kind != kind && list->items[i].kind != also)
            return false;
    return true;
}

static bool attr_from_list(cmodel_net *net, const ty_doc *d, onnx_attr *a)
{
    size_t n = d->n_items;
    int64_t *ints = TY_NEW_ARRAY(net->arena, int64_t, n + 1);
    float *floats = TY_NEW_ARRAY(net->arena, float, n + 1);
    ty_bytes *strings = TY_NEW_ARRAY(net->arena, ty_bytes, n + 1);
    if (attr_list_is(d, TY_DOC_STRING, TY_DOC_STRING)) {
        for (size_t i = 0; i < n; i++)
            strings[i] = attr_bytes(&d->items[i]);
        a->strings = (ty_wire_list){strings, n};
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        floats[i] = attr_float(&d->items[i]);
        ints[i] = d->items[i].kind == TY_DOC_INT ? d->items[i].integer : 0;
    }
    a->floats = (ty_wire_list){floats, n};
    if (attr_list_is(d, TY_DOC_INT, TY_DOC_INT))
        a->ints = (ty_wire_list){ints, n};
    else
        a->type = ONNX_ATTR_FLOATS;
    return attr_list_is(d, TY_DOC_INT, TY_DOC_FLOAT);
}

static bool attr_from(cmodel_net *net, const ty_doc *d, onnx_attr *a)
{
    *a = (onnx_attr){.name = d->key, .ref = ""};
    switch (d->kind) {
    case TY_DOC_BOOL:
    case TY_DOC_INT:
        a->i = d->kind == TY_DOC_BOOL ? d->boolean : d->integer;
        a->f = (float)a->i;
        a->has_i = a->has_f = true;
        return true;
    case TY_DOC_FLOAT:
        a->f = (float)d->number;
        a->has_f = true;
        a->type = ONNX_ATTR_FLOAT;
        return true;
    case TY_DOC_STRING:
        a->s = attr_bytes(d);
        a->has_s = true;
        a->type = ONNX_ATTR_STRING;
        return true;
    case TY_DOC_LIST:
        return attr_from_list(net, d, a);
    default:
        return false;
    }
}

static bool onnx_attributes(cmodel_net *net, const char *op, const char *text, ty_wire_list *out)
{
    ty_error err = {0};
    ty_doc *map;
    const char *braced = ty_arena_printf(net->arena, "{%s}", text ? text : "");
    if (ty_yaml_parse(net->arena, "attributes", braced, strlen(braced), NULL, NULL, NULL, &map, &err) < 0) {
        cmodel_fail(net, TY_E_ATTRIBUTE, "%s: attributes \"%.120s\": %.300s", op, text, err.message);
        return false;
    }
    onnx_attr *attr = TY_NEW_ARRAY(net->arena, onnx_attr, map->n_items + 1);
    for (size_t i = 0; i < map->n_items; i++)
        if (!attr_from(net, &map->items[i], &attr[i])) {
            cmodel_fail(net, TY_E_ATTRIBUTE, "%s: attribute \"%.60s\" must be a number, a text, or a list of either",
                        op, map->items[i].key);
            return false;
        }
    *out = (ty_wire_list){attr, map->n_items};
    return true;
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

/* "com.microsoft.Gelu" is Gelu of com.microsoft. */
static void onnx_split_name(cmodel_net *net, const char *name, onnx_call *call)
{
    const char *dot = strrchr(name, '.');
    call->domain = dot ? ty_arena_strndup(net->arena, name, (size_t)(dot - name)) : "";
    call->op_type = dot ? dot + 1 : name;
}

static void onnx_hand_over(const struct ty_onnx_call_ *request, const ty_val *out)
{
    for (int64_t i = 0; request->out && i < request->n_out; i++)
        request->out[i] = (ty_var){out[i] == TY_NONE ? 0 : out[i] + 1};
}

static bool onnx_request(cmodel_net *net, const cmodel_call *c, onnx_call *call)
{
    const struct ty_onnx_call_ *request = c->args->options;
    const char *name = c->args->name ? c->args->name : "";
    if (request->n_out < 1 || request->n_out > ONNX_CALL_MAX_RESULTS || request->in.n < 0 ||
        request->in.n > CMODEL_MAX_VALUES) {
        cmodel_fail(net, TY_E_GRAPH, "%.60s: expected 1 to %d results, asked for %lld", name, ONNX_CALL_MAX_RESULTS,
                    (long long)request->n_out);
        return false;
    }
    ty_val *in = TY_NEW_ARRAY(net->arena, ty_val, request->in.n + 1);
    for (int64_t i = 0; i < request->in.n; i++)
        in[i] = cmodel_optional(net, request->in.var[i]);
    *call = (onnx_call){.in = in, .n_in = (int)request->in.n, .n_out = (int)request->n_out};
    onnx_split_name(net, name, call);
    call->where = ty_arena_printf(net->arena, "%s:%d", net->face.file ? net->face.file : "model.c", net->face.line);
    call->seed = net->seed;
    call->step = net->step;
    call->stream = ONNX_FIRST_STREAM + ONNX_STREAMS * net->n_random;
    return !net->failed && onnx_attributes(net, call->op_type, c->args->text, &call->attrs);
}

static ty_val onnx_build(cmodel_net *net, const cmodel_call *c)
{
    onnx_call call;
    ty_error err = {0};
    ty_val out[ONNX_CALL_MAX_RESULTS];
    if (!onnx_request(net, c, &call))
        return TY_NONE;
    net->n_random++;
    if (onnx_call_emit(&call, net->g, out, &err) < 0) {
        cmodel_fail(net, err.code, "%s", err.message);
        if (err.detail[0])
            ty_error_detail(&net->error, "%s", err.detail);
        if (err.help[0])
            ty_error_help(&net->error, "%s", err.help);
        return TY_NONE;
    }
    onnx_hand_over(c->args->options, out);
    return out[0];
}

const cmodel_row cmodel_onnx[] = {
    {"onnx", 0, 0, onnx_build, 0},
    {NULL, 0, 0, NULL, 0},
};
