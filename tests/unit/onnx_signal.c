/* Spectra: whose windows are weights, and what is refused. Numbers are judged by ONNX's own cases and by numpy
 * (tests/import/onnx_backend.sh). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/onnx_model.h"

static const float numbers_of_four[] = {0, 0.5f, 1, 0.5f};

/* x [1, 9] every 2 samples through a window, as it is or cast. */
static void write_frames(model_text *m, bool is_cast)
{
    model_begin(m, 18);
    model_input(m, "x", 1, SHAPE(1, 9));
    model_floats(m, "window", SHAPE(4), numbers_of_four);
    model_floats(m, "weight", SHAPE(2), numbers_of_four);
    model_ints(m, "steps", 1, (const int64_t[]){2});
    model_node(m, "Squeeze", "steps", "step", "");
    attr_int(m, "to", 1);
    model_node(m, "Cast", "window", "given", "");
    model_node(m, "STFT", is_cast ? "x,step,given" : "x,step,window", "z", "");
    model_node(m, "Mul", "z,weight", "y", "");
    model_output(m, "y", 1);
}

/* The tracing exporter says of no initializer what it is. */
static void windows_are_no_weights(void **state)
{
    (void)state;
    for (int is_cast = 0; is_cast < 2; is_cast++) {
        model_text m;
        write_frames(&m, is_cast);
        ty_onnx *o = model_open(&m);
        for (int i = 0; i < ty_onnx_n_initializers(o); i++) {
            const ty_onnx_initializer *w = ty_onnx_initializer_at(o, i);
            assert_int_equal(w->mark, strcmp(w->name, "window") == 0 ? TY_ONNX_BUFFER : TY_ONNX_UNMARKED);
        }
        ty_onnx_free(o);
        ty_buf_fini(&m.file);
    }
}

typedef struct refusal {
    int64_t opset;
    int rank;
    int64_t dim[4];
    const char *op, *inputs; /* of x, "length", "step", "axis", "window" */
    int64_t length, axis, onesided, inverse;
    const char *message;
} refusal;

static const refusal refusals[] = {
    {17, 3, {1, 8, 3}, "DFT", "x", 0, 1, 0, 0, "must be floats with a last axis of 1"},
    {17, 3, {1, 8, 2}, "DFT", "x", 0, 1, 1, 0, "unsupported attribute value in DFT"},
    {17, 3, {1, 8, 1}, "DFT", "x", 0, 2, 0, 0, "axis 2 is that of the real and imaginary parts"},
    {17, 3, {1, 8, 1}, "DFT", "x", 0, 5, 0, 0, "axis 5"},
    {17, 3, {1, 8, 1}, "DFT", "x,length", 0, 1, 0, 0, "a transform of 0 numbers"},
    {17, 3, {1, 8, 1}, "DFT", "x,length", -4, 1, 0, 0, "a transform of -4 numbers"},
    {17, 3, {1, 1, 2}, "DFT", "x", 0, 1, 1, 1, "a transform of 0 numbers"},
    {17, 3, {1, 9000, 1}, "DFT", "x", 0, 1, 0, 0, "a transform of 9000 numbers is too long"},
    {20, 3, {1, 8, 1}, "DFT", "x,,axis", 0, -1, 0, 0, "axis -1 is that of the real"},
    {17, 3, {1, 8, 1}, "STFT", "x,step,window,length", 5, 1, 1, 0, "must be [5], a number for each sample"},
    {17, 3, {1, 8, 1}, "STFT", "x,step", 0, 1, 1, 0, "a transform of 0 numbers"},
    {17, 3, {1, 3, 1}, "STFT", "x,step,window", 0, 1, 1, 0, "at least a frame, found frames of 4"},
    {17, 3, {1, 8, 2}, "STFT", "x,step,window", 0, 1, 1, 0, "unsupported attribute value in STFT"},
    {17, 1, {8}, "STFT", "x,step,window", 0, 1, 1, 0, "must be floats"},
};

static void write_refused(model_text *m, const refusal *r)
{
    model_begin(m, r->opset);
    model_input(m, "x", 1, r->rank, r->dim);
    model_floats(m, "window", SHAPE(4), numbers_of_four);
    model_ints(m, "step", 1, (const int64_t[]){2});
    model_ints(m, "length", 1, &r->length);
    model_ints(m, "axis", 1, &r->axis);
    attr_int(m, "onesided", r->onesided);
    if (strcmp(r->op, "DFT") == 0) {
        attr_int(m, "inverse", r->inverse);
        if (r->opset < 20)
            attr_int(m, "axis", r->axis);
    }
    model_node(m, r->op, r->inputs, "y", "it");
    model_output(m, "y", 1);
}

static void what_is_no_spectrum_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *r = &refusals[i];
        model_text m;
        ty_onnx_values values;
        ty_error err = {0};
        write_refused(&m, r);
        ty_onnx *o = model_open(&m);
        ty_graph *g = ty_graph_new();
        ty_val x = new_input(g, TY_F32, r->rank, r->dim), init[4] = {TY_NONE, TY_NONE, TY_NONE, TY_NONE};
        ty_onnx_binding b = {
            .mode = TY_ONNX_TRAIN, .inputs = &x, .initializers = init, .seed = TY_NONE, .step = TY_NONE};
        assert_true(ty_onnx_import(o, g, &b, &values, &err) < 0);
        if (!strstr(err.message, r->message))
            fail_msg("%zu: expected \"%s\" in \"%s\"", i, r->message, err.message);
        ty_graph_free(g);
        ty_onnx_free(o);
        ty_buf_fini(&m.file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_no_weights),
        cmocka_unit_test(what_is_no_spectrum_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
