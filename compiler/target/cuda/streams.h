/* streams.h - what orders a run's work on a GPU: streams, and the events by which one waits for another.
 *
 * Work of a stream is done in the order in which it was asked for. Between streams there is an order only where one
 * waits for a point of another that was marked: an event is recorded on the one and awaited on the other. All marks and
 * waits of a run are data, of its tape (tape.h) and of what stands around that (frame.h); they are asked for as they
 * stand there, and printed as
 *
 *     batches record arrived
 *     main await over 3
 */
#ifndef TY_TARGET_CUDA_STREAMS_H
#define TY_TARGET_CUDA_STREAMS_H

#include "base/buf.h"

#include <stdbool.h>

/* MAIN: all that computes. EXCHANGES: with other replicas (exchange.h). BATCHES: copies of batches (feed.h). */
typedef enum ty_cuda_stream {
    TY_CUDA_STREAM_MAIN,
    TY_CUDA_STREAM_EXCHANGES,
    TY_CUDA_STREAM_BATCHES,
    TY_CUDA_N_STREAMS
} ty_cuda_stream;

/* Two runs may be under way, so there are two of each but READY and OVER, which runs use in turn. */
typedef enum ty_cuda_event {
    TY_CUDA_EVENT_READY,   /* what the next exchange reads has been computed */
    TY_CUDA_EVENT_OVER,    /* an exchange, by its number in the tape */
    TY_CUDA_EVENT_ARRIVED, /* a batch, on the GPU */
    TY_CUDA_EVENT_TAKEN,   /* the same, to where the tape reads it: another may arrive in its place */
    TY_CUDA_EVENT_DONE,    /* the run: its outputs are on the host */
    TY_CUDA_N_EVENTS
} ty_cuda_event;

typedef struct ty_cuda_sync {
    ty_cuda_stream stream;
    bool awaits; /* else it records */
    ty_cuda_event event;
    int number; /* OVER: of the exchange */
} ty_cuda_sync;

const char *ty_cuda_stream_text(ty_cuda_stream stream);
/* `main await over 3`, without an end of line. */
void ty_cuda_sync_print(const ty_cuda_sync *sync, ty_buf *out);

#endif
