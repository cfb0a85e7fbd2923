/* cmodel_net.c - the calls of trainyard/model.h arrive here, are checked, and go to a row of the table of operators.
 *
 * A variable is a graph value plus one, so that 0 is none. After the first failure every call gives none.
 */
#include "compiler/import/cmodel_net.h"
#include "compiler/import/cmodel_layer.h"

#include <stdio.h>
#include <string.h>

/* ---- failing ---------------------------------------------------------------------------------------------------- */

static void net_fail_here(cmodel_net *net)
{
    net->failed = true;
    size_t n = strlen(net->scope);
    if (net->builder && n > 0)
        ty_error_wrap(&net->error, "%.*s", (int)n - 1, net->scope);
    else if (net->face.file && !net->builder)
        ty_error_at(&net->error, "%s:%d", net->face.file, net->face.line);
}

ty_val cmodel_fail(cmodel_net *net, ty_code code, const char *fmt, ...)
{
    if (net->failed)
        return TY_NONE;
    char text[600];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ty_error_set(&net->error, code, "%s", text);
    net_fail_here(net);
    return TY_NONE;
}

/* What the graph has refused becomes the net's error. */
static void net_take_failure(cmodel_net *net, const char *op)
{
    if (net->failed || !ty_graph_failed(net->g, &net->error))
        return;
    ty_error_wrap(&net->error, "ty_%s", op);
    net->error.place[0] = 0; /* of the node; the line says more */
    net_fail_here(net);
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

static bool net_is_value(const cmodel_net *net, ty_val v)
{
    uint32_t node = ty_val_node(v);
    return v != TY_NONE && node < ty_graph_n_nodes(net->g) && ty_val_result(v) < ty_graph_node(net->g, node)->n_res;
}

ty_val cmodel_optional(cmodel_net *net, ty_var v)
{
    if (v.id == 0)
        return TY_NONE;
    return net_is_value(net, v.id - 1) ? v.id - 1 : cmodel_fail(net, TY_E_GRAPH, "the variable is not of this network");
}

static ty_val net_value(cmodel_net *net, const char *op, int i, ty_var v)
{
    if (net_is_value(net, v.id - 1))
        return v.id - 1;
    return cmodel_fail(net, TY_E_GRAPH, "ty_%s: variable %d has no value%s", op, i + 1,
                       v.id ? " in this network" : "; was it set?");
}

bool cmodel_axis(cmodel_net *net, int64_t axis, int limit, int *out)
{
    *out = (int)(axis < 0 ? axis + limit : axis);
    if (axis >= -limit && axis < limit)
        return true;
    cmodel_fail(net, TY_E_ATTRIBUTE, "axis %lld is outside a tensor of %d axes", (long long)axis, limit);
    return false;
}

bool cmodel_rank_is(cmodel_net *net, ty_val x, int lo, int hi)
{
    char text[160];
    if (x == TY_NONE)
        return false;
    int rank = ty_b_rank(net->g, x);
    if (rank >= lo && rank <= hi)
        return true;
    ty_type_text(ty_graph_type(net->g, x), text, sizeof text);
    cmodel_fail(net, TY_E_SHAPE, "expected %d to %d axes, found %s", lo, hi, text);
    return false;
}

bool cmodel_dtype(cmodel_net *net, const char *text, ty_dtype *out)
{
    if (text && ty_dtype_parse(text, out))
        return true;
    cmodel_fail(net, TY_E_TYPE, "unknown element type \"%.40s\"", text ? text : "(none)");
    return false;
}

bool cmodel_shape_ok(cmodel_net *net, const ty_shape *s, ty_dtype dtype)
{
    if (s->n >= 0 && s->n <= TY_MAX_RANK && ty_dims_elems_checked((int)s->n, s->dim, ty_dtype_bytes(dtype)) >= 0)
        return true;
    cmodel_fail(net, TY_E_SHAPE, "the shape has a negative dimension or is too large");
    return false;
}

ty_val cmodel_random(cmodel_net *net, int rank, const int64_t *dim)
{
    ty_graph *g = net->g;
    if (net->seed == TY_NONE || net->step == TY_NONE)
        return cmodel_fail(net, TY_E_UNSUPPORTED, "random numbers can be drawn in training only");
    ty_val words = ty_b_rng(g, net->seed, net->step, net->n_random++, rank, dim);
    ty_val top = ty_b_cast(g, ty_b_binary(g, TY_OP_SHR, words, ty_b_full_like(g, words, 8)), TY_F32);
    return ty_b_mul_s(g, top, 0x1p-24);
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

const char *cmodel_join(cmodel_net *net, const char *layer, const char *part)
{
    return ty_arena_printf(net->arena, "%s.%s", layer ? layer : "", part);
}

static bool net_name_ok(cmodel_net *net, const char *name)
{
    if (!name || !*name || strlen(name) + strlen(net->scope) >= CMODEL_NAME_BYTES) {
        cmodel_fail(net, TY_E_GRAPH, "a name must have 1 to %d bytes", CMODEL_NAME_BYTES - 1);
        return false;
    }
    for (const char *p = name; *p; p++)
        if ((unsigned char)*p < 33 || *p == 127) {
            cmodel_fail(net, TY_E_GRAPH, "the name \"%s\" has a blank or control character", name);
            return false;
        }
    return true;
}

static cmodel_value *net_find(cmodel_list *list, const char *name)
{
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->at[i].name, name) == 0)
            return &list->at[i];
    return NULL;
}

