/* cuda_api.c - our declarations of NVIDIA's functions and constants against NVIDIA's headers, where they are installed
 * (make looks in $CUDA_HOME/include). A function that differs stops the compilation of this file. */
#include "compiler/target/cuda/api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#if __has_include(<cuda.h>) && __has_include(<nvrtc.h>) && __has_include(<cublasLt.h>) && __has_include(<cudnn.h>) && \
    __has_include(<nccl.h>)
#include <cublasLt.h>
#include <cuda.h>
#include <cudnn.h>
#include <nccl.h>
#include <nvrtc.h>

#define SAME(result, name, parameters) \
    _Static_assert(__builtin_types_compatible_p(__typeof__(name), result parameters), #name);
TY_CU_FUNCTIONS(SAME)
TY_NVRTC_FUNCTIONS(SAME)
TY_CUBLASLT_FUNCTIONS(SAME)
TY_CUDNN_FUNCTIONS(SAME)
TY_NCCL_FUNCTIONS(SAME)

static void test_constants(void **state)
{
    (void)state;
    assert_int_equal(TY_CU_SUCCESS, CUDA_SUCCESS);
    assert_int_equal(TY_CU_ERROR_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
    assert_int_equal(TY_CU_ATTRIBUTE_MULTIPROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    assert_int_equal(TY_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    assert_int_equal(TY_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    assert_int_equal(TY_CU_UUID_BYTES, sizeof(CUuuid));
}
#else
static void test_constants(void **state)
{
    (void)state;
    print_message("skip: NVIDIA's headers are not installed\n");
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_constants)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
