/* products_replay.c - calls on operands that no cache holds. See products.h. */
#include "base/clock.h"
#include "bench/products.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

float *bench_operand(bench *b, int64_t n)
{
    size_t floats = ((size_t)n + 15) / 16 * 16;
    if (b->at + floats > PRODUCTS_POOL_FLOATS)
        b->at = 0;
    b->at += floats;
    return b->pool + b->at - floats;
}

static void run_prepared(bench *b, const bench_call *c)
{
    const void *in[2] = {bench_operand(b, c->n[0]), bench_operand(b, c->n[1])};
    void *out[1] = {bench_operand(b, c->n[2])};
    c->prepared.run(c->prepared.prepared, in, out, c->scratch);
}

void bench_prepare(const bench *b, ty_op op, const ty_attr *attr, const ty_type in[2], const ty_type *res,
                   bench_call *out)
{
    const ty_library_shape shape = {.attr = attr, .in = in, .n_in = 2, .res = res, .n_res = 1, .threads = b->threads};
    *out = (bench_call){.n = {ty_type_elems(&in[0]), ty_type_elems(&in[1]), ty_type_elems(res)}};
    if (ty_library_prepare(op, &shape, &out->prepared, NULL) < 0)
        return;
    size_t bytes = (out->prepared.scratch_bytes + 4096) / 64 * 64;
    out->scratch = aligned_alloc(64, bytes);
    if (out->scratch)
        memset(out->scratch, 0, bytes); /* present, as a program's is */
    out->run = out->scratch ? run_prepared : NULL;
}

static void run_primitive(bench *b, const bench_call *c)
{
    for (int i = 0; i < 3; i++)
        dnnl_memory_set_data_handle_v2(c->arg[i].memory, bench_operand(b, c->n[i]), b->stream);
    dnnl_primitive_execute(c->primitive, b->stream, 3, c->arg);
}

void bench_primitive(bench *b, dnnl_primitive_desc_t pd, const dnnl_memory_desc_t *const desc[3], const int arg[3],
                     bench_call *out)
{
    *out = (bench_call){.run = NULL};
    if (dnnl_primitive_create(&out->primitive, pd) == dnnl_success)
        out->run = run_primitive;
    for (int i = 0; i < 3; i++) {
        out->arg[i].arg = arg[i];
        out->n[i] = (int64_t)(dnnl_memory_desc_get_size(desc[i]) / sizeof(float));
        dnnl_memory_create(&out->arg[i].memory, desc[i], b->engine, b->pool);
    }
    dnnl_primitive_desc_destroy(pd);
}

static double now_ms(const bench *b)
{
    struct timespec t;
    if (b->threads > 1 || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0)
        return 1e-6 * (double)ty_clock_ns();
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void call_release(bench_call *c)
{
    ty_library_release(&c->prepared);
    free(c->scratch);
    if (c->primitive)
        dnnl_primitive_destroy(c->primitive);
    for (int i = 0; i < 3; i++)
        if (c->arg[i].memory)
            dnnl_memory_destroy(c->arg[i].memory);
}

void bench_replay(bench *b, bench_call *calls, int n)
{
    for (int i = 0; i < n; i++)
        calls[i].ms = -1;
    for (int round = -1; round < PRODUCTS_ROUNDS; round++)
        for (int i = 0; i < n; i++) {
            if (!calls[i].run)
                continue;
            double start = now_ms(b);
            calls[i].run(b, &calls[i]);
            double ms = now_ms(b) - start;
            if (round == 0 || (round > 0 && ms < calls[i].ms))
                calls[i].ms = ms;
        }
    for (int i = 0; i < n; i++)
        call_release(&calls[i]);
}
