/* paths.h - where things lie in a training container: the /opt/ml tree.
 *
 * The platform fills input/ before the container starts and collects model/ and output/ after it has ended. Everything
 * hangs under one base folder, /opt/ml, which SAGEMAKER_BASE_DIR replaces (tests and runs outside a container).
 * Values only: nothing here touches the file system except ty_paths_create.
 */
#ifndef TY_CONTAINER_CONFIG_PATHS_H
#define TY_CONTAINER_CONFIG_PATHS_H

#include "base/arena.h"
#include "base/error.h"

#define TY_PATHS_DEFAULT_BASE  "/opt/ml"
#define TY_PATHS_BASE_VARIABLE "SAGEMAKER_BASE_DIR"

/* All are absolute if the base is, without a slash at the end. The strings lie in the arena given to ty_paths_init. */
typedef struct ty_paths {
    const char *base;                /* /opt/ml */
    const char *input;               /* /opt/ml/input */
    const char *input_config;        /* /opt/ml/input/config */
    const char *input_data;          /* /opt/ml/input/data */
    const char *code;                /* /opt/ml/code: the user's program, in script mode */
    const char *model;               /* /opt/ml/model: what lies here at exit is the result */
    const char *checkpoints;         /* /opt/ml/checkpoints, or LocalPath of checkpointconfig.json */
    const char *output;              /* /opt/ml/output */
    const char *output_data;         /* /opt/ml/output/data: collected like the model */
    const char *output_intermediate; /* /opt/ml/output/intermediate */
    const char *failure;             /* /opt/ml/output/failure */
    const char *failure_json;        /* /opt/ml/output/failure.json */
    const char *success;             /* /opt/ml/output/success */
} ty_paths;

/* base_dir: the value of SAGEMAKER_BASE_DIR; NULL or "" means /opt/ml. */
void ty_paths_init(ty_paths *paths, ty_arena *a, const char *base_dir);
/* <input_data>/<channel>. */
const char *ty_paths_channel(const ty_paths *paths, ty_arena *a, const char *channel);
/* <input_config>/<name>. */
const char *ty_paths_config_file(const ty_paths *paths, ty_arena *a, const char *name);
/* Makes the folders that a run writes into (model, output, output/data). One that is there already is fine; one that
 * cannot be made is TY_E_CREATE or TY_E_PERMISSION with its name. checkpoints is left to whoever writes checkpoints. */
int ty_paths_create(const ty_paths *paths, ty_error *err);

#endif
