/* input_map.c - transforms of fields, judged by Keras, scikit-learn and pandas (tests/golden/transforms). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "container/input/map/map.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CASES "tests/golden/transforms/cases.json"

static const char *const xyz[] = {"x", "y", "z"};
static const char *const abc[] = {"a", "b", "c"};
static const char *const crossed[] = {"left", "right"};
static const double edges[] = {-1, 0, 2.5};

typedef struct named {
    const char *name;
    ty_map_spec spec;
} named;

/* What a case of this name declares. */
static const named declared[] = {
    {"hash_wide", {.way = TY_MAP_HASH, .bins = INT64_C(1) << 62, .missing = TY_MISSING_TEXT, .missing_text = ""}},
    {"hash", {.way = TY_MAP_HASH, .bins = 1000, .missing = TY_MISSING_TEXT, .missing_text = ""}},
    {"hash_integers", {.way = TY_MAP_HASH, .bins = 1000}},
    {"cross", {.way = TY_MAP_CROSS, .bins = 97, .cross = crossed, .n_cross = 2}},
    {"vocabulary", {.way = TY_MAP_VOCABULARY, .n_oov = 1}},
    {"vocabulary_3_oov", {.way = TY_MAP_VOCABULARY, .n_oov = 3}},
    {"vocabulary_3_words", {.way = TY_MAP_VOCABULARY, .n_oov = 1, .max_size = 3}},
    {"vocabulary_one_hot", {.way = TY_MAP_VOCABULARY, .word = xyz, .n_words = 3, .one_hot = -1}},
    {"classes", {.way = TY_MAP_CLASSES}},
    {"classes_numbers", {.way = TY_MAP_CLASSES}},
    {"classes_one_hot", {.way = TY_MAP_CLASSES, .one_hot = -1}},
    {"standard", {.normalize = TY_NORMALIZE_STANDARD}},
    {"minmax", {.normalize = TY_NORMALIZE_MINMAX}},
    {"missing_mean", {.missing = TY_MISSING_MEAN}},
    {"missing_median", {.missing = TY_MISSING_MEDIAN}},
    {"missing_most_frequent", {.missing = TY_MISSING_MOST_FREQUENT}},
    {"missing_mean_standard", {.missing = TY_MISSING_MEAN, .normalize = TY_NORMALIZE_STANDARD}},
    {"missing_median_standard", {.missing = TY_MISSING_MEDIAN, .normalize = TY_NORMALIZE_STANDARD}},
    {"missing_most_frequent_standard", {.missing = TY_MISSING_MOST_FREQUENT, .normalize = TY_NORMALIZE_STANDARD}},
    {"missing_text", {.way = TY_MAP_CLASSES, .missing = TY_MISSING_MOST_FREQUENT}},
    {"buckets", {.way = TY_MAP_BUCKETS, .boundary = edges, .n_boundaries = 3}},
    {"quantiles", {.way = TY_MAP_BUCKETS, .n_quantiles = 10}},
    {"clip_log1p", {.is_clipped = true, .low = 1, .high = 600, .log1p = true}},
    {"log1p_standard", {.log1p = true, .normalize = TY_NORMALIZE_STANDARD}},
    {"pad_right", {.max_length = 3, .pad = 7}},
    {"pad_left", {.max_length = 3, .pad = 7, .left = true}},
    {"multi_hot", {.one_hot = 6, .one_row = true}},
    {"split",
     {.way = TY_MAP_VOCABULARY, .word = abc, .n_words = 3, .n_oov = 1, .split = '|', .max_length = 3, .pad = 9}},
    {"split_left",
     {.way = TY_MAP_VOCABULARY,
      .word = abc,
      .n_words = 3,
      .n_oov = 1,
      .split = '|',
      .max_length = 3,
      .pad = 9,
      .left = true}},
};

static ty_map_spec spec_of(const char *name)
{
    for (size_t i = 0; i < sizeof declared / sizeof declared[0]; i++)
        if (strcmp(declared[i].name, name) == 0) {
            ty_map_spec spec = declared[i].spec;
            spec.field = name;
            spec.scale = 1;
            return spec;
        }
    fail_msg("no declaration for case %s", name);
    return (ty_map_spec){0};
}

typedef struct sample {
    double number[8];
    int64_t integer[8];
    ty_text text[8];
    ty_cells cells;
} sample;

