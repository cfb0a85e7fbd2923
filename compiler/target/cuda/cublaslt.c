/* cublaslt.c - see cublaslt.h. */
#include "compiler/target/cuda/cublaslt.h"

#include "compiler/ops/linear.h"
#include "compiler/target/cuda/libraries.h"

#include <inttypes.h>

/* ---- types ---- */

typedef struct type_row {
    ty_dtype dtype;
    unsigned type, compute, scale;
    const char *text; /* of `compute` */
} type_row;

static const type_row type_rows[] = {
    {TY_F32, TY_CUDA_R_32F, TY_CUBLAS_COMPUTE_32F, TY_CUDA_R_32F, "f32"},
    {TY_BF16, TY_CUDA_R_16BF, TY_CUBLAS_COMPUTE_32F, TY_CUDA_R_32F, "f32"},
    {TY_F16, TY_CUDA_R_16F, TY_CUBLAS_COMPUTE_32F, TY_CUDA_R_32F, "f32"},
    {TY_F64, TY_CUDA_R_64F, TY_CUBLAS_COMPUTE_64F, TY_CUDA_R_64F, "f64"},
};

static const type_row *type_of(ty_dtype dtype)
{
    for (size_t i = 0; i < sizeof type_rows / sizeof *type_rows; i++)
        if (type_rows[i].dtype == dtype)
            return &type_rows[i];
    return NULL;
}

static const char *type_text(unsigned type)
{
    for (size_t i = 0; i < sizeof type_rows / sizeof *type_rows; i++)
        if (type_rows[i].type == type)
            return ty_dtype_text(type_rows[i].dtype);
    return "?";
}

static const char *compute_text(unsigned compute)
{
    if (compute == TY_CUBLAS_COMPUTE_32F_FAST_TF32)
        return "tf32";
    for (size_t i = 0; i < sizeof type_rows / sizeof *type_rows; i++)
        if (type_rows[i].compute == compute)
            return type_rows[i].text;
    return "?";
}

/* ---- epilogues ---- */

/* Its A is our b. */
static const struct {
    unsigned epilogue;
    const char *text;
} epilogue_rows[TY_N_LINEAR_KINDS] = {
    [TY_LINEAR_BIAS] = {TY_CUBLASLT_EPILOGUE_BIAS, "bias"},
    [TY_LINEAR_RELU] = {TY_CUBLASLT_EPILOGUE_RELU_BIAS, "relu_bias"},
    [TY_LINEAR_RELU_KEEP] = {TY_CUBLASLT_EPILOGUE_RELU_AUX_BIAS, "relu_aux_bias"},
    [TY_LINEAR_GELU] = {TY_CUBLASLT_EPILOGUE_GELU_BIAS, "gelu_bias"},
    [TY_LINEAR_GELU_KEEP] = {TY_CUBLASLT_EPILOGUE_GELU_AUX_BIAS, "gelu_aux_bias"},
    [TY_LINEAR_RELU_GRAD] = {TY_CUBLASLT_EPILOGUE_DRELU, "drelu"},
    [TY_LINEAR_RELU_GRAD_SUM] = {TY_CUBLASLT_EPILOGUE_DRELU_BGRAD, "drelu_bgrad"},
    [TY_LINEAR_GELU_GRAD] = {TY_CUBLASLT_EPILOGUE_DGELU, "dgelu"},
    [TY_LINEAR_GELU_GRAD_SUM] = {TY_CUBLASLT_EPILOGUE_DGELU_BGRAD, "dgelu_bgrad"},
    [TY_LINEAR_SUM_A] = {TY_CUBLASLT_EPILOGUE_BGRADB, "bgradb"},
    [TY_LINEAR_SUM_B] = {TY_CUBLASLT_EPILOGUE_BGRADA, "bgrada"},
};

static bool part_is_kept(ty_linear_part part)
{
    return part == TY_LINEAR_ARGUMENTS || part == TY_LINEAR_BITS;
}

static bool part_is_bias(ty_linear_part part)
{
    return part == TY_LINEAR_COLUMNS || part == TY_LINEAR_ROWS;
}

static void epilogue_of(const ty_graph *g, uint32_t node, ty_cublaslt_product *p)
{
    ty_linear_kind kind = (ty_linear_kind)ty_graph_attr(g, node)->index;
    ty_linear_part x = ty_linear_operand(kind), second = ty_linear_result(kind);
    p->adds = false;
    p->epilogue = epilogue_rows[kind].epilogue;
    p->biases = part_is_bias(x) || part_is_bias(second);
    if (part_is_kept(x) || part_is_kept(second)) {
        bool bits = x == TY_LINEAR_BITS || second == TY_LINEAR_BITS;
        p->aux_leading = bits ? 8 * ty_linear_row_bytes(p->m) : p->m;
    }
}

