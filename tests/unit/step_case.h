/* step_case.h - a small model, its training spec and a batch, and how a step's results are looked at. Include first. */
#ifndef TY_TESTS_UNIT_STEP_CASE_H
#define TY_TESTS_UNIT_STEP_CASE_H

#include "tests/unit/onnx_model.h"

#include "base/file.h"
#include "compiler/passes/step.h"

#include <math.h>
#include <unistd.h>

#define BATCH 4

static char model_path[64];

static inline int make_path(void **state)
{
    (void)state;
    snprintf(model_path, sizeof model_path, "/tmp/ty-unit-step-%d.onnx", (int)getpid());
    return 0;
}

static inline int remove_path(void **state)
{
    (void)state;
    unlink(model_path);
    return 0;
}

static inline ty_model *open_text(model_text *t)
{
    ty_error err = {0};
    ty_model *m;
    model_end(t);
    if (ty_file_write(model_path, t->file.data, t->file.len, 0600, &err) < 0 || ty_model_open(model_path, &m, &err) < 0)
        fail_msg("%s", err.message);
    ty_buf_fini(&t->file);
    return m;
}

static inline const float *numbers(int n, float start)
{
    static float v[4][64];
    static int turn;
    float *out = v[turn++ % 4];
    for (int i = 0; i < n; i++)
        out[i] = start + 0.125f * (float)((i * 7) % 11 - 5);
    return out;
}

/* x [N, 4] -> MatMul w1 [4, 8] + b1 [8] -> Relu -> MatMul w2 [8, 3] + b2 [3] = y; "idle" is read by nothing. */
static inline ty_model *two_layers(void)
{
    model_text t;
    model_begin(&t, 18);
    model_input(&t, "x", 1, SHAPE(-1, 4));
    model_floats(&t, "w1", SHAPE(4, 8), numbers(32, 0.1f));
    model_floats(&t, "b1", SHAPE(8), numbers(8, 0));
    model_floats(&t, "w2", SHAPE(8, 3), numbers(24, -0.05f));
    model_floats(&t, "b2", SHAPE(3), numbers(3, 0));
    model_floats(&t, "idle", SHAPE(16), numbers(16, 1));
    model_node(&t, "MatMul", "x,w1", "h0", "first");
    model_node(&t, "Add", "h0,b1", "h1", "");
    model_node(&t, "Relu", "h1", "h2", "");
    model_node(&t, "MatMul", "h2,w2", "h3", "second");
    model_node(&t, "Add", "h3,b2", "y", "");
    model_output(&t, "y", 1);
    return open_text(&t);
}

/* A spec for models with one input x and class labels t. */
typedef struct plan {
    ty_train_spec spec;
    ty_binding input[3];
    ty_loss_term term[2];
} plan;

static inline plan *plan_of(plan *p)
{
    *p = (plan){.input = {{"x", ty_type_make(TY_F32, SHAPE(BATCH, 4))}, {"t", ty_type_make(TY_I64, SHAPE(BATCH))}},
                .term = {{.kind = TY_LOSS_SOFTMAX_CROSS_ENTROPY,
                          .output = "y",
                          .target = "t",
                          .weight = 1,
                          .ignore_index = -100,
                          .class_axis = -1}}};
    p->spec = (ty_train_spec){.inputs = p->input,
                              .n_inputs = 2,
                              .loss = p->term,
                              .n_loss = 1,
                              .optimizer = {.kind = TY_OPT_SGD, .lr = 0.5},
                              .schedule = {.kind = TY_SCHED_CONSTANT},
                              .accumulate = 1,
                              .batch_norm_statistics = true};
    return p;
}

static inline ty_step build(const ty_model *m, const plan *p)
{
    ty_error err = {0};
    ty_step s;
    if (ty_step_build(m, &p->spec, &s, &err) < 0)
        fail_msg("%s", err.message);
    if (ty_graph_verify(s.g, &err) < 0)
        fail_msg("%s", err.message);
    return s;
}

static inline int state_named(const ty_step *s, const char *name)
{
    for (int i = 0; i < ty_graph_n_states(s->g); i++)
        if (strcmp(ty_graph_state(s->g, i)->name, name) == 0)
            return i;
    return -1;
}

static inline const ty_step_weight *weight_named(const ty_step *s, const char *name)
{
    for (int i = 0; i < s->n_weights; i++)
        if (strcmp(s->weights[i].name, name) == 0)
            return &s->weights[i];
    fail_msg("no weight %s", name);
    return NULL;
}

static inline ty_interp *interpret(const ty_step *s)
{
    ty_error err = {0};
    ty_interp *it;
    if (ty_interp_new(s->g, &it, &err) < 0)
        fail_msg("%s", err.message);
    return it;
}

static inline void run_tape(ty_interp *it, ty_tape tape, const float *x, const int64_t *t, const int64_t *valid)
{
    ty_error err = {0};
    const void *inputs[] = {x, t, valid};
    if (ty_interp_run(it, tape, inputs, false, &err) < 0)
        fail_msg("%s", err.message);
}

static inline double output_of(const ty_step *s, const ty_interp *it, const char *name, ty_tape tape)
{
    for (int i = 0; i < ty_graph_n_outputs(s->g); i++)
        if (strcmp(ty_graph_output(s->g, i)->name, name) == 0 && (ty_graph_output(s->g, i)->tapes & (uint32_t)tape))
            return ty_interp_output(it, i)->f[0];
    fail_msg("no output %s", name);
    return 0;
}

static inline void expect_near(const char *what, double got, double want)
{
    if (!(fabs(got - want) <= 1e-6 * fmax(1, fabs(want))))
        fail_msg("%s: expected %.9g, found %.9g", what, want, got);
}

static const float batch_x[] = {1, 2, 0, -1, 0.5f, 0.25f, 3, 1, -2, 1, 1, 0, 0, 0, 1, 4};
static const int64_t batch_t[] = {0, 2, 1, 2};

static inline void expect_segments(const ty_step *s, const char *state, const char *names)
{
    char found[200] = "";
    int i = state_named(s, state);
    if (i < 0)
        fail_msg("no state %s", state);
    const ty_state *st = ty_graph_state(s->g, i);
    for (int k = 0; k < st->n_segments; k++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s@%d", k ? " " : "", st->segments[k].name,
                 (int)st->segments[k].offset);
    assert_string_equal(found, names);
}

#endif
