/* cmodel_weights.h - initial weights of a model.c from the safetensors file beside it: float32, by name. */
#ifndef TY_COMPILER_IMPORT_CMODEL_WEIGHTS_H
#define TY_COMPILER_IMPORT_CMODEL_WEIGHTS_H

#include "base/safetensors.h"

typedef struct cmodel_weights {
    char *path; /* NULL: there is no file */
    ty_arena arena;
    ty_safetensors file;
} cmodel_weights;

/* Looks for NAME.safetensors beside NAME.c; none is success with path NULL. Close in any case. */
int cmodel_weights_open(const char *source_path, cmodel_weights *w, ty_error *err);
void cmodel_weights_close(cmodel_weights *w);
/* *data: the tensor's bytes in the mapped file (perhaps unaligned), NULL if it has none of that name. An error if it
 * has another type. */
int cmodel_weights_find(const cmodel_weights *w, const char *name, const ty_type *type, const void **data,
                        ty_error *err);
/* Calls known(ctx, name) for every tensor; the first that is not known is an error. */
int cmodel_weights_all_known(const cmodel_weights *w, bool (*known)(const void *ctx, const char *name), const void *ctx,
                             ty_error *err);

#endif
