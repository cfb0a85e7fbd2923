/* ops_composite.c - softmax, norm, batchnorm, xent: values, refusals, decompositions, gradients. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/ops_case.h"

static void softmax_values(void **state)
{
    (void)state;
    case_expect(TY_OP_SOFTMAX, (ty_attr){.axis = 1}, IN(F64(DIMS(2, 3), 1, 2, 3, -1, 0, 1000)),
                OUT(F64(DIMS(2, 3), 0.090030573170380462, 0.24472847105479764, 0.66524095577482178, 0, 0, 1)));
    case_expect(TY_OP_SOFTMAX, (ty_attr){.axis = 0, .flags = 1}, IN(F64(DIMS(3, 2), 1, -1, 2, 0, 3, 4)),
                OUT(F64(DIMS(3, 2), -2.4076059644443806, -5.0247448901388223, -1.4076059644443804, -4.0247448901388223,
                        -0.40760596444438041, -0.024744890138822591)));
    case_expect(TY_OP_SOFTMAX, (ty_attr){.axis = 0}, IN(F64(DIMS(3), -INFINITY, 0, 0)), OUT(F64(DIMS(3), 0, 0.5, 0.5)));
    case_expect(TY_OP_SOFTMAX, (ty_attr){.axis = 0}, IN(F64(DIMS(2), NAN, 0)), OUT(F64(DIMS(2), NAN, NAN)));
    case_refused(TY_OP_SOFTMAX, (ty_attr){.axis = 0}, IN(TYPE(TY_I32, DIMS(2))), "x: expected a float type, found i32");
    case_refused(TY_OP_SOFTMAX, (ty_attr){.axis = 1}, IN(TYPE(TY_F32, DIMS(2))), "axis");
    case_refused(TY_OP_SOFTMAX, (ty_attr){.axis = 0, .flags = 2}, IN(TYPE(TY_F32, DIMS(2))), "flags");
}

static void norm_values(void **state)
{
    (void)state;
    ty_ref x = F64(DIMS(2, 3), 1, 2, 4, -1, 0, 3), scale = F64(DIMS(3), 2, 3, 4), bias = F64(DIMS(3), .5, 0, -1);
    case_expect(TY_OP_NORM, (ty_attr){.n = 1, .value = 1e-5}, IN(x),
                OUT(F64(DIMS(2, 3), -1.0690415314502977, -0.26726038286257453, 1.3363019143128718, -0.98057897853646436,
                        -0.39223159141458575, 1.3728105699510502)));
    case_expect(TY_OP_NORM, (ty_attr){.n = 1, .value = 1e-5}, IN(x, scale, bias),
                OUT(F64(DIMS(2, 3), -1.6380830629005954, -0.80178114858772354, 4.3452076572514873, -1.4611579570729287,
                        -1.1766947742437572, 4.4912422798042009)));
    case_expect(TY_OP_NORM, (ty_attr){.n = 1, .value = 1e-6, .flags = 1}, IN(F64(DIMS(1, 3), 1, 2, 4), scale),
                OUT(F64(DIMS(1, 3), 0.75592889202353541, 2.2677866760706062, 6.0474311361882833)));
    case_expect(
        TY_OP_NORM, (ty_attr){.n = 2, .value = 0.1}, IN(F64(DIMS(2, 2), 1, 2, 4, -1)),
        OUT(F64(DIMS(2, 2), -0.27317918235407651, 0.27317918235407651, 1.3658959117703826, -1.3658959117703826)));
}

static void norm_refuses(void **state)
{
    (void)state;
    ty_ref x = TYPE(TY_F32, DIMS(2, 3, 4));
    case_refused(TY_OP_NORM, (ty_attr){.n = 0}, IN(x), "n: expected 1 to 3 axes, found 0");
    case_refused(TY_OP_NORM, (ty_attr){.n = 4}, IN(x), "n: expected 1 to 3 axes, found 4");
    case_refused(TY_OP_NORM, (ty_attr){.n = 2, .value = -1}, IN(x), "epsilon: expected");
    case_refused(TY_OP_NORM, (ty_attr){.n = 2, .value = NAN}, IN(x), "epsilon: expected");
    case_refused(TY_OP_NORM, (ty_attr){.n = 2}, IN(x, TYPE(TY_F32, DIMS(4))), "scale: expected f32[3,4], found f32[4]");
    case_refused(TY_OP_NORM, (ty_attr){.n = 1}, IN(x, TYPE(TY_F32, DIMS(4)), TYPE(TY_F64, DIMS(4))),
                 "bias: expected f32[4], found f64[4]");
    case_refused(TY_OP_NORM, (ty_attr){.n = 1, .flags = 2}, IN(x), "flags");
    case_refused(TY_OP_NORM, (ty_attr){.n = 1}, IN(TYPE(TY_BOOL, DIMS(4))), "float type");
}

static void batchnorm_values(void **state)
{
    (void)state;
    case_expect(TY_OP_BATCHNORM, (ty_attr){.value = 0.25},
                IN(F64(DIMS(2, 2, 2), 1, 2, 3, 4, 5, -6, 7, 9), F64(DIMS(2), 2, .5), F64(DIMS(2), 1, -1)),
                OUT(F64(DIMS(2, 2, 2), 1.2461829819586654, 1.7385489458759964, -1.5642880936468346, -1.3590924232298041,
                        3.2156468376279892, -2.2003787654626508, -0.74350541197871145, -0.33311407114464975),
                    F64(DIMS(2), 0.5, 5.75), F64(DIMS(2), 16.25, 5.6875)));
    case_expect(TY_OP_BATCHNORM, (ty_attr){.value = 0}, IN(F64(DIMS(2, 1), 3, 5), F64(DIMS(1), 1), F64(DIMS(1), 0)),
                OUT(F64(DIMS(2, 1), -1, 1), F64(DIMS(1), 4), F64(DIMS(1), 1)));
}

static void batchnorm_refuses(void **state)
{
    (void)state;
    ty_ref x = TYPE(TY_F32, DIMS(2, 3, 4)), c = TYPE(TY_F32, DIMS(3));
    case_refused(TY_OP_BATCHNORM, (ty_attr){.value = 0}, IN(TYPE(TY_F32, DIMS(3)), c, c), "x: expected rank 2 to 8");
    case_refused(TY_OP_BATCHNORM, (ty_attr){.value = 0}, IN(x, TYPE(TY_F32, DIMS(4)), c),
                 "scale: expected f32[3], found");
    case_refused(TY_OP_BATCHNORM, (ty_attr){.value = 0}, IN(x, c, TYPE(TY_F64, DIMS(3))),
                 "bias: expected f32[3], found");
    case_refused(TY_OP_BATCHNORM, (ty_attr){.value = INFINITY}, IN(x, c, c), "epsilon");
    case_refused(TY_OP_BATCHNORM, (ty_attr){.value = 0}, IN(TYPE(TY_F32, DIMS(0, 3)), c, c), "at least one element");
    case_refused(TY_OP_BATCHNORM, (ty_attr){.value = 0}, IN(TYPE(TY_I64, DIMS(2, 3)), c, c), "float type");
}

/* 16-bit operands keep statistics, sums and losses in f32. */
static void statistics_are_wide(void **state)
{
    (void)state;
    case_expect(TY_OP_BATCHNORM, (ty_attr){.value = 0},
                IN(FLOAT(TY_BF16, DIMS(2, 1), 3, 5), FLOAT(TY_F32, DIMS(1), 1), FLOAT(TY_F32, DIMS(1), 0)),
                OUT(FLOAT(TY_BF16, DIMS(2, 1), -1, 1), FLOAT(TY_F32, DIMS(1), 4), FLOAT(TY_F32, DIMS(1), 1)));
    case_expect(TY_OP_NORM, (ty_attr){.n = 1}, IN(FLOAT(TY_F16, DIMS(2), 3, 5), FLOAT(TY_F32, DIMS(2), 1, 2)),
                OUT(FLOAT(TY_F16, DIMS(2), -1, 2)));
    case_expect(TY_OP_XENT, (ty_attr){.index = -100}, IN(FLOAT(TY_F16, DIMS(1, 2), 0, 0), INT(TY_I64, DIMS(1), 1)),
                OUT(FLOAT(TY_F32, DIMS(1), 0.69314718055994531), FLOAT(TY_F32, DIMS(1), 1)));
}

