/* child.c - see child.h. */
#define _GNU_SOURCE
#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct child_fault {
    int errno_value;
    bool at_exec; /* else: a preparation, such as chdir */
} child_fault;

void ty_child_end(int status)
{
    for (;;)
        syscall(SYS_exit_group, status);
}

static void reset_signals(const sigset_t *mask)
{
    struct sigaction normal = {.sa_handler = SIG_DFL};
    for (int s = 1; s < NSIG; s++)
        sigaction(s, &normal, NULL); /* fails for those that cannot be changed */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, mask ? mask : &none, NULL);
}

static void run_child(const ty_child_program *p, pid_t parent, int fault_fd)
{
    child_fault fault = {0};
    if (p->own_group)
        setpgid(0, 0);
    if (p->death_signal)
        prctl(PR_SET_PDEATHSIG, p->death_signal);
    if (p->death_signal && getppid() != parent) /* it ended between fork and prctl */
        ty_child_end(128 + p->death_signal);
    if ((!p->prepare || p->prepare(p->ctx) == 0) && (!p->cwd || chdir(p->cwd) == 0)) {
        reset_signals(p->mask);
        fault.at_exec = true;
        execvpe(p->argv[0], (char *const *)p->argv, p->envp ? p->envp : environ);
    }
    fault.errno_value = errno;
    ssize_t written = write(fault_fd, &fault, sizeof fault);
    (void)written; /* nobody is left to tell */
    ty_child_end(127);
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

static int explain_fault(const ty_child_program *p, child_fault fault, ty_error *err)
{
    if (!fault.at_exec)
        return ty_error_errno(err, TY_E_NONE, fault.errno_value, "cannot prepare \"%s\" in \"%s\"", p->argv[0],
                              p->cwd ? p->cwd : ".");
    ty_code code = fault.errno_value == ENOEXEC ? TY_E_USER_PROGRAM : TY_E_NONE;
    return ty_error_errno(err, code, fault.errno_value, "cannot execute \"%s\"", p->argv[0]);
}

int ty_child_start(const ty_child_program *p, pid_t *pid, int *exec_errno, ty_error *err)
{
    int fault_pipe[2];
    if (exec_errno)
        *exec_errno = 0;
    if (pipe2(fault_pipe, O_CLOEXEC) < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot start \"%s\": pipe", p->argv[0]);
    pid_t self = getpid();
    pid_t child = fork();
    if (child == 0)
        run_child(p, self, fault_pipe[1]);
    int fork_errno = errno;
    close(fault_pipe[1]);
    if (child < 0) {
        close(fault_pipe[0]);
        return ty_error_errno(err, TY_E_LIMIT, fork_errno, "cannot start \"%s\": fork", p->argv[0]);
    }
    if (p->own_group)
        setpgid(child, child); /* both sides do it: whoever is first, the group exists from here on */
    child_fault fault = read_fault(fault_pipe[0]);
    close(fault_pipe[0]);
    *pid = child;
    if (fault.errno_value == 0)
        return 0;
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (exec_errno)
        *exec_errno = fault.at_exec ? fault.errno_value : 0;
    return explain_fault(p, fault, err);
}
