/* The align pass: products of 16 bits with rows of an odd length get zeros, and mean the same. */
#include "tests/unit/evaluate.h"

#include "compiler/ops/sliding.h"
#include "compiler/passes/passes.h"

enum { ROWS = 3, WIDTH = 16, WORDS = 1027 };

static ty_graph *passed(ty_graph *g, int (*pass)(const ty_graph *, ty_graph **, ty_error *))
{
    ty_graph *to;
    ty_error err = {0};
    expect_ok(g);
    if (pass(g, &to, &err) < 0 || ty_graph_verify(to, &err) < 0)
        fail_msg("%s", err.message);
    return to;
}

static ty_val half_input(ty_graph *g, int64_t rows, int64_t columns)
{
    return ty_b_cast(g, new_input(g, TY_F32, SHAPE(rows, columns)), TY_BF16);
}

/* Dots that are live: how many of them there are, and of how many every row in memory is whole groups of 16 bytes. */
static void count_dots(const ty_graph *g, int *all, int *aligned)
{
    uint8_t *live = calloc(ty_graph_n_nodes(g), 1);
    ty_graph_mark_live(g, TY_TAPE_ALL, live);
    *all = *aligned = 0;
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++) {
        if (!live[id] || ty_graph_op(g, id) != TY_OP_DOT)
            continue;
        int64_t odd = ty_graph_type(g, ty_val_make(id, 0))->dim[1] % 8;
        for (int i = 0; i < 2; i++)
            odd += ty_graph_type(g, ty_graph_in(g, id, i))->dim[1] % 8;
        ++*all;
        *aligned += odd == 0;
    }
    free(live);
}

static void expect_same_products(const ty_graph *before, const ty_graph *after)
{
    static float numbers[3][WORDS * WIDTH];
    static int64_t places[ROWS] = {5, WORDS - 1, 5};
    const void *inputs[] = {numbers[0], numbers[1], numbers[2], places};
    for (int i = 0; i < 3 * WORDS * WIDTH; i++)
        numbers[i / (WORDS * WIDTH)][i % (WORDS * WIDTH)] = (float)(i * 37 % 101) / 64 - 0.75f;
    expect_same_outputs(before, after, TY_TAPE_EVAL, inputs);
}

/* Logits of an odd vocabulary, and both gradients of the product; the weight's is added to a scattered one, as that of
 * a tied table is. */
static void logits_and_gradients(void **state)
{
    (void)state;
    int all, aligned;
    ty_graph *g = ty_graph_new();
    ty_val x = half_input(g, ROWS, WIDTH), w = half_input(g, WORDS, WIDTH),
           u = new_input(g, TY_F32, SHAPE(ROWS, WIDTH));
    ty_val words = new_input(g, TY_I64, SHAPE(ROWS));
    ty_val y = ty_b_cast(g, ty_b_dot(g, x, w, false, true), TY_F32);
    ty_val dy = ty_b_cast(g, ty_b_mul(g, y, y), TY_BF16);
    ty_val zeros = ty_b_full(g, TY_F32, SHAPE(WORDS, WIDTH), 0);
    ty_graph_add_output(g, "y", y, TY_TAPE_EVAL);
    ty_graph_add_output(g, "dx", ty_b_dot(g, dy, w, false, false), TY_TAPE_EVAL);
    ty_graph_add_output(g, "dw",
                        ty_b_add(g, ty_b_dot_wide(g, dy, x, true, false), ty_b_scatter(g, zeros, words, u, 0, TY_SUM)),
                        TY_TAPE_EVAL);
    ty_graph *to = passed(g, ty_pass_align), *last = passed(to, ty_pass_accumulate);
    count_dots(last, &all, &aligned);
    assert_int_equal(all, 3);
    assert_int_equal(aligned, 3);
    expect_same_products(g, last);
    ty_graph_free(g);
    ty_graph_free(to);
    ty_graph_free(last);
}

/* What is added up in pieces is padded once, not between the pieces. */
static void pieces_stay_padded(void **state)
{
    (void)state;
    int all, aligned, pads = 0;
    ty_graph *g = ty_graph_new();
    ty_val x = half_input(g, ROWS, WIDTH), dy = half_input(g, ROWS, WORDS);
    ty_val sum = ty_b_dot_wide(g, dy, x, true, false);
    sum = ty_b_dot_add(g, ty_b_add(g, dy, dy), x, sum, true, false);
    ty_graph_add_output(g, "dw", sum, TY_TAPE_EVAL);
    ty_graph *to = passed(g, ty_pass_align);
    count_dots(to, &all, &aligned);
    assert_int_equal(all, 2);
    assert_int_equal(aligned, 2);
    for (uint32_t id = 0; id < ty_graph_n_nodes(to); id++)
        pads += ty_graph_op(to, id) == TY_OP_PAD && ty_graph_type(to, ty_val_make(id, 0))->dtype == TY_F32;
    assert_int_equal(pads, 0);
    expect_same_products(g, to);
    ty_graph_free(g);
    ty_graph_free(to);
}

/* float32, even rows and small products stay. */
static void others_stay(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        int64_t words = i == 1 ? 1032 : i == 2 ? 27 : WORDS;
        ty_graph *g = ty_graph_new();
        ty_val x = new_input(g, TY_F32, SHAPE(ROWS, WIDTH)), w = new_input(g, TY_F32, SHAPE(WIDTH, words));
        ty_val y = i == 0 ? ty_b_dot(g, x, w, false, false)
                          : ty_b_dot(g, ty_b_cast(g, x, TY_F16), ty_b_cast(g, w, TY_F16), false, false);
        ty_graph_add_output(g, "y", y, TY_TAPE_EVAL);
        ty_graph *to = passed(g, ty_pass_align);
        for (uint32_t id = 0; id < ty_graph_n_nodes(to); id++)
            assert_int_not_equal(ty_graph_op(to, id), TY_OP_PAD);
        ty_graph_free(g);
        ty_graph_free(to);
    }
}