static void net_add(cmodel_net *net, cmodel_list *list, cmodel_value v)
{
    if (list->n >= CMODEL_MAX_VALUES) {
        cmodel_fail(net, TY_E_LIMIT, "more than %d inputs, outputs or weights", CMODEL_MAX_VALUES);
        return;
    }
    if (list->n == list->cap) {
        list->cap = list->cap ? list->cap * 2 : 16;
        cmodel_value *grown = TY_NEW_ARRAY(net->arena, cmodel_value, list->cap);
        if (list->n)
            memcpy(grown, list->at, (size_t)list->n * sizeof *grown);
        list->at = grown;
    }
    list->at[list->n++] = v;
}

/* ---- inputs, outputs -------------------------------------------------------------------------------------------- */

/* What a free dimension of this name is bound to while listing. */
static int64_t net_free_dim(cmodel_net *net, const char *name)
{
    int i = 0;
    while (i < net->n_free && strcmp(net->free_name[i], name) != 0)
        i++;
    if (i == net->n_free && i < CMODEL_MAX_FREE)
        net->free_name[net->n_free++] = name;
    return net->free_dim + i;
}

static bool net_read_dim(cmodel_net *net, const char **p, cmodel_value *v)
{
    static const char *const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    int k = v->type.rank++;
    *p += strspn(*p, " ");
    size_t digits = strspn(*p, "0123456789"), word = strspn(*p, letters);
    if (word == digits && digits > 0 && digits < 19)
        for (size_t i = 0; i < digits; i++)
            v->type.dim[k] = v->type.dim[k] * 10 + (*p)[i] - '0';
    else if (word > 0 && digits == 0) {
        v->dim_name[k] = ty_arena_strndup(net->arena, *p, word);
        v->type.dim[k] = net_free_dim(net, v->dim_name[k]);
    } else
        return false;
    *p += word;
    *p += strspn(*p, " ");
    return true;
}

/* "f32[batch,1,8,8]" */
static bool net_read_type(cmodel_net *net, const char *text, cmodel_value *v)
{
    char dtype_text[16];
    ty_dtype dtype;
    size_t n = strcspn(text, "[");
    const char *p = text + n;
    snprintf(dtype_text, sizeof dtype_text, "%.*s", (int)n, text);
    bool ok = n < sizeof dtype_text && ty_dtype_parse(dtype_text, &dtype);
    if (ok && *p == '[' && p[1] != ']')
        do {
            p++;
            ok = v->type.rank < TY_MAX_RANK && net_read_dim(net, &p, v);
        } while (ok && *p == ',');
    else if (ok && *p == '[')
        p++;
    if (!ok || strcmp(p, "]") != 0) {
        cmodel_fail(net, TY_E_TYPE, "expected a type such as \"f32[batch,64]\", found \"%.80s\"", text);
        return false;
    }
    v->type.dtype = (uint8_t)dtype;
    ty_shape shape = {.n = v->type.rank};
    memcpy(shape.dim, v->type.dim, sizeof shape.dim);
    return cmodel_shape_ok(net, &shape, dtype);
}

