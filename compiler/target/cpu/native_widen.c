/* native_widen.c - an op on 16-bit floats by the call for float32: operands are widened into scratch memory, the call
 * runs there, and the results are rounded, once, to nearest even. What a processor with 16-bit products computes
 * differs in the order of its float32 sums alone, so that a recipe for such a processor can be tried on any other. */
#include "compiler/target/cpu/native.h"

#include "compiler/ops/op.h"
#include "compiler/target/cpu/clones.h"

#include <stdlib.h>
#include <string.h>

#define WIDEN_LINE 64

enum { WIDEN_STRETCH = 4096 }; /* elements that a thread converts at a time */

typedef struct widen_part {
    ty_dtype dtype;
    int64_t elems;
    size_t at; /* in scratch memory, where the float32 form lies; SIZE_MAX: used as it is */
} widen_part;

typedef struct widen_call {
    ty_library_call inner;
    widen_part in[TY_LIBRARY_MAX_IN], res[TY_MAX_RESULTS];
    int n_in, n_res;
    size_t inner_at; /* the inner call's scratch memory */
} widen_call;

static bool widen_is_short(ty_dtype dtype)
{
    return dtype == TY_F16 || dtype == TY_BF16;
}

/* ---- conversions, by bits, so that they are vectors; as base/tensor.h has them ---- */

TY_CPU_INLINE float widen_of_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

TY_CPU_INLINE uint32_t widen_to_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

TY_CPU_INLINE float widen_f16(uint16_t h)
{
    float finite = widen_of_bits((h & 0x7FFFu) << 13) * 0x1p112f; /* exact, subnormal numbers too */
    uint32_t special = (h & 0x7C00u) == 0x7C00u ? 0x7F800000u : 0;
    return widen_of_bits(widen_to_bits(finite) | special | (h & 0x8000u) << 16);
}

TY_CPU_INLINE uint16_t narrow_f16(float x)
{
    uint32_t u = widen_to_bits(x), a = u & 0x7FFFFFFFu;
    uint32_t normal = (a - 0x38000000u + 0xFFFu + (a >> 13 & 1)) >> 13;
    uint32_t small = widen_to_bits(widen_of_bits(a) + 0.5f) - 0x3F000000u; /* the sum rounds to multiples of 2^-24 */
    uint32_t r = a < 0x38800000u ? small : a < 0x477FF000u ? normal : 0x7C00u;
    r = a > 0x7F800000u ? 0x7E00u | (a >> 13 & 0x3FFu) : r;
    return (uint16_t)(r | (u >> 16 & 0x8000u));
}

TY_CPU_INLINE float widen_bf16(uint16_t h)
{
    return widen_of_bits((uint32_t)h << 16);
}

TY_CPU_INLINE uint16_t narrow_bf16(float x)
{
    uint32_t u = widen_to_bits(x), r = (u + 0x7FFFu + (u >> 16 & 1)) >> 16;
    return (uint16_t)((u & 0x7FFFFFFFu) > 0x7F800000u ? u >> 16 | 64u : r);
}

#define WIDEN_CONVERSION(name, from_type, to_type, convert)                                     \
    TY_CPU_CLONES static void name(const from_type *restrict from, to_type *restrict to, int n) \
    {                                                                                           \
        _Pragma("omp simd") for (int i = 0; i < n; i++) to[i] = convert(from[i]);               \
    }
WIDEN_CONVERSION(load_f16, uint16_t, float, widen_f16)
WIDEN_CONVERSION(load_bf16, uint16_t, float, widen_bf16)
WIDEN_CONVERSION(store_f16, float, uint16_t, narrow_f16)
WIDEN_CONVERSION(store_bf16, float, uint16_t, narrow_bf16)

void ty_native_load_short(ty_dtype dtype, const uint16_t *from, float *to, int n)
{
    (dtype == TY_BF16 ? load_bf16 : load_f16)(from, to, n);
}

void ty_native_store_short(ty_dtype dtype, const float *from, uint16_t *to, int n)
{
    (dtype == TY_BF16 ? store_bf16 : store_f16)(from, to, n);
}

