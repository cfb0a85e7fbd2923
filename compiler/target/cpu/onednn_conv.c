/* onednn_conv.c - convolution and its two gradients, of float32 tensors, and of bfloat16 where the processor multiplies
 * these; the gradient of bfloat16 weights may be float32.
 *
 * Channels-last tensors go in and come out as they are; only weights, which are small, are reordered. For tensors that
 * are channels-first, and where oneDNN has nothing fast for channels-last ones, it is asked which layouts it would like
 * best; where they differ from ours the operand is reordered into scratch memory in front of the call, the result
 * behind it. Winograd's algorithm is our own (native_winograd.c): oneDNN's takes blocks of channels only.
 */
#include "compiler/ops/sliding.h"
#include "compiler/target/cpu/channel_blocks.h"
#include "compiler/target/cpu/convolution.h"
#include "compiler/target/cpu/onednn.h"

#include <stdlib.h>
#include <string.h>

#define CONV_SMALL_PLANE    49 /* positions of an image */
#define CONV_SMALL_CHANNELS 256
#define CONV_APART_CHANNELS 128
/* Of 2 KB every second position lies in the same lines of a first cache of 4 KB a way; more than so many positions push
 * each other out. */
#define CONV_PAGE_CHANNELS  512
#define CONV_PAGE_POSITIONS 16

/* An operand: ours outside, oneDNN's inside. */
typedef struct conv_operand {
    dnnl_memory_desc_t ours, theirs;
    dnnl_memory_t outside, inside; /* inside: NULL if the layouts agree */
    dnnl_primitive_t reorder;      /* NULL if they do, or if `blocks` does it */
    ty_channel_blocks blocks;      /* images: 0 if it does not */
    int64_t scratch_offset;
} conv_operand;

typedef struct conv_call {
    const ty_onednn *lib;
    dnnl_primitive_t primitive;
    conv_operand x, w, y; /* source, weights, destination, or their gradients */
    dnnl_memory_t scratch;
    int64_t scratch_offset;
    int threads;
    bool narrow; /* bfloat16 */
    bool any;    /* what is slow will do */
    int kind;    /* CONV_FORWARD, CONV_DATA or CONV_WEIGHTS */
    char text[TY_CONVOLUTION_TEXT];
} conv_call;

enum { CONV_FORWARD, CONV_DATA, CONV_WEIGHTS };

static void conv_bind(const conv_call *c, const conv_operand *o, const void *bytes, char *scratch)
{
    c->lib->memory_set_data_handle_v2(o->outside, (void *)(uintptr_t)bytes, c->lib->stream);
    if (o->inside)
        c->lib->memory_set_data_handle_v2(o->inside, scratch + o->scratch_offset, c->lib->stream);
}

/* To where oneDNN reads it, in front of the call; from where it wrote it, behind the call. */
static void conv_move_in(const conv_call *c, const conv_operand *o, const void *bytes, char *scratch)
{
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, o->outside}, {DNNL_ARG_TO, o->inside}};
    if (o->blocks.images)
        ty_channel_blocks_split(&o->blocks, scratch + o->scratch_offset, bytes, c->threads);
    else if (o->reorder)
        c->lib->primitive_execute(o->reorder, c->lib->stream, 2, args);
}

static void conv_move_out(const conv_call *c, const conv_operand *o, void *bytes, const char *scratch)
{
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, o->inside}, {DNNL_ARG_TO, o->outside}};
    if (o->blocks.images)
        ty_channel_blocks_join(&o->blocks, bytes, scratch + o->scratch_offset, c->threads);
    else if (o->reorder)
        c->lib->primitive_execute(o->reorder, c->lib->stream, 2, args);
}

