/* ini.c - see ini.h. */
#define _GNU_SOURCE
#include "estimator_spec/aws/ini.h"

#include <ctype.h>
#include <string.h>

typedef struct reader {
    ty_arena *arena;
    const char *name;
    ty_ini *out;
    size_t cap;
    uint32_t line;
    const char *section; /* NULL before the first */
    const char *key;     /* of the last line that began a value */
    bool has_below;      /* that value was empty: what follows indented are keys below it */
    ty_error *err;
} reader;

static int refuse(reader *r, const char *words)
{
    ty_error_set(r->err, TY_E_SYNTAX, "%s", words);
    return ty_error_at(r->err, "%s:%u", r->name, r->line);
}

/* Without blanks at both ends. */
static char *trimmed(ty_arena *arena, const char *from, const char *to)
{
    while (from < to && isspace((unsigned char)*from))
        from++;
    while (to > from && isspace((unsigned char)to[-1]))
        to--;
    return ty_arena_strndup(arena, from, (size_t)(to - from));
}

static int add(reader *r, const char *key, const char *value)
{
    if (r->out->n == TY_INI_MAX_ENTRIES)
        return refuse(r, "more entries than any such file has");
    if (r->out->n == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 32;
        ty_ini_entry *more = TY_NEW_ARRAY(r->arena, ty_ini_entry, cap);
        if (r->out->n)
            memcpy(more, r->out->at, r->out->n * sizeof *more);
        r->out->at = more;
        r->cap = cap;
    }
    r->out->at[r->out->n++] = (ty_ini_entry){r->section, key, value, r->line};
    return 0;
}

/* Looks back to the section's own line only, so a file of n entries in one section costs n * n: bounded by the limit,
 * and files of people have ten. */
static bool is_twice(const reader *r, const char *key)
{
    for (size_t i = r->out->n; i-- > 0 && r->out->at[i].key;)
        if (strcmp(r->out->at[i].key, key) == 0)
            return true;
    return false;
}

static int read_section(reader *r, const char *from, const char *to)
{
    const char *end = memrchr(from, ']', (size_t)(to - from));
    if (!end)
        return refuse(r, "\"[\" without \"]\"");
    r->section = trimmed(r->arena, from + 1, end);
    r->key = NULL;
    if (ty_ini_has(r->out, r->section))
        return refuse(r, "this section stands in the file already");
    return add(r, NULL, NULL);
}

static const char *lower_key(reader *r, const char *prefix, const char *from, const char *to)
{
    char *key = trimmed(r->arena, from, to);
    for (char *c = key; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return prefix ? ty_arena_printf(r->arena, "%s.%s", prefix, key) : key;
}

static int read_pair(reader *r, const char *from, const char *to, const char *prefix)
{
    const char *sign = from;
    while (sign < to && *sign != '=' && (prefix || *sign != ':'))
        sign++;
    if (sign == to)
        return refuse(r, "expected \"key = value\"");
    if (!r->section)
        return refuse(r, "a key before the first [section]");
    const char *key = lower_key(r, prefix, from, sign), *value = trimmed(r->arena, sign + 1, to);
    if (!*key)
        return refuse(r, "a value without a key");
    if (is_twice(r, key))
        return refuse(r, "this key stands in the section already");
    if (!prefix) {
        r->key = key;
        r->has_below = !*value;
    }
    return add(r, key, value);
}

/* An indented line: a key below the last one, or more of its value. */
static int read_below(reader *r, const char *from, const char *to)
{
    if (r->has_below)
        return read_pair(r, from, to, r->key);
    ty_ini_entry *last = &r->out->at[r->out->n - 1];
    last->value = ty_arena_printf(r->arena, "%s\n%s", last->value, trimmed(r->arena, from, to));
    if (strlen(last->value) > 8192)
        return refuse(r, "a value longer than any");
    return 0;
}

static int read_line(reader *r, const char *from, const char *to)
{
    const char *at = from;
    while (at < to && isspace((unsigned char)*at))
        at++;
    if (at == to || *at == '#' || *at == ';')
        return 0;
    if (at > from && r->key)
        return read_below(r, at, to);
    return *at == '[' ? read_section(r, at, to) : read_pair(r, at, to, NULL);
}

int ty_ini_parse(ty_arena *arena, const char *name, const char *text, size_t len, ty_ini *out, ty_error *err)
{
    reader r = {.arena = arena, .name = name, .out = out, .err = err};
    *out = (ty_ini){.name = ty_arena_strdup(arena, name)};
    if (len > TY_INI_MAX_BYTES || memchr(text, 0, len))
        return refuse(&r, len > TY_INI_MAX_BYTES ? "larger than 1 MiB" : "a NUL byte: this is no text");
    for (const char *at = text, *end = text + len; at < end;) {
        const char *eol = memchr(at, '\n', (size_t)(end - at));
        r.line++;
        if (read_line(&r, at, eol ? eol : end) < 0)
            return -1;
        at = eol ? eol + 1 : end;
    }
    return 0;
}

bool ty_ini_has(const ty_ini *ini, const char *section)
{
    for (size_t i = 0; i < ini->n; i++)
        if (!ini->at[i].key && strcmp(ini->at[i].section, section) == 0)
            return true;
    return false;
}

const char *ty_ini_get(const ty_ini *ini, const char *section, const char *key)
{
    for (size_t i = 0; i < ini->n; i++)
        if (ini->at[i].key && strcmp(ini->at[i].section, section) == 0 && strcmp(ini->at[i].key, key) == 0)
            return ini->at[i].value;
    return NULL;
}
