/* Concatenations that begin as another one does: read from it, as long as it is there anyway. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/raise_case.h"

enum { MOST = 6 };

/* The second concatenation, of x0 .. x5: of what the first one has, and of how many more. */
typedef struct begins {
    const char *what;
    int first, second; /* parts */
    int from;          /* the second begins with x<from> */
    int first_axis;
    bool unused; /* nobody needs the first */
    int parts;   /* expected of the second */
} begins;

static const begins cases[] = {
    {"one more", 2, 3, 0, 1, false, 2},
    {"two more", 3, 5, 0, 1, false, 3},
    {"four more", 2, 6, 0, 1, false, 5},
    {"another beginning", 2, 3, 1, 1, false, 3},
    {"another axis", 2, 3, 0, 0, false, 3},
    {"nobody needs the first", 2, 3, 0, 1, true, 3},
    {"the first is longer", 3, 2, 0, 1, false, 2},
};

static void check(const begins *c)
{
    raised r = {ty_graph_new(), ty_graph_new()};
    ty_error err = {0};
    ty_val x[MOST], bound[MOST], held[2];
    for (int i = 0; i < MOST; i++) {
        x[i] = new_input(r.before, TY_F64, SHAPE(2, 3));
        bound[i] = new_input(r.after, TY_F64, SHAPE(2, 3));
    }
    held[0] = ty_b_concat(r.before, x, c->first, c->first_axis);
    held[1] = ty_b_concat(r.before, x + c->from, c->second, 1);
    int from = c->unused ? 1 : 0;
    for (int i = from; i < 2; i++)
        ty_graph_add_output(r.before, (char[]){'y', (char)('0' + i), 0}, held[i], TY_TAPE_EVAL);
    assert_int_equal(ty_pass_raise(r.before, r.after, bound, held + from, 2 - from, &err), 0);
    for (int i = from; i < 2; i++)
        ty_graph_add_output(r.after, (char[]){'y', (char)('0' + i), 0}, held[i], TY_TAPE_EVAL);
    expect_same_values(c->what, &r, 0);
    int parts = (int)ty_graph_node(r.after, ty_val_node(held[1]))->n_in;
    if (parts != c->parts)
        fail_msg("%s: expected %d parts, found %d", c->what, c->parts, parts);
    ty_graph_free(r.before);
    ty_graph_free(r.after);
}

static void beginnings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
}

/* A dense block: each concatenation of the one before and what is new, the longest beginning of all. */
static void one_after_the_other(void **state)
{
    (void)state;
    raised r = {ty_graph_new(), ty_graph_new()};
    ty_error err = {0};
    ty_val x[MOST], bound[MOST], held[MOST - 1];
    for (int i = 0; i < MOST; i++) {
        x[i] = new_input(r.before, TY_F64, SHAPE(2, 3));
        bound[i] = new_input(r.after, TY_F64, SHAPE(2, 3));
    }
    for (int n = 2; n <= MOST; n++)
        held[n - 2] = ty_b_concat(r.before, x, n, 1);
    assert_int_equal(ty_pass_raise(r.before, r.after, bound, held, MOST - 1, &err), 0);
    for (int i = 1; i < MOST - 1; i++) {
        uint32_t node = ty_val_node(held[i]);
        assert_int_equal(ty_graph_node(r.after, node)->n_in, 2);
        assert_int_equal(ty_graph_in(r.after, node, 0), held[i - 1]);
        assert_int_equal(ty_graph_in(r.after, node, 1), bound[i + 1]);
    }
    ty_graph_free(r.before);
    ty_graph_free(r.after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beginnings),
        cmocka_unit_test(one_after_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
