/* batchnorm_parts.c - layers that normalise all that there is so far, as in a dense block: the sums of each part exist
 * once, and results are the same. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/passes/passes.h"
#include "tests/unit/evaluate.h"

#include <stdlib.h>

enum { PARTS = 3, ROWS = 8, SIDE = 4 };

static void add_batchnorm(ty_graph *g, ty_val x)
{
    const int64_t c = ty_b_dim(g, x, 1);
    ty_val one = ty_b_full(g, TY_F32, 1, &c, 1.5), in[] = {x, one, one};
    ty_val y = ty_graph_emit(g, TY_OP_BATCHNORM, &(ty_attr){.value = 0.1}, in, 3);
    for (uint32_t i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "y%d", ty_graph_n_outputs(g));
        ty_graph_add_output(g, name, ty_val_make(ty_val_node(y), i), TY_TAPE_EVAL);
    }
}

/* A layer for each part: of that part, or of all up to it. */
static ty_graph *make_layers(bool dense, ty_dtype dtype)
{
    ty_graph *g = ty_graph_new();
    ty_val all = TY_NONE;
    for (int i = 0; i < PARTS; i++) {
        ty_val x = ty_b_cast(g, new_input(g, TY_F32, SHAPE(ROWS, 2 + i, SIDE, SIDE)), dtype);
        all = i == 0 || !dense ? x : ty_b_concat(g, (const ty_val[]){all, x}, 2, 1);
        add_batchnorm(g, all);
    }
    return g;
}

/* Elements that all reductions read. */
static int64_t reduced_by(const ty_graph *g)
{
    int64_t n = 0;
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++)
        if (ty_graph_op(g, id) == TY_OP_REDUCE)
            n += ty_type_elems(ty_graph_type(g, ty_graph_in(g, id, 0)));
    return n;
}

static ty_graph *lowered(const ty_graph *g)
{
    ty_graph *low;
    ty_error err = {0};
    if (ty_pass_lower(g, &low, &err) < 0 || ty_graph_verify(low, &err) < 0)
        fail_msg("%s", err.message);
    return low;
}

static void check(ty_dtype dtype)
{
    ty_graph *apart = make_layers(false, dtype), *dense = make_layers(true, dtype);
    ty_graph *low_apart = lowered(apart), *low = lowered(dense);
    float data[PARTS][ROWS * (1 + PARTS) * SIDE * SIDE];
    const void *inputs[PARTS];
    for (int i = 0; i < PARTS; i++) {
        for (int k = 0; k < (int)(sizeof data[i] / sizeof *data[i]); k++)
            data[i][k] = (float)((k * 37 + i * 11) % 33) / 8 - 2;
        inputs[i] = data[i];
    }
    assert_true(reduced_by(low_apart) > 0);
    assert_int_equal(reduced_by(low), reduced_by(low_apart));
    if (dtype == TY_F32) /* 16 bits are rounded at other places */
        expect_same_outputs(dense, low, TY_TAPE_EVAL, inputs);
    ty_graph *all[] = {apart, dense, low_apart, low};
    for (int i = 0; i < 4; i++)
        ty_graph_free(all[i]);
}

static void statistics_exist_once(void **state)
{
    (void)state;
    check(TY_F32);
    check(TY_BF16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics_exist_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
