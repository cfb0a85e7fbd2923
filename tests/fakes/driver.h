/* driver.h - what the parts of the stand-in driver know of each other: streams, the context, blocks of memory, graphs.
 *
 *     libcuda.c  which GPUs there are             stream.c  streams and events
 *     driver.c   contexts, the trace              graph.c   captures and graphs
 *     memory.c   memory and copies                kernel.c  modules and launches
 */
#ifndef TY_TESTS_FAKES_DRIVER_H
#define TY_TESTS_FAKES_DRIVER_H

#include "fake.h"

#include <pthread.h>
#include <stdbool.h>

enum { ALIGN = 256, NAME_BYTES = 64, MAX_DEVICES = 8 };

/* What a driver answers. */
enum { INVALID = 1, INVALID_IMAGE = 200, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700, UNJOINED = 904, ISOLATION = 905 };

/* ---- the context ---- */

struct CUctx_st {
    int users; /* of the context */
    int made;  /* contexts, one after the other */
    CUstream streams;
    CUevent events;
    CUgraphExec graphs;
    size_t used_bytes;
    size_t held_bytes;       /* by libraries */
    bool has_code;           /* of libraries */
    int n_graphs;            /* that were started */
    int n_streams, n_events; /* that were made: their numbers in the trace */
    bool broken;             /* nothing runs any more */
};
extern struct CUctx_st devices[MAX_DEVICES];
extern __thread struct CUctx_st *now; /* the current context */
/* Over what devices share: lists of memory and functions, the trace. Never held while work runs. */
extern pthread_mutex_t shared;

int number_now(void);
/* A line of the trace of the current context's device. */
void trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Ends the process if there is no context or this thread's device is captured. */
void no_capture(const char *what);
/* TY_FAKE_RUN=none: all is asked and checked, and nothing is computed or copied. */
bool runs_nothing(void);

/* ---- streams: work in order, done when somebody needs it ---- */

typedef struct work {
    fake_work_fn *run;
    void *given; /* a copy; owned */
    size_t bytes;
    CUstream after; /* not NULL: waits until that stream has come as far as `until`; in a graph, what of it stands in
                       the list before `until` */
    long until;
    CUstream stream; /* in a graph: that it was issued to */
    char text[NAME_BYTES];
} work;

struct CUstream_st {
    CUgraph graph; /* that is being captured, or NULL */
    work *list;    /* all that is not done */
    int n_pending;
    long issued, done;
    long graphs; /* that were started */
    double ms;   /* that all work took, as it says itself */
    bool first;
    int number;
    CUstream next;
};

struct CUevent_st {
    CUstream stream; /* NULL: not recorded */
    long until, graphs;
    double ms;
    CUgraph graph; /* it was recorded in a capture */
    bool timed;
    long stamp_ns;
    int number;
    CUevent next; /* of the same context */
};

/* The stream itself, or the end of the process if it is none of this context. */
CUstream known(CUstream stream, const char *what);
void run_until(CUstream s, long until);
void run_all(void);
void issue(CUstream s, work w);
/* What the driver does itself; fake_do is for libraries. */
unsigned do_work(CUstream stream, fake_work_fn *run, const void *given, size_t bytes, const char *text);

/* ---- graphs ---- */

struct CUgraph_st {
    work *list;
    int n;
    CUstream origin; /* that was captured; others were taken in by events */
    bool ahead;      /* work of the others as early as it may be */
    CUgraph next;    /* of instantiated ones, of the same context */
};

void add_to_graph(CUstream stream, work w);

/* ---- memory ---- */

/* Ends the process if memory of a device is left. */
void no_memory_is_left(int device);

#endif
