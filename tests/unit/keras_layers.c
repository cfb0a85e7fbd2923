/* keras_layers.c - layers against what Keras computes (tests/golden/keras/layers.json, made by
 * tests/keras/make_layers.py): outputs, masks, losses of the model itself, names of variables; and how the driver
 * refuses.
 */
#include "base/json.h"
#include "compiler/import/keras/keras_walk.h"
#include "compiler/ir/interpret.h"
#include "compiler/ops/ref.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define GOLDEN "tests/golden/keras/layers.json"

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

/* ---- files from text ----------------------------------------------------------------------------------------------
 */

/* A number, or "inf", "-inf", "nan". */
static double number_of(const ty_doc *d)
{
    double v = 0;
    if (d->kind == TY_DOC_STRING)
        return strtod(d->string, NULL);
    assert_int_equal(ty_doc_float(d, &v, NULL), 0);
    return v;
}

static keras_tensor tensor_of(const ty_doc *d)
{
    keras_tensor t = {.path = d->key};
    const char *dtype = ty_doc_find(d, "dtype")->string;
    const ty_doc *shape = ty_doc_find(d, "shape"), *data = ty_doc_find(d, "data");
    ty_dtype parsed;
    assert_true(ty_dtype_parse(dtype, &parsed));
    t.type.dtype = (uint8_t)parsed;
    t.type.rank = (uint8_t)ty_doc_len(shape);
    for (int i = 0; i < t.type.rank; i++)
        t.type.dim[i] = ty_doc_at(shape, (size_t)i)->integer;
    size_t n = ty_doc_len(data);
    float *f = TY_NEW_ARRAY(&arena, float, n + 1);
    int32_t *k = TY_NEW_ARRAY(&arena, int32_t, n + 1);
    int64_t *wide = TY_NEW_ARRAY(&arena, int64_t, n + 1);
    for (size_t i = 0; i < n; i++) {
        double v = number_of(ty_doc_at(data, i));
        f[i] = (float)v;
        k[i] = isfinite(v) ? (int32_t)v : 0;
        wide[i] = isfinite(v) ? (int64_t)v : 0;
    }
    t.data = parsed == TY_F32 ? (void *)f : parsed == TY_I64 ? (void *)wide : (void *)k;
    return t;
}

static keras_file file_of(const ty_doc *config, const ty_doc *weights)
{
    keras_file f = {.path = "test.keras", .form = KERAS_ZIP, .config = config, .version = "3.15"};
    keras_tensor *list = TY_NEW_ARRAY(&arena, keras_tensor, ty_doc_len(weights) + 1);
    for (size_t i = 0; i < ty_doc_len(weights); i++)
        list[i] = tensor_of(ty_doc_at(weights, i));
    f.tensor = list;
    f.n_tensors = (int)ty_doc_len(weights);
    f.has_weights = weights != NULL;
    return f;
}

static ty_doc *parse(const char *text)
{
    ty_doc *d;
    ty_error err;
    if (ty_json_parse(&arena, "config.json", text, strlen(text), NULL, &d, &err) < 0)
        fail_msg("%s", err.message);
    return d;
}

static ty_keras *open_parsed(const keras_file *file)
{
    ty_keras *m;
    ty_error err = {0};
    if (keras_open_parsed(file, NULL, 1 << 20, &m, &err) < 0)
        fail_msg("%s", err.message);
    return m;
}

/* A configuration alone; weights start by their initializers. */
static ty_keras *open_config(const char *text)
{
    keras_file f = file_of(parse(text), NULL);
    return open_parsed(&f);
}

/* ---- against Keras ------------------------------------------------------------------------------------------------
 */

static const char *case_name;

static double number_at(const ty_ref *r, int64_t i)
{
    return ty_dtype_is_float((ty_dtype)r->type.dtype) ? r->f[i] : (double)r->i[i];
}