static const char *epilogue_text(unsigned epilogue)
{
    for (size_t i = 0; i < TY_N_LINEAR_KINDS; i++)
        if (epilogue_rows[i].epilogue == epilogue)
            return epilogue_rows[i].text;
    return "?";
}

/* ---- shapes ---- */

/* What lies by rows as [rows, columns] is, by columns, [columns, rows]. */
static ty_cublaslt_matrix matrix_of(const ty_type *t, unsigned type)
{
    int64_t rows = t->dim[t->rank - 2], columns = t->dim[t->rank - 1];
    return (ty_cublaslt_matrix){
        .type = type, .rows = columns, .columns = rows, .leading = columns, .stride = rows * columns};
}

int ty_cublaslt_product_of(const ty_graph *g, uint32_t node, bool tf32, ty_cublaslt_product *out, ty_error *err)
{
    const ty_type *a = ty_graph_type(g, ty_graph_in(g, node, 0)), *b = ty_graph_type(g, ty_graph_in(g, node, 1));
    const ty_type *c = ty_graph_type(g, ty_val_make(node, 0));
    const type_row *in = type_of((ty_dtype)a->dtype), *res = type_of((ty_dtype)c->dtype);
    uint32_t flags = ty_graph_attr(g, node)->flags;
    if (!in || !res || a->dtype != b->dtype)
        return ty_error_set(err, TY_E_UNSUPPORTED, "cuBLASLt does not multiply %s by %s into %s",
                            ty_dtype_text((ty_dtype)a->dtype), ty_dtype_text((ty_dtype)b->dtype),
                            ty_dtype_text((ty_dtype)c->dtype));
    *out = (ty_cublaslt_product){.a = matrix_of(b, in->type),
                                 .b = matrix_of(a, in->type),
                                 .d = matrix_of(c, res->type),
                                 .trans_a = flags & TY_DOT_TRANS_B,
                                 .trans_b = flags & TY_DOT_TRANS_A,
                                 .adds = ty_graph_node(g, node)->n_in > 2,
                                 .batch = 1,
                                 .epilogue = TY_CUBLASLT_EPILOGUE_DEFAULT,
                                 .compute = in->compute,
                                 .scale = in->scale};
    if (tf32 && in->dtype == TY_F32)
        out->compute = TY_CUBLAS_COMPUTE_32F_FAST_TF32;
    for (int i = 0; i < c->rank - 2; i++)
        out->batch *= c->dim[i];
    out->m = out->d.rows;
    out->n = out->d.columns;
    out->k = out->trans_a ? out->a.rows : out->a.columns;
    if (ty_graph_op(g, node) == TY_OP_LINEAR)
        epilogue_of(g, node, out);
    return 0;
}

/* ---- text ---- */

static void print_matrix(const char *name, const ty_cublaslt_matrix *x, ty_buf *out)
{
    ty_buf_addf(out, " %s %s[%" PRId64 ",%" PRId64 "]/%" PRId64 "+%" PRId64, name, type_text(x->type), x->rows,
                x->columns, x->leading, x->stride);
}

void ty_cublaslt_print(const ty_cublaslt_product *p, ty_buf *out)
{
    ty_buf_addf(out, "%c%c%s %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64 " in %s", p->trans_a ? 'T' : 'N',
                p->trans_b ? 'T' : 'N', p->adds ? "+" : "", p->batch, p->m, p->n, p->k, compute_text(p->compute));
    print_matrix("a", &p->a, out);
    print_matrix("b", &p->b, out);
    print_matrix("d", &p->d, out);
    if (p->epilogue != TY_CUBLASLT_EPILOGUE_DEFAULT)
        ty_buf_addf(out, " then %s", epilogue_text(p->epilogue));
    if (p->aux_leading > 0)
        ty_buf_addf(out, "/%" PRId64, p->aux_leading);
}

/* ---- on a GPU ---- */

#define CUBLASLT_WORKSPACE_BYTES ((size_t)32 << 20)

size_t ty_cublaslt_workspace(const ty_graph *g, uint32_t node)
{
    (void)g, (void)node;
    return CUBLASLT_WORKSPACE_BYTES;
}

