/* libcublasLt.c - a stand-in for cuBLASLt: products in double on the host, as work of the stand-in driver's stream.
 *
 * It holds descriptors against each other and operands against live memory, and ends the process where they do not fit.
 */
#include "tests/fakes/gpu/element.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cublaslt_desc {
    unsigned compute, scale;
    int32_t trans_a, trans_b;
};
struct cublaslt_layout {
    unsigned type;
    int64_t rows, columns, leading, stride;
    int32_t batch;
};
struct cublaslt_preference {
    uint64_t workspace;
    uint32_t schemes; /* by which parts of a split sum may meet */
};
struct cublasLtContext {
    fake_driver driver;
};

enum { OK = 0, INVALID = 7, TEXT_BYTES = 64 };

size_t cublasLtGetVersion(void)
{
    return 130000;
}

const char *cublasLtGetStatusString(unsigned status)
{
    return status == INVALID ? "CUBLAS_STATUS_INVALID_VALUE" : "an error of the stand-in";
}

unsigned cublasLtCreate(cublasLtHandle_t *handle)
{
    fake_driver driver;
    if (!fake_driver_find(&driver))
        return INVALID;
    *handle = calloc(1, sizeof **handle);
    (*handle)->driver = driver;
    return OK;
}

unsigned cublasLtDestroy(cublasLtHandle_t handle)
{
    free(handle);
    return OK;
}

unsigned cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, unsigned compute, unsigned scale)
{
    *desc = calloc(1, sizeof **desc);
    **desc = (struct cublaslt_desc){compute, scale, 0, 0};
    return OK;
}

unsigned cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    free(desc);
    return OK;
}

unsigned cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, unsigned attribute, const void *value, size_t bytes)
{
    int32_t *at = attribute == TY_CUBLASLT_MATMUL_DESC_TRANSA   ? &desc->trans_a
                  : attribute == TY_CUBLASLT_MATMUL_DESC_TRANSB ? &desc->trans_b
                                                                : NULL;
    if (!at || bytes != sizeof *at)
        return INVALID;
    memcpy(at, value, bytes);
    return OK;
}

unsigned cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, unsigned type, uint64_t rows, uint64_t columns,
                                    int64_t leading)
{
    if (leading < (int64_t)rows)
        return INVALID;
    *layout = calloc(1, sizeof **layout);
    **layout = (struct cublaslt_layout){type, (int64_t)rows, (int64_t)columns, leading, 0, 1};
    return OK;
}

unsigned cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    free(layout);
    return OK;
}

unsigned cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, unsigned attribute, const void *value,
                                          size_t bytes)
{
    if (attribute == TY_CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == sizeof layout->batch)
        memcpy(&layout->batch, value, bytes);
    else if (attribute == TY_CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && bytes == sizeof layout->stride)
        memcpy(&layout->stride, value, bytes);
    else
        return INVALID;
    return OK;
}

unsigned cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    *preference = calloc(1, sizeof **preference);
    (*preference)->schemes = 7;
    return OK;
}

unsigned cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    free(preference);
    return OK;
}

unsigned cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference, unsigned attribute,
                                              const void *value, size_t bytes)
{
    if (attribute == TY_CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && bytes == sizeof preference->workspace)
        memcpy(&preference->workspace, value, bytes);
    if (attribute == TY_CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK && bytes == sizeof preference->schemes)
        memcpy(&preference->schemes, value, bytes);
    return OK;
}

/* ---- shapes ---- */

typedef struct product {
    struct cublaslt_desc desc;
    struct cublaslt_layout a, b, c, d;
    const char *a_at, *b_at, *c_at;
    char *d_at;
    double alpha, beta;
} product;

static int fits(const product *p)
{
    int64_t m = p->desc.trans_a ? p->a.columns : p->a.rows, k = p->desc.trans_a ? p->a.rows : p->a.columns;
    int64_t l = p->desc.trans_b ? p->b.columns : p->b.rows, n = p->desc.trans_b ? p->b.rows : p->b.columns;
    return k == l && m == p->d.rows && n == p->d.columns && m == p->c.rows && n == p->c.columns &&
           p->a.type == p->b.type && p->c.type == p->d.type && p->a.batch == p->d.batch && p->b.batch == p->d.batch;
}

/* What is proposed, best first, as the library thinks: how parts of a sum meet, and what a run takes. */
static const struct {
    uint32_t scheme;
    double ms;
} algorithms[] = {{0, 3}, {TY_CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 1}, {1, 0.5}, {0, 2}};
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms };

