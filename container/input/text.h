/* text.h - a text that lies somewhere else, and what parts a field of texts may have. */
#ifndef TY_CONTAINER_INPUT_TEXT_H
#define TY_CONTAINER_INPUT_TEXT_H

#include <stddef.h>

typedef struct ty_text {
    const char *p; /* NULL: missing. No NUL at the end */
    size_t n;
} ty_text;

/* What belongs with a field that has a tokenizer, in the order in which its texts follow the field's own. */
typedef enum ty_text_part {
    TY_PART_SECOND, /* the second text of a pair, or the words that tags are of */
    TY_PART_ANSWER, /* the piece of the second text that answers the first */
    TY_PART_PLACE,  /* where that begins, in characters */
    TY_N_TEXT_PARTS
} ty_text_part;

#endif
