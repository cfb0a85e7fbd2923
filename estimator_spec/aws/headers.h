/* headers.h - names and values of an HTTP message. */
#ifndef TY_ESTIMATOR_SPEC_AWS_HEADERS_H
#define TY_ESTIMATOR_SPEC_AWS_HEADERS_H

#include <stddef.h>

typedef struct ty_header {
    const char *name, *value;
} ty_header;

enum { TY_MAX_HEADERS = 64 };

/* Neither names nor values are owned; a list that is full takes no more (requests of ours have a dozen). */
typedef struct ty_headers {
    ty_header at[TY_MAX_HEADERS];
    size_t n;
} ty_headers;

void ty_headers_add(ty_headers *h, const char *name, const char *value);
/* The first of that name, upper and lower case alike; NULL if there is none. */
const char *ty_headers_get(const ty_headers *h, const char *name);

#endif
