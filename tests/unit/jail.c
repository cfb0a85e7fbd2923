/* jail.c - functions in a child without rights: what comes back, what it may not do, how its end is told. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/jail.h"
#include "base/sanitizer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int run_fn(void *ctx, ty_jail_result *out, ty_error *err);

static ty_jail job(run_fn *run, void *ctx)
{
    return (ty_jail){.reader = "the reader", .task = "reading x.h5", .run = run, .ctx = ctx, .max_bytes = 1 << 20};
}

static void assert_says(const ty_error *err, const char *what)
{
    if (!strstr(err->message, what))
        fail_msg("\"%s\" does not say \"%s\"", err->message, what);
}

static void assert_fails(run_fn *run, void *ctx, ty_code code, const char *says)
{
    ty_jail j = job(run, ctx);
    ty_jail_result r;
    ty_error err = {0};
    j.cpu_seconds = 2;
    assert_int_equal(ty_jail_run(&j, &r, &err), -1);
    assert_says(&err, says);
    assert_int_equal(err.code, code);
    assert_null(r.bytes);
}

/* ---- results ---- */

static int copy(void *ctx, ty_jail_result *out, ty_error *err)
{
    (void)err;
    strcpy((char *)out->bytes, ctx);
    out->n_bytes = strlen(ctx);
    return 0;
}

static void bytes_come_back(void **state)
{
    (void)state;
    char *text = strdup("of the caller's memory");
    ty_jail j = job(copy, text);
    ty_jail_result r;
    ty_error err = {0};
    assert_int_equal(ty_jail_run(&j, &r, &err), 0);
    assert_int_equal(r.n_bytes, strlen(text));
    assert_memory_equal(r.bytes, text, r.n_bytes);
    ty_jail_release(&r);
    ty_jail_release(&r);
    free(text);
}

static int set_flag(void *ctx, ty_error *err)
{
    (void)err;
    *(int *)ctx = 1;
    return 0;
}

static int tell_flag(void *ctx, ty_jail_result *out, ty_error *err)
{
    (void)err;
    out->bytes[0] = (uint8_t) * (int *)ctx;
    out->n_bytes = 1;
    return 0;
}

static void the_caller_s_memory_stays_as_it_was(void **state)
{
    (void)state;
    int flag = 0;
    ty_jail j = job(tell_flag, &flag);
    ty_jail_result r;
    j.prepare = set_flag;
    assert_int_equal(ty_jail_run(&j, &r, NULL), 0);
    assert_int_equal(r.bytes[0], 1);
    assert_int_equal(flag, 0);
    ty_jail_release(&r);
}

static int refuse(void *ctx, ty_jail_result *out, ty_error *err)
{
    (void)ctx, (void)out;
    ty_error_set(err, TY_E_SHAPE, "group \"a\": expected 3, found 4");
    ty_error_at(err, "x.h5: a/b");
    return ty_error_help(err, "save it again");
}

static int forge(void *ctx, ty_jail_result *out, ty_error *err)
{
    (void)ctx, (void)out;
    memset(err, 'A', sizeof *err);
    memcpy(err->message, "\033[2Jx", 5);
    return -1;
}

static void errors_come_back_whole_and_harmless(void **state)
{
    (void)state;
    ty_jail j = job(refuse, NULL);
    ty_jail_result r;
    ty_error err = {0};
    assert_int_equal(ty_jail_run(&j, &r, &err), -1);
    assert_int_equal(err.code, TY_E_SHAPE);
    assert_string_equal(err.message, "group \"a\": expected 3, found 4");
    assert_string_equal(err.place, "x.h5: a/b");
    assert_string_equal(err.help, "save it again");
    j = job(forge, NULL);
    assert_int_equal(ty_jail_run(&j, &r, &err), -1);
    assert_int_equal(err.code, TY_E_DATA);
    assert_null(strchr(err.message, '\033'));
}

static int claim(void *ctx, ty_jail_result *out, ty_error *err)
{
    (void)ctx, (void)err;
    out->n_bytes = (size_t)1 << 40;
    return 0;
}

/* ---- ends ---- */

