/* hyperparameters.h - hyperparameters.json, decoded as the SageMaker toolkit decodes it.
 *
 * The file is a flat object of strings. Each string is tried as JSON by Python's rules and stays a plain string if it
 * is none: "12" is an integer, "\"adam\"" and "adam" are both the string adam, "True" is the string True. A value that
 * is no string (files written by hand) stays as it is. Keys of the platform (reserved.h) are kept apart from the
 * user's.
 */
#ifndef TY_CONTAINER_CONFIG_HYPERPARAMETERS_H
#define TY_CONTAINER_CONFIG_HYPERPARAMETERS_H

#include "container/config/reserved.h"
#include "container/config/value.h"

typedef struct ty_hyperparameter {
    const char *name;
    ty_value value;
    const char *text; /* as SM_HP_<NAME> shows it: 12, adam, true, [1,2]; "" for null */
    ty_reserved_kind kind;
} ty_hyperparameter;

typedef struct ty_hyperparameters {
    ty_hyperparameter *items; /* [n_items], in the order of the file */
    size_t n_items;
    ty_value user;      /* dict: what the script is to see */
    ty_value known;     /* dict: the reserved ones that the platform reads */
    ty_value framework; /* dict: all other reserved ones */
} ty_hyperparameters;

/* doc: the parsed file; NULL means none. Everything lands in the arena and does not need doc afterwards. Errors:
 * TY_E_TYPE if doc is no map, TY_E_RANGE for a value with a NUL character, which no script could be given. */
int ty_hyperparameters_init(ty_hyperparameters *h, ty_arena *a, const ty_doc *doc, ty_error *err);
/* The hyperparameter of that name, the user's or reserved; NULL if it is not given. */
const ty_hyperparameter *ty_hyperparameters_find(const ty_hyperparameters *h, const char *name);

#endif
