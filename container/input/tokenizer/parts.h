/* parts.h - what a tokenizer is made of. Private to container/input/tokenizer.
 *
 * A text goes through: repair (UTF-8), added tokens cut out, each piece between them normalised, added tokens cut out
 * of that, pieces cut by pre-tokenizers, each of those turned into ids by the model, special tokens put around them.
 * A tokenizer is read-only after it was loaded; what changes is in a tok_work, which one thread has at a time.
 */
#ifndef TY_CONTAINER_INPUT_TOKENIZER_PARTS_H
#define TY_CONTAINER_INPUT_TOKENIZER_PARTS_H

#include "base/arena.h"
#include "base/doc.h"
#include "container/input/tokenizer/pattern.h"
#include "container/input/tokenizer/text.h"
#include "container/input/tokenizer/unicode.h"
#include "container/input/tokenizer/vocabulary.h"

#include <pthread.h>
#include <stdint.h>

typedef struct tok_piece {
    uint32_t at, n; /* bytes of the text */
    int32_t id;     /* an added token; -1: text */
    bool first;     /* begins where the whole text begins */
} tok_piece;

/* A text in pieces, which tile it or leave gaps. */
typedef struct tok_pieces {
    tok_text text;
    tok_text list; /* tok_piece */
} tok_pieces;

static inline size_t tok_pieces_n(const tok_pieces *p)
{
    return p->list.n / sizeof(tok_piece);
}

static inline tok_piece tok_pieces_get(const tok_pieces *p, size_t i)
{
    tok_piece out;
    memcpy(&out, p->list.p + i * sizeof out, sizeof out);
    return out;
}

/* Appends one; empty ones are dropped. */
static inline void tok_pieces_add(tok_pieces *p, size_t at, size_t n, int32_t id, bool first)
{
    tok_piece piece = {(uint32_t)at, (uint32_t)n, id, first};
    if (n > 0 || id >= 0)
        tok_text_add(&p->list, &piece, sizeof piece);
}

enum { TOK_CACHE_ROWS = 16384, TOK_CACHE_KEY = 32, TOK_CACHE_IDS = 11 };

/* A word and its ids. */
typedef struct tok_cached {
    uint32_t hash;
    uint8_t n_key, n_ids; /* n_key 0: free */
    char key[TOK_CACHE_KEY];
    int32_t id[TOK_CACHE_IDS];
} tok_cached;

enum { TOK_RECENT = 4, TOK_RECENT_LEAST = 32, TOK_RECENT_MOST = 1 << 16 };

/* A text that was encoded, and its ids: several fields of a sample are made of the same one or two. */
typedef struct tok_recent {
    uint32_t hash;
    tok_text text, ids;
} tok_recent;

typedef struct tok_work {
    tok_pieces pieces[2];
    tok_text room[4];  /* of whatever step runs */
    tok_text ids;      /* int32_t */
    tok_text ends;     /* int64_t: how many ids there are behind each word */
    tok_text symbols;  /* of models */
    tok_cached *cache; /* [TOK_CACHE_ROWS] */
    tok_recent recent[TOK_RECENT];
    unsigned n_recent; /* that have been remembered; the oldest goes first */
    tok_pattern_work *pattern;
    struct tok_work *next; /* in the tokenizer's list of free ones */
} tok_work;

static inline void tok_work_add_id(tok_text *ids, int32_t id)
{
    tok_text_add(ids, &id, sizeof id);
}

/* ---- normalizers (normalize.c, charsmap.c) ---- */

typedef struct tok_normalizer tok_normalizer;

/* NULL (of null) does nothing. */
int tok_normalizer_read(const ty_doc *node, ty_arena *a, const tok_normalizer **out, ty_error *err);
void tok_normalizer_drop(const tok_normalizer *n);
/* Appends the normalised text to out. */
int tok_normalize(const tok_normalizer *n, tok_work *w, const char *text, size_t len, tok_text *out, ty_error *err);

typedef struct tok_charsmap tok_charsmap;
int tok_charsmap_read(const ty_doc *base64, ty_arena *a, tok_charsmap **out, ty_error *err);
/* What the text is replaced by, or false. */
bool tok_charsmap_find(const tok_charsmap *m, const char *text, size_t n, const char **to, size_t *n_to);

/* ---- pre-tokenizers (split.c) ---- */

typedef struct tok_splitter tok_splitter;

int tok_splitter_read(const ty_doc *node, ty_arena *a, const tok_splitter **out, ty_error *err);
void tok_splitter_drop(const tok_splitter *s);
/* Cuts w->pieces[*which] further; the result is in w->pieces[*which]. */
int tok_split(const tok_splitter *s, tok_work *w, int *which, ty_error *err);

/* ---- models (model_*.c) ---- */

typedef struct tok_model tok_model;
typedef int tok_model_fn(const tok_model *m, tok_work *w, const char *word, size_t n, ty_error *err);

