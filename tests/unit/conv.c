/* conv.c - convolutions of 16-bit floats, and of float32, and their gradients: the numbers are those of the definition,
 * whoever computes them, and a processor that multiplies bfloat16 is used. */
#include "base/rng.h"
#include "compiler/ops/sliding.h"
#include "compiler/program.h"
#include "compiler/target/cpu/library.h"
#include "compiler/target/cpu/onednn.h"
#include "tests/unit/evaluate.h"

#include <math.h>

typedef struct conv_case {
    int64_t batch, in, out, height, width, size, step, pad, groups;
} conv_case;

static const conv_case cases[] = {
    {3, 32, 48, 11, 9, 3, 1, 1, 1}, {2, 3, 64, 17, 16, 7, 2, 3, 1},
    {2, 64, 32, 8, 8, 1, 2, 0, 1},  {2, 32, 32, 9, 9, 3, 2, 1, 32}, /* depthwise */
    {2, 5, 7, 6, 10, 3, 1, 0, 1},                                   /* channels that fill no vector */
    {2, 16, 128, 9, 8, 3, 2, 1, 1},                                 /* float32: the weights' gradient in blocks */
    {2, 32, 256, 7, 7, 3, 1, 1, 1},                                 /* float32: forward in blocks */
};

static ty_attr case_attr(const conv_case *c, uint32_t flags)
{
    ty_attr a = {.n = 2, .groups = c->groups, .flags = flags};
    for (int i = 0; i < 2; i++) {
        a.step[i] = c->step;
        a.dil[i] = 1;
        a.lo[i] = a.hi[i] = c->pad;
    }
    return a;
}

static ty_type case_x(const conv_case *c, uint32_t flags, ty_dtype dtype)
{
    bool last = flags & TY_SLIDING_LAST;
    return ty_type_make(
        dtype, SHAPE(c->batch, last ? c->height : c->in, last ? c->width : c->height, last ? c->in : c->width));
}

static ty_type case_w(const conv_case *c, ty_dtype dtype)
{
    return ty_type_make(dtype, SHAPE(c->out, c->in / c->groups, c->size, c->size));
}

/* A float32 input, rounded. */
static ty_val rounded(ty_graph *g, const ty_type *t)
{
    return ty_b_cast(g, new_input(g, TY_F32, t->rank, t->dim), (ty_dtype)t->dtype);
}

/* y and the gradient of x, of the dtype, and the gradient of w, which is float32; all from rounded operands. */
static ty_graph *case_graph(const conv_case *c, uint32_t flags, ty_dtype dtype)
{
    ty_graph *g = ty_graph_new();
    ty_attr attr = case_attr(c, flags);
    const ty_type x_type = case_x(c, flags, dtype), w_type = case_w(c, dtype);
    ty_val x = rounded(g, &x_type), w = rounded(g, &w_type);
    ty_val y = ty_graph_emit(g, TY_OP_CONV, &attr, (ty_val[]){x, w}, 2);
    expect_ok(g);
    const ty_type y_type = *ty_graph_type(g, y);
    ty_val dy = rounded(g, &y_type);
    attr.type = x_type;
    ty_val dx = ty_graph_emit(g, TY_OP_CONV_DX, &attr, (ty_val[]){dy, w}, 2);
    attr.type = case_w(c, TY_F32);
    ty_val dw = ty_graph_emit(g, TY_OP_CONV_DW, &attr, (ty_val[]){x, dy}, 2);
    ty_graph_add_output(g, "y", ty_b_cast(g, y, TY_F32), TY_TAPE_EVAL);
    ty_graph_add_output(g, "dx", ty_b_cast(g, dx, TY_F32), TY_TAPE_EVAL);
    ty_graph_add_output(g, "dw", dw, TY_TAPE_EVAL);
    expect_ok(g);
    return g;
}

static ty_program *compile_and_run(const conv_case *c, uint32_t flags, ty_dtype dtype, ty_compile_options opt)
{
    ty_program *p = NULL;
    ty_error err = {0};
    const void *inputs[3];
    if (ty_program_of_graph(case_graph(c, flags, dtype), TY_TAPE_EVAL, &opt, &p, &err) < 0)
        fail_msg("%s", err.message);
    for (int k = 0; k < 3; k++) {
        int64_t n = ty_type_elems(&ty_program_input(p, k)->type);
        float *x = malloc((size_t)n * sizeof *x);
        assert_non_null(x);
        for (int64_t i = 0; i < n; i++)
            x[i] = (float)(2.0 * ty_rng_u32(5, (uint32_t)k, 0, (uint64_t)i) * 0x1p-32 - 1);
        inputs[k] = x;
    }
    if (ty_program_run(p, TY_RUN_EVAL, inputs, &err) < 0)
        fail_msg("%s", err.message);
    for (int k = 0; k < 3; k++)
        free((void *)(uintptr_t)inputs[k]);
    return p;
}

