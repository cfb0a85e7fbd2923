/* ops_rnn.c - recurrent layers: values, refusals, decompositions, gradients. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/ops/recurrence.h"
#include "tests/unit/ops_case.h"
#include "tests/unit/ops_gradient.h"
#include "tests/unit/rnn_layers.h"

/* x, w, r, bias, h, c; returns how many of them the layer has. */
static int layer_operands(const rnn_layer *l, int64_t t, int64_t b, int64_t i, int64_t h, ty_ref *in)
{
    int64_t wide = l->gates * h, bias = wide + (l->flags & TY_RNN_RESET_AFTER ? h : 0);
    in[TY_RNN_X] = case_noise(DIMS(t, b, i), 1);
    in[TY_RNN_W] = case_noise(DIMS(wide, i), 2);
    in[TY_RNN_WEIGHT] = case_noise(DIMS(wide, h), 3);
    in[TY_RNN_BIAS] = case_noise(DIMS(bias), 4);
    in[TY_RNN_H0] = case_noise(DIMS(b, h), 5);
    in[TY_RNN_C0] = case_noise(DIMS(b, h), 6);
    return l->gates == TY_RNN_LSTM ? 6 : 5;
}

/* What torch.nn.RNN, GRU and LSTM (float64) gave for these operands; backwards with x and y turned over. */
static const double pytorch[N_OF_PYTORCH][2][12] = {
    {{0.843409760046442, -0.006075021871378018, -0.1147558321783267, 0.8473210307370548, -0.6273324424207596,
      -0.7755406339181941, -0.0431564930983207, 0.3154218061152739, -0.6273324424207596, -0.7755406339181941,
      -0.0431564930983207, 0.3154218061152739},
     {-0.1483400433735298, -0.6446094996512998, -0.5386538684440899, 0.7173054876271241, 0.5542618372340232,
      -0.5571097567308464, -0.01418114018606886, 0.05402933236965669, -0.1483400433735298, -0.6446094996512998,
      -0.5386538684440899, 0.7173054876271241}},
    {{1.232869904605309, 0, 0, 1.246577150095007, 0, 0, 0.05035545066307201, 0.6029547201402219, 0, 0,
      0.05035545066307201, 0.6029547201402219},
     {0.05551499557536166, 0, 0, 0.8991862629383952, 0.6245121542706329, 0, 0, 0.05408199822444715, 0.05551499557536166,
      0, 0, 0.8991862629383952}},
    {{-0.4440695918453883, -0.1106746505492541, -0.09259871476751602, 0.2364679134017877, -0.02315640428871582,
      -0.5548004795350193, -0.03032791773887154, -0.3748114076209416, -0.02315640428871582, -0.5548004795350193,
      -0.03032791773887154, -0.3748114076209416},
     {-0.2479399305389203, -0.2717163413176756, 0.1871666236883951, -0.2323993693834301, -0.08090960682685744,
      -0.5376859425930508, -0.08093350861620269, -0.4016693235818296, -0.2479399305389203, -0.2717163413176756,
      0.1871666236883951, -0.2323993693834301}},
    {{-0.3575903656155867, -0.1764564397960474, 0.03180490294648571, -0.4675162089434455, -0.1097807890352512,
      -0.2152443888034898, -0.06821002822655972, -0.3507233392613225, -0.2518316445031117, -0.4212673442136524,
      -0.1416549386681609, -0.6148119135965036},
     {-0.2074724772886575, -0.1835359220744992, 0.08660275935011946, -0.4787178238015986, -0.09063865519405763,
      -0.1490297187366335, -0.07810963134742435, -0.292225841275032, -0.3848813544360918, -0.2842272997195967,
      0.1661451736194797, -0.6703285431763258}},
};

