/* hf_llama.c - Llama (Touvron et al. 2023) and the decoders that differ from it in details: Mistral, Qwen2, Qwen3,
 * Gemma, Granite, Phi-3, SmolLM3, OLMo 2. Source of names and formulas: transformers/models/NAME/modeling_NAME.py.
 */
#include "include/trainyard/model.h"

#include "compiler/import/huggingface/hf_rotary.h"

#include <math.h>
#include <string.h>

typedef enum llama_norm { LLAMA_NO_NORM, LLAMA_NORM_OF_HEADS, LLAMA_NORM_OF_ALL } llama_norm;

/* What tells one network from another. Zero is Llama's. */
typedef struct llama_traits {
    int64_t groups;     /* num_key_value_heads where the file has none; 0: as many as heads */
    int64_t head_size;  /* head_dim likewise; 0: hidden_size / heads */
    double theta;       /* rope_theta likewise; 0: 10000 */
    bool biased_qkv;    /* these have biases; else attention_bias says so of all four */
    llama_norm norm;    /* of queries and keys */
    bool is_merged;     /* one matrix for queries, keys and values, and one for gate and up */
    bool norms_behind;  /* norms stand behind attention and feed forward, not before */
    bool norm_from_one; /* norms multiply by 1 + weight */
    bool scales_words;  /* rows of words are multiplied by the root of hidden_size */
    bool is_tied;       /* tie_word_embeddings where the file has none */
    bool always_window; /* sliding_window counts for all layers; else with use_sliding_window, from max_window_layers on
                         */
    bool skips_rotation;  /* no_rope_layers: some layers know no positions */
    bool has_multipliers; /* Granite's four factors */
    const char *activation;
} llama_traits;

/* Of one layer. */
typedef struct llama_layer {
    const hf_rotary *rotary; /* NULL: it knows no positions */
    ty_var mask;             /* {0}: every earlier word is seen */
    bool is_causal;          /* else the mask says that too */
} llama_layer;

static const llama_traits *traits_of(const hf_net *n)
{
    return n->family->traits;
}

static int64_t heads_of(hf_net *n)
{
    return hf_size(n, "num_attention_heads");
}

static int64_t groups_of(hf_net *n)
{
    int64_t usual = traits_of(n)->groups;
    return hf_size_or(n, "num_key_value_heads", usual ? usual : heads_of(n));
}

static int64_t head_size_of(hf_net *n)
{
    int64_t size = hf_size(n, "hidden_size"), heads = heads_of(n), usual = traits_of(n)->head_size;
    if (!usual && !hf_find(n, "head_dim") && size % heads)
        ty_fail(n->net, "%lld heads do not divide hidden_size %lld", (long long)heads, (long long)size);
    return hf_size_or(n, "head_dim", usual ? usual : size / heads ? size / heads : 1);
}

static double factor(hf_net *n, const char *key)
{
    return traits_of(n)->has_multipliers ? hf_number(n, key, 1) : 1;
}

static ty_var scaled(hf_net *n, ty_var x, double by)
{
    return by == 1 ? x : ty_scale(n->net, x, by);
}

/* ---- norms ------------------------------------------------------------------------------------------------------- */

