/* vocabulary.c - see vocabulary.h. */
#include "container/input/tokenizer/vocabulary.h"

#include <string.h>

#define TRIE_MAX_NODES ((uint64_t)64 << 20)

uint32_t tok_hash(const char *text, size_t n)
{
    uint64_t h = n * UINT64_C(0x9e3779b97f4a7c15), v;
    for (; n >= 8; n -= 8, text += 8) {
        memcpy(&v, text, 8);
        h = (h ^ v) * UINT64_C(0xff51afd7ed558ccd);
        h ^= h >> 32;
    }
    v = 0;
    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)(uint8_t)text[i] << (8 * i);
    h = (h ^ v) * UINT64_C(0xff51afd7ed558ccd);
    return (uint32_t)(h >> 32) ^ (uint32_t)h;
}

static uint32_t vocabulary_slots(uint64_t n)
{
    uint32_t slots = 16;
    while (slots < n * 2)
        slots *= 2;
    return slots;
}

void tok_vocabulary_init(tok_vocabulary *v, uint32_t n, ty_arena *a)
{
    uint32_t slots = vocabulary_slots(n);
    *v = (tok_vocabulary){.room = n, .mask = slots - 1, .max_id = -1};
    v->text = TY_NEW_ARRAY(a, const char *, n + 1);
    v->n_bytes = TY_NEW_ARRAY(a, uint32_t, n + 1);
    v->id = TY_NEW_ARRAY(a, int32_t, n + 1);
    v->slot = TY_NEW_ARRAY(a, uint32_t, slots);
}

/* The slot of the text, or the free one where it would be. */
static uint32_t vocabulary_slot(const tok_vocabulary *v, const char *text, size_t n)
{
    for (uint32_t i = tok_hash(text, n);; i++) {
        uint32_t row = v->slot[i & v->mask];
        if (row == 0 || (v->n_bytes[row - 1] == n && memcmp(v->text[row - 1], text, n) == 0))
            return i & v->mask;
    }
}

void tok_vocabulary_add(tok_vocabulary *v, const char *text, size_t n, int32_t id)
{
    uint32_t slot = vocabulary_slot(v, text, n), row = v->slot[slot];
    if (row == 0) {
        row = ++v->n;
        v->slot[slot] = row;
        v->text[row - 1] = text;
        v->n_bytes[row - 1] = (uint32_t)n;
    }
    v->id[row - 1] = id;
    v->max_id = id > v->max_id ? id : v->max_id;
}

int32_t tok_vocabulary_find(const tok_vocabulary *v, const char *text, size_t n)
{
    uint32_t row = v->slot[vocabulary_slot(v, text, n)];
    return row > 0 ? v->id[row - 1] : -1;
}

static uint32_t trie_edge(tok_trie *t, uint32_t node, uint8_t b)
{
    uint64_t key = ((uint64_t)node << 8 | b) + 1;
    for (uint32_t slot = tok_trie_slot(key);; slot++) {
        uint64_t *edge = t->edge + 2 * (size_t)(slot & t->mask);
        if (edge[0] == key)
            return (uint32_t)edge[1];
        if (edge[0] != 0)
            continue;
        edge[0] = key;
        edge[1] = t->n_nodes;
        t->id[t->n_nodes] = -1;
        return t->n_nodes++;
    }
}

int tok_trie_build(tok_trie *t, const tok_vocabulary *v, ty_arena *a, ty_error *err)
{
    uint64_t total = 1;
    for (uint32_t i = 0; i < v->n; i++)
        total += v->n_bytes[i];
    if (total > TRIE_MAX_NODES)
        return ty_error_set(err, TY_E_LIMIT, "the vocabulary has %llu bytes, more than %llu", (unsigned long long)total,
                            (unsigned long long)TRIE_MAX_NODES);
    uint32_t slots = vocabulary_slots(total);
    *t = (tok_trie){.mask = slots - 1, .n_nodes = 1};
    t->edge = TY_NEW_ARRAY(a, uint64_t, 2 * (size_t)slots);
    t->id = TY_NEW_ARRAY(a, int32_t, total);
    t->id[0] = -1;
    for (uint32_t i = 0; i < v->n; i++) {
        uint32_t node = 0;
        for (uint32_t k = 0; k < v->n_bytes[i]; k++)
            node = trie_edge(t, node, (uint8_t)v->text[i][k]);
        t->id[node] = v->id[i];
    }
    return 0;
}