static void layers_are_pytorchs(void **state)
{
    (void)state;
    for (int k = 0; k < N_OF_PYTORCH; k++)
        for (uint32_t backward = 0; backward < 2; backward++) {
            ty_ref in[6], want[2] = {case_noise(DIMS(2, 2, 2), 0), case_noise(DIMS(2, 2), 0)};
            memcpy(want[0].f, pytorch[k][backward], 8 * sizeof(double));
            memcpy(want[1].f, pytorch[k][backward] + 8, 4 * sizeof(double));
            int n = layer_operands(&layers[k], 2, 2, 3, 2, in);
            case_expect(TY_OP_RNN, layer_attr(&layers[k], backward), in, n, want);
        }
}

/* The order of gates is where weights lie and nothing else. */
static void order_of_gates_is_order_of_blocks(void **state)
{
    (void)state;
    enum { H = 2, WIDE = 4 * H };
    const rnn_layer *onnx = &layers[7], *torch = &layers[3];
    ty_ref in[6], moved[6], want[2];
    layer_operands(torch, 3, 2, H, H, in);
    layer_operands(torch, 3, 2, H, H, moved);
    for (int v = TY_RNN_W; v <= TY_RNN_BIAS; v++)
        for (int k = 0; k < 4; k++) {
            int64_t floats = ty_type_elems(&in[v].type) / 4;
            memcpy(moved[v].f + onnx->block[k] * floats, in[v].f + torch->block[k] * floats,
                   sizeof(double) * (size_t)floats);
        }
    case_run(TY_OP_RNN, layer_attr(torch, 0), in, 6, want);
    case_expect(TY_OP_RNN, layer_attr(onnx, 0), moved, 6, want);
}

static void layers_refuse(void **state)
{
    (void)state;
    ty_ref x = TYPE(TY_F32, DIMS(5, 2, 3)), w = TYPE(TY_F32, DIMS(16, 3)), r = TYPE(TY_F32, DIMS(16, 4));
    ty_ref b = TYPE(TY_F32, DIMS(16)), h = TYPE(TY_F32, DIMS(2, 4));
    ty_attr lstm = layer_attr(&layers[3], 0), bad = lstm;
    case_refused(TY_OP_RNN, lstm, IN(x, w, r, b, h), "c: expected for an LSTM");
    case_refused(TY_OP_RNN, lstm, IN(x, w, r, b, h, TYPE(TY_F32, DIMS(2, 5))), "c: expected f32[2,4]");
    case_refused(TY_OP_RNN, lstm, IN(x, TYPE(TY_F32, DIMS(16, 4)), r, b, h, h), "w: expected f32[16,3]");
    case_refused(TY_OP_RNN, lstm, IN(x, w, TYPE(TY_F32, DIMS(12, 4)), b, h, h), "expected f32[16");
    case_refused(TY_OP_RNN, lstm, IN(x, w, r, TYPE(TY_F32, DIMS(20)), h, h), "bias: expected f32[16], found f32[20]");
    case_refused(TY_OP_RNN, lstm, IN(x, w, r, b, TYPE(TY_F64, DIMS(2, 4)), h), "h: expected f32[2,4]");
    case_refused(TY_OP_RNN, lstm, IN(TYPE(TY_F32, DIMS(0, 2, 3)), w, r, b, h, h), "at least one step");
    case_refused(TY_OP_RNN, lstm, IN(TYPE(TY_F64, DIMS(5, 2, 3)), w, r, b, h, h), "r: expected f64, found f32");
    case_refused(TY_OP_RNN, lstm, IN(x, w, TYPE(TY_BF16, DIMS(16, 4)), b, h, h), "r: expected f32, found bf16");
    case_refused(TY_OP_RNN, lstm, IN(x, w, r, TYPE(TY_BF16, DIMS(16)), h, h), "bias: expected f32, found bf16");
    case_refused(TY_OP_RNN_STEPS, lstm,
                 IN(TYPE(TY_F64, DIMS(5, 2, 16)), TYPE(TY_BF16, DIMS(16, 4)), TYPE(TY_F64, DIMS(16)),
                    TYPE(TY_F64, DIMS(2, 4)), TYPE(TY_F64, DIMS(2, 4))),
                 "r: expected f64[16,4]");
    case_refused(TY_OP_RNN, lstm, IN(TYPE(TY_BF16, DIMS(5, 2, 3)), w, r, b, h, h), "r: expected bf16, found f32");
    enum { MANY = 1 << 30 };
    case_refused(TY_OP_RNN_STEPS, (ty_attr){.n = 1},
                 IN(TYPE(TY_F32, DIMS(1, MANY, MANY)), TYPE(TY_F32, DIMS(MANY, MANY)), TYPE(TY_F32, DIMS(MANY)),
                    TYPE(TY_F32, DIMS(MANY, MANY))),
                 "below 2^63");
    bad.lo[3] = 2;
    case_refused(TY_OP_RNN, bad, IN(x, w, r, b, h, h), "each of 0 to 3 once");
    bad = lstm;
    bad.flags = TY_RNN_RESET_AFTER;
    case_refused(TY_OP_RNN, bad, IN(x, w, r, b, h, h), "flags: expected");
    bad.n = 2;
    case_refused(TY_OP_RNN_STEPS, bad, IN(TYPE(TY_F32, DIMS(5, 2, 8)), r, b, h), "gates: expected 1 (vanilla)");
    case_refused(TY_OP_RNN_GRAD, layer_attr(&layers[2], 0),
                 IN(TYPE(TY_F32, DIMS(5, 2, 4)), TYPE(TY_F32, DIMS(12, 4)), TYPE(TY_F32, DIMS(6, 2, 4))),
                 "expected the gates and what was kept");
}

