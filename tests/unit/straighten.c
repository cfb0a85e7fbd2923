/* straighten.c - networks that keep channels last, with a transpose before each convolution and pool and one behind:
 * after the passes straighten and layout they are the graph of the same network that keeps channels first. */
#include "compiler/passes/passes.h"
#include "compiler/passes/turns.h"
#include "tests/unit/evaluate.h"

static const int64_t to_first[] = {0, 3, 1, 2}, to_last[] = {0, 2, 3, 1};

typedef struct network {
    ty_graph *g;
    bool last; /* data between layers are channels-last */
    ty_val x, w[3], scale, bias;
} network;

static ty_val turn(const network *n, ty_val v, const int64_t *perm)
{
    return n->last ? ty_b_transpose(n->g, v, perm) : v;
}

static ty_val per_channel(const network *n, ty_val v)
{
    int64_t c = ty_b_dim(n->g, v, 0), first[] = {1, c, 1, 1};
    return ty_b_reshape(n->g, v, 4, first);
}

static ty_val conv(const network *n, ty_val x, int w, int64_t pad)
{
    ty_attr a = {.n = 2, .groups = 1, .step = {1, 1}, .dil = {1, 1}, .lo = {pad, pad}, .hi = {pad, pad}};
    ty_val y = ty_graph_emit(n->g, TY_OP_CONV, &a, (ty_val[]){turn(n, x, to_first), n->w[w]}, 2);
    return turn(n, ty_b_add(n->g, y, per_channel(n, n->bias)), to_last);
}

static ty_val batch_norm(const network *n, ty_val x)
{
    ty_attr a = {.value = 1e-3};
    ty_val in[] = {turn(n, x, to_first), n->scale, n->bias};
    return turn(n, ty_graph_emit(n->g, TY_OP_BATCHNORM, &a, in, 3), to_last);
}

static ty_val pool(const network *n, ty_val x)
{
    ty_attr a = {.n = 2, .size = {2, 2}, .step = {2, 2}, .dil = {1, 1}};
    ty_val in = turn(n, x, to_first);
    return turn(n, ty_graph_emit(n->g, TY_OP_POOL_MAX, &a, &in, 1), to_last);
}

/* Everything that may stand between: ReLU, a residual sum, padding, joining along channels, a mean. */
static ty_val forward(const network *n)
{
    ty_graph *g = n->g;
    int h = n->last ? 1 : 2, c = n->last ? 3 : 1;
    int64_t pad[4] = {0}, none[4] = {0};
    pad[h] = pad[h + 1] = 1;
    ty_val a = ty_b_relu(g, batch_norm(n, conv(n, n->x, 0, 1)));
    ty_val b = batch_norm(n, ty_b_relu(g, conv(n, ty_b_pad(g, a, pad, pad, 0), 1, 0)));
    ty_val p = pool(n, ty_b_relu(g, ty_b_add(g, a, b)));
    ty_val y = conv(n, ty_b_concat(g, (ty_val[]){p, ty_b_pad(g, p, none, none, 0)}, 2, c), 2, 1);
    return ty_b_mean(g, ty_b_unary(g, TY_OP_TANH, y), 1u << h | 1u << (h + 1), false);
}

static ty_graph *step_of(bool last)
{
    network n = {.g = ty_graph_new(), .last = last};
    ty_graph *g = n.g;
    ty_val grad[6];
    ty_error err = {0};
    n.x = last ? new_input(g, TY_F32, SHAPE(3, 6, 8, 5)) : new_input(g, TY_F32, SHAPE(3, 5, 6, 8));
    n.w[0] = new_input(g, TY_F32, SHAPE(8, 5, 3, 3));
    n.w[1] = new_input(g, TY_F32, SHAPE(8, 8, 3, 3));
    n.w[2] = new_input(g, TY_F32, SHAPE(8, 16, 3, 3));
    n.scale = new_input(g, TY_F32, SHAPE(8));
    n.bias = new_input(g, TY_F32, SHAPE(8));
    ty_val y = forward(&n), wrt[] = {n.w[0], n.w[1], n.w[2], n.scale, n.bias};
    ty_val loss = ty_b_sum(g, ty_b_square(g, y), ty_b_all_axes(g, y), false);
    assert_int_equal(ty_pass_autodiff(g, loss, wrt, 5, grad, &err), 0);
    ty_graph_add_output(g, "y", y, TY_TAPE_EVAL);
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "g%d", i);
        ty_graph_add_output(g, name, grad[i], TY_TAPE_EVAL);
    }
    expect_ok(g);
    return g;
}

typedef int pass_fn(const ty_graph *in, ty_graph **out, ty_error *err);

static ty_graph *passed(ty_graph *g, pass_fn *pass)
{
    ty_graph *to = NULL;
    ty_error err = {0};
    if (pass(g, &to, &err) < 0 || (to && ty_graph_verify(to, &err) < 0))
        fail_msg("%s", err.message);
    if (!to)
        return g;
    ty_graph_free(g);
    return to;
}

static int count(const ty_graph *g, ty_op op, int rank)
{
    uint8_t *live = calloc(ty_graph_n_nodes(g) + 1, 1);
    int n = 0;
    assert_non_null(live);
    ty_graph_mark_live(g, TY_TAPE_ALL, live);
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++)
        n += live[id] && ty_graph_op(g, id) == op && ty_graph_type(g, ty_val_make(id, 0))->rank >= rank;
    free(live);
    return n;
}

