/* products.c - the products and convolutions of a step beside bare calls of oneDNN of the same shapes.
 *
 *     ours gpt2 DIR --calls | products [--threads N]
 *
 * Reads the table of calls (bench/README.md), and for each float32 product in it runs oneDNN's sgemm and a matmul
 * primitive on operands of its own: the same shape and transpositions, nothing around it. Operands are taken in turn
 * from memory larger than the caches, as in a step. One line a shape: how often it comes, its time in the step, the
 * bare times (medians), and step / best bare; the last line adds up. What is over 1 is what we lose around the library,
 * or by not taking it. Convolutions follow, in the same way (products_conv.c).
 */
#include "base/clock.h"

#include <inttypes.h>
#include <omp.h>
#include <stdbool.h>

#include "bench/products.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SHAPES = 256, ROUNDS = PRODUCTS_ROUNDS };
#define POOL_FLOATS ((size_t)96 << 20)

typedef struct product {
    char trans_a, trans_b;
    int64_t batch, m, n, k;
    int times;      /* in a step */
    double step_ms; /* all of them */
} product;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

float *bench_operand(bench *b, int64_t n)
{
    size_t floats = ((size_t)n + 15) / 16 * 16;
    if (b->at + floats > POOL_FLOATS)
        b->at = 0;
    b->at += floats;
    return b->pool + b->at - floats;
}

/* ---- the table of calls ---- */

static product *product_of(product *all, int *n, const product *p)
{
    for (int i = 0; i < *n; i++)
        if (all[i].trans_a == p->trans_a && all[i].trans_b == p->trans_b && all[i].batch == p->batch &&
            all[i].m == p->m && all[i].n == p->n && all[i].k == p->k)
            return &all[i];
    if (*n == MAX_SHAPES)
        return NULL;
    all[*n] = *p;
    return &all[(*n)++];
}

static int products_read(FILE *f, product *all)
{
    char line[1024];
    int n = 0;
    while (fgets(line, sizeof line, f)) {
        product p = {0};
        const char *at = strstr(line, "library dot ");
        double ms = strtod(line, NULL);
        if (bench_conv_read(line))
            continue;
        if (!at || strstr(at, "bfloat16") ||
            sscanf(at, "library dot %*s %*s %c%c %" SCNd64 "x%" SCNd64 "x%" SCNd64 "x%" SCNd64, &p.trans_a, &p.trans_b,
                   &p.batch, &p.m, &p.n, &p.k) != 6)
            continue;
        product *known = product_of(all, &n, &p);
        if (known) {
            known->times++;
            known->step_ms += ms;
        }
    }
    return n;
}

/* ---- bare calls ---- */

static void run_sgemm(bench *b, const product *p)
{
    const float *x = bench_operand(b, p->m * p->k), *w = bench_operand(b, p->k * p->n);
    float *y = bench_operand(b, p->m * p->n);
    dnnl_sgemm(p->trans_a, p->trans_b, p->m, p->n, p->k, 1, x, p->trans_a == 'T' ? p->m : p->k, w,
               p->trans_b == 'T' ? p->k : p->n, 0, y, p->n);
}

double bench_median_ms(double ms[ROUNDS])
{
    qsort(ms, ROUNDS, sizeof *ms, compare);
    return ms[ROUNDS / 2];
}

static double run_primitive(bench *b, dnnl_primitive_t primitive, dnnl_exec_arg_t *args, const size_t *bytes)
{
    double ms[ROUNDS];
    for (int i = -1; i < ROUNDS; i++) {
        for (int k = 0; k < 3; k++)
            dnnl_memory_set_data_handle_v2(args[k].memory, bench_operand(b, (int64_t)(bytes[k] / sizeof(float))),
                                           b->stream);
        int64_t start = ty_clock_ns();
        dnnl_primitive_execute(primitive, b->stream, 3, args);
        if (i >= 0)
            ms[i] = 1e-6 * (double)(ty_clock_ns() - start);
    }
    return bench_median_ms(ms);
}

double bench_primitive_ms(bench *b, dnnl_primitive_desc_t pd, const dnnl_memory_desc_t *const desc[3], const int arg[3])
{
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[3];
    size_t bytes[3];
    if (dnnl_primitive_create(&primitive, pd) != dnnl_success) {
        dnnl_primitive_desc_destroy(pd);
        return -1;
    }
    for (int i = 0; i < 3; i++) {
        args[i].arg = arg[i];
        bytes[i] = dnnl_memory_desc_get_size(desc[i]);
        dnnl_memory_create(&args[i].memory, desc[i], b->engine, b->pool);
    }
    double ms = run_primitive(b, primitive, args, bytes);
    for (int i = 0; i < 3; i++)
        dnnl_memory_destroy(args[i].memory);
    dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(pd);
    return ms;
}

