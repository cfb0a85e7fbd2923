/* The epilogue pass: which products take what follows them, and that the numbers stay. What cuBLASLt is told of each
 * kind, and that the library, where it is installed, accepts it: its descriptors need no GPU. */
#include "tests/unit/evaluate.h"

#include "compiler/ops/linear.h"
#include "compiler/passes/passes.h"
#include "compiler/target/cuda/cublaslt.h"
#include "compiler/target/cuda/libraries.h"

enum { ROWS = 6, IN = 16, HIDDEN = 24, OUT = 8, MOST = ROWS * HIDDEN * 4 };

typedef enum activation { NONE, RELU, GELU_TANH, GELU_EXACT } activation;

static ty_val activate(ty_graph *g, ty_val x, activation how)
{
    const ty_attr attr = {.flags = how == GELU_TANH};
    return how == NONE ? x : how == RELU ? ty_b_relu(g, x) : ty_graph_emit(g, TY_OP_GELU, &attr, &x, 1);
}

/* Two linear layers, the sum of squares, and the gradients of all weights as outputs. */
static ty_graph *network(activation how, int64_t hidden)
{
    ty_graph *g = ty_graph_new();
    ty_error err = {0};
    ty_val x = new_input(g, TY_F32, SHAPE(ROWS, IN)), grad[4];
    ty_val w[4] = {new_input(g, TY_F32, SHAPE(IN, hidden)), new_input(g, TY_F32, SHAPE(hidden)),
                   new_input(g, TY_F32, SHAPE(hidden, OUT)), new_input(g, TY_F32, SHAPE(OUT))};
    ty_val h = activate(g, ty_b_add(g, ty_b_dot(g, x, w[0], false, false), w[1]), how);
    ty_val y = ty_b_add(g, ty_b_dot(g, h, w[2], false, false), w[3]);
    ty_val loss = ty_b_sum(g, ty_b_square(g, y), 3, false);
    if (ty_pass_autodiff(g, loss, w, 4, grad, &err) < 0)
        fail_msg("%s", err.message);
    ty_graph_add_output(g, "loss", loss, TY_TAPE_LAST);
    for (int i = 0; i < 4; i++)
        ty_graph_add_output(g, (const char *[]){"w", "b", "v", "c"}[i], grad[i], TY_TAPE_LAST);
    return g;
}

static ty_graph *rewritten_but(const ty_graph *before, ty_apart apart)
{
    ty_graph *after;
    ty_error err = {0};
    if (ty_pass_epilogue(before, apart, &after, &err) < 0 || ty_graph_verify(after, &err) < 0)
        fail_msg("%s", err.message);
    return after;
}

static ty_graph *rewritten(const ty_graph *before)
{
    return rewritten_but(before, 0);
}

static int count(const ty_graph *g, ty_linear_kind kind)
{
    uint8_t *live = calloc(ty_graph_n_nodes(g), 1);
    int n = 0;
    ty_graph_mark_live(g, TY_TAPE_ALL, live);
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++)
        n += live[id] && ty_graph_op(g, id) == TY_OP_LINEAR && ty_graph_attr(g, id)->index == kind;
    free(live);
    return n;
}

static void fill(double *to, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = (double)(seed >> 8) / (1 << 24) - 0.5;
    }
}

static void expect_same_network(const ty_graph *before, const ty_graph *after)
{
    const void *inputs[8];
    for (int i = 0; i < ty_graph_n_inputs(before); i++) {
        double *values = malloc(MOST * sizeof *values);
        fill(values, MOST, (uint32_t)i + 1);
        inputs[i] = values;
    }
    expect_same_outputs(before, after, TY_TAPE_LAST, inputs);
    for (int i = 0; i < ty_graph_n_inputs(before); i++)
        free((void *)(uintptr_t)inputs[i]);
}

static void activations_become_epilogues(void **state)
{
    static const struct {
        activation how;
        int64_t hidden;
        ty_linear_kind forward, backward;
        int n;
    } cases[] = {
        {RELU, HIDDEN, TY_LINEAR_RELU_KEEP, TY_LINEAR_RELU_GRAD_SUM, 1},
        {GELU_TANH, HIDDEN, TY_LINEAR_GELU_KEEP, TY_LINEAR_GELU_GRAD_SUM, 1},
        {GELU_EXACT, HIDDEN, TY_LINEAR_GELU_KEEP, TY_LINEAR_GELU_GRAD_SUM, 0}, /* cuBLASLt has none */
        {NONE, HIDDEN, TY_LINEAR_BIAS, TY_LINEAR_RELU_GRAD, 1},
        {RELU, 22, TY_LINEAR_RELU_KEEP, TY_LINEAR_RELU_GRAD_SUM, 0}, /* rows that begin anywhere */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ty_graph *before = network(cases[i].how, cases[i].hidden), *after = rewritten(before);
        if (count(after, cases[i].forward) != cases[i].n)
            fail_msg("case %zu: %d products forward", i, count(after, cases[i].forward));
        if (count(after, cases[i].backward) != (cases[i].how == NONE ? 0 : cases[i].n))
            fail_msg("case %zu: %d products backward", i, count(after, cases[i].backward));
        expect_same_network(before, after);
        ty_graph_free(before);
        ty_graph_free(after);
    }
}

