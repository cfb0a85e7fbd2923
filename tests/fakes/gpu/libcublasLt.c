/* libcublasLt.c - a stand-in for cuBLASLt: products in double on the host, as work of the stand-in driver's stream.
 *
 * It holds descriptors against each other and operands against live memory, and ends the process where they do not fit.
 * With TY_FAKE_EPILOGUES=none it has no epilogues; =invalid: it calls them wrong; =late: it says so of a product that
 * it has proposed an algorithm for. "none 36": so it is with epilogue number 36 alone.
 */
#include "tests/fakes/gpu/element.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cublaslt_desc {
    unsigned compute, scale;
    int32_t trans_a, trans_b;
    uint32_t epilogue;
    char *bias, *aux;
    int64_t aux_leading;
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

enum { OK = 0, INVALID = 7, TEXT_BYTES = 512 };

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
    **desc = (struct cublaslt_desc){.compute = compute, .scale = scale, .epilogue = TY_CUBLASLT_EPILOGUE_DEFAULT};
    return OK;
}

unsigned cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    free(desc);
    return OK;
}

unsigned cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, unsigned attribute, const void *value, size_t bytes)
{
    const struct {
        unsigned attribute;
        void *at;
        size_t bytes;
    } known[] = {{TY_CUBLASLT_MATMUL_DESC_TRANSA, &desc->trans_a, sizeof desc->trans_a},
                 {TY_CUBLASLT_MATMUL_DESC_TRANSB, &desc->trans_b, sizeof desc->trans_b},
                 {TY_CUBLASLT_MATMUL_DESC_EPILOGUE, &desc->epilogue, sizeof desc->epilogue},
                 {TY_CUBLASLT_MATMUL_DESC_BIAS_POINTER, &desc->bias, sizeof desc->bias},
                 {TY_CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &desc->aux, sizeof desc->aux},
                 {TY_CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &desc->aux_leading, sizeof desc->aux_leading}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].attribute == attribute && known[i].bytes == bytes) {
            memcpy(known[i].at, value, bytes);
            return OK;
        }
    return INVALID;
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

/* ---- epilogues ---- */

enum { GELU = 32, DGELU = 64, RELU = 2, DRELU = 8, BIAS = 4, BGRAD = 16, AUX = 128 };

static bool sums_operand(uint32_t epilogue)
{
    return epilogue == TY_CUBLASLT_EPILOGUE_BGRADA || epilogue == TY_CUBLASLT_EPILOGUE_BGRADB;
}

static bool has_bias(uint32_t epilogue)
{
    return epilogue & (BIAS | BGRAD) || sums_operand(epilogue);
}

/* What is kept: a bit an element for a ReLU, in rows of whole 128; the arguments of a GELU, in groups of 8. */
static bool epilogue_fits(const struct cublaslt_desc *desc, const struct cublaslt_layout *d)
{
    uint32_t e = desc->epilogue;
    if (e == TY_CUBLASLT_EPILOGUE_DEFAULT)
        return true;
    int64_t group = e & (RELU | DRELU) ? 128 : 8;
    bool kept = !(e & AUX) || (desc->aux && (uintptr_t)desc->aux % 16 == 0 && desc->aux_leading >= d->rows &&
                               desc->aux_leading % group == 0);
    return d->batch == 1 && kept && (!has_bias(e) || desc->bias);
}

