/* suggest.h - "did you mean": the nearest known word, if it is near enough to help.
 *
 * Near enough: an edit distance (insert, delete, replace, swap neighbours) of at most 2, or at most a third of the
 * word's length, and less than the whole word; or else a word that begins so, of four letters on. Upper and lower case
 * count as equal, and so do '-' and '_'.
 */
#ifndef TY_BASE_SUGGEST_H
#define TY_BASE_SUGGEST_H

#include <stddef.h>

typedef struct ty_suggestion {
    const char *word;
    const char *best; /* the nearest so far, or NULL */
    size_t distance;  /* private */
} ty_suggestion;

/* For candidates that sit in some table: start with {.word = w}, offer each, read best. */
void ty_suggest_offer(ty_suggestion *s, const char *candidate);
/* For a plain list. */
const char *ty_suggest(const char *word, const char *const *list, size_t n);

#endif
