/* index.c - index expressions: what the constructors make of quotients and remainders, and that the normal form has the
 * value that was meant, for all values of the variables. */
#include "base/rng.h"
#include "compiler/kernel/index.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
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
        assert_true(v >= atom->lo && v <= atom->hi);
        sum += node->term[i].coef * v;
    }
    assert_true(sum >= node->lo && sum <= node->hi);
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

static const int64_t extents[N_VARS] = {6, 8, 5};

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
                    if (value(&p, a, v) != want)
                        fail_msg("chain %d: expected %lld, found %lld", (int)trial, (long long)want,
                                 (long long)value(&p, a, v));
                }
        ty_arena_fini(&arena);
    }
}

/* Behind a guard a variable's range is known: what its quotients and remainders come to as well. */
static void limits(void **state)
{
    (void)state;
    ty_arena arena;
    ty_ix_pool p;
    ty_arena_init(&arena);
    ty_ix_init(&p, &arena);
    ty_ix i = ty_ix_var(&p, 0, 4), j = ty_ix_var(&p, 1, 2304);
    for (int64_t part = 0; part < 3; part++) {
        ty_ix in = ty_ix_limit(&p, ty_ix_add_const(&p, j, -768 * part), 768);
        assert_int_equal(ty_ix_at(&p, in)->lo, 0);
        assert_int_equal(ty_ix_at(&p, in)->hi, 767);
        assert_int_equal(ty_ix_limit(&p, in, 768), in);
        ty_ix flat = ty_ix_add(&p, ty_ix_mul(&p, i, 768), in);
        assert_int_equal(ty_ix_div(&p, flat, 768), i);
        assert_int_equal(ty_ix_mod(&p, flat, 768), in);
        ty_ix head = ty_ix_div(&p, in, 64);
        assert_int_equal(ty_ix_at(&p, head)->lo, 0);
        assert_int_equal(ty_ix_at(&p, head)->hi, 11);
        assert_int_equal(ty_ix_mod(&p, head, 12), head);
        bool inside = false;
        assert_int_equal(ty_ix_coef(&p, in, 1, &inside), 1);
        assert_false(inside);
    }
    assert_int_equal(ty_ix_limit(&p, j, 2304), j);                                  /* known already */
    assert_int_equal(ty_ix_limit(&p, ty_ix_mul(&p, j, 2), 7), ty_ix_mul(&p, j, 2)); /* no variable alone */
    /* a head's 192 are q, k and v: behind the guard of k's part 16 of its 64 are turned by eights */
    ty_ix head = ty_ix_mod(&p, j, 192), turned = ty_ix_limit(&p, ty_ix_add_const(&p, head, -64), 16);
    assert_int_equal(ty_ix_at(&p, turned)->lo, 0);
    assert_int_equal(ty_ix_at(&p, turned)->hi, 15);
    assert_int_equal(ty_ix_div(&p, turned, 16), ty_ix_const(&p, 0));
    assert_int_equal(ty_ix_mod(&p, turned, 16), turned);
    assert_int_equal(ty_ix_at(&p, ty_ix_mod(&p, j, 192))->hi, 191); /* elsewhere it is what it was */
    ty_ix first = ty_ix_limit(&p, j, 8), second = ty_ix_limit(&p, ty_ix_add_const(&p, j, -1), 7); /* with one end */
    assert_int_equal(ty_ix_at(&p, first)->hi, 7);
    assert_int_equal(ty_ix_at(&p, second)->lo, 0);
    assert_int_equal(ty_ix_at(&p, second)->hi, 6);
    ty_arena_fini(&arena);
}

/* A variable, or in some trials a remainder of one: what it is as a number. */
static ty_ix limited_of(ty_ix_pool *p, uint32_t k, int64_t times, int64_t d)
{
    return d ? ty_ix_mod(p, ty_ix_mul(p, var(p, k), times), d) : var(p, k);
}
static int64_t number_of(int64_t v, int64_t times, int64_t d)
{
    return d ? v * times % d : v;
}

