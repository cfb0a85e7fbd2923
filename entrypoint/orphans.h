/* orphans.h - finding and signalling the processes that we are responsible for.
 *
 * As PID 1 that is every process of the namespace. Otherwise: the child's process group and whatever has become a
 * direct child of ours, which is where orphans end up, since the supervisor is the reaper of its descendants.
 * Descendants that still have a living parent come to us when that parent goes.
 */
#ifndef TY_ENTRYPOINT_ORPHANS_H
#define TY_ENTRYPOINT_ORPHANS_H

#include <sys/types.h>

/* Sends `number` to them and returns how many of our own children (as PID 1: of all) got it. `group` is the child's
 * process group (0: none); members of the group `spared` (0: none) are left out. */
int ty_orphans_signal(pid_t group, pid_t spared, int number);

#endif