static void xent_values(void **state)
{
    (void)state;
    ty_ref logits = F64(DIMS(3, 3), 1, 2, 3, 0, 0, 0, -1, 4, 0), labels = INT(TY_I64, DIMS(3), 2, 0, 1);
    case_expect(
        TY_OP_XENT, (ty_attr){.index = -100}, IN(logits, labels),
        OUT(F64(DIMS(3), 0.40760596444438041, 1.0986122886681098, 0.024744890138822591), F64(DIMS(3), 1, 1, 1)));
    case_expect(TY_OP_XENT, (ty_attr){.index = -100, .value = 0.1}, IN(logits, labels, F64(DIMS(3), 2, 3, 5)),
                OUT(F64(DIMS(3), 0.50760596444438044, 1.0986122886681098, 0.32474489013882252), F64(DIMS(3), 5, 2, 3)));
    /* the ignored label may be outside the classes or one of them */
    case_expect(TY_OP_XENT, (ty_attr){.index = -7}, IN(logits, INT(TY_I64, DIMS(3), -7, 0, -7), F64(DIMS(3), 2, 3, 5)),
                OUT(F64(DIMS(3), 0, 1.0986122886681098, 0), F64(DIMS(3), 0, 2, 0)));
    case_expect(TY_OP_XENT, (ty_attr){.index = 0}, IN(logits, labels),
                OUT(F64(DIMS(3), 0.40760596444438041, 0, 0.024744890138822591), F64(DIMS(3), 1, 0, 1)));
    /* an impossible class that is not the label */
    case_expect(TY_OP_XENT, (ty_attr){.index = -100}, IN(F64(DIMS(1, 2), 0, -INFINITY), INT(TY_I64, DIMS(1), 0)),
                OUT(F64(DIMS(1), 0), F64(DIMS(1), 1)));
    case_no_value(TY_OP_XENT, (ty_attr){.index = -100}, IN(logits, INT(TY_I64, DIMS(3), 2, 3, 1)),
                  "labels: expected 0 to 2 (or -100 to ignore), found 3 in row 1");
    case_no_value(TY_OP_XENT, (ty_attr){.index = -100}, IN(logits, INT(TY_I64, DIMS(3), 2, 0, -1)),
                  "found -1 in row 2");
}

