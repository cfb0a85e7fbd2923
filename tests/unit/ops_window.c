/* ops_window.c - pooling: values, refusals, gradients. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/ops_case.h"
#include "tests/unit/ops_gradient.h"

/* n spatial axes with the same size, step and dilation 1, no padding */
static ty_attr pool_attr(uint32_t n, int64_t size, int64_t step)
{
    ty_attr a = {.n = n};
    for (uint32_t i = 0; i < n; i++) {
        a.size[i] = size;
        a.step[i] = step;
        a.dil[i] = 1;
    }
    return a;
}

static void pool_max_finds(void **state)
{
    (void)state;
    ty_ref x = F64(DIMS(1, 1, 3, 3), 1, 2, 3, 6, 5, 4, 7, 7, 9);
    case_expect(TY_OP_POOL_MAX, pool_attr(2, 2, 1), IN(x),
                OUT(F64(DIMS(1, 1, 2, 2), 6, 5, 7, 9), INT(TY_I32, DIMS(1, 1, 2, 2), 3, 4, 6, 8)));
    ty_attr padded = pool_attr(2, 2, 2); /* asymmetric: one row above, one column to the right */
    padded.lo[0] = 1;
    padded.hi[1] = 1;
    case_expect(TY_OP_POOL_MAX, padded, IN(x),
                OUT(F64(DIMS(1, 1, 2, 2), 2, 3, 7, 9), INT(TY_I32, DIMS(1, 1, 2, 2), 1, 2, 6, 8)));
    ty_attr dilated = pool_attr(1, 2, 1);
    dilated.dil[0] = 3;
    case_expect(TY_OP_POOL_MAX, dilated, IN(F64(DIMS(1, 2, 5), -5, 2, 0, -6, 1, NAN, 1, 1, 7, 3)),
                OUT(F64(DIMS(1, 2, 2), -5, 2, NAN, 3), INT(TY_I32, DIMS(1, 2, 2), 0, 1, 0, 4)));
    case_expect(TY_OP_POOL_MAX, pool_attr(1, 3, 3), IN(F64(DIMS(1, 1, 3), 7, NAN, 9)),
                OUT(F64(DIMS(1, 1, 1), NAN), INT(TY_I32, DIMS(1, 1, 1), 1)));
    case_expect(TY_OP_POOL_MAX, pool_attr(3, 2, 2), IN(F64(DIMS(1, 1, 2, 2, 2), 1, 2, 3, 4, 8, 7, 6, 5)),
                OUT(F64(DIMS(1, 1, 1, 1, 1), 8), INT(TY_I32, DIMS(1, 1, 1, 1, 1), 4)));
    case_expect(TY_OP_POOL_MAX, pool_attr(1, 2, 2), IN(INT(TY_U8, DIMS(1, 1, 4), 3, 250, 9, 9)),
                OUT(INT(TY_U8, DIMS(1, 1, 2), 250, 9), INT(TY_I32, DIMS(1, 1, 2), 1, 2)));
}

static void pool_max_grad_scatters(void **state)
{
    (void)state;
    ty_attr a = pool_attr(2, 2, 1);
    a.type = ty_type_make(TY_F64, DIMS(1, 1, 3, 3));
    case_expect(TY_OP_POOL_MAX_GRAD, a,
                IN(F64(DIMS(1, 1, 2, 2), 1, 2, 4, 8), INT(TY_I32, DIMS(1, 1, 2, 2), 4, 4, 4, 8)),
                OUT(F64(DIMS(1, 1, 3, 3), 0, 0, 0, 0, 7, 0, 0, 0, 8)));
    case_refused(TY_OP_POOL_MAX_GRAD, a, IN(TYPE(TY_F64, DIMS(1, 1, 2, 1)), TYPE(TY_I32, DIMS(1, 1, 2, 2))),
                 "dy: expected f64[1,1,2,2], found f64[1,1,2,1]");
    case_refused(TY_OP_POOL_MAX_GRAD, a, IN(TYPE(TY_F64, DIMS(1, 1, 2, 2)), TYPE(TY_I64, DIMS(1, 1, 2, 2))),
                 "index: expected i32[1,1,2,2]");
    case_no_value(TY_OP_POOL_MAX_GRAD, a,
                  IN(F64(DIMS(1, 1, 2, 2), 1, 2, 4, 8), INT(TY_I32, DIMS(1, 1, 2, 2), 4, 9, 4, 8)),
                  "index: expected 0 to 8, found 9 at element 1");
}

