/* cudnn.c - see cudnn.h. */
#include "compiler/target/cuda/cudnn.h"

#include "compiler/ops/op.h"
#include "compiler/target/cuda/cudnn_engine.h"
#include "compiler/target/cuda/libraries.h"

#include <inttypes.h>
#include <string.h>

/* ---- what it is told ---- */

static const struct {
    ty_dtype dtype;
    unsigned type, compute;
} type_rows[] = {
    {TY_F32, TY_CUDNN_DATA_FLOAT, TY_CUDNN_DATA_FLOAT},
    {TY_BF16, TY_CUDNN_DATA_BFLOAT16, TY_CUDNN_DATA_FLOAT},
    {TY_F16, TY_CUDNN_DATA_HALF, TY_CUDNN_DATA_FLOAT},
    {TY_F64, TY_CUDNN_DATA_DOUBLE, TY_CUDNN_DATA_DOUBLE},
};

static int conv_types(ty_cudnn_conv *c, ty_error *err)
{
    for (size_t i = 0; i < sizeof type_rows / sizeof *type_rows; i++)
        if (type_rows[i].dtype == c->dtype) {
            c->type = type_rows[i].type;
            c->compute = type_rows[i].compute;
            return 0;
        }
    return ty_error_set(err, TY_E_UNSUPPORTED, "cuDNN does not convolve %s", ty_dtype_text(c->dtype));
}

/* Strides of what lies dense, channels before or after the spatial axes. */
static void tensor_strides(ty_cudnn_tensor *t, int rank, bool channels_last)
{
    int64_t stride = channels_last ? t->dim[1] : 1;
    for (int a = rank - 1; a >= 2; a--) {
        t->stride[a] = stride;
        stride *= t->dim[a];
    }
    t->stride[1] = channels_last ? 1 : stride;
    t->stride[0] = channels_last ? stride : stride * t->dim[1];
}

/* images, channels, then the last n_axes of `spatial`. */
static void tensor_of(const ty_cudnn_conv *c, int64_t images, int64_t channels, const int64_t *spatial,
                      bool channels_last, ty_cudnn_tensor *out)
{
    out->dim[0] = images;
    out->dim[1] = channels;
    for (int a = 0; a < c->n_axes; a++)
        out->dim[2 + a] = spatial[TY_SLIDING_AXES - c->n_axes + a];
    tensor_strides(out, c->rank, channels_last);
}

/* Zeros behind x along one axis: as many as before it where that makes no window more, because half of cuDNN's engines
 * want both sides to be the same; else as many as the last window needs. (cuDNN works out the output's extent from
 * them, rounding down.) */
static int64_t zeros_behind(const ty_sliding *s, int axis)
{
    int64_t window = (s->size[axis] - 1) * s->dil[axis] + 1, lo = s->lo[axis];
    int64_t needed = (s->out[axis] - 1) * s->step[axis] + window - s->in[axis] - lo;
    if (lo >= needed && lo < needed + s->step[axis])
        return lo;
    return needed > 0 ? needed : 0;
}

static void conv_windows(const ty_sliding *s, ty_cudnn_conv *c)
{
    for (int a = 0; a < c->n_axes; a++) {
        int from = TY_SLIDING_AXES - c->n_axes + a;
        c->step[a] = s->step[from];
        c->dil[a] = s->dil[from];
        c->lo[a] = s->lo[from];
        c->hi[a] = zeros_behind(s, from);
    }
}

/* Types of x, w and y, whichever of them the op computes. */
static void conv_operands(const ty_graph *g, uint32_t node, const ty_type **x, const ty_type **w, const ty_type **y)
{
    const ty_type *a = ty_graph_type(g, ty_graph_in(g, node, 0)), *b = ty_graph_type(g, ty_graph_in(g, node, 1));
    const ty_type *result = ty_graph_type(g, ty_val_make(node, 0));
    ty_op op = ty_graph_op(g, node);
    *x = op == TY_OP_CONV_DX ? result : a;
    *w = op == TY_OP_CONV_DW ? result : b;
    *y = op == TY_OP_CONV || op == TY_OP_CONV_BIAS ? result : op == TY_OP_CONV_DX ? a : b;
}

/* What conv_bias does behind the convolution; a bias is one image of one position. */
static void conv_follow(const ty_graph *g, uint32_t node, int64_t channels, ty_cudnn_conv *c)
{
    static const int64_t one[TY_SLIDING_AXES] = {1, 1, 1};
    c->biases = c->op == TY_OP_CONV_BIAS;
    c->adds = c->biases && ty_graph_node(g, node)->n_in > 3;
    c->relu = c->biases && ty_graph_attr(g, node)->index;
    tensor_of(c, 1, channels, one, true, &c->bias);
}

