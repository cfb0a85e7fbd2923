/* pattern_table.h - characters newer than Unicode 14, by category, as regular expressions have them. Private. */
#ifndef TY_CONTAINER_INPUT_TOKENIZER_PATTERN_TABLE_H
#define TY_CONTAINER_INPUT_TOKENIZER_PATTERN_TABLE_H

#include <stddef.h>

typedef struct tok_pattern_category {
    char category;      /* 'L' of \p{L}, 'd' of \d */
    const char *ranges; /* as they stand in a class */
} tok_pattern_category;

/* The last one is 0. */
extern const tok_pattern_category tok_pattern_categories[];

#endif
