/* product.h - what a dot multiplies, as its implementations see it. */
#ifndef TY_TARGET_CPU_PRODUCT_H
#define TY_TARGET_CPU_PRODUCT_H

#include "compiler/target/cpu/library.h"

/* a [batch, m, k], b [batch, k, n], result [batch, m, n]; a third operand is added to that. */
typedef struct ty_product {
    int64_t batch, m, n, k;
    bool trans_a, trans_b, adds; /* trans: its last two dimensions lie the other way round in memory */
} ty_product;

ty_product ty_product_of(const ty_library_shape *shape);
/* Multiplications and additions. */
double ty_product_flops(const ty_product *p);
/* "onednn sgemm TN+ 1x512x256x64": how, its form, batch x m x n x k. */
void ty_product_text(const ty_product *p, const char *how, char *out, size_t n_bytes);

#endif
