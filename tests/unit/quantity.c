/* What people read: suggestions, times, amounts; and libraries opened by name. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/dl.h"
#include "base/quantity.h"
#include "base/suggest.h"

#include <string.h>

static const char *const words[] = {"epochs", "batch_size", "learning_rate", "seed", "loss", "lr", "optimizer"};

static const char *suggest(const char *word)
{
    return ty_suggest(word, words, sizeof words / sizeof words[0]);
}

static void test_suggestions(void **state)
{
    (void)state;
    assert_string_equal(suggest("epoch"), "epochs");
    assert_string_equal(suggest("batchsize"), "batch_size");
    assert_string_equal(suggest("BATCH-SIZE"), "batch_size");
    assert_string_equal(suggest("lerning_rat"), "learning_rate");
    assert_string_equal(suggest("sede"), "seed");
    assert_string_equal(suggest("learn"), "learning_rate");
    assert_null(suggest("lea"));
    assert_string_equal(suggest("rl"), "lr");
    assert_string_equal(suggest("learningRate"), "learning_rate");
    assert_null(suggest("zebra"));
    assert_null(suggest("x"));
    assert_null(suggest(""));
    char endless[200];
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = 0;
    assert_null(suggest(endless));
    ty_suggestion s = {.word = "los"};
    ty_suggest_offer(&s, "lots");
    ty_suggest_offer(&s, "loss");
    assert_string_equal(s.best, "lots"); /* of equals the first */
}

static void test_utc_text(void **state)
{
    (void)state;
    char out[32];
    assert_string_equal(ty_clock_utc_text(0, out), "1970-01-01T00:00:00.000Z");
    assert_string_equal(ty_clock_utc_text(INT64_C(1767607872345), out), "2026-01-05T10:11:12.345Z");
    assert_string_equal(ty_clock_utc_text(-1, out), "1969-12-31T23:59:59.999Z");
    assert_string_equal(ty_clock_utc_text(INT64_C(1709164800000), out), "2024-02-29T00:00:00.000Z");
    assert_string_equal(ty_clock_utc_text(INT64_MAX, out), "0000-00-00T00:00:00.000Z");
    int64_t before = ty_clock_ns();
    assert_true(ty_clock_ns() >= before);
    assert_true(ty_clock_utc_ms() > INT64_C(1700000000000));
}

static const char *duration(int64_t us)
{
    static char out[32];
    return ty_duration_text(us, out, sizeof out);
}

static void test_durations(void **state)
{
    (void)state;
    assert_string_equal(duration(0), "0us");
    assert_string_equal(duration(999), "999us");
    assert_string_equal(duration(1000), "1ms");
    assert_string_equal(duration(999499), "999ms");
    assert_string_equal(duration(999500), "1.0s");
    assert_string_equal(duration(3249000), "3.2s");
    assert_string_equal(duration(59949999), "59.9s");
    assert_string_equal(duration(59950000), "1m00s");
    assert_string_equal(duration(125000000), "2m05s");
    assert_string_equal(duration(INT64_C(3720000000)), "1h02m");
    assert_string_equal(duration(INT64_C(273600000000)), "3d04h");
}

static void test_amounts(void **state)
{
    (void)state;
    char out[32];
    assert_string_equal(ty_bytes_text(1023, out, sizeof out), "1023 B");
    assert_string_equal(ty_bytes_text(1536, out, sizeof out), "1.5 KiB");
    assert_string_equal(ty_bytes_text((1 << 20) - 1, out, sizeof out), "1.0 MiB");
    assert_string_equal(ty_bytes_text((uint64_t)5 << 30, out, sizeof out), "5.0 GiB");
    assert_string_equal(ty_bytes_text(UINT64_MAX, out, sizeof out), "16.0 EiB");
    assert_string_equal(ty_count_text(1797, out, sizeof out), "1,797");
    assert_string_equal(ty_count_text(-1234567, out, sizeof out), "-1,234,567");
    assert_string_equal(ty_count_text(999, out, sizeof out), "999");
    assert_string_equal(ty_count_text(INT64_MIN, out, sizeof out), "-9,223,372,036,854,775,808");
}

struct math_library {
    double (*cosine)(double);
    void (*nothing)(void);
};

static void test_libraries(void **state)
{
    (void)state;
    static const char *const names[] = {"libno-such-thing.so.9", "libm.so.6", NULL};
    static const ty_dl_symbol symbols[] = {
        {"cos", offsetof(struct math_library, cosine), .optional = false},
        {"no_such_function", offsetof(struct math_library, nothing), .optional = true},
    };
    struct math_library m;
    void *handle;
    ty_error err = {0};
    assert_int_equal(ty_dl_open(names, symbols, 2, &m, &handle, &err), 0);
    assert_true(m.cosine(0) == 1);
    assert_true(m.nothing == NULL);
    ty_dl_close(handle);
    ty_dl_close(NULL);
    ty_dl_symbol needed = {"no_such_function", offsetof(struct math_library, nothing), .optional = false};
    assert_int_equal(ty_dl_open(names + 1, &needed, 1, &m, &handle, &err), -1);
    assert_int_equal(err.code, TY_E_LIBRARY);
    assert_non_null(strstr(err.message, "no_such_function"));
    static const char *const absent[] = {"libno-such-thing.so.9", NULL};
    assert_int_equal(ty_dl_open(absent, symbols, 2, &m, &handle, &err), -1);
    assert_int_equal(err.code, TY_E_NOT_FOUND);
    assert_null(handle);
    /* Where a file is there, the reason is why it cannot be opened. */
    static const char *const text[] = {"libno-such-thing.so.9", "/proc/self/maps", "/nowhere/libno.so.9", NULL};
    assert_int_equal(ty_dl_open(text, symbols, 2, &m, &handle, &err), -1);
    assert_non_null(strstr(err.message, "/proc/self/maps"));
}

static void test_amounts_that_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } rows[] = {{"150MB", 150000000},
                {"8 GiB", 8ull << 30},
                {"1024", 1024},
                {"1.5KiB", 1536},
                {"2 TB", 2000000000000ull},
                {"1B", 1},
                {"", 0},
                {"MB", 0},
                {"0", 0},
                {"-1", 0},
                {"5 parsecs", 0},
                {"5 MB x", 0},
                {"5mb", 0},
                {"1e30", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t bytes = 0;
        assert_int_equal(ty_bytes_parse(rows[i].text, &bytes), rows[i].bytes != 0);
        assert_int_equal(bytes, rows[i].bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_suggestions),
        cmocka_unit_test(test_utc_text),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_amounts),
        cmocka_unit_test(test_amounts_that_are_read),
        cmocka_unit_test(test_libraries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