static void check_numbers(const ty_ref *got, const ty_doc *want, const char *what)
{
    const ty_doc *data = ty_doc_find(want, "data"), *shape = ty_doc_find(want, "shape");
    double largest = 1e-3;
    if (got->type.rank != (int)ty_doc_len(shape))
        fail_msg("%s: %s has %d axes", case_name, what, got->type.rank);
    for (int i = 0; i < got->type.rank; i++)
        assert_int_equal(got->type.dim[i], ty_doc_at(shape, (size_t)i)->integer);
    for (size_t i = 0; i < ty_doc_len(data); i++) {
        double v = number_of(ty_doc_at(data, i));
        largest = isfinite(v) ? fmax(largest, fabs(v)) : largest;
    }
    for (size_t i = 0; i < ty_doc_len(data); i++) {
        double v = number_of(ty_doc_at(data, i)), found = number_at(got, (int64_t)i);
        if (found != v && !(isnan(found) && isnan(v)) && !(fabs(found - v) <= 2e-6 * largest))
            fail_msg("%s: %s, element %zu is %.9g, expected %.9g", case_name, what, i, found, v);
    }
}

static void check_names(const ty_keras *m, const ty_doc *names)
{
    assert_int_equal(m->n_listed, ty_doc_len(names));
    for (int i = 0; i < m->n_listed; i++) {
        const char *want = ty_doc_at(names, (size_t)i)->string;
        size_t n = strlen(want), own = strlen(m->listed[i].name);
        if (n < own || strcmp(want + n - own, m->listed[i].name) != 0 || (n > own && want[n - own - 1] != '/'))
            fail_msg("%s: weight %d is %s, expected %s", case_name, i, m->listed[i].name, want);
    }
}

static void run_case(const ty_doc *d)
{
    ty_error err = {0};
    case_name = ty_doc_find(d, "name")->string;
    keras_file file = file_of(ty_doc_find(d, "config"), ty_doc_find(d, "weights"));
    ty_keras *m = open_parsed(&file);
    if (keras_faults_result(&m->faults, &err) < 0)
        fail_msg("%s: %s (%s)", case_name, err.message, err.place);
    check_names(m, ty_doc_find(d, "names"));
    const ty_doc *inputs = ty_doc_find(d, "inputs"), *outputs = ty_doc_find(d, "outputs");
    ty_graph *g = ty_graph_new();
    ty_val in[8];
    const void *data[8];
    for (size_t i = 0; i < ty_doc_len(inputs); i++) {
        keras_tensor t = tensor_of(ty_doc_at(inputs, i));
        data[i] = t.data;
        in[i] = ty_b_input(g, ty_graph_add_input(g, m->input[i].name, t.type));
    }
    ty_val word = ty_b_scalar(g, TY_I64, 7);
    ty_model_mode mode = ty_doc_find(d, "training") ? TY_MODEL_TRAIN : TY_MODEL_EVAL;
    ty_model_binding b = {.mode = mode, .inputs = in, .seed = word, .step = word};
    ty_model_values values;
    if (ty_keras_import(m, g, &b, &values, &err) < 0)
        fail_msg("%s: %s", case_name, err.message);
    assert_int_equal(m->n_outputs, ty_doc_len(outputs));
    char name[32];
    for (int i = 0; i < m->n_outputs; i++) {
        snprintf(name, sizeof name, "out %d", i);
        ty_graph_add_output(g, name, values.outputs[i], TY_TAPE_EVAL);
    }
    ty_val loss = ty_b_scalar(g, TY_F32, 0);
    for (int i = 0; i < values.n_penalties; i++)
        loss = ty_b_add(g, loss, values.penalties[i]);
    ty_graph_add_output(g, "loss", loss, TY_TAPE_EVAL);
    const ty_doc *masks = ty_doc_find(d, "masks");
    for (int i = 0; i < m->n_outputs; i++) {
        bool masked = values.masks && values.masks[i] != TY_NONE;
        if (masked != (ty_doc_at(masks, (size_t)i)->kind == TY_DOC_MAP))
            fail_msg("%s: output %d has %s mask", case_name, i, masked ? "a" : "no");
        snprintf(name, sizeof name, "mask %d", i);
        ty_graph_add_output(g, name, masked ? values.masks[i] : loss, TY_TAPE_EVAL);
    }
    ty_interp *it;
    assert_int_equal(ty_interp_new(g, &it, &err), 0);
    if (ty_interp_run(it, TY_TAPE_EVAL, data, true, &err) < 0)
        fail_msg("%s: %s", case_name, err.message);
    for (int i = 0; i < m->n_outputs; i++)
        check_numbers(ty_interp_output(it, i), ty_doc_at(outputs, (size_t)i), "output");
    double want, found = number_at(ty_interp_output(it, m->n_outputs), 0);
    ty_doc_float(ty_doc_find(d, "losses"), &want, NULL);
    if (fabs(found - want) > 1e-5 * fmax(1, fabs(want)))
        fail_msg("%s: losses are %.9g, expected %.9g", case_name, found, want);
    for (int i = 0; i < m->n_outputs; i++)
        if (ty_doc_at(masks, (size_t)i)->kind == TY_DOC_MAP)
            check_numbers(ty_interp_output(it, m->n_outputs + 1 + i), ty_doc_at(masks, (size_t)i), "mask");
    ty_interp_free(it);
    ty_graph_free(g);
    ty_keras_free(m);
}

