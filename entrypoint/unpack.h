/* unpack.h - a tar archive (gzip or plain) into a folder, and never beside it.
 *
 * For source archives that come from outside. Reads ustar, GNU long names and pax headers (paths, link targets, sizes),
 * which is all that Python's tarfile, GNU tar and bsdtar write for ordinary trees. Refused, with the entry's name:
 * absolute paths,
 * "..", links that lead out of the folder, devices, pipes, sparse files, damaged headers, more than
 * TY_UNPACK_MAX_ENTRIES entries or TY_UNPACK_MAX_BYTES of content. Every folder on the way is opened without following
 * links, so that no order of entries can write outside. Owners, times and set-id bits are not restored.
 */
#ifndef TY_ENTRYPOINT_UNPACK_H
#define TY_ENTRYPOINT_UNPACK_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define TY_UNPACK_MAX_ENTRIES 200000
#define TY_UNPACK_MAX_BYTES   ((uint64_t)8 << 30)

typedef struct ty_unpack_count {
    int64_t n_files;
    uint64_t n_bytes;
} ty_unpack_count;

/* True if the file begins like a gzip stream or a tar header. */
bool ty_unpack_knows(const char *archive_path);
/* `folder` exists. On failure part of the archive may lie there: the caller clears it. count may be NULL. */
int ty_unpack(const char *archive_path, const char *folder, ty_unpack_count *count, ty_error *err);

#endif
