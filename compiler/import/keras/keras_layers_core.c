/* keras_layers_core.c - Dense, Embedding, Dropout, shapes, scaling. Sources: keras/src/layers/core, reshaping,
 * regularization, preprocessing. */
#include "compiler/import/keras/keras_ops.h"

#include <math.h>
#include <string.h>

/* ---- Dense --------------------------------------------------------------------------------------------------------
 */

/* What changes a layer's weights into something else than numbers to be trained. */
static void core_refuse_adapters(keras_call *c)
{
    if (keras_config(c, "lora_rank")) {
        keras_fail_key(c, "lora_rank", "null");
        keras_help(c, "merge the LoRA weights into the layer before saving, or train without LoRA");
    } else if (keras_config(c, "quantization_config")) {
        keras_fail_key(c, "quantization_config", "null");
        keras_help(c, "save the model before it is quantized");
    }
}

void keras_create_dense(keras_call *c)
{
    int64_t units = keras_int(c, "units", 0);
    core_refuse_adapters(c);
    if (c->n_in != 1 || ty_b_rank(c->g, c->in[0]) < 2) {
        keras_fail(c, TY_E_SHAPE, "takes one tensor with a batch and at least one more axis");
        return;
    }
    int64_t width = ty_b_dim(c->g, c->in[0], ty_b_rank(c->g, c->in[0]) - 1);
    keras_add_weight(c, &(keras_spec){.label = "kernel",
                                      .rank = 2,
                                      .dim = {width, units},
                                      .initializer = "kernel_initializer",
                                      .regularizer = "kernel_regularizer",
                                      .constraint = "kernel_constraint"});
    if (keras_flag(c, "use_bias", true))
        keras_add_weight(c, &(keras_spec){.label = "bias",
                                          .rank = 1,
                                          .dim = {units},
                                          .initializer = "bias_initializer",
                                          .initializer_absent = "zeros",
                                          .regularizer = "bias_regularizer",
                                          .constraint = "bias_constraint"});
}

void keras_call_dense(keras_call *c)
{
    if (c->n_in != 1 || ty_b_rank(c->g, c->in[0]) < 2) {
        keras_fail(c, TY_E_SHAPE, "takes one tensor with a batch and at least one more axis");
        return;
    }
    ty_val y = ty_b_matmul(c->g, keras_float(c, c->in[0]), keras_var(c, "kernel")), bias = keras_var(c, "bias");
    if (bias != TY_NONE)
        y = ty_b_add(c->g, y, bias);
    keras_set(c, 0, keras_activation(c, keras_config(c, "activation"), y));
}

/* ---- Embedding ----------------------------------------------------------------------------------------------------
 */

void keras_create_embedding(keras_call *c)
{
    core_refuse_adapters(c);
    keras_add_weight(c, &(keras_spec){.label = "embeddings",
                                      .rank = 2,
                                      .dim = {keras_int(c, "input_dim", 0), keras_int(c, "output_dim", 0)},
                                      .initializer = "embeddings_initializer",
                                      .initializer_absent = "uniform",
                                      .regularizer = "embeddings_regularizer",
                                      .constraint = "embeddings_constraint"});
}

void keras_call_embedding(keras_call *c)
{
    ty_val index = c->in[0];
    ty_dtype dtype = ty_b_dtype(c->g, index);
    if (dtype != TY_I32 && dtype != TY_I64)
        index = ty_b_cast(c->g, index, TY_I32);
    keras_set(c, 0, ty_b_gather(c->g, keras_var(c, "embeddings"), index, 0));
    if (keras_flag(c, "mask_zero", false))
        keras_set_mask(c, 0, ty_b_ne(c->g, index, ty_b_full_like(c->g, index, 0)));
}

void keras_create_reversible_embedding(keras_call *c)
{
    keras_create_embedding(c);
    if (!keras_flag(c, "tie_weights", true))
        keras_add_weight(c, &(keras_spec){.label = "reverse_embeddings",
                                          .rank = 2,
                                          .dim = {keras_int(c, "output_dim", 0), keras_int(c, "input_dim", 0)},
                                          .initializer = "embeddings_initializer",
                                          .initializer_absent = "uniform"});
}

