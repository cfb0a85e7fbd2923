/* unicode.h - what tokenizers need to know of characters: classes, lower case, the four normal forms, UTF-8.
 *
 * The classes are those that Hugging Face's `tokenizers` has for each step, which follow different versions of Unicode
 * (tests/tokenizer/make_unicode.py asks it); a tokenizer must do what it did when the model was trained. Normal forms:
 * Unicode Standard Annex #15.
 *
 * The table is unpacked when it is first needed and shared, read-only, by all threads.
 */
#ifndef TY_CONTAINER_INPUT_TOKENIZER_UNICODE_H
#define TY_CONTAINER_INPUT_TOKENIZER_UNICODE_H

#include "base/error.h"
#include "container/input/tokenizer/text.h"

#include <stdint.h>

enum {
    TOK_LETTER = 1,
    TOK_NUMBER = 2,
    TOK_SPACE = 4,
    TOK_WORD = 8,         /* \w: letters, marks, digits, connectors */
    TOK_PUNCTUATION = 16, /* ASCII symbols included */
    TOK_MARK = 32,        /* what StripAccents takes away */
    TOK_ACCENT = 64,      /* what BertNormalizer takes for an accent */
    TOK_CONTROL = 128,    /* what BertNormalizer's clean_text takes away */
};

typedef struct tok_decomposition {
    uint32_t at; /* in tok_unicode.parts */
    uint8_t n;   /* characters, one step */
    bool compat; /* of NFKC and NFKD only */
} tok_decomposition;

typedef struct tok_unicode {
    uint8_t *bits;    /* [0x110000] of TOK_LETTER ... */
    uint8_t *combine; /* [0x110000] canonical combining class */
    uint16_t *lower;  /* [0x110000] row of to_lower, 0: none */
    uint16_t *parted; /* [0x110000] row of decomposition, 0: none */
    int32_t *to_lower;
    tok_decomposition *decomposition;
    uint32_t *parts;
    uint64_t *pairs; /* open addressing: first << 42 | second << 21 | composed; 0: free */
} tok_unicode;

enum { TOK_UNICODE_PAIRS = 4096, TOK_CHARACTERS = 0x110000 };

/* The table; NULL where there is no memory for it (3 MB). */
const tok_unicode *tok_unicode_get(void);

/* The character at p < end of valid UTF-8; *n_bytes of it. */
static inline uint32_t tok_char(const char *p, int *n_bytes)
{
    const uint8_t *s = (const uint8_t *)p;
    if (s[0] < 0x80)
        return (void)(*n_bytes = 1), s[0];
    if (s[0] < 0xe0)
        return (void)(*n_bytes = 2), (uint32_t)(s[0] & 31) << 6 | (s[1] & 63);
    if (s[0] < 0xf0)
        return (void)(*n_bytes = 3), (uint32_t)(s[0] & 15) << 12 | (uint32_t)(s[1] & 63) << 6 | (s[2] & 63);
    *n_bytes = 4;
    return (uint32_t)(s[0] & 7) << 18 | (uint32_t)(s[1] & 63) << 12 | (uint32_t)(s[2] & 63) << 6 | (s[3] & 63);
}

/* How many bytes its first one says that a character has. */
static inline int tok_char_bytes(char first)
{
    uint8_t b = (uint8_t)first;
    return b < 0x80 ? 1 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
}

/* The character that stands for a byte where vocabularies are of bytes: GPT-2's table, in which those that can be seen
 * stand for themselves and the others for U+0100 and on. */
uint32_t tok_byte_char(uint8_t byte);
/* Appends a character as UTF-8. */
void tok_add_char(tok_text *out, uint32_t c);
/* Appends the bytes as valid UTF-8: each longest piece that begins like a character but is none becomes U+FFFD, as
 * Python's decode("utf-8", "replace") does it. */
void tok_add_repaired(tok_text *out, const char *bytes, size_t n);

/* Appends the text in a normal form; `room` is for the decomposed characters and is left empty. */
void tok_add_normal_form(const tok_unicode *u, const char *text, size_t n, bool compat, bool compose, tok_text *room,
                         tok_text *out);

/* unicode_table.c: deflated runs of classes, then combining classes, lower case and decompositions. */
extern const unsigned char ty_unicode_table[];
extern const size_t ty_unicode_table_bytes, ty_unicode_table_unpacked;

#endif
