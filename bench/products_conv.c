/* products_conv.c - the convolutions of a step beside bare calls of oneDNN. See products.c.
 *
 * Bare: a primitive on tensors that lie as oneDNN likes them best, so that nothing is copied; by direct sums and, where
 * there is one, by Winograd's algorithm. The better of both counts. `last` is the direct one of channels-last x and y,
 * with weights as it likes them: what it takes more than `direct` is the price of that layout, and what `alone`, the
 * step's own call, takes more than it are copies. Winograd's algorithm is our own in the step. */
#include "bench/products.h"
#include "compiler/ops/sliding.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CONVS = 256, FORWARD = 0, DATA, WEIGHTS };

typedef struct conv {
    int kind;
    dnnl_dims_t x, w, y, stride, lo, hi, dilation;
    int64_t groups;
    uint32_t flags; /* TY_SLIDING_* of the step's own call */
    int times;
    double step_ms; /* all of them */
} conv;

static conv convs[MAX_CONVS];
static int n_convs;

/* ---- the table of calls ---- */

static bool conv_parse(const char *line, conv *c)
{
    static const char *const names[] = {"library conv ", "library conv_dx ", "library conv_dw "};
    const char *at = NULL;
    for (c->kind = 0; c->kind < 3 && !(at = strstr(line, names[c->kind])); c->kind++)
        ;
    if (!at || strstr(at, "bf16"))
        return false;
    if (sscanf(at,
               "library %*s %*s %" SCNd64 "x%" SCNd64 "x%" SCNd64 "x%" SCNd64 " by %" SCNd64 "x%" SCNd64 "x%" SCNd64
               "x%" SCNd64 " s%" SCNd64 "x%" SCNd64 " p%" SCNd64 "x%" SCNd64 "+%" SCNd64 "x%" SCNd64 " d%" SCNd64
               "x%" SCNd64 " g%" SCNd64,
               &c->x[0], &c->x[1], &c->x[2], &c->x[3], &c->w[0], &c->w[1], &c->w[2], &c->w[3], &c->stride[0],
               &c->stride[1], &c->lo[0], &c->lo[1], &c->hi[0], &c->hi[1], &c->dilation[0], &c->dilation[1],
               &c->groups) != 17)
        return false;
    char how[64] = "";
    sscanf(at, "library %*s %63s", how);
    c->flags = (strstr(how, "wino") ? TY_SLIDING_WINOGRAD : 0) | (strstr(at, " last: ") ? TY_SLIDING_LAST : 0);
    c->y[0] = c->x[0], c->y[1] = c->w[0];
    for (int i = 0; i < 2; i++)
        c->y[2 + i] = (c->x[2 + i] + c->lo[i] + c->hi[i] - (c->w[2 + i] - 1) * c->dilation[i] - 1) / c->stride[i] + 1;
    return true;
}

bool bench_conv_read(const char *line)
{
    conv c = {.times = 1, .step_ms = strtod(line, NULL)};
    if (!conv_parse(line, &c))
        return false;
    for (int i = 0; i < n_convs; i++) {
        conv *k = &convs[i];
        if (k->kind == c.kind && k->groups == c.groups && memcmp(k->x, c.x, sizeof c.x) == 0 &&
            memcmp(k->w, c.w, sizeof c.w) == 0 && memcmp(k->stride, c.stride, sizeof c.stride) == 0 &&
            memcmp(k->y, c.y, sizeof c.y) == 0) {
            k->times++;
            k->step_ms += c.step_ms;
            return true;
        }
    }
    if (n_convs < MAX_CONVS)
        convs[n_convs++] = c;
    return true;
}

/* ---- bare calls ---- */

