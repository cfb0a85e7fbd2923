/* products.h - what products.c and products_conv.c share: calls that are replayed on operands that no cache holds
 * (products_replay.c). */
#ifndef TY_BENCH_PRODUCTS_H
#define TY_BENCH_PRODUCTS_H

#include "compiler/target/cpu/library.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PRODUCTS_ROUNDS = 11 };
#define PRODUCTS_POOL_FLOATS ((size_t)96 << 20)

typedef struct bench {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    int threads;
    float *pool;
    size_t at; /* next operand */
} bench;

/* One call of two operands and a result. */
typedef struct bench_call {
    void (*run)(bench *b, const struct bench_call *c); /* NULL: there is none */
    double ms;                                         /* the best of the rounds; -1 */
    int64_t n[3];                                      /* numbers of the operands and of the result */
    ty_library_call prepared;
    void *scratch;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arg[3];
    const void *shape; /* for a `run` of the caller's */
} bench_call;

/* n numbers, from memory that was not touched lately. */
float *bench_operand(bench *b, int64_t n);

/* The call that a step makes, with what it does around the library: copies into other layouts, scratch memory. */
void bench_prepare(const bench *b, ty_op op, const ty_attr *attr, const ty_type in[2], const ty_type *res,
                   bench_call *out);
/* The primitive that pd describes, its two operands and its result. Takes pd. */
void bench_primitive(bench *b, dnnl_primitive_desc_t pd, const dnnl_memory_desc_t *const desc[3], const int arg[3],
                     bench_call *out);
/* Runs the calls in turn, round after round, so that a machine that slows down does so for all of them; fills ms and
 * frees what they hold. On one thread ms is the processor's time, to which other work on the machine hardly adds. */
void bench_replay(bench *b, bench_call *calls, int n);

/* A line of the table of calls: taken if it is a float32 convolution of images, in which case true. */
bool bench_conv_read(const char *line);
/* One line a shape, then all of them together; nothing if there was none. */
void bench_conv_print(bench *b);

#endif
