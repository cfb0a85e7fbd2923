/* keras_layers_attention.c - Attention and AdditiveAttention on [query, value] or [query, value, key].
 *
 * Letters: B batch, T queries, S keys, D size. Scores of keys that do not count lose 1e9.
 */
#include "compiler/import/keras/keras_attend.h"

enum { ATTENTION_DOT, ATTENTION_ADDITIVE }; /* row->arg */

static bool attention_inputs_ok(keras_call *c)
{
    bool good = c->n_in == 2 || c->n_in == 3;
    for (int i = 0; i < c->n_in && good; i++)
        good = ty_b_rank(c->g, c->in[i]) == 3;
    if (!good)
        keras_fail(c, TY_E_SHAPE, "%s: expected a list of query, value and perhaps key, each of 3 dimensions",
                   c->layer->class_name);
    return good;
}

void keras_create_attention(keras_call *c)
{
    if (!attention_inputs_ok(c))
        return;
    bool additive = c->layer->row->arg == ATTENTION_ADDITIVE;
    keras_spec scale = {.label = "scale", .initializer_absent = "ones"};
    if (additive) {
        scale.rank = 1;
        scale.dim[0] = ty_b_dim(c->g, c->in[0], 2);
        scale.initializer_absent = "glorot_uniform";
    }
    if (keras_flag(c, "use_scale", additive))
        keras_add_weight(c, &scale);
    static const char *const modes[] = {"dot", "concat", NULL};
    if (!additive && keras_choice(c, "score_mode", "dot", modes) == 1)
        keras_add_weight(c, &(keras_spec){.label = "concat_score_weight", .initializer_absent = "ones"});
}

/* sum(scale tanh(q + k)), and Attention's concat mode: weight sum(tanh(scale (q + k))). */
static ty_val attention_added(keras_call *c, ty_val q, ty_val k)
{
    ty_graph *g = c->g;
    ty_val scale = keras_var(c, "scale"), weight = keras_var(c, "concat_score_weight");
    ty_val sum = ty_b_add(g, ty_b_unsqueeze(g, q, 2), ty_b_unsqueeze(g, k, 1));
    if (weight != TY_NONE && scale != TY_NONE)
        sum = ty_b_mul(g, sum, scale);
    sum = ty_b_unary(g, TY_OP_TANH, sum);
    if (weight == TY_NONE && scale != TY_NONE)
        sum = ty_b_mul(g, sum, scale);
    sum = ty_b_sum(g, sum, 1u << 3, false);
    return weight == TY_NONE ? sum : ty_b_mul(g, sum, weight);
}

static ty_val attention_scores(keras_call *c, ty_val q, ty_val k)
{
    ty_graph *g = c->g;
    ty_val scale = keras_var(c, "scale");
    if (c->layer->row->arg == ATTENTION_ADDITIVE || keras_var(c, "concat_score_weight") != TY_NONE)
        return attention_added(c, q, k);
    ty_val scores = ty_b_dot(g, q, k, false, true);
    return scale == TY_NONE ? scores : ty_b_mul(g, scores, scale);
}

static bool attention_flag(const keras_call *c, int position, const char *name)
{
    const keras_arg *a = keras_argument(c, position, name);
    return a && a->kind == KERAS_BOOL && a->flag;
}

/* The mask of the values, and the causal one, as what is added to the scores; TY_NONE: nothing. */
static ty_val attention_mask(keras_call *c, ty_val scores)
{
    ty_graph *g = c->g;
    ty_val mask = c->mask ? c->mask[1] : TY_NONE;
    if (mask != TY_NONE)
        mask = ty_b_unsqueeze(g, ty_b_cast(g, mask, TY_BOOL), 1);
    if (attention_flag(c, 4, "use_causal_mask"))
        mask = keras_and(g, mask, keras_causal(g, ty_b_dim(g, scores, 1), ty_b_dim(g, scores, 2), true, 0));
    if (mask == TY_NONE)
        return mask;
    ty_dtype dtype = ty_b_dtype(g, scores);
    double far = dtype == TY_F16 ? -65504 : -1e9;
    return ty_b_select(g, mask, ty_b_scalar(g, dtype, 0), ty_b_scalar(g, dtype, far));
}

void keras_call_attention(keras_call *c)
{
    ty_graph *g = c->g;
    if (!attention_inputs_ok(c))
        return;
    ty_val q = keras_float(c, c->in[0]), v = keras_float(c, c->in[1]);
    ty_val scores = attention_scores(c, q, c->n_in > 2 ? keras_float(c, c->in[2]) : v);
    if (scores == TY_NONE)
        return;
    ty_val added = attention_mask(c, scores);
    if (added != TY_NONE)
        scores = ty_b_add(g, scores, added);
    ty_val weights = ty_b_softmax(g, scores, 2, false);
    ty_val y = ty_b_dot(g, keras_dropped(c, weights, keras_number(c, "dropout", 0)), v, false, false);
    ty_val of_query = c->mask ? c->mask[0] : TY_NONE;
    if (of_query != TY_NONE)
        y = ty_b_select(g, ty_b_unsqueeze(g, ty_b_cast(g, of_query, TY_BOOL), 2), y, ty_b_full_like(g, y, 0));
    keras_set(c, 0, y);
    keras_set_mask(c, 0, of_query);
    if (attention_flag(c, 3, "return_attention_scores"))
        keras_set(c, 1, weights);
}
