/* words.c - see words.h. Open addressing, at most half full. */
#include "container/input/map/words.h"

#include "base/doc_builder.h"
#include "container/input/map/fingerprint.h"
#include "container/input/map/kind.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS_FIRST_SLOTS = 64 };

/* Where the text is, or the free slot where it would be. */
static uint64_t words_seek(const map_words *w, ty_text text, uint64_t hash)
{
    uint64_t mask = w->n_slots - 1, at = hash & mask;
    for (; w->slot[at] != 0; at = (at + 1) & mask) {
        const map_word *word = &w->word[w->slot[at] - 1];
        if (word->tag == (uint32_t)(hash >> 32) && word->n == text.n && memcmp(word->p, text.p, text.n) == 0)
            break;
    }
    return at;
}

int64_t map_words_find(const map_words *w, ty_text text)
{
    if (w->n_slots == 0)
        return -1;
    return (int64_t)w->slot[words_seek(w, text, ty_fingerprint64(text.p, text.n))] - 1;
}

static void words_fill_slots(map_words *w)
{
    memset(w->slot, 0, w->n_slots * sizeof *w->slot);
    for (int64_t i = 0; i < w->n; i++) {
        ty_text text = {w->word[i].p, w->word[i].n};
        w->slot[words_seek(w, text, ty_fingerprint64(text.p, text.n))] = (uint32_t)i + 1;
    }
}

/* What was outgrown stays in the arena: as much again as the table, in all. */
static void words_grow(map_words *w, ty_arena *a)
{
    int64_t room = w->room ? w->room * 2 : WORDS_FIRST_SLOTS / 2;
    map_word *word = TY_NEW_ARRAY(a, map_word, room);
    if (w->n > 0)
        memcpy(word, w->word, (size_t)w->n * sizeof *word);
    w->word = word;
    w->room = room;
    w->n_slots = (uint64_t)room * 2;
    w->slot = TY_NEW_ARRAY(a, uint32_t, w->n_slots);
    words_fill_slots(w);
}

/* Words go into a file of JSON, with the model. */
static int words_refuse(ty_text text, ty_error *err)
{
    char shown[64];
    ty_error_set(err, TY_E_DATA_VALUE, "\"%s\" is no UTF-8 text", map_show(text, shown));
    return ty_error_help(err, "convert the file: iconv -f LATIN1 -t UTF-8; `hash: N` takes any bytes");
}

int map_words_check(ty_text text, ty_error *err)
{
    return memchr(text.p, 0, text.n) || ty_utf8_fault(text.p, text.n) ? words_refuse(text, err) : 0;
}

int64_t map_words_add(map_words *w, ty_arena *a, ty_text text, int64_t count, ty_error *err)
{
    uint64_t hash = ty_fingerprint64(text.p, text.n);
    if (w->n_slots > 0) {
        uint32_t found = w->slot[words_seek(w, text, hash)];
        if (found > 0) {
            w->word[found - 1].count += count;
            return (int64_t)found - 1;
        }
    }
    if (w->n == MAP_MAX_WORDS || text.n > UINT32_MAX || w->n_bytes + text.n > MAP_MAX_WORD_BYTES) {
        ty_error_set(err, TY_E_LIMIT, "more than %lld different words or %zu MB of them", (long long)w->n,
                     MAP_MAX_WORD_BYTES >> 20);
        return ty_error_help(err, "`hash: N` needs no list of words");
    }
    if (map_words_check(text, err) < 0)
        return -1;
    if (w->n == w->room)
        words_grow(w, a);
    w->slot[words_seek(w, text, hash)] = (uint32_t)w->n + 1;
    w->word[w->n] = (map_word){ty_arena_strndup(a, text.p, text.n), (uint32_t)text.n, (uint32_t)(hash >> 32), count};
    w->n_bytes += text.n;
    return w->n++;
}

static int words_compare_text(const map_word *x, const map_word *y)
{
    uint32_t n = x->n < y->n ? x->n : y->n;
    int order = memcmp(x->p, y->p, n);
    return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

static int words_order_text(const void *a, const void *b)
{
    return words_compare_text(a, b);
}

static int words_order_count(const void *a, const void *b)
{
    const map_word *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1) : words_compare_text(y, x);
}

static void words_sort(map_words *w, int (*order)(const void *, const void *))
{
    if (w->n < 2)
        return;
    qsort(w->word, (size_t)w->n, sizeof *w->word, order);
    words_fill_slots(w);
}

void map_words_by_count(map_words *w)
{
    words_sort(w, words_order_count);
}

void map_words_by_text(map_words *w)
{
    words_sort(w, words_order_text);
}

void map_words_cut(map_words *w, int64_t n)
{
    if (n >= w->n)
        return;
    w->n = n;
    words_fill_slots(w);
}