static void take_sample(const ty_doc *row, sample *s)
{
    s->cells = (ty_cells){.kind = TY_CELLS_INTEGERS, .n = row->n_items, .u.integer = s->integer};
    for (uint32_t i = 0; i < row->n_items; i++) {
        const ty_doc *v = &row->items[i];
        if (v->kind == TY_DOC_STRING || (v->kind == TY_DOC_NULL && row->n_items == 1 && i == 0))
            s->cells.kind = TY_CELLS_TEXTS;
        else if (v->kind != TY_DOC_INT && s->cells.kind == TY_CELLS_INTEGERS)
            s->cells.kind = TY_CELLS_NUMBERS;
        s->text[i] = v->kind == TY_DOC_STRING ? (ty_text){v->string, strlen(v->string)} : (ty_text){NULL, 0};
        s->number[i] = v->kind == TY_DOC_INT ? (double)v->integer : v->kind == TY_DOC_FLOAT ? v->number : NAN;
        s->integer[i] = v->kind == TY_DOC_INT ? v->integer : 0;
    }
    if (s->cells.kind == TY_CELLS_TEXTS)
        s->cells.u.text = s->text;
    if (s->cells.kind == TY_CELLS_NUMBERS)
        s->cells.u.number = s->number;
}

static void check_row(const ty_map *m, const sample *s, const ty_doc *wanted, const char *name, uint32_t number)
{
    ty_error err = {0};
    ty_type type;
    union {
        int64_t id[64];
        double real[64];
    } row;
    bool ids = ty_map_n_ids(m) > 0;
    if (ty_map_type(m, s->cells.n, true, ids ? TY_I64 : TY_F64, -1, NULL, &type, &err) < 0)
        fail_msg("%s: %s", name, err.message);
    assert_int_equal(ty_type_elems(&type), wanted->n_items);
    int rc = ty_map_declared(m)->way == TY_MAP_CROSS ? ty_map_cross(m, s->integer, &type, &row, &err)
                                                     : ty_map_put(m, &s->cells, &type, &row, &err);
    if (rc < 0)
        fail_msg("%s: %s", name, err.message);
    for (uint32_t i = 0; i < wanted->n_items; i++) {
        double want = 0;
        ty_doc_float(&wanted->items[i], &want, NULL);
        int64_t whole = wanted->items[i].kind == TY_DOC_INT ? wanted->items[i].integer : (int64_t)want;
        if (ids && row.id[i] != whole)
            fail_msg("%s: sample %u: %lld, expected %lld", name, number, (long long)row.id[i], (long long)whole);
        if (!ids && !(fabs(row.real[i] - want) <= 1e-6 * (1 + fabs(want))))
            fail_msg("%s: sample %u: %.17g, expected %.17g", name, number, row.real[i], want);
    }
}

/* As ranks with files of their own do it: each sees a part, and all join what the others have seen. */
static void learn(ty_map *m, ty_map *other, const ty_doc *fit, bool joined)
{
    ty_error err = {0};
    sample s;
    for (uint32_t i = 0; i < fit->n_items; i++) {
        take_sample(&fit->items[i], &s);
        if (ty_map_see(joined && i % 3 == 0 ? other : m, &s.cells, &err) < 0)
            fail_msg("%s", err.message);
    }
    ty_buf seen;
    ty_buf_init(&seen, 1 << 24);
    if (joined) {
        assert_int_equal(ty_map_write_seen(other, &seen), 0);
        assert_int_equal(ty_map_join(m, seen.data, seen.len, &err), 0);
    }
    ty_buf_fini(&seen);
    ty_map_forget(other); /* it is never settled */
    if (ty_map_settle(m, &err) < 0)
        fail_msg("%s", err.message);
}

/* A map that was kept in a file. */
static ty_map *kept(const ty_map *m, ty_arena *a)
{
    ty_error err = {0};
    ty_buf text;
    ty_json_writer w;
    ty_doc *doc;
    ty_map *again;
    ty_buf_init(&text, 1 << 20);
    ty_json_writer_init(&w, &text, TY_JSON_SPACED);
    ty_map_write(m, &w, NULL);
    assert_int_equal(ty_json_parse(a, "kept", text.data, text.len, NULL, &doc, &err), 0);
    assert_int_equal(ty_map_new(ty_map_declared(m), a, &again, &err), 0);
    if (ty_map_read(again, doc, &err) < 0)
        fail_msg("%s", err.message);
    assert_true(ty_map_fingerprint(again) == ty_map_fingerprint(m));
    ty_buf_fini(&text);
    return again;
}