static bool refuses(const struct cublaslt_desc *desc, const char *how)
{
    const char *asked = getenv("TY_FAKE_EPILOGUES");
    size_t n = strlen(how);
    if (!asked || strncmp(asked, how, n) != 0 || desc->epilogue == TY_CUBLASLT_EPILOGUE_DEFAULT)
        return false;
    return !asked[n] || strtoul(asked + n, NULL, 10) == desc->epilogue;
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
           p->a.type == p->b.type && p->c.type == p->d.type && p->a.batch == p->d.batch && p->b.batch == p->d.batch &&
           epilogue_fits(&p->desc, &p->d);
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
    if (refuses(desc, "none"))
        return TY_CUBLAS_STATUS_NOT_SUPPORTED;
    if (refuses(desc, "invalid"))
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

/* Of the tanh form: its derivative where `slope`. */
static double gelu(double x, bool slope)
{
    double t = tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
    double du = 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
    return slope ? 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * du : 0.5 * x * (1 + t);
}

static void keep_bit(const product *p, int64_t bit, bool on)
{
    char *byte = &p->desc.aux[bit / 8];
    *byte = (char)((*byte & ~(1 << bit % 8)) | on << bit % 8);
}

/* What becomes of a number of the product. */
static double follow(const product *p, double v, int64_t row, int64_t column)
{
    uint32_t e = p->desc.epilogue;
    int64_t kept = column * p->desc.aux_leading + row;
    ty_dtype type = dtype_of(p->d.type);
    if (e == TY_CUBLASLT_EPILOGUE_DEFAULT || sums_operand(e))
        return v;
    if (e & DGELU)
        return v * gelu(element_get(p->desc.aux, kept, type), true);
    if (e & DRELU)
        return p->desc.aux[kept / 8] >> kept % 8 & 1 ? v : 0;
    if (e & BIAS)
        v += element_get(p->desc.bias, row, type);
    if (e & AUX && e & GELU)
        element_put(p->desc.aux, kept, type, v);
    if (e & AUX && e & RELU)
        keep_bit(p, kept, v > 0);
    return e & GELU ? gelu(v, false) : e & RELU && v <= 0 ? 0 : v;
}

/* Gradients of biases: sums of the result over its columns, or of an operand over what is contracted. */
static void add_up(const product *p, const double *sums)
{
    bool trans_a = p->desc.trans_a, trans_b = p->desc.trans_b, b = p->desc.epilogue == TY_CUBLASLT_EPILOGUE_BGRADB;
    int64_t k = trans_a ? p->a.rows : p->a.columns, n = b ? p->d.columns : p->d.rows;
    const struct cublaslt_layout *x = b ? &p->b : &p->a;
    bool along = b ? !trans_b : trans_a; /* the operand's columns are contracted */
    for (int64_t i = 0; i < n; i++) {
        double sum = sums[i];
        for (int64_t l = 0; l < k && sums_operand(p->desc.epilogue); l++)
            sum +=
                element_get(b ? p->b_at : p->a_at, along ? i * x->leading + l : l * x->leading + i, dtype_of(x->type));
        element_put(p->desc.bias, i, dtype_of(p->d.type), sum);
    }
}

static void multiply(const void *given)
{
    const product *p = given;
    double *sums = calloc((size_t)(p->d.rows + p->d.columns + 1), sizeof *sums);
    for (int32_t i = 0; i < p->d.batch; i++) {
        const char *a = p->a_at + (size_t)(i * p->a.stride) * ty_dtype_bytes(dtype_of(p->a.type));
        const char *b = p->b_at + (size_t)(i * p->b.stride) * ty_dtype_bytes(dtype_of(p->b.type));
        int64_t from = i * p->d.stride;
        for (int64_t column = 0; column < p->d.columns; column++)
            for (int64_t row = 0; row < p->d.rows; row++) {
                int64_t at = from + column * p->d.leading + row;
                double old = p->beta != 0 ? p->beta * element_get(p->c_at, at, dtype_of(p->c.type)) : 0;
                double v = follow(p, p->alpha * sum_of(p, a, b, row, column) + old, row, column);
                element_put(p->d_at, at, dtype_of(p->d.type), v);
                sums[row] += p->desc.epilogue & BGRAD ? v : 0;
            }
    }
    if (p->desc.epilogue & BGRAD || sums_operand(p->desc.epilogue))
        add_up(p, sums);
    free(sums);
}

static void check_epilogue(cublasLtHandle_t handle, const product *p)
{
    uint32_t e = p->desc.epilogue;
    size_t one = ty_dtype_bytes(dtype_of(p->d.type));
    size_t kept = (size_t)(p->desc.aux_leading * (p->d.columns - 1) + p->d.rows);
    if (e == TY_CUBLASLT_EPILOGUE_DEFAULT || p->d.rows * p->d.columns == 0)
        return;
    if (has_bias(e))
        handle->driver.check(p->desc.bias, one * (size_t)(e == TY_CUBLASLT_EPILOGUE_BGRADB ? p->d.columns : p->d.rows),
                             "bias of a product");
    if (e & AUX)
        handle->driver.check(p->desc.aux, e & (RELU | DRELU) ? (kept + 7) / 8 : kept * one,
                             "what a product keeps for its gradient");
}

static void check(cublasLtHandle_t handle, const void *at, const struct cublaslt_layout *x, const char *what)
{
    int64_t elements = (x->batch - 1) * x->stride + (x->columns - 1) * x->leading + x->rows;
    if (x->rows * x->columns > 0)
        handle->driver.check(at, (size_t)elements * ty_dtype_bytes(dtype_of(x->type)), what);
}

static const char *epilogue_text(uint32_t epilogue)
{
    static const struct {
        uint32_t epilogue;
        const char *text;
    } rows[] = {{TY_CUBLASLT_EPILOGUE_BIAS, "bias"},
                {TY_CUBLASLT_EPILOGUE_RELU_BIAS, "relu_bias"},
                {TY_CUBLASLT_EPILOGUE_RELU_AUX_BIAS, "relu_aux_bias"},
                {TY_CUBLASLT_EPILOGUE_GELU_BIAS, "gelu_bias"},
                {TY_CUBLASLT_EPILOGUE_GELU_AUX_BIAS, "gelu_aux_bias"},
                {TY_CUBLASLT_EPILOGUE_DRELU, "drelu"},
                {TY_CUBLASLT_EPILOGUE_DRELU_BGRAD, "drelu_bgrad"},
                {TY_CUBLASLT_EPILOGUE_DGELU, "dgelu"},
                {TY_CUBLASLT_EPILOGUE_DGELU_BGRAD, "dgelu_bgrad"},
                {TY_CUBLASLT_EPILOGUE_BGRADA, "bgrada"},
                {TY_CUBLASLT_EPILOGUE_BGRADB, "bgradb"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].epilogue == epilogue)
            return rows[i].text;
    return "?";
}

static int print_layout(const char *name, const struct cublaslt_layout *x, char *out, size_t room)
{
    int n = snprintf(out, room, " %s %s[%ld,%ld]/%ld", name, ty_dtype_text(dtype_of(x->type)), (long)x->rows,
                     (long)x->columns, (long)x->leading);
    return n + (x->batch > 1 ? snprintf(out + n, room - (size_t)n, "+%ld", (long)x->stride) : 0);
}

/* What it was told, in the words of ty_cublaslt_print, for tests to compare. */
static void print(const product *p, int algorithm, char *out)
{
    const struct cublaslt_desc *d = &p->desc;
    const char *compute = d->compute == TY_CUBLAS_COMPUTE_32F_FAST_TF32 ? "tf32"
                          : d->compute == TY_CUBLAS_COMPUTE_64F         ? "f64"
                                                                        : "f32";
    int n = snprintf(out, TEXT_BYTES, "matmul %ldx%ldx%ld algorithm %d: %c%c%s %dx%ldx%ldx%ld in %s", (long)p->d.rows,
                     (long)p->d.columns, (long)p->d.batch, algorithm, d->trans_a ? 'T' : 'N', d->trans_b ? 'T' : 'N',
                     p->beta != 0 ? "+" : "", p->d.batch, (long)p->d.rows, (long)p->d.columns,
                     (long)(d->trans_a ? p->a.rows : p->a.columns), compute);
    n += print_layout("a", &p->a, out + n, TEXT_BYTES - (size_t)n);
    n += print_layout("b", &p->b, out + n, TEXT_BYTES - (size_t)n);
    n += print_layout("d", &p->d, out + n, TEXT_BYTES - (size_t)n);
    if (d->epilogue != TY_CUBLASLT_EPILOGUE_DEFAULT)
        n += snprintf(out + n, TEXT_BYTES - (size_t)n, " then %s", epilogue_text(d->epilogue));
    if (d->aux_leading > 0)
        snprintf(out + n, TEXT_BYTES - (size_t)n, "/%ld", (long)d->aux_leading);
}

unsigned cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a_at,
                        cublasLtMatrixLayout_t a, const void *b_at, cublasLtMatrixLayout_t b, const void *beta,
                        const void *c_at, cublasLtMatrixLayout_t c, void *d_at, cublasLtMatrixLayout_t d,
                        const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_bytes, CUstream stream)
{
    char text[TEXT_BYTES];
    product p = {
        .desc = *desc, .a = *a, .b = *b, .c = *c, .d = *d, .a_at = a_at, .b_at = b_at, .c_at = c_at, .d_at = d_at};
    fake_driver_is_current(&handle->driver, "a product");
    if (!fits(&p) || algo->data[0] < 1 || algo->data[0] > ALGORITHMS)
        return INVALID;
    if (refuses(desc, "late"))
        return TY_CUBLAS_STATUS_NOT_SUPPORTED;
    p.alpha = element_get(alpha, 0, dtype_of(desc->scale));
    p.beta = element_get(beta, 0, dtype_of(desc->scale));
    check(handle, a_at, a, "first matrix of a product");
    check(handle, b_at, b, "second matrix of a product");
    check(handle, d_at, d, "result of a product");
    check_epilogue(handle, &p);
    if (p.beta != 0)
        check(handle, c_at, c, "what a product is added to");
    if (workspace_bytes)
        handle->driver.check(workspace, workspace_bytes, "workspace of a product");
    print(&p, (int)algo->data[0], text);
    handle->driver.take(stream, algorithms[algo->data[0] - 1].ms);
    return handle->driver.work(stream, multiply, &p, sizeof p, text);
}