static int crash(void *ctx, ty_jail_result *out, ty_error *err)
{
    (void)out, (void)err;
    *(volatile int *)ctx = 1;
    return 0;
}

static int leave(void *ctx, ty_jail_result *out, ty_error *err)
{
    (void)ctx, (void)out, (void)err;
    _exit(3);
}

static int spin(void *ctx, ty_jail_result *out, ty_error *err)
{
    (void)out, (void)err;
    for (volatile int *at = ctx; *at >= 0; *at = (*at + 1) & 0xffff)
        ;
    return 0;
}

static int sleep_on(void *ctx, ty_jail_result *out, ty_error *err)
{
    int word = 0;
    (void)out, (void)err;
    if (ctx)
        *(volatile pid_t *)ctx = (pid_t)syscall(SYS_getpid);
    while (word == 0)
        syscall(SYS_futex, &word, 0 /* FUTEX_WAIT */, 0, NULL, NULL, 0);
    return 0;
}

static void ends_are_told(void **state)
{
    (void)state;
    int number = 0;
#if !defined(__SANITIZE_THREAD__)
    assert_fails(crash, (void *)8, TY_E_DATA, "the reader crashed (signal 11, Segmentation fault) while reading x.h5");
#endif
    assert_fails(leave, NULL, TY_E_DATA, "the reader ended without a result (status 3) while reading x.h5");
    assert_fails(claim, NULL, TY_E_DATA, "the reader left 1099511627776 bytes while reading x.h5, at most 1048576 fit");
    assert_fails(spin, &number, TY_E_DATA, "the reader did not finish in 2 s reading x.h5");
    ty_jail j = job(sleep_on, NULL);
    ty_jail_result r;
    ty_error err = {0};
    j.wall_seconds = 1;
    assert_int_equal(ty_jail_run(&j, &r, &err), -1);
    assert_says(&err, "did not finish in 1 s");
}

/* A process in whose jail somebody sleeps is killed: the jail goes with it. */
static void the_child_goes_with_its_parent(void **state)
{
    (void)state;
    volatile pid_t *inmate = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t warden = fork();
    if (warden == 0) {
        ty_jail j = job(sleep_on, (void *)(uintptr_t)inmate);
        ty_jail_result r;
        ty_jail_run(&j, &r, NULL);
        _exit(0);
    }
    while (*inmate == 0)
        usleep(1000);
    kill(warden, SIGKILL);
    waitpid(warden, NULL, 0);
    while (kill(*inmate, 0) == 0) { /* a zombie, until whoever inherited it has looked */
        char path[64], line[256] = "";
        snprintf(path, sizeof path, "/proc/%d/stat", (int)*inmate);
        FILE *f = fopen(path, "r");
        if (!f || !fgets(line, sizeof line, f) || strstr(line, ") Z"))
            line[0] = 0;
        if (f)
            fclose(f);
        if (!line[0])
            break;
        usleep(1000);
    }
    munmap((void *)(uintptr_t)inmate, 4096);
}

/* ---- walls: each function writes what went wrong for the child, expected is nothing but refusals ---- */

#define REFUSED(call)                                                                                 \
    do {                                                                                              \
        errno = 0;                                                                                    \
        if ((call) != -1 || (errno != EPERM && errno != EMFILE && errno != EAGAIN && errno != EBADF)) \
            return ty_error_set(err, TY_E_INTERNAL, "%s gave errno %d", #call, errno);                \
    } while (0)

static int try_all(void *ctx, ty_jail_result *out, ty_error *err)
{
    char *const argv[] = {(char *)"/bin/true", NULL};
    char byte = 0;
    (void)out;
    REFUSED(syscall(SYS_open, "/etc/passwd", O_RDONLY));
    REFUSED(syscall(SYS_openat, AT_FDCWD, "/tmp/jail-was-here", O_WRONLY | O_CREAT, 0600));
    REFUSED(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0));
    REFUSED(syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, ctx));
    REFUSED(syscall(SYS_fork));
    REFUSED(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    REFUSED(syscall(SYS_execve, "/bin/true", argv, NULL));
    REFUSED(syscall(SYS_kill, *(pid_t *)ctx, SIGKILL));
    REFUSED(syscall(SYS_ptrace, 0, 0, 0, 0));
    REFUSED(syscall(SYS_unlink, "/tmp/x"));
    REFUSED(syscall(SYS_prctl, 1, 0, 0, 0));
    REFUSED(syscall(SYS_setrlimit, 7, ctx));
    REFUSED(syscall(SYS_write, *((int *)ctx + 1), &byte, 1));
    REFUSED(syscall(SYS_mprotect, (uintptr_t)&try_all & ~(uintptr_t)4095, 4096, PROT_READ | PROT_WRITE | PROT_EXEC));
    if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
        return ty_error_set(err, TY_E_INTERNAL, "memory that is executable");
    if (environ && environ[0])
        return ty_error_set(err, TY_E_INTERNAL, "an environment: %s", environ[0]);
    return 0;
}

