/* cmodel.c - models written in C: what they list, that they compute and train as the same network from ONNX does, and
 * that every mistake is answered with file and line. Operators: cmodel_operators.c.
 */
#include "compiler/import/cmodel_load.h"
#include "base/safetensors.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/cmodel_file.h"

#define C_DIGITS    "examples/digits-c/model.c"
#define ONNX_DIGITS "examples/digits/model.onnx"

/* ---- what is listed --------------------------------------------------------------------------------------------- */

static void test_lists_as_onnx(void **state)
{
    (void)state;
    ty_model *c = open_model(C_DIGITS), *onnx = open_model(ONNX_DIGITS);
    assert_string_equal(ty_model_format(c), "C source");
    assert_int_equal(ty_model_n_inputs(c), 1);
    assert_int_equal(ty_model_input(c, 0)->dim[0], -1);
    assert_string_equal(ty_model_input(c, 0)->dim_name[0], "batch");
    assert_int_equal(ty_model_n_outputs(c), 1);
    assert_int_equal(ty_model_output(c, 0)->dim[0], -1);
    assert_string_equal(ty_model_output(c, 0)->dim_name[0], "batch");
    assert_int_equal(ty_model_output(c, 0)->dim[1], 10);
    assert_int_equal(ty_model_n_weights(c), ty_model_n_weights(onnx));
    for (int i = 0; i < ty_model_n_weights(c); i++) {
        const ty_model_value *a = ty_model_weight(c, i), *b = ty_model_weight(onnx, i);
        assert_string_equal(a->name, b->name);
        assert_int_equal(a->rank, b->rank);
        assert_memory_equal(a->dim, b->dim, sizeof a->dim);
        assert_int_equal(a->trainable_hint, b->trainable_hint);
    }
    ty_model_free(c);
    ty_model_free(onnx);
}

/* ---- what is computed ------------------------------------------------------------------------------------------- */

static void fill(float *x, int64_t n, double phase)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(0.5 + 0.5 * sin(0.37 * (double)i + phase));
}

