/* input_images.c - folders of pictures and lists of them as data sets: classes, labels, bad files, mixing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/input/image/plan.h"
#include "container/input/map/map.h"
#include "input_files.h"

#include <math.h>

/* 2 x 2 pixels of one grey. */
static void grey(const char *name, uint8_t v)
{
    char bytes[16] = "P5 2 2 255\n";
    memset(bytes + 11, v, 4);
    files_put(name, bytes, 15);
}

static ty_field picture(ty_image_plan *plan)
{
    ty_field f = ty_field_make("image");
    f.image = plan;
    return f;
}

static ty_image_plan plain(void)
{
    ty_image_plan p = ty_image_plan_make();
    p.scale = 1.0, p.scale_given = true;
    return p;
}

static void folders_are_classes(void **state)
{
    (void)state;
    grey("d/cat/1.pgm", 10), grey("d/ant/9.pgm", 20), grey("d/ant/big/3.pgm", 30), grey("d/cat/0.pgm", 40);
    ty_image_plan plan = plain();
    ty_field f[2] = {picture(&plan), ty_field_make("label")};
    ty_dataset *ds, *other;
    ty_error err = {0};
    float x[4][4];
    int64_t y[4], all[4] = {0, 1, 2, 3};
    assert_ok(files_open("d", f, 2, (ty_data_source){0}, &ds, &err), &err);
    assert_string_equal(ds->format, "images");
    assert_int_equal(ds->n_samples, 4);
    assert_int_equal(ds->field[0].type.rank, 3);
    assert_int_equal(ds->field[0].type.dim[0], 1);
    assert_int_equal(ds->field[0].type.dim[2], 2);
    assert_ok(ty_dataset_read_all(ds, &(ty_pick){.sample = all, .n = 4}, (void *[]){x, y}, &err), &err);
    const int expected[4][2] = {{20, 0}, {30, 1}, {40, 2}, {10, 2}}; /* ant, ant/big, cat */
    for (int i = 0; i < 4; i++)
        assert_true(x[i][0] == (float)expected[i][0] && x[i][3] == x[i][0] && y[i] == expected[i][1]);
    assert_int_equal(ds->field[1].max, 2);
    char place[256];
    assert_non_null(strstr(ty_dataset_place(ds, 0, 2, place, sizeof place), "cat/0.pgm"));

    grey("v/cat/7.pgm", 1);
    assert_ok(files_open("v", f, 2, (ty_data_source){.like = ds}, &other, &err), &err);
    assert_ok(ty_dataset_read(other, 1, all, 1, y, &err), &err);
    assert_int_equal(y[0], 2);
    ty_dataset_close(other);
    grey("w/dog/7.pgm", 1);
    assert_int_equal(files_open("w", f, 2, (ty_data_source){.like = ds}, &other, &err), -1);
    assert_non_null(strstr(err.message, "dog"));
    assert_non_null(strstr(err.place, "dog/7.pgm"));
    ty_dataset_close(ds);
}

