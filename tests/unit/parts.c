/* parts.c - the gradients of slices, put together where they fill what was cut; their numbers. */
#include "compiler/passes/passes.h"

#include "tests/unit/evaluate.h"

enum { ROWS = 6, COLUMNS = 3 };

typedef struct parts_case {
    const char *name;
    int axis, n;
    int64_t at[5][2]; /* from, to */
    bool ends_behind; /* x has an axis of one in front */
    int sums;         /* of the gradient that stay */
} parts_case;

static const parts_case cases[] = {
    {"all rows", 0, 3, {{0, 2}, {2, 3}, {3, 6}}, false, 0},
    {"in any order", 0, 4, {{3, 4}, {0, 2}, {4, 6}, {2, 3}}, false, 0},
    {"behind an axis of one", 1, 2, {{0, 4}, {4, 6}}, true, 0},
    {"with a gap", 0, 2, {{0, 2}, {3, 6}}, false, 1},
    {"not to the end", 0, 2, {{0, 2}, {2, 5}}, false, 1},
    {"one over the other", 0, 3, {{0, 3}, {2, 4}, {4, 6}}, false, 2},
    {"twice, which is one", 0, 3, {{0, 3}, {3, 6}, {0, 3}}, false, 0},
    {"columns", 1, 3, {{0, 1}, {1, 2}, {2, 3}}, false, 2},
};

static int sums_of(const ty_graph *g, ty_val v)
{
    int n = 0;
    while (ty_graph_op(g, ty_val_node(v)) == TY_OP_ADD) {
        n++;
        ty_val a = ty_graph_in(g, ty_val_node(v), 0), b = ty_graph_in(g, ty_val_node(v), 1);
        v = ty_graph_op(g, ty_val_node(a)) == TY_OP_ADD ? a : b;
    }
    return n;
}

/* The loss is the sum over parts k of (k + 1) times the squares of what is in them; y = 2 x behind which it is cut. */
static void slices_give_their_gradients(void **state)
{
    (void)state;
    float x[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = (float)(i + 1) / 4;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const parts_case *c = &cases[i];
        double want[ROWS * COLUMNS] = {0};
        ty_graph *g = ty_graph_new();
        ty_val in =
            c->ends_behind ? new_input(g, TY_F32, SHAPE(1, ROWS, COLUMNS)) : new_input(g, TY_F32, SHAPE(ROWS, COLUMNS));
        ty_val y = ty_b_mul_s(g, in, 2), loss = TY_NONE, grad;
        for (int k = 0; k < c->n; k++) {
            ty_val part = ty_b_square(g, ty_b_slice_axis(g, y, c->axis, c->at[k][0], c->at[k][1]));
            part = ty_b_mul_s(g, ty_b_sum(g, part, ty_b_all_axes(g, part), false), k + 1);
            loss = k ? ty_b_add(g, loss, part) : part;
            for (int e = 0; e < ROWS * COLUMNS; e++) {
                int at = c->axis == 0 || c->ends_behind ? e / COLUMNS : e % COLUMNS;
                if (at >= c->at[k][0] && at < c->at[k][1])
                    want[e] += 8 * (k + 1) * (double)x[e];
            }
        }
        ty_error err = {0};
        if (ty_pass_autodiff(g, loss, &in, 1, &grad, &err) < 0)
            fail_msg("%s: %s", c->name, err.message);
        ty_val dy = ty_graph_in(g, ty_val_node(grad), 0);
        if (sums_of(g, dy) != c->sums)
            fail_msg("%s: %d sums, expected %d", c->name, sums_of(g, dy), c->sums);
        assert_int_equal(ty_graph_op(g, ty_val_node(dy)) == TY_OP_CONCAT, c->sums == 0);
        expect_floats(g, grad, (const void *const[]){x}, ROWS * COLUMNS, want);
        ty_graph_free(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(slices_give_their_gradients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
