/* Requests as job files: those of SageMaker's Python SDK (tests/golden/job/sdk) come back the same, also as the service
 * describes such a job; the text of some (tests/golden/job/from), and what is said about what is none. */
#include "base/file.h"
#include "base/json.h"
#include "estimator_spec/from_request.h"
#include "estimator_spec/request.h"
#include "estimator_spec/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SDK  "tests/golden/job/sdk"
#define FROM "tests/golden/job/from"

static const ty_jobspec_world world = {.now_ms = 1773480413589};

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n > k && strcmp(text + n - k, end) == 0;
}

static const char *read_text(const char *path, ty_arena *a)
{
    ty_buf text;
    ty_buf_init(&text, 1 << 20);
    const char *out = ty_file_read(path, &text, NULL) == 0 ? ty_arena_strdup(a, text.data) : NULL;
    ty_buf_fini(&text);
    return out;
}

/* A job file of a text, or NULL with the error. */
static const char *convert(const char *name, const char *text, ty_arena *a, ty_error *err)
{
    ty_buf out;
    ty_buf_init(&out, TY_JOBSPEC_MAX_BYTES);
    int rc = ty_jobspec_from_request(name, text, strlen(text), &world, a, &out, err);
    const char *yaml = rc == 0 ? ty_arena_strdup(a, out.data) : NULL;
    ty_buf_fini(&out);
    return yaml;
}

/* The request that a job file comes to, and how many members its section `request` has. */
static ty_doc request_of(const char *yaml, ty_arena *a, size_t *n_patched)
{
    ty_error err = {0};
    ty_doc body = {0};
    ty_jobspec *job = TY_NEW(a, ty_jobspec);
    if (ty_jobspec_parse("job.yaml", yaml, strlen(yaml), NULL, &world, a, job, &err) < 0 ||
        ty_jobspec_request(job, a, &body, &err) < 0)
        print_message("%s: %s\n%s\n", err.place, err.message, yaml);
    *n_patched = ty_doc_len(job->value[TY_FIELD_REQUEST].node);
    return body;
}

static bool comes_back(const char *path, bool described, ty_arena *a, size_t *n_patched)
{
    ty_error err = {0};
    ty_doc *want;
    const char *text = read_text(path, a), *given = text;
    assert_int_equal(ty_json_parse(a, path, text, strlen(text), NULL, &want, &err), 0);
    /* As the service answers: the request, its own members, and defaults. */
    if (described)
        given = ty_arena_printf(
            a,
            "{\"TrainingJobArn\": \"arn:aws:sagemaker:eu-west-1:111122223333:training-job/case-1\", "
            "\"TrainingJobStatus\": \"Completed\", \"SecondaryStatus\": \"Completed\", "
            "\"CreationTime\": 1773480413.589, \"ModelArtifacts\": {\"S3ModelArtifacts\": \"s3://x/y\"}, "
            "\"SecondaryStatusTransitions\": [{\"Status\": \"Starting\"}], \"FailureReason\": null, "
            "\"ProfilingStatus\": \"Disabled\"%s%s, %s",
            strstr(text, "EnableManagedSpotTraining") ? "" : ", \"EnableManagedSpotTraining\": false",
            strstr(text, "EnableNetworkIsolation") ? "" : ", \"EnableNetworkIsolation\": false", strchr(text, '{') + 1);
    const char *yaml = convert(path, given, a, &err);
    if (!yaml) {
        print_message("%s: %s: %s\n%s\n", path, err.place, err.message, err.detail);
        return false;
    }
    ty_doc body = request_of(yaml, a, n_patched);
    bool same = body.kind == TY_DOC_MAP && ty_tree_equal(&body, want);
    bool is_named = !described || strstr(yaml, "Left out, since the service adds them: TrainingJobArn");
    if (!same || !is_named)
        print_message("%s\n%s\n", path, yaml);
    return same && is_named;
}

static void requests_of_the_sdk_come_back(void **state)
{
    (void)state;
    ty_arena a;
    ty_file_entry *entries;
    size_t n, n_patched;
    int n_cases = 0, n_same = 0, n_plain = 0;
    ty_arena_init(&a);
    assert_int_equal(ty_file_list(SDK, &a, &entries, &n, NULL), 0);
    for (size_t i = 0; i < n; i++) {
        if (!ends_with(entries[i].name, ".json"))
            continue;
        const char *path = ty_arena_printf(&a, SDK "/%s", entries[i].name);
        for (int described = 0; described < 2; described++) {
            bool same = comes_back(path, described, &a, &n_patched);
            n_cases++;
            n_same += same;
            n_plain += same && n_patched == 0;
            if (n_patched > 0)
                print_message("%s: %zu members under `request`\n", path, n_patched);
        }
    }
    ty_arena_fini(&a);
    assert_int_equal(n_cases, 2 * 67);
    assert_int_equal(n_same, n_cases);
    assert_int_equal(n_plain, n_cases); /* whatever the SDK says there is a key for */
}

/* NAME.json beside NAME.yaml, the job file, or NAME.txt, what is said. With TY_GOLDEN set they are written. */
static void texts_are_as_they_were(void **state)
{
    (void)state;
    ty_arena a;
    ty_file_entry *entries;
    size_t n;
    int n_cases = 0, n_same = 0;
    ty_arena_init(&a);
    assert_int_equal(ty_file_list(FROM, &a, &entries, &n, NULL), 0);
    for (size_t i = 0; i < n; i++) {
        ty_error err = {0};
        char message[4096];
        if (!ends_with(entries[i].name, ".json"))
            continue;
        const char *text = read_text(ty_arena_printf(&a, FROM "/%s", entries[i].name), &a);
        const char *found = convert(entries[i].name, text, &a, &err);
        const char *path = ty_arena_printf(&a, FROM "/%.*s.%s", (int)strlen(entries[i].name) - 5, entries[i].name,
                                           found ? "yaml" : "txt");
        if (!found) {
            ty_error_format(&err, message, sizeof message - 1);
            found = message;
        }
        if (getenv("TY_GOLDEN"))
            assert_int_equal(ty_file_write(path, found, strlen(found), 0644, NULL), 0);
        const char *want = read_text(path, &a);
        bool same = want && strcmp(want, found) == 0;
        if (!same)
            print_message("%s\n%s\n", path, found);
        n_cases++;
        n_same += same;
    }
    ty_arena_fini(&a);
    assert_true(n_cases >= 12);
    assert_int_equal(n_same, n_cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(requests_of_the_sdk_come_back),
                                       cmocka_unit_test(texts_are_as_they_were)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
