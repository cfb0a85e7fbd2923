/* hf_mpnet.c - MPNet (Song et al. 2020): RoBERTa without types of texts, whose scores of attention grow by a learned
 * number for how far two positions are apart. Source of names and formulas:
 * transformers/models/mpnet/modeling_mpnet.py.
 */
#include "include/trainyard/model.h"

#include "compiler/import/huggingface/hf_net.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Of the class: config.json has no say. */
enum { PAD = 1, BUCKETS = 32, FARTHEST = 128 };

static ty_var norm(hf_net *n, const char *name, ty_var x)
{
    return hf_layer_norm(n, name, x, hf_number(n, "layer_norm_eps", 1e-12));
}

static ty_var hidden_dropout(hf_net *n, ty_var x)
{
    return hf_dropout(n, x, "hidden_dropout_prob", 0.1);
}

static ty_var embeddings(hf_net *n, ty_var words, int64_t size)
{
    ty_net *net = n->net;
    int64_t places = hf_size(n, "max_position_embeddings");
    ty_scope(net, "embeddings");
    ty_var x = hf_padded_table(n, "word_embeddings", words, hf_size(n, "vocab_size"), size);
    x = ty_add(net, x, hf_padded_table(n, "position_embeddings", hf_counted_places(n, words), places, size));
    x = hidden_dropout(n, norm(n, "LayerNorm", x));
    ty_end(net);
    return x;
}

/* ---- distances --------------------------------------------------------------------------------------------------- */

/* Half of the buckets are for positions further on. Of each half, half are for one distance each, and the others grow
 * by powers up to FARTHEST. In float32, as there. */
static int64_t bucket_of(int64_t further)
{
    int64_t half = BUCKETS / 2, exact = half / 2, distance = llabs(further), bucket = distance;
    if (distance >= exact) {
        float powers = logf((float)distance / (float)exact) / (float)log((double)FARTHEST / (double)exact);
        bucket = exact + (int64_t)(powers * (float)(half - exact));
    }
    return (further > 0 ? half : 0) + (bucket < half ? bucket : half - 1);
}

/* Buckets of the distances 1 - S ... S - 1, i64 [2 S - 1]. */
static ty_var buckets(hf_net *n, int64_t length)
{
    int64_t count = 2 * length - 1, *at = malloc((size_t)count * sizeof *at);
    if (!at) {
        ty_fail(n->net, "no memory for the distances of %lld positions", (long long)length);
        return (ty_var){0};
    }
    for (int64_t i = 0; i < count; i++)
        at[i] = bucket_of(i + 1 - length);
    ty_var v = ty_constant(n->net, "i64", ty_dims(count), at);
    free(at);
    return v;
}

/* What is added to scores, f32 [1, H, S, S]. */
static ty_var distance_scores(hf_net *n, int64_t length)
{
    ty_net *net = n->net;
    int64_t rows = hf_size_or(n, "relative_attention_num_buckets", BUCKETS);
    if (rows < BUCKETS)
        hf_refuse(n, "relative_attention_num_buckets", "positions are sorted into 32 buckets, whatever it says");
    ty_shape square = ty_dims(length, length);
    ty_var further = ty_sub(net, ty_iota(net, "i64", square, 1), ty_iota(net, "i64", square, 0));
    ty_var bucket = ty_gather(net, buckets(n, length), ty_shift(net, further, (double)(length - 1)), 0);
    ty_var x = hf_table(n, "relative_attention_bias", bucket, rows, hf_size(n, "num_attention_heads"));
    return ty_unsqueeze(net, ty_transpose(net, x, ty_dims(2, 0, 1)), 0);
}

