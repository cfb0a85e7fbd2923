/* doc.c - looking into trees, and complaining about what is found there. */
#include "base/doc.h"

#include <stdio.h>
#include <string.h>

static const char *const kind_texts[] = {
    [TY_DOC_NULL] = "null",     [TY_DOC_BOOL] = "boolean", [TY_DOC_INT] = "integer", [TY_DOC_FLOAT] = "number",
    [TY_DOC_STRING] = "string", [TY_DOC_LIST] = "list",    [TY_DOC_MAP] = "map",
};

const char *ty_doc_kind_text(ty_doc_kind kind)
{
    return kind_texts[kind];
}

const ty_doc *ty_doc_find(const ty_doc *map, const char *key)
{
    if (!map || map->kind != TY_DOC_MAP)
        return NULL;
    for (uint32_t i = 0; i < map->n_items; i++)
        if (strcmp(map->items[i].key, key) == 0)
            return &map->items[i];
    return NULL;
}

const ty_doc *ty_doc_at(const ty_doc *list, size_t i)
{
    return i < ty_doc_len(list) ? &list->items[i] : NULL;
}

const char *ty_doc_describe(const ty_doc *d, char *out, size_t n)
{
    enum { SHOWN = 60 };
    if (d->kind == TY_DOC_LIST || d->kind == TY_DOC_MAP) {
        snprintf(out, n, "%s of %u", kind_texts[d->kind], d->n_items);
    } else if (d->kind == TY_DOC_NULL) {
        snprintf(out, n, "null");
    } else {
        size_t len = strlen(d->raw);
        size_t shown = len <= SHOWN ? len : SHOWN;
        while (shown < len && shown > 0 && ((unsigned char)d->raw[shown] & 0xc0) == 0x80)
            shown--;
        const char *quote = d->kind == TY_DOC_STRING ? "\"" : "";
        snprintf(out, n, "%s %s%.*s%s%s", kind_texts[d->kind], quote, (int)shown, d->raw, quote,
                 shown < len ? "..." : "");
    }
    return out;
}

const char *ty_doc_place(const ty_doc *d, char *out, size_t n)
{
    if (d->source->is_override)
        snprintf(out, n, "%s", d->source->name);
    else
        snprintf(out, n, "%s:%u:%u", d->source->name, d->line, d->column);
    return out;
}

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t count_chars(const char *s, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += !is_continuation(s[i]);
    return n;
}

/* Line number `line` of the text: its bytes, without the line break. */
static const char *find_line(const ty_doc_source *source, uint32_t line, size_t *len)
{
    const char *at = source->text, *end = at + source->len;
    for (; line > 1; line--) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline)
            break;
        at = newline + 1;
    }
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    *len = (size_t)((newline ? newline : end) - at);
    if (*len && at[*len - 1] == '\r')
        --*len;
    return at;
}

/* Shows at most WINDOW characters around the column; what would not take one column on a screen is shown as '?'. */
void ty_doc_excerpt(const ty_doc_source *source, uint32_t line, uint32_t column, uint32_t width, const char *note,
                    ty_error *err)
{
    enum { WINDOW = 100, LEAD = 60 };
    if (!err)
        return;
    ty_error_at(err, "%s:%u:%u", source->name, line, column);
    size_t len;
    const char *text = find_line(source, line, &len);
    size_t n_chars = count_chars(text, len);
    size_t skip = column > LEAD && n_chars > WINDOW ? column - LEAD : 0;
    char shown[WINDOW * 4 + 8];
    size_t n_shown = 0, index = 0;
    for (size_t i = 0; i < len && index <= skip + WINDOW; i++) {
        index += !is_continuation(text[i]);
        if (index <= skip || index > skip + WINDOW)
            continue;
        char c = text[i];
        if (n_shown + 1 < sizeof shown)
            shown[n_shown++] = c == '\t' ? ' ' : (unsigned char)c < 0x20 || c == 0x7f ? '?' : c;
    }
    shown[n_shown] = 0;
    const char *before = skip ? "..." : "", *after = n_chars > skip + WINDOW ? "..." : "";
    ty_error_detail(err, "%5u | %s%s%s", line, before, shown, after);
    char carets[WINDOW + 1];
    size_t caret_at = column > skip ? column - skip - 1 : 0;
    size_t n_carets = width ? width : 1;
    if (n_carets > WINDOW - LEAD)
        n_carets = WINDOW - LEAD;
    memset(carets, '^', n_carets);
    carets[n_carets] = 0;
    ty_error_detail(err, "      | %*s%s%s%s", (int)((caret_at < WINDOW ? caret_at : WINDOW) + strlen(before)), "",
                    carets, note ? " " : "", note ? note : "");
}

