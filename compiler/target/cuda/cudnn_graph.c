/* cudnn_graph.c - see cudnn_graph.h. */
#include "compiler/target/cuda/cudnn_graph.h"

#include <string.h>

/* ---- descriptors ---- */

static void maker_note(ty_cudnn_maker *m, unsigned status, const char *what)
{
    if (m->status == 0 && status != 0)
        m->status = status, m->what = what;
}

cudnnBackendDescriptor_t ty_cudnn_new(ty_cudnn_maker *m, unsigned kind)
{
    cudnnBackendDescriptor_t d = NULL;
    if (m->status == 0 && m->n < TY_CUDNN_MOST)
        maker_note(m, m->lib->cudnnBackendCreateDescriptor(kind, &d), "making a descriptor");
    if (d)
        m->all[m->n++] = d;
    return d;
}

void ty_cudnn_set(ty_cudnn_maker *m, cudnnBackendDescriptor_t d, unsigned attribute, unsigned type, int64_t n,
                  const void *value)
{
    if (m->status == 0)
        maker_note(m, m->lib->cudnnBackendSetAttribute(d, attribute, type, n, value), "describing a convolution");
}

void ty_cudnn_link(ty_cudnn_maker *m, cudnnBackendDescriptor_t d, unsigned attribute, cudnnBackendDescriptor_t value)
{
    ty_cudnn_set(m, d, attribute, TY_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void ty_cudnn_finish(ty_cudnn_maker *m, cudnnBackendDescriptor_t d, const char *what)
{
    if (m->status == 0)
        maker_note(m, m->lib->cudnnBackendFinalize(d), what);
}

void ty_cudnn_drop(ty_cudnn_maker *m, cudnnBackendDescriptor_t d)
{
    for (int i = m->n - 1; d && i >= 0; i--)
        if (m->all[i] == d) {
            m->lib->cudnnBackendDestroyDescriptor(d);
            memmove(&m->all[i], &m->all[i + 1], (size_t)(--m->n - i) * sizeof *m->all);
            return;
        }
}

void ty_cudnn_release(ty_cudnn_maker *m)
{
    while (m->n > 0)
        m->lib->cudnnBackendDestroyDescriptor(m->all[--m->n]);
}

int ty_cudnn_error(const ty_cudnn_maker *m, ty_error *err)
{
    if (m->status == 0)
        return 0;
    return ty_error_set(err, TY_E_LIBRARY, "cuDNN: %s: %s", m->what, m->lib->cudnnGetErrorString(m->status));
}

/* ---- the operations ---- */

enum { ID_X = 1, ID_W, ID_Y, ID_BIAS, ID_Z, ID_BETWEEN };
enum { MOST_OPERATIONS = 4 };

int64_t ty_cudnn_alignment(CUdeviceptr at)
{
    int64_t bytes = 16;
    while (at % (CUdeviceptr)bytes != 0)
        bytes /= 2;
    return bytes;
}

static cudnnBackendDescriptor_t make_tensor(ty_cudnn_maker *m, const ty_cudnn_conv *c, const ty_cudnn_tensor *t,
                                            int64_t id, CUdeviceptr at)
{
    cudnnBackendDescriptor_t d = ty_cudnn_new(m, TY_CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t alignment = ty_cudnn_alignment(at);
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_TENSOR_UNIQUE_ID, TY_CUDNN_TYPE_INT64, 1, &id);
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_TENSOR_DATA_TYPE, TY_CUDNN_TYPE_DATA_TYPE, 1, &c->type);
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, TY_CUDNN_TYPE_INT64, 1, &alignment);
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_TENSOR_DIMENSIONS, TY_CUDNN_TYPE_INT64, c->rank, t->dim);
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_TENSOR_STRIDES, TY_CUDNN_TYPE_INT64, c->rank, t->stride);
    ty_cudnn_finish(m, d, "a tensor");
    return d;
}

