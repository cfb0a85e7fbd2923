/* fifo.h - one FIFO of a channel in Pipe mode, opened without hanging and read with a limit to patience.
 *
 * Opened for reading and not blocking: a FIFO that nobody writes to yet gives 0 bytes, which is not its end, so that 0
 * is believed only after poll() has seen a writer. It may not exist yet when it is wanted; it is looked for again after
 * 1, 2, 4 ... 50 ms.
 */
#ifndef TY_CONTAINER_INPUT_STREAM_FIFO_H
#define TY_CONTAINER_INPUT_STREAM_FIFO_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ty_fifo {
    const char *path;   /* borrowed */
    int stop_fd;        /* readable: give up */
    int64_t timeout_ms; /* of each wait */
    int fd;             /* -1: not open */
    bool has_writer;    /* one has been seen */
} ty_fifo;

/* 1, 0 if it was told to stop, -1: TY_E_CHANNEL, naming the path and what was waited for. path, stop_fd and timeout_ms
 * are set. */
int ty_fifo_open(ty_fifo *f, ty_error *err);
/* Up to n bytes, as many as come without a pause: 1 with *got (0 at the end of the epoch), 0 if it was told to stop,
 * -1.
 */
int ty_fifo_read(ty_fifo *f, uint8_t *out, size_t n, size_t *got, ty_error *err);
/* Closes it: whether a writer had it open. A FIFO that had none may be opened again. */
bool ty_fifo_close(ty_fifo *f);

#endif
