/* linear.h - a product together with what is done to its numbers as they are written: what cuBLASLt calls an epilogue.
 *
 * linear(a, b, x) of p = the product [M, N] of a and b (flags 1 and 2 as of dot), K its sums' length:
 *
 *     index                x           y                    second result
 *     BIAS                 bias [N]    p + x                -
 *     RELU                 bias [N]    max(p + x, 0)        -
 *     RELU_KEEP            bias [N]    max(p + x, 0)        where p + x > 0, a bit each
 *     GELU                 bias [N]    gelu(p + x)          -
 *     GELU_KEEP            bias [N]    gelu(p + x)          p + x [M, N]
 *     RELU_GRAD            kept        p where bit, else 0  -
 *     RELU_GRAD_SUM        kept        p where bit, else 0  the sum of y over M, [N]
 *     GELU_GRAD            kept        p gelu'(x)           -
 *     GELU_GRAD_SUM        kept        p gelu'(x)           the sum of y over M, [N]
 *     SUM_A                -           p                    the sum of a over K, [M]
 *     SUM_B                -           p                    the sum of b over K, [N]
 *
 * gelu is its tanh form. `-` as a result: a number nobody may read. All have the type of a and b but the bits, which
 * are u8 [M, 16 ceil(N / 128)]: bit n % 8 of byte n / 8 of a row, whose length cuBLASLt wants to be a multiple of 128
 * bits.
 */
#ifndef TY_COMPILER_OPS_LINEAR_H
#define TY_COMPILER_OPS_LINEAR_H

#include "compiler/ir/graph.h"

typedef enum ty_linear_kind {
    TY_LINEAR_BIAS,
    TY_LINEAR_RELU,
    TY_LINEAR_RELU_KEEP,
    TY_LINEAR_GELU,
    TY_LINEAR_GELU_KEEP,
    TY_LINEAR_RELU_GRAD,
    TY_LINEAR_RELU_GRAD_SUM,
    TY_LINEAR_GELU_GRAD,
    TY_LINEAR_GELU_GRAD_SUM,
    TY_LINEAR_SUM_A,
    TY_LINEAR_SUM_B,
    TY_N_LINEAR_KINDS
} ty_linear_kind;

/* What stands for x and for the second result. */
typedef enum ty_linear_part {
    TY_LINEAR_NONE,
    TY_LINEAR_COLUMNS,   /* [N] */
    TY_LINEAR_ROWS,      /* [M] */
    TY_LINEAR_ARGUMENTS, /* [M, N] */
    TY_LINEAR_BITS
} ty_linear_part;

ty_linear_part ty_linear_operand(ty_linear_kind kind);
ty_linear_part ty_linear_result(ty_linear_kind kind);

/* Bytes of a row of bits. */
static inline int64_t ty_linear_row_bytes(int64_t n)
{
    return (n + 127) / 128 * 16;
}

#endif