/* x / rms(x) times a weight, or 1 + a weight that starts from 0. */
static ty_var norm(hf_net *n, const char *name, ty_var x)
{
    ty_net *net = n->net;
    double eps = hf_number(n, "rms_norm_eps", 1e-6);
    if (!traits_of(n)->norm_from_one)
        return ty_rms_norm(net, name, x, .eps = eps);
    ty_var w = ty_parameter(net, ty_text(net, "%s.weight", name), ty_dims(ty_dim(net, x, -1)), ty_zeros());
    return ty_mul(net, ty_rms_norm(net, name, x, .eps = eps, .no_scale = true), ty_shift(net, w, 1));
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

static void project(hf_net *n, ty_var x, ty_var *q, ty_var *k, ty_var *v)
{
    ty_net *net = n->net;
    const llama_traits *t = traits_of(n);
    int64_t d = head_size_of(n), wide = heads_of(n) * d, narrow = groups_of(n) * d;
    bool bias = t->biased_qkv || hf_flag(n, "attention_bias", false);
    if (t->is_merged) {
        ty_var all = hf_linear(n, "qkv_proj", x, wide + 2 * narrow, bias);
        *q = ty_slice(net, all, 2, 0, wide);
        *k = ty_slice(net, all, 2, wide, wide + narrow);
        *v = ty_slice(net, all, 2, wide + narrow, wide + 2 * narrow);
        return;
    }
    *q = hf_linear(n, "q_proj", x, wide, bias);
    *k = hf_linear(n, "k_proj", x, narrow, bias);
    *v = hf_linear(n, "v_proj", x, narrow, bias);
}

/* [B, S, heads D] normalized, in heads and turned. */
static ty_var prepare(hf_net *n, const char *name, ty_var x, int64_t heads, const hf_rotary *rotary)
{
    llama_norm kind = traits_of(n)->norm;
    if (kind == LLAMA_NORM_OF_ALL)
        x = norm(n, name, x);
    if (kind == LLAMA_NORM_OF_HEADS)
        x = norm(n, name, ty_reshape(n->net, x, ty_dims(0, 0, heads, -1)));
    x = hf_split_heads(n, x, heads);
    return rotary ? hf_rotate(n, x, rotary) : x;
}

static ty_var attend(hf_net *n, ty_var x, const llama_layer *l)
{
    ty_net *net = n->net;
    const llama_traits *t = traits_of(n);
    int64_t heads = heads_of(n), groups = groups_of(n);
    double usual = 1 / sqrt((double)head_size_of(n));
    ty_var q, k, v;
    ty_scope(net, "self_attn");
    project(n, x, &q, &k, &v);
    q = prepare(n, "q_norm", q, heads, l->rotary);
    k = hf_repeat_heads(n, prepare(n, "k_norm", k, groups, l->rotary), heads);
    v = hf_repeat_heads(n, hf_split_heads(n, v, groups), heads);
    ty_var y = ty_attention(net, q, k, v, .causal = l->is_causal, .mask = l->mask,
                            .scale = t->has_multipliers ? hf_number(n, "attention_multiplier", 1) : usual,
                            .dropout = hf_number(n, "attention_dropout", 0));
    bool bias = !t->biased_qkv && hf_flag(n, "attention_bias", false);
    y = hf_linear(n, "o_proj", hf_join_heads(n, y), hf_size(n, "hidden_size"), bias);
    ty_end(net);
    return y;
}

/* ---- feed forward ------------------------------------------------------------------------------------------------ */

static ty_var feed(hf_net *n, ty_var x)
{
    ty_net *net = n->net;
    const llama_traits *t = traits_of(n);
    int64_t wide = hf_size(n, "intermediate_size");
    bool bias = hf_flag(n, "mlp_bias", false);
    ty_var gate, up;
    ty_scope(net, "mlp");
    if (t->is_merged) {
        ty_var both = hf_linear(n, "gate_up_proj", x, 2 * wide, bias);
        gate = ty_slice(net, both, 2, 0, wide);
        up = ty_slice(net, both, 2, wide, 2 * wide);
    } else {
        gate = hf_linear(n, "gate_proj", x, wide, bias);
        up = hf_linear(n, "up_proj", x, wide, bias);
    }
    const char *activation = hf_text(n, "hidden_act", t->activation ? t->activation : "silu");
    x = ty_mul(net, hf_activation(n, activation, gate), up);
    x = hf_linear(n, "down_proj", x, hf_size(n, "hidden_size"), bias);
    ty_end(net);
    return x;
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

/* x + half(x), with the norm before or behind. */
static ty_var add_half(hf_net *n, ty_var x, ty_var half)
{
    half = hf_dropout(n, half, "resid_pdrop", 0);
    return ty_add(n->net, x, scaled(n, half, factor(n, "residual_multiplier")));
}

static ty_var layer(hf_net *n, ty_var x, const llama_layer *l)
{
    if (traits_of(n)->norms_behind) {
        x = add_half(n, x, norm(n, "post_attention_layernorm", attend(n, x, l)));
        return add_half(n, x, norm(n, "post_feedforward_layernorm", feed(n, x)));
    }
    x = add_half(n, x, attend(n, norm(n, "input_layernorm", x), l));
    return add_half(n, x, feed(n, norm(n, "post_attention_layernorm", x)));
}

/* Whether layer i sees a window alone: by layer_types, else by the keys of older files. */
static bool has_window(hf_net *n, int64_t i)
{
    const ty_doc *type = ty_doc_at(hf_find(n, "layer_types"), (size_t)i);
    if (traits_of(n)->always_window)
        return hf_find(n, "sliding_window");
    if (!hf_flag(n, "use_sliding_window", false) || !hf_find(n, "sliding_window"))
        return false;
    if (type)
        return type->kind == TY_DOC_STRING && strcmp(type->string, "sliding_attention") == 0;
    return (double)i >= hf_number(n, "max_window_layers", 28);
}

/* no_rope_layers: 1 where positions count; else every no_rope_layer_interval-th layer does without. */
static bool is_turned(hf_net *n, int64_t i)
{
    const ty_doc *listed = ty_doc_at(hf_find(n, "no_rope_layers"), (size_t)i);
    if (!traits_of(n)->skips_rotation)
        return true;
    return listed ? listed->kind == TY_DOC_INT && listed->integer != 0
                  : (i + 1) % hf_size_or(n, "no_rope_layer_interval", 4) != 0;
}

/* A window as long as the text is none. */
static llama_layer plan_layer(hf_net *n, int64_t i, ty_var words, ty_var mask, const hf_rotary *rotary)
{
    ty_net *net = n->net;
    llama_layer l = {is_turned(n, i) ? rotary : NULL, mask, true};
    if (!has_window(n, i) || hf_size(n, "sliding_window") >= ty_dim(net, words, 1))
        return l;
    ty_var near = hf_window(n, words, hf_size(n, "sliding_window"));
    l.is_causal = false;
    l.mask = l.mask.id ? ty_and(net, near, l.mask) : near;
    return l;
}

static ty_var network(hf_net *n, ty_var *words)
{
    ty_net *net = n->net;
    const llama_traits *t = traits_of(n);
    int64_t size = hf_size(n, "hidden_size"), layers = hf_layers(n, "num_hidden_layers", 0);
    bool is_inside = n->head->task != HF_NO_TASK;
    *words = hf_words(n);
    ty_var mask = hf_key_mask(n, hf_given_mask(n));
    hf_rotary rotary = hf_rotary_of(n, ty_dim(net, *words, 1), head_size_of(n), t->theta ? t->theta : 10000);
    if (is_inside)
        ty_scope(net, "model");
    ty_var x = hf_padded_table(n, "embed_tokens", *words, hf_size(n, "vocab_size"), size);
    x = scaled(n, x, t->scales_words ? (float)sqrt((double)size) : factor(n, "embedding_multiplier"));
    x = hf_dropout(n, x, "embd_pdrop", 0);
    for (int64_t i = 0; i < layers && !hf_failed(n); i++) {
        llama_layer l = plan_layer(n, i, *words, mask, &rotary);
        ty_scope(net, ty_text(net, "layers.%d", (int)i));
        x = layer(n, x, &l);
        ty_end(net);
    }
    x = norm(n, "norm", x);
    if (is_inside)
        ty_end(net);
    return x;
}

/* ---- heads ------------------------------------------------------------------------------------------------------- */

static void bare(hf_net *n)
{
    ty_var words, x = network(n, &words);
    ty_output(n->net, "last_hidden_state", x);
}

static void next_words(hf_net *n)
{
    ty_var words, x = network(n, &words);
    ty_var y = hf_next_logits(n, x, "model.embed_tokens.weight", traits_of(n)->is_tied);
    ty_output(n->net, "logits", scaled(n, y, 1 / factor(n, "logits_scaling")));
}

static void classes(hf_net *n)
{
    ty_var words, x = network(n, &words);
    hf_score(n, x, words);
}

static void tokens(hf_net *n)
{
    ty_var words, x = network(n, &words);
    hf_tag(n, "score", x, hf_flag(n, "token_classification_bias", true));
}

static const hf_head heads[] = {{"Model", HF_NO_TASK, bare},
                                {"ForCausalLM", HF_NEXT, next_words},
                                {"ForSequenceClassification", HF_CLASSES, classes},
                                {"ForTokenClassification", HF_TOKENS, tokens},
                                {NULL, HF_NO_TASK, NULL}};

/* ---- the networks ------------------------------------------------------------------------------------------------ */

#define LLAMA_LIKE(name, title, padding, ...)            \
    static const llama_traits as_##name = {__VA_ARGS__}; \
    const hf_family hf_family_##name = {                 \
        .class_name = title, .base = "model", .head = heads, .traits = &as_##name, .pad = padding};

LLAMA_LIKE(llama, "Llama", -1, 0)
LLAMA_LIKE(mistral, "Mistral", -1, .groups = 8, .always_window = true)
LLAMA_LIKE(qwen2, "Qwen2", -1, .groups = 32, .biased_qkv = true)
LLAMA_LIKE(qwen3, "Qwen3", -1, .groups = 32, .head_size = 128, .norm = LLAMA_NORM_OF_HEADS)
LLAMA_LIKE(gemma, "Gemma", 0, .groups = 16, .head_size = 256, .norm_from_one = true, .scales_words = true,
           .is_tied = true, .activation = "gelu_pytorch_tanh")
LLAMA_LIKE(granite, "Granite", -1, .has_multipliers = true)
LLAMA_LIKE(phi3, "Phi3", 32000, .is_merged = true, .always_window = true)
LLAMA_LIKE(smollm3, "SmolLM3", 128004, .groups = 4, .theta = 2000000, .skips_rotation = true, .is_tied = true)
LLAMA_LIKE(olmo2, "Olmo2", 1, .norm = LLAMA_NORM_OF_ALL, .norms_behind = true)
