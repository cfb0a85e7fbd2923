/* python_json.c - recursive descent over json.loads' grammar (CPython 3.11, Modules/_json.c, Lib/json/scanner.py). */
#include "container/config/python_json.h"

#include "container/config/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOOKUP_DUPLICATES_MAX 4096 /* keys per object; the search for repeated ones is quadratic */

typedef struct reader {
    ty_arena *arena;
    const char *at, *end;
    int depth;
} reader;

static bool reader_value(reader *r, ty_value *out);

static void reader_skip_blanks(reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

static bool reader_take(reader *r, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0)
        return false;
    r->at += len;
    return true;
}

static bool reader_is_digit(const reader *r)
{
    return r->at < r->end && *r->at >= '0' && *r->at <= '9';
}

static bool reader_digits(reader *r)
{
    if (!reader_is_digit(r))
        return false;
    while (reader_is_digit(r))
        r->at++;
    return true;
}

/* (-?(?:0|[1-9]\d*))(\.\d+)?([eE][-+]?\d+)? - a fraction or exponent that is not whole is not taken. */
static bool reader_number(reader *r, ty_value *out)
{
    const char *start = r->at;
    bool real = false;

    reader_take(r, "-");
    if (!reader_take(r, "0") && !reader_digits(r))
        return false;

    const char *mark = r->at;
    if (reader_take(r, ".") && reader_digits(r))
        real = true;
    else
        r->at = mark;
    mark = r->at;
    if ((reader_take(r, "e") || reader_take(r, "E")) && (reader_take(r, "-") || reader_take(r, "+") || true) &&
        reader_digits(r))
        real = true;
    else
        r->at = mark;

    const char *text = ty_arena_strndup(r->arena, start, (size_t)(r->at - start));
    if (real) {
        *out = ty_value_real(strtod(text, NULL)); /* beyond double: infinity, as Python's float() */
        return true;
    }
    if (strcmp(text, "-0") == 0)
        text = "0"; /* an int has no negative zero */
    *out = (ty_value){.kind = TY_VALUE_INT, .text = text, .text_len = strlen(text)};
    return true;
}

static bool reader_hex4(reader *r, uint32_t *out)
{
    *out = 0;
    if (r->end - r->at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char c = *r->at++;
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16)
            return false;
        *out = *out << 4 | digit;
    }
    return true;
}

/* The code point of \uXXXX, joined with a low surrogate behind a high one; alone they stay as they are. */
static bool reader_unicode_escape(reader *r, uint32_t *cp)
{
    if (!reader_hex4(r, cp))
        return false;
    if (*cp < 0xd800 || *cp > 0xdbff)
        return true;

    const char *mark = r->at;
    uint32_t low;
    if (reader_take(r, "\\u") && reader_hex4(r, &low) && low >= 0xdc00 && low <= 0xdfff)
        *cp = 0x10000 + ((*cp - 0xd800) << 10 | (low - 0xdc00));
    else
        r->at = mark;
    return true;
}

/* After the backslash. Writes to `to` and moves it. */
static bool reader_escape(reader *r, char **to)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";

    if (r->at == r->end)
        return false;
    char c = *r->at++;
    if (c == 'u') {
        uint32_t cp;
        if (!reader_unicode_escape(r, &cp))
            return false;
        *to += ty_utf8_put(*to, cp);
        return true;
    }
    const char *hit = c == '\0' ? NULL : strchr(from, c);
    if (hit == NULL)
        return false;
    *(*to)++ = into[hit - from];
    return true;
}

/* The closing quote of the string whose content starts at r->at, or NULL. */
static const char *reader_closing_quote(const reader *r)
{
    for (const char *p = r->at; p < r->end; p++) {
        if (*p == '"')
            return p;
        if (*p == '\\')
            p++;
    }
    return NULL;
}

