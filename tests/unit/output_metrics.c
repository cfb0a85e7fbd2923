/* Metric lines, metrics.jsonl, metric definitions. */
#include "output_scratch.h"

#include "base/json.h"
#include "container/output/metrics.h"

#include <math.h>
#include <regex.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static const ty_metric train_metrics[] = {
    {"loss", 0.23417}, {"lr", 0.0009}, {"samples_per_s", 18211.4}, {"eta_s", 312}};
static const ty_metrics_row train_row = {
    .ts_s = 1767600672.345, .step = 1200, .epoch = 3, .metrics = train_metrics, .n_metrics = 4};
static const ty_metric val_metrics[] = {{"loss", 0.2711}, {"accuracy", 0.9182}};
static const ty_metrics_row val_row = {
    .ts_s = 1, .step = 1200, .epoch = 3, .split = TY_SPLIT_VALIDATION, .metrics = val_metrics, .n_metrics = 2};
static const ty_metric odd_metrics[] = {{"loss", NAN}, {"a", INFINITY}, {"b", -INFINITY}, {"c", 1}};
static const ty_metrics_row odd_row = {.ts_s = NAN, .step = 1, .metrics = odd_metrics, .n_metrics = 4};
static const ty_metrics_header header = {.ts_s = 2.5,
                                         .version = "1.0",
                                         .config_digest = "sha256:aa",
                                         .model_digest = "b\"",
                                         .world_size = 1,
                                         .seed = UINT64_MAX,
                                         .resumed_step = 80};

#define assert_text(buf, expected) assert_string_equal((buf).data, expected)

static void test_lines(void **state)
{
    (void)state;
    ty_error err;
    ty_buf out;
    ty_buf_init(&out, 1 << 16);
    assert_ok(ty_metrics_line(&out, &train_row, &err));
    assert_text(out, "step=1200 epoch=3 loss=0.23417 lr=0.0009 samples_per_s=18211.4 eta_s=312\n");
    ty_buf_clear(&out);
    assert_ok(ty_metrics_line(&out, &val_row, &err));
    assert_text(out, "val step=1200 epoch=3 val_loss=0.2711 val_accuracy=0.9182\n");
    ty_buf_clear(&out);
    assert_ok(ty_metrics_line(&out, &odd_row, &err));
    assert_text(out, "step=1 epoch=0 loss=nan a=inf b=-inf c=1\n");
    ty_buf_fini(&out);
}

static void test_json(void **state)
{
    (void)state;
    ty_error err;
    ty_buf out;
    ty_buf_init(&out, 1 << 16);
    assert_ok(ty_metrics_json(&out, &train_row, &err));
    assert_text(out,
                "{\"ts\":1767600672.345,\"step\":1200,\"epoch\":3,\"split\":\"train\",\"loss\":0.23417,\"lr\":0.0009,"
                "\"samples_per_s\":18211.4,\"eta_s\":312}\n");
    ty_buf_clear(&out);
    assert_ok(ty_metrics_json(&out, &odd_row, &err));
    assert_text(out,
                "{\"ts\":0.000,\"step\":1,\"epoch\":0,\"split\":\"train\",\"loss\":null,\"a\":null,\"b\":null,\"c\":1,"
                "\"nonfinite\":{\"loss\":\"nan\",\"a\":\"inf\",\"b\":\"-inf\"}}\n");
    ty_buf_clear(&out);
    assert_ok(ty_metrics_json_header(&out, &header, &err));
    assert_text(out, "{\"ts\":2.500,\"run\":{\"version\":\"1.0\",\"config_digest\":\"sha256:aa\",\"world_size\":1,"
                     "\"seed\":\"18446744073709551615\",\"model_digest\":\"b\\\"\",\"resumed_step\":80}}\n");
    ty_buf_fini(&out);
}

static void test_float32_round_trips(void **state)
{
    (void)state;
    uint32_t bits = 1;
    for (int i = 0; i < 200000; i++) {
        bits = bits * 1664525u + 1013904223u;
        float v, back;
        memcpy(&v, &bits, 4);
        if (!isfinite(v))
            continue;
        char text[32];
        back = strtof(ty_metric_number(v, text), NULL);
        assert_memory_equal(&v, &back, 4);
    }
}

static void test_names(void **state)
{
    (void)state;
    ty_error err;
    static const char *const bad[] = {"", "Loss", "1x", "a b", "a=b", "a\n", "step", "epoch", "\xc3\xa9", "a-b"};
    static const char *const good[] = {"loss", "top5_accuracy", "x"};
    ty_buf out;
    ty_buf_init(&out, 1 << 16);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const ty_metric m = {bad[i], 1};
        const ty_metrics_row row = {.metrics = &m, .n_metrics = 1};
        assert_error(ty_metrics_line(&out, &row, &err), TY_E_CONFIG, "expected a lower-case letter");
        assert_error(ty_metrics_json(&out, &row, &err), TY_E_CONFIG, "expected a lower-case letter");
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(ty_metric_name_ok(good[i]));
    ty_metric many[200];
    char names[200][64];
    for (int i = 0; i < 200; i++) {
        snprintf(names[i], sizeof names[i], "metric_with_quite_a_long_name_%d", i);
        many[i] = (ty_metric){names[i], 1.0 / 3};
    }
    const ty_metrics_row row = {.metrics = many, .n_metrics = 200};
    assert_error(ty_metrics_line(&out, &row, &err), TY_E_LIMIT, "at most 4096 bytes");
    ty_buf_fini(&out);
}

