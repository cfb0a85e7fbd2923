/* zip.h - members of a zip archive that lies in memory, found through its central directory; and archives written.
 *
 * Source: PKWARE APPNOTE.TXT 6.3. Methods 0 (stored) and 8 (deflated), zip64 and data descriptors. Encrypted archives
 * and archives of several disks are refused. No length in the archive is trusted before it was held against the size
 * of the memory. Nothing is ever unpacked into a folder: members are bytes, and a name is only compared.
 */
#ifndef TY_BASE_ZIP_H
#define TY_BASE_ZIP_H

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
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
    uint32_t flags;     /* 4.4.4: bit 3: the local header has no sizes; bit 11: the name is UTF-8 */
    uint32_t time;      /* as MS-DOS has it: time in the low half, date in the high one */
    uint32_t mode;      /* as Unix has it, of archives made there; 0: unknown */
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

/* The first member of that name: a plain walk, for archives of few members. Not found: 0 and *out as it was. */
int ty_zip_find(const ty_zip *z, const char *name, ty_zip_entry *out, bool *found, ty_error *err);

/* What an archive from anywhere may hold. All must be given. */
typedef struct ty_zip_limits {
    uint64_t max_entries;
    uint64_t max_total_bytes; /* of all members, inflated */
    uint64_t free_bytes;      /* up to this size a member may inflate as much as it likes */
    uint64_t max_ratio;       /* beyond it, inflated bytes for each packed one */
} ty_zip_limits;

/* Walks the whole directory and refuses, naming the member, what an archive of data has no reason to hold: names that
 * are absolute, have a part "..", "." or "", a backslash, a drive, a control character or are there twice; links and
 * devices; headers that contradict the directory; members that share bytes, bytes in front of the first one; and what
 * passes the limits. What this has passed can still have wrong checksums: ty_zip_read finds them. */
int ty_zip_check(const ty_zip *z, const ty_zip_limits *limits, ty_error *err);

/* Archives written member by member, with zip64 where sizes ask for it.
 *
 *     ty_zip_writer w;
 *     ty_zip_writer_init(&w, sink, ctx);
 *     int rc = ty_zip_writer_add(&w, "a/b.bin", time, bytes, n, err);
 *     rc = rc < 0 ? rc : ty_zip_writer_finish(&w, err);
 *     ty_zip_writer_fini(&w);
 */
typedef int ty_zip_sink(void *ctx, const void *bytes, size_t n, ty_error *err);

typedef struct ty_zip_writer {
    ty_zip_sink *sink;
    void *ctx;
    uint64_t at;        /* private: bytes so far */
    uint64_t n_entries; /* private */
    ty_buf directory;   /* private */
} ty_zip_writer;

#define TY_ZIP_NO_TIME 0x00210000u /* 1980-01-01 0:00, the earliest there is: for the same bytes each time */

void ty_zip_writer_init(ty_zip_writer *w, ty_zip_sink *sink, void *ctx);
/* A stored member, as Keras and NumPy write them. */
int ty_zip_writer_add(ty_zip_writer *w, const char *name, uint32_t time, const void *bytes, size_t n, ty_error *err);
/* A member of another archive, packed as it is there. Its checksum goes along, unlooked at. */
int ty_zip_writer_copy(ty_zip_writer *w, const ty_zip *z, const ty_zip_entry *e, ty_error *err);
/* The directory. The archive is then complete. */
int ty_zip_writer_finish(ty_zip_writer *w, ty_error *err);
void ty_zip_writer_fini(ty_zip_writer *w);

/* Where a member's packed bytes lie in the archive, its local header checked. For this module's parts. */
int ty_zip_locate(const ty_zip *z, const ty_zip_entry *e, uint64_t *at, ty_error *err);

#endif