/* After the opening quote. The decoded string is never longer than its spelling (\uXXXX: 6 bytes for at most 3). */
static bool reader_string(reader *r, ty_value *out)
{
    const char *quote = reader_closing_quote(r);

    if (quote == NULL)
        return false;

    char *text = ty_arena_alloc(r->arena, (size_t)(quote - r->at) + 1), *to = text;

    while (r->at < quote) {
        if ((unsigned char)*r->at < 0x20)
            return false;
        if (*r->at != '\\') {
            *to++ = *r->at++;
            continue;
        }
        r->at++;
        if (!reader_escape(r, &to))
            return false;
    }
    r->at = quote + 1;
    *to = '\0';
    *out = (ty_value){.kind = TY_VALUE_STRING, .text = text, .text_len = (size_t)(to - text)};
    return true;
}

static bool reader_list(reader *r, ty_value *out)
{
    *out = ty_value_list();
    reader_skip_blanks(r);
    if (reader_take(r, "]"))
        return true;
    for (;;) {
        ty_value item;
        reader_skip_blanks(r);
        if (!reader_value(r, &item))
            return false;
        ty_value_push(r->arena, out, item);
        reader_skip_blanks(r);
        if (reader_take(r, "]"))
            return true;
        if (!reader_take(r, ","))
            return false;
    }
}

/* As a Python dict: a key that comes again keeps its first place and takes the new value. */
static bool reader_set(reader *r, ty_value *dict, ty_value key, ty_value item)
{
    for (size_t i = 0; i < dict->n; i++)
        if (dict->keys[i].text_len == key.text_len && memcmp(dict->keys[i].text, key.text, key.text_len) == 0) {
            dict->items[i] = item;
            return true;
        }
    if (dict->n == LOOKUP_DUPLICATES_MAX)
        return false;
    ty_value_put(r->arena, dict, key, item);
    return true;
}

static bool reader_dict(reader *r, ty_value *out)
{
    *out = ty_value_dict();
    reader_skip_blanks(r);
    if (reader_take(r, "}"))
        return true;
    for (;;) {
        ty_value key, item;
        reader_skip_blanks(r);
        if (!reader_take(r, "\"") || !reader_string(r, &key))
            return false;
        reader_skip_blanks(r);
        if (!reader_take(r, ":"))
            return false;
        reader_skip_blanks(r);
        if (!reader_value(r, &item) || !reader_set(r, out, key, item))
            return false;
        reader_skip_blanks(r);
        if (reader_take(r, "}"))
            return true;
        if (!reader_take(r, ","))
            return false;
    }
}

static bool reader_nested(reader *r, bool (*read)(reader *, ty_value *), ty_value *out)
{
    if (r->depth == TY_PYTHON_JSON_MAX_DEPTH)
        return false;
    r->depth++;
    bool ok = read(r, out);
    r->depth--;
    return ok;
}

static bool reader_word(reader *r, ty_value *out)
{
    const struct {
        const char *word;
        ty_value value;
    } words[] = {
        {"null", ty_value_null()},
        {"true", ty_value_bool(true)},
        {"false", ty_value_bool(false)},
        {"NaN", ty_value_real((double)NAN)},
        {"Infinity", ty_value_real(HUGE_VAL)},
        {"-Infinity", ty_value_real(-HUGE_VAL)},
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (reader_take(r, words[i].word)) {
            *out = words[i].value;
            return true;
        }
    return false;
}

static bool reader_value(reader *r, ty_value *out)
{
    if (reader_take(r, "\""))
        return reader_string(r, out);
    if (reader_take(r, "["))
        return reader_nested(r, reader_list, out);
    if (reader_take(r, "{"))
        return reader_nested(r, reader_dict, out);
    return reader_word(r, out) || reader_number(r, out);
}

bool ty_python_json_read(ty_arena *a, const char *text, size_t n, ty_value *out)
{
    reader r = {.arena = a, .at = text, .end = text + n};

    reader_skip_blanks(&r);
    if (!reader_value(&r, out))
        return false;
    reader_skip_blanks(&r);
    return r.at == r.end;
}
