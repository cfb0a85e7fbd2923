/* words.h - texts with a number for each: counted while a vocabulary is learnt, found when it is used. Private to this
 * folder. */
#ifndef TY_CONTAINER_INPUT_MAP_WORDS_H
#define TY_CONTAINER_INPUT_MAP_WORDS_H

#include "base/error.h"
#include "container/input/map/map.h"

#define MAP_MAX_WORDS      ((int64_t)1 << 24)
#define MAP_MAX_WORD_BYTES ((size_t)1 << 30) /* of all words together */

typedef struct map_word {
    const char *p; /* ends with a NUL */
    uint32_t n;
    uint32_t tag; /* of its hash */
    int64_t count;
} map_word;

/* Zeroed: empty. */
typedef struct map_words {
    map_word *word; /* in the order of their coming, or of their numbers */
    int64_t n, room;
    uint32_t *slot; /* [n_slots]: number + 1; 0: free */
    uint64_t n_slots;
    size_t n_bytes;
} map_words;

/* Number of the text, or -1. */
int64_t map_words_find(const map_words *w, ty_text text);
/* The same; a new one is copied into the arena. count is added to its count. -1: too many, or no
 * UTF-8 text: none of it is kept. */
/* Refuses (TY_E_DATA_VALUE) what cannot be a word. */
int map_words_check(ty_text text, ty_error *err);
int64_t map_words_add(map_words *w, ty_arena *a, ty_text text, int64_t count, ty_error *err);
/* Numbers anew: most frequent first, of equal ones those that are later in byte order first (as Keras' StringLookup
 * does); or in byte order. */
void map_words_by_count(map_words *w);
void map_words_by_text(map_words *w);
/* Keeps the first n. */
void map_words_cut(map_words *w, int64_t n);

#endif