/* Data of one network for the other: x0 turned. */
static void turn_data(const float *first, float *last, int64_t n, int64_t c, int64_t plane)
{
    for (int64_t b = 0; b < n; b++)
        for (int64_t k = 0; k < c; k++)
            for (int64_t p = 0; p < plane; p++)
                last[(b * plane + p) * c + k] = first[(b * c + k) * plane + p];
}

static ty_interp *run(const ty_graph *g, const void *const *inputs)
{
    ty_interp *it;
    ty_error err = {0};
    if (ty_interp_new(g, &it, &err) < 0 || ty_interp_run(it, TY_TAPE_EVAL, inputs, false, &err) < 0)
        fail_msg("%s", err.message);
    return it;
}

static float *numbers(int64_t n, int64_t from)
{
    float *v = malloc((size_t)n * sizeof *v);
    assert_non_null(v);
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)((double)(((from + i) * 7919 + 13) % 4093) / 2046 - 1);
    return v;
}

static void expect_same_values(const ty_graph *first, const ty_graph *last)
{
    const void *in[2][6];
    for (int i = 0; i < 6; i++)
        in[0][i] = in[1][i] = numbers(ty_type_elems(&ty_graph_input(first, i)->type), 1000 * i);
    float *x = numbers(3 * 5 * 48, 0);
    turn_data(in[0][0], x, 3, 5, 48);
    in[1][0] = x;
    ty_interp *a = run(first, in[0]), *b = run(last, in[1]);
    for (int o = 0; o < ty_graph_n_outputs(first); o++) {
        const ty_ref *p = ty_interp_output(a, o), *q = ty_interp_output(b, o);
        for (int64_t i = 0; i < ty_type_elems(&p->type); i++)
            if (!(fabs(p->f[i] - q->f[i]) <= 1e-10 * (1 + fabs(p->f[i]))))
                fail_msg("output %d, element %lld: %.17g and %.17g", o, (long long)i, p->f[i], q->f[i]);
    }
    ty_interp_free(a);
    ty_interp_free(b);
    free(x);
    for (int i = 0; i < 6; i++)
        free((void *)(uintptr_t)in[0][i]);
}

/* The same nodes of every op; of transposes those at the border at most, where a batch comes in. */
static void becomes_the_same_graph(void **state)
{
    (void)state;
    pass_fn *const passes[] = {ty_pass_straighten, ty_pass_lower, ty_pass_mask, ty_pass_layout};
    ty_graph *first = step_of(false), *last = step_of(true);
    assert_true(count(last, TY_OP_TRANSPOSE, 4) > 8);
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        first = passed(first, passes[i]);
        last = passed(last, passes[i]);
        expect_same_values(first, last);
    }
    for (ty_op op = 0; op < TY_N_OPS; op++) {
        int a = count(first, op, 0), b = count(last, op, 0);
        if (op == TY_OP_TRANSPOSE ? b > a : a != b)
            fail_msg("%s: %d nodes where channels come first, %d where they come last", ty_op_row_of(op)->text, a, b);
    }
    ty_graph_free(first);
    ty_graph_free(last);
}

static void leaves_others_alone(void **state)
{
    (void)state;
    ty_graph *g = step_of(false), *to = NULL;
    ty_error err = {0};
    assert_int_equal(ty_pass_straighten(g, &to, &err), 0);
    assert_null(to);
    ty_graph_free(g);
}

static ty_val turned(ty_graph *g, ty_val v)
{
    return ty_b_transpose(g, v, (const int64_t[]){0, 2, 1});
}

/* A series through a convolution, then its tokens mixed by a product, as a gate: turns of the same kind all. */
static void turns_of_tokens_stay(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_error err = {0};
    uint8_t turn[64] = {0};
    ty_attr attr = {.n = 1, .groups = 1, .step = {1}, .dil = {1}, .lo = {1}, .hi = {1}};
    ty_val x = ty_b_input(g, ty_graph_add_input(g, "x", ty_type_make(TY_F32, 3, (int64_t[]){2, 6, 4})));
    ty_val w = ty_b_input(g, ty_graph_add_input(g, "w", ty_type_make(TY_F32, 3, (int64_t[]){4, 4, 3})));
    ty_val m = ty_b_input(g, ty_graph_add_input(g, "m", ty_type_make(TY_F32, 3, (int64_t[]){2, 6, 6})));
    ty_val first = turned(g, ty_b_unary(g, TY_OP_TANH, x)), padded = ty_b_neg(g, first);
    ty_val back = turned(g, ty_b_neg(g, ty_graph_emit(g, TY_OP_CONV, &attr, (ty_val[]){padded, w}, 2)));
    ty_val r = ty_b_unary(g, TY_OP_EXP, back), mixed = turned(g, ty_b_unary(g, TY_OP_EXP, r));
    ty_val gate = turned(g, ty_b_neg(g, ty_b_dot(g, mixed, m, false, false)));
    ty_graph_add_output(g, "y", ty_b_mul(g, r, gate), TY_TAPE_EVAL);
    assert_true(ty_graph_n_nodes(g) < 64);
    assert_int_equal(ty_find_turns(g, turn, &err), 2);
    assert_true(turn[ty_val_node(first)] && turn[ty_val_node(back)]);
    assert_false(turn[ty_val_node(mixed)] || turn[ty_val_node(gate)]);
    ty_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(becomes_the_same_graph),
        cmocka_unit_test(leaves_others_alone),
        cmocka_unit_test(turns_of_tokens_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
