/* hf_distilbert.c - DistilBERT (Sanh et al. 2019): BERT with half the layers, without types of texts and pooler, and
 * with names of its own. Source of names and formulas: transformers/models/distilbert/modeling_distilbert.py.
 */
#include "include/trainyard/model.h"

#include "compiler/import/huggingface/hf_net.h"

#define WORDS    "distilbert.embeddings.word_embeddings.weight"
#define PLACES   "distilbert.embeddings.position_embeddings.weight"
#define NORM_EPS 1e-12 /* of the class: config.json has no say */

static ty_var activate(hf_net *n, ty_var x)
{
    return hf_activation(n, hf_text(n, "activation", "gelu"), x);
}

static ty_var embeddings(hf_net *n, ty_var words, int64_t size)
{
    ty_net *net = n->net;
    ty_scope(net, "embeddings");
    ty_var x = hf_padded_table(n, "word_embeddings", words, hf_size(n, "vocab_size"), size);
    x = ty_add(net, x, hf_places(n, "position_embeddings", words, hf_size(n, "max_position_embeddings"), size));
    x = hf_dropout(n, hf_layer_norm(n, "LayerNorm", x, NORM_EPS), "dropout", 0.1);
    ty_end(net);
    return x;
}

static ty_var attend(hf_net *n, ty_var x, ty_var mask)
{
    const hf_attention a = {"q_lin", "k_lin", "v_lin", "n_heads", mask, "attention_dropout", 0.1};
    ty_scope(n->net, "attention");
    ty_var y = hf_linear(n, "out_lin", hf_attend(n, x, &a), ty_dim(n->net, x, 2), true);
    ty_end(n->net);
    return y;
}

static ty_var layer(hf_net *n, ty_var x, ty_var mask)
{
    ty_net *net = n->net;
    ty_var half = hf_layer_norm(n, "sa_layer_norm", ty_add(net, attend(n, x, mask), x), NORM_EPS);
    ty_var y = activate(n, hf_linear(n, "ffn.lin1", half, hf_size(n, "hidden_dim"), true));
    y = hf_dropout(n, hf_linear(n, "ffn.lin2", y, ty_dim(net, x, 2), true), "dropout", 0.1);
    return hf_layer_norm(n, "output_layer_norm", ty_add(net, y, half), NORM_EPS);
}

static ty_var network(hf_net *n)
{
    ty_net *net = n->net;
    int64_t layers = hf_layers(n, "n_layers", 0);
    bool is_inside = n->head->task != HF_NO_TASK;
    /* In files such tables are weights as others are, and training changes them. */
    if (hf_flag(n, "sinusoidal_pos_embds", false) && !hf_holds(n, PLACES))
        hf_refuse(n, "sinusoidal_pos_embds", "waves are read from weights, and there are none");
    ty_var words = hf_words(n), mask = hf_key_mask(n, hf_seen(n, words));
    if (is_inside)
        ty_scope(net, "distilbert");
    ty_var x = embeddings(n, words, hf_size(n, "dim"));
    for (int64_t i = 0; i < layers && !hf_failed(n); i++) {
        ty_scope(net, ty_text(net, "transformer.layer.%d", (int)i));
        x = layer(n, x, mask);
        ty_end(net);
    }
    if (is_inside)
        ty_end(net);
    return x;
}

/* ---- heads ------------------------------------------------------------------------------------------------------- */

static void bare(hf_net *n)
{
    ty_output(n->net, "last_hidden_state", network(n));
}

static void hidden_words(hf_net *n)
{
    ty_net *net = n->net;
    int64_t rows = hf_size(n, "vocab_size"), size = hf_size(n, "dim");
    ty_var x = activate(n, hf_linear(n, "vocab_transform", network(n), size, true));
    x = hf_layer_norm(n, "vocab_layer_norm", x, NORM_EPS);
    const char *table = hf_tied_name(n, WORDS, "vocab_projector.weight", true);
    ty_output(net, "logits", hf_tied_logits(n, x, table, rows, size, "vocab_projector.bias"));
}

static void classes(hf_net *n)
{
    ty_net *net = n->net;
    ty_var first = hf_first(n, network(n));
    ty_var x = ty_relu(net, hf_linear(n, "pre_classifier", first, ty_dim(net, first, 1), true));
    x = hf_dropout(n, x, "seq_classif_dropout", 0.2);
    ty_output(net, "logits", hf_linear(n, "classifier", x, n->labels, true));
}

static void tokens(hf_net *n)
{
    ty_var x = hf_dropout(n, network(n), "dropout", 0.1);
    ty_output(n->net, "logits", hf_linear(n, "classifier", x, n->labels, true));
}

static void questions(hf_net *n)
{
    hf_answer(n, hf_linear(n, "qa_outputs", hf_dropout(n, network(n), "qa_dropout", 0.1), 2, true));
}

static const hf_head heads[] = {{"Model", HF_NO_TASK, bare},
                                {"ForMaskedLM", HF_WORDS, hidden_words},
                                {"ForSequenceClassification", HF_CLASSES, classes},
                                {"ForTokenClassification", HF_TOKENS, tokens},
                                {"ForQuestionAnswering", HF_QUESTIONS, questions},
                                {NULL, HF_NO_TASK, NULL}};

const hf_family hf_family_distilbert = {.class_name = "DistilBert", .base = "distilbert", .head = heads, .pad = 0};
