/* stop.c - the thread that waits for signals, and its two words of state. */
#define _GNU_SOURCE
#include "entrypoint/stop.h"

#include "base/clock.h"
#include "base/toolchain.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 200 };

static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
static int n_requests, first_signal, ends_after_ms = TY_STOP_NEVER; /* touched by __atomic builtins alone */
static pthread_t listener;
static bool listening;
static sigset_t mask_before;

static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
static bool (*asked)(void);

void ty_stop_ends_if(bool (*is_over)(void))
{
    pthread_mutex_lock(&asking);
    asked = is_over;
    pthread_mutex_unlock(&asking);
}

static bool is_over(void)
{
    pthread_mutex_lock(&asking);
    bool over = asked && asked();
    pthread_mutex_unlock(&asking);
    return over;
}

static void request(int number)
{
    int none = 0;
    __atomic_compare_exchange_n(&first_signal, &none, number, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    int n = __atomic_add_fetch(&n_requests, 1, __ATOMIC_SEQ_CST);
    if (n >= 3 || __atomic_load_n(&ends_after_ms, __ATOMIC_SEQ_CST) == 0 || is_over())
        _exit(128 + number);
}

static sigset_t stop_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaddset(&set, signals[i]);
    return set;
}

/* What a request leaves to the process may change after it has come: less time, or nobody left to wait for. */
static bool is_time(int64_t asked_ms)
{
    int after_ms = __atomic_load_n(&ends_after_ms, __ATOMIC_SEQ_CST);
    return (after_ms != TY_STOP_NEVER && ty_clock_ms() >= asked_ms + after_ms) || is_over();
}

/* The next signal; from the first request on, -1 again and again, unless it is time to end. */
static int next_signal(const sigset_t *set, int64_t asked_ms)
{
    if (asked_ms == 0)
        return sigwaitinfo(set, NULL);
    int number = sigtimedwait(set, NULL, &(struct timespec){.tv_nsec = LOOK_MS * 1000000L});
    if (number < 0 && errno == EAGAIN && is_time(asked_ms))
        _exit(128 + ty_stop_signal());
    return number;
}

/* Ends by a signal that is sent to this thread alone: a cancellation could swallow a request. */
static void *listen_for_signals(void *unused)
{
    sigset_t set = stop_signals();
    int64_t asked_ms = 0; /* when the first request came; 0: none has */
    sigaddset(&set, SIGRTMAX);
    for (;;) {
        int number = next_signal(&set, asked_ms);
        if (number == SIGRTMAX)
            return unused;
        if (number < 0)
            continue;
        request(number);
        asked_ms = asked_ms ? asked_ms : ty_clock_ms();
    }
}

static bool was_requested(void)
{
    return ty_stop_count() > 0;
}

/* The listener is born with every signal blocked: none but those it waits for are its business. */
int ty_stop_install(ty_error *err)
{
    sigset_t set = stop_signals(), all, blocked;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &set, &mask_before);
    pthread_sigmask(SIG_SETMASK, &all, &blocked);
    int rc = pthread_create(&listener, NULL, listen_for_signals, NULL);
    pthread_sigmask(SIG_SETMASK, rc == 0 ? &blocked : &mask_before, NULL);
    if (rc != 0)
        return ty_error_errno(err, TY_E_LIMIT, rc, "cannot start the thread that waits for signals");
    pthread_setname_np(listener, "ty-signals");
    listening = true;
    ty_toolchain_ends_if(was_requested);
    return 0;
}

/* A thread's own signals go before the process's: the listener may have left while a request was waiting for it. */
static void count_waiting(void)
{
    sigset_t set = stop_signals();
    for (int number; (number = sigtimedwait(&set, NULL, &(struct timespec){0})) > 0;)
        request(number);
}

void ty_stop_uninstall(void)
{
    if (!listening)
        return;
    listening = false;
    ty_toolchain_ends_if(NULL);
    pthread_kill(listener, SIGRTMAX);
    pthread_join(listener, NULL);
    count_waiting();
    pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
}

void ty_stop_ends_after(int ms)
{
    __atomic_store_n(&ends_after_ms, ms, __ATOMIC_SEQ_CST);
}

int ty_stop_count(void)
{
    return __atomic_load_n(&n_requests, __ATOMIC_SEQ_CST);
}

int ty_stop_signal(void)
{
    return __atomic_load_n(&first_signal, __ATOMIC_SEQ_CST);
}