static void lists_say_labels_and_order(void **state)
{
    (void)state;
    grey("d/a.pgm", 1), grey("d/sub/b c.pgm", 2), grey("d/unlisted.pgm", 3);
    files_puts("d/x.lst", "4\t7\tsub/b c.pgm\n9\t-1\ta.pgm\r\n\n");
    ty_image_plan plan = plain();
    ty_field f[2] = {picture(&plan), ty_field_make("label")};
    ty_dataset *ds;
    ty_error err = {0};
    float x[2][4], two[2][2];
    int64_t y[2], all[2] = {0, 1};
    assert_ok(files_open("d", f, 2, (ty_data_source){0}, &ds, &err), &err);
    assert_ok(ty_dataset_read_all(ds, &(ty_pick){.sample = all, .n = 2}, (void *[]){x, y}, &err), &err);
    assert_true(ds->n_samples == 2 && x[0][0] == 2 && x[1][0] == 1 && y[0] == 7 && y[1] == -1);
    assert_true(ds->field[1].min == -1 && ds->field[1].min_sample == 1);
    ty_dataset_close(ds);

    files_puts("d/x.lst", "0\t0.5\t2\ta.pgm\n1\t1\t3\ta.pgm\n");
    assert_ok(files_open("d", f, 2, (ty_data_source){0}, &ds, &err), &err);
    assert_ok(ty_dataset_read(ds, 1, all, 2, two, &err), &err);
    assert_true(two[0][0] == 0.5f && two[0][1] == 2 && two[1][1] == 3);
    ty_dataset_close(ds);

    static const char *const wrong[][2] = {
        {"0\t1\t../a.pgm\n", "leaves the folder"},
        {"0\t1\t/etc/passwd\n", "leaves the folder"},
        {"0\t1\tsub/../../a.pgm\n", "leaves"},
        {"0\tone\ta.pgm\n", "expected 1 label"},
        {"0 1 a.pgm\n", "tabs"},
        {"0\t1\ta.pgm\n1\t2\t3\ta.pgm\n", "expected 1 label"},
        {"0\t1\tabsent.pgm\n", "absent.pgm"},
        {"0\tnan\ta.pgm\n", "expected 1 label"},
        {"0\t1\t2\ta.pgm\n1\t2\ta.pgm\n", "2 labels"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        files_puts("d/x.lst", wrong[i][0]);
        err = (ty_error){0};
        assert_int_equal(files_open("d", f, 2, (ty_data_source){0}, &ds, &err), -1);
        if (!strstr(err.message, wrong[i][1]) && !strstr(err.place, wrong[i][1]))
            fail_msg("expected \"%s\", found \"%s\" at \"%s\"", wrong[i][1], err.message, err.place);
    }
}

static void bad_pictures_are_refused_or_left_out(void **state)
{
    (void)state;
    grey("d/a/1.pgm", 1), grey("d/a/3.pgm", 3), grey("d/b/4.pgm", 4);
    files_put("d/a/2.pgm", "P5 2 2 255\nxy", 13);
    ty_image_plan plan = plain();
    ty_field f[2] = {picture(&plan), ty_field_make("label")};
    ty_dataset *ds;
    ty_error err = {0};
    float x[4];
    assert_ok(files_open("d", f, 2, (ty_data_source){0}, &ds, &err), &err); /* headers are right */
    assert_int_equal(ty_dataset_read(ds, 0, (int64_t[]){1}, 1, x, &err), -1);
    assert_non_null(strstr(err.message, "its pixels take 4 bytes, found 2"));
    assert_non_null(strstr(err.place, "d/a/2.pgm"));
    ty_dataset_close(ds);
    assert_ok(files_open("d", f, 2, (ty_data_source){.skip_bad = true, .max_bad = 1}, &ds, &err), &err);
    assert_int_equal(ds->n_samples, 3);
    assert_int_equal(ds->bad.n, 1);
    assert_ok(ty_dataset_read(ds, 0, (int64_t[]){1}, 1, x, &err), &err);
    assert_true(x[0] == 3);
    ty_dataset_close(ds);
    files_put("d/b/5.pgm", "P5 3 2 255\nxyzxyz", 17);
    assert_int_equal(files_open("d", f, 2, (ty_data_source){0}, &ds, &err), -1);
    assert_non_null(strstr(err.message, "3 x 2 pixels, expected 2 x 2"));
    assert_non_null(strstr(err.place, "d/b/5.pgm"));
}

static void means_are_of_the_training_data(void **state)
{
    (void)state;
    for (int i = 0; i < 600; i++) {
        char name[32];
        snprintf(name, sizeof name, "d/a/%04d.pgm", i);
        grey(name, (uint8_t)(i % 2 ? 100 : 50));
    }
    ty_image_plan plan = plain();
    plan.mean_of_data = true;
    ty_field f[1] = {picture(&plan)};
    ty_dataset *ds, *other;
    ty_error err = {0};
    float x[2][4];
    assert_ok(files_open("d", f, 1, (ty_data_source){0}, &ds, &err), &err);
    assert_ok(ty_dataset_read(ds, 0, (int64_t[]){0, 1}, 2, x, &err), &err);
    assert_true(fabsf(x[0][0] + 1) < 1e-6f && fabsf(x[1][0] - 1) < 1e-6f);
    grey("v/a/1.pgm", 75);
    assert_ok(files_open("v", f, 1, (ty_data_source){.like = ds}, &other, &err), &err);
    assert_ok(ty_dataset_read(other, 0, (int64_t[]){0}, 1, x, &err), &err);
    assert_true(fabsf(x[0][0]) < 1e-6f);
    ty_dataset_close(other);
    ty_dataset_close(ds);
}

static void mixing_mixes_labels(void **state)
{
    (void)state;
    grey("d/a/1.pgm", 0), grey("d/b/1.pgm", 200);
    ty_image_plan plan = plain();
    plan.mix = TY_IMAGE_MIXUP, plan.alpha = 1.0;
    ty_field f[2] = {picture(&plan), ty_field_make("label")};
    ty_arena a;
    ty_dataset *ds;
    ty_error err = {0};
    assert_int_equal(files_open("d", f, 2, (ty_data_source){0}, &ds, &err), -1);
    assert_non_null(strstr(err.help, "one_hot"));
    ty_arena_init(&a);
    ty_map_spec spec = {.field = "label", .way = TY_MAP_CLASSES, .scale = 1.0, .one_hot = -1};
    assert_ok(ty_map_new(&spec, &a, &f[1].map, &err), &err);
    assert_ok(files_open("d", f, 2, (ty_data_source){0}, &ds, &err), &err);
    float x[16][4], y[16][2];
    int64_t samples[16];
    for (int i = 0; i < 16; i++)
        samples[i] = i % 2;
    int mixed = 0;
    for (int64_t epoch = 0; epoch < 8; epoch++) {
        ty_pick pick = {samples, 16, 3, epoch, true};
        assert_ok(ty_dataset_read_all(ds, &pick, (void *[]){x, y}, &err), &err);
        for (int i = 0; i < 16; i++) { /* grey and label tell the same share */
            assert_true(fabsf(x[i][0] / 200 - y[i][1]) < 1e-5f && fabsf(y[i][0] + y[i][1] - 1) < 1e-5f);
            mixed += y[i][0] > 0 && y[i][1] > 0;
        }
        for (int i = 2; i < 16; i++) /* a function of the sample, wherever it stands */
            assert_memory_equal(x[i], x[i - 2], sizeof x[i]);
    }
    assert_true(mixed > 8);
    assert_ok(ty_dataset_read_all(ds, &(ty_pick){.sample = samples, .n = 16}, (void *[]){x, y}, &err), &err);
    assert_true(x[1][0] == 200 && y[1][0] == 0 && y[1][1] == 1);
    ty_dataset_close(ds);
    ty_arena_fini(&a);
}

static void pictures_declare_their_own_shape(void **state)
{
    (void)state;
    grey("d/a/1.pgm", 0);
    ty_image_plan plan = plain();
    ty_field f[1] = {picture(&plan)};
    ty_dataset *ds;
    ty_error err = {0};
    f[0].scale = 2;
    assert_int_equal(files_open("d", f, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_non_null(strstr(err.message, "has no shape, scale"));
    f[0] = picture(&plan);
    f[0].dtype = TY_U8, f[0].dtype_given = true;
    assert_int_equal(files_open("d", f, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_non_null(strstr(err.message, "the field's type is uint8"));
    plan = ty_image_plan_make();
    assert_ok(files_open("d", f, 1, (ty_data_source){0}, &ds, &err), &err);
    ty_dataset_close(ds);
    grey("e/1.pgm", 0);
    ty_field label[2] = {picture(&plan), ty_field_make("label")};
    assert_int_equal(files_open("e", label, 2, (ty_data_source){0}, &ds, &err), -1);
    assert_non_null(strstr(err.message, "lies in no folder"));
}

int main(void)
{
#define FILES(test) cmocka_unit_test_setup_teardown(test, files_setup, files_teardown)
    const struct CMUnitTest tests[] = {
        FILES(folders_are_classes),
        FILES(lists_say_labels_and_order),
        FILES(bad_pictures_are_refused_or_left_out),
        FILES(means_are_of_the_training_data),
        FILES(mixing_mixes_labels),
        FILES(pictures_declare_their_own_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
