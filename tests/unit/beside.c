/* beside.c - kernels of short rows, done side by side: which ones are, and that their numbers are those of the
 * interpreter, whatever the length of a row, their number, and the order in which they lie. */
#include "compiler/target/cpu/beside.h"

#include "tests/unit/evaluate.h"
#include "tests/unit/kernel_case.h"

enum { MOST = 40000, THREADS = 2 };

static uint32_t last_axis(const ty_graph *g, ty_val x)
{
    return 1u << (ty_graph_type(g, x)->rank - 1);
}

/* Each takes x, whose rows lie along the last axis if nothing else is said, and makes one result of it. */
static ty_val softmax(ty_graph *g, ty_val x)
{
    ty_val e = ty_b_exp(g, ty_b_sub(g, x, ty_b_reduce(g, x, TY_MAX, last_axis(g, x), true)));
    return ty_b_mul(g, e, ty_b_reciprocal(g, ty_b_sum(g, e, last_axis(g, x), true)));
}

static ty_val sum(ty_graph *g, ty_val x)
{
    return ty_b_sum(g, ty_b_square(g, x), last_axis(g, x), false);
}

/* Two sums, one behind the other, and no operation that costs much. */
static ty_val norm(ty_graph *g, ty_val x)
{
    ty_val centred = ty_b_sub(g, x, ty_b_mean(g, x, last_axis(g, x), true));
    ty_val spread = ty_b_mean(g, ty_b_square(g, centred), last_axis(g, x), true);
    return ty_b_div(g, centred, ty_b_add_s(g, spread, 1e-3));
}

/* Whether an element is its row's largest: truths go out, and numbers that no sum has. */
static ty_val is_largest(ty_graph *g, ty_val x)
{
    return ty_b_eq(g, x, ty_b_reduce(g, x, TY_MAX, last_axis(g, x), true));
}

static ty_val span(ty_graph *g, ty_val x)
{
    ty_val high = ty_b_reduce(g, x, TY_MAX, last_axis(g, x), true);
    return ty_b_sub(g, ty_b_mul(g, x, high), ty_b_reduce(g, x, TY_MIN, last_axis(g, x), true));
}

/* What is divided by its place in the row: a number that all rows share; and by that of the row. */
static ty_val by_place(ty_graph *g, ty_val x)
{
    const ty_type *t = ty_graph_type(g, x);
    ty_val place = ty_b_add_s(g, ty_b_iota(g, *t, t->rank - 1), 1), row = ty_b_add_s(g, ty_b_iota(g, *t, 0), 1);
    ty_val y = ty_b_div(g, x, place);
    return ty_b_sub(g, ty_b_div(g, y, row), ty_b_sum(g, y, last_axis(g, x), true));
}

/* 16 bits on both sides. */
static ty_val rounded(ty_graph *g, ty_val x)
{
    return ty_b_cast(g, softmax(g, ty_b_cast(g, x, TY_F32)), TY_BF16);
}

/* Elements of which each is its row's own number. */
static ty_val largest(ty_graph *g, ty_val x)
{
    const ty_type *t = ty_graph_type(g, x);
    return ty_b_broadcast(g, ty_b_reduce(g, x, TY_MAX, last_axis(g, x), true), t->rank, t->dim);
}

/* A row of two axes, which lie otherwise in one of the factors. */
static ty_val plane(ty_graph *g, ty_val x)
{
    ty_val y = ty_b_mul(g, x, ty_b_transpose(g, x, (const int64_t[]){0, 2, 1}));
    return ty_b_sub(g, y, ty_b_sum(g, y, 1u << 1 | 1u << 2, true));
}

/* Where an element is read stands in memory. */
static ty_val named(ty_graph *g, ty_val x)
{
    return softmax(g, ty_b_take(g, x, ty_b_cast(g, ty_b_relu(g, x), TY_I64), 1));
}

/* Whole numbers, which are divided too. */
static ty_val counted(ty_graph *g, ty_val x)
{
    ty_val n = ty_b_cast(g, ty_b_mul_s(g, x, 100), TY_I32);
    return ty_b_div(g, ty_b_mul_s(g, n, 7), ty_b_sum(g, n, last_axis(g, x), true));
}

/* Elements behind a margin are read where there are some alone. */
static ty_val padded(ty_graph *g, ty_val x)
{
    const int64_t lo[] = {0, 1}, hi[] = {0, 1};
    return softmax(g, ty_b_pad(g, x, lo, hi, 0));
}

/* Neighbours of the last axis lie side by side as they are, up to its end. */
static ty_val turned(ty_graph *g, ty_val x)
{
    return softmax(g, ty_b_transpose(g, x, (const int64_t[]){0, 2, 1}));
}

/* Rows that are the same, forty of each. */
static ty_val stretched(ty_graph *g, ty_val x)
{
    const ty_type t = *ty_graph_type(g, x);
    ty_val rows = ty_b_reshape(g, x, 3, (const int64_t[]){t.dim[0], 1, t.dim[1]});
    ty_val y = ty_b_broadcast(g, rows, 3, (const int64_t[]){t.dim[0], 40, t.dim[1]});
    return ty_b_div(g, y, ty_b_sum(g, ty_b_square(g, y), 1u << 2, true));
}

typedef struct beside_case {
    const char *name;
    ty_val (*make)(ty_graph *, ty_val x);
    ty_dtype of; /* x */
    int64_t dim[3];
    bool suits;
    const char *words; /* that its text has, or NULL */
} beside_case;

