/* jail.c - the parent's side: shared memory, the child's life, what its end means. The walls are in jail_walls.c. */
#define _GNU_SOURCE
#include "base/jail.h"

#include "base/child.h"
#include "base/jail_walls.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* In front of the result, in the same shared memory. The child may write anything here at any time, so each field is
 * read once, after its end. */
typedef struct jail_page {
    int done; /* 1: run() succeeded; -1: it failed with this error */
    size_t n_bytes;
    ty_error error;
} jail_page;

enum { PAGE_BYTES = 16384, MIN_RESULT_BYTES = 1 << 20 };
_Static_assert(sizeof(jail_page) <= PAGE_BYTES, "the page holds the error");

static jail_page *page_of(const ty_jail_result *r)
{
    return (jail_page *)(void *)(r->bytes - PAGE_BYTES);
}

/* Shared and sparse: pages come when they are touched. Where the system counts promises (overcommit_memory 2), less is
 * taken until it agrees. */
static int map_result(const ty_jail *j, ty_jail_result *out, ty_error *err)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t physical = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : SIZE_MAX;
    size_t n = j->max_bytes < physical ? j->max_bytes : physical;
    for (;; n /= 2) {
        void *p = mmap(NULL, n + PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p != MAP_FAILED) {
            *out = (ty_jail_result){.bytes = (uint8_t *)p + PAGE_BYTES, .max_bytes = n};
            return 0;
        }
        if (n < MIN_RESULT_BYTES)
            return ty_error_errno(err, TY_E_LIMIT, errno, "%s: no memory for a result of %zu bytes", j->task,
                                  j->max_bytes);
    }
}

void ty_jail_release(ty_jail_result *r)
{
    if (r->bytes)
        munmap(r->bytes - PAGE_BYTES, r->max_bytes + PAGE_BYTES);
    *r = (ty_jail_result){0};
}

/* ---- the child ---- */

static void run_child(const ty_jail *j, ty_jail_result *r, pid_t parent, int life_fd)
{
    jail_page *page = page_of(r);
    ty_error err = {0};
    size_t memory = j->memory_bytes ? j->memory_bytes : TY_JAIL_MEMORY_BYTES;
    int cpu_seconds = j->cpu_seconds ? j->cpu_seconds : TY_JAIL_CPU_SECONDS;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it ended between fork and prctl */
        ty_child_end(1);
    ty_jail_strip(life_fd);
    int rc = j->prepare ? j->prepare(j->ctx, &err) : 0;
    rc = rc < 0 ? rc : ty_jail_raise_walls(memory, cpu_seconds, &err);
    rc = rc < 0 ? rc : j->run(j->ctx, r, &err);
    page->n_bytes = r->n_bytes;
    page->error = err;
    page->done = rc < 0 ? -1 : 1;
    ty_child_end(0);
}

/* ---- the parent ---- */

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Until the child has closed the pipe, which its end does. False: it had not when its time was over. */
static bool wait_for_end(int fd, int seconds)
{
    int64_t until = now_ms() + (int64_t)seconds * 1000;
    for (;;) {
        int64_t left = until - now_ms();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (left <= 0)
            return false;
        int n = poll(&p, 1, left > 60000 ? 60000 : (int)left);
        if (n > 0 || (n < 0 && errno != EINTR))
            return true;
    }
}

/* A child that has closed the pipe is at its end, or pretends to be: either way it is gone afterwards. */
static int reap(pid_t child)
{
    int status = 0;
    pid_t got;
    kill(child, SIGKILL);
    while ((got = waitpid(child, &status, 0)) < 0 && errno == EINTR)
        continue;
    return got == child ? status : -1; /* -1: somebody else took it */
}

static int explain_end(const ty_jail *j, int status, bool in_time, ty_error *err)
{
    int seconds = j->wall_seconds ? j->wall_seconds : TY_JAIL_WALL_SECONDS;
    int sig = status >= 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (!in_time || sig == SIGXCPU)
        ty_error_set(err, TY_E_DATA, "%s did not finish in %d s %s", j->reader,
                     in_time ? (j->cpu_seconds ? j->cpu_seconds : TY_JAIL_CPU_SECONDS) : seconds, j->task);
    else if (sig == SIGKILL)
        ty_error_set(err, TY_E_LIMIT, "%s was killed (signal 9) while %s; perhaps there was no memory left", j->reader,
                     j->task);
    else if (sig)
        ty_error_set(err, TY_E_DATA, "%s crashed (signal %d, %s) while %s", j->reader, sig, strsignal(sig), j->task);
    else
        ty_error_set(err, TY_E_DATA, "%s ended without a result (status %d) while %s", j->reader,
                     status >= 0 ? WEXITSTATUS(status) : -1, j->task);
    return ty_error_help(err, "the file is damaged or hostile; nothing of it was used");
}

/* Texts of the child's error end somewhere, and ty_error_set escapes what terminals would obey. */
static int take_error(const jail_page *page, ty_error *err)
{
    ty_error e = page->error;
    e.message[sizeof e.message - 1] = e.place[sizeof e.place - 1] = 0;
    e.detail[sizeof e.detail - 1] = e.help[sizeof e.help - 1] = 0;
    ty_error_set(err, ty_error_meaning(e.code) ? e.code : TY_E_DATA, "%s",
                 e.message[0] ? e.message : "no reason given");
    if (e.place[0])
        ty_error_at(err, "%s", e.place);
    if (e.help[0])
        ty_error_help(err, "%s", e.help);
    return -1;
}

static int take_result(const ty_jail *j, ty_jail_result *r, int status, bool in_time, ty_error *err)
{
    const jail_page *page = page_of(r);
    int done = page->done;
    size_t n = page->n_bytes;
    if (done < 0)
        return take_error(page, err);
    if (done != 1)
        return explain_end(j, status, in_time, err);
    if (n > r->max_bytes)
        return ty_error_set(err, TY_E_DATA, "%s left %zu bytes while %s, at most %zu fit", j->reader, n, j->task,
                            r->max_bytes);
    r->n_bytes = n;
    return 0;
}

int ty_jail_run(const ty_jail *j, ty_jail_result *out, ty_error *err)
{
    int life[2];
    *out = (ty_jail_result){0};
    if (map_result(j, out, err) < 0)
        return -1;
    if (pipe2(life, O_CLOEXEC) < 0) {
        ty_error_errno(err, TY_E_NONE, errno, "%s: pipe", j->task);
        ty_jail_release(out);
        return -1;
    }
    pid_t self = getpid();
    pid_t child = fork();
    if (child == 0)
        run_child(j, out, self, life[1]);
    int fork_errno = errno;
    close(life[1]);
    int rc;
    if (child < 0)
        rc = ty_error_errno(err, TY_E_LIMIT, fork_errno, "%s: fork", j->task);
    else {
        bool in_time = wait_for_end(life[0], j->wall_seconds ? j->wall_seconds : TY_JAIL_WALL_SECONDS);
        rc = take_result(j, out, reap(child), in_time, err);
    }
    close(life[0]);
    if (rc < 0)
        ty_jail_release(out);
    return rc;
}
