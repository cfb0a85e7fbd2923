/* onnx_import.c - walks the nodes of a model and hands each to the function of its operator.
 *
 * Names are resolved in scopes: the graph, the bodies of model-local functions (inlined) and of subgraphs whose
 * condition or trip count is known. A scope's values are items: tensors, or sequences that exist only while importing.
 */
#include "compiler/import/onnx_import.h"

#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 24, MAX_NODES = 1 << 20 };
/* Constants that the file computes from constants; a file of a few bytes could ask for any number of them. */
enum { MAX_COMPUTED_BYTES = 1 << 30 };

/* ---- the operator table -------------------------------------------------------------------------------------------
 */

#define ONNX_OP(domain, type, since, min_in, max_in, fn, arg) void onnx_op_##fn(onnx_ctx *c);
#define ONNX_SEQ_OP                                           ONNX_OP
#include "compiler/import/onnx_ops.def"
#undef ONNX_OP
#undef ONNX_SEQ_OP

static const onnx_op_row op_rows[] = {
#define ONNX_OP(domain, type, since, min_in, max_in, fn, arg) \
    {domain, #type, since, min_in, max_in, onnx_op_##fn, arg, false},
#define ONNX_SEQ_OP(domain, type, since, min_in, max_in, fn, arg) \
    {domain, #type, since, min_in, max_in, onnx_op_##fn, arg, true},
#include "compiler/import/onnx_ops.def"
#undef ONNX_OP
#undef ONNX_SEQ_OP
};
enum { N_OP_ROWS = sizeof op_rows / sizeof op_rows[0] };

const onnx_op_row *onnx_op_rows(int *n)
{
    *n = N_OP_ROWS;
    return op_rows;
}

static const char *op_key(const char *domain, const char *op_type, char *out, size_t n)
{
    snprintf(out, n, "%.60s:%.60s", strcmp(domain, "ai.onnx") == 0 ? "" : domain, op_type);
    return out;
}

void onnx_index_rows(onnx_importer *imp)
{
    char key[128];
    ty_names_init(&imp->op_rows, &imp->arena);
    for (int i = 0; i < N_OP_ROWS; i++)
        ty_names_put(&imp->op_rows,
                     ty_arena_strdup(&imp->arena, op_key(op_rows[i].domain, op_rows[i].op_type, key, sizeof key)), i);
}

/* ---- items and scopes ---------------------------------------------------------------------------------------------
 */

void onnx_scope_init(onnx_importer *imp, onnx_scope *scope, onnx_scope *parent)
{
    *scope = (onnx_scope){.parent = parent};
    if (parent) {
        scope->opsets = parent->opsets;
        scope->where = parent->where;
    }
    ty_names_init(&scope->names, &imp->arena);
}

int onnx_define(onnx_importer *imp, onnx_scope *scope, const onnx_item *item)
{
    if (imp->n_items == imp->items_room) {
        int room = imp->items_room ? 2 * imp->items_room : 256;
        onnx_item *items = TY_NEW_ARRAY(&imp->arena, onnx_item, room);
        if (imp->n_items)
            memcpy(items, imp->items, sizeof *items * (size_t)imp->n_items);
        imp->items = items;
        imp->items_room = room;
    }
    imp->items[imp->n_items] = *item;
    ty_names_put(&scope->names, item->name, imp->n_items);
    return imp->n_items++;
}

const onnx_item *onnx_lookup(const onnx_importer *imp, const onnx_scope *scope, const char *name)
{
    for (; scope; scope = scope->parent) {
        int at = ty_names_find(&scope->names, name);
        if (at >= 0)
            return &imp->items[at];
    }
    return NULL;
}

/* ---- one node -----------------------------------------------------------------------------------------------------
 */

const onnx_op_row *onnx_find_row(const onnx_importer *imp, const onnx_node *node)
{
    char key[128];
    if (node->overload[0]) /* of one of the file's own functions; standard operators have none */
        return NULL;
    int at = ty_names_find(&imp->op_rows, op_key(node->domain, node->op_type, key, sizeof key));
    return at < 0 ? NULL : &op_rows[at];
}

const onnx_function *onnx_find_function(const ty_onnx *m, const onnx_node *node)
{
    const ty_wire_list *list = &m->tree.functions;
    for (size_t i = 0; i < list->n; i++) {
        const onnx_function *f = ONNX_AT(*list, onnx_function, i);
        if (strcmp(f->name, node->op_type) == 0 && onnx_domain_same(f->domain, node->domain) &&
            strcmp(f->overload, node->overload) == 0)
            return f;
    }
    return NULL;
}

/* Looks the inputs up. False: one of them is faulty, so that this node is passed over. */
static bool bind_inputs(onnx_ctx *c)
{
    bool sound = true;
    size_t n = c->node->inputs.n;
    c->in = onnx_alloc(c, n + 1, sizeof *c->in);
    for (size_t i = 0; i < n; i++) {
        const char *name = ONNX_TEXT(c->node->inputs, i);
        if (!name[0])
            continue;
        c->in[i] = onnx_lookup(c->imp, c->scope, name);
        if (c->in[i] && c->in[i]->kind == ONNX_ABSENT) {
            c->in[i] = NULL;
            continue;
        }
        c->n_in = (int)i + 1;
        if (!c->in[i])
            onnx_fail_input(c, (int)i, TY_E_MODEL_FILE, "is produced by no node before this one");
        else if (c->in[i]->kind == ONNX_FAULTY)
            sound = false;
        else if (c->in[i]->kind == ONNX_UNSET && !(c->row && c->row->takes_sequences))
            onnx_fail_input(c, (int)i, TY_E_UNSUPPORTED, "is not computed%s%s", c->in[i]->unset_reason ? ": " : "",
                            c->in[i]->unset_reason ? c->in[i]->unset_reason : "");
    }
    return sound;
}

static void check_inputs(onnx_ctx *c)
{
    const onnx_op_row *row = c->row;
    for (int i = 0; i < row->min_in; i++)
        if (!onnx_has(c, i)) {
            onnx_fail(c, TY_E_MODEL_FILE, "%s: needs at least %d inputs, input %d is missing", row->op_type,
                      row->min_in, i);
            return;
        }
    if (row->max_in >= 0 && c->n_in > row->max_in)
        onnx_fail(c, TY_E_MODEL_FILE, "%s: takes at most %d inputs, found %d", row->op_type, row->max_in, c->n_in);
    for (int i = 0; i < c->n_in && !row->takes_sequences; i++)
        if (c->in[i] && c->in[i]->kind == ONNX_SEQUENCE)
            onnx_fail_input(c, i, TY_E_UNSUPPORTED, "is a sequence; a tensor is needed");
}

/* Where the last part of a path begins. */
static size_t scopes_last(const char *path, size_t len)
{
    while (len > 0 && path[len - 1] != '/')
        len--;
    return len;
}

/* The module path that PyTorch's dynamo exporter leaves in the metadata: "['', 'layers.0', 'attn']" to "layers.0/attn".
 * A part that the next one repeats goes: "['blocks', 'blocks.0', 'blocks.0.up']" is "blocks.0.up". */
static void scopes_path(const char *list, char *out, size_t n)
{
    size_t len = 0;
    for (const char *p = strchr(list, '\''); p; p = strchr(p, '\'')) {
        const char *end = strchr(++p, '\'');
        if (!end)
            break;
        size_t part = (size_t)(end - p), last = scopes_last(out, len);
        bool repeats =
            len > last && part > len - last && memcmp(p, out + last, len - last) == 0 && p[len - last] == '.';
        len = repeats ? last : len;
        if (part > 0 && len + part + 2 < n) {
            if (len && !repeats)
                out[len++] = '/';
            memcpy(out + len, p, part);
            len += part;
        }
        p = end + 1;
    }
    out[len] = 0;
}

const char *onnx_module_path(const onnx_node *node, char *out, size_t n)
{
    out[0] = 0;
    for (size_t i = 0; i < node->metadata.n; i++) {
        const onnx_pair *pair = ONNX_AT(node->metadata, onnx_pair, i);
        if (strcmp(pair->key, "pkg.torch.onnx.name_scopes") == 0)
            scopes_path(pair->value, out, n);
    }
    return out;
}

static void set_origin(const onnx_ctx *c)
{
    char path[256], origin[400];
    if (!onnx_module_path(c->node, path, sizeof path)[0]) {
        char name[128];
        onnx_short(c->node->name, name);
        snprintf(path, sizeof path, "%s", name[0] == '/' ? name + 1 : name);
    }
    snprintf(origin, sizeof origin, "%s%s(%.80s #%lld)", path, path[0] ? " " : "", c->node->op_type,
             (long long)c->index);
    ty_graph_origin(c->g, origin);
}

/* Gives the outputs their names; those of a failed node are faulty. */
static void define_outputs(onnx_ctx *c, onnx_scope *scope, bool sound)
{
    for (int i = 0; i < c->n_out; i++) {
        onnx_item *item = &c->out[i];
        item->name = ONNX_TEXT(c->node->outputs, i);
        if (!item->name[0])
            continue;
        item->producer = c->index;
        item->origin = c->node->op_type;
        if (!sound || (item->kind == ONNX_TENSOR && item->val == TY_NONE))
            item->kind = ONNX_FAULTY;
        onnx_define(c->imp, scope, item);
    }
}

static void check_outputs_new(onnx_ctx *c, const onnx_scope *scope)
{
    for (int i = 0; i < c->n_out; i++) {
        const char *name = ONNX_TEXT(c->node->outputs, i);
        char cut[128];
        if (name[0] && ty_names_find(&scope->names, name) >= 0)
            onnx_fail(c, TY_E_MODEL_FILE, "%s: output \"%s\" has a producer already", c->node->op_type,
                      onnx_short(name, cut));
    }
}

static void inline_function(onnx_ctx *c, onnx_scope *outer, const onnx_function *f);

static void fail_overload(onnx_ctx *c)
{
    char name[128], overload[128];
    onnx_fail(c, TY_E_MODEL_FILE, "the model has no function %s with overload \"%s\"",
              onnx_short(c->node->op_type, name), onnx_short(c->node->overload, overload));
}

void onnx_check_supported(onnx_ctx *c)
{
    const onnx_node *node = c->node;
    char name[128];
    if (c->opset < 0)
        onnx_fail(c, TY_E_MODEL_FILE, "the model imports no operator set \"%s\"", onnx_short(node->domain, name));
    else if (!c->row && node->overload[0])
        fail_overload(c);
    else if (!c->row)
        onnx_fail(c, TY_E_UNSUPPORTED, "unsupported operator %s", onnx_short(node->op_type, name)), onnx_suggest(c);
    else if (c->opset < c->row->since)
        onnx_fail(c, TY_E_UNSUPPORTED, "operator %s has no meaning in opset %lld; it came with opset %d",
                  c->row->op_type, (long long)c->opset, c->row->since);
}

/* A function that set an output to nothing must have said why. */
static void check_outputs_set(onnx_ctx *c)
{
    for (int i = 0; i < c->n_out; i++)
        if (onnx_wants(c, i) && c->out[i].kind == ONNX_TENSOR && c->out[i].val == TY_NONE)
            onnx_fail(c, TY_E_UNSUPPORTED, "%s: output %d cannot be computed from these inputs", c->node->op_type, i);
}

static void emit_node(onnx_ctx *c, onnx_scope *scope)
{
    const onnx_function *f = c->row ? NULL : onnx_find_function(c->imp->m, c->node);
    int n_faults = c->imp->values->n_faults_all;
    if (!f)
        onnx_check_supported(c);
    bool sound = bind_inputs(c);
    check_outputs_new(c, scope);
    if (!c->failed && sound && f)
        inline_function(c, scope, f);
    else if (!c->failed && sound) {
        check_inputs(c);
        set_origin(c);
        if (!c->failed)
            c->row->fn(c);
    }
    ty_error graph_err;
    if (ty_graph_failed(c->g, &graph_err)) {
        if (!c->failed) {
            c->err = graph_err;
            c->err.place[0] = 0; /* ours says more */
            ty_error_wrap(&c->err, "%s", c->node->op_type);
        }
        c->failed = true;
        ty_graph_clear_error(c->g);
    }
    if (!c->failed && sound && c->imp->values->n_faults_all == n_faults)
        check_outputs_set(c);
    if (c->failed && !c->quiet)
        onnx_fault_store(c->imp, c);
    define_outputs(c, scope, sound && !c->failed);
}

static void import_node(onnx_importer *imp, onnx_scope *scope, const onnx_node *node, int64_t index)
{
    onnx_ctx c = {.imp = imp, .g = imp->g, .node = node, .scope = scope, .index = index, .bad_input = -1};
    c.opset = onnx_opset_of(scope->opsets, node->domain);
    c.row = onnx_find_row(imp, node);
    c.n_out = (int)node->outputs.n;
    c.out = onnx_alloc(&c, node->outputs.n + 1, sizeof *c.out);
    for (int i = 0; i < c.n_out; i++)
        c.out[i] = (onnx_item){.kind = ONNX_UNSET, .val = TY_NONE, .initializer = -1, .producer = -1};
    emit_node(&c, scope);
    if (imp->values->n_faults_all == 0 && imp->depth == 0)
        imp->n_good++;
}

void onnx_import_nodes(onnx_importer *imp, onnx_scope *scope, const ty_wire_list *nodes)
{
    const bool *skip = nodes == &imp->m->tree.graph->nodes ? imp->m->is_parted : NULL;
    for (size_t i = 0; i < nodes->n; i++) {
        if (skip && skip[i])
            continue;
        if (++imp->serial > MAX_NODES) {
            if (imp->serial == MAX_NODES + 1)
                onnx_fault_graph(imp, TY_E_LIMIT, "more than %d nodes once loops and functions are unrolled",
                                 MAX_NODES);
            return;
        }
        if (imp->arena.used_bytes + ty_graph_arena(imp->g)->used_bytes - imp->start_bytes > MAX_COMPUTED_BYTES) {
            if (!imp->is_full)
                onnx_fault_graph(imp, TY_E_LIMIT, "constants computed in the graph need more than 1 GiB");
            imp->is_full = true;
            return;
        }
        import_node(imp, scope, ONNX_AT(*nodes, onnx_node, i), (int64_t)i);
    }
}

/* ---- functions and subgraphs --------------------------------------------------------------------------------------
 */

/* A body whose own nodes were refused makes its caller fail too, without a second message. */
static void leave(onnx_ctx *c, int n_faults)
{
    c->imp->depth--;
    if (!c->failed && c->imp->values->n_faults_all > n_faults)
        c->failed = c->quiet = true;
}

static bool enter(onnx_ctx *c)
{
    if (c->imp->depth >= MAX_DEPTH) {
        onnx_fail(c, TY_E_UNSUPPORTED, "functions and subgraphs nest deeper than %d levels", MAX_DEPTH);
        return false;
    }
    c->imp->depth++;
    return true;
}

/* The results of a body; faults inside it were stored already, so outputs that hang on them are just faulty. */
static void take_result(onnx_ctx *c, const onnx_scope *scope, const char *name, onnx_item *out)
{
    const onnx_item *item = onnx_lookup(c->imp, scope, name);
    char cut[128];
    if (!item)
        onnx_fail(c, TY_E_MODEL_FILE, "%s: its body never produces \"%s\"", c->node->op_type, onnx_short(name, cut));
    else
        *out = *item;
}

static void inline_function(onnx_ctx *c, onnx_scope *outer, const onnx_function *f)
{
    if (!enter(c))
        return;
    char name[128];
    onnx_scope *scope = TY_NEW(&c->imp->arena, onnx_scope);
    onnx_scope_init(c->imp, scope, NULL);
    scope->opsets = f->opsets.n ? &f->opsets : outer->opsets;
    scope->call = c->node;
    scope->call_scope = outer;
    scope->function = f;
    scope->where = ty_arena_printf(&c->imp->arena, "%.60s, node #%lld, function \"%s\"", outer->where,
                                   (long long)c->index, onnx_short(f->name, name));
    for (size_t i = 0; i < f->inputs.n; i++) {
        onnx_item item = {.kind = ONNX_ABSENT, .val = TY_NONE, .initializer = -1, .producer = -1};
        if ((int)i < c->n_in && c->in[i])
            item = *c->in[i];
        item.name = ONNX_TEXT(f->inputs, i);
        onnx_define(c->imp, scope, &item);
    }
    int n_faults = c->imp->values->n_faults_all;
    onnx_import_nodes(c->imp, scope, &f->nodes);
    for (int i = 0; i < c->n_out && i < (int)f->outputs.n && c->imp->values->n_faults_all == n_faults; i++)
        take_result(c, scope, ONNX_TEXT(f->outputs, i), &c->out[i]);
    leave(c, n_faults);
}

/* Constants of a subgraph. */
static bool define_constants(onnx_importer *imp, onnx_scope *scope, const onnx_graph *graph, ty_error *err)
{
    for (size_t i = 0; i < graph->initializers.n; i++) {
        const onnx_tensor *t = ONNX_AT(graph->initializers, onnx_tensor, i);
        onnx_item item = {.name = t->name, .initializer = -1, .producer = -1, .origin = "initializer"};
        if (!onnx_tensor_const(imp->m, imp->g, t, &item.val, err))
            return false;
        onnx_define(imp, scope, &item);
    }
    return true;
}

bool onnx_import_subgraph(onnx_ctx *c, const onnx_graph *graph, const onnx_item *in, int n_in, onnx_item *out,
                          int n_out)
{
    if ((int)graph->inputs.n != n_in || (int)graph->outputs.n != n_out) {
        onnx_fail(c, TY_E_MODEL_FILE, "%s: its subgraph has %zu inputs and %zu outputs, expected %d and %d",
                  c->node->op_type, graph->inputs.n, graph->outputs.n, n_in, n_out);
        return false;
    }
    if (!enter(c))
        return false;
    onnx_importer *imp = c->imp;
    char name[128];
    onnx_scope *scope = TY_NEW(&imp->arena, onnx_scope);
    onnx_scope_init(imp, scope, (onnx_scope *)(uintptr_t)c->scope);
    scope->where = ty_arena_printf(&imp->arena, "%.60s, node #%lld, subgraph \"%s\"", c->scope->where,
                                   (long long)c->index, onnx_short(graph->name, name));
    ty_error err = {0};
    if (!define_constants(imp, scope, graph, &err))
        onnx_fail(c, err.code, "%s", err.message);
    for (int i = 0; i < n_in && !c->failed; i++) {
        onnx_item item = in[i];
        item.name = ONNX_AT(graph->inputs, onnx_value_info, i)->name;
        onnx_define(imp, scope, &item);
    }
    int n_faults = imp->values->n_faults_all;
    if (!c->failed)
        onnx_import_nodes(imp, scope, &graph->nodes);
    for (int i = 0; i < n_out && !c->failed && imp->values->n_faults_all == n_faults; i++)
        take_result(c, scope, ONNX_AT(graph->outputs, onnx_value_info, i)->name, &out[i]);
    leave(c, n_faults);
    return !c->failed;
}

/* ---- the model ----------------------------------------------------------------------------------------------------
 */

static void bind_graph_input(onnx_importer *imp, onnx_scope *scope, int i)
{
    const ty_onnx_value *v = &imp->m->inputs[i];
    onnx_item item = {
        .name = v->name, .val = imp->binding->inputs[i], .initializer = -1, .producer = -1, .origin = "graph input"};
    char name[128];
    onnx_short(v->name, name);
    if (ty_names_find(&scope->names, v->name) >= 0)
        onnx_fault_graph(imp, TY_E_MODEL_FILE, "two inputs are called \"%s\"", name);
    const ty_type *type = item.val == TY_NONE ? NULL : ty_graph_type(imp->g, item.val);
    bool fits = type && (v->dtype == TY_N_DTYPES || type->dtype == v->dtype) && (v->rank < 0 || type->rank == v->rank);
    for (int k = 0; fits && k < v->rank; k++)
        fits = v->dim[k] < 0 || v->dim[k] == type->dim[k];
    if (!type) {
        onnx_fault_graph(imp, TY_E_SHAPE, "input \"%s\" is not bound to a value", name);
        item.kind = ONNX_FAULTY;
    } else if (!fits) {
        char found[160], expected[200];
        onnx_value_text(v, expected, sizeof expected);
        onnx_fault_graph(imp, TY_E_SHAPE, "input \"%s\" is %s in the model, bound to %s", name, expected,
                         ty_type_text(type, found, sizeof found));
        item.kind = ONNX_FAULTY;
    }
    onnx_define(imp, scope, &item);
}

static void bind_initializers(onnx_importer *imp, onnx_scope *scope)
{
    for (int i = 0; i < imp->m->n_initializers; i++) {
        const ty_onnx_initializer *init = &imp->m->initializers[i];
        onnx_item item = {
            .name = init->name, .val = TY_NONE, .initializer = i, .producer = -1, .origin = "initializer"};
        if (imp->binding->initializers)
            item.val = imp->binding->initializers[i];
        if (init->type.dtype == TY_N_DTYPES) {
            item.kind = ONNX_UNSET;
            item.unset_reason = "its element type is not supported";
        } else if (item.val == TY_NONE)
            item.val = onnx_model_const(imp->m, imp->g, init->data, init->type, init->data);
        else if (!ty_type_same(ty_graph_type(imp->g, item.val), &init->type)) {
            char a[160], b[160], name[128];
            onnx_fault_graph(imp, TY_E_INTERNAL, "initializer \"%s\" is %s, bound to a value %s",
                             onnx_short(init->name, name), ty_type_text(&init->type, a, sizeof a),
                             ty_type_text(ty_graph_type(imp->g, item.val), b, sizeof b));
            item.kind = ONNX_FAULTY;
        }
        onnx_define(imp, scope, &item);
    }
}

static void take_outputs(onnx_importer *imp, const onnx_scope *scope)
{
    const ty_onnx *m = imp->m;
    imp->values->outputs = TY_NEW_ARRAY(ty_graph_arena(imp->g), ty_val, m->n_outputs);
    for (int i = 0; i < m->n_outputs; i++) {
        char name[128];
        const onnx_item *item = onnx_lookup(imp, scope, m->outputs[i].name);
        imp->values->outputs[i] = TY_NONE;
        if (!item)
            onnx_fault_graph(imp, TY_E_MODEL_FILE, "output \"%s\" is produced by no node",
                             onnx_short(m->outputs[i].name, name));
        else if (item->kind == ONNX_SEQUENCE)
            onnx_fault_graph(imp, TY_E_UNSUPPORTED, "output \"%s\" is a sequence; tensors are possible",
                             onnx_short(m->outputs[i].name, name));
        else if (item->kind == ONNX_UNSET)
            onnx_fault_graph(imp, TY_E_UNSUPPORTED, "output \"%s\" of %s is not computed%s%s",
                             onnx_short(m->outputs[i].name, name), item->origin, item->unset_reason ? ": " : "",
                             item->unset_reason ? item->unset_reason : "");
        else if (item->val == TY_NONE)
            onnx_fault_graph(imp, TY_E_UNSUPPORTED, "output \"%s\" cannot be computed",
                             onnx_short(m->outputs[i].name, name));
        else
            imp->values->outputs[i] = item->val;
    }
}

int ty_onnx_import(const ty_onnx *m, ty_graph *g, const ty_onnx_binding *b, ty_onnx_values *values, ty_error *err)
{
    *values = (ty_onnx_values){0};
    if (ty_graph_failed(g, err))
        return -1;
    onnx_importer imp = {.m = m, .g = g, .binding = b, .values = values};
    ty_arena_init(&imp.arena);
    imp.start_bytes = ty_graph_arena(g)->used_bytes;
    onnx_index_rows(&imp);
    onnx_scope scope;
    onnx_scope_init(&imp, &scope, NULL);
    char name[128];
    scope.opsets = &m->tree.opsets;
    scope.where = ty_arena_printf(&imp.arena, "graph \"%s\"", onnx_short(m->tree.graph->name, name));
    bind_initializers(&imp, &scope);
    for (int i = 0; i < m->n_inputs; i++)
        bind_graph_input(&imp, &scope, i);
    ty_error graph_err;
    if (ty_graph_failed(g, &graph_err)) {
        onnx_fault_graph(&imp, graph_err.code, "%s", graph_err.message);
        ty_graph_clear_error(g);
    }
    if (values->n_faults == 0)
        onnx_import_nodes(&imp, &scope, &m->tree.graph->nodes);
    if (values->n_faults == 0)
        take_outputs(&imp, &scope);
    ty_graph_origin(g, "");
    int rc = onnx_fault_result(&imp, err);
    ty_arena_fini(&imp.arena);
    return rc;
}

void onnx_update(onnx_ctx *c, int initializer, ty_val value)
{
    ty_onnx_values *v = c->imp->values;
    for (int i = 0; i < v->n_updates; i++)
        if (v->updates[i].initializer == initializer) {
            v->updates[i].value = value;
            return;
        }
    if (v->n_updates == c->imp->updates_room) {
        int room = c->imp->updates_room ? 2 * c->imp->updates_room : 16;
        ty_onnx_update *bigger = TY_NEW_ARRAY(ty_graph_arena(c->g), ty_onnx_update, room);
        if (v->n_updates)
            memcpy(bigger, v->updates, sizeof *bigger * (size_t)v->n_updates);
        v->updates = bigger;
        c->imp->updates_room = room;
    }
    v->updates[v->n_updates++] = (ty_onnx_update){initializer, value};
}

ty_val onnx_updated(const onnx_ctx *c, int initializer)
{
    const ty_onnx_values *v = c->imp->values;
    for (int i = 0; i < v->n_updates; i++)
        if (v->updates[i].initializer == initializer)
            return v->updates[i].value;
    return TY_NONE;
}
