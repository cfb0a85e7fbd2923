/* ranks_child.h - starting one process of another program, from a process that may have threads.
 *
 * The child gets an exact argument vector and environment, a process group of its own, default signal actions, no
 * blocked signals and /dev/null as standard input; the kernel sends it SIGKILL when the thread that started it ends. A
 * program that cannot be executed is an error here, in the parent.
 */
#ifndef TY_DIST_AGENT_RANKS_CHILD_H
#define TY_DIST_AGENT_RANKS_CHILD_H

#include "base/error.h"

#include <sys/types.h>

typedef struct ty_ranks_child {
    const char *const *argv; /* NULL-terminated; argv[0] with a '/' is a path, else searched in PATH */
    char *const *envp;
    const char *cwd;          /* NULL: ours */
    int stdout_fd, stderr_fd; /* what it gets as 1 and 2 */
} ty_ranks_child;

/* TY_E_NOT_FOUND, TY_E_PERMISSION, TY_E_USER_PROGRAM (no program) or what errno says. */
int ty_ranks_child_start(const ty_ranks_child *o, pid_t *pid, ty_error *err);

#endif
