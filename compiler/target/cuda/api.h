/* api.h - the functions of NVIDIA's libraries that are used, declared here: building needs no CUDA Toolkit, and which
 * libraries there are shows at run time.
 *
 * Names and types are those of NVIDIA's headers, but for enumerations, which are unsigned. Where the headers are
 * installed, tests/unit/cuda_api.c holds each declaration and each constant against them. Entry points of the driver
 * carry the suffix that its header gives them by a macro.
 */
#ifndef TY_TARGET_CUDA_API_H
#define TY_TARGET_CUDA_API_H

#include <stddef.h>

/* ---- driver: libcuda.so.1, which comes with the GPU's driver and never with us ---- */

typedef int CUdevice;
struct CUuuid_st; /* TY_CU_UUID_BYTES bytes */

enum {
    TY_CU_SUCCESS = 0,
    TY_CU_ERROR_NO_DEVICE = 100,
    TY_CU_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    TY_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    TY_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    TY_CU_UUID_BYTES = 16
};

/* X(result, name of the entry point, parameters) */
#define TY_CU_FUNCTIONS(X)                                                   \
    X(unsigned, cuInit, (unsigned flags))                                    \
    X(unsigned, cuDriverGetVersion, (int *version))                          \
    X(unsigned, cuGetErrorString, (unsigned error, const char **text))       \
    X(unsigned, cuDeviceGetCount, (int *n))                                  \
    X(unsigned, cuDeviceGet, (CUdevice * device, int number))                \
    X(unsigned, cuDeviceGetName, (char *name, int size, CUdevice device))    \
    X(unsigned, cuDeviceGetUuid, (struct CUuuid_st * uuid, CUdevice device)) \
    X(unsigned, cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))      \
    X(unsigned, cuDeviceGetAttribute, (int *value, unsigned attribute, CUdevice device))

/* ---- NVRTC: CUDA C to machine code ---- */

typedef struct _nvrtcProgram *nvrtcProgram;

#define TY_NVRTC_FUNCTIONS(X)                                                                                 \
    X(unsigned, nvrtcVersion, (int *major, int *minor))                                                       \
    X(unsigned, nvrtcGetNumSupportedArchs, (int *n))                                                          \
    X(unsigned, nvrtcGetSupportedArchs, (int *archs))                                                         \
    X(const char *, nvrtcGetErrorString, (unsigned error))                                                    \
    X(unsigned, nvrtcCreateProgram,                                                                           \
      (nvrtcProgram * program, const char *text, const char *name, int n_headers, const char *const *headers, \
       const char *const *header_names))                                                                      \
    X(unsigned, nvrtcDestroyProgram, (nvrtcProgram * program))                                                \
    X(unsigned, nvrtcCompileProgram, (nvrtcProgram program, int n_options, const char *const *options))       \
    X(unsigned, nvrtcGetProgramLogSize, (nvrtcProgram program, size_t * bytes))                               \
    X(unsigned, nvrtcGetProgramLog, (nvrtcProgram program, char *log))                                        \
    X(unsigned, nvrtcGetCUBINSize, (nvrtcProgram program, size_t * bytes))                                    \
    X(unsigned, nvrtcGetCUBIN, (nvrtcProgram program, char *cubin))

/* ---- cuBLASLt: products; cuDNN: convolutions, attention; NCCL: several GPUs ---- */

#define TY_CUBLASLT_FUNCTIONS(X) X(size_t, cublasLtGetVersion, (void))
#define TY_CUDNN_FUNCTIONS(X)    X(size_t, cudnnGetVersion, (void))
#define TY_NCCL_FUNCTIONS(X)     X(unsigned, ncclGetVersion, (int *version))

#define TY_FIELD(result, name, parameters) result(*name) parameters;
typedef struct ty_cu {
    TY_CU_FUNCTIONS(TY_FIELD)
} ty_cu;
typedef struct ty_nvrtc {
    TY_NVRTC_FUNCTIONS(TY_FIELD)
} ty_nvrtc;
typedef struct ty_cublaslt {
    TY_CUBLASLT_FUNCTIONS(TY_FIELD)
} ty_cublaslt;
typedef struct ty_cudnn {
    TY_CUDNN_FUNCTIONS(TY_FIELD)
} ty_cudnn;
typedef struct ty_nccl {
    TY_NCCL_FUNCTIONS(TY_FIELD)
} ty_nccl;
#undef TY_FIELD

#endif
