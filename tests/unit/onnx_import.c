/* The importer: what folds away, what training changes, and what is refused with which words. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/import/onnx_tree.h"
#include "tests/unit/onnx_model.h"

#include <math.h>
#include <unistd.h>

enum { FLOAT = 1, INT64 = 7, STRING = 8, BOOL = 9 };

/* A model with its graph; inputs are bound with free dims set to `batch`, initializers given in `init` (NULL:
 * constants). */
typedef struct fixture {
    model_text text;
    ty_onnx *m;
    ty_graph *g;
    ty_val in[8];
    ty_val init[16];
    bool bind_states;
    ty_onnx_values values;
    ty_error err;
} fixture;

static int open_fixture(fixture *f, int64_t batch, ty_onnx_mode mode)
{
    if (!f->m) {
        f->m = model_open(&f->text);
        f->g = ty_graph_new();
        for (int i = 0; i < ty_onnx_n_inputs(f->m); i++) {
            const ty_onnx_value *v = ty_onnx_input(f->m, i);
            int64_t dim[TY_MAX_RANK];
            for (int k = 0; k < v->rank; k++)
                dim[k] = v->dim[k] < 0 ? batch : v->dim[k];
            f->in[i] = new_input(f->g, v->dtype, v->rank, dim);
        }
        for (int i = 0; i < ty_onnx_n_initializers(f->m); i++) {
            const ty_onnx_initializer *w = ty_onnx_initializer_at(f->m, i);
            ty_state s = {.name = w->name,
                          .type = w->type,
                          .init = &w->data,
                          .n_segments = 1,
                          .segments = &(ty_segment){w->name, w->type, 0}};
            bool state = f->bind_states && ty_dtype_is_float((ty_dtype)w->type.dtype);
            f->init[i] = state ? ty_b_state(f->g, ty_graph_add_state(f->g, &s)) : TY_NONE;
        }
    }
    ty_onnx_binding b = {.mode = mode,
                         .inputs = f->in,
                         .initializers = f->init,
                         .seed = ty_b_scalar(f->g, TY_I64, 1),
                         .step = ty_b_scalar(f->g, TY_I64, 2)};
    return ty_onnx_import(f->m, f->g, &b, &f->values, &f->err);
}

static void close_fixture(fixture *f)
{
    ty_graph_free(f->g);
    ty_onnx_free(f->m);
    ty_buf_fini(&f->text.file);
}

static void expect_import(fixture *f, int64_t batch, ty_onnx_mode mode)
{
    if (open_fixture(f, batch, mode) < 0) {
        char text[6000];
        ty_error_format(&f->err, text, sizeof text);
        fail_msg("%s", text);
    }
}

static void expect_type(const fixture *f, ty_val v, ty_dtype dtype, int rank, const int64_t *dim)
{
    ty_type want = ty_type_make(dtype, rank, dim);
    char a[160], b[160];
    assert_string_equal(ty_type_text(ty_graph_type(f->g, v), a, sizeof a), ty_type_text(&want, b, sizeof b));
}

/* ---- opening ------------------------------------------------------------------------------------------------------
 */

/* The smallest model of the format notes. */
static const char smallest[] =
    "\x08\x08\x12\x01\x70\x3a\x41\x0a\x10\x0a\x01\x78\x12\x01\x79\x1a\x02\x72\x30\x22\x04\x52\x65\x6c\x75"
    "\x12\x01\x67\x5a\x14\x0a\x01\x78\x12\x0f\x0a\x0d\x08\x01\x12\x09\x0a\x03\x12\x01\x4e\x0a\x02\x08\x04"
    "\x62\x14\x0a\x01\x79\x12\x0f\x0a\x0d\x08\x01\x12\x09\x0a\x03\x12\x01\x4e\x0a\x02\x08\x04\x42\x04\x0a"
    "\x00\x10\x11";

