/* compiler/phases.h: laps of one name are added up, in the order of their first lap. */
#include "compiler/phases.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void laps_add_up(void **state)
{
    (void)state;
    ty_compile_phases p = {0}, more = {0};
    int64_t start_ns = ty_clock_ns();
    ty_phases_start(&p);
    pause_ms(5);
    ty_phases_lap(&p, "fuse");
    ty_phases_lap(&p, "plan");
    pause_ms(5);
    ty_phases_lap(&p, "fuse");
    assert_int_equal(p.n, 2);
    assert_string_equal(p.name[0], "fuse");
    assert_string_equal(p.name[1], "plan");
    assert_true(p.ms[0] >= 10);
    pause_ms(5);
    ty_phases_start(&p); /* what lies between is nobody's */
    ty_phases_lap(&p, "plan");
    assert_true(p.ms[0] + p.ms[1] <= 1e-6 * (double)(ty_clock_ns() - start_ns) - 5);
    ty_phases_start(&more);
    pause_ms(2);
    ty_phases_lap(&more, "plan");
    ty_phases_add(&p, &more);
    assert_int_equal(p.n, 2);
    assert_true(p.ms[1] >= 2);
}

static void more_names_than_room(void **state)
{
    (void)state;
    char names[TY_MAX_COMPILE_PHASES + 4][16];
    ty_compile_phases p = {0};
    ty_phases_start(&p);
    for (int i = 0; i < TY_MAX_COMPILE_PHASES + 4; i++) {
        snprintf(names[i], sizeof names[i], "p%d", i);
        ty_phases_lap(&p, names[i]);
    }
    assert_int_equal(p.n, TY_MAX_COMPILE_PHASES);
    assert_string_equal(p.name[p.n - 1], names[TY_MAX_COMPILE_PHASES - 1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(laps_add_up), cmocka_unit_test(more_names_than_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
