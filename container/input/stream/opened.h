/* opened.h - what is behind a ty_stream. Private to this folder. */
#ifndef TY_CONTAINER_INPUT_STREAM_OPENED_H
#define TY_CONTAINER_INPUT_STREAM_OPENED_H

#include "container/input/records.h"
#include "container/input/stream/cursor.h"
#include "container/input/stream/pipe.h"
#include "container/input/stream/stream.h"

#include <pthread.h>

typedef struct stream_opened {
    ty_stream stream;
    ty_arena arena;
    records_impl records;
    ty_field_info *field;  /* [stream.n_fields]: the records', then crosses of them */
    const ty_field *cross; /* [stream.n_fields - records.n_fields] */
    int **crossed;         /* of each cross: [n_cross] numbers of the crossed fields */
    int mixed;             /* field whose pictures are mixed; -1: none */
    const ty_data_file *files;
    int n_files;
    bool is_pipe;
    ty_pipe pipe;
    int64_t fifo; /* number of the one that the cursor is in */
    int64_t timeout_ms;
    size_t block_bytes, memory_bytes;
    ty_cursor cursor;
    bool has_first; /* what the first record decides is settled */
    bool is_fresh;  /* the cursor stands at the beginning of a FIFO that nobody has been given records of */
    bool has_feed;
    pthread_mutex_t lock; /* guards what follows and, where it changes, the cursor's source */
    bool stopping;
} stream_opened;

/* Where a record of a batch, or of the shuffle buffer, lies and where it comes from. */
typedef struct stream_record {
    size_t offset, n;   /* in the bytes it lies in */
    int64_t number;     /* in its epoch */
    int64_t record, at; /* in its file */
    int64_t file;       /* of files; or number of the FIFO */
} stream_record;

/* A draft's: records as bytes, until they are decoded. */
typedef struct stream_batch {
    uint8_t *bytes;
    size_t n_bytes, room;
    stream_record *record; /* [n_rows] */
    int64_t n_records;
    stream_record *other; /* [n_other]: all records of the global batch, other shards' too; NULL: they are not needed */
    int64_t n_other;
    void **other_row; /* [n_fields]: of another that is mixed in; NULL: nothing is mixed */
    records_look look;
    bool has_look;
} stream_batch;

/* A cursor at the beginning of these files, or of the next FIFO. 1, 0: was told to stop, -1. */
int stream_begin(stream_opened *s, const int *which, int n_files, ty_error *err);
/* Gives the epoch's bytes up, read or not. */
void stream_end(stream_opened *s);
/* "train.tfrecord: record 3 at byte 120", "train.libsvm:4". Returns out. */
const char *stream_place(const stream_opened *s, const stream_record *r, char *out, size_t n);

/* cross.c. When the records' fields have types: those of the crosses. */
int stream_settle_crosses(stream_opened *s, ty_error *err);
/* The crosses of one row of a batch, whose other fields are there. */
int stream_put_crosses(const stream_opened *s, int64_t row, void *const *out, ty_error *err);

/* What the first record decides, if that is open: once for each record, until one has (records_kind.first). */
int stream_first(stream_opened *s, const ty_frame *record, const ty_agree *agree, ty_error *err);
/* learn.c. What follows from all records: widths and transforms. */
int stream_learn(stream_opened *s, const ty_stream_config *c, ty_error *err);
/* batch.c. Of a TFRecord's payload: TY_E_DATA_VALUE if its checksum is another. */
int stream_check_sum(const stream_opened *s, const uint8_t *data, size_t n, ty_error *err);

/* n_global: rows of the global batch, where all of them are kept; 0: they are not. mixes: pictures with others of it.
 */
int stream_batch_open(const stream_opened *s, int64_t n_rows, int64_t n_global, bool mixes, stream_batch **out,
                      ty_error *err);
void stream_batch_close(stream_batch *b); /* NULL is fine */
/* A record's bytes, a TFRecord's checksum with them. */
size_t stream_bytes_of(const stream_opened *s, size_t n);
/* is_mine: one of this shard's rows, not only another of the global batch. */
/* Memory that a batch has come to: its records' bytes, and what they are decoded in. */
size_t stream_batch_bytes(const stream_batch *b);
int stream_batch_add(stream_batch *b, const stream_opened *s, const uint8_t *data, const stream_record *r, bool is_mine,
                     ty_error *err);
/* Decodes a batch to the first rows of out, those that are right; tells how many. */
int stream_decode(stream_opened *s, const ty_stream_order *order, ty_position at, stream_batch *b, int64_t *samples,
                  void *const *out, int64_t *n_valid, ty_error *err);

#endif