static void test_smallest_model(void **state)
{
    (void)state;
    ty_onnx *m;
    ty_error err = {0};
    assert_int_equal(ty_onnx_open_memory("s", smallest, sizeof smallest - 1, &m, &err), 0);
    assert_int_equal(ty_onnx_opset(m), 17);
    assert_int_equal(ty_onnx_ir_version(m), 8);
    assert_string_equal(ty_onnx_producer(m), "p");
    const ty_onnx_value *x = ty_onnx_input(m, 0);
    assert_int_equal(ty_onnx_n_inputs(m), 1);
    assert_int_equal(x->rank, 2);
    assert_int_equal(x->dim[0], -1);
    assert_string_equal(x->dim_name[0], "N");
    assert_int_equal(x->dim[1], 4);
    ty_onnx_free(m);
}

/* Cut anywhere, the file must be refused or, where the cut falls between fields, be another valid model. */
static void test_every_cut(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof smallest - 1; n++) {
        ty_onnx *m;
        ty_error err = {0};
        void *exact = malloc(n ? n : 1);
        memcpy(exact, smallest, n);
        if (ty_onnx_open_memory("s", exact, n, &m, &err) == 0)
            ty_onnx_free(m);
        else
            assert_true(err.message[0] && err.place[0]);
        free(exact);
    }
}

static void expect_open_error(model_text *t, const char *message, const char *place)
{
    ty_onnx *m;
    ty_error err = {0};
    model_end(t);
    assert_int_equal(ty_onnx_open_memory("model.onnx", t->file.data, t->file.len, &m, &err), -1);
    if (!strstr(err.message, message))
        fail_msg("found \"%s\", expected \"%s\"", err.message, message);
    assert_string_equal(err.place, place);
    ty_buf_fini(&t->file);
}

static void test_damaged_initializers(void **state)
{
    (void)state;
    model_text t;
    const char *place = "model.onnx: graph \"main\", initializer #0 \"w\"";
    model_begin(&t, 18);
    model_raw(&t, "w", FLOAT, SHAPE(2, 2), "0123456789", 10);
    expect_open_error(&t, "holds 10 bytes where its shape needs 16", place);
    model_begin(&t, 18);
    model_raw(&t, "w", FLOAT, SHAPE(1 << 30, 1 << 30, 1 << 30), "", 0);
    expect_open_error(&t, "negative or too large", place);
    model_begin(&t, 18);
    model_raw(&t, "w", 99, SHAPE(1), "", 0);
    expect_open_error(&t, "unknown number 99", place);
    model_begin(&t, 18);
    model_raw(&t, "w", FLOAT, SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1), "0123", 4);
    expect_open_error(&t, "9 dimensions", place);
    model_begin(&t, 18);
    model_floats(&t, "w", SHAPE(1), (float[]){1});
    model_floats(&t, "w", SHAPE(1), (float[]){1});
    expect_open_error(&t, "two initializers are called \"w\"", "model.onnx");
}

static void put_external(ty_buf *t, const char *key, const char *value)
{
    ty_buf pair;
    ty_buf_init(&pair, 4096);
    put_text(&pair, 1, key);
    put_text(&pair, 2, value);
    put_sub(t, 13, &pair);
}

/* Opens DIR/model.onnx whose one weight lies at `location`. */
static int open_external(const char *dir, const char *location, const char *offset, ty_onnx **m, ty_error *err)
{
    model_text text;
    ty_buf t;
    char path[512];
    model_begin(&text, 18);
    ty_buf_init(&t, 1 << 16);
    put_int(&t, 1, 3);
    put_int(&t, 2, FLOAT);
    put_text(&t, 8, "w");
    put_external(&t, "location", location);
    put_external(&t, "offset", offset);
    put_int(&t, 14, 1);
    put_sub(&text.graph, 5, &t);
    model_end(&text);
    snprintf(path, sizeof path, "%s/model.onnx", dir);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fwrite(text.file.data, 1, text.file.len, f);
    fclose(f);
    ty_buf_fini(&text.file);
    memset(err, 0, sizeof *err);
    return ty_onnx_open(path, m, err);
}

