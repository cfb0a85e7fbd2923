/* gpu.c - see gpu.h. */
#include "compiler/target/cuda/gpu.h"

#include "compiler/target/cuda/libraries.h"

#include <pthread.h>
#include <stdbool.h>

enum { GPUS_KEPT = 64 };

int ty_gpu_status(const ty_gpu *gpu, unsigned status, const char *what, ty_error *err)
{
    const char *text = NULL;
    if (status == TY_CU_SUCCESS)
        return 0;
    if (gpu->cu->cuGetErrorString(status, &text) != TY_CU_SUCCESS || !text)
        text = "no text for it";
    return ty_error_set(err, TY_E_LIBRARY, "%s: error %u of the driver (%s)", what, status, text);
}

static int gpu_find(int number, ty_gpu *gpu, ty_error *err)
{
    int n = 0, major = 0, minor = 0;
    unsigned status = gpu->cu->cuInit(0);
    status = status ? status : gpu->cu->cuDeviceGetCount(&n);
    if (status == TY_CU_ERROR_NO_DEVICE || (status == TY_CU_SUCCESS && number >= n))
        return ty_error_set(err, TY_E_NOT_FOUND, "there is no GPU number %d: the driver shows %d", number, n);
    status = status ? status : gpu->cu->cuDeviceGet(&gpu->device, number);
    status =
        status ? status : gpu->cu->cuDeviceGetAttribute(&major, TY_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu->device);
    status =
        status ? status : gpu->cu->cuDeviceGetAttribute(&minor, TY_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, gpu->device);
    gpu->capability = 10 * major + minor;
    return ty_gpu_status(gpu, status, "asking for a GPU", err);
}

/* Held once more, and not let go: with its last user a context is destroyed, and libraries keep code that they have
 * loaded into it, and look for it in the next one. */
static unsigned gpu_keep(const ty_gpu *gpu)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool kept[GPUS_KEPT];
    CUcontext context;
    unsigned status = TY_CU_SUCCESS;
    pthread_mutex_lock(&lock);
    if (gpu->device >= 0 && gpu->device < GPUS_KEPT && !kept[gpu->device]) {
        status = gpu->cu->cuDevicePrimaryCtxRetain(&context, gpu->device);
        kept[gpu->device] = status == TY_CU_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

int ty_gpu_open(int number, ty_gpu *out, ty_error *err)
{
    *out = (ty_gpu){0};
    if (ty_cu_get(&out->cu, err) < 0 || gpu_find(number, out, err) < 0)
        return -1;
    unsigned status = gpu_keep(out);
    status = status ? status : out->cu->cuDevicePrimaryCtxRetain(&out->context, out->device);
    if (ty_gpu_status(out, status, "opening a GPU", err) < 0)
        return -1;
    status = out->cu->cuCtxSetCurrent(out->context);
    status = status ? status : out->cu->cuStreamCreate(&out->stream, TY_CU_STREAM_NON_BLOCKING);
    if (ty_gpu_status(out, status, "making a stream", err) == 0)
        return 0;
    out->cu->cuDevicePrimaryCtxRelease_v2(out->device);
    return -1;
}

void ty_gpu_close(ty_gpu *gpu)
{
    if (!gpu->stream)
        return;
    gpu->cu->cuStreamDestroy_v2(gpu->stream);
    gpu->cu->cuDevicePrimaryCtxRelease_v2(gpu->device);
    *gpu = (ty_gpu){0};
}

int ty_gpu_alloc(const ty_gpu *gpu, size_t bytes, const char *what, CUdeviceptr *out, ty_error *err)
{
    size_t free = 0, total = 0;
    *out = 0;
    if (bytes == 0)
        return 0;
    unsigned status = gpu->cu->cuMemAlloc_v2(out, bytes);
    if (status != TY_CU_ERROR_OUT_OF_MEMORY)
        return ty_gpu_status(gpu, status, "getting memory of the GPU", err);
    gpu->cu->cuMemGetInfo_v2(&free, &total);
    return ty_error_set(err, TY_E_LIMIT, "no memory on the GPU for %s: %zu MB are needed, %zu of %zu MB are free", what,
                        bytes / 1000000, free / 1000000, total / 1000000);
}

void ty_gpu_free(const ty_gpu *gpu, CUdeviceptr at)
{
    if (at)
        gpu->cu->cuMemFree_v2(at);
}

int ty_gpu_wait(const ty_gpu *gpu, ty_error *err)
{
    return ty_gpu_status(gpu, gpu->cu->cuStreamSynchronize(gpu->stream), "a step on the GPU", err);
}
