/* driver.c - the part of the stand-in driver (libcuda.c) that works: memory, kernels, streams, graphs, on the host.
 *
 * A module is a shared object that the stand-in for NVRTC has made (gpu/libnvrtc.c); its kernels run as fibers. What a
 * driver would only punish by chance ends the process with a message: an address outside live memory, memory or waiting
 * inside a capture, a parameter that is no address, something used after it was given back.
 *
 * Each device has memory, streams and captures of its own, and is used by one thread at a time, whose current context
 * says which it is.
 *
 * Work of a stream runs as late as the order that events ask for allows: when the host waits for it. So a host that
 * reads or overwrites too early, and a stream that forgets to wait for another, come to wrong results.
 *
 *     TY_FAKE_TRACE=FILE      a line for each call that changes something
 *     TY_FAKE_STREAMS=ahead   work of every stream but a device's first runs as early as it may, instead
 *     TY_FAKE_FAIL=1,5        the fifth graph that is started on device 1 is refused
 *     TY_FAKE_FAIL=1,5,later  it never runs, which the host hears when it waits
 */
#define _GNU_SOURCE
#include "fake.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MAX_BLOCKS = 1024, ALIGN = 256, NAME_BYTES = 64, MAX_DEVICES = 8 };

/* Over what devices share: lists of memory and functions, the trace. Never held while work runs. */
static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;