static void xent_refuses(void **state)
{
    (void)state;
    ty_ref x = TYPE(TY_F32, DIMS(4, 3)), y = TYPE(TY_I64, DIMS(4));
    case_refused(TY_OP_XENT, (ty_attr){.index = 0}, IN(TYPE(TY_F32, DIMS(4)), y), "logits: expected rank 2");
    case_refused(TY_OP_XENT, (ty_attr){.index = 0}, IN(x, TYPE(TY_I64, DIMS(3))),
                 "labels: expected i64[4], found i64[3]");
    case_refused(TY_OP_XENT, (ty_attr){.index = 0}, IN(x, TYPE(TY_I32, DIMS(4))),
                 "labels: expected i64[4], found i32[4]");
    case_refused(TY_OP_XENT, (ty_attr){.index = 0}, IN(x, y, TYPE(TY_F32, DIMS(4))), "weights: expected f32[3]");
    case_refused(TY_OP_XENT, (ty_attr){.value = 1.5}, IN(x, y), "label smoothing: expected 0 to 1, found 1.5");
    case_refused(TY_OP_XENT, (ty_attr){.value = 0}, IN(TYPE(TY_F32, DIMS(4, 0)), y), "at least one class");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_values),      cmocka_unit_test(norm_values),       cmocka_unit_test(norm_refuses),
        cmocka_unit_test(batchnorm_values),    cmocka_unit_test(batchnorm_refuses), cmocka_unit_test(xent_values),
        cmocka_unit_test(statistics_are_wide), cmocka_unit_test(xent_refuses),
    };
    return cmocka_run_group_tests_name("ops_composite", tests, case_setup, case_teardown);
}
