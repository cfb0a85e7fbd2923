/* foreign.h - files that people have among their data and that are not read: what they are by their first bytes, for
 * messages.
 *
 *     const ty_foreign *f = ty_foreign_find(head, n);
 *     if (f) ... "the file is %s, which is not read", f->what, help f->instead
 */
#ifndef TY_CONTAINER_INPUT_FOREIGN_H
#define TY_CONTAINER_INPUT_FOREIGN_H

#include <stddef.h>
#include <stdint.h>

typedef struct ty_foreign {
    const char *what; /* "a WebP picture" */
    size_t at;        /* where its bytes are */
    const char *bytes;
    size_t n_bytes;
    const char *instead; /* what to do, as an imperative */
} ty_foreign;

/* NULL: none that is known. */
const ty_foreign *ty_foreign_find(const uint8_t *head, size_t n);

#endif
