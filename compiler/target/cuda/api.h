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
#include <stdint.h>

/* Handles, whose insides are NVIDIA's. Who includes NVIDIA's headers first has them already. */
#ifndef TY_HAS_NVIDIA_HEADERS
typedef int CUdevice;
typedef unsigned long long CUdeviceptr; /* an address on the device */
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct cublaslt_desc *cublasLtMatmulDesc_t;
typedef struct cublaslt_layout *cublasLtMatrixLayout_t;
typedef struct cublaslt_preference *cublasLtMatmulPreference_t;
typedef struct cudnnContext *cudnnHandle_t;
typedef struct ncclComm *ncclComm_t;
typedef struct ncclConfig ncclConfig_t;
typedef struct ncclUniqueId {
    char internal[128];
} ncclUniqueId;
typedef void *cudnnBackendDescriptor_t;
typedef struct cublasLtMatmulAlgo_t {
    uint64_t data[8];
} cublasLtMatmulAlgo_t;
typedef struct cublasLtMatmulHeuristicResult_t {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    unsigned state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;
#endif

/* ---- driver: libcuda.so.1, which comes with the GPU's driver and never with us ---- */

struct CUuuid_st; /* TY_CU_UUID_BYTES bytes */

enum {
    TY_CU_SUCCESS = 0,
    TY_CU_ERROR_OUT_OF_MEMORY = 2,
    TY_CU_ERROR_NO_DEVICE = 100,
    TY_CU_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    TY_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    TY_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    TY_CU_FUNC_ATTRIBUTE_SHARED_BYTES = 8, /* the most that a launch may ask for */
    TY_CU_UUID_BYTES = 16,
    TY_CU_STREAM_NON_BLOCKING = 1,
    TY_CU_EVENT_BLOCKING_SYNC = 1,
    TY_CU_EVENT_DISABLE_TIMING = 2,
    TY_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1
};

/* X(result, name of the entry point, parameters) */
#define TY_CU_FUNCTIONS(X)                                                                                         \
    X(unsigned, cuInit, (unsigned flags))                                                                          \
    X(unsigned, cuDriverGetVersion, (int *version))                                                                \
    X(unsigned, cuGetErrorString, (unsigned error, const char **text))                                             \
    X(unsigned, cuDeviceGetCount, (int *n))                                                                        \
    X(unsigned, cuDeviceGet, (CUdevice * device, int number))                                                      \
    X(unsigned, cuDeviceGetName, (char *name, int size, CUdevice device))                                          \
    X(unsigned, cuDeviceGetUuid, (struct CUuuid_st * uuid, CUdevice device))                                       \
    X(unsigned, cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))                                            \
    X(unsigned, cuDeviceGetAttribute, (int *value, unsigned attribute, CUdevice device))                           \
    X(unsigned, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                                  \
    X(unsigned, cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                                   \
    X(unsigned, cuCtxSetCurrent, (CUcontext context))                                                              \
    X(unsigned, cuMemGetInfo_v2, (size_t * free, size_t * total))                                                  \
    X(unsigned, cuMemAlloc_v2, (CUdeviceptr * at, size_t bytes))                                                   \
    X(unsigned, cuMemFree_v2, (CUdeviceptr at))                                                                    \
    X(unsigned, cuMemHostAlloc, (void **at, size_t bytes, unsigned flags))                                         \
    X(unsigned, cuMemFreeHost, (void *at))                                                                         \
    X(unsigned, cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))           \
    X(unsigned, cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))                 \
    X(unsigned, cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))           \
    X(unsigned, cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream))             \
    X(unsigned, cuModuleLoadData, (CUmodule * module, const void *image))                                          \
    X(unsigned, cuModuleUnload, (CUmodule module))                                                                 \
    X(unsigned, cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name))                   \
    X(unsigned, cuFuncSetAttribute, (CUfunction function, unsigned attribute, int value))                          \
    X(unsigned, cuLaunchKernel,                                                                                    \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
       unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters, void **extra))                 \
    X(unsigned, cuStreamCreate, (CUstream * stream, unsigned flags))                                               \
    X(unsigned, cuCtxGetStreamPriorityRange, (int *least, int *greatest))                                          \
    X(unsigned, cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority))                     \
    X(unsigned, cuStreamDestroy_v2, (CUstream stream))                                                             \
    X(unsigned, cuStreamSynchronize, (CUstream stream))                                                            \
    X(unsigned, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))                               \
    X(unsigned, cuEventCreate, (CUevent * event, unsigned flags))                                                  \
    X(unsigned, cuEventDestroy_v2, (CUevent event))                                                                \
    X(unsigned, cuEventRecord, (CUevent event, CUstream stream))                                                   \
    X(unsigned, cuEventElapsedTime, (float *ms, CUevent from, CUevent to))                                         \
    X(unsigned, cuEventSynchronize, (CUevent event))                                                               \
    X(unsigned, cuStreamBeginCapture_v2, (CUstream stream, unsigned mode))                                         \
    X(unsigned, cuStreamEndCapture, (CUstream stream, CUgraph * graph))                                            \
    X(unsigned, cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, unsigned long long flags))        \
    X(unsigned, cuGraphLaunch, (CUgraphExec exec, CUstream stream))                                                \
    X(unsigned, cuGraphExecDestroy, (CUgraphExec exec))                                                            \
    X(unsigned, cuGraphDestroy, (CUgraph graph))

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

