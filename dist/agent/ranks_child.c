/* ranks_child.c - fork and exec. Between the two only system calls: other threads may hold locks of the C library. */
#define _GNU_SOURCE
#include "dist/agent/ranks_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What failed in the child before the program ran; comes back over a pipe that a successful exec closes. */
typedef struct child_fault {
    int errno_value;
    bool at_exec;
} child_fault;

void ty_ranks_child_end(int status)
{
    for (;;)
        syscall(SYS_exit_group, status);
}

static void reset_signals(void)
{
    struct sigaction normal = {.sa_handler = SIG_DFL};
    for (int s = 1; s < NSIG; s++)
        sigaction(s, &normal, NULL); /* fails for those that cannot be changed */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void run_child(const ty_ranks_child *o, pid_t parent, int fault_fd)
{
    child_fault fault = {0};
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it ended between fork and prctl */
        ty_ranks_child_end(128 + SIGKILL);
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(o->stdout_fd, STDOUT_FILENO) >= 0 &&
        dup2(o->stderr_fd, STDERR_FILENO) >= 0 && (!o->cwd || chdir(o->cwd) == 0)) {
        if (nothing > STDERR_FILENO)
            close(nothing);
        reset_signals();
        fault.at_exec = true;
        execvpe(o->argv[0], (char *const *)o->argv, o->envp);
    }
    fault.errno_value = errno;
    ssize_t written = write(fault_fd, &fault, sizeof fault);
    (void)written; /* nobody is left to tell */
    ty_ranks_child_end(127);
}

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

static int explain_fault(const ty_ranks_child *o, child_fault fault, ty_error *err)
{
    if (!fault.at_exec)
        return ty_error_errno(err, TY_E_NONE, fault.errno_value, "cannot prepare \"%s\" in \"%s\"", o->argv[0],
                              o->cwd ? o->cwd : ".");
    ty_code code = fault.errno_value == ENOEXEC ? TY_E_USER_PROGRAM : TY_E_NONE;
    return ty_error_errno(err, code, fault.errno_value, "cannot execute \"%s\"", o->argv[0]);
}

int ty_ranks_child_start(const ty_ranks_child *o, pid_t *pid, ty_error *err)
{
    int fault_pipe[2];
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
    setpgid(child, child); /* both sides do it: the group exists from here on */
    child_fault fault = read_fault(fault_pipe[0]);
    close(fault_pipe[0]);
    *pid = child;
    if (fault.errno_value == 0)
        return 0;
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    return explain_fault(o, fault, err);
}
