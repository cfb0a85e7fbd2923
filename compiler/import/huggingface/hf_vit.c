/* hf_vit.c - ViT (Dosovitskiy et al. 2020), DeiT (Touvron et al. 2020), and what DINOv2 has in common with them.
 * Source of formulas: transformers/models/vit/modeling_vit.py and deit/modeling_deit.py; names: see hf_vit.h.
 */
#include "include/trainyard/model.h"

#include "compiler/import/huggingface/hf_net.h"
#include "compiler/import/huggingface/hf_vit.h"

/* What tells one network from another. */
typedef struct vit_traits {
    const char *base; /* the module of the network in classes with heads */
    hf_vit_rows rows;
} vit_traits;

static const vit_traits *traits_of(const hf_net *n)
{
    return n->family->traits;
}

/* ---- shared with other networks ---------------------------------------------------------------------------------- */

int64_t hf_vit_size(hf_net *n)
{
    return hf_size_or(n, "hidden_size", 768);
}

/* The same row in front of all samples' rows. */
static ty_var put_token(hf_net *n, const char *name, ty_var x, ty_init start)
{
    ty_net *net = n->net;
    int64_t b = ty_dim(net, x, 0), size = ty_dim(net, x, 2);
    ty_var token = ty_parameter(net, name, ty_dims(1, 1, size), start);
    return ty_concat(net, 1, ty_expand(net, token, ty_dims(b, 1, size)), x);
}

ty_var hf_vit_embed(hf_net *n, const hf_vit_rows *rows)
{
    ty_net *net = n->net;
    int64_t size = hf_vit_size(n);
    ty_init start = rows->starts_at_0 ? ty_zeros() : hf_start(n);
    int tokens = 0;
    ty_scope(net, "embeddings");
    ty_var x = hf_patches(n, "patch_embeddings.projection", hf_pixels(n, rows->image), size, rows->patch);
    x = ty_transpose(net, ty_flatten(net, x, 2), ty_dims(0, 2, 1));
    while (rows->token[tokens])
        tokens++;
    while (tokens-- > 0)
        x = put_token(n, rows->token[tokens], x, start);
    x = ty_add(net, x, ty_parameter(net, "position_embeddings", ty_dims(1, ty_dim(net, x, 1), size), start));
    x = hf_dropout(n, x, "hidden_dropout_prob", 0);
    ty_end(net);
    return x;
}

ty_var hf_vit_attend(hf_net *n, ty_var x)
{
    ty_net *net = n->net;
    int64_t heads = hf_size_or(n, "num_attention_heads", 12), size = ty_dim(net, x, 2);
    bool bias = hf_flag(n, "qkv_bias", true);
    if (!hf_find(n, "head_dim") && size % heads)
        hf_refuse(n, "num_attention_heads", "hidden_size does not divide among the heads");
    int64_t width = heads * hf_size_or(n, "head_dim", size / heads > 0 ? size / heads : 1);
    ty_scope(net, "attention");
    ty_var q = hf_split_heads(n, hf_linear(n, "attention.query", x, width, bias), heads);
    ty_var k = hf_split_heads(n, hf_linear(n, "attention.key", x, width, bias), heads);
    ty_var v = hf_split_heads(n, hf_linear(n, "attention.value", x, width, bias), heads);
    ty_var y = ty_attention(net, q, k, v, .dropout = hf_number(n, "attention_probs_dropout_prob", 0));
    y = hf_linear(n, "output.dense", hf_join_heads(n, y), size, true);
    ty_end(net);
    return y;
}

/* ---- the network ------------------------------------------------------------------------------------------------- */

static ty_var norm(hf_net *n, const char *name, ty_var x)
{
    return hf_layer_norm(n, name, x, hf_number(n, "layer_norm_eps", 1e-12));
}