unsigned cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                        cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                        cublasLtMatmulPreference_t preference, int wanted,
                                        cublasLtMatmulHeuristicResult_t results[], int *found)
{
    const product p = {.desc = *desc, .a = *a, .b = *b, .c = *c, .d = *d};
    (void)handle;
    *found = 0;
    if (wanted < 1 || !fits(&p))
        return INVALID;
    for (size_t i = 0; i < ALGORITHMS && *found < wanted; i++)
        if ((algorithms[i].scheme & ~preference->schemes) == 0)
            results[(*found)++] = (cublasLtMatmulHeuristicResult_t){.algo = {{i + 1}}};
    return OK;
}

/* ---- multiplying ---- */

static ty_dtype dtype_of(unsigned type)
{
    return type == TY_CUDA_R_64F ? TY_F64 : type == TY_CUDA_R_32F ? TY_F32 : type == TY_CUDA_R_16F ? TY_F16 : TY_BF16;
}

static double sum_of(const product *p, const char *a, const char *b, int64_t i, int64_t j)
{
    int64_t k = p->desc.trans_a ? p->a.rows : p->a.columns;
    double sum = 0;
    for (int64_t l = 0; l < k; l++)
        sum += element_get(a, p->desc.trans_a ? i * p->a.leading + l : l * p->a.leading + i, dtype_of(p->a.type)) *
               element_get(b, p->desc.trans_b ? l * p->b.leading + j : j * p->b.leading + l, dtype_of(p->b.type));
    return sum;
}

static void multiply(const void *given)
{
    const product *p = given;
    for (int32_t i = 0; i < p->d.batch; i++) {
        const char *a = p->a_at + (size_t)(i * p->a.stride) * ty_dtype_bytes(dtype_of(p->a.type));
        const char *b = p->b_at + (size_t)(i * p->b.stride) * ty_dtype_bytes(dtype_of(p->b.type));
        int64_t from = i * p->d.stride;
        for (int64_t column = 0; column < p->d.columns; column++)
            for (int64_t row = 0; row < p->d.rows; row++) {
                int64_t at = from + column * p->d.leading + row;
                double old = p->beta != 0 ? p->beta * element_get(p->c_at, at, dtype_of(p->c.type)) : 0;
                element_put(p->d_at, at, dtype_of(p->d.type), p->alpha * sum_of(p, a, b, row, column) + old);
            }
    }
}

static void check(cublasLtHandle_t handle, const void *at, const struct cublaslt_layout *x, const char *what)
{
    int64_t elements = (x->batch - 1) * x->stride + (x->columns - 1) * x->leading + x->rows;
    if (x->rows * x->columns > 0)
        handle->driver.check(at, (size_t)elements * ty_dtype_bytes(dtype_of(x->type)), what);
}

unsigned cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a_at,
                        cublasLtMatrixLayout_t a, const void *b_at, cublasLtMatrixLayout_t b, const void *beta,
                        const void *c_at, cublasLtMatrixLayout_t c, void *d_at, cublasLtMatrixLayout_t d,
                        const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_bytes, CUstream stream)
{
    char text[TEXT_BYTES];
    product p = {
        .desc = *desc, .a = *a, .b = *b, .c = *c, .d = *d, .a_at = a_at, .b_at = b_at, .c_at = c_at, .d_at = d_at};
    if (!fits(&p) || algo->data[0] < 1 || algo->data[0] > ALGORITHMS)
        return INVALID;
    p.alpha = element_get(alpha, 0, dtype_of(desc->scale));
    p.beta = element_get(beta, 0, dtype_of(desc->scale));
    check(handle, a_at, a, "first matrix of a product");
    check(handle, b_at, b, "second matrix of a product");
    check(handle, d_at, d, "result of a product");
    if (p.beta != 0)
        check(handle, c_at, c, "what a product is added to");
    if (workspace_bytes)
        handle->driver.check(workspace, workspace_bytes, "workspace of a product");
    snprintf(text, sizeof text, "matmul %ldx%ldx%ld algorithm %d", (long)d->rows, (long)d->columns, (long)d->batch,
             (int)algo->data[0]);
    handle->driver.take(stream, algorithms[algo->data[0] - 1].ms);
    return handle->driver.work(stream, multiply, &p, sizeof p, text);
}
