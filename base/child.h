/* child.h - a child process that runs another program; that it cannot is an error of the parent.
 *
 * fork and exec from a process that may have threads: between the two only system calls happen, for others may hold
 * locks of the C library. What fails in the child before the program runs comes back, errno and place, over a pipe that
 * a successful exec closes. So a program that cannot be executed is never a child that dies mysteriously.
 *
 *     ty_child_program p = {.argv = argv, .prepare = prepare, .ctx = &streams};
 *     if (ty_child_start(&p, &pid, NULL, err) < 0) ...
 */
#ifndef TY_BASE_CHILD_H
#define TY_BASE_CHILD_H

#include "base/error.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct ty_child_program {
    const char *const *argv; /* NULL-terminated; argv[0] with a '/' is a path, else searched in PATH */
    char *const *envp;       /* NULL: ours */
    const char *cwd;         /* NULL: ours */
    const sigset_t *mask;    /* signals blocked in the program; NULL: none. Actions are the default ones */
    bool own_group;          /* leads a process group of its own, which exists when this returns */
    int death_signal;        /* what the kernel sends it when the thread that started it ends; 0: nothing */
    /* In the child, before anything else of the above but its group and death signal: system calls alone, no memory and
     * no environment. 0, or -1 with errno. May be NULL. */
    int (*prepare)(void *ctx);
    void *ctx;
} ty_child_program;

/* TY_E_NOT_FOUND, TY_E_PERMISSION, TY_E_USER_PROGRAM (no program), TY_E_LIMIT (no process) or what errno says.
 * *exec_errno (may be NULL): what execve() failed with; 0 if anything else did. */
int ty_child_start(const ty_child_program *p, pid_t *pid, int *exec_errno, ty_error *err);

/* Ends a child of fork() at once, without what its parent, or a tool that watches it, left to be done at exit. */
void ty_child_end(int status) __attribute__((noreturn));

#endif