static void test_external_data(void **state)
{
    (void)state;
    char dir[] = "/tmp/onnx_import_XXXXXX", path[600], link[600];
    ty_onnx *m;
    ty_error err;
    const float data[] = {9, 1, 2, 3};
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/w.bin", dir);
    FILE *f = fopen(path, "wb");
    fwrite(data, 4, 4, f);
    fclose(f);
    assert_int_equal(open_external(dir, "w.bin", "4", &m, &err), 0);
    assert_memory_equal(ty_onnx_initializer_at(m, 0)->data, data + 1, 12);
    ty_onnx_free(m);
    assert_int_equal(open_external(dir, "w.bin", "8", &m, &err), -1);
    assert_non_null(strstr(err.message, "beyond the end"));
    snprintf(link, sizeof link, "%s/link.bin", dir);
    assert_int_equal(symlink("w.bin", link), 0);
    static const char *const escapes[] = {"../w.bin", "/etc/hostname", "a/../../w.bin", "", "..", "a\\b", "link.bin"};
    for (size_t i = 0; i < sizeof escapes / sizeof escapes[0]; i++)
        assert_int_equal(open_external(dir, escapes[i], "0", &m, &err), -1);
    unlink(link);
    assert_int_equal(rename(path, link), 0);
    assert_int_equal(symlink("link.bin", path), 0);
    assert_int_equal(open_external(dir, "w.bin", "0", &m, &err), -1);
    unlink(path);
    unlink(link);
    snprintf(path, sizeof path, "%s/model.onnx", dir);
    unlink(path);
    rmdir(dir);
}

/* ---- shapes -------------------------------------------------------------------------------------------------------
 */

/* What exporters write around a reshape becomes a constant, and the graph holds only the reshape. */
static void test_shape_chain_folds(void **state)
{
    (void)state;
    fixture f = {0};
    model_begin(&f.text, 18);
    model_input(&f.text, "x", FLOAT, SHAPE(-1, 4, 6));
    model_ints(&f.text, "zero", 1, (int64_t[]){0});
    model_ints(&f.text, "rest", 1, (int64_t[]){-1});
    attr_int(&f.text, "start", 0);
    attr_int(&f.text, "end", 1);
    model_node(&f.text, "Shape", "x", "n", "");
    model_node(&f.text, "Gather", "n,zero", "g", "");
    model_node(&f.text, "Mul", "g,g", "gg", "");
    model_node(&f.text, "Div", "gg,g", "d", "");
    attr_int(&f.text, "axis", 0);
    model_node(&f.text, "Concat", "d,rest", "shape", "");
    model_node(&f.text, "Reshape", "x,shape", "y", "");
    model_output(&f.text, "y", FLOAT);
    expect_import(&f, 5, TY_ONNX_EVAL);
    expect_type(&f, f.values.outputs[0], TY_F32, SHAPE(5, 24));
    assert_int_equal(ty_graph_op(f.g, ty_val_node(f.values.outputs[0])), TY_OP_RESHAPE);
    close_fixture(&f);
}

static void test_sequences_fold(void **state)
{
    (void)state;
    fixture f = {0};
    const float x[] = {1, 2, 3, 4, 5, 6};
    model_begin(&f.text, 18);
    model_input(&f.text, "x", FLOAT, SHAPE(1, 6));
    model_ints(&f.text, "sizes", 3, (int64_t[]){1, 2, 3});
    model_raw(&f.text, "at", INT64, 0, NULL, &(int64_t){-2}, 8);
    attr_int(&f.text, "axis", 1);
    model_node(&f.text, "SplitToSequence", "x,sizes", "s", "");
    model_node(&f.text, "SequenceAt", "s,at", "y", "");
    model_output(&f.text, "y", FLOAT);
    expect_import(&f, 1, TY_ONNX_EVAL);
    expect_type(&f, f.values.outputs[0], TY_F32, SHAPE(1, 2));
    const double *y = evaluate(f.g, f.values.outputs[0], (const void *[]){x}, false);
    assert_true(y[0] == 2 && y[1] == 3);
    close_fixture(&f);
}

