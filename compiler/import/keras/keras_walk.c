/* keras_walk.c - applies layers to values, in the order of the graph.
 *
 * What every call has in common is here, after keras/src/layers/layer.py, Layer.__call__: creating at first use, masks,
 * the argument `training`, activity regularizers. A layer that cannot be applied is a fault; what reads it is passed
 * over in silence.
 */
#include "compiler/import/keras/keras_walk.h"

#include <stdio.h>
#include <string.h>

enum { WALK_MAX_BYTES = 1 << 30 }; /* of the graph: a file of a few bytes could ask for any number of nodes */

void keras_walk_init(keras_walk *w, ty_keras *m, ty_graph *g)
{
    *w = (keras_walk){.m = m, .g = g, .seed = TY_NONE, .step = TY_NONE};
    ty_arena_init(&w->arena);
}

void keras_walk_fini(keras_walk *w)
{
    ty_arena_fini(&w->arena);
}

static void *walk_grow(ty_arena *a, const void *list, int n, int *room, size_t bytes)
{
    if (n < *room)
        return (void *)(uintptr_t)list;
    *room = *room ? 2 * *room : 16;
    void *bigger = ty_arena_alloc_array(a, bytes, (size_t)*room);
    if (n)
        memcpy(bigger, list, bytes * (size_t)n);
    return bigger;
}

void keras_add_penalty(keras_walk *w, ty_val v)
{
    w->penalty = walk_grow(&w->arena, w->penalty, w->n_penalties, &w->penalties_room, sizeof *w->penalty);
    w->penalty[w->n_penalties++] = v;
}

void keras_drop_mask(keras_call *c, ty_val v)
{
    keras_walk *w = c->walk;
    w->unmasked = walk_grow(&w->arena, w->unmasked, w->n_unmasked, &w->unmasked_room, sizeof *w->unmasked);
    w->unmasked[w->n_unmasked++] = v;
}

/* ---- what a call sets ---------------------------------------------------------------------------------------------
 */

static bool walk_has_output(keras_call *c, int i)
{
    if (i < 0 || i >= KERAS_MAX_OUTPUTS) {
        keras_fail(c, TY_E_LIMIT, "has more than %d outputs", KERAS_MAX_OUTPUTS);
        return false;
    }
    if (i >= c->out_room) {
        int room = 2 * i + 4;
        ty_val *out = keras_alloc(c, (size_t)room, sizeof *out), *mask = keras_alloc(c, (size_t)room, sizeof *mask);
        for (int k = 0; k < c->n_out; k++)
            out[k] = c->out[k], mask[k] = c->mask_out[k];
        c->out = out, c->mask_out = mask, c->out_room = room;
    }
    for (; c->n_out <= i; c->n_out++)
        c->out[c->n_out] = c->mask_out[c->n_out] = TY_NONE;
    return true;
}

void keras_set(keras_call *c, int i, ty_val v)
{
    if (walk_has_output(c, i))
        c->out[i] = v;
}

void keras_set_mask(keras_call *c, int i, ty_val mask)
{
    if (walk_has_output(c, i))
        c->mask_out[i] = mask;
}

void *keras_alloc(keras_call *c, size_t n, size_t elem_bytes)
{
    return ty_arena_alloc_array(&c->walk->arena, elem_bytes, n);
}

void *keras_keep(keras_call *c, size_t n, size_t elem_bytes)
{
    return ty_arena_alloc_array(&c->walk->m->arena, elem_bytes, n);
}

const keras_arg *keras_argument(const keras_call *c, int position, const char *name)
{
    const keras_arg *found = NULL;
    if (position >= 0 && position < c->args->n_items)
        found = &c->args->item[position];
    for (int i = 0; i < c->kwargs->n_items && name; i++)
        if (strcmp(c->kwargs->item[i].key, name) == 0)
            found = &c->kwargs->item[i];
    return found && found->kind != KERAS_NONE ? found : NULL;
}

ty_val keras_argument_tensor(const keras_call *c, int position, const char *name)
{
    const keras_arg *arg = keras_argument(c, position, name);
    return arg && arg->kind == KERAS_TENSOR ? arg->val : TY_NONE;
}

