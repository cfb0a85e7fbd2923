/* event.h - waiting until something has changed.
 *
 * The number of changes so far is read while the state is looked at under a lock; who finds the state wanting waits
 * for another number, without the lock:
 *
 *     pthread_mutex_lock(&lock);
 *     while (!ready) {
 *         unsigned seen = comm_event_now(&event);
 *         pthread_mutex_unlock(&lock);
 *         comm_event_wait(&event, seen);
 *         pthread_mutex_lock(&lock);
 *     }
 *
 * This in place of condition variables: with waiters of several kinds on one, those of glibc before 2.41 can lose a
 * wake-up (its bug 25847), and a rank that sleeps for ever stops all others.
 */
#ifndef TY_DIST_COMM_EVENT_H
#define TY_DIST_COMM_EVENT_H

#include <stdatomic.h>

typedef struct comm_event {
    atomic_uint number;
} comm_event;

unsigned comm_event_now(comm_event *e);
void comm_event_wait(comm_event *e, unsigned seen); /* may also return without a change */
void comm_event_raise(comm_event *e);               /* after the state was changed, under the lock */

#endif
