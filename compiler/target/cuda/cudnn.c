/* cudnn.c - see cudnn.h. */
#include "compiler/target/cuda/cudnn.h"

#include "compiler/ops/op.h"
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

static void conv_windows(const ty_sliding *s, ty_cudnn_conv *c)
{
    for (int a = 0; a < c->n_axes; a++) {
        int from = TY_SLIDING_AXES - c->n_axes + a;
        c->step[a] = s->step[from];
        c->dil[a] = s->dil[from];
        c->lo[a] = s->lo[from];
        /* as much as the last window needs: cuDNN works out the output's extent from it, rounding down */
        int64_t hi =
            (s->out[from] - 1) * s->step[from] + (s->size[from] - 1) * s->dil[from] + 1 - s->in[from] - c->lo[a];
        c->hi[a] = hi > 0 ? hi : 0;
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
    *y = op == TY_OP_CONV ? result : op == TY_OP_CONV_DX ? a : b;
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
    if (ty_type_elems(x) * ty_type_elems(w) * ty_type_elems(y) == 0)
        return ty_error_set(err, TY_E_UNSUPPORTED, "cuDNN does not convolve nothing");
    ty_type x_first = ty_sliding_first(attr, x), y_first = ty_sliding_first(attr, y);
    tensor_of(out, x_first.dim[0], x_first.dim[1], s.in, last, &out->x);
    tensor_of(out, w_first.dim[0], w_first.dim[1], s.size, w_last, &out->w);
    tensor_of(out, y_first.dim[0], y_first.dim[1], s.out, last, &out->y);
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
}

int ty_cudnn_describe(const ty_graph *g, uint32_t node, ty_buf *out, ty_error *err)
{
    ty_cudnn_conv c;
    if (ty_cudnn_conv_of(g, node, &c, err) < 0)
        return -1;
    ty_cudnn_print(&c, out);
    return 0;
}

/* ---- descriptors ----
 *
 * A list of them goes into making a call and is given back with it. The first failure is kept and makes all that
 * follows do nothing, so that a description reads from top to bottom. */

enum { MAKER_MAX = 160, MAKER_MAX_ENGINES = 16, MAKER_MAX_NOTES = TY_CUDNN_NUMERICAL_NOTE_TYPE_COUNT };

typedef struct maker {
    const ty_cudnn *lib;
    cudnnBackendDescriptor_t all[MAKER_MAX];
    int n;
    unsigned status;
    const char *what;             /* failed */
    cudnnBackendDescriptor_t gpu; /* what is known of a GPU that is not here; NULL: the handle's is asked */
} maker;

static void maker_note(maker *m, unsigned status, const char *what)
{
    if (m->status == 0 && status != 0)
        m->status = status, m->what = what;
}

static cudnnBackendDescriptor_t maker_new(maker *m, unsigned kind)
{
    cudnnBackendDescriptor_t d = NULL;
    if (m->status == 0 && m->n < MAKER_MAX)
        maker_note(m, m->lib->cudnnBackendCreateDescriptor(kind, &d), "making a descriptor");
    if (d)
        m->all[m->n++] = d;
    return d;
}

static void maker_set(maker *m, cudnnBackendDescriptor_t d, unsigned attribute, unsigned type, int64_t n,
                      const void *value)
{
    if (m->status == 0)
        maker_note(m, m->lib->cudnnBackendSetAttribute(d, attribute, type, n, value), "describing a convolution");
}

static void maker_set_descriptor(maker *m, cudnnBackendDescriptor_t d, unsigned attribute,
                                 cudnnBackendDescriptor_t value)
{
    maker_set(m, d, attribute, TY_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void maker_finish(maker *m, cudnnBackendDescriptor_t d, const char *what)
{
    if (m->status == 0)
        maker_note(m, m->lib->cudnnBackendFinalize(d), what);
}

static void maker_release(maker *m)
{
    while (m->n > 0)
        m->lib->cudnnBackendDestroyDescriptor(m->all[--m->n]);
}

static int maker_error(const maker *m, ty_error *err)
{
    if (m->status == 0)
        return 0;
    return ty_error_set(err, TY_E_LIBRARY, "cuDNN: %s: %s", m->what, m->lib->cudnnGetErrorString(m->status));
}

/* ---- the operation ---- */

enum { ID_X = 1, ID_W, ID_Y };

/* cuDNN may count on multiples of 16. */
static int64_t alignment_of(CUdeviceptr at)
{
    int64_t bytes = 16;
    while (at % (CUdeviceptr)bytes != 0)
        bytes /= 2;
    return bytes;
}

static cudnnBackendDescriptor_t make_tensor(maker *m, const ty_cudnn_conv *c, const ty_cudnn_tensor *t, int64_t id,
                                            CUdeviceptr at)
{
    cudnnBackendDescriptor_t d = maker_new(m, TY_CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t alignment = alignment_of(at);
    maker_set(m, d, TY_CUDNN_ATTR_TENSOR_UNIQUE_ID, TY_CUDNN_TYPE_INT64, 1, &id);
    maker_set(m, d, TY_CUDNN_ATTR_TENSOR_DATA_TYPE, TY_CUDNN_TYPE_DATA_TYPE, 1, &c->type);
    maker_set(m, d, TY_CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, TY_CUDNN_TYPE_INT64, 1, &alignment);
    maker_set(m, d, TY_CUDNN_ATTR_TENSOR_DIMENSIONS, TY_CUDNN_TYPE_INT64, c->rank, t->dim);
    maker_set(m, d, TY_CUDNN_ATTR_TENSOR_STRIDES, TY_CUDNN_TYPE_INT64, c->rank, t->stride);
    maker_finish(m, d, "a tensor");
    return d;
}

static cudnnBackendDescriptor_t make_windows(maker *m, const ty_cudnn_conv *c)
{
    cudnnBackendDescriptor_t d = maker_new(m, TY_CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    const unsigned mode = TY_CUDNN_CROSS_CORRELATION;
    const int64_t n = c->n_axes;
    maker_set(m, d, TY_CUDNN_ATTR_CONVOLUTION_COMP_TYPE, TY_CUDNN_TYPE_DATA_TYPE, 1, &c->compute);
    maker_set(m, d, TY_CUDNN_ATTR_CONVOLUTION_CONV_MODE, TY_CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    maker_set(m, d, TY_CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, TY_CUDNN_TYPE_INT64, 1, &n);
    maker_set(m, d, TY_CUDNN_ATTR_CONVOLUTION_DILATIONS, TY_CUDNN_TYPE_INT64, n, c->dil);
    maker_set(m, d, TY_CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, TY_CUDNN_TYPE_INT64, n, c->step);
    maker_set(m, d, TY_CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, TY_CUDNN_TYPE_INT64, n, c->lo);
    maker_set(m, d, TY_CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, TY_CUDNN_TYPE_INT64, n, c->hi);
    maker_finish(m, d, "windows");
    return d;
}

/* Names of an operation's attributes. */
static const struct {
    ty_op op;
    unsigned kind, alpha, beta, windows, x, w, y;
} operation_rows[] = {
    {TY_OP_CONV, TY_CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     TY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, TY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
     TY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, TY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     TY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, TY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    {TY_OP_CONV_DX, TY_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
     TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    {TY_OP_CONV_DW, TY_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
     TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
};

/* Addresses of x, w and y. */
typedef struct conv_places {
    CUdeviceptr x, w, y;
} conv_places;

static cudnnBackendDescriptor_t make_operation(maker *m, const ty_cudnn_conv *c, const conv_places *at)
{
    static const float one = 1, zero = 0;
    static const double wide_one = 1, wide_zero = 0;
    bool wide = c->compute == TY_CUDNN_DATA_DOUBLE;
    unsigned type = wide ? TY_CUDNN_TYPE_DOUBLE : TY_CUDNN_TYPE_FLOAT;
    size_t row = 0;
    while (operation_rows[row].op != c->op)
        row++;
    cudnnBackendDescriptor_t x = make_tensor(m, c, &c->x, ID_X, at->x), w = make_tensor(m, c, &c->w, ID_W, at->w);
    cudnnBackendDescriptor_t y = make_tensor(m, c, &c->y, ID_Y, at->y), windows = make_windows(m, c);
    cudnnBackendDescriptor_t d = maker_new(m, operation_rows[row].kind);
    maker_set_descriptor(m, d, operation_rows[row].windows, windows);
    maker_set_descriptor(m, d, operation_rows[row].x, x);
    maker_set_descriptor(m, d, operation_rows[row].w, w);
    maker_set_descriptor(m, d, operation_rows[row].y, y);
    maker_set(m, d, operation_rows[row].alpha, type, 1, wide ? (const void *)&wide_one : &one);
    maker_set(m, d, operation_rows[row].beta, type, 1, wide ? (const void *)&wide_zero : &zero);
    maker_finish(m, d, "a convolution");
    return d;
}

static cudnnBackendDescriptor_t make_graph(maker *m, cudnnHandle_t handle, cudnnBackendDescriptor_t operation)
{
    cudnnBackendDescriptor_t d = maker_new(m, TY_CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (handle)
        maker_set(m, d, TY_CUDNN_ATTR_OPERATIONGRAPH_HANDLE, TY_CUDNN_TYPE_HANDLE, 1, &handle);
    maker_set_descriptor(m, d, TY_CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
    maker_finish(m, d, "a graph of one convolution");
    return d;
}

/* ---- the engine ---- */

/* Whether an engine gives the same bits in every run and the precision that was asked for. */
static bool engine_will_do(maker *m, cudnnBackendDescriptor_t config, const ty_cudnn_conv *c, bool tf32)
{
    unsigned note[MAKER_MAX_NOTES];
    int64_t n = 0;
    cudnnBackendDescriptor_t engine = maker_new(m, TY_CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    if (!engine ||
        m->lib->cudnnBackendGetAttribute(config, TY_CUDNN_ATTR_ENGINECFG_ENGINE, TY_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                         &n, &engine) != 0 ||
        m->lib->cudnnBackendGetAttribute(engine, TY_CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, TY_CUDNN_TYPE_NUMERICAL_NOTE,
                                         MAKER_MAX_NOTES, &n, note) != 0)
        return false;
    for (int64_t i = 0; i < n && i < MAKER_MAX_NOTES; i++)
        if (note[i] == TY_CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
            note[i] == TY_CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
            (note[i] == TY_CUDNN_NUMERICAL_NOTE_TENSOR_CORE && c->dtype == TY_F32 && !tf32))
            return false;
    return true;
}

/* A plan of the configuration, or NULL if cuDNN makes none here or it takes too much memory: that is no fault. */
static cudnnBackendDescriptor_t make_plan(maker *m, cudnnHandle_t handle, cudnnBackendDescriptor_t config,
                                          size_t most_bytes)
{
    int64_t bytes = 0, n = 0;
    cudnnBackendDescriptor_t d = maker_new(m, TY_CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (m->gpu)
        maker_set_descriptor(m, d, TY_CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, m->gpu);
    else
        maker_set(m, d, TY_CUDNN_ATTR_EXECUTION_PLAN_HANDLE, TY_CUDNN_TYPE_HANDLE, 1, &handle);
    maker_set_descriptor(m, d, TY_CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    if (m->status != 0 || m->lib->cudnnBackendFinalize(d) != 0 ||
        m->lib->cudnnBackendGetAttribute(d, TY_CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, TY_CUDNN_TYPE_INT64, 1, &n,
                                         &bytes) != 0)
        return NULL;
    return bytes <= (int64_t)most_bytes ? d : NULL;
}

/* The first that will do of those that cuDNN proposes in one mode. */
static cudnnBackendDescriptor_t choose_plan(maker *m, const ty_cuda_libraries *libraries, const ty_cudnn_conv *c,
                                            cudnnBackendDescriptor_t graph, unsigned mode)
{
    cudnnBackendDescriptor_t config[MAKER_MAX_ENGINES], plan = NULL;
    int64_t n = 0;
    cudnnBackendDescriptor_t d = maker_new(m, TY_CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    maker_set_descriptor(m, d, TY_CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    maker_set(m, d, TY_CUDNN_ATTR_ENGINEHEUR_MODE, TY_CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (m->gpu)
        maker_set_descriptor(m, d, TY_CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, m->gpu);
    if (m->status != 0 || m->lib->cudnnBackendFinalize(d) != 0)
        return NULL;
    for (int i = 0; i < MAKER_MAX_ENGINES; i++)
        config[i] = maker_new(m, TY_CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (m->status != 0 ||
        m->lib->cudnnBackendGetAttribute(d, TY_CUDNN_ATTR_ENGINEHEUR_RESULTS, TY_CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                         MAKER_MAX_ENGINES, &n, config) != 0)
        return NULL;
    for (int64_t i = 0; i < n && i < MAKER_MAX_ENGINES && !plan; i++)
        if (engine_will_do(m, config[i], c, libraries->tf32))
            plan = make_plan(m, libraries->cudnn, config[i], libraries->workspace_bytes);
    return plan;
}

/* cuDNN's fallbacks are slow, and asked for last. */
static cudnnBackendDescriptor_t find_plan(maker *m, const ty_cuda_libraries *libraries, const ty_cudnn_conv *c,
                                          cudnnBackendDescriptor_t graph)
{
    cudnnBackendDescriptor_t plan = choose_plan(m, libraries, c, graph, TY_CUDNN_HEUR_MODE_A);
    return plan ? plan : choose_plan(m, libraries, c, graph, TY_CUDNN_HEUR_MODE_FALLBACK);
}

static int no_plan(const ty_cuda_libraries *libraries, ty_error *err)
{
    return ty_error_set(err, TY_E_LIBRARY, "cuDNN: no engine for a convolution within %zu MB of workspace",
                        libraries->workspace_bytes / 1000000);
}

/* ---- a GPU that is not here ---- */

static void make_gpu(maker *m, const char *properties)
{
    cudnnBackendDescriptor_t d = maker_new(m, TY_CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    maker_set(m, d, TY_CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, TY_CUDNN_TYPE_CHAR, (int64_t)strlen(properties),
              properties);
    maker_finish(m, d, "the properties of a GPU");
    m->gpu = d;
}

int ty_cudnn_try(const ty_graph *g, uint32_t node, const char *properties, const ty_cuda_libraries *libraries,
                 int64_t *workspace_bytes, ty_error *err)
{
    static const conv_places aligned = {4096, 8192, 12288};
    maker m = {.n = 0};
    ty_cudnn_conv c;
    int64_t n = 0;
    if (ty_cudnn_get(&m.lib, err) < 0 || ty_cudnn_conv_of(g, node, &c, err) < 0)
        return -1;
    make_gpu(&m, properties);
    cudnnBackendDescriptor_t graph = make_graph(&m, NULL, make_operation(&m, &c, &aligned));
    cudnnBackendDescriptor_t plan = find_plan(&m, libraries, &c, graph);
    int rc = maker_error(&m, err);
    if (rc == 0)
        rc = plan ? 0 : no_plan(libraries, err);
    if (rc == 0)
        m.lib->cudnnBackendGetAttribute(plan, TY_CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, TY_CUDNN_TYPE_INT64, 1, &n,
                                        workspace_bytes);
    maker_release(&m);
    return rc;
}

/* ---- the call ---- */

typedef struct cudnn_call {
    maker made;
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t plan, pack;
} cudnn_call;

static void call_release(void *prepared)
{
    cudnn_call *call = prepared;
    maker_release(&call->made);
}

static int call_run(const void *prepared, ty_error *err)
{
    const cudnn_call *call = prepared;
    const ty_cudnn *lib = call->made.lib;
    unsigned status = lib->cudnnBackendExecute(call->handle, call->plan, call->pack);
    if (status == 0)
        return 0;
    return ty_error_set(err, TY_E_LIBRARY, "cuDNN: convolving: %s", lib->cudnnGetErrorString(status));
}

static cudnnBackendDescriptor_t make_pack(maker *m, const conv_places *at, CUdeviceptr workspace)
{
    const int64_t id[] = {ID_X, ID_W, ID_Y};
    void *const address[] = {(void *)(uintptr_t)at->x, (void *)(uintptr_t)at->w, (void *)(uintptr_t)at->y};
    void *const room = (void *)(uintptr_t)workspace;
    cudnnBackendDescriptor_t d = maker_new(m, TY_CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    maker_set(m, d, TY_CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, TY_CUDNN_TYPE_INT64, 3, id);
    maker_set(m, d, TY_CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, TY_CUDNN_TYPE_VOID_PTR, 3, address);
    maker_set(m, d, TY_CUDNN_ATTR_VARIANT_PACK_WORKSPACE, TY_CUDNN_TYPE_VOID_PTR, 1, &room);
    maker_finish(m, d, "the addresses of a convolution");
    return d;
}

/* at: the two operands, then the result. */
static conv_places places_of(ty_op op, const CUdeviceptr *at)
{
    if (op == TY_OP_CONV)
        return (conv_places){at[0], at[1], at[2]};
    return op == TY_OP_CONV_DX ? (conv_places){at[2], at[1], at[0]} : (conv_places){at[0], at[2], at[1]};
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
    maker *m = &call->made;
    if (ty_cudnn_get(&m->lib, err) < 0 || cudnn_open(m->lib, libraries, err) < 0 ||
        ty_cudnn_conv_of(g, node, &c, err) < 0)
        return -1;
    conv_places places = places_of(c.op, at);
    call->handle = libraries->cudnn;
    *out = (ty_cuda_library_call){call_run, call_release, call};
    cudnnBackendDescriptor_t graph = make_graph(m, libraries->cudnn, make_operation(m, &c, &places));
    call->plan = find_plan(m, libraries, &c, graph);
    call->pack = make_pack(m, &places, libraries->workspace);
    int rc = maker_error(m, err);
    if (rc == 0 && !call->plan)
        rc = no_plan(libraries, err);
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