static ty_val net_input(cmodel_net *net, const cmodel_call *c)
{
    cmodel_value v = {.update = TY_NONE};
    if (net->layer)
        return cmodel_fail(net, TY_E_GRAPH, "a layer takes ty_layer_input, a model ty_input");
    if (!net_name_ok(net, c->args->name) || !net_read_type(net, c->args->text ? c->args->text : "", &v))
        return TY_NONE;
    v.name = ty_arena_strdup(net->arena, c->args->name);
    if (net_find(&net->input, v.name))
        return cmodel_fail(net, TY_E_GRAPH, "input \"%s\" is declared twice", v.name);
    if (net->bound_input)
        v.val = net->bound_input(net, v.name, &v.type, v.dim_name);
    else
        v.val = ty_b_input(net->g, ty_graph_add_input(net->g, v.name, v.type));
    net_add(net, &net->input, v);
    return v.val;
}

static ty_val net_output(cmodel_net *net, const cmodel_call *c)
{
    if (!net_name_ok(net, c->args->name))
        return TY_NONE;
    const char *name = ty_arena_strdup(net->arena, c->args->name);
    if (net_find(&net->output, name))
        return cmodel_fail(net, TY_E_GRAPH, "output \"%s\" is set twice", name);
    net_add(net, &net->output,
            (cmodel_value){.name = name, .type = *ty_graph_type(net->g, c->in[0]), .val = c->in[0], .update = TY_NONE});
    return c->in[0];
}

/* ---- weights ---------------------------------------------------------------------------------------------------- */

static ty_val net_again(cmodel_net *net, const cmodel_value *old, const ty_type *type, bool is_buffer)
{
    char had[160], wants[160];
    if (old->is_buffer != is_buffer)
        return cmodel_fail(net, TY_E_GRAPH, "\"%s\" is a parameter and a buffer", old->name);
    if (ty_type_same(&old->type, type))
        return old->val;
    return cmodel_fail(net, TY_E_SHAPE, "weight \"%s\" was %s and is now %s", old->name,
                       ty_type_text(&old->type, had, sizeof had), ty_type_text(type, wants, sizeof wants));
}

static ty_val net_weight(cmodel_net *net, const char *name, int rank, const int64_t *dim, ty_init init, bool is_buffer)
{
    ty_shape shape = {.n = rank};
    if (rank <= TY_MAX_RANK && rank >= 0)
        memcpy(shape.dim, dim, sizeof *dim * (size_t)rank);
    if (net->failed || !net_name_ok(net, name) || !cmodel_shape_ok(net, &shape, TY_F32))
        return TY_NONE;
    const char *whole = ty_arena_printf(net->arena, "%s%s", net->scope, name);
    ty_type type = ty_type_make(TY_F32, rank, dim);
    const cmodel_value *old = net_find(&net->weight, whole);
    if (old)
        return net_again(net, old, &type, is_buffer);
    cmodel_value v = {.name = whole, .type = type, .init = init, .is_buffer = is_buffer, .update = TY_NONE};
    if (net->layer)
        v.val = cmodel_layer_weight(net, &v);
    else if (net->bound_weight)
        v.val = net->bound_weight(net, whole, &type);
    else
        v.val = ty_b_input(net->g, ty_graph_add_input(net->g, whole, type));
    net_add(net, &net->weight, v);
    return v.val;
}

ty_val cmodel_parameter(cmodel_net *net, const char *name, int rank, const int64_t *dim, ty_init init)
{
    return net_weight(net, name, rank, dim, init, false);
}

ty_val cmodel_buffer(cmodel_net *net, const char *name, int rank, const int64_t *dim, ty_init init)
{
    return net_weight(net, name, rank, dim, init, true);
}

