/* input_image.c - pictures decoded and resized as Pillow does it (tests/golden/images), what is refused, what varies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/input/image/plan.h"
#include "golden_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 20 };

static void picture(const char *name, ty_buf *out)
{
    golden_read("images", name, out);
}

/* ---- as Pillow ---- */

typedef struct golden_case {
    char file[64], filter[16];
    int channels, width, height, within;
    ty_image_part part;
} golden_case;

static ty_image_filter filter_of(const char *name)
{
    static const char *const names[] = {"bilinear", "bicubic", "lanczos", "box", "nearest"};
    for (int i = 0; i < 5; i++)
        if (strcmp(names[i], name) == 0)
            return (ty_image_filter)i;
    fail_msg("no filter %s", name);
    return TY_IMAGE_BILINEAR;
}

static size_t check_case(const golden_case *g, const uint8_t *expected)
{
    ty_buf bytes;
    ty_image whole = {0}, out = {0};
    ty_image_scratch scratch = {0};
    ty_error err = {0};
    size_t n = (size_t)g->width * (size_t)g->height * (size_t)g->channels;
    picture(g->file, &bytes);
    ty_image_want want = {.channels = g->channels};
    if (ty_image_decode((const uint8_t *)bytes.data, bytes.len, &want, &whole, &err) < 0 ||
        ty_image_resize(&whole, g->part, g->width, g->height, filter_of(g->filter), &scratch, &out, &err) < 0)
        fail_msg("%s: %s", g->file, err.message);
    assert_int_equal(out.channels, g->channels);
    for (size_t i = 0; i < n; i++)
        if (abs(out.px[i] - expected[i]) > g->within)
            fail_msg("%s to %d channels, %dx%d %s: sample %zu is %d, Pillow's %d", g->file, g->channels, g->width,
                     g->height, g->filter, i, out.px[i], expected[i]);
    ty_image_info info;
    if (ty_image_probe((const uint8_t *)bytes.data, bytes.len, &info, &err) < 0)
        fail_msg("%s: %s", g->file, err.message);
    assert_int_equal(info.width, whole.width);
    assert_int_equal(info.height, whole.height);
    ty_image_fini(&whole);
    ty_image_fini(&out);
    ty_image_scratch_fini(&scratch);
    ty_buf_fini(&bytes);
    return n;
}

static void pictures_are_those_of_pillow(void **state)
{
    (void)state;
    ty_buf list, pixels;
    picture("expected.txt", &list);
    picture("expected.bin", &pixels);
    size_t at = 0;
    int cases = 0;
    for (char *line = strtok(list.data, "\n"); line; line = strtok(NULL, "\n"), cases++) {
        golden_case g;
        assert_int_equal(sscanf(line, "%63s %d %lf %lf %lf %lf %d %d %15s %d", g.file, &g.channels, &g.part.x0,
                                &g.part.y0, &g.part.x1, &g.part.y1, &g.width, &g.height, g.filter, &g.within),
                         10);
        at += check_case(&g, (const uint8_t *)pixels.data + at);
        assert_true(at <= pixels.len);
    }
    assert_int_equal(at, pixels.len);
    assert_true(cases > 60);
    ty_buf_fini(&list);
    ty_buf_fini(&pixels);
}

/* ---- refusals ---- */

static void refused(const void *p, size_t n, int channels, int64_t max_pixels, const char *text)
{
    ty_image image = {0};
    ty_error err = {0};
    ty_image_want want = {.channels = channels, .max_pixels = max_pixels};
    assert_int_equal(ty_image_decode(p, n, &want, &image, &err), -1);
    if (!strstr(err.message, text))
        fail_msg("expected \"%s\", found \"%s\"", text, err.message);
    ty_image_fini(&image);
}

static void pictures_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const cut[] = {"plain.jpg", "progressive.jpg", "rgb.png", "rgb.ppm", "rgb.bmp", "one.bmp"};
    ty_buf bytes;
    for (size_t i = 0; i < sizeof cut / sizeof cut[0]; i++) {
        picture(cut[i], &bytes);
        for (size_t n = 0; n < bytes.len - 2; n += n < 64 ? 1 : 37)
            refused(bytes.data, n, 0, 0, "");
        refused(bytes.data, bytes.len, 3, 100, "expected at most 100 in all");
        ty_buf_fini(&bytes);
    }
    refused("GIF89a..........", 16, 0, 0, "not those of a JPEG, PNG, PNM or BMP picture, but of a GIF picture");
    refused("version https://git-lfs.github.com", 34, 0, 0, "but of a pointer of Git LFS");
    refused("P6 0 5 255 ", 11, 0, 0, "0 x 5 pixels");
    refused("P6 99999999 99999999 255 ", 25, 0, 0, "expected at most");
    refused("P5 2 1 200 \x10\xff", 13, 0, 0, "sample 1 is 255, its greatest value 200");
    picture("rgba.png", &bytes);
    refused(bytes.data, bytes.len, 2, 0, "cannot become grey with alpha");
    bytes.data[60] ^= 1;
    refused(bytes.data, bytes.len, 0, 0, "PNG: ");
    ty_buf_fini(&bytes);
    picture("plain.jpg", &bytes);
    refused(bytes.data, bytes.len - 60, 0, 0, "JPEG: ");
    ty_buf_fini(&bytes);
}

