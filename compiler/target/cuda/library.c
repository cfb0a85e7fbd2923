/* library.c - see library.h. The first row of an op that takes the node computes it. */
#include "compiler/target/cuda/library.h"

#include "compiler/ir/text.h"
#include "compiler/ops/op.h"
#include "compiler/target/cuda/cublaslt.h"
#include "compiler/target/cuda/cudnn.h"

typedef struct library_row {
    ty_op op;
    const char *library;
    int (*describe)(const ty_graph *g, uint32_t node, ty_buf *out, ty_error *err); /* fails if it does not take it */
    int (*prepare)(ty_cuda_libraries *libraries, const ty_graph *g, uint32_t node, const CUdeviceptr *at,
                   ty_cuda_library_call *out, ty_error *err);
    size_t (*workspace)(const ty_graph *g, uint32_t node);
} library_row;

static const library_row library_rows[] = {
    {TY_OP_DOT, "cublaslt", ty_cublaslt_describe, ty_cublaslt_prepare, ty_cublaslt_workspace},
    {TY_OP_LINEAR, "cublaslt", ty_cublaslt_describe, ty_cublaslt_prepare, ty_cublaslt_workspace},
    {TY_OP_CONV, "cudnn", ty_cudnn_describe, ty_cudnn_prepare, ty_cudnn_workspace},
    {TY_OP_CONV_BIAS, "cudnn", ty_cudnn_describe, ty_cudnn_prepare, ty_cudnn_workspace},
    {TY_OP_CONV_DX, "cudnn", ty_cudnn_describe, ty_cudnn_prepare, ty_cudnn_workspace},
    {TY_OP_CONV_DW, "cudnn", ty_cudnn_describe, ty_cudnn_prepare, ty_cudnn_workspace},
};

/* The row that computes a node, what it is told appended to `out`; NULL if there is none. */
static const library_row *library_find(const ty_graph *g, uint32_t node, ty_buf *out)
{
    for (size_t i = 0; i < sizeof library_rows / sizeof *library_rows; i++) {
        size_t before = out->len;
        if (library_rows[i].op != ty_graph_op(g, node))
            continue;
        ty_buf_addf(out, " by %s ", library_rows[i].library);
        if (library_rows[i].describe(g, node, out, NULL) == 0)
            return &library_rows[i];
        out->len = before;
    }
    return NULL;
}

static const library_row *library_of(const ty_graph *g, uint32_t node)
{
    ty_buf text;
    ty_buf_init(&text, 4096);
    const library_row *row = library_find(g, node, &text);
    ty_buf_fini(&text);
    return row;
}

bool ty_cuda_library_has(const ty_graph *g, uint32_t node)
{
    return library_of(g, node) != NULL;
}

size_t ty_cuda_library_workspace(const ty_graph *g, uint32_t node)
{
    const library_row *row = library_of(g, node);
    return row ? row->workspace(g, node) : 0;
}

int ty_cuda_library_prepare(ty_cuda_libraries *libraries, const ty_graph *g, uint32_t node, const CUdeviceptr *at,
                            ty_cuda_library_call *out, ty_error *err)
{
    const library_row *row = library_of(g, node);
    if (!row)
        return ty_error_set(err, TY_E_UNSUPPORTED, "nothing computes %s on a GPU",
                            ty_op_row_of(ty_graph_op(g, node))->text);
    return row->prepare(libraries, g, node, at, out, err);
}

void ty_cuda_library_release(ty_cuda_library_call *call)
{
    if (call->prepared)
        call->release(call->prepared);
    *call = (ty_cuda_library_call){.run = NULL};
}

/* ---- timing ---- */

enum { TIMED_RUNS = 3 };

static int library_run_some(const ty_cuda_library_call *call, int n, ty_error *err)
{
    int rc = 0;
    for (int i = 0; i < n && rc == 0; i++)
        rc = call->run(call->prepared, err);
    return rc;
}

int ty_cuda_library_time(const ty_gpu *gpu, const ty_cuda_library_call *call, double *ms, ty_error *err)
{
    CUevent start = NULL, end = NULL;
    float all = 0;
    unsigned status = gpu->cu->cuEventCreate(&start, 0);
    status = status ? status : gpu->cu->cuEventCreate(&end, 0);
    int rc = ty_gpu_status(gpu, status, "timing a call", err);
    rc = rc < 0 ? rc : library_run_some(call, 1, err);
    status = rc < 0 ? 0 : gpu->cu->cuEventRecord(start, gpu->stream);
    rc = rc < 0 ? rc : library_run_some(call, TIMED_RUNS, err);
    status = rc < 0 || status ? status : gpu->cu->cuEventRecord(end, gpu->stream);
    status = rc < 0 || status ? status : gpu->cu->cuEventSynchronize(end);
    status = rc < 0 || status ? status : gpu->cu->cuEventElapsedTime(&all, start, end);
    if (start)
        gpu->cu->cuEventDestroy_v2(start);
    if (end)
        gpu->cu->cuEventDestroy_v2(end);
    *ms = all / TIMED_RUNS;
    return rc < 0 ? rc : ty_gpu_status(gpu, status, "timing a call", err);
}

void ty_cuda_libraries_close(ty_cuda_libraries *libraries)
{
    ty_cublaslt_close(libraries->cublaslt);
    ty_cudnn_close(libraries->cudnn);
    libraries->cublaslt = NULL;
    libraries->cudnn = NULL;
}

void ty_cuda_library_print(const ty_graph *g, uint32_t node, ty_buf *out)
{
    char text[160];
    const ty_node *n = ty_graph_node(g, node);
    ty_buf_adds(out, ty_op_row_of((ty_op)n->op)->text);
    if (library_find(g, node, out))
        return;
    ty_buf_adds(out, " by none yet");
    ty_graph_print_attr(g, node, out);
    for (uint32_t i = 0; i < n->n_in; i++)
        ty_buf_addf(out, " %s", ty_type_text(ty_graph_type(g, ty_graph_in(g, node, (int)i)), text, sizeof text));
}