static void conv_execute(const conv_call *c)
{
    static const int arg_of[3][3] = {
        [CONV_FORWARD] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
        [CONV_DATA] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
        [CONV_WEIGHTS] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST},
    };
    const conv_operand *o[3] = {&c->x, &c->w, &c->y};
    dnnl_exec_arg_t args[4];
    for (int i = 0; i < 3; i++)
        args[i] = (dnnl_exec_arg_t){arg_of[c->kind][i], o[i]->inside ? o[i]->inside : o[i]->outside};
    args[3] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, c->scratch};
    c->lib->primitive_execute(c->primitive, c->lib->stream, 4, args);
}

/* Operands in the order of the op's row; the last of x, w, y that is not an operand is the result. */
static void conv_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const conv_call *c = prepared;
    const conv_operand *operand[3][3] = {[CONV_FORWARD] = {&c->x, &c->w, &c->y},
                                         [CONV_DATA] = {&c->y, &c->w, &c->x},
                                         [CONV_WEIGHTS] = {&c->x, &c->y, &c->w}};
    const conv_operand *const *o = operand[c->kind];
    c->lib->memory_set_data_handle_v2(c->scratch, (char *)scratch + c->scratch_offset, c->lib->stream);
    int before = ty_onednn_use_threads(c->threads);
    conv_bind(c, o[0], in[0], scratch);
    conv_bind(c, o[1], in[1], scratch);
    conv_bind(c, o[2], out[0], scratch);
    conv_move_in(c, o[0], in[0], scratch);
    conv_move_in(c, o[1], in[1], scratch);
    conv_execute(c);
    conv_move_out(c, o[2], out[0], scratch);
    ty_onednn_use_threads(before);
}

static void conv_release_operand(const conv_call *c, conv_operand *o)
{
    if (o->reorder)
        c->lib->primitive_destroy(o->reorder);
    if (o->outside)
        c->lib->memory_destroy(o->outside);
    if (o->inside)
        c->lib->memory_destroy(o->inside);
}

static void conv_release(void *prepared)
{
    conv_call *c = prepared;
    conv_release_operand(c, &c->x);
    conv_release_operand(c, &c->w);
    conv_release_operand(c, &c->y);
    if (c->primitive)
        c->lib->primitive_destroy(c->primitive);
    if (c->scratch)
        c->lib->memory_destroy(c->scratch);
    free(c);
}

/* ---- preparing ---- */

static const dnnl_format_tag_t conv_first[] = {[3] = dnnl_abc, [4] = dnnl_abcd, [5] = dnnl_abcde, [6] = dnnl_abcdef};
static const dnnl_format_tag_t conv_last[] = {[3] = dnnl_acb, [4] = dnnl_acdb, [5] = dnnl_acdeb};

/* Shape of the weights with the group as an axis of its own, as oneDNN wants it. */
static int conv_weight_dims(const ty_type *w, int64_t groups, int64_t *dims)
{
    int rank = 0;
    if (groups > 1)
        dims[rank++] = groups;
    dims[rank++] = w->dim[0] / groups;
    for (int i = 1; i < w->rank; i++)
        dims[rank++] = w->dim[i];
    return rank;
}

static int conv_describe(const conv_call *c, conv_operand *o, uint8_t dtype, int rank, const int64_t *dims,
                         dnnl_format_tag_t ours, dnnl_format_tag_t theirs, ty_error *err)
{
    dnnl_data_type_t type = dtype == TY_BF16 ? dnnl_bf16 : dnnl_f32;
    if (ty_onednn_status(c->lib->memory_desc_init_by_tag(&o->ours, rank, dims, type, ours), "describing a tensor",
                         err) < 0)
        return -1;
    return ty_onednn_status(c->lib->memory_desc_init_by_tag(&o->theirs, rank, dims, type, theirs),
                            "describing a tensor", err);
}

