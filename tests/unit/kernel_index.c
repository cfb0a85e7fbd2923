/* kernel_index.c - index expressions: what the constructors make of quotients and remainders, and that the normal form
 * has the value that was meant, for all values of the variables. */
#include "base/rng.h"
#include "compiler/kernel/index.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

enum { N_VARS = 3 };
static const int64_t extents[N_VARS] = {6, 8, 5};

static int64_t value_of(const ty_ix_pool *p, ty_ix a, const int64_t *var)
{
    const ty_ix_node *node = ty_ix_at(p, a);
    int64_t sum = node->c;
    for (int i = 0; i < node->n_terms; i++) {
        const ty_atom *atom = &p->atom[node->term[i].atom];
        int64_t v = atom->kind == TY_ATOM_VAR   ? var[atom->arg]
                    : atom->kind == TY_ATOM_DIV ? value_of(p, atom->arg, var) / atom->d
                                                : value_of(p, atom->arg, var) % atom->d;
        assert_true(v >= atom->lo && v <= atom->hi);
        sum += node->term[i].coef * v;
    }
    assert_true(sum >= node->lo && sum <= node->hi);
    return sum;
}

static ty_ix var(ty_ix_pool *p, uint32_t i)
{
    return ty_ix_var(p, i, extents[i]);
}

/* a i + b j */
static ty_ix pair(ty_ix_pool *p, int64_t a, uint32_t i, int64_t b, uint32_t j)
{
    return ty_ix_add(p, ty_ix_mul(p, var(p, i), a), ty_ix_mul(p, var(p, j), b));
}

static void quotients_and_remainders(void **state)
{
    (void)state;
    ty_arena arena;
    ty_ix_pool p;
    ty_arena_init(&arena);
    ty_ix_init(&p, &arena);
    ty_ix i = var(&p, 0), j = var(&p, 1), x = pair(&p, 8, 0, 1, 1);
    assert_int_equal(ty_ix_div(&p, x, 8), i);
    assert_int_equal(ty_ix_mod(&p, x, 8), j);
    assert_int_equal(ty_ix_div(&p, x, 16), ty_ix_div(&p, i, 2));
    assert_int_equal(ty_ix_mod(&p, x, 16), ty_ix_add(&p, ty_ix_mul(&p, ty_ix_mod(&p, i, 2), 8), j));
    assert_int_equal(ty_ix_div(&p, ty_ix_div(&p, x, 16), 2), ty_ix_div(&p, i, 4));
    assert_int_equal(ty_ix_add(&p, ty_ix_mul(&p, ty_ix_div(&p, x, 24), 24), ty_ix_mod(&p, x, 24)), x);
    ty_arena_fini(&arena);
}

static uint32_t draw(uint64_t at, uint32_t n)
{
    return ty_rng_u32(7, 0, 0, at) % n;
}

/* Chains of products, sums, quotients and remainders, followed in plain numbers. */
static void random_chains(void **state)
{
    (void)state;
    for (uint64_t trial = 0; trial < 400; trial++) {
        ty_arena arena;
        ty_ix_pool p;
        ty_arena_init(&arena);
        ty_ix_init(&p, &arena);
        for (int64_t v[N_VARS] = {0}; v[0] < extents[0]; v[0]++)
            for (v[1] = 0; v[1] < extents[1]; v[1]++)
                for (v[2] = 0; v[2] < extents[2]; v[2]++) {
                    ty_ix a = ty_ix_const(&p, 0);
                    int64_t want = 0;
                    for (uint64_t k = 0; k < 8; k++) {
                        uint64_t at = trial * 32 + k * 3;
                        int64_t n = 1 + draw(at + 1, 12);
                        uint32_t i = draw(at + 2, N_VARS);
                        switch (draw(at, 4)) {
                        case 0:
                            a = ty_ix_div(&p, a, n);
                            want /= n;
                            break;
                        case 1:
                            a = ty_ix_mod(&p, a, 2 * n);
                            want %= 2 * n;
                            break;
                        default:
                            a = ty_ix_add(&p, ty_ix_mul(&p, a, n), var(&p, i));
                            want = want * n + v[i];
                        }
                    }
                    if (value_of(&p, a, v) != want)
                        fail_msg("chain %d: expected %lld, found %lld", (int)trial, (long long)want,
                                 (long long)value_of(&p, a, v));
                }
        ty_arena_fini(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(quotients_and_remainders), cmocka_unit_test(random_chains)};
    return cmocka_run_group_tests_name("kernel_index", tests, NULL, NULL);
}
