/* cmodel.h - model.c files: compiled, loaded, asked for their network.
 *
 * The language of such a file is include/trainyard/model.h; that header travels inside this program and is laid before
 * the compiler at every opening, so that header and program always belong together.
 *
 * Opening compiles the file with the system's compiler, runs model() in a forked child under a time limit (a rehearsal:
 * what crashes there is an error, not our end), then here, to list inputs, outputs and weights. Import runs model()
 * again with the shapes bound. Initial weights come from NAME.safetensors beside NAME.c if there is one, else from the
 * initializers in the source.
 */
#ifndef TY_COMPILER_IMPORT_CMODEL_H
#define TY_COMPILER_IMPORT_CMODEL_H

#include "compiler/model.h"

typedef struct ty_cmodel ty_cmodel;

typedef struct ty_cmodel_lists ty_cmodel_lists; /* cmodel_lists.h */

/* kept: a folder with the code of this file (ty_cmodel_keep), which then needs no compiler, or without; or NULL. */
int ty_cmodel_open(const char *path, const char *kept, ty_cmodel **out, ty_error *err);
/* Leaves the code in a folder; or warns why it cannot be used without the compiler, and removes what was kept there. */
int ty_cmodel_keep(const ty_cmodel *m, const char *folder, ty_error *err);
void ty_cmodel_free(ty_cmodel *m);
const ty_cmodel_lists *ty_cmodel_list(const ty_cmodel *m);
/* As ty_model_import(). From one thread at a time. */
int ty_cmodel_import(const ty_cmodel *m, ty_graph *g, const ty_model_binding *b, ty_model_values *values,
                     ty_error *err);
/* The file's text as it was opened. */
const char *ty_cmodel_source(const ty_cmodel *m, size_t *n_bytes);

#endif
