/* tokenizer.h - text to token ids by a `tokenizer.json` of Hugging Face's library `tokenizers`.
 *
 * The ids are those that the library gives (tests/tokenizer/judge.py holds the two together). Known are
 *   models           BPE, WordPiece, WordLevel, Unigram
 *   normalizers      NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Replace, Prepend, Precompiled, Nmt,
 *                    ByteLevel, BertNormalizer, Sequence
 *   pre-tokenizers   ByteLevel, Metaspace, Split, Whitespace, WhitespaceSplit, BertPreTokenizer, Punctuation, Digits,
 *                    CharDelimiterSplit, Sequence
 *   post-processors  TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, Sequence (of pairs: with one of
 *                    the first three at most)
 * and added tokens, truncation and padding. Everything else is refused by name when the file is read.
 *
 * A text is bytes: what is no UTF-8 becomes U+FFFD, as Python's decode("utf-8", "replace") does it.
 *
 * Read-only after loading: any number of threads may encode at once. Each that does borrows room to work in (two or
 * three megabytes, kept for the next), in which words that came before and the last few texts are remembered; ids do
 * not depend on that.
 *
 *     ty_tokenizer *t;
 *     if (ty_tokenizer_load("tokenizer.json", &t, err) < 0) ...
 *     int64_t n = ty_tokenizer_encode(t, text, strlen(text), true, ids, 512, err);
 */
#ifndef TY_CONTAINER_INPUT_TOKENIZER_TOKENIZER_H
#define TY_CONTAINER_INPUT_TOKENIZER_TOKENIZER_H

#include "base/error.h"
#include "container/input/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the file is called that is kept beside a model. */
#define TY_TOKENIZER_NAME "tokenizer.json"

#define TY_TOKENIZER_MAX_FILE_BYTES ((size_t)256 << 20)
#define TY_TOKENIZER_MAX_TEXT_BYTES ((size_t)64 << 20) /* of one text */

typedef struct ty_tokenizer ty_tokenizer;

int ty_tokenizer_load(const char *path, ty_tokenizer **out, ty_error *err);
/* The same from memory; `name` stands for the file in messages. */
int ty_tokenizer_parse(const char *name, const char *json, size_t n, ty_tokenizer **out, ty_error *err);
void ty_tokenizer_free(ty_tokenizer *t); /* NULL is fine */

/* Ids of a text. `special`: with the special tokens of the post-processor around them, and cut to the file's own
 * truncation. Returns how many there are, or -1; the first `max` of them are written to ids. */
int64_t ty_tokenizer_encode(const ty_tokenizer *t, const char *text, size_t n, bool special, int32_t *ids, int64_t max,
                            ty_error *err);

/* What becomes one row: a text, whole or in the words that it was cut into before, and perhaps a second one behind it.
 * Words are encoded one by one, as the library does with is_pretokenized. */
typedef struct ty_token_texts {
    const ty_text *word; /* [n_words]; one: the whole text */
    int64_t n_words;
    const ty_text *second; /* [n_second]: the same of the second text; NULL: there is none */
    int64_t n_second;
} ty_token_texts;

/* Ids with special tokens, cut on the file's side so that at most `length` come out; of a pair the longer text is cut
 * first (the library's LongestFirst). ids, types and word have room for `length`; types and word may be NULL. word:
 * which word of the first text an id is of; -1: of none. Returns how many there are, or -1. */
int64_t ty_tokenizer_encode_texts(const ty_tokenizer *t, const ty_token_texts *texts, int64_t length, int32_t *ids,
                                  uint8_t *types, int32_t *word, ty_error *err);

/* Which ids of the row that a pair makes hold the bytes from `from` to `to` (behind it, from < to) of its second text,
 * both of which are one text each: *first to *last. Both are -1 where the row is cut so that it does not have them all.
 * Of characters that are several ids the first one begins with its last and the last one ends with its first, as
 * offsets in the library have it. An id is found by encoding what ends there: within a word the neighbour's may be
 * meant, since words are not encoded from left to right. */
int ty_tokenizer_locate(const ty_tokenizer *t, const ty_token_texts *texts, size_t from, size_t to, int64_t length,
                        int64_t *first, int64_t *last, ty_error *err);

/* A text as a row of exactly `length` ids with special tokens: a longer one is cut, a shorter one filled up, on the
 * sides that the file says. `pad` is the id to fill with; below 0: ty_tokenizer_pad. `mask` (may be NULL): 1 for ids,
 * 0 for filling. `types` (may be NULL): the token types. Returns the number of ids that are no filling, or -1. */
int64_t ty_tokenizer_row(const ty_tokenizer *t, const char *text, size_t n, int64_t length, int32_t pad, int32_t *ids,
                         uint8_t *mask, uint8_t *types, ty_error *err);

/* The id of a token in the vocabulary or among the added ones; -1: there is none. */
int32_t ty_tokenizer_id(const ty_tokenizer *t, const char *token);
/* Whether an id is one of the added tokens that the file calls special. */
bool ty_tokenizer_is_special(const ty_tokenizer *t, int64_t id);
/* The id that fills rows: that of the file's padding, or of the token [PAD], <pad> or <|pad|>; -1: the file has none.
 */
int32_t ty_tokenizer_pad(const ty_tokenizer *t);
bool ty_tokenizer_fills_left(const ty_tokenizer *t);
uint8_t ty_tokenizer_pad_type(const ty_tokenizer *t);
/* Token types of a text, or of a pair, and its filling are below this. */
int ty_tokenizer_n_types(const ty_tokenizer *t, bool of_pairs);
/* One more than the largest id: rows that an embedding needs. */
int64_t ty_tokenizer_size(const ty_tokenizer *t);
/* Changes when anything in the file does. */
uint64_t ty_tokenizer_fingerprint(const ty_tokenizer *t);
const char *ty_tokenizer_model(const ty_tokenizer *t); /* "BPE" */

#endif
