/* onednn_dot.c - products of bfloat16 as oneDNN computes them, and as they are emulated where nobody does: widened to
 * float32, multiplied there, rounded (compiler/target/cpu/native_widen.c, which says that the two differ in the order
 * of float32 sums alone). The products of two bfloat16 numbers are exact in float32; so both are held to what any order
 * of additions may come to. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/target/cpu/onednn.h"
#include "tests/unit/native_case.h"

enum { FORMS = TY_DOT_TRANS_A + TY_DOT_TRANS_B + TY_DOT_WIDE + 1 };

/* batch 0: plain matrices. */
typedef struct dot_case {
    int64_t batch, m, n, k;
} dot_case;

/* Sizes that fill no vector, no pair of numbers and no block, from one row, one column, one term on. */
static const dot_case cases[] = {
    {0, 1, 1, 1},    {0, 1, 17, 2},    {0, 33, 1, 3},    {0, 1, 1, 255},  {0, 7, 5, 31},
    {0, 13, 47, 65}, {0, 65, 33, 127}, {0, 3, 129, 515}, {0, 131, 67, 1}, {0, 97, 101, 1027},
    {1, 9, 15, 21},  {3, 17, 31, 33},  {5, 1, 63, 9},
};

typedef struct dot_operands {
    const dot_case *c;
    ty_attr attr;
    native_buffers b;
    ty_ref in[3]; /* a, b and what the product is added to, if it is */
} dot_operands;

static void operands_init(dot_operands *o, const dot_case *c, uint32_t form, bool adds, native_fill fill)
{
    const int64_t a[] = {c->batch, form & TY_DOT_TRANS_A ? c->k : c->m, form & TY_DOT_TRANS_A ? c->m : c->k};
    const int64_t b[] = {c->batch, form & TY_DOT_TRANS_B ? c->n : c->k, form & TY_DOT_TRANS_B ? c->k : c->n};
    const int skip = c->batch == 0;
    const ty_type types[] = {
        ty_type_make(TY_BF16, 3 - skip, a + skip), ty_type_make(TY_BF16, 3 - skip, b + skip),
        ty_type_make(form & TY_DOT_WIDE ? TY_F32 : TY_BF16, 3 - skip, (int64_t[]){c->batch, c->m, c->n} + skip)};
    *o = (dot_operands){.c = c, .attr = {.flags = form}};
    native_make(&o->b, TY_OP_DOT, &o->attr, types, adds ? 3 : 2, fill, 0);
    for (int i = 0; i < o->b.n_in; i++) {
        assert_int_equal(ty_ref_init(&o->in[i], &types[i], NULL), 0);
        ty_ref_load(&o->in[i], o->b.in[i]);
    }
}

static void operands_free(dot_operands *o)
{
    for (int i = 0; i < o->b.n_in; i++)
        ty_ref_fini(&o->in[i]);
    native_free_operands(&o->b);
}

/* Element `at` of the result, and what its terms come to without their signs. */
static double exact_sum(const dot_operands *o, int64_t at, double *size)
{
    const dot_case *c = o->c;
    int64_t matrix = at / (c->m * c->n), row = at / c->n % c->m, column = at % c->n;
    const double *a = o->in[0].f + matrix * c->m * c->k, *b = o->in[1].f + matrix * c->k * c->n;
    double sum = o->b.n_in > 2 ? o->in[2].f[at] : 0;
    *size = fabs(sum);
    for (int64_t k = 0; k < c->k; k++) {
        double term = a[o->attr.flags & TY_DOT_TRANS_A ? k * c->m + row : row * c->k + k] *
                      b[o->attr.flags & TY_DOT_TRANS_B ? column * c->k + k : k * c->n + column];
        sum += term;
        *size += fabs(term);
    }
    return sum;
}

/* Each of k additions in float32 rounds by at most 2^-24 of a partial sum, which is no larger than all terms together;
 * the dtype of the result rounds once more, and keeps the order of what it rounds. */
static bool is_sum(double value, double sum, double size, int64_t k, ty_dtype dtype)
{
    double off = (double)k * 0x1p-24 * size;
    if (!isfinite(sum))
        return isnan(sum) ? isnan(value) : value == sum;
    return ty_ref_round_one(dtype, sum - off) <= value && value <= ty_ref_round_one(dtype, sum + off);
}

static void expect_sums(const dot_operands *o, const void *result, const char *how)
{
    ty_ref r;
    double size;
    assert_int_equal(ty_ref_init(&r, &o->b.res_type[0], NULL), 0);
    ty_ref_load(&r, result);
    for (int64_t i = 0, n = ty_type_elems(&r.type); i < n; i++) {
        double sum = exact_sum(o, i, &size);
        if (!is_sum(r.f[i], sum, size, o->c->k, (ty_dtype)r.type.dtype))
            fail_msg("%s: element %" PRId64 " is %.9g, expected %.9g", how, i, r.f[i], sum);
    }
    ty_ref_fini(&r);
}

/* strict: emulated, since oneDNN's bits may depend on the number of threads. */
static void multiply(dot_operands *o, int threads, bool strict)
{
    ty_library_shape shape = {&o->attr, o->b.in_type, o->b.n_in, o->b.res_type, 1, threads, strict};
    ty_library_call call = {0};
    ty_error err = {0};
    if (ty_library_prepare(TY_OP_DOT, &shape, &call, &err) < 0)
        fail_msg("%s", err.message);
    if (strncmp(call.text, strict ? "float32, rounded" : "onednn bfloat16 ", strict ? 17 : 16) != 0)
        fail_msg("not this one: %s", call.text);
    o->b.out[0] = native_bytes(&o->b, NATIVE_MAX_IN, ty_type_bytes(&o->b.res_type[0]));
    void *scratch = aligned_alloc(64, (call.scratch_bytes + 63) / 64 * 64 + 64);
    assert_non_null(scratch);
    call.run(call.prepared, (const void *const *)o->b.in, o->b.out, scratch);
    expect_sums(o, o->b.out[0], call.text);
    free(scratch);
    ty_library_release(&call);
    native_free_results(&o->b);
}

static void needs_bfloat16(void)
{
    if (ty_onednn_bf16_pays())
        return;
    print_message("skip: this processor does not multiply bfloat16 faster than float32\n");
    skip();
}

static void all_shapes(native_fill fill)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint32_t form = 0; form < FORMS; form++)
            for (int adds = 0; adds < 2; adds++) {
                dot_operands o;
                operands_init(&o, &cases[i], form, adds, fill);
                multiply(&o, 1, false);
                multiply(&o, 3, false);
                multiply(&o, 2, true);
                operands_free(&o);
            }
}

static void both_round_the_same_sums(void **state)
{
    (void)state;
    needs_bfloat16();
    all_shapes(NATIVE_NOISE);
}

/* What is no number reaches the sums that it is part of, and no other. */
static void no_numbers_stay_in_their_sums(void **state)
{
    (void)state;
    needs_bfloat16();
    all_shapes(NATIVE_TIES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_round_the_same_sums),
        cmocka_unit_test(no_numbers_stay_in_their_sums),
    };
    return cmocka_run_group_tests_name("onednn_dot", tests, NULL, NULL);
}
