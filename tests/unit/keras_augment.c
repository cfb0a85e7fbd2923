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

/* Rectangles of a size in a range, each somewhere in its picture; half of the pictures have one. */
static void rectangles_are_erased(void **state)
{
    (void)state;
    static float y[MOST];
    int erased = 0, least = MOST, most = 0;
    bool corner = false;
    changed("RandomErasing", "\"factor\": [0.5, 0.5], \"scale\": [0.2, 0.5], \"fill_value\": 200", 1, 1, y);
    for (int p = 0; p < PICTURES; p++) {
        int rows = 0, columns = 0, n = 0;
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < COLUMNS; c++) {
                bool is = at(y, p, r, c) == 200;
                if (!is)
                    assert_float_equal(at(y, p, r, c), given(r, c), 0);
                n += is;
                rows |= is << r;
                columns |= is << c;
            }
        assert_int_equal(n, __builtin_popcount((unsigned)rows) * __builtin_popcount((unsigned)columns));
        erased += n > 0;
        least = n > 0 && n < least ? n : least;
        most = n > most ? n : most;
        corner |= at(y, p, ROWS - 1, COLUMNS - 1) == 200; /* the first is never, as in Keras */
    }
    assert_in_range(erased, 16, 48);
    assert_true(least >= 3 * 2 - 2 && least < 13 && most > 12 && most <= 5 * 4 && corner);
    changed("RandomErasing", "\"scale\": [1.0, 1.0], \"value_range\": [0, 100]", 1, 1, y); /* with noise */
    for (int i = 0; i < PICTURES * ROWS * COLUMNS; i++)
        least = y[i] == 0 ? least + 1000 : least, assert_true(y[i] >= 0 && y[i] <= 100);
    assert_in_range(least / 1000, PICTURES * ROWS * COLUMNS / 5, PICTURES * ROWS * COLUMNS / 3); /* half of half */
}

/* The first corner stays, the others move along their edges: so rows of the first row stay there, columns too. */
static void perspectives_keep_the_edges_of_a_corner(void **state)
{
    (void)state;
    static float y[MOST];
    int moved = 0, away = 0;
    changed("RandomPerspective", "\"factor\": [0.5, 0.5], \"scale\": 0.5, \"fill_value\": -1", 1, 1, y);
    for (int p = 0; p < PICTURES; p++) {
        assert_float_equal(at(y, p, 0, 0), 0, 1e-3);
        moved += fabs(at(y, p, 3, 2) - given(3, 2)) > 1e-3;
        for (int c = 0; c < COLUMNS; c++) {
            away += at(y, p, 0, c) == -1;
            assert_true(at(y, p, 0, c) >= -1 && at(y, p, 0, c) <= COLUMNS - 1 + 1e-3);
        }
    }
    assert_in_range(moved, 16, 48);
    assert_true(away > 0);
}

/* Each bit count from least to below most; thresholds and what is added differ from picture to picture. */
static void values_become_fewer(void **state)
{
    (void)state;
    static float y[MOST];
    int pictures[3] = {0};
    changed("RandomPosterization", "\"factor\": [3, 6]", 1, 1, y);
    for (int bits = 3; bits < 6; bits++)
        for (int p = 0; p < PICTURES; p++) {
            bool all = true;
            int step = 1 << (8 - bits);
            for (int r = 0; r < ROWS; r++)
                for (int c = 0; c < COLUMNS; c++)
                    all &= at(y, p, r, c) == (int)given(r, c) / step * step;
            pictures[bits - 3] += all;
        }
    assert_int_equal(pictures[0] + pictures[1] + pictures[2], PICTURES);
    assert_true(pictures[0] > 8 && pictures[1] > 8 && pictures[2] > 8);
    int inverted = 0;
    changed("Solarization", "\"addition_factor\": 0.0, \"threshold_factor\": [0.0, 0.5]", 1, 1, y);
    for (int p = 0; p < PICTURES; p++) {
        bool is = at(y, p, 6, 4) == 255 - given(6, 4);
        assert_true(is || at(y, p, 6, 4) == given(6, 4));
        inverted += is;
    }
    assert_in_range(inverted, 16, 48); /* thresholds up to 127, 64 is inverted below it */
}