void keras_add_loss(keras_call *c, ty_val loss)
{
    keras_add_penalty(c->walk, loss);
}

/* ---- faults -------------------------------------------------------------------------------------------------------
 */

static void walk_describe(const keras_call *c, ty_error *err)
{
    char text[160], value[100];
    ty_error_at(err, "%.120s: layer \"%.100s\" (%.60s)", c->walk->m->file.path, c->layer->path, c->layer->class_name);
    for (int i = 0; i < c->n_in && i < 6 && c->in; i++)
        if (c->in[i] != TY_NONE)
            ty_error_detail(err, "input  %d  %s", i, ty_type_text(ty_graph_type(c->g, c->in[i]), text, sizeof text));
    if (c->blamed)
        ty_error_detail(err, "config %.60s = %s", c->blamed->key ? c->blamed->key : "",
                        ty_doc_describe(c->blamed, value, sizeof value));
}

/* Faults of graph constructors are the call's. */
static void walk_take_graph_error(keras_call *c)
{
    ty_error err;
    if (!ty_graph_failed(c->g, &err))
        return;
    if (!c->failed) {
        c->err = err;
        c->err.place[0] = 0; /* ours says more */
        ty_error_wrap(&c->err, "%s", c->layer->class_name);
        c->failed = true;
    }
    ty_graph_clear_error(c->g);
}

static void walk_store_fault(keras_call *c)
{
    if (!c->failed || c->quiet)
        return;
    walk_describe(c, &c->err);
    keras_faults_add(&c->walk->faults, &c->err);
    c->quiet = true;
}

/* ---- one call -----------------------------------------------------------------------------------------------------
 */

static void walk_take_inputs(keras_call *c)
{
    keras_walk *w = c->walk;
    keras_flat flat = {0};
    if (c->args->n_items)
        keras_flatten(w, &c->args->item[0], &flat);
    else if (c->kwargs->n_items)
        keras_flatten(w, &c->kwargs->item[0], &flat);
    c->in = flat.val;
    c->mask = flat.mask;
    c->n_in = flat.n;
    const keras_arg *given = c->layer->what == KERAS_IS_OPERATION ? NULL : keras_argument(c, -1, "mask");
    if (!given)
        return;
    for (int i = 0; i < flat.n; i++) {
        const keras_arg *one = given->kind == KERAS_LIST ? &given->item[i] : given;
        bool is_there = given->kind == KERAS_LIST ? i < given->n_items : i == 0;
        flat.mask[i] = is_there && one->kind == KERAS_TENSOR ? one->val : TY_NONE;
    }
}

static void walk_take_training(keras_call *c)
{
    const keras_arg *training = keras_argument(c, -1, "training");
    c->training = c->walk->training;
    if (training && training->kind == KERAS_BOOL)
        c->training = training->flag && c->walk->training;
}

static void walk_net(keras_call *c);

static void walk_create(keras_call *c)
{
    keras_layer *layer = c->layer;
    if (layer->created || layer->what != KERAS_IS_ROW)
        return;
    if (!c->walk->is_opening)
        keras_fail(c, TY_E_INTERNAL, "was not met when the model was opened");
    else
        layer->row->create(c);
    layer->created = !c->failed;
}

static bool walk_inputs_ok(keras_call *c)
{
    if (c->layer->what == KERAS_IS_ROW && c->n_in == 0)
        keras_fail(c, TY_E_MODEL_FILE, "is called without a tensor");
    for (int i = 0; i < c->n_in && c->layer->what == KERAS_IS_ROW; i++)
        if (ty_b_rank(c->g, c->in[i]) == 0)
            keras_fail(c, TY_E_SHAPE, "takes tensors with a batch axis, found a single number");
    return !c->failed;
}

