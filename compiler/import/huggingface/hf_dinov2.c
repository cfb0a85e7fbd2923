/* hf_dinov2.c - DINOv2 (Oquab et al. 2023): a ViT whose branches are scaled per number, with its norms in other places.
 * mask_token, which hides patches in pretraining, has no part in what is built here: it is neither read nor written.
 * Source of formulas: transformers/models/dinov2/modeling_dinov2.py; names: see hf_vit.h.
 */
#include "include/trainyard/model.h"

#include "compiler/import/huggingface/hf_net.h"
#include "compiler/import/huggingface/hf_vit.h"

static ty_var norm(hf_net *n, const char *name, ty_var x)
{
    return hf_layer_norm(n, name, x, hf_number(n, "layer_norm_eps", 1e-6));
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

static int64_t feed_forward_size(hf_net *n)
{
    double size = (double)hf_vit_size(n) * hf_number(n, "mlp_ratio", 4);
    if (size >= 1 && size <= INT32_MAX)
        return (int64_t)size;
    hf_refuse(n, "mlp_ratio", "expected what makes a layer of at least one number");
    return 1;
}

/* Two thirds of the size, up to a multiple of 8; the gate comes first in the one layer that files have for both. */
static ty_var gated(hf_net *n, ty_var x)
{
    ty_net *net = n->net;
    int64_t size = (feed_forward_size(n) * 2 / 3 + 7) / 8 * 8;
    size = size > 0 ? size : 8;
    ty_var y = hf_linear(n, "mlp.weights_in", x, 2 * size, true);
    ty_var gate = ty_slice(net, y, 2, 0, size), up = ty_slice(net, y, 2, size, TY_END);
    return hf_linear(n, "mlp.weights_out", ty_mul(net, ty_silu(net, gate), up), ty_dim(net, x, 2), true);
}

static ty_var feed_forward(hf_net *n, ty_var x)
{
    if (hf_flag(n, "use_swiglu_ffn", false))
        return gated(n, x);
    ty_var y = hf_linear(n, "mlp.fc1", x, feed_forward_size(n), true);
    y = hf_activation(n, hf_text(n, "hidden_act", "gelu"), y);
    return hf_linear(n, "mlp.fc2", y, ty_dim(n->net, x, 2), true);
}

/* x + the branch, scaled and, in training, left out for some samples. */
static ty_var join(hf_net *n, const char *scale, ty_var branch, ty_var x)
{
    ty_net *net = n->net;
    ty_init start = ty_filled(hf_number(n, "layerscale_value", 1));
    ty_var y = ty_mul(net, branch, ty_parameter(net, scale, ty_dims(ty_dim(net, x, 2)), start));
    return ty_add(net, hf_drop_path(n, y, "drop_path_rate", hf_number(n, "drop_path_rate", 0)), x);
}

static ty_var layer(hf_net *n, ty_var x)
{
    x = join(n, "layer_scale1.lambda1", hf_vit_attend(n, norm(n, "norm1", x)), x);
    return join(n, "layer_scale2.lambda1", feed_forward(n, norm(n, "norm2", x)), x);
}

/* Where they do not lie in a square, the class interpolates positions, even if there are as many as patches. */
static void check_square(hf_net *n)
{
    int64_t size[2];
    hf_pair(n, "image_size", 224, size);
    if (size[0] != size[1])
        hf_refuse(n, "image_size",
                  "pictures that are not square would have their positions interpolated, which is not "
                  "built");
}

static ty_var network(hf_net *n)
{
    static const char *const token[] = {"cls_token", NULL};
    static const hf_vit_rows rows = {.image = 224, .patch = 14, .token = token};
    ty_net *net = n->net;
    int64_t layers = hf_layers(n, "num_hidden_layers", 12);
    bool is_inside = n->head->task != HF_NO_TASK;
    check_square(n);
    if (is_inside)
        ty_scope(net, "dinov2");
    ty_var x = hf_vit_embed(n, &rows);
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
    ty_var x = network(n);
    ty_output(n->net, "last_hidden_state", x);
    ty_output(n->net, "pooler_output", hf_first(n, x));
}

/* On the first row and, beside it, the mean of all others. */
static void classes(hf_net *n)
{
    ty_net *net = n->net;
    ty_var x = network(n);
    ty_var mean = ty_reduce_mean(net, ty_slice(net, x, 1, 1, TY_END), ty_dims(1), false);
    ty_var both = ty_concat(net, 1, hf_first(n, x), mean);
    ty_output(net, "logits", hf_linear(n, "classifier", both, n->labels, true));
}

static const hf_head heads[] = {
    {"Model", HF_NO_TASK, bare}, {"ForImageClassification", HF_CLASSES, classes}, {NULL, HF_NO_TASK, NULL}};

const hf_family hf_family_dinov2 = {.class_name = "Dinov2", .base = "dinov2", .head = heads, .pad = -1};
