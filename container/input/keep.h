/* keep.h - what opening data found, kept in a file, so that the next opening need not look again.
 *
 *     DIR/data/<16 hex>.index
 *
 * Opening files of records walks all of them: where each record begins, whether its checksum and its values are right,
 * ranges, what transforms learn. As long as the files and what is asked of them stay the same all of that does too. The
 * name of the file is a hash of the key, which stands in it: a text with our version, the format, all that is declared,
 * and for each file its path, device, inode, size, times of modification and of change in nanoseconds, and a CRC-32C of
 * its two ends. That is what make and rsync trust, and more: the time of change cannot be set by whoever writes. What
 * such times cannot show (a disk that loses bits) is found where a record is decoded first: all of it is checked then,
 * as it is in a stream.
 *
 * The file is read as any foreign bytes are: head and parts have checksums, which are held against all of it before
 * any is believed, offsets are held against the data. What does not fit is told in a line of the log and made anew. A
 * file appears whole, under a temporary name and then renamed: several processes may write the same one.
 *
 *     struct head: magic, version of this layout, checksum, when it was made, size, then of each part place, size, CRC
 *     parts:       key (text), facts, lines of the log, what transforms have seen, places of records (u64 each)
 */
#ifndef TY_CONTAINER_INPUT_KEEP_H
#define TY_CONTAINER_INPUT_KEEP_H

#include "base/arena.h"
#include "base/buf.h"
#include "container/input/bytes.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum ty_keep_part_kind {
    TY_KEEP_KEY,
    TY_KEEP_FACTS,
    TY_KEEP_TOLD,
    TY_KEEP_SEEN,
    TY_KEEP_PLACES,
    TY_KEEP_PARTS
} ty_keep_part_kind;

#define TY_KEEP_MAX_KEY ((size_t)64 << 20)

/* A file that was found whole. */
typedef struct ty_keep_file {
    ty_bytes bytes;
    int64_t made_s;
    const uint8_t *part[TY_KEEP_PARTS]; /* at multiples of 64 */
    size_t n[TY_KEEP_PARTS];
} ty_keep_file;

/* 1; 0 where there is none; -1 if it is damaged, or another key's. key NULL: for a look at the key alone, whatever it
 * is: only that part is held against its checksum. */
int ty_keep_open(const char *path, const ty_buf *key, ty_keep_file *out, ty_error *err);
void ty_keep_close(ty_keep_file *f); /* safe on a zeroed struct */

/* A part to be written: pieces one behind the other. */
typedef struct ty_keep_piece {
    const void *bytes;
    size_t n;
} ty_keep_piece;
typedef struct ty_keep_part {
    const ty_keep_piece *piece; /* [n] */
    int n;
} ty_keep_part;

/* How many bytes the file would have. */
int64_t ty_keep_bytes(const ty_keep_part part[TY_KEEP_PARTS]);
int ty_keep_write(const char *path, const ty_keep_part part[TY_KEEP_PARTS], ty_error *err);

/* ---- keys: keep_key.c ---- */

/* "NAME\tVALUE\n". Control characters of the value become blanks. */
void ty_keep_add(ty_buf *key, const char *name, const char *fmt, ...) TY_PRINTF(3, 4);
/* A file's path as the name, and what it is: its identity and the checksum of its ends. */
void ty_keep_add_file(ty_buf *key, const char *path, const ty_bytes *bytes);
/* What a file of this key is called; the key is compared when it is opened. */
void ty_keep_name(const ty_buf *key, char name[32]);
/* Of the files in folder/data: the first line in which the one most like the key differs from it, "/data/a.tfrecord:
 * then 17 bytes ..., now 18 bytes ...", appended to out. Nothing where none is of the same path. */
void ty_keep_explain(const char *folder, const ty_buf *key, ty_buf *out);

/* "tfrecord, /data/a.tfrecord", "tfrecord, 12 files, the first /data/a.tfrecord" of a file; "" if it is none. */
const char *ty_keep_describe(const char *path, ty_arena *a);

#endif