enum {
    TY_CUDA_R_32F = 0,
    TY_CUDA_R_64F = 1,
    TY_CUDA_R_16F = 2,
    TY_CUDA_R_16BF = 14,
    TY_CUBLAS_COMPUTE_32F = 68,
    TY_CUBLAS_COMPUTE_64F = 70,
    TY_CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
    TY_CUBLAS_STATUS_INVALID_VALUE = 7,
    TY_CUBLAS_STATUS_ARCH_MISMATCH = 8,
    TY_CUBLAS_STATUS_NOT_SUPPORTED = 15,
    TY_CUBLAS_OP_N = 0,
    TY_CUBLAS_OP_T = 1,
    TY_CUBLASLT_MATMUL_DESC_TRANSA = 3,
    TY_CUBLASLT_MATMUL_DESC_TRANSB = 4,
    TY_CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
    TY_CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
    TY_CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER = 11,
    TY_CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD = 12,
    TY_CUBLASLT_EPILOGUE_DEFAULT = 1,
    TY_CUBLASLT_EPILOGUE_BIAS = 4,
    TY_CUBLASLT_EPILOGUE_RELU_BIAS = 6,
    TY_CUBLASLT_EPILOGUE_RELU_AUX_BIAS = 134,
    TY_CUBLASLT_EPILOGUE_DRELU = 136,
    TY_CUBLASLT_EPILOGUE_DRELU_BGRAD = 152,
    TY_CUBLASLT_EPILOGUE_GELU_BIAS = 36,
    TY_CUBLASLT_EPILOGUE_GELU_AUX_BIAS = 164,
    TY_CUBLASLT_EPILOGUE_DGELU = 192,
    TY_CUBLASLT_EPILOGUE_DGELU_BGRAD = 208,
    TY_CUBLASLT_EPILOGUE_BGRADA = 256,
    TY_CUBLASLT_EPILOGUE_BGRADB = 512,
    TY_CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
    TY_CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6,
    TY_CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
    TY_CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3,
    TY_CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2,
    TY_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
    TY_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
    TY_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
    TY_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8
};