static void trace(const char *fmt, ...)
{
    static FILE *file;
    const char *path = getenv("TY_FAKE_TRACE");
    if (!path)
        return;
    pthread_mutex_lock(&shared);
    if (!file)
        file = fopen(path, "w");
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

/* ---- memory: addresses of the device are addresses of the host ---- */

typedef struct block {
    char *at;
    size_t bytes;
    bool host;
    int device; /* that asked for it */
} block;

static block blocks[MAX_BLOCKS];
static int n_blocks;

/* ---- streams: work in order, done when somebody needs it ---- */

typedef struct work {
    fake_work_fn *run;
    void *given; /* a copy; owned */
    size_t bytes;
    CUstream after; /* not NULL: waits until that stream has come as far as `until`; in a graph, what of it stands in
                       the list before `until` */
    long until;
    CUstream stream; /* in a graph: that it was issued to */
    char text[NAME_BYTES];
} work;

struct CUgraph_st {
    work *list;
    int n;
    CUstream origin; /* that was captured; others were taken in by events */
    bool ahead;      /* work of the others as early as it may be */
};

struct CUstream_st {
    CUgraph graph; /* that is being captured, or NULL */
    work *list;    /* all that is not done */
    int n_pending;
    long issued, done;
    long graphs; /* that were started */
    double ms;   /* that all work took, as it says itself */
    bool first;
    CUstream next;
};

struct CUevent_st {
    CUstream stream; /* NULL: not recorded */
    long until, graphs;
    double ms;
    CUgraph graph; /* it was recorded in a capture */
    bool timed;
    long stamp_ns;
};

static struct CUctx_st {
    int users; /* of the context */
    CUstream streams;
    int n_events;
    size_t used_bytes;
    int n_graphs; /* that were started */
    bool broken;  /* nothing runs any more */
} devices[MAX_DEVICES];
static __thread struct CUctx_st *now; /* the current context */

static int number_now(void)
{
    return (int)(now - devices);
}

static void run_until(CUstream s, long until)
{
    while (s->done < until) {
        work w = s->list[0];
        memmove(s->list, s->list + 1, sizeof *s->list * (size_t)--s->n_pending);
        s->done++;
        if (w.after)
            run_until(w.after, w.until);
        else
            w.run(w.given);
        free(w.given);
    }
}

static void run_all(void)
{
    for (CUstream s = now->streams; s; s = s->next)
        run_until(s, s->issued);
}

static void no_capture(const char *what)
{
    if (!now || now->users == 0)
        fake_wrong("%s without a context", what);
    for (CUstream s = now->streams; s; s = s->next)
        if (s->graph)
            fake_wrong("%s while a step is captured", what);
}

static CUstream known(CUstream stream, const char *what)
{
    for (CUstream s = now ? now->streams : NULL; s; s = s->next)
        if (s == stream)
            return s;
    fake_wrong("%s on a stream that is not there", what);
    return NULL;
}

static bool runs_ahead(CUstream s)
{
    const char *order = getenv("TY_FAKE_STREAMS");
    return !s->first && order && strcmp(order, "ahead") == 0;
}

static void issue(CUstream s, work w)
{
    s->list = realloc(s->list, sizeof *s->list * (size_t)(s->n_pending + 1));
    s->list[s->n_pending++] = w;
    s->issued++;
    if (runs_ahead(s))
        run_until(s, s->issued);
}

/* The piece that has these bytes, of this device or of the host; at NULL: there is none. */
static block find_block(const void *at, size_t bytes)
{
    block found = {0};
    pthread_mutex_lock(&shared);
    for (int i = 0; i < n_blocks; i++)
        if ((const char *)at >= blocks[i].at && (const char *)at + bytes <= blocks[i].at + blocks[i].bytes)
            found = blocks[i];
    pthread_mutex_unlock(&shared);
    return found.host || found.device == number_now() ? found : (block){0};
}

void fake_check(const void *at, size_t bytes, const char *what)
{
    if (find_block(at, bytes).at)
        return;
    fake_wrong("%s: %zu bytes at %p are not inside memory of the device or pinned memory", what, bytes, at);
}

static unsigned get(size_t bytes, bool host, void **out)
{
    no_capture("memory is asked for");
    if (!host && now->used_bytes + bytes > fake_gpu_bytes(number_now()))
        return TY_CU_ERROR_OUT_OF_MEMORY;
    if (n_blocks == MAX_BLOCKS || bytes == 0)
        fake_wrong("memory of %zu bytes, piece %d", bytes, n_blocks);
    size_t room = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    *out = memset(aligned_alloc(ALIGN, room), 0xA5, room); /* nobody may count on zeros */
    pthread_mutex_lock(&shared);
    blocks[n_blocks++] = (block){*out, bytes, host, number_now()};
    pthread_mutex_unlock(&shared);
    now->used_bytes += host ? 0 : bytes;
    trace("%s %zu\n", host ? "pin" : "alloc", bytes);
    return TY_CU_SUCCESS;
}

static bool is_host(const void *at)
{
    return find_block(at, 1).host;
}

static unsigned give(void *at, bool host)
{
    no_capture("memory is given back");
    run_all(); /* as a driver does */
    block b = find_block(at, 1);
    if (b.at != at || b.host != host || b.device != number_now())
        fake_wrong("memory that is not there is given back");
    pthread_mutex_lock(&shared);
    for (int i = 0; i < n_blocks; i++)
        if (blocks[i].at == at)
            blocks[i] = blocks[--n_blocks];
    pthread_mutex_unlock(&shared);
    now->used_bytes -= host ? 0 : b.bytes;
    trace("%s %zu\n", host ? "unpin" : "free", b.bytes);
    free(at);
    return TY_CU_SUCCESS;
}

unsigned cuMemAlloc_v2(CUdeviceptr *at, size_t bytes)
{
    void *p = NULL;
    unsigned status = get(bytes, false, &p);
    *at = (CUdeviceptr)(uintptr_t)p;
    return status;
}

unsigned cuMemFree_v2(CUdeviceptr at)
{
    return give((void *)(uintptr_t)at, false);
}

unsigned cuMemHostAlloc(void **at, size_t bytes, unsigned flags)
{
    (void)flags;
    return get(bytes, true, at);
}

unsigned cuMemFreeHost(void *at)
{
    return give(at, true);
}

unsigned cuMemGetInfo_v2(size_t *free, size_t *total)
{
    *total = fake_gpu_bytes(number_now());
    *free = *total - now->used_bytes;
    return TY_CU_SUCCESS;
}

/* ---- contexts and streams ---- */

unsigned cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    if (device < 0 || device >= MAX_DEVICES)
        fake_wrong("a context of device %d", device);
    devices[device].users++;
    *context = &devices[device];
    return TY_CU_SUCCESS;
}

static void nothing_is_left(int device)
{
    for (int i = 0; i < n_blocks; i++)
        if (blocks[i].device == device)
            fake_wrong("%zu bytes of memory are left behind on device %d", blocks[i].bytes, device);
    if (devices[device].streams)
        fake_wrong("a stream is left behind on device %d", device);
    if (devices[device].n_events > 0)
        fake_wrong("%d events are left behind on device %d", devices[device].n_events, device);
}

unsigned cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    pthread_mutex_lock(&shared);
    if (--devices[device].users == 0)
        nothing_is_left(device);
    pthread_mutex_unlock(&shared);
    return TY_CU_SUCCESS;
}

unsigned cuCtxSetCurrent(CUcontext context)
{
    now = context;
    return TY_CU_SUCCESS;
}

unsigned cuStreamCreate(CUstream *stream, unsigned flags)
{
    (void)flags;
    no_capture("a stream is made");
    CUstream s = calloc(1, sizeof *s);
    s->first = !now->streams;
    s->next = now->streams;
    now->streams = s;
    *stream = s;
    return TY_CU_SUCCESS;
}

