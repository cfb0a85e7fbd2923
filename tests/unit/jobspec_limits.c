/* Every key of a job file at its limits and beyond them, by the table that has them. That they are the service's is
 * judged by tests/golden/job/limits. */
#include "estimator_spec/fields.h"
#include "estimator_spec/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The section of a row with this value alone. */
static int read_one(ty_field_id id, ty_doc value, ty_arena *a, ty_error *err)
{
    ty_doc *map = TY_NEW(a, ty_doc);
    ty_field_value *values = TY_NEW_ARRAY(a, ty_field_value, TY_N_FIELDS);
    *err = (ty_error){0};
    *map = ty_tree_map();
    ty_tree_put_key(a, map, ty_fields[id].key, value);
    return ty_fields_read(ty_fields[id].section, ty_fields[id].section, map, values, a, err);
}

static void refuses(ty_field_id id, ty_doc value, const char *word, ty_arena *a)
{
    ty_error err;
    int rc = read_one(id, value, a, &err);
    if (rc == 0 || !strstr(err.message, word))
        print_message("%s: %s\n", ty_field_path(id, a), rc == 0 ? "is taken" : err.message);
    assert_int_equal(rc, -1);
    assert_non_null(strstr(err.message, word));
}

static void takes(ty_field_id id, ty_doc value, ty_arena *a)
{
    ty_error err;
    if (read_one(id, value, a, &err) < 0)
        print_message("%s: %s\n", ty_field_path(id, a), err.message);
    assert_int_equal(err.code, TY_E_NONE);
}

static ty_doc text_of(size_t n, ty_arena *a)
{
    char *text = ty_arena_alloc(a, n + 1);
    memset(text, 'x', n);
    text[n] = 0;
    return ty_tree_string(a, text);
}

static ty_doc list_of(size_t n, ty_arena *a)
{
    ty_doc list = ty_tree_list();
    for (size_t i = 0; i < n; i++)
        ty_tree_add(a, &list, ty_tree_string(a, "x"));
    return list;
}

static void try_text(ty_field_id id, ty_arena *a)
{
    const ty_field_row *f = &ty_fields[id];
    ty_error err = {0};
    ty_doc longest = text_of((size_t)f->max, a), shortest = text_of((size_t)f->min, a);
    assert_true(f->max > 0);
    refuses(id, text_of((size_t)f->max + 1, a), "characters", a);
    if (f->min > 0)
        refuses(id, text_of((size_t)f->min - 1, a), "characters", a);
    assert_int_equal(ty_form_check(NULL, longest.string, f->min, f->max, &longest, f->key, &err), 0);
    assert_int_equal(ty_form_check(NULL, shortest.string, f->min, f->max, &shortest, f->key, &err), 0);
    if (f->form)
        refuses(id, ty_tree_string(a, "\x01 no form has this \n"), "expected", a);
}

static void try_int(ty_field_id id, ty_arena *a)
{
    const ty_field_row *f = &ty_fields[id];
    refuses(id, ty_tree_string(a, "many"), "expected", a);
    if (f->min == 0 && f->max == 0)
        return;
    takes(id, ty_tree_int(a, (int64_t)f->min), a);
    takes(id, ty_tree_int(a, (int64_t)f->max), a);
    refuses(id, ty_tree_int(a, (int64_t)f->min - 1), "expected", a);
    refuses(id, ty_tree_int(a, (int64_t)f->max + 1), "expected", a);
}

static void try_list(ty_field_id id, ty_arena *a)
{
    const ty_field_row *f = &ty_fields[id];
    if (f->max == 0)
        return;
    takes(id, list_of((size_t)f->max, a), a);
    refuses(id, list_of((size_t)f->max + 1, a), "entries", a);
    if (f->min > 0)
        refuses(id, ty_tree_list(), "an entry", a);
}

static void every_key_has_limits(void **state)
{
    (void)state;
    ty_arena a;
    ty_arena_init(&a);
    for (int i = 0; i < TY_N_FIELDS; i++) {
        ty_field_id id = (ty_field_id)i;
        switch (ty_fields[id].type) {
        case TY_FIELD_TEXT:
        case TY_FIELD_WORD:
            try_text(id, &a);
            break;
        case TY_FIELD_INT:
            try_int(id, &a);
            break;
        case TY_FIELD_BOOL:
            refuses(id, ty_tree_string(&a, "perhaps"), "expected", &a);
            break;
        case TY_FIELD_CHOICE:
            refuses(id, ty_tree_string(&a, "perhaps"), "expected", &a);
            break;
        case TY_FIELD_NODE:
            try_list(id, &a);
            break;
        }
    }
    ty_arena_fini(&a);
}

/* A form that is not in forms.def would let everything be refused, or nothing. */
static void every_form_exists(void **state)
{
    (void)state;
    static const char *const fitting[] = {"a",
                                          "arn:aws:sagemaker:eu-west-1:111122223333:training-plan/x",
                                          "eu-west-1",
                                          "111122223333",
                                          "s3://bucket",
                                          "ml.g5.xlarge",
                                          "fs-01234567",
                                          "/x",
                                          "arn:aws:lambda:eu-west-1:111122223333:function:x",
                                          "2.11",
                                          "abc"};
    for (int id = 0; id < TY_N_FIELDS; id++) {
        const ty_field_row *f = &ty_fields[id];
        bool fits = f->type == TY_FIELD_CHOICE || !f->form;
        for (size_t i = 0; i < sizeof fitting / sizeof fitting[0]; i++)
            fits = fits || ty_form_fits(f->form, fitting[i]);
        if (!fits)
            print_message("%s.%s: form \"%s\"\n", f->section, f->key, f->form);
        assert_true(fits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_key_has_limits), cmocka_unit_test(every_form_exists)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
