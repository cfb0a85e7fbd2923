/* supervise.h - being PID 1: one child, its signals, its orphans, its end.
 *
 * Guarantees:
 *   - stop signals (TERM INT QUIT HUP) go on to the child's process group at once; the first one starts the grace time,
 * the second shortens it to 5 s, the third ends everything. USR1 USR2 WINCH CONT go on as they are.
 *   - every process that ends below us is reaped; processes that outlive the child get TERM and, after a moment, KILL.
 * During a stop they have the rest of the grace time: `train.sh` dies of TERM at once while the program it started
 * still saves.
 *   - the child's standard error passes through us byte by byte; its end is kept for the failure report.
 *   - between events the process sleeps: no timer, no polling.
 * Works as PID 1 and as any other process (it becomes the reaper of its descendants).
 */
#ifndef TY_ENTRYPOINT_SUPERVISE_H
#define TY_ENTRYPOINT_SUPERVISE_H

#include "base/error.h"
#include "entrypoint/tail.h"

#include <signal.h>
#include <stdbool.h>

typedef struct ty_supervise_options {
    const char *const *argv; /* the child; argv[0] is searched in PATH unless it has a '/' */
    int grace_ms;            /* from the first stop signal to KILL */
    int leftover_ms;         /* for processes that outlive a child which ended by itself, from TERM to KILL */
    const char
        *note_fd_name; /* variable that tells the child the number of a pipe to us, for one note; NULL: no pipe */
} ty_supervise_options;

#define TY_NOTE_BYTES 4096

typedef struct ty_supervise_result {
    int wait_status;       /* of the child, as waitpid() gives it */
    int stop_signal;       /* first stop signal that came, 0 if none */
    bool killed;           /* the grace time ran out: KILL was sent */
    bool memory_exhausted; /* the kernel killed for memory in our control group while the child ran */
    int leftovers;         /* processes that had to be told to go */
    double run_s;
    char note[TY_NOTE_BYTES]; /* what the child wrote into the note pipe; text */
    ty_stderr_tail tail;      /* end of its standard error */
} ty_supervise_result;

/* Blocks the signals that ty_supervise handles. Call it first thing in main: a signal that arrives earlier would be
 * lost, or deadly. `before` receives the mask that the child is to get. */
void ty_supervise_block(sigset_t *before);
/* Starts the child and returns when nothing of it is left. -1 only if it could not be started; *exec_status is then
 * 126, 127 or 71. */
int ty_supervise(const ty_supervise_options *o, const sigset_t *child_mask, ty_supervise_result *result,
                 int *exec_status, ty_error *err);

#endif