unsigned cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return TY_CU_SUCCESS;
}

unsigned cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    return priority > 0 || priority < -5 ? 1 : cuStreamCreate(stream, flags);
}

unsigned cuStreamDestroy_v2(CUstream stream)
{
    known(stream, "giving back");
    run_all();
    for (CUstream *p = &now->streams; *p; p = &(*p)->next)
        if (*p == stream) {
            *p = stream->next;
            break;
        }
    free(stream->list);
    free(stream);
    return TY_CU_SUCCESS;
}

unsigned cuStreamSynchronize(CUstream stream)
{
    no_capture("the stream is waited for");
    trace("wait\n");
    run_until(known(stream, "waiting"), stream->issued);
    return now->broken ? 700 : TY_CU_SUCCESS;
}

/* ---- events ---- */

unsigned cuEventCreate(CUevent *event, unsigned flags)
{
    no_capture("an event is made");
    *event = calloc(1, sizeof **event);
    (*event)->timed = !(flags & TY_CU_EVENT_DISABLE_TIMING);
    now->n_events++;
    return TY_CU_SUCCESS;
}

unsigned cuEventDestroy_v2(CUevent event)
{
    free(event);
    now->n_events--;
    return TY_CU_SUCCESS;
}

/* When the stream has come to it. */
static void stamp(const void *given)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    (*(CUevent const *)given)->stamp_ns = t.tv_sec * 1000000000l + t.tv_nsec;
}

unsigned cuEventRecord(CUevent event, CUstream stream)
{
    bool timed = event->timed;
    known(stream, "an event is recorded");
    long until = stream->graph ? stream->graph->n : stream->issued;
    *event = (struct CUevent_st){stream, until, stream->graphs, stream->ms, stream->graph, timed, 0};
    if (!stream->graph)
        trace("record\n");
    if (!stream->graph && event->timed) {
        issue(stream, (work){.run = stamp, .given = memcpy(malloc(sizeof event), &event, sizeof event)});
        event->until = stream->issued; /* who waits for it waits for its clock */
    }
    return TY_CU_SUCCESS;
}

unsigned cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    if (!from->timed || !to->timed || !from->stamp_ns || !to->stamp_ns)
        fake_wrong("a clock is read that has not run");
    *ms = (float)(to->stamp_ns - from->stamp_ns) * 1e-6f;
    if (to->ms > from->ms) /* work has said what it takes: no clock of a busy machine */
        *ms = (float)(to->ms - from->ms);
    return TY_CU_SUCCESS;
}

void fake_take(CUstream stream, double ms)
{
    known(stream, "work")->ms += ms;
}

/* With how many graphs were started behind what is waited for. */
unsigned cuEventSynchronize(CUevent event)
{
    no_capture("an event is waited for");
    trace("await %ld\n", event->stream ? event->stream->graphs - event->graphs : 0);
    if (event->stream)
        run_until(event->stream, event->until);
    return now->broken ? 700 : TY_CU_SUCCESS;
}

static void add_to_graph(CUstream stream, work w)
{
    CUgraph g = stream->graph;
    w.stream = stream;
    g->list = realloc(g->list, sizeof *g->list * (size_t)(g->n + 1));
    g->list[g->n++] = w;
}

/* An event of a capture takes the stream that waits for it into the capture. */
unsigned cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    (void)flags;
    known(stream, "waiting for an event");
    if (event->graph) {
        stream->graph = event->graph;
        add_to_graph(stream, (work){.after = event->stream, .until = event->until, .text = "after"});
        return TY_CU_SUCCESS;
    }
    trace("after\n");
    if (event->stream)
        issue(stream, (work){.after = event->stream, .until = event->until, .text = "after"});
    return TY_CU_SUCCESS;
}

/* ---- work: issued, or added to the graph that is being captured ---- */

unsigned fake_do(CUstream stream, fake_work_fn *run, const void *given, size_t bytes, const char *text)
{
    work w = {.run = run, .given = memcpy(malloc(bytes), given, bytes), .bytes = bytes};
    snprintf(w.text, sizeof w.text, "%s", text);
    if (known(stream, text)->graph) {
        trace("capturing %s\n", text);
        add_to_graph(stream, w);
        return TY_CU_SUCCESS;
    }
    trace("%s\n", text);
    issue(stream, w);
    return TY_CU_SUCCESS;
}

