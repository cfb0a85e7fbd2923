/* hf_bert.c - BERT (Devlin et al. 2019) and the networks that differ from it in names and heads: RoBERTa, ELECTRA.
 * Source of names and formulas: transformers/models/bert/modeling_bert.py and its neighbours.
 */
#include "include/trainyard/model.h"

#include "compiler/import/huggingface/hf_net.h"

#include <string.h>

/* What tells one network from another. */
typedef struct bert_traits {
    const char *base;   /* the module of the network in classes with heads */
    bool counts_words;  /* RoBERTa: positions count words alone, and begin behind pad_token_id */
    bool is_factorized; /* ELECTRA: tables may be narrower than layers (embedding_size) */
} bert_traits;

static const bert_traits *traits_of(const hf_net *n)
{
    return n->family->traits;
}

/* ---- embeddings -------------------------------------------------------------------------------------------------- */

static ty_var place_rows(hf_net *n, ty_var words, int64_t size)
{
    int64_t rows = hf_size(n, "max_position_embeddings");
    if (traits_of(n)->counts_words)
        return hf_padded_table(n, "position_embeddings", hf_counted_places(n, words), rows, size);
    return hf_places(n, "position_embeddings", words, rows, size);
}

static ty_var embeddings(hf_net *n, ty_var words, ty_var types, int64_t size)
{
    ty_net *net = n->net;
    ty_scope(net, "embeddings");
    ty_var x = hf_padded_table(n, "word_embeddings", words, hf_size(n, "vocab_size"), size);
    x = ty_add(net, x, hf_type_rows(n, types, size));
    x = ty_add(net, x, place_rows(n, words, size));
    x = hf_layer_norm(n, "LayerNorm", x, hf_number(n, "layer_norm_eps", 1e-12));
    x = hf_dropout(n, x, "hidden_dropout_prob", 0.1);
    ty_end(net);
    return x;
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

static ty_var attend(hf_net *n, ty_var x, ty_var mask)
{
    const hf_attention a = {"query", "key", "value", "num_attention_heads", mask, "attention_probs_dropout_prob", 0.1};
    ty_scope(n->net, "attention.self");
    x = hf_attend(n, x, &a);
    ty_end(n->net);
    return x;
}

/* Linear, dropout, sum, norm: the end of both halves of a layer. */
static ty_var close_half(hf_net *n, const char *scope, ty_var y, ty_var x)
{
    ty_net *net = n->net;
    ty_scope(net, scope);
    y = hf_dropout(n, hf_linear(n, "dense", y, ty_dim(net, x, 2), true), "hidden_dropout_prob", 0.1);
    y = hf_layer_norm(n, "LayerNorm", ty_add(net, y, x), hf_number(n, "layer_norm_eps", 1e-12));
    ty_end(net);
    return y;
}

static ty_var layer(hf_net *n, ty_var x, ty_var mask)
{
    ty_var half = close_half(n, "attention.output", attend(n, x, mask), x);
    ty_var y = hf_linear(n, "intermediate.dense", half, hf_size(n, "intermediate_size"), true);
    return close_half(n, "output", hf_activation(n, hf_text(n, "hidden_act", "gelu"), y), half);
}

static ty_var network(hf_net *n, ty_var *words)
{
    ty_net *net = n->net;
    const bert_traits *t = traits_of(n);
    int64_t size = hf_size(n, "hidden_size"), width = t->is_factorized ? hf_size_or(n, "embedding_size", 128) : size;
    int64_t layers = hf_layers(n, "num_hidden_layers", 0);
    bool is_inside = n->head->task != HF_NO_TASK, has_types = hf_size_or(n, "type_vocab_size", 2) > 1;
    if (hf_flag(n, "is_decoder", false))
        hf_refuse(n, "is_decoder", "decoders are not built");
    *words = hf_words(n);
    ty_var mask = hf_key_mask(n, hf_seen(n, *words)), types = has_types ? hf_types(n) : (ty_var){0};
    if (is_inside)
        ty_scope(net, t->base);
    ty_var x = embeddings(n, *words, types, width);
    if (width != size)
        x = hf_linear(n, "embeddings_project", x, size, true);
    for (int64_t i = 0; i < layers && !hf_failed(n); i++) {
        ty_scope(net, ty_text(net, "encoder.layer.%d", (int)i));
        x = layer(n, x, mask);
        ty_end(net);
    }
    if (is_inside)
        ty_end(net);
    return x;
}

/* tanh of a linear layer of the first position, [B, E]. */
static ty_var pooler(hf_net *n, ty_var x)
{
    ty_var first = hf_first(n, x);
    return ty_tanh(n->net, hf_linear(n, "pooler.dense", first, ty_dim(n->net, first, 1), true));
}

/* Dropout in front of heads: classifier_dropout, or hidden_dropout_prob. */
static ty_var head_dropout(hf_net *n, ty_var x)
{
    return hf_dropout(n, x, hf_find(n, "classifier_dropout") ? "classifier_dropout" : "hidden_dropout_prob", 0.1);
}

/* ---- heads ------------------------------------------------------------------------------------------------------- */

static void bare(hf_net *n)
{
    ty_var words, x = network(n, &words);
    ty_output(n->net, "last_hidden_state", x);
    if (!traits_of(n)->is_factorized)
        ty_output(n->net, "pooler_output", pooler(n, x));
}

static void bert_classes(hf_net *n)
{
    ty_var words, x = network(n, &words);
    ty_scope(n->net, traits_of(n)->base);
    x = pooler(n, x);
    ty_end(n->net);
    ty_output(n->net, "logits", hf_linear(n, "classifier", head_dropout(n, x), n->labels, true));
}

/* Two layers on the first position: RoBERTa's with tanh, ELECTRA's with gelu. */
static void deep_classes(hf_net *n, ty_var x, const char *activation)
{
    ty_net *net = n->net;
    x = head_dropout(n, hf_first(n, x));
    x = hf_activation(n, activation, hf_linear(n, "classifier.dense", x, ty_dim(net, x, 1), true));
    ty_output(net, "logits", hf_linear(n, "classifier.out_proj", head_dropout(n, x), n->labels, true));
}

static void roberta_classes(hf_net *n)
{
    ty_var words, x = network(n, &words);
    deep_classes(n, x, "tanh");
}

static void electra_classes(hf_net *n)
{
    ty_var words, x = network(n, &words);
    deep_classes(n, x, "gelu");
}

static void tokens(hf_net *n)
{
    ty_var words, x = network(n, &words);
    ty_output(n->net, "logits", hf_linear(n, "classifier", head_dropout(n, x), n->labels, true));
}

static void questions(hf_net *n)
{
    ty_var words, x = network(n, &words);
    hf_answer(n, hf_linear(n, "qa_outputs", x, 2, true));
}

/* Where a head of hidden words has its layers. */
typedef struct words_head {
    const char *scope, *norm, *own, *bias; /* own: the table of words, where it is not that of the embeddings */
} words_head;

/* Linear layer, activation and norm, then the table of words. */
static void hidden_words(hf_net *n, const words_head *h, const char *activation)
{
    ty_net *net = n->net;
    ty_var words, x = network(n, &words);
    int64_t rows = hf_size(n, "vocab_size"), size = hf_size(n, "hidden_size");
    int64_t width = traits_of(n)->is_factorized ? hf_size_or(n, "embedding_size", 128) : size;
    ty_scope(net, h->scope);
    x = hf_activation(n, activation, hf_linear(n, "dense", x, width, true));
    x = hf_layer_norm(n, h->norm, x, hf_number(n, "layer_norm_eps", 1e-12));
    ty_end(net);
    const char *shared = ty_text(net, "%s.embeddings.word_embeddings.weight", traits_of(n)->base);
    ty_output(net, "logits", hf_tied_logits(n, x, hf_tied_name(n, shared, h->own, true), rows, width, h->bias));
}

static void bert_words(hf_net *n)
{
    static const words_head head = {"cls.predictions.transform", "LayerNorm", "cls.predictions.decoder.weight",
                                    "cls.predictions.bias"};
    hidden_words(n, &head, hf_text(n, "hidden_act", "gelu"));
}

static void roberta_words(hf_net *n)
{
    static const words_head head = {"lm_head", "layer_norm", "lm_head.decoder.weight", "lm_head.bias"};
    hidden_words(n, &head, "gelu");
}

static void electra_words(hf_net *n)
{
    static const words_head head = {"generator_predictions", "LayerNorm", "generator_lm_head.weight",
                                    "generator_lm_head.bias"};
    hidden_words(n, &head, "gelu");
}

/* ---- the networks ------------------------------------------------------------------------------------------------ */

static const bert_traits as_bert = {.base = "bert"};
static const bert_traits as_roberta = {.base = "roberta", .counts_words = true};
static const bert_traits as_electra = {.base = "electra", .is_factorized = true};

static const hf_head bert_heads[] = {{"Model", HF_NO_TASK, bare},
                                     {"ForMaskedLM", HF_WORDS, bert_words},
                                     {"ForSequenceClassification", HF_CLASSES, bert_classes},
                                     {"ForTokenClassification", HF_TOKENS, tokens},
                                     {"ForQuestionAnswering", HF_QUESTIONS, questions},
                                     {NULL, HF_NO_TASK, NULL}};

static const hf_head roberta_heads[] = {{"Model", HF_NO_TASK, bare},
                                        {"ForMaskedLM", HF_WORDS, roberta_words},
                                        {"ForSequenceClassification", HF_CLASSES, roberta_classes},
                                        {"ForTokenClassification", HF_TOKENS, tokens},
                                        {"ForQuestionAnswering", HF_QUESTIONS, questions},
                                        {NULL, HF_NO_TASK, NULL}};

static const hf_head electra_heads[] = {{"Model", HF_NO_TASK, bare},
                                        {"ForMaskedLM", HF_WORDS, electra_words},
                                        {"ForSequenceClassification", HF_CLASSES, electra_classes},
                                        {"ForTokenClassification", HF_TOKENS, tokens},
                                        {"ForQuestionAnswering", HF_QUESTIONS, questions},
                                        {NULL, HF_NO_TASK, NULL}};

const hf_family hf_family_bert = {
    .class_name = "Bert", .base = "bert", .head = bert_heads, .traits = &as_bert, .pad = 0};
const hf_family hf_family_roberta = {.class_name = "Roberta",
                                     .base = "roberta",
                                     .head = roberta_heads,
                                     .traits = &as_roberta,
                                     .pad = 1,
                                     .places_behind_pad = true};
const hf_family hf_family_xlm_roberta = {.class_name = "XLMRoberta",
                                         .base = "roberta",
                                         .head = roberta_heads,
                                         .traits = &as_roberta,
                                         .pad = 1,
                                         .places_behind_pad = true};
const hf_family hf_family_camembert = {.class_name = "Camembert",
                                       .base = "roberta",
                                       .head = roberta_heads,
                                       .traits = &as_roberta,
                                       .pad = 1,
                                       .places_behind_pad = true};
const hf_family hf_family_electra = {
    .class_name = "Electra", .base = "electra", .head = electra_heads, .traits = &as_electra, .pad = 0};
