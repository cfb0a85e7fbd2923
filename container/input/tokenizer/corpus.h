/* corpus.h - the tokens of some files. Private to container/input/tokenizer and the command that writes them down. */
#ifndef TY_CONTAINER_INPUT_TOKENIZER_CORPUS_H
#define TY_CONTAINER_INPUT_TOKENIZER_CORPUS_H

#include "base/buf.h"
#include "container/input/bytes.h"
#include "container/input/dataset.h"
#include "container/input/tokenizer/tokenizer.h"
#include "container/input/tokenizer/windows.h"

typedef struct ty_corpus_part {
    const ty_data_file *file;
    ty_bytes bytes;      /* of the file, where tokens are read out of it */
    void *owned;         /* or made */
    const uint8_t *data; /* n elements */
    ty_dtype dtype;
    int64_t n, first; /* number of its first token */
} ty_corpus_part;

typedef struct ty_corpus {
    ty_corpus_part *part;
    int n_parts;
    int64_t n; /* tokens in all */
    int64_t n_ids, min, max, min_at, max_at;
    /* characters: which there are, by number */
    uint32_t *symbol;
    int64_t n_symbols;
    ty_tokenizer *tokenizer;
    int32_t end; /* -1: none */
    int64_t owned_bytes;
} ty_corpus;

/* `like` (may be NULL): characters keep the numbers that they have there, and others are refused. Call
 * ty_corpus_close also when it has failed. */
int ty_corpus_open_text(const ty_windows *w, const ty_bytes_options *options, const ty_data_file *files, int n_files,
                        const ty_corpus *like, ty_arena *a, ty_corpus *out, ty_error *err);
int ty_corpus_open_tokens(const ty_windows *w, const ty_bytes_options *options, const ty_data_file *files, int n_files,
                          ty_arena *a, ty_corpus *out, ty_error *err);
void ty_corpus_close(ty_corpus *c);

/* The part that holds token `at`. */
const ty_corpus_part *ty_corpus_find(const ty_corpus *c, int64_t at);
/* Tokens at ... at + n - 1, which are there, as another type. */
void ty_corpus_read(const ty_corpus *c, int64_t at, int64_t n, ty_dtype to, void *out);
/* Numbers of characters as a tokenizer.json, to be kept with a model. */
int ty_corpus_describe(const ty_corpus *c, ty_buf *out, ty_error *err);

#endif
