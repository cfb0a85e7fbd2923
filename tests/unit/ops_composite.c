/* ops_composite.c - softmax, norm, batchnorm, xent: values, refusals, decompositions, gradients. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/ops_case.h"
#include "tests/unit/ops_gradient.h"

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

static void softmax_gradients(void **state)
{
    (void)state;
    for (uint32_t log_of = 0; log_of < 2; log_of++) {
        GRADCHECK_NODE("softmax rows", TY_OP_SOFTMAX, .attr = {.axis = 1, .flags = log_of},
                       .check = {.n_in = 1, .lo = -2, .hi = 2, .in = {GRAD_IN(3, 4)}});
        GRADCHECK_NODE("softmax middle", TY_OP_SOFTMAX, .attr = {.axis = 1, .flags = log_of},
                       .check = {.n_in = 1, .in = {GRAD_IN(2, 3, 2)}});
        GRADCHECK_NODE("softmax of one", TY_OP_SOFTMAX, .attr = {.axis = 0, .flags = log_of},
                       .check = {.n_in = 1, .in = {GRAD_IN(1, 3)}});
    }
}

static void norm_gradients(void **state)
{
    (void)state;
    for (uint32_t rms = 0; rms < 2; rms++) {
        const ty_attr last = {.n = 1, .value = 0.1, .flags = rms}, two = {.n = 2, .value = 1e-3, .flags = rms};
        const ty_attr all = {.n = 1, .value = 0.5, .flags = rms};
        GRADCHECK_NODE("norm", TY_OP_NORM, .attr = last, .check = {.n_in = 1, .in = {GRAD_IN(3, 4)}});
        GRADCHECK_NODE("scaled norm", TY_OP_NORM, .attr = last,
                       .check = {.n_in = 2, .in = {GRAD_IN(3, 4), GRAD_IN(4)}});
        GRADCHECK_NODE("full norm", TY_OP_NORM, .attr = last,
                       .check = {.n_in = 3, .in = {GRAD_IN(2, 2, 4), GRAD_IN(4), GRAD_IN(4)}});
        GRADCHECK_NODE("norm of two axes", TY_OP_NORM, .attr = two,
                       .check = {.n_in = 3, .in = {GRAD_IN(2, 3, 2), GRAD_IN(3, 2), GRAD_IN(3, 2)}});
        GRADCHECK_NODE("norm of all", TY_OP_NORM, .attr = all, .check = {.n_in = 2, .in = {GRAD_IN(5), GRAD_IN(5)}});
    }
}

/* A bias may stand without a scale. */
static ty_val build_norm_bias(ty_graph *g, const ty_val *x, const void *ctx)
{
    (void)ctx;
    return ty_b_norm(g, x[0], TY_NONE, x[1], 1, 0.1, false);
}

static void norm_bias_alone(void **state)
{
    (void)state;
    gradcheck(&(gradcheck_case){
        .name = "norm with bias", .build = build_norm_bias, .n_in = 2, .in = {GRAD_IN(2, 3), GRAD_IN(3)}});
}

/* Through y, mean and var at once: node_build weighs all results. */
static void batchnorm_gradients(void **state)
{
    (void)state;
    GRADCHECK_NODE("batchnorm", TY_OP_BATCHNORM, .attr = {.value = 0.1},
                   .check = {.n_in = 3, .in = {GRAD_IN(2, 3, 2, 2), GRAD_IN(3), GRAD_IN(3)}});
    GRADCHECK_NODE("batchnorm of a matrix", TY_OP_BATCHNORM, .attr = {.value = 1e-3},
                   .check = {.n_in = 3, .in = {GRAD_IN(5, 2), GRAD_IN(2), GRAD_IN(2)}});
    GRADCHECK_NODE("batchnorm over replicas", TY_OP_BATCHNORM, .attr = {.value = 0.1, .replicas = 3},
                   .check = {.n_in = 3, .in = {GRAD_IN(2, 3, 2, 2), GRAD_IN(3), GRAD_IN(3)}});
    GRADCHECK_NODE("batchnorm of a row", TY_OP_BATCHNORM, .attr = {.value = 0.5},
                   .check = {.n_in = 3, .in = {GRAD_IN(1, 2, 3), GRAD_IN(2), GRAD_IN(2)}});
}

/* One result of three, as training uses it. */
static ty_val build_batchnorm_part(ty_graph *g, const ty_val *x, const void *ctx)
{
    ty_val v = ty_graph_emit(g, TY_OP_BATCHNORM, &(ty_attr){.value = 0.1}, x, 3);
    return ty_val_make(ty_val_node(v), *(const uint32_t *)ctx);
}

