/* adapt.c - low-rank adapters at products: the numbers of the matrix that they stand for, whichever way it is read. */
#include "base/rng.h"
#include "compiler/ir/build.h"
#include "compiler/ir/interpret.h"
#include "compiler/ops/ref.h"
#include "compiler/passes/adapt.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

enum { M = 5, K = 7, N = 6, RANK = 2, X = 0, W = 1, LEFT = 2, RIGHT = 3, N_INPUTS = 4, MOST = 64 };
static const double SCALE = 1.5;

/* A product of [M, K] and [K, N], one of which is W. */
typedef struct form {
    int side;              /* of W */
    bool trans_a, trans_b; /* how the product reads */
    bool turned;           /* W is turned in front of it */
} form;

/* The shape of an operand as it lies. */
static void shape_of(const form *f, int side, int64_t dim[2])
{
    bool trans = side == 0 ? f->trans_a : f->trans_b;
    int64_t rows = side == 0 ? M : K, columns = side == 0 ? K : N;
    bool swaps = trans != (side == f->side && f->turned);
    dim[0] = swaps ? columns : rows;
    dim[1] = swaps ? rows : columns;
}

static void add_inputs(ty_graph *g, const form *f, ty_val v[N_INPUTS])
{
    int64_t x[2], w[2];
    shape_of(f, 1 - f->side, x);
    shape_of(f, f->side, w);
    const int64_t left[] = {w[0], RANK}, right[] = {RANK, w[1]}, *dims[] = {x, w, left, right};
    const char *const names[] = {"x", "w", "left", "right"};
    for (int i = 0; i < N_INPUTS; i++)
        v[i] = ty_b_input(g, ty_graph_add_input(g, names[i], ty_type_make(TY_F32, 2, dims[i])));
}

static ty_val product(ty_graph *g, const form *f, ty_val x, ty_val w)
{
    const int64_t swap[] = {1, 0};
    ty_val matrix = f->turned ? ty_b_transpose(g, w, swap) : w;
    return ty_b_dot(g, f->side == 0 ? matrix : x, f->side == 0 ? x : matrix, f->trans_a, f->trans_b);
}

/* The graph with adapters; or the same by the sum that they stand for. */
static ty_graph *make(const form *f, bool adapts, ty_adapter *a)
{
    ty_val from[N_INPUTS], to[N_INPUTS], held;
    ty_graph *in = ty_graph_new(), *out = ty_graph_new();
    ty_error err = {0};
    add_inputs(in, f, from);
    add_inputs(out, f, to);
    *a = (ty_adapter){.weight = W, .left = LEFT, .right = RIGHT, .scale = SCALE};
    if (adapts) {
        held = product(in, f, from[X], from[W]);
        assert_int_equal(ty_pass_adapt(in, out, to, a, 1, &held, 1, &err), 0);
    } else {
        ty_val low = ty_b_mul_s(out, ty_b_dot(out, to[LEFT], to[RIGHT], false, false), SCALE);
        held = product(out, f, to[X], ty_b_add(out, to[W], low));
    }
    ty_graph_add_output(out, "y", held, TY_TAPE_EVAL);
    ty_graph_free(in);
    return out;
}

static void run(const ty_graph *g, double out[M * N])
{
    float values[N_INPUTS][MOST];
    const void *inputs[N_INPUTS];
    ty_interp *t = NULL;
    ty_error err = {0};
    for (int i = 0; i < N_INPUTS; i++) {
        for (int k = 0; k < MOST; k++)
            values[i][k] = ty_rng_uniform(ty_rng_u32(5, (uint32_t)i, 0, (uint64_t)k)) - 0.5f;
        inputs[i] = values[i];
    }
    assert_int_equal(ty_interp_new(g, &t, &err), 0);
    assert_int_equal(ty_interp_run(t, TY_TAPE_EVAL, inputs, false, &err), 0);
    const ty_ref *y = ty_interp_output(t, 0);
    assert_int_equal(ty_type_elems(&y->type), M * N);
    for (int i = 0; i < M * N; i++)
        out[i] = y->f[i];
    ty_interp_free(t);
}

static void every_way_to_read_a_matrix(void **state)
{
    (void)state;
    for (int bits = 0; bits < 16; bits++) {
        const form f = {bits & 1, bits & 2, bits & 4, bits & 8};
        double found[M * N], expected[M * N];
        ty_adapter a;
        ty_graph *adapted = make(&f, true, &a);
        assert_true(a.is_met && !a.is_read_by_others);
        /* What the product sums over has K elements. */
        int64_t w[2];
        shape_of(&f, f.side, w);
        assert_int_equal(w[a.sums_rows ? 0 : 1], K);
        ty_graph *summed = make(&f, false, &a);
        run(adapted, found);
        run(summed, expected);
        for (int i = 0; i < M * N; i++)
            if (!(fabs(found[i] - expected[i]) <= 1e-12))
                fail_msg("form %d, element %d: expected %.9g, found %.9g", bits, i, expected[i], found[i]);
        ty_graph_free(adapted);
        ty_graph_free(summed);
    }
}

/* What else reads the matrix is told; a graph that does not read it in a product stays as it is. */
static void other_readers_are_told(void **state)
{
    (void)state;
    for (int what = 0; what < 3; what++) {
        const form f = {.side = 1};
        ty_val from[N_INPUTS], to[N_INPUTS], held[2];
        ty_graph *in = ty_graph_new(), *out = ty_graph_new();
        ty_error err = {0};
        ty_adapter a = {.weight = W, .left = LEFT, .right = RIGHT, .scale = SCALE};
        const int64_t swap[] = {1, 0};
        add_inputs(in, &f, from);
        add_inputs(out, &f, to);
        held[0] = what == 0 ? TY_NONE : product(in, &f, from[X], from[W]);
        held[1] = what == 1 ? TY_NONE : ty_b_mul_s(in, what == 2 ? ty_b_transpose(in, from[W], swap) : from[W], 2);
        assert_int_equal(ty_pass_adapt(in, out, to, &a, 1, held, 2, &err), 0);
        assert_int_equal(a.is_met, what != 0);
        assert_int_equal(a.is_read_by_others, what != 1);
        assert_int_equal(held[0] == TY_NONE, what == 0);
        ty_graph_free(in);
        ty_graph_free(out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_to_read_a_matrix),
        cmocka_unit_test(other_readers_are_told),
    };
    return cmocka_run_group_tests_name("adapt", tests, NULL, NULL);
}
