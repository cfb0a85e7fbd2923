/* doc_builder.h - how readers make a tree. Private to base: json and yaml feed it events, it checks and assembles.
 *
 * Values of open containers lie on one stack; closing a container moves its values into the arena, contiguous.
 *
 *     stack: [ a's values ... | a.b's values ... ]      levels: { a starts at 0 } { a.b starts at 3 }
 */
#ifndef TY_BASE_DOC_BUILDER_H
#define TY_BASE_DOC_BUILDER_H

#include "base/doc.h"

typedef struct ty_doc_builder {
    ty_arena *arena;
    const ty_doc_source *source;
    int max_depth;
    uint32_t max_nodes, n_nodes;
    int depth;       /* open containers */
    bool done;       /* the root is complete and is stack[0] */
    const char *key; /* set by ty_doc_builder_key for the next value */
    uint32_t key_line, key_column;
    ty_doc *stack; /* malloc'ed */
    size_t n_stack, cap_stack;
    struct {
        ty_doc container;
        size_t first; /* of its values in the stack */
    } levels[TY_DOC_MAX_DEPTH];
} ty_doc_builder;

/* Copies name and text into the arena. Refuses text beyond limits->max_bytes. */
int ty_doc_builder_init(ty_doc_builder *b, ty_arena *arena, const char *name, const char *text, size_t len,
                        const ty_doc_limits *limits, ty_error *err);
void ty_doc_builder_fini(ty_doc_builder *b);
/* `key` must live in the arena. */
void ty_doc_builder_key(ty_doc_builder *b, const char *key, uint32_t line, uint32_t column);
int ty_doc_builder_scalar(ty_doc_builder *b, ty_doc scalar, ty_error *err);
int ty_doc_builder_open(ty_doc_builder *b, ty_doc_kind kind, uint32_t line, uint32_t column, ty_error *err);
/* Checks for duplicate keys. */
int ty_doc_builder_close(ty_doc_builder *b, ty_error *err);
/* The finished root, copied to the arena. */
ty_doc *ty_doc_builder_root(ty_doc_builder *b);

/* First byte that is not well-formed UTF-8 (RFC 3629: no surrogates, nothing overlong), or NULL. */
const char *ty_utf8_fault(const char *text, size_t len);

#endif
