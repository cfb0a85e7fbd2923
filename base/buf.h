/* buf.h - bytes that grow, up to a limit that the owner must state.
 *
 * Invariants: data is never NULL after init, data[len] is always 0 (so text can be used as a C string),
 * len <= max_bytes. You may write to data[0..len-1]. Growing past max_bytes fails and leaves the buffer as it was.
 */
#ifndef TY_BASE_BUF_H
#define TY_BASE_BUF_H

#include "base/error.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ty_buf {
    char *data;
    size_t len;       /* bytes in use, without the final NUL */
    size_t cap;       /* private */
    size_t max_bytes; /* the mandatory limit */
    bool failed;      /* an append did not fit or memory ran out; sticky, so that a writer may check once at the end */
} ty_buf;

void ty_buf_init(ty_buf *b, size_t max_bytes);
void ty_buf_fini(ty_buf *b);
void ty_buf_clear(ty_buf *b);
/* All appends return 0, or -1 with b->failed set. */
int ty_buf_add(ty_buf *b, const void *bytes, size_t n);
int ty_buf_adds(ty_buf *b, const char *s);
int ty_buf_addc(ty_buf *b, char c);
int ty_buf_addf(ty_buf *b, const char *fmt, ...) TY_PRINTF(2, 3);
int ty_buf_vaddf(ty_buf *b, const char *fmt, va_list args) TY_PRINTF(2, 0); /* args is used up */
/* Makes room for n more bytes, zeroed, and returns where they go, or NULL; fill from the front and commit with
 * len += (as many as were filled). */
char *ty_buf_reserve(ty_buf *b, size_t n);
/* The bytes are the caller's from now on (free()); b is empty and usable. */
char *ty_buf_detach(ty_buf *b, size_t *len);

#endif
