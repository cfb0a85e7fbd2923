/* concerns.c - passes that are not run: what they would have made is the graph that they were given. */
#include "base/buf.h"
#include "compiler/ir/clone.h"
#include "compiler/ir/text.h"
#include "compiler/passes/passes.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef int pass_fn(const ty_graph *in, ty_graph **out, ty_error *err);

static const struct {
    const char *name;
    pass_fn *cpu, *gpu;
} passes[] = {
    {"attend", ty_pass_attend, ty_pass_attend_gpu},         {"layout", ty_pass_layout, ty_pass_layout_gpu},
    {"layout", ty_pass_layout, ty_pass_layout_gpu_tf32},    {"winograd", ty_pass_winograd, ty_pass_winograd},
    {"accumulate", ty_pass_accumulate, ty_pass_accumulate}, {"pack", ty_pass_pack, ty_pass_pack},
};
enum { N_PASSES = sizeof passes / sizeof *passes };

/* Nothing that any of them is about, but much that they look at: turns, sums, a choice, a product, a state. */
static const char other[] = "graph\n"
                            "input 0 \"x\" f32[4,6,8]\n"
                            "state 0 \"w\" param f32[48] { \"w\" f32[6,8] 0 }\n"
                            "%0 = input() {type=f32[4,6,8] index=0} : f32[4,6,8]\n"
                            "%1 = state() {type=f32[48] index=0} : f32[48]\n"
                            "%2 = transpose(%0) {n=3 lo=[0 2 1]} : f32[4,8,6]\n"
                            "%3 = reshape(%1) {type=f32[6,8]} : f32[6,8]\n"
                            "%4 = dot(%2, %0) {flags=0} : f32[4,8,8]\n"
                            "%5 = transpose(%4) {n=3 lo=[0 2 1]} : f32[4,8,8]\n"
                            "%6 = add(%4, %5) : f32[4,8,8]\n"
                            "%7 = exp(%6) : f32[4,8,8]\n"
                            "%8 = reduce(%7) {axes=[0 1] mode=sum} : f32[8]\n"
                            "%9 = exp(%3) : f32[6,8]\n"
                            "output \"y\" %8 eval\n"
                            "output \"z\" %9 eval\n";

/* One op of each pass. */
static const struct {
    const char *pass, *text;
} about[] = {
    {"attend", "graph\n"
               "input 0 \"q\" f32[2,2,64,16]\n"
               "%0 = input() {type=f32[2,2,64,16] index=0} : f32[2,2,64,16]\n"
               "%1 = attention(%0, %0, %0) {flags=1 value=0x1p-2 value2=0x0p+0 index=0 dropped=0} : f32[2,2,64,16]\n"
               "output \"y\" %1 eval\n"},
    {"accumulate", "graph\n"
                   "input 0 \"x\" f32[9,4]\n"
                   "input 1 \"i\" i64[3]\n"
                   "input 2 \"u\" f32[3,4]\n"
                   "%0 = input() {type=f32[9,4] index=0} : f32[9,4]\n"
                   "%1 = input() {type=i64[3] index=1} : i64[3]\n"
                   "%2 = input() {type=f32[3,4] index=2} : f32[3,4]\n"
                   "%3 = scatter(%0, %1, %2) {axis=0 mode=sum} : f32[9,4]\n"
                   "output \"y\" %3 eval\n"},
};

static ty_graph *parsed(const char *text)
{
    ty_graph *g = NULL;
    ty_error err = {0};
    if (ty_graph_parse(text, strlen(text), &g, &err) < 0)
        fail_msg("%s", err.message);
    return g;
}

static void expect_same(const ty_graph *a, const ty_graph *b, const char *pass)
{
    ty_buf of_a, of_b;
    ty_buf_init(&of_a, 1 << 20);
    ty_buf_init(&of_b, 1 << 20);
    assert_int_equal(ty_graph_print(a, &of_a, true), 0);
    assert_int_equal(ty_graph_print(b, &of_b, true), 0);
    if (strcmp(of_a.data, of_b.data) != 0)
        fail_msg("%s:\n%s\nwas\n%s", pass, of_b.data, of_a.data);
    ty_buf_fini(&of_a);
    ty_buf_fini(&of_b);
}

static bool leave(ty_clone *c, uint32_t id, void *ctx)
{
    (void)c, (void)id, (void)ctx;
    return false;
}

static void they_would_change_nothing(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_graph *g = parsed(other), *copy, *after;
    assert_int_equal(ty_clone_rewrite(g, leave, NULL, &copy, &err), 0);
    for (int i = 0; i < N_PASSES; i++)
        for (int gpu = 0; gpu < 2; gpu++) {
            assert_false(ty_pass_concerns(passes[i].name, g));
            assert_int_equal((gpu ? passes[i].gpu : passes[i].cpu)(g, &after, &err), 0);
            expect_same(copy, after, passes[i].name);
            ty_graph_free(after);
        }
    ty_graph_free(copy);
    ty_graph_free(g);
}

static void they_are_run_where_their_ops_are(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof about / sizeof *about; i++) {
        ty_graph *g = parsed(about[i].text);
        for (int k = 0; k < N_PASSES; k++)
            assert_int_equal(ty_pass_concerns(passes[k].name, g), strcmp(passes[k].name, about[i].pass) == 0);
        ty_graph_free(g);
    }
}

static void others_are_always_run(void **state)
{
    (void)state;
    ty_graph *g = parsed(other);
    static const char *const names[] = {"straighten", "lower", "mask", "chunk", "bucket", "split"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_true(ty_pass_concerns(names[i], g));
    ty_graph_free(g);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_would_change_nothing),
        cmocka_unit_test(they_are_run_where_their_ops_are),
        cmocka_unit_test(others_are_always_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
