/* stop.c - the signal handler and its two words of state. */
#define _GNU_SOURCE
#include "entrypoint/stop.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

static int n_requests, first_signal; /* touched by __atomic builtins alone */

static void on_signal(int number)
{
    int none = 0;
    __atomic_compare_exchange_n(&first_signal, &none, number, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    if (__atomic_add_fetch(&n_requests, 1, __ATOMIC_SEQ_CST) < 3)
        return;
    _exit(128 + number);
}

void ty_stop_install(void)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaction(signals[i], &action, NULL);
}

int ty_stop_count(void)
{
    return __atomic_load_n(&n_requests, __ATOMIC_SEQ_CST);
}

int ty_stop_signal(void)
{
    return __atomic_load_n(&first_signal, __ATOMIC_SEQ_CST);
}
