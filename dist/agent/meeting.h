/* meeting.h - who is there, who is not and why, and whether those that came fit together.
 *
 * Functions of what is known; the loop finds it out (agent_meet.c).
 */
#ifndef TY_DIST_AGENT_MEETING_H
#define TY_DIST_AGENT_MEETING_H

#include "dist/agent/message.h"

typedef struct ty_arrival {
    bool here;
    char reason[96]; /* if not: "name unresolved", "10.0.1.9 has not called", "authentication failed" */
    ty_hello *hello; /* if here */
} ty_arrival;

/* "algo-3 (name unresolved), algo-4 (10.0.1.9 has not called) and 7 more": those that are not there. Returns how many
 * that are. host_name and arrivals: [n]. */
int ty_meeting_missing(const ty_arrival *arrivals, const char *const *host_name, int n, char *out, size_t n_bytes);

/* TY_E_CONFIG if the newcomer and the others that are there cannot do one job: a fact differs or is known to one side
 * only, or it has chosen another's address (loopback may be shared: tests). The message names both sides. */
int ty_meeting_compare(const ty_arrival *arrivals, int n, int newcomer, ty_error *err);

/* "172.17.0.1 (algo-1, algo-2)": addresses that more than one host has, which nothing may be sent to; "" if none. */
void ty_meeting_shared(const ty_arrival *arrivals, const char *const *host_name, int n, char *out, size_t n_bytes);

#endif
