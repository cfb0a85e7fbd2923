/* resolver.h - host names looked up in the background, for asking the name service may take many seconds.
 *
 * A thread asks for each name, twice a second for those that it does not know yet (a container's name appears when the
 * container does), every five seconds for the others (a container that was started anew has another address). Whoever
 * waits for hosts looks at what is known now.
 */
#ifndef TY_DIST_AGENT_RESOLVER_H
#define TY_DIST_AGENT_RESOLVER_H

#include "base/error.h"
#include "dist/agent/address.h"

#include <stdbool.h>

typedef struct ty_resolver ty_resolver;

/* names: [n], copied. fixed: [n], numeric addresses for those that need no name service, NULL otherwise. */
int ty_resolver_start(const char *const *names, const char *const *fixed, int n, ty_resolver **r, ty_error *err);
/* The best address of name i (IPv4 first); false: not known, and why. */
bool ty_resolver_get(ty_resolver *r, int i, char address[TY_ADDRESS_TEXT_BYTES], char failure[64]);
/* Which name has this address, as far as is known; -1: none. */
int ty_resolver_owner(ty_resolver *r, const char *address);
/* True once every name has an address. */
bool ty_resolver_complete(ty_resolver *r);
/* Asks no more; what is known stays. */
void ty_resolver_settle(ty_resolver *r);
/* Returns at once; the thread ends when the name service lets it. NULL is fine. */
void ty_resolver_stop(ty_resolver *r);

#endif
