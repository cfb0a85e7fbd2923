/* layout.c - the layout pass: what it makes of small graphs, what it leaves alone, and that nothing changes its value.
 */
#include "base/rng.h"
#include "compiler/ops/sliding.h"
#include "compiler/passes/passes.h"
#include "compiler/program.h"
#include "tests/unit/evaluate.h"

#include <math.h>

/* ---- the interpreter on both graphs ---- */

static int (*pass)(const ty_graph *in, ty_graph **out, ty_error *err) = ty_pass_layout; /* that is tried */

static ty_graph *laid_out(const ty_graph *g)
{
    ty_graph *to;
    ty_error err = {0};
    expect_ok(g);
    if (pass(g, &to, &err) < 0 || ty_graph_verify(to, &err) < 0)
        fail_msg("%s", err.message);
    return to;
}

static void *noise(const ty_type *t, int stream)
{
    int64_t n = ty_type_elems(t);
    float *x = calloc((size_t)n + 1, sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(2.0 * ty_rng_u32(5, (uint32_t)stream, 0, (uint64_t)i) * 0x1p-32 - 1);
    return x;
}

static ty_interp *run(const ty_graph *g, const void *const *inputs)
{
    ty_interp *it;
    ty_error err = {0};
    assert_int_equal(ty_interp_new(g, &it, &err), 0);
    if (ty_interp_run(it, TY_TAPE_EVAL, inputs, false, &err) < 0)
        fail_msg("%s", err.message);
    return it;
}

/* Same outputs before and after; frees g and hands over the new graph. */
static ty_graph *expect_same(ty_graph *g)
{
    ty_graph *to = laid_out(g);
    const void *inputs[8];
    int n = ty_graph_n_inputs(g);
    for (int i = 0; i < n; i++)
        inputs[i] = noise(&ty_graph_input(g, i)->type, i);
    ty_interp *before = run(g, inputs), *after = run(to, inputs);
    for (int o = 0; o < ty_graph_n_outputs(g); o++) {
        const ty_ref *a = ty_interp_output(before, o), *b = ty_interp_output(after, o);
        assert_true(ty_type_same(&a->type, &b->type));
        for (int64_t k = 0; k < ty_type_elems(&a->type); k++) {
            double want = a->f ? a->f[k] : (double)a->i[k], found = b->f ? b->f[k] : (double)b->i[k];
            if (!(fabs(want - found) <= 1e-12 * (1 + fabs(want))))
                fail_msg("output %d, element %lld: expected %.17g, found %.17g", o, (long long)k, want, found);
        }
    }
    for (int i = 0; i < n; i++)
        free((void *)(uintptr_t)inputs[i]);
    ty_interp_free(before);
    ty_interp_free(after);
    ty_graph_free(g);
    return to;
}

static int count(const ty_graph *g, ty_op op)
{
    uint8_t *live = calloc(ty_graph_n_nodes(g) + 1, 1);
    int n = 0;
    assert_non_null(live);
    ty_graph_mark_live(g, TY_TAPE_ALL, live);
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++)
        n += live[id] && ty_graph_op(g, id) == op;
    free(live);
    return n;
}

static int live_nodes(const ty_graph *g)
{
    int n = 0;
    for (ty_op op = 0; op < TY_N_OPS; op++)
        n += count(g, op);
    return n;
}

static void output(ty_graph *g, ty_val v)
{
    char name[16];
    snprintf(name, sizeof name, "y%d", ty_graph_n_outputs(g));
    ty_graph_add_output(g, name, v, TY_TAPE_EVAL);
}

static ty_attr window(uint32_t n, int64_t size, int64_t step, int64_t pad)
{
    ty_attr a = {.n = n, .groups = 1};
    for (uint32_t i = 0; i < n; i++) {
        a.size[i] = size;
        a.step[i] = step;
        a.lo[i] = a.hi[i] = pad;
        a.dil[i] = 1;
    }
    return a;
}

static ty_val conv(ty_graph *g, ty_val x, ty_val w, int64_t step, int64_t pad, int64_t groups)
{
    ty_attr a = window((uint32_t)ty_b_rank(g, x) - 2, 0, step, pad);
    a.groups = groups;
    return ty_graph_emit(g, TY_OP_CONV, &a, (ty_val[]){x, w}, 2);
}

