/* arguments.c - contract, section 6. */
#include "container/config/arguments.h"

#include "container/config/python_text.h"
#include "container/config/utf8.h"

#include <stdlib.h>
#include <string.h>

static int argument_compare(const void *a, const void *b)
{
    return strcmp((*(const ty_value *const *)a)->text, (*(const ty_value *const *)b)->text);
}

/* One character, not one byte: "-é" and not "--é". */
static const char *argument_name(ty_arena *a, const ty_value *key)
{
    uint32_t cp;

    if (key->text_len == 0)
        return "";
    bool one = ty_utf8_next(key->text, key->text_len, &cp) == key->text_len;
    return ty_arena_printf(a, "%s%s", one ? "-" : "--", key->text);
}

static const char *argument_value(ty_arena *a, const ty_value *v)
{
    ty_buf text;

    ty_buf_init(&text, (size_t)64 << 20); /* the reader has seen it fit */
    ty_python_argument(&text, v);
    const char *copy = ty_arena_strdup(a, text.data);
    ty_buf_fini(&text);
    return copy;
}

void ty_arguments_init(ty_arguments *arguments, ty_arena *a, const ty_value *user)
{
    const ty_value **order = TY_NEW_ARRAY(a, const ty_value *, user->n);
    const char **words = TY_NEW_ARRAY(a, const char *, 2 * user->n + 1);

    for (size_t i = 0; i < user->n; i++)
        order[i] = &user->keys[i];
    qsort(order, user->n, sizeof *order, argument_compare);
    for (size_t i = 0; i < user->n; i++) {
        words[2 * i] = argument_name(a, order[i]);
        words[2 * i + 1] = argument_value(a, &user->items[order[i] - user->keys]);
    }
    *arguments = (ty_arguments){.words = words, .n_words = 2 * user->n};
}
