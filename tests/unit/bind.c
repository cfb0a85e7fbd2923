/* Tables of settings: values, defaults, origins, refusals to the byte, help. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/bind.h"
#include "base/yaml.h"

#include <math.h>
#include <string.h>

struct settings {
    bool shuffle;
    int64_t epochs;
    double lr;
    const char *model;
    int precision;
    const ty_doc *data;
};

static const char *const precisions[] = {"float32", "bfloat16", "float16", NULL};
enum { N_ROWS = 6 };
static const ty_bind_row rows[N_ROWS] = {
    {"shuffle", TY_BIND_BOOL, offsetof(struct settings, shuffle), "true", .help = "new order every epoch"},
    {"epochs", TY_BIND_INT, offsetof(struct settings, epochs), "3", .min = 1, .max = 1000,
     .help = "passes over the data"},
    {"lr", TY_BIND_FLOAT, offsetof(struct settings, lr), "1e-3", .max = INFINITY, .above_min = true,
     .help = "step size"},
    {"model", TY_BIND_STRING, offsetof(struct settings, model), .required = true, .help = "the model's file"},
    {"precision", TY_BIND_CHOICE, offsetof(struct settings, precision), "float32", .choices = precisions,
     .help = "type of activations"},
    {"data", TY_BIND_NODE, offsetof(struct settings, data), .help = "what to read"},
};

static ty_arena arena;
static struct settings settings;
static const ty_doc *origin[N_ROWS];

static int start(void **state)
{
    (void)state;
    ty_arena_init(&arena);
    memset(&settings, 0x55, sizeof settings);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    ty_arena_fini(&arena);
    return 0;
}

static ty_doc *parse(const char *text)
{
    ty_doc *d;
    ty_error err = {0};
    if (ty_yaml_parse(&arena, "train.yaml", text, strlen(text), NULL, NULL, NULL, &d, &err) < 0)
        fail_msg("refused %s: %s", text, err.message);
    return d;
}

static const char *origin_text(int row)
{
    static char text[100];
    return ty_bind_origin_text(origin[row], text, sizeof text);
}

static void test_values_defaults_and_origins(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_doc *d = parse("model: m.onnx\nlr: 2\nprecision: bfloat16\nshuffle: null\ndata: {train: {}}\n");
    assert_int_equal(ty_doc_override(&arena, d, "epochs", "20", "hyperparameter \"epochs\"", &err), 0);
    if (ty_bind(rows, N_ROWS, "", d, &settings, origin, &err) < 0)
        fail_msg("%s", err.message);
    assert_true(settings.shuffle);
    assert_int_equal(settings.epochs, 20);
    assert_true(settings.lr == 2);
    assert_string_equal(settings.model, "m.onnx");
    assert_int_equal(settings.precision, 1);
    assert_int_equal(ty_doc_len(settings.data), 1);
    assert_string_equal(origin_text(0), "default");
    assert_string_equal(origin_text(1), "hyperparameter \"epochs\"");
    assert_string_equal(origin_text(2), "train.yaml:2");
    assert_string_equal(origin_text(3), "train.yaml:1");
}

static void test_all_defaults(void **state)
{
    (void)state;
    ty_error err = {0};
    assert_int_equal(ty_bind(rows, 3, "x", NULL, &settings, origin, &err), 0);
    assert_true(settings.shuffle && settings.epochs == 3 && settings.lr == 1e-3);
    assert_int_equal(ty_bind(rows, 3, "x", parse(""), &settings, NULL, &err), 0);
}

/* YAML (line 2 on) and the whole message. */
static const struct {
    const char *yaml, *message;
} faults[] = {
    {"model: m\nepoch: 3\n", "error[E0107]: train.yaml:2:1: unknown key \"epoch\" in \"recipe\"\n"
                             "    2 | epoch: 3\n"
                             "      | ^^^^^ did you mean \"epochs\"?\n"},
    {"model: m\nzebra: 3\n", "error[E0107]: train.yaml:2:1: unknown key \"zebra\" in \"recipe\"\n"
                             "    2 | zebra: 3\n"
                             "      | ^^^^^\n"
                             "   = help: known keys: shuffle, epochs, lr, model, precision, data\n"},
    {"model: m\nepochs: many\n",
     "error[E0105]: train.yaml:2:9: key \"epochs\": expected integer, found string \"many\"\n"
     "    2 | epochs: many\n"
     "      |         ^^^^\n"},
    {"model: m\nepochs: 2.5\n", "error[E0105]: train.yaml:2:9: key \"epochs\": expected integer, found number 2.5\n"
                                "    2 | epochs: 2.5\n"
                                "      |         ^^^\n"},
    {"model: m\nepochs: 0\n",
     "error[E0106]: train.yaml:2:9: key \"epochs\": expected an integer from 1 to 1000, found 0\n"
     "    2 | epochs: 0\n"
     "      |         ^\n"},
    {"model: m\nlr: 0\n", "error[E0106]: train.yaml:2:5: key \"lr\": expected a number above 0, found 0\n"
                          "    2 | lr: 0\n"
                          "      |     ^\n"},
    {"model: m\nlr: .nan\n", "error[E0106]: train.yaml:2:5: key \"lr\": expected a number above 0, found .nan\n"
                             "    2 | lr: .nan\n"
                             "      |     ^^^^\n"},
    {"model: m\nlr: [1]\n", "error[E0105]: train.yaml:2:5: key \"lr\": expected number, found list of 1\n"
                            "    2 | lr: [1]\n"
                            "      |     ^\n"},
    {"model: m\nshuffle: yes\n",
     "error[E0105]: train.yaml:2:10: key \"shuffle\": expected boolean, found string \"yes\"\n"
     "    2 | shuffle: yes\n"
     "      |          ^^^ write true or false\n"},
    {"model: 12\n", "error[E0105]: train.yaml:1:8: key \"model\": expected string, found integer 12\n"
                    "    1 | model: 12\n"
                    "      |        ^^ quote it to make it a string\n"},
    {"model: m\nprecision: bfloat\n", "error[E0106]: train.yaml:2:12: key \"precision\": expected float32, bfloat16 or "
                                      "float16, found string \"bfloat\"\n"
                                      "    2 | precision: bfloat\n"
                                      "      |            ^^^^^^ did you mean \"bfloat16\"?\n"},
    {"lr: 1\n", "error[E0108]: train.yaml:1:1: key \"model\" is missing in \"recipe\"\n"
                "   = help: model: the model's file\n"},
    {"- 1\n", "error[E0105]: train.yaml:1:1: expected map, found list of 1\n"
              "    1 | - 1\n"
              "      | ^\n"},
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        ty_error err = {0};
        assert_int_equal(ty_bind(rows, N_ROWS, "recipe", parse(faults[i].yaml), &settings, origin, &err), -1);
        char out[2048];
        ty_error_format(&err, out, sizeof out);
        assert_string_equal(out, faults[i].message);
    }
}

