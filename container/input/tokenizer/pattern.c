/* pattern.c - see pattern.h. */
#define _GNU_SOURCE /* memmem */
#include "container/input/tokenizer/pattern.h"

#include "base/buf.h"
#include "container/input/tokenizer/pattern_table.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATTERN_MAX_BYTES = 65536,
    PATTERN_MATCH_LIMIT = 2000000, /* steps of one match */
    PATTERN_HEAP_KIB = 65536,
    PATTERN_STACK_BYTES = 1 << 20,
};

struct tok_pattern {
    pcre2_code *code; /* NULL: a string */
    char *string;
    size_t n;
    bool is_quick; /* has just-in-time code */
};

struct tok_pattern_work {
    pcre2_match_context *context;
    pcre2_match_data *data;
    pcre2_jit_stack *stack;
};

/* ---- from Oniguruma's spelling to PCRE2's ---- */

typedef struct pattern_reader {
    const char *p;
    bool in_class, class_begins;
    ty_buf out;
} pattern_reader;

/* What an escape stands for in Oniguruma, as a class for PCRE2; pattern_table.c has what is newer. */
static const struct {
    char letter;
    const char *ranges;
} pattern_classes[] = {
    {'s',
     "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"},
    {'w', "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}"},
    {'d', "\\p{Nd}"},
    {'h', "0-9a-fA-F"},
};

static const char *pattern_newer(char category)
{
    for (const tok_pattern_category *c = tok_pattern_categories; c->category != 0; c++)
        if (c->category == category)
            return c->ranges;
    return NULL;
}

static int pattern_refuse(const char *what, ty_error *err)
{
    ty_error_set(err, TY_E_UNSUPPORTED, "regular expression: %s cannot be used", what);
    return ty_error_help(err, "write it in another way: classes that are not nested, groups in place of \\g");
}

/* \p{L} and \P{L} with what is newer than PCRE2's tables; false: another escape. */
static bool pattern_category(pattern_reader *r)
{
    bool is_category = strchr("pP", r->p[1]) != NULL && r->p[2] == '{' && r->p[3] != 0 && r->p[4] == '}';
    if (!is_category || (r->in_class && r->p[1] == 'P'))
        return false;
    const char *newer = pattern_newer(r->p[3]);
    if (newer == NULL)
        return false;
    ty_buf_addf(&r->out, "%s\\p{%c}%s%s",
                r->in_class      ? ""
                : r->p[1] == 'P' ? "[^"
                                 : "[",
                r->p[3], newer, r->in_class ? "" : "]");
    r->p += 5;
    return true;
}

static int pattern_escape(pattern_reader *r, ty_error *err)
{
    char c = r->p[1];
    r->class_begins = false;
    if (c == 0)
        return ty_error_set(err, TY_E_SYNTAX, "regular expression: it ends in a backslash");
    if (pattern_category(r))
        return 0;
    for (size_t i = 0; i < sizeof pattern_classes / sizeof pattern_classes[0]; i++) {
        bool same = c == pattern_classes[i].letter, other = c == pattern_classes[i].letter - 32;
        if (other && r->in_class)
            return pattern_refuse("\\S, \\W, \\D or \\H in a class", err);
        if (!same && !other)
            continue;
        const char *newer = pattern_newer(pattern_classes[i].letter);
        ty_buf_addf(&r->out, "%s%s%s%s",
                    r->in_class ? ""
                    : other     ? "[^"
                                : "[",
                    pattern_classes[i].ranges, newer != NULL ? newer : "", r->in_class ? "" : "]");
        r->p += 2;
        return 0;
    }
    if (strchr("gkKRXNOoyYMC", c) != NULL || (c >= '1' && c <= '9'))
        return pattern_refuse("a reference, \\K, \\R, \\X or \\N", err);
    if (strchr("bB", c) != NULL)
        return pattern_refuse("a border of words (\\b)", err);
    if (c == 'u') { /* \u0041 */
        if (strspn(r->p + 2, "0123456789abcdefABCDEF") < 4)
            return ty_error_set(err, TY_E_SYNTAX, "regular expression: \\u needs four digits");
        ty_buf_addf(&r->out, "\\x{%.4s}", r->p + 2);
        r->p += 6;
        return 0;
    }
    size_t n = 2;
    if ((c == 'p' || c == 'P' || c == 'x') && r->p[2] == '{')
        n = strcspn(r->p, "}") + 1;
    if (strnlen(r->p, n) < n)
        return ty_error_set(err, TY_E_SYNTAX, "regular expression: a { without }");
    ty_buf_add(&r->out, r->p, n);
    r->p += n;
    return 0;
}