#define TY_CUBLASLT_FUNCTIONS(X)                                                                                 \
    X(size_t, cublasLtGetVersion, (void))                                                                        \
    X(const char *, cublasLtGetStatusString, (unsigned status))                                                  \
    X(unsigned, cublasLtCreate, (cublasLtHandle_t * handle))                                                     \
    X(unsigned, cublasLtDestroy, (cublasLtHandle_t handle))                                                      \
    X(unsigned, cublasLtMatmulDescCreate, (cublasLtMatmulDesc_t * desc, unsigned compute, unsigned scale))       \
    X(unsigned, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t desc))                                          \
    X(unsigned, cublasLtMatmulDescSetAttribute,                                                                  \
      (cublasLtMatmulDesc_t desc, unsigned attribute, const void *value, size_t bytes))                          \
    X(unsigned, cublasLtMatrixLayoutCreate,                                                                      \
      (cublasLtMatrixLayout_t * layout, unsigned type, uint64_t rows, uint64_t columns, int64_t leading))        \
    X(unsigned, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout))                                    \
    X(unsigned, cublasLtMatrixLayoutSetAttribute,                                                                \
      (cublasLtMatrixLayout_t layout, unsigned attribute, const void *value, size_t bytes))                      \
    X(unsigned, cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * preference))                       \
    X(unsigned, cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t preference))                        \
    X(unsigned, cublasLtMatmulPreferenceSetAttribute,                                                            \
      (cublasLtMatmulPreference_t preference, unsigned attribute, const void *value, size_t bytes))              \
    X(unsigned, cublasLtMatmulAlgoGetHeuristic,                                                                  \
      (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,   \
       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int wanted,    \
       cublasLtMatmulHeuristicResult_t results[], int *found))                                                   \
    X(unsigned, cublasLtMatmul,                                                                                  \
      (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a_at,                  \
       cublasLtMatrixLayout_t a, const void *b_at, cublasLtMatrixLayout_t b, const void *beta, const void *c_at, \
       cublasLtMatrixLayout_t c, void *d_at, cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algo,         \
       void *workspace, size_t workspace_bytes, CUstream stream))