/* x, w and y as they are, and as oneDNN is asked to take them: `keep` asks it to take x and y as they are. */
static int conv_describe_all(conv_call *c, const ty_attr *attr, const ty_type *const *xwy, bool keep, ty_error *err)
{
    int64_t dims[TY_MAX_RANK + 1];
    int weight_rank = conv_weight_dims(xwy[1], attr->groups, dims);
    ty_type x = ty_sliding_first(attr, xwy[0]), y = ty_sliding_first(attr, xwy[2]);
    dnnl_format_tag_t ours = (attr->flags & TY_SLIDING_LAST ? conv_last : conv_first)[x.rank];
    dnnl_format_tag_t theirs = keep ? ours : dnnl_format_tag_any;
    if (conv_describe(c, &c->w, xwy[1]->dtype, weight_rank, dims, conv_first[weight_rank], dnnl_format_tag_any, err) <
            0 ||
        conv_describe(c, &c->x, x.dtype, x.rank, x.dim, ours, theirs, err) < 0)
        return -1;
    return conv_describe(c, &c->y, y.dtype, y.rank, y.dim, ours, theirs, err);
}

/* Whether x or y is channels-last outside and in blocks of channels inside. */
static bool conv_in_blocks(const conv_call *c, conv_operand *o)
{
    static const struct {
        dnnl_format_tag_t tag[3]; /* of rank 3, 4 and 5 */
        int64_t channels;
    } form[] = {{{dnnl_aBc16b, dnnl_aBcd16b, dnnl_aBcde16b}, 16}, {{dnnl_aBc8b, dnnl_aBcd8b, dnnl_aBcde8b}, 8}};
    const dnnl_memory_desc_t *d = &o->ours;
    dnnl_memory_desc_t last, blocked;
    if (o == &c->w || d->ndims > 5 ||
        c->lib->memory_desc_init_by_tag(&last, d->ndims, d->dims, d->data_type, conv_last[d->ndims]) != dnnl_success ||
        !c->lib->memory_desc_equal(&last, d))
        return false;
    for (size_t i = 0; i < sizeof form / sizeof *form; i++)
        if (d->dims[1] % form[i].channels == 0 &&
            c->lib->memory_desc_init_by_tag(&blocked, d->ndims, d->dims, d->data_type, form[i].tag[d->ndims - 3]) ==
                dnnl_success &&
            c->lib->memory_desc_equal(&blocked, &o->theirs)) {
            o->blocks = (ty_channel_blocks){.images = d->dims[0],
                                            .positions = 1,
                                            .blocks = d->dims[1] / form[i].channels,
                                            .block_bytes = form[i].channels * (d->data_type == dnnl_bf16 ? 2 : 4)};
            for (int k = 2; k < d->ndims; k++)
                o->blocks.positions *= d->dims[k];
            return true;
        }
    return false;
}

static int conv_reorder_primitive(const conv_call *c, conv_operand *o, bool in, ty_error *err)
{
    const ty_onednn *lib = c->lib;
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_memory_desc_t *from = in ? &o->ours : &o->theirs, *to = in ? &o->theirs : &o->ours;
    if (ty_onednn_status(lib->reorder_primitive_desc_create(&pd, from, lib->engine, to, lib->engine, NULL),
                         "choosing a reorder", err) < 0)
        return -1;
    int rc = ty_onednn_status(lib->primitive_create(&o->reorder, pd), "making a reorder", err);
    lib->primitive_desc_destroy(pd);
    return rc;
}

static int conv_reorder(const conv_call *c, conv_operand *o, const dnnl_memory_desc_t *chosen, bool in,
                        int64_t *scratch_bytes, ty_error *err)
{
    const ty_onednn *lib = c->lib;
    o->theirs = *chosen;
    if (ty_onednn_status(lib->memory_create(&o->outside, &o->ours, lib->engine, DNNL_MEMORY_NONE), "making a memory",
                         err) < 0)
        return -1;
    if (lib->memory_desc_equal(&o->ours, &o->theirs))
        return 0;
    if (ty_onednn_status(lib->memory_create(&o->inside, &o->theirs, lib->engine, DNNL_MEMORY_NONE), "making a memory",
                         err) < 0)
        return -1;
    o->scratch_offset = *scratch_bytes;
    *scratch_bytes += ((int64_t)lib->memory_desc_get_size(&o->theirs) + 63) / 64 * 64;
    return conv_in_blocks(c, o) ? 0 : conv_reorder_primitive(c, o, in, err);
}

