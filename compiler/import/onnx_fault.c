/* onnx_fault.c - faults of nodes as a person needs them: which node, its inputs, what is wrong with which of them.
 *
 *     error[E0312]: unsupported attribute value in ConvTranspose
 *       --> model.onnx: graph "main", node #87 "decoder/up2" (ConvTranspose, opset 11)
 *        |
 *        |   input  0  "x.41"         float32 [64, 128, 28, 28]   from node #86 Relu
 *        |   attr  output_padding = [1, 1]     <- must be smaller than stride or dilation
 *
 * Independent faults are collected: a node that needs the result of a faulty one is passed over in silence.
 */
#include "compiler/import/onnx_import.h"

#include "base/suggest.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void onnx_fail(onnx_ctx *c, ty_code code, const char *fmt, ...)
{
    if (c->failed)
        return;
    char text[TY_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    c->failed = true;
    ty_error_set(&c->err, code, "%s", text);
}

void onnx_fail_attr(onnx_ctx *c, const char *attr, const char *expected, ...)
{
    if (c->failed)
        return;
    va_list args;
    va_start(args, expected);
    vsnprintf(c->expected, sizeof c->expected, expected, args);
    va_end(args);
    c->bad_attr = attr;
    onnx_fail(c, TY_E_ATTRIBUTE, "unsupported attribute value in %s", c->node->op_type);
}

void onnx_fail_input(onnx_ctx *c, int i, ty_code code, const char *expected, ...)
{
    if (c->failed)
        return;
    va_list args;
    va_start(args, expected);
    vsnprintf(c->expected, sizeof c->expected, expected, args);
    va_end(args);
    c->bad_input = i;
    char name[128] = "";
    if (i < (int)c->node->inputs.n)
        onnx_short(ONNX_TEXT(c->node->inputs, i), name);
    onnx_fail(c, code, "%s: input %d \"%s\" %s", c->node->op_type, i, name, c->expected);
}

void onnx_help(onnx_ctx *c, const char *fmt, ...)
{
    char text[TY_ERROR_HELP_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ty_error_help(&c->err, "%s", text);
}

/* What to do instead of an operator that we have not. */
static const struct {
    const char *op;
    const char *help;
} fault_help[] = {
    {"NonZero", "the size of its result depends on the data; write the model with Where and a mask"},
    {"Unique", "the size of its result depends on the data; take it out of the trained part of the model"},
    {"Compress", "the size of its result depends on the data; use Gather with known positions, or Where and a mask"},
    {"NonMaxSuppression", "cut the model before post-processing; nothing behind it can be trained"},
    {"QLinearMatMul", "train the float model and quantize the result"},
    {"QLinearConv", "train the float model and quantize the result"},
    {"ConvInteger", "train the float model and quantize the result"},
    {"StringNormalizer", "text is prepared before training, outside the model"},
    {"StringConcat", "text is prepared before training, outside the model"},
    {"StringSplit", "text is prepared before training, outside the model"},
    {"RegexFullMatch", "text is prepared before training, outside the model"},
    {"TfIdfVectorizer", "text is prepared before training, outside the model"},
    {"ImageDecoder", "images are decoded by the data reader, outside the model"},
    {"FusedMatMul", "export the model without ONNX Runtime's optimizer"},
    {"SequenceMap", "write the loop over the sequence out, with one node for each entry"},
    {"Multinomial",
     "the choice has no gradient; draw with RandomUniformLike and the Gumbel trick, or outside the model"},
    {"MaxRoiPool", "use RoiAlign"},
    {"OptionalGetElement", "export the model with the optional input given"},
    {"OptionalHasElement", "export the model with the optional input given"},
};

/* Names one edit or two away, where it is a name of ours that was meant. */
static void suggest_name(onnx_ctx *c)
{
    ty_suggestion near = {.word = c->node->op_type};
    int n;
    const onnx_op_row *row = onnx_op_rows(&n);
    for (int i = 0; i < n; i++)
        if (onnx_domain_same(row[i].domain, c->node->domain))
            ty_suggest_offer(&near, row[i].op_type);
    if (near.best)
        onnx_help(c, "did the exporter mean %s?", near.best);
}

void onnx_suggest(onnx_ctx *c)
{
    for (size_t i = 0; i < sizeof fault_help / sizeof fault_help[0]; i++)
        if (strcmp(fault_help[i].op, c->node->op_type) == 0) {
            onnx_help(c, "%s", fault_help[i].help);
            return;
        }
    if (strcmp(c->node->domain, "com.microsoft") == 0)
        onnx_help(c, "operators of com.microsoft come from ONNX Runtime's optimizer: export the model without it");
    else if (!onnx_domain_same(c->node->domain, ""))
        onnx_help(c, "an operator of one's own: write the layer with standard operators, or export it as a function");
    else
        suggest_name(c);
}

/* ---- the lines under the place ------------------------------------------------------------------------------------
 */

/* "float32 [64, 128]" */
static void describe_type(const ty_type *t, char *out, size_t n)
{
    size_t len = (size_t)snprintf(out, n, "%s [", onnx_data_type_text(onnx_data_type((ty_dtype)t->dtype)));
    for (int i = 0; i < t->rank && len < n; i++)
        len += (size_t)snprintf(out + len, n - len, "%s%lld", i ? ", " : "", (long long)t->dim[i]);
    if (len < n)
        snprintf(out + len, n - len, "]");
}

static void describe_input(const onnx_ctx *c, int i, ty_error *err)
{
    char name[128], type[200] = "", from[160] = "";
    const onnx_item *item = c->in[i];
    if (!item)
        return;
    if (item->kind == ONNX_TENSOR && item->val != TY_NONE)
        describe_type(ty_graph_type(c->g, item->val), type, sizeof type);
    else if (item->kind == ONNX_SEQUENCE)
        snprintf(type, sizeof type, "sequence of %d tensors", item->n_seq);
    if (item->producer >= 0)
        snprintf(from, sizeof from, "from node #%lld %.100s", (long long)item->producer, item->origin);
    else
        snprintf(from, sizeof from, "%.100s", item->origin ? item->origin : "");
    const char *arrow = i == c->bad_input ? "   <- " : "";
    ty_error_detail(err, "input  %d  \"%s\"   %s   %s%s%s", i, onnx_short(item->name, name), type, from, arrow,
                    i == c->bad_input ? c->expected : "");
}

static void describe_number_list(const onnx_attr *a, char *out, size_t n)
{
    size_t len = (size_t)snprintf(out, n, "[");
    size_t n_entries = a->ints.n ? a->ints.n : a->floats.n;
    for (size_t i = 0; i < n_entries && len < n; i++) {
        const char *comma = i ? ", " : "";
        float f;
        if (a->ints.n)
            len += (size_t)snprintf(out + len, n - len, "%s%lld", comma, (long long)((const int64_t *)a->ints.data)[i]);
        else {
            memcpy(&f, (const char *)a->floats.data + i * sizeof f, sizeof f);
            len += (size_t)snprintf(out + len, n - len, "%s%g", comma, (double)f);
        }
    }
    if (len < n)
        snprintf(out + len, n - len, "]");
}

static void describe_attr(const onnx_ctx *c, const onnx_attr *a, ty_error *err)
{
    char value[160];
    if (a->has_i || a->type == ONNX_ATTR_INT)
        snprintf(value, sizeof value, "%lld", (long long)a->i);
    else if (a->has_f || a->type == ONNX_ATTR_FLOAT)
        snprintf(value, sizeof value, "%g", (double)a->f);
    else if (a->has_s)
        snprintf(value, sizeof value, "\"%.*s\"", a->s.n > 100 ? 100 : (int)a->s.n, (const char *)a->s.data);
    else
        describe_number_list(a, value, sizeof value);
    ty_error_detail(err, "attr  %s = %s     <- %s", a->name, value, c->expected);
}

void onnx_fault_describe(const onnx_ctx *c, ty_error *err)
{
    char name[128], op[128], domain[160] = "";
    const char *show = c->node->name[0] ? c->node->name : c->node->outputs.n ? ONNX_TEXT(c->node->outputs, 0) : "";
    if (!onnx_domain_same(c->node->domain, ""))
        snprintf(domain, sizeof domain, "%.100s ", c->node->domain);
    char opset[40] = "no opset";
    if (c->opset >= 0)
        snprintf(opset, sizeof opset, "opset %lld", (long long)c->opset);
    ty_error_at(err, "%.100s: %.120s, node #%lld \"%.120s\" (%.60s, %s%s)", c->imp->m->name, c->scope->where,
                (long long)c->index, onnx_short(show, name), onnx_short(c->node->op_type, op), domain, opset);
    char path[256];
    if (onnx_module_path(c->node, path, sizeof path)[0])
        ty_error_detail(err, "layer  %s", path);
    for (int i = 0; i < c->n_in && i < 8; i++)
        describe_input(c, i, err);
    const onnx_attr *bad = c->bad_attr ? onnx_find_attr(c, c->bad_attr) : NULL;
    if (bad)
        describe_attr(c, bad, err);
}

/* ---- collecting ---------------------------------------------------------------------------------------------------
 */

static ty_error *next_fault(onnx_importer *imp, int64_t index, const char *op)
{
    ty_onnx_values *v = imp->values;
    v->n_faults_all++;
    if (v->n_faults == TY_ONNX_MAX_FAULTS)
        return NULL;
    if (!v->faults)
        v->faults = TY_NEW_ARRAY(ty_graph_arena(imp->g), ty_error, TY_ONNX_MAX_FAULTS);
    imp->fault_nodes[v->n_faults] = index;
    imp->fault_ops[v->n_faults] = op;
    return &v->faults[v->n_faults++];
}

void onnx_fault_store(onnx_importer *imp, const onnx_ctx *c)
{
    ty_error *fault = next_fault(imp, c->index, c->node->op_type);
    if (!fault)
        return;
    *fault = c->err;
    onnx_fault_describe(c, fault);
}

void onnx_fault_graph(onnx_importer *imp, ty_code code, const char *fmt, ...)
{
    ty_error *fault = next_fault(imp, -1, "");
    if (!fault)
        return;
    char text[TY_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ty_error_set(fault, code, "%s", text);
    ty_error_at(fault, "%.100s: graph \"%.100s\"", imp->m->name, imp->m->tree.graph->name);
}

/* "; 2 more nodes have the same fault (#93, #101)" and "; 3 others have other faults (#5 Loop ...)" */
static void note_others(const onnx_importer *imp, bool same, char *out, size_t n)
{
    const ty_onnx_values *v = imp->values;
    char list[200] = "";
    int count = 0;
    for (int i = 1; i < v->n_faults; i++) {
        bool alike = strcmp(v->faults[i].message, v->faults[0].message) == 0;
        size_t len = strlen(list);
        if (alike != same || imp->fault_nodes[i] < 0)
            continue;
        if (count++ < 6)
            snprintf(list + len, sizeof list - len, "%s#%lld%s%.40s", len ? ", " : "", (long long)imp->fault_nodes[i],
                     same ? "" : " ", same ? "" : imp->fault_ops[i]);
        else if (count == 8)
            snprintf(list + len, sizeof list - len, " ...");
    }
    size_t len = strlen(out);
    if (count > 0)
        snprintf(out + len, n - len, "; %d more node%s %s (%s)", count, count == 1 ? "" : "s",
                 same ? (count == 1 ? "has the same fault" : "have the same fault")
                      : (count == 1 ? "has another fault" : "have other faults"),
                 list);
}

int onnx_fault_result(onnx_importer *imp, ty_error *err)
{
    const ty_onnx_values *v = imp->values;
    if (v->n_faults == 0)
        return 0;
    if (!err)
        return -1;
    *err = v->faults[0];
    if (imp->n_good == 0 && v->n_faults_all == 1)
        return -1;
    char note[640];
    snprintf(note, sizeof note, "note: %s%lld node%s read without trouble", imp->n_good ? "the first " : "",
             (long long)imp->n_good, imp->n_good == 1 ? " was" : "s were");
    note_others(imp, true, note, sizeof note);
    note_others(imp, false, note, sizeof note);
    if (v->n_faults_all > v->n_faults) {
        size_t len = strlen(note);
        snprintf(note + len, sizeof note - len, "; %d faults in all", v->n_faults_all);
    }
    ty_error_detail(err, "%s", note);
    return -1;
}