/* y * scale[C] + bias[C], above 0 */
static ty_val scaled_relu(ty_graph *g, ty_val y, ty_val scale)
{
    int64_t dim[TY_MAX_RANK] = {1, ty_b_dim(g, y, 1), 1, 1, 1};
    ty_val s = ty_b_reshape(g, scale, ty_b_rank(g, y), dim);
    return ty_b_relu(g, ty_b_add(g, ty_b_mul(g, y, s), s));
}

/* ---- what it makes ---- */

static void text_of_a_small_network(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, SHAPE(2, 3, 6, 5)), w = new_input(g, TY_F32, SHAPE(4, 3, 3, 3));
    ty_val scale = new_input(g, TY_F32, SHAPE(4));
    output(g, ty_b_sum(g, scaled_relu(g, conv(g, x, w, 1, 1, 1), scale), 1u << 2 | 1u << 3, false));
    ty_graph *to = expect_same(g);
    ty_buf text;
    ty_buf_init(&text, 1 << 20);
    assert_int_equal(ty_graph_print(to, &text, false), 0);
    assert_string_equal(
        text.data, "graph\n"
                   "input 0 \"x0\" f32[2,3,6,5]\n"
                   "input 1 \"x1\" f32[4,3,3,3]\n"
                   "input 2 \"x2\" f32[4]\n"
                   "%0 = input() {type=f32[2,3,6,5] index=0} : f32[2,3,6,5]\n"
                   "%1 = input() {type=f32[4,3,3,3] index=1} : f32[4,3,3,3]\n"
                   "%2 = input() {type=f32[4] index=2} : f32[4]\n"
                   "%3 = transpose(%0) {n=4 lo=[0 2 3 1]} : f32[2,6,5,3]\n"
                   "%4 = conv(%3, %1) {flags=1 n=2 lo=[1 1] hi=[1 1] step=[1 1] dil=[1 1] groups=1} : f32[2,6,5,4]\n"
                   "%5 = reshape(%2) {type=f32[1,4,1,1]} : f32[1,4,1,1]\n"
                   "%6 = broadcast(%5) {type=f32[2,4,6,5]} : f32[2,4,6,5]\n"
                   "%7 = reshape(%2) {type=f32[1,1,1,4]} : f32[1,1,1,4]\n"
                   "%8 = broadcast(%7) {type=f32[2,6,5,4]} : f32[2,6,5,4]\n"
                   "%9 = mul(%4, %8) : f32[2,6,5,4]\n"
                   "%10 = add(%8, %9) : f32[2,6,5,4]\n"
                   "%11 = const() {type=f32[1,1,1,1]} = [0x0p+0] : f32[1,1,1,1]\n"
                   "%12 = broadcast(%11) {type=f32[2,4,6,5]} : f32[2,4,6,5]\n"
                   "%13 = broadcast(%11) {type=f32[2,6,5,4]} : f32[2,6,5,4]\n"
                   "%14 = le(%10, %13) : bool[2,6,5,4]\n"
                   "%15 = select(%14, %13, %10) : f32[2,6,5,4]\n"
                   "%16 = reduce(%15) {axes=[1 2] mode=sum} : f32[2,4]\n"
                   "output \"y0\" %16 eval\n");
    ty_buf_fini(&text);
    ty_graph_free(to);
}

/* Windows of 1 x 1 and their gradients are products; the batch is the only thing that is transposed. */
static void expect_products(int64_t step)
{
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, SHAPE(2, 5, 3, 4)), w = new_input(g, TY_F32, SHAPE(7, 5, 1, 1));
    ty_val y = conv(g, x, w, step, 0, 1), grad[2];
    output(g, ty_b_sum(g, y, 15, false));
    ty_val loss = ty_b_sum(g, ty_b_square(g, y), 15, false);
    assert_int_equal(ty_pass_autodiff(g, loss, (ty_val[]){x, w}, 2, grad, NULL), 0);
    output(g, ty_b_sum(g, ty_b_square(g, grad[0]), 15, false));
    output(g, grad[1]);
    ty_graph *to = expect_same(g);
    assert_int_equal(count(to, TY_OP_DOT), 3);
    assert_int_equal(count(to, TY_OP_CONV) + count(to, TY_OP_CONV_DX) + count(to, TY_OP_CONV_DW), 0);
    assert_int_equal(count(to, TY_OP_TRANSPOSE), 1);
    ty_graph_free(to);
}

