/* redact.h - keeping secrets out of texts that other people read (logs, failure texts). */
#ifndef TY_CONTAINER_CONFIG_REDACT_H
#define TY_CONTAINER_CONFIG_REDACT_H

#include <stdbool.h>
#include <stddef.h>

/* True if a setting of this name may hold a secret: SECRET, PASSWORD, KEY, TOKEN, PRIVATE or CRED occur in it, in any
 * case. (The list of SageMaker's own driver: it masks "num_keys" too, and that is the right side to err on.) */
bool ty_name_is_secret(const char *name);

/* Overwrites with 'x', in place, what looks like a credential in n bytes of text: AWS access key ids, whole
 * Authorization headers, and the value after "=" or ":" behind a known name (X-Amz-Signature, X-Amz-Credential and
 * X-Amz-Security-Token of presigned addresses, AWS key variables, password, api_key ...; redact.c has the list). */
void ty_redact(char *text, size_t n);

#endif