static void nothing_of_the_system_is_in_reach(void **state)
{
    (void)state;
    int numbers[2] = {getpid(), open("/dev/null", O_WRONLY)};
    ty_jail j = job(try_all, numbers);
    ty_jail_result r;
    ty_error err = {0};
    setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    if (ty_jail_run(&j, &r, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(getenv("AWS_SECRET_ACCESS_KEY"), "secret");
    unsetenv("AWS_SECRET_ACCESS_KEY");
    close(numbers[1]);
    ty_jail_release(&r);
}

static int take_memory(void *ctx, ty_jail_result *out, ty_error *err)
{
    (void)ctx;
    for (size_t n = 0;; n += 1 << 20) {
        char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) {
            memcpy(out->bytes, &n, out->n_bytes = sizeof n);
            return 0;
        }
        if (n > (size_t)1 << 30)
            return ty_error_set(err, TY_E_INTERNAL, "no limit");
    }
}

static void memory_is_limited(void **state)
{
    (void)state;
    ty_jail j = job(take_memory, NULL);
    ty_jail_result r;
    ty_error err = {0};
    size_t n;
    j.memory_bytes = 64 << 20;
    if (ty_jail_run(&j, &r, &err) < 0)
        fail_msg("%s", err.message);
    memcpy(&n, r.bytes, sizeof n);
    assert_in_range(n, 32 << 20, 64 << 20);
    ty_jail_release(&r);
}

/* ---- a parent with threads, all of which hold malloc's locks now and then ---- */

static atomic_bool over;

static void *churn(void *ctx)
{
    unsigned seed = (unsigned)(uintptr_t)ctx;
    while (!atomic_load(&over)) {
        void *p = malloc(64 + (size_t)rand_r(&seed) % 100000);
        *(volatile char *)p = 1;
        free(p);
    }
    return NULL;
}

static int use_malloc(void *ctx, ty_jail_result *out, ty_error *err)
{
    (void)ctx, (void)err;
    for (size_t i = 1; i < 200; i++)
        free(memset(malloc(i * 1000), 1, i * 1000));
    out->n_bytes = 0;
    return 0;
}

static void parents_may_have_threads(void **state)
{
    (void)state;
#if TY_SANITIZES_ADDRESS
    skip(); /* its own malloc takes no care of its locks when a process forks; glibc's does */
#endif
    pthread_t thread[3];
    for (uintptr_t i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, churn, (void *)(i + 1));
    for (int i = 0; i < 30; i++) {
        ty_jail j = job(use_malloc, NULL);
        ty_jail_result r;
        ty_error err = {0};
        if (ty_jail_run(&j, &r, &err) < 0)
            fail_msg("run %d: %s", i, err.message);
        ty_jail_release(&r);
    }
    atomic_store(&over, true);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_back),
        cmocka_unit_test(the_caller_s_memory_stays_as_it_was),
        cmocka_unit_test(errors_come_back_whole_and_harmless),
        cmocka_unit_test(ends_are_told),
        cmocka_unit_test(the_child_goes_with_its_parent),
        cmocka_unit_test(nothing_of_the_system_is_in_reach),
        cmocka_unit_test(memory_is_limited),
        cmocka_unit_test(parents_may_have_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
