/* hf_gpt2.c - GPT-2 (Radford et al. 2019). Source of names and formulas: transformers/models/gpt2/modeling_gpt2.py.
 * Its linear layers (Conv1D there) have their weights as [in, out].
 */
#include "include/trainyard/model.h"

#include "compiler/import/huggingface/hf_net.h"

#include <math.h>

static ty_var turned_linear(hf_net *n, const char *name, ty_var x, int64_t out)
{
    ty_net *net = n->net;
    ty_var w = ty_parameter(net, ty_text(net, "%s.weight", name), ty_dims(ty_dim(net, x, 2), out), hf_start(n));
    ty_var b = ty_parameter(net, ty_text(net, "%s.bias", name), ty_dims(out), ty_zeros());
    return ty_add(net, ty_matmul(net, x, w), b);
}

static ty_var norm(hf_net *n, const char *name, ty_var x)
{
    return hf_layer_norm(n, name, x, hf_number(n, "layer_norm_epsilon", 1e-5));
}

static double scale_of(hf_net *n, int64_t layer, int64_t size)
{
    double scale = hf_flag(n, "scale_attn_weights", true) ? 1 / sqrt((double)size) : 1;
    return hf_flag(n, "scale_attn_by_inverse_layer_idx", false) ? scale / (double)(layer + 1) : scale;
}

static ty_var attend(hf_net *n, ty_var x, ty_var mask, int64_t layer)
{
    ty_net *net = n->net;
    int64_t size = ty_dim(net, x, 2), heads = hf_size_or(n, "n_head", 12);
    ty_scope(net, "attn");
    ty_var all = turned_linear(n, "c_attn", x, 3 * size);
    ty_var q = hf_split_heads(n, ty_slice(net, all, 2, 0, size), heads);
    ty_var k = hf_split_heads(n, ty_slice(net, all, 2, size, 2 * size), heads);
    ty_var v = hf_split_heads(n, ty_slice(net, all, 2, 2 * size, 3 * size), heads);
    ty_var y = ty_attention(net, q, k, v, .causal = true, .mask = mask, .scale = scale_of(n, layer, size / heads),
                            .dropout = hf_number(n, "attn_pdrop", 0.1));
    y = hf_dropout(n, turned_linear(n, "c_proj", hf_join_heads(n, y), size), "resid_pdrop", 0.1);
    ty_end(net);
    return y;
}

static ty_var feed(hf_net *n, ty_var x)
{
    ty_net *net = n->net;
    int64_t size = ty_dim(net, x, 2);
    ty_scope(net, "mlp");
    x = turned_linear(n, "c_fc", x, hf_size_or(n, "n_inner", 4 * size));
    x = turned_linear(n, "c_proj", hf_activation(n, hf_text(n, "activation_function", "gelu_new"), x), size);
    ty_end(net);
    return hf_dropout(n, x, "resid_pdrop", 0.1);
}

static ty_var network(hf_net *n, ty_var *words)
{
    ty_net *net = n->net;
    int64_t size = hf_size_or(n, "n_embd", 768), layers = hf_layers(n, "n_layer", 12);
    bool is_inside = n->head->task != HF_NO_TASK;
    if (hf_flag(n, "add_cross_attention", false))
        hf_refuse(n, "add_cross_attention", "attention to an encoder is not built");
    *words = hf_words(n);
    ty_var mask = hf_key_mask(n, hf_given_mask(n));
    if (is_inside)
        ty_scope(net, "transformer");
    ty_var x = hf_table(n, "wte", *words, hf_size(n, "vocab_size"), size);
    x = ty_add(net, x, hf_places(n, "wpe", *words, hf_size_or(n, "n_positions", 1024), size));
    x = hf_dropout(n, x, "embd_pdrop", 0.1);
    for (int64_t i = 0; i < layers && !hf_failed(n); i++) {
        ty_scope(net, ty_text(net, "h.%d", (int)i));
        x = ty_add(net, x, attend(n, norm(n, "ln_1", x), mask, i));
        x = ty_add(net, x, feed(n, norm(n, "ln_2", x)));
        ty_end(net);
    }
    x = norm(n, "ln_f", x);
    if (is_inside)
        ty_end(net);
    return x;
}

static void bare(hf_net *n)
{
    ty_var words, x = network(n, &words);
    ty_output(n->net, "last_hidden_state", x);
}

static void next_words(hf_net *n)
{
    ty_var words, x = network(n, &words);
    ty_output(n->net, "logits", hf_next_logits(n, x, "transformer.wte.weight", true));
}

static void classes(hf_net *n)
{
    ty_var words, x = network(n, &words);
    hf_score(n, x, words);
}

static void tokens(hf_net *n)
{
    ty_var words, x = network(n, &words);
    hf_tag(n, "classifier", x, true);
}

static const hf_head heads[] = {{"Model", HF_NO_TASK, bare},
                                {"LMHeadModel", HF_NEXT, next_words},
                                {"ForSequenceClassification", HF_CLASSES, classes},
                                {"ForTokenClassification", HF_TOKENS, tokens},
                                {NULL, HF_NO_TASK, NULL}};

const hf_family hf_family_gpt2 = {
    .class_name = "GPT2", .base = "transformer", .head = heads, .pad = -1, .is_turned = true};
