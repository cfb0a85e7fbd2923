/* json_read.c - reading JSON in two passes.
 *
 * cJSON is a good parser of good JSON, but lenient (trailing bytes, numbers like 1.e, duplicate keys), without positions and
 * with doubles for all numbers. So a scanner of our own goes first: it checks every byte against the grammar and the
 * limits and notes one token a value. Then cJSON parses, and both are walked side by side: strings and structure from cJSON,
 * numbers and places from the tokens.
 */
#include "base/doc_builder.h"
#include "base/file.h"
#include "base/json.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One value, or the key in front of one. */
struct token {
    size_t at, len;
    uint32_t line, column, width;
};

struct scanner {
    const ty_doc_source *source;
    const char *at, *end;
    uint32_t line, column;   /* of `at` */
    struct token *tokens;    /* malloc'ed */
    size_t n_tokens, cap_tokens, max_tokens;
    int max_depth;
    bool in_map[TY_DOC_MAX_DEPTH];
    int depth;
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

static struct token *add_token(struct scanner *s)
{
    if (s->n_tokens == s->max_tokens) {
        ty_error_set(s->err, TY_E_SYNTAX, "more than the limit of %zu values", s->max_tokens);
        ty_doc_excerpt(s->source, s->line, s->column, 1, NULL, s->err);
        return NULL;
    }
    if (s->n_tokens == s->cap_tokens) {
        size_t cap = s->cap_tokens ? s->cap_tokens * 2 : 64;
        struct token *grown = realloc(s->tokens, cap * sizeof *grown);
        if (!grown) {
            ty_error_set(s->err, TY_E_LIMIT, "no memory for %zu values", cap);
            return NULL;
        }
        s->tokens = grown;
        s->cap_tokens = cap;
    }
    struct token *t = &s->tokens[s->n_tokens++];
    *t = (struct token){.at = (size_t)(s->at - s->source->text), .line = s->line, .column = s->column};
    return t;
}

static void end_token(struct scanner *s, struct token *t)
{
    t->len = (size_t)(s->at - s->source->text) - t->at;
    t->width = s->line == t->line ? s->column - t->column : 1;
}

static int scan_hex4(struct scanner *s, unsigned *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++, step(s)) {
        char c = here(s);
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0)
            return refuse(s, "four hexadecimal digits after \\u");
        *out = *out * 16 + (unsigned)digit;
    }
    return 0;
}

static int scan_unicode_escape(struct scanner *s)
{
    unsigned code, low;
    if (scan_hex4(s, &code) < 0)
        return -1;
    if (code == 0)
        return refuse(s, "no NUL character (\\u0000) in the string before");
    if (code >= 0xdc00 && code <= 0xdfff)
        return refuse(s, "no low surrogate without a high one before");
    if (code < 0xd800 || code > 0xdbff)
        return 0;
    if (here(s) != '\\' || s->end - s->at < 2 || s->at[1] != 'u')
        return refuse(s, "a low surrogate (\\uDC00 to \\uDFFF)");
    step(s);
    step(s);
    if (scan_hex4(s, &low) < 0)
        return -1;
    return low >= 0xdc00 && low <= 0xdfff ? 0 : refuse(s, "a low surrogate (\\uDC00 to \\uDFFF) before");
}

static int scan_string(struct scanner *s)
{
    struct token *t = add_token(s);
    if (!t)
        return -1;
    size_t index = s->n_tokens - 1;
    step(s);
    while (here(s) != '"') {
        if (s->at == s->end || (unsigned char)*s->at < 0x20)
            return refuse(s, "a closing quote (control characters in strings must be escaped)");
        if (*s->at != '\\') {
            step(s);
            continue;
        }
        step(s);
        if (here(s) == 0 || !strchr("\"\\/bfnrtu", here(s)))
            return refuse(s, "one of \" \\ / b f n r t u after a backslash");
        bool is_unicode = *s->at == 'u';
        step(s);
        if (is_unicode && scan_unicode_escape(s) < 0)
            return -1;
    }
    step(s);
    end_token(s, &s->tokens[index]);
    return 0;
}

static int scan_digits(struct scanner *s)
{
    if (here(s) < '0' || here(s) > '9')
        return refuse(s, "a digit");
    while (here(s) >= '0' && here(s) <= '9')
        step(s);
    return 0;
}

static int scan_number(struct scanner *s)
{
    struct token *t = add_token(s);
    if (!t)
        return -1;
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
    end_token(s, t);
    return 0;
}

static int scan_word(struct scanner *s, const char *word)
{
    struct token *t = add_token(s);
    if (!t)
        return -1;
    for (const char *w = word; *w; w++, step(s))
        if (here(s) != *w)
            return refuse(s, word);
    end_token(s, t);
    return 0;
}

