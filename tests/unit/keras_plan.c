/* keras_plan.c - benchmarked workloads as Keras has them (bench/peers/keras_works.py), data with channels last, and one
 * as a SavedModel of TensorFlow, against the same from ONNX: the same library calls, of the same work, and no more
 * kernels than weights must be turned. */
#include "base/arena.h"
#include "compiler/compiler.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <unistd.h>

static char folder[] = "/tmp/keras_plan.XXXXXX";

/* A workload: the loss of y [batch], or [batch, steps] where `steps` is not 0. */
typedef struct workload {
    const char *name;
    long weight_bytes; /* or more */
    int64_t batch, steps;
    ty_loss_kind loss;
    bool saved; /* compare a SavedModel instead of Keras' file */
} workload;

static ty_model *open_packed(const workload *w, bool is_onnx)
{
    char command[512], path[256];
    ty_model *m;
    ty_error err = {0};
    if (!is_onnx && w->saved) {
        snprintf(path, sizeof path, "%s/%s", folder, w->name);
        snprintf(command, sizeof command, "tar -xJf tests/golden/keras/%s.work.tar.xz -C %s", w->name, folder);
    } else {
        const char *model = is_onnx ? "model.onnx" : "model.json";
        snprintf(path, sizeof path, "%s/%s", folder, model);
        snprintf(command, sizeof command, "gzip -dc tests/golden/%s/%s.%s.gz >%s && truncate -s %ld %s/weights.bin",
                 is_onnx ? "works" : "keras", w->name, is_onnx ? "onnx" : "work.json", path, w->weight_bytes, folder);
    }
    assert_int_equal(system(command), 0);
    if (ty_model_open(path, &m, &err) < 0)
        fail_msg("%s\n%s", err.message, err.help);
    return m;
}

static ty_program *planned(const ty_model *m, const workload *w, ty_backend backend)
{
    ty_error err = {0};
    ty_program *p;
    ty_binding input[3];
    int n = ty_model_n_inputs(m);
    assert_in_range(n, 1, 2);
    for (int i = 0; i < n; i++) {
        const ty_model_value *in = ty_model_input(m, i);
        input[i] = (ty_binding){in->name, ty_type_make(in->dtype, in->rank, in->dim)};
        input[i].type.dim[0] = w->batch;
    }
    input[n] = (ty_binding){"y", ty_type_make(w->loss == TY_LOSS_BCE_LOGITS ? TY_F32 : TY_I64, w->steps ? 2 : 1,
                                              (int64_t[]){w->batch, w->steps})};
    ty_loss_term loss = {.kind = w->loss,
                         .output = ty_model_output(m, 0)->name,
                         .target = "y",
                         .weight = 1,
                         .pos_weight = 1,
                         .ignore_index = -100,
                         .class_axis = -1};
    ty_train_spec spec = {.inputs = input,
                          .n_inputs = n + 1,
                          .loss = &loss,
                          .n_loss = 1,
                          .optimizer = {.kind = TY_OPT_SGD, .lr = 0.01, .momentum = 0.9},
                          .schedule = {.kind = TY_SCHED_CONSTANT},
                          .accumulate = 1,
                          .seed = 1,
                          .batch_norm_statistics = true,
                          .no_eval = true,
                          .precision = backend == TY_BACKEND_CUDA ? TY_PRECISION_BFLOAT16 : TY_PRECISION_FLOAT32};
    ty_compile_options opt = {.backend = backend, .threads = 2, .plan_only = true};
    if (ty_compile_train(m, &spec, &opt, &p, &err) < 0)
        fail_msg("%s\n%s", err.message, err.help);
    return p;
}

typedef struct totals {
    int calls[TY_N_WORKS]; /* by what they do */
    double flop[TY_N_WORKS], bytes, largest_copy;
    int64_t slab;
} totals;

static totals totals_of(const ty_program *p)
{
    ty_arena arena;
    ty_tape_facts facts;
    ty_error err = {0};
    totals t = {0};
    ty_arena_init(&arena);
    if (ty_program_describe(p, TY_RUN_LAST, &arena, &facts, &err) < 0)
        fail_msg("%s", err.message);
    for (int i = 0; i < facts.n_units; i++) {
        const ty_unit_facts *u = &facts.unit[i];
        t.calls[u->work]++;
        t.flop[u->work] += u->flop;
        t.bytes += (double)(u->read_bytes + u->written_bytes);
        if (getenv("KERAS_PLAN_SHOW"))
            printf("%-14s %-40s %.3e %9zu %s\n", ty_work_text(u->work), u->origin, u->flop,
                   u->read_bytes + u->written_bytes, u->text);
    }
    t.slab = facts.slab_bytes;
    ty_arena_fini(&arena);
    return t;
}

