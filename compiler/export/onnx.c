/* onnx.c - see onnx.h: the model at two batch sizes, the plan, the nodes. */
#include "compiler/export/onnx.h"

#include "compiler/export/writer.h"
#include "compiler/ir/build.h"
#include "compiler/ir/clone.h"
#include "compiler/model.h"
#include "compiler/ops/activation.h"
#include "compiler/ops/op.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct export_row {
    export_write_fn *write;
    const char *text;
    int since;
} export_row;

static const export_row export_rows[TY_N_OPS] = {
#define EXPORT(OP, writer, text, since) [TY_OP_##OP] = {export_write_##writer, text, since},
#include "compiler/export/rows.def"
#undef EXPORT
};

enum { EXPORT_RMS_OPSET = 23 };
#define EXPORT_MAX_ATTR_BYTES ((size_t)256 << 20)

/* ---- the model as a graph ---------------------------------------------------------------------------------------- */

/* The name of the batch's free dim, or NULL; *input and *axis say where it is first. False: no dim is free. */
static bool export_find_batch(const ty_model *m, int *input, int *axis, const char **name)
{
    for (int first = 1; first >= 0; first--) /* axis 0 of any input before other axes */
        for (int i = 0; i < ty_model_n_inputs(m); i++) {
            const ty_model_value *v = ty_model_input(m, i);
            for (int k = 0; k < v->rank && (k == 0 || !first); k++)
                if (v->dim[k] < 0) {
                    *input = i;
                    *axis = k;
                    *name = v->dim_name[k];
                    return true;
                }
        }
    return false;
}

static int export_bind_dim(const ty_model_value *v, int axis, const ty_onnx_export *opt, const char *batch_name,
                           int batch_axis, int64_t batch, int64_t *out, ty_error *err)
{
    const char *name = v->dim_name[axis];
    *out = v->dim[axis];
    if (*out >= 0)
        return 0;
    *out = batch;
    if (axis == 0 || (name && batch_name && strcmp(name, batch_name) == 0) || (!name && axis == batch_axis))
        return 0;
    for (int i = 0; i < opt->n_dims; i++)
        if (strcmp(opt->dims[i].name, name ? name : "?") == 0) {
            *out = opt->dims[i].value;
            return 0;
        }
    ty_error_set(err, TY_E_CONFIG, "input \"%s\": axis %d (\"%s\") is free beside the batch", v->name, axis,
                 name ? name : "?");
    return ty_error_help(err, "say which size the file shall have: --dim %s=N", name ? name : "?");
}

static int export_bind_inputs(const ty_model *m, ty_graph *g, const ty_onnx_export *opt, int64_t batch, ty_val *inputs,
                              ty_error *err)
{
    int input = 0, axis = -1;
    const char *name = NULL;
    export_find_batch(m, &input, &axis, &name);
    for (int i = 0; i < ty_model_n_inputs(m); i++) {
        const ty_model_value *v = ty_model_input(m, i);
        if (v->rank < 0 || v->dtype >= TY_N_DTYPES)
            return ty_error_set(err, TY_E_SHAPE, "input \"%s\": the file gives no %s", v->name,
                                v->rank < 0 ? "shape" : "element type that is known here");
        ty_type type = {.dtype = (uint8_t)v->dtype, .rank = (uint8_t)v->rank};
        for (int k = 0; k < v->rank; k++)
            if (export_bind_dim(v, k, opt, name, axis, batch, &type.dim[k], err) < 0)
                return -1;
        inputs[i] = ty_b_input(g, ty_graph_add_input(g, v->name, type));
    }
    return ty_graph_failed(g, err) ? -1 : 0;
}

/* Weights that may be trained are leaves, so that nothing folds them away; in files that say what is a variable, all
 * floats are. Integers and tables that an exporter kept beside the weights are constants, as in training. */
static bool export_is_leaf(const ty_model *m, int i)
{
    const ty_model_value *w = ty_model_weight(m, i);
    bool says = strncmp(ty_model_format(m), "onnx", 4) != 0;
    return w->dtype < TY_N_DTYPES && ty_dtype_is_float(w->dtype) &&
           (says || w->trainable_hint || ty_model_weight_is_running(m, i));
}

