/* onnx_models.c - whole models of other people: they import, and give the results that others computed, in the
 * interpreter and compiled.
 *
 * The results are kept as test data sets (input_0.pb, output_0.pb), as raw arrays that ONNX Runtime wrote (golden/), or
 * as one expected output: the light networks of the ONNX project, whose input is 0, 1/n, 2/n ... (n: its elements) and
 * whose weights are nodes ConstantOfShape. For training, these nodes are rewritten as random weights.
 */
#include "compiler/compiler.h"
#include "compiler/import/onnx.h"
#include "tests/unit/onnx_model.h"

#include "compiler/import/onnx_tree.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { MAX_IO = 12 };

/* A model, what goes in and what must come out. Bindings are in the order of the model's inputs. */
typedef struct vectors {
    ty_arena arena;
    ty_model *model;
    bool ties; /* of logits that are too large for a softmax */
    ty_binding binding[MAX_IO];
    const void *in[MAX_IO];
    ty_tensor want[MAX_IO];
    int n_in, n_want;
    int first; /* of the back ends that run */
    double rel, abs;
} vectors;

static const ty_backend both[] = {TY_BACKEND_INTERPRETER, TY_BACKEND_CPU};
static const char *const backend_names[] = {"interpreter", "compiled"};

static const char *shared(const char *name)
{
    static char path[1024];
    const char *root = getenv("TY_SHARED");
    snprintf(path, sizeof path, "%s/data/models/onnx/%s", root ? root : "../shared", name);
    return path;
}

/* A whole file, aligned; skips the test where there is none. */
static void *read_file(ty_arena *arena, const char *name, size_t *n)
{
    FILE *f = fopen(shared(name), "rb");
    if (!f) {
        print_message("skip: %s is not there\n", shared(name));
        skip();
    }
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    void *bytes = ty_arena_alloc(arena, *n + 1);
    assert_int_equal(fread(bytes, 1, *n, f), *n);
    fclose(f);
    return bytes;
}

static ty_tensor read_tensor(ty_arena *arena, const char *name)
{
    size_t n;
    ty_tensor t;
    ty_error err = {0};
    const void *bytes = read_file(arena, name, &n);
    if (ty_onnx_read_tensor(bytes, n, arena, &t, &err) < 0)
        fail_msg("%s: %s", name, err.message);
    t.data = ty_arena_copy(arena, t.data, ty_type_bytes(&t.type));
    return t;
}

static void open_model(vectors *v, const char *name)
{
    ty_error err = {0};
    *v = (vectors){.rel = 1e-4, .abs = 1e-5};
    ty_arena_init(&v->arena);
    if (access(shared(name), R_OK) != 0) {
        print_message("skip: %s is not there\n", shared(name));
        skip();
    }
    if (ty_model_open(shared(name), &v->model, &err) < 0)
        fail_msg("%s: %s", name, err.message);
    v->n_in = ty_model_n_inputs(v->model);
}

static void close_model(vectors *v)
{
    ty_model_free(v->model);
    ty_arena_fini(&v->arena);
}

static void expect_close(const vectors *v, const char *what, const ty_tensor *want, const ty_tensor *got)
{
    assert_non_null(got);
    assert_true(ty_type_same(&want->type, &got->type));
    assert_int_equal(want->type.dtype, TY_F32);
    const float *a = got->data, *b = want->data;
    for (int64_t i = 0, n = ty_type_elems(&want->type); i < n; i++)
        if (!(fabs((double)a[i] - b[i]) <= v->abs + v->rel * fabs(b[i])))
            fail_msg("%s, element %lld: %.9g, expected %.9g", what, (long long)i, a[i], b[i]);
}

/* All logits of this network are 9.5e9, where neighbours are 1024 apart: one rounding, as between the last columns of a
 * product and those before, and the lower ones have probability 0, the higher ones share all. At most a tenth of the
 * classes may be higher or lower than the others. */
