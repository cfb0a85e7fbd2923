/* text.h - bytes that grow while a text is worked on. Private to the tokenizer.
 *
 * Like base/buf.h, but without the promise of a final NUL and of zeroed room, which would cost more than the work on a
 * word; kept from text to text. A failure (no memory, past TOK_TEXT_MAX) sticks and is looked at once.
 */
#ifndef TY_CONTAINER_INPUT_TOKENIZER_TEXT_H
#define TY_CONTAINER_INPUT_TOKENIZER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define TOK_TEXT_MAX ((size_t)1 << 30)

typedef struct tok_text {
    char *p;
    size_t n, room;
    bool failed;
} tok_text;

/* Room for n more bytes; false: failed. */
static inline bool tok_text_room(tok_text *t, size_t n)
{
    if (n <= t->room - t->n)
        return true;
    size_t room = t->room + t->room / 2 + n + 64;
    char *p = n < TOK_TEXT_MAX && room < TOK_TEXT_MAX ? realloc(t->p, room) : NULL;
    if (p == NULL) {
        t->failed = true;
        return false;
    }
    t->p = p;
    t->room = room;
    return true;
}

static inline void tok_text_add(tok_text *t, const void *bytes, size_t n)
{
    if (n > 0 && tok_text_room(t, n)) {
        memcpy(t->p + t->n, bytes, n);
        t->n += n;
    }
}

static inline void tok_text_addc(tok_text *t, char c)
{
    if (tok_text_room(t, 1))
        t->p[t->n++] = c;
}

#endif
