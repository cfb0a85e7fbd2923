/* cmodel_kept.h - the code of a model.c, left in a folder for machines without a C compiler.
 *
 *     model.so     what the compiler made
 *     model.txt    of which source and header it was made, and what it must be: SHA-256 of both
 *
 * The source's own text must be all that decides the code: a model.c that includes files of the user's is not kept.
 * What it includes the compiler says (cmodel_load.h); three ways in which it may read files without saying so are
 * looked for here.
 */
#ifndef TY_COMPILER_IMPORT_CMODEL_KEPT_H
#define TY_COMPILER_IMPORT_CMODEL_KEPT_H

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>

/* Whether there is assembly in the source, which has includes of its own, what may be an #embed, or a way out of the
 * system's folders (<../>). True where it only looks so. */
bool cmodel_may_read_files(const ty_buf *source);

/* object: a descriptor to read it by, from its beginning. Each file whole or not at all; what was there goes first, and
 * model.txt comes last. */
int cmodel_keep(const char *folder, const ty_buf *source, int object, ty_error *err);
/* What was kept there goes; nothing is fine. */
int cmodel_keep_none(const char *folder, ty_error *err);

/* 1: the folder's code is this source's, and its path, in at most n bytes, is in `object`. 0: the folder has none.
 * -1, TY_E_COMPILED: it is of another source, or damaged. */
int cmodel_find_kept(const char *folder, const ty_buf *source, char *object, size_t n, ty_error *err);

#endif
