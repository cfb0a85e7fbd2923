/* hf_albert.c - ALBERT (Lan et al. 2019): BERT whose layers share weights, and whose tables are narrower than layers.
 * Source of names and formulas: transformers/models/albert/modeling_albert.py.
 *
 * Layers fall into num_hidden_groups groups. All layers of a group are the same inner_group_num layers, one behind the
 * other.
 */
#include "include/trainyard/model.h"

#include "compiler/import/huggingface/hf_net.h"

#define WORDS "albert.embeddings.word_embeddings.weight"

static ty_var activate(hf_net *n, ty_var x)
{
    return hf_activation(n, hf_text(n, "hidden_act", "gelu_new"), x);
}

static ty_var norm(hf_net *n, const char *name, ty_var x)
{
    return hf_layer_norm(n, name, x, hf_number(n, "layer_norm_eps", 1e-12));
}

static ty_var hidden_dropout(hf_net *n, ty_var x)
{
    return hf_dropout(n, x, "hidden_dropout_prob", 0);
}

/* ---- embeddings -------------------------------------------------------------------------------------------------- */

static ty_var embeddings(hf_net *n, ty_var words, ty_var types)
{
    ty_net *net = n->net;
    int64_t size = hf_size_or(n, "embedding_size", 128);
    ty_scope(net, "embeddings");
    ty_var x = hf_padded_table(n, "word_embeddings", words, hf_size(n, "vocab_size"), size);
    x = ty_add(net, x, hf_type_rows(n, types, size));
    x = ty_add(net, x, hf_places(n, "position_embeddings", words, hf_size(n, "max_position_embeddings"), size));
    x = hidden_dropout(n, norm(n, "LayerNorm", x));
    ty_end(net);
    return x;
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

static ty_var attend(hf_net *n, ty_var x, ty_var mask)
{
    const hf_attention a = {"query", "key", "value", "num_attention_heads", mask, "attention_probs_dropout_prob", 0};
    ty_net *net = n->net;
    ty_scope(net, "attention");
    ty_var y = hidden_dropout(n, hf_linear(n, "dense", hf_attend(n, x, &a), ty_dim(net, x, 2), true));
    y = norm(n, "LayerNorm", ty_add(net, x, y));
    ty_end(net);
    return y;
}

static ty_var layer(hf_net *n, ty_var x, ty_var mask)
{
    ty_var half = attend(n, x, mask);
    ty_var y = activate(n, hf_linear(n, "ffn", half, hf_size(n, "intermediate_size"), true));
    y = hf_linear(n, "ffn_output", y, ty_dim(n->net, x, 2), true);
    return norm(n, "full_layer_layer_norm", ty_add(n->net, y, half));
}

static ty_var group(hf_net *n, int64_t number, ty_var x, ty_var mask)
{
    ty_net *net = n->net;
    int64_t inner = hf_size_or(n, "inner_group_num", 1);
    for (int64_t i = 0; i < inner && !hf_failed(n); i++) {
        ty_scope(net, ty_text(net, "albert_layer_groups.%d.albert_layers.%d", (int)number, (int)i));
        x = layer(n, x, mask);
        ty_end(net);
    }
    return x;
}

static ty_var encoder(hf_net *n, ty_var x, ty_var mask)
{
    ty_net *net = n->net;
    int64_t layers = hf_layers(n, "num_hidden_layers", 0), groups = hf_size_or(n, "num_hidden_groups", 1);
    double of_group = (double)layers / (double)groups; /* perhaps no whole number, as there */
    ty_scope(net, "encoder");
    x = hf_linear(n, "embedding_hidden_mapping_in", x, hf_size(n, "hidden_size"), true);
    for (int64_t i = 0; i < layers && !hf_failed(n); i++)
        x = group(n, (int64_t)((double)i / of_group), x, mask);
    ty_end(net);
    return x;
}

/* tanh of a linear layer of the first position, [B, E]. */
static ty_var pooler(hf_net *n, ty_var x)
{
    ty_var first = hf_first(n, x);
    return ty_tanh(n->net, hf_linear(n, "pooler", first, ty_dim(n->net, first, 1), true));
}

/* pooled: NULL where the head asks for none. */
static ty_var network(hf_net *n, ty_var *pooled)
{
    ty_net *net = n->net;
    bool is_inside = n->head->task != HF_NO_TASK, has_types = hf_size_or(n, "type_vocab_size", 2) > 1;
    ty_var words = hf_words(n), mask = hf_key_mask(n, hf_seen(n, words));
    ty_var types = has_types ? hf_types(n) : (ty_var){0};
    if (is_inside)
        ty_scope(net, "albert");
    ty_var x = encoder(n, embeddings(n, words, types), mask);
    if (pooled)
        *pooled = pooler(n, x);
    if (is_inside)
        ty_end(net);
    return x;
}

/* ---- heads ------------------------------------------------------------------------------------------------------- */

static void classify(hf_net *n, ty_var x)
{
    x = hf_dropout(n, x, "classifier_dropout_prob", 0.1);
    ty_output(n->net, "logits", hf_linear(n, "classifier", x, n->labels, true));
}

static void bare(hf_net *n)
{
    ty_var pooled, x = network(n, &pooled);
    ty_output(n->net, "last_hidden_state", x);
    ty_output(n->net, "pooler_output", pooled);
}

static void hidden_words(hf_net *n)
{
    ty_net *net = n->net;
    int64_t rows = hf_size(n, "vocab_size"), size = hf_size_or(n, "embedding_size", 128);
    ty_var x = network(n, NULL);
    ty_scope(net, "predictions");
    x = norm(n, "LayerNorm", activate(n, hf_linear(n, "dense", x, size, true)));
    ty_end(net);
    const char *table = hf_tied_name(n, WORDS, "predictions.decoder.weight", true);
    const char *bias = hf_tied_name(n, "predictions.bias", "predictions.decoder.bias", true);
    ty_output(net, "logits", hf_tied_logits(n, x, table, rows, size, bias));
}

static void classes(hf_net *n)
{
    ty_var pooled;
    network(n, &pooled);
    classify(n, pooled);
}

static void tokens(hf_net *n)
{
    classify(n, network(n, NULL));
}

static void questions(hf_net *n)
{
    hf_answer(n, hf_linear(n, "qa_outputs", network(n, NULL), 2, true));
}

static const hf_head heads[] = {{"Model", HF_NO_TASK, bare},
                                {"ForMaskedLM", HF_WORDS, hidden_words},
                                {"ForSequenceClassification", HF_CLASSES, classes},
                                {"ForTokenClassification", HF_TOKENS, tokens},
                                {"ForQuestionAnswering", HF_QUESTIONS, questions},
                                {NULL, HF_NO_TASK, NULL}};

const hf_family hf_family_albert = {.class_name = "Albert", .base = "albert", .head = heads, .pad = 0};
