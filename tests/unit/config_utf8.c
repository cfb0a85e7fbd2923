/* UTF-8: all code points there and back, every kind of broken bytes, cutting. */
#include "config_tree.h"

#include "container/config/utf8.h"

static void test_round_trip(void **state)
{
    (void)state;
    for (uint32_t cp = 0; cp <= 0x10ffff; cp++) {
        char bytes[4];
        uint32_t back = 0;
        size_t len = ty_utf8_put(bytes, cp);
        assert_int_equal(len, cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4);
        assert_int_equal(ty_utf8_next(bytes, len, &back), len);
        assert_int_equal(back, cp);
        if (len > 1) { /* cut short: only its first byte is taken, and marked */
            assert_int_equal(ty_utf8_next(bytes, len - 1, &back), 1);
            assert_int_equal(back, 0xdc00u + (unsigned char)bytes[0]);
        }
    }
}

static void test_broken(void **state)
{
    static const char *const broken[] = {
        "\x80",
        "\xbf",
        "\xc0\x80",
        "\xc1\xbf",
        "\xe0\x80\x80",
        "\xf0\x80\x80\x80",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
        "\xc3(",
        "\xe2\x28\xa1",
        "\xe2\x82(",
    };
    uint32_t cp;

    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        assert_int_equal(ty_utf8_next(broken[i], strlen(broken[i]), &cp), 1);
        assert_int_equal(cp, 0xdc00u + (unsigned char)broken[i][0]);
    }
}

static void test_cut(void **state)
{
    static const char text[] = "a\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80z"; /* 1 + 2 + 3 + 4 + 1 bytes */
    static const size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};

    (void)state;
    for (size_t max = 0; max < sizeof expected / sizeof expected[0]; max++)
        assert_int_equal(ty_utf8_cut(text, strlen(text), max), expected[max]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip), cmocka_unit_test(test_broken),
                                       cmocka_unit_test(test_cut)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
