/* native_widen.c - an op on 16-bit floats by the call for float32: operands are widened into scratch memory, the call
 * runs there, and the results are rounded, once, to nearest even. What a processor with 16-bit products computes
 * differs in the order of its float32 sums alone, so that a recipe for such a processor can be tried on any other. */
#include "compiler/target/cpu/native.h"

#include "compiler/ops/op.h"

#include <stdlib.h>
#include <string.h>

#define WIDEN_MAX  16
#define WIDEN_LINE 64

typedef struct widen_part {
    ty_dtype dtype;
    int64_t elems;
    size_t at; /* in scratch memory, where the float32 form lies; SIZE_MAX: used as it is */
} widen_part;

typedef struct widen_call {
    ty_library_call inner;
    widen_part in[WIDEN_MAX], res[TY_MAX_RESULTS];
    int n_in, n_res;
    size_t inner_at; /* the inner call's scratch memory */
} widen_call;

static bool widen_is_short(ty_dtype dtype)
{
    return dtype == TY_F16 || dtype == TY_BF16;
}

static void widen_load(const widen_part *p, const uint16_t *from, float *to)
{
    if (p->dtype == TY_BF16) {
#pragma omp parallel for simd schedule(static)
        for (int64_t i = 0; i < p->elems; i++)
            to[i] = ty_bf16_to_f32(from[i]);
    } else {
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < p->elems; i++)
            to[i] = ty_f16_to_f32(from[i]);
    }
}

static void widen_store(const widen_part *p, const float *from, uint16_t *to)
{
    if (p->dtype == TY_BF16) {
#pragma omp parallel for simd schedule(static)
        for (int64_t i = 0; i < p->elems; i++)
            to[i] = ty_f32_to_bf16(from[i]);
    } else {
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < p->elems; i++)
            to[i] = ty_f32_to_f16(from[i]);
    }
}

static void widen_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    const widen_call *c = prepared;
    const void *wide_in[WIDEN_MAX];
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
    ty_type in[WIDEN_MAX], res[TY_MAX_RESULTS];
    ty_attr attr = *shape->attr;
    if (shape->n_in > WIDEN_MAX)
        return ty_error_set(err, TY_E_UNSUPPORTED, "more than %d operands", WIDEN_MAX);
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
