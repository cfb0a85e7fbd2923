/* spawn.c - fork and exec, with the errno of a failed exec brought back over a pipe that a successful exec closes. */
#define _GNU_SOURCE
#include "entrypoint/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* What failed in the child, before the program ran. */
typedef struct child_fault {
    int errno_value;
    bool at_exec; /* else: a preparation, such as chdir */
} child_fault;

int ty_exec_status(int errno_value)
{
    return errno_value == ENOENT || errno_value == ENOTDIR ? TY_EXIT_NOT_FOUND : TY_EXIT_CANNOT_EXECUTE;
}

static void reset_signals(const sigset_t *mask)
{
    for (int s = 1; s < NSIG; s++)
        if (s != SIGKILL && s != SIGSTOP)
            signal(s, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, mask ? mask : &none, NULL);
}

/* Hands the terminal to the child's group, so that it may read and Ctrl-C reaches it. SIGTTOU is blocked at this point
 * only in the supervisor; here it is ignored for the one call. */
static void take_group(void)
{
    bool foreground = isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
    setpgid(0, 0);
    if (foreground) {
        signal(SIGTTOU, SIG_IGN);
        tcsetpgrp(STDIN_FILENO, getpgrp());
    }
}

static int place_fd(int fd, int at)
{
    if (fd < 0 || fd == at)
        return 0;
    return dup2(fd, at);
}

static int pass_fd(int fd, const char *name)
{
    if (fd < 0)
        return 0;
    char number[16];
    snprintf(number, sizeof number, "%d", fd);
    if (fcntl(fd, F_SETFD, 0) < 0)
        return -1;
    return setenv(name, number, 1);
}

static _Noreturn void run_child(const ty_spawn_options *o, pid_t parent, int fault_fd)
{
    child_fault fault = {0};
    if (o->own_group)
        take_group();
    if (o->dies_with_us) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent) /* it died between fork and prctl */
            _exit(128 + SIGTERM);
    }
    if (place_fd(o->stdout_fd, STDOUT_FILENO) >= 0 && place_fd(o->stderr_fd, STDERR_FILENO) >= 0 &&
        pass_fd(o->passed_fd, o->passed_fd_name) >= 0 && (!o->cwd || chdir(o->cwd) == 0)) {
        reset_signals(o->mask);
        fault.at_exec = true;
        execvp(o->argv[0], (char *const *)o->argv);
    }
    fault.errno_value = errno;
    ssize_t written = write(fault_fd, &fault, sizeof fault);
    (void)written; /* nobody is left to tell */
    _exit(TY_EXIT_NOT_FOUND);
}

/* Waits for the pipe's end: a fault, or nothing if the exec closed it. */
static child_fault read_fault(int fd)
{
    child_fault fault = {0};
    ssize_t n;
    while ((n = read(fd, &fault, sizeof fault)) < 0 && errno == EINTR)
        continue;
    if (n != (ssize_t)sizeof fault)
        fault.errno_value = 0;
    return fault;
}

static int explain_fault(const ty_spawn_options *o, child_fault fault, int *exec_status, ty_error *err)
{
    if (exec_status)
        *exec_status = fault.at_exec ? ty_exec_status(fault.errno_value) : 71;
    if (!fault.at_exec)
        return ty_error_errno(err, TY_E_NONE, fault.errno_value, "cannot prepare \"%s\" in \"%s\"", o->argv[0],
                              o->cwd ? o->cwd : ".");
    ty_code code = fault.errno_value == ENOEXEC ? TY_E_USER_PROGRAM : TY_E_NONE;
    return ty_error_errno(err, code, fault.errno_value, "cannot execute \"%s\"", o->argv[0]);
}

int ty_spawn(const ty_spawn_options *o, pid_t *pid, int *exec_status, ty_error *err)
{
    int fault_pipe[2];
    if (exec_status)
        *exec_status = 71;
    if (pipe2(fault_pipe, O_CLOEXEC) < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot start \"%s\": pipe", o->argv[0]);
    pid_t self = getpid();
    pid_t child = fork();
    if (child == 0)
        run_child(o, self, fault_pipe[1]);
    int fork_errno = errno;
    close(fault_pipe[1]);
    if (child < 0) {
        close(fault_pipe[0]);
        return ty_error_errno(err, TY_E_LIMIT, fork_errno, "cannot start \"%s\": fork", o->argv[0]);
    }
    if (o->own_group)
        setpgid(child, child); /* both sides do it: whoever is first, the group exists from here on */
    child_fault fault = read_fault(fault_pipe[0]);
    close(fault_pipe[0]);
    if (fault.errno_value == 0) {
        *pid = child;
        return 0;
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    return explain_fault(o, fault, exec_status, err);
}

/* Reads until the other side is closed. What does not fit is read and dropped: a full pipe would stop the child. */
static void collect(int fd, bool echo, ty_buf *output)
{
    char chunk[4096];
    ssize_t n;
    while ((n = read(fd, chunk, sizeof chunk)) > 0 || (n < 0 && errno == EINTR)) {
        if (n < 0)
            continue;
        size_t room = output->max_bytes - output->len;
        ty_buf_add(output, chunk, (size_t)n < room ? (size_t)n : room);
        if (echo && write(STDERR_FILENO, chunk, (size_t)n) < 0)
            echo = false;
    }
}

int ty_spawn_capture(const char *const *argv, const char *cwd, bool echo, ty_buf *output, int *wait_status,
                     ty_error *err)
{
    int out_pipe[2];
    if (pipe2(out_pipe, O_CLOEXEC) < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot start \"%s\": pipe", argv[0]);
    ty_spawn_options o = TY_SPAWN_DEFAULTS;
    o.argv = argv;
    o.cwd = cwd;
    o.stdout_fd = o.stderr_fd = out_pipe[1];
    o.dies_with_us = true;
    pid_t pid;
    int rc = ty_spawn(&o, &pid, NULL, err);
    close(out_pipe[1]);
    if (rc == 0) {
        collect(out_pipe[0], echo, output);
        while (waitpid(pid, wait_status, 0) < 0 && errno == EINTR)
            continue;
    }
    close(out_pipe[0]);
    return rc;
}
