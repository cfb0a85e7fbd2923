/* cut.c - where the guards of a loop change: at the borders of parts and pads, and of heads that lie side by side. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/kernel/kernel.h"

#include <string.h>

enum { EXTENT = 96, OTHER = 1 };

/* A kernel of one guard, lo <= x < hi. */
typedef struct one_guard {
    ty_kernel k;
    ty_kinstr guard;
    ty_ix var, other;
} one_guard;

static void begin(one_guard *g)
{
    memset(g, 0, sizeof *g);
    ty_arena_init(&g->k.arena);
    ty_ix_init(&g->k.ix, &g->k.arena);
    g->k.n_vars = 2;
    g->k.extent[0] = EXTENT;
    g->k.extent[OTHER] = 5;
    g->var = ty_ix_var(&g->k.ix, 0, EXTENT);
    g->other = ty_ix_var(&g->k.ix, OTHER, 5);
    g->k.instr = &g->guard;
    g->k.n_instrs = 1;
}

/* The loop over the variable is cut at at[n], between which the guard is what it is for each element. */
static void expect_cuts(one_guard *g, ty_ix x, int64_t lo, int64_t hi, int n, const int64_t *at)
{
    int64_t cut[TY_K_MAX_CUTS + 1];
    g->guard = (ty_kinstr){.kop = TY_K_INSIDE, .addr = x, .lo = lo, .hi = hi};
    assert_int_equal(ty_kernel_cuts(&g->k, 0, 0, cut), n);
    for (int i = 0; i <= n; i++)
        assert_int_equal(cut[i], at[i]);
}

#define AT(...)       \
    (const int64_t[]) \
    {                 \
        __VA_ARGS__   \
    }

static void parts(void **state)
{
    (void)state;
    one_guard g;
    begin(&g);
    expect_cuts(&g, ty_ix_add_const(&g.k.ix, g.var, -32), 0, 32, 3, AT(0, 32, 64, EXTENT));
    assert_int_equal(ty_kernel_guard(&g.k, &g.guard, 0, 0, 32), 0);
    assert_int_equal(ty_kernel_guard(&g.k, &g.guard, 0, 32, 64), 1);
    assert_int_equal(ty_kernel_guard(&g.k, &g.guard, 0, 31, 64), -1);
    assert_int_equal(ty_kernel_guard(&g.k, &g.guard, 0, 64, EXTENT), 0);
    expect_cuts(&g, ty_ix_add(&g.k.ix, g.var, g.other), 0, 32, 1, AT(0, EXTENT)); /* depends on more */
    ty_arena_fini(&g.k.arena);
}

/* floor((var + 5) / 16) - 1 is 1 for 27 <= var < 43, as division says for each element. */
static void heads(void **state)
{
    (void)state;
    one_guard g;
    begin(&g);
    ty_ix head = ty_ix_div(&g.k.ix, ty_ix_add_const(&g.k.ix, g.var, 5), 16);
    expect_cuts(&g, ty_ix_add_const(&g.k.ix, head, -1), 1, 2, 3, AT(0, 27, 43, EXTENT));
    for (int64_t v = 0; v < EXTENT; v++)
        assert_int_equal(ty_kernel_guard(&g.k, &g.guard, 0, v, v + 1), (v + 5) / 16 - 1 == 1);
    assert_int_equal(ty_kernel_guard(&g.k, &g.guard, 0, 26, 43), -1);
    expect_cuts(&g, ty_ix_div(&g.k.ix, g.var, 32), 0, 1, 2, AT(0, 32, EXTENT));
    expect_cuts(&g, ty_ix_mod(&g.k.ix, g.var, 32), 0, 1, 1, AT(0, EXTENT)); /* changes too often */
    expect_cuts(&g, ty_ix_div(&g.k.ix, g.other, 2), 0, 1, 1, AT(0, EXTENT));
    ty_ix both = ty_ix_add(&g.k.ix, g.var, g.other);
    expect_cuts(&g, ty_ix_div(&g.k.ix, both, 16), 0, 1, 1, AT(0, EXTENT));
    ty_arena_fini(&g.k.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts),
        cmocka_unit_test(heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