static void walk_emit(keras_call *c)
{
    if (!walk_inputs_ok(c))
        return;
    ty_graph_origin(c->g, c->layer->origin);
    walk_create(c);
    walk_take_graph_error(c);
    if (c->failed)
        return;
    ty_graph_origin(c->g, c->layer->origin);
    if (c->layer->what == KERAS_IS_NET)
        walk_net(c);
    else if (c->layer->what == KERAS_IS_OPERATION)
        c->layer->op->call(c);
    else
        c->layer->row->call(c);
    walk_take_graph_error(c);
    for (int i = 0; i < c->n_out && !c->failed; i++)
        if (c->out[i] == TY_NONE)
            keras_fail(c, TY_E_INTERNAL, "set no output %d", i);
    if (c->n_out == 0)
        keras_fail(c, TY_E_INTERNAL, "set no output");
}

/* keras/src/layers/layer.py: a mask belongs to the output of the same number. */
static void walk_pass_masks(keras_call *c)
{
    if (c->layer->what != KERAS_IS_ROW || c->layer->row->masks == KERAS_MASK_OWN)
        return;
    for (int i = 0; i < c->n_out; i++)
        c->mask_out[i] = c->layer->row->masks == KERAS_MASK_PASS && i < c->n_in ? c->mask[i] : TY_NONE;
}

/* "Normalize by batch size to ensure consistent regularization strength across batch sizes". */
static void walk_activity(keras_call *c)
{
    const ty_doc *regularizer = c->layer->what == KERAS_IS_ROW ? keras_config(c, "activity_regularizer") : NULL;
    for (int i = 0; regularizer && i < c->n_out && !c->failed; i++) {
        ty_val v = TY_NONE;
        if (keras_regularize(c->g, regularizer, c->out[i], &v, &c->err) < 0) {
            c->failed = true;
            return;
        }
        int rank = ty_b_rank(c->g, c->out[i]);
        if (v != TY_NONE)
            keras_add_loss(c, rank ? ty_b_mul_s(c->g, v, 1.0 / (double)ty_b_dim(c->g, c->out[i], 0)) : v);
    }
    walk_take_graph_error(c);
}

static bool walk_is_too_large(keras_call *c)
{
    keras_walk *w = c->walk;
    if (++w->n_calls > KERAS_MAX_CALLS)
        keras_fail(c, TY_E_LIMIT, "more than %d calls of layers", KERAS_MAX_CALLS);
    else if (w->depth > KERAS_MAX_DEPTH)
        keras_fail(c, TY_E_LIMIT, "layers inside layers beyond %d", KERAS_MAX_DEPTH);
    else if (w->arena.used_bytes + ty_graph_arena(w->g)->used_bytes > WALK_MAX_BYTES)
        keras_fail(c, TY_E_LIMIT, "the graph of the model needs more than 1 GiB");
    return c->failed;
}

bool keras_walk_call(keras_walk *w, keras_layer *layer, const keras_arg *args, const keras_arg *kwargs, bool bare,
                     keras_item *out)
{
    out->is_ready = false;
    if (layer->what == KERAS_IS_UNKNOWN || layer->what == KERAS_IS_INPUT || layer->what == KERAS_IS_PART)
        return false;
    keras_call *c = TY_NEW(&w->arena, keras_call);
    *c = (keras_call){.walk = w, .g = w->g, .layer = layer, .config = layer->config, .args = args, .kwargs = kwargs};
    walk_take_inputs(c);
    walk_take_training(c);
    bool training = w->training;
    w->training = c->training;
    w->depth++;
    if (!walk_is_too_large(c))
        walk_emit(c);
    w->depth--;
    w->training = training;
    if (!c->failed)
        walk_pass_masks(c);
    if (!c->failed && !bare)
        walk_activity(c);
    walk_store_fault(c);
    *out = (keras_item){c->out, c->mask_out, c->n_out, !c->failed};
    return !c->failed;
}

/* ---- a graph of calls ---------------------------------------------------------------------------------------------
 */

/* What came before, in a Sequential. */
static void walk_row_arguments(keras_walk *w, const keras_item *before, keras_arg *args, keras_arg *kwargs, bool *ready)
{
    keras_arg *list = TY_NEW(&w->arena, keras_arg);
    *list = (keras_arg){.kind = KERAS_LIST, .n_items = before->n_out};
    *ready = before->is_ready;
    list->item = TY_NEW_ARRAY(&w->arena, keras_arg, before->n_out + 1);
    for (int i = 0; i < before->n_out; i++)
        list->item[i] = (keras_arg){.kind = KERAS_TENSOR, .val = before->out[i], .mask = before->mask[i]};
    *args = (keras_arg){.kind = KERAS_LIST, .n_items = 1, .item = before->n_out == 1 ? list->item : list};
    *kwargs = (keras_arg){.kind = KERAS_DICT};
}

