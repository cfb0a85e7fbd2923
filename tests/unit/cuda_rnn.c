/* cuda_rnn.c - recurrent steps on a GPU, with weights of 32 and 16 bits: their numbers and those of their gradient
 * against the interpreter's. Without a GPU, or a library that stands in for its driver (tests/cuda_run.sh), there is
 * nothing to run on. */
#include "base/rng.h"
#include "compiler/ir/build.h"
#include "compiler/ops/recurrence.h"
#include "compiler/program.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/rnn_layers.h"

/* Units are no multiple of a warp, gates none of what a block takes at a time. */
enum { STEPS = 5, BATCH = 3, UNITS = 70, MAX_INPUTS = 6 };

typedef struct rnn_case {
    const rnn_layer *of;
    uint32_t backward;
    ty_dtype weight;
    bool grad;
} rnn_case;

static ty_val input(ty_graph *g, const char *name, int rank, const int64_t *dim)
{
    return ty_b_input(g, ty_graph_add_input(g, name, ty_type_make(TY_F32, rank, dim)));
}

#define DIMS(...)                                                                \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) \
    {                                                                            \
        __VA_ARGS__                                                              \
    }

/* Results that say nothing of the kind of layer have no output. */
static void outputs(ty_graph *g, const rnn_case *c, ty_val first)
{
    static const char *const names[2][4] = {{"states", "gates", "kept"}, {"dpre", "drec", "dh0", "dc0"}};
    for (uint32_t k = 0; k < (c->grad ? 4 : 3); k++) {
        bool cell = !c->grad && k == TY_STEPS_KEPT && c->of->gates == TY_RNN_VANILLA;
        if (!cell && !(c->grad && k == TY_RGRAD_DC0 && c->of->gates != TY_RNN_LSTM))
            ty_graph_add_output(g, names[c->grad][k], ty_val_make(ty_val_node(first), k), TY_TAPE_EVAL);
    }
}

static ty_graph *make(const rnn_case *c)
{
    ty_graph *g = ty_graph_new();
    int64_t wide = c->of->gates * UNITS, bias = wide + (c->of->flags & TY_RNN_RESET_AFTER ? UNITS : 0);
    bool lstm = c->of->gates == TY_RNN_LSTM;
    ty_attr attr = layer_attr(c->of, c->backward);
    ty_val r = ty_b_cast(g, input(g, "r", DIMS(wide, UNITS)), c->weight);
    ty_val in[MAX_INPUTS];
    int n = 0;
    if (c->grad) {
        in[n++] = input(g, "dy", DIMS(STEPS, BATCH, UNITS));
        in[n++] = r;
        in[n++] = input(g, "states", DIMS(STEPS + 1, BATCH, UNITS));
        in[n++] = input(g, "gates", DIMS(STEPS, BATCH, wide));
        in[n++] = input(g, "kept", DIMS(STEPS + lstm, BATCH, UNITS));
        n = c->of->gates == TY_RNN_VANILLA ? 3 : n;
    } else {
        in[n++] = input(g, "xw", DIMS(STEPS, BATCH, wide));
        in[n++] = r;
        in[n++] = input(g, "bias", DIMS(bias));
        in[n++] = input(g, "h", DIMS(BATCH, UNITS));
    }
    if (lstm)
        in[n++] = input(g, "c", DIMS(BATCH, UNITS));
    outputs(g, c, ty_graph_emit(g, c->grad ? TY_OP_RNN_GRAD : TY_OP_RNN_STEPS, &attr, in, n));
    return g;
}

/* Weights are so small that errors do not grow from step to step. */
static void noise(const ty_graph *g, void **in)
{
    for (int i = 0; i < ty_graph_n_inputs(g); i++) {
        int64_t n = ty_type_elems(&ty_graph_input(g, i)->type);
        float *x = in[i] = malloc(sizeof *x * (size_t)n);
        assert_non_null(x);
        for (int64_t k = 0; k < n; k++)
            x[k] = (2 * ty_rng_uniform(ty_rng_u32(3, (uint32_t)i, 0, (uint64_t)k)) - 1) / (i == 0 ? 8.0f : 1.0f);
    }
}

static void expect_close(const rnn_case *c, const char *name, const ty_tensor *found, const ty_tensor *expected)
{
    double worst, apart = layer_share_apart(found->data, expected->data, ty_type_elems(&found->type), 2e-5, &worst);
    bool rounds = c->weight != TY_F32;
    if (!(worst <= (rounds ? 1e-2 : 2e-5)) || apart > 0.3)
        fail_msg("%s with weights of %s, \"%s\": off by %.2g at most, %.0f %% by more than 2e-5", c->of->name,
                 ty_dtype_text(c->weight), name, worst, 100 * apart);
}

static ty_program *compile(const rnn_case *c, ty_backend backend, ty_error *err)
{
    ty_program *p = NULL;
    ty_compile_options opt = {.threads = 2, .backend = backend};
    ty_program_of_graph(make(c), TY_TAPE_EVAL, &opt, &p, err);
    return p;
}

static void judge(const rnn_case *c)
{
    ty_error err = {0};
    ty_graph *g = make(c);
    void *in[MAX_INPUTS];
    ty_program *p = compile(c, TY_BACKEND_CUDA, &err), *q = compile(c, TY_BACKEND_INTERPRETER, &err);
    if (!p || !q)
        fail_msg("%s: %s", c->of->name, err.message);
    noise(g, in);
    assert_int_equal(ty_program_run(p, TY_RUN_EVAL, (const void *const *)in, &err), 0);
    assert_int_equal(ty_program_run(q, TY_RUN_EVAL, (const void *const *)in, &err), 0);
    for (int k = 0; k < ty_graph_n_outputs(g); k++) {
        const char *name = ty_graph_output(g, k)->name;
        expect_close(c, name, ty_program_output(p, TY_RUN_EVAL, name), ty_program_output(q, TY_RUN_EVAL, name));
    }
    for (int k = 0; k < ty_graph_n_inputs(g); k++)
        free(in[k]);
    ty_program_free(p);
    ty_program_free(q);
    ty_graph_free(g);
}

static bool has_gpu(void)
{
    ty_error err = {0};
    ty_program *p = compile(&(rnn_case){&layers[0], 0, TY_F32, false}, TY_BACKEND_CUDA, &err);
    if (!p)
        printf("skip: %s\n", err.message);
    ty_program_free(p);
    return p || err.code != TY_E_NOT_FOUND;
}

static void numbers(void **state)
{
    static const ty_dtype weights[] = {TY_F32, TY_BF16, TY_F16};
    (void)state;
    if (!has_gpu())
        skip();
    for (int k = 0; k < N_LAYERS; k++)
        for (size_t w = 0; w < sizeof weights / sizeof *weights; w++)
            for (int grad = 0; grad < 2; grad++)
                judge(&(rnn_case){&layers[k], k % 2 ? TY_RNN_BACKWARD : 0, weights[w], grad});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers)};
    return cmocka_run_group_tests_name("cuda_rnn", tests, NULL, NULL);
}
