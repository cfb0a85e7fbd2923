/* onnx_warn.c - what an export has lost that training needs.
 *
 * A file made for inference can be trained, but not as its source could: batch norm may be folded into the weights in
 * front of it, dropout taken out, weights turned into constants. The file does not say so; each rule below looks for
 * what such an export leaves behind, and says nothing where there is no trace.
 */
#define _GNU_SOURCE /* strcasestr */
#include "compiler/import/onnx_import.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define EXPORT_PYTORCH                                                                               \
    "export with torch.onnx.export(model.train(), args, \"model.onnx\", do_constant_folding=False, " \
    "training=torch.onnx.TrainingMode.TRAINING)"
#define EXPORT_DYNAMO "export with torch.onnx.export(model.eval(), args, \"model.onnx\", dynamo=True, optimize=False)"
/* Metadata of a node: the modules around it, as PyTorch's dynamo exporter writes them. */
#define NAMESPACE_KEY "namespace"

/* The nodes or weights that a rule caught: how many, and the first of them. */
typedef struct catch
{
    int n;
    char first[200];
}
catch;

typedef struct warn_scan {
    const ty_onnx *m;
    ty_names producers; /* of values, to node numbers */
    const char **place; /* by initializer: the module that reads it, up to the last slash, or NULL */
    bool *is_shared;    /* by initializer: several modules read it */
    catch folded, no_ratio, dropped, unlearnt, still, unnamed, merged;
    int n_batch_norms, n_dropouts;
} warn_scan;

static void catch_node(catch *c, const onnx_node *node, size_t index)
{
    char name[128];
    if (c->n++ > 0)
        return;
    const char *show = node->name[0] ? node->name : node->outputs.n ? ONNX_TEXT(node->outputs, 0) : "";
    snprintf(c->first, sizeof c->first, "node #%zu \"%s\" (%.40s)", index, onnx_short(show, name), node->op_type);
}

static void catch_weight(catch *c, const ty_onnx_initializer *w)
{
    char name[128];
    if (c->n++ == 0)
        snprintf(c->first, sizeof c->first, "\"%s\"", onnx_short(w->name, name));
}

static const char *input_name(const onnx_node *node, size_t i)
{
    return i < node->inputs.n ? ONNX_TEXT(node->inputs, i) : "";
}

static const onnx_attr *find_attr(const onnx_node *node, const char *name)
{
    for (size_t i = 0; i < node->attrs.n; i++)
        if (strcmp(ONNX_AT(node->attrs, onnx_attr, i)->name, name) == 0)
            return ONNX_AT(node->attrs, onnx_attr, i);
    return NULL;
}

/* Node that makes a value, or NULL. */
static const onnx_node *producer_of(const warn_scan *s, const char *name)
{
    int i = name[0] ? ty_names_find(&s->producers, name) : -1;
    return i < 0 ? NULL : ONNX_AT(s->m->tree.graph->nodes, onnx_node, i);
}

/* ---- rules --------------------------------------------------------------------------------------------------------
 */

/* PyTorch's tracing exporter names what it has folded "onnx::Conv_123", since it is no parameter any more; others put
 * the batch norm's name into the bias's. */
static bool is_folded(const onnx_node *conv)
{
    const char *weight = input_name(conv, 1), *bias = input_name(conv, 2);
    bool anonymous = strncmp(weight, "onnx::Conv", 10) == 0 && strncmp(bias, "onnx::Conv", 10) == 0;
    bool named = strcasestr(bias, "_bn") || strcasestr(bias, "batchnorm") || strcasestr(bias, "batch_norm") ||
                 strcasestr(bias, "batch_normalization");
    return bias[0] && (anonymous || named);
}

/* A Dropout that drops nothing. Its ratio is an attribute up to opset 11, then an input. */
static bool drops_nothing(const warn_scan *s, const onnx_node *node)
{
    const onnx_attr *ratio = find_attr(node, "ratio");
    if (ratio)
        return ratio->f == 0;
    int i = input_name(node, 1)[0] ? ty_onnx_find_initializer(s->m, input_name(node, 1)) : -1;
    const ty_onnx_initializer *init = i < 0 ? NULL : ty_onnx_initializer_at(s->m, i);
    float f = 1;
    if (init && init->type.dtype == TY_F32 && ty_type_elems(&init->type) == 1)
        memcpy(&f, init->data, sizeof f);
    return f == 0;
}

/* Weights that are made by a node instead of standing among the initializers are constants to the trainer. */
static bool has_constant_weight(const warn_scan *s, const onnx_node *node)
{
    static const char *const ops[] = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
    bool takes_weights = false;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        takes_weights |= onnx_is_op(node, ops[i]);
    const onnx_node *maker = takes_weights ? producer_of(s, input_name(node, 1)) : NULL;
    return maker && (onnx_is_op(maker, "Constant") || onnx_is_op(maker, "ConstantOfShape"));
}

/* ---- what PyTorch's dynamo exporter has optimized away ---- */

static const char *namespace_of(const onnx_node *node)
{
    for (size_t i = 0; i < node->metadata.n; i++)
        if (strcmp(ONNX_AT(node->metadata, onnx_pair, i)->key, NAMESPACE_KEY) == 0)
            return ONNX_AT(node->metadata, onnx_pair, i)->value;
    return NULL;
}