static void pool_sum_adds(void **state)
{
    (void)state;
    ty_ref x = F64(DIMS(1, 1, 3, 3), 1, 2, 3, 4, 5, 6, 7, 8, 9);
    case_expect(TY_OP_POOL_SUM, pool_attr(2, 2, 1), IN(x), OUT(F64(DIMS(1, 1, 2, 2), 12, 16, 24, 28)));
    ty_attr same = pool_attr(2, 3, 2);
    same.lo[0] = same.lo[1] = same.hi[0] = same.hi[1] = 1;
    case_expect(TY_OP_POOL_SUM, same, IN(x), OUT(F64(DIMS(1, 1, 2, 2), 12, 16, 24, 28)));
    ty_attr far = pool_attr(1, 1, 2); /* windows of padding alone sum to zero */
    far.hi[0] = 3;
    case_expect(TY_OP_POOL_SUM, far, IN(F64(DIMS(1, 1, 2), 5, 6)), OUT(F64(DIMS(1, 1, 3), 5, 0, 0)));
    ty_attr back = pool_attr(2, 2, 1);
    back.type = ty_type_make(TY_F64, DIMS(1, 1, 3, 3));
    case_expect(TY_OP_POOL_SUM_GRAD, back, IN(F64(DIMS(1, 1, 2, 2), 1, 2, 4, 8)),
                OUT(F64(DIMS(1, 1, 3, 3), 1, 3, 2, 5, 15, 10, 4, 12, 8)));
}

static void pool_refuses(void **state)
{
    ty_attr a = pool_attr(2, 4, 1), none = pool_attr(0, 1, 1), step = pool_attr(1, 1, 0), pad = pool_attr(1, 2, 1);
    (void)state;
    case_refused(TY_OP_POOL_SUM, a, IN(TYPE(TY_F32, DIMS(1, 1, 3, 3))), "window of at most 3 (the padded input)");
    case_refused(TY_OP_POOL_SUM, none, IN(TYPE(TY_F32, DIMS(1, 1))), "n: expected 1 to 3");
    case_refused(TY_OP_POOL_SUM, step, IN(TYPE(TY_F32, DIMS(1, 1, 3))), "step of spatial axis 0: expected 1");
    case_refused(TY_OP_POOL_SUM, a, IN(TYPE(TY_F32, DIMS(1, 3, 3))), "x: expected rank 4, found f32[1,3,3]");
    case_refused(TY_OP_POOL_SUM, a, IN(TYPE(TY_BOOL, DIMS(1, 1, 4, 4))), "number type, found bool");
    pad.hi[0] = 2;
    case_refused(TY_OP_POOL_MAX, pad, IN(TYPE(TY_F32, DIMS(1, 1, 3))), "every window to hold an input element");
    pad.hi[0] = -1;
    case_refused(TY_OP_POOL_MAX, pad, IN(TYPE(TY_F32, DIMS(1, 1, 3))), "high padding of spatial axis 0: expected 0");
    pad.hi[0] = INT64_MAX;
    case_refused(TY_OP_POOL_MAX, pad, IN(TYPE(TY_F32, DIMS(1, 1, 3))), "high padding");
    ty_attr gap = pool_attr(1, 2, 1); /* the taps at -1 and 2 step over both elements */
    gap.dil[0] = 3;
    gap.lo[0] = 1;
    gap.hi[0] = 1;
    case_refused(TY_OP_POOL_MAX, gap, IN(TYPE(TY_F32, DIMS(1, 1, 2))), "every window to hold an input element");
    gap.lo[0] = gap.hi[0] = 2; /* now only the middle one of three windows does */
    case_refused(TY_OP_POOL_MAX, gap, IN(TYPE(TY_F32, DIMS(1, 1, 2))), "every window to hold an input element");
    case_refused(TY_OP_POOL_MAX, pool_attr(2, 1, 1), IN(TYPE(TY_F32, DIMS(1, 1, 1 << 16, 1 << 16))), "spatial plane");
}

static void pool_gradients(void **state)
{
    ty_attr plain = pool_attr(2, 2, 2), over = pool_attr(2, 3, 2), line = pool_attr(1, 2, 1), cube = pool_attr(3, 2, 1);
    (void)state;
    over.lo[0] = over.hi[0] = over.hi[1] = 1;
    line.dil[0] = 3;
    const struct {
        ty_attr attr;
        gradcheck_input x;
    } row[] = {{plain, GRAD_IN(2, 2, 4, 5)},
               {over, GRAD_IN(1, 2, 5, 4)},
               {line, GRAD_IN(2, 1, 6)},
               {cube, GRAD_IN(1, 1, 3, 2, 3)}};
    for (size_t k = 0; k < sizeof row / sizeof row[0]; k++) {
        GRADCHECK_NODE("max", TY_OP_POOL_MAX, .attr = row[k].attr, .check = {.n_in = 1, .gap = 0.1, .in = {row[k].x}});
        GRADCHECK_NODE("sum", TY_OP_POOL_SUM, .attr = row[k].attr, .check = {.n_in = 1, .in = {row[k].x}});
    }
    ty_attr back = plain;
    back.type = ty_type_make(TY_F64, DIMS(1, 2, 4, 5));
    GRADCHECK_NODE("sum grad", TY_OP_POOL_SUM_GRAD, .attr = back, .check = {.n_in = 1, .in = {GRAD_IN(1, 2, 2, 2)}});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pool_gradients), cmocka_unit_test(pool_max_finds), cmocka_unit_test(pool_max_grad_scatters),
        cmocka_unit_test(pool_sum_adds),  cmocka_unit_test(pool_refuses),
    };
    return cmocka_run_group_tests_name("ops_window", tests, case_setup, case_teardown);
}