/* y, and the gradient for the weights of sum(y^2) / 2. */
static void add_convolution(ty_graph *g, ty_val x, ty_val w, ty_attr attr)
{
    ty_val y = ty_graph_emit(g, TY_OP_CONV, &attr, (ty_val[]){x, w}, 2);
    attr.type = *ty_graph_type(g, w);
    ty_val dw = ty_graph_emit(g, TY_OP_CONV_DW, &attr, (ty_val[]){x, y}, 2);
    ty_graph_add_output(g, "y", ty_b_cast(g, y, TY_F32), TY_TAPE_EVAL);
    ty_graph_add_output(g, "dw", ty_b_cast(g, dw, TY_F32), TY_TAPE_EVAL);
}

/* A convolution over `channels`, channels-last, and its gradient for the weights. */
static ty_graph *convolved(ty_dtype dtype, int64_t channels)
{
    ty_graph *g = ty_graph_new();
    ty_val x = ty_b_cast(g, new_input(g, TY_F32, SHAPE(2, 6, 5, channels)), dtype);
    ty_val w = ty_b_cast(g, new_input(g, TY_F32, SHAPE(8, 3, 3, channels)), dtype);
    ty_attr attr = {.n = 2,
                    .step = {1, 1},
                    .dil = {1, 1},
                    .lo = {1, 1},
                    .hi = {1, 1},
                    .groups = 1,
                    .flags = TY_SLIDING_LAST | TY_SLIDING_WEIGHTS_LAST};
    add_convolution(g, x, w, attr);
    return g;
}

/* How many of the convolutions read whole groups of 16 bytes at each position. */
static int aligned_convolutions(const ty_graph *g)
{
    int n = 0;
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++)
        if (ty_graph_op(g, id) == TY_OP_CONV || ty_graph_op(g, id) == TY_OP_CONV_DW)
            n += ty_graph_type(g, ty_graph_in(g, id, 0))->dim[3] % 8 == 0;
    return n;
}

static void pictures_get_channels(void **state)
{
    (void)state;
    static const struct {
        ty_dtype dtype;
        int64_t channels;
        int n;
    } cases[] = {{TY_BF16, 3, 2}, {TY_F16, 13, 2}, {TY_BF16, 16, 2}, {TY_F32, 3, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ty_graph *g = convolved(cases[i].dtype, cases[i].channels), *to = passed(g, ty_pass_align);
        assert_int_equal(aligned_convolutions(to), cases[i].n);
        expect_same_products(g, to);
        ty_graph_free(g);
        ty_graph_free(to);
    }
}

/* Windows of some size over 10 x 12 positions, two at a time. */
typedef struct stride_case {
    int64_t size[2], lo[2], hi[2], channels;
    bool folds;
} stride_case;

static ty_graph *strided(const stride_case *s)
{
    ty_graph *g = ty_graph_new();
    ty_val x = ty_b_cast(g, new_input(g, TY_F32, SHAPE(2, 10, 12, s->channels)), TY_BF16);
    ty_val w = ty_b_cast(g, new_input(g, TY_F32, SHAPE(8, s->size[0], s->size[1], s->channels)), TY_BF16);
    ty_attr attr = {
        .n = 2, .step = {2, 2}, .dil = {1, 1}, .groups = 1, .flags = TY_SLIDING_LAST | TY_SLIDING_WEIGHTS_LAST};
    memcpy(attr.lo, s->lo, sizeof s->lo);
    memcpy(attr.hi, s->hi, sizeof s->hi);
    add_convolution(g, x, w, attr);
    return g;
}

static void strides_become_channels(void **state)
{
    (void)state;
    static const stride_case cases[] = {
        {{7, 7}, {3, 3}, {3, 3}, 3, true},  {{3, 3}, {1, 1}, {1, 1}, 3, true},  {{3, 3}, {0, 0}, {1, 1}, 3, true},
        {{4, 3}, {2, 1}, {1, 0}, 1, true},  {{2, 2}, {0, 0}, {0, 0}, 4, true},  {{5, 6}, {1, 2}, {4, 3}, 2, true},
        {{1, 1}, {0, 0}, {0, 0}, 3, false}, {{3, 3}, {1, 1}, {1, 1}, 5, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ty_graph *g = strided(&cases[i]), *to = passed(g, ty_pass_align);
        int folded = 0;
        for (uint32_t id = 0; id < ty_graph_n_nodes(to); id++)
            if (ty_graph_op(to, id) == TY_OP_CONV || ty_graph_op(to, id) == TY_OP_CONV_DW)
                folded += ty_graph_attr(to, id)->step[0] == 1;
        assert_int_equal(folded, cases[i].folds ? 2 : 0);
        assert_int_equal(aligned_convolutions(to), 2);
        expect_same_products(g, to);
        ty_graph_free(g);
        ty_graph_free(to);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_and_gradients),
        cmocka_unit_test(pieces_stay_padded),
        cmocka_unit_test(others_stay),
        cmocka_unit_test(pictures_get_channels),
        cmocka_unit_test(strides_become_channels),
    };
    return cmocka_run_group_tests_name("align", tests, NULL, NULL);
}