static void expect_shares(const char *what, const ty_tensor *got)
{
    const float *x = got->data;
    int64_t n = ty_type_elems(&got->type), n_shares = 0;
    for (int64_t i = 0; i < n; i++)
        n_shares += x[i] != 0;
    int64_t n_few = n_shares * 2 < n ? n_shares : n - n_shares;
    assert_true(n_shares > 0 && n_few * 10 <= n);
    for (int64_t i = 0; i < n; i++)
        if (x[i] != 0 && !(fabs((double)x[i] * (double)n_shares - 1) < 1e-5))
            fail_msg("%s, element %lld: %.9g, expected 1 / %lld", what, (long long)i, x[i], (long long)n_shares);
}

/* Checks every expected output on every back end. */
static void expect_outputs(vectors *v)
{
    for (int k = v->first; k < 2; k++) {
        ty_program *program;
        ty_error err = {0};
        ty_compile_options options = {.backend = both[k]};
        if (ty_compile_infer(v->model, v->binding, v->n_in, &options, &program, &err) < 0)
            fail_msg("%s: %s: %s", backend_names[k], err.place, err.message);
        if (ty_program_run(program, TY_RUN_EVAL, v->in, &err) < 0)
            fail_msg("%s: %s", backend_names[k], err.message);
        for (int i = 0; i < v->n_want; i++) {
            const char *name = ty_model_output(v->model, i)->name;
            char what[300];
            snprintf(what, sizeof what, "%s: output \"%.100s\"", backend_names[k], name);
            if (v->ties)
                expect_shares(what, ty_program_output(program, TY_RUN_EVAL, name));
            else
                expect_close(v, what, &v->want[i], ty_program_output(program, TY_RUN_EVAL, name));
        }
        ty_program_free(program);
    }
}

/* ---- test data sets -----------------------------------------------------------------------------------------------
 */

static void check_set(const char *folder, int set)
{
    vectors v;
    char name[256];
    snprintf(name, sizeof name, "%s/model.onnx", folder);
    open_model(&v, name);
    assert_int_equal(v.n_in, 1);
    snprintf(name, sizeof name, "%s/test_data_set_%d/input_0.pb", folder, set);
    ty_tensor in = read_tensor(&v.arena, name);
    snprintf(name, sizeof name, "%s/test_data_set_%d/output_0.pb", folder, set);
    v.want[v.n_want++] = read_tensor(&v.arena, name);
    v.binding[0] = (ty_binding){ty_model_input(v.model, 0)->name, in.type};
    v.in[0] = in.data;
    expect_outputs(&v);
    close_model(&v);
}

static void test_mnist_8(void **state)
{
    (void)state;
    for (int set = 0; set < 3; set++)
        check_set("mnist-8", set);
}

static void test_super_resolution(void **state)
{
    (void)state;
    check_set("super_resolution_10", 0);
}

/* ---- golden arrays ------------------------------------------------------------------------------------------------
 */

typedef struct golden {
    const char *name;
    ty_dtype dtype;
    int rank;
    int64_t dim[TY_MAX_RANK];
} golden;

static ty_tensor read_golden(vectors *v, const char *folder, const char *prefix, const golden *a)
{
    char name[256];
    size_t n;
    snprintf(name, sizeof name, "%s/golden/%s_%s.bin", folder, prefix, a->name);
    ty_tensor t = {ty_type_make(a->dtype, a->rank, a->dim), read_file(&v->arena, name, &n)};
    assert_int_equal(n, ty_type_bytes(&t.type));
    return t;
}

/* Names end lists. */
static void open_golden(vectors *v, const char *folder, const char *file, const golden *in, const golden *out)
{
    char name[256];
    snprintf(name, sizeof name, "%s/%s", folder, file);
    open_model(v, name);
    for (int i = 0; in[i].name; i++) {
        ty_tensor t = read_golden(v, folder, "in", &in[i]);
        assert_string_equal(ty_model_input(v->model, i)->name, in[i].name);
        v->binding[i] = (ty_binding){in[i].name, t.type};
        v->in[i] = t.data;
    }
    for (int i = 0; out[i].name; i++) {
        assert_string_equal(ty_model_output(v->model, i)->name, out[i].name);
        v->want[v->n_want++] = read_golden(v, folder, "out", &out[i]);
    }
}

static void test_dummy_transformer(void **state)
{
    (void)state;
    static const golden in[] = {{"input_ids", TY_I64, 2, {2, 5}},
                                {"attention_mask", TY_I64, 2, {2, 5}},
                                {"token_type_ids", TY_I64, 2, {2, 5}},
                                {0}};
    static const golden out[] = {{"output_0", TY_F32, 3, {2, 5, 16}}, {0}};
    vectors v;
    open_golden(&v, "dummy-transformer", "model.onnx", in, out);
    expect_outputs(&v);
    close_model(&v);
}

