/* ahead.c - see ahead.h. The thread is nobody's: it has its own descriptor, ends by itself, and after a fork without
 * exec nothing waits for it. */
#define _GNU_SOURCE
#include "base/ahead.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* The system takes of one request what the device reads ahead at most, often 128 KiB, and forgets the rest. */
enum { AHEAD_PIECE_BYTES = 128 << 10, AHEAD_LEAST_BYTES = 1 << 20, AHEAD_MOST_BYTES = 1 << 30, AHEAD_MOST_FILES = 8 };

static atomic_int n_read; /* files at the moment: weights may lie in thousands */

typedef struct ahead {
    int fd;
    size_t n_bytes;
} ahead;

static void *ahead_thread(void *arg)
{
    ahead *a = arg;
    int rc = 0;
    for (size_t at = 0; at < a->n_bytes && rc == 0; at += AHEAD_PIECE_BYTES)
        rc = posix_fadvise(a->fd, (off_t)at, AHEAD_PIECE_BYTES, POSIX_FADV_WILLNEED);
    close(a->fd);
    free(a);
    atomic_fetch_sub(&n_read, 1);
    return NULL;
}

static int ahead_start(ahead *a)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0)
        return -1;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread, &attributes, ahead_thread, a);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return rc;
}

static bool ahead_begin(int fd, size_t n_bytes)
{
    ahead *a = malloc(sizeof *a);
    if (!a)
        return false;
    *a = (ahead){fcntl(fd, F_DUPFD_CLOEXEC, 0), n_bytes < AHEAD_MOST_BYTES ? n_bytes : AHEAD_MOST_BYTES};
    if (a->fd >= 0 && ahead_start(a) == 0)
        return true;
    if (a->fd >= 0)
        close(a->fd);
    free(a);
    return false;
}

void ty_ahead_read(int fd, size_t n_bytes)
{
    if (n_bytes < AHEAD_LEAST_BYTES)
        return;
    if (atomic_fetch_add(&n_read, 1) >= AHEAD_MOST_FILES || !ahead_begin(fd, n_bytes))
        atomic_fetch_sub(&n_read, 1);
}
