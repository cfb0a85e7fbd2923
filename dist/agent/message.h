/* message.h - what agents tell each other, as bytes in frames of a link.
 *
 * Numbers are little-endian of fixed width, texts are a u16 of length and bytes. A reader never fails in the middle: a
 * number past the end is 0, a text past the end is empty, and `failed` is set once; whoever reads looks at it at the
 * end. Texts are cut to the place they go to, and control characters in them become '?', so that no host can forge
 * another's log lines.
 *
 * The leader's own host takes part like any other: it tells itself by a queue (agent_state.h).
 */
#ifndef TY_DIST_AGENT_MESSAGE_H
#define TY_DIST_AGENT_MESSAGE_H

#include "base/buf.h"
#include "base/error.h"
#include "dist/agent/address.h"
#include "dist/agent/agent.h"
#include "dist/page.h"

typedef enum ty_message {
    /* to the leader */
    TY_MESSAGE_HELLO = 1, /* ty_hello */
    TY_MESSAGE_LOOK,      /* what the look at the network found (preflight.h) */
    TY_MESSAGE_FENCE,     /* generation u32, number u64, blob: all ranks of the host are in it */
    TY_MESSAGE_PAGES,     /* generation u32, ranks; each second, also the heartbeat */
    TY_MESSAGE_EXIT,      /* ty_exit: a rank has ended */
    TY_MESSAGE_FAULT,     /* generation u32, exit status u32, text: this host cannot go on */
    TY_MESSAGE_GONE,      /* generation u32: no rank is left on this host */
    TY_MESSAGE_KNOWN, /* generation u32: every rank of this host that had ended when it was asked has been told of */
    /* from the leader */
    TY_MESSAGE_REFUSE = 32, /* text: the job cannot begin */
    TY_MESSAGE_MAP,         /* ty_map: all are here */
    TY_MESSAGE_START,       /* generation u32: start the ranks */
    TY_MESSAGE_FENCE_ALL,   /* generation u32, number u64, blobs of all hosts in order */
    TY_MESSAGE_BEAT,        /* text: who is waited for, or nothing; each second */
    TY_MESSAGE_ABORT,       /* generation u32, ty_culprit */
    TY_MESSAGE_END,         /* ty_agent_end: all is over */
    TY_MESSAGE_ASK,         /* generation u32: a rank has failed somewhere; what has ended here? */
    TY_MESSAGE_TAKEN,       /* u64: bytes of this host's lines that the leader has taken, of all that were sent */
    TY_MESSAGE_ALONE,       /* generation u32: a rank has left a stop before its end; nobody waits for the others */
    /* both ways */
    TY_MESSAGE_STOP = 64, /* this host is asked to stop; from the leader, host u32: that one is, and so all stop */
    TY_MESSAGE_LINES,     /* rank u32, descriptor u8, lines: a rank's output for the leader */
    TY_MESSAGE_REMOTE,    /* of the launcher (remote.h); opaque here */
} ty_message;

/* ---- numbers and texts ---- */

void ty_put_number(ty_buf *b, uint64_t value, int n_bytes);
void ty_put_text(ty_buf *b, const char *text); /* cut at 65535 bytes; NULL is "" */

typedef struct ty_reader {
    const uint8_t *at, *end;
    bool failed;
} ty_reader;

uint64_t ty_get_number(ty_reader *r, int n_bytes);
void ty_get_text(ty_reader *r, char *out, size_t n);
/* 0 if everything was there and nothing is left over; TY_E_DATA otherwise. */
int ty_get_end(const ty_reader *r, const char *what, ty_error *err);

/* ---- messages ---- */

enum { TY_HELLO_ADDRESSES = 32, TY_HELLO_FACTS = 24, TY_FACT_NAME_BYTES = 64, TY_FACT_VALUE_BYTES = 256 };

typedef struct ty_hello_fact {
    char name[TY_FACT_NAME_BYTES], value[TY_FACT_VALUE_BYTES];
} ty_hello_fact;

/* Who a host is. */
typedef struct ty_hello {
    int host;
    char name[256];
    char interface[32], address[TY_ADDRESS_TEXT_BYTES]; /* chosen */
    int mtu, speed_mbit;
    int look_port; /* where it listens for the look at the network; 0: it does not */
    int cores;
    int64_t memory_bytes;
    int n_addresses; /* all that the host has, but loopback */
    char addresses[TY_HELLO_ADDRESSES][TY_ADDRESS_TEXT_BYTES];
    int n_facts;
    ty_hello_fact facts[TY_HELLO_FACTS];
} ty_hello;

void ty_put_hello(ty_buf *b, const ty_hello *hello);
int ty_get_hello(ty_reader *r, ty_hello *hello, ty_error *err);

typedef struct ty_map_host {
    char address[TY_ADDRESS_TEXT_BYTES];
    int look_port;
} ty_map_host;

typedef struct ty_map {
    uint64_t nonce; /* of this job: parts of names that two jobs must not share */
    bool preflight;
    int n_hosts;
    ty_map_host *hosts; /* [n_hosts] */
} ty_map;

void ty_put_map(ty_buf *b, const ty_map *map);
/* hosts: [n_hosts], given; another number is refused. */
int ty_get_map(ty_reader *r, ty_map *map, ty_error *err);

typedef struct ty_exit {
    int generation, rank;
    pid_t pid;
    int wait_status;
    bool aborted; /* it called MPI_Abort; wait_status is what it gave, as an exit status */
    int memory_percent;
    int64_t step;
    ty_phase phase;
    char text[TY_PAGE_ERROR_BYTES]; /* the error of its page */
} ty_exit;

void ty_put_exit(ty_buf *b, const ty_exit *e);
int ty_get_exit(ty_reader *r, ty_exit *e, ty_error *err);

/* Texts of an operation travel only when it is at least a second old: then somebody may want to read them. */
void ty_put_page(ty_buf *b, const ty_page_view *view);
void ty_get_page(ty_reader *r, ty_page_view *view);

void ty_put_culprit(ty_buf *b, const ty_culprit *c);
void ty_get_culprit(ty_reader *r, ty_culprit *c);
void ty_put_end(ty_buf *b, const ty_agent_end *end);
int ty_get_end_of_job(ty_reader *r, ty_agent_end *end, ty_error *err);

#endif