enum {
    TY_CUDNN_STATUS_EXECUTION_FAILED = 5000, /* and its kinds; what is below never reached the GPU */
    TY_CUDNN_DATA_FLOAT = 0,
    TY_CUDNN_DATA_DOUBLE = 1,
    TY_CUDNN_DATA_HALF = 2,
    TY_CUDNN_DATA_BFLOAT16 = 9,
    TY_CUDNN_CROSS_CORRELATION = 1,
    TY_CUDNN_BACKEND_TENSOR_DESCRIPTOR = 17,
    TY_CUDNN_BACKEND_POINTWISE_DESCRIPTOR = 0,
    TY_CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR = 13,
    TY_CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR = 1,
    TY_CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR = 10,
    TY_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR = 12,
    TY_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR = 11,
    TY_CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR = 15,
    TY_CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR = 4,
    TY_CUDNN_BACKEND_ENGINECFG_DESCRIPTOR = 3,
    TY_CUDNN_BACKEND_ENGINE_DESCRIPTOR = 2,
    TY_CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR = 7,
    TY_CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR = 5,
    TY_CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR = 16,
    TY_CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR = 38, /* from 9.8 on */
    TY_CUDNN_TYPE_HANDLE = 0,
    TY_CUDNN_TYPE_DATA_TYPE = 1,
    TY_CUDNN_TYPE_BOOLEAN = 2,
    TY_CUDNN_TYPE_POINTWISE_MODE = 14,
    TY_CUDNN_TYPE_INT64 = 3,
    TY_CUDNN_TYPE_DOUBLE = 5,
    TY_CUDNN_TYPE_FLOAT = 4,
    TY_CUDNN_TYPE_VOID_PTR = 6,
    TY_CUDNN_TYPE_CONVOLUTION_MODE = 7,
    TY_CUDNN_TYPE_HEUR_MODE = 8,
    TY_CUDNN_TYPE_BACKEND_DESCRIPTOR = 15,
    TY_CUDNN_TYPE_NUMERICAL_NOTE = 11,
    TY_CUDNN_TYPE_KNOB_TYPE = 9,
    TY_CUDNN_TYPE_CHAR = 24,
    TY_CUDNN_ATTR_TENSOR_UNIQUE_ID = 906,
    TY_CUDNN_ATTR_TENSOR_DATA_TYPE = 901,
    TY_CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT = 900,
    TY_CUDNN_ATTR_TENSOR_DIMENSIONS = 902,
    TY_CUDNN_ATTR_TENSOR_STRIDES = 903,
    TY_CUDNN_ATTR_TENSOR_IS_VIRTUAL = 907,
    TY_CUDNN_ATTR_POINTWISE_MODE = 0,
    TY_CUDNN_ATTR_POINTWISE_MATH_PREC = 1,
    TY_CUDNN_ATTR_POINTWISE_NAN_PROPAGATION = 2,
    TY_CUDNN_TYPE_NAN_PROPAGATION = 10,
    TY_CUDNN_PROPAGATE_NAN = 1,
    TY_CUDNN_POINTWISE_ADD = 0,
    TY_CUDNN_POINTWISE_RELU_FWD = 100,
    TY_CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR = 750,
    TY_CUDNN_ATTR_OPERATION_POINTWISE_XDESC = 751,
    TY_CUDNN_ATTR_OPERATION_POINTWISE_BDESC = 752,
    TY_CUDNN_ATTR_OPERATION_POINTWISE_YDESC = 753,
    TY_CUDNN_ATTR_CONVOLUTION_COMP_TYPE = 100,
    TY_CUDNN_ATTR_CONVOLUTION_CONV_MODE = 101,
    TY_CUDNN_ATTR_CONVOLUTION_DILATIONS = 102,
    TY_CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES = 103,
    TY_CUDNN_ATTR_CONVOLUTION_POST_PADDINGS = 104,
    TY_CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS = 105,
    TY_CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS = 106,
    TY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA = 700,
    TY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA = 701,
    TY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC = 702,
    TY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W = 703,
    TY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X = 704,
    TY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y = 705,
    TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA = 706,
    TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA = 707,
    TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC = 708,
    TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W = 709,
    TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX = 710,
    TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY = 711,
    TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA = 712,
    TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA = 713,
    TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC = 714,
    TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW = 715,
    TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X = 716,
    TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY = 717,
    TY_CUDNN_ATTR_OPERATIONGRAPH_HANDLE = 800,
    TY_CUDNN_ATTR_OPERATIONGRAPH_OPS = 801,
    TY_CUDNN_ATTR_ENGINEHEUR_MODE = 200,
    TY_CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH = 201,
    TY_CUDNN_ATTR_ENGINEHEUR_RESULTS = 202,
    TY_CUDNN_ATTR_ENGINEHEUR_DEVICEPROP = 204,
    TY_CUDNN_HEUR_MODE_A = 3,
    TY_CUDNN_HEUR_MODE_FALLBACK = 2,
    TY_CUDNN_ATTR_ENGINECFG_ENGINE = 300,
    TY_CUDNN_ATTR_ENGINECFG_KNOB_CHOICES = 302,
    TY_CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE = 600,
    TY_CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE = 601,
    TY_CUDNN_ATTR_ENGINE_GLOBAL_INDEX = 1301,
    TY_CUDNN_ATTR_ENGINE_NUMERICAL_NOTE = 1303,
    TY_CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC = 4,
    TY_CUDNN_NUMERICAL_NOTE_TENSOR_CORE = 0,
    TY_CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS = 1,
    TY_CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION = 2,
    TY_CUDNN_NUMERICAL_NOTE_TYPE_COUNT = 10,
    TY_CUDNN_ATTR_EXECUTION_PLAN_HANDLE = 400,
    TY_CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG = 401,
    TY_CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE = 402,
    TY_CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP = 407,
    TY_CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION = 2702,
    TY_CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS = 1000,
    TY_CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS = 1001,
    TY_CUDNN_ATTR_VARIANT_PACK_WORKSPACE = 1003
};

