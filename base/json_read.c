/* json_read.c - a strict parser of JSON in one pass, without recursion.
 *
 * Ours, because settings need what cJSON does not give: the place of every value, exact 64-bit integers, numbers of any
 * length (cJSON cuts at 63 characters), refusal of duplicate keys, and no more than the tree itself in memory. cJSON
 * serves the tests as a second opinion. Values go to the tree builder as they are read; the builder's levels are the
 * only stack.
 */
#include "base/doc_builder.h"
#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scanner {
    ty_doc_builder *builder;
    const ty_doc_source *source;
    const char *at, *end;
    uint32_t line, column; /* of `at` */
    ty_buf decoded;        /* of the string at hand */
    ty_error *err;
};

static void step(struct scanner *s)
{
    if (*s->at == '\n') {
        s->line++;
        s->column = 1;
    } else if (((unsigned char)*s->at & 0xc0) != 0x80) {
        s->column++;
    }
    s->at++;
}

/* The character at hand; 0 at the end. A NUL in the text is no token either, so that the two need no telling apart. */
static char here(const struct scanner *s)
{
    return s->at < s->end ? *s->at : 0;
}

static int refuse(struct scanner *s, const char *expected)
{
    char found[16];
    size_t left = (size_t)(s->end - s->at);
    if (left == 0)
        snprintf(found, sizeof found, "end of file");
    else if (*s->at == '\n')
        snprintf(found, sizeof found, "end of line");
    else if ((unsigned char)*s->at < 0x20 || *s->at == 0x7f)
        snprintf(found, sizeof found, "byte 0x%02x", (unsigned char)*s->at);
    else {
        size_t n = 1;
        while (n < left && n < 4 && ((unsigned char)s->at[n] & 0xc0) == 0x80)
            n++;
        snprintf(found, sizeof found, "'%.*s'", (int)n, s->at);
    }
    ty_error_set(s->err, TY_E_SYNTAX, "expected %s, found %s", expected, found);
    ty_doc_excerpt(s->source, s->line, s->column, 1, NULL, s->err);
    return -1;
}

static void skip_space(struct scanner *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
        step(s);
}

/* A scalar that begins here; end_scalar completes it. */
static ty_doc begin_scalar(const struct scanner *s, ty_doc_kind kind)
{
    return (ty_doc){.kind = kind, .line = s->line, .column = s->column, .source = s->source};
}

static void end_scalar(const struct scanner *s, const char *start, ty_doc *d)
{
    d->width = s->line == d->line ? s->column - d->column : 1;
    if (!d->raw)
        d->raw = ty_arena_strndup(s->builder->arena, start, (size_t)(s->at - start));
}

static int scan_hex4(struct scanner *s, unsigned *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++, step(s)) {
        char c = here(s);
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return refuse(s, "four hexadecimal digits after \\u");
        *out = *out * 16 + (unsigned)digit;
    }
    return 0;
}

static void add_utf8(ty_buf *out, uint32_t code)
{
    if (code < 0x80) {
        ty_buf_addc(out, (char)code);
    } else if (code < 0x800) {
        ty_buf_addc(out, (char)(0xc0 | code >> 6));
        ty_buf_addc(out, (char)(0x80 | (code & 0x3f)));
    } else {
        if (code < 0x10000) {
            ty_buf_addc(out, (char)(0xe0 | code >> 12));
        } else {
            ty_buf_addc(out, (char)(0xf0 | code >> 18));
            ty_buf_addc(out, (char)(0x80 | (code >> 12 & 0x3f)));
        }
        ty_buf_addc(out, (char)(0x80 | (code >> 6 & 0x3f)));
        ty_buf_addc(out, (char)(0x80 | (code & 0x3f)));
    }
}

