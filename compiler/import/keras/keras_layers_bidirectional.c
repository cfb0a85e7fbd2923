/* keras_layers_bidirectional.c - Bidirectional: two recurrent layers, one of which goes backwards, and what is made of
 * their outputs. */
#include "compiler/import/keras/keras_cells.h"

#include <stdio.h>
#include <string.h>

typedef enum merge { MERGE_CONCAT, MERGE_SUM, MERGE_MUL, MERGE_AVE, MERGE_NONE } merge;

typedef struct both {
    keras_layer *forward, *backward;
    merge merge;
} both;

/* Keras 3 writes names with their prefix; older files have one layer without it. */
static const char *both_name(keras_call *c, const ty_doc *serialized, const char *prefix)
{
    const ty_doc *name = ty_doc_find(ty_doc_find(serialized, "config"), "name");
    size_t n = strlen(prefix);
    if (!name || name->kind != TY_DOC_STRING || strncmp(name->string, prefix, n) == 0)
        return NULL;
    size_t room = n + strlen(name->string) + 1;
    char *out = keras_keep(c, room, 1);
    snprintf(out, room, "%s%s", prefix, name->string);
    return out;
}

static keras_rnn *both_part(keras_call *c, keras_layer *layer)
{
    if (!layer || !keras_create_layer(c, layer, c->in, 1))
        return NULL;
    keras_rnn *r = keras_rnn_of(layer);
    if (!r)
        keras_fail(c, TY_E_UNSUPPORTED, "Bidirectional: expected LSTM, GRU, SimpleRNN or RNN inside, found %s",
                   layer->class_name);
    return r;
}

void keras_create_bidirectional(keras_call *c)
{
    static const char *const merges[] = {"concat", "sum", "mul", "ave", NULL};
    const ty_doc *forward = keras_config(c, "layer"), *backward = keras_config(c, "backward_layer");
    const ty_doc *given = ty_doc_find(c->config, "merge_mode");
    both *b = keras_keep(c, 1, sizeof *b);
    b->merge =
        given && given->kind == TY_DOC_NULL ? MERGE_NONE : (merge)keras_choice(c, "merge_mode", "concat", merges);
    if (c->failed)
        return;
    b->forward = keras_sub(c, "forward_layer", forward, both_name(c, forward, "forward_"));
    keras_rnn *to = both_part(c, b->forward);
    if (!to)
        return;
    b->backward = backward ? keras_sub(c, "backward_layer", backward, NULL)
                           : keras_sub(c, "backward_layer", forward, both_name(c, forward, "backward_"));
    keras_rnn *back = both_part(c, b->backward);
    if (!back)
        return;
    if (!backward)
        back->backwards = true;
    if (to->backwards == back->backwards || to->sequences != back->sequences || to->states != back->states) {
        keras_fail(c, TY_E_ATTRIBUTE,
                   "Bidirectional: expected layers that go in different directions and return the same");
        return;
    }
    to->zero_masked = back->zero_masked = to->sequences;
    c->layer->note = b;
}

/* Half of the initial states as an argument of their own. */
static keras_arg both_states(keras_arg *list, const keras_arg *all, bool second)
{
    int half = all->n_items / 2;
    *list = (keras_arg){.kind = KERAS_LIST, .item = all->item + (second ? half : 0), .n_items = half};
    list->key = "initial_state";
    return (keras_arg){.kind = KERAS_LIST, .item = list, .n_items = 1};
}

static bool both_apply(keras_call *c, keras_apply *a, keras_layer *layer, bool second)
{
    const keras_arg *states = keras_argument(c, 1, "initial_state");
    bool takes_mask = !states || keras_argument(c, 2, "mask");
    *a = (keras_apply){.layer = layer, .in = c->in, .mask = takes_mask ? c->mask : NULL, .n_in = 1};
    keras_arg list, kwargs;
    if (states && (states->kind != KERAS_LIST || states->n_items % 2)) {
        keras_fail(c, TY_E_SHAPE, "Bidirectional: expected initial states for both directions");
        return false;
    }
    if (states) {
        kwargs = both_states(&list, states, second);
        a->kwargs = &kwargs;
    }
    return keras_apply_layer(c, a);
}

/* One output, or with merge_mode None two; returns how many. */
static int both_merge(keras_call *c, const both *b, ty_val y, ty_val back)
{
    ty_graph *g = c->g;
    ty_val merged = y;
    if (b->merge == MERGE_CONCAT)
        merged = ty_b_concat(g, (ty_val[]){y, back}, 2, ty_b_rank(g, y) - 1);
    else if (b->merge == MERGE_MUL)
        merged = ty_b_mul(g, y, back);
    else if (b->merge != MERGE_NONE)
        merged = ty_b_add(g, y, back);
    keras_set(c, 0, b->merge == MERGE_AVE ? ty_b_mul_s(g, merged, 0.5) : merged);
    if (b->merge == MERGE_NONE)
        keras_set(c, 1, back);
    return b->merge == MERGE_NONE ? 2 : 1;
}

void keras_call_bidirectional(keras_call *c)
{
    const both *b = c->layer->note;
    keras_apply to, back;
    if (!both_apply(c, &to, b->forward, false) || !both_apply(c, &back, b->backward, true))
        return;
    bool sequences = keras_rnn_of(b->forward)->sequences;
    int n = both_merge(c, b, to.out[0], sequences ? ty_b_reverse(c->g, back.out[0], 2) : back.out[0]);
    for (int i = 0; i < n; i++)
        keras_set_mask(c, i, sequences && c->mask ? c->mask[0] : TY_NONE);
    for (int i = 1; i < to.n_out; i++)
        keras_set(c, n++, to.out[i]);
    for (int i = 1; i < back.n_out; i++)
        keras_set(c, n++, back.out[i]);
}
