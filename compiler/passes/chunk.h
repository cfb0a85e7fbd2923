/* chunk.h - wide rows in chunks: logits of a large vocabulary are never all in memory. What and how: chunk.c. */
#ifndef TY_COMPILER_PASSES_CHUNK_H
#define TY_COMPILER_PASSES_CHUNK_H

#include "compiler/compiler.h"
#include "compiler/ir/graph.h"

/* Rows of a chunk that cost no time: a weight's gradient is read and written once a chunk, 8 bytes an element, while
 * the three products of the chunk multiply 3 x 512 times with it. */
#define TY_CHUNK_ROWS 512

typedef struct ty_chunk_rule {
    int64_t rows;    /* most rows of a chunk, more if there would be over 32 chunks; fewer than two chunks of rows stay
                        whole */
    bool large_only; /* only logits of at least 32 MiB and twice as large as the weight they are made with */
} ty_chunk_rule;

/* Needs: no composites. *out: a new graph in which *n_cut products are in chunks, or NULL if there is none that can be.
 * Keeps: everything; sums over rows may round differently. */
int ty_chunk(const ty_graph *in, const ty_chunk_rule *rule, ty_graph **out, int *n_cut, ty_error *err);

/* What is in chunks: the largest product, in any tape; all zero if none is. */
ty_chunk_report ty_chunk_find(const ty_graph *g);

#endif