static void conv_memories(const conv *c, dnnl_format_tag_t tag, dnnl_memory_desc_t desc[3])
{
    const dnnl_dims_t grouped = {c->groups, c->w[0] / c->groups, c->w[1], c->w[2], c->w[3]};
    bool one = c->groups == 1;
    dnnl_memory_desc_init_by_tag(&desc[0], 4, c->x, dnnl_f32, tag);
    dnnl_memory_desc_init_by_tag(&desc[1], one ? 4 : 5, one ? c->w : grouped, dnnl_f32, dnnl_format_tag_any);
    dnnl_memory_desc_init_by_tag(&desc[2], 4, c->y, dnnl_f32, tag);
}

/* A primitive to ask for: x and y in any layout or in one. */
typedef struct conv_way {
    dnnl_alg_kind_t how;
    dnnl_format_tag_t tag;
} conv_way;

static dnnl_status_t conv_describe(const conv *c, int kind, conv_way way, dnnl_convolution_desc_t *out)
{
    dnnl_memory_desc_t d[3];
    dnnl_dims_t dilates = {c->dilation[0] - 1, c->dilation[1] - 1};
    dnnl_alg_kind_t how = way.how;
    conv_memories(c, way.tag, d);
    if (kind == FORWARD)
        return dnnl_dilated_convolution_forward_desc_init(out, dnnl_forward_training, how, &d[0], &d[1], NULL, &d[2],
                                                          c->stride, dilates, c->lo, c->hi);
    if (kind == DATA)
        return dnnl_dilated_convolution_backward_data_desc_init(out, how, &d[0], &d[1], &d[2], c->stride, dilates,
                                                                c->lo, c->hi);
    return dnnl_dilated_convolution_backward_weights_desc_init(out, how, &d[0], &d[1], NULL, &d[2], c->stride, dilates,
                                                               c->lo, c->hi);
}

static bool conv_choose(const bench *b, const conv *c, conv_way way, dnnl_primitive_desc_t *pd)
{
    dnnl_convolution_desc_t forward, own;
    dnnl_primitive_desc_t hint = NULL;
    if (conv_describe(c, FORWARD, way, &forward) != dnnl_success ||
        conv_describe(c, c->kind, way, &own) != dnnl_success)
        return false;
    if (c->kind != FORWARD && dnnl_primitive_desc_create(&hint, &forward, NULL, b->engine, NULL) != dnnl_success)
        return false;
    bool found = dnnl_primitive_desc_create(pd, &own, NULL, b->engine, hint) == dnnl_success;
    if (hint)
        dnnl_primitive_desc_destroy(hint);
    return found;
}

static void conv_bare(bench *b, const conv *c, conv_way way, bench_call *out)
{
    static const struct {
        dnnl_query_t query;
        int arg;
    } operand[3][3] = {
        [FORWARD] = {{dnnl_query_src_md, DNNL_ARG_SRC},
                     {dnnl_query_weights_md, DNNL_ARG_WEIGHTS},
                     {dnnl_query_dst_md, DNNL_ARG_DST}},
        [DATA] = {{dnnl_query_diff_src_md, DNNL_ARG_DIFF_SRC},
                  {dnnl_query_weights_md, DNNL_ARG_WEIGHTS},
                  {dnnl_query_diff_dst_md, DNNL_ARG_DIFF_DST}},
        [WEIGHTS] = {{dnnl_query_src_md, DNNL_ARG_SRC},
                     {dnnl_query_diff_weights_md, DNNL_ARG_DIFF_WEIGHTS},
                     {dnnl_query_diff_dst_md, DNNL_ARG_DIFF_DST}},
    };
    dnnl_primitive_desc_t pd;
    const dnnl_memory_desc_t *desc[3];
    int arg[3];
    *out = (bench_call){.run = NULL};
    if (!conv_choose(b, c, way, &pd))
        return;
    for (int i = 0; i < 3; i++) {
        desc[i] = dnnl_primitive_desc_query_md(pd, operand[c->kind][i].query, 0);
        arg[i] = operand[c->kind][i].arg;
    }
    bench_primitive(b, pd, desc, arg, out);
}

