/* windows.h - texts and files of tokens as samples for language models: windows of T + 1 tokens in a row, of which the
 * first T are the inputs and the last T, one further on, the targets.
 *
 * Where tokens come from:
 *   text      files of text: their bytes (0 to 255), their characters (numbered in the order of their code points), or
 *             what a tokenizer.json makes of them; without special tokens but the end token, which follows each file
 *   tokens    a flat array of uint16 or uint32 in a file without a header (.bin), or an npy of one dimension of any
 *             integer type; mapped
 * Files follow one another as one row of tokens, and windows pass from one into the next.
 *
 * Window i begins at token i * stride. Read for training with `random` it begins anywhere instead, at a place that is
 * a function of (seed, epoch, i), as often in an epoch. A field is "inputs" or "targets", by its member or its name.
 *
 * A text of more than TY_WINDOWS_CUT_BYTES is given to the tokenizer in pieces that end with a line.
 */
#ifndef TY_CONTAINER_INPUT_TOKENIZER_WINDOWS_H
#define TY_CONTAINER_INPUT_TOKENIZER_WINDOWS_H

#include "base/tensor.h"

#include <stdbool.h>
#include <stdint.h>

#define TY_WINDOWS_CUT_BYTES ((size_t)4 << 20)

typedef enum ty_symbols { TY_SYMBOLS_CHARACTERS, TY_SYMBOLS_BYTES } ty_symbols;

/* What is declared; zeroed: no windows. Borrowed. */
typedef struct ty_windows {
    int64_t length; /* T; 0: no windows */
    int64_t stride; /* 0: T */
    bool random;
    ty_symbols symbols;    /* of text without a tokenizer */
    const char *tokenizer; /* path of a tokenizer.json */
    const char *end_token; /* behind each file of text: a token of the tokenizer, or any name for a symbol of its own */
    bool wide;             /* .bin: uint32, not uint16 */
} ty_windows;

#endif
