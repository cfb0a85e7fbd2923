/* driver.c - the part of the stand-in driver (libcuda.c) that works: memory, kernels, streams, graphs, on the host.
 *
 * A module is a shared object that the stand-in for NVRTC has made (gpu/libnvrtc.c); its kernels run as fibers. What a
 * driver would only punish by chance ends the process with a message: an address outside live memory, memory or waiting
 * inside a capture, a parameter that is no address, something used after it was given back.
 *
 *     TY_FAKE_TRACE=FILE      a line for each call that changes something
 */
#define _GNU_SOURCE
#include "fake.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_BLOCKS = 256, ALIGN = 256, NAME_BYTES = 64 };

static void trace(const char *fmt, ...)
{
    static FILE *file;
    const char *path = getenv("TY_FAKE_TRACE");
    if (!path)
        return;
    if (!file)
        file = fopen(path, "w");
    va_list args;
    va_start(args, fmt);
    if (file) {
        vfprintf(file, fmt, args);
        fflush(file);
    }
    va_end(args);
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
} block;

static block blocks[MAX_BLOCKS];
static int n_blocks;
static size_t used_bytes;
static struct CUstream_st {
    bool capturing;
    struct CUgraph_st *graph; /* that is being captured */
} the_stream;
static bool has_context, has_stream;

static void no_capture(const char *what)
{
    if (the_stream.capturing)
        fake_wrong("%s while a step is captured", what);
}

void fake_check(const void *at, size_t bytes, const char *what)
{
    for (int i = 0; i < n_blocks; i++)
        if ((const char *)at >= blocks[i].at && (const char *)at + bytes <= blocks[i].at + blocks[i].bytes)
            return;
    fake_wrong("%s: %zu bytes at %p are not inside memory of the device or pinned memory", what, bytes, at);
}

static unsigned get(size_t bytes, bool host, void **out)
{
    no_capture("memory is asked for");
    if (!has_context)
        fake_wrong("memory without a context");
    if (!host && used_bytes + bytes > fake_gpu_bytes(0))
        return TY_CU_ERROR_OUT_OF_MEMORY;
    if (n_blocks == MAX_BLOCKS || bytes == 0)
        fake_wrong("memory of %zu bytes, piece %d", bytes, n_blocks);
    size_t room = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    *out = memset(aligned_alloc(ALIGN, room), 0xA5, room); /* nobody may count on zeros */
    blocks[n_blocks++] = (block){*out, bytes, host};
    used_bytes += host ? 0 : bytes;
    trace("%s %zu\n", host ? "pin" : "alloc", bytes);
    return TY_CU_SUCCESS;
}

static unsigned give(void *at, bool host)
{
    no_capture("memory is given back");
    for (int i = 0; i < n_blocks; i++)
        if (blocks[i].at == at && blocks[i].host == host) {
            used_bytes -= host ? 0 : blocks[i].bytes;
            trace("%s %zu\n", host ? "unpin" : "free", blocks[i].bytes);
            free(at);
            blocks[i] = blocks[--n_blocks];
            return TY_CU_SUCCESS;
        }
    fake_wrong("memory that is not there is given back");
    return 1;
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
    *total = fake_gpu_bytes(0);
    *free = *total - used_bytes;
    return TY_CU_SUCCESS;
}

/* ---- contexts and streams ---- */

unsigned cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    (void)device;
    has_context = true;
    *context = (CUcontext)&has_context;
    return TY_CU_SUCCESS;
}

unsigned cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    (void)device;
    if (n_blocks > 0)
        fake_wrong("%d pieces of memory are left behind", n_blocks);
    if (has_stream)
        fake_wrong("a stream is left behind");
    has_context = false;
    return TY_CU_SUCCESS;
}

unsigned cuCtxSetCurrent(CUcontext context)
{
    (void)context;
    return TY_CU_SUCCESS;
}

unsigned cuStreamCreate(CUstream *stream, unsigned flags)
{
    (void)flags;
    has_stream = true;
    *stream = &the_stream;
    return TY_CU_SUCCESS;
}