static void test_second_import_adds_nothing(void **state)
{
    (void)state;
    fixture f = {.bind_states = true};
    static float big[64 * 64];
    model_begin(&f.text, 18);
    model_input(&f.text, "x", FLOAT, SHAPE(-1, 64));
    model_raw(&f.text, "odd", BOOL, SHAPE(3), "\1\0\1", 3);
    model_floats(&f.text, "w", SHAPE(64, 64), big);
    model_node(&f.text, "MatMul", "x,w", "h", "");
    model_node(&f.text, "Relu", "h", "y", "");
    model_output(&f.text, "y", FLOAT);
    expect_import(&f, 3, TY_ONNX_EVAL);
    uint32_t n = ty_graph_n_nodes(f.g);
    ty_val y = f.values.outputs[0];
    expect_import(&f, 3, TY_ONNX_TRAIN);
    assert_int_equal(ty_graph_n_nodes(f.g), n);
    assert_int_equal(f.values.outputs[0], y);
    f.bind_states = false; /* as constants: large and perhaps unaligned, yet found again by address */
    f.init[1] = TY_NONE;
    expect_import(&f, 3, TY_ONNX_EVAL);
    n = ty_graph_n_nodes(f.g);
    expect_import(&f, 3, TY_ONNX_EVAL);
    assert_int_equal(ty_graph_n_nodes(f.g), n);
    close_fixture(&f);
}

static void test_origins_name_the_node(void **state)
{
    (void)state;
    fixture f = {0};
    model_begin(&f.text, 18);
    model_input(&f.text, "x", FLOAT, SHAPE(2));
    model_node(&f.text, "Exp", "x", "y", "/layers.0/act/Exp");
    model_output(&f.text, "y", FLOAT);
    expect_import(&f, 1, TY_ONNX_EVAL);
    assert_string_equal(ty_graph_origin_of(f.g, ty_val_node(f.values.outputs[0])), "layers.0/act/Exp (Exp #0)");
    close_fixture(&f);
}

/* ---- training -----------------------------------------------------------------------------------------------------
 */

static void begin_batchnorm(fixture *f, int uses)
{
    static const float ones[] = {1, 1}, zeros[] = {0, 0}, mean[] = {0.5f, -0.5f}, var[] = {2, 4};
    model_begin(&f->text, 15);
    model_input(&f->text, "x0", FLOAT, SHAPE(2, 2));
    model_floats(&f->text, "scale", SHAPE(2), ones);
    model_floats(&f->text, "bias", SHAPE(2), zeros);
    model_floats(&f->text, "mean", SHAPE(2), mean);
    model_floats(&f->text, "var", SHAPE(2), var);
    for (int i = 0; i < uses; i++) {
        char in[64], out[16];
        snprintf(in, sizeof in, "x%d,scale,bias,mean,var", i);
        snprintf(out, sizeof out, "x%d", i + 1);
        attr_float(&f->text, "epsilon", 0);
        attr_float(&f->text, "momentum", 0.75f);
        model_node(&f->text, "BatchNormalization", in, out, "bn");
    }
    model_output(&f->text, uses == 2 ? "x2" : "x1", FLOAT);
    f->bind_states = true;
}

static void expect_numbers(const double *got, const double *want, int n)
{
    for (int i = 0; i < n; i++)
        if (fabs(got[i] - want[i]) > 1e-6)
            fail_msg("element %d is %g, expected %g", i, got[i], want[i]);
}

