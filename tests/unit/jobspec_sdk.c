/* The requests that SageMaker's Python SDK makes (tests/golden/job/make), from job files that say the same: equal field
 * by field. */
#include "base/file.h"
#include "base/json.h"
#include "estimator_spec/request.h"
#include "estimator_spec/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define FOLDER "tests/golden/job/sdk"

static void print_tree(const char *what, const ty_doc *d)
{
    ty_buf out;
    ty_buf_init(&out, 1 << 20);
    ty_json_add_lines(&out, d, 0);
    print_message("%s\n%s\n", what, out.data);
    ty_buf_fini(&out);
}

/* 2026-03-14 09:26:53.589 UTC, as in the script. */
static int load(const char *path, ty_arena *a, ty_jobspec *job, ty_error *err)
{
    static const ty_jobspec_world world = {.now_ms = 1773480413589};
    ty_buf text;
    ty_buf_init(&text, 1 << 20);
    assert_int_equal(ty_file_read(path, &text, err), 0);
    /* The SDK's session is in eu-west-1, unless the file says otherwise. */
    if (!strstr(text.data, "\nregion:"))
        ty_buf_adds(&text, "region: eu-west-1\n");
    int rc = ty_jobspec_parse(path, text.data, text.len, NULL, &world, a, job, err);
    ty_buf_fini(&text);
    return rc;
}

/* 1 if the two requests are the same. */
static int compare(const char *yaml, const char *json)
{
    ty_arena a;
    ty_jobspec *job;
    ty_doc body, *want;
    ty_error err = {0};
    ty_arena_init(&a);
    job = TY_NEW(&a, ty_jobspec);
    bool same = false;
    if (load(yaml, &a, job, &err) < 0 || ty_jobspec_request(job, &a, &body, &err) < 0 ||
        ty_json_read(&a, json, NULL, &want, &err) < 0) {
        print_message("%s: %s: %s\n%s\n", yaml, err.place, err.message, err.detail);
    } else {
        same = ty_tree_equal(&body, want);
        ty_doc difference = ty_tree_difference(&a, &body, want);
        if (!same)
            print_tree(yaml, &difference);
    }
    ty_arena_fini(&a);
    return same;
}

static void requests_are_those_of_the_sdk(void **state)
{
    (void)state;
    ty_arena a;
    ty_file_entry *entries;
    size_t n;
    int n_cases = 0, n_same = 0;
    ty_arena_init(&a);
    assert_int_equal(ty_file_list(FOLDER, &a, &entries, &n, NULL), 0);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(entries[i].name);
        if (len < 5 || strcmp(entries[i].name + len - 5, ".yaml") != 0)
            continue;
        const char *yaml = ty_arena_printf(&a, FOLDER "/%s", entries[i].name);
        n_cases++;
        n_same += compare(yaml, ty_arena_printf(&a, "%.*s.json", (int)strlen(yaml) - 5, yaml));
    }
    ty_arena_fini(&a);
    assert_true(n_cases >= 60);
    assert_int_equal(n_same, n_cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(requests_are_those_of_the_sdk)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
