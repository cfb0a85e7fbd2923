/* text.h - a text that lies somewhere else. */
#ifndef TY_CONTAINER_INPUT_TEXT_H
#define TY_CONTAINER_INPUT_TEXT_H

#include <stddef.h>

typedef struct ty_text {
    const char *p; /* NULL: missing. No NUL at the end */
    size_t n;
} ty_text;

#endif
