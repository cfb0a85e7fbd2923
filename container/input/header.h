/* header.h - the first record of delimited text: names of columns, or data already. */
#ifndef TY_CONTAINER_INPUT_HEADER_H
#define TY_CONTAINER_INPUT_HEADER_H

#include "base/arena.h"
#include "container/input/csv.h"
#include "container/input/dataset.h"

#include <stdbool.h>

#define TY_CSV_MAX_COLUMNS (1 << 20)

typedef struct ty_csv_first {
    const char *const *text; /* [n], without blanks at both ends; in the arena */
    int64_t n;
    bool is_data; /* a field of it is a number, or none is text, so that it cannot be taken for a header */
} ty_csv_first;

/* Reads the record that c stands at and moves behind it. */
int ty_csv_first_record(ty_csv *c, const ty_csv_missing *missing, ty_arena *a, ty_csv_first *out, ty_error *err);

/* Whether a field says that there is no value: empty, or a marker such as NA. m NULL: the usual ones, without regard to
 * case. A text in quotes is none unless it is empty, which is the caller's to know. */
bool ty_csv_is_missing(const ty_csv_missing *m, const char *p, size_t n);
/* Whether the number stands for none. */
bool ty_csv_is_missing_number(const ty_csv_missing *m, double v);
/* Whether any number does, so that numbers have to be looked at. */
bool ty_csv_has_missing_numbers(const ty_csv_missing *m);
/* With its texts in the arena. */
ty_csv_missing ty_csv_missing_copy(const ty_csv_missing *m, ty_arena *a);

/* The declared delimiter, that of the file's name, or the most frequent one of the first line. */
char ty_csv_delimiter(const ty_data_source *src, const char *file_name, const char *text, size_t n);

#endif
