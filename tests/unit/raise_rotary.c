/* Rotary embedding: what exporters write becomes the one form, near misses stay, and its gradient needs no x. The forms
 * of real exporters are in raise_files.c.
 */
#include "tests/unit/raise_case.h"

#include "compiler/ir/text.h"
#include "compiler/passes/passes.h"

#include <string.h>

/* x cos + r sin; what r is */
typedef enum swap {
    SWAPPED,       /* (-x1, x0) */
    SWAPPED_BACK,  /* (x1, -x0): turns the other way */
    NOT_NEGATED,   /* (x1, x0) */
    TWICE_NEGATED, /* (-x1, -x0) */
    NOT_SWAPPED,   /* (-x0, x1) */
    UNEVEN,        /* parts of 4 and 2 */
    OTHER_INPUT,   /* made of z */
    OTHER_AXIS,    /* along the tokens */
    WANTED,        /* an output, too */
    N_SWAPS
} swap;

static void split(model_text *t, const char *in, int64_t axis, int64_t first, int64_t second)
{
    model_ints(t, "sizes", 2, (int64_t[]){first, second});
    attr_int(t, "axis", axis);
    char names[32];
    snprintf(names, sizeof names, "%s,sizes", in);
    model_node(t, "Split", names, "a,b", "");
}

static void rotary_sum(model_text *t, swap how)
{
    bool tokens = how == OTHER_AXIS;
    begin(t, SHAPE(2, 4, 6));
    model_input(t, "z", F64, SHAPE(2, 4, 6));
    numbers(t, "cos", SHAPE(4, 6));
    numbers(t, "sin", SHAPE(4, 6));
    split(t, how == OTHER_INPUT ? "z" : "x", tokens ? 1 : 2,
          tokens          ? 2
          : how == UNEVEN ? 2
                          : 3,
          tokens          ? 2
          : how == UNEVEN ? 4
                          : 3);
    model_node(t, "Neg", "a", "na", "");
    model_node(t, "Neg", "b", "nb", "");
    static const char *const parts[N_SWAPS] = {
        [SWAPPED] = "nb,a",        [SWAPPED_BACK] = "b,na", [NOT_NEGATED] = "b,a",
        [TWICE_NEGATED] = "nb,na", [NOT_SWAPPED] = "na,b",  [UNEVEN] = "nb,a",
        [OTHER_INPUT] = "nb,a",    [OTHER_AXIS] = "nb,a",   [WANTED] = "nb,a"};
    attr_int(t, "axis", tokens ? 1 : 2);
    model_node(t, "Concat", parts[how], "r", "");
    model_node(t, "Mul", "x,cos", "xc", "");
    model_node(t, "Mul", "r,sin", "rs", "");
    model_node(t, "Add", "xc,rs", "y", "");
    model_output(t, "y", F64);
    if (how == WANTED)
        model_output(t, "r", F64);
}

static void sums(void **state)
{
    (void)state;
    for (swap how = SWAPPED; how < N_SWAPS; how++) {
        model_text t;
        char what[32];
        rotary_sum(&t, how);
        snprintf(what, sizeof what, "swap %d", (int)how);
        expect_found(what, raise_model(&t), how <= SWAPPED_BACK ? "1 rotary embedding" : "");
    }
}

/* Both lines, then side by side. */
typedef enum lines {
    TURNED,
    TURNED_BACK,    /* x0 cos + x1 sin, x1 cos - x0 sin */
    ORDER,          /* sums and factors the other way round */
    SAME_SIGN,      /* x1 cos - x0 sin in the second line */
    OTHER_TABLE,    /* another sine in the second line */
    OTHER_COSINE,   /* likewise */
    SAME_PART,      /* x0 cos - x1 sin, x0 cos + x1 sin */
    OVERLAP,        /* parts that share a number */
    APART,          /* parts with one between them */
    LINE_IS_WANTED, /* the first line is an output */
    N_LINES
} lines;

static void part(model_text *t, const char *out, int64_t from, int64_t to)
{
    char names[3][16];
    snprintf(names[0], sizeof names[0], "%s.from", out);
    snprintf(names[1], sizeof names[1], "%s.to", out);
    model_ints(t, names[0], 1, &from);
    model_ints(t, names[1], 1, &to);
    char in[64];
    snprintf(in, sizeof in, "x,%s,%s,last", names[0], names[1]);
    model_node(t, "Slice", in, out, "");
}

