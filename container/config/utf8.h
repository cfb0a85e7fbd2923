/* utf8.h - stepping through bytes that should be UTF-8. */
#ifndef TY_CONTAINER_CONFIG_UTF8_H
#define TY_CONTAINER_CONFIG_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Decodes the code point at s (n > 0 bytes left) and returns how many bytes it takes. A surrogate written in three
 * bytes is accepted (Python's JSON keeps lone ones). A byte that starts nothing valid, an overlong form included, takes
 * one byte and gives U+DC80..U+DCFF, as Python's surrogateescape does: every byte string can be walked and is told
 * apart. */
size_t ty_utf8_next(const char *s, size_t n, uint32_t *code_point);
/* Writes 1-4 bytes for a code point up to U+10FFFF, surrogates included; returns how many. */
size_t ty_utf8_put(char out[4], uint32_t code_point);
/* The longest prefix of s, at most max_bytes long, that does not end inside a character. */
size_t ty_utf8_cut(const char *s, size_t n, size_t max_bytes);

#endif
