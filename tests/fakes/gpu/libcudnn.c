/* libcudnn.c - a stand-in for cuDNN's graph of operations, as far as one convolution goes, and what may follow a
 * forward one: a tensor added, a bias, a ReLU, in this order, with a bias at least and all in one type, since for
 * others cuDNN proposes no engine (9.19 and 9.26, told of GPUs that are not there). On the host, as work of the
 * stand-in driver's stream. Attributes are kept as they are set; what is missing or does not fit when a descriptor is
 * finished is refused, as cuDNN does. Of the engines that it proposes (`engines`) the first ones will not do.
 * TY_FAKE_CUDNN_CUDA=13000: it was built for CUDA 13, in place of 12. */
#include "tests/fakes/gpu/element.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_ATTRIBUTES = 12, MAX_BYTES = 128, AXES = 3, OK = 0, BAD_PARAM = 2000, NOT_SUPPORTED = 3000 };
enum { NO_NOTE = -1, KNOB_TILE = 2, SOME_WORKSPACE = 1024, TEXT_BYTES = 1024 };

typedef struct attribute {
    unsigned name, type;
    int64_t n;
    char bytes[MAX_BYTES];
} attribute;

typedef struct descriptor {
    unsigned kind;
    bool finished;
    attribute attribute[MAX_ATTRIBUTES];
    int n;
    int64_t number; /* of what is proposed, in `engines` */
    struct descriptor *graph;
} descriptor;

struct cudnnContext {
    CUstream stream;
    fake_driver driver;
};

static __thread int n_alive; /* descriptors of the thread, which alone uses its handle */

size_t cudnnGetVersion(void)
{
    return 91900;
}

size_t cudnnGetCudartVersion(void)
{
    const char *version = getenv("TY_FAKE_CUDNN_CUDA");
    return version ? strtoul(version, NULL, 10) : 12000;
}

const char *cudnnGetErrorString(unsigned status)
{
    return status == BAD_PARAM ? "CUDNN_STATUS_BAD_PARAM" : "CUDNN_STATUS_NOT_SUPPORTED";
}

unsigned cudnnCreate(cudnnHandle_t *handle)
{
    fake_driver driver;
    if (!fake_driver_find(&driver))
        return NOT_SUPPORTED;
    *handle = calloc(1, sizeof **handle);
    (*handle)->driver = driver;
    return OK;
}

unsigned cudnnDestroy(cudnnHandle_t handle)
{
    free(handle);
    if (n_alive == 0)
        return OK;
    fprintf(stderr, "stand-in for cuDNN: %d descriptors are left behind\n", n_alive);
    abort();
}

unsigned cudnnSetStream(cudnnHandle_t handle, CUstream stream)
{
    handle->stream = stream;
    return OK;
}

/* ---- attributes ---- */

unsigned cudnnBackendCreateDescriptor(unsigned kind, cudnnBackendDescriptor_t *out)
{
    descriptor *d = calloc(1, sizeof *d);
    d->kind = kind;
    *out = d;
    n_alive++;
    return OK;
}

unsigned cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d)
{
    n_alive--;
    free(d);
    return OK;
}

static size_t value_bytes(unsigned type)
{
    switch (type) {
    case TY_CUDNN_TYPE_DATA_TYPE:
    case TY_CUDNN_TYPE_CONVOLUTION_MODE:
    case TY_CUDNN_TYPE_HEUR_MODE:
    case TY_CUDNN_TYPE_FLOAT:
    case TY_CUDNN_TYPE_POINTWISE_MODE:
    case TY_CUDNN_TYPE_NAN_PROPAGATION:
        return 4;
    case TY_CUDNN_TYPE_BOOLEAN:
        return sizeof(bool);
    default:
        return 8;
    }
}

unsigned cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor_, unsigned name, unsigned type, int64_t n,
                                  const void *values)
{
    descriptor *d = descriptor_;
    if (d->finished || d->n == MAX_ATTRIBUTES || n < 1 || (size_t)n * value_bytes(type) > MAX_BYTES)
        return BAD_PARAM;
    attribute *a = &d->attribute[d->n++];
    *a = (attribute){.name = name, .type = type, .n = n};
    memcpy(a->bytes, values, (size_t)n * value_bytes(type));
    for (int64_t i = 0; type == TY_CUDNN_TYPE_BACKEND_DESCRIPTOR && i < n; i++)
        if (!((descriptor *const *)values)[i]->finished)
            return BAD_PARAM; /* it must be finished before it is used */
    return OK;
}