static int scan_unicode_escape(struct scanner *s)
{
    unsigned code, low;
    if (scan_hex4(s, &code) < 0)
        return -1;
    if (code == 0)
        return refuse(s, "no NUL character (\\u0000) before this");
    if (code >= 0xdc00 && code <= 0xdfff)
        return refuse(s, "no low surrogate without a high one before it");
    if (code >= 0xd800 && code <= 0xdbff) {
        if (s->end - s->at < 2 || s->at[0] != '\\' || s->at[1] != 'u')
            return refuse(s, "a low surrogate (\\uDC00 to \\uDFFF)");
        step(s);
        step(s);
        if (scan_hex4(s, &low) < 0)
            return -1;
        if (low < 0xdc00 || low > 0xdfff)
            return refuse(s, "a low surrogate (\\uDC00 to \\uDFFF) before this");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    add_utf8(&s->decoded, code);
    return 0;
}

static int scan_escape(struct scanner *s)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    step(s);
    char c = here(s);
    if (c == 'u') {
        step(s);
        return scan_unicode_escape(s);
    }
    const char *found = c ? strchr(from, c) : NULL;
    if (!found)
        return refuse(s, "one of \" \\ / b f n r t u after a backslash");
    step(s);
    return ty_buf_addc(&s->decoded, to[found - from]);
}

/* Decodes the string at hand into the arena. */
static const char *scan_string(struct scanner *s)
{
    ty_buf_clear(&s->decoded);
    step(s);
    while (here(s) != '"') {
        const char *plain = s->at;
        while (s->at < s->end && (unsigned char)*s->at >= 0x20 && *s->at != '"' && *s->at != '\\')
            step(s);
        ty_buf_add(&s->decoded, plain, (size_t)(s->at - plain));
        if (here(s) == '"')
            break;
        if (here(s) != '\\') {
            refuse(s, "a closing quote (control characters in strings must be escaped)");
            return NULL;
        }
        if (scan_escape(s) < 0)
            return NULL;
    }
    step(s);
    if (s->decoded.failed) {
        ty_error_set(s->err, TY_E_LIMIT, "no memory for a string");
        return NULL;
    }
    return ty_arena_strndup(s->builder->arena, s->decoded.data, s->decoded.len);
}

static int scan_string_value(struct scanner *s)
{
    ty_doc d = begin_scalar(s, TY_DOC_STRING);
    d.quoted = true;
    d.raw = d.string = scan_string(s);
    if (!d.raw)
        return -1;
    end_scalar(s, NULL, &d);
    return ty_doc_builder_scalar(s->builder, d, s->err);
}

static int scan_digits(struct scanner *s)
{
    if (here(s) < '0' || here(s) > '9')
        return refuse(s, "a digit");
    while (here(s) >= '0' && here(s) <= '9')
        step(s);
    return 0;
}

static int scan_number_grammar(struct scanner *s)
{
    if (here(s) == '-')
        step(s);
    if (here(s) == '0')
        step(s);
    else if (scan_digits(s) < 0)
        return -1;
    if (here(s) == '.') {
        step(s);
        if (scan_digits(s) < 0)
            return -1;
    }
    if (here(s) == 'e' || here(s) == 'E') {
        step(s);
        if (here(s) == '+' || here(s) == '-')
            step(s);
        if (scan_digits(s) < 0)
            return -1;
    }
    return 0;
}

/* An integer is what has neither point nor exponent and fits. */
static int scan_number(struct scanner *s)
{
    ty_doc d = begin_scalar(s, TY_DOC_INT);
    const char *start = s->at;
    if (scan_number_grammar(s) < 0)
        return -1;
    end_scalar(s, start, &d);
    errno = 0;
    bool is_integer = !strpbrk(d.raw, ".eE");
    if (is_integer)
        d.integer = strtoll(d.raw, NULL, 10);
    if (!is_integer || errno != 0) {
        d.kind = TY_DOC_FLOAT;
        d.number = strtod(d.raw, NULL);
        if (!isfinite(d.number))
            return ty_doc_error(&d, s->err, TY_E_RANGE, NULL, "the number is beyond the range of a double");
    }
    return ty_doc_builder_scalar(s->builder, d, s->err);
}

static int scan_word(struct scanner *s, const char *word, ty_doc_kind kind, bool value)
{
    ty_doc d = begin_scalar(s, kind);
    d.boolean = value;
    const char *start = s->at;
    for (const char *w = word; *w; w++, step(s))
        if (here(s) != *w)
            return refuse(s, word);
    end_scalar(s, start, &d);
    return ty_doc_builder_scalar(s->builder, d, s->err);
}

static int scan_open(struct scanner *s)
{
    ty_doc_kind kind = *s->at == '{' ? TY_DOC_MAP : TY_DOC_LIST;
    if (ty_doc_builder_open(s->builder, kind, s->line, s->column, s->err) < 0)
        return -1;
    step(s);
    return 0;
}

