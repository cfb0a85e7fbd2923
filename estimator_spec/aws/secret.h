/* secret.h - text that nobody may print: secret keys, session tokens, passwords of endpoints.
 *
 * A type of its own, so that a secret cannot be handed to a format by mistake: the compiler refuses a struct for %s. It
 * owns its bytes and overwrites them when it is dropped. Who needs the text (to sign, to fill a header) reveals it, and
 * `grep reveal` finds every place that does.
 */
#ifndef TY_ESTIMATOR_SPEC_AWS_SECRET_H
#define TY_ESTIMATOR_SPEC_AWS_SECRET_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct ty_secret {
    char *text;     /* private; NULL: none */
    size_t n_bytes; /* private */
} ty_secret;

/* Replaces what was there by a copy. Empty text is no secret: is_set is false afterwards. */
int ty_secret_set(ty_secret *s, const char *text, size_t n_bytes, ty_error *err);
/* Overwrites and frees; a dropped secret is not set. */
void ty_secret_drop(ty_secret *s);
bool ty_secret_is_set(const ty_secret *s);
/* The text, NUL-terminated, "" if not set; valid until the secret is set or dropped. */
const char *ty_secret_reveal(const ty_secret *s);

#endif
