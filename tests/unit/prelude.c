/* prelude.c - the mathematics of generated code against the C library in double, in units in the last place.
 *
 * Each function is compiled as kernels are (same flags, a vectorised loop) and called for every 1021st of all floats,
 * and for the awkward ones. TY_EXHAUSTIVE=1 takes every float there is (an hour).
 */
#include "base/tensor.h"
#include "compiler/ops/activation.h"
#include "compiler/target/cpu/objects.h"
#include "compiler/target/cpu/render.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define CHUNK 4096

typedef void map_fn(const void *x, void *y, long n);

static ty_objects library;

/* render.h states these bounds. */
typedef struct function {
    const char *name;
    double (*judge)(double);
    double most; /* |x| up to here */
    double ulp;
} function;

static const function functions[] = {
    {"exp", exp, INFINITY, 0.9},      {"expm1", expm1, INFINITY, 1.5}, {"log", log, INFINITY, 1.0},
    {"log1p", log1p, INFINITY, 1.6},  {"tanh", tanh, INFINITY, 1.5},   {"erf", erf, INFINITY, 1.1},
    {"sin", sin, 0x1p30, 2.0},        {"cos", cos, 0x1p30, 2.0},       {"atan", atan, INFINITY, 2.5},
    {"mills", ty_mills, INFINITY, 5},
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

/* Quick forms, for arguments that were rounded to 16 bits. */
static const struct {
    const char *name;
    double (*judge)(double);
} quick[] = {{"exp", exp}, {"tanh", tanh}, {"erf", erf}, {"mills", ty_mills}};
enum { N_QUICK = sizeof quick / sizeof *quick };

static int set_up(void **state)
{
    (void)state;
    ty_buf text;
    ty_error err = {0};
    ty_buf_init(&text, 1 << 20);
    ty_buf_adds(&text, ty_render_head);
    ty_buf_adds(&text, "#define TY_NEAR\n#define ty_exp2(x) __builtin_exp2f(x)\n");
    ty_buf_adds(&text, ty_render_prelude);
    for (int i = 0; i < N_FUNCTIONS; i++)
        ty_buf_addf(&text,
                    "__attribute__((visibility(\"default\"))) void map_%s(const float *restrict x, float *restrict y, "
                    "long n)\n{\n#pragma omp simd\n for (long i = 0; i < n; i++) y[i] = ty_%s_f32(x[i]);\n}\n",
                    functions[i].name, functions[i].name);
    for (int i = 0; i < N_QUICK; i++)
        ty_buf_addf(&text,
                    "__attribute__((visibility(\"default\"))) void map_%s_near(const float *x, float *y, long n)\n"
                    "{\n for (long i = 0; i < n; i++) y[i] = ty_%s_near(x[i]);\n}\n",
                    quick[i].name, quick[i].name);
    ty_buf_adds(&text, "__attribute__((visibility(\"default\"))) void map_bf16(const float *restrict x, unsigned short "
                       "*restrict y, long n)\n{\n#pragma omp simd\n for (long i = 0; i < n; i++) y[i] = "
                       "ty_store_bf16(x[i]);\n}\n"
                       "__attribute__((visibility(\"default\"))) void map_f16(const float *restrict x, unsigned short "
                       "*restrict y, long n)\n{\n#pragma omp simd\n for (long i = 0; i < n; i++) y[i] = "
                       "ty_store_f16(x[i]);\n}\n");
    const char *units[] = {text.data}, *work = getenv("TMPDIR");
    ty_objects_options opt = {.cc = {"cc", work ? work : "/tmp"}};
    ty_objects_job *job = NULL;
    int rc = ty_objects_start(units, 1, &opt, &job, &err);
    if (rc == 0)
        rc = ty_objects_finish(job, &library, &err);
    if (rc < 0)
        print_error("%s\n", err.message);
    ty_buf_fini(&text);
    return rc;
}

static int tear_down(void **state)
{
    (void)state;
    ty_objects_close(&library);
    return 0;
}

static map_fn *map_of(const char *name)
{
    char symbol[80];
    snprintf(symbol, sizeof symbol, "map_%s", name);
    void *found = ty_objects_symbol(&library, symbol);
    assert_non_null(found);
    map_fn *fn;
    memcpy(&fn, &found, sizeof fn);
    return fn;
}

/* Distance of y from the true value r in units of the last place that a float has there. */
static double ulps(float y, double r)
{
    if (isnan(r) || isnan(y))
        return isnan(r) && isnan(y) ? 0 : INFINITY;
    if ((float)r == y)
        return isinf(y) || y == r ? 0 : fabs(y - r) / ldexp(1, (int)fmax(ilogb(r), -126) - 23);
    if (isinf(y) || isinf(r))
        return fabs(r) > FLT_MAX * (1 - 0x1p-23) && isinf(y) && (y > 0) == (r > 0) ? 1 : INFINITY;
    return fabs(y - r) / ldexp(1, (r == 0 ? -126 : (int)fmax(ilogb(r), -126)) - 23);
}

typedef struct worst {
    double ulp;
    float x, y;
} worst;

static void judge_chunk(const function *f, map_fn *map, const float *x, int n, worst *w)
{
    float y[CHUNK];
    map(x, y, n);
    for (int i = 0; i < n; i++) {
        if (fabs(x[i]) > f->most && isfinite(x[i]))
            continue;
        double d = ulps(y[i], f->judge(x[i]));
        if (d > w->ulp)
            *w = (worst){d, x[i], y[i]};
    }
}

static const float awkward[] = {
    0,          -0.0f,    FLT_MIN,  -FLT_MIN, 0x1p-149f,      -0x1p-149f,      FLT_MAX,        -FLT_MAX,       INFINITY,
    -INFINITY,  NAN,      1,        -1,       0x1.fffffep-1f, -0x1.fffffep-1f, 88.7228f,       88.72284f,      89,
    -87.33654f, -103.97f, -103.98f, -104,     -104.01f,       0x1.921fb6p+0f,  0x1.921fb6p+1f, 0x1.4d0f96p+24f};

static void judge_function(const function *f)
{
    float x[CHUNK];
    const char *all = getenv("TY_EXHAUSTIVE");
    uint64_t stride = all && all[0] == '1' ? 1 : 1021;
    map_fn *map = map_of(f->name);
    worst w = {0};
    int n = 0;
    for (uint64_t u = 0; u < 1ull << 32; u += stride) {
        uint32_t bits = (uint32_t)u;
        memcpy(&x[n++], &bits, sizeof bits);
        if (n == CHUNK)
            judge_chunk(f, map, x, n, &w), n = 0;
    }
    judge_chunk(f, map, x, n, &w);
    judge_chunk(f, map, awkward, sizeof awkward / sizeof *awkward, &w);
    for (size_t i = 0; i < sizeof awkward / sizeof *awkward; i++)
        judge_chunk(f, map, &awkward[i], 1, &w); /* the loop's tail */
    print_message("%-6s %.3f ulp at %a (found %a, true %a)\n", f->name, w.ulp, w.x, w.y, f->judge(w.x));
    if (!(w.ulp <= f->ulp))
        fail_msg("%s: %.3f ulp at %a, expected at most %.3f", f->name, w.ulp, w.x, f->ulp);
}

static void test_functions(void **state)
{
    (void)state;
    for (int i = 0; i < N_FUNCTIONS; i++)
        judge_function(&functions[i]);
}

/* Of all bfloat16 numbers: off by no more than half of what rounding to them does to the argument, or to the result. */
static void judge_quick(const char *name, double (*judge)(double))
{
    char map[64];
    snprintf(map, sizeof map, "%s_near", name);
    for (uint32_t u = 0; u < 1u << 16; u++) {
        float x = ty_bf16_to_f32((uint16_t)u), y;
        map_of(map)(&x, &y, 1);
        double true_y = judge(x);
        if (!isfinite(true_y) || fabs(true_y) < 0x1p-120 || fabs(true_y) > FLT_MAX) {
            if (!(isnan(true_y) ? isnan(y) : fabs(true_y) > 1 ? isinf(y) : fabs(y) < 0x1p-119))
                fail_msg("%s_near(%a): expected %a, found %a", name, x, true_y, y);
            continue;
        }
        double moved = fabs(judge(x * (1 + 0x1p-10)) - true_y), most = fmax(moved, fabs(true_y) * 0x1p-10);
        if (!(fabs(y - true_y) <= most))
            fail_msg("%s_near(%a): expected %a, found %a: off by %.3f of what it may be", name, x, true_y, y,
                     fabs(y - true_y) / most);
    }
}

static void test_quick_forms(void **state)
{
    (void)state;
    for (int i = 0; i < N_QUICK; i++)
        judge_quick(quick[i].name, quick[i].judge);
}

static void test_small_floats(void **state)
{
    (void)state;
    float x[CHUNK];
    uint16_t b[CHUNK], h[CHUNK];
    for (uint64_t at = 0; at < 1ull << 32; at += 1021 * CHUNK) {
        for (int i = 0; i < CHUNK; i++) {
            uint32_t bits = (uint32_t)(at + 1021u * (uint32_t)i);
            memcpy(&x[i], &bits, sizeof bits);
        }
        map_of("bf16")(x, b, CHUNK);
        map_of("f16")(x, h, CHUNK);
        for (int i = 0; i < CHUNK; i++) {
            if (isnan(x[i])) {
                assert_true(isnan(ty_bf16_to_f32(b[i])) && isnan(ty_f16_to_f32(h[i])));
                continue;
            }
            assert_int_equal(b[i], ty_f32_to_bf16(x[i]));
            assert_int_equal(h[i], ty_f32_to_f16(x[i]));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_quick_forms),
        cmocka_unit_test(test_small_floats),
    };
    return cmocka_run_group_tests_name("prelude", tests, set_up, tear_down);
}
