/* jail_walls.c - see jail_walls.h. The numbers of the filter are Linux's own: seccomp(2), <linux/filter.h>. */
#define _GNU_SOURCE
#include "base/jail_walls.h"

#include "base/sanitizer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define JAIL_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define JAIL_ARCH AUDIT_ARCH_AARCH64
#endif

/* ---- first step -------------------------------------------------------------------------------------------------- */

static void reset_signals(void)
{
    struct sigaction normal = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int s = 1; s < NSIG; s++)
        sigaction(s, &normal, NULL); /* fails for those that cannot be changed */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
}

/* The texts too, not the list alone: credentials may be among them. */
static void forget_environment(void)
{
    for (char **e = environ; e && *e; e++)
        explicit_bzero(*e, strlen(*e));
    clearenv();
}

/* Descriptors 0 to 2 stay taken, so that nothing else gets their numbers; words of a sanitizer are let out. */
static void close_all_but(int fd_kept)
{
    int keep_fd = fcntl(fd_kept, F_DUPFD, 3); /* it may be one of the three, where the parent had none of them */
    int null = open("/dev/null", O_RDWR);
    int n_std = 3;
#if TY_SANITIZES_ADDRESS
    n_std = 2;
#endif
    for (int fd = 0; fd < n_std; fd++)
        if (null < 0 || dup2(null, fd) < 0)
            close(fd);
    struct rlimit files = {0};
    getrlimit(RLIMIT_NOFILE, &files);
    unsigned first = 3, keep = keep_fd < 0 ? (unsigned)fd_kept : (unsigned)keep_fd;
#ifdef SYS_close_range
    if ((keep == first || syscall(SYS_close_range, first, keep - 1, 0) == 0) &&
        syscall(SYS_close_range, keep + 1, ~0u, 0) == 0)
        return;
#endif
    unsigned last = files.rlim_cur < 65536 ? (unsigned)files.rlim_cur : 65536;
    for (unsigned fd = first; fd < last; fd++)
        if (fd != keep)
            close((int)fd);
}

/* If memory runs out, the kernel should take this process and not the one that waits for it. */
static void volunteer_for_oom(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY);
    if (fd < 0)
        return;
    ssize_t n = write(fd, "1000", 4);
    (void)n; /* as good as it gets */
    close(fd);
}

void ty_jail_strip(int keep_fd)
{
    reset_signals();
    forget_environment();
    close_all_but(keep_fd);
    volunteer_for_oom();
}

/* ---- second step ------------------------------------------------------------------------------------------------- */

