/* hf_convnext.c - ConvNeXt (Liu et al. 2022): convolutions of one channel each over 7 x 7, and layers over channels.
 * Source of names and formulas: transformers/models/convnext/modeling_convnext.py.
 *
 * Pictures are [B, C, height, width] between blocks; within one, and for norms, channels are last.
 */
#include "include/trainyard/model.h"

#include "compiler/import/huggingface/hf_net.h"

enum { STAGES = 4 };
static const int64_t usual_sizes[STAGES] = {96, 192, 384, 768}, usual_depths[STAGES] = {3, 3, 9, 3};

#define INNER_EPS 1e-6 /* of all norms but the last */

/* ---- config.json ------------------------------------------------------------------------------------------------- */

static int64_t n_stages(hf_net *n)
{
    return hf_size_or(n, "num_stages", STAGES);
}

/* Number i of a list with one for each stage. */
static int64_t listed(hf_net *n, const char *key, int64_t i, const int64_t usual[STAGES])
{
    const ty_doc *d = hf_find(n, key);
    ty_error err;
    int64_t size = 1, stages = n_stages(n);
    if (!d && stages == STAGES)
        return usual[i];
    if (!d || d->kind != TY_DOC_LIST || (int64_t)ty_doc_len(d) != stages)
        hf_refuse(n, key, "expected a list with a number for each of num_stages");
    else if (ty_doc_int(ty_doc_at(d, (size_t)i), &size, &err) < 0)
        hf_fail(n, &err);
    else if (size < 1 || size > INT32_MAX)
        hf_refuse(n, key, "expected sizes of at least 1");
    else
        return size;
    return 1;
}

static int64_t channels(hf_net *n, int64_t stage)
{
    return listed(n, "hidden_sizes", stage, usual_sizes);
}

static int64_t depth(hf_net *n, int64_t stage)
{
    return listed(n, "depths", stage, usual_depths);
}

static int64_t total_depth(hf_net *n)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < n_stages(n) && !hf_failed(n); i++)
        sum += depth(n, i);
    return sum;
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

static ty_var to_channels_last(hf_net *n, ty_var x)
{
    return ty_transpose(n->net, x, ty_dims(0, 2, 3, 1));
}

static ty_var to_channels_first(hf_net *n, ty_var x)
{
    return ty_transpose(n->net, x, ty_dims(0, 3, 1, 2));
}

/* Over the channels of each position. */
static ty_var norm(hf_net *n, const char *name, ty_var x)
{
    return to_channels_first(n, hf_layer_norm(n, name, to_channels_last(n, x), INNER_EPS));
}

/* rate: of samples that go without this layer in training. */
static ty_var layer(hf_net *n, ty_var x, double rate)
{
    ty_net *net = n->net;
    int64_t size = ty_dim(net, x, 1);
    double scale = hf_number(n, "layer_scale_init_value", 1e-6);
    ty_var y =
        ty_conv(net, "dwconv", x, size, 7, .padding = 3, .groups = size, .weight = hf_start(n), .bias = ty_zeros());
    y = hf_layer_norm(n, "layernorm", to_channels_last(n, y), INNER_EPS);
    y = hf_linear(n, "pwconv1", y, 4 * size, true);
    y = hf_linear(n, "pwconv2", hf_activation(n, hf_text(n, "hidden_act", "gelu"), y), size, true);
    if (scale > 0)
        y = ty_mul(net, y, ty_parameter(net, "layer_scale_parameter", ty_dims(size), ty_filled(scale)));
    return ty_add(net, x, hf_drop_path(n, to_channels_first(n, y), "drop_path_rate", rate));
}

/* Half as high and half as wide. */
static ty_var halve(hf_net *n, ty_var x, int64_t out)
{
    ty_net *net = n->net;
    x = norm(n, "downsampling_layer.0", x);
    if (ty_dim(net, x, 2) < 2 || ty_dim(net, x, 3) < 2)
        hf_refuse(n, "image_size", "too small to be halved by every stage but the first");
    return hf_failed(n) ? x
                        : ty_conv(net, "downsampling_layer.1", x, out, 2, .stride = 2, .weight = hf_start(n),
                                  .bias = ty_zeros());
}

/* The rate rises with each layer, from 0 to drop_path_rate at the last. before: layers in earlier stages. */
static ty_var stage(hf_net *n, ty_var x, int64_t i, int64_t before)
{
    ty_net *net = n->net;
    int64_t total = total_depth(n), layers = depth(n, i);
    double step = total > 1 ? hf_number(n, "drop_path_rate", 0) / (double)(total - 1) : 0;
    ty_scope(net, ty_text(net, "encoder.stages.%d", (int)i));
    if (i > 0)
        x = halve(n, x, channels(n, i));
    for (int64_t k = 0; k < layers && !hf_failed(n); k++) {
        ty_scope(net, ty_text(net, "layers.%d", (int)k));
        x = layer(n, x, step * (double)(before + k));
        ty_end(net);
    }
    ty_end(net);
    return x;
}

/* [B, channels, height, width], and their norm over the mean of all positions, [B, channels]. */
static ty_var network(hf_net *n, ty_var *pooled)
{
    ty_net *net = n->net;
    int64_t before = 0;
    bool is_inside = n->head->task != HF_NO_TASK;
    if (is_inside)
        ty_scope(net, "convnext");
    ty_scope(net, "embeddings");
    ty_var x = norm(n, "layernorm", hf_patches(n, "patch_embeddings", hf_pixels(n, 224), channels(n, 0), 4));
    ty_end(net);
    for (int64_t i = 0; i < n_stages(n) && !hf_failed(n); i++) {
        x = stage(n, x, i, before);
        before += depth(n, i);
    }
    *pooled = hf_layer_norm(n, "layernorm", ty_reduce_mean(net, x, ty_dims(2, 3), false),
                            hf_number(n, "layer_norm_eps", 1e-12));
    if (is_inside)
        ty_end(net);
    return x;
}

/* ---- heads ------------------------------------------------------------------------------------------------------- */

static void bare(hf_net *n)
{
    ty_var pooled, x = network(n, &pooled);
    ty_output(n->net, "last_hidden_state", x);
    ty_output(n->net, "pooler_output", pooled);
}

static void classes(hf_net *n)
{
    ty_var pooled;
    (void)network(n, &pooled);
    ty_output(n->net, "logits", hf_linear(n, "classifier", pooled, n->labels, true));
}

static const hf_head heads[] = {
    {"Model", HF_NO_TASK, bare}, {"ForImageClassification", HF_CLASSES, classes}, {NULL, HF_NO_TASK, NULL}};

const hf_family hf_family_convnext = {.class_name = "ConvNext", .base = "convnext", .head = heads, .pad = -1};
