/* agent.h - one process a host that makes ranks of hosts, and one job of ranks.
 *
 * The worker of each host calls ty_agent_run once; it returns when the job is over, on all hosts with the same story.
 * Every host works the same options out of the same files: nothing that is to be executed ever comes from the network.
 *
 *     meet      the first host of the list leads: it listens, the others knock until it opens. Both sides prove
 *               that they have the job's secret, then tell who they are (meeting.h)
 *     look      who reaches whom, how fast; shared memory, limits, clocks; printed as one table (preflight.h)
 *     launch    the leader says start: each agent forks its ranks (ranks.h) and exchanges what they publish
 *     watch     ends of children, links, a heartbeat, the ranks' pages (watch.h)
 *     end       every host is told the same end: all ranks returned 0, or who was first to fail, or a stop
 *     again     after a failure, if asked: all ranks of all hosts are started anew, the agents stay
 *
 * Abort is a mark on the ranks' pages and TERM to their process groups, KILL two seconds later. The first culprit is
 * decided by the leader, in the order in which it learns of failures within a short moment, death by signal before a
 * status (a rank whose peer was killed often leaves with an error of its own), and everybody reports that one.
 *
 * One thread, one epoll. The caller's signals are left alone: `stopping` is asked ten times a second. When the first
 * host of any is asked to stop, the ranks of all hosts get TERM, and from then on ranks that end are no failures. But a
 * rank that was killed, or left before it had finished, is one that the others wait for in vain: they are told, by a
 * mark on their pages, not to. Who is asked while hosts are missing tells those that are there, and stays for a moment
 * (leave_ms) for those that are about to come: nobody waits for the rest.
 */
#ifndef TY_DIST_AGENT_AGENT_H
#define TY_DIST_AGENT_AGENT_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TY_AGENT_PORT \
    7777 /* control link: the leader listens there; the others on theirs for the look at the network */

typedef struct ty_agent_host {
    const char *name; /* "algo-1"; unique */
    int ranks;   /* on this host, 0 or more; at least one in all. Ranks are numbered host by host, in the order of the
                    list */
    int servers; /* of these ranks: the last so many are parameter servers */
    const char *address; /* numeric, in place of looking the name up; NULL: getaddrinfo(name). For tests on one machine
                          */
    int port;            /* 0: that of the options */
} ty_agent_host;

/* Something that must be the same on all hosts, or the job would hang or go wrong later: "program", "recipe",
 * "Open MPI". Different values are refused, naming both sides. */
typedef struct ty_agent_fact {
    const char *name, *value; /* up to 63 and 255 bytes */
} ty_agent_fact;

typedef struct ty_agent_options {
    const char *job;                            /* name of the job, the same on all hosts */
    const void *secret;                         /* the job's secret: link.h tells where it may come from */
    size_t secret_bytes;                        /* at least 1 */
    const ty_agent_host *hosts;                 /* [n_hosts], in the same order on all of them: the first one leads */
    int n_hosts, self;                          /* self: index of ours */
    const char *interface;                      /* user's or platform's wish ("eth0"); NULL: chosen (address.h) */
    const char *platform_interface;             /* what resourceconfig.json says, second choice; NULL: nothing */
    int port;                                   /* 0: TY_AGENT_PORT */
    const ty_agent_fact *facts;                 /* [n_facts]; those of the machine (versions) are added by the agent */
    int n_facts;                                /* at most 16 */
    const char *const *argv;                    /* of a rank, NULL-terminated; argv[0] with a '/', or found in PATH */
    const char *const *envp;                    /* base environment of a rank; what ranks need is added to it */
    const char *tf_config;                      /* TF_CONFIG of this host's ranks; NULL: none is set */
    int master_port;                            /* MASTER_PORT of the ranks; 0: 29500 */
    bool without_mpi;                           /* ranks are no MPI programs: no PMIx server */
    const char *mpirun_client;                  /* argv is mpirun, which runs on the first host (1 rank there, 0 on all
                                                 * others) and starts its own ranks on the others through this program:
                                                 * the command line of remote.h's client. NULL: argv are the ranks */
    bool terminal;                              /* their standard output is a pseudo terminal, as under mpirun */
    bool quiet;                                 /* the ranks' lines are not shown on this host */
    bool gather;                                /* the leader shows the lines of all ranks; true */
    const char *cwd;                            /* NULL: ours */
    const char *record_folder;                  /* where the ranks' last operations are written at an abort; NULL */
    int meet_ms, link_ms;                       /* until all are there (600 s); until a silent host is lost (10 s) */
    int leave_ms;                               /* a stop before all are there: for those still to be told; 2 s */
    int stall_warn_ms, stall_end_ms;            /* 60 s, 600 s; 0: never */
    int grace_ms;                               /* abort: from TERM to KILL; 2 s */
    int stop_ms;                                /* stop: from TERM to KILL; 110 s */
    int max_restarts;                           /* whole-job restarts after a failure; 0: none */
    int restart_ms;                             /* pause before the first one, doubled each time; 1 s */
    bool preflight;                             /* look at the network first (2 s at most); true */
    bool (*stopping)(void *ctx);                /* asked from the agent's thread; NULL: never */
    void (*between)(void *ctx, int generation); /* before ranks start, all earlier ones being gone; NULL: nothing */
    void *ctx;
} ty_agent_options;

#define TY_AGENT_DEFAULTS                                                                                      \
    {                                                                                                          \
        .meet_ms = 600000, .link_ms = 10000, .leave_ms = 2000, .stall_warn_ms = 60000, .stall_end_ms = 600000, \
        .grace_ms = 2000, .stop_ms = 110000, .restart_ms = 1000, .preflight = true, .gather = true,            \
    }

#define TY_CULPRIT_TEXT_BYTES 768

/* Who was first to fail: the same on every host, but for `pid`, which means something on `host` alone. */
typedef struct ty_culprit {
    int rank; /* -1: no single rank (a lost host, a host that could not start) */
    int host; /* index; -1: none */
    pid_t pid;
    int signal;      /* that killed it; 0 */
    int exit_status; /* as a shell says it: 128 + signal; what ty_agent_end.status becomes */
    int64_t step;    /* -1: unknown */
    char phase[16];
    char text[TY_CULPRIT_TEXT_BYTES]; /* one sentence: "rank 5 (algo-2, pid 312) was killed by signal 9 in step 812;
                                         ..." */
} ty_culprit;

typedef struct ty_agent_end {
    int status;     /* of the job: 0, or the culprit's exit status, or the highest status of ranks that were stopped */
    bool failed;    /* culprit is set */
    bool stopped;   /* somebody asked for it */
    int generation; /* of the last ranks: so many restarts came before them; -1: no rank was ever started */
    ty_culprit first; /* of the last generation */
} ty_agent_end;

/* -1: the job never began, or this agent itself cannot go on: not all hosts arrived (the reasons, host by host), they
 * differ, the port is taken ... The ranks of this host, if there were any, are gone when it returns, in every case. */
int ty_agent_run(const ty_agent_options *o, ty_agent_end *end, ty_error *err);

#endif