static int scan_key(struct scanner *s, const char *expected)
{
    skip_space(s);
    if (here(s) != '"')
        return refuse(s, expected);
    uint32_t line = s->line, column = s->column;
    const char *key = scan_string(s);
    if (!key)
        return -1;
    ty_doc_builder_key(s->builder, key, line, column);
    skip_space(s);
    if (here(s) != ':')
        return refuse(s, "':' after the key");
    step(s);
    return 0;
}
/* A scalar, or the opening of a container. */
static int scan_value(struct scanner *s)
{
    skip_space(s);
    char c = here(s);
    switch (c) {
    case '"':
        return scan_string_value(s);
    case 't':
        return scan_word(s, "true", TY_DOC_BOOL, true);
    case 'f':
        return scan_word(s, "false", TY_DOC_BOOL, false);
    case 'n':
        return scan_word(s, "null", TY_DOC_NULL, false);
    case '[':
    case '{':
        return scan_open(s);
    default:
        return c == '-' || (c >= '0' && c <= '9') ? scan_number(s) : refuse(s, "a value");
    }
}

/* Behind a value: commas and closings, up to where the next value begins. Returns 1 there, 0 at the end, -1 on a fault.
 */
static int scan_separators(struct scanner *s, bool after_open)
{
    ty_doc_builder *b = s->builder;
    while (b->depth > 0) {
        bool in_map = b->levels[b->depth - 1].container.kind == TY_DOC_MAP;
        skip_space(s);
        if (here(s) == (in_map ? '}' : ']')) {
            step(s);
            if (ty_doc_builder_close(b, s->err) < 0)
                return -1;
            after_open = false;
            continue;
        }
        if (!after_open) {
            if (here(s) != ',')
                return refuse(s, in_map ? "',' or '}'" : "',' or ']'");
            step(s);
        }
        if (in_map && scan_key(s, after_open ? "a key in quotes or '}'" : "a key in quotes") < 0)
            return -1;
        return 1;
    }
    return 0;
}

static int scan_document(struct scanner *s)
{
    int more = 1;
    while (more == 1) {
        int depth = s->builder->depth;
        if (scan_value(s) < 0)
            return -1;
        more = scan_separators(s, s->builder->depth > depth);
    }
    if (more < 0)
        return -1;
    skip_space(s);
    return s->at == s->end ? 0 : refuse(s, "end of file after the value");
}

static int check_utf8(struct scanner *s)
{
    const char *fault = ty_utf8_fault(s->source->text, s->source->len);
    if (!fault)
        return 0;
    while (s->at < fault)
        step(s);
    ty_error_set(s->err, TY_E_SYNTAX, "byte 0x%02x is no UTF-8", (unsigned char)*fault);
    ty_doc_excerpt(s->source, s->line, s->column, 1, NULL, s->err);
    return -1;
}

int ty_json_parse(ty_arena *arena, const char *name, const char *text, size_t len, const ty_doc_limits *limits,
                  ty_doc **out, ty_error *err)
{
    ty_doc_limits mine = limits ? *limits : (ty_doc_limits){0};
    mine.max_bytes = mine.max_bytes ? mine.max_bytes : TY_JSON_MAX_BYTES;
    mine.max_depth = mine.max_depth ? mine.max_depth : TY_JSON_MAX_DEPTH;
    ty_doc_builder b;
    if (ty_doc_builder_init(&b, arena, name, text, len, &mine, err) < 0)
        return -1;
    const char *start = b.source->text;
    struct scanner s = {
        .builder = &b, .source = b.source, .at = start, .end = start + len, .line = 1, .column = 1, .err = err};
    ty_buf_init(&s.decoded, mine.max_bytes);
    int rc = check_utf8(&s);
    if (rc == 0)
        rc = scan_document(&s);
    if (rc == 0)
        *out = ty_doc_builder_root(&b);
    ty_buf_fini(&s.decoded);
    ty_doc_builder_fini(&b);
    return rc;
}

int ty_json_read(ty_arena *arena, const char *path, const ty_doc_limits *limits, ty_doc **out, ty_error *err)
{
    ty_buf text;
    ty_buf_init(&text, limits && limits->max_bytes ? limits->max_bytes : TY_JSON_MAX_BYTES);
    int rc = ty_file_read(path, &text, err);
    if (rc == 0)
        rc = ty_json_parse(arena, path, text.data, text.len, limits, out, err);
    ty_buf_fini(&text);
    return rc;
}
