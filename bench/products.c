/* products.c - the products and convolutions of a step beside bare calls of oneDNN of the same shapes.
 *
 *     ours gpt2 DIR --calls | products [--threads N]
 *
 * Reads the table of calls (bench/README.md), and for each float32 product in it replays three calls in turn: the one
 * that the step makes (`alone`), oneDNN's sgemm and a matmul primitive, of the same shape and transpositions. Operands
 * are taken in turn from memory larger than the caches. One line a shape: how often it comes, its time in the step, the
 * replayed times, and the step's and the call's own over the better bare one; the last line adds up. What is over 1 in
 * step / bare is what we lose around the library, or by not taking it; alone / bare leaves out what the step's
 * surroundings do to a call. Convolutions follow, in the same way (products_conv.c).
 */
#include "bench/products.h"
#include "compiler/ops/op.h"

#include <inttypes.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SHAPES = 256 };

typedef struct product {
    char trans_a, trans_b;
    int64_t batch, m, n, k;
    int times;      /* in a step */
    double step_ms; /* all of them */
} product;

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

static void run_sgemm(bench *b, const bench_call *c)
{
    const product *p = c->shape;
    const float *x = bench_operand(b, p->m * p->k), *w = bench_operand(b, p->k * p->n);
    float *y = bench_operand(b, p->m * p->n);
    dnnl_sgemm(p->trans_a, p->trans_b, p->m, p->n, p->k, 1, x, p->trans_a == 'T' ? p->m : p->k, w,
               p->trans_b == 'T' ? p->k : p->n, 0, y, p->n);
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

static void matmul(bench *b, const product *p, bench_call *out)
{
    dnnl_memory_desc_t desc[3] = {describe(p, p->m, p->k, p->trans_a == 'T'),
                                  describe(p, p->k, p->n, p->trans_b == 'T'), describe(p, p->m, p->n, false)};
    const dnnl_memory_desc_t *const operand[3] = {&desc[0], &desc[1], &desc[2]};
    dnnl_matmul_desc_t op;
    dnnl_primitive_desc_t pd;
    *out = (bench_call){.run = NULL};
    if (dnnl_matmul_desc_init(&op, &desc[0], &desc[1], NULL, &desc[2]) == dnnl_success &&
        dnnl_primitive_desc_create(&pd, &op, NULL, b->engine, NULL) == dnnl_success)
        bench_primitive(b, pd, operand, (const int[]){DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}, out);
}

/* The step's own call. */
static void own(const bench *b, const product *p, bench_call *out)
{
    bool a = p->trans_a == 'T', w = p->trans_b == 'T';
    int skip = p->batch == 1;
    const int64_t dims[3][3] = {{p->batch, a ? p->k : p->m, a ? p->m : p->k},
                                {p->batch, w ? p->n : p->k, w ? p->k : p->n},
                                {p->batch, p->m, p->n}};
    const ty_type in[2] = {ty_type_make(TY_F32, 3 - skip, dims[0] + skip),
                           ty_type_make(TY_F32, 3 - skip, dims[1] + skip)};
    const ty_type res = ty_type_make(TY_F32, 3 - skip, dims[2] + skip);
    const ty_attr attr = {.flags = (a ? TY_DOT_TRANS_A : 0) | (w ? TY_DOT_TRANS_B : 0)};
    bench_prepare(b, TY_OP_DOT, &attr, in, &res, out);
}

/* ---- the table ---- */

static void products_print(bench *b, const product *all, int n)
{
    double step = 0, alone = 0, bare = 0, flops = 0;
    printf("%-28s %5s %9s %9s %9s %9s %9s %9s %10s\n", "product", "times", "step ms", "alone ms", "sgemm ms",
           "matmul ms", "GFLOP/s", "step/bare", "alone/bare");
    for (int i = 0; i < n; i++) {
        const product *p = &all[i];
        bench_call calls[3] = {[1] = {.run = p->batch == 1 ? run_sgemm : NULL, .shape = p}};
        own(b, p, &calls[0]);
        matmul(b, p, &calls[2]);
        bench_replay(b, calls, 3);
        double ours = calls[0].ms, s = calls[1].ms, m = calls[2].ms, best = s < 0 || (m > 0 && m < s) ? m : s;
        double work = 2.0 * (double)p->batch * (double)p->m * (double)p->n * (double)p->k;
        char name[96];
        snprintf(name, sizeof name, "%c%c %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64, p->trans_a, p->trans_b,
                 p->batch, p->m, p->n, p->k);
        printf("%-28s %5d %9.3f %9.3f %9.3f %9.3f %9.1f %9.3f %10.3f\n", name, p->times, p->step_ms / p->times, ours, s,
               m, 1e-6 * work / (p->step_ms / p->times), p->step_ms / p->times / best, ours / best);
        step += p->step_ms;
        alone += ours * p->times;
        bare += best * p->times;
        flops += work * p->times;
    }
    printf("all: step %.1f ms, bare %.1f ms, step / bare %.3f; alone %.1f ms, alone / bare %.3f; %.1f GFLOP, %.1f "
           "GFLOP/s in the step, %.1f bare\n",
           step, bare, step / bare, alone, alone / bare, 1e-9 * flops, 1e-6 * flops / step, 1e-6 * flops / bare);
}

int main(int argc, char **argv)
{
    static product all[MAX_SHAPES];
    bench b = {.pool = aligned_alloc(64, PRODUCTS_POOL_FLOATS * sizeof(float))};
    if (argc == 3 && strcmp(argv[1], "--threads") == 0 && atoi(argv[2]) > 0)
        omp_set_num_threads(atoi(argv[2]));
    else if (argc != 1) {
        fprintf(stderr, "usage: ours WORK DIR --calls | products [--threads N]\n");
        return 64;
    }
    b.threads = omp_get_max_threads();
    int n = products_read(stdin, all);
    if (n == 0 || !b.pool || dnnl_engine_create(&b.engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&b.stream, b.engine, dnnl_stream_default_flags) != dnnl_success) {
        fprintf(stderr, "products: %s\n",
                n ? "no memory, or oneDNN does not start" : "no products in the table of calls");
        return 1;
    }
    for (size_t i = 0; i < PRODUCTS_POOL_FLOATS; i++)
        b.pool[i] = (float)(i % 13) * 0.1f;
    products_print(&b, all, n);
    bench_conv_print(&b);
    free(b.pool);
    return 0;
}