static void test_as_keras_computes(void **state)
{
    (void)state;
    ty_doc *d;
    ty_error err;
    const ty_doc_limits limits = {.max_depth = 100};
    if (ty_json_read(&arena, GOLDEN, &limits, &d, &err) < 0)
        fail_msg("%s", err.message);
    assert_true(ty_doc_len(d) > 60);
    for (size_t i = 0; i < ty_doc_len(d); i++)
        run_case(ty_doc_at(d, i));
}

/* What a lookup has learned is a text beside the weights: of [0, -1, -1, 7, 5, 100, -3] the first stands for nothing
 * and the next two for all others. The file is Keras' own. */
static void test_a_vocabulary_is_in_the_archive(void **state)
{
    (void)state;
    static const int64_t x[] = {7, 5, -3, 0, 4, 100, 9, 11, -8}, want[] = {3, 4, 6, 0, 1, 5, 2, 2, 1};
    keras_file file;
    ty_error err = {0};
    if (keras_file_open("tests/golden/keras/lookup.keras", &arena, &file, &err) < 0)
        fail_msg("%s", err.message);
    ty_keras *m = open_parsed(&file);
    ty_graph *g = ty_graph_new();
    ty_val in = ty_b_input(g, ty_graph_add_input(g, "x", ty_type_make(TY_I64, 2, (int64_t[]){3, 3})));
    ty_model_binding b = {.mode = TY_MODEL_EVAL, .inputs = &in};
    ty_model_values values;
    ty_interp *it;
    if (keras_faults_result(&m->faults, &err) < 0 || ty_keras_import(m, g, &b, &values, &err) < 0)
        fail_msg("%s", err.message);
    ty_graph_add_output(g, "y", values.outputs[0], TY_TAPE_EVAL);
    assert_int_equal(ty_interp_new(g, &it, &err), 0);
    const void *data[] = {x};
    assert_int_equal(ty_interp_run(it, TY_TAPE_EVAL, data, true, &err), 0);
    for (int i = 0; i < 9; i++)
        assert_int_equal(ty_interp_output(it, 0)->i[i], want[i]);
    ty_interp_free(it);
    ty_graph_free(g);
    ty_keras_free(m);
}

/* ---- what is refused ----------------------------------------------------------------------------------------------
 */

#define INPUT "{\"class_name\": \"InputLayer\", \"config\": {\"batch_shape\": [null, 3], \"name\": \"x\"}}"
#define SEQUENTIAL(layers) \
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": [" INPUT ", " layers "]}}"
#define DENSE(name, more) "{\"class_name\": \"Dense\", \"config\": {\"name\": \"" name "\", \"units\": 2" more "}}"

