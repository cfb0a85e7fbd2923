/* arguments.h - the user's hyperparameters as the arguments of their script.
 *
 * Sorted by name; "--name" ("-n" for one character, "" for none) and the value, always as an argument of its own. Made
 * for execve: nothing is quoted, and empty arguments stay.
 */
#ifndef TY_CONTAINER_CONFIG_ARGUMENTS_H
#define TY_CONTAINER_CONFIG_ARGUMENTS_H

#include "container/config/value.h"

typedef struct ty_arguments {
    const char *const *words; /* [n_words], and a NULL behind the last */
    size_t n_words;
} ty_arguments;

/* user: ty_hyperparameters.user. */
void ty_arguments_init(ty_arguments *arguments, ty_arena *a, const ty_value *user);

#endif