static void infer_digits(const char *path, int64_t batch, const float *x, float *logits)
{
    ty_model *m = open_model(path);
    ty_error err = {0};
    ty_program *p;
    ty_binding in = {"image", ty_type_make(TY_F32, 4, (int64_t[]){batch, 1, 8, 8})};
    ty_compile_options opt = {.backend = TY_BACKEND_INTERPRETER};
    if (ty_compile_infer(m, &in, 1, &opt, &p, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(ty_program_run(p, TY_RUN_EVAL, (const void *[]){x}, &err), 0);
    memcpy(logits, ty_program_output(p, TY_RUN_EVAL, "logits")->data, sizeof *logits * (size_t)batch * 10);
    ty_program_free(p);
    ty_model_free(m);
}

static void copy_digits_source(const char *name)
{
    ty_buf text;
    ty_buf_init(&text, 1 << 20);
    assert_int_equal(ty_file_read(C_DIGITS, &text, NULL), 0);
    write_text(name, text.data);
    ty_buf_fini(&text);
}

/* The weights of the ONNX file beside the C source: both networks are one. */
static void test_same_numbers_as_onnx(void **state)
{
    (void)state;
    ty_model *onnx = open_model(ONNX_DIGITS);
    ty_named_tensor t[32];
    int n = ty_model_n_weights(onnx);
    for (int i = 0; i < n; i++) {
        const ty_model_value *w = ty_model_weight(onnx, i);
        ty_type type = ty_type_make(w->dtype, w->rank, w->dim);
        t[i] = (ty_named_tensor){w->name, type, malloc(ty_type_bytes(&type))};
        memcpy(t[i].data, w->data, ty_type_bytes(&type));
    }
    copy_digits_source("net.c");
    assert_int_equal(ty_safetensors_write(in_folder("net.safetensors"), t, (size_t)n, NULL, 0, NULL), 0);
    float x[3 * 64], a[30], b[30], fresh[30];
    fill(x, 3 * 64, 0.1);
    infer_digits(ONNX_DIGITS, 3, x, a);
    infer_digits(in_folder("net.c"), 3, x, b);
    infer_digits(C_DIGITS, 3, x, fresh);
    for (int i = 0; i < 30; i++)
        assert_true(fabsf(a[i] - b[i]) < 1e-5f);
    assert_true(fabsf(a[0] - fresh[0]) > 1e-3f);
    ty_model *c = open_model(in_folder("net.c"));
    assert_string_equal(ty_model_format(c), "C source, weights of net.safetensors");
    ty_model_free(c);
    for (int i = 0; i < n; i++)
        free(t[i].data);
    ty_model_free(onnx);
}

/* Five fixed batches; the label is what a fixed rule makes of the image. */
static double train_digits(const char *path, int steps, float *mean_of_norm1)
{
    enum { BATCH = 16 };
    ty_model *m = open_model(path);
    ty_loss_term loss = {.kind = TY_LOSS_SOFTMAX_CROSS_ENTROPY,
                         .output = "logits",
                         .target = "label",
                         .weight = 1,
                         .ignore_index = -100,
                         .class_axis = -1};
    ty_binding in[] = {{"image", ty_type_make(TY_F32, 4, (int64_t[]){BATCH, 1, 8, 8})},
                       {"label", ty_type_make(TY_I64, 1, (int64_t[]){BATCH})}};
    ty_train_spec spec = {.inputs = in,
                          .n_inputs = 2,
                          .loss = &loss,
                          .n_loss = 1,
                          .accumulate = 1,
                          .seed = 1,
                          .batch_norm_statistics = true,
                          .optimizer = {.kind = TY_OPT_SGD, .lr = 0.05, .momentum = 0.9}};
    ty_compile_options opt = {.backend = TY_BACKEND_CPU, .threads = 1};
    ty_error err = {0};
    ty_program *p;
    if (ty_compile_train(m, &spec, &opt, &p, &err) < 0)
        fail_msg("%s: %s", err.place, err.message);
    float x[BATCH * 64], last = 0;
    int64_t label[BATCH];
    for (int s = 0; s < steps; s++) {
        for (int r = 0; r < BATCH; r++) {
            label[r] = (r + s % 5) % 10;
            fill(x + r * 64, 64, (double)label[r] + 0.01 * r);
        }
        assert_int_equal(ty_program_run(p, TY_RUN_LAST, (const void *[]){x, label}, &err), 0);
        last = *(float *)ty_program_output(p, TY_RUN_LAST, "loss")->data;
    }
    for (int i = 0; i < ty_program_n_tensors(p); i++) {
        const char *name;
        bool trained;
        ty_tensor t = ty_program_tensor(p, i, &name, &trained);
        if (strcmp(name, "norm1.running_mean") == 0) {
            *mean_of_norm1 = *(float *)t.data;
            assert_false(trained);
        }
    }
    assert_int_equal(ty_program_report(p)->n_trained, 13754);
    ty_program_free(p);
    ty_model_free(m);
    return last;
}

static void test_trains(void **state)
{
    (void)state;
    float mean = 0, again = 0;
    double first = train_digits(C_DIGITS, 1, &mean);
    assert_true(first > 1.5 && first < 4);
    double last = train_digits(C_DIGITS, 60, &mean);
    assert_true(last < 0.3 * first);
    assert_true(mean != 0);
    assert_true(train_digits(C_DIGITS, 60, &again) == last && again == mean);
}

/* One step over x = 1 .. 8 as [8,1]: mean 4.5, unbiased variance 6. */
static void test_batch_norm_learns_statistics(void **state)
{
    (void)state;
    ty_model *m = open_text(HEAD "void model(ty_net *net)\n{\n    ty_var x = ty_input(net, \"x\", \"f32[batch,1]\");\n"
                                 "    x = ty_batch_norm(net, \"bn\", x, .momentum = 0.25);\n"
                                 "    ty_var seen = ty_buffer(net, \"seen\", ty_dims(), ty_filled(3));\n"
                                 "    ty_update(net, seen, ty_shift(net, seen, 2));\n"
                                 "    ty_output(net, \"y\", ty_mul(net, x, x));\n}\n");
    ty_loss_term loss = {.kind = TY_LOSS_MEAN, .output = "y", .weight = 1};
    ty_binding in = {"x", ty_type_make(TY_F32, 2, (int64_t[]){8, 1})};
    ty_train_spec spec = {.inputs = &in,
                          .n_inputs = 1,
                          .loss = &loss,
                          .n_loss = 1,
                          .accumulate = 1,
                          .batch_norm_statistics = true,
                          .optimizer = {.kind = TY_OPT_SGD, .lr = 0.1}};
    ty_compile_options opt = {.backend = TY_BACKEND_INTERPRETER};
    ty_error err = {0};
    ty_program *p;
    if (ty_compile_train(m, &spec, &opt, &p, &err) < 0)
        fail_msg("%s: %s", err.place, err.message);
    float x[] = {1, 2, 3, 4, 5, 6, 7, 8};
    assert_int_equal(ty_program_run(p, TY_RUN_LAST, (const void *[]){x}, &err), 0);
    static const struct {
        const char *name;
        double value;
    } rows[] = {{"bn.running_mean", 0.25 * 4.5}, {"bn.running_var", 0.75 + 0.25 * 6}, {"seen", 5}};
    int found = 0;
    for (int i = 0; i < ty_program_n_tensors(p); i++)
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            const char *name;
            bool trained;
            ty_tensor t = ty_program_tensor(p, i, &name, &trained);
            if (strcmp(name, rows[k].name) != 0)
                continue;
            found++;
            if (fabs(*(float *)t.data - rows[k].value) > 1e-5)
                fail_msg("%s is %g, expected %g", name, *(float *)t.data, rows[k].value);
        }
    assert_int_equal(found, 3);
    ty_program_free(p);
    ty_model_free(m);
}

/* ---- weights ---------------------------------------------------------------------------------------------------- */

#define NET(body)                                                                                    \
    HEAD "void model(ty_net *net)\n{\n    ty_var x = ty_input(net, \"x\", \"f32[batch,4]\");\n" body \
         "    ty_output(net, \"y\", x);\n}\n"

static const ty_model_value *weight_named(const ty_model *m, const char *name)
{
    for (int i = 0; i < ty_model_n_weights(m); i++)
        if (strcmp(ty_model_weight(m, i)->name, name) == 0)
            return ty_model_weight(m, i);
    fail_msg("no weight %s", name);
    return NULL;
}

static void moments(const ty_model *m, const char *name, double *mean, double *deviation, double *largest)
{
    const ty_model_value *w = weight_named(m, name);
    const float *data = w->data;
    int64_t n = w->dim[0] * w->dim[1];
    double sum = 0, square = 0;
    *largest = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += data[i];
        square += (double)data[i] * data[i];
        *largest = fmax(*largest, fabs(data[i]));
    }
    *mean = sum / (double)n;
    *deviation = sqrt(square / (double)n - *mean * *mean);
}