static void products(void **state)
{
    (void)state;
    for (int64_t step = 1; step <= 3; step++)
        expect_products(step);
}

/* Forward and backward of conv, scale, ReLU, residual, pools: the borders are the batch and the flattened plane. */
static void only_borders_are_transposed(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, SHAPE(2, 4, 8, 8)), w = new_input(g, TY_F32, SHAPE(4, 4, 3, 3));
    ty_val scale = new_input(g, TY_F32, SHAPE(4)), fc = new_input(g, TY_F32, SHAPE(64, 3)), grad[3];
    ty_val y = scaled_relu(g, conv(g, x, w, 1, 1, 1), scale);
    y = ty_b_add(g, y, scaled_relu(g, conv(g, y, w, 1, 1, 1), scale));
    ty_attr pool = window(2, 2, 2, 0);
    pool.groups = 0;
    y = ty_graph_emit(g, TY_OP_POOL_MAX, &pool, &y, 1);
    ty_val loss =
        ty_b_sum(g, ty_b_square(g, ty_b_dot(g, ty_b_reshape(g, y, SHAPE(2, 64)), fc, false, false)), 3, false);
    assert_int_equal(ty_pass_autodiff(g, loss, (ty_val[]){w, scale, fc}, 3, grad, NULL), 0);
    for (int i = 0; i < 3; i++)
        output(g, grad[i]);
    ty_graph *to = expect_same(g);
    assert_int_equal(count(to, TY_OP_TRANSPOSE), 3); /* x, and the plane there and back */
    ty_graph_free(to);
}

static void without_convolution_nothing_moves(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, SHAPE(2, 8, 6, 6));
    ty_attr pool = window(2, 2, 2, 0);
    pool.groups = 0;
    output(g, ty_graph_emit(g, TY_OP_POOL_SUM, &pool, &x, 1));
    output(g, ty_b_transpose(g, ty_b_relu(g, x), (const int64_t[]){0, 2, 3, 1}));
    int nodes = live_nodes(g);
    ty_graph *to = expect_same(g);
    assert_int_equal(live_nodes(to), nodes);
    assert_int_equal(count(to, TY_OP_TRANSPOSE), 1);
    ty_graph_free(to);
}

/* A model whose own order is channels-last has transposes around each convolution: none is left. */
static void transposes_of_the_model_vanish(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    const int64_t to_first[] = {0, 3, 1, 2}, to_last[] = {0, 2, 3, 1};
    ty_val y = new_input(g, TY_F32, SHAPE(2, 7, 6, 3)), w = new_input(g, TY_F32, SHAPE(3, 3, 3, 3));
    for (int i = 0; i < 3; i++)
        y = ty_b_relu(g, ty_b_transpose(g, conv(g, ty_b_transpose(g, y, to_first), w, 1, 1, 1), to_last));
    output(g, y);
    ty_graph *to = expect_same(g);
    assert_int_equal(count(to, TY_OP_TRANSPOSE), 0);
    ty_graph_free(to);
}

/* ---- that nothing changes its value ---- */

/* Shapes of x [N, C, spatial..] and of windows: odd ones, 1 to 3 axes, groups, strides, padding. */
typedef struct conv_case {
    int rank;
    int64_t x[5], outs, size, step, pad, groups;
} conv_case;

static const conv_case conv_cases[] = {
    {4, {2, 3, 7, 5}, 5, 3, 1, 1, 1},    {4, {1, 1, 9, 4}, 2, 2, 2, 0, 1},    {4, {3, 6, 5, 5}, 9, 3, 2, 1, 3},
    {4, {2, 4, 6, 6}, 4, 3, 1, 1, 4},    {4, {2, 5, 4, 3}, 7, 1, 1, 0, 1},    {4, {2, 5, 4, 3}, 7, 1, 2, 0, 1},
    {4, {1, 4, 1, 1}, 3, 1, 1, 0, 1},    {3, {2, 4, 11}, 6, 3, 2, 1, 2},      {3, {3, 2, 8}, 3, 1, 1, 0, 1},
    {4, {2, 3, 7, 5}, 4, 1, 3, 0, 1},    {5, {1, 4, 4, 3, 5}, 3, 1, 2, 0, 1}, {5, {1, 2, 4, 3, 5}, 3, 2, 1, 1, 1},
    {5, {2, 2, 3, 3, 3}, 2, 1, 1, 0, 2},
};