/* A progressive picture whose last scan is there a thousand times. */
static void a_thousand_scans_are_refused(void **state)
{
    (void)state;
    ty_buf bytes;
    picture("progressive.jpg", &bytes);
    size_t n = bytes.len - 2, scan = n;
    while (memcmp(bytes.data + scan, "\xff\xda", 2) != 0)
        scan--;
    ty_buf bomb;
    ty_buf_init(&bomb, MAX_BYTES);
    ty_buf_add(&bomb, bytes.data, n);
    for (int i = 0; i < 1000; i++)
        ty_buf_add(&bomb, bytes.data + scan, n - scan);
    ty_buf_add(&bomb, "\xff\xd9", 2);
    refused(bomb.data, bomb.len, 0, 0, "");
    ty_buf_fini(&bomb);
    ty_buf_fini(&bytes);
}

/* ---- plans ---- */

static void read_golden(const ty_image_plan *plan, const char *name, ty_chance draw, float *out)
{
    ty_buf bytes;
    ty_error err = {0};
    ty_image_reader reader = {.plan = plan};
    picture(name, &bytes);
    if (ty_image_read(&reader, (const uint8_t *)bytes.data, bytes.len, &draw, TY_F32, out, &err) < 0)
        fail_msg("%s: %s", name, err.message);
    ty_image_reader_fini(&reader);
    ty_buf_fini(&bytes);
}

static ty_image_plan settled(ty_image_plan p)
{
    ty_error err = {0};
    ty_image_info info = {"PPM", 29, 19, 3, 0};
    if (ty_image_plan_check(&p, TY_F32, &err) < 0 || ty_image_plan_settle(&p, &info, &err) < 0)
        fail_msg("%s", err.message);
    return p;
}

static void evaluation_takes_the_centre(void **state)
{
    (void)state;
    ty_image_plan p = ty_image_plan_make();
    p.height = 9, p.width = 11, p.fit = TY_IMAGE_AS_IS, p.scale = 1.0;
    p.flip_across = p.flip_down = true, p.crop = TY_IMAGE_CROP_RANDOM, p.hwc = true;
    p.mean[0] = 1, p.mean[1] = 2, p.mean[2] = 3, p.n_mean = 3, p.std[0] = 2, p.n_std = 1;
    p = settled(p);
    float row[9 * 11 * 3];
    ty_buf ppm;
    read_golden(&p, "rgb.ppm", (ty_chance){0}, row);
    picture("rgb.ppm", &ppm);
    const uint8_t *px = (const uint8_t *)ppm.data + ppm.len - 29 * 19 * 3;
    for (int y = 0; y < 9; y++)
        for (int x = 0; x < 11; x++)
            for (int c = 0; c < 3; c++)
                assert_true(row[(y * 11 + x) * 3 + c] ==
                            (float)((px[((y + 5) * 29 + x + 9) * 3 + c] - (double)(c + 1)) / 2.0));
    p.hwc = false;
    float planes[9 * 11 * 3];
    read_golden(&p, "rgb.ppm", (ty_chance){0}, planes);
    for (int i = 0; i < 9 * 11; i++)
        for (int c = 0; c < 3; c++)
            assert_true(planes[c * 99 + i] == row[i * 3 + c]);
    ty_buf_fini(&ppm);
}

static void what_varies_is_a_function_of_seed_epoch_and_sample(void **state)
{
    (void)state;
    ty_image_plan p = ty_image_plan_make();
    p.height = p.width = 12, p.crop = TY_IMAGE_CROP_RANDOM_RESIZED, p.flip_across = true;
    p = settled(p);
    enum { N = 12 * 12 * 3 };
    float first[N], again[N], other[N];
    ty_chance draw = {.seed = 7, .epoch = 3, .sample = 41, .augment = true};
    read_golden(&p, "rgb.ppm", draw, first);
    read_golden(&p, "rgb.ppm", draw, again);
    assert_memory_equal(first, again, sizeof first);
    ty_chance others[3] = {draw, draw, draw};
    others[0].seed++, others[1].epoch++, others[2].sample++;
    for (int i = 0; i < 3; i++) {
        read_golden(&p, "rgb.ppm", others[i], other);
        assert_true(memcmp(first, other, sizeof first) != 0);
    }
}

/* Two rows of zeros around and five places a side: two of five windows begin in zeros. */
static void random_crops_go_everywhere(void **state)
{
    (void)state;
    ty_image_plan p = ty_image_plan_make();
    p.height = 19, p.width = 29, p.fit = TY_IMAGE_AS_IS, p.crop = TY_IMAGE_CROP_RANDOM, p.pad = 2, p.scale = 1.0;
    p = settled(p);
    enum { PLANE = 19 * 29, TRIES = 500 };
    float row[PLANE * 3];
    int top_zero = 0, left_zero = 0;
    for (int i = 0; i < TRIES; i++) {
        read_golden(&p, "rgb.ppm", (ty_chance){.sample = i, .augment = true}, row);
        top_zero += row[10] == 0 && row[PLANE * 2 + 28] == 0 && row[0] == 0 && row[15] == 0;
        left_zero += row[9 * 29] == 0;
    }
    assert_in_range(top_zero, TRIES * 2 / 5 - 60, TRIES * 2 / 5 + 60);
    assert_in_range(left_zero, TRIES * 2 / 5 - 60, TRIES * 2 / 5 + 60);
}

