/* onnx_call.c - see onnx_call.h. The operator's function meets a model of one node. */
#include "compiler/import/onnx_call.h"

#include "base/suggest.h"

#include <string.h>

static const onnx_opset call_opsets[] = {{"", ONNX_CALL_OPSET}, {"com.microsoft", 1}, {"ai.onnx.preview.training", 1}};

static const char *call_name(onnx_importer *imp, char kind, int i)
{
    return ty_arena_printf(&imp->arena, "%c%d", kind, i);
}

static void call_node(onnx_importer *imp, const onnx_call *call, onnx_node *node)
{
    const char **in = TY_NEW_ARRAY(&imp->arena, const char *, call->n_in + 1);
    const char **out = TY_NEW_ARRAY(&imp->arena, const char *, call->n_out + 1);
    for (int i = 0; i < call->n_in; i++)
        in[i] = call->in[i] == TY_NONE ? "" : call_name(imp, 'i', i);
    for (int i = 0; i < call->n_out; i++)
        out[i] = call_name(imp, 'o', i);
    *node = (onnx_node){.inputs = {in, (size_t)call->n_in},
                        .outputs = {out, (size_t)call->n_out},
                        .name = call->where,
                        .op_type = call->op_type,
                        .domain = call->domain,
                        .overload = "",
                        .attrs = call->attrs};
}

static void call_inputs(onnx_importer *imp, onnx_scope *scope, const onnx_call *call)
{
    for (int i = 0; i < call->n_in; i++) {
        onnx_item item = {.name = call_name(imp, 'i', i), .val = call->in[i], .initializer = -1, .producer = -1};
        item.origin = "variable";
        if (call->in[i] != TY_NONE)
            onnx_define(imp, scope, &item);
    }
}

static int call_results(onnx_importer *imp, const onnx_scope *scope, const onnx_call *call, ty_val *out, ty_error *err)
{
    for (int i = 0; i < call->n_out; i++) {
        const onnx_item *item = onnx_lookup(imp, scope, call_name(imp, 'o', i));
        out[i] = item && item->kind == ONNX_TENSOR ? item->val : TY_NONE;
        if (item && item->kind == ONNX_SEQUENCE)
            return ty_error_set(err, TY_E_UNSUPPORTED, "%s: result %d is a sequence, which is no tensor", call->op_type,
                                i);
    }
    return 0;
}

/* What no one asks for would be passed over in silence, as a misspelt name. */
static int call_check_attrs(const onnx_importer *imp, const onnx_call *call, ty_error *err)
{
    for (size_t i = 0; i < call->attrs.n; i++) {
        const char *name = ONNX_AT(call->attrs, onnx_attr, i)->name;
        ty_suggestion nearest = {.word = name};
        if (ty_names_find(imp->asked, name) >= 0)
            continue;
        for (int k = 0; k < imp->n_asked; k++)
            ty_suggest_offer(&nearest, imp->asked_name[k]);
        ty_error_set(err, TY_E_ATTRIBUTE, "%s: there is no attribute \"%.60s\" here", call->op_type, name);
        return nearest.best ? ty_error_help(err, "did you mean \"%s\"?", nearest.best) : -1;
    }
    return 0;
}

static int call_import(onnx_importer *imp, const onnx_call *call, ty_val *out, ty_error *err)
{
    const ty_wire_list opsets = {call_opsets, sizeof call_opsets / sizeof call_opsets[0]};
    onnx_scope scope;
    onnx_node node;
    onnx_scope_init(imp, &scope, NULL);
    scope.opsets = &opsets;
    scope.where = "";
    call_node(imp, call, &node);
    call_inputs(imp, &scope, call);
    onnx_import_nodes(imp, &scope, &(ty_wire_list){&node, 1});
    if (imp->values->n_faults > 0) {
        *err = imp->values->faults[0];
        return -1;
    }
    return call_check_attrs(imp, call, err) < 0 ? -1 : call_results(imp, &scope, call, out, err);
}

int onnx_call_emit(const onnx_call *call, ty_graph *g, ty_val *out, ty_error *err)
{
    static const onnx_graph no_graph = {.name = "model"};
    ty_onnx_values values = {0};
    ty_onnx_binding binding = {.seed = call->seed, .step = call->step, .stream = call->stream};
    ty_onnx m = {.name = "", .tree = {.graph = (onnx_graph *)(uintptr_t)&no_graph}};
    ty_names asked;
    onnx_importer imp = {.m = &m, .g = g, .binding = &binding, .values = &values, .asked = &asked};
    ty_arena_init(&imp.arena);
    ty_names_init(&asked, &imp.arena);
    imp.start_bytes = ty_graph_arena(g)->used_bytes;
    onnx_index_rows(&imp);
    int rc = call_import(&imp, call, out, err);
    err->place[0] = 0;
    ty_arena_fini(&imp.arena);
    return rc;
}
