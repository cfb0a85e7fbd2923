/* texts.c - a set of kernels' texts. See texts.h. */
#include "compiler/kernel/texts.h"

#include <stdlib.h>
#include <string.h>

static void texts_grow(ty_ktexts *t)
{
    int cap = t->cap ? 2 * t->cap : 64;
    ty_ktexts_one *grown = TY_NEW_ARRAY(t->arena, ty_ktexts_one, cap);
    if (t->n)
        memcpy(grown, t->one, sizeof *grown * (size_t)t->n);
    t->one = grown;
    t->cap = cap;
}

uint64_t ty_ktexts_add(ty_ktexts *t, const char *text, size_t len)
{
    uint64_t hash = ty_fnv1a(TY_FNV_START, text, len);
    for (int i = 0; i < t->n; i++)
        if (t->one[i].hash == hash && t->one[i].len == len && memcmp(t->one[i].text, text, len) == 0)
            return hash;
    if (t->n == t->cap)
        texts_grow(t);
    t->one[t->n++] = (ty_ktexts_one){hash, ty_arena_strndup(t->arena, text, len), len};
    return hash;
}

static int texts_by_length(const void *a, const void *b)
{
    const ty_ktexts_one *x = a, *y = b;
    return x->len != y->len ? (x->len < y->len ? 1 : -1) : (x->hash > y->hash) - (x->hash < y->hash);
}

void ty_ktexts_sort(ty_ktexts *t)
{
    if (t->n)
        qsort(t->one, (size_t)t->n, sizeof *t->one, texts_by_length);
}

int ty_ktexts_hash(const ty_ktexts *t, const ty_ktexts_words *words, char hex[TY_SHA256_HEX_BYTES], ty_error *err)
{
    ty_sha256 h;
    uint8_t digest[TY_SHA256_BYTES];
    if (ty_sha256_init(&h, err) < 0)
        return -1;
    ty_sha256_add(&h, words->head, strlen(words->head));
    ty_sha256_add(&h, words->prelude, strlen(words->prelude));
    for (int i = 0; i < t->n; i++)
        ty_sha256_add(&h, t->one[i].text, t->one[i].len + 1);
    ty_sha256_final(&h, digest);
    ty_sha256_hex(digest, hex);
    return 0;
}

size_t ty_ktexts_deal(const ty_ktexts *t, const ty_ktexts_words *words, ty_buf *unit, int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++) {
        ty_buf_adds(&unit[i], words->head);
        ty_buf_adds(&unit[i], words->prelude);
    }
    for (int i = 0; i < t->n; i++) {
        int shortest = 0;
        for (int k = 1; k < n; k++)
            if (unit[k].len < unit[shortest].len)
                shortest = k;
        ty_buf_addf(&unit[shortest], "%s" TY_KTEXTS_NAME "%s", words->lead, (unsigned long)t->one[i].hash, words->tail);
        ty_buf_add(&unit[shortest], t->one[i].text, t->one[i].len);
    }
    for (int i = 0; i < n; i++)
        bytes += unit[i].len;
    return bytes;
}