static int complain(const ty_doc *d, uint32_t line, uint32_t column, uint32_t width, const char *note, ty_error *err)
{
    if (!d->source->is_override) {
        ty_doc_excerpt(d->source, line, column, width, note, err);
        return -1;
    }
    ty_error_at(err, "%s", d->source->name);
    if (note)
        ty_error_help(err, "%s", note);
    return -1;
}

#define TAKE_MESSAGE(fmt)                          \
    char message[TY_ERROR_MESSAGE_BYTES];          \
    va_list args;                                  \
    va_start(args, fmt);                           \
    vsnprintf(message, sizeof message, fmt, args); \
    va_end(args)

int ty_doc_error(const ty_doc *d, ty_error *err, ty_code code, const char *note, const char *fmt, ...)
{
    TAKE_MESSAGE(fmt);
    ty_error_set(err, code, "%s", message);
    return complain(d, d->line, d->column, d->width, note, err);
}

int ty_doc_error_key(const ty_doc *d, ty_error *err, ty_code code, const char *note, const char *fmt, ...)
{
    TAKE_MESSAGE(fmt);
    ty_error_set(err, code, "%s", message);
    if (!d->key)
        return complain(d, d->line, d->column, d->width, note, err);
    return complain(d, d->key_line, d->key_column, (uint32_t)count_chars(d->key, strlen(d->key)), note, err);
}

static int refuse_kind(const ty_doc *d, const char *expected, const char *note, ty_error *err)
{
    char found[160];
    ty_doc_describe(d, found, sizeof found);
    if (d->key)
        return ty_doc_error(d, err, TY_E_TYPE, note, "key \"%s\": expected %s, found %s", d->key, expected, found);
    return ty_doc_error(d, err, TY_E_TYPE, note, "expected %s, found %s", expected, found);
}

int ty_doc_expect(const ty_doc *d, ty_doc_kind kind, ty_error *err)
{
    return d->kind == kind ? 0 : refuse_kind(d, kind_texts[kind], NULL, err);
}

int ty_doc_bool(const ty_doc *d, bool *out, ty_error *err)
{
    if (d->kind != TY_DOC_BOOL)
        return refuse_kind(d, "boolean", d->kind == TY_DOC_STRING ? "write true or false" : NULL, err);
    *out = d->boolean;
    return 0;
}

int ty_doc_int(const ty_doc *d, int64_t *out, ty_error *err)
{
    if (d->kind != TY_DOC_INT)
        return refuse_kind(d, "integer", NULL, err);
    *out = d->integer;
    return 0;
}

int ty_doc_float(const ty_doc *d, double *out, ty_error *err)
{
    if (d->kind != TY_DOC_INT && d->kind != TY_DOC_FLOAT)
        return refuse_kind(d, "number", NULL, err);
    *out = d->kind == TY_DOC_INT ? (double)d->integer : d->number;
    return 0;
}

int ty_doc_string(const ty_doc *d, const char **out, ty_error *err)
{
    bool is_container = d->kind == TY_DOC_LIST || d->kind == TY_DOC_MAP;
    if (d->kind == TY_DOC_STRING) {
        *out = d->string;
        return 0;
    }
    if (d->source->is_override && !is_container) {
        *out = d->raw;
        return 0;
    }
    return refuse_kind(d, "string", is_container || d->kind == TY_DOC_NULL ? NULL : "quote it to make it a string",
                       err);
}
