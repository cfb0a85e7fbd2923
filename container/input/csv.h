/* csv.h - cuts delimited text into records and fields, by RFC 4180 and what real files do.
 *
 * The scanner allocates nothing: a field is a slice of the input. Line ends are LF or CRLF, the last may be missing;
 * a UTF-8 byte order mark and blank lines are skipped; a quoted field may hold separators, line ends and doubled
 * quotes. A carriage return alone is text.
 */
#ifndef TY_CONTAINER_INPUT_CSV_H
#define TY_CONTAINER_INPUT_CSV_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct ty_csv {
    const char *at, *end;
    const char *line_start; /* of the line that `at` is in */
    int64_t line;           /* number of that line, from 1 */
    const char *name;       /* of the file, for places */
    char delimiter;
} ty_csv;

typedef struct ty_csv_field {
    const char *text; /* without the outer quotes; "" inside stand doubled still, see ty_csv_unquote */
    size_t n;
    int64_t line;   /* where the field starts */
    int64_t column; /* bytes from the start of the line, from 1 */
    bool quoted;
    bool last; /* of its record */
} ty_csv_field;

/* Stands at the start of the text, behind a byte order mark. UTF-16 is refused. The text and the name are borrowed. */
int ty_csv_init(ty_csv *c, const char *name, const char *text, size_t n, char delimiter, ty_error *err);

/* Skips blank lines. True when a record starts here, false at the end of the text. */
bool ty_csv_more(ty_csv *c);

/* The next field of the record; moves behind its delimiter or line end. An open quote at the end of the text, or text
 * behind a closing quote, is refused with its line and column as the place. */
int ty_csv_next(ty_csv *c, ty_csv_field *out, ty_error *err);

/* For a caller who has read an unquoted field itself, from c->at up to p. Where a delimiter, a line end or the end
 * stands at p: moves behind it, says whether the record ended, and returns true. Else changes nothing. */
bool ty_csv_skip_to(ty_csv *c, const char *p, bool *last);

/* Sets the place "name:line:column" of the position p in the current line. Returns -1. */
int ty_csv_at(const ty_csv *c, int64_t line, int64_t column, ty_error *err);

/* Copies the field with doubled quotes made single; out needs field->n + 1 bytes. Returns the length. */
size_t ty_csv_unquote(const ty_csv_field *field, char *out);

/* Comma, tab or semicolon, whichever is most frequent outside quotes in the first line that is not blank; comma when
 * there is none. */
char ty_csv_guess_delimiter(const char *text, size_t n);

#endif
