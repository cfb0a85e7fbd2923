/* files.h - which files of a channel are data, and in which order.
 *
 * Order is the byte order of the path below the channel's folder, never that of readdir, so that every host and every
 * restart sees the same sequence of samples. Source: the channel rules of SageMaker's File mode.
 */
#ifndef TY_CONTAINER_INPUT_FILES_H
#define TY_CONTAINER_INPUT_FILES_H

#include "base/arena.h"
#include "base/error.h"

#include <stdint.h>

typedef struct ty_data_file {
    const char *path; /* to open */
    const char *name; /* below the channel's folder, or the last part of a path that named the file itself */
    int64_t n_bytes;
} ty_data_file;

#define TY_FILES_MAX       1000000
#define TY_FILES_MAX_DEPTH 32

/* Lists data files, allocated in `arena`. Each of `paths` is a folder (walked: regular files and links to them, but no
 * name that starts with '.' or '_', no empty file, beside files NAME.arrow no JSON that tells about them) or a file
 * (taken as it is). Files of a folder are sorted; the order of `paths` is kept. An absent path, or no file at all, is
 * refused (TY_E_CHANNEL). */
int ty_files_list(const char *const *paths, int n_paths, ty_arena *arena, ty_data_file **out, int *n_out,
                  ty_error *err);

/* Whether a shell pattern matches the file's name below the channel or its last part. */
bool ty_file_matches(const ty_data_file *file, const char *pattern);

#endif
