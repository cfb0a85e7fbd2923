/* cuda_near.c - which functions and quotients a GPU's kernels have in quick forms: those of what was rounded to 16 bits
 * on the way, and no others. */
#include "compiler/ir/build.h"
#include "compiler/passes/fuse.h"
#include "compiler/target/cuda/render.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { ROWS = 64, COLUMNS = 256, MAX_BUFFERS = 4 };

static ty_val over_one_more(ty_graph *g, ty_val x)
{
    return ty_b_div(g, x, ty_b_add_s(g, ty_b_exp(g, x), 1));
}

/* Of the row's sum. */
static ty_val over_sum(ty_graph *g, ty_val x)
{
    ty_val sum = ty_b_sum(g, x, 2, true);
    return ty_b_div(g, ty_b_full_like(g, sum, 1), sum);
}

/* Of what was rounded, and is not what the function is of. */
static ty_val beside(ty_graph *g, ty_val x)
{
    ty_val y = ty_b_exp(g, ty_b_input(g, ty_graph_add_input(g, "y", *ty_graph_type(g, x))));
    return ty_b_add(g, x, y);
}

static const struct {
    const char *what;
    ty_val (*make)(ty_graph *g, ty_val x);
    ty_dtype dtype;
    const char *has, *lacks;
} cases[] = {
    {"bfloat16", over_one_more, TY_BF16, "ty_exp_near(", "ty_exp_f32("},
    {"a quotient of float16", over_one_more, TY_F16, "* ty_reciprocal(", " / v"},
    {"float32", over_one_more, TY_F32, "ty_exp_f32(", "_near("},
    {"a quotient of float32", over_one_more, TY_F32, " / v", "ty_reciprocal("},
    {"a sum of bfloat16", over_sum, TY_BF16, "* ty_reciprocal(", " / v"},
    {"a sum of float32", over_sum, TY_F32, " / v", "ty_reciprocal("},
    {"float32 beside bfloat16", beside, TY_BF16, "ty_exp_f32(", "_near("},
};

static ty_graph *make(size_t i)
{
    ty_graph *g = ty_graph_new();
    const int64_t dim[] = {ROWS, COLUMNS};
    ty_val x = ty_b_input(g, ty_graph_add_input(g, "x", ty_type_make(cases[i].dtype, 2, dim)));
    ty_graph_add_output(g, "z", cases[i].make(g, ty_b_cast(g, x, TY_F32)), TY_TAPE_EVAL);
    return g;
}

static void render(const ty_fusion *f, ty_buf *text)
{
    for (uint32_t u = 0; u < f->n_units; u++) {
        const ty_kernel *k = f->unit[u].kernel;
        if (f->unit[u].kind != TY_UNIT_KERNEL)
            continue;
        uint32_t alias[MAX_BUFFERS];
        const int64_t base[MAX_BUFFERS] = {0};
        assert_in_range(k->n_buffers, 1, MAX_BUFFERS);
        for (uint32_t b = 0; b < MAX_BUFFERS; b++)
            alias[b] = b;
        ty_cuda_render_kernel(&(ty_cuda_kernel){k, alias, base, NULL, TY_CUDA_FILL}, "kernel", text);
    }
}

static void quick_forms_are_of_what_was_rounded(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ty_graph *g = make(i);
        ty_fusion *f = NULL;
        ty_error err = {0};
        ty_buf text;
        ty_buf_init(&text, 1 << 20);
        assert_int_equal(ty_pass_fuse(g, TY_TAPE_EVAL, TY_FUSE_GPU, &f, &err), 0);
        render(f, &text);
        if (!strstr(text.data, cases[i].has) || strstr(text.data, cases[i].lacks))
            fail_msg("%s: expected \"%s\" and no \"%s\" in\n%s", cases[i].what, cases[i].has, cases[i].lacks,
                     text.data);
        ty_buf_fini(&text);
        ty_fusion_free(f);
        ty_graph_free(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(quick_forms_are_of_what_was_rounded)};
    return cmocka_run_group_tests_name("cuda_near", tests, NULL, NULL);
}