static ty_val net_declare_weight(cmodel_net *net, const cmodel_call *c)
{
    const ty_args *a = c->args;
    return net_weight(net, a->name, (int)a->dims.n, a->dims.dim, a->init, c->arg);
}

void cmodel_update(cmodel_net *net, ty_val buffer, ty_val value)
{
    char has[160], given[160];
    if (net->mode != TY_MODEL_TRAIN || value == TY_NONE)
        return;
    for (int i = 0; i < net->weight.n; i++) {
        cmodel_value *w = &net->weight.at[i];
        if (!w->is_buffer || w->val != buffer)
            continue;
        if (!ty_type_same(&w->type, ty_graph_type(net->g, value)))
            cmodel_fail(net, TY_E_SHAPE, "buffer \"%s\" is %s, its update is %s", w->name,
                        ty_type_text(&w->type, has, sizeof has),
                        ty_type_text(ty_graph_type(net->g, value), given, sizeof given));
        w->update = value;
        return;
    }
    cmodel_fail(net, TY_E_GRAPH, "only a buffer can be updated");
}

static ty_val net_update(cmodel_net *net, const cmodel_call *c)
{
    cmodel_update(net, c->in[0], c->in[1]);
    return c->in[1];
}

/* ---- scopes ----------------------------------------------------------------------------------------------------- */

static ty_val net_scope(cmodel_net *net, const cmodel_call *c)
{
    if (!net_name_ok(net, c->args->name))
        return TY_NONE;
    size_t used = strlen(net->scope);
    if (net->n_scopes == CMODEL_MAX_SCOPES)
        return cmodel_fail(net, TY_E_LIMIT, "more than %d scopes in one another", CMODEL_MAX_SCOPES);
    if ((size_t)snprintf(net->scope + used, sizeof net->scope - used, "%s.", c->args->name) >= sizeof net->scope - used)
        return cmodel_fail(net, TY_E_LIMIT, "the names of scopes together are too long");
    net->scope_bytes[net->n_scopes++] = (uint8_t)used;
    return TY_NONE;
}

static ty_val net_end(cmodel_net *net, const cmodel_call *c)
{
    (void)c;
    if (net->n_scopes == 0)
        return cmodel_fail(net, TY_E_GRAPH, "ty_end without ty_scope");
    net->scope[net->scope_bytes[--net->n_scopes]] = 0;
    return TY_NONE;
}

static ty_val net_seed(cmodel_net *net, const cmodel_call *c)
{
    net->init_seed = (uint64_t)c->args->count;
    return TY_NONE;
}

const cmodel_row cmodel_leaves[] = {
    {"input", 0, 0, net_input, 0},
    {"output", 1, 1, net_output, 0},
    {"parameter", 0, 0, net_declare_weight, false},
    {"buffer", 0, 0, net_declare_weight, true},
    {"update", 2, 2, net_update, 0},
    {"scope", 0, 0, net_scope, 0},
    {"end", 0, 0, net_end, 0},
    {"seed", 0, 0, net_seed, 0},
    {NULL, 0, 0, NULL, 0},
};

/* ---- the calls -------------------------------------------------------------------------------------------------- */

const cmodel_row *cmodel_find_op(const char *name)
{
    const cmodel_row *const tables[] = {cmodel_leaves,  cmodel_basics, cmodel_layers,
                                        cmodel_windows, cmodel_onnx,   cmodel_layer_rows};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const cmodel_row *row = tables[t]; row->name; row++)
            if (strcmp(row->name, name) == 0)
                return row;
    return NULL;
}

/* "bert.encoder.layer.0.output.dense (linear)" */
static void net_origin_of_layer(cmodel_net *net, const char *op, const ty_args *args)
{
    char text[480];
    int n = (int)strlen(net->scope);
    if (args->name)
        snprintf(text, sizeof text, "%.200s%.200s (%.40s)", net->scope, args->name, op);
    else
        snprintf(text, sizeof text, "%.*s (%.40s)", n ? n - 1 : 5, n ? net->scope : "model", op);
    ty_graph_origin(net->g, text);
}

