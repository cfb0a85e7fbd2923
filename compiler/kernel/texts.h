/* texts.h - the texts of kernels, each once: layers repeat, and so do their kernels.
 *
 *     ty_ktexts t = {.arena = &arena};
 *     hash = ty_ktexts_add(&t, text, len);      as often as there are kernels; the hash names the function
 *     ty_ktexts_sort(&t);
 *     ty_ktexts_hash(&t, head, hex, err);       what all of them are, for the cache
 *     ty_ktexts_deal(&t, &words, unit, n);      n translation units of about the same length
 */
#ifndef TY_COMPILER_KERNEL_TEXTS_H
#define TY_COMPILER_KERNEL_TEXTS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"

typedef struct ty_ktexts_one {
    uint64_t hash;
    const char *text;
    size_t len;
} ty_ktexts_one;

typedef struct ty_ktexts {
    ty_arena *arena; /* has the texts */
    ty_ktexts_one *one;
    int n, cap;
} ty_ktexts;

/* What stands around texts in a unit: its beginning, in parts; then before each text lead, ty_k_<hash>, tail. */
typedef struct ty_ktexts_words {
    const char *head, *prelude, *lead, *tail;
} ty_ktexts_words;

#define TY_KTEXTS_NAME       "ty_k_%016lx"
#define TY_KTEXTS_NAME_BYTES 24

/* Copies a text that is not there yet. */
uint64_t ty_ktexts_add(ty_ktexts *t, const char *text, size_t len);
/* The longest first; equal sets get equal orders. */
void ty_ktexts_sort(ty_ktexts *t);
/* SHA-256 of the beginning and of all texts in their order, however they are cut into units. */
int ty_ktexts_hash(const ty_ktexts *t, const ty_ktexts_words *words, char hex[TY_SHA256_HEX_BYTES], ty_error *err);
/* Each text in its order into the unit that is then the shortest. unit[0 ... n-1]: initialised, empty. Returns the
 * length of all; look at `failed` of each. */
size_t ty_ktexts_deal(const ty_ktexts *t, const ty_ktexts_words *words, ty_buf *unit, int n);

#endif