static ty_val case_input(ty_graph *g, const conv_case *c)
{
    return new_input(g, TY_F32, c->rank, c->x);
}

static ty_val case_conv(ty_graph *g, const conv_case *c, ty_val x)
{
    int64_t dim[TY_MAX_RANK] = {c->outs, c->x[1] / c->groups, c->size, c->size, c->size};
    return conv(g, x, new_input(g, TY_F32, c->rank, dim), c->step, c->pad, c->groups);
}

static void convolutions_and_gradients(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof conv_cases / sizeof *conv_cases; i++) {
        ty_graph *g = ty_graph_new();
        ty_val x = case_input(g, &conv_cases[i]), y = case_conv(g, &conv_cases[i], x), grad[2];
        ty_val w = ty_graph_in(g, ty_val_node(y), 1);
        output(g, y);
        ty_val loss = ty_b_sum(g, ty_b_square(g, y), ty_b_all_axes(g, y), false);
        assert_int_equal(ty_pass_autodiff(g, loss, (ty_val[]){x, w}, 2, grad, NULL), 0);
        output(g, grad[0]);
        output(g, grad[1]);
        ty_graph_free(expect_same(g));
    }
}

static int count_weights_last(const ty_graph *g)
{
    int n = 0;
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++) {
        ty_op op = ty_graph_op(g, id);
        n += (op == TY_OP_CONV || op == TY_OP_CONV_DX || op == TY_OP_CONV_DW) &&
             ty_graph_attr(g, id)->flags & TY_SLIDING_WEIGHTS_LAST;
    }
    return n;
}

/* As tensor cores read them: weights are turned too, and strided windows of one element stay convolutions. In float32
 * without TF32 nothing is. */
static void on_a_gpu(void **state)
{
    pass = ty_pass_layout_gpu_tf32;
    convolutions_and_gradients(state);
    for (int tf32 = 0; tf32 < 2; tf32++) {
        ty_graph *g = ty_graph_new(), *to;
        ty_val x = new_input(g, TY_F32, SHAPE(2, 8, 6, 6)), w = new_input(g, TY_F32, SHAPE(4, 8, 3, 3));
        ty_val v = new_input(g, TY_F32, SHAPE(4, 4, 1, 1));
        pass = tf32 ? ty_pass_layout_gpu_tf32 : ty_pass_layout_gpu;
        output(g, conv(g, conv(g, x, w, 1, 1, 1), v, 2, 0, 1));
        to = expect_same(g);
        assert_int_equal(count_weights_last(to), tf32 ? 2 : 0);
        ty_graph_free(to);
    }
    pass = ty_pass_layout;
}

/* But for the gradient for x, of which three quarters would be zeros in memory. */
static void strided_gradients_on_a_gpu(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new(), *to;
    ty_val dy = new_input(g, TY_F32, SHAPE(2, 4, 3, 3)), w = new_input(g, TY_F32, SHAPE(4, 8, 1, 1));
    ty_attr a = window(2, 0, 2, 0);
    a.type = ty_type_make(TY_F32, SHAPE(2, 8, 6, 6));
    output(g, ty_b_relu(g, ty_graph_emit(g, TY_OP_CONV_DX, &a, (ty_val[]){dy, w}, 2)));
    output(g, conv(g, new_input(g, TY_F32, SHAPE(2, 8, 6, 6)), w, 2, 0, 1));
    pass = ty_pass_layout_gpu_tf32;
    to = expect_same(g);
    pass = ty_pass_layout;
    assert_int_equal(count_weights_last(to), 1);
    ty_graph_free(to);
}

