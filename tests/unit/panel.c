/* panel.c - how panels lie (compiler/target/cpu/panel.h), for every kind of loop that this machine has. */
#include "compiler/target/cpu/panel.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { DEPTH = 19, STEP = 45 };

static float number_at(int64_t i, int64_t j)
{
    return (float)(100 * i + j + 1);
}

/* Element (i, j) is the matrix's for i < k and j < n, zero in the other columns; rows behind k are as they were. */
static void expect_panel(const char *kind, const float *panel, int strip, int64_t k, int64_t n)
{
    for (int64_t i = 0; i < DEPTH; i++)
        for (int64_t j = 0; j < TY_PANEL; j++) {
            float found = panel[(j / strip * DEPTH + i) * strip + j % strip];
            float expected = j < n ? number_at(i, j) : 0;
            if (i < k ? found != expected : !isnan(found))
                fail_msg("%s, %lld x %lld, (%lld, %lld): expected %g, found %g", kind, (long long)k, (long long)n,
                         (long long)i, (long long)j, (double)expected, (double)found);
        }
}

static void expect_packed(const ty_panel_kernels *kernels, int64_t k, int64_t n)
{
    float b[STEP * STEP], turned[STEP * STEP], panel[DEPTH * TY_PANEL];
    for (int64_t i = 0; i < STEP; i++)
        for (int64_t j = 0; j < STEP; j++)
            b[i * STEP + j] = turned[j * STEP + i] = number_at(i, j);
    memset(panel, 0xFF, sizeof panel); /* NaN */
    kernels->pack(panel, DEPTH, b, STEP, k, n);
    expect_panel(kernels->name, panel, kernels->strip, k, n);
    memset(panel, 0xFF, sizeof panel);
    kernels->pack_turned(panel, DEPTH, turned, STEP, k, n);
    expect_panel(kernels->name, panel, kernels->strip, k, n);
}

static void panels_are_filled_up(void **state)
{
    (void)state;
    const ty_panel_kernels *kernels[TY_PANEL_KINDS];
    int kinds = ty_panel_usable(kernels);
    for (int i = 0; i < kinds; i++)
        for (int64_t k = 1; k <= DEPTH; k++)
            for (int64_t n = 1; n <= TY_PANEL; n++)
                expect_packed(kernels[i], k, n);
}

static void columns_make_panels(void **state)
{
    (void)state;
    assert_int_equal(ty_panels_of(1), 1);
    assert_int_equal(ty_panels_of(TY_PANEL), 1);
    assert_int_equal(ty_panels_of(TY_PANEL + 1), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(panels_are_filled_up),
        cmocka_unit_test(columns_make_panels),
    };
    return cmocka_run_group_tests_name("panel", tests, NULL, NULL);
}