static const golden gpt2_in[] = {{"input_ids", TY_I32, 2, {1, 4}},
                                 {"position_ids", TY_I32, 2, {1, 4}},
                                 {"attention_mask", TY_I32, 2, {1, 4}},
                                 {"past_0", TY_F32, 5, {2, 1, 4, 0, 8}},
                                 {"past_1", TY_F32, 5, {2, 1, 4, 0, 8}},
                                 {"past_2", TY_F32, 5, {2, 1, 4, 0, 8}},
                                 {"past_3", TY_F32, 5, {2, 1, 4, 0, 8}},
                                 {"past_4", TY_F32, 5, {2, 1, 4, 0, 8}},
                                 {0}};
static const golden gpt2_out[] = {{"logits", TY_F32, 3, {1, 4, 1000}},
                                  {"present_0", TY_F32, 5, {2, 1, 4, 4, 8}},
                                  {"present_1", TY_F32, 5, {2, 1, 4, 4, 8}},
                                  {"present_2", TY_F32, 5, {2, 1, 4, 4, 8}},
                                  {"present_3", TY_F32, 5, {2, 1, 4, 4, 8}},
                                  {"present_4", TY_F32, 5, {2, 1, 4, 4, 8}},
                                  {0}};

static void test_tiny_gpt2(void **state)
{
    (void)state;
    vectors v;
    open_golden(&v, "tiny-random-gpt2", "past.onnx", gpt2_in, gpt2_out);
    expect_outputs(&v);
    close_model(&v);
}

/* ---- a file of opset 4 --------------------------------------------------------------------------------------------
 */

/* The n bytes behind the header of a gzipped IDX file. */
static uint8_t *idx_bytes(ty_arena *arena, const char *name, int header, int n)
{
    char path[256];
    snprintf(path, sizeof path, "../../mnist/%s", name);
    gzFile f = gzopen(shared(path), "rb");
    if (!f) {
        print_message("skip: %s is not there\n", shared(path));
        skip();
    }
    uint8_t *bytes = ty_arena_alloc(arena, (size_t)(header + n));
    assert_int_equal(gzread(f, bytes, (unsigned)(header + n)), header + n);
    gzclose(f);
    return bytes + header;
}

