/* local_run.h - the hosts of a job that runs on this machine: started, heard, stopped, and how each of them ended.
 *
 * What the platform does with its hosts is done here with children of this process, which are `train` itself or a
 * container engine's client:
 *   - lines of all hosts come out whole, with the host's name in front if there are several, and go to a file a host;
 *   - TERM, INT or HUP to this process is the platform's stop: TERM to every host, KILL after 120 seconds; the second
 *     signal kills at once. So does the end of the job's time;
 *   - a host that ends with another status than 0 fails the job; the others have 10 seconds to end by themselves, since
 *     they have something to say about it, and are then stopped.
 * Nothing that the hosts have started is left when it returns, and no feeder.
 */
#ifndef TY_ENTRYPOINT_LOCAL_RUN_H
#define TY_ENTRYPOINT_LOCAL_RUN_H

#include "base/error.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct ty_local_host {
    const char *name;        /* algo-1 */
    const char *const *argv; /* NULL-terminated */
    const char *const *envp; /* NULL-terminated */
    const char *container;   /* what the engine calls it; NULL: a process */
    const char *log;         /* file for its lines, which is made */
    int first_core, n_cores; /* its share of the cores that this process may use; n_cores 0: all */
    pid_t pid;               /* 0: not started, or ended */
    int status;              /* out: exit status, as a shell says it; -1: it was never started */
} ty_local_host;

/* What feeds a channel of a host: a program that runs until it is told to stop. */
typedef struct ty_local_feeder_of {
    const char *const *argv; /* NULL-terminated */
    const char *channel;
    int host;
    pid_t pid; /* 0: not started, or ended */
} ty_local_feeder_of;

typedef struct ty_local_run {
    ty_local_host *hosts; /* [n_hosts] */
    int n_hosts;
    ty_local_feeder_of *feeders; /* [n_feeders]; one that fails fails its host */
    int n_feeders;
    int64_t max_run_s;                           /* the job's time */
    void (*kill)(const char *container);         /* a container: the client's death is not its own */
    const volatile sig_atomic_t *interrupted;    /* a signal that came before; 0 */
    int first_failed;                            /* out: index of the host that failed first; -1: none */
    int stop_signal;                             /* out: that stopped it; 0: none */
    bool is_out_of_time, mishap_seen, is_killed; /* out */
    double seconds;                              /* out */
} ty_local_run;

/* -1: a host could not be started; those that were are gone. */
int ty_local_run_all(ty_local_run *run, ty_error *err);

#endif
