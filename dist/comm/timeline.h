/* timeline.h - when a rank carried out what, for people: a file that chrome://tracing and Perfetto show.
 *
 *     TRAINYARD_TIMELINE=/tmp/lines          or .timeline of ty_comm_options: the folder
 *     /tmp/lines/collectives-rank-00002.json of rank 2: one object in the Trace Event Format
 *
 * Each comm has two lanes: what its thread carried out, with kind, bytes and the time that the call stood in line, and
 * what the program waited for. Times are microseconds of the day's clock, so that the events of several ranks can be
 * put into one file; process ids are ranks. At most TIMELINE_MAX_EVENTS are kept, the first ones.
 */
#ifndef TY_DIST_COMM_TIMELINE_H
#define TY_DIST_COMM_TIMELINE_H

#include "base/error.h"
#include "dist/comm/comm.h"

#define TY_TIMELINE_VARIABLE "TRAINYARD_TIMELINE"

enum { TIMELINE_MAX_EVENTS = 200000 };

typedef struct ty_timeline ty_timeline;

/* Makes the folder where it is not there. Several comms of a rank share one; NULL is fine below. */
int ty_timeline_open(const char *folder, int rank, ty_timeline **out, ty_error *err);
ty_timeline *ty_timeline_share(ty_timeline *t);
/* The last one to leave ends the file. */
void ty_timeline_close(ty_timeline *t);

/* A collective: all times by ty_clock_ns. stream: the comm's number. */
typedef struct ty_timeline_call {
    const ty_collective *what;
    int64_t bytes, begun_ns, start_ns, end_ns;
} ty_timeline_call;
void ty_timeline_carried(ty_timeline *t, int stream, const ty_timeline_call *call);
void ty_timeline_waited(ty_timeline *t, int stream, const char *name, int64_t start_ns, int64_t end_ns);

#endif