/* turned: kernels that turn a weight for its convolutions or a gradient back; slack: of memory moved, for those. */
static void same_plan(const workload *w, ty_backend backend, int turned, double slack)
{
    totals t[2];
    for (int i = 0; i < 2; i++) {
        ty_model *m = open_packed(w, i == 0);
        ty_program *p = planned(m, w, backend);
        t[i] = totals_of(p);
        ty_program_free(p);
        ty_model_free(m);
    }
    static const ty_work library[] = {TY_WORK_PRODUCT, TY_WORK_CONVOLUTION, TY_WORK_POOLING, TY_WORK_RECURRENT};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(t[0].calls[library[i]], t[1].calls[library[i]]);
        assert_true(fabs(t[0].flop[library[i]] - t[1].flop[library[i]]) <= 1e-9 * t[0].flop[library[i]]);
    }
    int kernels[2] = {0};
    for (int i = 0; i < 2; i++)
        kernels[i] = t[i].calls[TY_WORK_ELEMENTWISE] + t[i].calls[TY_WORK_REDUCTION] + t[i].calls[TY_WORK_COPY] +
                     t[i].calls[TY_WORK_OPTIMIZER];
    print_message("%s: %d and %d kernels, %.1f and %.1f MB moved, slab %.1f and %.1f MB\n", w->name, kernels[0],
                  kernels[1], t[0].bytes / 1e6, t[1].bytes / 1e6, (double)t[0].slab / 1e6, (double)t[1].slab / 1e6);
    if (kernels[1] > kernels[0] + turned)
        fail_msg("%d kernels of ONNX, %d of the other, where %d may turn weights", kernels[0], kernels[1], turned);
    if (t[1].bytes > t[0].bytes * (1 + slack))
        fail_msg("%.0f bytes moved of ONNX, %.0f of the other", t[0].bytes, t[1].bytes);
}

static void mlp(void **state)
{
    const workload w = {"mlp", 2678784, 128, 0, TY_LOSS_SOFTMAX_CROSS_ENTROPY, false};
    (void)state;
    same_plan(&w, TY_BACKEND_CPU, 0, 0.001);
    same_plan(&w, TY_BACKEND_CUDA, 0, 0.001);
}

static void cnn(void **state)
{
    const workload w = {"cnn", 4799488, 64, 0, TY_LOSS_SOFTMAX_CROSS_ENTROPY, false};
    (void)state;
    same_plan(&w, TY_BACKEND_CPU, 4, 0.001);
    same_plan(&w, TY_BACKEND_CUDA, 4, 0.001);
}

static void resnet50(void **state)
{
    const workload w = {"resnet50", 102440640, 8, 0, TY_LOSS_SOFTMAX_CROSS_ENTROPY, false};
    (void)state;
    same_plan(&w, TY_BACKEND_CPU, 70, 0.05);
    same_plan(&w, TY_BACKEND_CUDA, 70, 0.05);
}

/* The recurrent kernels, [in, gates] in the file, are turned once a step; the gradient of as many numbers as there are
 * then is squared in a kernel of its own. */
static void lstm(void **state)
{
    const workload w = {"lstm", 3800000, 32, 64, TY_LOSS_SOFTMAX_CROSS_ENTROPY, false};
    (void)state;
    same_plan(&w, TY_BACKEND_CPU, 0, 0.04);
    same_plan(&w, TY_BACKEND_CUDA, 0, 0.04);
}

static void chargpt(void **state)
{
    const workload w = {"chargpt", 44000000, 8, 256, TY_LOSS_SOFTMAX_CROSS_ENTROPY, false};
    (void)state;
    same_plan(&w, TY_BACKEND_CPU, 0, 0.001);
    same_plan(&w, TY_BACKEND_CUDA, 0, 0.001);
}

/* One bias fewer: on a GPU, the gradient of as many numbers as are left is squared in a kernel of its own. */
static void deepfm(void **state)
{
    const workload w = {"deepfm", 17000000, 1024, 0, TY_LOSS_BCE_LOGITS, false};
    (void)state;
    same_plan(&w, TY_BACKEND_CPU, 0, 0.001);
    same_plan(&w, TY_BACKEND_CUDA, 1, 0.13);
}

static void saved_cnn(void **state)
{
    const workload w = {"cnn", 4799488, 64, 0, TY_LOSS_SOFTMAX_CROSS_ENTROPY, true};
    (void)state;
    same_plan(&w, TY_BACKEND_CPU, 4, 0.001);
    same_plan(&w, TY_BACKEND_CUDA, 4, 0.001);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mlp),     cmocka_unit_test(cnn),    cmocka_unit_test(resnet50), cmocka_unit_test(lstm),
        cmocka_unit_test(chargpt), cmocka_unit_test(deepfm), cmocka_unit_test(saved_cnn)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
