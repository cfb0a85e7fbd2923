/* TensorFlow's operations: each row of the goldens, imported and computed by the interpreter, against what TensorFlow
 * itself computed (tests/tensorflow/golden_ops.py). Constants of the graph that may be weights are bound as inputs, so
 * that nothing folds away what is tested. */
#include "base/file.h"
#include "compiler/import/tensorflow/tf_import.h"
#include "compiler/ir/build.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/verify.h"
#include "compiler/ops/ref.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FOLDER "tests/golden/tensorflow/"

enum { MAX_CASES = 1600, NAME = 80 };

typedef struct golden {
    char got[NAME], want[NAME];
    double tolerance;
} golden;

typedef struct ops_case {
    golden list[MAX_CASES];
    int n;
    char *outputs; /* names of all, by commas */
    tf_file *file;
    ty_graph *g;
    const void **input; /* by input of the graph: bytes of the constant */
    int n_inputs;
} ops_case;

static void check(int rc, const ty_error *err)
{
    char text[2000];
    if (rc == 0)
        return;
    ty_error_format(err, text, sizeof text);
    fail_msg("%s", text);
}

static void read_list(ops_case *c)
{
    FILE *f = fopen(FOLDER "ops.txt", "r");
    assert_non_null(f);
    golden *g = c->list;
    while (c->n < MAX_CASES && fscanf(f, "%79s %79s %lf", g->got, g->want, &g->tolerance) == 3)
        g = &c->list[++c->n];
    fclose(f);
    assert_true(c->n > 250 && c->n < MAX_CASES);
    c->outputs = calloc((size_t)c->n, 2 * NAME + 4);
    char *at = c->outputs;
    for (int i = 0; i < c->n; i++)
        at += sprintf(at, "%s%s,%s", i ? "," : "", c->list[i].got, c->list[i].want);
}

/* Floats of the file become inputs of the graph. */
static void bind_weights(ops_case *c, ty_val *weights)
{
    int n = tf_n_variables(c->file);
    c->input = calloc((size_t)n + 1, sizeof *c->input);
    for (int i = 0; i < n; i++) {
        const tf_variable *v = tf_variable_at(c->file, i);
        weights[i] = TY_NONE;
        if (v->type.dtype != TY_F32 || !v->data || strncmp(v->name, "want", 4) == 0)
            continue;
        weights[i] = ty_b_input(c->g, ty_graph_add_input(c->g, v->name, v->type));
        c->input[c->n_inputs++] = v->data;
    }
}

static double element(const ty_ref *r, int64_t k)
{
    return ty_dtype_is_float((ty_dtype)r->type.dtype) ? r->f[k] : (double)r->i[k];
}

/* The largest difference of a golden's elements, as a share of what is allowed; infinite if types differ. */
static double worst(const golden *g, const ty_ref *got, const ty_ref *want)
{
    double most = 0, scale = 1;
    if (!ty_type_same(&got->type, &want->type))
        return INFINITY;
    int64_t n = ty_type_elems(&got->type);
    for (int64_t k = 0; k < n; k++)
        if (isfinite(element(want, k)) && fabs(element(want, k)) > scale)
            scale = fabs(element(want, k));
    for (int64_t k = 0; k < n; k++) {
        double a = element(got, k), b = element(want, k);
        if (a == b || (isnan(a) && isnan(b)))
            continue;
        double d = fabs(a - b) / (g->tolerance * scale);
        most = d > most || isnan(d) ? (isnan(d) ? INFINITY : d) : most;
    }
    return most;
}

static int compare(const ops_case *c, const ty_interp *it)
{
    int n_bad = 0;
    for (int i = 0; i < c->n; i++) {
        const ty_ref *got = ty_interp_output(it, 2 * i), *want = ty_interp_output(it, 2 * i + 1);
        char a[160], b[160];
        double w = worst(&c->list[i], got, want);
        if (w <= 1)
            continue;
        n_bad++;
        print_error("%s: %g times the tolerance; %s, expected %s; first %g, expected %g\n", c->list[i].got, w,
                    ty_type_text(&got->type, a, sizeof a), ty_type_text(&want->type, b, sizeof b),
                    ty_type_elems(&got->type) ? element(got, 0) : 0, ty_type_elems(&want->type) ? element(want, 0) : 0);
    }
    return n_bad;
}

static void test_all_operations(void **state)
{
    (void)state;
    ops_case *c = calloc(1, sizeof *c);
    ty_error err = {0};
    ty_model_values values;
    ty_interp *it;
    read_list(c);
    check(tf_open(FOLDER "ops.pb", &(tf_options){.signature = c->outputs}, &c->file, &err), &err);
    c->g = ty_graph_new();
    ty_val *weights = calloc((size_t)tf_n_variables(c->file) + 1, sizeof *weights);
    bind_weights(c, weights);
    ty_model_binding b = {.mode = TY_MODEL_EVAL, .weights = weights};
    b.seed = b.step = ty_b_scalar(c->g, TY_I64, 0);
    tf_run run = {.file = c->file, .signature = tf_chosen_signature(c->file)};
    check(tf_import(&run, c->g, &b, &values, &err), &err);
    assert_int_equal(run.signature->n_outputs, 2 * c->n);
    for (int i = 0; i < 2 * c->n; i++) {
        char name[20];
        snprintf(name, sizeof name, "%d", i);
        ty_graph_add_output(c->g, name, values.outputs[i], TY_TAPE_EVAL);
    }
    check(ty_graph_verify(c->g, &err), &err);
    check(ty_interp_new(c->g, &it, &err), &err);
    check(ty_interp_run(it, TY_TAPE_EVAL, c->input, true, &err), &err);
    assert_int_equal(compare(c, it), 0);
    ty_interp_free(it);
    ty_graph_free(c->g);
    tf_close(c->file);
    free(weights);
    free(c->outputs);
    free(c->input);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
