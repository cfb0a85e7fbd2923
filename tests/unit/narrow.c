/* The narrow pass: what is turned is turned in 16 bits, where it has no more on one side, and by copies of its own; all
 * else stays, and so do the numbers. */
#include "tests/unit/evaluate.h"

#include "compiler/passes/fuse.h"
#include "compiler/passes/passes.h"

enum { PLANES = 4, ROWS = 96, COLUMNS = 80, N = PLANES * ROWS * COLUMNS };

static const int64_t shape[] = {PLANES, ROWS, COLUMNS};
static const int64_t turn[] = {0, 2, 1}, swap[] = {1, 0, 2};

/* x is of 16 bits, as a product's result; so is what the next one reads. Each makes one value of x. */
static ty_val widened(ty_graph *g, ty_val x)
{
    return ty_b_exp(g, ty_b_transpose(g, ty_b_cast(g, x, TY_F32), turn));
}

static ty_val narrowed(ty_graph *g, ty_val x)
{
    return ty_b_cast(g, ty_b_transpose(g, ty_b_exp(g, ty_b_cast(g, x, TY_F32)), turn), TY_BF16);
}

/* Rounded to what it was, beside what it was. */
static ty_val back(ty_graph *g, ty_val x)
{
    ty_val y = ty_b_transpose(g, ty_b_cast(g, x, TY_F32), turn);
    return ty_b_cast(g, ty_b_add(g, ty_b_cast(g, ty_b_cast(g, y, TY_BF16), TY_F32), y), TY_BF16);
}

/* In float32 too, for another reader. */
static ty_val read_twice(ty_graph *g, ty_val x)
{
    ty_val y = ty_b_transpose(g, ty_b_exp(g, ty_b_cast(g, x, TY_F32)), turn);
    return ty_b_add(g, ty_b_exp(g, y), ty_b_cast(g, ty_b_cast(g, y, TY_BF16), TY_F32));
}

/* Rows stay whole. */
static ty_val swapped(ty_graph *g, ty_val x)
{
    return ty_b_exp(g, ty_b_transpose(g, ty_b_cast(g, x, TY_F32), swap));
}

/* From 64 bits to 32. */
static ty_val wide(ty_graph *g, ty_val x)
{
    ty_val y = ty_b_exp(g, ty_b_cast(g, x, TY_F64));
    return ty_b_cast(g, ty_b_transpose(g, y, turn), TY_F32);
}

typedef struct narrow_case {
    const char *name;
    ty_val (*make)(ty_graph *, ty_val x);
    bool changes;
    ty_dtype of; /* what is turned, behind the pass */
} narrow_case;

static const narrow_case cases[] = {
    {"widened", widened, true, TY_BF16},       {"narrowed", narrowed, true, TY_BF16}, {"back", back, true, TY_BF16},
    {"read twice", read_twice, false, TY_F32}, {"swapped", swapped, false, TY_F32},   {"wide", wide, false, TY_F64},
};

static ty_graph *graph_of(const narrow_case *c)
{
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_BF16, 3, shape);
    ty_graph_add_output(g, "y", c->make(g, x), TY_TAPE_EVAL);
    expect_ok(g);
    return g;
}

/* The only transpose that an output depends on. */
static uint32_t turned_in(const narrow_case *c, const ty_graph *g)
{
    uint8_t *live = calloc(ty_graph_n_nodes(g), 1);
    uint32_t found = TY_NONE;
    ty_graph_mark_live(g, TY_TAPE_EVAL, live);
    for (uint32_t node = 0; node < ty_graph_n_nodes(g); node++)
        if (live[node] && ty_graph_op(g, node) == TY_OP_TRANSPOSE) {
            if (found != TY_NONE)
                fail_msg("%s: expected one transpose, found two", c->name);
            found = node;
        }
    free(live);
    assert_int_not_equal(found, TY_NONE);
    return found;
}

static double *numbers_of(const ty_graph *g)
{
    static uint16_t x[N];
    ty_interp *it;
    ty_error err = {0};
    for (int i = 0; i < N; i++)
        x[i] = ty_f32_to_bf16((float)(i % 97) / 32.0f - 1.0f);
    assert_int_equal(ty_interp_new(g, &it, &err), 0);
    if (ty_interp_run(it, TY_TAPE_EVAL, (const void *[]){x}, true, &err) < 0)
        fail_msg("%s", err.message);
    double *y = malloc(N * sizeof *y);
    memcpy(y, ty_interp_output(it, 0)->f, N * sizeof *y);
    ty_interp_free(it);
    return y;
}

static void expect_same_numbers(const ty_graph *a, const ty_graph *b)
{
    double *of_a = numbers_of(a), *of_b = numbers_of(b);
    assert_memory_equal(of_a, of_b, N * sizeof *of_a);
    free(of_a);
    free(of_b);
}

static void what_is_turned_is_short(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ty_graph *g = graph_of(&cases[i]), *after = NULL;
        ty_error err = {0};
        if (ty_pass_narrow(g, &after, &err) < 0 || (after && ty_graph_verify(after, &err) < 0))
            fail_msg("%s: %s", cases[i].name, err.message);
        if (!after != !cases[i].changes)
            fail_msg("%s: expected that it %s", cases[i].name, cases[i].changes ? "changes" : "stays");
        const ty_graph *found = after ? after : g;
        uint32_t node = turned_in(&cases[i], found);
        assert_int_equal(ty_graph_type(found, ty_val_make(node, 0))->dtype, cases[i].of);
        if (after)
            expect_same_numbers(g, after);
        ty_graph_free(after);
        ty_graph_free(g);
    }
}

/* What is rounded for it is stored, and turned by a kernel that does nothing else. */
static void expect_copy(ty_graph *g)
{
    ty_graph *after = NULL;
    ty_fusion *f = NULL;
    ty_error err = {0};
    int kernels = 0, copies = 0;
    assert_int_equal(ty_pass_narrow(g, &after, &err), 0);
    assert_int_equal(ty_pass_fuse(after, TY_TAPE_EVAL, 2, &f, &err), 0);
    for (uint32_t u = 0; u < f->n_units; u++)
        if (f->unit[u].kind == TY_UNIT_KERNEL) {
            const ty_kernel *k = f->unit[u].kernel;
            kernels++;
            copies += k->n_instrs == 1 && k->instr[0].dtype == TY_BF16;
        }
    assert_int_equal(kernels, 2);
    assert_int_equal(copies, 1);
    ty_fusion_free(f);
    ty_graph_free(after);
    ty_graph_free(g);
}

static void sixteen_bits_are_turned_by_a_copy(void **state)
{
    (void)state;
    expect_copy(graph_of(&cases[1]));
    /* a convolution's weights, whose windows are short, but not its rows of them */
    ty_graph *g = ty_graph_new();
    ty_val w = new_input(g, TY_F32, SHAPE(3, 3, 32, 64));
    w = ty_b_cast(g, ty_b_transpose(g, w, (const int64_t[]){3, 2, 0, 1}), TY_BF16);
    ty_graph_add_output(g, "w", w, TY_TAPE_EVAL);
    expect_copy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_turned_is_short),
        cmocka_unit_test(sixteen_bits_are_turned_by_a_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