/* The weight's gradient was wider than 16 bits and is rounded on the way: cuDNN writes the type that it reads. */
static void gradients_of_weights_on_a_gpu(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = ty_b_cast(g, new_input(g, TY_F32, SHAPE(2, 8, 6, 6)), TY_BF16);
    ty_attr a = window(2, 0, 1, 1);
    a.type = ty_type_make(TY_F32, SHAPE(8, 8, 3, 3));
    output(g, ty_graph_emit(g, TY_OP_CONV, &(ty_attr){.n = 2, .groups = 1, .step = {1, 1}, .dil = {1, 1}},
                            (ty_val[]){x, ty_b_cast(g, new_input(g, TY_F32, SHAPE(8, 8, 1, 1)), TY_BF16)}, 2));
    output(g, ty_graph_emit(g, TY_OP_CONV_DW, &a, (ty_val[]){x, x}, 2));
    pass = ty_pass_layout_gpu;
    ty_graph *to = laid_out(g);
    pass = ty_pass_layout;
    for (uint32_t id = 0; id < ty_graph_n_nodes(to); id++)
        if (ty_graph_op(to, id) == TY_OP_CONV_DW)
            assert_int_equal(ty_graph_type(to, ty_val_make(id, 0))->dtype, TY_BF16);
    assert_int_equal(ty_graph_type(to, ty_graph_output(to, 1)->val)->dtype, TY_F32);
    assert_int_equal(count_weights_last(to), 1);
    ty_graph_free(g);
    ty_graph_free(to);
}

/* Each builds something on y [2, 6, 4, 5], which comes from a convolution. */
typedef ty_val layout_case(ty_graph *g, ty_val y);

static ty_val on_slice(ty_graph *g, ty_val y)
{
    return ty_b_slice(g, y, (const int64_t[]){0, 1, 0, 1}, (const int64_t[]){2, 6, 3, 5},
                      (const int64_t[]){1, 2, 1, 3});
}

static ty_val on_pad(ty_graph *g, ty_val y)
{
    return ty_b_pad(g, y, (const int64_t[]){0, 1, 2, 0}, (const int64_t[]){1, 0, 3, 4}, 2.5);
}

static ty_val on_concat(ty_graph *g, ty_val y)
{
    ty_val x = new_input(g, TY_F32, SHAPE(2, 3, 4, 5));
    return ty_b_concat(g, (ty_val[]){x, y, ty_b_relu(g, y)}, 3, 1);
}

static ty_val on_reverse(ty_graph *g, ty_val y)
{
    return ty_b_reverse(g, y, 1u << 1 | 1u << 3);
}

static ty_val on_reduce_channels(ty_graph *g, ty_val y)
{
    return ty_b_sub(g, y, ty_b_mean(g, y, 1u << 1, true));
}

static ty_val on_reduce_rows(ty_graph *g, ty_val y)
{
    return ty_b_sum(g, y, 1u << 0 | 1u << 2, false);
}

static ty_val on_reduce_batch(ty_graph *g, ty_val y)
{
    return ty_b_square(g, ty_b_reduce(g, y, TY_MAX, 1u << 0, false)); /* [6, 4, 5], still permuted */
}

static ty_val on_groups(ty_graph *g, ty_val y)
{
    ty_val split = ty_b_reshape(g, y, SHAPE(2, 3, 2, 4, 5));
    return ty_b_sub(g, split, ty_b_mean(g, split, 1u << 2 | 1u << 3 | 1u << 4, true));
}

static ty_val on_merged_plane(ty_graph *g, ty_val y)
{
    return ty_b_transpose(g, ty_b_relu(g, ty_b_reshape(g, y, SHAPE(2, 6, 20))), (const int64_t[]){0, 2, 1});
}

static ty_val on_torn_groups(ty_graph *g, ty_val y)
{
    return ty_b_relu(g, ty_b_reshape(g, y, SHAPE(2, 3, 8, 5)));
}

static ty_val on_flat(ty_graph *g, ty_val y)
{
    return ty_b_scan(g, ty_b_reshape(g, y, SHAPE(2, 120)), TY_SUM, 1, false, false);
}

static ty_val on_ones(ty_graph *g, ty_val y)
{
    ty_val mean = ty_b_mean(g, y, 1u << 2 | 1u << 3, true); /* [2, 6, 1, 1] */
    return ty_b_mul(g, y, ty_b_sigmoid(g, ty_b_reshape(g, ty_b_reshape(g, mean, SHAPE(2, 1, 6)), SHAPE(2, 6, 1, 1))));
}