static void test_batchnorm_modes(void **state)
{
    (void)state;
    fixture f = {0};
    const float x[] = {1, 10, 3, 30};
    const void *in[] = {x};
    begin_batchnorm(&f, 1);
    expect_import(&f, 2, TY_ONNX_EVAL);
    assert_int_equal(f.values.n_updates, 0);
    assert_true(ty_onnx_initializer_at(f.m, 2)->is_running && ty_onnx_initializer_at(f.m, 3)->is_running);
    assert_false(ty_onnx_initializer_at(f.m, 1)->is_running);
    expect_numbers(evaluate(f.g, f.values.outputs[0], in, false),
                   (double[]){0.5 / sqrt(2), 10.5 / 2, 2.5 / sqrt(2), 30.5 / 2}, 4);
    expect_import(&f, 2, TY_ONNX_TRAIN);
    expect_numbers(evaluate(f.g, f.values.outputs[0], in, false), (double[]){-1, -1, 1, 1}, 4);
    /* mean 2, 20; unbiased variance 2, 200 */
    assert_int_equal(f.values.n_updates, 2);
    assert_int_equal(f.values.updates[0].initializer, 2);
    assert_int_equal(f.values.updates[1].initializer, 3);
    expect_numbers(evaluate(f.g, f.values.updates[0].value, in, false), (double[]){0.875, 4.625}, 2);
    expect_numbers(evaluate(f.g, f.values.updates[1].value, in, false), (double[]){2, 53}, 2);
    close_fixture(&f);
}

/* One layer used twice moves its statistics twice, in order. */
static void test_shared_batchnorm_updates_in_order(void **state)
{
    (void)state;
    fixture f = {0};
    const float x[] = {1, 10, 3, 30};
    begin_batchnorm(&f, 2);
    expect_import(&f, 2, TY_ONNX_TRAIN);
    assert_int_equal(f.values.n_updates, 2);
    expect_numbers(evaluate(f.g, f.values.updates[0].value, (const void *[]){x}, false),
                   (double[]){0.875 * 0.75, 4.625 * 0.75}, 2);
    close_fixture(&f);
}

static void test_dropout_modes(void **state)
{
    (void)state;
    fixture f = {0};
    static float x[1000];
    for (int i = 0; i < 1000; i++)
        x[i] = 1;
    model_begin(&f.text, 18);
    model_input(&f.text, "x", FLOAT, SHAPE(1000));
    model_raw(&f.text, "ratio", FLOAT, 0, NULL, &(float){0.25f}, 4);
    model_node(&f.text, "Dropout", "x,ratio", "y", "");
    model_output(&f.text, "y", FLOAT);
    expect_import(&f, 1, TY_ONNX_EVAL);
    assert_int_equal(f.values.outputs[0], f.in[0]);
    expect_import(&f, 1, TY_ONNX_TRAIN);
    const double *y = evaluate(f.g, f.values.outputs[0], (const void *[]){x}, false);
    int dropped = 0;
    for (int i = 0; i < 1000; i++) {
        dropped += y[i] == 0;
        assert_true(y[i] == 0 || fabs(y[i] - 4.0 / 3) < 1e-6);
    }
    assert_in_range(dropped, 200, 300);
    close_fixture(&f);
}

/* ---- refusals -----------------------------------------------------------------------------------------------------
 */

static void test_error_form(void **state)
{
    (void)state;
    fixture f = {0};
    static float w[64 * 16 * 2 * 2];
    model_begin(&f.text, 11);
    model_input(&f.text, "x", FLOAT, SHAPE(-1, 64, 28, 28));
    model_floats(&f.text, "up2.weight", SHAPE(64, 16, 2, 2), w);
    model_node(&f.text, "Relu", "x", "x.41", "r");
    attr_ints(&f.text, "output_padding", 2, (int64_t[]){1, 1});
    model_node(&f.text, "ConvTranspose", "x.41,up2.weight", "y", "decoder/up2");
    model_output(&f.text, "y", FLOAT);
    assert_int_equal(open_fixture(&f, 2, TY_ONNX_EVAL), -1);
    char text[6000];
    ty_error_format(&f.err, text, sizeof text);
    assert_string_equal(text,
                        "error[E0312]: unsupported attribute value in ConvTranspose\n"
                        "  --> model.onnx: graph \"main\", node #1 \"decoder/up2\" (ConvTranspose, opset 11)\n"
                        "   |\n"
                        "   |   input  0  \"x.41\"   float32 [2, 64, 28, 28]   from node #0 Relu\n"
                        "   |   input  1  \"up2.weight\"   float32 [64, 16, 2, 2]   initializer\n"
                        "   |   attr  output_padding = [1, 1]     <- must be smaller than stride or dilation (1, 1)\n"
                        "   |   note: the first 1 node was read without trouble\n"
                        "   |\n");
    close_fixture(&f);
}

