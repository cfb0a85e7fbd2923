/* hf_net.c - see hf_net.h. */
#include "include/trainyard/model.h"

#include "compiler/import/huggingface/hf_net.h"

#include "compiler/import/huggingface/hf_config.h"

#include <string.h>

enum { MAX_LAYERS = 4096 };

/* ---- config.json ------------------------------------------------------------------------------------------------- */

int64_t hf_size_or(hf_net *n, const char *key, int64_t absent)
{
    ty_error err;
    int64_t size = 1;
    if (hf_failed(n) || hf_config_size(n->config, key, absent, &size, &err) == 0)
        return size;
    hf_fail(n, &err);
    return 1;
}

int64_t hf_size(hf_net *n, const char *key)
{
    return hf_size_or(n, key, 0);
}

double hf_number(hf_net *n, const char *key, double absent)
{
    ty_error err;
    double v;
    if (hf_config_number(n->config, key, absent, &v, &err) < 0)
        hf_fail(n, &err);
    return v;
}

bool hf_flag(hf_net *n, const char *key, bool absent)
{
    ty_error err;
    bool v;
    if (hf_config_flag(n->config, key, absent, &v, &err) < 0)
        hf_fail(n, &err);
    return v;
}

const char *hf_text(hf_net *n, const char *key, const char *absent)
{
    ty_error err;
    const char *v;
    if (hf_config_text(n->config, key, absent, &v, &err) < 0)
        hf_fail(n, &err);
    return v;
}

int64_t hf_layers(hf_net *n, const char *key, int64_t absent)
{
    int64_t layers = hf_size_or(n, key, absent);
    if (layers <= MAX_LAYERS)
        return layers;
    hf_refuse(n, key, "no network has so many layers");
    return 1;
}

/* null means that there is none, whatever the class's default. */
int64_t hf_padding(hf_net *n)
{
    const ty_doc *d = ty_doc_find(n->config, "pad_token_id");
    return d && d->kind == TY_DOC_NULL ? -1 : (int64_t)hf_number(n, "pad_token_id", (double)n->family->pad);
}

void hf_pair(hf_net *n, const char *key, int64_t absent, int64_t pair[2])
{
    ty_error err;
    const ty_doc *d = hf_find(n, key);
    pair[0] = pair[1] = 1;
    if (!d || d->kind != TY_DOC_LIST) {
        pair[0] = pair[1] = hf_size_or(n, key, absent);
        return;
    }
    for (int i = 0; i < 2 && !hf_failed(n); i++) {
        const ty_doc *side = ty_doc_at(d, (size_t)i);
        if (ty_doc_len(d) != 2)
            hf_refuse(n, key, "expected a number, or a list of two: height and width");
        else if (ty_doc_int(side, &pair[i], &err) < 0)
            hf_fail(n, &err);
        else if (pair[i] < 1 || pair[i] > INT32_MAX)
            hf_refuse(n, key, "expected sizes of at least 1");
    }
}

const ty_doc *hf_find(hf_net *n, const char *key)
{
    return hf_config_find(n->config, key);
}

