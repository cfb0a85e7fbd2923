/* The attach pass: which convolutions take what follows them, and that the numbers stay. */
#include "tests/unit/evaluate.h"

#include "compiler/ops/sliding.h"
#include "compiler/passes/passes.h"

enum { N = 2, C = 4, EXTENT = 5, MOST = 4096 };

/* What follows the first of two convolutions. */
typedef enum part {
    SCALE = 1,
    SHIFT = 2,
    SUM = 4, /* of an input */
    RELU = 8,
    SHORTCUT = 16, /* the sum is of another convolution with its own scale and shift */
    LATE = 32,     /* the scale comes behind the sum */
    POOL = 64,
    ALONE = 128, /* no call reads the result */
    SHOWN = 256, /* the result is an output too */
    TWICE = 512  /* the convolution is read by something else too */
} part;

typedef enum form { FIRST, LAST, ONE } form; /* channels; ONE: last, and a window of one element, as a product */

typedef struct net {
    ty_graph *g;
    form form;
    ty_dtype dtype;
} net;

static ty_val weights(net *n, int64_t window)
{
    ty_val w = n->form == FIRST ? new_input(n->g, TY_F32, SHAPE(C, C, window, window))
                                : new_input(n->g, TY_F32, SHAPE(C, window, window, C));
    return ty_b_cast(n->g, w, n->dtype);
}

static ty_val convolve(net *n, ty_val x)
{
    ty_graph *g = n->g;
    if (n->form == ONE) {
        ty_val w = ty_b_cast(g, new_input(g, TY_F32, SHAPE(C, C)), n->dtype);
        ty_val y = ty_b_dot(g, ty_b_reshape(g, x, SHAPE(N * EXTENT * EXTENT, C)), w, false, true);
        return ty_b_cast(g, ty_b_reshape(g, y, SHAPE(N, EXTENT, EXTENT, C)), TY_F32);
    }
    ty_attr attr = {.n = 2, .groups = 1, .step = {1, 1}, .dil = {1, 1}, .lo = {1, 1}, .hi = {1, 1}};
    attr.flags = n->form == LAST ? TY_SLIDING_LAST | TY_SLIDING_WEIGHTS_LAST : 0;
    return ty_b_cast(g, ty_graph_emit(g, TY_OP_CONV, &attr, (ty_val[]){x, weights(n, 3)}, 2), TY_F32);
}

static ty_val tensor(net *n)
{
    return n->form == FIRST ? new_input(n->g, TY_F32, SHAPE(N, C, EXTENT, EXTENT))
                            : new_input(n->g, TY_F32, SHAPE(N, EXTENT, EXTENT, C));
}

/* A number a channel, stretched. */
static ty_val vector(net *n, ty_val like)
{
    const ty_type *t = ty_graph_type(n->g, like);
    ty_val v = new_input(n->g, TY_F32, SHAPE(C));
    v = n->form == FIRST ? ty_b_reshape(n->g, v, SHAPE(1, C, 1, 1)) : ty_b_reshape(n->g, v, SHAPE(1, 1, 1, C));
    return ty_b_broadcast(n->g, v, t->rank, t->dim);
}

/* As batch norm applies them: (x - mean) * scale + shift. */
static ty_val affine(net *n, ty_val x, int parts)
{
    if (parts & SCALE) {
        x = ty_b_sub(n->g, x, vector(n, x));
        x = ty_b_mul(n->g, x, vector(n, x));
    }
    return parts & SHIFT ? ty_b_add(n->g, vector(n, x), x) : x;
}

static ty_val pool(net *n, ty_val x)
{
    ty_attr attr = {.n = 2, .step = {1, 1}, .dil = {1, 1}, .size = {3, 3}, .lo = {1, 1}, .hi = {1, 1}};
    attr.flags = n->form == FIRST ? 0 : TY_SLIDING_LAST;
    return ty_graph_emit(n->g, TY_OP_POOL_MAX, &attr, &x, 1);
}