static void expect_fault(const ty_keras *m, int i, const char *message, const char *place)
{
    assert_true(i < m->faults.n);
    const ty_error *e = &m->faults.at[i];
    if (!strstr(e->message, message) || !strstr(e->place, place))
        fail_msg("found \"%s\" at \"%s\", expected \"%s\" at \"%s\"", e->message, e->place, message, place);
}

static void test_unknown_classes_are_listed_at_once(void **state)
{
    (void)state;
    ty_keras *m = open_config(SEQUENTIAL(
        DENSE("a", "") ", {\"module\": \"my.code\", \"class_name\": \"Mine\", \"config\": {\"name\": \"b\"}, "
                       "\"registered_name\": \"Pack>Mine\"}, {\"class_name\": \"Lambda\", \"config\": {}}, "
                       "{\"module\": \"keras.layers\", \"class_name\": \"Densee\", \"config\": {\"name\": \"d\"}}"));
    assert_int_equal(m->faults.n_all, 3);
    expect_fault(m, 0, "unknown custom class Mine (module my.code, registered as Pack>Mine)", "layer \"b\" (Mine)");
    expect_fault(m, 1, "Lambda layer holds Python code", "layer \"lambda\" (Lambda)");
    expect_fault(m, 2, "unknown layer class Densee; did you mean Dense?", "layer \"d\" (Densee)");
    ty_keras_free(m);
}

static void expect_only(const char *config, const char *message, const char *place)
{
    ty_keras *m = open_config(config);
    assert_int_equal(m->faults.n_all, 1);
    expect_fault(m, 0, message, place);
    ty_keras_free(m);
}

static void test_settings_are_checked(void **state)
{
    (void)state;
    expect_only(SEQUENTIAL(DENSE("a", ", \"activation\": \"rellu\"")), "unknown activation \"rellu\"",
                "layer \"a\" (Dense)");
    expect_only(SEQUENTIAL(DENSE("a", ", \"use_bias\": \"yes\"")), "use_bias: expected true or false, found string",
                "layer \"a\"");
    expect_only(SEQUENTIAL(DENSE("a", ", \"lora_rank\": 4")), "lora_rank: expected null", "layer \"a\"");
    expect_only(SEQUENTIAL(DENSE("a", ", \"kernel_regularizer\": \"mine\"")), "unknown regularizer mine",
                "layer \"a\"");
    expect_only(SEQUENTIAL(DENSE("a", ", \"kernel_constraint\": \"mine\"")), "unknown constraint mine", "layer \"a\"");
    expect_only(SEQUENTIAL(DENSE("a", ", \"kernel_initializer\": \"mine\"")), "unknown initializer mine",
                "layer \"a\"");
    expect_only(SEQUENTIAL(DENSE("a", ", \"dtype\": \"float16\"")), "policy float16", "layer \"a\"");
    expect_only(SEQUENTIAL("{\"class_name\": \"Reshape\", \"config\": {\"name\": \"r\", \"target_shape\": [2, -1]}}"),
                "target_shape: expected 3 elements", "layer \"r\"");
}

static const char weights_text[] =
    "{\"layers/dense/vars/0\": {\"shape\": [3, 4], \"dtype\": \"float32\", \"data\": [1,2,3,4,5,6,7,8,9,10,11,12]}}";

static void test_weights_are_named(void **state)
{
    (void)state;
    keras_file f = file_of(parse(SEQUENTIAL(DENSE("a", ", \"use_bias\": false"))), parse(weights_text));
    ty_keras *m = open_parsed(&f);
    assert_int_equal(m->faults.n_all, 1);
    expect_fault(m, 0, "expected f32[3,2], found f32[3,4] in data set \"layers/dense/vars/0\"", "layer \"a\"");
    ty_keras_free(m);
    f = file_of(parse(SEQUENTIAL(DENSE("a", ""))), parse(weights_text));
    m = open_parsed(&f);
    expect_fault(m, 0, "no data set \"layers/dense/vars/1\" for the weight \"bias\"", "layer \"a\"");
    ty_keras_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_as_keras_computes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_vocabulary_is_in_the_archive, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unknown_classes_are_listed_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_settings_are_checked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_weights_are_named, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
