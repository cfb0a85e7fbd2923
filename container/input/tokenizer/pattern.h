/* pattern.h - what a Split or Replace looks for: a string or a regular expression. Private to the tokenizer.
 *
 * Expressions are compiled by PCRE2, with just-in-time code where that is allowed. They are written for Oniguruma,
 * which Hugging Face's `tokenizers` uses, so that what the two spell alike but understand differently is rewritten
 * (\s, \w, \h, ^ and $ at each line) or refused by name (nested and intersected classes, subroutines, possessive
 * intervals). A match that takes too many steps is an error, never a hang.
 */
#ifndef TY_CONTAINER_INPUT_TOKENIZER_PATTERN_H
#define TY_CONTAINER_INPUT_TOKENIZER_PATTERN_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct tok_pattern tok_pattern;
typedef struct tok_pattern_work tok_pattern_work; /* one thread's; for all patterns */

int tok_pattern_regex(const char *regex, tok_pattern **out, ty_error *err);
/* A string is found as it stands. */
int tok_pattern_string(const char *text, tok_pattern **out, ty_error *err);
/* What is read as one character (Unicode Standard Annex #29: extended grapheme clusters). */
int tok_pattern_graphemes(tok_pattern **out, ty_error *err);
void tok_pattern_free(tok_pattern *p);

tok_pattern_work *tok_pattern_work_make(void);
void tok_pattern_work_free(tok_pattern_work *w);

/* Where a search has got to. Begin with {0} and `last` -1. */
typedef struct tok_pattern_at {
    size_t from;
    ptrdiff_t last; /* where the last match ended; -1: none yet */
} tok_pattern_at;

/* The next match in text[0, n), valid UTF-8, as [*start, *end): 1; none: 0; an error: -1. Never an empty match right
 * behind the last one. */
int tok_pattern_next(const tok_pattern *p, tok_pattern_work *w, const char *text, size_t n, tok_pattern_at *at,
                     size_t *start, size_t *end, ty_error *err);

#endif
