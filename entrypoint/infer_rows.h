/* infer_rows.h - inputs of a model from raw rows, as its preprocessing.json says (preprocessing.h), and its answers in
 * words. */
#ifndef TY_ENTRYPOINT_INFER_ROWS_H
#define TY_ENTRYPOINT_INFER_ROWS_H

#include "base/tensor.h"
#include "entrypoint/preprocessing.h"

typedef struct ty_infer_rows {
    ty_preprocessing pre;
    const ty_map *classes; /* of the only target that has such; NULL: none */
} ty_infer_rows;

/* model: path of a model file that has a preprocessing.json beside it. */
int ty_infer_rows_open(const char *model, ty_arena *a, ty_infer_rows *out, ty_error *err);
/* All rows of a file as the named input: *tensor is the caller's (free its data). */
int ty_infer_rows_read(const ty_infer_rows *r, const char *path, const char *input, ty_arena *a, ty_tensor *tensor,
                       ty_error *err);
/* A file with the word of each row's largest number, where the output has one for each class; *is_written says. */
int ty_infer_rows_label(const ty_infer_rows *r, const ty_tensor *output, const char *path, bool *is_written,
                        ty_error *err);

#endif