/* One of the changes at a time, the same for all pictures of a step. */
static void one_of_many_is_taken(void **state)
{
    (void)state;
    static float y[MOST], x[MOST], want[MOST];
    static const char *const fixed[][2] = {{"RandomSharpness", "\"factor\": [0.0, 0.0]"},
                                           {"RandomPosterization", "\"factor\": [1, 1]"},
                                           {"Solarization", ""},
                                           {"AutoContrast", ""},
                                           {"Equalization", ""},
                                           {"RandomBrightness", "\"factor\": [0.0, 0.0]"},
                                           {"RandomTranslation", "\"height_factor\": 0.0, \"width_factor\": 0.0"}};
    bool seen[7] = {false};
    for (int64_t step = 0; step < 80; step++) {
        int found = -1;
        changed("RandAugment", "\"num_ops\": 1, \"factor\": 0.0", 3, step, y);
        for (int k = 0; k < 7 && found < 0; k++) {
            double away = 0;
            changed(fixed[k][0], fixed[k][1], 3, 1, want);
            for (int i = 0; i < MOST; i++)
                away = fmax(away, fabs((double)y[i] - (double)want[i]));
            found = away < 1e-3 ? k : -1;
        }
        assert_true(found >= 0);
        seen[found] = true;
    }
    for (int k = 0; k < 7; k++)
        assert_true(seen[k]);
    changed("RandAugment", "", 3, 5, y);
    changed("RandAugment", "", 3, 5, x);
    assert_memory_equal(x, y, sizeof y);
}

/* Hues are turned both ways, and saturations changed, picture by picture. */
static void colours_are_turned(void **state)
{
    (void)state;
    static float y[MOST];
    int up = 0, down = 0;
    changed("RandomHue", "\"factor\": [0.1, 0.2]", 3, 1, y);
    for (int p = 0; p < PICTURES; p++) { /* of 0, 100, 200: between cyan and blue */
        const float *pixel = y + p * ROWS * COLUMNS * 3;
        assert_float_equal(fmaxf(fmaxf(pixel[0], pixel[1]), pixel[2]), 200, 1e-2);
        assert_float_equal(fminf(fminf(pixel[0], pixel[1]), pixel[2]), 0, 1e-2);
        up += pixel[1] < 70;
        down += pixel[1] > 130;
    }
    assert_true(up + down == PICTURES && up > 16 && down > 16);
    double least = 9, most = 0;
    changed("RandomSaturation", "\"factor\": [0.2, 0.5]", 3, 1, y);
    for (int p = 0; p < PICTURES; p++) { /* of saturation 1 */
        const float *pixel = y + p * ROWS * COLUMNS * 3;
        double now = 1 - pixel[0] / 200;
        least = fmin(least, now);
        most = fmax(most, now);
    }
    assert_true(least >= 0.25 - 1e-3 && least < 0.4 && most > 0.8 && most <= 1 + 1e-3);
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
        {"AugMix", "\"factor\": 1.0", "AugMix", 3},
        {"RandomHue", "\"factor\": 0.5", "3 channels", 1},
        {"RandomHue", "\"factor\": -0.5", "factor", 3},
        {"RandomPosterization", "\"factor\": 9", "factor", 3},
        {"RandomGaussianBlur", "\"kernel_size\": [3, 4]", "kernel_size", 3},
        {"RandomErasing", "\"fill_value\": [1, 2]", "fill_value", 3},
        {"RandAugment", "\"num_ops\": 0", "num_ops", 3},
        {"Equalization", "\"bins\": 0", "bins", 3},
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
        TEST(rectangles_are_erased),
        TEST(perspectives_keep_the_edges_of_a_corner),
        TEST(values_become_fewer),
        TEST(one_of_many_is_taken),
        TEST(colours_are_turned),
        TEST(what_cannot_be_done_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
