/* agent_state.h - the agent from inside: what its parts share. Internal to dist/agent.
 *
 *     agent.c          options in, the loop, the end out
 *     connection.c     links joined to sockets
 *     agent_meet.c     listening, knocking, who has arrived
 *     agent_lead.c     what the leader makes of what hosts tell it
 *     agent_follow.c   what every host, the leader's too, does on the leader's word
 *     agent_ranks.c    the ranks of this host and their pages
 *
 * The leader's host is a host like the others: what it tells itself goes through a queue, not through a function call,
 * so that nothing happens inside the handling of something else.
 *
 *     MEET -> LOOK -> READY -> RUN -> ENDING -> READY (again) ...  -> OVER
 */
#ifndef TY_DIST_AGENT_AGENT_STATE_H
#define TY_DIST_AGENT_AGENT_STATE_H

#include "base/arena.h"
#include "dist/agent/agent.h"
#include "dist/agent/link.h"
#include "dist/agent/meeting.h"
#include "dist/agent/message.h"
#include "dist/agent/preflight.h"
#include "dist/agent/ranks.h"
#include "dist/agent/remote.h"
#include "dist/agent/resolver.h"
#include "dist/agent/watch.h"

#include <sys/epoll.h>

typedef struct agent agent;

/* What an event of the loop is for. */
typedef struct source {
    void (*ready)(agent *a, void *owner, uint32_t events);
    void *owner;
} source;

typedef struct connection {
    source source;
    ty_link link;
    int fd;
    int host;        /* who it is; -1: has not said */
    bool connecting; /* the socket is not there yet */
    bool last_words; /* closed as soon as everything is sent */
    bool dead;       /* freed at the end of the turn */
    uint32_t watched;
    int64_t born_ms, heard_ms;
    char from[TY_ADDRESS_TEXT_BYTES + 8]; /* "10.0.1.9:40022" */
    struct connection *next;
} connection;

typedef enum phase { PHASE_MEET, PHASE_LOOK, PHASE_READY, PHASE_RUN, PHASE_ENDING, PHASE_OVER } phase;

/* What the leader alone keeps. */
typedef struct leader_state {
    int listen_fd;
    source listen_source;
    ty_arrival *arrivals; /* [n_hosts] */
    connection **member;  /* [n_hosts]; NULL: not there, or our own host */
    bool *gone;           /* [n_hosts]: no rank of this generation is left there */
    ty_look *looks;       /* [n_hosts] */
    int n_looked, n_lost;
    ty_rank_state *ranks; /* [n_ranks] */
    int status;           /* highest of ranks that ended in a stop */
    bool running;         /* ranks of this generation have been started, and are not gone everywhere */
    int generation;       /* that START has named: others may be through with it before our own host has heard of it */
    bool stopping, told_end;
    bool told_alone;           /* a stop: a rank that others wait for is gone */
    int stopped_by;            /* host */
    bool has_failure, decided; /* decided: everybody knows */
    int asked;                 /* the generation that the question named */
    bool *known;               /* [n_hosts]: what had ended there after the first failure has been told */
    ty_failure failure;
    int64_t decide_ms, restart_ms; /* when; 0: not planned */
    ty_culprit culprit;
    int restarts;
    uint64_t fence;                   /* number of the one that is being gathered */
    ty_buf *blobs;                    /* [n_hosts] */
    bool *in_fence;                   /* [n_hosts] */
    uint64_t *lines_got, *lines_told; /* [n_hosts]: bytes of their output, and what of it they were told is taken */
    int64_t stall_told_ms;
    int64_t end_by_ms; /* members have this long to hang up */
    char strangers[64][128];
    int n_strangers; /* told of; what is not among the first 64 is not told */
} leader_state;

struct agent {
    const ty_agent_options *o;
    ty_agent_end *end;
    ty_error *err;
    ty_arena arena;
    int epoll_fd;
    const char **host_name;         /* [n_hosts] */
    int n_ranks, first_rank, n_own; /* of the job; of this host */
    bool leads;
    uint8_t key[TY_LINK_KEY_BYTES];
    ty_hello hello; /* of this host */
    const char *why_interface;
    ty_map map;
    ty_resolver *resolver;
    ty_preflight *preflight;
    source preflight_source;
    connection *connections; /* all of them */
    ty_buf queue;            /* what this host tells itself */
    int64_t now_ms, began_ms, second_ms, told_waiting_ms;
    int64_t woke_ms; /* when this process, or its machine, last went on after it had not run for a while */

