/* ranks.h - the ranks of one host, from fork to the last line of output.
 *
 * Every process of a data-parallel job is a rank. Ranks are numbered host by host, in the order of the map: with hosts
 * of 2 and 3 ranks, host 1 runs ranks 2, 3 and 4. The agent of each host starts its own ranks and serves them through
 * PMIx (dist/agent/pmix.h), so that a program built against Open MPI finds its peers without mpirun, sshd or a daemon.
 * All that a rank is told about the cluster comes from the one map given here: the table is
 * dist/agent/ranks_environment.c.
 *
 * One thread calls all functions, the thread that lives longest: ranks are sent SIGKILL by the kernel when it ends. All
 * hooks are called from inside ty_ranks_turn(), lines() also from ty_ranks_free(); they may call anything here but
 * these two.
 *
 *     start -> turn ... turn (whenever ty_ranks_fd() is readable) -> free
 *
 * Folders: one for sessions of PMIx and Open MPI ($TMPDIR, else /tmp) and one for shared memory between the ranks of
 * this host (/dev/shm where it can be written, else the same place), both 0700 and named trainyard-ranks-XXXXXX;
 * ty_ranks_free() removes them with all that was left in them. What an agent left that was killed is removed by the
 * next that starts.
 */
#ifndef TY_DIST_AGENT_RANKS_H
#define TY_DIST_AGENT_RANKS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One row of the map. */
typedef struct ty_ranks_host {
    const char *name;    /* "algo-1", unique */
    const char *address; /* of the chosen interface, as text; NULL: the name */
    int ranks;           /* >= 1 */
    int servers;         /* of these: the last so many are parameter servers, beside which the others compute */
} ty_ranks_host;

typedef struct ty_ranks_options {
    const char *job; /* any text */
    int generation;  /* 0, and one more for every restart */
    uint64_t nonce;  /* equal on all hosts, different for each job that could meet another: part of the job's name */
    const ty_ranks_host *hosts; /* equal on all hosts */
    int n_hosts, self;          /* self: which of them is this host */
    const char *interface;      /* "eth0": what MPI, NCCL, UCX and Gloo are bound to; NULL: their own choice */
    int master_port;            /* MASTER_PORT; 0: 29500 */
    const char *tf_config;      /* TF_CONFIG of this host, or NULL: none is set */
    int cores;                  /* of this host; 0: those that this process may use */

    const char *const *argv; /* the program; argv[0] with a '/' is a path, else searched in PATH */
    const char *const
        *envp;       /* what ranks inherit; NULL: our environment. See ty_ranks_environment() for what is added */
    const char *cwd; /* NULL: ours */
    const char *const *page; /* [own ranks] values of TRAINYARD_PAGE, or NULL */
    bool without_mpi;        /* no PMIx server: ranks that are no MPI programs, such as those of a parameter server */
    bool plain; /* not a rank but a launcher of ranks, such as mpirun: its environment and its lines stay as they are */
    bool terminal; /* standard output of ranks is a pseudo terminal, as mpirun gives: programs write line by line */
    bool quiet;    /* do not write the ranks' lines to our stdout and stderr */

    /* Hooks. ctx is handed to each. */
    void *ctx;
    /* All ranks of this host have entered fence number `fence` (0, 1, ... of this generation). Send the blob to all
     * hosts and call ty_ranks_fence_done() with the blobs of all hosts, one after the other in the order of hosts. The
     * bytes are gone when the hook returns. NULL on a single host: answered here. */
    void (*fence)(void *ctx, uint64_t fence, const void *blob, size_t n_bytes);
    /* Whole lines, tagged "[1,3]<stdout>:", each with its newline; fd is 1 or 2. May be NULL. */
    void (*lines)(void *ctx, int rank, int fd, const char *lines, size_t n_bytes);
    /* A process has ended; all that it wrote was handed on before. wait_status as waitpid() gives it. May be NULL. */
    void (*ended)(void *ctx, int rank, pid_t pid, int wait_status);
    /* A rank called MPI_Abort (or PMIx_Abort) with this status; its end follows, with an exit status that means little.
     * text: what was said in PMIx_Abort, mostly "". May be NULL. */
    void (*aborted)(void *ctx, int rank, int status, const char *text);
} ty_ranks_options;

typedef struct ty_ranks ty_ranks;

/* Starts all ranks of host `self`, each in its own process group. Everything in the options is copied but ctx.
 * On failure nothing is left behind. TY_E_NOT_FOUND if the program or the PMIx library is not there. */
int ty_ranks_start(const ty_ranks_options *o, ty_ranks **r, ty_error *err);

/* Readable when there is work for ty_ranks_turn(). */
int ty_ranks_fd(const ty_ranks *r);
/* Does what is to be done now and calls the hooks. Never blocks. */
int ty_ranks_turn(ty_ranks *r, ty_error *err);
/* What has ended by now is told of by the next turn, also where that would have come to it only later. */
void ty_ranks_look(ty_ranks *r);
/* Answers the fence. A number that is not open is ignored (an answer that comes after a restart). */
void ty_ranks_fence_done(ty_ranks *r, uint64_t fence, const void *all, size_t n_bytes);
/* To the process groups of all ranks that have not ended. */
void ty_ranks_signal(ty_ranks *r, int number);
/* How many have not ended. */
int ty_ranks_living(const ty_ranks *r);
/* Process id of a rank of this host; it stays that process's until ty_ranks_free(), also after its end. */
pid_t ty_ranks_pid(const ty_ranks *r, int rank);
/* Writes a line that came from another host as our own ranks' are written (by a thread: never blocks). */
void ty_ranks_show(ty_ranks *r, int fd, const char *lines, size_t n_bytes);
/* More lines wait than should: whoever sends them here had better pause. The descriptor of ty_ranks_fd tells when that
 * is over. */
bool ty_ranks_is_full(ty_ranks *r);
/* While on, output stays in the ranks' pipes, and so the ranks wait that write it; what they wrote before they ended is
 * read nevertheless. */
void ty_ranks_hold(ty_ranks *r, bool on);
/* Kills what lives, with everything in the ranks' process groups, waits for the ranks, hands on the last lines and
 * removes the folders. NULL is fine. */
void ty_ranks_free(ty_ranks *r);

/* Ends what stays between generations: the PMIx server. At the end of the process; ty_ranks_start() would open it anew.
 */
void ty_ranks_shutdown(void);

#endif