static ty_type export_weight_type(const ty_model_value *w)
{
    ty_type type = {.dtype = (uint8_t)w->dtype, .rank = (uint8_t)w->rank};
    memcpy(type.dim, w->dim, sizeof *w->dim * (size_t)w->rank);
    return type;
}

static void export_bind_weights(const ty_model *m, ty_graph *g, ty_val *weights)
{
    char name[32];
    for (int i = 0; i < ty_model_n_weights(m); i++) {
        weights[i] = TY_NONE;
        if (!export_is_leaf(m, i))
            continue;
        snprintf(name, sizeof name, "\x01weight %d", i); /* no name of a model starts so */
        weights[i] = ty_b_input(g, ty_graph_add_input(g, name, export_weight_type(ty_model_weight(m, i))));
    }
}

static int export_draft(const ty_model *m, const ty_onnx_export *opt, int64_t batch, ty_graph *g, ty_error *err)
{
    ty_arena *a = ty_graph_arena(g);
    ty_val *inputs = TY_NEW_ARRAY(a, ty_val, ty_model_n_inputs(m) + 1);
    ty_val *weights = TY_NEW_ARRAY(a, ty_val, ty_model_n_weights(m) + 1);
    ty_model_values values;
    if (export_bind_inputs(m, g, opt, batch, inputs, err) < 0)
        return -1;
    export_bind_weights(m, g, weights);
    ty_model_binding b = {.mode = TY_MODEL_EVAL, .inputs = inputs, .weights = weights};
    b.seed = b.step = ty_b_scalar(g, TY_I64, 0);
    if (ty_model_import(m, g, &b, &values, err) < 0)
        return -1;
    for (int i = 0; i < ty_model_n_outputs(m); i++) {
        if (values.outputs[i] == TY_NONE)
            return ty_error_set(err, TY_E_UNSUPPORTED, "output \"%s\" has no value", ty_model_output(m, i)->name);
        ty_graph_add_output(g, ty_model_output(m, i)->name, values.outputs[i], TY_TAPE_EVAL);
    }
    return ty_graph_failed(g, err) ? -1 : 0;
}

/* True if the opset has no operator for this composite as it stands. */
static bool export_takes_apart(const ty_graph *g, uint32_t id, int opset)
{
    ty_op op = ty_graph_op(g, id);
    if (ty_op_row_of(op)->class_ != TY_CLASS_COMPOSITE)
        return false;
    if (op == TY_OP_NORM) {
        const ty_node *node = ty_graph_node(g, id);
        uint8_t dtype = ty_graph_type(g, ty_graph_in(g, id, 0))->dtype;
        for (uint32_t k = 1; k < node->n_in; k++)
            if (ty_graph_in(g, id, (int)k) != TY_NONE && ty_graph_type(g, ty_graph_in(g, id, (int)k))->dtype != dtype)
                return true;
        if (ty_graph_attr(g, id)->flags & 1 && opset < EXPORT_RMS_OPSET)
            return true;
    }
    return export_rows[op].since > opset;
}

static bool export_lower(ty_clone *c, uint32_t id, void *ctx)
{
    const ty_node *node = ty_graph_node(c->from, id);
    if (!export_takes_apart(c->from, id, *(const int *)ctx))
        return false;
    ty_val *in = TY_NEW_ARRAY(ty_graph_arena(c->to), ty_val, node->n_in);
    ty_val res[TY_MAX_RESULTS] = {TY_NONE, TY_NONE, TY_NONE, TY_NONE};
    ty_graph_origin(c->to, ty_graph_origin_of(c->from, id));
    ty_clone_inputs(c, id, in);
    if (node->op == TY_OP_GELU) /* lowered, it has a function that ONNX has not, or is not what others look for */
        res[0] = (ty_graph_attr(c->from, id)->flags ? ty_gelu_by_tanh : ty_gelu_by_erf)(c->to, in[0]);
    else
        ty_op_row_of((ty_op)node->op)->lower(c->to, ty_graph_attr(c->from, id), in, (int)node->n_in, res);
    for (int r = 0; r < node->n_res; r++)
        c->map[ty_val_make(id, (uint32_t)r)] = res[r];
    return true;
}

