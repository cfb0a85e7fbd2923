/* raise_dropout.c - attention whose probabilities are dropped behind the softmax is one attention still, that drops the
 * same ones; what only looks so is left alone. */
#include "tests/unit/raise_case.h"

#include "compiler/ops/attend.h"

/* What stands behind the softmax. */
typedef enum dropped {
    DROPPED,        /* a dropout */
    BY_HEADS,       /* the same, entries and heads as one axis */
    IN_OTHER_ORDER, /* of what is turned, and turned back: words are not numbered as the scores are */
    TWICE,          /* two */
    MASK_WANTED,    /* its mask is an output, too */
    NOT_SCALED      /* what is kept stays as it is */
} dropped;

static void product(model_text *t)
{
    begin(t, SHAPE(2, 3, 4, 5));
    model_input(t, "k", F64, SHAPE(2, 3, 6, 5));
    model_input(t, "v", F64, SHAPE(2, 3, 6, 7));
    model_input(t, "given", F64, SHAPE(2, 1, 1, 6));
    constant(t, "s", 0.3);
    attr_ints(t, "perm", 4, (int64_t[]){0, 1, 3, 2});
    model_node(t, "Transpose", "k", "kt", "");
    model_node(t, "MatMul", "x,kt", "scores", "");
    model_node(t, "Mul", "scores,s", "scaled", "");
    model_node(t, "Add", "scaled,given", "masked", "");
    attr_int(t, "axis", -1);
    model_node(t, "Softmax", "masked", "p", "");
}

static void drop(model_text *t, const char *in, const char *out)
{
    char names[48];
    snprintf(names, sizeof names, "%s,ratio,training", in);
    model_node(t, "Dropout", names, out, "");
}

static void attention(model_text *t, dropped how, float ratio)
{
    const uint8_t training = 1;
    product(t);
    model_raw(t, "ratio", 1, 0, NULL, &ratio, sizeof ratio);
    model_raw(t, "training", 9, 0, NULL, &training, 1);
    if (how == BY_HEADS) {
        model_ints(t, "one_axis", 3, (int64_t[]){6, 4, 6});
        model_ints(t, "two_axes", 4, (int64_t[]){2, 3, 4, 6});
        model_node(t, "Reshape", "p,one_axis", "p3", "");
        drop(t, "p3", "d3");
        model_node(t, "Reshape", "d3,two_axes", "d", "");
    } else if (how == IN_OTHER_ORDER) {
        attr_ints(t, "perm", 4, (int64_t[]){0, 1, 3, 2});
        model_node(t, "Transpose", "p", "pt", "");
        drop(t, "pt", "dt");
        attr_ints(t, "perm", 4, (int64_t[]){0, 1, 3, 2});
        model_node(t, "Transpose", "dt", "d", "");
    } else if (how == TWICE) {
        drop(t, "p", "d1");
        drop(t, "d1", "d");
    } else if (how == NOT_SCALED) {
        constant(t, "less", 1 - ratio);
        drop(t, "p", "d1");
        model_node(t, "Mul", "d1,less", "d", "");
    } else {
        drop(t, "p", how == MASK_WANTED ? "d,m" : "d");
    }
    model_node(t, "MatMul", "d,v", "y", "");
    model_output(t, "y", F64);
    if (how == MASK_WANTED) {
        attr_int(t, "to", F64);
        model_node(t, "Cast", "m", "kept", "");
        model_output(t, "kept", F64);
    }
}

static void dropped_attentions_are_found(void **state)
{
    (void)state;
    model_text t;
    for (dropped how = DROPPED; how <= BY_HEADS; how++) {
        attention(&t, how, 0.25f); /* of which the factor is the same in every way of writing it */
        expect_found("dropped", raise_model(&t), "1 attention");
    }
}

static void others_stay(void **state)
{
    (void)state;
    model_text t;
    for (dropped how = IN_OTHER_ORDER; how <= NOT_SCALED; how++) {
        attention(&t, how, 0.25f);
        expect_found("not quite", raise_model(&t), "1 softmax");
    }
}

/* ---- what is dropped ---- */

static const ty_attr *raised_attr(const ty_graph *g)
{
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++)
        if (ty_graph_op(g, id) == TY_OP_ATTENTION)
            return ty_graph_attr(g, id);
    fail_msg("no attention");
    return NULL;
}

/* select(rate <= u, p / (1 - rate), 0) v, as models are imported. */
static ty_graph *make(double rate, ty_val *y)
{
    ty_graph *g = ty_graph_new();
    const int64_t dim[] = {2, 3, 8, 8};
    ty_val x = new_input(g, TY_F32, 4, dim), seed = new_input(g, TY_I64, 0, NULL), step = new_input(g, TY_I64, 0, NULL);
    ty_val p = ty_b_softmax(g, ty_b_dot(g, x, x, false, true), 3, false), words = ty_b_rng(g, seed, step, 5, 4, dim);
    ty_val top = ty_b_cast(g, ty_b_binary(g, TY_OP_SHR, words, ty_b_full_like(g, words, 8)), TY_F32);
    ty_val u = ty_b_mul_s(g, top, 0x1p-24), kept = ty_b_le(g, ty_b_full_like(g, u, rate), u);
    ty_val scaled = ty_b_mul_s(g, p, 1 / (1 - rate));
    *y = ty_b_dot(g, ty_b_select(g, kept, scaled, ty_b_full_like(g, p, 0)), x, false, false);
    return g;
}

/* A float32 rate r keeps number n of 2^24 where r <= n / 2^24. */
static void as_many_are_dropped(void **state)
{
    static const struct {
        double rate;
        int64_t dropped;
    } rows[] = {{0.5, 1 << 23}, {0.1, 1677722}, {0.1 + 1e-9, 1677722}, {1e-7, 2}, {0.9, 15099494}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ty_val y, held;
        ty_error err = {0};
        ty_graph *g = make(rows[i].rate, &y), *after = ty_graph_new();
        const int64_t dim[] = {2, 3, 8, 8};
        ty_val bound[] = {new_input(after, TY_F32, 4, dim), new_input(after, TY_I64, 0, NULL),
                          new_input(after, TY_I64, 0, NULL)};
        held = y;
        if (ty_pass_raise(g, after, bound, &held, 1, &err) < 0)
            fail_msg("%s", err.message);
        const ty_attr *attr = raised_attr(after);
        assert_int_equal(attr->flags, TY_ATTEND_DROPS);
        assert_int_equal(attr->dropped, rows[i].dropped);
        assert_int_equal(attr->index, 5);
        ty_graph_free(g);
        ty_graph_free(after);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropped_attentions_are_found),
        cmocka_unit_test(others_stay),
        cmocka_unit_test(as_many_are_dropped),
    };
    return cmocka_run_group_tests_name("raise_dropout", tests, NULL, NULL);
}