static ty_graph *network(form form, ty_dtype dtype, int parts)
{
    net n = {ty_graph_new(), form, dtype};
    ty_graph *g = n.g;
    ty_val y = convolve(&n, ty_b_cast(g, tensor(&n), dtype));
    if (parts & TWICE)
        ty_graph_add_output(g, "conv", ty_b_mul(g, y, y), TY_TAPE_EVAL);
    y = affine(&n, y, parts & LATE ? parts & SHIFT : parts);
    if (parts & SHORTCUT)
        y = ty_b_add(g, affine(&n, convolve(&n, ty_b_cast(g, tensor(&n), dtype)), SCALE | SHIFT), y);
    else if (parts & SUM)
        y = ty_b_add(g, y, tensor(&n));
    if (parts & LATE)
        y = affine(&n, y, SCALE);
    if (parts & RELU)
        y = ty_b_relu(g, y);
    if (parts & SHOWN)
        ty_graph_add_output(g, "y", y, TY_TAPE_EVAL);
    if (parts & POOL)
        y = pool(&n, y);
    if (parts & ALONE)
        y = ty_b_sum(g, ty_b_square(g, ty_b_cast(g, ty_b_cast(g, y, dtype), TY_F32)), 15, false);
    else
        y = convolve(&n, ty_b_cast(g, y, dtype));
    ty_graph_add_output(g, "z", y, TY_TAPE_EVAL);
    expect_ok(g);
    return g;
}

static int count(const ty_graph *g, ty_op op, ty_dtype dtype)
{
    uint8_t *live = calloc(ty_graph_n_nodes(g), 1);
    int n = 0;
    ty_graph_mark_live(g, TY_TAPE_ALL, live);
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++)
        n += live[id] && ty_graph_op(g, id) == op && ty_graph_type(g, ty_val_make(id, 0))->dtype == dtype;
    free(live);
    return n;
}

/* All outputs, within a part of the largest number of each. */
static void expect_close(const ty_graph *before, const ty_graph *after, const void *const *inputs, double part)
{
    const ty_graph *both[] = {before, after};
    ty_interp *it[2];
    ty_error err = {0};
    for (int k = 0; k < 2; k++)
        if (ty_interp_new(both[k], &it[k], &err) < 0 || ty_interp_run(it[k], TY_TAPE_EVAL, inputs, false, &err) < 0)
            fail_msg("%s", err.message);
    for (int o = 0; o < ty_graph_n_outputs(before); o++) {
        const ty_ref *a = ty_interp_output(it[0], o), *b = ty_interp_output(it[1], o);
        double largest = 0;
        assert_true(ty_type_same(&a->type, &b->type));
        for (int64_t i = 0; i < ty_type_elems(&a->type); i++)
            largest = fmax(largest, fabs(a->f[i]));
        for (int64_t i = 0; i < ty_type_elems(&a->type); i++)
            if (!(fabs(a->f[i] - b->f[i]) <= part * largest))
                fail_msg("output %d, element %ld: expected %.12g, found %.12g", o, (long)i, a->f[i], b->f[i]);
    }
    ty_interp_free(it[0]);
    ty_interp_free(it[1]);
}

/* Casts to 16 bits round: weights are scaled before, biases are rounded too. */
static void expect_same(const ty_graph *before, const ty_graph *after, ty_dtype dtype)
{
    const void *inputs[24];
    uint32_t seed = 7;
    for (int i = 0; i < ty_graph_n_inputs(before); i++) {
        double *values = malloc(MOST * sizeof *values);
        for (int k = 0; k < MOST; k++) {
            seed = seed * 1664525u + 1013904223u;
            values[k] = (double)(seed >> 8) / (1 << 24) - 0.5;
        }
        inputs[i] = values;
    }
    expect_close(before, after, inputs, dtype == TY_F32 ? 1e-9 : 0.02);
    for (int i = 0; i < ty_graph_n_inputs(before); i++)
        free((void *)(uintptr_t)inputs[i]);
}

static ty_graph *attached_but(const ty_graph *before, ty_apart apart, bool tf32)
{
    ty_graph *after;
    ty_error err = {0};
    if (ty_pass_attach(before, apart, tf32, &after, &err) < 0 || ty_graph_verify(after, &err) < 0)
        fail_msg("%s", err.message);
    return after;
}

static ty_graph *attached(const ty_graph *before, bool tf32)
{
    return attached_but(before, 0, tf32);
}

/* So many conv_bias in place of convolutions, and the same numbers. */
static void expect_attached(form form, ty_dtype dtype, int parts, int expected)
{
    ty_graph *before = network(form, dtype, parts), *after = attached(before, form == ONE);
    if (count(after, TY_OP_CONV_BIAS, dtype) != expected)
        fail_msg("form %d of %s, parts %d: expected %d, found %d", form, ty_dtype_text(dtype), parts, expected,
                 count(after, TY_OP_CONV_BIAS, dtype));
    expect_same(before, after, dtype);
    ty_graph_free(before);
    ty_graph_free(after);
}