static void test_refusals_of_overrides(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_doc *d = parse("model: m\n");
    assert_int_equal(ty_doc_override(&arena, d, "epoch", "5", "hyperparameter \"epoch\"", &err), 0);
    assert_int_equal(ty_bind(rows, N_ROWS, "", d, &settings, origin, &err), -1);
    char out[2048];
    ty_error_format(&err, out, sizeof out);
    assert_string_equal(out, "error[E0107]: unknown key \"epoch\"\n"
                             "  --> hyperparameter \"epoch\"\n"
                             "   = help: did you mean \"epochs\"?\n");
}

static void test_a_bad_default_is_ours(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_bind_row bad = rows[1];
    bad.fallback = "0";
    assert_int_equal(ty_bind(&bad, 1, "", NULL, &settings, NULL, &err), -1);
    assert_non_null(strstr(err.message, "default of \"epochs\""));
}

static void test_help(void **state)
{
    (void)state;
    ty_buf out;
    ty_buf_init(&out, 4096);
    assert_int_equal(ty_bind_help(rows, N_ROWS, 2, &out), 0);
    assert_string_equal(out.data, "  shuffle    new order every epoch: true or false; default true\n"
                                  "  epochs     passes over the data: an integer from 1 to 1000; default 3\n"
                                  "  lr         step size: a number above 0; default 1e-3\n"
                                  "  model      the model's file: text; required\n"
                                  "  precision  type of activations: float32, bfloat16 or float16; default float32\n"
                                  "  data       what to read: a map, list or value\n");
    ty_buf_fini(&out);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, start, stop)
    const struct CMUnitTest tests[] = {
        TEST(test_values_defaults_and_origins), TEST(test_all_defaults),          TEST(test_refusals),
        TEST(test_refusals_of_overrides),       TEST(test_a_bad_default_is_ours), TEST(test_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
