/* hf_modernbert.c - ModernBERT (Warner et al. 2024): norms in front of halves, rotary positions, gated layers, and
 * layers that see a window alone between those that see all. Source of names and formulas:
 * transformers/models/modernbert/modeling_modernbert.py.
 */
#include "include/trainyard/model.h"

#include "compiler/import/huggingface/hf_rotary.h"

#include <math.h>
#include <string.h>

/* What all layers of one kind share. */
typedef struct sight {
    hf_rotary rotary;
    ty_var mask; /* bool [B, 1, S or 1, S] or [S, S]; {0}: all is seen */
    ty_var any;  /* f32 [B, S, 1]: 0 where padding sees nothing in its window; {0}: all see something */
} sight;

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

/* Weights start by deviations of their own; there they are cut at initializer_cutoff_factor, which is not done here. */
static ty_var linear(hf_net *n, const char *name, ty_var x, int64_t out, bool bias, double deviation)
{
    return ty_linear(n->net, name, x, out, .no_bias = !bias, .weight = ty_normal(0, deviation), .bias = ty_zeros());
}

/* Of layers whose result is added to their input. */
static double adding_deviation(hf_net *n)
{
    return n->range / sqrt(2.0 * (double)hf_size(n, "num_hidden_layers"));
}

static ty_var norm(hf_net *n, const char *name, ty_var x)
{
    bool bias = hf_flag(n, "norm_bias", false);
    return ty_layer_norm(n->net, name, x, .eps = hf_number(n, "norm_eps", 1e-5), .no_bias = !bias);
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

/* bool [S, S]: what is at most local_attention / 2 positions away, on both sides. */
static ty_var window(hf_net *n, int64_t length)
{
    ty_net *net = n->net;
    double reach = (double)(hf_size_or(n, "local_attention", 128) / 2);
    ty_var query = ty_iota(net, "i64", ty_dims(length, length), 0);
    ty_var key = ty_iota(net, "i64", ty_dims(length, length), 1);
    ty_var not_far = ty_le(net, key, ty_shift(net, query, reach));
    return ty_and(net, not_far, ty_le(net, query, ty_shift(net, key, reach)));
}

/* mask [B, 1, S, S]: which of the queries see a key. */
static ty_var any_seen(ty_net *net, ty_var mask)
{
    ty_var any = ty_reduce_max(net, ty_cast(net, mask, "f32"), ty_dims(3), true);
    return ty_reshape(net, any, ty_dims(ty_dim(net, mask, 0), ty_dim(net, mask, 2), 1));
}

/* Numbers of a head. */
static int64_t head_size(hf_net *n)
{
    int64_t size = hf_size(n, "hidden_size"), heads = hf_size(n, "num_attention_heads");
    if (size % heads)
        hf_refuse(n, "num_attention_heads", "heads that do not divide the numbers of a position (hidden_size)");
    return size / heads;
}

/* rope_parameters.KIND; in older files its base is a key of its own, and rope_scaling is for both kinds. */
static hf_rotary rotary_of(hf_net *n, int64_t length, bool is_local)
{
    const ty_doc *kinds = hf_find(n, "rope_parameters"), *scaling = hf_find(n, "rope_scaling");
    const ty_doc *section = ty_doc_find(kinds, is_local ? "sliding_attention" : "full_attention");
    double theta = is_local ? hf_number(n, "local_rope_theta", 10000) : hf_number(n, "global_rope_theta", 160000);
    if (kinds && scaling)
        hf_refuse(n, "rope_scaling", "it stands beside rope_parameters, which says the same");
    return hf_rotary_by(n, kinds ? section : scaling, length, head_size(n), theta);
}

static sight sight_of(hf_net *n, ty_var words, ty_var mask, bool is_local)
{
    int64_t length = ty_dim(n->net, words, 1);
    sight s = {.rotary = rotary_of(n, length, is_local), .mask = mask};
    if (is_local)
        s.mask = mask.id ? ty_and(n->net, mask, window(n, length)) : window(n, length);
    if (is_local && mask.id)
        s.any = any_seen(n->net, s.mask);
    return s;
}

/* What layer i sees: by layer_types, in older files by a number. */
static bool is_local(hf_net *n, int64_t i, int64_t layers)
{
    const ty_doc *kinds = hf_find(n, "layer_types"), *d = ty_doc_at(kinds, (size_t)i);
    const char *kind = d && d->kind == TY_DOC_STRING ? d->string : "";
    if (!kinds)
        return i % hf_size_or(n, "global_attn_every_n_layers", 3) != 0;
    if (ty_doc_len(kinds) != (size_t)layers)
        hf_refuse(n, "layer_types", "expected a kind for each of num_hidden_layers layers");
    else if (strcmp(kind, "full_attention") != 0 && strcmp(kind, "sliding_attention") != 0)
        hf_refuse(n, "layer_types", "layers are full_attention or sliding_attention here");
    return strcmp(kind, "sliding_attention") == 0;
}

/* What sees nothing gets zeros (torch's scaled_dot_product_attention). */
static ty_var attend(hf_net *n, ty_var x, const sight *s)
{
    ty_net *net = n->net;
    int64_t heads = hf_size(n, "num_attention_heads"), size = ty_dim(net, x, 2);
    bool bias = hf_flag(n, "attention_bias", false);
    ty_scope(net, "attn");
    ty_var qkv = linear(n, "Wqkv", x, 3 * size, bias, n->range);
    ty_var q = hf_rotate(n, hf_split_heads(n, ty_slice(net, qkv, 2, 0, size), heads), &s->rotary);
    ty_var k = hf_rotate(n, hf_split_heads(n, ty_slice(net, qkv, 2, size, 2 * size), heads), &s->rotary);
    ty_var v = hf_split_heads(n, ty_slice(net, qkv, 2, 2 * size, 3 * size), heads);
    ty_var y = ty_attention(net, q, k, v, .mask = s->mask, .dropout = hf_number(n, "attention_dropout", 0));
    y = hf_join_heads(n, y);
    y = s->any.id ? ty_mul(net, y, s->any) : y;
    y = linear(n, "Wo", y, size, bias, adding_deviation(n));
    ty_end(net);
    return hf_dropout(n, y, "attention_dropout", 0);
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

static ty_var gated(hf_net *n, ty_var x)
{
    ty_net *net = n->net;
    int64_t size = ty_dim(net, x, 2), inner = hf_size(n, "intermediate_size");
    bool bias = hf_flag(n, "mlp_bias", false);
    ty_scope(net, "mlp");
    ty_var both = linear(n, "Wi", x, 2 * inner, bias, n->range);
    ty_var y = hf_activation(n, hf_text(n, "hidden_activation", "gelu"), ty_slice(net, both, 2, 0, inner));
    y = hf_dropout(n, ty_mul(net, y, ty_slice(net, both, 2, inner, 2 * inner)), "mlp_dropout", 0);
    y = linear(n, "Wo", y, size, bias, adding_deviation(n));
    ty_end(net);
    return y;
}

/* What comes from the embeddings has a norm already. */
static ty_var layer(hf_net *n, ty_var x, const sight *s, bool is_first)
{
    ty_net *net = n->net;
    x = ty_add(net, x, attend(n, is_first ? x : norm(n, "attn_norm", x), s));
    return ty_add(net, x, gated(n, norm(n, "mlp_norm", x)));
}

static ty_var embeddings(hf_net *n, ty_var words)
{
    ty_net *net = n->net;
    ty_scope(net, "embeddings");
    ty_var x = hf_padded_table(n, "tok_embeddings", words, hf_size(n, "vocab_size"), hf_size(n, "hidden_size"));
    x = hf_dropout(n, norm(n, "norm", x), "embedding_dropout", 0);
    ty_end(net);
    return x;
}

/* seen: as of hf_seen. */
static ty_var network(hf_net *n, ty_var *seen)
{
    ty_net *net = n->net;
    int64_t layers = hf_layers(n, "num_hidden_layers", 0);
    bool is_inside = n->head->task != HF_NO_TASK;
    ty_var words = hf_words(n);
    *seen = hf_seen(n, words);
    ty_var mask = hf_key_mask(n, *seen);
    const sight all = sight_of(n, words, mask, false), near = sight_of(n, words, mask, true);
    if (is_inside)
        ty_scope(net, "model");
    ty_var x = embeddings(n, words);
    for (int64_t i = 0; i < layers && !hf_failed(n); i++) {
        ty_scope(net, ty_text(net, "layers.%d", (int)i));
        x = layer(n, x, is_local(n, i, layers) ? &near : &all, i == 0);
        ty_end(net);
    }
    x = norm(n, "final_norm", x);
    if (is_inside)
        ty_end(net);
    return x;
}

/* ---- heads ------------------------------------------------------------------------------------------------------- */

static void bare(hf_net *n)
{
    ty_var seen;
    ty_output(n->net, "last_hidden_state", network(n, &seen));
}

/* What all heads begin with. */
static ty_var prediction(hf_net *n, ty_var x)
{
    ty_net *net = n->net;
    ty_scope(net, "head");
    x = linear(n, "dense", x, ty_dim(net, x, -1), hf_flag(n, "classifier_bias", false), adding_deviation(n));
    x = norm(n, "norm", hf_activation(n, hf_text(n, "classifier_activation", "gelu"), x));
    ty_end(net);
    return x;
}

static void hidden_words(hf_net *n)
{
    ty_var seen, x = prediction(n, network(n, &seen));
    int64_t rows = hf_size(n, "vocab_size"), size = hf_size(n, "hidden_size");
    const char *bias = hf_flag(n, "decoder_bias", true) ? "decoder.bias" : NULL;
    const char *table = hf_tied_name(n, "model.embeddings.tok_embeddings.weight", "decoder.weight", true);
    ty_output(n->net, "logits", hf_tied_logits(n, x, table, rows, size, bias));
}

/* Mean of the positions that hold words, [B, E]. */
static ty_var mean(hf_net *n, ty_var x, ty_var seen)
{
    ty_net *net = n->net;
    if (seen.id == 0)
        return ty_reduce_mean(net, x, ty_dims(1), false);
    ty_var weight = ty_unsqueeze(net, ty_cast(net, seen, "f32"), 2);
    ty_var sum = ty_reduce_sum(net, ty_mul(net, x, weight), ty_dims(1), false);
    return ty_div(net, sum, ty_reduce_sum(net, weight, ty_dims(1), false));
}

static ty_var classifier(hf_net *n, ty_var x, int64_t classes)
{
    double deviation = 1 / sqrt((double)hf_size(n, "hidden_size"));
    return linear(n, "classifier", hf_dropout(n, prediction(n, x), "classifier_dropout", 0), classes, true, deviation);
}

static void classes(hf_net *n)
{
    const char *pooling = hf_text(n, "classifier_pooling", "cls");
    bool is_mean = strcmp(pooling, "mean") == 0;
    if (!is_mean && strcmp(pooling, "cls") != 0)
        hf_refuse(n, "classifier_pooling", "texts are pooled by cls or mean");
    ty_var seen, x = network(n, &seen);
    ty_output(n->net, "logits", classifier(n, is_mean ? mean(n, x, seen) : hf_first(n, x), n->labels));
}

static void tokens(hf_net *n)
{
    ty_var seen, x = network(n, &seen);
    ty_output(n->net, "logits", classifier(n, x, n->labels));
}

static void questions(hf_net *n)
{
    ty_var seen, x = network(n, &seen);
    hf_answer(n, classifier(n, x, 2));
}

static const hf_head heads[] = {{"Model", HF_NO_TASK, bare},
                                {"ForMaskedLM", HF_WORDS, hidden_words},
                                {"ForSequenceClassification", HF_CLASSES, classes},
                                {"ForTokenClassification", HF_TOKENS, tokens},
                                {"ForQuestionAnswering", HF_QUESTIONS, questions},
                                {NULL, HF_NO_TASK, NULL}};

const hf_family hf_family_modernbert = {.class_name = "ModernBert", .base = "model", .head = heads, .pad = 50283};