static int pattern_in_class(pattern_reader *r, ty_error *err)
{
    char c = *r->p;
    if (c == '[' && r->p[1] != ':')
        return pattern_refuse("a class within a class", err);
    if (c == '&' && r->p[1] == '&')
        return pattern_refuse("an intersection of classes (&&)", err);
    if (c == '[') { /* [:alpha:] */
        const char *end = strstr(r->p, ":]");
        if (end == NULL)
            return ty_error_set(err, TY_E_SYNTAX, "regular expression: [: without :]");
        ty_buf_add(&r->out, r->p, (size_t)(end + 2 - r->p));
        r->p = end + 2;
        r->class_begins = false;
        return 0;
    }
    if (c == ']' && !r->class_begins)
        r->in_class = false;
    r->class_begins = r->class_begins && c == '^';
    ty_buf_addc(&r->out, c);
    r->p++;
    return 0;
}

static int pattern_outside(pattern_reader *r, ty_error *err)
{
    char c = *r->p;
    if (c == '[')
        r->in_class = r->class_begins = true;
    if (c == '}' && r->p[1] == '+')
        return pattern_refuse("a possessive interval ({2,3}+)", err);
    if (c == '(' && (r->p[1] == '*' || (r->p[1] == '?' && r->p[2] != 0 && strchr("R&P0123456789+-C|(", r->p[2]) &&
                                        !(r->p[2] == '-' && r->p[3] != 0 && strchr("imsx", r->p[3])))))
        return pattern_refuse("a verb, a subroutine or a condition ((*..., (?R...)", err);
    /* Oniguruma's (?m) lets the dot take line ends, as (?s) does for PCRE2. */
    if (c == '(' && r->p[1] == '?' && r->p[2] == 'm') {
        ty_buf_adds(&r->out, "(?s");
        r->p += 3;
        return 0;
    }
    ty_buf_addc(&r->out, c);
    r->p++;
    return 0;
}

static int pattern_translate(const char *regex, pattern_reader *r, ty_error *err)
{
    r->p = regex;
    while (*r->p != 0) {
        int rc = *r->p == '\\' ? pattern_escape(r, err)
                 : r->in_class ? pattern_in_class(r, err)
                               : pattern_outside(r, err);
        if (rc < 0)
            return -1;
    }
    return r->out.failed ? ty_error_set(err, TY_E_LIMIT, "regular expression: it is too long") : 0;
}

/* ---- compiling ---- */

static tok_pattern *pattern_make(ty_error *err)
{
    tok_pattern *p = calloc(1, sizeof *p);
    if (p == NULL)
        ty_error_set(err, TY_E_LIMIT, "no memory for a pattern");
    return p;
}

/* The expression as PCRE2 spells it. */
static int pattern_compile(tok_pattern *p, const char *text, size_t n, ty_error *err)
{
    int number;
    PCRE2_SIZE at;
    p->code = pcre2_compile((PCRE2_SPTR)text, n,
                            PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_UTF_CHECK | PCRE2_NEVER_BACKSLASH_C,
                            &number, &at, NULL);
    if (p->code == NULL) {
        char why[160];
        pcre2_get_error_message(number, (PCRE2_UCHAR *)why, sizeof why);
        return ty_error_set(err, TY_E_SYNTAX, "regular expression: %s at character %zu of \"%.200s\"", why, (size_t)at,
                            text);
    }
    p->is_quick = pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE) == 0;
    return 0;
}

int tok_pattern_regex(const char *regex, tok_pattern **out, ty_error *err)
{
    pattern_reader r = {.p = regex};
    ty_buf_init(&r.out, PATTERN_MAX_BYTES);
    *out = pattern_make(err);
    int rc = *out == NULL ? -1 : pattern_translate(regex, &r, err);
    if (rc == 0)
        rc = pattern_compile(*out, r.out.data, r.out.len, err);
    ty_buf_fini(&r.out);
    if (rc < 0) {
        tok_pattern_free(*out);
        *out = NULL;
    }
    return rc;
}

