/* products_conv.c - the convolutions of a step beside bare calls of oneDNN. See products.c.
 *
 * Bare: a primitive on tensors that lie as oneDNN likes them best, so that nothing is copied; by direct sums and, where
 * there is one, by Winograd's algorithm. The better of both counts. */
#include "bench/products.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CONVS = 256, FORWARD = 0, DATA, WEIGHTS };

typedef struct conv {
    int kind;
    dnnl_dims_t x, w, y, stride, lo, hi, dilation;
    int64_t groups;
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

static void conv_memories(const conv *c, dnnl_memory_desc_t desc[3])
{
    const dnnl_dims_t grouped = {c->groups, c->w[0] / c->groups, c->w[1], c->w[2], c->w[3]};
    bool one = c->groups == 1;
    dnnl_memory_desc_init_by_tag(&desc[0], 4, c->x, dnnl_f32, dnnl_format_tag_any);
    dnnl_memory_desc_init_by_tag(&desc[1], one ? 4 : 5, one ? c->w : grouped, dnnl_f32, dnnl_format_tag_any);
    dnnl_memory_desc_init_by_tag(&desc[2], 4, c->y, dnnl_f32, dnnl_format_tag_any);
}

static dnnl_status_t conv_describe(const conv *c, int kind, dnnl_alg_kind_t how, dnnl_convolution_desc_t *out)
{
    dnnl_memory_desc_t d[3];
    dnnl_dims_t dilates = {c->dilation[0] - 1, c->dilation[1] - 1};
    conv_memories(c, d);
    if (kind == FORWARD)
        return dnnl_dilated_convolution_forward_desc_init(out, dnnl_forward_training, how, &d[0], &d[1], NULL, &d[2],
                                                          c->stride, dilates, c->lo, c->hi);
    if (kind == DATA)
        return dnnl_dilated_convolution_backward_data_desc_init(out, how, &d[0], &d[1], &d[2], c->stride, dilates,
                                                                c->lo, c->hi);
    return dnnl_dilated_convolution_backward_weights_desc_init(out, how, &d[0], &d[1], NULL, &d[2], c->stride, dilates,
                                                               c->lo, c->hi);
}

static bool conv_choose(const bench *b, const conv *c, dnnl_alg_kind_t how, dnnl_primitive_desc_t *pd)
{
    dnnl_convolution_desc_t forward, own;
    dnnl_primitive_desc_t hint = NULL;
    if (conv_describe(c, FORWARD, how, &forward) != dnnl_success ||
        conv_describe(c, c->kind, how, &own) != dnnl_success)
        return false;
    if (c->kind != FORWARD && dnnl_primitive_desc_create(&hint, &forward, NULL, b->engine, NULL) != dnnl_success)
        return false;
    bool found = dnnl_primitive_desc_create(pd, &own, NULL, b->engine, hint) == dnnl_success;
    if (hint)
        dnnl_primitive_desc_destroy(hint);
    return found;
}

/* -1: there is none. */
static double conv_ms(bench *b, const conv *c, dnnl_alg_kind_t how)
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
    if (!conv_choose(b, c, how, &pd))
        return -1;
    for (int i = 0; i < 3; i++) {
        desc[i] = dnnl_primitive_desc_query_md(pd, operand[c->kind][i].query, 0);
        arg[i] = operand[c->kind][i].arg;
    }
    return bench_primitive_ms(b, pd, desc, arg);
}

void bench_conv_print(bench *b)
{
    static const char *const names[] = {"conv", "conv_dx", "conv_dw"};
    double step = 0, bare = 0, flops = 0;
    if (n_convs == 0)
        return;
    printf("%-8s %-40s %5s %9s %9s %9s %8s\n", "", "convolution", "times", "step ms", "direct", "winograd",
           "step/bare");
    for (int i = 0; i < n_convs; i++) {
        const conv *c = &convs[i];
        double direct = conv_ms(b, c, dnnl_convolution_direct);
        double winograd = c->groups == 1 && c->w[2] == 3 ? conv_ms(b, c, dnnl_convolution_winograd) : -1;
        double best = direct < 0 || (winograd > 0 && winograd < direct) ? winograd : direct;
        char name[96];
        snprintf(name, sizeof name,
                 "%" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64 " by %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64
                 " s%" PRId64,
                 c->x[0], c->x[1], c->x[2], c->x[3], c->w[0], c->w[1], c->w[2], c->w[3], c->stride[0]);
        printf("%-8s %-40s %5d %9.3f %9.3f %9.3f %8.3f\n", names[c->kind], name, c->times, c->step_ms / c->times,
               direct, winograd, c->step_ms / c->times / best);
        step += c->step_ms;
        bare += best * c->times;
        flops +=
            2.0 * (double)(c->y[0] * c->y[1] * c->y[2] * c->y[3]) * (double)(c->w[1] * c->w[2] * c->w[3]) * c->times;
    }
    printf("convolutions: step %.1f ms, bare %.1f ms, step / bare %.3f; %.1f GFLOP, %.1f GFLOP/s in the step\n", step,
           bare, step / bare, 1e-9 * flops, 1e-6 * flops / step);
}