/* Independent faults are all found; nodes behind a faulty one are passed over. */
static void test_faults_are_collected(void **state)
{
    (void)state;
    fixture f = {0};
    model_begin(&f.text, 18);
    model_input(&f.text, "x", FLOAT, SHAPE(2, 3));
    model_node(&f.text, "NonMaxSuppression", "x,x", "a", "");
    model_node(&f.text, "Relu", "a", "b", "");
    model_node(&f.text, "MatMul", "x,x", "c", "");
    model_node(&f.text, "Frobnicate", "x", "d", "");
    model_node_in(&f.text, "com.example", "Thing", "x", "e", "");
    model_node(&f.text, "Add", "x,nowhere", "h", "");
    model_node(&f.text, "Relu", "x", "i", "");
    model_node(&f.text, "Exp", "x", "i", "");
    model_output(&f.text, "b", FLOAT);
    assert_int_equal(open_fixture(&f, 1, TY_ONNX_EVAL), -1);
    assert_int_equal(f.values.n_faults_all, 6);
    static const char *const messages[] = {"unsupported operator NonMaxSuppression",
                                           "MatMul: ",
                                           "unsupported operator Frobnicate",
                                           "no operator set \"com.example\"",
                                           "input 1 \"nowhere\" is produced by no node",
                                           "has a producer already"};
    for (int i = 0; i < 6; i++)
        if (!strstr(f.values.faults[i].message, messages[i]))
            fail_msg("fault %d is \"%s\", expected \"%s\"", i, f.values.faults[i].message, messages[i]);
    assert_non_null(strstr(f.err.detail, "(#2 MatMul, #3 Frobnicate, #4 Thing, #5 Add, #7 Exp)"));
    assert_int_equal(ty_onnx_check(f.m, NULL, 0), 3);
    close_fixture(&f);
}

/* One refusal a row: how the node is written, and the words. */
static void refuse_node(const char *op, int64_t opset, void (*attrs)(model_text *), const char *in, const char *words)
{
    fixture f = {0};
    model_begin(&f.text, opset);
    model_input(&f.text, "x", FLOAT, SHAPE(2, 3));
    model_input(&f.text, "i", INT64, SHAPE(2));
    model_input(&f.text, "b", BOOL, 0, NULL);
    model_ints(&f.text, "bad", 2, (int64_t[]){7, -5});
    model_ints(&f.text, "four", 1, (int64_t[]){4});
    model_raw(&f.text, "text", STRING, SHAPE(1), "", 0);
    if (attrs)
        attrs(&f.text);
    model_node(&f.text, op, in, "y", "n");
    model_output(&f.text, "y", FLOAT);
    assert_int_equal(open_fixture(&f, 1, TY_ONNX_EVAL), -1);
    char text[6000];
    ty_error_format(&f.err, text, sizeof text);
    if (!strstr(text, words) || !strstr(text, "node #0 \"n\""))
        fail_msg("%s: found\n%s\nexpected \"%s\"", op, text, words);
    close_fixture(&f);
}

static void axis_9(model_text *t)
{
    attr_int(t, "axis", 9);
}

static void axis_text(model_text *t)
{
    attr_text(t, "axis", "one");
}

static void mode_odd(model_text *t)
{
    attr_text(t, "mode", "odd");
}

static void to_string(model_text *t)
{
    attr_int(t, "to", 8);
}

static void equation(model_text *t)
{
    attr_text(t, "equation", "ij->ik");
}

static void overloaded(model_text *t)
{
    put_text(&t->attrs, 8, "fast"); /* a field of the node, beside its attributes */
}

