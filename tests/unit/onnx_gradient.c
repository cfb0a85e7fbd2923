/* Slopes that a file does not tell, and the network that it was written from has. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/passes/passes.h"
#include "tests/unit/onnx_model.h"

/* dy/dx where y is the sum of the model's output. */
static void expect_slope(const char *op, const float *x, const double *slope)
{
    model_text t;
    ty_onnx_values values;
    ty_error err = {0};
    model_begin(&t, 17);
    model_input(&t, "x", 1, SHAPE(2, 2));
    attr_ints(&t, "axes", 1, (int64_t[]){1});
    model_node(&t, op, "x", "y", "");
    model_output(&t, "y", 1);
    ty_onnx *m = model_open(&t);
    ty_graph *g = ty_graph_new();
    ty_val in = new_input(g, TY_F32, SHAPE(2, 2)), dx;
    ty_onnx_binding b = {.mode = TY_ONNX_TRAIN, .inputs = &in, .seed = TY_NONE, .step = TY_NONE};
    if (ty_onnx_import(m, g, &b, &values, &err) < 0)
        fail_msg("%s", err.message);
    ty_val loss = ty_b_sum(g, values.outputs[0], ty_b_all_axes(g, values.outputs[0]), false);
    assert_int_equal(ty_pass_autodiff(g, loss, &in, 1, &dx, &err), 0);
    expect_floats(g, dx, (const void *const[]){x}, 4, slope);
    ty_graph_free(g);
    ty_onnx_free(m);
    ty_buf_fini(&t.file);
}

/* torch.nn.functional.normalize of what was padded: the slope of a norm of zeros is 0, that of others x / norm. */
static void test_norm_of_zeros(void **state)
{
    (void)state;
    expect_slope("ReduceL2", (const float[]){0, 0, 0, -4}, (const double[]){0, 0, 0, -1});
    expect_slope("ReduceL1", (const float[]){0, 0, 3, -4}, (const double[]){0, 0, 1, -1});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norm_of_zeros),
    };
    return cmocka_run_group_tests_name("onnx_gradient", tests, NULL, NULL);
}
