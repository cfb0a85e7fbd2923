/* ops_attention.c - gelu, silu, attention: values, refusals, decompositions, gradients. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "tests/unit/ops_case.h"
#include "tests/unit/ops_gradient.h"

#define CAUSAL  1
#define DROPS   32
#define HALF    (1 << 23) /* of the numbers that are drawn */
#define NO_DIMS 0, NULL

/* By the formulas of arXiv:1606.08415, in another language. */
static void activation_values(void **state)
{
    (void)state;
    ty_ref x = F64(DIMS(4), -1, 0, 0.5, 3);
    case_expect(TY_OP_GELU, (ty_attr){0}, IN(x),
                OUT(F64(DIMS(4), -0.15865525393145707, 0, 0.34573123063700656, 2.99595030590511)));
    case_expect(TY_OP_GELU, (ty_attr){.flags = 1}, IN(x),
                OUT(F64(DIMS(4), -0.15880800939172324, 0, 0.34571400982514394, 2.9963626079182268)));
    case_expect(TY_OP_SILU, (ty_attr){0}, IN(x),
                OUT(F64(DIMS(4), -0.2689414213699951, 0, 0.31122966560092728, 2.8577223804672998)));
    case_refused(TY_OP_GELU, (ty_attr){.flags = 2}, IN(x), "flags");
    case_refused(TY_OP_SILU, (ty_attr){0}, IN(TYPE(TY_I32, DIMS(2))), "float type");
}

static void attention_values(void **state)
{
    (void)state;
    ty_ref q = F64(DIMS(2, 1), 0, 1), k = F64(DIMS(2, 1), 0, 1), v = F64(DIMS(2, 1), 1, 3);
    double e = exp(2.0);
    case_expect(TY_OP_ATTENTION, (ty_attr){.value = 2}, IN(q, k, v), OUT(F64(DIMS(2, 1), 2, (1 + 3 * e) / (1 + e))));
    case_expect(TY_OP_ATTENTION, (ty_attr){.value = 2, .flags = CAUSAL}, IN(q, k, v),
                OUT(F64(DIMS(2, 1), 1, (1 + 3 * e) / (1 + e))));
    case_expect(TY_OP_ATTENTION, (ty_attr){.value = 1}, IN(q, k, v, F64(DIMS(1, 2), 0, -INFINITY)),
                OUT(F64(DIMS(2, 1), 1, 1)));
    case_expect(TY_OP_ATTENTION, (ty_attr){.value = 1, .value2 = -INFINITY},
                IN(q, k, v, INT(TY_BOOL, DIMS(2, 2), 0, 1, 1, 0)), OUT(F64(DIMS(2, 1), 3, 1)));
    case_expect(TY_OP_ATTENTION, (ty_attr){.value = 1, .value2 = -1e9}, IN(q, k, v, INT(TY_BOOL, DIMS(2, 1), 0, 0)),
                OUT(F64(DIMS(2, 1), 2, 2)));
}

/* Of numbers that are drawn from [0, 1), those below a half drop their keys; others count twice. */
static void attention_drops(void **state)
{
    (void)state;
    const ty_attr a = {.value = 2, .flags = DROPS, .dropped = HALF, .index = 3};
    ty_ref seed = INT(TY_I64, NO_DIMS, 12345), step = INT(TY_I64, NO_DIMS, 6);
    ty_ref q = F64(DIMS(2, 1), 0, 1), k = F64(DIMS(2, 1), 0, 1), v = F64(DIMS(2, 1), 1, 3);
    double e = exp(2.0), p[4] = {0.5, 0.5, 1 / (1 + e), e / (1 + e)}, y[2] = {0};
    for (int i = 0; i < 4; i++)
        y[i / 2] += (ty_rng_u32(12345, 3, 6, (uint64_t)i) < UINT32_C(1) << 31 ? 0 : 2) * p[i] * (i % 2 ? 3 : 1);
    case_expect(TY_OP_ATTENTION, a, IN(q, k, v, seed, step), OUT(F64(DIMS(2, 1), y[0], y[1])));
    ty_attr none = a, all = a, plain = {.value = 2, .dropped = HALF};
    none.dropped = 0;
    all.dropped = 2 * HALF;
    case_refused(TY_OP_ATTENTION, none, IN(q, k, v, seed, step), "0 < dropped < 2^24");
    case_refused(TY_OP_ATTENTION, all, IN(q, k, v, seed, step), "0 < dropped < 2^24");
    case_refused(TY_OP_ATTENTION, plain, IN(q, k, v), "0 without dropout");
    case_refused(TY_OP_ATTENTION, a, IN(q, k, v, seed, v), "step: expected");
}