static void batchnorm_gradients_of_each_result(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < 3; r++)
        gradcheck(&(gradcheck_case){.name = "batchnorm",
                                    .build = build_batchnorm_part,
                                    .ctx = &r,
                                    .n_in = 3,
                                    .in = {GRAD_IN(3, 2, 2), GRAD_IN(2), GRAD_IN(2)}});
}

static ty_val build_batchnorm_of_parts(ty_graph *g, const ty_val *x, const void *ctx)
{
    ty_val all = ty_b_concat(g, x, 2, 1);
    return build_batchnorm_part(g, (const ty_val[]){all, x[2], x[3]}, ctx);
}

static void batchnorm_of_parts_gradients(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < 3; r++)
        gradcheck(&(gradcheck_case){.name = "batchnorm of parts",
                                    .build = build_batchnorm_of_parts,
                                    .ctx = &r,
                                    .n_in = 4,
                                    .in = {GRAD_IN(3, 2, 2), GRAD_IN(3, 1, 2), GRAD_IN(3), GRAD_IN(3)}});
}

static void xent_gradients(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        double smoothing[] = {0, 0.1, 1};
        const ty_attr attr = {.index = -100, .value = smoothing[k]};
        GRADCHECK_NODE("xent", TY_OP_XENT, .attr = attr, .n_in = 2, FIXED_I64(1, DIMS(4), 2, 0, 1, 1),
                       .check = {.n_in = 1, .lo = -2, .hi = 2, .in = {GRAD_IN(4, 3)}});
        GRADCHECK_NODE("weighted xent", TY_OP_XENT, .attr = attr, .n_in = 3, FIXED_I64(1, DIMS(4), 2, -100, 1, 1),
                       .check = {.n_in = 2, .in = {GRAD_IN(4, 3), GRAD_IN(3)}});
        GRADCHECK_NODE("xent of one class", TY_OP_XENT, .attr = attr, .n_in = 2, FIXED_I64(1, DIMS(2), 0, -100),
                       .check = {.n_in = 1, .in = {GRAD_IN(2, 1)}});
    }
    node_gradient_is(TY_OP_XENT, (ty_attr){.index = -100},
                     IN(F64(DIMS(2, 2), 0, 0, 3, 5), INT(TY_I64, DIMS(2), 1, -100)), (double[]){4, 7},
                     OUT(F64(DIMS(2, 2), 2, -2, 0, 0)));
}

static void softmax_and_xent_lower(void **state)
{
    (void)state;
    ty_ref x = case_noise(DIMS(3, 4, 2), 1), big = F64(DIMS(2, 3), 1000, 0, -1000, 3, 3, 3);
    for (int64_t axis = 0; axis < 3; axis++)
        for (uint32_t log_of = 0; log_of < 2; log_of++)
            node_lowers(TY_OP_SOFTMAX, (ty_attr){.axis = axis, .flags = log_of}, IN(x));
    node_lowers(TY_OP_SOFTMAX, (ty_attr){.axis = 1}, IN(big));
    node_lowers(TY_OP_SOFTMAX, (ty_attr){.axis = 0}, IN(FLOAT(TY_BF16, DIMS(2), 1, 2)));
    ty_ref logits = case_noise(DIMS(4, 3), 2), labels = INT(TY_I64, DIMS(4), 2, -5, 0, 1);
    for (int k = 0; k < 3; k++) {
        ty_attr attr = {.index = -5, .value = 0.25 * k};
        node_lowers(TY_OP_XENT, attr, IN(logits, labels));
        node_lowers(TY_OP_XENT, attr, IN(logits, labels, F64(DIMS(3), 2, 0.5, 3)));
    }
    node_lowers(TY_OP_XENT, (ty_attr){.index = 7}, IN(FLOAT(TY_F16, DIMS(1, 2), 1, 2), INT(TY_I64, DIMS(1), 7)));
}

