/* turn.c - copies that turn: which ones go by tiles, and that every element comes to its place, on any number of
 * threads. */
#include "tests/unit/evaluate.h"
#include "tests/unit/kernel_case.h"

enum { AXES = 4, MOST = 100000 };

typedef struct turn_case {
    const char *name;
    int rank;
    int64_t dim[AXES], perm[AXES];
    ty_dtype dtype;
    bool tiles;
} turn_case;

static const turn_case cases[] = {
    {"matrix", 2, {100, 77}, {1, 0}, TY_F32, true},
    {"matrices", 3, {5, 33, 64}, {0, 2, 1}, TY_F32, true},
    {"of 16 bits", 3, {5, 33, 64}, {0, 2, 1}, TY_BF16, true},
    {"too short a row", 3, {5, 7, 640}, {0, 2, 1}, TY_F32, false},
    {"too short a column", 3, {5, 640, 7}, {0, 2, 1}, TY_F32, false},
    {"a row that is just long enough", 3, {5, 8, 640}, {0, 2, 1}, TY_F32, true},
    /* a filter's window is in front of its channels, and comes behind them; and back */
    {"weights", 4, {3, 3, 32, 40}, {3, 2, 0, 1}, TY_F32, true},
    {"weights of 16 bits", 4, {3, 3, 32, 40}, {3, 2, 0, 1}, TY_BF16, true},
    {"their gradient", 4, {40, 32, 3, 3}, {2, 3, 1, 0}, TY_F32, true},
    {"weights of small windows", 4, {2, 2, 32, 40}, {3, 2, 0, 1}, TY_F32, false},
    {"rows that stay", 4, {4, 30, 20, 16}, {0, 2, 1, 3}, TY_F32, false},
    {"of bytes", 2, {100, 77}, {1, 0}, TY_BOOL, false},
};

static ty_graph *graph_of(const turn_case *c)
{
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, c->dtype, c->rank, c->dim);
    ty_graph_add_output(g, "y", ty_b_transpose(g, x, c->perm), TY_TAPE_EVAL);
    expect_ok(g);
    return g;
}

static void what_goes_by_tiles(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ty_graph *g = graph_of(&cases[i]);
        ty_fusion *f = NULL;
        case_expect_words(cases[i].name, case_kernel(cases[i].name, g, &f), "  ty_turn_", cases[i].tiles);
        ty_fusion_free(f);
        ty_graph_free(g);
    }
}

static void every_element_comes_to_its_place(void **state)
{
    (void)state;
    static uint8_t x[MOST * sizeof(float)];
    for (size_t i = 0; i < sizeof x; i++)
        x[i] = (uint8_t)(i * 2654435761u >> 16 & 63); /* no NaN */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const turn_case *c = &cases[i];
        uint8_t of_bools[MOST];
        for (size_t k = 0; k < sizeof of_bools; k++)
            of_bools[k] = x[k] & 1;
        const void *in = c->dtype == TY_BOOL ? of_bools : x;
        ty_program *judge = case_run(c->name, graph_of(c), TY_BACKEND_INTERPRETER, 1, in);
        const ty_tensor *expected = ty_program_output(judge, TY_RUN_EVAL, "y");
        for (int threads = 1; threads <= 3; threads++) {
            ty_program *p = case_run(c->name, graph_of(c), TY_BACKEND_CPU, threads, in);
            const ty_tensor *found = ty_program_output(p, TY_RUN_EVAL, "y");
            if (memcmp(found->data, expected->data, ty_type_bytes(&expected->type)))
                fail_msg("%s: elements went astray on %d threads", c->name, threads);
            ty_program_free(p);
        }
        ty_program_free(judge);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_by_tiles),
        cmocka_unit_test(every_element_comes_to_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
