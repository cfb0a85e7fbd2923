/* stop.c - the thread that waits for signals, and its two words of state. */
#define _GNU_SOURCE
#include "entrypoint/stop.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
static int n_requests, first_signal, ends_at_once; /* touched by __atomic builtins alone */
static pthread_t listener;
static bool listening;
static sigset_t mask_before;

static void request(int number)
{
    int none = 0;
    __atomic_compare_exchange_n(&first_signal, &none, number, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    int n = __atomic_add_fetch(&n_requests, 1, __ATOMIC_SEQ_CST);
    if (n >= 3 || __atomic_load_n(&ends_at_once, __ATOMIC_SEQ_CST))
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

/* Ends by a signal that is sent to this thread alone: a cancellation could swallow a request. */
static void *listen_for_signals(void *unused)
{
    sigset_t set = stop_signals();
    sigaddset(&set, SIGRTMAX);
    for (int number;;) {
        if (sigwait(&set, &number) != 0)
            continue;
        if (number == SIGRTMAX)
            return unused;
        request(number);
    }
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
    pthread_kill(listener, SIGRTMAX);
    pthread_join(listener, NULL);
    count_waiting();
    pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
}

void ty_stop_ends_at_once(bool on)
{
    __atomic_store_n(&ends_at_once, on, __ATOMIC_SEQ_CST);
}

int ty_stop_count(void)
{
    return __atomic_load_n(&n_requests, __ATOMIC_SEQ_CST);
}

int ty_stop_signal(void)
{
    return __atomic_load_n(&first_signal, __ATOMIC_SEQ_CST);
}