/* Of kinds that stay apart there is none, and as much of the rest as can be without them. */
static void kinds_stay_apart(void **state)
{
    static const struct {
        activation how;
        ty_dtype dtype;
        ty_linear_kind apart[2];
        int n; /* of these */
        ty_linear_kind forward, backward;
        int n_backward;
    } cases[] = {
        {GELU_TANH, TY_F32, {TY_LINEAR_GELU_GRAD_SUM}, 1, TY_LINEAR_GELU_KEEP, TY_LINEAR_GELU_GRAD, 1},
        {GELU_TANH,
         TY_F32,
         {TY_LINEAR_GELU_GRAD_SUM, TY_LINEAR_GELU_GRAD},
         2,
         TY_LINEAR_GELU_KEEP,
         TY_LINEAR_GELU_GRAD,
         0},
        {RELU, TY_F32, {TY_LINEAR_RELU_KEEP}, 1, TY_LINEAR_RELU, TY_LINEAR_RELU_GRAD_SUM, 0},
        {RELU, TY_F32, {TY_LINEAR_RELU_GRAD_SUM}, 1, TY_LINEAR_RELU_KEEP, TY_LINEAR_RELU_GRAD, 1},
        {RELU,
         TY_F32,
         {TY_LINEAR_RELU_GRAD_SUM, TY_LINEAR_RELU_GRAD},
         2,
         TY_LINEAR_RELU,
         TY_LINEAR_RELU_GRAD,
         0}, /* bits that nobody reads are not kept */
        {RELU, TY_BF16, {TY_LINEAR_RELU_KEEP}, 1, TY_LINEAR_RELU_KEEP, TY_LINEAR_RELU_GRAD_SUM, 1}, /* another type */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ty_apart apart = 0;
        for (int k = 0; k < cases[i].n; k++)
            apart |= ty_apart_linear(cases[i].apart[k], cases[i].dtype);
        ty_graph *before = network(cases[i].how, HIDDEN), *after = rewritten_but(before, apart);
        for (int k = 0; k < cases[i].n && cases[i].dtype == TY_F32; k++)
            if (count(after, cases[i].apart[k]) > 0)
                fail_msg("case %zu: kind %d is there", i, (int)cases[i].apart[k]);
        if (count(after, cases[i].forward) != 1 || count(after, cases[i].backward) != cases[i].n_backward)
            fail_msg("case %zu: %d products forward, %d backward", i, count(after, cases[i].forward),
                     count(after, cases[i].backward));
        expect_same_network(before, after);
        ty_graph_free(before);
        ty_graph_free(after);
    }
}

/* The sum of what a call has made is taken off the product that reads it too, whichever side it is on. */
static void sums_of_operands(void **state)
{
    (void)state;
    for (int side = 0; side < 2; side++) {
        ty_graph *g = ty_graph_new();
        ty_val x = new_input(g, TY_F32, SHAPE(16, IN)), z = new_input(g, TY_F32, SHAPE(16, HIDDEN));
        ty_val dy = ty_b_scan(g, x, TY_SUM, 0, false, false);
        ty_val dw = side == 0 ? ty_b_dot(g, dy, z, true, false) : ty_b_dot(g, z, dy, true, false);
        ty_graph_add_output(g, "db", ty_b_sum(g, dy, 1, false), TY_TAPE_LAST);
        ty_graph_add_output(g, "dw", dw, TY_TAPE_LAST);
        ty_graph *after = rewritten(g);
        assert_int_equal(count(after, side == 0 ? TY_LINEAR_SUM_A : TY_LINEAR_SUM_B), 1);
        expect_same_network(g, after);
        ty_graph_free(g);
        ty_graph_free(after);
    }
}

