/* Index expressions: what the constructors simplify has the value of what was written, and rows lose their columns. */
#include "compiler/kernel/index.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

enum { N_VARS = 3 };

static int64_t value(const ty_ix_pool *p, ty_ix a, const int64_t *var)
{
    const ty_ix_node *node = ty_ix_at(p, a);
    int64_t sum = node->c;
    for (int i = 0; i < node->n_terms; i++) {
        const ty_atom *atom = &p->atom[node->term[i].atom];
        int64_t v = atom->kind == TY_ATOM_VAR   ? var[atom->arg]
                    : atom->kind == TY_ATOM_DIV ? value(p, atom->arg, var) / atom->d
                                                : value(p, atom->arg, var) % atom->d;
        sum += node->term[i].coef * v;
    }
    return sum;
}

/* c0 v0 + c1 v1 + c2 v2 + c */
static ty_ix linear(ty_ix_pool *p, const int64_t *extent, const int64_t *coef, int64_t c)
{
    ty_ix sum = ty_ix_const(p, c);
    for (uint32_t i = 0; i < N_VARS; i++)
        sum = ty_ix_add(p, sum, ty_ix_mul(p, ty_ix_var(p, i, extent[i]), coef[i]));
    return sum;
}

static void columns_leave_the_division_of_rows(void **state)
{
    (void)state;
    const int64_t extent[N_VARS] = {64, 32, 1152}, coef[N_VARS] = {36864, 1152, 1};
    ty_arena arena;
    ty_ix_pool p;
    ty_arena_init(&arena);
    ty_ix_init(&p, &arena);
    ty_ix a = linear(&p, extent, coef, 0), rows = ty_ix_div(&p, a, 294912);
    assert_int_equal(ty_ix_at(&p, rows)->vars, 1); /* (32 v0 + v1) / 256 is v0 / 8 */
    bool inside = false;
    assert_int_equal(ty_ix_coef(&p, ty_ix_mod(&p, a, 294912), 2, &inside), 1); /* 1152 (... mod 256) + v2 */
    assert_false(inside);
    ty_arena_fini(&arena);
}

static void simplified_is_equal(void **state)
{
    (void)state;
    static const int64_t extent[N_VARS] = {5, 4, 6};
    static const int64_t coefs[][N_VARS] = {{24, 6, 1}, {12, 6, 1}, {24, 6, 2}, {30, 5, 1}, {6, 24, 1},
                                            {1, 5, 20}, {7, 3, 2},  {0, 8, 1},  {4, 4, 4},  {18, 6, 3}};
    static const int64_t divisors[] = {2, 3, 6, 8, 12, 24, 48, 30, 36, 120};
    for (size_t k = 0; k < sizeof coefs / sizeof *coefs; k++)
        for (size_t d = 0; d < sizeof divisors / sizeof *divisors; d++)
            for (int64_t c = 0; c < 14; c++) {
                ty_arena arena;
                ty_ix_pool p;
                ty_arena_init(&arena);
                ty_ix_init(&p, &arena);
                ty_ix a = linear(&p, extent, coefs[k], c);
                ty_ix div = ty_ix_div(&p, a, divisors[d]), mod = ty_ix_mod(&p, a, divisors[d]);
                for (int64_t i = 0; i < extent[0] * extent[1] * extent[2]; i++) {
                    const int64_t var[N_VARS] = {i / 24, i / 6 % 4, i % 6};
                    const int64_t x = coefs[k][0] * var[0] + coefs[k][1] * var[1] + coefs[k][2] * var[2] + c;
                    assert_int_equal(value(&p, div, var), x / divisors[d]);
                    assert_int_equal(value(&p, mod, var), x % divisors[d]);
                }
                ty_arena_fini(&arena);
            }
}

/* What is looked at moves while expressions are made of it, wherever it has no room for one more. */
static void expressions_grow_while_they_are_read(void **state)
{
    (void)state;
    for (int others = 0; others < 140; others++) {
        ty_arena arena;
        ty_ix_pool p;
        ty_arena_init(&arena);
        ty_ix_init(&p, &arena);
        for (int i = 0; i < others; i++)
            ty_ix_const(&p, 1000 + i);
        ty_ix x = ty_ix_var(&p, 0, 60), rest = ty_ix_add_const(&p, ty_ix_mod(&p, x, 7), 3);
        ty_ix sum = ty_ix_add(&p, rest, ty_ix_const(&p, 2)); /* is rest, or x / 7 of it, in there? */
        ty_ix whole = ty_ix_add(&p, sum, ty_ix_mul(&p, ty_ix_div(&p, x, 7), 7));
        assert_int_equal(value(&p, sum, (int64_t[]){30}), 30 % 7 + 5);
        assert_int_equal(whole, ty_ix_add_const(&p, x, 5));
        ty_arena_fini(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_leave_the_division_of_rows),
        cmocka_unit_test(simplified_is_equal),
        cmocka_unit_test(expressions_grow_while_they_are_read),
    };
    return cmocka_run_group_tests_name("index", tests, NULL, NULL);
}