void hf_refuse(hf_net *n, const char *key, const char *what)
{
    ty_error err;
    const ty_doc *d = ty_doc_find(n->config, key);
    ty_doc_error(d ? d : n->config, &err, TY_E_UNSUPPORTED, NULL, "key \"%s\": %s", key, what);
    hf_fail(n, &err);
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

bool hf_takes(const hf_net *n, const char *name, bool usually)
{
    for (int i = 0; i < n->n_inputs; i++)
        if (strcmp(n->inputs[i], name) == 0)
            return true;
    return n->n_inputs == 0 && usually;
}

ty_var hf_words(hf_net *n)
{
    return ty_input(n->net, HF_INPUT_IDS, "i64[batch,sequence]");
}

static ty_var words_like(hf_net *n, ty_var words, int64_t number)
{
    return ty_full(n->net, "i64", ty_dims(ty_dim(n->net, words, 0), ty_dim(n->net, words, 1)), (double)number);
}

static ty_var read_mask(hf_net *n)
{
    ty_var mask = ty_input(n->net, "attention_mask", "i64[batch,sequence]");
    return ty_ne(n->net, mask, words_like(n, mask, 0));
}

ty_var hf_given_mask(hf_net *n)
{
    return hf_takes(n, "attention_mask", false) ? read_mask(n) : (ty_var){0};
}

ty_var hf_seen(hf_net *n, ty_var words)
{
    if (hf_takes(n, "attention_mask", true))
        return read_mask(n);
    int64_t pad = hf_padding(n);
    return pad < 0 ? (ty_var){0} : ty_ne(n->net, words, words_like(n, words, pad));
}

ty_var hf_types(hf_net *n)
{
    bool given = hf_takes(n, "token_type_ids", true);
    return given ? ty_input(n->net, "token_type_ids", "i64[batch,sequence]") : (ty_var){0};
}

ty_var hf_pixels(hf_net *n, int64_t absent)
{
    int64_t size[2], channels = hf_size_or(n, "num_channels", 3);
    hf_pair(n, "image_size", absent, size);
    return ty_input(
        n->net, "pixel_values",
        ty_text(n->net, "f32[batch,%lld,%lld,%lld]", (long long)channels, (long long)size[0], (long long)size[1]));
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

ty_init hf_start(const hf_net *n)
{
    return ty_normal(0, n->range);
}

ty_var hf_linear(hf_net *n, const char *name, ty_var x, int64_t out, bool bias)
{
    return ty_linear(n->net, name, x, out, .no_bias = !bias, .weight = hf_start(n), .bias = ty_zeros());
}

ty_var hf_table(hf_net *n, const char *name, ty_var ids, int64_t rows, int64_t size)
{
    return ty_embedding(n->net, name, ids, rows, size, .weight = hf_start(n));
}

ty_var hf_padded_table(hf_net *n, const char *name, ty_var ids, int64_t rows, int64_t size)
{
    ty_net *net = n->net;
    int64_t pad = hf_padding(n);
    ty_var x = hf_table(n, name, ids, rows, size);
    if (pad < 0 || !ty_training(net))
        return x;
    ty_var is_pad = ty_unsqueeze(net, ty_eq(net, ids, words_like(n, ids, pad)), 2);
    return ty_where(net, is_pad, ty_stop_gradient(net, x), x);
}

ty_var hf_places(hf_net *n, const char *name, ty_var words, int64_t rows, int64_t size)
{
    ty_net *net = n->net;
    int64_t length = ty_dim(net, words, 1);
    if (length > rows)
        ty_fail(net, "texts of %lld tokens, and the table %s has %lld positions", (long long)length, name,
                (long long)rows);
    return ty_slice(net, ty_parameter(net, ty_text(net, "%s.weight", name), ty_dims(rows, size), hf_start(n)), 0, 0,
                    length);
}

/* create_position_ids_from_input_ids */
ty_var hf_counted_places(hf_net *n, ty_var words)
{
    ty_net *net = n->net;
    int64_t pad = hf_padding(n), most = hf_size(n, "max_position_embeddings") - pad - 1;
    if (ty_dim(net, words, 1) > most)
        ty_fail(net, "texts of %lld tokens, and the table position_embeddings has room for %lld",
                (long long)ty_dim(net, words, 1), (long long)most);
    ty_var padding = words_like(n, words, pad), is_word = ty_cast(net, ty_ne(net, words, padding), "i64");
    return ty_add(net, ty_mul(net, ty_cumsum(net, is_word, 1), is_word), padding);
}

ty_var hf_type_rows(hf_net *n, ty_var types, int64_t size)
{
    ty_net *net = n->net;
    int64_t rows = hf_size_or(n, "type_vocab_size", 2);
    if (types.id)
        return hf_table(n, "token_type_embeddings", types, rows, size);
    return ty_slice(net, ty_parameter(net, "token_type_embeddings.weight", ty_dims(rows, size), hf_start(n)), 0, 0, 1);
}

ty_var hf_layer_norm(hf_net *n, const char *name, ty_var x, double eps)
{
    return ty_layer_norm(n->net, name, x, .eps = eps);
}

static ty_var quick_gelu(ty_net *net, ty_var x)
{
    return ty_mul(net, x, ty_sigmoid(net, ty_scale(net, x, 1.702)));
}

static ty_var squared_relu(ty_net *net, ty_var x)
{
    return ty_square(net, ty_relu(net, x));
}

#define ACTIVATION(name, call)                \
    static ty_var name(ty_net *net, ty_var x) \
    {                                         \
        return call;                          \
    }
ACTIVATION(gelu_by_erf, ty_gelu(net, x))
ACTIVATION(gelu_by_tanh, ty_gelu_tanh(net, x))
ACTIVATION(relu, ty_relu(net, x))
ACTIVATION(silu, ty_silu(net, x))
ACTIVATION(tanh_of, ty_tanh(net, x))
ACTIVATION(sigmoid, ty_sigmoid(net, x))
ACTIVATION(mish, ty_mish(net, x))

ty_var hf_activation(hf_net *n, const char *name, ty_var x)
{
    static const struct {
        const char *name;
        ty_var (*apply)(ty_net *net, ty_var x);
    } rows[] = {
        {"gelu", gelu_by_erf},
        {"gelu_python", gelu_by_erf},
        {"gelu_new", gelu_by_tanh},
        {"gelu_fast", gelu_by_tanh},
        {"relu", relu},
        {"gelu_pytorch_tanh", gelu_by_tanh},
        {"silu", silu},
        {"swish", silu},
        {"quick_gelu", quick_gelu},
        {"tanh", tanh_of},
        {"sigmoid", sigmoid},
        {"mish", mish},
        {"relu2", squared_relu},
        {"gelu_python_tanh", gelu_by_tanh},
        {"gelu_accurate", gelu_by_tanh},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].apply(n->net, x);
    ty_fail(n->net, "the activation \"%s\" of config.json is not known", name);
    return x;
}

ty_var hf_dropout(hf_net *n, ty_var x, const char *key, double absent)
{
    return ty_dropout(n->net, x, hf_number(n, key, absent));
}

ty_var hf_drop_path(hf_net *n, ty_var x, const char *key, double rate)
{
    ty_net *net = n->net;
    if (!(rate >= 0 && rate < 1))
        hf_refuse(n, key, "expected a probability below 1");
    if (rate == 0 || !ty_training(net) || hf_failed(n))
        return x;
    ty_shape shape = {.n = ty_rank(net, x), .dim = {ty_dim(net, x, 0), 1, 1, 1, 1, 1, 1, 1}};
    ty_var stays = ty_floor(net, ty_shift(net, ty_random(net, shape), 1 - rate));
    return ty_mul(net, ty_scale(net, x, 1 / (1 - rate)), stays);
}

ty_var hf_patches(hf_net *n, const char *name, ty_var pixels, int64_t out, int64_t absent)
{
    int64_t patch[2];
    hf_pair(n, "patch_size", absent, patch);
    if (hf_failed(n))
        return pixels;
    if (patch[0] > ty_dim(n->net, pixels, 2) || patch[1] > ty_dim(n->net, pixels, 3))
        hf_refuse(n, "patch_size", "patches are larger than the picture (image_size)");
    return ty_conv(n->net, name, pixels, out, 0, .kernels = ty_dims(patch[0], patch[1]),
                   .strides = ty_dims(patch[0], patch[1]), .weight = hf_start(n), .bias = ty_zeros());
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

ty_var hf_split_heads(hf_net *n, ty_var x, int64_t heads)
{
    ty_net *net = n->net;
    int64_t size = ty_dim(net, x, 2);
    if (size % heads)
        ty_fail(net, "%lld heads do not divide %lld numbers", (long long)heads, (long long)size);
    return ty_transpose(net, ty_reshape(net, x, ty_dims(0, 0, heads, -1)), ty_dims(0, 2, 1, 3));
}

ty_var hf_join_heads(hf_net *n, ty_var x)
{
    ty_net *net = n->net;
    return ty_reshape(net, ty_transpose(net, x, ty_dims(0, 2, 1, 3)), ty_dims(0, 0, -1));
}

ty_var hf_attend(hf_net *n, ty_var x, const hf_attention *a)
{
    int64_t heads = hf_size(n, a->heads), size = ty_dim(n->net, x, 2);
    if (size % heads)
        hf_refuse(n, a->heads, "heads that do not divide the numbers of a position");
    ty_var q = hf_split_heads(n, hf_linear(n, a->query, x, size, true), heads);
    ty_var k = hf_split_heads(n, hf_linear(n, a->key, x, size, true), heads);
    ty_var v = hf_split_heads(n, hf_linear(n, a->value, x, size, true), heads);
    double dropout = hf_number(n, a->dropout, a->usual_dropout);
    return hf_join_heads(n, ty_attention(n->net, q, k, v, .mask = a->mask, .dropout = dropout));
}

ty_var hf_repeat_heads(hf_net *n, ty_var x, int64_t heads)
{
    ty_net *net = n->net;
    int64_t b = ty_dim(net, x, 0), g = ty_dim(net, x, 1), s = ty_dim(net, x, 2), d = ty_dim(net, x, 3);
    if (heads % g)
        ty_fail(net, "%lld heads do not divide among %lld heads of keys", (long long)heads, (long long)g);
    if (heads == g)
        return x;
    ty_var wide = ty_expand(net, ty_unsqueeze(net, x, 2), ty_dims(b, g, heads / g, s, d));
    return ty_reshape(net, wide, ty_dims(b, heads, s, d));
}

ty_var hf_window(hf_net *n, ty_var x, int64_t window)
{
    ty_net *net = n->net;
    int64_t s = ty_dim(net, x, 1);
    ty_var query = ty_iota(net, "i64", ty_dims(s, s), 0), key = ty_iota(net, "i64", ty_dims(s, s), 1);
    ty_var near = ty_lt(net, ty_shift(net, query, (double)-window), key);
    return ty_and(net, ty_le(net, key, query), near);
}

ty_var hf_key_mask(hf_net *n, ty_var seen)
{
    ty_net *net = n->net;
    if (seen.id == 0)
        return seen;
    return ty_reshape(net, seen, ty_dims(ty_dim(net, seen, 0), 1, 1, ty_dim(net, seen, 1)));
}

/* ---- heads ------------------------------------------------------------------------------------------------------- */

ty_var hf_tied_logits(hf_net *n, ty_var x, const char *table, int64_t rows, int64_t size, const char *bias)
{
    ty_net *net = n->net;
    ty_var w = ty_parameter(net, table, ty_dims(rows, size), hf_start(n));
    ty_var y = ty_matmul(net, x, ty_transpose(net, w, ty_dims(1, 0)));
    return bias ? ty_add(net, y, ty_parameter(net, bias, ty_dims(rows), ty_zeros())) : y;
}

const char *hf_tied_name(hf_net *n, const char *shared, const char *own, bool absent)
{
    bool is_alone = hf_holds(n, own) && !hf_holds(n, shared);
    bool is_tied = hf_flag(n, "tie_word_embeddings", absent) && !is_alone && !hf_holds_apart(n, own, shared);
    return is_tied ? shared : own;
}

ty_var hf_last_word(hf_net *n, ty_var x, ty_var words)
{
    ty_net *net = n->net;
    int64_t pad = hf_padding(n);
    int64_t b = ty_dim(net, x, 0), s = ty_dim(net, x, 1), e = ty_dim(net, x, 2);
    if (pad < 0)
        return ty_reshape(net, ty_slice(net, x, 1, s - 1, s), ty_dims(b, e));
    ty_var place = ty_iota(net, "i64", ty_dims(b, s), 1);
    ty_var is_word = ty_ne(net, words, words_like(n, words, pad));
    ty_var last = ty_reduce_max(net, ty_where(net, is_word, place, words_like(n, words, 0)), ty_dims(1), true);
    ty_var index = ty_expand(net, ty_reshape(net, last, ty_dims(b, 1, 1)), ty_dims(b, 1, e));
    return ty_reshape(net, ty_take(net, x, index, 1), ty_dims(b, e));
}

ty_var hf_first(hf_net *n, ty_var x)
{
    ty_net *net = n->net;
    return ty_reshape(net, ty_slice(net, x, 1, 0, 1), ty_dims(ty_dim(net, x, 0), ty_dim(net, x, 2)));
}

void hf_answer(hf_net *n, ty_var y)
{
    ty_net *net = n->net;
    ty_output(net, "start_logits", ty_squeeze(net, ty_slice(net, y, 2, 0, 1), 2));
    ty_output(net, "end_logits", ty_squeeze(net, ty_slice(net, y, 2, 1, 2), 2));
}

ty_var hf_next_logits(hf_net *n, ty_var x, const char *shared, bool absent)
{
    int64_t rows = hf_size(n, "vocab_size");
    bool is_tied = hf_tied_name(n, shared, "lm_head.weight", absent) == shared;
    return is_tied ? hf_tied_logits(n, x, shared, rows, ty_dim(n->net, x, 2), NULL)
                   : hf_linear(n, "lm_head", x, rows, false);
}

void hf_score(hf_net *n, ty_var x, ty_var words)
{
    ty_output(n->net, "logits", hf_linear(n, "score", hf_last_word(n, x, words), n->labels, false));
}

void hf_tag(hf_net *n, const char *name, ty_var x, bool bias)
{
    x = hf_dropout(n, x, hf_find(n, "classifier_dropout") ? "classifier_dropout" : "hidden_dropout", 0.1);
    ty_output(n->net, "logits", hf_linear(n, name, x, n->labels, bias));
}
