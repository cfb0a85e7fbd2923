/* kernel.c - modules and launches of the stand-in driver. See driver.h. */
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- modules and kernels ---- */

struct CUfunc_st {
    void (*run)(void **parameters, int threads, long blocks);
    int n, device;
    unsigned shared_bytes; /* that a launch may ask for */
    char name[NAME_BYTES];
    struct CUfunc_st *next; /* all that were asked for: handles live as long as the process */
};
static struct CUfunc_st *functions;

struct CUmod_st {
    void *object; /* of dlopen */
    char *names;  /* instead: of kernels that do not run */
};

/* An image says in its first bytes how long the shared object behind them is. */
unsigned cuModuleLoadData(CUmodule *module, const void *image)
{
    char path[NAME_BYTES];
    fake_image head;
    no_capture("a module is loaded");
    memcpy(&head, image, sizeof head);
    *module = calloc(1, sizeof **module);
    if (head.magic == FAKE_NAMES) {
        (*module)->names = strdup((const char *)image + sizeof head);
        trace("module %zu\n", head.bytes);
        return TY_CU_SUCCESS;
    }
    if (head.magic != FAKE_MAGIC)
        return INVALID_IMAGE;
    int fd = memfd_create("kernels", MFD_CLOEXEC);
    if (fd < 0 || write(fd, (const char *)image + sizeof head, head.bytes) != (ssize_t)head.bytes)
        fake_wrong("kernels cannot be written");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd); /* stays open: a name is loaded once */
    (*module)->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!(*module)->object)
        fake_wrong("%s", dlerror());
    trace("module %zu\n", head.bytes);
    return TY_CU_SUCCESS;
}

/* The object stays loaded: fibers live on in it. */
unsigned cuModuleUnload(CUmodule module)
{
    no_capture("a module is given back");
    free(module->names);
    free(module);
    return TY_CU_SUCCESS;
}

/* Of a kernel that does not run; 0: there is none of this name. */
static int count_parameters(CUmodule module, const char *name)
{
    size_t length = strlen(name);
    for (const char *p = module->names; p && *p; p += strcspn(p, "\n") + 1)
        if (strncmp(p, name, length) == 0 && p[length] == ' ')
            return atoi(p + length);
    return 0;
}

unsigned cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    char symbol[NAME_BYTES + 8];
    snprintf(symbol, sizeof symbol, "%s_run", name);
    void *run = module->object ? dlsym(module->object, symbol) : NULL;
    snprintf(symbol, sizeof symbol, "%s_n", name);
    const int *n = module->object ? dlsym(module->object, symbol) : NULL;
    int counted = count_parameters(module, name);
    if (!(run && n) && counted == 0)
        return NOT_FOUND;
    CUfunction f = malloc(sizeof *f);
    pthread_mutex_lock(&shared);
    f->next = functions;
    functions = f;
    pthread_mutex_unlock(&shared);
    f->n = n ? *n : counted;
    f->shared_bytes = 0;
    f->device = number_now();
    memcpy(&f->run, &run, sizeof run);
    snprintf(f->name, sizeof f->name, "%s", name);
    *function = f;
    return TY_CU_SUCCESS;
}

enum { MAX_PARAMETERS = 64, SHARED_UNASKED = 48 << 10, SHARED_MOST = 227 << 10 };

unsigned cuFuncSetAttribute(CUfunction f, unsigned attribute, int value)
{
    if (attribute != TY_CU_FUNC_ATTRIBUTE_SHARED_BYTES || value < 0 || value > SHARED_MOST)
        return INVALID;
    f->shared_bytes = (unsigned)value;
    return TY_CU_SUCCESS;
}

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
    if (f->device != number_now())
        fake_wrong("%s of device %d is launched while device %d is current", f->name, f->device, number_now());
    if (grid_x == 0 || grid_x > 0x7fffffffu || grid_y * grid_z * block_y * block_z != 1 || block_x > 1024 ||
        (shared_bytes > SHARED_UNASKED && shared_bytes > f->shared_bytes) || extra || f->n > MAX_PARAMETERS)
        return INVALID;
    for (int i = 0; i < f->n; i++) {
        memcpy(&w.address[i], parameters[i], sizeof w.address[i]);
        fake_check(w.address[i], 1, f->name);
    }
    snprintf(text, sizeof text, "%s<<<%u,%u>>>", f->name, grid_x, block_x);
    return do_work(stream, run_kernel, &w, sizeof w, text);
}
