/* bytes.h - the content of one data file as one piece of memory.
 *
 * Plain files are mapped (or read, where mapping is unwise: FastFile streams from an object store); gzip files are
 * inflated, all members, with their checksums. The reader above sees bytes and a length and need not know which.
 * A mapped file that somebody shortens while it is in use ends the process with SIGBUS; channels are not written to
 * while a job runs.
 */
#ifndef TY_CONTAINER_INPUT_BYTES_H
#define TY_CONTAINER_INPUT_BYTES_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct ty_bytes {
    const uint8_t *data; /* never NULL after a successful open */
    size_t n;
    size_t file_bytes; /* size on disk, before inflating */
    bool mapped;       /* private: how to give it back */
} ty_bytes;

typedef struct ty_bytes_options {
    bool no_map;               /* read instead of mapping */
    size_t max_inflated_bytes; /* limit on what a gzip file may grow to; 0: TY_BYTES_MAX_INFLATED */
} ty_bytes_options;

#define TY_BYTES_MAX_INFLATED ((size_t)16 << 30)

/* `options` may be NULL. On failure nothing has to be closed. Errors carry the path as their place. */
int ty_bytes_open(const char *path, const ty_bytes_options *options, ty_bytes *out, ty_error *err);
/* Safe on a zeroed struct. */
void ty_bytes_close(ty_bytes *b);

/* Inflates gzip members that follow one another, up to max_bytes. *out is the caller's (free()). */
int ty_gunzip(const uint8_t *data, size_t n, size_t max_bytes, uint8_t **out, size_t *n_out, ty_error *err);

#endif
