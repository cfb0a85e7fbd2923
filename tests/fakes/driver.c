/* driver.c - the part of the stand-in driver (libcuda.c) that works, on the host: driver.h lists its files.
 *
 * A module is a shared object that the stand-in for NVRTC has made (gpu/libnvrtc.c); its kernels run as fibers. What a
 * driver would only punish by chance ends the process with a message: an address outside live memory, memory or waiting
 * inside a capture, code of a library that is loaded there, a parameter that is no address, something of another
 * context, something used after it was given back, a context that is made again after it was destroyed: libraries keep
 * what they have loaded into the first one.
 *
 * Each device has memory, streams and captures of its own, and is used by one thread at a time, whose current context
 * says which it is.
 *
 * Work of a stream runs as late as the order that events ask for allows: when the host waits for it. So a host that
 * reads or overwrites too early, and a stream that forgets to wait for another, come to wrong results.
 *
 *     TY_FAKE_TRACE=FILE      a line for each call that changes something; of device n > 0 in FILE.n. `@n` is the
 * stream that it goes to, `en` an event, by the numbers in which a context made them TY_FAKE_STREAMS=ahead   work of
 * every stream but a device's first runs as early as it may, instead TY_FAKE_RUN=none        all is asked and checked,
 * and nothing is computed or copied TY_FAKE_FAIL=1,5        the fifth graph that is started on device 1 is refused
 *     TY_FAKE_FAIL=1,5,later  it never runs, which the host hears when it waits
 *     TY_FAKE_HELD=BYTES      what libraries take of a device's memory once their code is loaded
 */
#include "driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUctx_st devices[MAX_DEVICES];
__thread struct CUctx_st *now;
pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;

int number_now(void)
{
    return (int)(now - devices);
}

int fake_device(void)
{
    return now && now->users > 0 ? number_now() : -1;
}

bool runs_nothing(void)
{
    const char *run = getenv("TY_FAKE_RUN");
    return run && strcmp(run, "none") == 0;
}

static FILE *trace_file(const char *path, int device)
{
    static FILE *file[MAX_DEVICES];
    char own[4096];
    snprintf(own, sizeof own, "%s", path);
    if (device > 0)
        snprintf(own, sizeof own, "%s.%d", path, device);
    if (!file[device])
        file[device] = fopen(own, "w");
    return file[device];
}

void trace(const char *fmt, ...)
{
    const char *path = getenv("TY_FAKE_TRACE");
    if (!path)
        return;
    pthread_mutex_lock(&shared);
    FILE *file = trace_file(path, now ? number_now() : 0);
    va_list args;
    va_start(args, fmt);
    if (file) {
        vfprintf(file, fmt, args);
        fflush(file);
    }
    va_end(args);
    pthread_mutex_unlock(&shared);
}

void fake_wrong(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("stand-in driver: ", stderr);
    vfprintf(stderr, fmt, args);
    fputs("\n", stderr);
    va_end(args);
    abort();
}

void no_capture(const char *what)
{
    if (!now || now->users == 0)
        fake_wrong("%s without a context", what);
    for (CUstream s = now->streams; s; s = s->next)
        if (s->graph)
            fake_wrong("%s while a step is captured", what);
}

/* ---- contexts ---- */

unsigned cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    if (device < 0 || device >= MAX_DEVICES)
        fake_wrong("a context of device %d", device);
    if (fake_is_forked())
        return fake_is_forked();
    pthread_mutex_lock(&shared);
    if (devices[device].users++ == 0 && devices[device].made++ > 0)
        fake_wrong("the context of device %d was destroyed and is made again", device);
    pthread_mutex_unlock(&shared);
    *context = &devices[device];
    return TY_CU_SUCCESS;
}

static void nothing_is_left(int device)
{
    no_memory_is_left(device);
    if (devices[device].streams)
        fake_wrong("a stream is left behind on device %d", device);
    if (devices[device].events)
        fake_wrong("an event is left behind on device %d", device);
    if (devices[device].graphs)
        fake_wrong("a graph is left behind on device %d", device);
}

unsigned cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    pthread_mutex_lock(&shared);
    if (--devices[device].users <= 1) /* the last is who keeps the context, and has nothing in it */
        nothing_is_left(device);
    pthread_mutex_unlock(&shared);
    return TY_CU_SUCCESS;
}

unsigned cuCtxSetCurrent(CUcontext context)
{
    now = context;
    return TY_CU_SUCCESS;
}