    /* every host */
    phase phase;
    int generation;
    int rc; /* of ty_agent_run, once OVER */
    connection *to_leader;
    int64_t knock_ms; /* the next try */
    int knocks;
    bool wrong_secret;   /* the leader has hung up on our proof */
    char waits_for[512]; /* "algo-3 (name unresolved)" */
    ty_ranks *ranks;
    source ranks_source;
    ty_remote *remote; /* where mpirun starts the ranks; else NULL */
    source remote_source;
    ty_page **pages;                  /* [n_own] */
    int *page_fds;                    /* [n_own] */
    int64_t kill_ms;                  /* ranks that still live are killed then; 0: not planned */
    uint64_t lines_sent, lines_taken; /* bytes of our ranks' output for the leader, and what of it it has taken */
    bool asked_to_stop, has_end;
    int64_t leave_ms; /* a host that was asked to stop waits so long for a leader that it can tell; 0: was not asked */
    int memory_percent;

    leader_state lead;
};

/* ---- agent.c ---- */

int agent_watch(agent *a, int fd, source *s, uint32_t events, bool fresh, ty_error *err);
/* The loop ends. rc as ty_agent_run returns it; err is filled by the caller if -1. */
void agent_over(agent *a, int rc);
/* To the leader, to one host, to all hosts; payload may be NULL. A host that cannot be told will be noticed as lost. */
void agent_tell_leader(agent *a, ty_message kind, const ty_buf *payload);
void agent_tell_host(agent *a, int host, ty_message kind, const ty_buf *payload);
void agent_tell_all(agent *a, ty_message kind, const ty_buf *payload);

/* ---- connection.c ---- */

/* Takes fd over; -1 closes it. */
connection *connection_new(agent *a, int fd, bool listening, const char *from);
void connection_flush(agent *a, connection *c);
/* Without a word to anybody. */
void connection_drop(agent *a, connection *c);
void connections_sweep(agent *a);
/* What connections call: */
void agent_on_open(agent *a, connection *c);
int agent_on_frame(agent *a, connection *c, int kind, const uint8_t *payload, size_t n_bytes, ty_error *err);
/* The connection is gone. why: "its agent closed the link", "no answer for 5.0 s" ...; code TY_E_PERMISSION: another
 * secret */
void agent_on_lost(agent *a, connection *c, ty_code code, const char *why);

/* ---- agent_meet.c ---- */

int meet_prepare(agent *a); /* address, hello, listening */
void meet_second(agent *a); /* once a second while PHASE_MEET */
void meet_tick(agent *a);
void meet_tell_missing(agent *a); /* the leader's waits_for: who is not there, and why */
void meet_hello(agent *a, connection *c, const ty_hello *hello);
/* Tells of a connection that was refused, once for each address and reason. */
void meet_stranger(agent *a, const connection *c, const char *why);

/* ---- agent_lead.c ---- */

void lead_all_here(agent *a);
int lead_on(agent *a, int host, int kind, ty_reader *r, ty_error *err);
void lead_lost(agent *a, int host, const char *why);
void lead_second(agent *a);
void lead_tick(agent *a);
/* A host that comes when the job is already over. */
void lead_say_goodbye(agent *a, int host);
void lead_refuse(agent *a, const char *text); /* the job cannot begin */

/* ---- agent_follow.c ---- */

int follow_on(agent *a, int kind, ty_reader *r, ty_error *err);
void follow_lost_leader(agent *a, const char *why);
void follow_tick(agent *a);
void follow_second(agent *a);

/* ---- agent_ranks.c ---- */

int own_ranks_start(agent *a, ty_error *err);
void own_ranks_free(agent *a);
/* What mpirun had started here, which is not this host's ranks: it stays until the job, or its generation, has ended.
 */
void own_remote_free(agent *a);
int own_remote_on(agent *a, int from, ty_reader *r, ty_error *err);
/* The last operations of each rank, into the record folder. */
void own_ranks_record(agent *a);
void own_ranks_abort(agent *a); /* writes on their pages that there is nobody to wait for */
void own_ranks_tell_pages(agent *a);
/* Tells of all that have ended, whether or not their end has made itself known. */
void own_ranks_tell_ends(agent *a);
/* The leader has taken so many bytes of the ranks' output: they go on if they were held. */
void own_ranks_taken(agent *a, uint64_t n_bytes);
int host_memory_percent(void);

#endif
