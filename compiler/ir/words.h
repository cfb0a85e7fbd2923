/* words.h - the fixed words of the text form, shared by its printer and its parser. Private to compiler/ir. */
#ifndef TY_COMPILER_IR_WORDS_H
#define TY_COMPILER_IR_WORDS_H

#include "compiler/ir/graph.h"

typedef struct ty_tape_word {
    const char *text;
    uint32_t tape;
} ty_tape_word;

extern const char *const ty_role_text[TY_N_STATE_ROLES];
extern const ty_tape_word ty_tape_words[TY_N_TAPES];

/* Constants up to this size are lists of numbers, larger ones bytes. */
#define TEXT_LISTED_ELEMS 64

#endif
