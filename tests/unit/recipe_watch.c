/* Recipes: what evaluations decide, and rows of several lengths. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "recipe_case.h"

#include <stdio.h>

static void length_buckets(void **state)
{
    (void)state;
    const char *with = "model: m.onnx\nloss: mse\ndata: {train: {fields: [x, t], length_buckets: %s}}\n";
    char text[256];
    snprintf(text, sizeof text, with, "[8, 16, 64]");
    ty_recipe r = good(text, NULL, 0);
    assert_int_equal(r.train.n_lengths, 3);
    assert_true(r.train.length[0] == 8 && r.train.length[1] == 16 && r.train.length[2] == 64 && !r.train.length_auto);
    snprintf(text, sizeof text, with, "32");
    r = good(text, NULL, 0);
    assert_true(r.train.n_lengths == 1 && r.train.length[0] == 32);
    snprintf(text, sizeof text, with, "auto");
    r = good(text, NULL, 0);
    assert_true(r.train.n_lengths == 0 && r.train.length_auto);
    r = good(shortest, NULL, 0);
    assert_true(r.train.n_lengths == 0 && !r.train.length_auto);
}

static void a_plateau_knows_what_is_better(void **state)
{
    (void)state;
    static const struct {
        const char *plateau;
        bool maximize;
    } rows[] = {{"{}", false},
                {"{metric: loss}", false},
                {"{metric: hits}", true},
                {"{metric: mae}", false},
                {"{metric: hits, mode: min}", false},
                {"{metric: mae, mode: max}", true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "model: m.onnx\nloss: mse\nmetrics: [{accuracy: {name: hits}}, mae]\nschedule: {plateau: %s}\n"
                 "data: {train: {fields: [x, t]}, validation: {channel: v}}\n",
                 rows[i].plateau);
        assert_int_equal(good(text, NULL, 0).schedule.maximize, rows[i].maximize);
    }
}

static void early_stopping_and_whose_weights_are_written(void **state)
{
    (void)state;
    static const struct {
        const char *metrics, *lines;
        int best_value;
        bool is_high, export_best;
        int64_t patience;
    } rows[] = {
        {"[]", "", 0, false, false, 0},
        {"[{accuracy: {name: hits}}, mae]", "", 1, true, false, 0},
        {"[mae]", "export: {weights: best}\n", 1, false, true, 0},
        {"[]", "early_stopping: {patience: 3}\n", 0, false, true, 3},
        {"[{accuracy: {name: hits}}, mae]", "early_stopping: {patience: 1}\n", 1, true, true, 1},
        {"[{accuracy: {name: hits}}, mae]", "early_stopping: {patience: 1, metric: mae}\n", 2, false, true, 1},
        {"[{accuracy: {name: hits}}, mae]", "early_stopping: {patience: 1, metric: loss}\n", 0, false, true, 1},
        {"[mae]", "early_stopping: {patience: 1, mode: max}\nexport: {weights: last}\n", 1, true, false, 1},
        {"[{accuracy: {}}]", "early_stopping: {patience: 1, mode: min}\n", 1, false, true, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "model: m.onnx\nloss: mse\nmetrics: %s\n%sdata: {train: {fields: [x, t]}, validation: {channel: v}}\n",
                 rows[i].metrics, rows[i].lines);
        ty_recipe r = good(text, NULL, 0);
        assert_int_equal(r.best_value, rows[i].best_value);
        assert_int_equal(r.best_is_high, rows[i].is_high);
        assert_int_equal(r.export_best, rows[i].export_best);
        assert_int_equal(r.early.patience, rows[i].patience);
    }
    ty_recipe r = good("model: m.onnx\nloss: mse\n"
                       "early_stopping: {patience: 2, min_delta: 0.5, start_from: 2 epochs}\n"
                       "data: {train: {fields: [x, t]}, validation: {channel: v}}\n",
                       NULL, 0);
    assert_true(r.early.min_delta == 0.5 && r.early.start_from.n == 2 && r.early.start_from.epochs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(length_buckets, setup, teardown),
        cmocka_unit_test_setup_teardown(early_stopping_and_whose_weights_are_written, setup, teardown),
        cmocka_unit_test_setup_teardown(a_plateau_knows_what_is_better, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