static int export_graph(const ty_model *m, const ty_onnx_export *opt, int opset, int64_t batch, ty_graph **out,
                        ty_error *err)
{
    ty_graph *g = ty_graph_new();
    int rc = export_draft(m, opt, batch, g, err);
    if (rc == 0)
        rc = ty_clone_rewrite(g, export_lower, &opset, out, err);
    ty_graph_free(g);
    return rc;
}

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

static export_plan *export_make_plan(export_ctx *c, uint32_t id)
{
    const ty_node *node = ty_graph_node(c->g, id);
    const export_row *row = &export_rows[node->op];
    export_plan *p = TY_NEW(c->a, export_plan);
    p->id = id;
    if (export_match(c, id, p))
        return p;
    p->source = id;
    p->write = row->write ? row->write : export_write_none;
    p->op = row->text;
    p->n_in = (int)node->n_in;
    p->in = TY_NEW_ARRAY(c->a, ty_val, p->n_in + 1);
    for (int k = 0; k < p->n_in; k++)
        p->in[k] = ty_graph_in(c->g, id, k);
    if (ty_op_is_elementwise((ty_op)node->op) && p->n_in > 1)
        export_strip_operands(c, p);
    return p;
}

static const uint32_t *export_count_uses(export_ctx *c, uint32_t n)
{
    uint32_t *uses = TY_NEW_ARRAY(c->a, uint32_t, n + 1);
    for (int i = 0; i < ty_graph_n_outputs(c->g); i++)
        uses[ty_val_node(ty_graph_output(c->g, i)->val)]++;
    for (uint32_t id = 0; id < n; id++)
        for (uint32_t k = 0; k < ty_graph_node(c->g, id)->n_in; k++)
            if (ty_graph_in(c->g, id, (int)k) != TY_NONE)
                uses[ty_val_node(ty_graph_in(c->g, id, (int)k))]++;
    return uses;
}

