/* text_scan.c - see text_scan.h. */
#include "compiler/ir/text_scan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ty_scan_fail(ty_scan *s, const char *fmt, ...)
{
    char message[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    ty_error_set(s->err, TY_E_GRAPH, "%s", message);
    return ty_error_at(s->err, "line %d, column %d", s->line, (int)(s->p - s->line_start) + 1);
}

void ty_scan_blanks(ty_scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\r'))
        s->p++;
}

bool ty_scan_peek(ty_scan *s, char c)
{
    ty_scan_blanks(s);
    return s->p < s->end && *s->p == c;
}

bool ty_scan_accept(ty_scan *s, char c)
{
    if (!ty_scan_peek(s, c))
        return false;
    s->p++;
    return true;
}

int ty_scan_expect(ty_scan *s, char c)
{
    if (ty_scan_accept(s, c))
        return 0;
    if (s->p >= s->end || *s->p == '\n')
        return ty_scan_fail(s, "expected '%c', found the end of the line", c);
    return ty_scan_fail(s, "expected '%c', found '%c'", c, *s->p);
}

static bool scan_is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Letters, digits and underscores; "" if there are none or too many. */
const char *ty_scan_word(ty_scan *s, char *out)
{
    size_t n = 0;
    ty_scan_blanks(s);
    while (s->p < s->end && scan_is_word(*s->p) && n < TY_SCAN_WORD_BYTES - 1)
        out[n++] = *s->p++;
    out[n] = 0;
    return out;
}

/* One of n words, as its number. */
int ty_scan_choice(ty_scan *s, const char *const *words, uint32_t n, uint32_t *out)
{
    char word[TY_SCAN_WORD_BYTES];
    ty_scan_word(s, word);
    for (*out = 0; *out < n; ++*out)
        if (strcmp(word, words[*out]) == 0)
            return 0;
    return ty_scan_fail(s, "expected one of %s to %s, found \"%s\"", words[0], words[n - 1], word);
}

/* Characters of a number into a bounded copy with a final NUL: the text itself has none. */
static int scan_number_text(ty_scan *s, char *out)
{
    size_t n = 0;
    ty_scan_blanks(s);
    while (s->p < s->end && (scan_is_word(*s->p) || strchr("+-.", *s->p)) && *s->p && n < TY_SCAN_WORD_BYTES - 1)
        out[n++] = *s->p++;
    out[n] = 0;
    return n > 0 ? 0 : ty_scan_fail(s, "expected a number");
}

int ty_scan_int(ty_scan *s, int64_t *out)
{
    char text[TY_SCAN_WORD_BYTES], *end;
    if (scan_number_text(s, text) < 0)
        return -1;
    errno = 0;
    *out = strtoll(text, &end, 10);
    if (*end || errno)
        return ty_scan_fail(s, "expected a 64-bit integer, found \"%s\"", text);
    return 0;
}

int ty_scan_uint(ty_scan *s, uint64_t limit, uint64_t *out)
{
    char text[TY_SCAN_WORD_BYTES], *end;
    if (scan_number_text(s, text) < 0)
        return -1;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (*end || errno || *text == '-' || *out > limit)
        return ty_scan_fail(s, "expected a number from 0 to %" PRIu64 ", found \"%s\"", limit, text);
    return 0;
}

int ty_scan_double(ty_scan *s, double *out)
{
    char text[TY_SCAN_WORD_BYTES], *end;
    if (scan_number_text(s, text) < 0)
        return -1;
    *out = strtod(text, &end);
    return *end ? ty_scan_fail(s, "expected a number, found \"%s\"", text) : 0;
}

int ty_scan_hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One character of a string after a backslash. */
static int scan_escape(ty_scan *s, char *out)
{
    if (s->p < s->end && (*s->p == '"' || *s->p == '\\')) {
        *out = *s->p++;
        return 0;
    }
    if (s->end - s->p < 3 || *s->p != 'x' || ty_scan_hex_digit(s->p[1]) < 0 || ty_scan_hex_digit(s->p[2]) < 0)
        return ty_scan_fail(s, "expected \\\", \\\\ or \\xNN");
    *out = (char)(ty_scan_hex_digit(s->p[1]) << 4 | ty_scan_hex_digit(s->p[2]));
    s->p += 3;
    return *out ? 0 : ty_scan_fail(s, "a NUL byte cannot stand in a string");
}

/* A quoted string, in the graph's memory. */
int ty_scan_string(ty_scan *s, const char **out)
{
    if (ty_scan_expect(s, '"') < 0)
        return -1;
    const char *close = s->p;
    while (close < s->end && *close != '"' && *close != '\n')
        close += *close == '\\' && s->end - close > 1 ? 2 : 1;
    if (close >= s->end || *close != '"')
        return ty_scan_fail(s, "the string does not end on its line");
    char *to = ty_arena_alloc(s->arena, (size_t)(close - s->p) + 1);
    *out = to;
    while (s->p < close) {
        char c = *s->p++;
        if (c == 0)
            return ty_scan_fail(s, "a NUL byte cannot stand in a string");
        if (c == '\\' && scan_escape(s, &c) < 0)
            return -1;
        *to++ = c;
    }
    return ty_scan_expect(s, '"');
}

/* Reads [a b c] into at most max entries. */
int ty_scan_ints(ty_scan *s, int64_t *out, uint32_t max, uint32_t *n)
{
    *n = 0;
    if (ty_scan_expect(s, '[') < 0)
        return -1;
    while (!ty_scan_peek(s, ']')) {
        if (*n == max)
            return ty_scan_fail(s, "a list has at most %u entries", max);
        if (ty_scan_int(s, &out[(*n)++]) < 0)
            return -1;
    }
    return ty_scan_expect(s, ']');
}