/* The regex captures the metric it is for, from the lines as they are printed, and nothing from others. */
static void capture(const ty_metric_definition *d, const char *line, const char *expected)
{
    ty_error err;
    ty_buf text;
    regex_t re;
    regmatch_t m[2];
    ty_buf_init(&text, TY_METRIC_REGEX_BYTES);
    assert_ok(ty_metrics_regex(&text, d, &err));
    assert_int_equal(regcomp(&re, text.data, REG_EXTENDED), 0);
    int found = regexec(&re, line, 2, m, 0) == 0;
    assert_int_equal(found, expected != NULL);
    if (expected) {
        assert_int_equal(m[1].rm_eo - m[1].rm_so, strlen(expected));
        assert_memory_equal(line + m[1].rm_so, expected, strlen(expected));
    }
    regfree(&re);
    ty_buf_fini(&text);
}

static void test_regex(void **state)
{
    (void)state;
    ty_error err;
    ty_buf train, val, odd;
    ty_buf_init(&train, 4096);
    ty_buf_init(&val, 4096);
    ty_buf_init(&odd, 4096);
    assert_ok(ty_metrics_line(&train, &train_row, &err));
    assert_ok(ty_metrics_line(&val, &val_row, &err));
    assert_ok(ty_metrics_line(&odd, &odd_row, &err));
    const ty_metric_definition loss = {TY_SPLIT_TRAIN, "loss"}, val_loss = {TY_SPLIT_VALIDATION, "loss"};
    capture(&loss, train.data, "0.23417");
    capture(&loss, val.data, NULL);
    capture(&loss, odd.data, NULL);
    capture(&val_loss, val.data, "0.2711");
    capture(&val_loss, train.data, NULL);
    const ty_metric_definition list[] = {loss, val_loss};
    ty_buf_clear(&train);
    assert_ok(ty_metrics_definitions(&train, list, 2, &err));
    assert_text(train, "[{\"Name\":\"train:loss\",\"Regex\":\" loss=([-+0-9.eE]+)\"},"
                       "{\"Name\":\"validation:loss\",\"Regex\":\" val_loss=([-+0-9.eE]+)\"}]\n");
    ty_metric_definition many[41];
    for (int i = 0; i < 41; i++)
        many[i] = loss;
    assert_error(ty_metrics_definitions(&train, many, 41, &err), TY_E_LIMIT, "at most 40, found 41");
    ty_buf_fini(&train);
    ty_buf_fini(&val);
    ty_buf_fini(&odd);
}

static size_t count_lines(const char *path)
{
    size_t n, lines = 0;
    char *text = get_file(path, &n);
    assert_true(n == 0 || text[n - 1] == '\n');
    ty_arena arena;
    ty_arena_init(&arena);
    for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1, lines++) {
        ty_error err;
        ty_doc *doc;
        assert_ok(ty_json_parse(&arena, "line", at, (size_t)(end - at), NULL, &doc, &err));
    }
    ty_arena_fini(&arena);
    free(text);
    return lines;
}

static void test_file(void **state)
{
    ty_error err;
    ty_metrics_file *f;
    const char *path = in(state, "data/metrics.jsonl");
    assert_ok(ty_metrics_file_open(path, &header, &f, &err));
    assert_ok(ty_metrics_file_add(f, &train_row, &err));
    assert_ok(ty_metrics_file_add(f, &odd_row, &err));
    assert_int_equal(count_lines(path), 3);
    assert_ok(ty_metrics_file_close(f, &err));
    /* Killed within a line: the torn end goes, the rest stays. */
    FILE *torn = fopen(path, "a");
    fputs("{\"ts\":1,\"st", torn);
    fclose(torn);
    assert_ok(ty_metrics_file_open(path, &header, &f, &err));
    assert_int_equal(count_lines(path), 4);
    assert_ok(ty_metrics_file_close(f, &err));
    assert_ok(ty_metrics_file_close(NULL, &err));
}

static void test_file_is_cut_back(void **state)
{
    ty_error err;
    ty_metrics_file *f;
    struct rlimit old, small;
    const char *path = in(state, "metrics.jsonl");
    signal(SIGXFSZ, SIG_IGN);
    assert_ok(ty_metrics_file_open(path, &header, &f, &err));
    getrlimit(RLIMIT_FSIZE, &old);
    small = (struct rlimit){.rlim_cur = (rlim_t)ty_file_size(path) + 20, .rlim_max = old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    int rc = ty_metrics_file_add(f, &train_row, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(rc, -1);
    assert_int_equal(count_lines(path), 1);
    assert_ok(ty_metrics_file_add(f, &train_row, &err));
    assert_int_equal(count_lines(path), 2);
    assert_ok(ty_metrics_file_close(f, &err));
}

static void test_file_refused(void **state)
{
    ty_error err;
    ty_metrics_file *f;
    put_file(in(state, "file"), "x", 1);
    assert_error(ty_metrics_file_open(in(state, "file/metrics.jsonl"), &header, &f, &err), err.code, "metrics file");
    assert_error(ty_metrics_file_open("/dev/null", &header, &f, &err), TY_E_CREATE, "expected a regular file");
}

static void test_print(void **state)
{
    (void)state;
    ty_error err;
    int fd[2];
    char text[256];
    assert_int_equal(pipe(fd), 0);
    assert_ok(ty_metrics_print(fd[1], &val_row, &err));
    ssize_t n = read(fd[0], text, sizeof text);
    assert_true(n > 0 && text[n - 1] == '\n');
    signal(SIGPIPE, SIG_IGN);
    close(fd[0]);
    assert_error(ty_metrics_print(fd[1], &val_row, &err), err.code, "cannot print a metric line");
    close(fd[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_float32_round_trips),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_regex),
        SCRATCH_TEST(test_file),
        SCRATCH_TEST(test_file_is_cut_back),
        SCRATCH_TEST(test_file_refused),
        cmocka_unit_test(test_print),
    };
    return cmocka_run_group_tests_name("output: metrics", tests, NULL, NULL);
}
