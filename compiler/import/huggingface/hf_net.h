/* hf_net.h - what families of networks are written with: the calls of trainyard/model.h, and beside them what a
 * config.json says and the pieces that many networks share.
 *
 * A family's file includes include/trainyard/model.h first, for its calls. Scopes and names are those of the modules in
 * transformers/models/NAME/modeling_NAME.py, so that the weights of a folder fit by name. The first fault (a key that
 * is missing, a shape that does not fit) ends the building; later calls do nothing, and sizes are then 1.
 *
 * Letters: B batch, S positions, H heads, G heads of keys and values, D numbers of a head, E numbers of a position.
 */
#ifndef TY_COMPILER_IMPORT_HUGGINGFACE_HF_NET_H
#define TY_COMPILER_IMPORT_HUGGINGFACE_HF_NET_H

#include "base/doc.h"

#ifndef TRAINYARD_MODEL_H
#define TY_MODEL_TYPES_ONLY
#include "include/trainyard/model.h"
#endif

struct ty_hf;
typedef struct hf_net hf_net;
typedef void hf_build(hf_net *n);

/* What a head is for: how it is trained where nobody says otherwise (hf_recipe.c), and whether it has classes. */
typedef enum hf_task {
    HF_NO_TASK,  /* a network without a head: hidden states */
    HF_CLASSES,  /* logits [B, labels] of a text or picture */
    HF_TOKENS,   /* logits [B, S, labels] */
    HF_WORDS,    /* logits [B, S, vocabulary], of words that are hidden in the text */
    HF_NEXT,     /* logits [B, S, vocabulary], of the next word */
    HF_TEXT,     /* the same, of a text that a decoder makes of another */
    HF_QUESTIONS /* start_logits, end_logits [B, S] */
} hf_task;

typedef struct hf_head {
    const char *suffix; /* of the class: "ForSequenceClassification" */
    hf_task task;
    hf_build *build;
} hf_head;

typedef struct hf_family {
    const char *class_name; /* in front of the suffix: "Bert" */
    const char *base;       /* the module that heads stand on: "bert"; its weights alone may be the file. "": none */
    const hf_head *head;    /* ends with a NULL suffix */
    const void *traits;     /* what tells this model from others of the family, of the family's own kind; or NULL */
    int64_t pad;            /* pad_token_id where config.json has none; -1: there is no such token */
    bool is_turned;         /* linear layers have their weights as [in, out] */
    bool places_behind_pad; /* row pad_token_id + 1 of the table of positions is the first: texts are shorter by that */
} hf_family;

struct hf_net {
    ty_net *net;
    const ty_doc *config;
    const hf_family *family;
    const hf_head *head;
    int64_t labels;
    const char *const *inputs; /* those that are given; what else the network knows is made up */
    int n_inputs;              /* 0: the usual ones */
    double range;              /* initializer_range: deviation of weights that start anew */
    const struct ty_hf *model; /* whose files hold the weights */
};

/* ---- config.json ------------------------------------------------------------------------------------------------- */

int64_t hf_size(hf_net *n, const char *key);                    /* must be there */
int64_t hf_size_or(hf_net *n, const char *key, int64_t absent); /* absent > 0 */
double hf_number(hf_net *n, const char *key, double absent);
bool hf_flag(hf_net *n, const char *key, bool absent);
const char *hf_text(hf_net *n, const char *key, const char *absent);
/* Height and width: the key has one number for both, or a list of the two. absent: both, where it is missing. */
void hf_pair(hf_net *n, const char *key, int64_t absent, int64_t pair[2]);
/* The key's value; NULL: missing or null. */
const ty_doc *hf_find(hf_net *n, const char *key);
/* How many layers there are; absent as for hf_size_or. Refuses more than any network has. */
int64_t hf_layers(hf_net *n, const char *key, int64_t absent);
/* pad_token_id; -1: there is no such token. */
int64_t hf_padding(hf_net *n);
/* Refuses the value of a key: what of it is not built here. */
void hf_refuse(hf_net *n, const char *key, const char *what);
/* Ends the building with an error that has its place already; the first one counts. */
void hf_fail(hf_net *n, const ty_error *err);
bool hf_failed(const hf_net *n);

/* Whether the files have this weight (its whole name). */
bool hf_holds(const hf_net *n, const char *name);
/* Whether they have both weights, and with other numbers: tables that classes of Transformers 5 tie stay apart then. */
bool hf_holds_apart(const hf_net *n, const char *name, const char *other);

/* The input that is words, of families that have any. */
#define HF_INPUT_IDS "input_ids"

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

/* Whether an input is given: named by the recipe or, where that names none, usual. */
bool hf_takes(const hf_net *n, const char *name, bool usually);
/* i64 [B, S], both free. */
ty_var hf_words(hf_net *n);
/* bool [B, S] of attention_mask where it is given; {0}: it is not, and all positions count. */
ty_var hf_given_mask(hf_net *n);
/* bool [B, S], what positions hold words: attention_mask or, where that is not given, what is not pad_token_id; {0}:
 * all do. */
