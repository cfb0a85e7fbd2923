/* xml.c - see xml.h. */
#define _GNU_SOURCE
#include "estimator_spec/aws/xml.h"

#include "base/buf.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    ty_arena *arena;
    const char *name, *start, *at, *end;
    int n_elements;
    ty_error *err;
} reader;

static int refuse(const reader *r, const char *words)
{
    return ty_error_set(r->err, TY_E_SYNTAX, "%s: no XML as it is expected: %s (at byte %zu)", r->name, words,
                        (size_t)(r->at - r->start));
}

static bool begins(const reader *r, const char *text)
{
    size_t bytes = strlen(text);
    return (size_t)(r->end - r->at) >= bytes && memcmp(r->at, text, bytes) == 0;
}

/* To behind the next `text`; false if there is none. */
static bool skip_past(reader *r, const char *text)
{
    const char *found = memmem(r->at, (size_t)(r->end - r->at), text, strlen(text));
    if (found)
        r->at = found + strlen(text);
    return found != NULL;
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.' || c == ':';
}

/* ---- text ---- */

static void add_utf8(ty_buf *out, uint32_t c)
{
    char bytes[4];
    int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int i = n - 1; i > 0; i--, c >>= 6)
        bytes[i] = (char)(0x80 | (c & 0x3f));
    bytes[0] = (char)(lead[n] | c);
    ty_buf_add(out, bytes, (size_t)n);
}

/* "&#x41;" or "&#65;" at `at`, up to its semicolon. */
static bool add_number(ty_buf *out, const char *at, const char *semicolon)
{
    char digits[12] = "", *stop;
    bool is_hex = at[0] == 'x';
    size_t bytes = (size_t)(semicolon - at) - is_hex;
    if (bytes == 0 || bytes >= sizeof digits)
        return false;
    memcpy(digits, at + is_hex, bytes);
    unsigned long c = strtoul(digits, &stop, is_hex ? 16 : 10);
    bool fits = !*stop && c > 0 && c < 0x110000 && (c < 0xd800 || c > 0xdfff);
    if (fits)
        add_utf8(out, (uint32_t)c);
    return fits;
}

/* An entity; *at stands behind its "&". */
static bool add_entity(ty_buf *out, const char **at, const char *end)
{
    static const struct {
        const char *name;
        char c;
    } rows[] = {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
    const char *name = *at, *semicolon = memchr(name, ';', (size_t)(end - name < 12 ? end - name : 12));
    if (!semicolon)
        return false;
    *at = semicolon + 1;
    if (name[0] == '#')
        return add_number(out, name + 1, semicolon);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strlen(rows[i].name) == (size_t)(semicolon - name) && memcmp(rows[i].name, name, strlen(rows[i].name)) == 0)
            return ty_buf_addc(out, rows[i].c) == 0;
    return false;
}

static int read_text(reader *r, ty_buf *out)
{
    if (begins(r, "<![CDATA[")) {
        r->at += 9;
        const char *from = r->at;
        if (!skip_past(r, "]]>"))
            return refuse(r, "CDATA without an end");
        ty_buf_add(out, from, (size_t)(r->at - 3 - from));
        return 0;
    }
    while (r->at < r->end && *r->at != '<') {
        if (*r->at == '&') {
            r->at++;
            if (!add_entity(out, &r->at, r->end))
                return refuse(r, "an entity that nobody knows");
        } else
            ty_buf_addc(out, *r->at++);
    }
    return 0;
}

/* ---- elements ---- */

/* Comments and processing instructions; false in front of anything else. */
static bool skip_aside(reader *r)
{
    if (begins(r, "<!--"))
        return skip_past(r, "-->");
    if (begins(r, "<?"))
        return skip_past(r, "?>");
    return false;
}

/* Behind "<": name and attributes up to ">"; *is_empty for "<a/>". */
static int read_tag(reader *r, const char **name, bool *is_empty)
{
    const char *from = r->at;
    while (r->at < r->end && is_name(*r->at))
        r->at++;
    if (r->at == from)
        return refuse(r, "\"<\" without a name");
    *name = ty_arena_strndup(r->arena, from, (size_t)(r->at - from));
    char quote = 0;
    for (; r->at < r->end && (quote || *r->at != '>'); r->at++)
        if (quote ? *r->at == quote : *r->at == '"' || *r->at == '\'')
            quote = quote ? 0 : *r->at;
    if (r->at == r->end)
        return refuse(r, "a tag without an end");
    *is_empty = r->at[-1] == '/';
    r->at++;
    return 0;
}

static int read_element(reader *r, int depth, ty_xml **out);

static int read_content(reader *r, int depth, ty_xml *x, ty_buf *text)
{
    ty_xml **last = &x->first;
    while (!begins(r, "</")) {
        if (r->at >= r->end)
            return refuse(r, "it ends inside an element");
        if (skip_aside(r))
            continue;
        if (*r->at == '<' && !begins(r, "<![CDATA[")) {
            if (read_element(r, depth + 1, last) < 0)
                return -1;
            last = &(*last)->next;
        } else if (read_text(r, text) < 0)
            return -1;
    }
    r->at += 2;
    size_t bytes = strlen(x->name);
    if ((size_t)(r->end - r->at) <= bytes || memcmp(r->at, x->name, bytes) != 0 || is_name(r->at[bytes]))
        return refuse(r, "an element is closed that is not open");
    return skip_past(r, ">") ? 0 : refuse(r, "a tag without an end");
}

static int read_element(reader *r, int depth, ty_xml **out)
{
    bool is_empty = false;
    ty_buf text;
    ty_xml *x = TY_NEW(r->arena, ty_xml);
    if (depth > TY_XML_MAX_DEPTH || ++r->n_elements > TY_XML_MAX_ELEMENTS)
        return refuse(r, "too deep, or too many elements");
    r->at++;
    if (read_tag(r, &x->name, &is_empty) < 0)
        return -1;
    x->text = "";
    *out = x;
    if (is_empty)
        return 0;
    ty_buf_init(&text, (size_t)(r->end - r->start) + 1);
    int rc = read_content(r, depth, x, &text);
    if (rc == 0 && !x->first)
        x->text = ty_arena_strndup(r->arena, text.data, text.len);
    ty_buf_fini(&text);
    return rc;
}

int ty_xml_parse(ty_arena *arena, const char *name, const char *text, size_t len, ty_xml **out, ty_error *err)
{
    reader r = {.arena = arena, .name = name, .start = text, .at = text, .end = text + len, .err = err};
    *out = NULL;
    if (begins(&r, "\xef\xbb\xbf"))
        r.at += 3;
    while (r.at < r.end)
        if (isspace((unsigned char)*r.at))
            r.at++;
        else if (!skip_aside(&r))
            break;
    if (r.at == r.end || *r.at != '<')
        return refuse(&r, "no element");
    return read_element(&r, 1, out);
}

const ty_xml *ty_xml_find(const ty_xml *x, const char *name)
{
    for (x = x ? x->first : NULL; x; x = x->next)
        if (strcmp(x->name, name) == 0)
            return x;
    return NULL;
}

const ty_xml *ty_xml_again(const ty_xml *x)
{
    const char *name = x->name;
    for (x = x->next; x; x = x->next)
        if (strcmp(x->name, name) == 0)
            return x;
    return NULL;
}

const char *ty_xml_text(const ty_xml *x, const char *name)
{
    const ty_xml *found = ty_xml_find(x, name);
    return found ? found->text : "";
}
