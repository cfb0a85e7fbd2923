/* stop.c - the signal handler and its two words of state. */
#define _GNU_SOURCE
#include "entrypoint/stop.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static atomic_int n_requests, first_signal;

static void on_signal(int number)
{
    int none = 0;
    atomic_compare_exchange_strong(&first_signal, &none, number);
    if (atomic_fetch_add(&n_requests, 1) + 1 < 3)
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
    return atomic_load(&n_requests);
}

int ty_stop_signal(void)
{
    return atomic_load(&first_signal);
}
