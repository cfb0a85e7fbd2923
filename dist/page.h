/* page.h - what a rank is doing, for whoever has to explain why nobody gets on.
 *
 * Each rank owns one page of shared memory. The rank writes it with plain stores: no lock, no system call, nothing that
 * can wait. The agent of its host reads it once a second, also when the rank is stopped, spins in a library or is dead:
 * the last thing it wrote is still there.
 *
 *     ty_page *page = ty_page_from_environment();      NULL if nobody watches: all calls accept that
 *     ty_page_phase(page, TY_PHASE_DATA);
 *     ty_page_step(page, 812);
 *     ty_page_begin(page, stream, 7315, "all-reduce", "dense_2/kernel..", bucket, bytes);   the collective begins
 *     ty_page_end(page, stream);                                                            all of it is here
 *
 * A stream is one communicator: its operations are begun in the same order by all ranks, and numbered from 1. That is
 * what makes "rank 3 has not begun number 7315, which all others wait in" a fact and not a guess. Each stream has one
 * writing thread; phase, step and error have one as well, perhaps another.
 *
 * Beside what goes on now the page keeps the last 1024 operations of the rank, the flight recorder: they are written
 * out when a job is ended by force.
 *
 * The memory has no name in any file system (memfd): it is gone when the last process that has it is gone. Ranks open
 * it as /proc/<pid of the agent>/fd/<number>, which TRAINYARD_PAGE holds.
 */
#ifndef TY_DIST_PAGE_H
#define TY_DIST_PAGE_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define TY_PAGE_VARIABLE    "TRAINYARD_PAGE"
#define TY_PAGE_STREAMS     4
#define TY_PAGE_RING        1024
#define TY_PAGE_KIND_BYTES  24
#define TY_PAGE_NAME_BYTES  64
#define TY_PAGE_ERROR_BYTES 256

/* What a rank is at, between two steps of its own code. */
typedef enum ty_phase {
    TY_PHASE_NONE, /* it has not said anything yet: a program that does not know the page, or one that still starts */
    TY_PHASE_START,
    TY_PHASE_COMPILE,
    TY_PHASE_DATA, /* waits for a batch */
    TY_PHASE_STEP,
    TY_PHASE_EVALUATE,
    TY_PHASE_SAVE,
    TY_PHASE_FINISHED, /* it has no more steps to do */
    TY_PHASE_SERVE,    /* a parameter server: others train */
    TY_PHASES
} ty_phase;

const char *ty_phase_name(ty_phase phase); /* "data"; "unknown" for a number that is none */

typedef struct ty_page ty_page;

/* The agent's side: a fresh page, its descriptor (the agent keeps it open while ranks may come), and the name under
 * which other processes of this host open it. */
int ty_page_new(ty_page **page, int *fd, ty_error *err);
void ty_page_path(int fd, char out[64]);

/* The job has failed, and the rank is told to end (TERM): for whoever asks whether it is a stop that it may take its
 * time for. */
void ty_page_abort(ty_page *page);
bool ty_page_is_aborted(const ty_page *page);

/* The rank's side. TY_E_NOT_FOUND, TY_E_PERMISSION ...: no page there; TY_E_DATA: not a page, or another version's. */
int ty_page_open(const char *path, ty_page **page, ty_error *err);
/* The page that TRAINYARD_PAGE names; NULL without one, and where it cannot be opened: nothing depends on being seen.
 */
ty_page *ty_page_from_environment(void);
void ty_page_close(ty_page *page); /* NULL is fine, as for all below */

void ty_page_phase(ty_page *page, ty_phase phase);
void ty_page_step(ty_page *page, int64_t step);
void ty_page_error(ty_page *page, const char *text); /* the first one stays; cut at 255 bytes */
/* number: of the operation in its stream, from 1, each one greater than before. bucket: -1 for none. Texts are cut. */
void ty_page_begin(ty_page *page, int stream, uint64_t number, const char *kind, const char *name, int bucket,
                   int64_t n_bytes);
void ty_page_end(ty_page *page, int stream);

/* What the reader gets. Times are milliseconds before the moment of reading, so that they mean the same on every host.
 */
typedef struct ty_page_stream_view {
    uint64_t begun, ended; /* numbers of the last operation begun and of the last one ended; 0: none */
    int64_t begun_ms;      /* since the last one began */
    int64_t n_bytes;
    int32_t bucket;
    char kind[TY_PAGE_KIND_BYTES], name[TY_PAGE_NAME_BYTES];
} ty_page_stream_view;

typedef struct ty_page_view {
    ty_phase phase;
    int64_t phase_ms; /* since it began */
    int64_t step;     /* -1: none yet */
    bool has_error;
    char error[TY_PAGE_ERROR_BYTES];
    ty_page_stream_view streams[TY_PAGE_STREAMS];
} ty_page_view;

/* Never fails and never waits: what a rank is just writing is read as it was before or after, texts of an operation
 * that begins in this very moment may be empty. Bytes from the rank are checked: numbers are in range, texts end. */
void ty_page_read(const ty_page *page, ty_page_view *out);

/* One operation of the ring. */
typedef struct ty_page_op {
    uint64_t number;
    int64_t step, n_bytes;
    int64_t begun_us, ended_us; /* monotonic clock of the host (base/clock.h); ended 0: it has not */
    int32_t stream, bucket;
    char kind[TY_PAGE_KIND_BYTES], name[TY_PAGE_NAME_BYTES];
} ty_page_op;

/* The ring's operations, oldest first, at most `max` of the newest; returns how many. */
int ty_page_ring(const ty_page *page, ty_page_op *out, int max);

#endif