static const beside_case cases[] = {
    {"softmax of three", softmax, TY_F32, {1000, 3}, true, "x0[i1][c] = b"},
    {"softmax of one vector and a half", softmax, TY_F32, {1000, 24}, true, "ty_turn_4(x0"},
    {"softmax of 20, rows of an odd number", softmax, TY_F32, {777, 20}, true, "ty_turn_4(&b"},
    {"softmax of 49", softmax, TY_F32, {300, 49}, true, "ty_turn_4(x0"},
    {"softmax of many", softmax, TY_F32, {300, 64}, false, NULL},
    {"softmax of few rows", softmax, TY_F32, {15, 10}, false, NULL},
    {"softmax of some rows", softmax, TY_F32, {50, 10}, true, "c < 16l"},
    {"softmax of planes", softmax, TY_F32, {7, 40, 5}, true, NULL},
    {"sums of five", sum, TY_F32, {900, 5}, true, NULL},
    {"sums of 40, which cost little", sum, TY_F32, {900, 40}, false, NULL},
    {"norm of eleven", norm, TY_F32, {513, 11}, true, NULL},
    {"norm of 40, which costs little", norm, TY_F32, {513, 40}, false, NULL},
    {"the largest of six", is_largest, TY_F32, {700, 6}, true, NULL},
    {"span of seven", span, TY_F32, {700, 7}, true, "v0 != v0"},
    {"by place", by_place, TY_F32, {300, 9}, true, NULL},
    {"rounded", rounded, TY_BF16, {640, 21}, true, "ty_turn_2(&b"},
    {"rounded, of few", rounded, TY_BF16, {640, 4}, true, "ty_load_bf16(x0"},
    {"largest", largest, TY_F32, {320, 9}, true, NULL},
    {"planes", plane, TY_F32, {300, 4, 4}, false, NULL},
    {"named", named, TY_F32, {300, 12}, false, NULL},
    {"counted", counted, TY_F32, {300, 12}, true, NULL},
    {"padded", padded, TY_F32, {300, 12}, false, NULL},
    {"turned", turned, TY_F32, {6, 13, 100}, true, "x0[i2][c] = b"},
    {"stretched", stretched, TY_F32, {5, 9}, true, "ty_turn_4(x0"},
    {"turned, of short planes", turned, TY_F32, {60, 13, 5}, false, NULL},
};

static ty_type type_of(const beside_case *c)
{
    return ty_type_make(c->of, c->dim[2] ? 3 : 2, c->dim);
}

static ty_graph *graph_of(const beside_case *c)
{
    ty_type t = type_of(c);
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, (ty_dtype)t.dtype, t.rank, t.dim);
    ty_graph_add_output(g, "y", c->make(g, x), TY_TAPE_EVAL);
    expect_ok(g);
    return g;
}

static void what_is_done_side_by_side(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ty_graph *g = graph_of(&cases[i]);
        ty_fusion *f = NULL;
        const ty_kernel *k = case_kernel(cases[i].name, g, &f);
        if (ty_beside_suits(k) != cases[i].suits)
            fail_msg("%s: expected that it is %sdone side by side", cases[i].name, cases[i].suits ? "" : "not ");
        if (cases[i].words)
            case_expect_words(cases[i].name, k, cases[i].words, true);
        ty_fusion_free(f);
        ty_graph_free(g);
    }
}

/* Within a relative error, a step of 16 bits where they have no more; what is no number is none in both. */
static void expect_near(const beside_case *c, const ty_tensor *found, const ty_tensor *expected)
{
    double bound = expected->type.dtype == TY_BF16 ? 0x1p-7 : 1e-5;
    int numbers = 0;
    for (int64_t i = 0; i < ty_type_elems(&expected->type); i++) {
        double a = case_number(found, i), b = case_number(expected, i);
        numbers += b == b;
        if (!(fabs(a - b) <= bound * fabs(b) + 1e-6) && !(a != a && b != b))
            fail_msg("%s, element %ld: expected %.9g, found %.9g", c->name, (long)i, b, a);
    }
    assert_true(numbers > 0);
}

static void fill(const beside_case *c, void *to)
{
    static float x[MOST];
    ty_type t = type_of(c);
    int64_t n = ty_type_elems(&t);
    assert_in_range(n, 1, MOST);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)((i * 37) % 101) / 25.0f;
    x[n / 2] = NAN;
    x[n - 1] = -1;
    for (int64_t i = 0; i < n && c->of == TY_BF16; i++)
        ((uint16_t *)to)[i] = ty_f32_to_bf16(x[i]);
    if (c->of == TY_F32)
        memcpy(to, x, (size_t)n * sizeof *x);
}

static void numbers_are_the_interpreters(void **state)
{
    (void)state;
    static float x[MOST];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const beside_case *c = &cases[i];
        fill(c, x);
        ty_program *judge = case_run(c->name, graph_of(c), TY_BACKEND_INTERPRETER, 1, x);
        ty_program *one = case_run(c->name, graph_of(c), TY_BACKEND_CPU, 1, x);
        ty_program *two = case_run(c->name, graph_of(c), TY_BACKEND_CPU, THREADS, x);
        const ty_tensor *a = ty_program_output(one, TY_RUN_EVAL, "y"), *b = ty_program_output(two, TY_RUN_EVAL, "y");
        expect_near(c, b, ty_program_output(judge, TY_RUN_EVAL, "y"));
        assert_memory_equal(a->data, b->data, ty_type_bytes(&b->type));
        ty_program_free(judge);
        ty_program_free(one);
        ty_program_free(two);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_done_side_by_side),
        cmocka_unit_test(numbers_are_the_interpreters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
