/* csv.c - the field scanner. */
#include "container/input/csv.h"

#include <endian.h>
#include <string.h>

/* Where bytes of the word are zero the top bit is set; above the first of them it may be set too. */
static inline uint64_t csv_zeros(uint64_t word)
{
    return (word - UINT64_C(0x0101010101010101)) & ~word & UINT64_C(0x8080808080808080);
}

/* The first a or b in [p, end), or end. Eight bytes at a time. */
static inline const char *csv_find(const char *p, const char *end, char a, char b)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t all_a = ones * (unsigned char)a, all_b = ones * (unsigned char)b, word;
    for (; end - p >= 8; p += 8) {
        memcpy(&word, p, sizeof word);
        word = le64toh(word);
        uint64_t found = csv_zeros(word ^ all_a) | csv_zeros(word ^ all_b);
        if (found)
            return p + (__builtin_ctzll(found) >> 3);
    }
    while (p < end && *p != a && *p != b)
        p++;
    return p;
}

int ty_csv_init(ty_csv *c, const char *name, const char *text, size_t n, char delimiter, ty_error *err)
{
    const unsigned char *b = (const unsigned char *)text;
    if (n >= 2 && ((b[0] == 0xff && b[1] == 0xfe) || (b[0] == 0xfe && b[1] == 0xff))) {
        ty_error_set(err, TY_E_DATA, "the text is UTF-16, expected UTF-8");
        ty_error_at(err, "%s:1:1", name);
        return ty_error_help(err, "convert it: iconv -f UTF-16 -t UTF-8");
    }
    size_t skip = n >= 3 && b[0] == 0xef && b[1] == 0xbb && b[2] == 0xbf ? 3 : 0;
    *c = (ty_csv){
        .at = text + skip, .end = text + n, .line_start = text + skip, .line = 1, .name = name, .delimiter = delimiter};
    return 0;
}

/* Stands at a line feed: goes to the next line. */
static inline void csv_step_line(ty_csv *c)
{
    c->at++;
    c->line++;
    c->line_start = c->at;
}

bool ty_csv_more(ty_csv *c)
{
    while (c->at < c->end) {
        if (*c->at == '\n')
            csv_step_line(c);
        else if (*c->at == '\r' && c->at + 1 < c->end && c->at[1] == '\n')
            c->at++;
        else if (*c->at == '\r' && c->at + 1 == c->end)
            c->at++;
        else
            return true;
    }
    return false;
}

bool ty_csv_skip_to(ty_csv *c, const char *p, bool *last)
{
    if (p < c->end && *p == c->delimiter) {
        c->at = p + 1;
        *last = false;
        return true;
    }
    if (p < c->end && *p == '\r' && (p + 1 == c->end || p[1] == '\n'))
        p++;
    if (p < c->end && *p != '\n')
        return false;
    c->at = p;
    *last = true;
    if (p < c->end)
        csv_step_line(c);
    return true;
}

int ty_csv_at(const ty_csv *c, int64_t line, int64_t column, ty_error *err)
{
    return ty_error_at(err, "%s:%lld:%lld", c->name, (long long)line, (long long)column);
}

static int csv_next_quoted(ty_csv *c, ty_csv_field *f, ty_error *err)
{
    f->text = ++c->at;
    f->quoted = true;
    for (;; c->at++) {
        c->at = csv_find(c->at, c->end, '"', '\n');
        if (c->at == c->end) {
            ty_error_set(err, TY_E_DATA, "a quoted field has no closing quote before the end of the file");
            return ty_csv_at(c, f->line, f->column, err);
        }
        if (*c->at == '\n') {
            c->line++;
            c->line_start = c->at + 1;
        } else if (*c->at == '"') {
            if (c->at + 1 < c->end && c->at[1] == '"')
                c->at++;
            else
                break;
        }
    }
    f->n = (size_t)(c->at++ - f->text);
    if (ty_csv_skip_to(c, c->at, &f->last))
        return 0;
    ty_error_set(err, TY_E_DATA, "text follows a closing quote: expected \"%c\" or a line end, found \"%c\"",
                 c->delimiter, *c->at);
    ty_csv_at(c, c->line, c->at - c->line_start + 1, err);
    return ty_error_help(err, "a quote inside a quoted field is written twice: \"\"");
}

int ty_csv_next(ty_csv *c, ty_csv_field *f, ty_error *err)
{
    *f = (ty_csv_field){.text = c->at, .line = c->line, .column = c->at - c->line_start + 1};
    if (c->at < c->end && *c->at == '"')
        return csv_next_quoted(c, f, err);
    const char *end = c->end, *p = csv_find(c->at, end, c->delimiter, '\n');
    /* A carriage return belongs to the line end when the end follows it directly. */
    if ((p == end || *p == '\n') && p > f->text && p[-1] == '\r')
        p--;
    f->n = (size_t)(p - f->text);
    ty_csv_skip_to(c, p, &f->last);
    return 0;
}

size_t ty_csv_unquote(const ty_csv_field *field, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < field->n; i++) {
        out[n++] = field->text[i];
        if (field->quoted && field->text[i] == '"')
            i++;
    }
    out[n] = 0;
    return n;
}

char ty_csv_guess_delimiter(const char *text, size_t n)
{
    static const char candidates[] = {',', '\t', ';'};
    size_t count[sizeof candidates] = {0};
    bool quoted = false, blank = true;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"')
            quoted = !quoted;
        if (text[i] == '\n' && !quoted && !blank)
            break;
        blank = blank && (text[i] == '\n' || text[i] == '\r');
        for (size_t k = 0; k < sizeof candidates; k++)
            count[k] += !quoted && text[i] == candidates[k];
    }
    size_t best = 0;
    for (size_t k = 1; k < sizeof candidates; k++)
        if (count[k] > count[best])
            best = k;
    return candidates[best];
}
