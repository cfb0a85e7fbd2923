/* keras_model.c - Keras models as a whole: Keras 2's form, layers that several models share, calls that name
 * `training`, free sizes, initial values, policies.
 */
#define _GNU_SOURCE
#include "base/json.h"
#include "compiler/import/cmodel_layer.h"
#include "compiler/import/keras/keras_walk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static ty_arena arena;

static int set_up(void **state)
{
    (void)state;
    ty_arena_init(&arena);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ty_arena_fini(&arena);
    return 0;
}

/* Quotes are ' in these texts. */
static ty_keras *open_with(const char *text, const char *layers)
{
    char *json = ty_arena_strdup(&arena, text);
    for (char *p = json; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    ty_doc *d;
    ty_error err;
    ty_keras *m;
    if (ty_json_parse(&arena, "config.json", json, strlen(json), NULL, &d, &err) < 0)
        fail_msg("%s", err.message);
    keras_file f = {.path = "test.json", .form = KERAS_CONFIG, .config = d, .version = ""};
    if (keras_open_parsed(&f, layers, 1 << 20, &m, &err) < 0)
        fail_msg("%s", err.message);
    if (keras_faults_result(&m->faults, &err) < 0)
        fail_msg("%s (%s) %s", err.message, err.place, err.detail);
    return m;
}

static ty_keras *open_text(const char *text)
{
    return open_with(text, NULL);
}

static void expect_weights(const ty_keras *m, const char *const *names, const char *const *places, int n)
{
    assert_int_equal(m->n_listed, n);
    for (int i = 0; i < n; i++) {
        assert_string_equal(m->listed[i].name, names[i]);
        assert_string_equal(ty_keras_place(m, i), places[i]);
    }
}

#define DENSE_SIZED(name, units, more) \
    "{'class_name': 'Dense', 'config': {'name': '" name "', 'units': " #units ", 'use_bias': false" more "}"
#define IN(name) \
    "{'class_name': 'InputLayer', 'name': '" name "', 'config': {'batch_shape': [null, 4], 'name': '" name "'}"
#define REF(layer, node)                                                                                              \
    "{'class_name': '__keras_tensor__', 'config': {'shape': [null, 4], 'dtype': 'float32', 'keras_history': ['" layer \
    "', " #node ", 0]}}"

/* ---- graphs -------------------------------------------------------------------------------------------------------
 */

static const char inner[] = "{'class_name': 'Functional', 'name': 'tower', 'config': {'name': 'tower', 'layers': [" IN(
    "i") ", 'inbound_nodes': []}, " DENSE_SIZED("d", 4, "") ", 'name': 'd', 'inbound_nodes': [[['i', 0, 0, {}]]]}], "
                                                            "'input_layers': [['i', 0, 0]], "
                                                            "'output_layers': [['d', 0, 0]]}";

/* Keras 2 counts the call that a model makes of itself: its calls in other models begin at 1. */
static void test_keras_2_counts_models_from_one(void **state)
{
    (void)state;
    const char *text = ty_arena_printf(
        &arena,
        "{'class_name': 'Functional', 'config': {'name': 'm', 'layers': [" IN("x") ", 'inbound_nodes': []}, " IN(
            "y") ", 'inbound_nodes': []}, %s, 'inbound_nodes': [[['x', 0, 0, {}]], [['y', 0, 0, {}]]]}, "
                 "{'class_name': 'Add', 'name': 'sum', 'config': {'name': 'sum'}, "
                 "'inbound_nodes': [[['tower', 1, 0, {}], ['tower', 2, 0, {}]]]}], "
                 "'input_layers': [['x', 0, 0], ['y', 0, 0]], 'output_layers': [['sum', 0, 0], ['tower', 2, 0]]}}",
        inner);
    ty_keras *m = open_text(text);
    const struct keras_net *net = m->root->net;
    assert_true(net->is_keras2);
    assert_int_equal(m->n_outputs, 2);
    assert_string_equal(m->output[1].name, "tower");
    assert_int_equal(net->output[1].node, net->first_node[2] + 1);
    expect_weights(m, (const char *[]){"d/kernel"}, (const char *[]){"layers/functional/layers/dense/vars/0"}, 1);
    ty_keras_free(m);
}

static const char functional[] =
    "{'module': 'keras', 'class_name': 'Functional', 'config': {'name': 'm', 'layers': [" IN(
        "x") ", 'inbound_nodes': []}, %s], "
             "'input_layers': ['x', 0, 0], 'output_layers': %s}}";

/* The same object in two models is one layer; its weights lie where Keras meets it first. */
static void test_shared_objects_are_one_layer(void **state)
{
    (void)state;
    const char *model =
        "{'module': 'keras', 'class_name': 'Sequential', 'name': '%s', 'config': {'name': '%s', 'layers': ["
        "{'class_name': 'Dense', 'config': {'name': 'd', 'units': 4}, 'shared_object_id': 7}]}, "
        "'inbound_nodes': [{'args': [" REF("%s", 0) "], 'kwargs': {}}]}";
    const char *a = ty_arena_printf(&arena, model, "a", "a", "x"), *b = ty_arena_printf(&arena, model, "b", "b", "a");
    const char *both = ty_arena_printf(&arena, "%s, %s", a, b);
    ty_keras *m = open_text(ty_arena_printf(&arena, functional, both, "['b', 0, 0]"));
    expect_weights(m, (const char *[]){"a/d/kernel", "a/d/bias"},
                   (const char *[]){"layers/sequential/layers/dense/vars/0", "layers/sequential/layers/dense/vars/1"},
                   2);
    ty_keras_free(m);
}

/* Names that two models have both are told apart by the models. */
static void test_equal_paths_get_the_model_in_front(void **state)
{
    (void)state;
    const char *one =
        "{'module': 'keras', 'class_name': 'Functional', 'name': '%s', 'config': {'name': '%s', "
        "'layers': [" IN("i") ", 'inbound_nodes': []}, " DENSE_SIZED(
            "d", 4, "") ", 'name': 'd', 'inbound_nodes': [{'args': [" REF("i", 0) "], 'kwargs': {}}]}], "
                                                                                  "'input_layers': ['i', 0, 0], "
                                                                                  "'output_layers': ['d', 0, 0]}, "
                                                                                  "'inbound_nodes': [{'args': [" REF(
                                                                                      "%s",
                                                                                      0) "], 'kwargs': {'training': "
                                                                                         "false}}]}";
    const char *a = ty_arena_printf(&arena, one, "a", "a", "x"), *b = ty_arena_printf(&arena, one, "b", "b", "a");
    const char *both = ty_arena_printf(&arena, "%s, %s", a, b);
    /* among outputs Keras 3, too, counts a model from 1 */
    ty_keras *m = open_text(ty_arena_printf(&arena, functional, both, "{'z': ['b', 1, 0]}"));
    expect_weights(m, (const char *[]){"d/kernel", "b/d/kernel"},
                   (const char *[]){"layers/functional/layers/dense/vars/0", "layers/functional_1/layers/dense/vars/0"},
                   2);
    assert_string_equal(m->output[0].name, "z");
    ty_keras_free(m);
}

static void expect_error(const char *layers, const char *outputs, const char *message)
{
    char *json = ty_arena_printf(&arena, functional, layers, outputs);
    for (char *p = json; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    ty_doc *d;
    ty_error err = {0};
    ty_keras *m;
    assert_int_equal(ty_json_parse(&arena, "config.json", json, strlen(json), NULL, &d, &err), 0);
    keras_file f = {.path = "test.json", .form = KERAS_CONFIG, .config = d, .version = ""};
    assert_int_equal(keras_open_parsed(&f, NULL, 1 << 20, &m, &err), -1);
    if (!strstr(err.message, message))
        fail_msg("found \"%s\", expected \"%s\"", err.message, message);
}

static void test_broken_graphs_are_refused(void **state)
{
    (void)state;
    const char *d =
        "{'class_name': 'Dense', 'name': 'd', 'config': {'name': 'd', 'units': 4}, 'inbound_nodes': [{'args': [";
    expect_error(ty_arena_printf(&arena, "%s" REF("d", 0) "], 'kwargs': {}}]}", d), "['d', 0, 0]", "has a loop");
    expect_error(ty_arena_printf(&arena, "%s" REF("e", 0) "], 'kwargs': {}}]}", d), "['d', 0, 0]",
                 "layer \"d\" reads layer \"e\", which has no such call");
    expect_error(ty_arena_printf(&arena, "%s" REF("x", 0) "], 'kwargs': {}}]}", d), "['d', 3, 0]",
                 "outputs name call 3 of layer \"d\", which it has not");
}

static void test_sizes_left_open_stay_open(void **state)
{
    (void)state;
    ty_keras *m =
        open_text("{'class_name': 'Sequential', 'config': {'name': 's', 'layers': [{'class_name': 'Dense', 'config': "
                  "{'name': 'd', 'units': 2}}], 'build_input_shape': [null, null, 5]}}");
    assert_int_equal(m->n_inputs, 1);
    assert_string_equal(m->input[0].name, "input_layer");
    assert_int_equal(m->input[0].dim[1], -1);
    assert_int_equal(m->output[0].dim[0], -1);
    assert_int_equal(m->output[0].dim[1], -1);
    assert_int_equal(m->output[0].dim[2], 2);
    assert_string_equal(m->text, "keras sequential, without weights");
    ty_keras_free(m);
}

/* ---- policies, trained weights ------------------------------------------------------------------------------------
 */

static void test_policies_and_trained_weights(void **state)
{
    (void)state;
    ty_keras *m =
        open_text("{'class_name': 'Sequential', 'config': {'name': 's', 'layers': [" IN("x") "}, " DENSE_SIZED(
            "a", 4,
            ", 'dtype': 'mixed_bfloat16'") "}, " DENSE_SIZED("b", 4,
                                                             ", 'trainable': false, 'dtype': {'class_name': "
                                                             "'DTypePolicy', 'config': "
                                                             "{'name': 'float32'}}, 'kernel_constraint': "
                                                             "{'class_name': 'MaxNorm', "
                                                             "'config': {'max_value': 3, 'axis': [-1]}}") "}]}}");
    ty_keras_policies p;
    ty_keras_read_policies(m, &arena, &p);
    assert_int_equal(p.precision, TY_PRECISION_BFLOAT16);
    assert_int_equal(p.n_float32, 1);
    assert_string_equal(p.float32[0], "b");
    assert_true(m->listed[0].trainable_hint);
    assert_false(m->listed[1].trainable_hint);
    assert_false(m->running[1]);
    assert_int_equal(m->listed[1].constraint.kind, TY_CONSTRAINT_MAX_NORM);
    assert_true(m->listed[1].constraint.max == 3);
    assert_int_equal(m->listed[1].constraint.axes, 2);
    ty_keras_free(m);
}

/* ---- initial values -----------------------------------------------------------------------------------------------
 */

typedef struct moments {
    double mean, deviation, lo, hi;
} moments;

static const float *initial(const char *initializer, int rows, int columns, uint64_t seed, moments *out)
{
    ty_doc *d;
    ty_error err = {0};
    char *json = ty_arena_strdup(&arena, initializer);
    for (char *p = json; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    assert_int_equal(ty_json_parse(&arena, "initializer", json, strlen(json), NULL, &d, &err), 0);
    keras_weight w = {.name = "d/kernel", .initializer = d};
    w.type = ty_type_make(TY_F32, 2, (int64_t[]){rows, columns});
    const float *data = keras_initialize(&arena, &w, seed, &err);
    if (!data)
        fail_msg("%s", err.message);
    *out = (moments){0, 0, INFINITY, -INFINITY};
    for (int i = 0; i < rows * columns; i++) {
        out->mean += data[i] / (rows * columns);
        out->lo = fmin(out->lo, data[i]);
        out->hi = fmax(out->hi, data[i]);
    }
    for (int i = 0; i < rows * columns; i++)
        out->deviation += (data[i] - out->mean) * (data[i] - out->mean) / (rows * columns);
    out->deviation = sqrt(out->deviation);
    return data;
}

static void expect_uniform(const char *initializer, double limit)
{
    moments m;
    initial(initializer, 300, 200, 5, &m);
    assert_true(m.lo >= -limit && m.lo < -0.99 * limit && m.hi <= limit && m.hi > 0.99 * limit);
    assert_true(fabs(m.mean) < 0.02 * limit && fabs(m.deviation - limit / sqrt(3)) < 0.01 * limit);
}

/* Normal, cut at two deviations of what it was before: 0.8796 times as wide. */
static void expect_normal(const char *initializer, double mean, double deviation, double cut)
{
    moments m;
    initial(initializer, 300, 200, 5, &m);
    assert_true(fabs(m.mean - mean) < 0.02 * deviation && fabs(m.deviation - deviation) < 0.015 * deviation);
    assert_true(m.hi - mean <= cut && m.hi - mean > 0.9 * fmin(cut, 4 * deviation));
}

/* Kernels [5, 1, 4] of a spectrum as Keras 3.15 starts them, by settings of their layer. */
static void test_spectra(void **state)
{
    (void)state;
    static const struct {
        const char *config, *part;
        float row[2][4]; /* the second sample's and the last's */
    } rows[] = {
        {"{}", "stft_real", {{0.4082483f, 0.2041241f, -0.2041242f, -0.4082483f}, {0, 0, 0, 0}}},
        {"{'window': 'hann', 'scaling': 'density', 'periodic': false}",
         "stft_imag",
         {{0, -0.3535534f, -0.3535534f, 0}, {0, 0, 0, 0}}},
        {"{'window': 'hamming', 'scaling': 'spectrum', 'periodic': true}",
         "stft_real",
         {{0.1473527f, 0.07367633f, -0.07367634f, -0.1473527f}, {0.1473527f, -0.07367632f, -0.07367636f, 0.1473527f}}},
        {"{'window': 'hamming', 'scaling': 'spectrum', 'periodic': true}",
         "stft_imag",
         {{0, -0.1276111f, -0.1276111f, 0}, {0, 0.1276111f, -0.1276111f, 0}}},
        {"{'window': null, 'scaling': 'density'}", "stft_real", {{1, 0.5f, -0.5f, -1}, {1, -0.5f, -0.5f, 1}}},
        {"{'window': null, 'scaling': 'density'}",
         "stft_imag",
         {{0, -0.8660254f, -0.8660253f, 0}, {0, 0.8660254f, -0.8660253f, 0}}},
    };
    ty_error err = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *json = ty_arena_strdup(&arena, rows[i].config);
        keras_layer layer = {.name = "sound"};
        ty_doc *config;
        for (char *at = json; *at; at++)
            *at = *at == '\'' ? '"' : *at;
        assert_int_equal(ty_json_parse(&arena, "layer", json, strlen(json), NULL, &config, &err), 0);
        layer.config = config;
        keras_weight w = {.name = "sound/kernel", .initializer_absent = rows[i].part, .layer = &layer};
        w.type = ty_type_make(TY_F32, 3, (int64_t[]){5, 1, 4});
        const float *data = keras_initialize(&arena, &w, 1, &err);
        assert_non_null(data);
        for (int k = 0; k < 4; k++) {
            assert_float_equal(data[4 + k], rows[i].row[0][k], 1e-6);
            assert_float_equal(data[16 + k], rows[i].row[1][k], 1e-6);
        }
    }
    keras_layer other = {.name = "sound"};
    ty_doc *config;
    const char *json = "{\"window\": \"bartlett\"}";
    assert_int_equal(ty_json_parse(&arena, "layer", json, strlen(json), NULL, &config, &err), 0);
    other.config = config;
    keras_weight w = {.name = "sound/kernel", .initializer_absent = "stft_real", .layer = &other};
    w.type = ty_type_make(TY_F32, 3, (int64_t[]){5, 1, 4});
    assert_null(keras_initialize(&arena, &w, 1, &err));
    assert_non_null(strstr(err.message, "window"));
}

static void test_initializers(void **state)
{
    (void)state;
    moments m, other;
    expect_uniform("'glorot_uniform'", sqrt(6.0 / 500));
    expect_uniform("{'class_name': 'GlorotUniform', 'config': {'seed': null}}", sqrt(6.0 / 500));
    expect_uniform("'HeUniform'", sqrt(6.0 / 300));
    expect_uniform("'lecun_uniform'", sqrt(3.0 / 300));
    expect_uniform("{'class_name': 'RandomUniform', 'config': {'minval': -2, 'maxval': 2}}", 2);
    expect_uniform(
        "{'class_name': 'VarianceScaling', 'config': {'scale': 3, 'mode': 'fan_out', 'distribution': 'uniform'}}",
        sqrt(9.0 / 200));
    double he = sqrt(2.0 / 300);
    expect_normal("'he_normal'", 0, he, 2 * he / 0.87962566103423978 * 1.001);
    expect_normal("{'class_name': 'RandomNormal', 'config': {'mean': 1, 'stddev': 0.5}}", 1, 0.5, INFINITY);
    expect_normal("{'class_name': 'TruncatedNormal', 'config': {'stddev': 0.5}}", 0, 0.5 * 0.87962566103423978, 1.0001);
    initial("'ones'", 3, 2, 0, &m);
    assert_true(m.lo == 1 && m.hi == 1);
    initial("{'class_name': 'Constant', 'config': {'value': 0.25}}", 3, 2, 0, &m);
    assert_true(m.lo == 0.25f && m.hi == 0.25f);
    initial("0.5", 3, 2, 0, &m); /* a setting that is the number itself */
    assert_true(m.lo == 0.5f && m.hi == 0.5f);
    const float *a = initial("'glorot_uniform'", 3, 2, 1, &m), *b = initial("'glorot_uniform'", 3, 2, 1, &other);
    assert_memory_equal(a, b, 6 * sizeof *a);
    b = initial("'glorot_uniform'", 3, 2, 2, &other);
    assert_memory_not_equal(a, b, 6 * sizeof *a);
    a = initial("{'class_name': 'Identity', 'config': {'gain': 2}}", 2, 3, 0, &m);
    assert_memory_equal(a, ((float[]){2, 0, 0, 0, 2, 0}), 6 * sizeof *a);
}

/* Rows (columns, whichever are fewer) of an orthogonal matrix have length `gain` and stand upright on each other. */
static void test_orthogonal(void **state)
{
    (void)state;
    moments m;
    for (int wide = 0; wide < 2; wide++) {
        int rows = wide ? 20 : 50, columns = wide ? 50 : 20, n = 20, len = 50;
        const float *q = initial("{'class_name': 'Orthogonal', 'config': {'gain': 3}}", rows, columns, 1, &m);
        for (int i = 0; i < n; i++)
            for (int k = 0; k <= i; k++) {
                double dot = 0;
                for (int j = 0; j < len; j++)
                    dot += wide ? (double)q[i * len + j] * q[k * len + j] : (double)q[j * n + i] * q[j * n + k];
                assert_true(fabs(dot - (i == k ? 9 : 0)) < 1e-4);
            }
    }
}

/* ---- classes in C -------------------------------------------------------------------------------------------------
 */

static const char custom_source[] =
    "#include <trainyard/model.h>\n"
    "static void scaled(ty_net *net)\n"
    "{\n"
    "    ty_var x = ty_layer_input(net, 0);\n"
    "    ty_var mean = ty_buffer(net, \"mean\", ty_dims(ty_dim(net, x, -1)), ty_zeros());\n"
    "    ty_var w = ty_parameter(net, \"w\", ty_dims(ty_dim(net, x, -1)), ty_filled(3));\n"
    "    ty_scope(net, \"inner\");\n"
    "    ty_var b = ty_parameter(net, \"b\", ty_layer_dims(net, \"shape\"), ty_ones());\n"
    "    ty_end(net);\n"
    "    ty_update(net, mean, ty_reduce_mean(net, x, ty_dims(0), false));\n"
    "    x = ty_add(net, ty_mul(net, ty_sub(net, x, mean), w), b);\n"
    "    ty_layer_output(net, 0, ty_scale(net, x, ty_layer_number(net, \"factor\", 1)));\n"
    "}\n"
    "void trainyard_layers(ty_net *net)\n"
    "{\n"
    "    trainyard_layer_register(net, \"Scaled\", scaled);\n"
    "}\n";

static const char *write_source(const char *text)
{
    char *path = ty_arena_strdup(&arena, "/tmp/ty-keras-XXXXXX.c");
    int fd = mkstemps(path, 2);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    return path;
}

static void test_a_class_in_c(void **state)
{
    (void)state;
    const char *source = write_source(custom_source);
    ty_keras *m =
        open_with("{'class_name': 'Sequential', 'config': {'name': 's', 'layers': [" IN(
                      "x") "}, "
                           "{'module': 'my.code', 'class_name': 'Scaled', 'registered_name': 'Mine>Scaled', 'config': "
                           "{'name': 'scaled', 'factor': 2, 'shape': [1, 4]}}]}}",
                  source);
    expect_weights(m, (const char *[]){"scaled/w", "scaled/mean", "scaled/inner/b"},
                   (const char *[]){"layers/scaled/vars/0", "layers/scaled/vars/1", "layers/scaled/inner/vars/0"}, 3);
    assert_true(m->listed[0].trainable_hint && m->running[1] && !m->listed[1].trainable_hint);
    assert_true(((const float *)m->listed[0].data)[3] == 3);
    ty_graph *g = ty_graph_new();
    ty_error err = {0};
    float x[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    ty_val in = ty_b_const(g, ty_type_make(TY_F32, 2, (int64_t[]){2, 4}), x);
    ty_model_binding b = {.mode = TY_MODEL_TRAIN, .inputs = &in, .seed = TY_NONE, .step = TY_NONE};
    ty_model_values values;
    assert_int_equal(ty_keras_import(m, g, &b, &values, &err), 0);
    assert_int_equal(values.n_updates, 1);
    assert_int_equal(values.updates[0].weight, 1);
    const float *y = ty_graph_const_data(g, values.outputs[0]), *mean = ty_graph_const_data(g, values.updates[0].value);
    assert_non_null(y);
    for (int i = 0; i < 8; i++)
        assert_true(y[i] == 2 * (3 * x[i] + 1));
    for (int i = 0; i < 4; i++)
        assert_true(mean[i] == (x[i] + x[i + 4]) / 2);
    ty_graph_free(g);
    ty_keras_free(m);
    unlink(source);
}

static void expect_refused(const char *text, const char *message)
{
    const char *source = write_source(text);
    cmodel_classes *classes;
    ty_error err = {0};
    assert_int_equal(cmodel_classes_open(source, &classes, &err), -1);
    if (!strstr(err.message, message) || !strstr(err.place, source))
        fail_msg("found \"%s\" (%s), expected \"%s\"", err.message, err.place, message);
    unlink(source);
}

static void test_sources_of_classes_are_checked(void **state)
{
    (void)state;
    expect_refused("#include <trainyard/model.h>\nvoid model(ty_net *net) { (void)net; }\n",
                   "there is no function trainyard_layers in it");
    expect_refused("#include <trainyard/model.h>\nvoid trainyard_layers(ty_net *net) { (void)net; }\n",
                   "registers no class");
    expect_refused(
        "#include <trainyard/model.h>\nstatic void f(ty_net *n) { (void)n; }\nvoid trainyard_layers(ty_net *n) {\n"
        "trainyard_layer_register(n, \"A\", f); trainyard_layer_register(n, \"A\", f); }\n",
        "class A is registered twice");
    expect_refused("#include <trainyard/model.h>\nvoid trainyard_layers(ty_net *n) { ty_layer_input(n, 0); }\n",
                   "called with 0 tensors");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_keras_2_counts_models_from_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shared_objects_are_one_layer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_equal_paths_get_the_model_in_front, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_broken_graphs_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sizes_left_open_stay_open, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_policies_and_trained_weights, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_initializers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_spectra, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_orthogonal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_class_in_c, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sources_of_classes_are_checked, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
