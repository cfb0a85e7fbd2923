/* event.c - see event.h. The kernel compares the number itself, so that no change can come in between. */
#include "dist/comm/event.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

unsigned comm_event_now(comm_event *e)
{
    return atomic_load(&e->number);
}

void comm_event_wait(comm_event *e, unsigned seen)
{
    syscall(SYS_futex, &e->number, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

void comm_event_raise(comm_event *e)
{
    atomic_fetch_add(&e->number, 1);
    syscall(SYS_futex, &e->number, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
