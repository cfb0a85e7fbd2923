/* onnx_check.c - every node of a model whose operator we have not, without knowing any shape. */
#include "compiler/import/onnx_import.h"

#include <stdio.h>

typedef struct checker {
    onnx_importer imp;
    ty_error *faults;
    int max, n;
} checker;

static void check_nodes(checker *k, const onnx_scope *scope, const ty_wire_list *nodes, int depth);

static void check_node(checker *k, const onnx_scope *scope, const onnx_node *node, int64_t index, int depth)
{
    onnx_ctx c = {.imp = &k->imp, .node = node, .scope = scope, .index = index, .bad_input = -1};
    c.opset = onnx_opset_of(scope->opsets, node->domain);
    c.row = onnx_find_row(&k->imp, node);
    if (!c.row && onnx_find_function(k->imp.m, node))
        return;
    onnx_check_supported(&c);
    if (c.failed && k->n++ < k->max) {
        k->faults[k->n - 1] = c.err;
        onnx_fault_describe(&c, &k->faults[k->n - 1]);
    }
    for (size_t i = 0; i < node->attrs.n && depth < TY_WIRE_MAX_DEPTH; i++) {
        const onnx_graph *graph = ONNX_AT(node->attrs, onnx_attr, i)->g;
        if (!graph)
            continue;
        onnx_scope inner = *scope;
        char name[128];
        inner.where = ty_arena_printf(&k->imp.arena, "%.60s, node #%lld, subgraph \"%s\"", scope->where,
                                      (long long)index, onnx_short(graph->name, name));
        check_nodes(k, &inner, &graph->nodes, depth + 1);
    }
}

static void check_nodes(checker *k, const onnx_scope *scope, const ty_wire_list *nodes, int depth)
{
    for (size_t i = 0; i < nodes->n; i++)
        check_node(k, scope, ONNX_AT(*nodes, onnx_node, i), (int64_t)i, depth);
}

int ty_onnx_check(const ty_onnx *m, ty_error *faults, int max)
{
    checker k = {.imp = {.m = m}, .faults = faults, .max = max};
    ty_arena_init(&k.imp.arena);
    onnx_index_rows(&k.imp);
    char name[128];
    onnx_scope scope = {.opsets = &m->tree.opsets};
    scope.where = ty_arena_printf(&k.imp.arena, "graph \"%s\"", onnx_short(m->tree.graph->name, name));
    check_nodes(&k, &scope, &m->tree.graph->nodes, 0);
    for (size_t i = 0; i < m->tree.functions.n; i++) {
        const onnx_function *f = ONNX_AT(m->tree.functions, onnx_function, i);
        onnx_scope body = {.opsets = f->opsets.n ? &f->opsets : &m->tree.opsets};
        body.where = ty_arena_printf(&k.imp.arena, "function \"%s\"", onnx_short(f->name, name));
        check_nodes(&k, &body, &f->nodes, 0);
    }
    ty_arena_fini(&k.imp.arena);
    return k.n;
}
