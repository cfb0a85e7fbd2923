/* input_number.c - text to numbers: always the nearest double, whatever way it took. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "container/input/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_equals_strtod(const char *text)
{
    double got = -7.0;
    size_t n = strlen(text);
    char *copy = malloc(n); /* exact size: a sanitizer sees any step past the end */
    memcpy(copy, text, n);
    const char *end = ty_number_scan(copy, copy + n, &got);
    if (end != copy + n) {
        print_error("\"%.60s\" was not read to its end\n", text);
        fail();
    }
    free(copy);
    double want = strtod(text, NULL);
    if (memcmp(&got, &want, sizeof got) != 0 && !(isnan(got) && isnan(want))) {
        print_error("\"%.60s\": %.17g, expected %.17g\n", text, got, want);
        fail();
    }
}

static void finite_numbers_round_correctly(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "0",
        "-0",
        "+1",
        "1.",
        ".5",
        "-.5e1",
        "123456789012345678",
        "9007199254740993",
        "9007199254740992",
        "1e22",
        "1e23",
        "1e-22",
        "1e-23",
        "8.5e-1",
        "2.2250738585072014e-308",
        "4.9e-324",
        "2.4703282292062328e-324",
        "1.7976931348623157e308",
        "1e309",
        "-1e400",
        "1e-400",
        "0e99999999999999999999",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "0.000000000000000000000000000000000000000000000000001",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999",
        "3.14159265358979323846264338327950288",
        "00000000000000000000005",
        "inf",
        "-Infinity",
        "nan",
        "NaN",
        "+inf",
        "6.02214076E+23",
        "100000000000000000000000000000000000000000",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_equals_strtod(rows[i]);
}

static void random_numbers_round_correctly(void **state)
{
    (void)state;
    static const char *const forms[] = {"%.17g", "%.9g", "%.6f", "%.16e", "%g", "%.3f", "%.25g"};
    for (uint64_t i = 0; i < 70000; i++) {
        uint64_t bits = (uint64_t)ty_rng_u32(1, 2, 3, 2 * i) << 32 | ty_rng_u32(1, 2, 3, 2 * i + 1);
        double v;
        memcpy(&v, &bits, sizeof v);
        if (i % 2 == 0)
            v = ((double)(int64_t)bits) / (double)(1 << (i % 31));
        if (!isfinite(v) || (fabs(v) > 1e200 && i % 7 == 2))
            continue;
        char text[512];
        snprintf(text, sizeof text, forms[i % 7], v);
        check_equals_strtod(text);
    }
}

/* One decimal text in every form that files have. */
static void a_text(uint64_t i, char *text, size_t n)
{
    uint32_t how = ty_rng_u32(5, 6, 7, 4 * i), more = ty_rng_u32(5, 6, 7, 4 * i + 1);
    uint64_t bits = (uint64_t)ty_rng_u32(5, 6, 7, 4 * i + 2) << 32 | ty_rng_u32(5, 6, 7, 4 * i + 3);
    unsigned digits = 1 + how % 20, point = more % 24, at = 0;
    if (more >> 8 & 1)
        text[at++] = more >> 9 & 1 ? '-' : '+';
    for (unsigned k = 0; k < digits; k++) {
        if (k == point)
            text[at++] = '.';
        text[at++] = (char)('0' + bits % 10);
        bits /= 10;
    }
    text[at] = 0;
    if (how >> 8 & 1 && how >> 9 & 1)
        snprintf(text + at, n - at, "%c%s%u", how >> 10 & 1 ? 'e' : 'E',
                 how >> 11 & 1   ? "-"
                 : how >> 12 & 1 ? "+"
                                 : "",
                 how >> 16 & 1 ? how >> 17 & 31 : how >> 17 & 511);
}

static void check_same(const char *text, const char *way, double got, double want)
{
    if (memcmp(&got, &want, sizeof got) == 0)
        return;
    print_error("\"%s\" %s: %.17g, expected %.17g\n", text, way, got, want);
    fail();
}