static int scan_open(struct scanner *s)
{
    struct token *t = add_token(s);
    if (!t)
        return -1;
    if (s->depth == s->max_depth) {
        ty_error_set(s->err, TY_E_SYNTAX, "nested deeper than the limit of %d levels", s->max_depth);
        ty_doc_excerpt(s->source, s->line, s->column, 1, NULL, s->err);
        return -1;
    }
    s->in_map[s->depth++] = *s->at == '{';
    step(s);
    return 0;
}

static int scan_key(struct scanner *s, const char *expected)
{
    skip_space(s);
    if (here(s) != '"')
        return refuse(s, expected);
    if (scan_string(s) < 0)
        return -1;
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
        return scan_string(s);
    case 't':
        return scan_word(s, "true");
    case 'f':
        return scan_word(s, "false");
    case 'n':
        return scan_word(s, "null");
    case '[':
    case '{':
        return scan_open(s);
    default:
        return c == '-' || (c >= '0' && c <= '9') ? scan_number(s) : refuse(s, "a value");
    }
}

/* Behind a value: commas and closings, up to where the next value begins. Returns 1 there, 0 at the end, -1 on a fault. */
static int scan_separators(struct scanner *s, bool after_open)
{
    while (s->depth > 0) {
        bool in_map = s->in_map[s->depth - 1];
        skip_space(s);
        if (here(s) == (in_map ? '}' : ']')) {
            step(s);
            s->depth--;
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
        int depth = s->depth;
        if (scan_value(s) < 0)
            return -1;
        more = scan_separators(s, s->depth > depth);
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

/* The grammar is checked already: an integer is what has no point and no exponent. */
static int number_of_token(ty_doc *d, ty_error *err)
{
    errno = 0;
    if (!strpbrk(d->raw, ".eE")) {
        d->kind = TY_DOC_INT;
        d->integer = strtoll(d->raw, NULL, 10);
        if (errno == 0)
            return 0;
    }
    d->kind = TY_DOC_FLOAT;
    d->number = strtod(d->raw, NULL);
    return isfinite(d->number) ? 0 : ty_doc_error(d, err, TY_E_RANGE, NULL, "the number is beyond the range of a double");
}

static int build(ty_doc_builder *b, const struct token **next, const cJSON *item, ty_error *err);

static int build_container(ty_doc_builder *b, const struct token **next, const cJSON *item, ty_error *err)
{
    const struct token *t = (*next)++;
    if (ty_doc_builder_open(b, cJSON_IsArray(item) ? TY_DOC_LIST : TY_DOC_MAP, t->line, t->column, err) < 0)
        return -1;
    for (const cJSON *child = item->child; child; child = child->next) {
        if (cJSON_IsObject(item)) {
            const struct token *key = (*next)++;
            ty_doc_builder_key(b, ty_arena_strdup(b->arena, child->string), key->line, key->column);
        }
        if (build(b, next, child, err) < 0)
            return -1;
    }
    return ty_doc_builder_close(b, err);
}

/* Depth is bounded by the scanner. */
static int build(ty_doc_builder *b, const struct token **next, const cJSON *item, ty_error *err)
{
    if (cJSON_IsArray(item) || cJSON_IsObject(item))
        return build_container(b, next, item, err);
    const struct token *t = (*next)++;
    ty_doc d = {.line = t->line, .column = t->column, .width = t->width, .source = b->source};
    d.raw = ty_arena_strndup(b->arena, b->source->text + t->at, t->len);
    if (cJSON_IsString(item)) {
        d.kind = TY_DOC_STRING;
        d.quoted = true;
        d.raw = d.string = ty_arena_strdup(b->arena, item->valuestring);
    } else if (cJSON_IsBool(item)) {
        d.kind = TY_DOC_BOOL;
        d.boolean = cJSON_IsTrue(item);
    } else if (cJSON_IsNumber(item)) {
        if (number_of_token(&d, err) < 0)
            return -1;
    }
    return ty_doc_builder_scalar(b, d, err);
}

static int parse_tokens(ty_doc_builder *b, const struct scanner *s, ty_doc **out, ty_error *err)
{
    cJSON *root = cJSON_ParseWithLengthOpts(s->source->text, s->source->len + 1, NULL, true);
    if (!root)
        return ty_error_set(err, TY_E_LIBRARY, "%s: cJSON refuses what follows the grammar (or memory ran out)",
                            s->source->name);
    const struct token *next = s->tokens;
    int rc = build(b, &next, root, err);
    cJSON_Delete(root);
    if (rc == 0)
        *out = ty_doc_builder_root(b);
    return rc;
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
    struct scanner s = {.source = b.source, .at = start, .end = start + len, .line = 1, .column = 1, .err = err,
                        .max_depth = b.max_depth, .max_tokens = (size_t)b.max_nodes * 2};
    int rc = check_utf8(&s);
    if (rc == 0)
        rc = scan_document(&s);
    if (rc == 0)
        rc = parse_tokens(&b, &s, out, err);
    free(s.tokens);
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
