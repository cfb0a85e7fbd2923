/* keras_augment.c - pictures that are changed at random: what numbers decide, in which range they are, that each
 * picture has its own, and what is refused. How a change with given numbers computes is judged by Keras
 * (keras_layers.c). */
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
#include <string.h>
#include <cmocka.h>

enum { PICTURES = 64, ROWS = 7, COLUMNS = 5, MOST = PICTURES * ROWS * COLUMNS * 3 };

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

/* Input [PICTURES, ROWS, COLUMNS, channels], then one layer. */
static ty_keras *open_layer(const char *layer, const char *settings, int channels)
{
    char *text = ty_arena_printf(&arena,
                                 "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": "
                                 "[{\"class_name\": \"InputLayer\", \"config\": "
                                 "{\"batch_shape\": [null, %d, %d, %d], \"name\": \"x\"}}, {\"class_name\": \"%s\", "
                                 "\"config\": {\"name\": \"change\", "
                                 "\"data_format\": \"channels_last\"%s%s}}]}}",
                                 ROWS, COLUMNS, channels, layer, *settings ? ", " : "", settings);
    ty_doc *d;
    ty_keras *m;
    ty_error err = {0};
    if (ty_json_parse(&arena, "config.json", text, strlen(text), NULL, &d, &err) < 0)
        fail_msg("%s", err.message);
    keras_file file = {.path = "test.keras", .form = KERAS_CONFIG, .config = d, .version = "3.15"};
    if (keras_open_parsed(&file, NULL, 1 << 20, &m, &err) < 0)
        fail_msg("%s", err.message);
    return m;
}

/* Picture p, row r, column c is r * 10 + c, channel k 100 more each. y: what a training step at `step` makes of it. */
static ty_type changed(const char *layer, const char *settings, int channels, int64_t step, float *y)
{
    static float x[MOST];
    ty_error err = {0};
    ty_keras *m = open_layer(layer, settings, channels);
    if (keras_faults_result(&m->faults, &err) < 0)
        fail_msg("%s: %s", layer, err.message);
    ty_graph *g = ty_graph_new();
    ty_type t = ty_type_make(TY_F32, 4, (int64_t[]){PICTURES, ROWS, COLUMNS, channels});
    for (int64_t i = 0; i < ty_type_elems(&t); i++)
        x[i] = (float)(i / channels / COLUMNS % ROWS * 10 + i / channels % COLUMNS + i % channels * 100);
    ty_val in = ty_b_input(g, ty_graph_add_input(g, "x", t));
    ty_model_binding b = {.mode = TY_MODEL_TRAIN,
                          .inputs = &in,
                          .seed = ty_b_scalar(g, TY_I64, 3),
                          .step = ty_b_scalar(g, TY_I64, (double)step)};
    ty_model_values values;
    if (ty_keras_import(m, g, &b, &values, &err) < 0)
        fail_msg("%s: %s", layer, err.message);
    ty_graph_add_output(g, "y", values.outputs[0], TY_TAPE_EVAL);
    ty_interp *it;
    assert_int_equal(ty_interp_new(g, &it, &err), 0);
    const void *data[] = {x};
    if (ty_interp_run(it, TY_TAPE_EVAL, data, true, &err) < 0)
        fail_msg("%s: %s", layer, err.message);
    const ty_ref *out = ty_interp_output(it, 0);
    ty_type found = out->type;
    for (int64_t i = 0; i < ty_type_elems(&found); i++)
        y[i] = (float)out->f[i];
    ty_interp_free(it);
    ty_graph_free(g);
    ty_keras_free(m);
    return found;
}

static double at(const float *y, int picture, int row, int column)
{
    return y[(picture * ROWS + row) * COLUMNS + column];
}

static double given(int row, int column)
{
    return row * 10 + column;
}

/* How many pictures are flipped; each is as a whole, or not at all. */
static int count_flipped(const float *y, bool across, bool down)
{
    int flipped = 0;
    for (int p = 0; p < PICTURES; p++) {
        bool is = at(y, p, 0, 0) != 0;
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < COLUMNS; c++)
                assert_float_equal(at(y, p, r, c),
                                   given(is && down ? ROWS - 1 - r : r, is && across ? COLUMNS - 1 - c : c), 0);
        flipped += is;
    }
    return flipped;
}