/* A sum that only a product reads: one is added to the other. With another reader a kernel adds them anyway. */
static void sums_of_products(void **state)
{
    (void)state;
    for (int read = 0; read < 2; read++) {
        ty_graph *g = ty_graph_new();
        ty_val a = new_input(g, TY_F32, SHAPE(ROWS, IN)), b = new_input(g, TY_F32, SHAPE(IN, HIDDEN));
        ty_val c = new_input(g, TY_F32, SHAPE(ROWS, HIDDEN)), d = new_input(g, TY_F32, SHAPE(HIDDEN, OUT));
        ty_val sum = ty_b_add(g, ty_b_dot(g, a, b, false, false), ty_b_mul(g, c, c));
        ty_graph_add_output(g, "y", ty_b_dot(g, sum, d, false, false), TY_TAPE_LAST);
        if (read)
            ty_graph_add_output(g, "sum", sum, TY_TAPE_LAST);
        ty_graph *after = rewritten(g);
        int n = 0;
        for (uint32_t id = 0; id < ty_graph_n_nodes(after); id++)
            n += ty_graph_op(after, id) == TY_OP_DOT && ty_graph_node(after, id)->n_in == 3;
        assert_int_equal(n, !read);
        expect_same_network(g, after);
        ty_graph_free(g);
        ty_graph_free(after);
    }
}

/* ---- what the library is told ---- */

static ty_type part_type(ty_linear_part part, ty_dtype dtype)
{
    switch (part) {
    case TY_LINEAR_COLUMNS:
        return ty_type_make(dtype, SHAPE(HIDDEN));
    case TY_LINEAR_ARGUMENTS:
        return ty_type_make(dtype, SHAPE(ROWS, HIDDEN));
    default:
        return ty_type_make(TY_U8, SHAPE(ROWS, 16));
    }
}

static ty_graph *one_product(ty_linear_kind kind, ty_dtype dtype, uint32_t *node)
{
    ty_graph *g = ty_graph_new();
    ty_val in[3] = {new_input(g, dtype, SHAPE(ROWS, IN)), new_input(g, dtype, SHAPE(IN, HIDDEN)), TY_NONE};
    ty_linear_part x = ty_linear_operand(kind);
    if (x != TY_LINEAR_NONE)
        in[2] = ty_b_input(g, ty_graph_add_input(g, "x", part_type(x, dtype)));
    *node = ty_val_node(ty_graph_emit(g, TY_OP_LINEAR, &(ty_attr){.index = kind}, in, x == TY_LINEAR_NONE ? 2 : 3));
    expect_ok(g);
    return g;
}

/* As prepared, but with addresses that nobody reads. */
static void expect_accepted(const ty_cublaslt *lib, const ty_cublaslt_product *p)
{
    cublasLtMatmulDesc_t desc;
    const uint32_t epilogue = p->epilogue;
    void *const at = (void *)(uintptr_t)4096;
    assert_int_equal(lib->cublasLtMatmulDescCreate(&desc, p->compute, p->scale), 0);
    const struct {
        unsigned attribute;
        const void *value;
        size_t bytes;
    } set[] = {{TY_CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue},
               {TY_CUBLASLT_MATMUL_DESC_BIAS_POINTER, &at, sizeof at},
               {TY_CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &at, sizeof at},
               {TY_CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &p->aux_leading, sizeof p->aux_leading}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        assert_int_equal(lib->cublasLtMatmulDescSetAttribute(desc, set[i].attribute, set[i].value, set[i].bytes), 0);
    assert_int_equal(lib->cublasLtMatmulDescDestroy(desc), 0);
}

static void the_library_is_told(void **state)
{
    static const char *const text[TY_N_LINEAR_KINDS] = {
        "bias",      "relu_bias",       "relu_aux_bias/128", "gelu_bias",      "gelu_aux_bias/24",
        "drelu/128", "drelu_bgrad/128", "dgelu/24",          "dgelu_bgrad/24", "bgradb",
        "bgrada"};
    const ty_cublaslt *lib;
    bool there = ty_cublaslt_get(&lib, NULL) == 0;
    (void)state;
    for (int kind = 0; kind < TY_N_LINEAR_KINDS; kind++) {
        uint32_t node;
        ty_graph *g = one_product((ty_linear_kind)kind, TY_BF16, &node);
        ty_cublaslt_product p;
        ty_buf out;
        ty_buf_init(&out, 4096);
        assert_int_equal(ty_cublaslt_product_of(g, node, false, &p, NULL), 0);
        ty_cublaslt_print(&p, &out);
        const char *then = strstr(out.data, " then ");
        assert_non_null(then);
        assert_string_equal(then + 6, text[kind]);
        if (there)
            expect_accepted(lib, &p);
        ty_buf_fini(&out);
        ty_graph_free(g);
    }
    if (!there)
        print_message("skip: cuBLASLt is not installed: its descriptors are not tried\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_become_epilogues),
        cmocka_unit_test(kinds_stay_apart),
        cmocka_unit_test(sums_of_operands),
        cmocka_unit_test(sums_of_products),
        cmocka_unit_test(the_library_is_told),
    };
    return cmocka_run_group_tests_name("epilogue", tests, NULL, NULL);
}