static void test_initializers(void **state)
{
    (void)state;
    static const struct {
        const char *init;
        double mean, deviation, largest;
    } rows[] = {{"ty_uniform(1, 3)", 2, 1 / sqrt(3), 3},
                {"ty_normal(-1, 0.5)", -1, 0.5, 4},
                {"ty_kaiming_uniform()", 0, sqrt(2. / 50), sqrt(6. / 50)},
                {"ty_kaiming_normal()", 0, sqrt(2. / 50), 1.3},
                {"ty_xavier_uniform(2)", 0, 2 * sqrt(2. / 250), 2 * sqrt(6. / 250)},
                {"ty_xavier_normal(1)", 0, sqrt(2. / 250), 0.6},
                {"ty_filled(3)", 3, 0, 3},
                {"ty_ones()", 1, 0, 1},
                {"ty_zeros()", 0, 0, 0}};
    ty_buf text;
    ty_buf_init(&text, 1 << 16);
    ty_buf_adds(&text, HEAD "void model(ty_net *net)\n{\n    ty_var x = ty_input(net, \"x\", \"f32[]\");\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ty_buf_addf(&text, "    ty_parameter(net, \"w%zu\", ty_dims(200, 50), %s);\n", i, rows[i].init);
    ty_buf_adds(&text, "    ty_output(net, \"y\", x);\n}\n");
    ty_model *m = open_text(text.data);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[16];
        double mean, deviation, largest;
        snprintf(name, sizeof name, "w%zu", i);
        moments(m, name, &mean, &deviation, &largest);
        if (fabs(mean - rows[i].mean) > 0.03 || fabs(deviation - rows[i].deviation) > 0.03 * rows[i].deviation + 1e-9 ||
            largest > rows[i].largest * 1.000001)
            fail_msg("%s: mean %g, deviation %g, largest %g", rows[i].init, mean, deviation, largest);
    }
    ty_model_free(m);
    ty_buf_fini(&text);
}

