/* bytes.h - the content of one data file as one piece of memory.
 *
 * Plain files are mapped (or read, where mapping is unwise: FastFile streams from an object store); compressed ones are
 * inflated as a whole (inflate.h), whatever they are called. The reader above sees bytes and a length and need not know
 * which. A mapped file that somebody shortens while it is in use reads as zeros from there on, and ty_mapped_check()
 * names it (mapped.h).
 */
#ifndef TY_CONTAINER_INPUT_BYTES_H
#define TY_CONTAINER_INPUT_BYTES_H

#include "base/error.h"
#include "container/input/inflate.h"
#include "container/input/mapped.h"

#include <stddef.h>
#include <stdint.h>

/* Which file was opened, and as what it was found then. */
typedef struct ty_file_id {
    uint64_t device, inode;
    int64_t n_bytes, modified_ns, changed_ns; /* times since 1970 */
} ty_file_id;

typedef struct ty_bytes {
    const uint8_t *data; /* never NULL after a successful open */
    size_t n;
    size_t file_bytes; /* size on disk, before inflating */
    ty_file_id id;
    bool mapped;      /* private: how to give it back */
    ty_mapped *watch; /* private */
} ty_bytes;

typedef struct ty_bytes_options {
    bool no_map;               /* read instead of mapping */
    size_t max_inflated_bytes; /* limit on what a compressed file may grow to; 0: TY_BYTES_MAX_INFLATED */
} ty_bytes_options;

#define TY_BYTES_MAX_INFLATED ((size_t)16 << 30)

/* `options` may be NULL. On failure nothing has to be closed. Errors carry the path as their place. */
int ty_bytes_open(const char *path, const ty_bytes_options *options, ty_bytes *out, ty_error *err);
/* Safe on a zeroed struct. */
void ty_bytes_close(ty_bytes *b);

/* All of [at, at + n) of a file, which must have them; the caller names it. Any thread. */
int ty_bytes_pread(int fd, uint8_t *out, size_t n, int64_t at, ty_error *err);

/* What the path leads to now. False: to no regular file. */
bool ty_file_id_of(const char *path, ty_file_id *out);

/* The first bytes of a file's content, up to n (at most 4096), inflated if need be: how many there are. 0 too for what
 * cannot be read, which fails where it is opened. */
size_t ty_bytes_head(const char *path, uint8_t *out, size_t n);

/* Inflates all of [in, in + n), up to max_bytes (above 0). *out is the caller's (free()). */
int ty_inflate_all(ty_packing packing, const uint8_t *in, size_t n, size_t max_bytes, uint8_t **out, size_t *n_out,
                   ty_error *err);

#endif