static void layers_lower(void **state)
{
    (void)state;
    for (int k = 0; k < N_LAYERS; k++)
        for (uint32_t backward = 0; backward < 2; backward++) {
            ty_ref in[6];
            int n = layer_operands(&layers[k], 3, 2, 3, 2, in);
            node_lowers(TY_OP_RNN, layer_attr(&layers[k], backward), in, n);
        }
}

/* x, w and r of 16 bits, all else of 32. */
static void layers_lower_with_short_products(void **state)
{
    (void)state;
    for (int k = 0; k < N_LAYERS; k++) {
        ty_ref in[6];
        int n = layer_operands(&layers[k], 3, 2, 3, 2, in);
        for (int i = 0; i < n; i++) {
            in[i].type.dtype = i <= TY_RNN_WEIGHT ? TY_BF16 : TY_F32;
            ty_ref_round(&in[i]);
        }
        node_lowers(TY_OP_RNN, layer_attr(&layers[k], 0), in, n);
    }
}

static ty_ref number(ty_dtype dtype, ty_type type, double v)
{
    ty_ref r = case_noise(type.rank, type.dim, 1);
    r.type.dtype = (uint8_t)dtype;
    r.f[0] = v;
    return r;
}

/* What is multiplied by r is rounded to its type, what a step leaves behind is not: relu(0 + 1 h) of one unit. */
static void steps_round_what_they_multiply(void **state)
{
    (void)state;
    const double odd = 1 + 0x1p-9; /* 1 as bfloat16 */
    ty_type wide = TYPE(TY_F32, DIMS(1, 1, 1)).type, square = TYPE(TY_F32, DIMS(1, 1)).type;
    ty_type one = TYPE(TY_F32, DIMS(1)).type, states = TYPE(TY_F32, DIMS(2, 1, 1)).type;
    ty_attr relu = {.n = 1, .flags = TY_RNN_RELU};
    for (int rounds = 0; rounds < 2; rounds++) {
        ty_dtype weight = rounds ? TY_BF16 : TY_F32;
        ty_ref r = number(weight, square, 1), steps[TY_STEPS_N_RES], grads[TY_RGRAD_N_RES];
        ty_ref in[] = {number(TY_F32, wide, 0), r, number(TY_F32, one, 0), number(TY_F32, square, odd)};
        case_run(TY_OP_RNN_STEPS, relu, in, 4, steps);
        assert_true(steps[TY_STEPS_H].f[0] == odd);
        assert_true(steps[TY_STEPS_H].f[1] == (rounds ? 1 : odd));
        ty_ref h = number(TY_F32, states, odd);
        h.f[1] = odd;
        ty_ref back[] = {number(TY_F32, wide, odd), r, h};
        case_run(TY_OP_RNN_GRAD, relu, back, 3, grads);
        assert_true(grads[TY_RGRAD_DREC].f[0] == odd);
        assert_true(grads[TY_RGRAD_DH0].f[0] == (rounds ? 1 : odd));
    }
}

