/* native_widen.c - an op on 16-bit floats by the call for float32: what is widened and rounded on the way is what
 * base/tensor.h makes of it, for every number of 16 bits and for float32 around all that they round to. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "base/tensor.h"
#include "compiler/target/cpu/native.h"

#include <stdlib.h>
#include <string.h>

enum { N_SHORT = 65536 };

typedef struct copy {
    size_t n;
} copy;

static void copy_run(void *prepared, const void *const *in, void *const *out, void *scratch)
{
    (void)scratch;
    memcpy(out[0], in[0], ((const copy *)prepared)->n * sizeof(float));
}

static void copy_release(void *prepared)
{
    free(prepared);
}

/* The call for float32: it sees no other type. */
static int copy_prepare(const ty_library_shape *shape, ty_library_call *out, ty_error *err)
{
    (void)err;
    assert_int_equal(shape->in[0].dtype, TY_F32);
    assert_int_equal(shape->res[0].dtype, TY_F32);
    copy *c = malloc(sizeof *c);
    assert_non_null(c);
    c->n = (size_t)ty_type_elems(&shape->in[0]);
    *out = (ty_library_call){.run = copy_run, .release = copy_release, .prepared = c};
    return 0;
}

static void convert(ty_dtype from, ty_dtype to, const void *in, void *out, int64_t n)
{
    ty_error err = {0};
    ty_attr attr = {0};
    ty_type in_type = ty_type_make(from, 1, &n), res_type = ty_type_make(to, 1, &n);
    ty_library_shape shape = {.attr = &attr, .in = &in_type, .n_in = 1, .res = &res_type, .n_res = 1};
    ty_library_call call;
    assert_int_equal(ty_native_prepare_widened(TY_OP_NEG, &shape, copy_prepare, &call, &err), 0);
    void *scratch = aligned_alloc(64, (call.scratch_bytes + 63) / 64 * 64 + 64);
    assert_non_null(scratch);
    call.run(call.prepared, &in, &out, scratch);
    free(scratch);
    ty_library_release(&call);
}

static void every_short_number_is_widened(void **state)
{
    (void)state;
    static const struct {
        ty_dtype dtype;
        float (*judge)(uint16_t h);
    } rows[] = {{TY_F16, ty_f16_to_f32}, {TY_BF16, ty_bf16_to_f32}};
    uint16_t *in = malloc(N_SHORT * sizeof *in);
    float *out = malloc(N_SHORT * sizeof *out);
    for (int i = 0; i < N_SHORT; i++)
        in[i] = (uint16_t)i;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        convert(rows[r].dtype, TY_F32, in, out, N_SHORT - 3);
        for (int i = 0; i < N_SHORT - 3; i++) {
            float judge = rows[r].judge((uint16_t)i);
            assert_memory_equal(&out[i], &judge, sizeof judge);
        }
    }
    free(in);
    free(out);
}

static float of_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Each number of 16 bits, half way to the next, and a little to both sides of that; and bits by chance. */
static float *fill(const float (*of)[N_SHORT], int64_t n)
{
    float *in = malloc((size_t)n * sizeof *in);
    assert_non_null(in);
    for (int64_t i = 0; i < n; i++) {
        uint32_t u, chance = ty_rng_u32(3, 0, 0, (uint64_t)i);
        memcpy(&u, &(*of)[i % N_SHORT], sizeof u);
        static const uint32_t beside[] = {0, 0x0FFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001};
        in[i] = of_bits(i % 8 < 7 ? u + beside[i / N_SHORT % 7] : chance);
    }
    return in;
}

static void every_float_is_rounded_once(void **state)
{
    (void)state;
    static const struct {
        ty_dtype dtype;
        float (*widen)(uint16_t h);
        uint16_t (*judge)(float x);
    } rows[] = {{TY_F16, ty_f16_to_f32, ty_f32_to_f16}, {TY_BF16, ty_bf16_to_f32, ty_f32_to_bf16}};
    static float of[N_SHORT];
    uint16_t *out = malloc(7 * N_SHORT * sizeof *out);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        for (int i = 0; i < N_SHORT; i++)
            of[i] = rows[r].widen((uint16_t)i);
        float *in = fill(&of, 7 * N_SHORT);
        convert(TY_F32, rows[r].dtype, in, out, 7 * N_SHORT);
        for (int i = 0; i < 7 * N_SHORT; i++)
            assert_int_equal(out[i], rows[r].judge(in[i]));
        free(in);
    }
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_short_number_is_widened),
                                       cmocka_unit_test(every_float_is_rounded_once)};
    return cmocka_run_group_tests_name("native_widen", tests, NULL, NULL);
}