static double sgemm_ms(bench *b, const product *p)
{
    double ms[ROUNDS];
    if (p->batch > 1)
        return -1;
    run_sgemm(b, p);
    for (int i = 0; i < ROUNDS; i++) {
        int64_t start = ty_clock_ns();
        run_sgemm(b, p);
        ms[i] = 1e-6 * (double)(ty_clock_ns() - start);
    }
    return bench_median_ms(ms);
}

static dnnl_memory_desc_t describe(const product *p, int64_t rows, int64_t columns, bool turned)
{
    dnnl_memory_desc_t desc;
    int skip = p->batch == 1;
    const dnnl_dims_t dims = {p->batch, rows, columns};
    const dnnl_dims_t strides = {rows * columns, turned ? 1 : columns, turned ? rows : 1};
    dnnl_memory_desc_init_by_strides(&desc, 3 - skip, dims + skip, dnnl_f32, strides + skip);
    return desc;
}

static double matmul_ms(bench *b, const product *p)
{
    dnnl_memory_desc_t desc[3] = {describe(p, p->m, p->k, p->trans_a == 'T'),
                                  describe(p, p->k, p->n, p->trans_b == 'T'), describe(p, p->m, p->n, false)};
    const dnnl_memory_desc_t *const operand[3] = {&desc[0], &desc[1], &desc[2]};
    dnnl_matmul_desc_t op;
    dnnl_primitive_desc_t pd;
    if (dnnl_matmul_desc_init(&op, &desc[0], &desc[1], NULL, &desc[2]) != dnnl_success ||
        dnnl_primitive_desc_create(&pd, &op, NULL, b->engine, NULL) != dnnl_success)
        return -1;
    return bench_primitive_ms(b, pd, operand, (const int[]){DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST});
}

/* ---- the table ---- */

static void products_print(bench *b, const product *all, int n)
{
    double step = 0, bare = 0, flops = 0;
    printf("%-28s %5s %9s %9s %9s %9s %8s\n", "product", "times", "step ms", "sgemm ms", "matmul ms", "GFLOP/s",
           "step/bare");
    for (int i = 0; i < n; i++) {
        const product *p = &all[i];
        double s = sgemm_ms(b, p), m = matmul_ms(b, p), best = s < 0 || (m > 0 && m < s) ? m : s;
        double work = 2.0 * (double)p->batch * (double)p->m * (double)p->n * (double)p->k;
        char name[96];
        snprintf(name, sizeof name, "%c%c %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64, p->trans_a, p->trans_b,
                 p->batch, p->m, p->n, p->k);
        printf("%-28s %5d %9.3f %9.3f %9.3f %9.1f %8.3f\n", name, p->times, p->step_ms / p->times, s, m,
               1e-6 * work / (p->step_ms / p->times), p->step_ms / p->times / best);
        step += p->step_ms;
        bare += best * p->times;
        flops += work * p->times;
    }
    printf("all: step %.1f ms, bare %.1f ms, step / bare %.3f; %.1f GFLOP, %.1f GFLOP/s in the step, %.1f bare\n", step,
           bare, step / bare, 1e-9 * flops, 1e-6 * flops / step, 1e-6 * flops / bare);
}

int main(int argc, char **argv)
{
    static product all[MAX_SHAPES];
    bench b = {.pool = aligned_alloc(64, POOL_FLOATS * sizeof(float))};
    if (argc == 3 && strcmp(argv[1], "--threads") == 0 && atoi(argv[2]) > 0)
        omp_set_num_threads(atoi(argv[2]));
    else if (argc != 1) {
        fprintf(stderr, "usage: ours WORK DIR --calls | products [--threads N]\n");
        return 64;
    }
    int n = products_read(stdin, all);
    if (n == 0 || !b.pool || dnnl_engine_create(&b.engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&b.stream, b.engine, dnnl_stream_default_flags) != dnnl_success) {
        fprintf(stderr, "products: %s\n",
                n ? "no memory, or oneDNN does not start" : "no products in the table of calls");
        return 1;
    }
    for (size_t i = 0; i < POOL_FLOATS; i++)
        b.pool[i] = (float)(i % 13) * 0.1f;
    products_print(&b, all, n);
    bench_conv_print(&b);
    free(b.pool);
    return 0;
}
