/* ranks_probe.h - whether ranks of this host may copy out of each other's memory. */
#ifndef TY_DIST_AGENT_RANKS_PROBE_H
#define TY_DIST_AGENT_RANKS_PROBE_H

#include <stdbool.h>

/* Tries process_vm_readv between two children, which is what ranks are to each other: containers forbid the call by
 * seccomp, and Yama's ptrace_scope forbids it between processes that are not parent and child. One copy instead of two
 * is worth 10 to 50 % for messages of a megabyte. Takes a millisecond or two; false if it cannot be tried. */
bool ty_ranks_copies_allowed(void);

#endif