static ty_var feed_forward(hf_net *n, ty_var x)
{
    ty_var y = hf_linear(n, "intermediate.dense", x, hf_size_or(n, "intermediate_size", 3072), true);
    y = hf_activation(n, hf_text(n, "hidden_act", "gelu"), y);
    return hf_linear(n, "output.dense", y, ty_dim(n->net, x, 2), true);
}

static ty_var layer(hf_net *n, ty_var x)
{
    ty_net *net = n->net;
    ty_var y = hf_vit_attend(n, norm(n, "layernorm_before", x));
    x = ty_add(net, hf_dropout(n, y, "hidden_dropout_prob", 0), x);
    y = feed_forward(n, norm(n, "layernorm_after", x));
    return ty_add(net, hf_dropout(n, y, "hidden_dropout_prob", 0), x);
}

static ty_var network(hf_net *n)
{
    ty_net *net = n->net;
    int64_t layers = hf_layers(n, "num_hidden_layers", 12);
    bool is_inside = n->head->task != HF_NO_TASK;
    if (is_inside)
        ty_scope(net, traits_of(n)->base);
    ty_var x = hf_vit_embed(n, &traits_of(n)->rows);
    for (int64_t i = 0; i < layers && !hf_failed(n); i++) {
        ty_scope(net, ty_text(net, "encoder.layer.%d", (int)i));
        x = layer(n, x);
        ty_end(net);
    }
    x = norm(n, "layernorm", x);
    if (is_inside)
        ty_end(net);
    return x;
}

/* ---- heads ------------------------------------------------------------------------------------------------------- */

static void bare(hf_net *n)
{
    ty_var x = network(n), first = hf_first(n, x);
    ty_output(n->net, "last_hidden_state", x);
    ty_var y = hf_linear(n, "pooler.dense", first, hf_size_or(n, "pooler_output_size", hf_vit_size(n)), true);
    ty_output(n->net, "pooler_output", hf_activation(n, hf_text(n, "pooler_act", "tanh"), y));
}

static void classes(hf_net *n)
{
    ty_var x = network(n);
    ty_output(n->net, "logits", hf_linear(n, "classifier", hf_first(n, x), n->labels, true));
}

/* The mean of two classifiers, one on each of the first two rows. There is no teacher: the class has none either. */
static void two_classifiers(hf_net *n)
{
    ty_net *net = n->net;
    ty_var x = network(n), second = ty_slice(net, x, 1, 1, 2);
    ty_var a = hf_linear(n, "cls_classifier", hf_first(n, x), n->labels, true);
    ty_var b = hf_linear(n, "distillation_classifier", hf_first(n, second), n->labels, true);
    ty_output(net, "logits", ty_scale(net, ty_add(net, a, b), 0.5));
    ty_output(net, "cls_logits", a);
    ty_output(net, "distillation_logits", b);
}

/* ---- the networks ------------------------------------------------------------------------------------------------ */

static const char *const vit_tokens[] = {"cls_token", NULL};
static const char *const deit_tokens[] = {"cls_token", "distillation_token", NULL};
static const vit_traits as_vit = {"vit", {.image = 224, .patch = 16, .token = vit_tokens}};
static const vit_traits as_deit = {"deit", {.image = 224, .patch = 16, .token = deit_tokens, .starts_at_0 = true}};

static const hf_head vit_heads[] = {
    {"Model", HF_NO_TASK, bare}, {"ForImageClassification", HF_CLASSES, classes}, {NULL, HF_NO_TASK, NULL}};

static const hf_head deit_heads[] = {{"Model", HF_NO_TASK, bare},
                                     {"ForImageClassification", HF_CLASSES, classes},
                                     {"ForImageClassificationWithTeacher", HF_CLASSES, two_classifiers},
                                     {NULL, HF_NO_TASK, NULL}};

const hf_family hf_family_vit = {.class_name = "ViT", .base = "vit", .head = vit_heads, .traits = &as_vit, .pad = -1};
const hf_family hf_family_deit = {
    .class_name = "DeiT", .base = "deit", .head = deit_heads, .traits = &as_deit, .pad = -1};
