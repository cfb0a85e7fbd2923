/* Recurrent layers in TensorFlow's files, as Keras 2 and Keras 3 write them (tests/tensorflow/golden_recurrent.py): the
 * loops of their forward signature are layers and give TensorFlow's numbers and, trained by us, its losses; behind a
 * mask they are unrolled; and so are those of a training step of the file's own, gradients and all. */
#include "compiler/compiler.h"
#include "compiler/ir/interpret.h"
#include "compiler/ops/ref.h"
#include "compiler/passes/step.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { STEPS = 3, BATCH = 6, TIMES = 5, SIZE = 3, OUT = 2 };

typedef struct golden {
    float x[BATCH * TIMES * SIZE], y[BATCH * OUT];
    float output[BATCH * OUT], loss[STEPS];
} golden;

static char folder[] = "/tmp/ty-recurrent.XXXXXX";

static void check(int rc, const ty_error *err)
{
    char text[2000];
    if (rc == 0)
        return;
    ty_error_format(err, text, sizeof text);
    fail_msg("%s", text);
}

static int unpack(void **state)
{
    char command[200];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command, "tar -xJf tests/golden/tensorflow/recurrent.tar.xz -C %s", folder);
    return system(command);
}

static int remove_all(void **state)
{
    char command[200];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void read_line(FILE *f, const char *name, float *v, int n)
{
    char found[80];
    int count;
    assert_int_equal(fscanf(f, "%79s %d", found, &count), 2);
    assert_string_equal(found, name);
    assert_int_equal(count, n);
    for (int i = 0; i < n; i++)
        assert_int_equal(fscanf(f, "%f", &v[i]), 1);
}

static void read_golden(const char *name, golden *d)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s.txt", folder, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    read_line(f, "x", d->x, BATCH * TIMES * SIZE);
    read_line(f, "y", d->y, BATCH * OUT);
    read_line(f, "output", d->output, BATCH * OUT);
    for (int i = 0; i < STEPS; i++)
        read_line(f, "loss", &d->loss[i], 1);
    fclose(f);
}

static const ty_ref *output(const ty_step *s, const ty_interp *it, const char *name, uint32_t tape)
{
    for (int i = 0; i < ty_graph_n_outputs(s->g); i++)
        if (strcmp(ty_graph_output(s->g, i)->name, name) == 0 && ty_graph_output(s->g, i)->tapes & tape)
            return ty_interp_output(it, i);
    fail_msg("no output %s", name);
    return NULL;
}

static void expect(const char *what, const ty_ref *got, const float *want, int n)
{
    assert_int_equal(ty_type_elems(&got->type), n);
    for (int i = 0; i < n; i++)
        if (!(fabs(got->f[i] - (double)want[i]) <= 1e-5 * (1 + fabs((double)want[i]))))
            fail_msg("%s[%d] is %.7g, expected %.7g", what, i, got->f[i], (double)want[i]);
}

static int layers_of(const ty_graph *g, uint32_t tapes)
{
    uint8_t *live = calloc(ty_graph_n_nodes(g), 1);
    int n = 0;
    assert_non_null(live);
    ty_graph_mark_live(g, tapes, live);
    for (uint32_t i = 0; i < ty_graph_n_nodes(g); i++)
        n += live[i] && ty_graph_op(g, i) == TY_OP_RNN;
    free(live);
    return n;
}

/* By our SGD, which is what the file's own step does, or by that step. */
static void run(const char *name, bool own, bool whole)
{
    static const ty_binding inputs[] = {{"x", {.dtype = TY_F32, .rank = 3, .dim = {BATCH, TIMES, SIZE}}},
                                        {"y", {.dtype = TY_F32, .rank = 2, .dim = {BATCH, OUT}}}};
    static const ty_loss_term loss = {.kind = TY_LOSS_MSE, .output = "output", .target = "y", .weight = 1};
    const ty_model_choice choice = {.signature = "forward", .train_signature = own ? "train" : NULL};
    ty_train_spec spec = {.inputs = inputs, .n_inputs = 2, .loss = &loss, .n_loss = 1, .accumulate = 1};
    char path[200];
    ty_error err = {0};
    golden d;
    ty_model *m;
    ty_step s;
    ty_interp *it;
    spec.optimizer = (ty_optimizer){.kind = TY_OPT_SGD, .lr = 0.1};
    read_golden(name, &d);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    check(ty_model_open_as(path, NULL, &choice, &m, &err), &err);
    check(ty_step_build(m, &spec, &s, &err), &err);
    assert_int_equal(layers_of(s.g, TY_TAPE_EVAL), whole ? 3 : 0);
    assert_int_equal(layers_of(s.g, TY_TAPE_LAST), whole && !own ? 3 : 0);
    check(ty_interp_new(s.g, &it, &err), &err);
    const void *in[] = {d.x, d.y};
    check(ty_interp_run(it, TY_TAPE_EVAL, in, true, &err), &err);
    expect("output", output(&s, it, "output", TY_TAPE_EVAL), d.output, BATCH * OUT);
    for (int i = 0; i < STEPS; i++) {
        check(ty_interp_run(it, TY_TAPE_LAST, in, true, &err), &err);
        expect("loss", output(&s, it, "loss", TY_TAPE_LAST), &d.loss[i], 1);
    }
    ty_interp_free(it);
    ty_step_fini(&s);
    ty_model_free(m);
}

static void test_layers(void **state)
{
    (void)state;
    run("keras3", false, true);
    run("keras2", false, true);
}

static void test_masked(void **state)
{
    (void)state;
    run("masked", false, false);
}

static void test_own_steps(void **state)
{
    (void)state;
    run("keras3", true, true);
    run("keras2", true, true);
    run("masked", true, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_masked),
        cmocka_unit_test(test_own_steps),
    };
    return cmocka_run_group_tests(tests, unpack, remove_all);
}