/* Every way to read a number, among other text on both sides, gives strtod's double, or says that it cannot. */
static void all_ways_give_the_nearest(void **state)
{
    (void)state;
    int64_t plain = 0, between = 0, whole = 0;
    char text[400], field[800];
    for (uint64_t i = 0; i < 1000000; i++) {
        double v;
        int64_t w;
        a_text(i, text, sizeof text);
        size_t n = strlen(text);
        double want = strtod(text, NULL);
        memset(field, i % 3 ? '7' : ',', 100);
        memcpy(field + 100, text, n);
        memset(field + 100 + n, i % 2 ? ',' : '\n', 100);
        const char *p = field + 100, *end = p + n, *after = ty_number_scan(p, end, &v);
        assert_ptr_equal(after, end);
        check_same(text, "scanned", v, want);
        after = ty_number_plain(p, end + 100, &v);
        if (after) {
            assert_ptr_equal(after, end);
            check_same(text, "read as plain", v, want);
            plain++;
        }
        if (ty_number_between(p, end, field, &v)) {
            check_same(text, "read between", v, want);
            between++;
        }
        if (ty_integer_between(p, end, field, &w)) {
            assert_null(strpbrk(text, ".eE"));
            assert_int_equal(w, strtoll(text, NULL, 10));
            whole++;
        }
    }
    assert_true(plain > 300000 && between > 300000 && whole > 50000); /* else nothing was tried */
}

/* The text buffer of the slow way is finite; numbers are not. */
static void very_long_numbers_round_correctly(void **state)
{
    (void)state;
    char text[6000];
    /* 2^53 + 1 lies between two doubles; a digit far behind the point decides. */
    for (int decide = 0; decide < 2; decide++)
        for (int zeros = 700; zeros < 2000; zeros += 61) {
            int n = snprintf(text, sizeof text, "9007199254740993.");
            memset(text + n, '0', (size_t)zeros);
            text[n + zeros] = decide ? '1' : '0';
            text[n + zeros + 1] = 0;
            check_equals_strtod(text);
        }
    int n = snprintf(text, sizeof text, "-0.");
    memset(text + n, '0', 3000);
    snprintf(text + n + 3000, 100, "12345678901234567890123e3005");
    check_equals_strtod(text);
    memset(text, '7', 2000);
    snprintf(text + 2000, 100, "e-1990");
    check_equals_strtod(text);
    memset(text, '0', 900);
    snprintf(text + 900, 100, "1.5");
    check_equals_strtod(text);
}

static void a_number_ends_where_it_ends(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int n; /* -1: no number */
    } rows[] = {{"1,2", 1}, {"1e,", 1}, {"1e+,", 1}, {"1.5.5", 3}, {"", -1},     {"-", -1},
                {".", -1},  {"e5", -1}, {"x1", -1},  {" 1", -1},   {"--1", -1},  {"0x10", 1},
                {"1_0", 1}, {"in", -1}, {"nano", 3}, {"-.e1", -1}, {"1e5e5", 3}, {"+-1", -1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double v;
        const char *end = ty_number_scan(rows[i].text, rows[i].text + strlen(rows[i].text), &v);
        int n = end == NULL ? -1 : (int)(end - rows[i].text);
        if (n != rows[i].n) {
            print_error("\"%s\": %d characters, expected %d\n", rows[i].text, n, rows[i].n);
            fail();
        }
    }
}

static void integers_keep_all_64_bits(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int n;
        int64_t value;
    } rows[] = {{"9223372036854775807", 19, INT64_MAX},
                {"-9223372036854775808", 20, INT64_MIN},
                {"9223372036854775808", -1, 0},
                {"-9223372036854775809", -1, 0},
                {"18446744073709551617", -1, 0},
                {"99999999999999999999", -1, 0},
                {"000000000000000000000000017", 27, 17},
                {"9007199254740993,", 16, 9007199254740993},
                {"+5", 2, 5},
                {"-0", 2, 0},
                {"", -1, 0},
                {"-", -1, 0},
                {"x", -1, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t v = 0;
        const char *end = ty_integer_scan(rows[i].text, rows[i].text + strlen(rows[i].text), &v);
        int n = end == NULL ? -1 : (int)(end - rows[i].text);
        if (n != rows[i].n || (n >= 0 && v != rows[i].value)) {
            print_error("\"%s\": %d characters, %lld\n", rows[i].text, n, (long long)v);
            fail();
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finite_numbers_round_correctly),    cmocka_unit_test(random_numbers_round_correctly),
        cmocka_unit_test(very_long_numbers_round_correctly), cmocka_unit_test(a_number_ends_where_it_ends),
        cmocka_unit_test(integers_keep_all_64_bits),         cmocka_unit_test(all_ways_give_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