static void rotary_lines(model_text *t, lines how)
{
    begin(t, SHAPE(2, 4, 7));
    model_ints(t, "last", 1, (int64_t[]){2});
    numbers(t, "cos", SHAPE(4, 3));
    double sine[12], other[12];
    for (int i = 0; i < 12; i++)
        sine[i] = 0.1 * i - 0.5, other[i] = i == 11 ? 2 : sine[i];
    model_raw(t, "sin", F64, SHAPE(4, 3), sine, sizeof sine);
    model_raw(t, "same", F64, SHAPE(4, 3), sine, sizeof sine); /* the same numbers, as exporters fold them twice */
    model_raw(t, "other", F64, SHAPE(4, 3), other, sizeof other);
    part(t, "a", 0, 3);
    part(t, "b", how == OVERLAP ? 2 : how == APART ? 4 : 3, how == OVERLAP ? 5 : how == APART ? 7 : 6);
    model_node(t, "Mul", "a,cos", "ac", "");
    model_node(t, "Mul", "b,sin", "bs", "");
    model_node(t, "Mul", how == OTHER_COSINE ? "other,b" : how == SAME_PART ? "a,cos" : "b,cos", "bc", "");
    model_node(t, "Mul", how == OTHER_TABLE ? "other,a" : how == SAME_PART ? "b,sin" : "a,same", "as", "");
    bool back = how == TURNED_BACK;
    model_node(t, back ? "Add" : "Sub", "ac,bs", "first", "");
    model_node(t, back || how == SAME_SIGN ? "Sub" : "Add", how == ORDER ? "as,bc" : "bc,as", "second", "");
    attr_int(t, "axis", 2);
    model_node(t, "Concat", "first,second", "y", "");
    model_output(t, "y", F64);
    if (how == LINE_IS_WANTED)
        model_output(t, "first", F64);
}

static void both_lines(void **state)
{
    (void)state;
    for (lines how = TURNED; how < N_LINES; how++) {
        model_text t;
        char what[32];
        rotary_lines(&t, how);
        snprintf(what, sizeof what, "lines %d", (int)how);
        expect_found(what, raise_model(&t), how <= ORDER ? "1 rotary embedding" : "");
    }
}

/* ---- the gradient ---- */

/* How many nodes of an op v is computed from; of inputs: those that are x. */
static int count_below(const ty_graph *g, ty_val v, ty_op op, ty_val x)
{
    uint32_t n = ty_val_node(v) + 1;
    uint8_t *needed = calloc(n, 1);
    int found = 0;
    assert_non_null(needed);
    needed[n - 1] = 1;
    for (uint32_t id = n; id-- > 0;) {
        found += needed[id] && ty_graph_op(g, id) == op && (op != TY_OP_INPUT || id == ty_val_node(x));
        for (uint32_t k = 0; needed[id] && k < ty_graph_node(g, id)->n_in; k++)
            if (ty_graph_in(g, id, (int)k) != TY_NONE)
                needed[ty_val_node(ty_graph_in(g, id, (int)k))] = 1;
    }
    free(needed);
    return found;
}

static void gradient_of(const char *file)
{
    static const ty_op absent[] = {TY_OP_CONCAT, TY_OP_PAD, TY_OP_SLICE, TY_OP_SELECT, TY_OP_INPUT};
    char path[256];
    ty_onnx *m;
    ty_error err = {0};
    ty_graph *before = ty_graph_new(), *g = ty_graph_new();
    snprintf(path, sizeof path, "tests/golden/raise/%s.onnx", file);
    assert_int_equal(ty_onnx_open(path, &m, &err), 0);
    const ty_onnx_value *v = ty_onnx_input(m, 0);
    ty_val in = new_input(before, v->dtype, v->rank, v->dim), x = new_input(g, v->dtype, v->rank, v->dim), none[32], dx;
    for (int i = 0; i < 32; i++)
        none[i] = TY_NONE;
    ty_onnx_binding b = {.mode = TY_ONNX_TRAIN, .inputs = &in, .initializers = none};
    b.seed = b.step = ty_b_scalar(before, TY_I64, 0);
    ty_onnx_values values;
    assert_int_equal(ty_onnx_import(m, before, &b, &values, &err), 0);
    ty_val y = values.outputs[0];
    assert_int_equal(ty_pass_raise(before, g, &x, &y, 1, &err), 0);
    const ty_type t = *ty_graph_type(g, y);
    ty_val loss = ty_b_mul(g, y, new_input(g, TY_F32, t.rank, t.dim));
    loss = ty_b_sum(g, loss, ty_b_all_axes(g, loss), false);
    assert_int_equal(ty_pass_autodiff(g, loss, &x, 1, &dx, &err), 0);
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (count_below(g, dx, absent[i], x) != 0)
            fail_msg("%s: %d %s in the gradient", file, count_below(g, dx, absent[i], x),
                     ty_op_row_of(absent[i])->text);
    assert_int_equal(count_below(g, dx, TY_OP_REVERSE, x), 1);
    ty_graph_free(before);
    ty_graph_free(g);
    ty_onnx_free(m);
}

static void gradients_need_no_parts_and_no_x(void **state)
{
    (void)state;
    static const char *const files[] = {"rotary.script",        "rotary.dynamo",       "rotary_interleaved.script",
                                        "rotary_halves.dynamo", "rotary_pairs.dynamo", "rotary_every_two.script",
                                        "rotary_halves.script", "rotary_pairs.script", "rotary_every_two.dynamo"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        gradient_of(files[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums),
        cmocka_unit_test(both_lines),
        cmocka_unit_test(gradients_need_no_parts_and_no_x),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
