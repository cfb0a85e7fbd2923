/* ops_rows.c - find_rows, sum_rows, get_rows, set_rows: values and refusals. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/ops_case.h"

static void find_sorts_numbers(void **state)
{
    (void)state;
    /* as many as there are different ones, then -1; equal numbers keep their order */
    case_expect(TY_OP_FIND_ROWS, (ty_attr){.index = 9}, IN(INT(TY_I64, DIMS(5), 7, 2, 7, 0, 2)),
                OUT(INT(TY_I64, DIMS(5), 0, 2, 7, -1, -1), INT(TY_I64, DIMS(5), 3, 1, 4, 0, 2),
                    INT(TY_I64, DIMS(6), 0, 1, 3, 5, 5, 5)));
    /* a small table ends the list */
    case_expect(TY_OP_FIND_ROWS, (ty_attr){.index = 2}, IN(INT(TY_I32, DIMS(4), 1, 1, 0, 1)),
                OUT(INT(TY_I64, DIMS(2), 0, 1), INT(TY_I64, DIMS(4), 2, 0, 1, 3), INT(TY_I64, DIMS(3), 0, 1, 4)));
    case_refused(TY_OP_FIND_ROWS, (ty_attr){.index = 2}, IN(TYPE(TY_F32, DIMS(4))), "index: expected i32 or i64");
    case_refused(TY_OP_FIND_ROWS, (ty_attr){.index = 2}, IN(TYPE(TY_I64, DIMS(2, 2))), "rank 1");
    case_refused(TY_OP_FIND_ROWS, (ty_attr){.index = -1}, IN(TYPE(TY_I64, DIMS(2))), "number of rows of a table");
    case_no_value(TY_OP_FIND_ROWS, (ty_attr){.index = 2}, IN(INT(TY_I64, DIMS(2), 1, 2)),
                  "index: expected 0 to 1, found 2 at element 1");
    case_no_value(TY_OP_FIND_ROWS, (ty_attr){.index = 2}, IN(INT(TY_I64, DIMS(1), -1)), "found -1");
}

static void sum_adds_runs(void **state)
{
    (void)state;
    case_expect(
        TY_OP_SUM_ROWS, (ty_attr){0},
        IN(F64(DIMS(3, 2), 1, 2, 10, 20, 100, 200), INT(TY_I64, DIMS(3), 1, 0, 2), INT(TY_I64, DIMS(4), 0, 1, 3, 3)),
        OUT(F64(DIMS(3, 2), 10, 20, 101, 202, 0, 0)));
    case_expect(TY_OP_SUM_ROWS, (ty_attr){0},
                IN(INT(TY_I8, DIMS(2), 100, 100), INT(TY_I32, DIMS(2), 0, 1), INT(TY_I32, DIMS(2), 0, 2)),
                OUT(INT(TY_I8, DIMS(1), -56))); /* wraps as i8 does */
    case_refused(TY_OP_SUM_ROWS, (ty_attr){0}, IN(TYPE(TY_F32, DIMS(3)), TYPE(TY_I64, DIMS(2)), TYPE(TY_I64, DIMS(2))),
                 "order: expected i64[3], found i64[2]");
    case_refused(TY_OP_SUM_ROWS, (ty_attr){0}, IN(TYPE(TY_F32, DIMS(3)), TYPE(TY_I32, DIMS(3)), TYPE(TY_I64, DIMS(2))),
                 "order: expected i64[3], found i32[3]");
    case_refused(TY_OP_SUM_ROWS, (ty_attr){0}, IN(TYPE(TY_F32, DIMS(3)), TYPE(TY_I64, DIMS(3)), TYPE(TY_I64, DIMS(0))),
                 "start: expected at least one number");
    case_no_value(TY_OP_SUM_ROWS, (ty_attr){0},
                  IN(F64(DIMS(2), 1, 2), INT(TY_I64, DIMS(2), 0, 2), INT(TY_I64, DIMS(2), 0, 2)),
                  "order: expected 0 to 1");
    case_no_value(TY_OP_SUM_ROWS, (ty_attr){0},
                  IN(F64(DIMS(2), 1, 2), INT(TY_I64, DIMS(2), 0, 1), INT(TY_I64, DIMS(2), 0, 3)),
                  "start: expected 0 to 2");
}

static void rows_are_read_and_written(void **state)
{
    (void)state;
    case_expect(TY_OP_GET_ROWS, (ty_attr){0}, IN(F64(DIMS(3, 2), 1, 2, 3, 4, 5, 6), INT(TY_I64, DIMS(4), 0, 2, -1, -1)),
                OUT(F64(DIMS(4, 2), 1, 2, 5, 6, 0, 0, 0, 0)));
    case_expect(TY_OP_SET_ROWS, (ty_attr){0},
                IN(F64(DIMS(3, 2), 1, 2, 3, 4, 5, 6), INT(TY_I32, DIMS(2), 1, -1), F64(DIMS(2, 2), 30, 40, 7, 8)),
                OUT(F64(DIMS(3, 2), 1, 2, 30, 40, 5, 6)));
    case_refused(TY_OP_SET_ROWS, (ty_attr){0},
                 IN(TYPE(TY_F32, DIMS(3, 2)), TYPE(TY_I64, DIMS(2)), TYPE(TY_F32, DIMS(3, 2))),
                 "update: expected f32[2,2], found f32[3,2]");
    case_refused(TY_OP_GET_ROWS, (ty_attr){0}, IN(TYPE(TY_F32, SCALAR), TYPE(TY_I64, DIMS(2))), "rank");
}

/* Only lists that find_rows makes: a kernel writes their rows in any order. */
static void lists_rise(void **state)
{
    (void)state;
    static const int64_t bad[][3] = {{1, 1, -1}, {2, 1, -1}, {-1, 1, 2}, {0, 1, 3}, {0, -2, -1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ty_ref rows = case_i(TY_I64, DIMS(3), bad[i], 3);
        case_no_value(TY_OP_GET_ROWS, (ty_attr){0}, IN(F64(DIMS(3), 1, 2, 3), rows), "rising numbers below 3");
        case_no_value(TY_OP_SET_ROWS, (ty_attr){0}, IN(F64(DIMS(3), 1, 2, 3), rows, F64(DIMS(3), 1, 2, 3)),
                      "rising numbers below 3");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(find_sorts_numbers, case_setup, case_teardown),
        cmocka_unit_test_setup_teardown(sum_adds_runs, case_setup, case_teardown),
        cmocka_unit_test_setup_teardown(rows_are_read_and_written, case_setup, case_teardown),
        cmocka_unit_test_setup_teardown(lists_rise, case_setup, case_teardown),
    };
    return cmocka_run_group_tests_name("ops_rows", tests, NULL, NULL);
}