ty_var hf_seen(hf_net *n, ty_var words);
/* i64 [B, S] of token_type_ids; {0}: not given, all are 0. */
ty_var hf_types(hf_net *n);
/* f32 [B, num_channels, height, width] of pixel_values. absent: image_size where config.json has none. */
ty_var hf_pixels(hf_net *n, int64_t absent);

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

/* Initial values of linear layers and tables: normal with deviation `range`; biases 0. */
ty_init hf_start(const hf_net *n);
ty_var hf_linear(hf_net *n, const char *name, ty_var x, int64_t out, bool bias);
ty_var hf_table(hf_net *n, const char *name, ty_var ids, int64_t rows, int64_t size);
/* The same, whose row of pad_token_id learns nothing by being looked up: nn.Embedding(padding_idx=...). */
ty_var hf_padded_table(hf_net *n, const char *name, ty_var ids, int64_t rows, int64_t size);
/* Its first S rows, [S, size]. */
ty_var hf_places(hf_net *n, const char *name, ty_var words, int64_t rows, int64_t size);
/* i64 [B, S] as RoBERTa counts: pad_token_id + 1, + 2 ... for words, pad_token_id for padding. */
ty_var hf_counted_places(hf_net *n, ty_var words);
/* Rows of token_type_embeddings, those of type 0 where no types are given. */
ty_var hf_type_rows(hf_net *n, ty_var types, int64_t size);
ty_var hf_layer_norm(hf_net *n, const char *name, ty_var x, double eps);
/* By its name in transformers/activations.py (ACT2FN): "gelu", "gelu_new", "silu" ... */
ty_var hf_activation(hf_net *n, const char *name, ty_var x);
/* With the probability that a key has. */
ty_var hf_dropout(hf_net *n, ty_var x, const char *key, double absent);
/* In training, zeroes whole samples with this probability and divides the others by 1 - rate (DropPath). key: where
 * the rate is from. */
ty_var hf_drop_path(hf_net *n, ty_var x, const char *key, double rate);
/* A linear layer of each patch of pixels, [B, out, rows, columns]: a convolution whose windows do not overlap. absent:
 * patch_size where config.json has none. */
ty_var hf_patches(hf_net *n, const char *name, ty_var pixels, int64_t out, int64_t absent);

/* [B, S, heads D] -> [B, heads, S, D] and back. */
ty_var hf_split_heads(hf_net *n, ty_var x, int64_t heads);
ty_var hf_join_heads(hf_net *n, ty_var x);
/* How an encoder's positions look at each other. */
typedef struct hf_attention {
    const char *query, *key, *value; /* linear layers with biases */
    const char *heads;               /* the key of config.json that says how many */
    ty_var mask;                     /* as ty_attention's */
    const char *dropout;             /* likewise; probability where it is missing: */
    double usual_dropout;
} hf_attention;
/* x [B, S, E] in heads that divide E, joined again: [B, S, E]. */
ty_var hf_attend(hf_net *n, ty_var x, const hf_attention *a);
/* [B, G, S, D] -> [B, heads, S, D]: each head of keys stands heads / G times in a row. */
ty_var hf_repeat_heads(hf_net *n, ty_var x, int64_t heads);
/* bool [S, S] of position x: what is at most `window` - 1 positions back, and not further on. */
ty_var hf_window(hf_net *n, ty_var x, int64_t window);
/* seen [B, S] as a mask of attention, [B, 1, 1, S]; {0} stays {0}. */
ty_var hf_key_mask(hf_net *n, ty_var seen);

/* Logits over the words of a table that the network has, x T' (+ bias where its name is not NULL). */
ty_var hf_tied_logits(hf_net *n, ty_var x, const char *table, int64_t rows, int64_t size, const char *bias);
/* Of two names of one weight of a head the one that counts: its own where tie_word_embeddings or the files keep the two
 * apart, and where the files have that one alone. absent: tie_word_embeddings where the file has none. */
const char *hf_tied_name(hf_net *n, const char *shared, const char *own, bool absent);
/* Of [B, S, E] the row of the last word of each text, [B, E]: the last position that does not hold pad_token_id, the
 * last of all where the configuration has none. */
ty_var hf_last_word(hf_net *n, ty_var x, ty_var words);
/* Of [B, S, E] the first row, [B, E]. */
ty_var hf_first(hf_net *n, ty_var x);
/* start_logits and end_logits of y [B, S, 2]. */
void hf_answer(hf_net *n, ty_var y);
/* Heads of decoders. Logits over the words, by lm_head or by the shared table (absent: as hf_tied_name); classes of a
 * text by its last word, through the layer "score"; classes of each word, through dropout and the layer NAME. */
ty_var hf_next_logits(hf_net *n, ty_var x, const char *shared, bool absent);
void hf_score(hf_net *n, ty_var x, ty_var words);
void hf_tag(hf_net *n, const char *name, ty_var x, bool bias);

#endif