static void check_case(const ty_doc *c, bool joined)
{
    ty_error err = {0};
    ty_arena a;
    ty_map *m, *other;
    sample s;
    const char *name = ty_doc_find(c, "name")->string;
    const ty_doc *cells = ty_doc_find(c, "cells"), *rows = ty_doc_find(c, "rows"), *fit = ty_doc_find(c, "fit");
    ty_map_spec spec = spec_of(name);
    ty_arena_init(&a);
    if (ty_map_new(&spec, &a, &m, &err) < 0 || ty_map_new(&spec, &a, &other, &err) < 0)
        fail_msg("%s: %s", name, err.message);
    assert_int_equal(ty_map_is_settled(m), fit == NULL);
    if (fit)
        learn(m, other, fit, joined);
    ty_map *again = kept(m, &a);
    for (uint32_t i = 0; i < cells->n_items; i++) {
        take_sample(&cells->items[i], &s);
        check_row(m, &s, &rows->items[i], name, i);
        check_row(again, &s, &rows->items[i], name, i);
    }
    ty_arena_fini(&a);
}

static void rows_are_as_others_make_them(void **state)
{
    (void)state;
    ty_arena a;
    ty_doc *cases;
    ty_error err = {0};
    ty_arena_init(&a);
    if (ty_json_read(&a, CASES, NULL, &cases, &err) < 0)
        fail_msg("%s", err.message);
    assert_true(cases->n_items >= 25);
    for (uint32_t i = 0; i < cases->n_items; i++) {
        check_case(&cases->items[i], false);
        check_case(&cases->items[i], true);
    }
    ty_arena_fini(&a);
}

static void refuses(ty_map_spec spec, const char *text)
{
    ty_arena a;
    ty_map *m;
    ty_error err = {0};
    spec.field = "f";
    ty_arena_init(&a);
    assert_int_equal(ty_map_new(&spec, &a, &m, &err), -1);
    if (!strstr(err.message, text))
        fail_msg("\"%s\" says nothing of \"%s\"", err.message, text);
    ty_arena_fini(&a);
}

static void declarations_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const double falling[] = {1, 0};
    static const char *const twice[] = {"a", "b", "a"};
    refuses((ty_map_spec){.scale = 0}, "scale");
    refuses((ty_map_spec){.scale = 1, .way = TY_MAP_HASH, .bins = 0}, "hash: 0");
    refuses((ty_map_spec){.scale = 2, .way = TY_MAP_HASH, .bins = 9}, "for numbers");
    refuses((ty_map_spec){.scale = 1, .way = TY_MAP_VOCABULARY, .normalize = TY_NORMALIZE_STANDARD}, "normalized");
    refuses((ty_map_spec){.scale = 1, .way = TY_MAP_BUCKETS}, "boundary");
    refuses((ty_map_spec){.scale = 1, .way = TY_MAP_BUCKETS, .boundary = falling, .n_boundaries = 2}, "rise");
    refuses((ty_map_spec){.scale = 1, .way = TY_MAP_CLASSES, .word = twice, .n_words = 3}, "twice");
    refuses((ty_map_spec){.scale = 1, .missing = TY_MISSING_TEXT, .missing_text = "x"}, "expected a number");
    refuses((ty_map_spec){.scale = 1, .way = TY_MAP_HASH, .bins = 9, .missing = TY_MISSING_MEAN}, "expected a text");
    refuses((ty_map_spec){.scale = 1, .one_hot = -1}, "how many ids");
    refuses((ty_map_spec){.scale = 1, .way = TY_MAP_HASH, .bins = 9, .split = '|'}, "max_length");
    refuses((ty_map_spec){.scale = 1, .is_clipped = true, .low = 2, .high = 1}, "nothing");
    refuses((ty_map_spec){.scale = 1, .way = TY_MAP_CROSS, .bins = 9, .cross = twice, .n_cross = 1}, "2 to 64");
}

static void wrong_put(const ty_map_spec *spec, const ty_cells *cells, const char *text)
{
    ty_arena a;
    ty_map *m;
    ty_error err = {0};
    ty_type type;
    char row[256];
    ty_map_spec s = *spec;
    s.field = "f";
    s.scale = 1;
    ty_arena_init(&a);
    assert_int_equal(ty_map_new(&s, &a, &m, &err), 0);
    assert_int_equal(ty_map_type(m, 1, false, TY_F32, -1, NULL, &type, &err), 0);
    assert_int_equal(ty_map_put(m, cells, &type, row, &err), -1);
    assert_int_equal(err.code, TY_E_DATA_VALUE);
    if (!strstr(err.message, text))
        fail_msg("\"%s\" says nothing of \"%s\"", err.message, text);
    ty_arena_fini(&a);
}