int tok_pattern_graphemes(tok_pattern **out, ty_error *err)
{
    *out = pattern_make(err);
    return *out != NULL ? pattern_compile(*out, "\\X", 2, err) : -1;
}

int tok_pattern_string(const char *text, tok_pattern **out, ty_error *err)
{
    *out = pattern_make(err);
    if (*out == NULL)
        return -1;
    (*out)->n = strlen(text);
    (*out)->string = strdup(text);
    if ((*out)->string != NULL)
        return 0;
    tok_pattern_free(*out);
    *out = NULL;
    return ty_error_set(err, TY_E_LIMIT, "no memory for a pattern");
}

void tok_pattern_free(tok_pattern *p)
{
    if (p == NULL)
        return;
    pcre2_code_free(p->code);
    free(p->string);
    free(p);
}

/* ---- matching ---- */

tok_pattern_work *tok_pattern_work_make(void)
{
    tok_pattern_work *w = calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    w->context = pcre2_match_context_create(NULL);
    w->data = pcre2_match_data_create(1, NULL);
    w->stack = pcre2_jit_stack_create(32768, PATTERN_STACK_BYTES, NULL);
    if (w->context == NULL || w->data == NULL) {
        tok_pattern_work_free(w);
        return NULL;
    }
    pcre2_set_match_limit(w->context, PATTERN_MATCH_LIMIT);
    pcre2_set_heap_limit(w->context, PATTERN_HEAP_KIB);
    if (w->stack != NULL)
        pcre2_jit_stack_assign(w->context, NULL, w->stack);
    return w;
}

void tok_pattern_work_free(tok_pattern_work *w)
{
    if (w == NULL)
        return;
    pcre2_match_data_free(w->data);
    pcre2_match_context_free(w->context);
    pcre2_jit_stack_free(w->stack);
    free(w);
}

static int pattern_find(const tok_pattern *p, tok_pattern_work *w, const char *text, size_t n, size_t from,
                        size_t *start, size_t *end, ty_error *err)
{
    if (p->code == NULL) {
        const char *at = p->n > 0 && from < n ? memmem(text + from, n - from, p->string, p->n) : NULL;
        *start = at != NULL ? (size_t)(at - text) : 0;
        *end = *start + p->n;
        return at != NULL;
    }
    int rc = p->is_quick ? pcre2_jit_match(p->code, (PCRE2_SPTR)text, n, from, 0, w->data, w->context)
                         : pcre2_match(p->code, (PCRE2_SPTR)text, n, from, PCRE2_NO_UTF_CHECK, w->data, w->context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(p->code, (PCRE2_SPTR)text, n, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, w->data, w->context);
    if (rc == PCRE2_ERROR_NOMATCH)
        return 0;
    if (rc < 0) {
        char why[160];
        pcre2_get_error_message(rc, (PCRE2_UCHAR *)why, sizeof why);
        return ty_error_set(err, TY_E_LIMIT, "a regular expression gives up at byte %zu of the text: %s", from, why);
    }
    const PCRE2_SIZE *found = pcre2_get_ovector_pointer(w->data);
    *start = found[0];
    *end = found[1];
    return 1;
}

int tok_pattern_next(const tok_pattern *p, tok_pattern_work *w, const char *text, size_t n, tok_pattern_at *at,
                     size_t *start, size_t *end, ty_error *err)
{
    while (at->from <= n) {
        int rc = pattern_find(p, w, text, n, at->from, start, end, err);
        if (rc <= 0)
            return rc;
        if (*end < *start) /* \K within a look-ahead */
            return ty_error_set(err, TY_E_UNSUPPORTED, "a regular expression ends before it begins");
        if (*start == *end && (ptrdiff_t)*end == at->last) {
            do
                at->from++;
            while (at->from < n && (text[at->from] & 0xc0) == 0x80);
            continue;
        }
        at->from = *end;
        at->last = (ptrdiff_t)*end;
        return 1;
    }
    return 0;
}
