/* libcuda.c - a GPU driver for machines without one, as far as it is asked for facts.
 *
 *     TY_FAKE_GPUS="NVIDIA H200,90,132,150754820096;..."     name, compute capability, multiprocessors, bytes
 *     TY_FAKE_CUDA=12040                                      the driver's version of CUDA, 13.0 where nothing is said
 *     TY_FAKE_CUINIT=803                                      what cuInit answers
 *     TY_FAKE_DEVICE=999                                      what asking a device answers
 */
#include "compiler/target/cuda/api.h"
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_GPUS = 8, VERSION = 13000, NOT_SET = 0, NOT_INITIALIZED = 3 };

typedef struct fake_gpu {
    char name[64];
    int capability, n_multiprocessors;
    size_t bytes;
} fake_gpu;

static unsigned answer(const char *variable)
{
    const char *text = getenv(variable);
    return text ? (unsigned)strtoul(text, NULL, 10) : NOT_SET;
}

/* Gpu number `wanted`, or how many there are if out is NULL. */
static int find(int wanted, fake_gpu *out)
{
    const char *p = getenv("TY_FAKE_GPUS");
    int n = 0, read;
    fake_gpu g;
    while (p && sscanf(p, "%63[^,],%d,%d,%zu%n", g.name, &g.capability, &g.n_multiprocessors, &g.bytes, &read) == 4) {
        if (n++ == wanted && out)
            *out = g;
        p += read + (p[read] == ';');
    }
    return n;
}

/* The process that has a driver; a child made by fork() has a broken copy of it. */
static pid_t owner;

unsigned fake_is_forked(void)
{
    return owner && owner != getpid() ? NOT_INITIALIZED : TY_CU_SUCCESS;
}

unsigned cuInit(unsigned flags)
{
    (void)flags;
    owner = owner ? owner : getpid();
    return fake_is_forked() ? NOT_INITIALIZED : answer("TY_FAKE_CUINIT");
}

unsigned cuDriverGetVersion(int *version)
{
    const char *text = getenv("TY_FAKE_CUDA");
    *version = text ? atoi(text) : VERSION;
    return TY_CU_SUCCESS;
}

unsigned cuGetErrorString(unsigned error, const char **text)
{
    *text = error == 803   ? "system has unsupported display driver / cuda driver combination"
            : error == 700 ? "an illegal memory access was encountered"
                           : NULL;
    return *text ? TY_CU_SUCCESS : 1;
}

unsigned cuDeviceGetCount(int *n)
{
    *n = find(0, NULL);
    return fake_is_forked();
}

unsigned cuDeviceGet(CUdevice *device, int number)
{
    *device = number;
    return answer("TY_FAKE_DEVICE");
}

unsigned cuDeviceGetName(char *name, int size, CUdevice device)
{
    fake_gpu g = {0};
    find(device, &g);
    snprintf(name, (size_t)size, "%s", g.name);
    return TY_CU_SUCCESS;
}

unsigned cuDeviceGetUuid(struct CUuuid_st *uuid, CUdevice device)
{
    for (int i = 0; i < TY_CU_UUID_BYTES; i++)
        ((char *)uuid)[i] = (char)(16 * device + i);
    return TY_CU_SUCCESS;
}

unsigned cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    fake_gpu g = {0};
    find(device, &g);
    *bytes = g.bytes;
    return TY_CU_SUCCESS;
}

unsigned cuDeviceGetAttribute(int *value, unsigned attribute, CUdevice device)
{
    fake_gpu g = {0};
    find(device, &g);
    *value = attribute == TY_CU_ATTRIBUTE_MULTIPROCESSOR_COUNT       ? g.n_multiprocessors
             : attribute == TY_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? g.capability / 10
                                                                     : g.capability % 10;
    return TY_CU_SUCCESS;
}

size_t fake_gpu_bytes(int number)
{
    fake_gpu g = {0};
    find(number, &g);
    return g.bytes;
}
