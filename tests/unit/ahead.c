/* compiler/ahead.h: every byte of every part arrives, with a second thread or without, and nothing beside them is
 * touched. */
#include "compiler/ahead.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_PARTS = 61, PART_BYTES = 40000, GAP_BYTES = 24 };

static void all_parts_arrive(void **state)
{
    (void)state;
    size_t stride = PART_BYTES + GAP_BYTES, n_bytes = N_PARTS * stride;
    unsigned char *from = malloc(n_bytes), *to = malloc(n_bytes);
    ty_ahead_part part[N_PARTS];
    assert_true(from && to);
    for (size_t i = 0; i < n_bytes; i++)
        from[i] = (unsigned char)(i * 2654435761u >> 13);
    for (int threads = 1; threads <= 4; threads++)
        for (int has_products = 0; has_products <= 1; has_products++) {
            ty_ahead a = {.n = 0};
            memset(to, 0xA5, n_bytes);
            for (int i = 0; i < N_PARTS; i++)
                part[i] = (ty_ahead_part){(char *)to + (size_t)i * stride, (char *)from + (size_t)i * stride,
                                          PART_BYTES - (size_t)i};
            ty_ahead_start(&a, part, N_PARTS, threads, has_products);
            ty_ahead_fill(&a);
            for (int i = 0; i < N_PARTS; i++) {
                assert_memory_equal(part[i].to, part[i].from, part[i].n_bytes);
                assert_int_equal((unsigned char)part[i].to[part[i].n_bytes], 0xA5);
            }
            ty_ahead_end(&a);
            ty_ahead_end(&a);
        }
    free(from);
    free(to);
}

static void nothing_to_do(void **state)
{
    (void)state;
    ty_ahead never = {.n = 0}, empty = {.n = 0};
    ty_ahead_end(&never);
    ty_ahead_start(&empty, NULL, 0, 4, false);
    assert_false(empty.started);
    ty_ahead_fill(&empty);
    ty_ahead_end(&empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_parts_arrive), cmocka_unit_test(nothing_to_do)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