static dnnl_status_t conv_op_desc(const conv_call *c, int kind, const ty_attr *attr, dnnl_convolution_desc_t *desc)
{
    dnnl_alg_kind_t how = dnnl_convolution_direct;
    dnnl_dims_t strides = {0}, dilates = {0}, lo = {0}, hi = {0};
    for (uint32_t i = 0; i < attr->n; i++) {
        strides[i] = attr->step[i];
        dilates[i] = attr->dil[i] - 1;
        lo[i] = attr->lo[i];
        hi[i] = attr->hi[i];
    }
    const dnnl_memory_desc_t *x = &c->x.theirs, *w = &c->w.theirs, *y = &c->y.theirs;
    dnnl_memory_desc_t forward_w = *w;
    forward_w.data_type = x->data_type; /* where the gradient's is wider */
    if (kind == CONV_FORWARD)
        return c->lib->dilated_convolution_forward_desc_init(desc, dnnl_forward_training, how, x, &forward_w, NULL, y,
                                                             strides, dilates, lo, hi);
    if (kind == CONV_DATA)
        return c->lib->dilated_convolution_backward_data_desc_init(desc, how, x, w, y, strides, dilates, lo, hi);
    return c->lib->dilated_convolution_backward_weights_desc_init(desc, how, x, w, NULL, y, strides, dilates, lo, hi);
}

/* A gradient's primitive wants the forward one as a hint. */
static int conv_choose(const conv_call *c, const ty_attr *attr, dnnl_primitive_desc_t *pd, ty_error *err)
{
    const ty_onednn *lib = c->lib;
    dnnl_primitive_attr_t primitive_attr = NULL;
    dnnl_primitive_desc_t hint = NULL;
    dnnl_convolution_desc_t forward, own;
    int rc = ty_onednn_status(lib->primitive_attr_create(&primitive_attr), "making attributes", err);
    if (rc == 0) {
        lib->primitive_attr_set_scratchpad_mode(primitive_attr, dnnl_scratchpad_mode_user);
        rc = ty_onednn_status(conv_op_desc(c, CONV_FORWARD, attr, &forward), "describing a convolution", err);
    }
    if (rc == 0 && c->kind != CONV_FORWARD)
        rc = ty_onednn_status(lib->primitive_desc_create(&hint, &forward, primitive_attr, lib->engine, NULL),
                              "choosing a convolution", err);
    if (rc == 0)
        rc = ty_onednn_status(conv_op_desc(c, c->kind, attr, &own), "describing a convolution", err);
    if (rc == 0)
        rc = ty_onednn_status(lib->primitive_desc_create(pd, &own, primitive_attr, lib->engine, hint),
                              "choosing a convolution", err);
    if (hint)
        lib->primitive_desc_destroy(hint);
    if (primitive_attr)
        lib->primitive_attr_destroy(primitive_attr);
    return rc;
}

static int conv_layouts(conv_call *c, dnnl_primitive_desc_t pd, ty_library_call *out, ty_error *err)
{
    static const dnnl_query_t query[3][3] = {
        [CONV_FORWARD] = {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md},
        [CONV_DATA] = {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md},
        [CONV_WEIGHTS] = {dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md},
    };
    const ty_onednn *lib = c->lib;
    int64_t bytes = 0;
    const dnnl_query_t *q = query[c->kind];
    if (conv_reorder(c, &c->x, lib->primitive_desc_query_md(pd, q[0], 0), c->kind != CONV_DATA, &bytes, err) < 0 ||
        conv_reorder(c, &c->w, lib->primitive_desc_query_md(pd, q[1], 0), c->kind != CONV_WEIGHTS, &bytes, err) < 0 ||
        conv_reorder(c, &c->y, lib->primitive_desc_query_md(pd, q[2], 0), c->kind != CONV_FORWARD, &bytes, err) < 0)
        return -1;
    const dnnl_memory_desc_t *scratch = lib->primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    c->scratch_offset = bytes;
    out->scratch_bytes = (size_t)bytes + lib->memory_desc_get_size(scratch);
    return ty_onednn_status(lib->memory_create(&c->scratch, scratch, lib->engine, DNNL_MEMORY_NONE), "making a memory",
                            err);
}

