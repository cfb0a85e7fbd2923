/* The verifier: graphs broken on purpose, below the constructors that would not allow it. */
#include "tests/unit/evaluate.h"

#include "compiler/ir/attr.h"
#include "compiler/ir/storage.h"

/* x -> exp -> sort; state s <- x, output y. */
typedef struct sound {
    ty_graph *g;
    ty_node *exp, *sort, *assign, *input, *state;
    ty_val *exp_in;
    ty_effect *effect;
    ty_output *output;
} sound;

static ty_node *node_of(ty_graph *g, ty_val v)
{
    return &((ty_node *)g->node.data)[ty_val_node(v)];
}

static sound build_sound(void)
{
    ty_graph *g = ty_graph_new();
    ty_state s = {.name = "s", .type = ty_type_make(TY_F32, SHAPE(2, 3)), .role = TY_STATE_BUFFER};
    ty_graph_add_state(g, &s);
    ty_val x = new_input(g, TY_F32, SHAPE(2, 3)), p = ty_b_state(g, 0), e = ty_b_exp(g, x),
           y = ty_b_sort(g, e, 1, false, NULL);
    ty_graph_add_assign(g, 0, ty_b_add(g, p, e), TY_TAPE_LAST);
    ty_graph_add_assign(g, 0, p, TY_TAPE_INIT);
    ty_graph_add_output(g, "y", y, TY_TAPE_EVAL);
    assert_int_equal(ty_graph_verify(g, NULL), 0);
    sound d = {.g = g, .exp = node_of(g, e), .sort = node_of(g, y), .input = node_of(g, x), .state = node_of(g, p)};
    d.effect = g->effect.data;
    d.assign = node_of(g, ty_val_make(d.effect->node, 0));
    d.exp_in = (ty_val *)g->in.data + d.exp->in_off;
    d.output = ((ty_output **)g->output.data)[0];
    return d;
}

/* An interned attribute of the node, to be written to. */
static ty_attr *attr_of(sound *d, const ty_node *n)
{
    return ((ty_attr **)d->g->attr.data)[n->attr];
}

static void break_op(sound *d)
{
    d->exp->op = 999;
}
static void break_n_res(sound *d)
{
    d->exp->n_res = 2;
}
static void break_n_in(sound *d)
{
    d->exp->n_in = 0;
}
static void break_in_off(sound *d)
{
    d->exp->in_off = 1000;
}
static void break_attr_id(sound *d)
{
    d->exp->attr = 1000;
}
static void break_type_id(sound *d)
{
    d->exp->type[0] = 1000;
}
static void break_origin(sound *d)
{
    d->exp->origin = 1000;
}
static void break_order(sound *d)
{
    *d->exp_in = ty_val_make(ty_val_node(d->output->val), 0);
}
static void break_result(sound *d)
{
    *d->exp_in = ty_val_make(0, 3);
}
static void break_absent(sound *d)
{
    *d->exp_in = TY_NONE;
}
static void break_extra_attr(sound *d)
{
    attr_of(d, d->exp)->value = 1;
}
static void break_attr_limit(sound *d)
{
    attr_of(d, d->input)->type.rank = 12;
}
static void break_axis(sound *d)
{
    attr_of(d, d->sort)->axis = 2;
}
static void break_type(sound *d)
{
    d->exp->type[0] = d->sort->type[1];
}
static void break_input_number(sound *d)
{
    attr_of(d, d->input)->index = 5;
}
static void break_state_number(sound *d)
{
    attr_of(d, d->state)->index = -1;
}
static void break_state_type(sound *d)
{
    ((ty_state **)d->g->state.data)[0]->type.dtype = TY_I32;
    ((ty_segment *)((ty_state **)d->g->state.data)[0]->segments)->type.dtype = TY_I32;
}
static void break_segment(sound *d)
{
    ((ty_segment *)((ty_state **)d->g->state.data)[0]->segments)->offset = 1;
}
static void break_segment_order(sound *d)
{
    ((ty_segment *)((ty_state **)d->g->state.data)[0]->segments)->offset = -1;
}
static void break_output(sound *d)
{
    d->output->val = ty_val_make(500, 0);
}
static void break_output_result(sound *d)
{
    d->output->val |= 3;
}
static void break_tapes(sound *d)
{
    d->output->tapes = 32;
}
static void break_effect(sound *d)
{
    d->effect->node = 0;
}
static void break_effect_tapes(sound *d)
{
    d->effect->tapes = 0;
}
static void break_assign_twice(sound *d)
{
    d->effect[1].tapes = TY_TAPE_LAST;
}

static void test_broken_graphs_are_refused(void **state)
{
    (void)state;
    static const struct {
        void (*break_it)(sound *d);
        const char *words;
    } cases[] = {
        {break_op, "there is no op number 999"},
        {break_n_res, "exp: has 2 results, expected 1"},
        {break_n_in, "exp: has 0 inputs, expected 1"},
        {break_in_off, "outside of the pool"},
        {break_attr_id, "attributes or origin do not exist"},
        {break_origin, "attributes or origin do not exist"},
        {break_type_id, "type of result 0 does not exist"},
        {break_order, "does not precede it"},
        {break_result, "which has 1"},
        {break_absent, "input 0 is absent"},
        {break_extra_attr, "an attribute is set that the op does not have"},
        {break_attr_limit, "beyond its limit"},
        {break_axis, "sort"},
        {break_type, "result 0 is i64[2,3], expected f32[2,3]"},
        {break_input_number, "names number 5"},
        {break_state_number, "names number -1"},
        {break_state_type, "names number 0"},
        {break_segment, "reach beyond its end"},
        {break_segment_order, "out of order"},
        {break_output, "output \"y\" is no value"},
        {break_output_result, "output \"y\" is no value"},
        {break_tapes, "no known tape (0x20)"},
        {break_effect, "effect 0 is no assign"},
        {break_effect_tapes, "effect 0 belongs to no known tape"},
        {break_assign_twice, "assigned twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sound d = build_sound();
        ty_error err = {0};
        cases[i].break_it(&d);
        if (ty_graph_verify(d.g, &err) == 0)
            fail_msg("case %zu accepted: %s", i, cases[i].words);
        if (!strstr(err.message, cases[i].words))
            fail_msg("case %zu: expected \"%s\", found \"%s\"", i, cases[i].words, err.message);
        ty_graph_free(d.g);
    }
}

static void test_a_failed_graph_is_refused(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_error err = {0};
    ty_graph_fail(g, TY_E_SHAPE, "something before");
    assert_int_equal(ty_graph_verify(g, &err), -1);
    assert_int_equal(err.code, TY_E_SHAPE);
    ty_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broken_graphs_are_refused),
        cmocka_unit_test(test_a_failed_graph_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
