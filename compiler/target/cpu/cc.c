/* cc.c - runs the system compiler. See cc.h. */
#define _GNU_SOURCE
#include "compiler/target/cpu/cc.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/toolchain.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* No -ffast-math, ever: it folds isfinite() away and links a start-up object that sets flush-to-zero for the process.
 *
 * -O1 with those parts of -O2 that kernels gain from: vectors, fused multiply-adds (-fexpensive-optimizations),
 * aliasing by type. The rest of -O2 is for branches, calls and long functions, which kernels have not; without it the
 * compiler takes four fifths of the time and the kernels of the eight benchmarked steps are as fast. Nor does it look
 * for vectors outside of loops, where kernels have none, or give registers out loop by loop: a tenth of its time, and
 * the code is shorter. Nor does it follow one condition into the next: a ReLU and the mask of its gradient would become
 * paths, with the gradient's load on one of them, and no vectors. Nothing is linked: what a kernel may call (memcpy,
 * sin) the program has, and looking for the C library costs a fifth of an empty file.
 */
static const char *const cc_flags[] = {
    "-std=gnu17",
    "-O1",
    "-ftree-vectorize",
    "-fno-tree-slp-vectorize",
    "-fno-thread-jumps",
    "-fira-region=one",
    "-fexpensive-optimizations",
    "-fstrict-aliasing",
    "-fvect-cost-model=dynamic",
    "-march=native",
    "-mprefer-vector-width=512",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
    "-fwrapv",
    "-fno-semantic-interposition",
    "-fopenmp-simd",
    "-fvisibility=hidden",
    "-fPIC",
    "-shared",
    "-nostdlib",
    "-w",
    "-pipe",
    "-fno-asynchronous-unwind-tables",
    "-fcf-protection=none",
};
#define CC_N_FLAGS    (sizeof cc_flags / sizeof *cc_flags)
#define CC_PATH_BYTES 512

enum { LOOK_MS = 50, NAP_NS = 500000, DEAF_MS = 1000 };

struct ty_cc_job {
    ty_cc_options opt;
    char dir[CC_PATH_BYTES];    /* where they write */
    pid_t pid[TY_CC_MAX_UNITS]; /* each leads a process group; 0: ended and reaped */
    int n, n_started;
    int64_t told_ms; /* when all were told to end; 0: not yet */
};

/* Whatever our caller blocks: a compiler dies of the signals that it gets. It leads a group, so that those that it
 * starts end with it. */
static int cc_set_attributes(posix_spawnattr_t *attr)
{
    sigset_t none;
    sigemptyset(&none);
    int rc = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    return rc ? rc : posix_spawnattr_setsigmask(attr, &none);
}

