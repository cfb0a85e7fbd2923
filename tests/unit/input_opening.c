/* input_opening.c - opening files of records with several threads finds what one finds: the same records, ranges,
 * places and first faults, in whole files and in broken ones, however small the pieces are. */
#include "input_opening.h"

#include "base/log.h"

/* ---- what was found ---- */

typedef struct opening_found {
    int rc;
    char said[8192], first_bad[256];
    int64_t n_samples, n_bad;
    uint64_t infos, bytes, fingerprint;
    char last_place[256];
} opening_found;

static void find(const struct opening_format *f, int threads, size_t span, bool skip, opening_found *out)
{
    ty_field fields[3];
    ty_dataset *ds;
    ty_error err = {0};
    for (int i = 0; i < f->n_fields; i++) {
        fields[i] = ty_field_make(f->fields[i].name);
        fields[i].max_length = f->fields[i].max_length;
        fields[i].dtype_given = f->fields[i].dtype_given;
        fields[i].dtype = f->fields[i].dtype;
        fields[i].missing_given = i > 0 && f->n_fields == 3;
    }
    *out = (opening_found){0};
    ty_data_source how = {
        .format = f->format, .n_threads = threads, .span_bytes = span, .skip_bad = skip, .max_bad = 3, .lenient = true};
    out->rc = files_open(NULL, fields, f->n_fields, how, &ds, &err);
    snprintf(out->said, sizeof out->said, "%s", out->rc < 0 ? files_error(&err) : "");
    if (out->rc < 0)
        return;
    out->n_samples = ds->n_samples;
    out->n_bad = ds->bad.n;
    snprintf(out->first_bad, sizeof out->first_bad, "%s", ds->bad.first);
    out->infos = hash_fields(ds);
    out->bytes = hash_samples(ds);
    out->fingerprint = ds->fingerprint;
    if (ds->n_samples > 0)
        ty_dataset_place(ds, 0, ds->n_samples - 1, out->last_place, sizeof out->last_place);
    ty_dataset_close(ds);
}

/* One thread, and several with pieces of these sizes. */
static void compare(const struct opening_format *f, bool skip, const char *what, opening_found *one)
{
    static const size_t spans[] = {37, 500, 4096, 0};
    find(f, 1, 0, skip, one);
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++) {
        opening_found many;
        find(f, 3, spans[i], skip, &many);
        if (memcmp(one, &many, sizeof many) == 0)
            continue;
        print_error(
            "%s, %s, spans of %zu:\n%s%lld samples, %lld bad %s\nwith one thread:\n%s%lld samples, %lld bad %s\n",
            f->format, what, spans[i], many.said, (long long)many.n_samples, (long long)many.n_bad, many.first_bad,
            one->said, (long long)one->n_samples, (long long)one->n_bad, one->first_bad);
        fail();
    }
}

static void threads_find_what_one_finds(void **state)
{
    (void)state;
    for (int i = 0; i < N_FORMATS; i++) {
        drawn = 7;
        ty_buf b = make(&formats[i]);
        opening_found one;
        compare(&formats[i], false, "whole files", &one);
        assert_string_equal(one.said, "");
        assert_int_equal(one.n_samples, 403);
        ty_buf_fini(&b);
        forget(&formats[i]);
    }
}

static void the_first_fault_is_the_same(void **state)
{
    (void)state;
    for (int i = 0; i < N_FORMATS; i++) {
        int refused = 0;
        drawn = 7;
        ty_buf whole = make(&formats[i]);
        for (int round = 0; round < 60; round++) {
            ty_buf b = new_buf();
            char name[64], what[64];
            put(&b, whole.data, whole.len);
            for (int k = 0; k <= round / 4 % 3; k++)
                damage(&b, (round + k) % 4);
            snprintf(name, sizeof name, "0-%s", formats[i].name);
            snprintf(what, sizeof what, "round %d", round);
            files_put(name, b.data, b.len);
            ty_buf_fini(&b);
            opening_found one;
            compare(&formats[i], false, what, &one);
            refused += one.rc < 0;
            compare(&formats[i], true, what, &one);
        }
        assert_true(refused > 20);
        ty_buf_fini(&whole);
        forget(&formats[i]);
    }
}

int main(void)
{
    ty_log_set_level(TY_LOG_ERROR);
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_find_what_one_finds),
                                       cmocka_unit_test(the_first_fault_is_the_same)};
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