/* Sums of limited variables and remainders, followed in plain numbers wherever the guards hold. */
static void random_limits(void **state)
{
    (void)state;
    for (uint64_t trial = 0; trial < 400; trial++) {
        ty_arena arena;
        ty_ix_pool p;
        ty_arena_init(&arena);
        ty_ix_init(&p, &arena);
        ty_ix a = ty_ix_const(&p, 0), one[N_VARS];
        int64_t lo[N_VARS], n[N_VARS], coef[N_VARS], times[N_VARS], m[N_VARS];
        for (uint32_t k = 0; k < N_VARS; k++) {
            uint64_t at = trial * 32 + k * 4;
            times[k] = 1 + draw(at + 3, 5);
            m[k] = draw(at + 3 + (1 << 20), 2) ? 2 + draw(at + 3 + (2 << 20), 10) : 0;
            int64_t extent = m[k] ? m[k] : extents[k];
            lo[k] = draw(at, (uint32_t)extent);
            n[k] = 1 + draw(at + 1, (uint32_t)(extent - lo[k]));
            coef[k] = draw(at + 2, 20);
            one[k] = ty_ix_limit(&p, ty_ix_add_const(&p, limited_of(&p, k, times[k], m[k]), -lo[k]), n[k]);
            a = ty_ix_add(&p, a, ty_ix_mul(&p, one[k], coef[k]));
        }
        int64_t d = 1 + draw(trial * 32 + 20, 12), e = 1 + draw(trial * 32 + 21, 12);
        ty_ix div = ty_ix_div(&p, a, d), mod = ty_ix_mod(&p, a, d);
        ty_ix both = ty_ix_div(&p, ty_ix_add(&p, ty_ix_mul(&p, div, e), mod), e);
        for (int64_t i = 0; i < extents[0] * extents[1] * extents[2]; i++) {
            const int64_t v[N_VARS] = {i / extents[2] / extents[1], i / extents[2] % extents[1], i % extents[2]};
            int64_t x = 0;
            bool holds = true;
            for (int k = 0; k < N_VARS; k++) {
                int64_t is = number_of(v[k], times[k], m[k]);
                x += coef[k] * (is - lo[k]);
                holds &= is >= lo[k] && is < lo[k] + n[k];
            }
            if (!holds)
                continue;
            assert_int_equal(value(&p, div, v), x / d);
            assert_int_equal(value(&p, mod, v), x % d);
            assert_int_equal(value(&p, both, v), (x / d * e + x % d) / e);
        }
        ty_arena_fini(&arena);
    }
}

/* What is added to a pool and to its copy, in turn, stays apart, and what both had keeps its id. */
static void copies_grow_apart(void **state)
{
    (void)state;
    enum { MANY = 100 };
    const int64_t v[N_VARS] = {3, 0, 0};
    ty_arena arena;
    ty_ix_pool pool[2];
    ty_ix id[2][MANY];
    ty_arena_init(&arena);
    ty_ix_init(&pool[0], &arena);
    ty_ix i = ty_ix_var(&pool[0], 0, 10), both = ty_ix_mod(&pool[0], ty_ix_mul(&pool[0], i, 3), 7);
    ty_ix_copy(&pool[0], &arena, &pool[1]);
    const void *before = ty_arena_copy(&arena, pool[0].table, sizeof *pool[0].table * pool[0].table_cap);
    ty_ix_const(&pool[1], 77);
    assert_memory_equal(pool[0].table, before, sizeof *pool[0].table * pool[0].table_cap);
    for (int k = 0; k < MANY; k++)
        for (int p = 0; p < 2; p++)
            id[p][k] = ty_ix_mod(&pool[p], ty_ix_mul(&pool[p], i, 3), 10 + 2 * k + p);
    for (int k = 0; k < MANY; k++)
        for (int p = 0; p < 2; p++)
            assert_int_equal(value(&pool[p], id[p][k], v), 9 % (10 + 2 * k + p));
    for (int p = 0; p < 2; p++) {
        assert_int_equal(ty_ix_mod(&pool[p], ty_ix_mul(&pool[p], i, 3), 7), both);
        assert_int_equal(value(&pool[p], both, v), 2);
    }
    ty_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_leave_the_division_of_rows),
        cmocka_unit_test(simplified_is_equal),
        cmocka_unit_test(expressions_grow_while_they_are_read),
        cmocka_unit_test(quotients_and_remainders),
        cmocka_unit_test(random_chains),
        cmocka_unit_test(limits),
        cmocka_unit_test(random_limits),
        cmocka_unit_test(copies_grow_apart),
    };
    return cmocka_run_group_tests_name("index", tests, NULL, NULL);
}
