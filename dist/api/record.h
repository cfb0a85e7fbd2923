/* record.h - what rank 0 does for all: files, and the line of metrics. */
#ifndef TY_DIST_API_RECORD_H
#define TY_DIST_API_RECORD_H

#include "base/buf.h"
#include "dist/api/channel.h"

#include <stddef.h>
#include <stdint.h>

#define TY_RECORD_READ_BYTES (UINT64_C(16) << 30)
#define TY_RECORD_METRICS    64
#define TY_RECORD_LINE_BYTES 4096 /* a pipe takes that much in one piece */

/* A file to write; or one that was read: malloc'ed, NULL where there is none. */
typedef struct ty_record {
    const char *path;
    const void *bytes;
    void *got;
    size_t n_bytes;
} ty_record;

/* Whole and durable, with its folder. TRAINYARD_E_FILE. */
int ty_record_write(const ty_record *r, ty_error *err);
/* Fills `got` and n_bytes. *is_there is false for a file that does not exist, which is no failure. */
int ty_record_read(ty_record *r, bool *is_there, ty_error *err);
/* Of a call of kind TY_CALL_READ `with` a record, which rank 0 has read: all get its bytes. */
int ty_record_share(ty_channel *channel, ty_call *call, ty_error *err);

/* Names are such as a metric line bears. */
int ty_record_check_metrics(const char *const *names, const double *values, int n, ty_error *err);
/* "step=1200 epoch=3 loss=0.23417\n"; no epoch below 0. */
int ty_record_metrics_line(ty_buf *line, int64_t step, int64_t epoch, const char *const *names, const double *values,
                           int n, ty_error *err);

#endif