int ty_cudnn_conv_of(const ty_graph *g, uint32_t node, ty_cudnn_conv *out, ty_error *err)
{
    const ty_attr *attr = ty_graph_attr(g, node);
    const ty_type *x, *w, *y;
    ty_sliding s;
    bool last = attr->flags & TY_SLIDING_LAST, w_last = attr->flags & TY_SLIDING_WEIGHTS_LAST;
    conv_operands(g, node, &x, &w, &y);
    const ty_attr of_weights = ty_sliding_of_weights(attr);
    const ty_type w_first = ty_sliding_first(&of_weights, w);
    int n_axes = attr->n < 3 ? 2 : 3;
    *out =
        (ty_cudnn_conv){.op = ty_graph_op(g, node), .n_axes = n_axes, .rank = 2 + n_axes, .dtype = (ty_dtype)x->dtype};
    if (conv_types(out, err) < 0 || ty_sliding_make(&s, attr, x, w_first.dim + 2, err) < 0)
        return -1;
    if (w->dtype != x->dtype || y->dtype != x->dtype)
        return ty_error_set(err, TY_E_UNSUPPORTED, "cuDNN does not convolve %s into %s", ty_dtype_text(out->dtype),
                            ty_dtype_text((ty_dtype)(w->dtype != x->dtype ? w->dtype : y->dtype)));
    if (ty_type_elems(x) == 0 || ty_type_elems(w) == 0 || ty_type_elems(y) == 0)
        return ty_error_set(err, TY_E_UNSUPPORTED, "cuDNN does not convolve nothing");
    ty_type x_first = ty_sliding_first(attr, x), y_first = ty_sliding_first(attr, y);
    tensor_of(out, x_first.dim[0], x_first.dim[1], s.in, last, &out->x);
    tensor_of(out, w_first.dim[0], w_first.dim[1], s.size, w_last, &out->w);
    tensor_of(out, y_first.dim[0], y_first.dim[1], s.out, last, &out->y);
    conv_follow(g, node, y_first.dim[1], out);
    conv_windows(&s, out);
    return 0;
}

/* ---- text ---- */

static void print_list(const char *name, const int64_t *v, int n, ty_buf *out)
{
    ty_buf_addf(out, " %s[", name);
    for (int i = 0; i < n; i++)
        ty_buf_addf(out, "%s%" PRId64, i ? "," : "", v[i]);
    ty_buf_adds(out, "]");
}

void ty_cudnn_print(const ty_cudnn_conv *c, ty_buf *out)
{
    const struct {
        const char *name;
        const ty_cudnn_tensor *t;
    } tensor[] = {{"x", &c->x}, {"w", &c->w}, {"y", &c->y}};
    ty_buf_addf(out, "%s in %s", ty_dtype_text(c->dtype), c->compute == TY_CUDNN_DATA_DOUBLE ? "f64" : "f32");
    for (int i = 0; i < 3; i++) {
        print_list(tensor[i].name, tensor[i].t->dim, c->rank, out);
        print_list("by", tensor[i].t->stride, c->rank, out);
    }
    print_list("step", c->step, c->n_axes, out);
    print_list("dil", c->dil, c->n_axes, out);
    print_list("lo", c->lo, c->n_axes, out);
    print_list("hi", c->hi, c->n_axes, out);
    if (c->biases)
        ty_buf_addf(out, " then %sbias%s", c->adds ? "z+" : "", c->relu ? "+relu" : "");
}

int ty_cudnn_describe(const ty_graph *g, uint32_t node, ty_buf *out, ty_error *err)
{
    ty_cudnn_conv c;
    if (ty_cudnn_conv_of(g, node, &c, err) < 0)
        return -1;
    ty_cudnn_print(&c, out);
    return 0;
}

/* ---- workspace ---- */

#define WORKSPACE_LEAST ((size_t)32 << 20)
#define WORKSPACE_MOST  ((size_t)1 << 30)

static size_t tensor_bytes(const ty_cudnn_conv *c, const ty_cudnn_tensor *t)
{
    size_t bytes = ty_dtype_bytes(c->dtype);
    for (int a = 0; a < c->rank; a++)
        bytes *= (size_t)t->dim[a];
    return bytes;
}

size_t ty_cudnn_conv_workspace(const ty_cudnn_conv *c)
{
    size_t tensors = tensor_bytes(c, &c->x) + tensor_bytes(c, &c->w) + tensor_bytes(c, &c->y);
    size_t bytes = tensors + tensors / 4;
    bytes = bytes > WORKSPACE_LEAST ? bytes : WORKSPACE_LEAST;
    return bytes < WORKSPACE_MOST ? bytes : WORKSPACE_MOST;
}

