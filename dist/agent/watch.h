/* watch.h - what the leader concludes from what it hears: who failed first, and who keeps all others waiting.
 *
 * Functions of facts and times alone: no socket, no clock, so that every story can be a row of a test.
 *
 * First culprit. Failures come in the order in which hosts notice them, and one of them is the cause of the others: a
 * rank whose peer was killed soon leaves with an error of its own, and it may be the first that is heard of. So the
 * leader asks all hosts after the first failure, and listens until each has told what had ended there or is lost, but
 * for a moment (TY_BLAME_MS) at least. It takes the weightiest, the earliest of these:
 *
 *     a rank killed by a signal that comes from outside or from a fault (KILL, SEGV, BUS, ILL, FPE), a lost host
 *     a rank that called MPI_Abort, or was killed by another signal
 *     a rank that ended with a status of its own
 *
 * Stall. Operations of a stream are numbered alike on all ranks. If a rank waits inside number k and another has not
 * begun k, the other is missing, and its page says what it does instead.
 */
#ifndef TY_DIST_AGENT_WATCH_H
#define TY_DIST_AGENT_WATCH_H

#include "dist/agent/agent.h"
#include "dist/agent/message.h"

enum { TY_BLAME_MS = 250 };

/* What the leader knows of a rank. */
typedef struct ty_rank_state {
    int host;
    bool known, ended; /* a page came; its process is gone */
    bool stopped;      /* by a signal, as a debugger or SIGSTOP does: it will do nothing by itself */
    int64_t heard_ms;  /* when that was, by the leader's clock */
    ty_page_view page;
} ty_rank_state;

typedef enum ty_failure_kind {
    TY_FAILURE_EXIT,  /* a rank, by its exit */
    TY_FAILURE_LOST,  /* a host, by its link */
    TY_FAILURE_FAULT, /* a host, by its own words: it could not start its ranks ... */
    TY_FAILURE_STALL,
} ty_failure_kind;

typedef struct ty_failure {
    ty_failure_kind kind;
    int host;
    ty_exit exit;   /* of TY_FAILURE_EXIT; of a stall only the rank that is missing, -1 for none */
    int status;     /* of the others: exit status of the job */
    char text[512]; /* of the others: "no answer for 10.0 s on eth0 10.0.1.7", or the whole sentence of a stall */
} ty_failure;

/* True if `next`, which came later, is to be blamed rather than `first`. */
bool ty_blame_rather(const ty_failure *first, const ty_failure *next);
/* The culprit as everybody will report it. host_name: [n_hosts]; ranks: [n_ranks], for what was seen last. */
void ty_blame(const ty_failure *failure, const char *const *host_name, const ty_rank_state *ranks, int n_ranks,
              ty_culprit *out);

typedef struct ty_stall {
    int stream;
    uint64_t number;
    int64_t wait_ms;   /* of the longest waiting */
    int first_missing; /* rank, one that a signal has stopped in it or before it first; -1: all have begun, and some do
                          not get through */
    char text[512];
} ty_stall;

/* The longest stall of any stream that lasts at least min_ms; false: none. */
bool ty_watch_stall(const ty_rank_state *ranks, int n_ranks, const char *const *host_name, int64_t now_ms,
                    int64_t min_ms, ty_stall *out);

/* "4 ranks in step 812, all-reduce 7315 (bucket 3)": what a host's ranks did when they were last heard of. */
void ty_watch_last_seen(const ty_rank_state *ranks, int n_ranks, int host, char *out, size_t n);

#endif