unsigned cuStreamBeginCapture_v2(CUstream stream, unsigned mode)
{
    (void)mode;
    no_capture("a capture begins");
    known(stream, "a capture")->graph = calloc(1, sizeof *stream->graph);
    stream->graph->origin = stream;
    return TY_CU_SUCCESS;
}

static void free_graph(CUgraph graph)
{
    for (int i = 0; i < graph->n; i++)
        free(graph->list[i].given);
    free(graph->list);
    free(graph);
}

/* Runs what of stream `s` stands before place `until` and is not done, and what that waits for. */
static void run_part(const struct CUgraph_st *g, bool *done, CUstream s, long until)
{
    for (long i = 0; i < until; i++) {
        const work *w = &g->list[i];
        if (w->stream != s || done[i])
            continue;
        done[i] = true;
        if (w->after)
            run_part(g, done, w->after, w->until);
        else if (w->run)
            w->run(w->given);
    }
}

/* Work that nobody waits for is no part of a capture that a driver takes. */
static bool is_joined(const struct CUgraph_st *g)
{
    struct CUgraph_st dry = {malloc(sizeof *g->list * (size_t)(g->n + 1)), g->n, g->origin, false};
    bool *done = calloc((size_t)g->n + 1, sizeof *done), joined = true;
    for (int i = 0; i < g->n; i++) {
        dry.list[i] = g->list[i];
        dry.list[i].run = NULL;
    }
    run_part(&dry, done, g->origin, g->n);
    for (int i = 0; i < g->n; i++)
        joined = joined && done[i];
    free(dry.list);
    free(done);
    return joined;
}

unsigned cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    *graph = known(stream, "a capture")->graph;
    if (!*graph)
        fake_wrong("a capture ends that did not begin");
    for (CUstream s = now->streams; s; s = s->next)
        if (s->graph == *graph)
            s->graph = NULL;
    if (!is_joined(*graph)) {
        free_graph(*graph);
        *graph = NULL;
        return 904; /* CUDA_ERROR_STREAM_CAPTURE_UNJOINED */
    }
    trace("captured %d\n", (*graph)->n);
    return TY_CU_SUCCESS;
}

unsigned cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    (void)flags;
    CUgraph copy = malloc(sizeof *copy);
    const char *order = getenv("TY_FAKE_STREAMS");
    *copy = (struct CUgraph_st){malloc(sizeof *copy->list * (size_t)(graph->n + 1)), graph->n, graph->origin,
                                order && strcmp(order, "ahead") == 0};
    for (int i = 0; i < graph->n; i++) {
        work *w = &copy->list[i];
        *w = graph->list[i];
        if (w->given)
            w->given = memcpy(malloc(w->bytes), w->given, w->bytes);
    }
    *exec = (CUgraphExec)copy;
    return TY_CU_SUCCESS;
}

static void run_graph(const void *given)
{
    const struct CUgraph_st *g = *(CUgraph const *)given;
    bool *done = calloc((size_t)g->n + 1, sizeof *done);
    for (int i = 0; i < g->n && g->ahead; i++)
        run_part(g, done, g->list[i].stream, i + 1);
    run_part(g, done, g->origin, g->n);
    free(done);
}

static bool is_to_fail(void)
{
    const char *fail = getenv("TY_FAKE_FAIL");
    int device, count;
    now->n_graphs++;
    return fail && sscanf(fail, "%d,%d", &device, &count) == 2 && device == number_now() && count == now->n_graphs;
}

unsigned cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    char text[NAME_BYTES];
    CUgraph g = (CUgraph)exec;
    no_capture("a graph is started");
    if (is_to_fail() || now->broken) {
        now->broken = true;
        return strstr(getenv("TY_FAKE_FAIL"), "later") ? TY_CU_SUCCESS : 700; /* CUDA_ERROR_ILLEGAL_ADDRESS */
    }
    snprintf(text, sizeof text, "graph %d", g->n);
    known(stream, text)->graphs++;
    return fake_do(stream, run_graph, &g, sizeof g, text);
}

unsigned cuGraphDestroy(CUgraph graph)
{
    free_graph(graph);
    return TY_CU_SUCCESS;
}

unsigned cuGraphExecDestroy(CUgraphExec exec)
{
    run_all();
    free_graph((CUgraph)exec);
    return TY_CU_SUCCESS;
}

/* ---- copies ---- */

typedef struct copy_work {
    void *to;
    const void *from;
    size_t bytes;
} copy_work;

static void run_copy(const void *given)
{
    const copy_work *w = given;
    memmove(w->to, w->from, w->bytes);
}