/* A weight's start depends on seed and name alone, not on what else there is. */
static void test_start_is_a_function_of_the_name(void **state)
{
    (void)state;
    ty_model *a = open_text(NET("    x = ty_linear(net, \"b\", x, 4);\n"));
    float first[16];
    memcpy(first, weight_named(a, "b.weight")->data, sizeof first);
    assert_true(fabsf(first[0]) <= 0.5f && first[0] != first[1]);
    ty_model_free(a);
    ty_model *b = open_text(NET("    x = ty_linear(net, \"b\", ty_linear(net, \"a\", x, 4), 4);\n"));
    assert_memory_equal(weight_named(b, "b.weight")->data, first, sizeof first);
    assert_memory_not_equal(weight_named(b, "a.weight")->data, first, sizeof first);
    ty_model_free(b);
    ty_model *c = open_text(NET("    ty_seed(net, 2);\n    x = ty_linear(net, \"b\", x, 4);\n"));
    assert_memory_not_equal(weight_named(c, "b.weight")->data, first, sizeof first);
    ty_model_free(c);
}

static void test_scopes_and_sharing(void **state)
{
    (void)state;
    ty_model *m = open_text(NET("    for (int i = 0; i < 2; i++) {\n"
                                "        ty_scope(net, ty_text(net, \"layers.%d\", i));\n"
                                "        x = ty_linear(net, \"fc\", x, 4, .no_bias = true);\n"
                                "        x = ty_linear(net, \"fc\", x, 4, .no_bias = true);\n"
                                "        ty_end(net);\n    }\n"
                                "    x = ty_linear(net, \"last\", x, 4);\n"));
    assert_int_equal(ty_model_n_weights(m), 4);
    weight_named(m, "layers.0.fc.weight");
    weight_named(m, "layers.1.fc.weight");
    weight_named(m, "last.bias");
    ty_model_free(m);
}

static void test_writes_its_source(void **state)
{
    (void)state;
    static const char text[] = NET("    x = ty_relu(net, x); /* kept */\n");
    ty_model *m = open_text(text);
    ty_buf back;
    ty_buf_init(&back, 1 << 16);
    assert_int_equal(ty_model_write(m, in_folder("out.c"), NULL, NULL, NULL), 0);
    assert_int_equal(ty_file_read(in_folder("out.c"), &back, NULL), 0);
    assert_string_equal(back.data, text);
    ty_buf_fini(&back);
    ty_model_free(m);
}

/* ---- mistakes --------------------------------------------------------------------------------------------------- */

typedef struct mistake {
    const char *text;
    ty_code code;
    int line;            /* of the place; 0: the file alone */
    const char *message; /* part of it */
} mistake;