static void walk_node(keras_walk *w, const struct keras_net *net, keras_item *items, int i)
{
    keras_node *node = &net->node[i];
    keras_arg args, kwargs;
    ty_error err = {0};
    bool ready = true;
    if (items[i].is_ready || node->layer->what == KERAS_IS_INPUT)
        return;
    if (net->is_sequential)
        walk_row_arguments(w, &items[i - 1], &args, &kwargs, &ready);
    else if (!keras_read_arguments(w, net, items, node->data, &args, &kwargs, &ready, &err)) {
        ty_error_wrap(&err, "%.60s", node->layer->class_name);
        ty_error_at(&err, "%.120s: layer \"%.100s\" (%.60s)", w->m->file.path, node->layer->path,
                    node->layer->class_name);
        keras_faults_add(&w->faults, &err);
        return;
    }
    if (ready)
        keras_walk_call(w, node->layer, &args, &kwargs, false, &items[i]);
}

static keras_item *walk_items(keras_walk *w, const struct keras_net *net)
{
    return TY_NEW_ARRAY(&w->arena, keras_item, net->n_nodes + 1);
}

/* A model converts what it is given to the types that its inputs have. */
static ty_val walk_input_value(keras_walk *w, const keras_port *port, ty_val v)
{
    if (v == TY_NONE || port->dtype >= TY_N_DTYPES)
        return v;
    return ty_b_cast(w->g, v, port->dtype);
}

/* Runs the nodes. False: an output is not there. */
static bool walk_graph(keras_walk *w, const struct keras_net *net, const ty_val *in, const ty_val *mask, ty_val *out,
                       ty_val *mask_out)
{
    keras_item *items = walk_items(w, net);
    for (int i = 0; i < net->n_inputs; i++) {
        ty_val *pair = TY_NEW_ARRAY(&w->arena, ty_val, 2);
        pair[0] = walk_input_value(w, &net->input[i], in[i]);
        pair[1] = mask ? mask[i] : TY_NONE;
        items[net->input[i].node] = (keras_item){&pair[0], &pair[1], 1, true};
    }
    for (int i = 0; i < net->n_nodes; i++)
        walk_node(w, net, items, net->order[i]);
    bool complete = true;
    for (int i = 0; i < net->n_outputs; i++) {
        const keras_item *item = &items[net->output[i].node];
        bool there = item->is_ready && net->output[i].tensor < item->n_out;
        out[i] = there ? item->out[net->output[i].tensor] : TY_NONE;
        mask_out[i] = there ? item->mask[net->output[i].tensor] : TY_NONE;
        complete = complete && there;
    }
    return complete;
}

static void walk_net(keras_call *c)
{
    const struct keras_net *net = c->layer->net;
    if (c->n_in != net->n_inputs)
        keras_fail(c, TY_E_SHAPE, "the model takes %d inputs, it is called with %d", net->n_inputs, c->n_in);
    else if (walk_has_output(c, net->n_outputs - 1) && !walk_graph(c->walk, net, c->in, c->mask, c->out, c->mask_out))
        c->failed = c->quiet = true; /* its own layers' faults are stored */
}

/* Weights that are trained have a part in the loss if they are regularized. */
static void walk_regularize(keras_walk *w)
{
    for (int i = 0; i < w->m->n_weights; i++) {
        const keras_weight *weight = w->m->weight[i];
        ty_error err = {0};
        ty_val v = TY_NONE;
        if (!weight->regularizer || !weight->trainable)
            continue;
        ty_graph_origin(w->g, weight->layer->origin);
        if (keras_regularize(w->g, weight->regularizer, keras_weight_value(w, weight), &v, &err) < 0) {
            ty_error_at(&err, "%.120s: layer \"%.100s\" (%.60s)", w->m->file.path, weight->layer->path,
                        weight->layer->class_name);
            keras_faults_add(&w->faults, &err);
        } else if (v != TY_NONE)
            keras_add_penalty(w, v);
    }
}

