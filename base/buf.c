/* buf.c - the growing buffer. An empty one owns no memory: data points at a shared, never written NUL. */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not const, because ty_buf.data is not; nothing writes to it while cap is 0. */
static char no_bytes[1];

void ty_buf_init(ty_buf *b, size_t max_bytes)
{
    *b = (ty_buf){.data = no_bytes, .max_bytes = max_bytes};
}

void ty_buf_fini(ty_buf *b)
{
    if (b->cap)
        free(b->data);
    ty_buf_init(b, b->max_bytes);
}

void ty_buf_clear(ty_buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->cap)
        b->data[0] = 0;
}

/* Room for n more bytes and the NUL. */
static int buf_grow(ty_buf *b, size_t n)
{
    if (b->failed || n > b->max_bytes || b->len > b->max_bytes - n) {
        b->failed = true;
        return -1;
    }
    size_t need = b->len + n + 1;
    if (need <= b->cap)
        return 0;
    size_t cap = b->cap < 32 ? 64 : b->cap * 2;
    if (cap < need)
        cap = need;
    if (cap > b->max_bytes + 1 && b->max_bytes + 1 >= need)
        cap = b->max_bytes + 1;
    char *data = realloc(b->cap ? b->data : NULL, cap);
    if (!data) {
        b->failed = true;
        return -1;
    }
    b->data = data;
    b->cap = cap;
    data[b->len] = 0;
    return 0;
}

int ty_buf_add(ty_buf *b, const void *bytes, size_t n)
{
    if (buf_grow(b, n) < 0)
        return -1;
    if (n)
        memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = 0;
    return 0;
}

int ty_buf_adds(ty_buf *b, const char *s)
{
    return ty_buf_add(b, s, strlen(s));
}

int ty_buf_addc(ty_buf *b, char c)
{
    return ty_buf_add(b, &c, 1);
}

int ty_buf_addf(ty_buf *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int rc = ty_buf_vaddf(b, fmt, args);
    va_end(args);
    return rc;
}

int ty_buf_vaddf(ty_buf *b, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    int rc = len < 0 ? -1 : buf_grow(b, (size_t)len);
    if (rc == 0) {
        vsnprintf(b->data + b->len, (size_t)len + 1, fmt, again);
        b->len += (size_t)len;
    } else {
        b->failed = true;
    }
    va_end(again);
    return rc;
}

char *ty_buf_reserve(ty_buf *b, size_t n)
{
    if (buf_grow(b, n) < 0)
        return NULL;
    memset(b->data + b->len, 0, n + 1);
    return b->data + b->len;
}

char *ty_buf_detach(ty_buf *b, size_t *len)
{
    if (b->cap == 0 && buf_grow(b, 0) < 0)
        return NULL;
    char *data = b->data;
    if (len)
        *len = b->len;
    ty_buf_init(b, b->max_bytes);
    return data;
}
