/* hf_t5.c - T5 (Raffel et al. 2019), also T5 1.1 and FLAN-T5: an encoder, and a decoder that reads it.
 * Source of names and formulas: transformers/models/t5/modeling_t5.py.
 *
 * No position has a row of its own: attention adds a number per head to its scores, by how far apart two positions are.
 * Distances share numbers in buckets, wider ones further away, from a table in the first layer that all layers use.
 * Scores are not divided by the root of a head's size; weights start smaller instead.
 */
#include "include/trainyard/model.h"

#include "compiler/import/huggingface/hf_net.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One of the two halves. */
typedef struct t5_stack {
    const char *scope;
    ty_var memory;      /* what a decoder reads; {0}: this is an encoder */
    ty_var memory_mask; /* of memory's positions, bool; {0}: all are seen */
    ty_var mask;        /* of own positions: f32, added to scores */
} t5_stack;

static bool is_decoder(const t5_stack *s)
{
    return s->memory.id != 0;
}

static int64_t size_of(hf_net *n)
{
    return hf_size_or(n, "d_model", 512);
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

/* Normal with the deviation, times what the configuration says for all. */
static ty_init start(hf_net *n, double deviation)
{
    return ty_normal(0, hf_number(n, "initializer_factor", 1) * deviation);
}

/* fan_in: the deviation is 1 / sqrt(fan_in). */
static ty_var linear(hf_net *n, const char *name, ty_var x, int64_t out, int64_t fan_in)
{
    return ty_linear(n->net, name, x, out, .no_bias = true, .weight = start(n, 1 / sqrt((double)fan_in)));
}

static ty_var norm(hf_net *n, const char *name, ty_var x)
{
    return ty_rms_norm(n->net, name, x, .eps = hf_number(n, "layer_norm_epsilon", 1e-6));
}

static ty_var dropout(hf_net *n, ty_var x)
{
    return hf_dropout(n, x, "dropout_rate", 0.1);
}

/* mask: as ty_attention's. */
static ty_var attend(hf_net *n, const char *scope, ty_var x, ty_var from, ty_var mask, bool causal)
{
    ty_net *net = n->net;
    int64_t size = size_of(n), heads = hf_size_or(n, "num_heads", 8), head = hf_size_or(n, "d_kv", 64);
    ty_scope(net, scope);
    ty_var q = hf_split_heads(n, linear(n, "q", x, heads * head, size * head), heads);
    ty_var k = hf_split_heads(n, linear(n, "k", from, heads * head, size), heads);
    ty_var v = hf_split_heads(n, linear(n, "v", from, heads * head, size), heads);
    ty_var y = ty_attention(net, q, k, v, .scale = 1, .mask = mask, .causal = causal,
                            .dropout = hf_number(n, "dropout_rate", 0.1));
    y = linear(n, "o", hf_join_heads(n, y), size, heads * head);
    ty_end(net);
    return y;
}

/* feed_forward_proj is an activation, or "gated-" and one; "gated-gelu" means the approximation by tanh. Files may
 * have what follows from it as keys of their own, which win then, as they do in the class. */
static void read_feed_forward(hf_net *n, const char **activation, bool *gated)
{
    const char *name = hf_text(n, "feed_forward_proj", "relu"), *dash = strchr(name, '-');
    if (dash && (strncmp(name, "gated-", 6) != 0 || strchr(dash + 1, '-')))
        hf_refuse(n, "feed_forward_proj", "expected an activation, or \"gated-\" and an activation");
    *gated = hf_flag(n, "is_gated_act", strncmp(name, "gated", 5) == 0);
    const char *meant = strcmp(name, "gated-gelu") == 0 ? "gelu_new" : dash ? dash + 1 : name;
    *activation = hf_text(n, "dense_act_fn", meant);
}

static ty_var feed_forward(hf_net *n, ty_var x)
{
    ty_net *net = n->net;
    int64_t size = size_of(n), width = hf_size_or(n, "d_ff", 2048);
    const char *activation;
    bool gated;
    read_feed_forward(n, &activation, &gated);
    ty_scope(net, "DenseReluDense");
    ty_var y = hf_activation(n, activation, linear(n, gated ? "wi_0" : "wi", x, width, size));
    if (gated)
        y = ty_mul(net, y, linear(n, "wi_1", x, width, size));
    y = linear(n, "wo", dropout(n, y), size, width);
    ty_end(net);
    return y;
}

/* The name of the one table of words. Of those that the class ties, files have the first, rarely another alone. */
static const char *word_table(hf_net *n)
{
    static const char *const names[] = {"shared", "encoder.embed_tokens", "decoder.embed_tokens", "lm_head"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (hf_holds(n, ty_text(n->net, "%s.weight", names[i])))
            return names[i];
    return names[0];
}

/* A stack with words of its own would be another network. */
static void check_tied(hf_net *n, const char *scope)
{
    const char *own = ty_text(n->net, "%s.embed_tokens.weight", scope);
    if (hf_holds_apart(n, own, ty_text(n->net, "%s.weight", word_table(n))))
        ty_fail(n->net, "the files have a table %s of its own, which is not built", own);
}

/* ---- distances --------------------------------------------------------------------------------------------------- */

/* Buckets for one direction. */
typedef struct t5_buckets {
    int64_t n, farthest; /* all distances from `farthest` on share the last one */
} t5_buckets;

/* In float32, whose rounding decides at the limits. */
static int64_t bucket_of(const t5_buckets *b, int64_t distance)
{
    int64_t exact = b->n / 2;
    if (distance < exact)
        return distance;
    float span = (float)log((double)b->farthest / (double)exact);
    float part = logf((float)distance / (float)exact) / span * (float)(b->n - exact);
    int64_t bucket = exact + (int64_t)part;
    return bucket < b->n ? bucket : b->n - 1;
}

/* A decoder never looks forward, and has all buckets for the way back. */
static t5_buckets read_buckets(hf_net *n, bool one_way)
{
    int64_t all = hf_size_or(n, "relative_attention_num_buckets", 32);
    t5_buckets b = {one_way ? all : all / 2, hf_size_or(n, "relative_attention_max_distance", 128)};
    if (b.n < 2)
        hf_refuse(n, "relative_attention_num_buckets", "expected at least 4");
    else if (b.farthest <= b.n / 2)
        hf_refuse(n, "relative_attention_max_distance", "expected more than half of the buckets of a direction");
    return b;
}

/* i64 [2 S - 1]: the bucket of keys that stand S - 1 positions in front of a query, S - 2, ... S - 1 behind it. */
static ty_var bucket_row(hf_net *n, int64_t length, bool one_way)
{
    const t5_buckets b = read_buckets(n, one_way);
    int64_t *row = hf_failed(n) ? NULL : calloc((size_t)(2 * length), sizeof *row);
    if (!row) {
        ty_fail(n->net, "no memory for distances of %lld positions", (long long)length);
        return (ty_var){0};
    }
    for (int64_t i = 0; i < length; i++) {
        row[length - 1 - i] = bucket_of(&b, i);
        row[length - 1 + i] = one_way || i == 0 ? 0 : b.n + bucket_of(&b, i);
    }
    row[length - 1] = 0;
    ty_var out = ty_constant(n->net, "i64", ty_dims(2 * length - 1), row);
    free(row);
    return out;
}

/* f32 [1, H, S, S]: what attention adds to its scores. */
static ty_var distance_scores(hf_net *n, int64_t length, bool one_way)
{
    ty_net *net = n->net;
    int64_t rows = hf_size_or(n, "relative_attention_num_buckets", 32), heads = hf_size_or(n, "num_heads", 8);
    ty_var query = ty_iota(net, "i64", ty_dims(length, length), 0),
           key = ty_iota(net, "i64", ty_dims(length, length), 1);
    ty_var place = ty_shift(net, ty_sub(net, key, query), (double)(length - 1));
    ty_var bucket = ty_gather(net, bucket_row(n, length, one_way), place, 0);
    ty_var y = ty_embedding(net, "block.0.layer.0.SelfAttention.relative_attention_bias", bucket, rows, heads,
                            .weight = start(n, 1 / sqrt((double)size_of(n))));
    return ty_unsqueeze(net, ty_transpose(net, y, ty_dims(2, 0, 1)), 0);
}

/* The same where the key is seen, else so little that nothing of it is left. seen: bool [B, S]; {0}: all are. */
static ty_var masked_scores(hf_net *n, ty_var scores, ty_var seen)
{
    ty_net *net = n->net;
    if (seen.id == 0)
        return scores;
    return ty_where(net, hf_key_mask(n, seen), scores, ty_number(net, "f32", -1e30));
}

/* ---- the network ------------------------------------------------------------------------------------------------- */

/* x + the branch. */
static ty_var join(hf_net *n, ty_var x, ty_var branch)
{
    return ty_add(n->net, x, dropout(n, branch));
}

static ty_var block(hf_net *n, const t5_stack *s, ty_var x)
{
    ty_net *net = n->net;
    ty_scope(net, "layer.0");
    ty_var y = norm(n, "layer_norm", x);
    x = join(n, x, attend(n, "SelfAttention", y, y, s->mask, is_decoder(s)));
    ty_end(net);
    if (is_decoder(s)) {
        ty_scope(net, "layer.1");
        y = norm(n, "layer_norm", x);
        x = join(n, x, attend(n, "EncDecAttention", y, s->memory, s->memory_mask, false));
        ty_end(net);
    }
    ty_scope(net, is_decoder(s) ? "layer.2" : "layer.1");
    x = join(n, x, feed_forward(n, norm(n, "layer_norm", x)));
    ty_end(net);
    return x;
}

static int64_t n_blocks(hf_net *n, const t5_stack *s)
{
    int64_t layers = hf_layers(n, "num_layers", 6);
    return is_decoder(s) ? hf_size_or(n, "num_decoder_layers", layers) : layers;
}

/* seen: as masked_scores. */
static ty_var stack(hf_net *n, t5_stack *s, ty_var words, ty_var seen)
{
    ty_net *net = n->net;
    int64_t blocks = n_blocks(n, s);
    check_tied(n, s->scope);
    ty_var x =
        ty_embedding(net, word_table(n), words, hf_size_or(n, "vocab_size", 32128), size_of(n), .weight = start(n, 1));
    ty_scope(net, s->scope);
    s->mask = masked_scores(n, distance_scores(n, ty_dim(net, words, 1), is_decoder(s)), seen);
    x = dropout(n, x);
    for (int64_t i = 0; i < blocks && !hf_failed(n); i++) {
        ty_scope(net, ty_text(net, "block.%d", (int)i));
        x = block(n, s, x);
        ty_end(net);
    }
    x = dropout(n, norm(n, "final_layer_norm", x));
    ty_end(net);
    return x;
}

/* seen: which words are, for a decoder that reads the result. */
static ty_var encode(hf_net *n, ty_var *seen)
{
    t5_stack s = {.scope = "encoder"};
    if (hf_flag(n, "is_decoder", false))
        hf_refuse(n, "is_decoder", "decoders without an encoder are not built");
    ty_var words = hf_words(n);
    *seen = hf_seen(n, words);
    return stack(n, &s, words, *seen);
}

/* What the decoder makes of its words, each of which sees those in front of it. Padding behind the last one is seen by
 * none that counts, so no mask is needed; it may be given all the same. */
static ty_var encode_and_decode(hf_net *n)
{
    ty_net *net = n->net;
    ty_var seen, own = {0}, memory = encode(n, &seen);
    t5_stack s = {.scope = "decoder", .memory = memory, .memory_mask = hf_key_mask(n, seen)};
    ty_var words = ty_input(net, "decoder_input_ids", "i64[batch,target]");
    if (hf_takes(n, "decoder_attention_mask", false)) {
        ty_var given = ty_input(net, "decoder_attention_mask", "i64[batch,target]");
        own = ty_ne(net, given, ty_number(net, "i64", 0));
    }
    return stack(n, &s, words, own);
}

/* ---- heads ------------------------------------------------------------------------------------------------------- */

static void bare(hf_net *n)
{
    ty_output(n->net, "last_hidden_state", encode_and_decode(n));
}

static void encoder(hf_net *n)
{
    ty_var seen;
    ty_output(n->net, "last_hidden_state", encode(n, &seen));
}

/* T5 1.1 has a table of its own for logits. Its files say so by having one; tie_word_embeddings tells whether logits
 * are scaled, unless a key of its own does. */
static void next_words(hf_net *n)
{
    ty_net *net = n->net;
    int64_t rows = hf_size_or(n, "vocab_size", 32128), size = size_of(n);
    bool scaled = hf_flag(n, "scale_decoder_outputs", hf_flag(n, "tie_word_embeddings", true));
    const char *table = ty_text(net, "%s.weight", word_table(n));
    bool apart = hf_holds_apart(n, "lm_head.weight", table);
    ty_var x = encode_and_decode(n);
    x = scaled ? ty_scale(net, x, 1 / sqrt((double)size)) : x;
    ty_output(net, "logits", hf_tied_logits(n, x, apart ? "lm_head.weight" : table, rows, size, NULL));
}

static const hf_head heads[] = {{"Model", HF_NO_TASK, bare},
                                {"EncoderModel", HF_NO_TASK, encoder},
                                {"ForConditionalGeneration", HF_TEXT, next_words},
                                {NULL, HF_NO_TASK, NULL}};

const hf_family hf_family_t5 = {.class_name = "T5", .base = "", .head = heads, .pad = 0};