/* The name of an implementation is a literal inside the library. */
static const char *conv_text(const conv_call *c, dnnl_primitive_desc_t pd)
{
    const char *text = NULL;
    return c->lib->primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &text) == dnnl_success && text ? text : "";
}

/* Reference loops and the detour over a matrix of windows are what oneDNN has when it has nothing else. */
static bool conv_is_slow(const conv_call *c, dnnl_primitive_desc_t pd)
{
    return strstr(conv_text(c, pd), "ref") || strstr(conv_text(c, pd), "gemm");
}

/* Over few positions, what takes channels-last tensors forward is slower than copies and blocks of channels: 512
 * channels of 7 x 7 take 1.15 times as long, of 4 x 4 1.5 times; from 8 x 8 on nothing is gained. */
static bool conv_is_small(const conv_call *c, const ty_attr *attr, const ty_type *y)
{
    ty_type first = ty_sliding_first(attr, y);
    return c->kind == CONV_FORWARD && first.rank == 4 && first.dim[1] >= CONV_SMALL_CHANNELS &&
           first.dim[2] * first.dim[3] <= CONV_SMALL_PLANE;
}

/* Where windows are apart, so is what the gradient of many filters reads of channels-last x: 512 channels of 14 x 14
 * take 1.25 times as long as with copies in blocks, 256 of 28 x 28 1.25 times, 128 of 56 x 56 1.35 times. */
static bool conv_is_apart(const conv_call *c, const ty_attr *attr, const ty_type *y)
{
    ty_type first = ty_sliding_first(attr, y);
    return c->kind == CONV_WEIGHTS && !c->narrow && first.rank == 4 && attr->step[0] > 1 && attr->step[1] > 1 &&
           first.dim[1] >= CONV_APART_CHANNELS;
}

/* The gradient for x reads a row of dy position by position: 512 channels of 28 x 28 take 1.7 times as long for each
 * number as 384 or 528 of them (Zen 4). */
static bool conv_collides(const conv_call *c, const ty_attr *attr, const ty_type *y)
{
    ty_type first = ty_sliding_first(attr, y);
    return c->kind == CONV_DATA && !c->narrow && attr->flags & TY_SLIDING_LAST && attr->step[attr->n - 1] == 1 &&
           first.dim[1] % CONV_PAGE_CHANNELS == 0 && first.dim[first.rank - 1] > CONV_PAGE_POSITIONS;
}

/* Chooses the implementation: for channels-last tensors one that takes them as they are, if a fast one does. */
static int conv_choose_layout(conv_call *c, const ty_attr *attr, const ty_type *const *xwy, dnnl_primitive_desc_t *pd,
                              ty_error *err)
{
    dnnl_primitive_desc_t kept = NULL;
    if (attr->flags & TY_SLIDING_LAST && !conv_is_small(c, attr, xwy[2]) && !conv_is_apart(c, attr, xwy[2])) {
        if (conv_describe_all(c, attr, xwy, true, err) < 0)
            return -1;
        if (conv_choose(c, attr, &kept, NULL) == 0 && !conv_is_slow(c, kept)) {
            *pd = kept;
            return 0;
        }
    }
    if (kept)
        c->lib->primitive_desc_destroy(kept);
    if (conv_describe_all(c, attr, xwy, false, err) < 0)
        return -1;
    return conv_choose(c, attr, pd, err);
}

