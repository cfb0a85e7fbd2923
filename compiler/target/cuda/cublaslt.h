/* cublaslt.h - products of matrices by cuBLASLt: what it must be told, which no GPU is needed to know.
 *
 * Our matrices lie by rows, cuBLASLt's by columns. The same bytes read by columns are the transposed matrix, so it is
 * asked for result^T = b^T a^T: its first matrix is our b, its rows are our columns.
 */
#ifndef TY_TARGET_CUDA_CUBLASLT_H
#define TY_TARGET_CUDA_CUBLASLT_H

#include "compiler/target/cuda/library.h"

/* A matrix by columns, or `batch` of them. */
typedef struct ty_cublaslt_matrix {
    unsigned type; /* cudaDataType_t */
    int64_t rows, columns;
    int64_t leading; /* elements from one column to the next */
    int64_t stride;  /* elements from one matrix of the batch to the next */
} ty_cublaslt_matrix;

/* d [m, n] = op(a) op(b) (+ c, which lies as d does), sums over k; m, n, k as cuBLASLt counts. */
typedef struct ty_cublaslt_product {
    ty_cublaslt_matrix a, b, d;
    bool trans_a, trans_b;
    bool adds; /* c is the node's third operand; else there is none */
    int64_t batch, m, n, k;
    unsigned compute; /* cublasComputeType_t */
    unsigned scale;   /* cudaDataType_t of alpha and beta */
    /* Of the op `linear`: its epilogue, else DEFAULT; what it reads or writes besides are the node's x and its second
     * result (compiler/ops/linear.h). */
    unsigned epilogue;
    bool biases;         /* a vector of biases is read, or written as their gradient */
    int64_t aux_leading; /* of what is kept for the gradient, in elements or bits; 0: nothing is */
} ty_cublaslt_product;

/* The product that `node`, a dot or linear, is. tf32: float32 may be multiplied with ten bits of mantissa.
 * TY_E_UNSUPPORTED for types that cuBLASLt does not multiply (integers). */
int ty_cublaslt_product_of(const ty_graph *g, uint32_t node, bool tf32, ty_cublaslt_product *out, ty_error *err);
/* Appends `NT 768x2048x3072 of 12 a f32[..] ...`: all of it, on one line. */
void ty_cublaslt_print(const ty_cublaslt_product *p, ty_buf *out);

/* ---- on a GPU: a row of library.c ---- */

/* The same for all: what NVIDIA advises for Hopper, 32 MiB (cuBLAS's manual, cublasSetWorkspace). */
size_t ty_cublaslt_workspace(const ty_graph *g, uint32_t node);
int ty_cublaslt_describe(const ty_graph *g, uint32_t node, ty_buf *out, ty_error *err);
/* TY_E_NO_EPILOGUE: there is no algorithm for the product with its epilogue on this GPU. */
int ty_cublaslt_prepare(ty_cuda_libraries *libraries, const ty_graph *g, uint32_t node, const CUdeviceptr *at,
                        ty_cuda_library_call *out, ty_error *err);
void ty_cublaslt_close(cublasLtHandle_t handle); /* NULL: nothing */

#endif
