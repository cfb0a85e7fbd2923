/* spawn.h - starting another program.
 *
 * Always an exact argument vector, never through a shell. The child starts with default signal actions, the given
 * signal mask and no descriptor of ours but those asked for. A program that cannot be executed is an error here, in the
 * parent, not a child that dies mysteriously.
 */
#ifndef TY_ENTRYPOINT_SPAWN_H
#define TY_ENTRYPOINT_SPAWN_H

#include "base/buf.h"
#include "base/error.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Exit statuses of shells for a program that cannot be executed, and for one that is not there. */
enum { TY_EXIT_CANNOT_EXECUTE = 126, TY_EXIT_NOT_FOUND = 127 };

/* Which of the two an errno of execve() means. */
int ty_exec_status(int errno_value);

typedef struct ty_spawn_options {
    const char *const *argv;    /* NULL-terminated; argv[0] with a '/' is a path, else searched in PATH */
    const char *cwd;            /* NULL: ours */
    const sigset_t *mask;       /* NULL: no signal blocked */
    int stdout_fd, stderr_fd;   /* what the child gets as 1 and 2; -1: ours */
    int passed_fd;              /* kept open in the child, its number in the variable passed_fd_name; -1: none */
    const char *passed_fd_name; /* at most 48 bytes */
    bool own_group;             /* the child leads a process group of its own, in the foreground if we are */
    bool dies_with_us;          /* the kernel sends it SIGTERM if we die without a word */
} ty_spawn_options;

#define TY_SPAWN_DEFAULTS                                 \
    {                                                     \
        .stdout_fd = -1, .stderr_fd = -1, .passed_fd = -1 \
    }

/* The variables of `from` ("NAME=VALUE", NULL-terminated as all lists here) without those that `without` names, and
 * then `with`, unless it is NULL. The list is malloc'd, its texts are those given. NULL: no memory. */
const char **ty_spawn_environment(const char *const *from, const char *const *without, const char *with);

/* On failure err has TY_E_NOT_FOUND, TY_E_PERMISSION or what errno says, and *exec_status (may be NULL) 126 or 127; or
 * 71 if it was not the program's fault. */
int ty_spawn(const ty_spawn_options *o, pid_t *pid, int *exec_status, ty_error *err);

/* Runs a helper (a compiler, an installer) to its end, with standard output and error collected in `output` (the end is
 * dropped beyond its limit) and, if `echo`, passed on to our stderr. A stop (entrypoint/stop.h) ends it. */
int ty_spawn_capture(const char *const *argv, const char *cwd, bool echo, ty_buf *output, int *wait_status,
                     ty_error *err);

#endif
