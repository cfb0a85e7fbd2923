/* preflight.h - a look at the network and at this machine before the ranks start, in two seconds at most.
 *
 * What would only show as a slow or hanging job hours later: a pair of hosts that cannot reach each other on a high
 * port, one slow cable, a path that swallows large packets, 64 MB of shared memory, clocks that are apart.
 *
 * Each host connects to the next one, to the one after two, four, eight ... in the circle of hosts: with up to 3 hosts
 * that is every pair, with a thousand it is ten for each. On each connection: the handshake of a link (link.h), small
 * messages there and back (the shortest round counts), then 16 MB one way. Threads do this beside the agent's loop.
 */
#ifndef TY_DIST_AGENT_PREFLIGHT_H
#define TY_DIST_AGENT_PREFLIGHT_H

#include "dist/agent/link.h"
#include "dist/agent/message.h"

enum { TY_LOOK_PAIRS = 16, TY_LOOK_MS = 2000 };

typedef struct ty_look_pair {
    int host;
    char failure[64]; /* "Connection refused", "no time left"; "": reached */
    int64_t round_us; /* there and back, the shortest of 8 */
    int64_t mbyte_s;  /* 0: not measured, no time left */
    int64_t clock_us; /* the other's UTC minus ours */
    int path_mtu;     /* 0: unknown */
} ty_look_pair;

typedef struct ty_look {
    bool done;
    int64_t shm_bytes;                         /* free in /dev/shm; -1: there is none */
    int64_t files, memlock_bytes, stack_bytes; /* limits; -1: none */
    int ptrace_scope;                          /* of Yama; -1: unknown */
    int n_pairs;
    ty_look_pair pairs[TY_LOOK_PAIRS];
} ty_look;

typedef struct ty_preflight ty_preflight;

/* Listens on a port of the system's choice of this address and answers from now on. */
int ty_preflight_start(const uint8_t key[TY_LINK_KEY_BYTES], const char *address, int self, ty_preflight **p, int *port,
                       ty_error *err);
/* Begins to ask; hosts: [n], copied. */
int ty_preflight_go(ty_preflight *p, const ty_map_host *hosts, int n, ty_error *err);
/* Readable when all that was asked is answered or the time is over. */
int ty_preflight_fd(const ty_preflight *p);
void ty_preflight_take(ty_preflight *p, ty_look *out);
/* Stops answering: when all hosts are done. NULL is fine. */
void ty_preflight_free(ty_preflight *p);

void ty_put_look(ty_buf *b, const ty_look *look);
int ty_get_look(ty_reader *r, ty_look *look, ty_error *err);

/* The table, and under it one line for what is worth a warning: pairs that are not reached, pairs slower than a third
 * of the median, clocks more than a second apart, little shared memory for the ranks of a host. */
void ty_look_table(const ty_look *looks, const ty_hello *const *hellos, const int *ranks, int n, ty_buf *table,
                   ty_buf *warnings);

#endif