/* A product with its descriptors and algorithm. */
typedef struct cublaslt_call {
    const ty_cublaslt *lib;
    const ty_cuda_libraries *shared;
    ty_cublaslt_product product;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algo;
    CUdeviceptr a_at, b_at, c_at, d_at; /* c: what is added, or the result */
    CUdeviceptr bias_at, aux_at;        /* of an epilogue, or 0 */
    union {
        float f;
        double d;
    } one, beta; /* as the scale's type says */
} cublaslt_call;

static int cublaslt_status(const ty_cublaslt *lib, unsigned status, const char *what, ty_error *err)
{
    if (status == 0)
        return 0;
    return ty_error_set(err, TY_E_LIBRARY, "cuBLASLt: %s: %s", what, lib->cublasLtGetStatusString(status));
}

/* What it says of a product that it does not take; its other errors are the GPU's. */
static bool is_refusal(unsigned status)
{
    return status == TY_CUBLAS_STATUS_INVALID_VALUE || status == TY_CUBLAS_STATUS_ARCH_MISMATCH ||
           status == TY_CUBLAS_STATUS_NOT_SUPPORTED;
}

/* Names the product. Which epilogues there are depends on the GPU, on types and on shapes, and cuBLASLt has several
 * words for it: whichever it is, the product can be had without. */
static int product_status(const ty_cublaslt *lib, const ty_cublaslt_product *p, unsigned status, const char *what,
                          ty_error *err)
{
    bool refused = p->epilogue != TY_CUBLASLT_EPILOGUE_DEFAULT && is_refusal(status);
    if (status == 0)
        return 0;
    ty_buf text;
    ty_buf_init(&text, 1024);
    ty_cublaslt_print(p, &text);
    ty_error_set(err, refused ? TY_E_NO_EPILOGUE : TY_E_LIBRARY, "cuBLASLt: %s %.*s: %s", what, (int)text.len,
                 text.data, lib->cublasLtGetStatusString(status));
    ty_buf_fini(&text);
    return -1;
}

static int cublaslt_open(const ty_cublaslt *lib, ty_cuda_libraries *libraries, ty_error *err)
{
    return libraries->cublaslt ? 0 : cublaslt_status(lib, lib->cublasLtCreate(&libraries->cublaslt), "opening", err);
}

void ty_cublaslt_close(cublasLtHandle_t handle)
{
    const ty_cublaslt *lib;
    if (handle && ty_cublaslt_get(&lib, NULL) == 0)
        lib->cublasLtDestroy(handle);
}

