/* readers.h - who reads each value of a graph: for passes that may take a value away only if nobody else wants it.
 *
 *     ty_readers r;
 *     if (ty_readers_find(&r, g, err) < 0) ...
 *     for (uint32_t i = 0; i < ty_readers_of(&r, v); i++)
 *         ... ty_reader(&r, v, i);
 *     ty_readers_free(&r);
 */
#ifndef TY_COMPILER_PASSES_READERS_H
#define TY_COMPILER_PASSES_READERS_H

#include "compiler/ir/graph.h"

typedef struct ty_readers {
    uint32_t *first, *node; /* of value v: node[first[v] ... first[v + 1] - 1], in order; TY_NONE: an output */
} ty_readers;

/* Nodes live in any tape, and outputs. */
int ty_readers_find(ty_readers *r, const ty_graph *g, ty_error *err);
void ty_readers_free(ty_readers *r);

/* How many read v. */
static inline uint32_t ty_readers_of(const ty_readers *r, ty_val v)
{
    return r->first[v + 1] - r->first[v];
}

/* Reader number i of v. */
static inline uint32_t ty_reader(const ty_readers *r, ty_val v, uint32_t i)
{
    return r->node[r->first[v] + i];
}

#endif