static int widen_stretch(const widen_part *p, int64_t at)
{
    return (int)(p->elems - at < WIDEN_STRETCH ? p->elems - at : WIDEN_STRETCH);
}

static void widen_load(const widen_part *p, const uint16_t *from, float *to)
{
#pragma omp parallel for schedule(static)
    for (int64_t at = 0; at < p->elems; at += WIDEN_STRETCH)
        ty_native_load_short(p->dtype, from + at, to + at, widen_stretch(p, at));
}

static void widen_store(const widen_part *p, const float *from, uint16_t *to)
{
#pragma omp parallel for schedule(static)
    for (int64_t at = 0; at < p->elems; at += WIDEN_STRETCH)
        ty_native_store_short(p->dtype, from + at, to + at, widen_stretch(p, at));
}

static void widen_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const widen_call *c = prepared;
    const void *wide_in[TY_LIBRARY_MAX_IN];
    void *wide_out[TY_MAX_RESULTS];
    char *memory = scratch;
    for (int i = 0; i < c->n_in; i++) {
        bool copied = c->in[i].at != SIZE_MAX && in[i]; /* zeros that scatter fills in by itself stay NULL */
        wide_in[i] = copied ? memory + c->in[i].at : in[i];
        if (copied)
            widen_load(&c->in[i], in[i], (float *)(memory + c->in[i].at));
    }
    for (int i = 0; i < c->n_res; i++)
        wide_out[i] = c->res[i].at == SIZE_MAX ? out[i] : memory + c->res[i].at;
    c->inner.run(c->inner.prepared, wide_in, wide_out, memory + c->inner_at);
    for (int i = 0; i < c->n_res; i++)
        if (c->res[i].at != SIZE_MAX)
            widen_store(&c->res[i], wide_out[i], out[i]);
}

static void widen_release(void *prepared)
{
    widen_call *c = prepared;
    ty_library_release(&c->inner);
    free(c);
}

/* Notes a part and makes its type float32; *size grows by its place. */
static void widen_part_of(widen_part *p, ty_type *type, size_t *size)
{
    *p = (widen_part){(ty_dtype)type->dtype, ty_type_elems(type), SIZE_MAX};
    if (!widen_is_short(p->dtype))
        return;
    type->dtype = TY_F32;
    p->at = *size;
    *size += (ty_type_bytes(type) + WIDEN_LINE - 1) / WIDEN_LINE * WIDEN_LINE;
}

int ty_native_prepare_widened(ty_op op, const ty_library_shape *shape, ty_library_prepare_fn *inner,
                              ty_library_call *out, ty_error *err)
{
    ty_type in[TY_LIBRARY_MAX_IN], res[TY_MAX_RESULTS];
    ty_attr attr = *shape->attr;
    widen_call *c = calloc(1, sizeof *c);
    if (!c)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a prepared call of \"%s\"", ty_op_row_of(op)->text);
    memcpy(in, shape->in, sizeof *in * (size_t)shape->n_in);
    memcpy(res, shape->res, sizeof *res * (size_t)shape->n_res);
    for (; c->n_in < shape->n_in; c->n_in++)
        widen_part_of(&c->in[c->n_in], &in[c->n_in], &c->inner_at);
    for (; c->n_res < shape->n_res; c->n_res++)
        widen_part_of(&c->res[c->n_res], &res[c->n_res], &c->inner_at);
    if (widen_is_short((ty_dtype)attr.type.dtype))
        attr.type.dtype = TY_F32;
    ty_library_shape wide = *shape;
    wide.attr = &attr;
    wide.in = in;
    wide.res = res;
    if (inner(&wide, &c->inner, err) < 0) {
        free(c);
        return -1;
    }
    *out = (ty_library_call){.run = widen_run,
                             .release = widen_release,
                             .prepared = c,
                             .scratch_bytes = c->inner_at + c->inner.scratch_bytes,
                             .text = "float32, rounded"};
    return 0;
}