bool keras_walk_model(keras_walk *w, const ty_val *inputs, ty_val *outputs, ty_val *masks)
{
    if (w->m->root->what != KERAS_IS_NET)
        return false;
    bool complete = walk_graph(w, w->m->root->net, inputs, NULL, outputs, masks);
    walk_regularize(w);
    ty_error err;
    if (ty_graph_failed(w->g, &err)) {
        ty_graph_clear_error(w->g);
        keras_faults_add(&w->faults, &err);
    }
    if (!complete && w->faults.n_all == 0 && w->m->faults.n_all == 0) {
        ty_error_set(&err, TY_E_MODEL_FILE, "an output of the model hangs on no input");
        ty_error_at(&err, "%s", w->m->file.path);
        keras_faults_add(&w->faults, &err);
    }
    ty_graph_origin(w->g, "");
    return complete && w->faults.n_all == 0;
}

/* ---- layers inside layers -----------------------------------------------------------------------------------------
 */

static void walk_wrap(keras_walk *w, keras_apply *a, keras_arg *args)
{
    keras_arg *list = TY_NEW(&w->arena, keras_arg);
    *list = (keras_arg){.kind = KERAS_LIST, .n_items = a->n_in};
    list->item = TY_NEW_ARRAY(&w->arena, keras_arg, a->n_in + 1);
    for (int i = 0; i < a->n_in; i++)
        list->item[i] = (keras_arg){.kind = KERAS_TENSOR, .val = a->in[i], .mask = a->mask ? a->mask[i] : TY_NONE};
    *args = (keras_arg){.kind = KERAS_LIST, .n_items = 1, .item = a->n_in == 1 && !a->in_is_list ? list->item : list};
}

bool keras_apply_layer(keras_call *c, keras_apply *a)
{
    keras_walk *w = c->walk;
    keras_arg args, none = {.kind = KERAS_DICT};
    keras_item item = {0};
    walk_wrap(w, a, &args);
    int before = w->faults.n_all;
    bool done = !c->failed && keras_walk_call(w, a->layer, &args, a->kwargs ? a->kwargs : &none, a->bare, &item);
    ty_graph_origin(c->g, c->layer->origin);
    if (!done && !c->failed) {
        c->failed = true;
        c->quiet = w->faults.n_all > before || a->layer->what == KERAS_IS_UNKNOWN;
        if (!c->quiet)
            ty_error_set(&c->err, TY_E_INTERNAL, "layer \"%.100s\" could not be applied", a->layer->path);
    }
    a->out = item.out;
    a->mask_out = item.mask;
    a->n_out = item.n_out;
    return done;
}

bool keras_create_layer(keras_call *c, keras_layer *layer, const ty_val *in, int n_in)
{
    keras_walk *w = c->walk;
    keras_arg args, none = {.kind = KERAS_DICT};
    keras_apply a = {.layer = layer, .in = in, .n_in = n_in};
    walk_wrap(w, &a, &args);
    keras_call *inner = TY_NEW(&w->arena, keras_call);
    *inner =
        (keras_call){.walk = w, .g = w->g, .layer = layer, .config = layer->config, .args = &args, .kwargs = &none};
    walk_take_inputs(inner);
    walk_take_training(inner);
    if (walk_inputs_ok(inner))
        walk_create(inner);
    walk_take_graph_error(inner);
    walk_store_fault(inner);
    if (inner->failed || layer->what == KERAS_IS_UNKNOWN)
        c->failed = c->quiet = true;
    return !c->failed;
}

const char *keras_asset(keras_call *c, const char *name)
{
    const char *text = NULL, *path = ty_arena_printf(&c->walk->arena, "assets/%s/%s", c->layer->group, name);
    if (keras_file_member(&c->walk->m->file, path, &c->walk->arena, &text, &c->err) < 0)
        c->failed = true;
    return text;
}
