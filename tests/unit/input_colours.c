/* input_colours.c - colours of pictures against torchvision's (tests/golden/images/make_colours.py), and what is drawn
 * of them: nothing in evaluation, the same for the same sample, all that was asked for over many samples.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "container/input/image/colour.h"
#include "container/input/image/draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 23, HEIGHT = 17, CHANNELS = 3, PIXELS = WIDTH * HEIGHT, BYTES = PIXELS * CHANNELS };

static void grey(uint8_t *px, size_t n, int channels, double unused)
{
    (void)unused;
    image_grey(px, n, channels);
}

static void turn(uint8_t *px, size_t n, int channels, double degrees)
{
    uint8_t to[BYTES];
    (void)n;
    image_rotate(px, WIDTH, HEIGHT, channels, degrees, 0, to);
    memcpy(px, to, sizeof to);
}

static void turn_nearest(uint8_t *px, size_t n, int channels, double degrees)
{
    uint8_t to[BYTES];
    (void)n;
    image_rotate(px, WIDTH, HEIGHT, channels, degrees, 1, to);
    memcpy(px, to, sizeof to);
}

/* As CASES of make_colours.py. */
static const struct {
    const char *name;
    void (*change)(uint8_t *px, size_t n, int channels, double factor);
    double factor;
    int within, n_off; /* levels; samples that may be off by more, where two pixels are as near */
} cases[] = {{"darker", image_brightness, 0.6, 0, 0},
             {"brighter", image_brightness, 1.4, 0, 0},
             {"flatter", image_contrast, 0.6, 0, 0},
             {"steeper", image_contrast, 1.4, 0, 0},
             {"paler", image_saturation, 0.3, 0, 0},
             {"more colourful", image_saturation, 1.7, 0, 0},
             {"hue back", image_hue, -0.3, 1, 0},
             {"hue on", image_hue, 0.1, 1, 0},
             {"hue opposite", image_hue, 0.5, 1, 0},
             {"grey", grey, 0, 0, 0},
             {"turned", turn, 20, 1, 0},
             {"turned far", turn, -75, 1, 0},
             {"turned by nearest", turn_nearest, 30, 0, 6}};
enum { N_CASES = sizeof cases / sizeof cases[0] };

static void colours_are_torchvisions(void **state)
{
    (void)state;
    ty_buf golden;
    ty_error err = {0};
    ty_buf_init(&golden, 1 << 20);
    assert_int_equal(ty_file_read("tests/golden/images/colours.bin", &golden, &err), 0);
    assert_int_equal(golden.len, (N_CASES + 1) * BYTES);
    for (int i = 0; i < N_CASES; i++) {
        uint8_t px[BYTES];
        const uint8_t *expected = (const uint8_t *)golden.data + (size_t)(i + 1) * BYTES;
        int n_off = 0, worst = 0;
        memcpy(px, golden.data, sizeof px);
        cases[i].change(px, PIXELS, CHANNELS, cases[i].factor);
        assert_memory_not_equal(px, golden.data, sizeof px);
        for (int k = 0; k < BYTES; k++) {
            int off = abs(px[k] - expected[k]);
            n_off += off > cases[i].within;
            worst = off > worst ? off : worst;
        }
        if (n_off > cases[i].n_off * CHANNELS)
            fail_msg("%s: %d samples are off by more than %d, one by %d", cases[i].name, n_off, cases[i].within, worst);
    }
    ty_buf_fini(&golden);
}

/* Alpha and grey pictures: no colours to change; what lies beside them stays. */
static void other_channels_stay(void **state)
{
    (void)state;
    uint8_t rgba[] = {10, 200, 30, 77, 90, 20, 250, 78}, one[] = {10, 200, 30};
    const uint8_t before[] = {10, 200, 30};
    image_hue(rgba, 2, 4, 0.3);
    image_saturation(rgba, 2, 4, 0.5);
    image_brightness(rgba, 2, 4, 1.5);
    assert_int_equal(rgba[3], 77);
    assert_int_equal(rgba[7], 78);
    image_hue(one, 3, 1, 0.3);
    image_saturation(one, 3, 1, 0.5);
    image_grey(one, 3, 1);
    assert_memory_equal(one, before, sizeof one);
}

static ty_image_plan varied(void)
{
    ty_image_plan p = ty_image_plan_make();
    p.width = 40;
    p.height = 30;
    p.channels = 3;
    p.jitter[TY_JITTER_BRIGHTNESS] = 0.4;
    p.jitter[TY_JITTER_CONTRAST] = 2;
    p.jitter[TY_JITTER_HUE] = 0.1;
    p.grey = 0.25;
    p.erase = 0.5;
    p.rotate = 30;
    return p;
}