/* What one operation hands to the next, in the type of sums; it is nowhere in memory. */
static cudnnBackendDescriptor_t make_between(ty_cudnn_maker *m, const ty_cudnn_conv *c, int64_t id)
{
    cudnnBackendDescriptor_t d = ty_cudnn_new(m, TY_CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    const int64_t alignment = 16;
    const bool is_virtual = true;
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_TENSOR_UNIQUE_ID, TY_CUDNN_TYPE_INT64, 1, &id);
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_TENSOR_DATA_TYPE, TY_CUDNN_TYPE_DATA_TYPE, 1, &c->compute);
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, TY_CUDNN_TYPE_INT64, 1, &alignment);
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_TENSOR_DIMENSIONS, TY_CUDNN_TYPE_INT64, c->rank, c->y.dim);
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_TENSOR_STRIDES, TY_CUDNN_TYPE_INT64, c->rank, c->y.stride);
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_TENSOR_IS_VIRTUAL, TY_CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    ty_cudnn_finish(m, d, "a tensor between operations");
    return d;
}

static cudnnBackendDescriptor_t make_windows(ty_cudnn_maker *m, const ty_cudnn_conv *c)
{
    cudnnBackendDescriptor_t d = ty_cudnn_new(m, TY_CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    const unsigned mode = TY_CUDNN_CROSS_CORRELATION;
    const int64_t n = c->n_axes;
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_CONVOLUTION_COMP_TYPE, TY_CUDNN_TYPE_DATA_TYPE, 1, &c->compute);
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_CONVOLUTION_CONV_MODE, TY_CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, TY_CUDNN_TYPE_INT64, 1, &n);
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_CONVOLUTION_DILATIONS, TY_CUDNN_TYPE_INT64, n, c->dil);
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, TY_CUDNN_TYPE_INT64, n, c->step);
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, TY_CUDNN_TYPE_INT64, n, c->lo);
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, TY_CUDNN_TYPE_INT64, n, c->hi);
    ty_cudnn_finish(m, d, "windows");
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

/* y: what is computed, or what a convolution hands on. */
static cudnnBackendDescriptor_t make_conv(ty_cudnn_maker *m, const ty_cudnn_conv *c, const ty_cudnn_places *at,
                                          cudnnBackendDescriptor_t y)
{
    ty_op op = c->biases ? TY_OP_CONV : c->op;
    static const float one = 1, zero = 0;
    static const double wide_one = 1, wide_zero = 0;
    bool wide = c->compute == TY_CUDNN_DATA_DOUBLE;
    unsigned type = wide ? TY_CUDNN_TYPE_DOUBLE : TY_CUDNN_TYPE_FLOAT;
    size_t row = 0;
    while (operation_rows[row].op != op)
        row++;
    cudnnBackendDescriptor_t x = make_tensor(m, c, &c->x, ID_X, at->x), w = make_tensor(m, c, &c->w, ID_W, at->w);
    cudnnBackendDescriptor_t windows = make_windows(m, c), d = ty_cudnn_new(m, operation_rows[row].kind);
    ty_cudnn_link(m, d, operation_rows[row].windows, windows);
    ty_cudnn_link(m, d, operation_rows[row].x, x);
    ty_cudnn_link(m, d, operation_rows[row].w, w);
    ty_cudnn_link(m, d, operation_rows[row].y, y);
    ty_cudnn_set(m, d, operation_rows[row].alpha, type, 1, wide ? (const void *)&wide_one : &one);
    ty_cudnn_set(m, d, operation_rows[row].beta, type, 1, wide ? (const void *)&wide_zero : &zero);
    ty_cudnn_finish(m, d, "a convolution");
    return d;
}

/* y = mode(x, b), number by number; b: NULL if the mode has one operand. A ReLU leaves a NaN one, as ours does: else
 * what has gone wrong would be 0 from there on. */