static void export_plan_all(export_ctx *c)
{
    uint32_t n = ty_graph_n_nodes(c->g);
    c->uses = export_count_uses(c, n);
    uint8_t *needed = TY_NEW_ARRAY(c->a, uint8_t, n + 1);
    c->plan = TY_NEW_ARRAY(c->a, export_plan *, n + 1);
    for (int i = 0; i < ty_graph_n_outputs(c->g); i++)
        needed[ty_val_node(ty_graph_output(c->g, i)->val)] = 1;
    for (uint32_t id = n; id-- > 0;) {
        if (!needed[id])
            continue;
        c->plan[id] = export_make_plan(c, id);
        for (int k = 0; k < c->plan[id]->n_in; k++)
            if (c->plan[id]->in[k] != TY_NONE)
                needed[ty_val_node(c->plan[id]->in[k])] = 1;
    }
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

/* "(MatMul #3)" and the like name no layer. */
static const char *export_layer(export_ctx *c, uint32_t id)
{
    const char *origin = ty_graph_origin_of(c->g, id);
    const char *layer = origin[0] ? ty_layer_of_origin(c->a, origin) : "";
    char *out = ty_arena_strdup(c->a, layer[0] == '(' ? "" : layer);
    for (char *p = out; *p; p++)
        if ((unsigned char)*p <= ' ')
            *p = '_';
    return out;
}

static void export_enter_inputs(export_ctx *c)
{
    int input = -1, n_model = ty_model_n_inputs(c->m), at = 0;
    const char *name = NULL;
    export_find_batch(c->m, &input, &c->batch_axis, &name);
    for (int i = 0; i < n_model; i++) {
        export_value *v = TY_NEW(c->a, export_value);
        v->name = ty_model_input(c->m, i)->name;
        c->inputs[i] = v;
    }
    c->batch_value = input >= 0 ? c->inputs[input] : NULL;
    int *weight_of = TY_NEW_ARRAY(c->a, int, ty_graph_n_inputs(c->g) + 1);
    for (int i = 0; i < ty_model_n_weights(c->m); i++)
        if (export_is_leaf(c->m, i))
            weight_of[n_model + at++] = i;
    c->weight_of = weight_of;
}

/* A graph input is one of the model, or a weight. */
static void export_write_input(export_ctx *c, uint32_t id)
{
    ty_val v = ty_val_make(id, 0);
    int at = (int)ty_graph_attr(c->g, id)->index, n_model = ty_model_n_inputs(c->m);
    c->value[v] = at < n_model ? c->inputs[at] : export_weight(c, c->weight_of[at], ty_graph_type(c->g, v));
}

static void export_write_nodes(export_ctx *c)
{
    uint32_t n = ty_graph_n_nodes(c->g);
    c->value = TY_NEW_ARRAY(c->a, export_value *, 4 * (size_t)n + 1);
    for (uint32_t id = 0; id < n && !c->failed; id++) {
        if (!c->plan[id])
            continue;
        ty_op op = ty_graph_op(c->g, id);
        c->node = id;
        c->layer = export_layer(c, id);
        if (op == TY_OP_INPUT) {
            export_write_input(c, id);
            continue;
        }
        if (export_rows[op].since > c->opset)
            export_refuse(c, TY_E_UNSUPPORTED, "%s came with opset %d", export_rows[op].text, export_rows[op].since);
        c->plan[id]->write(c, c->plan[id]);
    }
    c->layer = "";
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void export_begin_ctx(export_ctx *c, const ty_model *m, const ty_onnx_export *opt, ty_arena *a)
{
    *c = (export_ctx){.m = m, .opt = opt, .opset = opt->opset ? opt->opset : TY_ONNX_EXPORT_OPSET, .a = a};
    ty_buf_init(&c->attrs, EXPORT_MAX_ATTR_BYTES);
    ty_names_init(&c->by_content, a);
    c->inputs = TY_NEW_ARRAY(a, export_value *, ty_model_n_inputs(m) + 1);
}

/* One try: with a free batch that stands for two sizes, or with one size (batch[1] 0). 1: the batch cannot be free. */
static int export_try(const ty_model *m, const char *path, const ty_onnx_export *opt, const int64_t *batch, ty_arena *a,
                      ty_onnx_exported *out, ty_error *err)
{
    export_ctx c;
    ty_graph *g = NULL, *other = NULL;
    export_begin_ctx(&c, m, opt, a);
    int rc = export_graph(m, opt, c.opset, batch[0], &g, err);
    if (rc == 0 && batch[1])
        rc = export_graph(m, opt, c.opset, batch[1], &other, err);
    c.g = g;
    c.other = other;
    c.batch[0] = batch[0];
    c.batch[1] = batch[1] ? batch[1] : batch[0] + 1;
    if (rc == 0 && (!other || export_pair_up(&c))) {
        export_enter_inputs(&c);
        export_plan_all(&c);
        export_write_nodes(&c);
    }
    if (rc == 0 && c.failed && !c.is_static) {
        *err = c.err;
        rc = -1;
    } else if (rc == 0 && c.failed)
        rc = 1;
    else if (rc == 0)
        rc = export_write_file(&c, path, out, err);
    out->why_static = c.why_static;
    ty_buf_fini(&c.attrs);
    ty_graph_free(g);
    ty_graph_free(other);
    return rc;
}

int ty_onnx_export_model(const ty_model *m, const char *path, const ty_onnx_export *opt, ty_arena *a,
                         ty_onnx_exported *out, ty_error *err)
{
    static const int64_t sizes[][2] = {{37, 41}, {1009, 1013}, {5, 7}};
    int input, axis, rc = 1;
    const char *name, *why = NULL;
    int opset = opt->opset ? opt->opset : TY_ONNX_EXPORT_OPSET;
    *out = (ty_onnx_exported){.opset = opset};
    if (opset < TY_ONNX_EXPORT_MIN_OPSET || opset > TY_ONNX_EXPORT_MAX_OPSET)
        return ty_error_set(err, TY_E_CONFIG, "ONNX files are written with opset %d to %d, not %d",
                            TY_ONNX_EXPORT_MIN_OPSET, TY_ONNX_EXPORT_MAX_OPSET, opset);
    bool is_free = opt->batch == 0 && export_find_batch(m, &input, &axis, &name);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && is_free && rc == 1; i++) {
        rc = export_try(m, path, opt, sizes[i], a, out, err);
        if (i == 0)
            why = out->why_static;
    }
    if (rc != 1)
        return rc;
    rc = export_try(m, path, opt, (int64_t[]){opt->batch ? opt->batch : 1, 0}, a, out, err);
    out->why_static = is_free ? why : NULL;
    return rc;
}