unsigned cuStreamDestroy_v2(CUstream stream)
{
    (void)stream;
    has_stream = false;
    return TY_CU_SUCCESS;
}

unsigned cuStreamSynchronize(CUstream stream)
{
    (void)stream;
    no_capture("the stream is waited for");
    trace("wait\n");
    return TY_CU_SUCCESS;
}

/* ---- work: done at once, or added to the graph that is being captured ---- */

typedef struct work {
    fake_work_fn *run;
    void *given; /* a copy; owned */
    size_t bytes;
    char text[NAME_BYTES];
} work;

struct CUgraph_st {
    work *list;
    int n;
};

unsigned fake_do(CUstream stream, fake_work_fn *run, const void *given, size_t bytes, const char *text)
{
    if (stream != &the_stream || !has_stream)
        fake_wrong("%s on a stream that is not there", text);
    if (!the_stream.capturing) {
        trace("%s\n", text);
        run(given);
        return TY_CU_SUCCESS;
    }
    CUgraph g = the_stream.graph;
    g->list = realloc(g->list, sizeof *g->list * (size_t)(g->n + 1));
    work *w = &g->list[g->n++];
    *w = (work){.run = run, .given = memcpy(malloc(bytes), given, bytes), .bytes = bytes};
    snprintf(w->text, sizeof w->text, "%s", text);
    return TY_CU_SUCCESS;
}

unsigned cuStreamBeginCapture_v2(CUstream stream, unsigned mode)
{
    (void)mode;
    no_capture("a capture begins");
    stream->capturing = true;
    stream->graph = calloc(1, sizeof *stream->graph);
    return TY_CU_SUCCESS;
}

unsigned cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    if (!stream->capturing)
        fake_wrong("a capture ends that did not begin");
    stream->capturing = false;
    *graph = stream->graph;
    stream->graph = NULL;
    trace("captured %d\n", (*graph)->n);
    return TY_CU_SUCCESS;
}

unsigned cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    (void)flags;
    CUgraph copy = malloc(sizeof *copy);
    *copy = (struct CUgraph_st){malloc(sizeof *copy->list * (size_t)(graph->n + 1)), graph->n};
    for (int i = 0; i < graph->n; i++) {
        copy->list[i] = graph->list[i];
        copy->list[i].given = memcpy(malloc(graph->list[i].bytes), graph->list[i].given, graph->list[i].bytes);
    }
    *exec = (CUgraphExec)copy;
    return TY_CU_SUCCESS;
}

unsigned cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    (void)stream;
    no_capture("a graph is started");
    CUgraph g = (CUgraph)exec;
    trace("graph %d\n", g->n);
    for (int i = 0; i < g->n; i++)
        g->list[i].run(g->list[i].given);
    return TY_CU_SUCCESS;
}

unsigned cuGraphDestroy(CUgraph graph)
{
    for (int i = 0; i < graph->n; i++)
        free(graph->list[i].given);
    free(graph->list);
    free(graph);
    return TY_CU_SUCCESS;
}

unsigned cuGraphExecDestroy(CUgraphExec exec)
{
    return cuGraphDestroy((CUgraph)exec);
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

static unsigned copy(void *to, const void *from, size_t bytes, CUstream stream, const char *how)
{
    char text[NAME_BYTES];
    snprintf(text, sizeof text, "%s %zu", how, bytes);
    return fake_do(stream, run_copy, &(copy_work){to, from, bytes}, sizeof(copy_work), text);
}

unsigned cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    fake_check((void *)(uintptr_t)to, bytes, "copy to the device");
    return copy((void *)(uintptr_t)to, from, bytes, stream, "up");
}

unsigned cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    fake_check((void *)(uintptr_t)from, bytes, "copy from the device");
    return copy(to, (void *)(uintptr_t)from, bytes, stream, "down");
}

unsigned cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    fake_check((void *)(uintptr_t)to, bytes, "copy on the device");
    fake_check((void *)(uintptr_t)from, bytes, "copy on the device");
    return copy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes, stream, "copy");
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
    f->next = functions;
    functions = f;
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
