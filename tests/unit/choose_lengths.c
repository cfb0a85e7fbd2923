/* choose_lengths.c - lengths of length_buckets: auto: the best there are, by trying all, and no more than pay. */
#include "base/rng.h"
#include "entrypoint/choose_lengths.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MOST = 4096 };

/* Columns of all samples, filled up to the next of these lengths. */
static double columns(const uint32_t *count, int64_t longest, const int64_t *length, int n)
{
    double sum = 0;
    for (int64_t i = 0; i <= longest; i++) {
        int k = 0;
        while (k + 1 < n && length[k] < i)
            k++;
        sum += (double)count[i] * (double)length[k];
    }
    return sum;
}

static int chosen(const uint32_t *count, int64_t longest, int64_t *out)
{
    int n = ty_choose_lengths(count, longest, out);
    assert_in_range(n, 1, TY_CHOSEN_LENGTHS);
    assert_int_equal(out[n - 1], longest);
    for (int i = 0; i + 1 < n; i++) {
        assert_true(out[i] < out[i + 1]);
        assert_int_equal(out[i] % 8, 0);
    }
    return n;
}

static void one_length_is_one(void **state)
{
    uint32_t count[MOST + 1] = {0};
    int64_t out[TY_CHOSEN_LENGTHS];
    (void)state;
    count[100] = 7;
    assert_int_equal(chosen(count, 100, out), 1);
    count[100] = 0;
    count[3] = 7; /* and none is as long as a row */
    assert_int_equal(chosen(count, 100, out), 2);
    assert_int_equal(out[0], 8);
    assert_int_equal(chosen(count, 3, out), 1);
    memset(count, 0, sizeof count); /* no samples at all */
    assert_int_equal(chosen(count, 64, out), 1);
}

static void two_lengths_are_two(void **state)
{
    uint32_t count[MOST + 1] = {0};
    int64_t out[TY_CHOSEN_LENGTHS];
    (void)state;
    count[17] = 1000;
    count[200] = 10;
    assert_int_equal(chosen(count, 256, out), 3);
    assert_int_equal(out[0], 24);
    assert_int_equal(out[1], 200);
}

/* Of all sets of as many multiples of 8. */
static double best(const uint32_t *count, int64_t longest, int n)
{
    int places = (int)((longest + 7) / 8);
    double least = 1e300;
    for (uint32_t set = 0; set < 1u << (places - 1); set++) {
        int64_t length[32];
        int k = 0;
        for (int i = 0; i + 1 < places; i++)
            if (set >> i & 1)
                length[k++] = 8 * (i + 1);
        length[k++] = longest;
        double sum = k <= n ? columns(count, longest, length, k) : least;
        least = sum < least ? sum : least;
    }
    return least;
}

static void none_are_better(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 20; seed++) {
        uint32_t count[MOST + 1] = {0};
        int64_t longest = 60 + seed * 3, out[TY_CHOSEN_LENGTHS];
        for (int64_t i = 0; i <= longest; i++)
            count[i] = ty_rng_u32(9, seed, 0, (uint64_t)i) % (seed % 3 ? 1000 / (uint32_t)(i + 1) + 1 : 50);
        int n = chosen(count, longest, out);
        double mine = columns(count, longest, out, n);
        assert_true(mine <= best(count, longest, n) * (1 + 1e-12));
        if (n < TY_CHOSEN_LENGTHS) /* one more would save too little */
            assert_true(best(count, longest, n + 1) > 0.97 * mine);
        if (n > 1)
            assert_true(mine < 0.985 * best(count, longest, n - 1));
    }
}

static void long_rows_have_fewer_places(void **state)
{
    static uint32_t count[MOST + 1];
    int64_t out[TY_CHOSEN_LENGTHS];
    (void)state;
    for (int64_t i = 0; i <= MOST; i++)
        count[i] = (uint32_t)(MOST - i);
    int n = chosen(count, MOST, out);
    for (int i = 0; i < n; i++)
        assert_int_equal(out[i] % 32, 0);
    assert_true(columns(count, MOST, out, n) < 1.25 * columns(count, MOST, (const int64_t[]){MOST}, 1) / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_length_is_one),
        cmocka_unit_test(two_lengths_are_two),
        cmocka_unit_test(none_are_better),
        cmocka_unit_test(long_rows_have_fewer_places),
    };
    return cmocka_run_group_tests_name("choose_lengths", tests, NULL, NULL);
}