static bool same_module(const char *a, const char *b)
{
    const char *a_end = strrchr(a, '/'), *b_end = strrchr(b, '/');
    return a_end && b_end && a_end - a == b_end - b && memcmp(a, b, (size_t)(a_end - a)) == 0;
}

static void scan_readers(warn_scan *s, const onnx_node *node)
{
    const char *place = namespace_of(node);
    for (size_t k = 0; k < node->inputs.n && place; k++) {
        int i = ty_onnx_find_initializer(s->m, ONNX_TEXT(node->inputs, k));
        if (i >= 0 && s->place[i])
            s->is_shared[i] |= !same_module(s->place[i], place);
        else if (i >= 0)
            s->place[i] = place;
    }
}

static bool is_splat(const ty_onnx_initializer *w)
{
    size_t n = ty_type_bytes(&w->type), one = n / (size_t)ty_type_elems(&w->type);
    return w->data && memcmp(w->data, (const char *)w->data + one, n - one) == 0;
}

/* Where the exporter says of parameters that they are, it folds others into tables of which it says nothing, and makes
 * one of those that are equal. Modules that share a weight that is learnt have one that is not all ones or zeros. */
static void scan_weights(warn_scan *s)
{
    bool says = false;
    for (int i = 0; i < s->m->n_initializers && !says; i++)
        says = s->m->initializers[i].mark == TY_ONNX_PARAMETER;
    for (int i = 0; i < s->m->n_initializers && says; i++) {
        const ty_onnx_initializer *w = &s->m->initializers[i];
        if (w->type.dtype == TY_N_DTYPES || !ty_dtype_is_float(w->type.dtype) || ty_type_elems(&w->type) < 2)
            continue;
        if (w->mark == TY_ONNX_UNMARKED)
            catch_weight(&s->unnamed, w);
        if (s->is_shared[i] && is_splat(w))
            catch_weight(&s->merged, w);
    }
}

static void scan_node(warn_scan *s, const onnx_node *node, size_t i)
{
    scan_readers(s, node);
    if (onnx_is_op(node, "BatchNormalization")) {
        s->n_batch_norms++;
        if (ty_onnx_find_initializer(s->m, input_name(node, 3)) < 0)
            catch_node(&s->still, node, i);
    }
    if (onnx_is_op(node, "Dropout")) {
        s->n_dropouts++;
        if (drops_nothing(s, node))
            catch_node(&s->no_ratio, node, i);
    } else if (onnx_is_op(node, "Identity") && strcasestr(node->name, "dropout")) {
        catch_node(&s->dropped, node, i);
    }
    if (onnx_is_op(node, "Conv") && is_folded(node))
        catch_node(&s->folded, node, i);
    if (has_constant_weight(s, node))
        catch_node(&s->unlearnt, node, i);
}

/* ---- the list -----------------------------------------------------------------------------------------------------
 */

static void add(ty_arena *arena, ty_onnx_warning *list, int *n, const catch *c, const char *help, const char *what)
{
    char text[600], more[40] = "";
    if (c->n == 0)
        return;
    if (c->n > 1)
        snprintf(more, sizeof more, " and %d more", c->n - 1);
    snprintf(text, sizeof text, "%s: %s%s", what, c->first, more);
    list[(*n)++] = (ty_onnx_warning){ty_arena_strdup(arena, text), help};
}

int ty_onnx_warnings(const ty_onnx *m, ty_arena *arena, ty_onnx_warning *list)
{
    const ty_wire_list *nodes = &m->tree.graph->nodes;
    warn_scan s = {.m = m};
    ty_arena names;
    int n = 0;
    ty_arena_init(&names);
    ty_names_init(&s.producers, &names);
    s.place = TY_NEW_ARRAY(&names, const char *, m->n_initializers + 1);
    s.is_shared = TY_NEW_ARRAY(&names, bool, m->n_initializers + 1);
    for (size_t i = 0; i < nodes->n; i++) {
        const onnx_node *node = ONNX_AT(*nodes, onnx_node, i);
        for (size_t k = 0; k < node->outputs.n; k++)
            ty_names_put(&s.producers, ONNX_TEXT(node->outputs, k), (int)i);
    }
    for (size_t i = 0; i < nodes->n; i++)
        scan_node(&s, ONNX_AT(*nodes, onnx_node, i), i);
    scan_weights(&s);
    if (s.n_batch_norms == 0)
        add(arena, list, &n, &s.folded, EXPORT_PYTORCH,
            "batch norm seems to be folded into convolutions and is not trained as such");
    add(arena, list, &n, &s.still, EXPORT_PYTORCH,
        "running statistics of batch norm are no initializers and are not updated");
    add(arena, list, &n, &s.no_ratio, EXPORT_PYTORCH, "dropout with ratio 0 drops nothing");
    if (s.n_dropouts == 0)
        add(arena, list, &n, &s.dropped, EXPORT_PYTORCH, "dropout was taken out by the export");
    add(arena, list, &n, &s.unlearnt, "export the weights as initializers (PyTorch: export_params=True)",
        "weights made by nodes are constants and are not trained");
    add(arena, list, &n, &s.merged, EXPORT_DYNAMO, "weights that were equal are one in the file and trained as one");
    add(arena, list, &n, &s.unnamed, EXPORT_DYNAMO,
        "tables that the export does not call parameters, of folded weights perhaps, are trained");
    ty_arena_fini(&names);
    return n;
}
