/* Element types, shapes, and the 16-bit floats. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/tensor.h"

#include <math.h>
#include <string.h>

static void test_types(void **state)
{
    (void)state;
    ty_type t = ty_type_make(TY_F32, 4, (int64_t[]){64, 1, 8, 8});
    char text[160];
    assert_string_equal(ty_type_text(&t, text, sizeof text), "f32[64,1,8,8]");
    assert_int_equal(ty_type_elems(&t), 4096);
    assert_int_equal(ty_type_bytes(&t), 16384);
    ty_type same = ty_type_make(TY_F32, 4, (int64_t[]){64, 1, 8, 8});
    assert_memory_equal(&t, &same, sizeof t);
    ty_type other = ty_type_make(TY_F16, 4, (int64_t[]){64, 1, 8, 8});
    assert_true(ty_type_same_shape(&t, &other));
    assert_false(ty_type_same(&t, &other));
    ty_type scalar = ty_type_scalar(TY_I64);
    assert_string_equal(ty_type_text(&scalar, text, sizeof text), "i64[]");
    assert_int_equal(ty_type_elems(&scalar), 1);
    char cut[8];
    assert_string_equal(ty_type_text(&t, cut, sizeof cut), "f32[64,");
}

static void test_widest_type_fits_its_text(void **state)
{
    (void)state;
    int64_t dims[TY_MAX_RANK];
    for (int i = 0; i < TY_MAX_RANK; i++)
        dims[i] = INT64_MIN;
    ty_type t = ty_type_make(TY_BF16, TY_MAX_RANK, dims);
    char text[400];
    assert_true(strlen(ty_type_text(&t, text, sizeof text)) < 180);
}

static void test_checked_products(void **state)
{
    (void)state;
    assert_int_equal(ty_dims_elems_checked(2, (int64_t[]){3, 4}, 4), 12);
    assert_int_equal(ty_dims_elems_checked(0, NULL, 8), 1);
    assert_int_equal(ty_dims_elems_checked(2, (int64_t[]){3, -1}, 4), -1);
    assert_int_equal(ty_dims_elems_checked(2, (int64_t[]){INT64_C(1) << 31, INT64_C(1) << 31}, 1), INT64_C(1) << 62);
    assert_int_equal(ty_dims_elems_checked(2, (int64_t[]){INT64_C(1) << 31, INT64_C(1) << 31}, 2), -1);
    assert_int_equal(ty_dims_elems_checked(3, (int64_t[]){INT64_MAX, 0, 5}, 1), -1);
    assert_int_equal(ty_dims_elems_checked(2, (int64_t[]){7, 0}, 4), 0);
}

static void test_dtype_names(void **state)
{
    (void)state;
    for (int i = 0; i < TY_N_DTYPES; i++) {
        ty_dtype d;
        assert_true(ty_dtype_parse(ty_dtype_text((ty_dtype)i), &d));
        assert_int_equal(d, i);
    }
    ty_dtype d;
    assert_true(ty_dtype_parse("float32", &d) && d == TY_F32);
    assert_true(ty_dtype_parse("int64", &d) && d == TY_I64);
    assert_true(ty_dtype_parse("bool", &d) && d == TY_BOOL);
    assert_true(ty_dtype_parse("bfloat16", &d) && d == TY_BF16);
    assert_false(ty_dtype_parse("float33", &d));
    assert_string_equal(ty_dtype_descr(TY_F64), "<f8");
    assert_int_equal(ty_dtype_bytes(TY_F16), 2);
    assert_true(ty_dtype_is_float(TY_BF16) && !ty_dtype_is_float(TY_I8));
    assert_true(ty_dtype_is_signed(TY_I8) && !ty_dtype_is_signed(TY_U8) && !ty_dtype_is_signed(TY_F32));
}

/* All 65,536 halves survive the way to float and back; NaNs stay NaNs. */
static void test_every_half_survives(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        uint16_t h = (uint16_t)i;
        float f16 = ty_f16_to_f32(h), bf16 = ty_bf16_to_f32(h);
        if (isnan(f16))
            assert_true(isnan(ty_f16_to_f32(ty_f32_to_f16(f16))));
        else
            assert_int_equal(ty_f32_to_f16(f16), h);
        if (isnan(bf16))
            assert_true(isnan(ty_bf16_to_f32(ty_f32_to_bf16(bf16))));
        else
            assert_int_equal(ty_f32_to_bf16(bf16), h);
    }
}

/* Between two neighbours: below the middle down, above up, in the middle to the even one. */
static void test_rounding_to_even(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 0x7bff; i++) {
        double low = (double)ty_f16_to_f32((uint16_t)i), high = (double)ty_f16_to_f32((uint16_t)(i + 1));
        double middle = (low + high) / 2;
        assert_int_equal(ty_f64_to_f16(middle), i + (i & 1));
        assert_int_equal(ty_f64_to_f16(nextafter(middle, 0)), i);
        assert_int_equal(ty_f64_to_f16(nextafter(middle, 1e9)), i + 1);
        assert_int_equal(ty_f64_to_f16(-middle), 0x8000 | (i + (i & 1)));
    }
    for (uint32_t i = 0; i < 0x7f7f; i++) {
        uint32_t bits = i << 16 | 0x8000;
        float middle;
        memcpy(&middle, &bits, 4);
        assert_int_equal(ty_f32_to_bf16(middle), i + (i & 1));
    }
}

static void test_edges_of_half(void **state)
{
    (void)state;
    assert_int_equal(ty_f64_to_f16(65519.999), 0x7bff);
    assert_int_equal(ty_f64_to_f16(65520), 0x7c00);
    assert_int_equal(ty_f64_to_f16(1e300), 0x7c00);
    assert_int_equal(ty_f64_to_f16(-HUGE_VAL), 0xfc00);
    assert_int_equal(ty_f64_to_f16(0x1p-25), 0);
    assert_int_equal(ty_f64_to_f16(0x1.0000001p-25), 1);
    assert_int_equal(ty_f64_to_f16(1e-300), 0);
    assert_int_equal(ty_f64_to_f16(-0.0), 0x8000);
    assert_true(isnan(ty_f16_to_f32(ty_f64_to_f16((double)NAN))));
    /* 1 + 2^-11 + 2^-40: through float it would land on the middle and round down. */
    assert_int_equal(ty_f64_to_f16(1 + 0x1p-11 + 0x1p-40), 0x3c01);
    assert_int_equal(ty_f32_to_bf16(3.4e38f), 0x7f80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_widest_type_fits_its_text),
        cmocka_unit_test(test_checked_products),
        cmocka_unit_test(test_dtype_names),
        cmocka_unit_test(test_every_half_survives),
        cmocka_unit_test(test_rounding_to_even),
        cmocka_unit_test(test_edges_of_half),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