static void norms_lower(void **state)
{
    (void)state;
    ty_ref x = case_noise(DIMS(2, 3, 4), 1), far = case_noise(DIMS(2, 3, 4), 5), row = case_noise(DIMS(4), 2);
    ty_ref plane = case_noise(DIMS(3, 4), 3), c = case_noise(DIMS(3), 4);
    for (int k = 0; k < 24; k++)
        far.f[k] += 1e4; /* a mean that is large against the spread */
    for (uint32_t rms = 0; rms < 2; rms++) {
        node_lowers(TY_OP_NORM, (ty_attr){.n = 1, .value = 1e-5, .flags = rms}, IN(x));
        node_lowers(TY_OP_NORM, (ty_attr){.n = 1, .value = 1e-5, .flags = rms}, IN(x, row));
        node_lowers(TY_OP_NORM, (ty_attr){.n = 2, .value = 1e-5, .flags = rms}, IN(x, plane, plane));
        node_lowers(TY_OP_NORM, (ty_attr){.n = 3, .value = 1e-5, .flags = rms}, IN(x));
    }
    node_lowers(TY_OP_NORM, (ty_attr){.n = 2},
                IN(FLOAT(TY_BF16, DIMS(2, 2), 1, 2, 3, 5), FLOAT(TY_F32, DIMS(2, 2), 1, 2, 3, 4)));
    node_lowers(TY_OP_BATCHNORM, (ty_attr){.value = 1e-5}, IN(x, c, c));
    node_lowers(TY_OP_BATCHNORM, (ty_attr){.value = 1e-5}, IN(plane, row, row));
    node_lowers(TY_OP_BATCHNORM, (ty_attr){.value = 1},
                IN(FLOAT(TY_F16, DIMS(2, 1), 3, 5), FLOAT(TY_F16, DIMS(1), 1), FLOAT(TY_F32, DIMS(1), 0)));
    ty_ref y[3];
    case_run(TY_OP_BATCHNORM, (ty_attr){.value = 0}, IN(far, c, c), y);
    ty_ref near = far, shifted[3];
    near.f = ty_arena_copy(&case_arena, far.f, 24 * sizeof(double));
    for (int k = 0; k < 24; k++)
        near.f[k] -= 1e4;
    case_run(TY_OP_BATCHNORM, (ty_attr){.value = 0}, IN(near, c, c), shifted);
    case_same("variance far from zero", &y[2], &shifted[2], 1e-10);
}

/* The gradient finds the forward pass's statistics in the graph and computes none again. */
static void gradients_share_statistics(void **state)
{
    (void)state;
    ty_ref x = TYPE(TY_F64, DIMS(2, 3, 4)), row = TYPE(TY_F64, DIMS(4)), c = TYPE(TY_F64, DIMS(3));
    ty_attr norm = {.n = 1, .value = 1e-5}, batch = {.value = 1e-5};
    assert_int_equal(node_count_lowered(TY_OP_NORM, norm, IN(x, row, row), 3, TY_OP_RSQRT, 0), 1);
    /* mean, variance; mean(h), mean(h hat), dscale, dbias; the loss */
    assert_int_equal(node_count_lowered(TY_OP_NORM, norm, IN(x, row, row), 3, TY_OP_REDUCE, TY_SUM), 6);
    assert_int_equal(node_count_lowered(TY_OP_BATCHNORM, batch, IN(x, c, c), 3, TY_OP_RSQRT, 0), 1);
    /* mean, variance; dscale, dbias; the loss */
    assert_int_equal(node_count_lowered(TY_OP_BATCHNORM, batch, IN(x, c, c), 3, TY_OP_REDUCE, TY_SUM), 4);
    ty_ref logits = TYPE(TY_F64, DIMS(4, 3)), labels = TYPE(TY_I64, DIMS(4));
    ty_attr xent = {.index = -100};
    assert_int_equal(node_count_lowered(TY_OP_XENT, xent, IN(logits, labels), 1, TY_OP_REDUCE, TY_MAX), 1);
    assert_int_equal(node_count_lowered(TY_OP_XENT, xent, IN(logits, labels), 1, TY_OP_LOG, 0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_gradients),
        cmocka_unit_test(norm_gradients),
        cmocka_unit_test(norm_bias_alone),
        cmocka_unit_test(batchnorm_gradients),
        cmocka_unit_test(batchnorm_gradients_of_each_result),
        cmocka_unit_test(xent_gradients),
        cmocka_unit_test(softmax_and_xent_lower),
        cmocka_unit_test(norms_lower),
        cmocka_unit_test(gradients_share_statistics),
        cmocka_unit_test(softmax_values),
        cmocka_unit_test(norm_values),
        cmocka_unit_test(norm_refuses),
        cmocka_unit_test(batchnorm_of_parts_gradients),
        cmocka_unit_test(batchnorm_values),
        cmocka_unit_test(batchnorm_refuses),
        cmocka_unit_test(xent_values),
        cmocka_unit_test(statistics_are_wide),
        cmocka_unit_test(xent_refuses),
    };
    return cmocka_run_group_tests_name("ops_composite", tests, case_setup, case_teardown);
}
