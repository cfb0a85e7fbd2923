/* The counter rng: known answers, ranges, permutations. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

/* From the kat_vectors file of Random123 1.09, philox4x32 10. */
static void test_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t out[4];
        ty_philox(cases[i].counter, cases[i].key, out);
        assert_memory_equal(out, cases[i].out, sizeof out);
    }
}

static void test_words_follow_the_counter(void **state)
{
    (void)state;
    uint32_t out[4];
    uint64_t i = (UINT64_C(5) << 34) + 4 * 7 + 2;
    ty_philox((uint32_t[]){7, 5, 3, 11}, (uint32_t[]){0x89abcdef, 0x01234567}, out);
    assert_int_equal(ty_rng_u32(UINT64_C(0x0123456789abcdef), 3, 11, i), out[2]);
    assert_true(ty_rng_uniform(0xffffffff) < 1.0f);
    assert_true(ty_rng_uniform(0) == 0.0f);
}

static void test_below_stays_below_and_is_even(void **state)
{
    (void)state;
    int counts[10] = {0};
    for (uint64_t i = 0; i < 100000; i++)
        counts[ty_rng_below(1, 2, 3, i, 10)]++;
    for (int i = 0; i < 10; i++)
        assert_in_range(counts[i], 9600, 10400);
    assert_int_equal(ty_rng_below(1, 0, 0, 5, 1), 0);
    /* Three quarters of 2^64: about one word in four is rejected; what is taken must still be below. */
    uint64_t n = UINT64_C(3) << 62;
    for (uint64_t i = 0; i < 1000; i++)
        assert_true(ty_rng_below(9, 0, 0, i, n) < n);
}

static void test_permutation(void **state)
{
    (void)state;
    enum { N = 1000 };
    uint32_t first[N], again[N], other[N];
    char seen[N] = {0};
    ty_rng_permutation(42, 1, 0, N, first);
    ty_rng_permutation(42, 1, 0, N, again);
    ty_rng_permutation(42, 1, 1, N, other);
    assert_memory_equal(first, again, sizeof first);
    assert_int_not_equal(memcmp(first, other, sizeof first), 0);
    int n_fixed = 0;
    for (int i = 0; i < N; i++) {
        assert_in_range(first[i], 0, N - 1);
        assert_int_equal(seen[first[i]]++, 0);
        n_fixed += first[i] == (uint32_t)i;
    }
    assert_true(n_fixed < 12); /* one is expected */
    ty_rng_permutation(42, 1, 0, 0, first);
    ty_rng_permutation(42, 1, 0, 1, first);
    assert_int_equal(first[0], 0);
}

/* Draws are made in blocks; the order is that of one draw after the other. */
static void test_permutation_by_blocks(void **state)
{
    (void)state;
    static const int64_t sizes[] = {2, 255, 256, 257, 258, 511, 512, 513, 514, 769, 1025, 5000, 70001};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        int64_t n = sizes[s];
        uint32_t *out = malloc((size_t)n * sizeof *out), *want = malloc((size_t)n * sizeof *want);
        for (int64_t i = 0; i < n; i++)
            want[i] = (uint32_t)i;
        for (int64_t i = n - 1; i > 0; i--) {
            int64_t j = (int64_t)ty_rng_below(0xabcdef0123456789, 7, 3, (uint64_t)i, (uint64_t)i + 1);
            uint32_t kept = want[i];
            want[i] = want[j];
            want[j] = kept;
        }
        ty_rng_permutation(0xabcdef0123456789, 7, 3, n, out);
        assert_memory_equal(out, want, (size_t)n * sizeof *out);
        free(out);
        free(want);
    }
}

static void test_permuted(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 3000; n = n * 3 / 2 + 1) {
        char *seen = calloc((size_t)n, 1);
        int64_t n_same = 0, n_fixed = 0;
        for (int64_t i = 0; i < n; i++) {
            int64_t v = ty_rng_permuted(42, 1, 0, n, i);
            assert_in_range(v, 0, n - 1);
            assert_int_equal(seen[v]++, 0);
            n_fixed += v == i;
            n_same += v == ty_rng_permuted(42, 1, 1, n, i);
        }
        assert_true(n < 100 || (n_fixed < 12 && n_same < 12)); /* one is expected */
        free(seen);
    }
    int64_t far = INT64_C(1) << 62;
    assert_true(ty_rng_permuted(42, 1, 0, far, far - 1) < far);
    assert_true(ty_rng_permuted(42, 1, 0, far, 0) != ty_rng_permuted(42, 1, 0, far, 1));
}

/* Wherever they begin, and however many: parts of blocks before and behind groups of them. */
static void test_words(void **state)
{
    enum { MOST = 300 };
    uint32_t words[MOST + 1];
    (void)state;
    for (uint64_t first = UINT64_C(0x3FFFFFFC0); first < UINT64_C(0x3FFFFFFC0) + 70; first += 3) /* a second counter */
        for (int64_t n = 0; n <= MOST; n += n < 10 ? 1 : 29) {
            words[n] = 77;
            ty_rng_words(0x123456789ABC, 5, 70000, first, n, words);
            for (int64_t i = 0; i < n; i++)
                assert_int_equal(words[i], ty_rng_u32(0x123456789ABC, 5, 70000, first + (uint64_t)i));
            assert_int_equal(words[n], 77);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_words_follow_the_counter),
        cmocka_unit_test(test_below_stays_below_and_is_even),
        cmocka_unit_test(test_permutation),
        cmocka_unit_test(test_permutation_by_blocks),
        cmocka_unit_test(test_permuted),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