static ty_val on_transpose(ty_graph *g, ty_val y)
{
    ty_val t = ty_b_relu(g, ty_b_transpose(g, y, (const int64_t[]){3, 0, 1, 2}));
    return ty_b_add(g, t, ty_b_transpose(g, new_input(g, TY_F32, SHAPE(5, 4, 6, 2)), (const int64_t[]){0, 3, 2, 1}));
}

static ty_val on_gather(ty_graph *g, ty_val y)
{
    static const int64_t rows[] = {0, 0, 1, 3, 2, 3};
    ty_val at = ty_b_const(g, ty_type_make(TY_I64, SHAPE(6)), rows), zeros = ty_b_full_like(g, y, 0);
    ty_val up = ty_b_gather(g, y, at, 2);
    return ty_b_scatter(g, zeros, at, ty_b_square(g, up), 2, TY_SUM);
}

static ty_val on_sort(ty_graph *g, ty_val y)
{
    ty_val at, sorted = ty_b_sort(g, y, 3, false, &at);
    return ty_b_add(g, sorted, ty_b_cast(g, at, TY_F32));
}

static ty_val on_random(ty_graph *g, ty_val y)
{
    ty_val seed = ty_b_const(g, ty_type_make(TY_I64, 0, NULL), &(int64_t){7});
    ty_val u = ty_b_rng(g, seed, seed, 3, SHAPE(2, 6, 4, 5));
    return ty_b_select(g, ty_b_lt(g, ty_b_cast(g, u, TY_F32), ty_b_full_like(g, y, 0x1p31)), y, ty_b_neg(g, y));
}

static ty_val on_iota(ty_graph *g, ty_val y)
{
    return ty_b_add(g, y, ty_b_iota(g, ty_type_make(TY_F32, SHAPE(2, 6, 4, 5)), 1));
}

static ty_val on_pools(ty_graph *g, ty_val y)
{
    ty_attr a = window(2, 3, 2, 1);
    a.groups = 0;
    ty_val sum = ty_graph_emit(g, TY_OP_POOL_SUM, &a, &y, 1), grad;
    ty_val max = ty_graph_emit(g, TY_OP_POOL_MAX, &a, &y, 1);
    ty_val index = ty_b_cast(g, ty_val_make(ty_val_node(max), 1), TY_F32);
    ty_val loss = ty_b_sum(g, ty_b_mul(g, sum, ty_b_square(g, max)), 15, false);
    assert_int_equal(ty_pass_autodiff(g, loss, &y, 1, &grad, NULL), 0);
    output(g, index);
    return ty_b_add(g, grad, y);
}

static ty_val on_thin_pool(ty_graph *g, ty_val y)
{
    ty_attr a = window(2, 2, 1, 0);
    a.groups = 0;
    ty_val one = ty_b_slice_axis(g, y, 1, 2, 3);
    return ty_graph_emit(g, TY_OP_POOL_SUM, &a, &one, 1);
}

static void ops_on_permuted_values(void **state)
{
    (void)state;
    static layout_case *const cases[] = {
        on_slice,       on_pad,          on_concat,    on_reverse,      on_reduce_channels,
        on_reduce_rows, on_reduce_batch, on_groups,    on_merged_plane, on_torn_groups,
        on_flat,        on_ones,         on_transpose, on_gather,       on_sort,
        on_random,      on_iota,         on_pools,     on_thin_pool,
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ty_graph *g = ty_graph_new();
        ty_val x = new_input(g, TY_F32, SHAPE(2, 3, 4, 5)), w = new_input(g, TY_F32, SHAPE(6, 3, 3, 3)), grad;
        ty_val y = cases[i](g, conv(g, x, w, 1, 1, 1));
        output(g, y);
        ty_val loss = ty_b_sum(g, ty_b_square(g, y), ty_b_all_axes(g, y), false);
        if (cases[i] != on_pools) { /* that one holds its gradient already */
            assert_int_equal(ty_pass_autodiff(g, loss, &w, 1, &grad, NULL), 0);
            output(g, grad);
        }
        ty_graph_free(expect_same(g));
    }
}

/* ---- with and without ---- */

