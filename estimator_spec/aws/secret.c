/* secret.c - see secret.h. */
#define _GNU_SOURCE
#include "estimator_spec/aws/secret.h"

#include <stdlib.h>
#include <string.h>

int ty_secret_set(ty_secret *s, const char *text, size_t n_bytes, ty_error *err)
{
    char *copy = NULL;
    if (n_bytes > 0 && !(copy = malloc(n_bytes + 1)))
        return ty_error_set(err, TY_E_LIMIT, "no memory");
    if (copy) {
        memcpy(copy, text, n_bytes);
        copy[n_bytes] = 0;
    }
    ty_secret_drop(s);
    *s = (ty_secret){.text = copy, .n_bytes = n_bytes};
    return 0;
}

void ty_secret_drop(ty_secret *s)
{
    if (s->text)
        explicit_bzero(s->text, s->n_bytes);
    free(s->text);
    *s = (ty_secret){0};
}

bool ty_secret_is_set(const ty_secret *s)
{
    return s->text != NULL;
}

const char *ty_secret_reveal(const ty_secret *s)
{
    return s->text ? s->text : "";
}
