/* tf_drawn.c - TensorFlow's random results: how they are distributed, that each step has its own, and that nothing else
 * changes. The file is of tests/tensorflow/golden_drawn.py.
 */
#include "compiler/import/tensorflow/tf_import.h"
#include "compiler/ir/build.h"
#include "compiler/ir/interpret.h"
#include "compiler/ops/ref.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 200, DRAWS = 3000 };

/* Probabilities 1/2, 3/8, 1/8 and 0, 0, 1 (but for 1 in 10^13). */
static const float logits[] = {0.0f, -0.28768207f, -1.3862944f, -30, -30, 0};
static const double share[2][3] = {{0.5, 0.375, 0.125}, {0, 0, 1}};

typedef struct drawn {
    double v[2 * DRAWS];
    int64_t n;
} drawn;

static void check(int rc, const ty_error *err)
{
    char text[2000];
    if (rc == 0)
        return;
    ty_error_format(err, text, sizeof text);
    fail_msg("%s", text);
}

/* The result of that name in a training step. */
static void draw(const char *name, int64_t step, drawn *out)
{
    ty_error err = {0};
    tf_file *file;
    ty_model_values values;
    ty_interp *it;
    check(tf_open("tests/golden/tensorflow/drawn", &(tf_options){.signature = NULL}, &file, &err), &err);
    tf_run run = {.file = file, .signature = tf_chosen_signature(file)};
    ty_graph *g = ty_graph_new();
    ty_val in = ty_b_input(g, ty_graph_add_input(g, "logits", ty_type_make(TY_F32, 2, (int64_t[]){2, 3})));
    ty_val weight = ty_b_full(g, TY_F32, 1, (int64_t[]){3}, 1), weights[16];
    for (int i = 0; i < tf_n_variables(file) && i < 16; i++)
        weights[i] = strcmp(tf_variable_at(file, i)->name, "weight") == 0 ? weight : TY_NONE;
    ty_model_binding b = {.mode = TY_MODEL_TRAIN, .inputs = &in, .weights = weights};
    b.seed = ty_b_scalar(g, TY_I64, 3);
    b.step = ty_b_scalar(g, TY_I64, (double)step);
    check(tf_import(&run, g, &b, &values, &err), &err);
    int at = 0;
    while (at < run.signature->n_outputs && strcmp(run.signature->output[at].name, name) != 0)
        at++;
    assert_true(at < run.signature->n_outputs);
    ty_graph_add_output(g, "y", values.outputs[at], TY_TAPE_EVAL);
    check(ty_interp_new(g, &it, &err), &err);
    const void *data[] = {logits};
    check(ty_interp_run(it, TY_TAPE_EVAL, data, true, &err), &err);
    const ty_ref *y = ty_interp_output(it, 0);
    out->n = ty_type_elems(&y->type);
    assert_true(out->n <= 2 * DRAWS);
    for (int64_t i = 0; i < out->n; i++)
        out->v[i] = ty_dtype_is_float((ty_dtype)y->type.dtype) ? y->f[i] : (double)y->i[i];
    ty_interp_free(it);
    ty_graph_free(g);
    tf_close(file);
}

static void rows_change_places(void **state)
{
    (void)state;
    static const char *const names[] = {"shuffled", "again"};
    static drawn a, b;
    for (int k = 0; k < 2; k++) {
        bool seen[ROWS] = {false};
        int stayed = 0;
        draw(names[k], 1, &a);
        draw(names[k], 2, &b);
        assert_int_equal(a.n, 3 * ROWS);
        assert_memory_not_equal(a.v, b.v, sizeof a.v);
        for (int i = 0; i < ROWS; i++) {
            int row = (int)a.v[3 * i] / 3;
            assert_true(a.v[3 * i] == 3 * row && a.v[3 * i + 1] == 3 * row + 1 && a.v[3 * i + 2] == 3 * row + 2);
            assert_false(seen[row]);
            seen[row] = true;
            stayed += row == i;
        }
        assert_in_range(stayed, 0, 8);
    }
}

static void classes_have_their_probabilities(void **state)
{
    (void)state;
    static const char *const names[] = {"classes", "same"};
    static drawn a;
    for (int k = 0; k < 2; k++) {
        int n[2][3] = {{0}};
        draw(names[k], 1, &a);
        assert_int_equal(a.n, 2 * DRAWS);
        for (int i = 0; i < 2 * DRAWS; i++) {
            assert_in_range((int)a.v[i], 0, 2);
            n[i / DRAWS][(int)a.v[i]]++;
        }
        for (int row = 0; row < 2; row++)
            for (int c = 0; c < 3; c++)
                assert_true(fabs(n[row][c] / (double)DRAWS - share[row][c]) < 0.04);
    }
}

static void numbers_are_in_their_range(void **state)
{
    (void)state;
    static drawn a;
    int n[10] = {0};
    double sum = 0, squares = 0, most = 0;
    draw("whole", 1, &a);
    for (int i = 0; i < DRAWS; i++) {
        assert_in_range((int)a.v[i], 5, 14);
        n[(int)a.v[i] - 5]++;
    }
    for (int k = 0; k < 10; k++)
        assert_in_range(n[k], DRAWS / 10 - 80, DRAWS / 10 + 80);
    draw("cut", 1, &a);
    for (int i = 0; i < DRAWS; i++) {
        sum += a.v[i];
        squares += a.v[i] * a.v[i];
        most = fmax(most, fabs(a.v[i]));
    }
    assert_true(fabs(sum / DRAWS) < 0.06 && fabs(squares / DRAWS - 0.774) < 0.06 && most > 1.9 && most <= 2);
}

/* A variable of 0 to 5 in rows of two, some of whose numbers are changed. */
static void places_of_a_variable_are_assigned(void **state)
{
    (void)state;
    static const double want[] = {0, 41, 1.5, -5, 24, 8};
    static drawn a;
    draw("table", 1, &a);
    assert_int_equal(a.n, 6);
    for (int i = 0; i < 6; i++)
        assert_true(a.v[i] == want[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_change_places),
        cmocka_unit_test(classes_have_their_probabilities),
        cmocka_unit_test(numbers_are_in_their_range),
        cmocka_unit_test(places_of_a_variable_are_assigned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