/* A sanitizer has mapped terabytes already, so the limit counts from what there is. */
static size_t mapped_bytes(void)
{
    char text[64] = {0};
    int fd = open("/proc/self/statm", O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    return n > 0 ? (size_t)strtoull(text, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

static int limit(int what, const char *name, rlim_t soft, rlim_t hard, ty_error *err)
{
    struct rlimit now;
    if (getrlimit((__rlimit_resource_t)what, &now) == 0 && now.rlim_max < hard) { /* nobody may ask for more */
        hard = now.rlim_max;
        soft = soft < hard ? soft : hard;
    }
    if (setrlimit((__rlimit_resource_t)what, &(struct rlimit){soft, hard}) == 0)
        return 0;
    return ty_error_errno(err, TY_E_NONE, errno, "cannot limit %s", name);
}

static int set_limits(size_t memory_bytes, int cpu_seconds, ty_error *err)
{
    size_t mapped = mapped_bytes();
    rlim_t cpu = (rlim_t)cpu_seconds;
    if (mapped && limit(RLIMIT_AS, "memory", mapped + memory_bytes, mapped + memory_bytes, err) < 0)
        return -1;
    if (limit(RLIMIT_CPU, "processor time", cpu, cpu + 1, err) < 0)
        return -1;
    static const struct {
        int what;
        const char *name;
    } none[] = {{RLIMIT_FSIZE, "file sizes"}, {RLIMIT_NOFILE, "descriptors"},    {RLIMIT_NPROC, "processes"},
                {RLIMIT_CORE, "core dumps"},  {RLIMIT_MEMLOCK, "locked memory"}, {RLIMIT_MSGQUEUE, "message queues"}};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        if (limit(none[i].what, none[i].name, 0, 0, err) < 0)
            return -1;
    return 0;
}

#ifdef JAIL_ARCH

/* What malloc, clocks and the end of a process need. Memory is anonymous and never executable: see the filter. */
static const int jail_allowed[] = {
    SYS_brk,          SYS_munmap,         SYS_mremap,       SYS_madvise,    SYS_futex,  SYS_clock_gettime,
    SYS_gettimeofday, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_getpid,     SYS_gettid, SYS_sched_yield,
    SYS_getrandom,    SYS_close,          SYS_exit,         SYS_exit_group,
#ifdef SYS_time
    SYS_time,
#endif
#if TY_SANITIZES_ADDRESS
    SYS_write,        SYS_sigaltstack,    SYS_getrlimit,
#endif
};

enum { N_ALLOWED = sizeof jail_allowed / sizeof jail_allowed[0], FILTER_MAX = 32 + 2 * N_ALLOWED };

typedef struct filter {
    struct sock_filter op[FILTER_MAX];
    unsigned short n;
} filter;

static void emit(filter *f, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
    f->op[f->n++] = (struct sock_filter){code, jt, jf, k};
}

static void emit_load(filter *f, size_t offset)
{
    emit(f, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void emit_return(filter *f, uint32_t what)
{
    emit(f, BPF_RET | BPF_K, what, 0, 0);
}

static const uint32_t REFUSE = SECCOMP_RET_ERRNO | EPERM;

/* The low half of an argument, as lies first on the little-endian machines that we know. */
static size_t argument(int i)
{
    return offsetof(struct seccomp_data, args) + (size_t)i * 8;
}

/* mmap of no file and nothing executable, mprotect to nothing executable. */
static void emit_memory(filter *f)
{
    emit(f, BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 6);
    emit_load(f, argument(4)); /* the descriptor */
    emit(f, BPF_JMP | BPF_JEQ | BPF_K, 0xffffffffu, 0, 3);
    emit_load(f, argument(2));
    emit(f, BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0);
    emit_return(f, SECCOMP_RET_ALLOW);
    emit_return(f, REFUSE);
    emit(f, BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 4);
    emit_load(f, argument(2));
    emit(f, BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0);
    emit_return(f, SECCOMP_RET_ALLOW);
    emit_return(f, REFUSE);
}

static void build_filter(filter *f)
{
    emit_load(f, offsetof(struct seccomp_data, arch));
    emit(f, BPF_JMP | BPF_JEQ | BPF_K, JAIL_ARCH, 1, 0);
    emit_return(f, SECCOMP_RET_KILL_PROCESS);
    emit_load(f, offsetof(struct seccomp_data, nr)); /* x32 has numbers of its own: none of them is in the list */
    for (size_t i = 0; i < N_ALLOWED; i++) {
        emit(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)jail_allowed[i], 0, 1);
        emit_return(f, SECCOMP_RET_ALLOW);
    }
    emit_memory(f);
    emit_return(f, REFUSE);
}

static int install_filter(ty_error *err)
{
    filter f = {.n = 0};
    build_filter(&f);
    struct sock_fprog program = {f.n, f.op};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 || errno == EINVAL || errno == ENOSYS)
        return 0;
    return ty_error_errno(err, TY_E_NONE, errno, "cannot install a seccomp filter");
}

#else

static int install_filter(ty_error *err)
{
    (void)err;
    return 0; /* an architecture whose numbers nobody has looked up: limits alone */
}

#endif

int ty_jail_raise_walls(size_t memory_bytes, int cpu_seconds, ty_error *err)
{
    prctl(PR_SET_DUMPABLE, 0);
    if (set_limits(memory_bytes, cpu_seconds, err) < 0)
        return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 && errno != EINVAL)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot give up new privileges");
    return install_filter(err);
}
