/* reserved.h - the hyperparameters that are not the user's.
 *
 * The SDK sends its own settings among the hyperparameters, under the prefix "sagemaker_". They never reach a script as
 * arguments or SM_HP_* variables. reserved.def is the table of those that have a meaning.
 */
#ifndef TY_CONTAINER_CONFIG_RESERVED_H
#define TY_CONTAINER_CONFIG_RESERVED_H

#include "container/config/value.h"

typedef enum ty_reserved_kind {
    TY_RESERVED_NOT,       /* the user's own */
    TY_RESERVED_KNOWN,     /* one of the nine that the platform reads */
    TY_RESERVED_FRAMEWORK, /* goes into SM_FRAMEWORK_PARAMS */
} ty_reserved_kind;

typedef struct ty_reserved_row {
    const char *key;
    ty_reserved_kind kind;
    ty_value_kind type; /* what the decoded value should be */
    const char *meaning;
} ty_reserved_row;

ty_reserved_kind ty_reserved_kind_of(const char *key);
/* The row of a key, or NULL for one without. */
const ty_reserved_row *ty_reserved_find(const char *key);
/* The whole table, for help texts. */
const ty_reserved_row *ty_reserved_rows(size_t *n);

/* Whether a reserved flag is on. Python's truth, but for one trap: an estimator that encodes nothing sends the raw word
 * "False", which Python takes for true. The words False, false, no, off, 0, None and null are off here, and *corrected
 * (may be NULL) is set when that differs from what Python would have done, so that the caller can say so in the log. v
 * may be NULL: off. */
bool ty_reserved_flag(const ty_value *v, bool *corrected);

#endif