/* reverse: from rows of the table to a number for each of them. */
void keras_call_reversible_embedding(keras_call *c)
{
    ty_graph *g = c->g;
    const keras_arg *reverse = keras_argument(c, 1, "reverse");
    if (!reverse || reverse->kind != KERAS_BOOL || !reverse->flag) {
        keras_call_embedding(c);
        return;
    }
    bool tied = keras_flag(c, "tie_weights", true);
    ty_val x = keras_float(c, c->in[0]), table = keras_var(c, tied ? "embeddings" : "reverse_embeddings");
    ty_dtype dtype = keras_op_dtype(c, "reverse_dtype", ty_b_dtype(g, x));
    if (tied)
        table = ty_b_transpose(g, table, (int64_t[]){1, 0});
    ty_val y = ty_b_matmul(g, ty_b_cast(g, x, dtype), ty_b_cast(g, table, dtype));
    double cap = keras_number(c, "logit_soft_cap", 0);
    if (cap != 0)
        y = ty_b_mul_s(g, ty_b_unary(g, TY_OP_TANH, ty_b_mul_s(g, y, 1 / cap)), cap);
    keras_set(c, 0, y);
}

/* ---- without weights ----------------------------------------------------------------------------------------------
 */

void keras_call_identity(keras_call *c)
{
    for (int i = 0; i < c->n_in; i++)
        keras_set(c, i, c->in[i]);
}

void keras_call_activity_regularization(keras_call *c)
{
    ty_val x = keras_float(c, c->in[0]);
    int64_t batch = ty_b_rank(c->g, x) ? ty_b_dim(c->g, x, 0) : 1;
    double l1 = keras_number(c, "l1", 0), l2 = keras_number(c, "l2", 0);
    uint32_t all = ty_b_all_axes(c->g, x);
    if (l1 != 0)
        keras_add_loss(
            c, ty_b_mul_s(c->g, ty_b_sum(c->g, ty_b_unary(c->g, TY_OP_ABS, x), all, false), l1 / (double)batch));
    if (l2 != 0)
        keras_add_loss(c, ty_b_mul_s(c->g, ty_b_sum(c->g, ty_b_square(c->g, x), all, false), l2 / (double)batch));
    keras_set(c, 0, c->in[0]);
}

/* noise_shape: dims of the numbers drawn, null: as x; kept elements are divided by 1 - rate. */
void keras_call_dropout(keras_call *c)
{
    double rate = keras_number(c, "rate", 0.5);
    if (!(rate >= 0 && rate <= 1)) {
        keras_fail_key(c, "rate", "a number between 0 and 1");
        return;
    }
    if (!c->training || rate == 0) {
        keras_set(c, 0, c->in[0]);
        return;
    }
    ty_val x = keras_float(c, c->in[0]);
    const ty_type type = *ty_graph_type(c->g, x);
    const ty_doc *noise = keras_config(c, "noise_shape");
    int64_t dim[TY_MAX_RANK];
    memcpy(dim, type.dim, sizeof dim);
    if (noise && ty_doc_len(noise) != type.rank) {
        keras_fail_key(c, "noise_shape", "%d entries", type.rank);
        return;
    }
    for (int i = 0; noise && i < type.rank; i++)
        if (ty_doc_at(noise, (size_t)i)->kind == TY_DOC_INT)
            dim[i] = ty_doc_at(noise, (size_t)i)->integer;
    for (int i = 0; i < type.rank; i++)
        if (dim[i] != type.dim[i] && dim[i] != 1) {
            keras_fail_key(c, "noise_shape", "1 or the input's size along axis %d, %lld", i, (long long)type.dim[i]);
            return;
        }
    ty_val zero = ty_b_full_like(c->g, x, 0);
    if (rate == 1) {
        keras_set(c, 0, zero);
        return;
    }
    ty_val u = keras_uniform(c, type.rank, dim);
    if (u == TY_NONE)
        return;
    ty_val keep = ty_b_broadcast(c->g, ty_b_le(c->g, ty_b_full_like(c->g, u, rate), u), type.rank, type.dim);
    keras_set(c, 0, ty_b_select(c->g, keep, ty_b_mul_s(c->g, x, 1 / (1 - rate)), zero));
}