/* A query behind earlier keys; heads in groups of two. */
static void attention_of_groups(void **state)
{
    (void)state;
    ty_ref q = F64(DIMS(2, 1, 1), 0, 0), k = F64(DIMS(1, 3, 1), 1, 2, 3), v = F64(DIMS(1, 3, 2), 3, 0, 6, 0, 9, 3);
    case_expect(TY_OP_ATTENTION, (ty_attr){.value = 1, .flags = CAUSAL}, IN(q, k, v),
                OUT(F64(DIMS(2, 1, 2), 6, 1, 6, 1)));
    ty_ref four = F64(DIMS(4, 1, 1), 1, 1, 1, 1), two = F64(DIMS(2, 1, 1), 1, 1), own = F64(DIMS(2, 1, 1), 5, 7);
    case_expect(TY_OP_ATTENTION, (ty_attr){.value = 1}, IN(four, two, own), OUT(F64(DIMS(4, 1, 1), 5, 5, 7, 7)));
}

static void attention_refuses(void **state)
{
    (void)state;
    ty_ref q = TYPE(TY_F32, DIMS(2, 4, 5, 8)), k = TYPE(TY_F32, DIMS(2, 2, 6, 8)), v = TYPE(TY_F32, DIMS(2, 2, 6, 3));
    ty_attr a = {.value = 1};
    case_refused(TY_OP_ATTENTION, a, IN(q, TYPE(TY_F32, DIMS(2, 3, 6, 8)), v), "k: expected axis 1 to fit q's 4");
    case_refused(TY_OP_ATTENTION, a, IN(q, TYPE(TY_F32, DIMS(1, 2, 6, 8)), v), "k: expected axis 0 to fit q's 2");
    case_refused(TY_OP_ATTENTION, a, IN(q, TYPE(TY_F32, DIMS(2, 2, 6, 7)), v), "size of a head");
    case_refused(TY_OP_ATTENTION, a, IN(q, k, TYPE(TY_F32, DIMS(2, 2, 7, 3))), "number of keys");
    case_refused(TY_OP_ATTENTION, a, IN(q, k, TYPE(TY_F64, DIMS(2, 2, 6, 3))), "v: expected f32");
    case_refused(TY_OP_ATTENTION, a, IN(q, k, v, TYPE(TY_F32, DIMS(2, 4, 5, 5))), "mask: expected bool or");
    case_refused(TY_OP_ATTENTION, a, IN(q, k, v, TYPE(TY_F32, DIMS(5, 6))), "mask: expected bool or");
    case_refused(TY_OP_ATTENTION, (ty_attr){.value = NAN}, IN(q, k, v), "scale");
    case_refused(TY_OP_ATTENTION, (ty_attr){.value = 1, .flags = 2}, IN(q, k, v), "flags");
}

static void activations_lower(void **state)
{
    (void)state;
    ty_ref x = case_noise(DIMS(3, 4), 1);
    for (uint32_t form = 0; form < 2; form++) {
        node_lowers(TY_OP_GELU, (ty_attr){.flags = form}, IN(x));
        node_lowers(TY_OP_GELU, (ty_attr){.flags = form}, IN(FLOAT(TY_BF16, DIMS(2), 1, -2)));
    }
    node_lowers(TY_OP_SILU, (ty_attr){0}, IN(x));
    node_lowers(TY_OP_SILU, (ty_attr){0}, IN(FLOAT(TY_F16, DIMS(2), 1, -2)));
}

