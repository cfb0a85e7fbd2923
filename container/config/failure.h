/* failure.h - the last words of a training job: /opt/ml/output/failure.
 *
 * The platform shows its first 1,024 characters as the job's FailureReason, so the text is composed to fit, most useful
 * sentence first:
 *
 *     E0520 rank 3 (algo-2): train.py: exit code 3
 *     at: host algo-2, rank 3, phase train, step 812, 2026-03-14T09:30:12.804Z
 *     ... the last lines of that rank's stderr, as many as fit ...
 *     help: look at the rank's own lines above
 *
 * It is written once. Whoever was first wins: a user's program may have put its own reason there, and then nothing is
 * changed. The machine-readable twin, failure.json, carries the same record in full and is written beside it.
 * Control characters are removed and credentials masked (redact.h) before anything is written.
 */
#ifndef TY_CONTAINER_CONFIG_FAILURE_H
#define TY_CONTAINER_CONFIG_FAILURE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TY_FAILURE_MAX_BYTES 1024

/* What happened. Any pointer may be NULL and any number may be negative: that part is left out. Nothing is kept. */
typedef struct ty_failure {
    const ty_error *error;   /* code, message, place and help */
    const char *host;        /* of the culprit, as in resourceconfig.json */
    int rank;                /* of the culprit */
    bool names_culprit;      /* the error's message begins with who it was, and says how it ended: told once */
    const char *phase;       /* "config", "compile", "train" ... */
    int64_t step;            /* last step that was finished */
    int exit_status;         /* the culprit's, 128 + n for signal n */
    int64_t time_ms;         /* since 1970, UTC */
    const char *stderr_tail; /* what the culprit wrote last, any length, any bytes */
} ty_failure;

/* A record in which everything is left out. */
ty_failure ty_failure_none(void);

/* Composes the text into `out`, at most TY_FAILURE_MAX_BYTES and the NUL; returns its length. Always valid UTF-8. */
size_t ty_failure_text(const ty_failure *failure, char out[TY_FAILURE_MAX_BYTES + 1]);

typedef enum ty_failure_outcome {
    TY_FAILURE_WRITTEN,
    TY_FAILURE_KEPT, /* a file with content was already there and stays */
} ty_failure_outcome;

/* Writes `path` and `json_path` (NULL: no twin), each complete or not at all, and flushed to the disk. `outcome`, which
 * may be NULL, tells about `path`. An existing empty file counts as none. Fails if the folder cannot be written. */
int ty_failure_write(const ty_failure *failure, const char *path, const char *json_path, ty_failure_outcome *outcome,
                     ty_error *err);

#endif