static void test_refusals(void **state)
{
    (void)state;
    refuse_node("Reshape", 18, NULL, "x,i", "input 1 \"i\" must be known before training starts");
    refuse_node("Reshape", 18, NULL, "x,bad", "impossible entry -5 at 1");
    refuse_node("Reshape", 18, NULL, "x,four", "6 elements cannot take the shape of f32[4]");
    refuse_node("Expand", 18, NULL, "x,i", "input 1 \"i\" must be known before training starts");
    refuse_node("Expand", 18, NULL, "x,four", "cannot become 4");
    refuse_node("Concat", 18, axis_9, "x,x", "axis 9 is outside the 2 dimensions");
    refuse_node("Concat", 18, axis_text, "x,x", "attr  axis = \"one\"     <- must be an integer");
    refuse_node("Gather", 18, NULL, "x,bad", "index 7 is outside an axis of 2 entries");
    refuse_node("Gather", 18, NULL, "x,x", "indices must be integers");
    refuse_node("Pad", 18, mode_odd, "x,four", "must be one of \"constant\", \"reflect\", \"edge\", \"wrap\"");
    refuse_node("Pad", 18, NULL, "x,four", "1 paddings for 2 axes");
    refuse_node("Cast", 18, to_string, "x", "string is not supported");
    refuse_node("Gelu", 18, NULL, "x", "Gelu has no meaning in opset 18; it came with opset 20");
    refuse_node("Col2Im", 18, NULL, "x,four,bad", "has 2 sizes of a block for an image of 1 axes");
    refuse_node("Col2Im", 18, NULL, "x,four,four", "must be [N, C * 4, 1], the numbers of a block by its places");
    refuse_node("Conv", 18, NULL, "x", "needs at least 2 inputs, input 1 is missing");
    refuse_node("Relu", 18, NULL, "x,x", "takes at most 1 inputs, found 2");
    refuse_node("Relu", 18, NULL, "text", "is not computed: its element type is not supported");
    refuse_node("If", 18, NULL, "b", "depends on the data; a branch must be known");
    refuse_node("NonZero", 18, NULL, "x", "depends on the data");
    refuse_node("Einsum", 18, equation, "x", "names a letter in the result that no input has");
    refuse_node("TopK", 18, NULL, "x,four", "4 of 3 entries");
    refuse_node("Add", 18, NULL, "x,i", "Add: ");
    refuse_node("Squeeze", 18, NULL, "x,four", "axis 4 is outside");
    refuse_node("Relu", 21, overloaded, "x", "the model has no function Relu with overload \"fast\"");
}

/* PyTorch's dynamo exporter gives a convolution over volumes that has no bias zeros of a shape that is none. */
static void test_bias_of_zeros(void **state)
{
    (void)state;
    for (int value = 0; value < 2; value++) {
        fixture f = {0};
        const float v = (float)value, bias[] = {v, v, v, v};
        model_begin(&f.text, 18);
        model_input(&f.text, "x", 1, SHAPE(1, 1, 2, 2, 2));
        model_floats(&f.text, "w", SHAPE(2, 1, 1, 1, 1), (const float[]){1, 2});
        model_floats(&f.text, "b", SHAPE(2, 2), bias);
        model_node(&f.text, "Conv", "x,w,b", "y", "");
        model_output(&f.text, "y", 1);
        if (value == 0) {
            expect_import(&f, 1, TY_ONNX_TRAIN);
            expect_type(&f, f.values.outputs[0], TY_F32, SHAPE(1, 2, 2, 2, 2));
        } else {
            char text[6000];
            assert_int_equal(open_fixture(&f, 1, TY_ONNX_TRAIN), -1);
            ty_error_format(&f.err, text, sizeof text);
            assert_non_null(strstr(text, "must have a number a channel, 2"));
        }
        close_fixture(&f);
    }
}

static void test_wrong_input_type(void **state)
{
    (void)state;
    fixture f = {0};
    model_begin(&f.text, 18);
    model_input(&f.text, "x", FLOAT, SHAPE(-1, 4));
    model_node(&f.text, "Relu", "x", "y", "");
    model_output(&f.text, "y", FLOAT);
    expect_import(&f, 2, TY_ONNX_EVAL);
    f.in[0] = new_input(f.g, TY_F32, SHAPE(2, 5));
    assert_int_equal(open_fixture(&f, 2, TY_ONNX_EVAL), -1);
    assert_string_equal(f.err.message, "input \"x\" is float32 [N, 4] in the model, bound to f32[2,5]");
    close_fixture(&f);
}

