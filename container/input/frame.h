/* frame.h - where records begin and end in bytes that lie in memory.
 *
 * Sources: TFRecord: tensorflow/core/lib/io/record_writer.h. RecordIO: dmlc-core doc/recordio.md. A record is what lies
 * between two frames; nobody here looks into it. Lengths are held against what is there before they are believed.
 *
 *     ty_frames f = {.bytes = bytes, .n = n, .how = TY_FRAMES_TFRECORD};
 *     ty_frame record;
 *     while ((more = ty_frames_next(&f, &record, err)) == 1) ...
 *     ty_frames_fini(&f);
 */
#ifndef TY_CONTAINER_INPUT_FRAME_H
#define TY_CONTAINER_INPUT_FRAME_H

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A record's parts in RecordIO are joined as they are (SageMaker), or with the magic between them, which MXNet's writer
 * cuts out where it splits. Lines end in LF or CRLF, the last one perhaps in neither; blank ones are none, unless all
 * are wanted. */
typedef enum ty_framing {
    TY_FRAMES_TFRECORD,
    TY_FRAMES_RECORDIO,
    TY_FRAMES_RECORDIO_MXNET,
    TY_FRAMES_ROWS,   /* of a table whose columns lie elsewhere: a place in memory each, at which nothing is read */
    TY_FRAMES_PACKED, /* the same, each row with its values (parquet/packing.h): of no file, but of what a stream keeps
                       */
    TY_FRAMES_LINES,
    TY_FRAMES_ALL_LINES
} ty_framing;

/* Records are lines: their numbers are those of lines. */
static inline bool ty_frames_are_lines(ty_framing how)
{
    return how >= TY_FRAMES_LINES;
}

#define TY_FRAME_MAX_BYTES ((uint64_t)1 << 30)

typedef struct ty_frames {
    const uint8_t *bytes;
    size_t n;
    ty_framing how;
    bool unchecked; /* TFRecord: checksums of payloads are not looked at */
    bool more;      /* other bytes follow these: a record that does not end here is no fault */
    size_t base;    /* where they begin in the file */
    size_t at;      /* of the next record; may be set to where one begins */
    int64_t record; /* its number; lines: the number of its line, from 0 */
    ty_buf joined;  /* private: the parts of a record */
    size_t looked;  /* private, lines: bytes behind `at` that have no line end */
} ty_frames;

typedef struct ty_frame {
    const uint8_t *data; /* in the bytes or, joined of parts, in f->joined until the next call */
    size_t n;
    size_t at;      /* where its frame begins in the file: base is counted in */
    int64_t record; /* its number */
} ty_frame;

/* 1 with *out, 0 at the end, -1; with `more` TY_FRAMES_SHORT if the next record does not end within the bytes: f stands
 * before it, and may go on where the bytes from f->at on stand at the front of others. A wrong checksum of a payload is
 * TY_E_DATA_VALUE with *out filled: f stands behind that record and may go on. After any other error it may not. Errors
 * name record and offset; the caller names the file. */
#define TY_FRAMES_SHORT 2
int ty_frames_next(ty_frames *f, ty_frame *out, ty_error *err);
void ty_frames_fini(ty_frames *f); /* a zeroed one is fine */

#endif
