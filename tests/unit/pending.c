/* pending.c - which exchange must be over before a call touches its memory. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/target/pending.h"

static ty_place slab(int64_t offset)
{
    return (ty_place){TY_PLACE_SLAB, 0, offset};
}

/* #0: 100 bytes from 0 to 200; #1: 100 bytes in place at 400. */
static ty_pending two(ty_exchanged *room)
{
    ty_pending p = {.list = room};
    assert_int_equal(ty_pending_add(&p, (ty_exchanged){slab(0), slab(200), 100, 100}), 0);
    assert_int_equal(ty_pending_add(&p, (ty_exchanged){slab(400), slab(400), 100, 100}), 1);
    return p;
}

static void memory_is_met(void **state)
{
    (void)state;
    static const struct {
        int64_t at, bytes;
        bool written;
        int meets;
    } cases[] = {
        {0, 100, false, -1}, {0, 100, true, 0},  {99, 1, true, 0},     {100, 100, true, -1},
        {200, 4, false, 0},  {296, 4, false, 0}, {300, 100, true, -1}, {300, 101, true, 1},
        {0, 500, false, 1},  {499, 1, false, 1}, {500, 100, true, -1}, {0, 300, false, 0},
    };
    ty_exchanged room[2];
    ty_pending p = two(room);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ty_place at = slab(cases[i].at);
        int found = ty_pending_meets(&p, &at, cases[i].bytes, cases[i].written);
        if (found != cases[i].meets)
            fail_msg("%d bytes at %d: expected %d, found %d", (int)cases[i].bytes, (int)cases[i].at, cases[i].meets,
                     found);
    }
}

static void other_memory_is_not(void **state)
{
    (void)state;
    ty_exchanged room[2];
    ty_pending p = two(room);
    const ty_place others[] = {{TY_PLACE_STATE, 0, 400}, {TY_PLACE_NONE, 0, 400}, {TY_PLACE_SLAB, 1, 400}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(ty_pending_meets(&p, &others[i], 100, true), -1);
}

/* One that is over takes those before it along. */
static void what_is_over_is_not_met(void **state)
{
    (void)state;
    ty_exchanged room[3];
    ty_pending p = two(room);
    ty_place first = slab(200), second = slab(400);
    ty_pending_over(&p, 0);
    assert_int_equal(ty_pending_meets(&p, &first, 4, true), -1);
    assert_int_equal(ty_pending_meets(&p, &second, 4, true), 1);
    ty_pending_over(&p, 1);
    assert_int_equal(ty_pending_meets(&p, &second, 4, true), -1);
    assert_int_equal(ty_pending_add(&p, (ty_exchanged){first, first, 4, 4}), 2);
    assert_int_equal(ty_pending_meets(&p, &first, 4, false), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_met),
        cmocka_unit_test(other_memory_is_not),
        cmocka_unit_test(what_is_over_is_not_met),
    };
    return cmocka_run_group_tests_name("pending", tests, NULL, NULL);
}
