/* compile_config of Keras files as text of a recipe. That recipes mean the same: tests/train/keras.sh. */
#include "compiler/import/keras/keras_recipe.h"

#include "base/json.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static ty_arena arena;

static int recipe_of(const char *json, const char **out, ty_error *err)
{
    static const ty_model_value outputs[2] = {{.name = "a", .rank = 2}, {.name = "b", .rank = 2}};
    ty_doc *compile;
    ty_error bad;
    if (ty_json_parse(&arena, "compile", json, strlen(json), NULL, &compile, &bad) < 0)
        fail_msg("%s", bad.message);
    const keras_recipe_of in = {compile, NULL, outputs, 2};
    return keras_recipe(&in, &arena, out, err);
}

static void expect(const char *json, const char *words)
{
    const char *text;
    ty_error err = {0};
    if (recipe_of(json, &text, &err) < 0)
        fail_msg("%s", err.message);
    if (!strstr(text, words))
        fail_msg("expected %s in:\n%s", words, text);
}

static void settings_become_sections(void **state)
{
    (void)state;
    expect("{\"optimizer\": {\"class_name\": \"SGD\", \"config\": {\"learning_rate\": {\"class_name\": "
           "\"PiecewiseConstantDecay\", \"config\": {\"boundaries\": [4], \"values\": [0.5, 0.25]}}, \"clipvalue\": 2, "
           "\"use_ema\": true, \"gradient_accumulation_steps\": 3}}}",
           "optimizer: {\"keras_sgd\": {\"lr\": 0.5}}\n"
           "schedule: {\"piecewise\": {\"boundaries\": [5], \"factors\": [1.0, 0.5]}}\n"
           "update_every: 3\nclip: {\"value\": 2}\nema: {\"decay\": 0.99, \"use_ema\": \"at_end\"}\n");
    expect("{\"loss\": {\"b\": \"mse\"}, \"loss_weights\": {\"b\": 0.5}}",
           "loss: [{\"keras_mse\": {\"output\": \"b\", \"weight\": 0.5}}]\n");
    expect("{\"optimizer_config\": {\"class_name\": \"Custom>Adam\", \"config\": {\"lr\": 0.25, \"decay\": 0.5}}}",
           "schedule: {keras_inverse_time: {decay_steps: 1, decay_rate: 0.5}}\n");
    expect("{}", "unmerged_rows: true\n");
}

/* They are refused by their names where the recipe is read, unless it has such a section of its own. */
static void what_is_unknown_keeps_its_name(void **state)
{
    (void)state;
    expect("{\"optimizer\": {\"class_name\": \"Muon\", \"config\": {}}}", "optimizer: {\"Muon\": {}}\n");
    expect("{\"loss\": [\"circle\", null]}", "loss: [{\"circle\": {}}]\n");
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    const char *text;
    ty_error err = {0};
    assert_true(recipe_of("{\"loss\": {\"c\": \"mse\"}}", &text, &err) < 0 && strstr(err.message, "\"c\""));
    assert_true(recipe_of("{\"optimizer\": {\"class_name\": \"Adam\", \"config\": {\"learning_rate\": \"x\"}}}", &text,
                          &err) < 0);
    assert_true(recipe_of("{\"optimizer\": {\"class_name\": \"Adam\", \"config\": {\"beta_1\": []}}}", &text, &err) <
                0);
}

int main(void)
{
    ty_arena_init(&arena);
    const struct CMUnitTest tests[] = {cmocka_unit_test(settings_become_sections),
                                       cmocka_unit_test(what_is_unknown_keeps_its_name),
                                       cmocka_unit_test(nonsense_is_refused)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    ty_arena_fini(&arena);
    return failed;
}