/* Far below every score where nothing is to be seen; mask: as of hf_key_mask. */
static ty_var hide(ty_net *net, ty_var scores, ty_var mask)
{
    return mask.id ? ty_where(net, mask, scores, ty_number(net, "f32", -FLT_MAX)) : scores;
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

static ty_var attend(hf_net *n, ty_var x, ty_var scores)
{
    const hf_attention a = {"q", "k", "v", "num_attention_heads", scores, "attention_probs_dropout_prob", 0.1};
    ty_scope(n->net, "attn");
    ty_var y = hf_linear(n, "o", hf_attend(n, x, &a), ty_dim(n->net, x, 2), true);
    ty_end(n->net);
    return y;
}

static ty_var layer(hf_net *n, ty_var x, ty_var scores)
{
    ty_net *net = n->net;
    ty_scope(net, "attention");
    ty_var half = norm(n, "LayerNorm", ty_add(net, hidden_dropout(n, attend(n, x, scores)), x));
    ty_end(net);
    ty_var y = hf_linear(n, "intermediate.dense", half, hf_size(n, "intermediate_size"), true);
    y = hf_linear(n, "output.dense", hf_activation(n, hf_text(n, "hidden_act", "gelu"), y), ty_dim(net, x, 2), true);
    return norm(n, "output.LayerNorm", ty_add(net, hidden_dropout(n, y), half));
}

static ty_var encoder(hf_net *n, ty_var x, ty_var mask)
{
    ty_net *net = n->net;
    int64_t layers = hf_layers(n, "num_hidden_layers", 0);
    ty_scope(net, "encoder");
    ty_var scores = hide(net, distance_scores(n, ty_dim(net, x, 1)), mask);
    for (int64_t i = 0; i < layers && !hf_failed(n); i++) {
        ty_scope(net, ty_text(net, "layer.%d", (int)i));
        x = layer(n, x, scores);
        ty_end(net);
    }
    ty_end(net);
    return x;
}

static ty_var network(hf_net *n)
{
    ty_net *net = n->net;
    bool is_inside = n->head->task != HF_NO_TASK;
    if (hf_number(n, "pad_token_id", PAD) != PAD)
        hf_refuse(n, "pad_token_id", "padding is 1 in this network, whatever it says");
    ty_var words = hf_words(n), mask = hf_key_mask(n, hf_seen(n, words));
    if (is_inside)
        ty_scope(net, "mpnet");
    ty_var x = encoder(n, embeddings(n, words, hf_size(n, "hidden_size")), mask);
    if (is_inside)
        ty_end(net);
    return x;
}

/* ---- heads ------------------------------------------------------------------------------------------------------- */

static void bare(hf_net *n)
{
    ty_net *net = n->net;
    ty_var x = network(n), first = hf_first(n, x);
    ty_output(net, "last_hidden_state", x);
    ty_output(net, "pooler_output", ty_tanh(net, hf_linear(n, "pooler.dense", first, ty_dim(net, first, 1), true)));
}

static void hidden_words(hf_net *n)
{
    ty_net *net = n->net;
    int64_t rows = hf_size(n, "vocab_size"), size = hf_size(n, "hidden_size");
    ty_var x = network(n);
    ty_scope(net, "lm_head");
    x = norm(n, "layer_norm", ty_gelu(net, hf_linear(n, "dense", x, size, true)));
    ty_end(net);
    const char *table = hf_tied_name(n, "mpnet.embeddings.word_embeddings.weight", "lm_head.decoder.weight", true);
    const char *bias = hf_tied_name(n, "lm_head.bias", "lm_head.decoder.bias", true);
    ty_output(net, "logits", hf_tied_logits(n, x, table, rows, size, bias));
}

static void classes(hf_net *n)
{
    ty_net *net = n->net;
    ty_var x = hidden_dropout(n, hf_first(n, network(n)));
    x = ty_tanh(net, hf_linear(n, "classifier.dense", x, ty_dim(net, x, 1), true));
    ty_output(net, "logits", hf_linear(n, "classifier.out_proj", hidden_dropout(n, x), n->labels, true));
}

static void tokens(hf_net *n)
{
    ty_output(n->net, "logits", hf_linear(n, "classifier", hidden_dropout(n, network(n)), n->labels, true));
}

static void questions(hf_net *n)
{
    hf_answer(n, hf_linear(n, "qa_outputs", network(n), 2, true));
}

static const hf_head heads[] = {{"Model", HF_NO_TASK, bare},
                                {"ForMaskedLM", HF_WORDS, hidden_words},
                                {"ForSequenceClassification", HF_CLASSES, classes},
                                {"ForTokenClassification", HF_TOKENS, tokens},
                                {"ForQuestionAnswering", HF_QUESTIONS, questions},
                                {NULL, HF_NO_TASK, NULL}};

const hf_family hf_family_mpnet = {
    .class_name = "MPNet", .base = "mpnet", .head = heads, .pad = PAD, .places_behind_pad = true};
