/* modeldir.h - publish the trained model: the files of /opt/ml/model and their list, model.json.
 *
 * Each file appears whole under its name (temporary, fsync, rename); model.json comes last and names all of them with
 * size and SHA-256, so that its presence says that the model is complete. An old model.json goes before the first new
 * file.
 *
 *     ty_modeldir *md;
 *     ty_modeldir_check(dir, err)                            // at the start: can we write there at all?
 *     ...
 *     ty_modeldir_open(dir, &md, err)
 *     ty_safetensors_write(ty_modeldir_path(md, "model.safetensors"), ...);
 *     ty_modeldir_add(md, "model.safetensors", "safetensors", err);        // written by another writer: hashed now
 *     ty_modeldir_put(md, "labels.txt", "labels", bytes, n_bytes, err);    // or from memory
 *     ty_modeldir_commit(md, &info, err);
 *     ty_modeldir_free(md);
 */
#ifndef TY_CONTAINER_OUTPUT_MODELDIR_H
#define TY_CONTAINER_OUTPUT_MODELDIR_H

#include "base/error.h"
#include "container/output/metrics.h"

#include <stddef.h>
#include <stdint.h>

#define TY_MODELDIR_LIST_NAME "model.json"

typedef struct ty_modeldir ty_modeldir;

/* What model.json says besides its files. Texts may be NULL: then the key is left out. */
typedef struct ty_modelinfo {
    const char *format;      /* of the main file: "onnx" */
    const char *origin;      /* the model file that training began with */
    const char *recipe_json; /* the whole recipe as JSON, copied as it is; must be valid */
    const char *version;     /* of this program */
    int64_t step, epoch;     /* that the weights are of */
    bool has_index;          /* trained on sparse text: its first index and width, which later data are read with */
    int64_t index_base, index_width;
    const ty_metric *metrics;
    size_t n_metrics;
} ty_modelinfo;

/* Makes the folder if needed and tries to create a file in it, which is removed again. */
int ty_modeldir_check(const char *dir, ty_error *err);

/* Begins a model: makes the folder, removes an old model.json and temporaries of killed writers. Other files stay. */
int ty_modeldir_open(const char *dir, ty_modeldir **out, ty_error *err);
/* The path of a file in the folder; owned by *md. */
const char *ty_modeldir_path(ty_modeldir *md, const char *name);
/* Writes a file and lists it. `name` may have folders in it ("variables/index"), which are made; no "..", no leading
 * '/'. `kind` says what it is: "onnx", "safetensors", "text". */
int ty_modeldir_put(ty_modeldir *md, const char *name, const char *kind, const void *bytes, size_t n_bytes,
                    ty_error *err);
/* Lists a file that stands there already. */
int ty_modeldir_add(ty_modeldir *md, const char *name, const char *kind, ty_error *err);
/* Writes model.json: the model is complete. */
int ty_modeldir_commit(ty_modeldir *md, const ty_modelinfo *info, ty_error *err);
/* Without a commit before, the folder holds files but no model.json. NULL is allowed. */
void ty_modeldir_free(ty_modeldir *md);

#endif
