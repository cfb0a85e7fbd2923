/* keras_layers_time.c - TimeDistributed and Masking. */
#include "compiler/import/keras/keras.h"

#include <string.h>

/* ---- TimeDistributed
 * -------------------------------------------------------------------------------------------------
 */

static ty_val time_step(ty_graph *g, ty_val x, int64_t t)
{
    return x == TY_NONE ? x : ty_b_squeeze(g, ty_b_slice_axis(g, x, 1, t, t + 1), 1);
}

static bool time_input_ok(keras_call *c)
{
    char found[160];
    if (c->n_in == 1 && ty_b_rank(c->g, c->in[0]) >= 3 && ty_b_dim(c->g, c->in[0], 1) >= 1)
        return true;
    keras_fail(c, TY_E_SHAPE, "TimeDistributed: expected an input [batch, steps, ...] of at least one step, found %s",
               ty_type_text(ty_graph_type(c->g, c->in[0]), found, sizeof found));
    return false;
}

void keras_create_time_distributed(keras_call *c)
{
    if (!time_input_ok(c))
        return;
    keras_layer *inner = keras_sub(c, "layer", keras_config(c, "layer"), NULL);
    ty_val step = time_step(c->g, c->in[0], 0);
    if (inner && keras_create_layer(c, inner, &step, 1))
        c->layer->note = inner;
}

/* Something inside computes with more than one row at a time. */
static bool time_mixes_rows(const keras_layer *layer)
{
    bool mixes =
        strcmp(layer->class_name, "BatchNormalization") == 0 || strcmp(layer->class_name, "SpectralNormalization") == 0;
    for (int i = 0; i < layer->n_subs && !mixes; i++)
        mixes = time_mixes_rows(layer->sub[i]);
    return mixes;
}

/* The dims of v with its first n ones put together, or the first one taken apart into two. */
static ty_val time_joined(ty_graph *g, ty_val v)
{
    const ty_type t = *ty_graph_type(g, v);
    int64_t dim[TY_MAX_RANK] = {t.dim[0] * t.dim[1]};
    memcpy(dim + 1, t.dim + 2, sizeof *dim * (size_t)(t.rank - 2));
    return ty_b_reshape(g, v, t.rank - 1, dim);
}

static ty_val time_split(ty_graph *g, ty_val v, int64_t batch, int64_t steps)
{
    const ty_type t = *ty_graph_type(g, v);
    int64_t dim[TY_MAX_RANK] = {batch, steps};
    memcpy(dim + 2, t.dim + 1, sizeof *dim * (size_t)(t.rank - 1));
    return ty_b_reshape(g, v, t.rank + 1, dim);
}

/* All steps of all rows as one batch. */
static ty_val time_at_once(keras_call *c, keras_layer *inner, ty_val mask)
{
    ty_graph *g = c->g;
    ty_val x = time_joined(g, c->in[0]), m = mask == TY_NONE ? mask : time_joined(g, mask);
    keras_apply a = {.layer = inner, .in = &x, .mask = &m, .n_in = 1, .bare = true};
    if (!keras_apply_layer(c, &a) || a.out[0] == TY_NONE)
        return TY_NONE;
    if (ty_b_rank(g, a.out[0]) < 1 || ty_b_rank(g, a.out[0]) >= TY_MAX_RANK)
        return ty_graph_fail(g, TY_E_SHAPE, "a step's result has no place for an axis of steps");
    return time_split(g, a.out[0], ty_b_dim(g, c->in[0], 0), ty_b_dim(g, c->in[0], 1));
}

static ty_val time_by_steps(keras_call *c, keras_layer *inner, ty_val mask)
{
    ty_graph *g = c->g;
    int64_t steps = ty_b_dim(g, c->in[0], 1);
    ty_val *y = keras_alloc(c, (size_t)steps, sizeof *y);
    for (int64_t t = 0; t < steps; t++) {
        ty_val x = time_step(g, c->in[0], t), m = time_step(g, mask, t);
        keras_apply a = {.layer = inner, .in = &x, .mask = &m, .n_in = 1, .bare = true};
        if (!keras_apply_layer(c, &a) || a.out[0] == TY_NONE)
            return TY_NONE;
        y[t] = ty_b_unsqueeze(g, a.out[0], 1);
    }
    return ty_b_concat_many(g, y, (int)steps, 1);
}

void keras_call_time_distributed(keras_call *c)
{
    if (!time_input_ok(c))
        return;
    keras_layer *inner = c->layer->note;
    ty_val mask = c->mask ? c->mask[0] : TY_NONE;
    /* What is left of a mask [B, T] in a step is one number a row, which no layer takes for its steps. */
    ty_val within = mask != TY_NONE && ty_b_rank(c->g, mask) > 2 ? mask : TY_NONE;
    bool apart = c->training && time_mixes_rows(inner);
    keras_set(c, 0, apart ? time_by_steps(c, inner, within) : time_at_once(c, inner, within));
}

/* ---- Masking
 * ---------------------------------------------------------------------------------------------------------
 */

void keras_call_masking(keras_call *c)
{
    ty_graph *g = c->g;
    const ty_doc *given = keras_config(c, "mask_value");
    if (given && given->kind != TY_DOC_INT && given->kind != TY_DOC_FLOAT) {
        keras_fail_key(c, "mask_value", "must be a number");
        return;
    }
    ty_val x = keras_float(c, c->in[0]);
    int last = ty_b_rank(g, x) - 1;
    if (last < 1) {
        keras_fail(c, TY_E_SHAPE, "Masking: expected an input of at least 2 dimensions");
        return;
    }
    ty_val differs = ty_b_ne(g, x, ty_b_full_like(g, x, keras_number(c, "mask_value", 0)));
    ty_val live = ty_b_reduce(g, differs, TY_MAX, 1u << last, true);
    keras_set(c, 0, ty_b_select(g, live, x, ty_b_full_like(g, x, 0)));
    keras_set_mask(c, 0, ty_b_squeeze(g, live, last));
}
