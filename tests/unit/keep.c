/* keep.c - what a row computes twice, kept in its result's memory or in a row of its own: when, and when not. */
#include "compiler/kernel/keep.h"

#include "compiler/passes/fuse.h"
#include "compiler/program.h"
#include "tests/unit/evaluate.h"

enum { ROWS = 5, WIDTH = 300, WIDE = 70000, TOO_WIDE = 140000 };

/* exp(x - max) by its sum, along a row. */
static ty_val softmax(ty_graph *g, ty_val x)
{
    ty_val e = ty_b_exp(g, ty_b_sub(g, x, ty_b_reduce(g, x, TY_MAX, 2, true)));
    return ty_b_mul(g, e, ty_b_reciprocal(g, ty_b_sum(g, e, 2, true)));
}

static ty_val plain(ty_graph *g, ty_val x)
{
    return softmax(g, x);
}

/* Reads x again where the result is written. */
static ty_val times_operand(ty_graph *g, ty_val x)
{
    return ty_b_mul(g, softmax(g, x), x);
}

/* A result that has no room for the number: it is kept in a row of its own. */
static ty_val rounded(ty_graph *g, ty_val x)
{
    return ty_b_cast(g, softmax(g, x), TY_BF16);
}

/* Nothing dear is computed twice. */
static ty_val centred(ty_graph *g, ty_val x)
{
    return ty_b_sub(g, x, ty_b_mean(g, x, 2, true));
}

/* The sum is of the row read backwards, the result is not. */
static ty_val reversed(ty_graph *g, ty_val x)
{
    ty_val shifted = ty_b_sub(g, x, ty_b_reduce(g, x, TY_MAX, 2, true));
    ty_val e = ty_b_exp(g, shifted), back = ty_b_reverse(g, x, 2);
    ty_val sum = ty_b_sum(g, ty_b_mul(g, e, back), 2, true);
    return ty_b_mul(g, e, sum);
}

typedef struct keep_case {
    const char *name;
    ty_val (*make)(ty_graph *, ty_val x);
    int64_t width;
    bool apart, in_place; /* kept with the result beside x; over x */
    bool own;             /* in a row of its own */
} keep_case;

static const keep_case cases[] = {
    {"softmax", plain, WIDTH, true, true, false},
    {"softmax of wide rows", plain, WIDE, true, true, false},
    {"softmax of too wide rows", plain, TOO_WIDE, false, false, false},
    {"softmax by x", times_operand, WIDTH, true, false, false},
    {"rounded", rounded, WIDTH, true, true, true},
    {"rounded, more than a stack has", rounded, WIDE, false, false, false},
    {"centred", centred, WIDTH, false, false, false},
    {"read backwards", reversed, WIDTH, true, false, false},
};

static ty_graph *graph_of(const keep_case *c)
{
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, 2, (const int64_t[]){ROWS, c->width});
    ty_graph_add_output(g, "y", c->make(g, x), TY_TAPE_EVAL);
    expect_ok(g);
    return g;
}

static int printed_exps(const ty_kernel *k)
{
    int n = 0;
    for (uint32_t i = 0; i < k->n_instrs; i++)
        n += k->instr[i].stage >= 0 && k->instr[i].kop == TY_K_OP && k->instr[i].op == TY_OP_EXP;
    return n;
}

static void expect_kept(const keep_case *c, const ty_kernel *k, bool over)
{
    uint32_t alias[16];
    ty_arena arena;
    ty_kernel out;
    uint32_t written = TY_NONE;
    for (int i = 0; i < k->n_buffers; i++)
        written = k->buffer[i].written ? (uint32_t)i : written;
    for (int i = 0; i < k->n_buffers; i++)
        alias[i] = over ? written : (uint32_t)i;
    ty_arena_init(&arena);
    bool kept = ty_kernel_keep(k, alias, &arena, &out), expected = over ? c->in_place : c->apart;
    if (kept != expected)
        fail_msg("%s, %s: expected that it is %skept", c->name, over ? "in place" : "apart", expected ? "" : "not ");
    if (kept) {
        assert_int_equal(out.n_stores, k->n_stores + 1);
        assert_int_equal(out.n_buffers, k->n_buffers + c->own);
        assert_true(!c->own || out.buffer[k->n_buffers].own);
        assert_int_equal(printed_exps(k), 2);
        assert_int_equal(printed_exps(&out), 1);
    }
    ty_arena_fini(&arena);
}

static void what_is_kept(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ty_graph *g = graph_of(&cases[i]);
        ty_fusion *f = NULL;
        ty_error err = {0};
        assert_int_equal(ty_pass_fuse(g, TY_TAPE_EVAL, 1, &f, &err), 0);
        int n = 0;
        for (uint32_t u = 0; u < f->n_units; u++)
            if (f->unit[u].kind == TY_UNIT_KERNEL) {
                expect_kept(&cases[i], f->unit[u].kernel, false);
                expect_kept(&cases[i], f->unit[u].kernel, true);
                n++;
            }
        assert_int_equal(n, 1);
        ty_fusion_free(f);
        ty_graph_free(g);
    }
}

static const uint16_t *numbers_of(ty_backend backend, const float *x, ty_program **p)
{
    ty_error err = {0};
    ty_compile_options opt = {.threads = 2, .backend = backend};
    const keep_case c = {.make = rounded, .width = WIDTH};
    if (ty_program_of_graph(graph_of(&c), TY_TAPE_EVAL, &opt, p, &err) < 0 ||
        ty_program_run(*p, TY_RUN_EVAL, (const void *[]){x}, &err) < 0)
        fail_msg("%s", err.message);
    return ty_program_output(*p, TY_RUN_EVAL, "y")->data;
}

/* Rows that two threads keep at the same time. */
static void what_is_kept_apart_comes_back(void **state)
{
    (void)state;
    static float x[ROWS * WIDTH];
    ty_program *p, *judge;
    for (int i = 0; i < ROWS * WIDTH; i++)
        x[i] = (float)((i * 37) % 101) / 25.0f;
    const uint16_t *found = numbers_of(TY_BACKEND_CPU, x, &p),
                   *expected = numbers_of(TY_BACKEND_INTERPRETER, x, &judge);
    for (int i = 0; i < ROWS * WIDTH; i++) /* of positive numbers neighbours have neighbouring bits */
        if (abs(found[i] - expected[i]) > 1)
            fail_msg("number %d: expected %#x, found %#x", i, expected[i], found[i]);
    ty_program_free(p);
    ty_program_free(judge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_kept),
        cmocka_unit_test(what_is_kept_apart_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