static void what_is_drawn(void **state)
{
    (void)state;
    enum { N = 4000 };
    ty_image_plan p = varied();
    int n_grey = 0, n_erased = 0, first[TY_N_JITTERS] = {0};
    double least[5] = {9, 9, 9, 9, 99}, most[5] = {-9, -9, -9, -9, -99};
    for (int64_t i = 0; i < N; i++) {
        image_change k, again;
        image_draw_change(&p, &(ty_chance){3, 1, i, true}, &k);
        image_draw_change(&p, &(ty_chance){3, 1, i, true}, &again);
        assert_memory_equal(&k, &again, sizeof k);
        const double drawn[] = {k.jitter[0], k.jitter[1], k.jitter[2], k.jitter[3], k.degrees};
        for (int v = 0; v < 5; v++) {
            least[v] = fmin(least[v], drawn[v]);
            most[v] = fmax(most[v], drawn[v]);
        }
        first[k.order[0]]++;
        n_grey += k.is_grey;
        n_erased += k.width > 0;
        assert_true(k.x >= 0 && k.y >= 0 && k.x + k.width <= p.width && k.y + k.height <= p.height);
    }
    const double from[] = {0.6, 0, 1, -0.1, -30}, to[] = {1.4, 3, 1, 0.1, 30};
    for (int v = 0; v < 5; v++) {
        assert_true(least[v] >= from[v] - 1e-6 && least[v] <= from[v] + 0.01 * (to[v] - from[v]) + 1e-6);
        assert_true(most[v] <= to[v] + 1e-6 && most[v] >= to[v] - 0.01 * (to[v] - from[v]) - 1e-6);
    }
    assert_in_range(n_grey, N / 4 - 150, N / 4 + 150);
    assert_in_range(n_erased, N / 2 - 170, N / 2 + 170);
    for (int i = 0; i < TY_N_JITTERS; i++)
        assert_in_range(first[i], N / 4 - 150, N / 4 + 150);
}

static void evaluation_changes_nothing(void **state)
{
    (void)state;
    ty_image_plan p = varied();
    image_change k;
    image_draw_change(&p, &(ty_chance){3, 1, 5, false}, &k);
    assert_true(k.jitter[0] == 1 && k.jitter[1] == 1 && k.jitter[2] == 1 && k.jitter[3] == 0);
    assert_true(!k.is_grey && k.degrees == 0 && k.width == 0);
}

enum { ROW = 3 * 30 * 40 };

static void read_row(const ty_image_plan *given, bool augment, int64_t sample, float out[ROW])
{
    ty_image_plan p = *given;
    ty_buf file;
    ty_error err = {0};
    ty_buf_init(&file, 1 << 20);
    assert_int_equal(ty_file_read("tests/golden/images/rgb.png", &file, &err), 0);
    assert_int_equal(ty_image_plan_settle(&p, &(ty_image_info){.width = 29, .height = 19, .channels = 3}, &err), 0);
    ty_image_reader r = {.plan = &p};
    const ty_chance draw = {3, 1, sample, augment};
    if (ty_image_read(&r, (const uint8_t *)file.data, file.len, &draw, TY_F32, out, &err) < 0)
        fail_msg("%s", err.message);
    ty_image_reader_fini(&r);
    ty_buf_fini(&file);
}

/* Through the reader: each change by itself, in training alone. */
static void rows_are_changed_in_training(void **state)
{
    (void)state;
    static float plain[ROW], row[ROW], again[ROW];
    ty_image_plan none = varied(), p;
    none.jitter[0] = none.jitter[1] = none.jitter[3] = none.grey = none.erase = none.rotate = 0;
    read_row(&none, true, 5, plain);
    for (int what = 0; what < 4; what++) {
        p = none;
        p.jitter[TY_JITTER_BRIGHTNESS] = what == 0 ? 0.5 : 0;
        p.grey = what == 1;
        p.erase = what == 2;
        p.rotate = what == 3 ? 40 : 0;
        p.mean[0] = p.mean[1] = p.mean[2] = what == 2 ? 3 : 0; /* so that 0 is no picture's */
        p.n_mean = 3;
        read_row(&p, true, 5, row);
        read_row(&p, true, 5, again);
        assert_memory_equal(row, again, sizeof row);
        assert_memory_not_equal(row, plain, sizeof row);
        int zeros = 0;
        for (int i = 0; i < ROW / 3; i++) {
            bool is_zero = row[i] == 0 && row[i + ROW / 3] == 0 && row[i + 2 * ROW / 3] == 0;
            zeros += is_zero;
            assert_true(what != 1 || (row[i] == row[i + ROW / 3] && row[i] == row[i + 2 * ROW / 3]));
        }
        assert_true(what != 2 || (zeros >= 20 && zeros <= 400));
        read_row(&p, false, 5, row);
        if (what != 2)
            assert_memory_equal(row, plain, sizeof row);
    }
}

static void plans_are_told_apart_and_checked(void **state)
{
    (void)state;
    ty_image_plan plain = varied(), other = plain;
    plain.jitter[0] = plain.jitter[1] = plain.jitter[3] = plain.grey = plain.erase = plain.rotate = 0;
    assert_true(ty_image_plan_fingerprint(&plain) != ty_image_plan_fingerprint(&other));
    ty_error err = {0};
    assert_int_equal(ty_image_plan_check(&other, TY_F32, &err), 0);
    other.jitter[TY_JITTER_HUE] = 0.6;
    assert_int_equal(ty_image_plan_check(&other, TY_F32, &err), -1);
    other = varied();
    other.rotate = 181;
    assert_int_equal(ty_image_plan_check(&other, TY_F32, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colours_are_torchvisions),
        cmocka_unit_test(other_channels_stay),
        cmocka_unit_test(what_is_drawn),
        cmocka_unit_test(evaluation_changes_nothing),
        cmocka_unit_test(rows_are_changed_in_training),
        cmocka_unit_test(plans_are_told_apart_and_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
