/* Blocks that are added up, where ONNX's own cases (tests/import/onnx_backend.sh) do not look: with paddings. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/onnx_model.h"

/* Numbers k of a block times ten plus its place l; their image of 3 x 3. */
static void expect_image(const int64_t *step, const int64_t *pad, int64_t places, const double *image)
{
    model_text t;
    ty_onnx_values values;
    ty_error err = {0};
    float numbers[64];
    model_begin(&t, 18);
    model_input(&t, "x", 1, SHAPE(1, 4, places));
    model_ints(&t, "image", 2, (int64_t[]){3, 3});
    model_ints(&t, "block", 2, (int64_t[]){2, 2});
    attr_ints(&t, "strides", 2, step);
    attr_ints(&t, "pads", 4, pad);
    model_node(&t, "Col2Im", "x,image,block", "y", "");
    model_output(&t, "y", 1);
    for (int i = 0; i < 4 * places; i++)
        numbers[i] = (float)(i / places * 10 + i % places);
    ty_onnx *m = model_open(&t);
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, SHAPE(1, 4, places)), init[2] = {TY_NONE, TY_NONE};
    ty_onnx_binding b = {.mode = TY_ONNX_TRAIN, .inputs = &x, .initializers = init, .seed = TY_NONE, .step = TY_NONE};
    if (ty_onnx_import(m, g, &b, &values, &err) < 0)
        fail_msg("%s", err.message);
    const ty_type *type = ty_graph_type(g, values.outputs[0]);
    assert_true(type->rank == 4 && type->dim[1] == 1 && type->dim[2] == 3 && type->dim[3] == 3);
    expect_floats(g, values.outputs[0], (const void *const[]){numbers}, 9, image);
    ty_graph_free(g);
    ty_onnx_free(m);
    ty_buf_fini(&t.file);
}

/* Two by two blocks side by side, of which the padding takes the first row and column, and the fifth of each lies
 * nowhere. */
static void test_padding_takes_some(void **state)
{
    (void)state;
    expect_image((int64_t[]){2, 2}, (int64_t[]){1, 1, 1, 1}, 4, (double[]){30, 21, 31, 12, 3, 13, 32, 23, 33});
}

/* Four places that overlap: in the middle all four numbers meet. */
static void test_overlaps_add_up(void **state)
{
    (void)state;
    expect_image((int64_t[]){1, 1}, (int64_t[]){0, 0, 0, 0}, 4, (double[]){0, 11, 11, 22, 66, 44, 22, 55, 33});
}

/* A block that begins in front of the image and one that ends behind it. */
static void test_padding_on_one_side(void **state)
{
    (void)state;
    expect_image((int64_t[]){3, 1}, (int64_t[]){1, 0, 1, 0}, 4, (double[]){20, 51, 31, 0, 0, 0, 2, 15, 13});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_padding_takes_some),
        cmocka_unit_test(test_overlaps_add_up),
        cmocka_unit_test(test_padding_on_one_side),
    };
    return cmocka_run_group_tests_name("onnx_col2im", tests, NULL, NULL);
}