/* ---- shapes -------------------------------------------------------------------------------------------------------
 */

void keras_call_flatten(keras_call *c)
{
    ty_val x = c->in[0];
    const ty_type type = *ty_graph_type(c->g, x);
    int64_t perm[TY_MAX_RANK] = {0}, dim[2] = {type.rank ? type.dim[0] : 1, 1};
    for (int i = 1; i < type.rank; i++)
        dim[1] *= type.dim[i];
    if (keras_channels_first(c) && type.rank > 2) {
        for (int i = 1; i < type.rank; i++)
            perm[i] = i + 1 < type.rank ? i + 1 : 1;
        x = ty_b_transpose(c->g, x, perm);
    }
    keras_set(c, 0, ty_b_reshape(c->g, x, 2, dim));
}

void keras_call_reshape(keras_call *c)
{
    const ty_type type = *ty_graph_type(c->g, c->in[0]);
    int64_t dim[TY_MAX_RANK], known = 1, free_at = -1, elems = type.dim[0] ? ty_type_elems(&type) / type.dim[0] : 0;
    int n = keras_list(c, "target_shape", TY_MAX_RANK - 1, dim + 1);
    if (n < 0) {
        keras_fail_key(c, "target_shape", "a list of at most %d numbers", TY_MAX_RANK - 1);
        return;
    }
    dim[0] = type.dim[0];
    for (int i = 1; i <= n; i++) {
        if (dim[i] < -1 || (dim[i] == -1 && free_at >= 0)) {
            keras_fail_key(c, "target_shape", "sizes, with -1 at most once");
            return;
        }
        if (dim[i] == -1)
            free_at = i;
        else
            known = dim[i] > 0 && known > elems / dim[i] ? 0 : known * dim[i];
    }
    if (free_at >= 0 && known > 0)
        dim[free_at] = elems / known;
    if (known <= 0 || (free_at >= 0 ? known * dim[free_at] : known) != elems)
        keras_fail_key(c, "target_shape", "%lld elements, as many as a row of the input has", (long long)elems);
    else
        keras_set(c, 0, ty_b_reshape(c->g, c->in[0], n + 1, dim));
}

void keras_call_permute(keras_call *c)
{
    int rank = ty_b_rank(c->g, c->in[0]);
    int64_t perm[TY_MAX_RANK] = {0};
    int n = keras_list(c, "dims", TY_MAX_RANK - 1, perm + 1);
    uint32_t seen = 1;
    for (int i = 1; i <= n; i++)
        seen |= perm[i] > 0 && perm[i] < rank ? 1u << perm[i] : 0;
    if (n != rank - 1 || seen != (1u << rank) - 1)
        keras_fail_key(c, "dims", "each of 1 to %d once", rank - 1);
    else
        keras_set(c, 0, ty_b_transpose(c->g, c->in[0], perm));
}

void keras_call_repeat_vector(keras_call *c)
{
    const ty_type type = *ty_graph_type(c->g, c->in[0]);
    int64_t dim[3] = {type.dim[0], keras_int(c, "n", 1), type.dim[1]};
    if (type.rank != 2)
        keras_fail(c, TY_E_SHAPE, "takes a matrix, found %d axes", type.rank);
    else if (dim[1] <= 0)
        keras_fail_key(c, "n", "a positive number");
    else
        keras_set(c, 0, ty_b_broadcast(c->g, ty_b_unsqueeze(c->g, c->in[0], 1), 3, dim));
}

/* ---- Rescaling, Normalization -------------------------------------------------------------------------------------
 */

