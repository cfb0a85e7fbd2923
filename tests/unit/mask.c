/* The mask pass: gradients of ReLUs ask their result, nothing else changes, and the numbers stay, NaN and all. */
#include "tests/unit/evaluate.h"

#include "compiler/passes/passes.h"

#include <math.h>

enum { N = 6 };

static const double numbers[N] = {-2, -0.0, 0.0, 1.5, NAN, -INFINITY};
static const double slopes[N] = {1, 2, 3, 4, 5, 6};

typedef struct masked {
    ty_graph *before, *after;
} masked;

/* relu(x) and its gradient; `what` 0: x <= 0 as autodiff asks, 1: of another value, 2: x < 0, 3: the gradient alone. */
static masked mask_graph(int what)
{
    masked m = {ty_graph_new(), NULL};
    ty_graph *g = m.before;
    ty_error err = {0};
    ty_val x = new_input(g, TY_F64, SHAPE(N)), dy = new_input(g, TY_F64, SHAPE(N));
    ty_val zero = ty_b_full_like(g, x, 0), other = ty_b_exp(g, x);
    ty_val y = ty_b_select(g, ty_b_le(g, x, zero), zero, x);
    ty_val asked = what == 1 ? ty_b_le(g, other, zero) : what == 2 ? ty_b_lt(g, x, zero) : ty_b_le(g, x, zero);
    if (what != 3)
        ty_graph_add_output(g, "y", y, TY_TAPE_EVAL);
    ty_graph_add_output(g, "dx", ty_b_select(g, asked, zero, dy), TY_TAPE_EVAL);
    expect_ok(g);
    if (ty_pass_mask(g, &m.after, &err) < 0)
        fail_msg("%s", err.message);
    if (ty_graph_verify(m.after, &err) < 0)
        fail_msg("%s", err.message);
    return m;
}

/* What the condition of output "dx" asks about. */
static ty_op asked_of(const ty_graph *g)
{
    ty_val dx = ty_graph_output(g, ty_graph_n_outputs(g) - 1)->val;
    uint32_t cond = ty_val_node(ty_graph_in(g, ty_val_node(dx), 0));
    return ty_graph_op(g, ty_val_node(ty_graph_in(g, cond, 0)));
}

static void outputs_of(const ty_graph *g, double *out)
{
    ty_interp *it;
    ty_error err = {0};
    assert_int_equal(ty_interp_new(g, &it, &err), 0);
    assert_int_equal(ty_interp_run(it, TY_TAPE_EVAL, (const void *[]){numbers, slopes}, false, &err), 0);
    for (int o = 0; o < ty_graph_n_outputs(g); o++)
        memcpy(out + o * N, ty_interp_output(it, o)->f, sizeof(double) * N);
    ty_interp_free(it);
}

static void expect_same_bits(const masked *m)
{
    double a[2 * N] = {0}, b[2 * N] = {0};
    outputs_of(m->before, a);
    outputs_of(m->after, b);
    assert_memory_equal(a, b, sizeof a);
}

static void gradients_ask_the_result(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        ty_op asked;
    } rows[] = {{"the ReLU's own question", TY_OP_SELECT},
                {"another value", TY_OP_EXP},
                {"another question", TY_OP_INPUT},
                {"no ReLU that stays", TY_OP_INPUT}};
    for (int i = 0; i < 4; i++) {
        masked m = mask_graph(i);
        if (asked_of(m.after) != rows[i].asked)
            fail_msg("%s: asked of %s", rows[i].what, ty_op_row_of(asked_of(m.after))->text);
        expect_same_bits(&m);
        ty_graph_free(m.before);
        ty_graph_free(m.after);
    }
}

/* Overlapping windows, some without a positive element, ties and NaN: the mask moves in front of the pool's gradient.
 */
static void maxima_answer_for_their_operand(void **state)
{
    (void)state;
    static const double x_data[10] = {-1, -2, -0.0, 3, 3, -5, NAN, 2, -7, -8}, dy_data[5] = {1, 2, 4, 8, 16};
    double found[2][10];
    ty_graph *g = ty_graph_new(), *after;
    ty_error err = {0};
    ty_val x = new_input(g, TY_F64, SHAPE(1, 1, 10)), dy = new_input(g, TY_F64, SHAPE(1, 1, 5));
    ty_val zero = ty_b_full_like(g, x, 0), asked = ty_b_le(g, x, zero), y = ty_b_select(g, asked, zero, x);
    ty_attr pool = {.n = 1, .size = {3}, .step = {2}, .dil = {1}, .lo = {1}};
    ty_val max = ty_graph_emit(g, TY_OP_POOL_MAX, &pool, &y, 1);
    pool.type = *ty_graph_type(g, x);
    ty_val index = ty_val_make(ty_val_node(max), 1);
    ty_val grad = ty_graph_emit(g, TY_OP_POOL_MAX_GRAD, &pool, (ty_val[]){dy, index}, 2);
    ty_graph_add_output(g, "y", max, TY_TAPE_EVAL);
    ty_graph_add_output(g, "dx", ty_b_select(g, asked, zero, grad), TY_TAPE_EVAL);
    expect_ok(g);
    assert_int_equal(ty_pass_mask(g, &after, &err), 0);
    assert_int_equal(ty_graph_op(after, ty_val_node(ty_graph_output(after, 1)->val)), TY_OP_POOL_MAX_GRAD);
    for (int k = 0; k < 2; k++) {
        ty_interp *it;
        assert_int_equal(ty_interp_new(k ? after : g, &it, &err), 0);
        assert_int_equal(ty_interp_run(it, TY_TAPE_EVAL, (const void *[]){x_data, dy_data}, false, &err), 0);
        memcpy(found[k], ty_interp_output(it, 1)->f, sizeof found[k]);
        ty_interp_free(it);
    }
    for (int i = 0; i < 10; i++)
        assert_true(found[0][i] == found[1][i]);
    assert_true(found[0][3] + found[0][4] + found[0][6] > 0);
    ty_graph_free(g);
    ty_graph_free(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_ask_the_result),
                                       cmocka_unit_test(maxima_answer_for_their_operand)};
    return cmocka_run_group_tests_name("mask", tests, NULL, NULL);
}