static const mistake mistakes[] = {
    {NET("    x = ty_relu(net, y);\n"), TY_E_MODEL_FILE, 5, "undeclared"},
    {NET("    x = ty_relu(net, 3);\n"), TY_E_MODEL_FILE, 5, "incompatible type"},
    {"int model(int x)\n{\n    return x\n}\n", TY_E_MODEL_FILE, 3, "expected"},
    {HEAD "void model(ty_net *net)\n{\n    extern void absent(ty_net *);\n    absent(net);\n}\n", TY_E_MODEL_FILE, 0,
     "absent"},
    {HEAD "void build(ty_net *net)\n{\n    (void)net;\n}\n", TY_E_MODEL_FILE, 0, "no function model"},
    {"void model(void *net)\n{\n    (void)net;\n}\n", TY_E_MODEL_FILE, 0, "no function model"},
    {"__attribute__((visibility(\"default\"))) void model(void *net)\n{\n    (void)net;\n}\n", TY_E_MODEL_FILE, 0,
     "version"},
    {"#include <trainyard/absent.h>\n", TY_E_MODEL_FILE, 1, "absent.h"},
    {HEAD "void model(ty_net *net)\n{\n    ty_input(net, \"x\", \"f32[4]\");\n}\n", TY_E_MODEL_FILE, 0, "no output"},
    {HEAD "void model(ty_net *net)\n{\n    ty_output(net, \"x\", ty_number(net, \"f32\", 1));\n}\n", TY_E_MODEL_FILE, 0,
     "no input"},
    {NET("    x = ty_add(net, x, ty_full(net, \"f32\", ty_dims(3), 1));\n"), TY_E_SHAPE, 5, "ty_add"},
    {NET("    ty_var z = {0};\n    x = ty_add(net,\n               x, z);\n"), TY_E_GRAPH, 6,
     "variable 2 has no value"},
    {NET("    ty_input(net, \"x\", \"f32[2]\");\n"), TY_E_GRAPH, 5, "twice"},
    {NET("    ty_output(net, \"y\", x);\n"), TY_E_GRAPH, 6, "twice"},
    {NET("    ty_input(net, \"z\", \"f33[2]\");\n"), TY_E_TYPE, 5, "f33"},
    {NET("    ty_input(net, \"z\", \"f32[2,]\");\n"), TY_E_TYPE, 5, "f32[2,]"},
    {NET("    ty_input(net, \"z\", \"f32[2\");\n"), TY_E_TYPE, 5, "f32[2"},
    {NET("    ty_input(net, \"z\", \"f32[-2]\");\n"), TY_E_TYPE, 5, "f32[-2]"},
    {NET("    ty_input(net, \"z\", \"f32[1,1,1,1,1,1,1,1,1]\");\n"), TY_E_TYPE, 5, "expected a type"},
    {NET("    ty_input(net, \"z\", \"f32[9999999999,9999999999]\");\n"), TY_E_SHAPE, 5, "too large"},
    {NET("    ty_input(net, \"a b\", \"f32[2]\");\n"), TY_E_GRAPH, 5, "blank"},
    {NET("    x = ty_reshape(net, x, ty_dims(3, -1));\n    x = ty_reshape(net, x, ty_dims(5, -1));\n"), TY_E_SHAPE, 5,
     "do not fill"},
    {NET("    x = ty_transpose(net, x, ty_dims(0, 0));\n"), TY_E_ATTRIBUTE, 5, "permutation"},
    {NET("    x = ty_softmax(net, x, 2);\n"), TY_E_ATTRIBUTE, 5, "axis 2"},
    {NET("    ty_dim(net, x, 2);\n"), TY_E_MODEL_FILE, 5, "axis"},
    {NET("    x = ty_conv(net, \"c\", x, 1, 3);\n"), TY_E_SHAPE, 5, "3 to 5 axes"},
    {NET("    x = ty_conv(net, \"c\", ty_reshape(net, x, ty_dims(0, 1, 4)), 1, 0);\n"), TY_E_ATTRIBUTE, 5, "kernels"},
    {NET("    x = ty_conv(net, \"c\", ty_reshape(net, x, ty_dims(0, 2, 2)), 3, 1, .groups = 2);\n"), TY_E_ATTRIBUTE, 5,
     "groups"},
    {NET("    x = ty_dropout(net, x, 1);\n"), TY_E_ATTRIBUTE, 5, "outside [0, 1)"},
    {NET("    x = ty_linear(net, \"a\", x, 4);\n    x = ty_linear(net, \"a\", x, 5);\n"), TY_E_SHAPE, 6, "a.weight"},
    {NET("    x = ty_linear(net, \"a\", x, 0);\n"), TY_E_ATTRIBUTE, 5, "at least 1"},
    {NET("    ty_scope(net, \"a\");\n"), TY_E_GRAPH, 6, "not ended"},
    {NET("    ty_end(net);\n"), TY_E_GRAPH, 5, "without ty_scope"},
    {NET("    ty_update(net, x, x);\n"), TY_E_GRAPH, 5, "only a buffer"},
    {NET("    x = ty_cast(net, x, \"float33\");\n"), TY_E_TYPE, 5, "float33"},
    {NET("    ty_fail(net, \"width %d\", (int)ty_dim(net, x, 1));\n"), TY_E_MODEL_FILE, 5, "width 4"},
    {NET("    if (ty_training(net))\n        x = ty_linear(net, \"a\", x, 4);\n"
         "    else\n        x = ty_linear(net, \"b\", x, 4);\n"),
     TY_E_MODEL_FILE, 0, "\"b.weight\" differs"},
    {NET("    if (ty_training(net))\n        ty_output(net, \"more\", x);\n"), TY_E_MODEL_FILE, 0, "differs"},
    {NET("    if (!ty_training(net))\n        ty_random(net, ty_dims(4));\n"), TY_E_UNSUPPORTED, 6, "training only"},
    {NET("    x = ty_linear(net, \"a\", x, 4);\n    *(volatile int *)0 = 1;\n"), TY_E_MODEL_FILE, 5,
     "crashed: signal 11"},
    {HEAD "#include <stdlib.h>\nvoid model(ty_net *net)\n{\n    (void)net;\n    exit(0);\n}\n", TY_E_MODEL_FILE, 0,
     "ended its process"},
};

