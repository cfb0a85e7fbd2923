/* onednn.h - oneDNN, opened when the first product or convolution is prepared.
 *
 * Opened at run time because loading it costs more than starting the whole program, and most commands never multiply.
 */
#ifndef TY_TARGET_CPU_ONEDNN_H
#define TY_TARGET_CPU_ONEDNN_H

#include "compiler/target/cpu/library.h"

#include <oneapi/dnnl/dnnl.h>

/* Its sgemm multiplies operands where they lie, unpacked, if 1 / rows + 1 / columns of the result are this at least: a
 * side is shorter than about a thousand. From oneDNN 2.6's gemm_driver.cpp. */
#define TY_ONEDNN_IN_PLACE 0.00196

/* Whether oneDNN has kernels of 16 floats here: its sgemm then reaches nine tenths of the arithmetic in place too. */
bool ty_onednn_is_wide(void);

/* Functions used, by name; one list for the table and for the search. */
/* The formatter would push it to the right each time it runs. */
/* clang-format off */
#define ONEDNN_FUNCTIONS(X) \
    X(version) X(engine_create) X(stream_create) X(sgemm) X(memory_desc_init_by_strides) X(memory_desc_init_by_tag) \
    X(memory_desc_equal) X(memory_desc_get_size) X(memory_create) X(memory_destroy) X(memory_set_data_handle_v2) \
    X(primitive_attr_create) X(primitive_attr_destroy) X(primitive_attr_set_scratchpad_mode) \
    X(primitive_attr_set_post_ops) X(post_ops_create) X(post_ops_destroy) X(post_ops_append_sum) \
    X(primitive_desc_create) X(primitive_desc_destroy) X(primitive_desc_query_md) X(primitive_desc_query) \
    X(primitive_create) X(primitive_destroy) X(primitive_execute) X(reorder_primitive_desc_create) \
    X(matmul_desc_init) X(dilated_convolution_forward_desc_init) X(dilated_convolution_backward_data_desc_init) \
    X(dilated_convolution_backward_weights_desc_init)
/* clang-format on */

typedef struct ty_onednn {
#define X(fn) __typeof__(&dnnl_##fn) fn;
    ONEDNN_FUNCTIONS(X)
#undef X
    dnnl_engine_t engine;
    dnnl_stream_t stream;
} ty_onednn;

/* The one instance; opens the library on first use. */
int ty_onednn_get(const ty_onednn **out, ty_error *err);
/* TY_E_LIBRARY naming the call and oneDNN's status, unless the status is success. */
int ty_onednn_status(dnnl_status_t status, const char *what, ty_error *err);

/* Threads that a call of this much arithmetic gets: below a fraction of a millisecond waking others costs more than it
 * saves. With strict determinism a convolution has one thread always: oneDNN's sums depend on how many share it. */
int ty_onednn_threads(const ty_library_shape *shape, double flops);
/* Whether products of bfloat16 are faster than those of float32. AVX512-BF16 alone is so on AMD, where one instruction
 * does twice the work of a float32 one; on Intel it does as much as two, and oneDNN 2.6 reaches 85 GFLOP/s a core with
 * it where float32 reaches 150 (Sapphire Rapids without AMX). With AMX it is faster anywhere. */
bool ty_onednn_bf16_pays(void);
/* Whether this machine multiplies tiles of bfloat16 (AMX-BF16). */
bool ty_onednn_has_amx(void);
/* Sets the number of OpenMP threads for what follows on this thread; returns the one before. */
int ty_onednn_use_threads(int threads);

ty_library_prepare_fn ty_onednn_prepare_dot, ty_onednn_prepare_dot_bf16;
/* Convolutions for which oneDNN has something fast, not strict; and any of them, however slow. */
ty_library_prepare_fn ty_onednn_prepare_conv, ty_onednn_prepare_conv_dx, ty_onednn_prepare_conv_dw;
ty_library_prepare_fn ty_onednn_prepare_any_conv, ty_onednn_prepare_any_conv_dx, ty_onednn_prepare_any_conv_dw;

#endif
