/* inside.h - what the parts of an opened GPU program know of each other, and nobody else.
 *
 *     cuda.c       building it and giving it back
 *     prepare.c    library calls made ready
 *     tape_run.c   states up and down, runs as graphs
 *     capture.c    a tape's calls with their marks and waits, one by one or caught as a graph
 *     by_call.c    runs call by call: timed, or looked at
 */
#ifndef TY_TARGET_CUDA_INSIDE_H
#define TY_TARGET_CUDA_INSIDE_H

#include "compiler/target/cuda/cuda.h"
#include "compiler/target/cuda/exchange.h"
#include "compiler/target/cuda/feed.h"
#include "compiler/target/cuda/frame.h"
#include "compiler/target/cuda/library.h"
#include "compiler/target/cuda/memory.h"
#include "compiler/target/cuda/tape.h"

/* An output of a tape: on the GPU, and the host's copies, which runs use in turn. */
typedef struct cuda_output {
    ty_val value;
    CUdeviceptr from;
    char *to[TY_CUDA_IN_FLIGHT];
    size_t bytes;
} cuda_output;

typedef struct cuda_program {
    ty_cuda_tape tape;
    ty_cuda_frame frame;           /* what a run asks for around it */
    ty_cuda_library_call *library; /* by call */
    CUfunction *function;          /* by kernel */
    void ***parameter;             /* by call, of a launch: pointers to the addresses that it is given */
    cuda_output *output;           /* by number in the frame */
    CUgraphExec graph;
    CUevent done[TY_CUDA_IN_FLIGHT]; /* TY_CUDA_EVENT_DONE */
    long started, finished;          /* runs */
    CUevent *clock;                  /* around calls, for timed runs; NULL: there was none */
} cuda_program;

struct ty_cuda {
    ty_arena arena;
    ty_cuda_options opt;
    const ty_plan *const *plan;
    int n_plans;
    const ty_graph *g;
    ty_gpu gpu;
    size_t free_bytes; /* of the GPU, before any was asked for */
    ty_cuda_libraries libraries;
    cuda_program *program; /* by plan */
    ty_ktexts texts;
    ty_cuda_code code;
    CUmodule module[TY_CUDA_MAX_UNITS];
    int n_modules;
    ty_cuda_memory memory;
    ty_feed feed;
    ty_cuda_exchanges exchanges;
    char *pinned; /* host memory of all outputs */
    char *look;   /* a copy of the slab on the host, for runs that are looked at; NULL until then */
    ty_cuda_report report;
};

/* Makes the library calls of all tapes ready, those of most arithmetic first. What the libraries refuse together with
 * what follows it is err->which (compiler/apart.h), all of it. */
int ty_cuda_prepare(ty_cuda *c, ty_error *err);
CUstream ty_cuda_stream_of(const ty_cuda *c, ty_cuda_stream stream);
/* Asks for marks and waits. */
int ty_cuda_ask_syncs(ty_cuda *c, const cuda_program *p, const ty_cuda_sync *sync, int n, ty_error *err);
/* Asks for one call of the tape with the marks and waits around it; in a capture they become nodes and what orders
 * them. */
int ty_cuda_issue(ty_cuda *c, const cuda_program *p, int number, ty_error *err);
/* Runs each library call once, then each exchange, on whatever memory holds: code is loaded and replicas are connected
 * when a call first runs, which a capture must not do. All replicas at the same time. */
int ty_cuda_warm(ty_cuda *c, const cuda_program *p, ty_error *err);
/* The tape as p->graph. */
int ty_cuda_capture(ty_cuda *c, cuda_program *p, ty_error *err);
/* The inputs that the tape reads, and after the run its outputs with the mark of its end. */
int ty_cuda_send(ty_cuda *c, cuda_program *p, const void *const *inputs, ty_error *err);
int ty_cuda_fetch_outputs(ty_cuda *c, cuda_program *p, ty_error *err);

#endif