/* The step's own call. */
static void conv_own(const bench *b, const conv *c, bench_call *out)
{
    static const ty_op ops[] = {[FORWARD] = TY_OP_CONV, [DATA] = TY_OP_CONV_DX, [WEIGHTS] = TY_OP_CONV_DW};
    ty_attr attr = {.n = 2, .groups = c->groups, .flags = c->flags};
    const ty_type w = ty_type_make(TY_F32, 4, c->w), x_first = ty_type_make(TY_F32, 4, c->x),
                  y_first = ty_type_make(TY_F32, 4, c->y);
    for (int i = 0; i < 2; i++) {
        attr.step[i] = c->stride[i];
        attr.dil[i] = c->dilation[i];
        attr.lo[i] = c->lo[i];
        attr.hi[i] = c->hi[i];
    }
    ty_type x = ty_sliding_laid(&attr, &x_first), y = ty_sliding_laid(&attr, &y_first);
    const ty_type in[3][2] = {[FORWARD] = {x, w}, [DATA] = {y, w}, [WEIGHTS] = {x, y}};
    const ty_type *res[3] = {[FORWARD] = &y, [DATA] = &x, [WEIGHTS] = &w};
    attr.type = *res[c->kind];
    bench_prepare(b, ops[c->kind], &attr, in[c->kind], res[c->kind], out);
}

static void conv_replay(bench *b, const conv *c, bench_call calls[4])
{
    for (int i = 0; i < 4; i++)
        calls[i] = (bench_call){.run = NULL};
    conv_own(b, c, &calls[0]);
    conv_bare(b, c, (conv_way){dnnl_convolution_direct, dnnl_format_tag_any}, &calls[1]);
    if (c->groups == 1 && c->w[2] == 3)
        conv_bare(b, c, (conv_way){dnnl_convolution_winograd, dnnl_format_tag_any}, &calls[2]);
    conv_bare(b, c, (conv_way){dnnl_convolution_direct, dnnl_acdb}, &calls[3]);
    bench_replay(b, calls, 4);
}

void bench_conv_print(bench *b)
{
    static const char *const names[] = {"conv", "conv_dx", "conv_dw"};
    double step = 0, alone = 0, bare = 0, flops = 0;
    if (n_convs == 0)
        return;
    printf("%-8s %-40s %5s %9s %9s %9s %9s %9s %9s %10s\n", "", "convolution", "times", "step ms", "alone ms", "direct",
           "winograd", "last", "step/bare", "alone/bare");
    for (int i = 0; i < n_convs; i++) {
        const conv *c = &convs[i];
        bench_call calls[4];
        conv_replay(b, c, calls);
        double direct = calls[1].ms, winograd = calls[2].ms, own = calls[0].ms, in_step = c->step_ms / c->times;
        double best = direct < 0 || (winograd > 0 && winograd < direct) ? winograd : direct;
        char name[96];
        snprintf(name, sizeof name,
                 "%" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64 " by %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64
                 " s%" PRId64,
                 c->x[0], c->x[1], c->x[2], c->x[3], c->w[0], c->w[1], c->w[2], c->w[3], c->stride[0]);
        printf("%-8s %-40s %5d %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f %10.3f\n", names[c->kind], name, c->times, in_step,
               own, direct, winograd, calls[3].ms, in_step / best, own / best);
        step += c->step_ms;
        alone += own * c->times;
        bare += best * c->times;
        flops +=
            2.0 * (double)(c->y[0] * c->y[1] * c->y[2] * c->y[3]) * (double)(c->w[1] * c->w[2] * c->w[3]) * c->times;
    }
    printf("convolutions: step %.1f ms, bare %.1f ms, step / bare %.3f; alone %.1f ms, alone / bare %.3f; %.1f GFLOP, "
           "%.1f GFLOP/s in the step\n",
           step, bare, step / bare, alone, alone / bare, 1e-9 * flops, 1e-6 * flops / step);
}
