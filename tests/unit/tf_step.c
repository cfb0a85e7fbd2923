/* A TensorFlow model that trains itself: its own step, compiled as it is, against what TensorFlow got
 * (tests/tensorflow/golden_step.py): losses, evaluation between steps, and every variable behind the last one. The same
 * file trained by its forward signature: batch statistics in training, moving ones in evaluation. */
#include "base/file.h"
#include "compiler/compiler.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/verify.h"
#include "compiler/ops/ref.h"
#include "compiler/passes/step.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FOLDER "tests/golden/tensorflow/"

enum { STEPS = 4, BATCH = 6, SIZE = 5, MAX_NUMBERS = 64 };

static void check(int rc, const ty_error *err)
{
    char text[2000];
    if (rc == 0)
        return;
    ty_error_format(err, text, sizeof text);
    fail_msg("%s", text);
}

/* A line of the list: name, count, numbers. False at its end. */
static bool read_line(FILE *f, char name[80], double *v, int *n)
{
    if (fscanf(f, "%79s %d", name, n) != 2)
        return false;
    assert_in_range(*n, 1, MAX_NUMBERS);
    for (int i = 0; i < *n; i++)
        assert_int_equal(fscanf(f, "%lf", &v[i]), 1);
    return true;
}

static ty_train_spec own_spec(const ty_binding *inputs, const ty_loss_term *loss)
{
    ty_train_spec spec = {.inputs = inputs, .n_inputs = 3, .loss = loss, .n_loss = 1, .accumulate = 1};
    spec.batch_norm_statistics = true;
    spec.optimizer.kind = TY_OPT_SGD;
    spec.optimizer.lr = 0.1;
    return spec;
}

static const ty_binding inputs[] = {{"ids", {.dtype = TY_I32, .rank = 2, .dim = {BATCH, 2}}},
                                    {"x", {.dtype = TY_F32, .rank = 2, .dim = {BATCH, SIZE}}},
                                    {"y", {.dtype = TY_F32, .rank = 1, .dim = {BATCH}}}};
static const ty_loss_term loss = {.kind = TY_LOSS_MSE, .output = "output_0", .target = "y", .weight = 1};

typedef struct batch {
    int32_t ids[2 * BATCH];
    float x[BATCH * SIZE], y[BATCH];
} batch;

static void read_batch(FILE *f, batch *b)
{
    char name[80];
    double v[MAX_NUMBERS];
    int n;
    for (int part = 0; part < 3; part++) {
        assert_true(read_line(f, name, v, &n));
        for (int i = 0; i < n; i++)
            if (part == 0)
                b->x[i] = (float)v[i];
            else if (part == 1)
                b->ids[i] = (int32_t)v[i];
            else
                b->y[i] = (float)v[i];
    }
}

static const ty_ref *output(const ty_step *s, const ty_interp *it, const char *name, uint32_t tape)
{
    for (int i = 0; i < ty_graph_n_outputs(s->g); i++)
        if (strcmp(ty_graph_output(s->g, i)->name, name) == 0 && ty_graph_output(s->g, i)->tapes & tape)
            return ty_interp_output(it, i);
    fail_msg("no output %s", name);
    return NULL;
}

static void expect_line(FILE *f, const char *name, const ty_ref *got)
{
    char found[80];
    double v[MAX_NUMBERS];
    int n;
    assert_true(read_line(f, found, v, &n));
    assert_string_equal(found, name);
    assert_int_equal(n, ty_type_elems(&got->type));
    for (int i = 0; i < n; i++)
        if (!(fabs(got->f[i] - v[i]) <= 2e-5 * (1 + fabs(v[i]))))
            fail_msg("%s[%d] is %g, expected %g", name, i, got->f[i], v[i]);
}