static void test_names_are_cut_and_escaped(void **state)
{
    (void)state;
    fixture f = {0};
    char name[301];
    memset(name, 'a', 300);
    name[300] = 0;
    name[5] = '\n';
    model_begin(&f.text, 18);
    model_input(&f.text, "x", FLOAT, SHAPE(2));
    model_node(&f.text, "Frobnicate", "x", "y", name);
    model_output(&f.text, "y", FLOAT);
    assert_int_equal(open_fixture(&f, 2, TY_ONNX_EVAL), -1);
    assert_null(strchr(f.err.place, '\n'));
    assert_non_null(strstr(f.err.place, "aaaaa\\naaaa"));
    assert_true(strlen(f.err.place) < 260);
    close_fixture(&f);
}

/* A value_info that says what the initializer `name` is. */
static void mark(model_text *m, const char *name, const char *kind)
{
    ty_buf info, pair;
    ty_buf_init(&info, 1 << 10);
    ty_buf_init(&pair, 1 << 10);
    put_text(&info, 1, name);
    put_text(&pair, 1, TY_ONNX_KIND_KEY);
    put_text(&pair, 2, kind);
    put_sub(&info, 4, &pair);
    put_sub(&m->graph, 13, &info);
}

/* Beside marked parameters an unmarked number and an unmarked mask are constants, and a table is not; where nothing is
 * marked, all are weights. */
static void test_what_is_not_marked(void **state)
{
    (void)state;
    static const float table[] = {1, 2, 3, 4}, mask[] = {0, -3.4e38f, 0, 0}, scale[] = {0.125f};
    for (int marked = 0; marked < 2; marked++) {
        model_text m;
        model_begin(&m, 18);
        model_input(&m, "x", FLOAT, SHAPE(2, 2));
        model_floats(&m, "weight", 2, (int64_t[]){2, 2}, table);
        model_floats(&m, "turned", 2, (int64_t[]){2, 2}, table);
        model_floats(&m, "mask", 2, (int64_t[]){2, 2}, mask);
        model_floats(&m, "scale", 0, NULL, scale);
        if (marked)
            mark(&m, "weight", "PARAMETER");
        model_node(&m, "Add", "x weight", "a", "");
        model_node(&m, "Add", "a turned", "b", "");
        model_node(&m, "Add", "b mask", "c", "");
        model_node(&m, "Mul", "c scale", "y", "");
        model_output(&m, "y", FLOAT);
        ty_onnx *o = model_open(&m);
        static const ty_onnx_mark want[] = {TY_ONNX_PARAMETER, TY_ONNX_UNMARKED, TY_ONNX_BUFFER, TY_ONNX_BUFFER};
        for (int i = 0; i < 4; i++)
            assert_int_equal(ty_onnx_initializer_at(o, i)->mark, marked ? want[i] : TY_ONNX_UNMARKED);
        ty_onnx_free(o);
        ty_buf_fini(&m.file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_not_marked),
        cmocka_unit_test(test_smallest_model),
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_damaged_initializers),
        cmocka_unit_test(test_external_data),
        cmocka_unit_test(test_shape_chain_folds),
        cmocka_unit_test(test_sequences_fold),
        cmocka_unit_test(test_second_import_adds_nothing),
        cmocka_unit_test(test_origins_name_the_node),
        cmocka_unit_test(test_batchnorm_modes),
        cmocka_unit_test(test_shared_batchnorm_updates_in_order),
        cmocka_unit_test(test_dropout_modes),
        cmocka_unit_test(test_error_form),
        cmocka_unit_test(test_faults_are_collected),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_bias_of_zeros),
        cmocka_unit_test(test_wrong_input_type),
        cmocka_unit_test(test_names_are_cut_and_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
