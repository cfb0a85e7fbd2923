/* jail_walls.h - what takes a child's rights away, in two steps. Called in the child alone (jail.c). */
#ifndef TY_BASE_JAIL_WALLS_H
#define TY_BASE_JAIL_WALLS_H

#include "base/error.h"

#include <stddef.h>

/* Signals, environment, descriptors: nothing of the parent's stays but its memory. keep_fd stays open. */
void ty_jail_strip(int keep_fd);
/* From here on the system does nothing for this process but what its memory, its clocks and its end need. memory_bytes
 * counts from what is mapped now. */
int ty_jail_raise_walls(size_t memory_bytes, int cpu_seconds, ty_error *err);

#endif