static void flips_are_of_half_the_pictures(void **state)
{
    (void)state;
    static float y[MOST], again[MOST];
    changed("RandomFlip", "\"mode\": \"horizontal\"", 1, 1, y);
    assert_in_range(count_flipped(y, true, false), 16, 48);
    changed("RandomFlip", "\"mode\": \"vertical\"", 1, 1, y);
    assert_in_range(count_flipped(y, false, true), 16, 48);
    changed("RandomFlip", "", 1, 1, y);
    assert_in_range(count_flipped(y, true, true), 16, 48);
    changed("RandomFlip", "", 1, 1, again);
    assert_memory_equal(y, again, PICTURES * ROWS * COLUMNS * sizeof *y);
    changed("RandomFlip", "", 1, 2, again);
    assert_memory_not_equal(y, again, PICTURES * ROWS * COLUMNS * sizeof *y);
}

/* The middle of each picture has moved by a share of its width in a range, and by other shares in others. */
static void moves_are_within_their_range(void **state)
{
    (void)state;
    static float y[MOST];
    double least = 9, most = -9;
    changed("RandomTranslation", "\"height_factor\": 0.0, \"width_factor\": [-0.1, 0.3], \"fill_mode\": \"nearest\"", 1,
            1, y);
    for (int p = 0; p < PICTURES; p++) {
        double moved = (given(3, 2) - at(y, p, 3, 2)) / COLUMNS;
        least = fmin(least, moved);
        most = fmax(most, moved);
    }
    assert_true(least >= -0.1 - 1e-6 && least < -0.05 && most > 0.25 && most <= 0.3 + 1e-6);
}

/* Rows are sheared one way or the other: row r by 0.25 r columns. */
static void shears_go_both_ways(void **state)
{
    (void)state;
    static float y[MOST];
    int right = 0;
    changed("RandomShear", "\"x_factor\": [0.25, 0.25], \"y_factor\": 0.0, \"fill_mode\": \"nearest\"", 1, 1, y);
    for (int p = 0; p < PICTURES; p++) {
        double moved = at(y, p, 2, 2) - given(2, 2);
        assert_float_equal(fabs(moved), 0.5, 1e-5);
        assert_float_equal(at(y, p, 4, 2) - given(4, 2), 2 * moved, 1e-5);
        right += moved > 0;
    }
    assert_in_range(right, 16, 48);
}

/* One turn and one zoom a picture, around its middle, in a range. */
static void turns_and_zooms_keep_the_middle(void **state)
{
    (void)state;
    static float y[MOST];
    double least = 9, most = -9;
    changed("RandomRotation", "\"factor\": 0.05, \"fill_mode\": \"nearest\"", 1, 1, y);
    for (int p = 0; p < PICTURES; p++) {
        double right = at(y, p, 3, 3) - given(3, 2),
               below = at(y, p, 4, 2) - given(3, 2); /* cos + 10 sin, 10 cos - sin */
        double turned = asin((10 * right - below) / 101) / (2 * M_PI);
        assert_float_equal(at(y, p, 3, 2), given(3, 2), 1e-4);
        least = fmin(least, turned);
        most = fmax(most, turned);
    }
    assert_true(least >= -0.0501 && least < -0.03 && most > 0.03 && most <= 0.0501);
    changed("RandomZoom", "\"height_factor\": [-0.5, 0.2], \"fill_mode\": \"nearest\"", 1, 1, y);
    for (int p = 0; p < PICTURES; p++) {
        double rows = (at(y, p, 4, 2) - given(3, 2)) / 10, columns = at(y, p, 3, 3) - given(3, 2);
        assert_float_equal(at(y, p, 3, 2), given(3, 2), 1e-4);
        assert_float_equal(rows, columns, 1e-5);
        assert_true(rows >= 0.5 - 1e-5 && rows <= 1.2 + 1e-5);
    }
}

