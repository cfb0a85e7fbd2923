/* vocabulary.h - tokens by text, text by text's beginning. Private to the tokenizer. Built once, read-only then. */
#ifndef TY_CONTAINER_INPUT_TOKENIZER_VOCABULARY_H
#define TY_CONTAINER_INPUT_TOKENIZER_VOCABULARY_H

#include "base/arena.h"
#include "base/error.h"

#include <stdint.h>

typedef struct tok_vocabulary {
    const char **text; /* by row; borrowed from the arena */
    uint32_t *n_bytes;
    int32_t *id;
    uint32_t n, room;
    uint32_t *slot; /* open addressing: row + 1 */
    uint32_t mask;
    int32_t max_id;
} tok_vocabulary;

/* Room for up to n tokens, in the arena. */
void tok_vocabulary_init(tok_vocabulary *v, uint32_t n, ty_arena *a);
/* A text that is there already gets the new id. Texts are borrowed. */
void tok_vocabulary_add(tok_vocabulary *v, const char *text, size_t n, int32_t id);
/* -1: none. */
int32_t tok_vocabulary_find(const tok_vocabulary *v, const char *text, size_t n);

/* Texts by their bytes, one after the other. Node 0 is the beginning. */
typedef struct tok_trie {
    uint64_t *edge; /* open addressing, pairs: (node << 8 | byte) + 1, the node that it leads to */
    uint32_t mask;
    int32_t *id; /* of a node; -1: no token ends here */
    uint32_t n_nodes;
} tok_trie;

/* Of all tokens of the vocabulary. Refuses more than 64 million bytes. */
int tok_trie_build(tok_trie *t, const tok_vocabulary *v, ty_arena *a, ty_error *err);

static inline uint32_t tok_trie_slot(uint64_t key)
{
    return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

/* The node that byte b leads to; 0: none. */
static inline uint32_t tok_trie_step(const tok_trie *t, uint32_t node, uint8_t b)
{
    uint64_t key = ((uint64_t)node << 8 | b) + 1;
    for (uint32_t slot = tok_trie_slot(key);; slot++) {
        uint32_t i = slot & t->mask;
        if (t->edge[2 * (size_t)i] == key)
            return (uint32_t)t->edge[2 * (size_t)i + 1];
        if (t->edge[2 * (size_t)i] == 0)
            return 0;
    }
}

uint32_t tok_hash(const char *text, size_t n);

#endif
