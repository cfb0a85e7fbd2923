/* products.h - what products.c and products_conv.c share: oneDNN's engine, and operands that no cache holds. */
#ifndef TY_BENCH_PRODUCTS_H
#define TY_BENCH_PRODUCTS_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PRODUCTS_ROUNDS = 7 };

typedef struct bench {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    float *pool;
    size_t at; /* next operand */
} bench;

/* n numbers, from memory that was not touched lately. */
float *bench_operand(bench *b, int64_t n);
double bench_median_ms(double ms[PRODUCTS_ROUNDS]);

/* Runs the primitive that pd describes on two operands and a result: the median of the rounds; -1 if there is none.
 * Takes pd. */
double bench_primitive_ms(bench *b, dnnl_primitive_desc_t pd, const dnnl_memory_desc_t *const desc[3],
                          const int arg[3]);

/* A line of the table of calls: taken if it is a float32 convolution of images, in which case true. */
bool bench_conv_read(const char *line);
/* One line a shape, then all of them together; nothing if there was none. */
void bench_conv_print(bench *b);

#endif