static void values_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    double number[2] = {1.5, NAN};
    int64_t whole = 9;
    ty_text text[1] = {{"q", 1}};
    ty_cells one = {.kind = TY_CELLS_NUMBERS, .n = 1, .u.number = number};
    ty_cells none = {.kind = TY_CELLS_NUMBERS, .n = 1, .u.number = number + 1};
    ty_cells two = {.kind = TY_CELLS_NUMBERS, .n = 2, .u.number = number};
    ty_cells nine = {.kind = TY_CELLS_INTEGERS, .n = 1, .u.integer = &whole};
    ty_cells word = {.kind = TY_CELLS_TEXTS, .n = 1, .u.text = text};
    wrong_put(&(ty_map_spec){.log1p = true}, &word, "expected a number, found \"q\"");
    wrong_put(&(ty_map_spec){.log1p = true}, &none, "missing");
    wrong_put(&(ty_map_spec){.log1p = true}, &two, "expected 1 values, found 2");
    wrong_put(&(ty_map_spec){.one_hot = 9}, &nine, "expected 0 to 8");
    wrong_put(&(ty_map_spec){.one_hot = 9}, &one, "found 1.5");
    wrong_put(&(ty_map_spec){.way = TY_MAP_HASH, .bins = 3}, &one, "whole number, found 1.5");
    wrong_put(&(ty_map_spec){.way = TY_MAP_CLASSES, .word = abc, .n_words = 3}, &word,
              "\"q\" is none of its 3 classes");
    wrong_put(&(ty_map_spec){.way = TY_MAP_VOCABULARY, .word = abc, .n_words = 3}, &word, "none of its 3 words");
}

/* More values than are kept: a sample of them gives the quantiles, the same whoever saw which part. */
static void quantiles_of_many_values_are_near(void **state)
{
    (void)state;
    ty_arena a;
    ty_map *m;
    ty_error err = {0};
    double v[2048], row[2048];
    ty_type type;
    ty_map_spec spec = {.field = "f", .scale = 1, .missing = TY_MISSING_MEDIAN};
    ty_cells cells = {.kind = TY_CELLS_NUMBERS, .n = 2048, .u.number = v};
    ty_arena_init(&a);
    assert_int_equal(ty_map_new(&spec, &a, &m, &err), 0);
    for (int k = 0; k < 9000; k++) {
        for (int i = 0; i < 2048; i++)
            v[i] = (k * 7919) % 9000;
        assert_int_equal(ty_map_see(m, &cells, &err), 0);
    }
    assert_int_equal(ty_map_settle(m, &err), 0);
    for (int i = 0; i < 2048; i++)
        v[i] = NAN;
    assert_int_equal(ty_map_type(m, 2048, true, TY_F64, -1, NULL, &type, &err), 0);
    assert_int_equal(ty_map_put(m, &cells, &type, row, &err), 0);
    for (int i = 0; i < 2048; i++)
        assert_true(fabs(row[i] - 4500) < 600);
    ty_arena_fini(&a);
}

/* What squares or differences make of such values is no number. */
static void values_beyond_all_measure_are_refused(void **state)
{
    (void)state;
    static const struct {
        ty_map_spec spec;
        double v[2];
        const char *says;
    } cases[] = {
        {{.normalize = TY_NORMALIZE_STANDARD},
         {1e200, -1e200},
         "values from -1e+200 to 1e+200 have no mean and deviation"},
        {{.normalize = TY_NORMALIZE_MINMAX}, {1e308, -1e308}, "have no range"},
        {{.missing = TY_MISSING_MEAN}, {1e308, 1.5e308}, "have no mean that"},
        {{.normalize = TY_NORMALIZE_STANDARD}, {1e100, -1e100}, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ty_arena a;
        ty_map *m;
        ty_error err = {0};
        ty_map_spec spec = cases[i].spec;
        double v[1];
        ty_cells cells = {.kind = TY_CELLS_NUMBERS, .n = 1, .u.number = v};
        spec.field = "f";
        spec.scale = 1;
        ty_arena_init(&a);
        assert_int_equal(ty_map_new(&spec, &a, &m, &err), 0);
        for (int k = 0; k < 2; k++) {
            v[0] = cases[i].v[k];
            assert_int_equal(ty_map_see(m, &cells, &err), 0);
        }
        assert_int_equal(ty_map_settle(m, &err), cases[i].says ? -1 : 0);
        assert_true(!cases[i].says || strstr(err.message, cases[i].says));
        ty_arena_fini(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_beyond_all_measure_are_refused),
        cmocka_unit_test(rows_are_as_others_make_them),
        cmocka_unit_test(declarations_that_make_no_sense_are_refused),
        cmocka_unit_test(values_that_do_not_fit_are_refused),
        cmocka_unit_test(quantiles_of_many_values_are_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
