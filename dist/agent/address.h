/* address.h - which network interface a job uses.
 *
 * A host has many addresses: that of the job's network, bridges of container engines (172.17.0.1 on every host alike),
 * tunnels, loopback. A library left to itself tries some of them: Open MPI then waits forever for a peer that it
 * reached as itself. So one interface is chosen, in this order, and everything is bound to it:
 *
 *     1  what the user asked for             taken as it is, also loopback; absent: an error that lists what is there
 *     2  what the platform's file names      if it is there and has an address
 *     3  the interface that owns the address to which this host's own name resolves
 *     4  the interface of the default route
 *     5  the only one that is left
 *
 * 3 to 5 never choose loopback, docker*, veth*, br-*, virbr*, an interface that is down, or an address that other hosts
 * of the job have as well. IPv4 is used unless an interface has IPv6 only.
 */
#ifndef TY_DIST_AGENT_ADDRESS_H
#define TY_DIST_AGENT_ADDRESS_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <sys/socket.h>

#define TY_ADDRESS_TEXT_BYTES 64 /* "fe80::1%eth0" */

/* One address of one interface. */
typedef struct ty_interface {
    const char *name;    /* "eth0" */
    const char *address; /* numeric, without the length of the prefix */
    bool up, loopback, v6;
    int mtu;        /* bytes, 0: unknown */
    int speed_mbit; /* 0: unknown, as on most virtual machines */
} ty_interface;

/* Those of this machine, in the system's order. Link-local IPv6 addresses are left out. */
int ty_interfaces_list(ty_arena *a, ty_interface **list, int *n, ty_error *err);
/* Name of the interface of the default IPv4 route, from /proc/net/route; NULL if there is none. */
const char *ty_default_route(ty_arena *a);

typedef struct ty_address_wish {
    const char *user, *platform; /* interfaces by name; NULL: none */
    const char *const *own;      /* [n_own] addresses to which this host's name resolves */
    int n_own;
    const char *default_route; /* interface; NULL: unknown */
    const char *const *shared; /* [n_shared] addresses that other hosts of the job have too */
    int n_shared;
} ty_address_wish;

/* Decides by the list and the wishes alone. *why: static text, "asked for", "of the default route" ... TY_E_NOT_FOUND
 * if the user's is not there or none is left, with the list as detail lines. */
int ty_address_choose(const ty_interface *list, int n, const ty_address_wish *wish, int *chosen, const char **why,
                      ty_error *err);

/* Numeric addresses of a host name, IPv4 first. May wait for the name service. *failure: NULL, or why there are none
 * ("Name or service not known"). */
void ty_address_resolve(const char *host, ty_arena *a, const char *const **addresses, int *n, const char **failure);

/* Socket address of a numeric one. -1: not numeric. */
int ty_address_parse(const char *address, int port, struct sockaddr_storage *out, socklen_t *n_bytes);
/* The numeric text of a socket address, IPv4 inside IPv6 as IPv4; "?" for other families. Returns out. */
const char *ty_address_text(const struct sockaddr_storage *address, char out[TY_ADDRESS_TEXT_BYTES]);

#endif
