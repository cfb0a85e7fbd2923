/* spans.h - the records of all files of a data set, looked at by several threads and put together in order. Private to
 * dataset_records.c and records_*.c.
 *
 * Files are cut into spans. Threads look ahead: each takes a span, finds the first record that begins in it, and looks
 * at all that do. One thread, the caller, takes spans in order. What it finds there counts if the span before ended
 * where this one was taken to begin and nothing was out of the ordinary: no fault, and nothing that depends on records
 * before. Every other span it walks again itself, from where the one before ended, as it would walk all of them if it
 * were alone. So faults are found in order, by the same code, whatever the number of threads, and a record that was
 * mistaken for two (a file within a record) costs time but no result.
 *
 * Where a span begins: of lines behind a line end. Of TFRecord where a length has the checksum behind it that it should
 * have; of RecordIO where the magic stands at a multiple of four before a first part.
 */
#ifndef TY_CONTAINER_INPUT_SPANS_H
#define TY_CONTAINER_INPUT_SPANS_H

#include "container/input/records.h"

typedef struct records_span {
    const struct records_spans *all;
    records_file *file;
    size_t from, to;   /* records whose frames begin in there */
    size_t end;        /* where the record behind the last of them begins */
    int64_t n_numbers; /* that they take; lines: blank ones are counted */
    int64_t first;     /* number of its first record, when it is taken */
    bool is_clean;     /* nothing was out of the ordinary */
    void *found;       /* by `ahead`, for `take` */
} records_span;

/* What is done with records. ctx is the caller's. */
typedef struct records_spans {
    const records_impl *impl;
    ty_frames *frames; /* of the caller's own walk */
    int n_threads;
    size_t bytes; /* of a span; 0: as it thinks fit */
    void *ctx;
    /* No thread runs: what the caller knows now is what they look ahead with. NULL: nothing. */
    void (*begin)(const struct records_spans *s);
    /* How much the caller knows. Where that has risen, `begin` comes before more is looked at ahead. NULL: always 0. */
    int (*known)(const struct records_spans *s);
    /* Any thread: all of a span, which fills span->found, end and n_numbers. False: something was out of the ordinary;
     * nobody looks at what was found. */
    bool (*ahead)(records_span *span);
    /* In order. */
    int (*take)(records_span *span, ty_error *err);
    /* In order: records from s->frames->at on that begin before `to`. */
    int (*redo)(const struct records_spans *s, records_file *file, size_t to, ty_error *err);
    void (*fini)(records_span *span); /* frees span->found, which may be NULL. NULL: free() */
} records_spans;

/* All records of all files. */
int records_spans_run(const records_spans *s, ty_error *err);

/* For `ahead`: makes `frames`, which is zeroed but for how, stand before the first record. False: none begins there. */
bool records_span_begin(records_span *span, ty_frames *frames);
/* The next one that begins in the span; as ty_frames_next, for nobody who would read why not. */
int records_span_next(const records_span *span, ty_frames *frames, ty_frame *out);
/* Notes where `frames` stands now; returns is_clean. */
bool records_span_end(records_span *span, const ty_frames *frames, bool is_clean);

#endif