static unsigned make_layout(const ty_cublaslt *lib, const ty_cublaslt_matrix *x, int64_t batch,
                            cublasLtMatrixLayout_t *out)
{
    int32_t count = (int32_t)batch;
    unsigned status =
        lib->cublasLtMatrixLayoutCreate(out, x->type, (uint64_t)x->rows, (uint64_t)x->columns, x->leading);
    if (status == 0 && batch > 1)
        status =
            lib->cublasLtMatrixLayoutSetAttribute(*out, TY_CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
    if (status == 0 && batch > 1)
        status = lib->cublasLtMatrixLayoutSetAttribute(*out, TY_CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &x->stride,
                                                       sizeof x->stride);
    return status;
}

static unsigned make_desc(const ty_cublaslt *lib, const ty_cublaslt_product *p, cublasLtMatmulDesc_t *out)
{
    static const int32_t op[] = {[false] = TY_CUBLAS_OP_N, [true] = TY_CUBLAS_OP_T};
    unsigned status = lib->cublasLtMatmulDescCreate(out, p->compute, p->scale);
    if (status == 0)
        status = lib->cublasLtMatmulDescSetAttribute(*out, TY_CUBLASLT_MATMUL_DESC_TRANSA, &op[p->trans_a], sizeof *op);
    if (status == 0)
        status = lib->cublasLtMatmulDescSetAttribute(*out, TY_CUBLASLT_MATMUL_DESC_TRANSB, &op[p->trans_b], sizeof *op);
    return status;
}

static unsigned set_epilogue(const cublaslt_call *call, const ty_cublaslt_product *p)
{
    const void *bias = (const void *)(uintptr_t)call->bias_at, *aux = (const void *)(uintptr_t)call->aux_at;
    const uint32_t epilogue = p->epilogue;
    const struct {
        unsigned attribute;
        const void *value;
        size_t bytes;
        bool wanted;
    } set[] = {
        {TY_CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue, epilogue != TY_CUBLASLT_EPILOGUE_DEFAULT},
        {TY_CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias, p->biases},
        {TY_CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux, p->aux_leading > 0},
        {TY_CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &p->aux_leading, sizeof p->aux_leading, p->aux_leading > 0},
    };
    unsigned status = 0;
    for (size_t i = 0; i < sizeof set / sizeof *set && status == 0; i++)
        if (set[i].wanted)
            status =
                call->lib->cublasLtMatmulDescSetAttribute(call->desc, set[i].attribute, set[i].value, set[i].bytes);
    return status;
}

/* cuBLASLt may count on multiples of 256 unless it is told. */
static uint32_t alignment_of(CUdeviceptr at)
{
    uint32_t bytes = 256;
    while (at % bytes != 0)
        bytes /= 2;
    return bytes;
}

static unsigned make_preference(const cublaslt_call *call, cublasLtMatmulPreference_t *out)
{
    const ty_cublaslt *lib = call->lib;
    const struct {
        unsigned attribute;
        CUdeviceptr at;
    } aligned[] = {{TY_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, call->a_at},
                   {TY_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, call->b_at},
                   {TY_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, call->c_at},
                   {TY_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, call->d_at}};
    const uint64_t most = CUBLASLT_WORKSPACE_BYTES;
    const uint32_t scheme = TY_CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    unsigned status = lib->cublasLtMatmulPreferenceCreate(out);
    if (status == 0)
        status = lib->cublasLtMatmulPreferenceSetAttribute(*out, TY_CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                                                           sizeof most);
    /* parts of a sum that is split meet in float32, in a fixed order */
    if (status == 0)
        status = lib->cublasLtMatmulPreferenceSetAttribute(*out, TY_CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &scheme,
                                                           sizeof scheme);
    for (size_t i = 0; i < sizeof aligned / sizeof *aligned && status == 0; i++) {
        uint32_t bytes = alignment_of(aligned[i].at);
        status = lib->cublasLtMatmulPreferenceSetAttribute(*out, aligned[i].attribute, &bytes, sizeof bytes);
    }
    return status;
}

static void call_release(void *prepared)
{
    cublaslt_call *call = prepared;
    const cublasLtMatrixLayout_t layout[] = {call->a, call->b, call->d};
    for (size_t i = 0; i < sizeof layout / sizeof *layout; i++)
        if (layout[i])
            call->lib->cublasLtMatrixLayoutDestroy(layout[i]);
    if (call->desc)
        call->lib->cublasLtMatmulDescDestroy(call->desc);
}

static int call_run(const void *prepared, ty_error *err)
{
    const cublaslt_call *call = prepared;
    const ty_cuda_libraries *shared = call->shared;
    unsigned status = call->lib->cublasLtMatmul(
        shared->cublaslt, call->desc, &call->one, (void *)(uintptr_t)call->a_at, call->a, (void *)(uintptr_t)call->b_at,
        call->b, &call->beta, (void *)(uintptr_t)call->c_at, call->d, (void *)(uintptr_t)call->d_at, call->d,
        &call->algo, (void *)(uintptr_t)shared->workspace, CUBLASLT_WORKSPACE_BYTES, shared->gpu->stream);
    return product_status(call->lib, &call->product, status, "multiplying", err);
}

/* ---- which algorithm ---- */

enum { ALGORITHMS = 8 };

/* What cuBLASLt proposes, best first. */
typedef struct proposed {
    cublaslt_call *call;
    cublasLtMatmulAlgo_t algo[ALGORITHMS];
    int n;
} proposed;

static int propose(cublaslt_call *call, const ty_cublaslt_product *p, int wanted, proposed *out, ty_error *err)
{
    const ty_cublaslt *lib = call->lib;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t result[ALGORITHMS] = {0}; /* all bytes: algorithms are compared as such */
    unsigned status = make_preference(call, &preference);
    *out = (proposed){.call = call};
    if (status == 0)
        status = lib->cublasLtMatmulAlgoGetHeuristic(call->shared->cublaslt, call->desc, call->a, call->b, call->d,
                                                     call->d, preference, wanted, result, &out->n);
    if (preference)
        lib->cublasLtMatmulPreferenceDestroy(preference);
    for (int i = 0; i < out->n && status == 0; i++)
        out->algo[i] = result[i].algo;
    if (status == 0 && out->n == 0)
        status = TY_CUBLAS_STATUS_NOT_SUPPORTED;
    return product_status(lib, p, status, "choosing an algorithm for", err);
}

static int time_algorithm(void *ctx, int candidate, double *ms, ty_error *err)
{
    const proposed *p = ctx;
    const ty_cuda_library_call call = {.run = call_run, .prepared = p->call};
    p->call->algo = p->algo[candidate];
    return ty_cuda_library_time(p->call->shared->gpu, &call, ms, err);
}

/* All that decides how quick an algorithm is, alignment included. */
static void print_product(const cublaslt_call *call, const ty_cublaslt_product *p, ty_buf *out)
{
    ty_buf_addf(out, "cublaslt %zu ", call->lib->cublasLtGetVersion());
    ty_cublaslt_print(p, out);
    ty_buf_addf(out, " workspace %zu aligned %u %u %u %u", CUBLASLT_WORKSPACE_BYTES, alignment_of(call->a_at),
                alignment_of(call->b_at), alignment_of(call->c_at), alignment_of(call->d_at));
}

static int choose_algorithm(cublaslt_call *call, ty_cuda_libraries *libraries, const ty_cublaslt_product *p,
                            ty_error *err)
{
    proposed all;
    ty_buf what;
    if (propose(call, p, libraries->tuner.dirs ? ALGORITHMS : 1, &all, err) < 0)
        return -1;
    const ty_cuda_candidates candidates = {
        .n = all.n, .identity = all.algo, .bytes = sizeof *all.algo, .time = time_algorithm, .ctx = &all};
    ty_buf_init(&what, 4096);
    print_product(call, p, &what);
    call->algo = all.algo[what.failed ? 0 : ty_cuda_tune(&libraries->tuner, what.data, &candidates)];
    ty_buf_fini(&what);
    return 0;
}

static void call_scale(cublaslt_call *call, const ty_cublaslt_product *p)
{
    if (p->scale == TY_CUDA_R_64F)
        call->one.d = 1.0, call->beta.d = p->adds;
    else
        call->one.f = 1.0f, call->beta.f = p->adds;
}

/* Its first matrix is our second operand. at: operands, then results. */
static void call_point(cublaslt_call *call, const ty_graph *g, uint32_t node, const ty_cublaslt_product *p,
                       const CUdeviceptr *at)
{
    uint32_t n_in = ty_graph_node(g, node)->n_in;
    call->a_at = at[1];
    call->b_at = at[0];
    call->d_at = at[n_in];
    call->c_at = p->adds ? at[2] : call->d_at;
    if (ty_graph_op(g, node) != TY_OP_LINEAR)
        return;
    ty_linear_kind kind = (ty_linear_kind)ty_graph_attr(g, node)->index;
    if (p->biases)
        call->bias_at = part_is_bias(ty_linear_operand(kind)) ? at[2] : at[n_in + 1];
    if (p->aux_leading > 0)
        call->aux_at = part_is_kept(ty_linear_operand(kind)) ? at[2] : at[n_in + 1];
}

int ty_cublaslt_prepare(ty_cuda_libraries *libraries, const ty_graph *g, uint32_t node, const CUdeviceptr *at,
                        ty_cuda_library_call *out, ty_error *err)
{
    cublaslt_call *call = TY_NEW(libraries->arena, cublaslt_call);
    const ty_cublaslt_product *p = &call->product;
    call->shared = libraries;
    if (ty_cublaslt_get(&call->lib, err) < 0 || cublaslt_open(call->lib, libraries, err) < 0 ||
        ty_cublaslt_product_of(g, node, libraries->tf32, &call->product, err) < 0)
        return -1;
    call_scale(call, p);
    call_point(call, g, node, p, at);
    unsigned status = make_desc(call->lib, p, &call->desc);
    status = status ? status : set_epilogue(call, p);
    status = status ? status : make_layout(call->lib, &p->a, p->batch, &call->a);
    status = status ? status : make_layout(call->lib, &p->b, p->batch, &call->b);
    status = status ? status : make_layout(call->lib, &p->d, p->batch, &call->d);
    *out = (ty_cuda_library_call){call_run, call_release, call};
    if (product_status(call->lib, p, status, "describing", err) == 0 && choose_algorithm(call, libraries, p, err) == 0)
        return 0;
    ty_cuda_library_release(out);
    return -1;
}

int ty_cublaslt_describe(const ty_graph *g, uint32_t node, ty_buf *out, ty_error *err)
{
    ty_cublaslt_product p;
    if (ty_cublaslt_product_of(g, node, false, &p, err) < 0)
        return -1;
    ty_cublaslt_print(&p, out);
    return 0;
}
