/* value.c - building and looking into values. */
#include "container/config/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

ty_value ty_value_null(void)
{
    return (ty_value){.kind = TY_VALUE_NULL};
}

ty_value ty_value_bool(bool b)
{
    return (ty_value){.kind = TY_VALUE_BOOL, .boolean = b};
}

ty_value ty_value_int(ty_arena *a, int64_t i)
{
    char digits[32];
    int len = snprintf(digits, sizeof digits, "%" PRId64, i);

    return (ty_value){.kind = TY_VALUE_INT, .text = ty_arena_strdup(a, digits), .text_len = (size_t)len};
}

ty_value ty_value_real(double d)
{
    return (ty_value){.kind = TY_VALUE_REAL, .real = d};
}

ty_value ty_value_string(ty_arena *a, const char *s)
{
    return s == NULL ? ty_value_null() : ty_value_string_n(a, s, strlen(s));
}

ty_value ty_value_string_n(ty_arena *a, const char *s, size_t n)
{
    char *copy = ty_arena_alloc(a, n + 1);

    if (n > 0)
        memcpy(copy, s, n);
    copy[n] = '\0';
    return (ty_value){.kind = TY_VALUE_STRING, .text = copy, .text_len = n};
}

ty_value ty_value_list(void)
{
    return (ty_value){.kind = TY_VALUE_LIST};
}

ty_value ty_value_dict(void)
{
    return (ty_value){.kind = TY_VALUE_DICT};
}

ty_value ty_value_strings(ty_arena *a, const char *const *strings, size_t n)
{
    ty_value list = ty_value_list();

    for (size_t i = 0; i < n; i++)
        ty_value_push(a, &list, ty_value_string(a, strings[i]));
    return list;
}

static void value_reserve(ty_arena *a, ty_value *v)
{
    if (v->n < v->cap)
        return;

    size_t cap = v->cap == 0 ? 8 : 2 * v->cap;
    ty_value *items = TY_NEW_ARRAY(a, ty_value, cap);

    if (v->n > 0)
        memcpy(items, v->items, v->n * sizeof *items);
    if (v->kind == TY_VALUE_DICT) {
        ty_value *keys = TY_NEW_ARRAY(a, ty_value, cap);
        if (v->n > 0)
            memcpy(keys, v->keys, v->n * sizeof *keys);
        v->keys = keys;
    }
    v->items = items;
    v->cap = cap;
}

void ty_value_push(ty_arena *a, ty_value *list, ty_value item)
{
    value_reserve(a, list);
    list->items[list->n++] = item;
}

void ty_value_put(ty_arena *a, ty_value *dict, ty_value key, ty_value item)
{
    value_reserve(a, dict);
    dict->keys[dict->n] = key;
    dict->items[dict->n++] = item;
}

/* JSON spells a double with a fraction or an exponent; what has neither is an integer, however long. */
static ty_value value_from_number(ty_arena *a, const ty_doc *doc)
{
    const char *raw = strcmp(doc->raw, "-0") == 0 ? "0" : doc->raw;

    if (doc->kind == TY_DOC_FLOAT && strpbrk(raw, ".eE") != NULL)
        return ty_value_real(doc->number);
    return (ty_value){.kind = TY_VALUE_INT, .text = ty_arena_strdup(a, raw), .text_len = strlen(raw)};
}

ty_value ty_value_from_doc(ty_arena *a, const ty_doc *doc)
{
    ty_value v = doc->kind == TY_DOC_MAP ? ty_value_dict() : ty_value_list();

    switch (doc->kind) {
    case TY_DOC_NULL:
        return ty_value_null();
    case TY_DOC_BOOL:
        return ty_value_bool(doc->boolean);
    case TY_DOC_INT:
    case TY_DOC_FLOAT:
        return value_from_number(a, doc);
    case TY_DOC_STRING:
        return ty_value_string(a, doc->string);
    case TY_DOC_LIST:
    case TY_DOC_MAP:
        break;
    }
    for (size_t i = 0; i < doc->n_items; i++) {
        ty_value item = ty_value_from_doc(a, &doc->items[i]);
        if (doc->kind == TY_DOC_MAP)
            ty_value_put(a, &v, ty_value_string(a, doc->items[i].key), item);
        else
            ty_value_push(a, &v, item);
    }
    return v;
}

const ty_value *ty_value_get(const ty_value *dict, const char *key)
{
    if (dict == NULL || dict->kind != TY_VALUE_DICT)
        return NULL;

    size_t len = strlen(key);

    for (size_t i = 0; i < dict->n; i++)
        if (dict->keys[i].text_len == len && memcmp(dict->keys[i].text, key, len) == 0)
            return &dict->items[i];
    return NULL;
}

const char *ty_value_text(const ty_value *v)
{
    if (v == NULL || v->kind != TY_VALUE_STRING || strlen(v->text) != v->text_len)
        return NULL;
    return v->text;
}

const char *ty_value_kind_name(ty_value_kind kind)
{
    static const char *const names[] = {
        [TY_VALUE_NULL] = "null",      [TY_VALUE_BOOL] = "a boolean",  [TY_VALUE_INT] = "a number",
        [TY_VALUE_REAL] = "a number",  [TY_VALUE_STRING] = "a string", [TY_VALUE_LIST] = "a list",
        [TY_VALUE_DICT] = "an object",
    };
    return names[kind];
}