static int conv_fill(conv_call *c, const ty_attr *attr, const ty_type *const *xwy, ty_library_call *out, ty_error *err)
{
    dnnl_primitive_desc_t pd = NULL;
    if (conv_choose_layout(c, attr, xwy, &pd, err) < 0)
        return -1;
    int rc = 0;
    if (!c->any && (conv_is_slow(c, pd) || conv_collides(c, attr, xwy[2])))
        rc = ty_error_set(err, TY_E_UNSUPPORTED, "no fast convolution of these shapes");
    if (rc == 0)
        rc = conv_layouts(c, pd, out, err);
    const char *how = conv_text(c, pd);
    ty_convolution_text(*how ? how : "onednn", attr, xwy[0], xwy[1], c->text, sizeof c->text);
    out->text = c->text;
    if (rc == 0)
        rc = ty_onednn_status(c->lib->primitive_create(&c->primitive, pd), "making a convolution", err);
    c->lib->primitive_desc_destroy(pd);
    return rc;
}

/* Two operations for each weight of a filter and each number of the result. */
static double conv_flops(const ty_type *w, const ty_type *y)
{
    return 2.0 * (double)ty_type_elems(w) / (double)w->dim[0] * (double)ty_type_elems(y);
}

/* True for types that there may be a call for. */
static bool conv_takes(const ty_type *x, const ty_type *w, const ty_type *y)
{
    if (x->dtype == TY_BF16)
        return ty_onednn_bf16_pays();
    return x->dtype == TY_F32 && w->dtype == TY_F32 && y->dtype == TY_F32;
}

static int conv_prepare(int kind, const ty_library_shape *shape, bool any, ty_library_call *out, ty_error *err)
{
    const ty_onednn *lib;
    const ty_type *x = kind == CONV_DATA ? &shape->res[0] : &shape->in[0];
    const ty_type *w = kind == CONV_WEIGHTS ? &shape->res[0] : &shape->in[1];
    const ty_type *y = kind == CONV_FORWARD ? &shape->res[0] : &shape->in[kind == CONV_WEIGHTS];
    if (!conv_takes(x, w, y))
        return ty_error_set(err, TY_E_UNSUPPORTED, "no convolution of these types");
    if (shape->strict && !any)
        return ty_error_set(err, TY_E_UNSUPPORTED, "sums depend on the number of threads");
    if (ty_onednn_get(&lib, err) < 0)
        return -1;
    conv_call *c = calloc(1, sizeof *c);
    if (!c)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a prepared convolution");
    *c = (conv_call){.lib = lib, .kind = kind, .narrow = x->dtype == TY_BF16, .any = any};
    c->threads = shape->strict ? 1 : ty_onednn_threads(shape, conv_flops(w, y));
    *out = (ty_library_call){.run = conv_run, .release = conv_release, .prepared = c, .text = "onednn"};
    int before = ty_onednn_use_threads(c->threads); /* oneDNN plans for the threads it finds */
    int rc = conv_fill(c, shape->attr, (const ty_type *const[]){x, w, y}, out, err);
    ty_onednn_use_threads(before);
    if (rc < 0)
        conv_release(c);
    return rc;
}

int ty_onednn_prepare_conv(const ty_library_shape *s, ty_library_call *out, ty_error *err)
{
    return conv_prepare(CONV_FORWARD, s, false, out, err);
}

int ty_onednn_prepare_conv_dx(const ty_library_shape *s, ty_library_call *out, ty_error *err)
{
    return conv_prepare(CONV_DATA, s, false, out, err);
}

int ty_onednn_prepare_conv_dw(const ty_library_shape *s, ty_library_call *out, ty_error *err)
{
    return conv_prepare(CONV_WEIGHTS, s, false, out, err);
}

int ty_onednn_prepare_any_conv(const ty_library_shape *s, ty_library_call *out, ty_error *err)
{
    return conv_prepare(CONV_FORWARD, s, true, out, err);
}

int ty_onednn_prepare_any_conv_dx(const ty_library_shape *s, ty_library_call *out, ty_error *err)
{
    return conv_prepare(CONV_DATA, s, true, out, err);
}

int ty_onednn_prepare_any_conv_dw(const ty_library_shape *s, ty_library_call *out, ty_error *err)
{
    return conv_prepare(CONV_WEIGHTS, s, true, out, err);
}