static ty_program *compiled(const char *const *skip, int n_skip, ty_error *err)
{
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, SHAPE(2, 16, 9, 7)), w = new_input(g, TY_F32, SHAPE(16, 16, 3, 3));
    output(g, scaled_relu(g, conv(g, x, w, 2, 1, 1), ty_b_slice_axis(g, ty_b_flatten(g, w), 0, 0, 16)));
    ty_compile_options opt = {.threads = 2, .skip_passes = skip, .n_skip_passes = n_skip};
    ty_program *p = NULL;
    return ty_program_of_graph(g, TY_TAPE_EVAL, &opt, &p, err) < 0 ? NULL : p;
}

static void compiled_with_and_without(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_program *with = compiled(NULL, 0, &err), *without = compiled((const char *const[]){"layout"}, 1, &err);
    assert_non_null(with);
    assert_non_null(without);
    assert_string_not_equal(ty_program_hash(with), ty_program_hash(without));
    const void *inputs[2] = {noise(&ty_program_input(with, 0)->type, 0), noise(&ty_program_input(with, 1)->type, 1)};
    assert_int_equal(ty_program_run(with, TY_RUN_EVAL, inputs, &err), 0);
    assert_int_equal(ty_program_run(without, TY_RUN_EVAL, inputs, &err), 0);
    const ty_tensor *a = ty_program_output(with, TY_RUN_EVAL, "y0"), *b = ty_program_output(without, TY_RUN_EVAL, "y0");
    for (int64_t k = 0; k < ty_type_elems(&a->type); k++)
        assert_float_equal(((const float *)a->data)[k], ((const float *)b->data)[k], 1e-4);
    free((void *)(uintptr_t)inputs[0]);
    free((void *)(uintptr_t)inputs[1]);
    ty_program_free(with);
    ty_program_free(without);
}

static void needed_passes_are_not_skipped(void **state)
{
    (void)state;
    static const char *const names[] = {"lower", "layuot"};
    for (int i = 0; i < 2; i++) {
        ty_error err = {0};
        assert_null(compiled(&names[i], 1, &err));
        assert_int_equal(err.code, TY_E_USAGE);
        assert_non_null(strstr(err.message, names[i]));
    }
}

/* Of 16 bits: the same, and gradients of weights stay float32, also where they are products. */
static void short_floats(void **state)
{
    (void)state;
    static const ty_dtype dtypes[] = {TY_BF16, TY_F16};
    for (int k = 0; k < 4; k++) {
        int64_t size = k / 2 ? 3 : 1;
        ty_dtype dtype = dtypes[k % 2];
        ty_graph *g = ty_graph_new();
        ty_val x = ty_b_cast(g, new_input(g, TY_F32, SHAPE(2, 8, 6, 5)), dtype);
        ty_val w = ty_b_cast(g, new_input(g, TY_F32, SHAPE(4, 8, size, size)), dtype);
        ty_val y = conv(g, x, w, 1, size / 2, 1);
        ty_attr a = window(2, 0, 1, size / 2);
        a.type = ty_type_make(TY_F32, SHAPE(4, 8, size, size));
        output(g, ty_b_cast(g, y, TY_F32));
        output(g, ty_graph_emit(g, TY_OP_CONV_DW, &a, (ty_val[]){x, y}, 2));
        ty_graph *to = expect_same(g);
        assert_int_equal(count(to, TY_OP_DOT), size == 1 ? 2 : 0);
        for (uint32_t id = 0; id < ty_graph_n_nodes(to); id++)
            if (ty_graph_op(to, id) == TY_OP_CONV || ty_graph_op(to, id) == TY_OP_CONV_DW)
                assert_true(ty_graph_attr(to, id)->flags & TY_SLIDING_LAST);
        ty_graph_free(to);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_of_a_small_network),
        cmocka_unit_test(products),
        cmocka_unit_test(only_borders_are_transposed),
        cmocka_unit_test(without_convolution_nothing_moves),
        cmocka_unit_test(transposes_of_the_model_vanish),
        cmocka_unit_test(convolutions_and_gradients),
        cmocka_unit_test(ops_on_permuted_values),
        cmocka_unit_test(compiled_with_and_without),
        cmocka_unit_test(on_a_gpu),
        cmocka_unit_test(strided_gradients_on_a_gpu),
        cmocka_unit_test(gradients_of_weights_on_a_gpu),
        cmocka_unit_test(needed_passes_are_not_skipped),
        cmocka_unit_test(short_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
