/* pack.c - attention whose q, k and v are slices of one tensor: when the pass takes this as one operand, and that the
 * numbers and those of the gradient stay what they were. */
#include "compiler/ir/build.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/text.h"
#include "compiler/ops/attend.h"
#include "compiler/ops/ref.h"
#include "compiler/passes/passes.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/attend_case.h"

static const attend_case cases[] = {
    {TY_F32, 2, 3, 3, 64, 64, 16, 16, false, true, true, true, NO_MASK, false},
    {TY_F32, 1, 2, 2, 65, 65, 24, 24, true, true, true, true, NO_MASK, false},
};
enum { N_CASES = sizeof cases / sizeof *cases };

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

static ty_graph *passed(const ty_graph *g, int (*pass)(const ty_graph *, ty_graph **, ty_error *))
{
    ty_graph *after = NULL;
    ty_error err = {0};
    if (pass(g, &after, &err) < 0)
        fail_msg("%s", err.message);
    return after;
}

/* ---- what is taken ---- */

static void all_is_one(void **state)
{
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        ty_graph *g = make(&cases[i]), *tiled = passed(g, ty_pass_attend), *after = passed(tiled, ty_pass_pack);
        assert_int_equal(count(tiled, TY_OP_SLICE), 3);
        assert_int_equal(count(tiled, TY_OP_PAD), 3);
        assert_int_equal(count(after, TY_OP_ATTEND), 1);
        assert_int_equal(count(after, TY_OP_ATTEND_GRAD), 1);
        assert_int_equal(count(after, TY_OP_SLICE) + count(after, TY_OP_PAD) + count(after, TY_OP_ADD), 0);
        ty_graph_free(g);
        ty_graph_free(tiled);
        ty_graph_free(after);
    }
}

#define HEAD                      \
    "graph\n"                     \
    "input 0 \"x\" f32[2,8,96]\n" \
    "%0 = input() {type=f32[2,8,96] index=0} : f32[2,8,96]\n"
#define PART(N, M, LO, HI)                                                                  \
    "%" N " = slice(%0) {n=3 lo=[0 0 " LO "] hi=[2 8 " HI "] step=[1 1 1]} : f32[2,8,32]\n" \
    "%" M " = reshape(%" N ") {type=f32[2,8,2,16]} : f32[2,8,2,16]\n"
#define FIRST  PART("1", "2", "0", "32")
#define SECOND PART("3", "4", "32", "64")
#define THIRD  PART("5", "6", "64", "96")
#define ATTEND(Q, K, V)                                                                                          \
    "%8 = attend(%" Q ", %" K ", %" V ") {flags=2 value=0x1p-2 index=0 dropped=0} : f32[2,8,2,16], f32[2,2,8]\n" \
    "output \"y\" %8:0 eval\n"

static const struct {
    const char *what, *text;
    bool packs;
} graphs[] = {
    {"as it should be", HEAD FIRST SECOND THIRD ATTEND("2", "4", "6"), true},
    {"another order", HEAD FIRST SECOND THIRD ATTEND("4", "2", "6"), false},
    {"one twice", HEAD FIRST SECOND ATTEND("2", "4", "4"), false},
    {"other bounds", HEAD FIRST PART("3", "4", "31", "63") THIRD ATTEND("2", "4", "6"), false},
    {"one for all", HEAD FIRST ATTEND("2", "2", "2"), false},
    {"something in between", HEAD FIRST SECOND THIRD "%7 = neg(%6) : f32[2,8,2,16]\n" ATTEND("2", "4", "7"), false},
};

static void only_what_it_should_be(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        ty_graph *g = NULL;
        ty_error err = {0};
        if (ty_graph_parse(graphs[i].text, strlen(graphs[i].text), &g, &err) < 0)
            fail_msg("%s: %s", graphs[i].what, err.message);
        ty_graph *after = passed(g, ty_pass_pack);
        uint32_t node = ty_val_node(ty_graph_output(after, 0)->val);
        assert_int_equal(ty_graph_op(after, node), TY_OP_ATTEND);
        if (!!(ty_graph_attr(after, node)->flags & TY_ATTEND_PACKED) != graphs[i].packs)
            fail_msg("%s: expected %s", graphs[i].what, graphs[i].packs ? "one operand" : "three");
        ty_graph_free(g);
        ty_graph_free(after);
    }
}

/* A packed operand is checked like any other. */
static void refusals(void **state)
{
    (void)state;
    static const char *const texts[] = {
        HEAD
        "%1 = reshape(%0) {type=f32[2,8,4,24]} : f32[2,8,4,24]\n"
        "%2 = attend(%1, %1, %1) {flags=6 value=0x1p-2 index=0 dropped=0} : f32[2,8,1,24], f32[2,1,8]\noutput \"y\" "
        "%2:0 eval\n",
        HEAD
        "%1 = reshape(%0) {type=f32[2,8,6,16]} : f32[2,8,6,16]\n"
        "%2 = attend(%1, %1, %1) {flags=4 value=0x1p-2 index=0 dropped=0} : f32[2,8,2,16], f32[2,2,8]\noutput \"y\" "
        "%2:0 eval\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ty_graph *g = NULL;
        ty_error err = {0};
        assert_int_equal(ty_graph_parse(texts[i], strlen(texts[i]), &g, &err), -1);
        assert_non_null(strstr(err.message, "three times as many heads, inside"));
    }
}

/* ---- numbers ---- */

static ty_interp *interpreted(const ty_graph *g, void **in)
{
    ty_interp *p = NULL;
    ty_error err = {0};
    assert_int_equal(ty_interp_new(g, &p, &err), 0);
    assert_int_equal(ty_interp_run(p, TY_TAPE_EVAL, (const void *const *)in, false, &err), 0);
    return p;
}

static void numbers_stay(void **state)
{
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        ty_graph *g = make(&cases[i]), *tiled = passed(g, ty_pass_attend), *after = passed(tiled, ty_pass_pack);
        void *in[MAX_INPUTS];
        float_noise(g, in);
        ty_interp *a = interpreted(g, in), *b = interpreted(after, in);
        for (int k = 0; k < ty_graph_n_outputs(g); k++)
            for (int64_t e = 0; e < ty_type_elems(&ty_interp_output(a, k)->type); e++)
                assert_true(fabs(ty_interp_output(a, k)->f[e] - ty_interp_output(b, k)->f[e]) < 1e-12);
        for (int k = 0; k < ty_graph_n_inputs(g); k++)
            free(in[k]);
        ty_interp_free(a);
        ty_interp_free(b);
        ty_graph_free(g);
        ty_graph_free(tiled);
        ty_graph_free(after);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_one),
        cmocka_unit_test(only_what_it_should_be),
        cmocka_unit_test(refusals),
        cmocka_unit_test(numbers_stay),
    };
    return cmocka_run_group_tests_name("pack", tests, NULL, NULL);
}
