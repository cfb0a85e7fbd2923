/* libraries.h - NVIDIA's libraries, opened by soname when they are first asked for.
 *
 * They are looked for where the loader looks (LD_LIBRARY_PATH, ldconfig's cache), then in $CUDA_HOME/lib64 and
 * /usr/local/cuda/lib64. An absent library is a normal answer: TY_E_NOT_FOUND with the loader's words. Tables live as
 * long as the process. Not for several threads at a time.
 */
#ifndef TY_TARGET_CUDA_LIBRARIES_H
#define TY_TARGET_CUDA_LIBRARIES_H

#include "base/error.h"
#include "compiler/target/cuda/api.h"

int ty_cu_get(const ty_cu **out, ty_error *err); /* the driver; cuInit has not been called */
int ty_nvrtc_get(const ty_nvrtc **out, ty_error *err);
int ty_cublaslt_get(const ty_cublaslt **out, ty_error *err);
int ty_cudnn_get(const ty_cudnn **out, ty_error *err);
int ty_nccl_get(const ty_nccl **out, ty_error *err);

#endif
