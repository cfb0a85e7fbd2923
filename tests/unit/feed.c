/* Batches into pinned memory: every byte, whatever the size, the alignment and the number of threads, and none beyond.
 */
#include "compiler/target/cuda/feed.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MOST = 5 << 20, AROUND = 64 };

static void all_and_no_more(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 63, 64, 1 << 20, (1 << 20) + 1, (2 << 20) - 1, (3 << 20) + 77, MOST - AROUND};
    unsigned char *from = malloc(MOST), *to = aligned_alloc(AROUND, MOST + 2 * AROUND);
    assert_true(from && to);
    for (size_t i = 0; i < MOST; i++)
        from[i] = (unsigned char)(i * 2654435761u >> 13);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t off = 0; off < 32; off += 8) {
            memset(to, 7, MOST + 2 * AROUND);
            unsigned char *at = to + AROUND + off;
            ty_feed_fill((char *)at, from + off / 8, sizes[s], (int)(1 + off / 8));
            assert_memory_equal(at, from + off / 8, sizes[s]);
            for (int i = 1; i <= AROUND - 32; i++)
                assert_true(at[-i] == 7 && at[sizes[s] + (size_t)i - 1] == 7);
        }
    free(from);
    free(to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_and_no_more)};
    return cmocka_run_group_tests_name("feed", tests, NULL, NULL);
}