/* The largest difference, beside `unit` of the element or of the root mean square, whichever is greater. */
static double distance(const ty_program *a, const ty_program *b, const char *name, double unit)
{
    const ty_tensor *p = ty_program_output(a, TY_RUN_EVAL, name), *q = ty_program_output(b, TY_RUN_EVAL, name);
    int64_t n = ty_type_elems(&q->type);
    const float *x = p->data, *y = q->data;
    double squares = 0, most = 0;
    assert_true(ty_type_same(&p->type, &q->type));
    for (int64_t i = 0; i < n; i++)
        squares += (double)y[i] * (double)y[i];
    for (int64_t i = 0; i < n; i++) {
        double size = fmax(fabs((double)y[i]), sqrt(squares / (double)n));
        most = fmax(most, fabs((double)x[i] - (double)y[i]) / (unit * size));
    }
    return most;
}

/* Sums in float32 on the other side of a rounding boundary are one unit in the last place off: 2^-7 in bfloat16, 2^-10
 * in float16. Gradients of weights are not rounded. */
static void numbers_are_those_of_the_definition(void **state)
{
    (void)state;
    static const ty_dtype dtypes[] = {TY_BF16, TY_F16, TY_F32};
    static const double units[] = {0x1p-7, 0x1p-10, 1e-5};
    for (size_t k = 0; k < 2 * 3 * sizeof cases / sizeof *cases; k++) {
        const conv_case *c = &cases[k / 6];
        uint32_t flags = k & 1 ? TY_SLIDING_LAST : 0;
        ty_dtype dtype = dtypes[k / 2 % 3];
        ty_program *fast = compile_and_run(c, flags, dtype, (ty_compile_options){.threads = 2});
        ty_program *slow = compile_and_run(c, flags, dtype, (ty_compile_options){.backend = TY_BACKEND_INTERPRETER});
        double y = distance(fast, slow, "y", units[k / 2 % 3]), dx = distance(fast, slow, "dx", units[k / 2 % 3]);
        double dw = distance(fast, slow, "dw", 1e-5);
        if (!(y <= 1 && dx <= 1 && dw <= 1))
            fail_msg("case %zu, flags %u, %s: off by %g, %g, %g units", k / 6, flags, ty_dtype_text(dtype), y, dx, dw);
        ty_program_free(fast);
        ty_program_free(slow);
    }
}

/* ---- what is chosen ---- */

/* Operation k, whose operands and result are given, is computed by what has these words. */
static void expect_chosen(int k, ty_op op, const ty_attr *attr, ty_type a, ty_type b, ty_type res, const char *want)
{
    const ty_type in[] = {a, b};
    ty_library_shape shape = {.attr = attr, .in = in, .n_in = 2, .res = &res, .n_res = 1, .threads = 1};
    ty_library_call call;
    ty_error err = {0};
    if (ty_library_prepare(op, &shape, &call, &err) < 0)
        fail_msg("%s", err.message);
    if (!strstr(call.text, want))
        fail_msg("%s, %d: expected %s, found %s", ty_dtype_text((ty_dtype)a.dtype), k, want, call.text);
    ty_library_release(&call);
}

static void bfloat16_is_multiplied_where_it_pays(void **state)
{
    (void)state;
    const conv_case *c = &cases[0];
    ty_attr attr = case_attr(c, TY_SLIDING_LAST);
    for (int half = 0; half < 2; half++) {
        ty_dtype dtype = half ? TY_F16 : TY_BF16;
        const char *want = !half && ty_onednn_bf16_pays() ? "bf16" : "float32, rounded";
        ty_type x = case_x(c, TY_SLIDING_LAST, dtype), w = case_w(c, dtype), y = x;
        y.dim[3] = c->out;
        expect_chosen(0, TY_OP_CONV, &attr, x, w, y, want);
        expect_chosen(1, TY_OP_CONV_DX, &attr, y, w, x, want);
        expect_chosen(2, TY_OP_CONV_DW, &attr, x, y, case_w(c, TY_F32), want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_the_definition),
        cmocka_unit_test(bfloat16_is_multiplied_where_it_pays),
    };
    return cmocka_run_group_tests_name("conv", tests, NULL, NULL);
}