static cudnnBackendDescriptor_t make_pointwise(ty_cudnn_maker *m, const ty_cudnn_conv *c, unsigned mode,
                                               cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b,
                                               cudnnBackendDescriptor_t y)
{
    static const unsigned propagate = TY_CUDNN_PROPAGATE_NAN;
    cudnnBackendDescriptor_t how = ty_cudnn_new(m, TY_CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    ty_cudnn_set(m, how, TY_CUDNN_ATTR_POINTWISE_MODE, TY_CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    ty_cudnn_set(m, how, TY_CUDNN_ATTR_POINTWISE_MATH_PREC, TY_CUDNN_TYPE_DATA_TYPE, 1, &c->compute);
    if (mode == TY_CUDNN_POINTWISE_RELU_FWD)
        ty_cudnn_set(m, how, TY_CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, TY_CUDNN_TYPE_NAN_PROPAGATION, 1, &propagate);
    ty_cudnn_finish(m, how, "what follows a convolution");
    cudnnBackendDescriptor_t d = ty_cudnn_new(m, TY_CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    ty_cudnn_link(m, d, TY_CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    ty_cudnn_link(m, d, TY_CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b)
        ty_cudnn_link(m, d, TY_CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    ty_cudnn_link(m, d, TY_CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    ty_cudnn_finish(m, d, "what follows a convolution");
    return d;
}

/* The convolution, + z, + bias, the ReLU: cuDNN has engines for them in this order alone. */
static int make_operations(ty_cudnn_maker *m, const ty_cudnn_conv *c, const ty_cudnn_places *at,
                           cudnnBackendDescriptor_t *out)
{
    const struct {
        bool wanted;
        unsigned mode;
        const ty_cudnn_tensor *b; /* NULL: one operand */
        int64_t id;
        CUdeviceptr at;
    } then[] = {{c->adds, TY_CUDNN_POINTWISE_ADD, &c->y, ID_Z, at->z},
                {c->biases, TY_CUDNN_POINTWISE_ADD, &c->bias, ID_BIAS, at->bias},
                {c->relu, TY_CUDNN_POINTWISE_RELU_FWD, NULL, 0, 0}};
    int n = 1, left = c->adds + c->biases + c->relu;
    cudnnBackendDescriptor_t y = make_tensor(m, c, &c->y, ID_Y, at->y);
    cudnnBackendDescriptor_t x = left ? make_between(m, c, ID_BETWEEN) : y;
    out[0] = make_conv(m, c, at, x);
    for (size_t i = 0; i < sizeof then / sizeof *then; i++) {
        if (!then[i].wanted)
            continue;
        cudnnBackendDescriptor_t b = then[i].b ? make_tensor(m, c, then[i].b, then[i].id, then[i].at) : NULL;
        cudnnBackendDescriptor_t to = --left ? make_between(m, c, ID_BETWEEN + n) : y;
        out[n++] = make_pointwise(m, c, then[i].mode, x, b, to);
        x = to;
    }
    return n;
}

cudnnBackendDescriptor_t ty_cudnn_graph(ty_cudnn_maker *m, cudnnHandle_t handle, const ty_cudnn_conv *c,
                                        const ty_cudnn_places *at)
{
    cudnnBackendDescriptor_t operation[MOST_OPERATIONS];
    int n = make_operations(m, c, at, operation);
    cudnnBackendDescriptor_t d = ty_cudnn_new(m, TY_CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (handle)
        ty_cudnn_set(m, d, TY_CUDNN_ATTR_OPERATIONGRAPH_HANDLE, TY_CUDNN_TYPE_HANDLE, 1, &handle);
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_OPERATIONGRAPH_OPS, TY_CUDNN_TYPE_BACKEND_DESCRIPTOR, n, operation);
    ty_cudnn_finish(m, d, "a graph of one convolution");
    return d;
}

cudnnBackendDescriptor_t ty_cudnn_pack(ty_cudnn_maker *m, const ty_cudnn_conv *c, const ty_cudnn_places *at,
                                       CUdeviceptr workspace)
{
    const struct {
        int64_t id;
        CUdeviceptr at;
        bool wanted;
    } tensor[] = {{ID_X, at->x, true},
                  {ID_W, at->w, true},
                  {ID_Y, at->y, true},
                  {ID_BIAS, at->bias, c->biases},
                  {ID_Z, at->z, c->adds}};
    int64_t id[sizeof tensor / sizeof *tensor], n = 0;
    void *address[sizeof tensor / sizeof *tensor];
    void *const room = (void *)(uintptr_t)workspace;
    for (size_t i = 0; i < sizeof tensor / sizeof *tensor; i++)
        if (tensor[i].wanted) {
            id[n] = tensor[i].id;
            address[n++] = (void *)(uintptr_t)tensor[i].at;
        }
    cudnnBackendDescriptor_t d = ty_cudnn_new(m, TY_CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, TY_CUDNN_TYPE_INT64, n, id);
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, TY_CUDNN_TYPE_VOID_PTR, n, address);
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_VARIANT_PACK_WORKSPACE, TY_CUDNN_TYPE_VOID_PTR, 1, &room);
    ty_cudnn_finish(m, d, "the addresses of a convolution");
    return d;
}