static int largest(const float *x)
{
    int best = 0;
    for (int i = 1; i < 10; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

static void test_mnist_softmax(void **state)
{
    (void)state;
    enum { IMAGES = 10000, PIXELS = 784, BATCH = 1000 };
    vectors v;
    open_model(&v, "mnist_softmax/model.onnx");
    const uint8_t *images = idx_bytes(&v.arena, "t10k-images-idx3-ubyte.gz", 16, IMAGES * PIXELS);
    const uint8_t *labels = idx_bytes(&v.arena, "t10k-labels-idx1-ubyte.gz", 8, IMAGES);
    float *x = ty_arena_alloc(&v.arena, sizeof *x * BATCH * PIXELS);
    const void *inputs[] = {x};
    ty_binding binding = {ty_model_input(v.model, 0)->name, ty_type_make(TY_F32, 2, (int64_t[]){BATCH, PIXELS})};
    for (int k = 0; k < 2; k++) {
        ty_program *program;
        ty_error err = {0};
        int right = 0;
        if (ty_compile_infer(v.model, &binding, 1, &(ty_compile_options){.backend = both[k]}, &program, &err) < 0)
            fail_msg("%s: %s", backend_names[k], err.message);
        for (int first = 0; first < IMAGES; first += BATCH) {
            for (int i = 0; i < BATCH * PIXELS; i++)
                x[i] = (float)images[first * PIXELS + i] / 255;
            assert_int_equal(ty_program_run(program, TY_RUN_EVAL, inputs, &err), 0);
            const float *y = ty_program_output(program, TY_RUN_EVAL, ty_model_output(v.model, 0)->name)->data;
            for (int i = 0; i < BATCH; i++)
                right += largest(y + 10 * i) == labels[first + i];
        }
        assert_int_equal(right, 9162);
        ty_program_free(program);
    }
    close_model(&v);
}

/* ---- light networks -----------------------------------------------------------------------------------------------
 */

/* The model at its documented input. */
static void open_light(vectors *v, const char *name)
{
    open_model(v, name);
    assert_int_equal(v->n_in, 1);
    const ty_model_value *in = ty_model_input(v->model, 0);
    ty_type type = ty_type_make(in->dtype, in->rank, in->dim);
    int64_t n = ty_type_elems(&type);
    float *x = ty_arena_alloc(&v->arena, sizeof *x * (size_t)n);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)((double)i / (double)n);
    v->binding[0] = (ty_binding){ty_arena_strdup(&v->arena, in->name), type};
    v->in[0] = x;
}

static void check_light(const char *network)
{
    vectors v;
    char name[256];
    snprintf(name, sizeof name, "light/light_%s.onnx", network);
    open_light(&v, name);
    snprintf(name, sizeof name, "light/light_%s_output_0.pb", network);
    v.want[v.n_want++] = read_tensor(&v.arena, name);
    v.rel = 1e-3;
    v.abs = 1e-7;
    v.ties = strcmp(network, "squeezenet") == 0;
    /* The interpreter takes seconds for these; in instrumented builds (TY_VARIANT is the test runner's), minutes. */
    const char *variant = getenv("TY_VARIANT");
    v.first = variant && strcmp(variant, "release") != 0;
    expect_outputs(&v);
    close_model(&v);
}

/* ---- a training step ----------------------------------------------------------------------------------------------
 */

/* Filters that keep the scale of what passes; lists, which scale or are variances, are positive. */
static void fill_weights(float *w, const ty_type *type, uint32_t stream)
{
    int64_t n = ty_type_elems(type);
    double fan_in = type->rank > 1 ? (double)n / (double)type->dim[0] : 1, scale = sqrt(3 / fan_in);
    uint32_t x = stream * 2654435761u + 1;
    for (int64_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        double u = (x >> 8) * 0x1p-24;
        w[i] = (float)(type->rank > 1 ? scale * (2 * u - 1) : 0.3 + 0.4 * u);
    }
}

static const ty_onnx_initializer *shape_of(const ty_onnx *m, const onnx_node *node)
{
    assert_int_equal(node->inputs.n, 1);
    int i = ty_onnx_find_initializer(m, ONNX_TEXT(node->inputs, 0));
    assert_true(i >= 0);
    return ty_onnx_initializer_at(m, i);
}

/* TensorProto of random weights in place of a node ConstantOfShape. */
static void put_weights(FILE *graph, const ty_onnx *m, const onnx_node *node, uint32_t stream)
{
    const ty_onnx_initializer *shape = shape_of(m, node);
    int64_t dim[TY_MAX_RANK];
    int rank = (int)shape->type.dim[0];
    memcpy(dim, shape->data, sizeof *dim * (size_t)rank);
    ty_type type = ty_type_make(TY_F32, rank, dim);
    size_t n_bytes = ty_type_bytes(&type);
    float *w = malloc(n_bytes);
    assert_non_null(w);
    fill_weights(w, &type, stream);
    ty_buf tensor;
    ty_buf_init(&tensor, 1 << 30);
    tensor_raw(&tensor, ONNX_TEXT(node->outputs, 0), 1, rank, dim, w, n_bytes);
    assert_false(tensor.failed);
    uint8_t head[TY_WIRE_HEAD_BYTES];
    fwrite(head, 1, ty_wire_put_head(head, 5, tensor.len), graph);
    fwrite(tensor.data, 1, tensor.len, graph);
    ty_buf_fini(&tensor);
    free(w);
}

/* Copies the graph; nodes ConstantOfShape become initializers. */
static void put_graph(FILE *out, const ty_onnx *m, ty_bytes graph)
{
    const ty_wire_list *nodes = &m->tree.graph->nodes;
    ty_wire_item item;
    ty_error err = {0};
    for (size_t k = 0; ty_wire_next(&graph, &item, &err) == 1;) {
        const onnx_node *node = item.number == 1 ? ONNX_AT(*nodes, onnx_node, k++) : NULL;
        if (node && strcmp(node->op_type, "ConstantOfShape") == 0)
            put_weights(out, m, node, (uint32_t)k);
        else
            fwrite(item.whole.data, 1, item.whole.n, out);
    }
}

/* A length of 5 bytes, whatever it is, so that it can be written when what it counts has been. */
static void put_length(FILE *out, uint32_t n)
{
    for (int i = 0; i < 5; i++)
        fputc((int)(n >> 7 * i & 0x7f) | (i < 4 ? 0x80 : 0), out);
}

/* The model of the file as a file of its own, with weights to train. */
static void rewrite(const char *from, const char *to)
{
    ty_onnx *m;
    ty_error err = {0};
    ty_wire_item item;
    if (ty_onnx_open(from, &m, &err) < 0)
        fail_msg("%s", err.message);
    FILE *out = fopen(to, "wb");
    assert_non_null(out);
    for (ty_bytes in = m->bytes; ty_wire_next(&in, &item, &err) == 1;) {
        if (item.number != 7) {
            fwrite(item.whole.data, 1, item.whole.n, out);
            continue;
        }
        fputc(7 << 3 | 2, out);
        long start = ftell(out);
        put_length(out, 0);
        put_graph(out, m, item.body);
        long end = ftell(out);
        assert_int_equal(fseek(out, start, SEEK_SET), 0);
        put_length(out, (uint32_t)(end - start - 5));
        assert_int_equal(fseek(out, end, SEEK_SET), 0);
    }
    assert_int_equal(fclose(out), 0);
    ty_onnx_free(m);
}

/* Copies of all trained weights, end to end. */
static float *trained_copy(const ty_program *p, int64_t *n)
{
    *n = 0;
    for (int i = 0; i < ty_program_n_tensors(p); i++) {
        bool trained;
        ty_tensor t = ty_program_tensor(p, i, NULL, &trained);
        *n += trained ? ty_type_elems(&t.type) : 0;
    }
    float *copy = malloc(sizeof *copy * (size_t)(*n + 1)), *at = copy;
    assert_non_null(copy);
    for (int i = 0; i < ty_program_n_tensors(p); i++) {
        bool trained;
        ty_tensor t = ty_program_tensor(p, i, NULL, &trained);
        if (trained)
            at = (float *)memcpy(at, t.data, ty_type_bytes(&t.type)) + ty_type_elems(&t.type);
    }
    return copy;
}

/* Two steps: a finite loss each, and four of five trained tensors are others afterwards. Not all are: a shift before a
 * batch norm that works on batch statistics has no effect (shufflenet's 16 units have one each). */
static void expect_steps(ty_program *p, const void *const *inputs)
{
    ty_error err = {0};
    int64_t n, at = 0;
    int n_trained = 0, n_changed = 0;
    const char *name, *same = "";
    float *before = trained_copy(p, &n);
    assert_true(n > 0);
    for (int step = 0; step < 2; step++) {
        if (ty_program_run(p, TY_RUN_LAST, inputs, &err) < 0)
            fail_msg("%s", err.message);
        float loss = *(const float *)ty_program_output(p, TY_RUN_LAST, "loss")->data;
        if (!isfinite(loss))
            fail_msg("step %d: the loss is %g", step, loss);
    }
    for (int i = 0; i < ty_program_n_tensors(p); i++) {
        bool trained;
        ty_tensor t = ty_program_tensor(p, i, &name, &trained);
        if (!trained)
            continue;
        const float *now = t.data;
        for (int64_t k = 0, m = ty_type_elems(&t.type); k < m; k++)
            if (!isfinite(now[k]))
                fail_msg("tensor %d, element %lld is %g", i, (long long)k, now[k]);
        if (memcmp(now, before + at, ty_type_bytes(&t.type)) != 0)
            n_changed++;
        else
            same = name;
        at += ty_type_elems(&t.type);
        n_trained++;
    }
    if (5 * n_changed < 4 * n_trained)
        fail_msg("%d of %d trained tensors changed, \"%s\" did not", n_changed, n_trained, same);
    free(before);
}

/* Cross-entropy of output 0, whose classes lie along `axis`, against the labels 0, 1, 2 ... */
static void train_steps(vectors *v, const ty_type *output, int axis)
{
    ty_error err = {0};
    ty_program *program;
    ty_type target = {.dtype = TY_I64};
    int64_t label[64];
    for (int i = 0; i < output->rank; i++)
        if (i != axis)
            target.dim[target.rank++] = output->dim[i];
    assert_true(ty_type_elems(&target) <= 64);
    for (int i = 0; i < 64; i++)
        label[i] = i;
    v->binding[v->n_in] = (ty_binding){"target", target};
    v->in[v->n_in] = label;
    ty_loss_term loss = {.kind = TY_LOSS_SOFTMAX_CROSS_ENTROPY,
                         .output = ty_model_output(v->model, 0)->name,
                         .target = "target",
                         .weight = 1,
                         .ignore_index = -100,
                         .class_axis = axis};
    ty_train_spec spec = {.inputs = v->binding,
                          .n_inputs = v->n_in + 1,
                          .loss = &loss,
                          .n_loss = 1,
                          .optimizer = {.kind = TY_OPT_SGD, .lr = 1},
                          .accumulate = 1,
                          .seed = 1,
                          .batch_norm_statistics = true,
                          .no_eval = true};
    if (ty_compile_train(v->model, &spec, &(ty_compile_options){0}, &program, &err) < 0)
        fail_msg("%s: %s", err.place, err.message);
    expect_steps(program, v->in);
    ty_program_free(program);
}

static void train_light(const char *network)
{
    vectors v;
    char name[256], path[] = "/tmp/onnx-models-XXXXXX";
    ty_error err = {0};
    snprintf(name, sizeof name, "light/light_%s.onnx", network);
    open_light(&v, name);
    ty_model_free(v.model);
    v.model = NULL;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    rewrite(shared(name), path);
    if (ty_model_open(path, &v.model, &err) < 0)
        fail_msg("%s: %s", err.place, err.message);
    unlink(path);
    const ty_model_value *out = ty_model_output(v.model, 0);
    ty_type type = ty_type_make(out->dtype, out->rank, out->dim);
    train_steps(&v, &type, 1);
    close_model(&v);
}

static void test_train_gpt2(void **state)
{
    (void)state;
    vectors v;
    open_golden(&v, "tiny-random-gpt2", "past.onnx", gpt2_in, gpt2_out);
    train_steps(&v, &v.want[0].type, 2);
    close_model(&v);
}

static void test_squeezenet(void **state)
{
    (void)state;
    check_light("squeezenet");
}

static void test_train_squeezenet(void **state)
{
    (void)state;
    train_light("squeezenet");
}

static void test_resnet50(void **state)
{
    (void)state;
    check_light("resnet50");
}

static void test_train_resnet50(void **state)
{
    (void)state;
    train_light("resnet50");
}

static void test_shufflenet(void **state)
{
    (void)state;
    check_light("shufflenet");
}

static void test_train_shufflenet(void **state)
{
    (void)state;
    train_light("shufflenet");
}

static void test_inception_v1(void **state)
{
    (void)state;
    check_light("inception_v1");
}

static void test_train_inception_v1(void **state)
{
    (void)state;
    train_light("inception_v1");
}

static void test_bvlc_alexnet(void **state)
{
    (void)state;
    check_light("bvlc_alexnet");
}

static void test_train_bvlc_alexnet(void **state)
{
    (void)state;
    train_light("bvlc_alexnet");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mnist_8),          cmocka_unit_test(test_mnist_softmax),
        cmocka_unit_test(test_super_resolution), cmocka_unit_test(test_dummy_transformer),
        cmocka_unit_test(test_tiny_gpt2),        cmocka_unit_test(test_train_gpt2),
        cmocka_unit_test(test_squeezenet),       cmocka_unit_test(test_train_squeezenet),
        cmocka_unit_test(test_resnet50),         cmocka_unit_test(test_train_resnet50),
        cmocka_unit_test(test_shufflenet),       cmocka_unit_test(test_train_shufflenet),
        cmocka_unit_test(test_inception_v1),     cmocka_unit_test(test_train_inception_v1),
        cmocka_unit_test(test_bvlc_alexnet),     cmocka_unit_test(test_train_bvlc_alexnet),
    };
    cmocka_set_test_filter(getenv("TY_TEST_FILTER"));
    return cmocka_run_group_tests_name("onnx_models", tests, NULL, NULL);
}
