/* yaml_write.c - trees as YAML that everybody reads alike. */
#include "base/yaml.h"

#include "base/yaml_scalar.h"

#include <string.h>

/* ---- strings ---- */

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
static const char digits[] = "0123456789";

/* 2026-03-14 is a date to readers of YAML 1.1, 10:30 a number. */
static bool is_like_date(const char *s)
{
    return strchr(digits, *s) && s[strspn(s, "0123456789-:.TtZz +")] == 0;
}

/* A string without quotes: of plain characters, also within [] and {}, and nothing else to any reader. */
static bool is_plain(const char *s)
{
    static const ty_doc_source nowhere = {.name = "", .text = "", .is_override = true};
    ty_doc d = {.raw = s, .source = &nowhere};
    ty_error doubt = {0};
    if (!*s || !(strchr(letters, *s) || strchr(digits, *s) || *s == '_' || *s == '/') || is_like_date(s))
        return false;
    for (const char *p = s; *p; p++) {
        bool separates = *p == ':' && (p[1] == ' ' || p[1] == 0);
        bool trails = *p == ' ' && p[1] == 0;
        if (separates || trails || !(strchr(letters, *p) || strchr(digits, *p) || strchr("_./:=+@%- ", *p)))
            return false;
    }
    ty_yaml_resolve(&d);
    return d.kind == TY_DOC_STRING && !ty_yaml_scalar_doubt(&d, &doubt);
}

/* Code point of valid UTF-8, and its bytes. */
static unsigned decode(const char *p, int *n)
{
    const unsigned char *s = (const unsigned char *)p;
    *n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    unsigned code = *n == 1 ? s[0] : s[0] & (0x7fu >> *n);
    for (int i = 1; i < *n; i++) {
        if ((s[i] & 0xc0) != 0x80) { /* no UTF-8: a byte for itself */
            *n = 1;
            return s[0];
        }
        code = code << 6 | (s[i] & 0x3fu);
    }
    return code;
}

/* What may stand in quotes as it is: no controls, no line ends of Unicode, no byte order mark. */
static bool is_shown(unsigned code)
{
    return (code >= 0x20 && code < 0x7f) || (code >= 0xa0 && code < 0xd800 && code != 0x2028 && code != 0x2029) ||
           (code >= 0xe000 && code < 0xfffe && code != 0xfeff) || (code >= 0x10000 && code <= 0x10ffff);
}

static void add_quoted(ty_buf *out, const char *text)
{
    int n;
    ty_buf_addc(out, '"');
    for (const char *p = text; *p && !out->failed; p += n) {
        unsigned code = decode(p, &n);
        if (code == '"' || code == '\\')
            ty_buf_addf(out, "\\%c", (char)code);
        else if (code == '\n' || code == '\t' || code == '\r')
            ty_buf_addf(out, "\\%c", code == '\n' ? 'n' : code == '\t' ? 't' : 'r');
        else if (is_shown(code) && (n > 1 || code < 0x80))
            ty_buf_add(out, p, (size_t)n);
        else
            ty_buf_addf(out, code <= 0xff ? "\\x%02x" : code <= 0xffff ? "\\u%04x" : "\\U%08x", code);
    }
    ty_buf_addc(out, '"');
}

void ty_yaml_add_string(ty_buf *out, const char *text)
{
    if (is_plain(text))
        ty_buf_adds(out, text);
    else
        add_quoted(out, text);
}

/* ---- values ---- */

/* 1e-05 is a string to readers of YAML 1.1, 1.0e-05 a number to all. */
static void add_number(ty_buf *out, const char *raw)
{
    size_t n = strcspn(raw, "eE");
    bool wants_dot = raw[n] && !strchr(raw, '.') && strncmp(raw, "0x", 2) != 0;
    ty_buf_add(out, raw, wants_dot ? n : strlen(raw));
    if (wants_dot)
        ty_buf_addf(out, ".0%s", raw + n);
}

static void add_scalar(ty_buf *out, const ty_doc *d)
{
    if (d->kind == TY_DOC_STRING)
        ty_yaml_add_string(out, d->string);
    else if (d->kind == TY_DOC_INT || d->kind == TY_DOC_FLOAT)
        add_number(out, d->raw);
    else
        ty_buf_adds(out, d->kind == TY_DOC_NULL ? "null" : d->boolean ? "true" : "false");
}

void ty_yaml_add_value(ty_buf *out, const ty_doc *d)
{
    bool is_map = d->kind == TY_DOC_MAP;
    if (!is_map && d->kind != TY_DOC_LIST) {
        add_scalar(out, d);
        return;
    }
    ty_buf_addc(out, is_map ? '{' : '[');
    for (uint32_t i = 0; i < d->n_items && !out->failed; i++) {
        ty_buf_adds(out, i ? ", " : "");
        if (is_map) {
            ty_yaml_add_string(out, d->items[i].key);
            ty_buf_adds(out, ": ");
        }
        ty_yaml_add_value(out, &d->items[i]);
    }
    ty_buf_addc(out, is_map ? '}' : ']');
}

/* Whether a value has room on its line; scalars always have. */
static bool fits(const ty_doc *d, int columns)
{
    ty_buf line;
    if ((d->kind != TY_DOC_MAP && d->kind != TY_DOC_LIST) || d->n_items == 0)
        return true;
    if (columns < 2)
        return false;
    ty_buf_init(&line, (size_t)columns);
    ty_yaml_add_value(&line, d);
    bool whole = !line.failed;
    ty_buf_fini(&line);
    return whole;
}

static void add_items(ty_buf *out, const ty_doc *d, int indent)
{
    for (uint32_t i = 0; i < d->n_items && !out->failed; i++) {
        const ty_doc *item = &d->items[i];
        if (d->kind == TY_DOC_MAP) {
            ty_yaml_add_entry(out, item, indent);
            continue;
        }
        ty_buf_addf(out, "%*s-", indent, "");
        if (fits(item, TY_YAML_COLUMNS - indent - 2)) {
            ty_buf_addc(out, ' ');
            ty_yaml_add_value(out, item);
            ty_buf_addc(out, '\n');
        } else {
            ty_buf_addc(out, '\n');
            add_items(out, item, indent + 2);
        }
    }
}

void ty_yaml_add_entry(ty_buf *out, const ty_doc *d, int indent)
{
    size_t before = out->len;
    ty_buf_addf(out, "%*s", indent, "");
    ty_yaml_add_string(out, d->key);
    ty_buf_addc(out, ':');
    if (fits(d, TY_YAML_COLUMNS - (int)(out->len - before) - 1)) {
        ty_buf_addc(out, ' ');
        ty_yaml_add_value(out, d);
        ty_buf_addc(out, '\n');
    } else {
        ty_buf_addc(out, '\n');
        add_items(out, d, indent + 2);
    }
}