static const attribute *find(const descriptor *d, unsigned name)
{
    for (int i = 0; i < d->n; i++)
        if (d->attribute[i].name == name)
            return &d->attribute[i];
    return NULL;
}

/* Number i of what is linked, or NULL. */
static descriptor *linked_at(const descriptor *d, unsigned name, int64_t i)
{
    descriptor *out = NULL;
    const attribute *a = find(d, name);
    if (a && i < a->n)
        memcpy(&out, a->bytes + (size_t)i * sizeof out, sizeof out);
    return out;
}

static descriptor *linked(const descriptor *d, unsigned name)
{
    return linked_at(d, name, 0);
}

static int64_t number(const descriptor *d, unsigned name, int i)
{
    int64_t out = 0;
    const attribute *a = find(d, name);
    if (a && i < a->n)
        memcpy(&out, a->bytes + 8 * i, sizeof out);
    return out;
}

static unsigned word(const descriptor *d, unsigned name)
{
    unsigned out = 0;
    const attribute *a = find(d, name);
    if (a)
        memcpy(&out, a->bytes, sizeof out);
    return out;
}

/* ---- what must be there ---- */

static const struct {
    unsigned kind, name[8];
} needed[] = {
    {TY_CUDNN_BACKEND_TENSOR_DESCRIPTOR,
     {TY_CUDNN_ATTR_TENSOR_UNIQUE_ID, TY_CUDNN_ATTR_TENSOR_DATA_TYPE, TY_CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT,
      TY_CUDNN_ATTR_TENSOR_DIMENSIONS, TY_CUDNN_ATTR_TENSOR_STRIDES}},
    {TY_CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
     {TY_CUDNN_ATTR_CONVOLUTION_COMP_TYPE, TY_CUDNN_ATTR_CONVOLUTION_CONV_MODE, TY_CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
      TY_CUDNN_ATTR_CONVOLUTION_DILATIONS, TY_CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
      TY_CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, TY_CUDNN_ATTR_CONVOLUTION_POST_PADDINGS}},
    {TY_CUDNN_BACKEND_POINTWISE_DESCRIPTOR, {TY_CUDNN_ATTR_POINTWISE_MATH_PREC}},
    {TY_CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
     {TY_CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, TY_CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
      TY_CUDNN_ATTR_OPERATION_POINTWISE_YDESC}},
    {TY_CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
     {TY_CUDNN_ATTR_OPERATIONGRAPH_HANDLE, TY_CUDNN_ATTR_OPERATIONGRAPH_OPS}},
    {TY_CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, {TY_CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, TY_CUDNN_ATTR_ENGINEHEUR_MODE}},
    {TY_CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
     {TY_CUDNN_ATTR_EXECUTION_PLAN_HANDLE, TY_CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG}},
    {TY_CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
     {TY_CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, TY_CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
      TY_CUDNN_ATTR_VARIANT_PACK_WORKSPACE}},
};

/* ---- a convolution ---- */

