/* cuda_attend.c - attention in tiles on a GPU, in both 16-bit types: its numbers and those of its gradient against the
 * composite's reference in double, and the same bits in every run. Without a GPU, or a library that stands in for its
 * driver (tests/cuda_run.sh), there is nothing to run on. */
#include "base/rng.h"
#include "compiler/ir/build.h"
#include "compiler/ops/ref.h"
#include "compiler/passes/passes.h"
#include "compiler/program.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/attend_case.h"

/* Of so few keys all scores are far below zero: what stands behind their end must not come to be exp(0 - greatest
 * score). */
enum { FEW_KEYS = 16 };

/* Of so many keys the last ones are five times as large as the first, so that scores rise from tile to tile, by more
 * than a row's sums are left behind. Heads lie within rows. */
enum { RISING_KEYS = 200, RISE = 4 };

/* Ends of tiles, several queries to a key's head, more keys than queries, heads of two sizes, wide heads. */
static const attend_case cases[] = {
    {TY_BF16, 2, 3, 3, 64, 64, 32, 32, false, true, true, false, NO_MASK, false},
    {TY_BF16, 1, 2, 2, 130, 130, 64, 64, true, true, true, false, NO_MASK, false},
    {TY_F16, 1, 4, 2, 70, 70, 32, 16, true, true, true, false, NO_MASK, false},
    {TY_F16, 2, 2, 1, 77, 150, 16, 48, true, false, true, false, NO_MASK, false},
    {TY_F16, 1, 2, 2, 129, 65, 16, 32, false, false, true, false, NO_MASK, false},
    {TY_BF16, 1, 2, 1, 16, 100, 128, 128, false, true, true, false, NO_MASK, false},
    {TY_F16, 1, 1, 1, 65, 65, 80, 112, true, false, true, false, NO_MASK, false},
    /* a block has all queries and keys of a head */
    {TY_BF16, 2, 2, 2, 128, 128, 64, 64, false, true, true, false, NO_MASK, false},
    {TY_F16, 1, 2, 2, 97, 128, 48, 32, true, false, true, false, NO_MASK, false},
    {TY_BF16, 1, 2, 2, 128, 37, 16, 64, false, true, true, false, NO_MASK, false},
    {TY_F16, 1, 2, 2, 20, 101, 64, 16, false, false, true, false, NO_MASK, false},
    {TY_BF16, 1, 2, 2, 128, FEW_KEYS, 64, 64, false, true, true, false, NO_MASK, false},
    /* scores that rise */
    {TY_BF16, 1, 2, 2, RISING_KEYS, RISING_KEYS, 64, 64, true, true, true, false, NO_MASK, false},
    {TY_F16, 1, 2, 1, 70, RISING_KEYS, 64, 64, false, true, true, false, NO_MASK, false},
    {TY_F16, 1, 2, 2, RISING_KEYS, RISING_KEYS, 32, 48, true, true, true, false, NO_MASK, false},
    /* q, k and v of one tensor */
    {TY_BF16, 2, 3, 3, 130, 130, 64, 64, true, true, true, true, NO_MASK, false},
    {TY_F16, 1, 2, 2, 70, 70, 16, 16, false, true, true, true, NO_MASK, false},
    {TY_BF16, 2, 3, 3, 128, 128, 64, 64, true, true, true, true, NO_MASK, false},
    {TY_BF16, 2, 2, 2, 65, 65, 112, 112, true, true, true, true, NO_MASK, false},
    /* masks: of a block's own queries and keys, of tiles, of groups of queries, of wide heads, of one tensor */
    {TY_BF16, 2, 3, 3, 64, 64, 64, 64, false, true, true, false, KEYS, false},
    {TY_F16, 2, 2, 2, 97, 70, 32, 48, false, false, true, false, BIAS, false},
    {TY_F16, 1, 2, 2, 64, 128, 64, 64, false, true, true, false, QUERIES, false},
    {TY_BF16, 1, 4, 2, 200, 150, 64, 64, false, true, true, false, BAND, false},
    {TY_F16, 2, 4, 2, 140, 140, 64, 64, false, true, true, false, BIAS, false},
    {TY_F16, 3, 2, 1, 77, 150, 16, 48, false, false, true, false, KEYS_ADDED, false},
    {TY_F16, 1, 2, 2, 129, 65, 16, 32, false, false, true, false, HEADS_ADDED, false},
    {TY_F16, 2, 2, 2, 130, 65, 80, 112, false, false, true, false, QUERIES, false},
    {TY_BF16, 2, 2, 2, 150, 150, 64, 64, false, true, true, true, KEYS, false},
    {TY_BF16, 2, 2, 2, 65, 65, 64, 64, false, true, true, true, KEYS_ADDED, false},
    {TY_F16, 1, 2, 2, 140, 140, 64, 64, false, true, true, false, BAND_ADDED, false},
    /* dropped: of a block's own queries and keys, of tiles, where keys are no multiple of four, of wide heads, of
       groups */
    {TY_F16, 2, 3, 3, 64, 64, 64, 64, false, true, true, false, NO_MASK, true},
    {TY_F16, 1, 2, 2, 97, 70, 32, 48, false, false, true, false, NO_MASK, true},
    {TY_F16, 1, 2, 2, 130, 200, 64, 64, true, true, true, false, NO_MASK, true},
    {TY_F16, 2, 2, 1, 77, 150, 16, 48, true, false, true, false, NO_MASK, true},
    {TY_F16, 1, 4, 2, 150, 152, 64, 64, false, true, true, false, BAND, true},
    {TY_F16, 1, 1, 1, 65, 65, 80, 112, true, false, true, false, NO_MASK, true},
    {TY_F16, 2, 2, 2, 66, 132, 128, 128, false, true, true, false, NO_MASK, true},
    {TY_BF16, 2, 3, 3, 128, 128, 64, 64, false, true, true, true, KEYS, true},
    {TY_BF16, 2, 2, 2, 150, 150, 64, 64, true, true, true, true, NO_MASK, true},
};
enum { N_CASES = sizeof cases / sizeof *cases };

