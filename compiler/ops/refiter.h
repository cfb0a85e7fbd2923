/* refiter.h - walking over tensors in the reference functions.
 *
 * Clear before fast: an index vector that counts like an odometer, strides, and the split of a shape around one axis.
 *
 *     ty_refiter it;
 *     for (ty_refiter_start(&it, &res->type); it.more; ty_refiter_next(&it))
 *         ty_refiter_copy(res, it.flat, &in[0], ty_refiter_dot(&it, stride));
 */
#ifndef TY_COMPILER_OPS_REFITER_H
#define TY_COMPILER_OPS_REFITER_H

#include "compiler/ops/op.h"

/* A position in a row-major tensor. `more` is false once all elements were visited (at once if there are none). */
typedef struct ty_refiter {
    int rank;
    bool more;
    int64_t flat;            /* number of the element, row-major */
    int64_t at[TY_MAX_RANK]; /* its index along each axis */
    int64_t dim[TY_MAX_RANK];
} ty_refiter;

/* Visits the box of `rank` dims in row-major order. */
static inline void ty_refiter_start_dims(ty_refiter *it, int rank, const int64_t *dim)
{
    *it = (ty_refiter){.rank = rank, .more = true};
    for (int i = 0; i < rank; i++) {
        it->dim[i] = dim[i];
        it->more = it->more && dim[i] > 0;
    }
}

static inline void ty_refiter_start(ty_refiter *it, const ty_type *type)
{
    ty_refiter_start_dims(it, type->rank, type->dim);
}

static inline void ty_refiter_next(ty_refiter *it)
{
    it->flat++;
    for (int i = it->rank - 1; i >= 0; i--) {
        if (++it->at[i] < it->dim[i])
            return;
        it->at[i] = 0;
    }
    it->more = false;
}

/* Sum of at[i] * stride[i]: the flat position in another tensor. */
static inline int64_t ty_refiter_dot(const ty_refiter *it, const int64_t *stride)
{
    int64_t p = 0;
    for (int i = 0; i < it->rank; i++)
        p += it->at[i] * stride[i];
    return p;
}

/* Row-major strides in elements. */
static inline void ty_refiter_strides(const ty_type *type, int64_t *stride)
{
    int64_t s = 1;
    for (int i = type->rank - 1; i >= 0; i--) {
        stride[i] = s;
        s *= type->dim[i];
    }
}

/* A shape seen around one axis: [outer, n, inner]; element (o, k, i) lies at (o * n + k) * inner + i. */
static inline void ty_refiter_split(const ty_type *type, int64_t axis, int64_t *outer, int64_t *n, int64_t *inner)
{
    *outer = 1;
    *inner = 1;
    for (int i = 0; i < (int)axis; i++)
        *outer *= type->dim[i];
    for (int i = (int)axis + 1; i < type->rank; i++)
        *inner *= type->dim[i];
    *n = type->dim[axis];
}

/* dst[d] = src[s]; both floats or both integers. */
static inline void ty_refiter_copy(ty_ref *dst, int64_t d, const ty_ref *src, int64_t s)
{
    if (dst->f)
        dst->f[d] = src->f[s];
    else
        dst->i[d] = src->i[s];
}

/* v as an integer of the dtype holds it: the low bits, sign-extended if it is signed; u64 by bit pattern; bool v != 0.
 */
static inline int64_t ty_refiter_wrap(ty_dtype dtype, int64_t v)
{
    switch (dtype) {
    case TY_BOOL:
        return v != 0;
    case TY_I8:
        return (int8_t)v;
    case TY_U8:
        return (uint8_t)v;
    case TY_I16:
        return (int16_t)v;
    case TY_U16:
        return (uint16_t)v;
    case TY_I32:
        return (int32_t)v;
    case TY_U32:
        return (uint32_t)v;
    default:
        return v;
    }
}

#endif
