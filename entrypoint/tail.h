/* tail.h - the last bytes of a stream, bounded, and the last lines of them made fit for a report.
 *
 * A user's program may print megabytes before it fails; what explains the failure is at the end. The supervisor passes
 * every byte on and keeps the last TY_TAIL_BYTES of them here.
 *
 * Invariant: bytes[] holds the last min(total, TY_TAIL_BYTES) bytes, oldest at `total % TY_TAIL_BYTES` once it is full.
 */
#ifndef TY_ENTRYPOINT_TAIL_H
#define TY_ENTRYPOINT_TAIL_H

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

#define TY_TAIL_BYTES 8192

typedef struct ty_stderr_tail {
    uint64_t total; /* bytes ever added */
    char bytes[TY_TAIL_BYTES];
} ty_stderr_tail;

void ty_stderr_tail_add(ty_stderr_tail *t, const char *bytes, size_t n);
/* Appends to `out` as many of the last lines as fit into max_bytes, oldest first, joined by '\n', without a final one.
 * Escape sequences of terminals and control characters are removed, a carriage return counts as a line end (progress
 * bars), empty lines and repetitions of the line before are left out, bytes that are no UTF-8 become '?'. If even the
 * last line is too long, its end is kept. */
void ty_stderr_tail_lines(const ty_stderr_tail *t, size_t max_bytes, ty_buf *out);

#endif