static void expect_variables(FILE *f, const ty_step *s, ty_interp *it)
{
    char name[80];
    double v[MAX_NUMBERS];
    int n, n_bad = 0;
    for (int count = 0; read_line(f, name, v, &n) || (assert_true(count > 50), false); count++) {
        int w = 0;
        while (w < s->n_weights && strcmp(s->weights[w].name, name) != 0)
            w++;
        assert_true(w < s->n_weights);
        const ty_ref *state = ty_interp_state(it, s->weights[w].state);
        for (int i = 0; i < n; i++) {
            double got = ty_dtype_is_float((ty_dtype)state->type.dtype) ? state->f[i] : (double)state->i[i];
            if (fabs(got - v[i]) <= 5e-5 * (1 + fabs(v[i])))
                continue;
            print_error("%s[%d] is %g, expected %g\n", name, i, got, v[i]);
            n_bad++;
            break;
        }
    }
    assert_int_equal(n_bad, 0);
}

static void open_model(const char *train, ty_model **m)
{
    ty_error err = {0};
    const ty_model_choice choice = {.signature = "forward", .train_signature = train};
    check(ty_model_open_as(FOLDER "step", NULL, &choice, m, &err), &err);
    assert_int_equal(ty_model_trains_itself(*m), train != NULL);
}

static void test_own_step(void **state)
{
    ty_error err = {0};
    ty_model *m;
    ty_step s;
    ty_interp *it;
    (void)state;
    open_model("train", &m);
    ty_train_spec spec = own_spec(inputs, &loss);
    check(ty_step_build(m, &spec, &s, &err), &err);
    check(ty_graph_verify(s.g, &err), &err);
    check(ty_interp_new(s.g, &it, &err), &err);
    FILE *f = fopen(FOLDER "step.txt", "r");
    assert_non_null(f);
    for (int step = 0; step < STEPS; step++) {
        batch b;
        read_batch(f, &b);
        const void *in[] = {b.ids, b.x, b.y};
        check(ty_interp_run(it, TY_TAPE_EVAL, in, true, &err), &err);
        expect_line(f, "forward", output(&s, it, "output_0", TY_TAPE_EVAL));
        check(ty_interp_run(it, TY_TAPE_LAST, in, true, &err), &err);
        expect_line(f, "loss", output(&s, it, "loss", TY_TAPE_LAST));
    }
    expect_variables(f, &s, it);
    fclose(f);
    ty_interp_free(it);
    ty_step_fini(&s);
    ty_model_free(m);
}

/* The forward signature is written for inference; its statistics move where it is trained. */
static void test_forward_is_trained(void **state)
{
    ty_error err = {0};
    ty_model *m;
    ty_step s;
    ty_interp *it;
    batch b;
    (void)state;
    open_model(NULL, &m);
    ty_train_spec spec = own_spec(inputs, &loss);
    check(ty_step_build(m, &spec, &s, &err), &err);
    check(ty_interp_new(s.g, &it, &err), &err);
    FILE *f = fopen(FOLDER "step.txt", "r");
    assert_non_null(f);
    read_batch(f, &b);
    const void *in[] = {b.ids, b.x, b.y};
    check(ty_interp_run(it, TY_TAPE_EVAL, in, true, &err), &err);
    expect_line(f, "forward", output(&s, it, "output_0", TY_TAPE_EVAL));
    check(ty_interp_run(it, TY_TAPE_LAST, in, true, &err), &err);
    expect_line(f, "loss", output(&s, it, "loss", TY_TAPE_LAST)); /* by the batch's statistics */
    fclose(f);
    ty_interp_free(it);
    ty_step_fini(&s);
    ty_model_free(m);
}

static void test_refused(void **state)
{
    ty_error err = {0};
    ty_model *m;
    ty_step s;
    (void)state;
    open_model("train", &m);
    ty_train_spec spec = own_spec(inputs, &loss);
    spec.accumulate = 2;
    assert_int_equal(ty_step_build(m, &spec, &s, &err), -1);
    assert_non_null(strstr(err.message, "accumulate"));
    ty_model_free(m);
    const ty_model_choice choice = {.signature = "forward"};
    assert_int_equal(ty_model_open_as("examples/digits/model.onnx", NULL, &choice, &m, &err), -1);
    assert_non_null(strstr(err.message, "signature"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_step),
        cmocka_unit_test(test_forward_is_trained),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
