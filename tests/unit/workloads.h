/* workloads.h - small networks of the kinds people train, with batches to train them on: an MLP, a convolutional
 * network with batch norm, a GPT (embedding, layer norm, attention), an LSTM.
 *
 *     for (int i = 0; i < N_WORKLOADS; i++) {
 *         ty_model *m = workload_open(&workloads[i]);
 *         workload_spec s;  workload_specify(&workloads[i], 32, 1, &s);
 *         ty_program *p = workload_compile(m, &s, threads, strict);
 *         workload_step(p, TY_RUN_LAST, &s, first_row);
 */
#ifndef TY_TESTS_UNIT_WORKLOADS_H
#define TY_TESTS_UNIT_WORKLOADS_H

#include "tests/unit/onnx_model.h"

#include "base/file.h"
#include "base/rng.h"
#include "compiler/compiler.h"

#include <unistd.h>

typedef struct workload {
    const char *name;
    ty_model *(*open)(void);
    const char *input;
    ty_dtype dtype;
    int rank, target_rank; /* of a sample */
    int64_t dim[3];        /* of a sample; the target's, if it has any, are the first ones */
    int64_t below;         /* integer inputs: values are less than this */
    int64_t classes;
    bool has_batch_norm;
} workload;

typedef struct workload_spec {
    const workload *w;
    int64_t batch;
    ty_binding input[2];
    ty_loss_term loss;
    ty_train_spec spec;
} workload_spec;

/* ---- models ---- */

static inline ty_model *workload_file(const char *name, const void *bytes, size_t n)
{
    char path[96];
    ty_model *m = NULL;
    ty_error err = {0};
    snprintf(path, sizeof path, "/tmp/ty-unit-workload-%d-%s", (int)getpid(), name);
    if (ty_file_write(path, bytes, n, 0600, &err) < 0 || ty_model_open(path, &m, &err) < 0)
        fail_msg("%s: %s\n%s", name, err.message, err.detail);
    unlink(path);
    return m;
}

static inline ty_model *workload_c(const char *text)
{
    return workload_file("model.c", text, strlen(text));
}

static inline ty_model *workload_mlp(void)
{
    return workload_c("#include <trainyard/model.h>\n"
                      "void model(ty_net *net)\n"
                      "{\n"
                      "    ty_var x = ty_input(net, \"x\", \"f32[batch,48]\");\n"
                      "    x = ty_relu(net, ty_linear(net, \"a\", x, 96));\n"
                      "    x = ty_gelu(net, ty_linear(net, \"b\", x, 40));\n"
                      "    ty_output(net, \"y\", ty_linear(net, \"c\", x, 10));\n"
                      "}\n");
}

static inline ty_model *workload_cnn(void)
{
    return workload_c("#include <trainyard/model.h>\n"
                      "void model(ty_net *net)\n"
                      "{\n"
                      "    ty_var x = ty_input(net, \"x\", \"f32[batch,2,9,9]\");\n"
                      "    x = ty_conv(net, \"a\", x, 12, 3, .padding = 1, .no_bias = true);\n"
                      "    x = ty_max_pool(net, ty_relu(net, ty_batch_norm(net, \"n\", x)), 2);\n"
                      "    x = ty_relu(net, ty_conv(net, \"b\", x, 17, 3, .stride = 2));\n"
                      "    ty_output(net, \"y\", ty_linear(net, \"c\", ty_flatten(net, x, 1), 10));\n"
                      "}\n");
}

static inline ty_model *workload_gpt(void)
{
    return workload_c("#include <trainyard/model.h>\n"
                      "static ty_var block(ty_net *net, ty_var x)\n"
                      "{\n"
                      "    ty_var y = ty_layer_norm(net, \"n1\", x);\n"
                      "    x = ty_add(net, x, ty_multi_head_attention(net, \"attention\", y, 4, .causal = true));\n"
                      "    y = ty_gelu(net, ty_linear(net, \"up\", ty_layer_norm(net, \"n2\", x), 64));\n"
                      "    return ty_add(net, x, ty_linear(net, \"down\", y, 32));\n"
                      "}\n"
                      "void model(ty_net *net)\n"
                      "{\n"
                      "    ty_var ids = ty_input(net, \"x\", \"i64[batch,20]\");\n"
                      "    ty_var x = ty_embedding(net, \"token\", ids, 31, 32);\n"
                      "    x = ty_add(net, x, ty_parameter(net, \"place\", ty_dims(20, 32), ty_normal(0, 0.02)));\n"
                      "    for (int i = 0; i < 2; i++) {\n"
                      "        ty_scope(net, ty_text(net, \"layers.%d\", i));\n"
                      "        x = block(net, x);\n"
                      "        ty_end(net);\n"
                      "    }\n"
                      "    ty_output(net, \"y\", ty_linear(net, \"head\", ty_layer_norm(net, \"n\", x), 31));\n"
                      "}\n");
}

enum { LSTM_IN = 12, LSTM_SIZE = 20, LSTM_CLASSES = 10 };

static inline const float *workload_numbers(int64_t n, uint32_t stream)
{
    static float v[4 * LSTM_SIZE * (LSTM_SIZE + LSTM_IN)];
    assert_true(n <= (int64_t)(sizeof v / sizeof *v));
    for (int64_t i = 0; i < n; i++)
        v[i] = (ty_rng_uniform(ty_rng_u32(5, stream, 0, (uint64_t)i)) - 0.5f) * 0.5f;
    return v;
}