static void pictures_of_other_shapes_get_zeros_or_lose_their_ends(void **state)
{
    (void)state;
    ty_image_plan p = ty_image_plan_make();
    p.height = p.width = 20, p.fit = TY_IMAGE_CONTAIN, p.channels = 1;
    p = settled(p);
    float row[400];
    read_golden(&p, "rgb.ppm", (ty_chance){0}, row); /* 29 x 19 becomes 20 x 13, four zeros above and three below */
    for (int x = 0; x < 20; x++)
        assert_true(row[3 * 20 + x] == 0 && row[4 * 20 + x] != 0 && row[16 * 20 + x] != 0 && row[17 * 20 + x] == 0);
    p.fit = TY_IMAGE_COVER;
    read_golden(&p, "rgb.ppm", (ty_chance){0}, row);
    for (int i = 0; i < 400; i++)
        assert_true(row[i] > 0);
}

static void mixing_draws_from_beta(void **state)
{
    (void)state;
    ty_image_plan p = ty_image_plan_make();
    p.height = p.width = 16, p.mix = TY_IMAGE_MIXUP, p.alpha = 0.2;
    p = settled(p);
    double sum = 0, squares = 0;
    enum { N = 4000 };
    for (int i = 0; i < N; i++) {
        ty_image_mixing m;
        ty_image_plan_mixing(&p, &(ty_chance){.sample = i, .augment = true}, 10, &m);
        assert_in_range(m.other, 0, 9);
        assert_true(m.share >= 0.0 && m.share <= 1.0);
        sum += m.share, squares += m.share * m.share;
    }
    double mean = sum / N, variance = squares / N - mean * mean; /* 1/2 and 1 / (4 (2 alpha + 1)) */
    assert_true(fabs(mean - 0.5) < 0.03 && fabs(variance - 1.0 / 5.6) < 0.01);
    p.mix = TY_IMAGE_CUTMIX, p.alpha = 1.0;
    float row[16 * 16 * 3], other[16 * 16 * 3];
    for (int i = 0; i < 16 * 16 * 3; i++)
        row[i] = 0, other[i] = 1;
    ty_image_mixing m;
    ty_image_plan_mixing(&p, &(ty_chance){.sample = 5, .augment = true}, 10, &m);
    ty_image_plan_mix(&p, &m, row, other);
    double ones = 0;
    for (int i = 0; i < 16 * 16 * 3; i++)
        ones += row[i];
    assert_true(fabs(ones / (16 * 16 * 3) - (1.0 - m.share)) < 1e-9 && ones > 0);
    ty_image_plan_mixing(&p, &(ty_chance){.sample = 5}, 10, &m);
    assert_true(m.share == 1.0 && m.other == 5);
}

static void mean_and_deviation_are_those_of_the_samples(void **state)
{
    (void)state;
    ty_image_plan p = ty_image_plan_make();
    p.mean_of_data = true;
    p = settled(p);
    ty_image_reader reader = {.plan = &p};
    ty_image_sums sums = {0};
    ty_buf bytes;
    ty_error err = {0};
    picture("rgb.ppm", &bytes);
    assert_int_equal(ty_image_see(&reader, (const uint8_t *)bytes.data, bytes.len, &sums, &err), 0);
    ty_image_reader_fini(&reader);
    ty_buf_fini(&bytes);
    ty_image_plan_take(&p, &sums);
    float row[29 * 19 * 3];
    read_golden(&p, "rgb.ppm", (ty_chance){0}, row);
    for (int c = 0; c < 3; c++) {
        double sum = 0, squares = 0;
        for (int i = 0; i < 29 * 19; i++)
            sum += row[c * 29 * 19 + i], squares += (double)row[c * 29 * 19 + i] * row[c * 29 * 19 + i];
        assert_true(fabs(sum / (29 * 19)) < 1e-5 && fabs(squares / (29 * 19) - 1.0) < 1e-5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_are_those_of_pillow),
        cmocka_unit_test(pictures_that_are_none_are_refused),
        cmocka_unit_test(a_thousand_scans_are_refused),
        cmocka_unit_test(evaluation_takes_the_centre),
        cmocka_unit_test(what_varies_is_a_function_of_seed_epoch_and_sample),
        cmocka_unit_test(random_crops_go_everywhere),
        cmocka_unit_test(pictures_of_other_shapes_get_zeros_or_lose_their_ends),
        cmocka_unit_test(mixing_draws_from_beta),
        cmocka_unit_test(mean_and_deviation_are_those_of_the_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
