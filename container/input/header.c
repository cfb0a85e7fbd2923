/* header.c - see header.h. */
#include "container/input/header.h"

#include "container/input/inflate.h"
#include "container/input/number.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

/* A marker's number. */
static bool missing_number(const char *text, double *out)
{
    const char *end = text + strlen(text);
    return text < end && ty_number_scan(text, end, out) == end;
}

bool ty_csv_is_missing_number(const ty_csv_missing *m, double v)
{
    double marker;
    for (int i = 0; m && m->text && i < m->n; i++)
        if (missing_number(m->text[i], &marker) && (marker == v || (isnan(marker) && isnan(v))))
            return true;
    return false;
}

bool ty_csv_has_missing_numbers(const ty_csv_missing *m)
{
    double marker;
    for (int i = 0; m && m->text && i < m->n; i++)
        if (missing_number(m->text[i], &marker))
            return true;
    return false;
}

ty_csv_missing ty_csv_missing_copy(const ty_csv_missing *m, ty_arena *a)
{
    const char **text = TY_NEW_ARRAY(a, const char *, m->n + 1);
    for (int i = 0; m->text && i < m->n; i++)
        text[i] = ty_arena_strdup(a, m->text[i]);
    return (ty_csv_missing){m->text ? text : NULL, m->n};
}

static bool missing_is_declared(const ty_csv_missing *m, const char *p, size_t n)
{
    for (int i = 0; i < m->n; i++)
        if (strlen(m->text[i]) == n && memcmp(m->text[i], p, n) == 0)
            return true;
    return false;
}

bool ty_csv_is_missing(const ty_csv_missing *m, const char *p, size_t n)
{
    static const char *const markers[] = {"", "NA", "N/A", "null", "None", "?"};
    if (m && m->text)
        return missing_is_declared(m, p, n);
    for (size_t i = 0; i < sizeof markers / sizeof markers[0]; i++)
        if (strlen(markers[i]) == n && strncasecmp(markers[i], p, n) == 0)
            return true;
    return false;
}

/* How many fields the record at c has. */
static int header_count(ty_csv c, int64_t *n, ty_error *err)
{
    ty_csv_field f = {0};
    for (*n = 0; !f.last; ++*n)
        if (ty_csv_next(&c, &f, err) < 0)
            return -1;
        else if (*n == TY_CSV_MAX_COLUMNS)
            return ty_error_set(err, TY_E_LIMIT, "more than %d columns", TY_CSV_MAX_COLUMNS);
    return 0;
}

/* The field as text without blanks around it; *n its length. */
static const char *header_text(const ty_csv_field *f, ty_arena *a, size_t *n)
{
    char *text = ty_arena_alloc(a, f->n + 1), *end = text + ty_csv_unquote(f, text);
    while (isspace((unsigned char)*text))
        text++;
    while (end > text && isspace((unsigned char)end[-1]))
        *--end = 0;
    *n = (size_t)(end - text);
    return text;
}

int ty_csv_first_record(ty_csv *c, const ty_csv_missing *missing, ty_arena *a, ty_csv_first *out, ty_error *err)
{
    if (header_count(*c, &out->n, err) < 0)
        return -1;
    const char **names = TY_NEW_ARRAY(a, const char *, out->n);
    bool has_number = false, has_text = false;
    for (int64_t i = 0; i < out->n; i++) {
        ty_csv_field f;
        size_t n;
        if (ty_csv_next(c, &f, err) < 0)
            return -1;
        names[i] = header_text(&f, a, &n);
        double v;
        bool is_number = ty_number_scan(names[i], names[i] + n, &v) == names[i] + n;
        has_number = has_number || is_number;
        has_text = has_text || !(is_number || ty_csv_is_missing(missing, names[i], n));
    }
    out->text = names;
    out->is_data = has_number || !has_text;
    return 0;
}

char ty_csv_delimiter(const ty_data_source *src, const char *file_name, const char *text, size_t n_text)
{
    if (src->csv_delimiter != 0)
        return src->csv_delimiter;
    size_t n = strlen(file_name) - ty_packing_suffix(file_name);
    if (n >= 4 && strncasecmp(file_name + n - 4, ".tsv", 4) == 0)
        return '\t';
    return ty_csv_guess_delimiter(text, n_text);
}
