/* libraries.h - NVIDIA's libraries, opened by soname when they are first asked for.
 *
 * They are looked for
 *   1. in the folders of $TRAINYARD_CUDA_DIR, separated by ':': a toolkit, a folder of libraries, or pip's
 * (site-packages or its nvidia/, where each wheel has a folder with a lib/ of its own);
 *   2. where the loader looks: LD_LIBRARY_PATH, ldconfig's cache;
 *   3. in pip's folder nvidia/, put beside the folder bin/ of this program or one level up;
 *   4. in $CUDA_HOME/lib64, /usr/local/cuda/lib64 and /usr/local/cuda-VERSION/lib64.
 * The driver's, which comes with the kernel module, only where the loader looks. In each place the newest soname wins.
 * Where there is a driver, what was built for a later major version of CUDA than the driver's is passed over, since
 * it loads no code of that, and NVRTC and cuBLASLt are of one version: of those of which both are there, the one
 * whose NVRTC comes first. These two are looked for once.
 * An absent library is a normal answer: TY_E_NOT_FOUND with the loader's words. Tables live as long as the process. For
 * any thread.
 */
#ifndef TY_TARGET_CUDA_LIBRARIES_H
#define TY_TARGET_CUDA_LIBRARIES_H

#include "base/error.h"
#include "compiler/target/cuda/api.h"

enum { TY_LIBRARY_VERSION_BYTES = 64 };

int ty_cu_get(const ty_cu **out, ty_error *err); /* the driver; cuInit has not been called */
int ty_nvrtc_get(const ty_nvrtc **out, ty_error *err);
int ty_cublaslt_get(const ty_cublaslt **out, ty_error *err);
int ty_cudnn_get(const ty_cudnn **out, ty_error *err);
int ty_nccl_get(const ty_nccl **out, ty_error *err);
/* NULL, or why what is there of NVRTC and cuBLASLt cannot be used with this driver: "the driver is of CUDA 12.4, the
 * libraries of CUDA 13: driver 580 or newer, or libraries of CUDA 12". */
const char *ty_libraries_unfit(void);
/* "2.28.9" of cuBLASLt, cuDNN or NCCL, for which it is one number: major * 10000 + minor * 100 + patch. */
void ty_library_version(size_t version, char *out);

#endif