static inline ty_model *workload_lstm(void)
{
    model_text m;
    model_begin(&m, 14);
    model_input(&m, "x", 1, SHAPE(-1, 6, LSTM_IN));
    model_floats(&m, "w", SHAPE(1, 4 * LSTM_SIZE, LSTM_IN), workload_numbers(4 * LSTM_SIZE * LSTM_IN, 0));
    model_floats(&m, "r", SHAPE(1, 4 * LSTM_SIZE, LSTM_SIZE), workload_numbers(4 * LSTM_SIZE * LSTM_SIZE, 1));
    model_floats(&m, "b", SHAPE(1, 8 * LSTM_SIZE), workload_numbers(8 * LSTM_SIZE, 2));
    model_floats(&m, "out", SHAPE(LSTM_SIZE, LSTM_CLASSES), workload_numbers(LSTM_SIZE * LSTM_CLASSES, 3));
    model_ints(&m, "first", 1, (const int64_t[]){0});
    attr_ints(&m, "perm", 3, (const int64_t[]){1, 0, 2});
    model_node(&m, "Transpose", "x", "steps", "");
    attr_int(&m, "hidden_size", LSTM_SIZE);
    model_node(&m, "LSTM", "steps,w,r,b", "all,last", "lstm");
    model_node(&m, "Squeeze", "last,first", "state", "");
    model_node(&m, "MatMul", "state,out", "y", "");
    model_output(&m, "y", 1);
    model_end(&m);
    ty_model *model = workload_file("lstm.onnx", m.file.data, m.file.len);
    ty_buf_fini(&m.file);
    return model;
}

static const workload workloads[] = {
    {"mlp", workload_mlp, "x", TY_F32, 1, 0, {48}, 0, 10, false},
    {"cnn", workload_cnn, "x", TY_F32, 3, 0, {2, 9, 9}, 0, 10, true},
    {"gpt", workload_gpt, "x", TY_I64, 1, 1, {20}, 31, 31, false},
    {"lstm", workload_lstm, "x", TY_F32, 2, 0, {6, LSTM_IN}, 0, LSTM_CLASSES, false},
};
enum { N_WORKLOADS = sizeof workloads / sizeof *workloads };

/* ---- training ---- */

static inline ty_type workload_type(ty_dtype dtype, int rank, const int64_t *dim, int64_t batch)
{
    int64_t whole[4] = {batch};
    for (int i = 0; i < rank; i++)
        whole[i + 1] = dim[i];
    return ty_type_make(dtype, rank + 1, whole);
}

static inline void workload_specify(const workload *w, int64_t batch, int accumulate, workload_spec *s)
{
    *s = (workload_spec){.w = w, .batch = batch};
    s->input[0] = (ty_binding){w->input, workload_type(w->dtype, w->rank, w->dim, batch)};
    s->input[1] = (ty_binding){"label", workload_type(TY_I64, w->target_rank, w->dim, batch)};
    s->loss = (ty_loss_term){.kind = TY_LOSS_SOFTMAX_CROSS_ENTROPY, .output = "y", .target = "label", .weight = 1};
    s->loss.ignore_index = -100;
    s->loss.class_axis = -1;
    s->spec = (ty_train_spec){.inputs = s->input, .n_inputs = 2, .loss = &s->loss, .n_loss = 1, .no_eval = true};
    s->spec.optimizer = (ty_optimizer){.kind = TY_OPT_SGD, .lr = 0.2, .momentum = 0.9, .weight_decay = 1e-3};
    s->spec.clip = TY_CLIP_GLOBAL_NORM;
    s->spec.clip_max = 2;
    s->spec.accumulate = accumulate;
    s->spec.batch_norm_statistics = true;
}

/* Kernels of one process are compiled once: see workload_cache(). */
static char workload_cache_folder[64];

static inline int workload_cache(void **state)
{
    (void)state;
    snprintf(workload_cache_folder, sizeof workload_cache_folder, "/tmp/ty-unit-workloads-XXXXXX");
    return mkdtemp(workload_cache_folder) ? 0 : -1;
}

static inline int workload_cache_remove(void **state)
{
    (void)state;
    return ty_file_remove_tree(workload_cache_folder, NULL);
}

static inline ty_program *workload_compile(const ty_model *m, const workload_spec *s, int threads, bool strict)
{
    ty_error err = {0};
    ty_program *p = NULL;
    ty_compile_options opt = {.threads = threads, .deterministic_strict = strict, .cache_dir = workload_cache_folder};
    if (ty_compile_train(m, &s->spec, &opt, &p, &err) < 0)
        fail_msg("%s: %s", s->w->name, err.message);
    return p;
}

/* Runs a tape on the rows from `first` on of an endless data set. */
static inline void workload_step(ty_program *p, ty_run run, const workload_spec *s, int64_t first)
{
    ty_error err = {0};
    const void *in[2];
    void *memory[2];
    for (int i = 0; i < 2; i++) {
        const ty_type *type = &s->input[i].type;
        int64_t n = ty_type_elems(type), per = n / s->batch, below = i ? s->w->classes : s->w->below;
        memory[i] = malloc(ty_type_bytes(type));
        in[i] = memory[i];
        for (int64_t e = 0; e < n; e++) {
            uint32_t word = ty_rng_u32(3, (uint32_t)i, 0, (uint64_t)(first * per + e));
            if (type->dtype == TY_F32)
                ((float *)memory[i])[e] = ty_rng_uniform(word) * 2 - 1;
            else
                ((int64_t *)memory[i])[e] = word % below;
        }
    }
    if (ty_program_run(p, run, in, &err) < 0)
        fail_msg("%s: %s", s->w->name, err.message);
    free(memory[0]);
    free(memory[1]);
}

static inline double workload_loss(const ty_program *p, ty_run run)
{
    return (double)*(const float *)ty_program_output(p, run, "loss")->data;
}

#endif
