/* zip.h - members of a zip archive that lies in memory, found through its central directory.
 *
 * Source: PKWARE APPNOTE.TXT 6.3. Methods 0 (stored) and 8 (deflated), zip64 and data descriptors. Encrypted archives
 * and archives of several disks are refused. No length in the archive is trusted before it was held against the size
 * of the memory.
 */
#ifndef TY_CONTAINER_INPUT_ZIP_H
#define TY_CONTAINER_INPUT_ZIP_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct ty_zip {
    const uint8_t *data;
    size_t n;
    uint64_t directory_at, directory_bytes; /* central directory */
    uint64_t n_entries;
} ty_zip;

typedef struct ty_zip_entry {
    const char *name; /* in the archive, not NUL-terminated */
    size_t name_bytes;
    int method;
    uint32_t crc32;
    uint64_t packed_bytes, plain_bytes;
    uint64_t header_at; /* of the local header */
} ty_zip_entry;

typedef struct ty_zip_walk {
    uint64_t at;   /* next directory record */
    uint64_t seen; /* records read so far */
} ty_zip_walk;

int ty_zip_open(const uint8_t *data, size_t n, ty_zip *out, ty_error *err);

/* Walks the directory; start with a zeroed walk. Returns 1 with *out filled, 0 at the end, -1 on error. */
int ty_zip_next(const ty_zip *z, ty_zip_walk *walk, ty_zip_entry *out, ty_error *err);

/* Content of a member with its checksum verified. A stored member is not copied: *out points into the archive and
 * *owned is NULL. A deflated one is inflated to *owned (free()), and *out is the same. */
int ty_zip_read(const ty_zip *z, const ty_zip_entry *e, size_t max_bytes, const uint8_t **out, uint8_t **owned,
                ty_error *err);

#endif