static int cc_spawn(const ty_cc_options *opt, const char *source, const char *object, const char *log, pid_t *pid,
                    ty_error *err)
{
    const char *argv[CC_N_FLAGS + 8];
    size_t n = 0;
    argv[n++] = opt->cc;
    for (size_t i = 0; i < CC_N_FLAGS; i++)
        argv[n++] = cc_flags[i];
    argv[n++] = "-o";
    argv[n++] = object;
    argv[n++] = source;
    argv[n] = NULL;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_t attr;
    posix_spawnattr_init(&attr);
    int rc = cc_set_attributes(&attr);
    if (rc == 0)
        rc = posix_spawnp(pid, opt->cc, &actions, &attr, (char *const *)argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    if (rc == 0)
        return 0;
    ty_error_errno(err, TY_E_COMPILER, rc, "starting the C compiler \"%s\"", opt->cc);
    return ty_error_help(err, "install gcc, or set CC to a C compiler");
}

/* ---- waiting ---- */

static void cc_signal(const ty_cc_job *job, int number)
{
    for (int i = 0; i < job->n_started; i++)
        if (job->pid[i] > 0)
            kill(-job->pid[i], number);
}

/* Told to end, a compiler removes what it has in its own temporary folder; who does not listen is killed. */
static void cc_tell(ty_cc_job *job)
{
    int64_t now = ty_clock_ms();
    if (job->told_ms == 0) {
        job->told_ms = now;
        cc_signal(job, SIGTERM);
    } else if (now >= job->told_ms + DEAF_MS) {
        cc_signal(job, SIGKILL);
    }
}

/* Until it may have ended, or it is time to look around. Kernels before 5.3, and sandboxes, have no descriptor for a
 * process. */
static void cc_nap(int pid_fd)
{
    if (pid_fd >= 0)
        poll(&(struct pollfd){.fd = pid_fd, .events = POLLIN}, 1, LOOK_MS);
    else
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

/* Whether it has ended; it is not reaped then, so that its group's number is still its own. -1: an error. */
static int cc_has_ended(pid_t pid)
{
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
        return errno == EINTR ? 0 : -1;
    return info.si_pid == pid;
}

static int cc_reap(ty_cc_job *job, int unit, int *status, ty_error *err)
{
    pid_t pid = job->pid[unit];
    int ended, fd = (int)syscall(SYS_pidfd_open, pid, 0);
    while ((ended = cc_has_ended(pid)) == 0) {
        if (job->told_ms || ty_toolchain_is_over())
            cc_tell(job);
        cc_nap(fd);
    }
    if (fd >= 0)
        close(fd);
    if (job->told_ms)
        kill(-pid, SIGKILL); /* what it had started */
    job->pid[unit] = 0;
    if (ended < 0 || waitpid(pid, status, 0) < 0)
        return ty_error_errno(err, TY_E_COMPILER, errno, "waiting for the C compiler");
    return 0;
}

static int cc_wait(ty_cc_job *job, int unit, const char *log, ty_error *err)
{
    int status;
    if (cc_reap(job, unit, &status, err) < 0)
        return -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (job->told_ms)
        return ty_error_set(err, TY_E_STOPPED, "stopped while the C compiler was at work");
    char line[400] = "";
    FILE *f = fopen(log, "r");
    if (f) {
        size_t n = fread(line, 1, sizeof line - 1, f);
        line[n] = 0;
        fclose(f);
    }
    if (WIFSIGNALED(status))
        return ty_error_set(err, TY_E_COMPILER, "the C compiler was ended by signal %d: %s", WTERMSIG(status), line);
    return ty_error_set(err, TY_E_COMPILER, "the C compiler failed with status %d: %s", WEXITSTATUS(status), line);
}

/* ---- starting ---- */

static int cc_path(char *out, const char *dir, int unit, const char *suffix, ty_error *err)
{
    if (snprintf(out, CC_PATH_BYTES, "%s/k%d%s", dir, unit, suffix) >= CC_PATH_BYTES)
        return ty_error_set(err, TY_E_LIMIT, "path of the compiler's work folder is too long: %s", dir);
    return 0;
}

static int cc_write_source(const char *dir, int unit, const char *text, char *path, ty_error *err)
{
    if (cc_path(path, dir, unit, ".c", err) < 0)
        return -1;
    FILE *f = fopen(path, "w");
    if (!f)
        return ty_error_errno(err, TY_E_NONE, errno, "writing kernels to %s", path);
    bool wrote = fputs(text, f) >= 0;
    if (fclose(f) != 0 || !wrote)
        return ty_error_errno(err, TY_E_NONE, errno, "writing kernels to %s", path);
    return 0;
}

/* Starts a compiler for each text. What was started is in the job, also after a failure. */
static int cc_compile(ty_cc_job *job, const char *const *text, ty_error *err)
{
    char source[CC_PATH_BYTES], object[CC_PATH_BYTES], log[CC_PATH_BYTES];
    for (; job->n_started < job->n; job->n_started++) {
        int unit = job->n_started;
        if (cc_write_source(job->dir, unit, text[unit], source, err) < 0 ||
            cc_path(object, job->dir, unit, ".so", err) < 0 || cc_path(log, job->dir, unit, ".log", err) < 0 ||
            cc_spawn(&job->opt, source, object, log, &job->pid[unit], err) < 0)
            return -1;
    }
    return 0;
}

/* Also after a failure: nobody is left behind. */
int ty_cc_wait(ty_cc_job *job, ty_error *err)
{
    char log[CC_PATH_BYTES];
    int rc = 0;
    for (int i = 0; i < job->n_started; i++) {
        cc_path(log, job->dir, i, ".log", NULL);
        if (cc_wait(job, i, log, rc == 0 ? err : NULL) < 0)
            rc = -1;
    }
    job->n_started = 0;
    return rc;
}

static int cc_begin(ty_cc_job *job, const char *const *text, ty_error *err)
{
    if (snprintf(job->dir, sizeof job->dir, "%s/ty-kernels-XXXXXX", job->opt.work_dir) >= (int)sizeof job->dir ||
        !mkdtemp(job->dir)) {
        int why = errno;
        job->dir[0] = 0;
        ty_error_errno(err, TY_E_NONE, why, "making a work folder for kernels in %s", job->opt.work_dir);
        return ty_error_help(err, "set TMPDIR to a folder that can be written");
    }
    return cc_compile(job, text, err);
}

int ty_cc_start(const char *const *text, int n, const ty_cc_options *opt, ty_cc_job **out, ty_error *err)
{
    ty_cc_job *job = calloc(1, sizeof *job);
    if (!job)
        return ty_error_set(err, TY_E_LIMIT, "no memory to start the C compiler");
    job->opt = *opt;
    job->n = n;
    if (cc_begin(job, text, err) < 0) {
        ty_cc_abandon(job);
        return -1;
    }
    *out = job;
    return 0;
}

const char *ty_cc_folder(const ty_cc_job *job)
{
    return job->dir;
}

int ty_cc_n_units(const ty_cc_job *job)
{
    return job->n;
}

void ty_cc_abandon(ty_cc_job *job)
{
    if (!job)
        return;
    cc_tell(job);
    ty_cc_wait(job, NULL);
    if (job->dir[0])
        ty_file_remove_tree(job->dir, NULL);
    free(job);
}

void ty_cc_keep(const char *const *text, int n, const char *dir)
{
    char path[CC_PATH_BYTES];
    if (ty_file_mkdirs(dir, 0755, NULL) < 0)
        return;
    for (int i = 0; i < n; i++)
        cc_write_source(dir, i, text[i], path, NULL);
}

const char *ty_cc_flags(ty_arena *a)
{
    char *all = "";
    for (size_t i = 0; i < CC_N_FLAGS; i++)
        all = ty_arena_printf(a, "%s%s%s", all, i ? " " : "", cc_flags[i]);
    return all;
}
