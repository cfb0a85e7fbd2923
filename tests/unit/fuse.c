/* fuse.c - which values get memory, and what kernels move, seen in the plan of a program. */
#include "compiler/ir/build.h"
#include "compiler/passes/passes.h"
#include "compiler/program.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

enum { ROWS = 70, WIDTH = 96 };

static ty_val input(ty_graph *g, const char *name, int64_t rows, int64_t columns)
{
    return ty_b_input(g, ty_graph_add_input(g, name, ty_type_make(TY_F32, 2, (const int64_t[]){rows, columns})));
}

/* Rows over their deviation, before and behind a product. */
static ty_graph *make_normalised(void)
{
    ty_graph *g = ty_graph_new();
    ty_val x = input(g, "x", ROWS, WIDTH), w = input(g, "w", WIDTH, WIDTH);
    ty_val var = ty_b_add_s(g, ty_b_mean(g, ty_b_square(g, x), 2, true), 0.25);
    ty_val by = ty_b_broadcast(g, ty_b_unary(g, TY_OP_RSQRT, var), 2, (const int64_t[]){ROWS, WIDTH});
    ty_graph_add_output(g, "y", ty_b_mul(g, ty_b_matmul(g, ty_b_mul(g, x, by), w), by), TY_TAPE_EVAL);
    return g;
}

static int buffers_of(const ty_tape_facts *tape, int64_t elems)
{
    int n = 0;
    for (int i = 0; i < tape->n_buffers; i++)
        n += ty_type_elems(&tape->buffer[i].type) == elems;
    return n;
}

/* What two kernels need of a row has memory for a number a row; what it is broadcast to has none. */
static void memory_is_before_the_broadcast(void **state)
{
    (void)state;
    ty_arena arena;
    ty_tape_facts tape;
    ty_error err = {0};
    ty_program *p = NULL;
    ty_compile_options opt = {.backend = TY_BACKEND_CPU, .threads = 2};
    assert_int_equal(ty_program_of_graph(make_normalised(), TY_TAPE_EVAL, &opt, &p, &err), 0);
    ty_arena_init(&arena);
    assert_int_equal(ty_program_describe(p, TY_RUN_EVAL, &arena, &tape, &err), 0);
    assert_int_equal(buffers_of(&tape, ROWS), 1);
    assert_int_equal(buffers_of(&tape, (int64_t)ROWS * WIDTH),
                     2); /* the operand of the product; the product, over which y is written */
    ty_arena_fini(&arena);
    ty_program_free(p);
}

/* Both halves of x are read, and the whole counts; x twice at the same places is read once. */
static void each_place_is_read_once(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_program *p = NULL;
    ty_compile_options opt = {.backend = TY_BACKEND_CPU, .threads = 2};
    ty_call_info info;
    ty_graph *g = ty_graph_new();
    ty_val x = input(g, "x", ROWS, WIDTH);
    ty_val left = ty_b_slice_axis(g, x, 1, 0, WIDTH / 2), right = ty_b_slice_axis(g, x, 1, WIDTH / 2, WIDTH);
    ty_val far = ty_b_square(g, ty_b_sub(g, left, ty_b_mean(g, left, 2, true)));
    ty_graph_add_output(g, "y", ty_b_sum(g, ty_b_mul(g, far, right), 2, false), TY_TAPE_EVAL);
    assert_int_equal(ty_program_of_graph(g, TY_TAPE_EVAL, &opt, &p, &err), 0);
    assert_int_equal(ty_program_n_calls(p, TY_RUN_EVAL), 1);
    ty_program_call(p, TY_RUN_EVAL, 0, &info);
    assert_int_equal(info.read_bytes, 4 * ROWS * WIDTH);
    assert_int_equal(info.written_bytes, 4 * ROWS);
    ty_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_before_the_broadcast),
        cmocka_unit_test(each_place_is_read_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