/* By every operand, through outputs and last states together. */
static void layers_have_gradients(void **state)
{
    (void)state;
    for (int k = 0; k < N_LAYERS; k++)
        for (uint32_t backward = 0; backward < 2; backward++) {
            const rnn_layer *l = &layers[k];
            ty_ref in[6];
            node_case c = {.op = TY_OP_RNN, .attr = layer_attr(l, backward)};
            c.check.n_in = layer_operands(l, 3, 2, 3, 2, in);
            for (int i = 0; i < c.check.n_in; i++) {
                c.check.in[i].rank = in[i].type.rank;
                memcpy(c.check.in[i].dim, in[i].type.dim, sizeof in[i].type.dim);
            }
            node_gradcheck(l->name, c);
        }
}

/* One result of two, as training uses it. */
static ty_val build_one_result(ty_graph *g, const ty_val *x, const void *ctx)
{
    const uint32_t *which = ctx; /* layer, result */
    const rnn_layer *l = &layers[which[0]];
    ty_attr attr = layer_attr(l, 0);
    ty_val v = ty_graph_emit(g, TY_OP_RNN, &attr, x, l->gates == TY_RNN_LSTM ? 6 : 5);
    return ty_val_make(ty_val_node(v), which[1]);
}

static void each_result_has_a_gradient(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < N_OF_PYTORCH; k++)
        for (uint32_t result = 0; result < 2; result++) {
            int64_t wide = layers[k].gates * 2, bias = wide + (layers[k].gates == TY_RNN_GRU ? 2 : 0);
            gradcheck(&(gradcheck_case){.name = layers[k].name,
                                        .build = build_one_result,
                                        .ctx = (const uint32_t[]){k, result},
                                        .n_in = layers[k].gates == TY_RNN_LSTM ? 6 : 5,
                                        .in = {GRAD_IN(2, 2, 3), GRAD_IN(wide, 3), GRAD_IN(wide, 2), GRAD_IN(bias),
                                               GRAD_IN(2, 2), GRAD_IN(2, 2)}});
        }
}

/* Training runs the steps once forward and once back, with four products beside: the input's, and the gradients of w, r
 * and x. */
static void gradient_finds_the_forward_pass(void **state)
{
    (void)state;
    for (int k = 0; k < N_OF_PYTORCH; k++) {
        ty_ref in[6];
        int n = layer_operands(&layers[k], 3, 2, 3, 2, in);
        ty_attr attr = layer_attr(&layers[k], 0);
        assert_int_equal(node_count_lowered(TY_OP_RNN, attr, in, n, n, TY_OP_RNN_STEPS, 0), 1);
        assert_int_equal(node_count_lowered(TY_OP_RNN, attr, in, n, n, TY_OP_RNN_GRAD, 0), 1);
        assert_int_equal(node_count_lowered(TY_OP_RNN, attr, in, n, n, TY_OP_DOT, 0), 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_pytorchs),
        cmocka_unit_test(order_of_gates_is_order_of_blocks),
        cmocka_unit_test(layers_refuse),
        cmocka_unit_test(layers_lower),
        cmocka_unit_test(layers_lower_with_short_products),
        cmocka_unit_test(steps_round_what_they_multiply),
        cmocka_unit_test(layers_have_gradients),
        cmocka_unit_test(each_result_has_a_gradient),
        cmocka_unit_test(gradient_finds_the_forward_pass),
    };
    return cmocka_run_group_tests_name("ops_rnn", tests, case_setup, case_teardown);
}
