/* records_csv.c - lines of a table without a header: a field is one column or several (ty_field.columns).
 *
 * Source: RFC 4180 and what dataset_csv.c accepts, but for one thing: a line is a record, so that a quoted text may
 * hold separators and no line ends. Where lines come in blocks nobody could tell such a line end from another.
 */
#include "container/input/csv.h"
#include "container/input/header.h"
#include "container/input/number.h"
#include "container/input/records.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int csv_begin_stream(records_impl *impl, ty_index_base base, const ty_index_kept *kept, ty_error *err)
{
    (void)base;
    (void)kept;
    for (int i = 0; i < impl->n_fields; i++) {
        ty_field *d = &impl->field[i].declared;
        if (!d->columns || ty_field_needs_header(d)) {
            ty_error_set(err, TY_E_CONFIG, "field \"%s\": a stream of CSV has no header, and its columns no names",
                         d->name);
            return ty_error_help(err, "say which columns by number: columns: 0, or columns: 1-17");
        }
        if (d->map) /* which says what type it makes */
            continue;
        if (!d->dtype_given)
            d->dtype = TY_F32;
        d->dtype_given = true;
    }
    return 0;
}

/* Cells of a line, found in look->split; how many there are, or -1. */
static int64_t csv_cut(records_look *look, const ty_frame *record, ty_error *err)
{
    ty_csv csv;
    ty_csv_field cell;
    int64_t n = 0;
    if (ty_csv_init(&csv, "line", (const char *)record->data, record->n, look->impl->delimiter, err) < 0)
        return -1;
    do {
        if (ty_csv_next(&csv, &cell, err) < 0)
            return -1;
        if ((size_t)(n + 1) * sizeof cell > look->split_bytes) {
            size_t bytes = 2 * look->split_bytes + 64 * sizeof cell;
            void *grown = realloc(look->split, bytes);
            if (!grown)
                return ty_error_set(err, TY_E_LIMIT, "no memory for a line of more than %lld cells", (long long)n);
            look->split = grown;
            look->split_bytes = bytes;
        }
        ((ty_csv_field *)look->split)[n++] = cell;
    } while (!cell.last);
    return n;
}

/* The first line says how many columns there are. */
static int csv_settle(records_impl *impl, int64_t n_columns, ty_error *err)
{
    if (impl->n_columns < 0 || n_columns > INT32_MAX)
        return ty_error_set(err, TY_E_DATA, "no line was there when the stream was opened");
    for (int i = 0; i < impl->n_fields; i++) {
        records_field *f = &impl->field[i];
        if (ty_field_columns(&f->declared, NULL, n_columns, impl->arena, &f->column, &f->n_columns, f->n_part, err) < 0)
            return -1;
    }
    impl->n_columns = (int32_t)n_columns;
    return 0;
}

static int csv_find(records_look *look, const ty_frame *record, ty_error *err)
{
    int64_t n = csv_cut(look, record, err);
    if (n < 0) {
        ty_error_set(err, TY_E_DATA_VALUE,
                     "the line is no record of its own: a quote is not closed in it, or text follows one");
        return ty_error_help(err, "a stream takes no line ends within quotes: read the data with access: random");
    }
    if (look->impl->n_columns <= 0 && csv_settle((records_impl *)look->impl, n, err) < 0)
        return -1;
    if (n != look->impl->n_columns)
        return ty_error_set(err, TY_E_DATA_VALUE, "expected %d columns as in the first line, found %lld",
                            look->impl->n_columns, (long long)n);
    for (int i = records_first(look); i < records_end(look); i++) {
        look->cell[i] = (records_cell){.is_there = true, .dtype = TY_F64, .n = look->impl->field[i].n_columns};
        look->cell[i].u.text.part = i;
    }
    return 0;
}

static int64_t csv_count(const records_cell *c)
{
    return c->n;
}

/* What stands for no value is scaled like any other, as in tables that are read by number; a map says itself what it
 * is. */
static double csv_missing(const records_field *f)
{
    return f->declared.missing_given && !f->declared.map ? f->declared.missing : (double)NAN;
}

static bool csv_number(const records_impl *impl, const records_field *f, const ty_csv_field *cell, double *out)
{
    const char *p = cell->text, *end = p + cell->n;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    while (end > p && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    bool is_missing = ty_csv_is_missing(&impl->missing, p, (size_t)(end - p));
    if (!is_missing && ty_number_scan(p, end, out) != end)
        return false;
    if (is_missing || ty_csv_is_missing_number(&impl->missing, *out))
        *out = csv_missing(f);
    return true;
}

static int64_t csv_decode(records_look *look, const records_cell *c, int64_t max)
{
    const records_field *f = &look->impl->field[c->u.text.part];
    double v;
    for (int32_t k = 0; k < f->n_columns; k++) {
        if (!csv_number(look->impl, f, &((const ty_csv_field *)look->split)[f->column[k]], &v))
            return -1;
        if (k < max)
            ((double *)look->stored)[k] = v;
    }
    return f->n_columns;
}

/* Of a field with a map: a cell as text, without blanks around it unless it stands in quotes. */
static ty_text csv_text(const records_impl *impl, const ty_csv_field *cell, char **plain)
{
    ty_text t = {cell->text, cell->n};
    while (!cell->quoted && t.n > 0 && isspace((unsigned char)*t.p))
        t.p++, t.n--;
    while (!cell->quoted && t.n > 0 && isspace((unsigned char)t.p[t.n - 1]))
        t.n--;
    if ((!cell->quoted || t.n == 0) && ty_csv_is_missing(&impl->missing, t.p, t.n))
        return (ty_text){NULL, 0};
    if (cell->quoted && memchr(t.p, '"', t.n)) {
        t = (ty_text){*plain, ty_csv_unquote(cell, *plain)};
        *plain += cell->n + 1;
    }
    return t;
}

static int csv_cells(records_look *look, const records_cell *c, bool wants_text, ty_cells *out, ty_error *err)
{
    const records_field *f = &look->impl->field[c->u.text.part];
    const ty_csv_field *cell = look->split;
    size_t n = (size_t)f->n_columns, plain_bytes = 0;
    for (int32_t k = 0; k < f->n_columns; k++)
        plain_bytes += cell[f->column[k]].n + 1;
    if (records_bytes(look, n * sizeof(ty_text) + plain_bytes, err) < 0)
        return -1;
    char *plain = (char *)look->stored + n * sizeof(ty_text);
    for (int32_t k = 0; k < f->n_columns; k++) {
        const ty_csv_field *one = &cell[f->column[k]];
        if (wants_text)
            ((ty_text *)look->stored)[k] = csv_text(look->impl, one, &plain);
        else if (!csv_number(look->impl, f, one, &((double *)look->stored)[k]))
            return ty_error_set(err, TY_E_DATA_VALUE, "expected a number in column %d, found \"%.*s\"", f->column[k],
                                one->n < 40 ? (int)one->n : 40, one->text);
    }
    *out = (ty_cells){.kind = wants_text ? TY_CELLS_TEXTS : TY_CELLS_NUMBERS, .n = f->n_columns};
    for (int i = 0; i < TY_N_TEXT_PARTS; i++)
        out->n_part[i] = f->n_part[i];
    out->u.text = look->stored;
    return 0;
}

const records_kind records_csv = {.framing = TY_FRAMES_LINES,
                                  .has_parts = true,
                                  .begin_stream = csv_begin_stream,
                                  .find = csv_find,
                                  .count = csv_count,
                                  .decode = csv_decode,
                                  .cells = csv_cells};