/* A number, a list of numbers, or a serialized array of one axis, as a constant along the last axis. */
static ty_val core_numbers(keras_call *c, const char *key, double absent)
{
    const ty_doc *d = keras_config(c, key), *value = ty_doc_find(ty_doc_find(d, "config"), "value");
    float out[4096];
    d = value ? value : d;
    while (d && d->kind == TY_DOC_LIST && d->n_items == 1)
        d = ty_doc_at(d, 0);
    if (!d || d->kind != TY_DOC_LIST) {
        if (d && ty_doc_float(d, &absent, NULL) < 0)
            keras_fail_key(c, key, "a number or a list of numbers");
        return ty_b_scalar(c->g, TY_F32, absent);
    }
    for (uint32_t i = 0; i < d->n_items; i++) {
        double v = 0;
        if (i >= 4096 || ty_doc_float(ty_doc_at(d, i), &v, NULL) < 0) {
            keras_fail_key(c, key, "at most 4096 numbers");
            return TY_NONE;
        }
        out[i] = (float)v;
    }
    return ty_b_const_copy(c->g, ty_type_make(TY_F32, 1, (int64_t[]){d->n_items}), out);
}

void keras_call_rescaling(keras_call *c)
{
    ty_val scale = core_numbers(c, "scale", 1), offset = core_numbers(c, "offset", 0);
    if (!c->failed)
        keras_set(c, 0, ty_b_add(c->g, ty_b_mul(c->g, keras_float(c, c->in[0]), scale), offset));
}

/* The axes that keep statistics of their own, as a mask; axis null: none. */
static bool core_kept_axes(keras_call *c, int rank, uint32_t *out)
{
    const ty_doc *d = ty_doc_find(c->config, "axis");
    int64_t list[TY_MAX_RANK] = {-1};
    int n = d && d->kind == TY_DOC_NULL ? 0 : d ? keras_list(c, "axis", TY_MAX_RANK, list) : 1, axis;
    *out = 0;
    for (int i = 0; i < n; i++) {
        if (!keras_axis(c, list[i], rank, &axis))
            return false;
        *out |= 1u << axis;
    }
    return !c->failed;
}

void keras_create_normalization(keras_call *c)
{
    const ty_type type = *ty_graph_type(c->g, c->in[0]);
    uint32_t kept;
    keras_spec spec = {.label = "mean", .initializer_absent = "zeros", .is_statistic = true};
    if (keras_config(c, "mean") || !core_kept_axes(c, type.rank, &kept))
        return;
    for (int i = 0; i < type.rank; i++)
        if (kept >> i & 1)
            spec.dim[spec.rank++] = type.dim[i];
    keras_add_weight(c, &spec);
    spec.label = "variance";
    spec.initializer_absent = "ones";
    keras_add_weight(c, &spec);
    keras_add_weight(
        c, &(keras_spec){.label = "count", .initializer_absent = "zeros", .is_statistic = true, .dtype = TY_I32});
}

/* (x - mean) / max(sqrt(variance), 1e-7), or back. */
void keras_call_normalization(keras_call *c)
{
    ty_val x = keras_float(c, c->in[0]), mean = keras_var(c, "mean"), variance = keras_var(c, "variance");
    const ty_type type = *ty_graph_type(c->g, x);
    uint32_t kept;
    int64_t dim[TY_MAX_RANK];
    if (!core_kept_axes(c, type.rank, &kept))
        return;
    if (mean == TY_NONE) {
        mean = core_numbers(c, "mean", 0);
        variance = core_numbers(c, "variance", 1);
    } else {
        for (int i = 0; i < type.rank; i++)
            dim[i] = kept >> i & 1 ? type.dim[i] : 1;
        mean = ty_b_reshape(c->g, mean, type.rank, dim);
        variance = ty_b_reshape(c->g, variance, type.rank, dim);
    }
    if (c->failed || mean == TY_NONE || variance == TY_NONE)
        return;
    ty_val root = ty_b_unary(c->g, TY_OP_SQRT, variance);
    ty_val scale = ty_b_max(c->g, root, ty_b_full_like(c->g, root, 1e-7));
    if (keras_flag(c, "invert", false))
        keras_set(c, 0, ty_b_add(c->g, mean, ty_b_mul(c->g, x, scale)));
    else
        keras_set(c, 0, ty_b_div(c->g, ty_b_sub(c->g, x, mean), scale));
}
