/* cursor.h - records one after the other, over the blocks of a source.
 *
 * A record that lies within a block is used where it lies. The beginning of one that does not is moved in front of the
 * next block, into the room that blocks have there, or for large ones into memory of its own. With a wrapper each
 * RecordIO record is an object whose own records follow one another in it; with attributes as many RecordIO records as
 * there are attributes make one record: each as its length in 8 bytes (of this machine) and its bytes.
 */
#ifndef TY_CONTAINER_INPUT_STREAM_CURSOR_H
#define TY_CONTAINER_INPUT_STREAM_CURSOR_H

#include "container/input/frame.h"
#include "container/input/stream/source.h"

typedef struct ty_cursor_record {
    const uint8_t *data; /* until the next call; behind a TFRecord's payload stands its checksum, not looked at */
    size_t n;
    int file;       /* the block's */
    int64_t record; /* number in the file; lines: of the line; wrapped: of the object; attributes: of the sample */
    int64_t at;     /* where its frame begins in the file, inflated */
} ty_cursor_record;

typedef struct ty_cursor {
    ty_framing how;
    bool wrapped;
    int n_attributes;
    bool (*is_none)(const ty_frame *record); /* NULL: all are records */
    /* Private. */
    ty_source *source;
    ty_frames outer, inner;
    int64_t object, object_at; /* that `inner` is in */
    uint8_t *joined;
    size_t joined_bytes;
    ty_buf group;
    int file, n_grouped;
    bool has_window, is_last, is_held, was_restarted;
    int64_t n_seen;
} ty_cursor;

/* how, wrapped, n_attributes and is_none are set, the rest is zero. Takes the source over, also after a failure. */
void ty_cursor_start(ty_cursor *c, ty_source *source);
/* Closes the source. A zeroed one is fine. */
void ty_cursor_end(ty_cursor *c);

/* 1, 0 at the end (or when the source was told to stop), -1. Errors name record and byte; the caller names the file,
 * which is c->file. */
int ty_cursor_next(ty_cursor *c, ty_cursor_record *out, ty_error *err);

/* Between hold and rewind records are looked at without being passed: the end comes when those at hand are through, but
 * for the first, which is waited for. Before the first ty_cursor_next only. */
void ty_cursor_hold(ty_cursor *c);
void ty_cursor_rewind(ty_cursor *c);

#endif