static const struct {
    unsigned kind, windows, x, w, y;
} operations[] = {
    {TY_CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, TY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     TY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, TY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     TY_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    {TY_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    {TY_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, TY_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
};

/* One and two spatial axes are seen as three, with extents of 1 in front. */
typedef struct tensor {
    int64_t id, dim[2 + AXES], stride[2 + AXES];
    unsigned type;
    bool between; /* nowhere in memory */
} tensor;

typedef struct conv {
    unsigned kind;
    tensor x, w, y;
    int64_t step[AXES], dil[AXES], lo[AXES], hi[AXES];
    char *x_at, *w_at, *y_at;
    bool adds, biases, relu; /* what follows */
    tensor z, bias;
    char *z_at, *bias_at;
} conv;

static void read_tensor(const descriptor *d, tensor *t)
{
    const attribute *dims = find(d, TY_CUDNN_ATTR_TENSOR_DIMENSIONS);
    int rank = (int)dims->n, skip = 2 + AXES - rank;
    t->id = number(d, TY_CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
    t->type = word(d, TY_CUDNN_ATTR_TENSOR_DATA_TYPE);
    t->between = find(d, TY_CUDNN_ATTR_TENSOR_IS_VIRTUAL) != NULL;
    for (int i = 0; i < 2 + AXES; i++)
        t->dim[i] = 1, t->stride[i] = 0;
    for (int i = 0; i < rank; i++) {
        int to = i < 2 ? i : i + skip;
        t->dim[to] = number(d, TY_CUDNN_ATTR_TENSOR_DIMENSIONS, i);
        t->stride[to] = number(d, TY_CUDNN_ATTR_TENSOR_STRIDES, i);
    }
}

static void read_windows(const descriptor *d, conv *c)
{
    int n = (int)number(d, TY_CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0);
    for (int a = 0; a < AXES; a++)
        c->step[a] = c->dil[a] = 1, c->lo[a] = c->hi[a] = 0;
    for (int i = 0; i < n; i++) {
        int a = AXES - n + i;
        c->step[a] = number(d, TY_CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, i);
        c->dil[a] = number(d, TY_CUDNN_ATTR_CONVOLUTION_DILATIONS, i);
        c->lo[a] = number(d, TY_CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, i);
        c->hi[a] = number(d, TY_CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, i);
    }
}

/* False where the shapes contradict each other. */
static bool read_conv(const descriptor *op, conv *c)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (operations[i].kind != op->kind)
            continue;
        const descriptor *windows = linked(op, operations[i].windows), *x = linked(op, operations[i].x);
        const descriptor *w = linked(op, operations[i].w), *y = linked(op, operations[i].y);
        if (!windows || !x || !w || !y)
            return false;
        c->kind = op->kind;
        read_windows(windows, c);
        read_tensor(x, &c->x);
        read_tensor(w, &c->w);
        read_tensor(y, &c->y);
    }
    bool good = c->x.dim[0] == c->y.dim[0] && c->w.dim[0] == c->y.dim[1] && c->x.dim[1] % c->w.dim[1] == 0 &&
                c->w.dim[0] % (c->x.dim[1] / c->w.dim[1]) == 0 && c->x.type == c->w.type &&
                (c->y.between ? c->y.type == TY_CUDNN_DATA_FLOAT : c->x.type == c->y.type);
    for (int a = 0; a < AXES && good; a++)
        good = c->lo[a] >= 0 && c->hi[a] >= 0 &&
               c->y.dim[2 + a] ==
                   (c->x.dim[2 + a] + c->lo[a] + c->hi[a] - (c->w.dim[2 + a] - 1) * c->dil[a] - 1) / c->step[a] + 1;
    return good;
}

/* ---- what follows ---- */

static bool same_shape(const tensor *a, const tensor *b)
{
    return memcmp(a->dim, b->dim, sizeof a->dim) == 0;
}

/* A number a channel. */
static bool is_bias(const tensor *b, const tensor *y)
{
    int64_t n = 1;
    for (int i = 0; i < 2 + AXES; i++)
        n *= b->dim[i];
    return n == y->dim[1] && b->dim[1] == n;
}

/* Takes one operation that reads what came before, c->y, and makes it the result; false if there is no such engine. */
static bool follow(const descriptor *op, conv *c)
{
    const descriptor *how = linked(op, TY_CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const descriptor *b = linked(op, TY_CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    unsigned mode = word(how, TY_CUDNN_ATTR_POINTWISE_MODE);
    tensor x, y, second = {.id = 0};
    read_tensor(linked(op, TY_CUDNN_ATTR_OPERATION_POINTWISE_XDESC), &x);
    read_tensor(linked(op, TY_CUDNN_ATTR_OPERATION_POINTWISE_YDESC), &y);
    if (b)
        read_tensor(b, &second);
    bool good = c->y.between && x.id == c->y.id && same_shape(&x, &y) && !c->relu && (b != NULL) == !mode &&
                word(how, TY_CUDNN_ATTR_POINTWISE_MATH_PREC) == TY_CUDNN_DATA_FLOAT &&
                y.type == (y.between ? TY_CUDNN_DATA_FLOAT : c->x.type) && (!b || second.type == c->x.type);
    if (mode == TY_CUDNN_POINTWISE_RELU_FWD) {
        good = good && c->biases && word(how, TY_CUDNN_ATTR_POINTWISE_NAN_PROPAGATION) == TY_CUDNN_PROPAGATE_NAN;
        c->relu = true;
    } else if (b && is_bias(&second, &y)) {
        good = good && !c->biases;
        c->biases = true;
        c->bias = second;
    } else {
        good = good && b && !c->adds && !c->biases && same_shape(&second, &y);
        c->adds = true;
        c->z = second;
    }
    c->y = y;
    return good;
}

static bool read_graph(const descriptor *graph, conv *c)
{
    *c = (conv){.kind = 0};
    const attribute *ops = find(graph, TY_CUDNN_ATTR_OPERATIONGRAPH_OPS);
    bool good = read_conv(linked(graph, TY_CUDNN_ATTR_OPERATIONGRAPH_OPS), c);
    good = good && (ops->n == 1 || c->kind == TY_CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    for (int64_t i = 1; good && i < ops->n; i++)
        good = follow(linked_at(graph, TY_CUDNN_ATTR_OPERATIONGRAPH_OPS, i), c);
    return good && !c->y.between && c->biases == (ops->n > 1);
}

static bool is_operation(const descriptor *d)
{
    return d->kind >= TY_CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR &&
           d->kind <= TY_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
}

/* ---- engines ---- */

/* What is proposed, best first, as the library thinks: the engine and the setting of its knob, its note, what it takes
 * of workspace and of time; not all can be planned. */
static const struct {
    int64_t engine, knob;
    int note;
    int64_t workspace;
    double ms;
    bool planned;
} engines[] = {
    {0, 1, TY_CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, 0, 0.1, true},
    {1, 1, TY_CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, 0, 0.1, true},
    {2, 1, TY_CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, 0, 0.1, true},
    {3, 1, TY_CUDNN_NUMERICAL_NOTE_TENSOR_CORE, 0, 0.5, true},
    {4, 1, NO_NOTE, 0, 0.1, false},
    {5, 1, NO_NOTE, SOME_WORKSPACE, 3, true},
    {6, 1, NO_NOTE, (int64_t)1 << 40, 0.1, true},
    {5, 4, NO_NOTE, SOME_WORKSPACE, 1, true},
    {7, 1, NO_NOTE, 0, 2, true},
};
enum { ENGINES = sizeof engines / sizeof *engines };

unsigned cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor_)
{
    descriptor *d = descriptor_;
    conv c;
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        for (int k = 0; needed[i].kind == d->kind && k < 8 && needed[i].name[k]; k++)
            if (!find(d, needed[i].name[k]))
                return BAD_PARAM;
    if (d->finished || (is_operation(d) && !read_conv(d, &c)))
        return BAD_PARAM;
    if (d->kind == TY_CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
        const descriptor *config = linked(d, TY_CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
        d->graph = config->graph;
        d->number = config->number;
        if (!engines[d->number].planned)
            return NOT_SUPPORTED;
    }
    d->finished = true;
    return OK;
}

static unsigned give_note(int64_t number, int64_t *n, void *values)
{
    *n = engines[number].note != NO_NOTE;
    if (*n)
        memcpy(values, &engines[number].note, sizeof engines[number].note);
    return OK;
}

static unsigned give_number(int64_t value, int64_t *n, void *values)
{
    *n = 1;
    memcpy(values, &value, sizeof value);
    return OK;
}

/* What follows a convolution: "none" is proposed for it, or it is refused "late", when it is run. "none z": only where
 * a tensor is added. */
static bool refuses(const conv *c, const char *how)
{
    const char *asked = getenv("TY_FAKE_FUSIONS");
    size_t n = strlen(how);
    return c->biases && asked && strncmp(asked, how, n) == 0 && (!asked[n] || c->adds);
}

/* Into descriptors of the caller's. */
static unsigned give_descriptors(const descriptor *d, unsigned kind, int64_t wanted, int64_t *n, descriptor **to)
{
    bool proposes = kind == TY_CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
    conv c;
    *n = !proposes ? 1 : wanted < ENGINES ? wanted : ENGINES;
    if (proposes && (!read_graph(linked(d, TY_CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH), &c) || refuses(&c, "none")))
        *n = 0;
    for (int64_t i = 0; i < *n; i++) {
        if (!to[i] || to[i]->kind != kind)
            return BAD_PARAM;
        to[i]->number = proposes ? i : d->number;
        to[i]->graph = proposes ? linked(d, TY_CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH) : d->graph;
        to[i]->finished = true;
    }
    return d->finished && wanted > 0 ? OK : BAD_PARAM;
}

unsigned cudnnBackendGetAttribute(const cudnnBackendDescriptor_t descriptor_, unsigned name, unsigned type,
                                  int64_t most, int64_t *n, void *values)
{
    static const uint32_t knob = KNOB_TILE;
    const descriptor *d = descriptor_;
    (void)type;
    switch (name) {
    case TY_CUDNN_ATTR_ENGINEHEUR_RESULTS:
        return give_descriptors(d, TY_CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, most, n, values);
    case TY_CUDNN_ATTR_ENGINECFG_ENGINE:
        return give_descriptors(d, TY_CUDNN_BACKEND_ENGINE_DESCRIPTOR, most, n, values);
    case TY_CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
        return give_descriptors(d, TY_CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, most, n, values);
    case TY_CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
        return give_note(d->number, n, values);
    case TY_CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
        return give_number(engines[d->number].engine, n, values);
    case TY_CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
        return give_number(engines[d->number].knob, n, values);
    case TY_CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
        *n = 1;
        memcpy(values, &knob, sizeof knob);
        return OK;
    case TY_CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        return d->finished ? give_number(engines[d->number].workspace, n, values) : BAD_PARAM;
    default:
        return NOT_SUPPORTED;
    }
}

/* ---- convolving ---- */

static ty_dtype dtype_of(unsigned type)
{
    return type == TY_CUDNN_DATA_DOUBLE  ? TY_F64
           : type == TY_CUDNN_DATA_FLOAT ? TY_F32
           : type == TY_CUDNN_DATA_HALF  ? TY_F16
                                         : TY_BF16;
}

static int64_t elements(const tensor *t)
{
    int64_t last = 0;
    for (int i = 0; i < 2 + AXES; i++)
        last += (t->dim[i] - 1) * t->stride[i];
    return last + 1;
}

static int64_t offset(const tensor *t, int64_t a, int64_t b, const int64_t *s)
{
    return a * t->stride[0] + b * t->stride[1] + s[0] * t->stride[2] + s[1] * t->stride[3] + s[2] * t->stride[4];
}

/* Position number i of a box. */
static void unfold(int64_t i, const int64_t *extent, int64_t *out)
{
    out[2] = i % extent[2];
    out[1] = i / extent[2] % extent[1];
    out[0] = i / (extent[2] * extent[1]);
}

static void add_all(const conv *c, double *sum, int64_t image, int64_t filter, int64_t channel)
{
    const int64_t *out = c->y.dim + 2, *size = c->w.dim + 2, *in = c->x.dim + 2;
    int64_t input = filter / (c->w.dim[0] / (c->x.dim[1] / c->w.dim[1])) * c->w.dim[1] + channel;
    for (int64_t i = 0; i < out[0] * out[1] * out[2]; i++)
        for (int64_t k = 0; k < size[0] * size[1] * size[2]; k++) {
            int64_t o[AXES], tap[AXES], at[AXES];
            bool inside = true;
            unfold(i, out, o);
            unfold(k, size, tap);
            for (int a = 0; a < AXES; a++) {
                at[a] = o[a] * c->step[a] - c->lo[a] + tap[a] * c->dil[a];
                inside = inside && at[a] >= 0 && at[a] < in[a];
            }
            if (!inside)
                continue;
            int64_t x = offset(&c->x, image, input, at), w = offset(&c->w, filter, channel, tap);
            int64_t y = offset(&c->y, image, filter, o);
            if (c->kind == TY_CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
                sum[y] += element_get(c->x_at, x, dtype_of(c->x.type)) * element_get(c->w_at, w, dtype_of(c->w.type));
            else if (c->kind == TY_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
                sum[x] += element_get(c->y_at, y, dtype_of(c->y.type)) * element_get(c->w_at, w, dtype_of(c->w.type));
            else
                sum[w] += element_get(c->x_at, x, dtype_of(c->x.type)) * element_get(c->y_at, y, dtype_of(c->y.type));
        }
}

/* What follows, on all of y. */
static void go_on(const conv *c, double *y)
{
    const int64_t *out = c->y.dim + 2;
    for (int64_t image = 0; image < c->y.dim[0]; image++)
        for (int64_t filter = 0; filter < c->y.dim[1]; filter++)
            for (int64_t i = 0; i < out[0] * out[1] * out[2]; i++) {
                int64_t o[AXES];
                unfold(i, out, o);
                double *v = &y[offset(&c->y, image, filter, o)];
                if (c->adds)
                    *v += element_get(c->z_at, offset(&c->z, image, filter, o), dtype_of(c->z.type));
                *v += element_get(c->bias_at, filter * c->bias.stride[1], dtype_of(c->bias.type));
                *v = c->relu && *v <= 0 ? 0 : *v;
            }
}

static void convolve(const void *given)
{
    const conv *c = given;
    bool forward = c->kind == TY_CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
    bool data = c->kind == TY_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
    const tensor *to = forward ? &c->y : data ? &c->x : &c->w;
    char *at = forward ? c->y_at : data ? c->x_at : c->w_at;
    int64_t n = elements(to);
    double *sum = calloc((size_t)n, sizeof *sum);
    for (int64_t image = 0; image < c->x.dim[0]; image++)
        for (int64_t filter = 0; filter < c->w.dim[0]; filter++)
            for (int64_t channel = 0; channel < c->w.dim[1]; channel++)
                add_all(c, sum, image, filter, channel);
    if (c->biases)
        go_on(c, sum);
    for (int64_t i = 0; i < n; i++)
        element_put(at, i, dtype_of(to->type), sum[i]);
    free(sum);
}

static char *address_of(const descriptor *pack, int64_t id)
{
    const attribute *ids = find(pack, TY_CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    for (int i = 0; i < ids->n; i++)
        if (number(pack, TY_CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i) == id)
            return (char *)(uintptr_t)number(pack, TY_CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, i);
    return NULL;
}

static void check(cudnnHandle_t handle, const void *at, const tensor *t, const char *what)
{
    handle->driver.check(at, (size_t)elements(t) * ty_dtype_bytes(dtype_of(t->type)), what);
}

static const char *const words[] = {[TY_CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR] = "y",
                                    [TY_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR] = "x",
                                    [TY_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR] = "w"};

static void print_list(const char *name, const int64_t *v, int n, char *out)
{
    size_t at = strlen(out);
    at += (size_t)snprintf(out + at, TEXT_BYTES - at, " %s[", name);
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(out + at, TEXT_BYTES - at, "%s%ld", i ? "," : "", (long)v[i]);
    snprintf(out + at, TEXT_BYTES - at, "]");
}

/* What it was told, in the words of ty_cudnn_print but for its three spatial axes, for tests to compare. */
static void print(const conv *c, int engine, int knob, char *out)
{
    const char *names[] = {"x", "w", "y"};
    const tensor *all[] = {&c->x, &c->w, &c->y};
    const char *z = c->adds ? "+z" : "", *bias = c->biases ? "+bias" : "", *relu = c->relu ? "+relu" : "";
    snprintf(out, TEXT_BYTES, "convolve %s%s%s%s engine %d knob %d: %s", words[c->kind], z, bias, relu, engine, knob,
             ty_dtype_text(dtype_of(c->x.type)));
    for (int i = 0; i < 3; i++) {
        print_list(names[i], all[i]->dim, 2 + AXES, out);
        print_list("by", all[i]->stride, 2 + AXES, out);
    }
    print_list("step", c->step, AXES, out);
    print_list("dil", c->dil, AXES, out);
    print_list("lo", c->lo, AXES, out);
    print_list("hi", c->hi, AXES, out);
}

unsigned cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_, cudnnBackendDescriptor_t pack_)
{
    const descriptor *plan = plan_, *pack = pack_;
    char text[TEXT_BYTES];
    conv c;
    fake_driver_is_current(&handle->driver, "a convolution");
    if (!plan->finished || !pack->finished || !read_graph(plan->graph, &c))
        return BAD_PARAM;
    if (refuses(&c, "late"))
        return NOT_SUPPORTED;
    c.x_at = address_of(pack, c.x.id);
    c.w_at = address_of(pack, c.w.id);
    c.y_at = address_of(pack, c.y.id);
    check(handle, c.x_at, &c.x, "x of a convolution");
    check(handle, c.w_at, &c.w, "w of a convolution");
    check(handle, c.y_at, &c.y, "y of a convolution");
    if (c.biases) {
        c.bias_at = address_of(pack, c.bias.id);
        check(handle, c.bias_at, &c.bias, "bias of a convolution");
    }
    if (c.adds) {
        c.z_at = address_of(pack, c.z.id);
        check(handle, c.z_at, &c.z, "z of a convolution");
    }
    if (engines[plan->number].workspace)
        handle->driver.check((void *)(uintptr_t)number(pack, TY_CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 0),
                             (size_t)engines[plan->number].workspace, "workspace of a convolution");
    print(&c, (int)engines[plan->number].engine, (int)engines[plan->number].knob, text);
    handle->driver.take(handle->stream, engines[plan->number].ms);
    return handle->driver.work(handle->stream, convolve, &c, sizeof c, text);
}