static void check_mistake(const mistake *t)
{
    char place[420];
    ty_error err = {0};
    ty_model *m = NULL;
    const char *path = write_text("model.c", t->text);
    if (ty_model_open(path, &m, &err) == 0)
        fail_msg("accepted:\n%s", t->text);
    assert_null(m);
    snprintf(place, sizeof place, t->line ? "%s:%d" : "%s", path, t->line);
    size_t n = strlen(place);
    if (err.code != t->code || strncmp(err.place, place, n) != 0 || (err.place[n] && err.place[n] != ':') ||
        (!strstr(err.message, t->message) && !strstr(err.detail, t->message)))
        fail_msg("%s\nE%04d at \"%s\": %s\n%s\nexpected E%04d at \"%s\" with \"%s\"", t->text, err.code, err.place,
                 err.message, err.detail, t->code, place, t->message);
}

static void test_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        check_mistake(&mistakes[i]);
}

/* What the code did wrong in its own process, and one that does not end. */
static void test_hints_of_rehearsals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message, *help;
    } rows[] = {
        {NET("    *(volatile int *)0 = 1;\n"), "crashed: signal 11", "a pointer that is not set"},
        {NET("    raise(SIGFPE);\n"), "crashed: signal 8", "division of integers by zero"},
        {NET("    volatile int n = 0;\n    while (!n)\n        ;\n"), "did not end within 1 s",
         "TRAINYARD_MODEL_S=600"},
    };
    setenv("TRAINYARD_MODEL_S", "1", 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[2048];
        ty_error err = {0};
        ty_model *m;
        snprintf(text, sizeof text, "#include <signal.h>\n%s", rows[i].text);
        assert_int_equal(ty_model_open(write_text("model.c", text), &m, &err), -1);
        assert_non_null(strstr(err.message, rows[i].message));
        assert_non_null(strstr(err.help, rows[i].help));
    }
    unsetenv("TRAINYARD_MODEL_S");
}

