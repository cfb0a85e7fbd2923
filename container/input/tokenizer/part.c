/* part.c - values of a tokenizer.json. */
#include "container/input/tokenizer/parts.h"

static const ty_doc *part_find(const ty_doc *map, const char *key)
{
    const ty_doc *d = ty_doc_find(map, key);
    return d != NULL && d->kind != TY_DOC_NULL ? d : NULL;
}

int tok_get_bool(const ty_doc *map, const char *key, bool otherwise, bool *out, ty_error *err)
{
    const ty_doc *d = part_find(map, key);
    *out = otherwise;
    return d != NULL && ty_doc_bool(d, out, err) < 0 ? ty_error_wrap(err, "%s", key) : 0;
}

int tok_get_string(const ty_doc *map, const char *key, const char *otherwise, const char **out, ty_error *err)
{
    const ty_doc *d = part_find(map, key);
    *out = otherwise;
    return d != NULL && ty_doc_string(d, out, err) < 0 ? ty_error_wrap(err, "%s", key) : 0;
}

int tok_get_int(const ty_doc *map, const char *key, int64_t otherwise, int64_t *out, ty_error *err)
{
    const ty_doc *d = part_find(map, key);
    *out = otherwise;
    return d != NULL && ty_doc_int(d, out, err) < 0 ? ty_error_wrap(err, "%s", key) : 0;
}

int tok_get_type(const ty_doc *node, const char **out, ty_error *err)
{
    if (ty_doc_expect(node, TY_DOC_MAP, err) < 0)
        return -1;
    const ty_doc *type = ty_doc_find(node, "type");
    if (type == NULL)
        return ty_doc_error(node, err, TY_E_MISSING_KEY, NULL, "\"type\" is missing");
    return ty_doc_string(type, out, err);
}

int tok_get_pattern(const ty_doc *node, tok_pattern **out, ty_error *err)
{
    const char *text;
    const ty_doc *pattern = ty_doc_find(node, "pattern");
    if (pattern == NULL)
        return ty_doc_error(node, err, TY_E_MISSING_KEY, NULL, "\"pattern\" is missing");
    const ty_doc *string = pattern->kind == TY_DOC_STRING ? pattern : ty_doc_find(pattern, "String");
    const ty_doc *regex = ty_doc_find(pattern, "Regex");
    if (string == NULL && regex == NULL)
        return ty_doc_error(pattern, err, TY_E_TYPE, NULL, "expected {\"String\": ...} or {\"Regex\": ...}");
    if (ty_doc_string(string != NULL ? string : regex, &text, err) < 0)
        return -1;
    int rc = string != NULL ? tok_pattern_string(text, out, err) : tok_pattern_regex(text, out, err);
    if (rc == 0)
        return 0;
    char place[256];
    return ty_error_at(err, "%s", ty_doc_place(pattern, place, sizeof place));
}

int tok_refuse_type(const ty_doc *node, const char *what, const char *type, const char *known, ty_error *err)
{
    ty_doc_error(node, err, TY_E_UNSUPPORTED, NULL, "the %s \"%.100s\" is not known", what, type);
    return ty_error_help(err, "known are %s", known);
}
