/* dist/server/partition.h: TensorFlow's tables, rows there and back, even shards. */
#include "dist/server/partition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* tensorflow/python/distribute/sharded_variable_test.py, PartitionerTest; the last rows are what its doc strings say.
 */
static void counts(void **state)
{
    (void)state;
    static const struct {
        ty_partitioner p;
        int64_t rows, width;
        int parts;
    } cases[] = {
        {{TY_PARTITION_FIXED, 0, 2}, 10, 3, 2},
        {{TY_PARTITION_MIN_SIZE, 4, 2}, 6, 1, 2},
        {{TY_PARTITION_MIN_SIZE, 4, 10}, 6, 1, 6},
        {{TY_PARTITION_MAX_SIZE, 4, 0}, 6, 1, 6},
        {{TY_PARTITION_MAX_SIZE, 4, 2}, 6, 1, 2},
        {{TY_PARTITION_MAX_SIZE, 1024, 0}, 6, 1, 1},
        {{TY_PARTITION_FIXED, 0, 7}, 3, 1, 3},
        {{TY_PARTITION_MIN_SIZE, 0, 0}, 1 << 20, 4, 1},
        {{TY_PARTITION_MIN_SIZE, 0, 100}, 1 << 16, 4, 4},
        {{TY_PARTITION_MIN_SIZE, 0, 100}, 10, 1, 1},
        {{TY_PARTITION_MAX_SIZE, 10, 0}, 6, 2, 6},
        {{TY_PARTITION_MAX_SIZE, 20, 0}, 7, 2, 4},
        {{TY_PARTITION_FIXED, 0, 4}, 0, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(ty_partition_count(&cases[i].p, cases[i].rows, cases[i].width * 4), cases[i].parts);
}

/* tf.nn.embedding_lookup of 13 ids in 5 parts: div is [0,1,2] [3,4,5] [6,7,8] [9,10] [11,12], mod [0,5,10] [1,6,11] ...
 */
static void placement(void **state)
{
    (void)state;
    static const int64_t div[13] = {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4};
    for (int64_t r = 0; r < 13; r++) {
        int part;
        int64_t place;
        ty_partition_find(13, 5, false, r, &part, &place);
        assert_int_equal(part, div[r]);
        ty_partition_find(13, 5, true, r, &part, &place);
        assert_int_equal(part, r % 5);
        assert_int_equal(place, r / 5);
    }
    for (int64_t rows = 1; rows < 40; rows++)
        for (int parts = 1; parts <= rows && parts < 12; parts++)
            for (int mod = 0; mod < 2; mod++) {
                int64_t sum = 0;
                for (int p = 0; p < parts; p++)
                    sum += ty_partition_rows(rows, parts, p, mod);
                assert_int_equal(sum, rows);
                for (int64_t r = 0; r < rows; r++) {
                    int part;
                    int64_t place;
                    ty_partition_find(rows, parts, mod, r, &part, &place);
                    assert_true(place < ty_partition_rows(rows, parts, part, mod));
                    assert_int_equal(ty_partition_row(rows, parts, mod, part, place), r);
                }
            }
}

static void balance(void **state)
{
    (void)state;
    static const int64_t bytes[] = {4, 100, 40, 60, 4, 90};
    int shard[6];
    ty_partition_balance(bytes, 6, 3, shard);
    static const int expected[] = {0, 0, 2, 2, 1, 1}; /* 100 | 90 | 60, then 40 to 60, 4 to 90, 4 to 94 */
    int64_t load[3] = {0};
    for (int i = 0; i < 6; i++)
        load[shard[i]] += bytes[i];
    for (int i = 0; i < 3; i++)
        assert_true(load[i] >= 94 && load[i] <= 104);
    assert_int_equal(shard[1], expected[1]);
    assert_int_equal(shard[5], expected[5]);
    assert_int_equal(shard[3], expected[3]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts), cmocka_unit_test(placement),
                                       cmocka_unit_test(balance)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