/* Both are bits of 16-bit numbers; memory of inputs is at odd places sometimes, as views are. */
static void noise(const ty_graph *g, const attend_case *c, void **in)
{
    bool far = c->s == FEW_KEYS, rising = c->s == RISING_KEYS;
    for (int i = 0; i < ty_graph_n_inputs(g); i++) {
        const ty_type *type = &ty_graph_input(g, i)->type;
        int64_t n = ty_type_elems(type);
        uint16_t *x = in[i] = malloc(sizeof *x * (size_t)n);
        assert_non_null(x);
        for (int64_t k = 0; k < n; k++) {
            float f = 3 * ty_rng_uniform(ty_rng_u32(5, (uint32_t)i, 0, (uint64_t)k)) - 1.5f;
            f = far && i < 2 ? (i == 0 ? 3 : -3) * fabsf(f) : f;
            if (rising && i == 1)
                f *= 1 + RISE * (float)(k / (c->groups * c->d) % c->s) / (float)c->s;
            x[k] = type->dtype == TY_F16 ? ty_f32_to_f16(f) : ty_f32_to_bf16(f);
        }
    }
}

static ty_program *compile(const attend_case *c)
{
    ty_error err = {0};
    ty_program *p = NULL;
    ty_compile_options opt = {.threads = 2, .backend = TY_BACKEND_CUDA};
    if (ty_program_of_graph(make(c), TY_TAPE_EVAL, &opt, &p, &err) < 0)
        fail_msg("%s", err.message);
    return p;
}

/* Probabilities and their gradients are rounded to 16 bits before they are multiplied: half a unit of the last place
 * of each, of which many are added up. */
static void expect_close(const char *what, const ty_tensor *found, const ty_ref *expected, int i)
{
    const uint16_t *x = found->data;
    bool f16 = found->type.dtype == TY_F16;
    double most = 0, worst = 0;
    int64_t n = ty_type_elems(&found->type);
    for (int64_t k = 0; k < n; k++)
        most = fmax(most, fabs(expected->f[k]));
    for (int64_t k = 0; k < n; k++) {
        double is = f16 ? ty_f16_to_f32(x[k]) : ty_bf16_to_f32(x[k]), off = fabs(is - expected->f[k]);
        worst = fmax(worst, off / most);
        if (!(off <= (f16 ? 1.0 / 1024 : 1.0 / 128) * most))
            fail_msg("case %d, %s[%lld] of %lld: expected %.6g, found %.6g", i, what, (long long)k, (long long)n,
                     expected->f[k], is);
    }
    if (getenv("TY_TEST_PRINT"))
        printf("case %d, %s: off by at most %.2g of the greatest\n", i, what, worst);
}

static void judge(int i, const ty_graph *g, ty_interp *judge, void **in, ty_error *err)
{
    ty_program *p = compile(&cases[i]);
    void *first[MAX_OUTPUTS];
    assert_int_equal(ty_program_run(p, TY_RUN_EVAL, (const void *const *)in, err), 0);
    for (int k = 0; k < ty_graph_n_outputs(g); k++) {
        const char *name = ty_graph_output(g, k)->name;
        const ty_tensor *x = ty_program_output(p, TY_RUN_EVAL, name);
        expect_close(name, x, ty_interp_output(judge, k), i);
        first[k] = memcpy(malloc(ty_type_bytes(&x->type)), x->data, ty_type_bytes(&x->type));
    }
    assert_int_equal(ty_program_run(p, TY_RUN_EVAL, (const void *const *)in, err), 0);
    for (int k = 0; k < ty_graph_n_outputs(g); k++) {
        const ty_tensor *x = ty_program_output(p, TY_RUN_EVAL, ty_graph_output(g, k)->name);
        assert_memory_equal(x->data, first[k], ty_type_bytes(&x->type));
        free(first[k]);
    }
    ty_program_free(p);
}

static bool has_gpu(void)
{
    ty_error err = {0};
    ty_program *p = NULL;
    ty_compile_options opt = {.threads = 2, .backend = TY_BACKEND_CUDA};
    int rc = ty_program_of_graph(make(&cases[0]), TY_TAPE_EVAL, &opt, &p, &err);
    if (rc == 0)
        ty_program_free(p);
    else
        printf("skip: %s\n", err.message);
    return rc == 0 || err.code != TY_E_NOT_FOUND;
}

static void numbers(void **state)
{
    (void)state;
    if (!has_gpu())
        skip();
    for (int i = 0; i < N_CASES; i++) {
        ty_graph *g = make(&cases[i]);
        ty_interp *reference = NULL;
        ty_error err = {0};
        void *in[MAX_INPUTS];
        noise(g, &cases[i], in);
        assert_int_equal(ty_interp_new(g, &reference, &err), 0);
        assert_int_equal(ty_interp_run(reference, TY_TAPE_EVAL, (const void *const *)in, false, &err), 0);
        judge(i, g, reference, in, &err);
        for (int k = 0; k < ty_graph_n_inputs(g); k++)
            free(in[k]);
        ty_interp_free(reference);
        ty_graph_free(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers)};
    return cmocka_run_group_tests_name("cuda_attend", tests, NULL, NULL);
}