static void net_origin(cmodel_net *net, const char *op, const ty_args *args)
{
    char text[480];
    if (net->builder) {
        net_origin_of_layer(net, op, args);
        return;
    }
    snprintf(text, sizeof text, "%.200s:%d %.40s%s%.180s", net->face.file ? net->face.file : "model.c", net->face.line,
             op, args->name ? " " : "", args->name ? args->name : "");
    if (!net->layer) /* a layer has the origin of its call */
        ty_graph_origin(net->g, text);
    if (net->place)
        snprintf(net->place, CMODEL_PLACE_BYTES, "%.280s:%d", net->face.file ? net->face.file : "", net->face.line);
}

static ty_var net_apply(ty_net *face, const char *op, const ty_var *in, int n_in, const ty_args *args)
{
    static const ty_args no_args;
    cmodel_net *net = (cmodel_net *)face;
    if (net->failed)
        return (ty_var){0};
    const cmodel_row *row = cmodel_find_op(op);
    if (!row || n_in < row->min_in || (row->max_in >= 0 && n_in > row->max_in)) {
        cmodel_fail(net, TY_E_UNSUPPORTED, "no operator \"%.60s\" of %d variables", op, n_in);
        return (ty_var){0};
    }
    ty_val *vals = TY_NEW_ARRAY(net->arena, ty_val, n_in);
    for (int i = 0; i < n_in; i++)
        vals[i] = net_value(net, op, i, in[i]);
    if (net->failed)
        return (ty_var){0};
    net->n_calls++;
    cmodel_call call = {op, row->arg, vals, n_in, args ? args : &no_args};
    net_origin(net, op, call.args);
    ty_val v = row->build(net, &call);
    net_take_failure(net, op);
    return (ty_var){net->failed ? 0 : v + 1};
}

/* After a failure there are no shapes; 8 axes of 1 keep a loop over them harmless. */
static ty_shape net_shape(ty_net *face, ty_var x)
{
    cmodel_net *net = (cmodel_net *)face;
    ty_shape out = {TY_MAX_RANK, {1, 1, 1, 1, 1, 1, 1, 1}};
    ty_val v = net->failed ? TY_NONE : net_value(net, "dim", 0, x);
    if (v == TY_NONE)
        return out;
    const ty_type *t = ty_graph_type(net->g, v);
    out = (ty_shape){.n = t->rank};
    memcpy(out.dim, t->dim, sizeof out.dim);
    return out;
}

static bool net_training(ty_net *face)
{
    return ((cmodel_net *)face)->mode == TY_MODEL_TRAIN;
}

static const char *net_text(ty_net *face, const char *text)
{
    return ty_arena_strdup(((cmodel_net *)face)->arena, text);
}

static void net_refuse(ty_net *face, const char *text)
{
    cmodel_fail((cmodel_net *)face, TY_E_MODEL_FILE, "%.500s", text);
}

const ty_net_calls cmodel_calls = {
    .apply = net_apply,
    .shape = net_shape,
    .training = net_training,
    .text = net_text,
    .fail = net_refuse,
    .define = cmodel_layer_define,
    .number = cmodel_layer_number,
    .setting = cmodel_layer_setting,
    .settings = cmodel_layer_settings,
};

void cmodel_build(cmodel_net *net, void (*model)(ty_net *))
{
    net->face.calls = &cmodel_calls;
    net->scope[0] = 0;
    net->n_scopes = 0;
    model(&net->face);
    if (net->failed)
        return;
    if (net->n_scopes)
        cmodel_fail(net, TY_E_GRAPH, "the scope \"%s\" was not ended", net->scope);
    else if (net->output.n == 0) {
        net->face.file = NULL; /* no call is to blame */
        cmodel_fail(net, TY_E_MODEL_FILE, "model() sets no output");
        ty_error_help(&net->error, "end it with ty_output(net, \"logits\", x)");
    } else if (net->input.n == 0) {
        net->face.file = NULL;
        cmodel_fail(net, TY_E_MODEL_FILE, "model() declares no input");
        ty_error_help(&net->error, "begin it with ty_input(net, \"x\", \"f32[batch,64]\")");
    }
}