size_t ty_cudnn_workspace(const ty_graph *g, uint32_t node)
{
    ty_cudnn_conv c;
    return ty_cudnn_conv_of(g, node, &c, NULL) == 0 ? ty_cudnn_conv_workspace(&c) : 0;
}

/* ---- a GPU that is not here ---- */

static void make_gpu(ty_cudnn_maker *m, const char *properties)
{
    cudnnBackendDescriptor_t d = ty_cudnn_new(m, TY_CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, TY_CUDNN_TYPE_CHAR, (int64_t)strlen(properties),
                 properties);
    ty_cudnn_finish(m, d, "the properties of a GPU");
    m->gpu = d;
}

int ty_cudnn_try(const ty_graph *g, uint32_t node, const char *properties, bool tf32, ty_cudnn_planned *out,
                 ty_error *err)
{
    static const ty_cudnn_places aligned = {4096, 8192, 12288, 16384, 20480};
    ty_cuda_libraries libraries = {.tf32 = tf32};
    ty_cudnn_maker m = {.n = 0};
    ty_cudnn_run run = {.plan = NULL};
    ty_cudnn_conv c;
    if (ty_cudnn_get(&m.lib, err) < 0 || ty_cudnn_conv_of(g, node, &c, err) < 0)
        return -1;
    make_gpu(&m, properties);
    int rc = ty_cudnn_choose(&m, &libraries, &c, &aligned, ty_cudnn_graph(&m, NULL, &c, &aligned), &run, err);
    *out = run.of;
    ty_cudnn_release(&m);
    return rc;
}

/* ---- the call ---- */

typedef struct cudnn_call {
    ty_cudnn_run run; /* first: a call is one */
    ty_cudnn_maker made;
} cudnn_call;

static void call_release(void *prepared)
{
    cudnn_call *call = prepared;
    ty_cudnn_release(&call->made);
}

/* at: the operands, then the result. */
static ty_cudnn_places places_of(const ty_cudnn_conv *c, const CUdeviceptr *at)
{
    switch (c->op) {
    case TY_OP_CONV_BIAS:
        return (ty_cudnn_places){.x = at[0], .w = at[1], .bias = at[2], .z = at[3], .y = at[c->adds ? 4 : 3]};
    case TY_OP_CONV_DX:
        return (ty_cudnn_places){.x = at[2], .w = at[1], .y = at[0]};
    case TY_OP_CONV_DW:
        return (ty_cudnn_places){.x = at[0], .w = at[2], .y = at[1]};
    default:
        return (ty_cudnn_places){.x = at[0], .w = at[1], .y = at[2]};
    }
}

static int cudnn_open(const ty_cudnn *lib, ty_cuda_libraries *libraries, ty_error *err)
{
    if (libraries->cudnn)
        return 0;
    unsigned status = lib->cudnnCreate(&libraries->cudnn);
    status = status ? status : lib->cudnnSetStream(libraries->cudnn, libraries->gpu->stream);
    if (status == 0)
        return 0;
    return ty_error_set(err, TY_E_LIBRARY, "cuDNN: opening: %s", lib->cudnnGetErrorString(status));
}

int ty_cudnn_prepare(ty_cuda_libraries *libraries, const ty_graph *g, uint32_t node, const CUdeviceptr *at,
                     ty_cuda_library_call *out, ty_error *err)
{
    ty_cudnn_conv c;
    cudnn_call *call = TY_NEW(libraries->arena, cudnn_call);
    ty_cudnn_maker *m = &call->made;
    if (ty_cudnn_get(&m->lib, err) < 0 || cudnn_open(m->lib, libraries, err) < 0 ||
        ty_cudnn_conv_of(g, node, &c, err) < 0)
        return -1;
    ty_cudnn_places places = places_of(&c, at);
    call->run = (ty_cudnn_run){.lib = m->lib,
                               .handle = libraries->cudnn,
                               .pack = ty_cudnn_pack(m, &c, &places, libraries->workspace),
                               .follows = c.biases};
    *out = (ty_cuda_library_call){ty_cudnn_execute, call_release, call};
    cudnnBackendDescriptor_t graph = ty_cudnn_graph(m, libraries->cudnn, &c, &places);
    int rc = ty_cudnn_choose(m, libraries, &c, &places, graph, &call->run, err);
    if (rc < 0)
        ty_cuda_library_release(out);
    return rc;
}

void ty_cudnn_close(cudnnHandle_t handle)
{
    const ty_cudnn *lib;
    if (handle && ty_cudnn_get(&lib, NULL) == 0)
        lib->cudnnDestroy(handle);
}