#define TY_CUDNN_FUNCTIONS(X)                                                                                  \
    X(size_t, cudnnGetVersion, (void))                                                                         \
    X(size_t, cudnnGetCudartVersion, (void))                                                                   \
    X(const char *, cudnnGetErrorString, (unsigned status))                                                    \
    X(unsigned, cudnnCreate, (cudnnHandle_t * handle))                                                         \
    X(unsigned, cudnnDestroy, (cudnnHandle_t handle))                                                          \
    X(unsigned, cudnnSetStream, (cudnnHandle_t handle, CUstream stream))                                       \
    X(unsigned, cudnnBackendCreateDescriptor, (unsigned kind, cudnnBackendDescriptor_t *descriptor))           \
    X(unsigned, cudnnBackendDestroyDescriptor, (cudnnBackendDescriptor_t descriptor))                          \
    X(unsigned, cudnnBackendSetAttribute,                                                                      \
      (cudnnBackendDescriptor_t descriptor, unsigned attribute, unsigned type, int64_t n, const void *values)) \
    X(unsigned, cudnnBackendGetAttribute,                                                                      \
      (const cudnnBackendDescriptor_t descriptor, unsigned attribute, unsigned type, int64_t most, int64_t *n, \
       void *values))                                                                                          \
    X(unsigned, cudnnBackendFinalize, (cudnnBackendDescriptor_t descriptor))                                   \
    X(unsigned, cudnnBackendExecute,                                                                           \
      (cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack))

enum {
    TY_NCCL_INT8 = 0,
    TY_NCCL_UINT8 = 1,
    TY_NCCL_INT32 = 2,
    TY_NCCL_UINT32 = 3,
    TY_NCCL_INT64 = 4,
    TY_NCCL_UINT64 = 5,
    TY_NCCL_FLOAT16 = 6,
    TY_NCCL_FLOAT32 = 7,
    TY_NCCL_FLOAT64 = 8,
    TY_NCCL_BFLOAT16 = 9,
    TY_NCCL_SUM = 0,
    TY_NCCL_PROD = 1,
    TY_NCCL_MAX = 2,
    TY_NCCL_MIN = 3,
    TY_NCCL_AVG = 4,
    TY_NCCL_SUCCESS = 0,
    TY_NCCL_IN_PROGRESS = 7
};

#define TY_NCCL_FUNCTIONS(X)                                                                                           \
    X(unsigned, ncclGetVersion, (int *version))                                                                        \
    X(const char *, ncclGetErrorString, (unsigned result))                                                             \
    X(const char *, ncclGetLastError, (ncclComm_t comm))                                                               \
    X(unsigned, ncclCommInitAll, (ncclComm_t * comms, int n, const int *devices))                                      \
    X(unsigned, ncclGetUniqueId, (ncclUniqueId * id))                                                                  \
    X(unsigned, ncclCommInitRank, (ncclComm_t * comm, int n, ncclUniqueId id, int rank))                               \
    X(unsigned, ncclCommSplit, (ncclComm_t comm, int color, int key, ncclComm_t *out, ncclConfig_t *config))           \
    X(unsigned, ncclCommGetAsyncError, (ncclComm_t comm, unsigned *error))                                             \
    X(unsigned, ncclCommDestroy, (ncclComm_t comm))                                                                    \
    X(unsigned, ncclCommAbort, (ncclComm_t comm))                                                                      \
    X(unsigned, ncclAllReduce,                                                                                         \
      (const void *from, void *to, size_t n, unsigned type, unsigned how, ncclComm_t comm, CUstream stream))           \
    X(unsigned, ncclReduce,                                                                                            \
      (const void *from, void *to, size_t n, unsigned type, unsigned how, int root, ncclComm_t comm, CUstream stream)) \
    X(unsigned, ncclBroadcast,                                                                                         \
      (const void *from, void *to, size_t n, unsigned type, int root, ncclComm_t comm, CUstream stream))               \
    X(unsigned, ncclReduceScatter,                                                                                     \
      (const void *from, void *to, size_t n_to, unsigned type, unsigned how, ncclComm_t comm, CUstream stream))        \
    X(unsigned, ncclAllGather,                                                                                         \
      (const void *from, void *to, size_t n_from, unsigned type, ncclComm_t comm, CUstream stream))                    \
    X(unsigned, ncclGroupStart, (void))                                                                                \
    X(unsigned, ncclGroupEnd, (void))                                                                                  \
    X(unsigned, ncclSend, (const void *from, size_t n, unsigned type, int peer, ncclComm_t comm, CUstream stream))     \
    X(unsigned, ncclRecv, (void *to, size_t n, unsigned type, int peer, ncclComm_t comm, CUstream stream))

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