/* The user's own line is shown. */
static void test_shows_the_line(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_model *m;
    assert_int_equal(ty_model_open(write_text("model.c", NET("    x = ty_softmax(net, x, 7);\n")), &m, &err), -1);
    assert_non_null(strstr(err.detail, "5 |     x = ty_softmax(net, x, 7);"));
}

static void write_program(const char *name, const char *text)
{
    assert_int_equal(chmod(write_text(name, text), 0755), 0);
}

static void test_compiler_troubles(void **state)
{
    (void)state;
    cmodel_object o;
    ty_error err = {0};
    char cc[400];
    const char *path = write_text("model.c", NET(""));
    assert_int_equal(cmodel_load(path, "/absent/cc", 5000, &o, &err), -1);
    assert_int_equal(err.code, TY_E_COMPILER);
    write_program("slow", "#!/bin/sh\nsleep 30 &\nsleep 30\n");
    snprintf(cc, sizeof cc, "%s/slow", folder);
    assert_int_equal(cmodel_load(path, cc, 200, &o, &err), -1);
    assert_int_equal(err.code, TY_E_COMPILER);
    assert_non_null(strstr(err.message, "did not end within 0.2 s"));
    write_program("dies", "#!/bin/sh\nkill -9 $$\n");
    snprintf(cc, sizeof cc, "%s/dies", folder);
    assert_int_equal(cmodel_load(path, cc, 5000, &o, &err), -1);
    assert_non_null(strstr(err.message, "signal 9"));
}

/* Files that are no safetensors, or not of this model. */
static void refuse_weights(const void *bytes, size_t n, const char *message)
{
    ty_error err = {0};
    ty_model *m;
    assert_int_equal(ty_file_write(in_folder("model.safetensors"), bytes, n, 0644, NULL), 0);
    if (ty_model_open(write_text("model.c", NET("    x = ty_linear(net, \"a\", x, 2, .no_bias = true);\n")), &m,
                      &err) == 0)
        fail_msg("accepted: %s", message);
    if (!strstr(err.message, message))
        fail_msg("%s\nexpected: %s", err.message, message);
}

static void refuse_header(const char *json, size_t n_data, const char *message)
{
    char bytes[512] = {0};
    bytes[0] = (char)strlen(json);
    memcpy(bytes + 8, json, strlen(json));
    refuse_weights(bytes, 8 + strlen(json) + n_data, message);
}

static void test_damaged_weights(void **state)
{
    (void)state;
    refuse_weights("", 0, "at least 8 bytes");
    refuse_weights("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, "safetensors");
    refuse_header("{\"z\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, "no weight \"z\"");
    refuse_header("{\"a.weight\":{\"dtype\":\"F16\",\"shape\":[2,4],\"data_offsets\":[0,16]}}", 16, "expected F32");
    refuse_header("{\"a.weight\":{\"dtype\":\"F32\",\"shape\":[4,2],\"data_offsets\":[0,32]}}", 32,
                  "f32[2,4] in the source");
    refuse_header("{\"a.weight\":{\"dtype\":\"F32\",\"shape\":[2,4],\"data_offsets\":[0,32]}}", 31, "safetensors");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lists_as_onnx, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_same_numbers_as_onnx, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_trains, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_batch_norm_learns_statistics, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_initializers, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_start_is_a_function_of_the_name, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_scopes_and_sharing, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_writes_its_source, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_mistakes, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_hints_of_rehearsals, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_shows_the_line, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_compiler_troubles, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_damaged_weights, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
