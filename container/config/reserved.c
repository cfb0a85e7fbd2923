/* reserved.c - the table of reserved.def, and the truth of flags. */
#include "container/config/reserved.h"

#include <string.h>
#include <strings.h>

static const ty_reserved_row reserved_rows[] = {
#define RESERVED(key, kind, type, meaning) {key, TY_RESERVED_##kind, TY_VALUE_##type, meaning},
#include "container/config/reserved.def"
#undef RESERVED
};

const ty_reserved_row *ty_reserved_rows(size_t *n)
{
    *n = sizeof reserved_rows / sizeof reserved_rows[0];
    return reserved_rows;
}

const ty_reserved_row *ty_reserved_find(const char *key)
{
    for (size_t i = 0; i < sizeof reserved_rows / sizeof reserved_rows[0]; i++)
        if (strcmp(reserved_rows[i].key, key) == 0)
            return &reserved_rows[i];
    return NULL;
}

ty_reserved_kind ty_reserved_kind_of(const char *key)
{
    const ty_reserved_row *row = ty_reserved_find(key);

    if (row != NULL)
        return row->kind;
    return strncmp(key, "sagemaker_", strlen("sagemaker_")) == 0 ? TY_RESERVED_FRAMEWORK : TY_RESERVED_NOT;
}

static bool reserved_is_off_word(const char *text)
{
    static const char *const words[] = {"false", "no", "off", "0", "none", "null"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return false;
}

bool ty_reserved_flag(const ty_value *v, bool *corrected)
{
    if (corrected != NULL)
        *corrected = false;
    if (v == NULL)
        return false;
    switch (v->kind) {
    case TY_VALUE_NULL:
        return false;
    case TY_VALUE_BOOL:
        return v->boolean;
    case TY_VALUE_INT:
        return strcmp(v->text, "0") != 0;
    case TY_VALUE_REAL:
        return v->real != 0;
    case TY_VALUE_STRING:
        if (v->text_len == 0)
            return false;
        if (!reserved_is_off_word(v->text))
            return true;
        if (corrected != NULL)
            *corrected = true;
        return false;
    case TY_VALUE_LIST:
    case TY_VALUE_DICT:
        return v->n > 0;
    }
    return false;
}