static void attention_lowers(void **state)
{
    (void)state;
    ty_ref q = case_noise(DIMS(2, 4, 3, 2), 1), k = case_noise(DIMS(2, 2, 5, 2), 2),
           v = case_noise(DIMS(2, 2, 5, 3), 3);
    ty_ref added = case_noise(DIMS(2, 1, 3, 5), 4), row = case_noise(DIMS(1, 4, 1, 5), 5);
    ty_ref chosen = INT(TY_BOOL, DIMS(1, 1, 3, 5), 0, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1);
    for (uint32_t causal = 0; causal < 2; causal++) {
        ty_attr a = {.flags = causal, .value = 0.7, .value2 = -1e30};
        node_lowers(TY_OP_ATTENTION, a, IN(q, k, v));
        node_lowers(TY_OP_ATTENTION, a, IN(q, k, v, added));
        node_lowers(TY_OP_ATTENTION, a, IN(q, k, v, row));
        node_lowers(TY_OP_ATTENTION, a, IN(q, case_noise(DIMS(2, 4, 3, 2), 6), q));
    }
    const ty_attr drops = {.flags = DROPS, .value = 0.7, .value2 = -1e30, .dropped = HALF / 2, .index = 4};
    ty_ref seed = INT(TY_I64, NO_DIMS, 5), step = INT(TY_I64, NO_DIMS, 1);
    node_lowers(TY_OP_ATTENTION, drops, IN(q, k, v, seed, step));
    node_lowers(TY_OP_ATTENTION, drops, IN(q, k, v, chosen, seed, step));
    node_lowers(TY_OP_ATTENTION, (ty_attr){.value = 1, .value2 = -INFINITY}, IN(q, k, v, chosen));
    node_lowers(TY_OP_ATTENTION, (ty_attr){.value = -3},
                IN(case_noise(DIMS(3, 2), 7), case_noise(DIMS(4, 2), 8), case_noise(DIMS(4, 1), 9)));
}

static void attention_gradients_lower(void **state)
{
    (void)state;
    ty_ref q = case_noise(DIMS(2, 4, 3, 2), 1), k = case_noise(DIMS(2, 2, 5, 2), 2),
           v = case_noise(DIMS(2, 2, 5, 3), 3), dy = case_noise(DIMS(2, 4, 3, 3), 10);
    ty_ref added = case_noise(DIMS(2, 1, 3, 5), 4);
    ty_ref chosen = INT(TY_BOOL, DIMS(1, 1, 3, 5), 0, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1);
    for (uint32_t causal = 0; causal < 2; causal++) {
        ty_attr a = {.flags = causal, .value = 0.7, .value2 = -1e30};
        node_lowers(TY_OP_ATTENTION_GRAD, a, IN(q, k, v, dy));
        node_lowers(TY_OP_ATTENTION_GRAD, a, IN(q, k, v, dy, added));
        node_lowers(TY_OP_ATTENTION_GRAD, a, IN(q, k, v, dy, chosen));
    }
    const ty_attr drops = {.flags = DROPS, .value = 0.7, .value2 = -1e30, .dropped = HALF / 2, .index = 4};
    ty_ref seed = INT(TY_I64, NO_DIMS, 5), step = INT(TY_I64, NO_DIMS, 1);
    node_lowers(TY_OP_ATTENTION_GRAD, drops, IN(q, k, v, dy, seed, step));
    node_lowers(TY_OP_ATTENTION_GRAD, drops, IN(q, k, v, dy, added, seed, step));
    node_lowers(TY_OP_ATTENTION_GRAD, drops, IN(q, k, v, dy, chosen, seed, step));
    case_refused(TY_OP_ATTENTION_GRAD, (ty_attr){.value = 1}, IN(q, k, v, q), "dy: expected");
}

static void activation_gradients(void **state)
{
    (void)state;
    for (uint32_t form = 0; form < 2; form++)
        GRADCHECK_NODE("gelu", TY_OP_GELU, .attr = {.flags = form},
                       .check = {.n_in = 1, .lo = -3, .hi = 3, .in = {GRAD_IN(4, 5)}});
    GRADCHECK_NODE("silu", TY_OP_SILU, .attr = {0}, .check = {.n_in = 1, .lo = -4, .hi = 4, .in = {GRAD_IN(4, 5)}});
}

static void attention_gradients(void **state)
{
    (void)state;
    for (uint32_t causal = 0; causal < 2; causal++) {
        const ty_attr a = {.flags = causal, .value = 0.8};
        GRADCHECK_NODE("attention", TY_OP_ATTENTION, .attr = a,
                       .check = {.n_in = 3, .in = {GRAD_IN(2, 3, 2), GRAD_IN(2, 4, 2), GRAD_IN(2, 4, 3)}});
        GRADCHECK_NODE("attention of a matrix", TY_OP_ATTENTION, .attr = a,
                       .check = {.n_in = 3, .in = {GRAD_IN(3, 2), GRAD_IN(3, 2), GRAD_IN(3, 1)}});
        GRADCHECK_NODE("grouped attention", TY_OP_ATTENTION, .attr = a,
                       .check = {.n_in = 3, .in = {GRAD_IN(1, 4, 2, 2), GRAD_IN(1, 2, 3, 2), GRAD_IN(1, 2, 3, 1)}});
        GRADCHECK_NODE(
            "attention with a bias", TY_OP_ATTENTION, .attr = a,
            .check = {.n_in = 4, .in = {GRAD_IN(2, 3, 2), GRAD_IN(2, 3, 2), GRAD_IN(2, 3, 1), GRAD_IN(2, 1, 3)}});
    }
}