struct tok_model {
    const char *kind; /* "BPE" */
    tok_vocabulary vocabulary;
    tok_model_fn *encode; /* appends the ids of a word to w->ids */
    int32_t unknown;      /* id; -1: none */
    bool fuse_unknown, byte_fallback, ignore_merges;
    const char *prefix, *suffix; /* of parts of words; "" for none */
    size_t max_chars;            /* WordPiece: longer words are unknown */
    int32_t byte_id[256];        /* of <0x00> ...; -1: none */
    int32_t char_id[0x800];      /* BPE without prefix and suffix: of characters below U+0800; -1: none */
    bool chars_known;
    struct tok_merge *merge; /* open addressing */
    uint32_t merge_mask;
    tok_trie trie;
    uint32_t inner; /* WordPiece: where in the trie a prefix leads */
    double *score;  /* Unigram: by id */
    double unknown_score;
};

int tok_model_read(const ty_doc *node, ty_arena *a, tok_model *out, ty_error *err);
/* What models share (model.c): "vocab" as a map, "unk_token", <0x00> and so on. */
#define TOK_MAX_ID 0x3fffffff
int tok_vocabulary_read(const ty_doc *node, ty_arena *a, tok_vocabulary *v, ty_error *err);
int tok_unknown_read(const ty_doc *node, tok_model *m, bool needed, ty_error *err);
void tok_bytes_find(tok_model *m);
/* Appends a token for each byte; false if one of them has none, and then nothing is appended. */
bool tok_bytes_add(const tok_model *m, const char *p, size_t n, tok_text *ids);

int tok_bpe_read(const ty_doc *node, ty_arena *a, tok_model *m, ty_error *err);
int tok_wordpiece_read(const ty_doc *node, ty_arena *a, tok_model *m, ty_error *err);
int tok_wordlevel_read(const ty_doc *node, ty_arena *a, tok_model *m, ty_error *err);
int tok_unigram_read(const ty_doc *node, ty_arena *a, tok_model *m, ty_error *err);

/* ---- added tokens (added.c) ---- */

typedef struct tok_added_token {
    const char *content; /* as it is looked for */
    size_t n;
    int32_t id;
    bool single_word, lstrip, rstrip, normalized, special;
} tok_added_token;

/* Tokens that are looked for together, by first byte, longest first. */
typedef struct tok_added_set {
    const tok_added_token **token;
    size_t n;
    uint32_t from[257]; /* those that begin with byte b are [from[b], from[b + 1]) */
} tok_added_set;

typedef struct tok_added {
    tok_added_token *token;
    const char **given; /* contents as the file has them */
    size_t n;
    tok_added_set raw, normal; /* looked for before and behind the normalizer */
} tok_added;

int tok_added_read(const ty_doc *node, const tok_model *m, const tok_normalizer *n, tok_work *w, ty_arena *a,
                   tok_added *out, ty_error *err);
/* Cuts a text of `out` at `at` by the set. */
void tok_added_cut(const tok_added_set *set, const tok_unicode *u, size_t at, size_t n, bool first, tok_pieces *out);

/* ---- special tokens (template.c) ---- */

enum { TOK_TEXT = -1, TOK_SECOND = -2 };

typedef struct tok_template_item {
    int32_t id;   /* or TOK_TEXT, TOK_SECOND: a text's ids */
    uint8_t type; /* token type */
} tok_template_item;

typedef struct tok_template {
    tok_template_item *item;
    int n;
    int64_t n_special; /* items that are ids */
} tok_template;

/* Of a text, and of a pair; n 0: the file makes no pairs. null is the texts alone. */
int tok_template_read(const ty_doc *node, ty_arena *a, tok_template *single, tok_template *pair, ty_error *err);

/* ---- all of it (tokenizer.c) ---- */

struct ty_tokenizer {
    ty_arena arena;
    tok_model model;
    const tok_normalizer *normalizer;
    const tok_splitter *splitter;
    tok_added added;
    int32_t *special; /* [n_special]: ids of added tokens that are, rising */
    size_t n_special;
    tok_template single, pair;
    bool truncates, cuts_left, fills_left;
    int64_t max_length; /* of the file's own truncation */
    int32_t pad;        /* -1: none */
    uint8_t pad_type;
    int32_t max_id;
    uint64_t fingerprint;
    const tok_unicode *unicode;
    pthread_mutex_t lock; /* over `free_work` */
    tok_work *free_work;
};

/* Room to work in, and back. NULL: no memory. */
tok_work *tok_borrow(const struct ty_tokenizer *t, ty_error *err);
void tok_give_back(const struct ty_tokenizer *t, tok_work *w);
/* Ids of a text, without special tokens, behind those in w->ids. */
int tok_encode(const struct ty_tokenizer *t, tok_work *w, const char *text, size_t n, ty_error *err);

/* ---- reading (part.c) ---- */

/* Keys with defaults; refuses other types. */
int tok_get_bool(const ty_doc *map, const char *key, bool otherwise, bool *out, ty_error *err);
int tok_get_string(const ty_doc *map, const char *key, const char *otherwise, const char **out, ty_error *err);
int tok_get_int(const ty_doc *map, const char *key, int64_t otherwise, int64_t *out, ty_error *err);
/* {"type": "NAME"} or, for models of old, what its keys say. */
int tok_get_type(const ty_doc *node, const char **out, ty_error *err);
/* {"String": "x"} or {"Regex": "x"}. */
int tok_get_pattern(const ty_doc *node, tok_pattern **out, ty_error *err);
int tok_refuse_type(const ty_doc *node, const char *what, const char *type, const char *known, ty_error *err);

#endif
