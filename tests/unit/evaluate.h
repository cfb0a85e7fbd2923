/* evaluate.h - small helpers for tests that build graphs: values to numbers, and failing with the error's words. */
#ifndef TY_TESTS_EVALUATE_H
#define TY_TESTS_EVALUATE_H

#include "compiler/ir/build.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/ops/op.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SHAPE(...)                                                         \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) \
    {                                                                      \
        __VA_ARGS__                                                        \
    }

static inline void expect_ok(const ty_graph *g)
{
    ty_error err = {0};
    if (ty_graph_failed(g, &err))
        fail_msg("%s", err.message);
}

/* A new input of the graph. */
static inline ty_val new_input(ty_graph *g, ty_dtype dtype, int rank, const int64_t *dim)
{
    char name[16];
    snprintf(name, sizeof name, "x%d", ty_graph_n_inputs(g));
    return ty_b_input(g, ty_graph_add_input(g, name, ty_type_make(dtype, rank, dim)));
}

/* Runs the graph for v alone and copies its values (doubles or int64) into memory of the graph. */
static inline void *evaluate(ty_graph *g, ty_val v, const void *const *inputs, bool round)
{
    char name[32];
    ty_error err = {0};
    ty_interp *it;
    expect_ok(g);
    assert_int_not_equal(v, TY_NONE);
    snprintf(name, sizeof name, "evaluate %d", ty_graph_n_outputs(g));
    int out = ty_graph_add_output(g, name, v, TY_TAPE_EVAL);
    assert_int_equal(ty_interp_new(g, &it, &err), 0);
    if (ty_interp_run(it, TY_TAPE_EVAL, inputs, round, &err) < 0)
        fail_msg("%s", err.message);
    const ty_ref *r = ty_interp_output(it, out);
    assert_non_null(r);
    void *copy =
        ty_arena_copy(ty_graph_arena(g), r->f ? (void *)r->f : (void *)r->i, 8 * (size_t)ty_type_elems(&r->type));
    ty_interp_free(it);
    return copy;
}

static inline void expect_floats(ty_graph *g, ty_val v, const void *const *inputs, int n, const double *expected)
{
    const double *found = evaluate(g, v, inputs, false);
    assert_int_equal(ty_type_elems(ty_graph_type(g, v)), n);
    for (int k = 0; k < n; k++)
        if (found[k] != expected[k] && !(found[k] != found[k] && expected[k] != expected[k]))
            fail_msg("element %d: expected %.17g, found %.17g", k, expected[k], found[k]);
}

static inline void expect_ints(ty_graph *g, ty_val v, const void *const *inputs, int n, const int64_t *expected)
{
    const int64_t *found = evaluate(g, v, inputs, false);
    assert_int_equal(ty_type_elems(ty_graph_type(g, v)), n);
    for (int k = 0; k < n; k++)
        if (found[k] != expected[k])
            fail_msg("element %d: expected %lld, found %lld", k, (long long)expected[k], (long long)found[k]);
}

/* Both graphs by the interpreter without rounding: the outputs differ by the order of sums alone. */
static inline void expect_same_outputs(const ty_graph *before, const ty_graph *after, ty_tape tape,
                                       const void *const *inputs)
{
    const ty_graph *both[] = {before, after};
    ty_interp *it[2];
    ty_error err = {0};
    for (int k = 0; k < 2; k++)
        if (ty_interp_new(both[k], &it[k], &err) < 0 || ty_interp_run(it[k], tape, inputs, false, &err) < 0)
            fail_msg("%s", err.message);
    for (int o = 0; o < ty_graph_n_outputs(before); o++) {
        const ty_ref *a = ty_interp_output(it[0], o), *b = ty_interp_output(it[1], o);
        assert_true(ty_type_same(&a->type, &b->type));
        for (int64_t i = 0; i < ty_type_elems(&a->type); i++)
            if (!(fabs(a->f[i] - b->f[i]) <= 1e-9 * (1 + fabs(a->f[i]))))
                fail_msg("output %d, element %ld: expected %.12g, found %.12g", o, (long)i, a->f[i], b->f[i]);
    }
    ty_interp_free(it[0]);
    ty_interp_free(it[1]);
}

/* print, parse, print: the same text, and a sound graph. */
static inline void expect_round_trip(const ty_graph *g)
{
    ty_buf a, b;
    ty_graph *back;
    ty_error err = {0};
    ty_buf_init(&a, 1 << 28);
    ty_buf_init(&b, 1 << 28);
    assert_int_equal(ty_graph_print(g, &a, false), 0);
    if (ty_graph_parse(a.data, a.len, &back, &err) < 0)
        fail_msg("%s: %s\n%s", err.place, err.message, a.data);
    assert_int_equal(ty_graph_print(back, &b, false), 0);
    assert_string_equal(a.data, b.data);
    assert_int_equal(ty_graph_n_nodes(back), ty_graph_n_nodes(g));
    if (ty_graph_verify(back, &err) < 0)
        fail_msg("%s", err.message);
    ty_graph_free(back);
    ty_buf_fini(&a);
    ty_buf_fini(&b);
}

#endif
