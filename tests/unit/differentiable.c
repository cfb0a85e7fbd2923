/* differentiable.c - every op has a gradient, or stands here with the reason why not. An op that is added without
 * either fails this test; a reason for an op that has a gradient does, too.
 */
#include "tests/unit/evaluate.h"

#include "compiler/ops/op.h"

static const struct reason {
    ty_op op;
    const char *why;
} without[] = {
    {TY_OP_INPUT, "a leaf: its gradient is what autodiff is asked for"},
    {TY_OP_STATE, "a leaf"},
    {TY_OP_CONST, "a leaf that does not change"},
    {TY_OP_IOTA, "reads nothing"},
    {TY_OP_RNG, "random bits of whole numbers"},
    {TY_OP_NOT, "bits"},
    {TY_OP_BITCAST, "bits"},
    {TY_OP_AND, "bits"},
    {TY_OP_OR, "bits"},
    {TY_OP_XOR, "bits"},
    {TY_OP_SHL, "bits"},
    {TY_OP_SHR, "bits"},
    {TY_OP_EQ, "its result is a bool"},
    {TY_OP_LT, "its result is a bool"},
    {TY_OP_LE, "its result is a bool"},

    {TY_OP_ARGREDUCE, "its result is a place"},
    {TY_OP_ATTENTION_GRAD, "a gradient itself: attention is not differentiated twice"},
    {TY_OP_ATTEND, "made from attention when gradients stand"},
    {TY_OP_ATTEND_GRAD, "made from attention_grad when gradients stand"},
    {TY_OP_ATTEND_BIAS_GRAD, "made from attention_grad when gradients stand"},
    {TY_OP_GELU_GRAD, "a gradient itself: GELU is not differentiated twice"},
    {TY_OP_LINEAR, "made from products when gradients stand"},
    {TY_OP_CONV_BIAS, "made from convolutions when gradients stand"},
    {TY_OP_POOL_MAX_GRAD, "a gradient itself; linear, but nobody differentiates twice through a max pool"},
    {TY_OP_FIND_ROWS, "sorts numbers"},
    {TY_OP_SUM_ROWS, "made from gradients, for an update by rows"},
    {TY_OP_GET_ROWS, "reads states for an update"},
    {TY_OP_SET_ROWS, "writes states in an update"},
    {TY_OP_ALL_GATHER, "made for metrics and for updates by rows"},
    {TY_OP_REDUCE_SCATTER, "made for updates that replicas divide"},
    {TY_OP_RNN_STEPS, "made from rnn when gradients stand, or in its gradient"},
    {TY_OP_RNN_GRAD, "a gradient itself: recurrent layers are not differentiated twice"},
    {TY_OP_ASSIGN, "an effect"},
};

static const char *reason_of(ty_op op)
{
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (without[i].op == op)
            return without[i].why;
    return NULL;
}

static void every_op_has_a_gradient_or_a_reason(void **state)
{
    (void)state;
    for (int op = 0; op < TY_N_OPS; op++) {
        const ty_op_row *row = ty_op_row_of((ty_op)op);
        const char *why = reason_of((ty_op)op);
        if (!row->grad && !why)
            fail_msg("%s has neither a gradient nor a reason for having none", row->text);
        if (row->grad && why)
            fail_msg("%s has a gradient: it needs no reason (\"%s\")", row->text, why);
    }
}

/* No reason hides a float that training could need: what it makes is no float, or it is named here. */
static void reasons_are_true(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, SHAPE(4)), y = new_input(g, TY_F32, SHAPE(4));
    const ty_op compared[] = {TY_OP_EQ, TY_OP_LT, TY_OP_LE};
    for (size_t i = 0; i < sizeof compared / sizeof *compared; i++)
        assert_int_equal(ty_b_dtype(g, ty_b_binary(g, compared[i], x, y)), TY_BOOL);
    assert_int_equal(ty_b_dtype(g, ty_b_argreduce(g, x, TY_MAX, 0, false)), TY_I64);
    const ty_op bits[] = {TY_OP_AND, TY_OP_OR, TY_OP_XOR, TY_OP_SHL, TY_OP_SHR};
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        assert_int_equal(ty_b_binary(g, bits[i], x, y), TY_NONE); /* refused on floats */
        ty_graph_clear_error(g);
    }
    ty_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_has_a_gradient_or_a_reason),
        cmocka_unit_test(reasons_are_true),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