/* host: the side that is the host's, or NULL. Where it is not pinned, a driver waits. */
static unsigned copy(void *to, const void *from, size_t bytes, CUstream stream, const char *how, const void *host)
{
    char text[NAME_BYTES];
    bool unpinned = host && !is_host(host);
    snprintf(text, sizeof text, "%s %zu%s", how, bytes, unpinned ? " unpinned" : "");
    if (unpinned)
        no_capture("memory that is not pinned is copied");
    fake_do(stream, run_copy, &(copy_work){to, from, bytes}, sizeof(copy_work), text);
    if (unpinned)
        run_until(stream, stream->issued);
    return TY_CU_SUCCESS;
}

unsigned cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    fake_check((void *)(uintptr_t)to, bytes, "copy to the device");
    return copy((void *)(uintptr_t)to, from, bytes, stream, "up", from);
}

unsigned cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    fake_check((void *)(uintptr_t)from, bytes, "copy from the device");
    return copy(to, (void *)(uintptr_t)from, bytes, stream, "down", to);
}

unsigned cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    fake_check((void *)(uintptr_t)to, bytes, "copy on the device");
    fake_check((void *)(uintptr_t)from, bytes, "copy on the device");
    return copy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes, stream, "copy", NULL);
}

/* ---- modules and kernels ---- */

struct CUfunc_st {
    void (*run)(void **parameters, int threads, long blocks);
    int n;
    char name[NAME_BYTES];
    struct CUfunc_st *next; /* all that were asked for: handles live as long as the process */
};
static struct CUfunc_st *functions;

/* An image says in its first bytes how long the shared object behind them is. */
unsigned cuModuleLoadData(CUmodule *module, const void *image)
{
    char path[NAME_BYTES];
    fake_image head;
    no_capture("a module is loaded");
    memcpy(&head, image, sizeof head);
    if (head.magic != FAKE_MAGIC)
        return 200; /* CUDA_ERROR_INVALID_IMAGE */
    int fd = memfd_create("kernels", MFD_CLOEXEC);
    if (fd < 0 || write(fd, (const char *)image + sizeof head, head.bytes) != (ssize_t)head.bytes)
        fake_wrong("kernels cannot be written");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd); /* stays open: a name is loaded once */
    *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*module)
        fake_wrong("%s", dlerror());
    trace("module %zu\n", head.bytes);
    return TY_CU_SUCCESS;
}

/* It stays loaded: fibers live on in it. */
unsigned cuModuleUnload(CUmodule module)
{
    (void)module;
    return TY_CU_SUCCESS;
}

unsigned cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    char symbol[NAME_BYTES + 8];
    snprintf(symbol, sizeof symbol, "%s_run", name);
    void *run = dlsym(module, symbol);
    snprintf(symbol, sizeof symbol, "%s_n", name);
    const int *n = dlsym(module, symbol);
    if (!run || !n)
        return 500; /* CUDA_ERROR_NOT_FOUND */
    CUfunction f = malloc(sizeof *f);
    pthread_mutex_lock(&shared);
    f->next = functions;
    functions = f;
    pthread_mutex_unlock(&shared);
    f->n = *n;
    memcpy(&f->run, &run, sizeof run);
    snprintf(f->name, sizeof f->name, "%s", name);
    *function = f;
    return TY_CU_SUCCESS;
}

enum { MAX_PARAMETERS = 64 };

typedef struct kernel_work {
    CUfunction f;
    int threads;
    long blocks;
    void *address[MAX_PARAMETERS];
} kernel_work;

static void run_kernel(const void *given)
{
    kernel_work w = *(const kernel_work *)given;
    void *parameter[MAX_PARAMETERS];
    for (int i = 0; i < w.f->n; i++)
        parameter[i] = &w.address[i];
    w.f->run(parameter, w.threads, w.blocks);
}

unsigned cuLaunchKernel(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters,
                        void **extra)
{
    kernel_work w = {.f = f, .threads = (int)block_x, .blocks = (long)grid_x};
    char text[NAME_BYTES + 40];
    if (grid_x == 0 || grid_y * grid_z * block_y * block_z != 1 || block_x > 1024 || shared_bytes || extra ||
        f->n > MAX_PARAMETERS)
        return 1; /* CUDA_ERROR_INVALID_VALUE */
    for (int i = 0; i < f->n; i++) {
        memcpy(&w.address[i], parameters[i], sizeof w.address[i]);
        fake_check(w.address[i], 1, f->name);
    }
    snprintf(text, sizeof text, "%s<<<%u,%u>>>", f->name, grid_x, block_x);
    return fake_do(stream, run_kernel, &w, sizeof w, text);
}
