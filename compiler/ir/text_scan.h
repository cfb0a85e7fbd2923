/* text_scan.h - a cursor over untrusted text with line and column, and functions that read one small thing each.
 *
 * Private to compiler/ir. All skip blanks first, never read beyond `end` (the text has no final NUL), and return 0, or
 * -1 with *err filled, unless they say otherwise.
 */
#ifndef TY_COMPILER_IR_TEXT_SCAN_H
#define TY_COMPILER_IR_TEXT_SCAN_H

#include "base/arena.h"
#include "base/error.h"

#include <stdint.h>

typedef struct ty_scan {
    const char *p, *end, *line_start;
    int line;
    ty_arena *arena; /* where strings go */
    ty_error *err;
} ty_scan;

#define TY_SCAN_WORD_BYTES 64

/* An error at the cursor. Returns -1. */
int ty_scan_fail(ty_scan *s, const char *fmt, ...) TY_PRINTF(2, 3);
void ty_scan_blanks(ty_scan *s);
bool ty_scan_peek(ty_scan *s, char c);   /* the next character is c */
bool ty_scan_accept(ty_scan *s, char c); /* and then steps over it */
int ty_scan_expect(ty_scan *s, char c);
/* Letters, digits and underscores into out[TY_SCAN_WORD_BYTES]; "" if there are none. Returns out. */
const char *ty_scan_word(ty_scan *s, char *out);
/* One of n words, as its number. */
int ty_scan_choice(ty_scan *s, const char *const *words, uint32_t n, uint32_t *out);
int ty_scan_int(ty_scan *s, int64_t *out);
int ty_scan_uint(ty_scan *s, uint64_t limit, uint64_t *out);
int ty_scan_double(ty_scan *s, double *out);
/* A list [a b c] of at most max entries. */
int ty_scan_ints(ty_scan *s, int64_t *out, uint32_t max, uint32_t *n);
/* A quoted string, unescaped, in the arena. */
int ty_scan_string(ty_scan *s, const char **out);
/* Value of a lower-case hexadecimal digit, or -1. */
int ty_scan_hex_digit(char c);

#endif
