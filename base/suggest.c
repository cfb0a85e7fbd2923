/* suggest.c - Damerau-Levenshtein distance in its restricted form (a pair of neighbours is swapped at most once), by
 * dynamic programming over three rows. */
#include "base/suggest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { MAX_WORD = 64, MIN_BEGINNING = 4 };

static char plain_form(char c)
{
    return c == '-' ? '_' : (char)tolower((unsigned char)c);
}

static bool is_same(char a, char b)
{
    return plain_form(a) == plain_form(b);
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* rows[r][j]: distance of the first i letters of a and the first j of b, for the last three i. */
static size_t edit_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t rows[3][MAX_WORD + 1];
    for (size_t j = 0; j <= b_len; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t *now = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            now[j] = before[j - 1] + !is_same(a[i - 1], b[j - 1]);
            now[j] = min_size(now[j], min_size(before[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && is_same(a[i - 1], b[j - 2]) && is_same(a[i - 2], b[j - 1]))
                now[j] = min_size(now[j], earlier[j - 2] + 1);
        }
    }
    return rows[a_len % 3][b_len];
}

/* "softmax" of softmax_cross_entropy: what follows may be long. */
static bool is_beginning(const char *word, size_t len, const char *candidate)
{
    size_t i = 0;
    while (i < len && candidate[i] && is_same(word[i], candidate[i]))
        i++;
    return i == len && len >= MIN_BEGINNING;
}

void ty_suggest_offer(ty_suggestion *s, const char *candidate)
{
    size_t len = strlen(s->word), candidate_len = strlen(candidate);
    if (len == 0 || len > MAX_WORD || candidate_len > MAX_WORD)
        return;
    size_t distance = edit_distance(s->word, len, candidate, candidate_len);
    size_t near = len / 3 > 2 ? len / 3 : 2;
    if (distance > near && is_beginning(s->word, len, candidate))
        distance = near + 1; /* behind all that are near */
    else if (distance > near || distance >= len || distance >= candidate_len)
        return;
    if (!s->best || distance < s->distance) {
        s->best = candidate;
        s->distance = distance;
    }
}

const char *ty_suggest(const char *word, const char *const *list, size_t n)
{
    ty_suggestion s = {.word = word};
    for (size_t i = 0; i < n; i++)
        ty_suggest_offer(&s, list[i]);
    return s.best;
}
