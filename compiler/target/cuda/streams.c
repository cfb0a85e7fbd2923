/* streams.c - see streams.h. */
#include "compiler/target/cuda/streams.h"

const char *ty_cuda_stream_text(ty_cuda_stream stream)
{
    static const char *const text[TY_CUDA_N_STREAMS] = {
        [TY_CUDA_STREAM_MAIN] = "main", [TY_CUDA_STREAM_EXCHANGES] = "exchanges", [TY_CUDA_STREAM_BATCHES] = "batches"};
    return text[stream];
}

void ty_cuda_sync_print(const ty_cuda_sync *s, ty_buf *out)
{
    static const char *const event[TY_CUDA_N_EVENTS] = {[TY_CUDA_EVENT_READY] = "ready",
                                                        [TY_CUDA_EVENT_OVER] = "over",
                                                        [TY_CUDA_EVENT_ARRIVED] = "arrived",
                                                        [TY_CUDA_EVENT_TAKEN] = "taken",
                                                        [TY_CUDA_EVENT_DONE] = "done"};
    ty_buf_addf(out, "%s %s %s", ty_cuda_stream_text(s->stream), s->awaits ? "await" : "record", event[s->event]);
    if (s->event == TY_CUDA_EVENT_OVER)
        ty_buf_addf(out, " %d", s->number);
}
