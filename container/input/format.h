/* format.h - the table of data formats, and how a file's format is found.
 *
 * A declared format wins. Without one the channel's content type decides, then the extension (behind a .gz), then the
 * first bytes. Where extension and first bytes contradict each other the file is refused instead of guessed at.
 */
#ifndef TY_CONTAINER_INPUT_FORMAT_H
#define TY_CONTAINER_INPUT_FORMAT_H

#include "container/input/dataset.h"

typedef struct ty_format {
    const char *name;
    const char *extensions;                           /* " .csv .tsv " */
    const char *content_types;                        /* " text/csv " */
    bool (*has_magic)(const uint8_t *head, size_t n); /* NULL: no signature */
    /* Fills ds->ops, impl, fields and counts; ds->files is set. On failure ty_dataset_open closes what was made. */
    int (*open)(ty_dataset *ds, const ty_data_source *src, ty_error *err);
} ty_format;

/* Rows by number until NULL. */
const ty_format *ty_format_row(int i);
/* The format of all files, which must agree. */
int ty_format_detect(const ty_data_source *src, const ty_data_file *files, int n_files, const ty_format **out,
                     ty_error *err);

/* The formats' own openers. */
int ty_dataset_open_csv(ty_dataset *ds, const ty_data_source *src, ty_error *err);
int ty_dataset_open_npy(ty_dataset *ds, const ty_data_source *src, ty_error *err);
int ty_dataset_open_npz(ty_dataset *ds, const ty_data_source *src, ty_error *err);
int ty_dataset_open_idx(ty_dataset *ds, const ty_data_source *src, ty_error *err);

#endif
