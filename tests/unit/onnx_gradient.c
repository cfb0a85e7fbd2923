/* Slopes that a file does not tell, and the network that it was written from has. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/passes/passes.h"
#include "tests/unit/onnx_model.h"

#include <math.h>

/* A model of one input x and one output y; dx: of the sum of y. */
typedef struct slopes {
    ty_onnx *m;
    ty_graph *g;
    ty_val y, dx;
} slopes;

static void open_slopes(slopes *s, model_text *t)
{
    ty_onnx_values values;
    ty_error err = {0};
    s->m = model_open(t);
    s->g = ty_graph_new();
    const ty_onnx_value *v = ty_onnx_input(s->m, 0);
    ty_val in = new_input(s->g, v->dtype, v->rank, v->dim);
    ty_onnx_binding b = {.mode = TY_ONNX_TRAIN, .inputs = &in, .seed = TY_NONE, .step = TY_NONE};
    if (ty_onnx_import(s->m, s->g, &b, &values, &err) < 0)
        fail_msg("%s", err.message);
    s->y = values.outputs[0];
    ty_val loss = ty_b_sum(s->g, s->y, ty_b_all_axes(s->g, s->y), false);
    assert_int_equal(ty_pass_autodiff(s->g, loss, &in, 1, &s->dx, &err), 0);
}

static void close_slopes(slopes *s, model_text *t)
{
    ty_graph_free(s->g);
    ty_onnx_free(s->m);
    ty_buf_fini(&t->file);
}

/* Of a norm along axis 1. */
static void expect_slope(const char *op, const float *x, const double *slope)
{
    model_text t;
    slopes s;
    model_begin(&t, 17);
    model_input(&t, "x", 1, SHAPE(2, 2));
    attr_ints(&t, "axes", 1, (int64_t[]){1});
    model_node(&t, op, "x", "y", "");
    model_output(&t, "y", 1);
    open_slopes(&s, &t);
    expect_floats(s.g, s.dx, (const void *const[]){x}, 4, slope);
    close_slopes(&s, &t);
}

/* torch.nn.functional.normalize of what was padded: the slope of a norm of zeros is 0, that of others x / norm. */
static void test_norm_of_zeros(void **state)
{
    (void)state;
    expect_slope("ReduceL2", (const float[]){0, 0, 0, -4}, (const double[]){0, 0, 0, -1});
    expect_slope("ReduceL1", (const float[]){0, 0, 3, -4}, (const double[]){0, 0, 1, -1});
}

/* torch.nn.functional.logsigmoid, which exporters write as Log(Sigmoid(x)). */
static void test_log_of_sigmoid(void **state)
{
    (void)state;
    model_text t;
    slopes s;
    model_begin(&t, 17);
    model_input(&t, "x", 1, SHAPE(4));
    model_node(&t, "Sigmoid", "x", "s", "");
    model_node(&t, "Log", "s", "y", "");
    model_output(&t, "y", 1);
    open_slopes(&s, &t);
    const void *x[] = {(float[]){-2000, -100, 0, 2000}};
    expect_floats(s.g, s.y, x, 4, (double[]){-2000, -100, -0.69314718055994529, 0});
    expect_floats(s.g, s.dx, x, 4, (double[]){1, 1, 0.5, 0});
    close_slopes(&s, &t);
}

/* Nothing overflows on the way to a slope that is a small number. */
static void test_slopes_far_out(void **state)
{
    static const char *const ops[] = {"Sigmoid",   "Softplus", "Elu",  "Selu", "Celu", "Mish",
                                      "HardSwish", "Softsign", "Tanh", "Erf",  "Atan", "Gelu"};
    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        model_text t;
        slopes s;
        model_begin(&t, 20);
        model_input(&t, "x", 1, SHAPE(4));
        model_node(&t, ops[i], "x", "y", "");
        model_output(&t, "y", 1);
        open_slopes(&s, &t);
        const double *slope = evaluate(s.g, s.dx, (const void *const[]){(float[]){-1e4f, -800, 800, 1e4f}}, false);
        for (int k = 0; k < 4; k++)
            if (!(fabs(slope[k]) < 2))
                fail_msg("%s: slope %g at %d", ops[i], slope[k], k);
        close_slopes(&s, &t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norm_of_zeros),
        cmocka_unit_test(test_log_of_sigmoid),
        cmocka_unit_test(test_slopes_far_out),
    };
    return cmocka_run_group_tests_name("onnx_gradient", tests, NULL, NULL);
}
