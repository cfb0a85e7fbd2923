/* input_subset.c - a data set that is divided in two: every sample once, the same ones by the same seed, read and named
 * as they are in the whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/input/subset.h"
#include "input_files.h"

enum { SAMPLES = 50 };

/* Line i holds i and 2 i; a label of 99 stands in line 20. */
static ty_dataset *open_lines(void)
{
    char text[SAMPLES * 16];
    size_t n = 0;
    for (int i = 0; i < SAMPLES; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%d,%d\n", i, i == 20 ? 99 : 2 * i % 10);
    files_puts("a.csv", text);
    ty_field fields[2] = {ty_field_make("x"), ty_field_make("label")};
    fields[0].columns = "0";
    fields[1].columns = "1";
    fields[1].dtype = TY_I64;
    fields[1].dtype_given = true;
    ty_dataset *ds = NULL;
    ty_error err = {0};
    if (files_open("a.csv", fields, 2, (ty_data_source){0}, &ds, &err) < 0)
        fail_msg("%s", err.message);
    return ds;
}

static void take(const ty_dataset *ds, int seen[SAMPLES])
{
    float before = -1;
    for (int64_t i = 0; i < ds->n_samples; i++) {
        float x;
        int64_t label;
        char place[TY_ERROR_PLACE_BYTES], expected[32];
        void *const out[] = {&x, &label};
        const ty_pick pick = {&i, 1, 0, 0, false};
        assert_int_equal(ty_dataset_read(ds, 0, &i, 1, &x, NULL), 0);
        seen[(int)x]++;
        assert_true(x > before); /* in the order that they had */
        before = x;
        assert_int_equal(ty_dataset_read_all(ds, &pick, out, NULL), 0);
        assert_int_equal(label, (int)x == 20 ? 99 : 2 * (int)x % 10);
        snprintf(expected, sizeof expected, "a.csv:%d", (int)x + 1);
        assert_non_null(strstr(ty_dataset_place(ds, 0, i, place, sizeof place), expected));
    }
}

static void every_sample_is_in_one_part(void **state)
{
    (void)state;
    static const struct {
        double share;
        int64_t n;
    } rows[] = {{0.1, 5}, {0.5, 25}, {0.9, 45}, {0.001, 1}, {0.99, 49}, {0.13, 7}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_dataset *rest, *split;
        ty_error err = {0};
        int in_rest[SAMPLES] = {0}, in_split[SAMPLES] = {0};
        assert_int_equal(ty_dataset_split(open_lines(), rows[i].share, 3, &rest, &split, &err), 0);
        assert_int_equal(split->n_samples, rows[i].n);
        assert_int_equal(rest->n_samples, SAMPLES - rows[i].n);
        take(rest, in_rest);
        take(split, in_split);
        for (int k = 0; k < SAMPLES; k++)
            assert_int_equal(in_rest[k] + in_split[k], 1);
        ty_dataset_close(split);
        ty_dataset_close(rest);
    }
}

static void the_seed_decides(void **state)
{
    (void)state;
    int seen[3][SAMPLES] = {{0}};
    for (int i = 0; i < 3; i++) {
        ty_dataset *rest, *split;
        assert_int_equal(ty_dataset_split(open_lines(), 0.3, i == 2 ? 8 : 7, &rest, &split, NULL), 0);
        take(split, seen[i]);
        ty_dataset_close(split);
        ty_dataset_close(rest);
    }
    assert_memory_equal(seen[0], seen[1], sizeof seen[0]);
    assert_memory_not_equal(seen[0], seen[2], sizeof seen[0]);
}

/* What is wrong with a sample is told by the part that has it. */
static void values_out_of_range_are_found_where_they_are(void **state)
{
    (void)state;
    ty_dataset *rest, *split;
    ty_error in_rest = {0}, in_split = {0};
    assert_int_equal(ty_dataset_split(open_lines(), 0.5, 1, &rest, &split, NULL), 0);
    int label = ty_dataset_find(rest, "label");
    int a = ty_dataset_check_range(rest, label, 0, 9, "label", &in_rest);
    int b = ty_dataset_check_range(split, label, 0, 9, "label", &in_split);
    assert_true(a < 0 || b < 0);
    assert_non_null(strstr(a < 0 ? in_rest.place : in_split.place, "a.csv:21"));
    ty_dataset_close(split);
    ty_dataset_close(rest);
}

static void one_sample_cannot_be_divided(void **state)
{
    (void)state;
    ty_dataset *ds = open_lines(), *rest, *split;
    ty_error err = {0};
    int64_t n = ds->n_samples;
    ds->n_samples = 1;
    assert_int_equal(ty_dataset_split(ds, 0.5, 1, &rest, &split, &err), -1);
    assert_int_equal(err.code, TY_E_DATA);
    ds->n_samples = n;
    ty_dataset_close(ds);
}

#define FILES_TEST(name) cmocka_unit_test_setup_teardown(name, files_setup, files_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILES_TEST(every_sample_is_in_one_part),
        FILES_TEST(the_seed_decides),
        FILES_TEST(values_out_of_range_are_found_where_they_are),
        FILES_TEST(one_sample_cannot_be_divided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