static void what_follows_is_taken(void **state)
{
    static const struct {
        int parts, full, half; /* how many are taken in float32, in 16 bits */
    } cases[] = {
        {RELU, 1, 1}, /* with a bias of zeros */
        {SCALE | RELU, 1, 1},
        {SHIFT, 1, 1},
        {SHIFT | RELU, 1, 1},
        {SCALE | SHIFT | RELU, 1, 1},
        {SCALE | SHIFT, 1, 1},
        {SHIFT | SUM | RELU, 1, 0}, /* what is added is float32 in memory */
        {SCALE | SHIFT | SUM | RELU, 1, 0},
        {SUM | RELU, 1, 0},
        {SCALE | SHIFT | SHORTCUT | RELU, 2, 2},
        {SHIFT | SUM | LATE | RELU, 0, 0}, /* the sum would be scaled too */
        {SHIFT | RELU | POOL, 1, 1},
        {SHIFT | RELU | ALONE, 0, 0},
        {SHIFT | RELU | SHOWN, 1, 0}, /* somebody reads it unrounded */
        {SHIFT | SHOWN, 0, 0},        /* a kernel writes it anyway */
        {SHIFT | RELU | TWICE, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (form f = FIRST; f <= ONE; f++) {
            expect_attached(f, TY_F32, cases[i].parts, cases[i].full);
            expect_attached(f, TY_BF16, cases[i].parts, cases[i].half);
        }
}

/* Kinds that stay apart are as they were, and all others are taken. */
static void kinds_stay_apart(void **state)
{
    static const struct {
        bool adds, relu, grouped; /* stays apart */
        ty_dtype dtype;
        int parts, expected;
    } cases[] = {
        {true, true, false, TY_F32, SHIFT | SUM | RELU, 0},
        {true, true, false, TY_F32, SHIFT | RELU, 1},
        {true, true, false, TY_BF16, SHIFT | SUM | RELU, 1}, /* another type */
        {true, true, true, TY_F32, SHIFT | SUM | RELU, 1},   /* channels in groups */
        {false, true, false, TY_F32, SHIFT | RELU, 0},
        {false, false, false, TY_F32, SCALE | SHIFT | SHORTCUT | RELU, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ty_apart apart = ty_apart_conv(cases[i].adds, cases[i].relu, cases[i].grouped, cases[i].dtype);
        ty_graph *before = network(LAST, TY_F32, cases[i].parts), *after = attached_but(before, apart, false);
        if (count(after, TY_OP_CONV_BIAS, TY_F32) != cases[i].expected)
            fail_msg("case %zu: expected %d, found %d", i, cases[i].expected, count(after, TY_OP_CONV_BIAS, TY_F32));
        expect_same(before, after, TY_F32);
        ty_graph_free(before);
        ty_graph_free(after);
    }
}

/* The maximum of what has 16 bits has 16 bits. */
static void pools_have_the_type_of_what_they_read(void **state)
{
    (void)state;
    for (form f = FIRST; f <= LAST; f++) {
        ty_graph *before = network(f, TY_F16, SHIFT | RELU | POOL), *after = attached(before, false);
        assert_int_equal(count(before, TY_OP_POOL_MAX, TY_F32), 1);
        assert_int_equal(count(after, TY_OP_POOL_MAX, TY_F16), 1);
        assert_int_equal(count(after, TY_OP_POOL_MAX, TY_F32), 0);
        ty_graph_free(before);
        ty_graph_free(after);
    }
}

/* Products of float32 become convolutions again only for tensor cores. */
static void products_stay_without_tensor_cores(void **state)
{
    (void)state;
    ty_graph *before = network(ONE, TY_F32, SHIFT | RELU), *after = attached(before, false);
    assert_int_equal(count(after, TY_OP_CONV_BIAS, TY_F32), 0);
    ty_graph_free(before);
    ty_graph_free(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_follows_is_taken),
        cmocka_unit_test(kinds_stay_apart),
        cmocka_unit_test(pools_have_the_type_of_what_they_read),
        cmocka_unit_test(products_stay_without_tensor_cores),
    };
    return cmocka_run_group_tests_name("attach", tests, NULL, NULL);
}