static void values_are_changed_by_picture(void **state)
{
    (void)state;
    static float y[MOST];
    double mean = given(3, 2), least = 9, most = -9;
    changed("RandomContrast", "\"factor\": [0.2, 0.4], \"value_range\": [-1000, 1000]", 1, 1, y);
    for (int p = 0; p < PICTURES; p++) {
        double by = (at(y, p, 0, 0) - mean) / (given(0, 0) - mean);
        assert_float_equal((at(y, p, 5, 1) - mean) / (given(5, 1) - mean), by, 1e-4);
        least = fmin(least, by);
        most = fmax(most, by);
    }
    assert_true(least >= 0.8 - 1e-5 && least < 0.85 && most > 1.35 && most <= 1.4 + 1e-5);
    changed("RandomBrightness", "\"factor\": 0.1, \"value_range\": [0, 100]", 1, 1, y);
    for (int p = 0; p < PICTURES; p++) {
        double more = at(y, p, 4, 2) - given(4, 2);
        assert_true(fabs(more) <= 10 + 1e-4);
        assert_float_equal(at(y, p, 0, 0), fmax(more, 0), 1e-4);
    }
}

static void shares_of_the_pictures_lose_their_colour(void **state)
{
    (void)state;
    static float y[MOST];
    int gray = 0, inverted = 0;
    changed("RandomGrayscale", "\"factor\": 0.25", 3, 1, y);
    for (int p = 0; p < PICTURES; p++)
        gray += y[p * ROWS * COLUMNS * 3] == y[p * ROWS * COLUMNS * 3 + 1];
    assert_in_range(gray, 6, 28);
    changed("RandomInvert", "\"factor\": [0.5, 0.5], \"value_range\": [0, 255]", 1, 1, y);
    for (int p = 0; p < PICTURES; p++)
        inverted += at(y, p, 0, 0) == 255;
    assert_in_range(inverted, 16, 48);
}

/* The same cut of all pictures of a step; another in others. */
static void crops_are_somewhere(void **state)
{
    (void)state;
    static float y[MOST];
    bool seen[ROWS * 10] = {false};
    int n_seen = 0;
    for (int64_t step = 0; step < 40; step++) {
        ty_type t = changed("RandomCrop", "\"height\": 3, \"width\": 4", 1, step, y);
        assert_true(t.dim[1] == 3 && t.dim[2] == 4);
        int first = (int)y[0];
        assert_true(first / 10 <= ROWS - 3 && first % 10 <= COLUMNS - 4);
        for (int i = 0; i < PICTURES * 12; i++)
            assert_float_equal(y[i], first + i / 4 % 3 * 10 + i % 4, 0);
        n_seen += !seen[first];
        seen[first] = true;
    }
    assert_in_range(n_seen, 6, 10);
}

static void what_cannot_be_done_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *layer, *settings, *message;
        int channels;
    } rows[] = {
        {"RandomRotation", "\"factor\": 2.0", "factor", 1},
        {"RandomRotation", "\"factor\": 0.1, \"fill_mode\": \"mirror\"", "fill_mode", 1},
        {"RandomZoom", "\"height_factor\": [0.1, 0.2, 0.3]", "height_factor", 1},
        {"RandomCrop", "\"height\": 9, \"width\": 2", "9 x 2 out of", 1},
        {"RandomGrayscale", "\"factor\": 0.5", "3 channels", 1},
        {"RandomErasing", "\"factor\": 1.0", "RandomErasing", 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ty_keras *m = open_layer(rows[i].layer, rows[i].settings, rows[i].channels);
        ty_graph *g = ty_graph_new();
        ty_error err = {0};
        ty_val in = ty_b_input(
            g, ty_graph_add_input(g, "x", ty_type_make(TY_F32, 4, (int64_t[]){2, ROWS, COLUMNS, rows[i].channels})));
        ty_val word = ty_b_scalar(g, TY_I64, 1);
        ty_model_binding b = {.mode = TY_MODEL_TRAIN, .inputs = &in, .seed = word, .step = word};
        ty_model_values values;
        if (keras_faults_result(&m->faults, &err) == 0)
            assert_true(ty_keras_import(m, g, &b, &values, &err) < 0);
        if (!strstr(err.message, rows[i].message))
            fail_msg("%s: expected \"%s\" in \"%s\"", rows[i].layer, rows[i].message, err.message);
        ty_graph_free(g);
        ty_keras_free(m);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(flips_are_of_half_the_pictures),
        TEST(moves_are_within_their_range),
        TEST(shears_go_both_ways),
        TEST(turns_and_zooms_keep_the_middle),
        TEST(values_are_changed_by_picture),
        TEST(shares_of_the_pictures_lose_their_colour),
        TEST(crops_are_somewhere),
        TEST(what_cannot_be_done_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
