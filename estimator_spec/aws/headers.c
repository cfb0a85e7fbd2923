/* headers.c - see headers.h. */
#include "estimator_spec/aws/headers.h"

#include <strings.h>

void ty_headers_add(ty_headers *h, const char *name, const char *value)
{
    if (h->n < TY_MAX_HEADERS)
        h->at[h->n++] = (ty_header){.name = name, .value = value};
}

const char *ty_headers_get(const ty_headers *h, const char *name)
{
    for (size_t i = 0; i < h->n; i++)
        if (strcasecmp(h->at[i].name, name) == 0)
            return h->at[i].value;
    return NULL;
}
