/* gpu.h - one GPU: its context, a stream, memory. Errors carry the driver's words. */
#ifndef TY_TARGET_CUDA_GPU_H
#define TY_TARGET_CUDA_GPU_H

#include "base/error.h"
#include "compiler/target/cuda/api.h"

typedef struct ty_gpu {
    const ty_cu *cu;
    CUdevice device;
    CUcontext context; /* the device's primary one, current on the thread that opened it */
    CUstream stream;   /* all work goes here */
    int capability;    /* 90 for sm_90 */
} ty_gpu;

/* number: from 0, as the driver counts. TY_E_NOT_FOUND without a driver or such a GPU. After a failure there is nothing
 * to close. The context stays until the process ends, whoever closes. */
int ty_gpu_open(int number, ty_gpu *out, ty_error *err);
void ty_gpu_close(ty_gpu *gpu);

/* 0, or TY_E_LIBRARY: "what: error 700 of the driver (an illegal memory access was encountered)". */
int ty_gpu_status(const ty_gpu *gpu, unsigned status, const char *what, ty_error *err);
/* Memory of the device, contents undefined; what it is for, in the error, with how much is free; what to do
 * about it (TY_E_LIMIT) the caller knows. 0 bytes give 0. */
int ty_gpu_alloc(const ty_gpu *gpu, size_t bytes, const char *what, CUdeviceptr *out, ty_error *err);
void ty_gpu_free(const ty_gpu *gpu, CUdeviceptr at);
/* Until all that was asked of the stream is done. */
int ty_gpu_wait(const ty_gpu *gpu, ty_error *err);

#endif