/* Row 1 has no key at all. */
static ty_val build_hidden(ty_graph *g, const ty_val *x, const void *ctx)
{
    static const uint8_t seen[6] = {1, 0, 1, 0, 0, 0};
    ty_attr attr = {.value = 0.8, .value2 = *(const double *)ctx};
    ty_val mask = ty_b_const(g, ty_type_make(TY_BOOL, DIMS(1, 2, 3)), seen);
    return ty_graph_emit(g, TY_OP_ATTENTION, &attr, (ty_val[]){x[0], x[1], x[2], mask}, 4);
}

static ty_val build_dropped(ty_graph *g, const ty_val *x, const void *ctx)
{
    const ty_attr attr = {.value = 0.8, .flags = DROPS | *(const uint32_t *)ctx, .dropped = HALF / 2, .index = 4};
    ty_val seed = ty_b_scalar(g, TY_I64, 9), step = ty_b_scalar(g, TY_I64, 2);
    return ty_graph_emit(g, TY_OP_ATTENTION, &attr, (ty_val[]){x[0], x[1], x[2], seed, step}, 5);
}

static void dropped_probabilities_have_no_gradient(void **state)
{
    (void)state;
    for (uint32_t causal = 0; causal < 2; causal++)
        gradcheck(&(gradcheck_case){.name = "attention with dropout",
                                    .build = build_dropped,
                                    .ctx = &causal,
                                    .n_in = 3,
                                    .in = {GRAD_IN(2, 4, 2), GRAD_IN(2, 5, 2), GRAD_IN(2, 5, 3)}});
}

static void hidden_scores_have_no_gradient(void **state)
{
    (void)state;
    double fill = -50;
    gradcheck(&(gradcheck_case){.name = "attention under a mask",
                                .build = build_hidden,
                                .ctx = &fill,
                                .n_in = 3,
                                .in = {GRAD_IN(2, 2, 2), GRAD_IN(2, 3, 2), GRAD_IN(2, 3, 1)}});
}

static void gradients_share_probabilities(void **state)
{
    (void)state;
    ty_ref q = TYPE(TY_F64, DIMS(2, 3, 4)), mask = TYPE(TY_F64, DIMS(1, 3, 3));
    ty_attr a = {.value = 0.5};
    assert_int_equal(node_count_lowered(TY_OP_ATTENTION, a, IN(q, q, q), 3, TY_OP_EXP, 0), 1);
    assert_int_equal(node_count_lowered(TY_OP_ATTENTION, a, IN(q, q, q, mask), 4, TY_OP_EXP, 0), 1);
    /* scores, y; dv, dP, dq, dk */
    assert_int_equal(node_count_lowered(TY_OP_ATTENTION, a, IN(q, q, q), 3, TY_OP_DOT, 0), 6);
    assert_int_equal(node_count_lowered(TY_OP_GELU, (ty_attr){.flags = 1}, IN(q), 1, TY_OP_EXP, 0), 1);
    assert_int_equal(node_count_lowered(TY_OP_GELU, (ty_attr){0}, IN(q), 1, TY_OP_MILLS, 0), 1);
    assert_int_equal(node_count_lowered(TY_OP_GELU, (ty_attr){0}, IN(q), 1, TY_OP_EXP, 0), 1);
    assert_int_equal(node_count_lowered(TY_OP_SILU, (ty_attr){0}, IN(q), 1, TY_OP_EXP, 0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activation_values),
        cmocka_unit_test(attention_values),
        cmocka_unit_test(attention_of_groups),
        cmocka_unit_test(attention_refuses),
        cmocka_unit_test(activations_lower),
        cmocka_unit_test(attention_lowers),
        cmocka_unit_test(attention_gradients_lower),
        cmocka_unit_test(activation_gradients),
        cmocka_unit_test(attention_gradients),
        cmocka_unit_test(hidden_scores_have_no_gradient),
        cmocka_unit_test(dropped_probabilities_have_no_gradient),
        cmocka_unit_test(attention_drops),
        cmocka_unit_test(gradients_share_probabilities),
    };
    return cmocka_run_group_tests_name("ops_attention", tests, case_setup, case_teardown);
}
