/* cmodel_load.h - from C source to a function in this process. */
#ifndef TY_COMPILER_IMPORT_CMODEL_LOAD_H
#define TY_COMPILER_IMPORT_CMODEL_LOAD_H

#include "base/error.h"
#include "base/executable.h"

#include <stdbool.h>
#include <stdint.h>

struct ty_net;

typedef struct cmodel_object {
    ty_shared_object code;
    void (*model)(struct ty_net *net);
    void (*layers)(struct ty_net *net); /* NULL: registers none */
    int file;                           /* the object, to be read: its name may be gone */
    bool reads_files; /* the source includes files of the user's: it does not say all that is in the code */
} cmodel_object;

/* The text of trainyard/model.h as it was when this program was built. */
extern const char ty_cmodel_header[];

#define CMODEL_COMPILE_MS 60000
#define CMODEL_REHEARSE_S 60 /* or as many as TRAINYARD_MODEL_S says */

/* Compiles path with cc (NULL: $CC, or cc) and loads the object. An error of the source has the file and line that the
 * compiler named, and the compiler's first lines as details; warnings are logged. */
int cmodel_load(const char *path, const char *cc, int64_t timeout_ms, cmodel_object *out, ty_error *err);
/* Loads code that was compiled before (cmodel_kept.h), and therefore of a source that reads no files. path: the source,
 * for messages. */
int cmodel_load_object(const char *path, const char *object, cmodel_object *out, ty_error *err);
void cmodel_unload(cmodel_object *o);

#endif
