/* Hugging Face's folders: networks built from config.json, beside what Transformers computed (tests/golden/huggingface,
 * make.py there): outputs in evaluation, the loss, and every weight after one step of SGD. */
#include "base/file.h"
#include "base/safetensors.h"
#include "compiler/model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GOLDEN "tests/golden/huggingface"

enum { MAX_INPUTS = 8, PATH_BYTES = 300 };

typedef struct folder_case {
    char path[PATH_BYTES];
    ty_model *model;
    ty_safetensors golden;
    ty_binding in[MAX_INPUTS]; /* those of the model, then targets */
    const void *data[MAX_INPUTS];
    int n_model_inputs, n_inputs;
} folder_case;

/* ---- opening ---- */

static const char *of_case(const char *name, const char *file)
{
    static char path[PATH_BYTES];
    snprintf(path, sizeof path, GOLDEN "/%s/%s", name, file);
    return path;
}

static const ty_safetensors_entry *golden_find(const folder_case *c, const char *kind, const char *name)
{
    char whole[PATH_BYTES];
    snprintf(whole, sizeof whole, "%s%s", kind, name);
    return ty_safetensors_find(&c->golden, whole);
}

static void bind(folder_case *c, const char *name)
{
    const ty_safetensors_entry *e = golden_find(c, "in.", name);
    if (!e)
        fail_msg("%s: the model wants \"%s\", which no golden has", c->path, name);
    c->in[c->n_inputs] = (ty_binding){name, e->type};
    c->data[c->n_inputs++] = e->data;
}

static folder_case open_case(const char *name)
{
    folder_case c = {0};
    ty_error err = {0};
    snprintf(c.path, sizeof c.path, GOLDEN "/%s", name);
    if (ty_model_open(c.path, &c.model, &err) < 0)
        fail_msg("%s: %s", err.place, err.message);
    if (ty_safetensors_open(of_case(name, "golden.safetensors"), &c.golden, &err) < 0)
        fail_msg("%s", err.message);
    for (int i = 0; i < ty_model_n_inputs(c.model); i++)
        bind(&c, ty_model_input(c.model, i)->name);
    c.n_model_inputs = c.n_inputs;
    return c;
}

static void close_case(folder_case *c)
{
    ty_safetensors_close(&c->golden);
    ty_model_free(c->model);
}

/* ---- comparing ---- */

/* Float32 sums in other orders: 2e-5 of the largest number around. */
static void compare(const char *where, const char *what, const ty_safetensors_entry *e, const float *got)
{
    float largest = 0.1f, worst = 0;
    int64_t n = ty_type_elems(&e->type);
    for (int64_t i = 0; i < n; i++) {
        float want;
        memcpy(&want, (const char *)e->data + 4 * i, 4);
        largest = fmaxf(largest, fabsf(want));
        worst = fmaxf(worst, fabsf(want - got[i]));
        if (!(fabsf(want - got[i]) <= 1e30f))
            fail_msg("%s: %s[%lld] is %g, expected %g", where, what, (long long)i, (double)got[i], (double)want);
    }
    if (worst > 2e-5f * largest)
        fail_msg("%s: %s is off by %g of %g", where, what, (double)worst, (double)largest);
}

static void check_outputs(const folder_case *c, ty_backend backend)
{
    ty_compile_options opt = {.backend = backend, .threads = 1};
    ty_error err = {0};
    ty_program *p;
    if (ty_compile_infer(c->model, c->in, c->n_model_inputs, &opt, &p, &err) < 0)
        fail_msg("%s: %s", c->path, err.message);
    assert_int_equal(ty_program_run(p, TY_RUN_EVAL, c->data, &err), 0);
    for (int i = 0; i < ty_model_n_outputs(c->model); i++) {
        const char *name = ty_model_output(c->model, i)->name;
        const ty_safetensors_entry *e = golden_find(c, "out.", name);
        const ty_tensor *got = ty_program_output(p, TY_RUN_EVAL, name);
        assert_non_null(e);
        assert_true(ty_type_same(&e->type, &got->type));
        compare(c->path, name, e, got->data);
    }
    ty_program_free(p);
}

static ty_loss_term cross_entropy(const char *output, const char *target, double weight)
{
    return (ty_loss_term){.kind = TY_LOSS_SOFTMAX_CROSS_ENTROPY,
                          .output = output,
                          .target = target,
                          .weight = weight,
                          .ignore_index = -100,
                          .class_axis = -1};
}

static int losses_of(folder_case *c, ty_loss_term loss[2])
{
    if (golden_find(c, "in.", "start_positions")) {
        bind(c, "start_positions");
        bind(c, "end_positions");
        loss[0] = cross_entropy("start_logits", "start_positions", 0.5);
        loss[1] = cross_entropy("end_logits", "end_positions", 0.5);
        return 2;
    }
    if (!golden_find(c, "in.", "labels"))
        return 0;
    bind(c, "labels");
    loss[0] = cross_entropy("logits", "labels", 1);
    return 1;
}

/* Every golden weight is one of the program's, and the other way round. */
static void check_stepped(const folder_case *c, const ty_program *p)
{
    int met = 0, stepped = 0;
    for (int i = 0; i < ty_program_n_tensors(p); i++) {
        const char *name;
        bool trained;
        ty_tensor t = ty_program_tensor(p, i, &name, &trained);
        const ty_safetensors_entry *e = trained ? golden_find(c, "stepped.", name) : NULL;
        if (!trained || !e)
            continue;
        assert_true(ty_type_same(&e->type, &t.type));
        compare(c->path, name, e, t.data);
        met++;
    }
    for (size_t i = 0; i < c->golden.n_entries; i++)
        stepped += strncmp(c->golden.entries[i].name, "stepped.", 8) == 0;
    if (met != stepped)
        fail_msg("%s: %d weights stepped, %d of them here", c->path, stepped, met);
}

static void check_step(folder_case *c, ty_backend backend)
{
    ty_loss_term loss[2];
    int n = losses_of(c, loss);
    ty_train_spec spec = {.inputs = c->in,
                          .n_inputs = c->n_inputs,
                          .loss = loss,
                          .n_loss = n,
                          .accumulate = 1,
                          .seed = 1,
                          .batch_norm_statistics = true,
                          .optimizer = {.kind = TY_OPT_SGD, .lr = 0.5}};
    ty_compile_options opt = {.backend = backend, .threads = 1};
    ty_error err = {0};
    ty_program *p;
    if (n == 0)
        return;
    if (ty_compile_train(c->model, &spec, &opt, &p, &err) < 0)
        fail_msg("%s: %s: %s", c->path, err.place, err.message);
    assert_int_equal(ty_program_run(p, TY_RUN_LAST, c->data, &err), 0);
    compare(c->path, "loss", golden_find(c, "loss", ""), ty_program_output(p, TY_RUN_LAST, "loss")->data);
    check_stepped(c, p);
    ty_program_free(p);
    c->n_inputs = c->n_model_inputs;
}

/* ---- tests ---- */

static void test_as_transformers(void **state)
{
    ty_arena a;
    ty_file_entry *entry;
    size_t n, seen = 0;
    (void)state;
    ty_arena_init(&a);
    assert_int_equal(ty_file_list(GOLDEN, &a, &entry, &n, NULL), 0);
    for (size_t i = 0; i < n; i++) {
        if (entry[i].kind != 'd')
            continue;
        folder_case c = open_case(entry[i].name);
        check_outputs(&c, TY_BACKEND_INTERPRETER);
        check_step(&c, TY_BACKEND_INTERPRETER);
        check_step(&c, TY_BACKEND_CPU);
        close_case(&c);
        seen++;
    }
    assert_true(seen > 10);
    ty_arena_fini(&a);
}

/* The weights of a case in 16 bits, as a folder of its own. */
static void halve(const char *name, const char *folder)
{
    char path[PATH_BYTES];
    ty_safetensors s;
    ty_buf config;
    ty_buf_init(&config, 1 << 16);
    assert_int_equal(ty_safetensors_open(of_case(name, "model.safetensors"), &s, NULL), 0);
    ty_named_tensor *t = calloc(s.n_entries, sizeof *t);
    for (size_t i = 0; i < s.n_entries; i++) {
        const ty_safetensors_entry *e = &s.entries[i];
        uint16_t *half = calloc(e->n_bytes, 1);
        for (size_t k = 0; k < e->n_bytes / 4; k++) {
            float v;
            memcpy(&v, (const char *)e->data + 4 * k, 4);
            half[k] = ty_f32_to_bf16(v);
        }
        t[i] = (ty_named_tensor){e->name, ty_type_make(TY_BF16, e->type.rank, e->type.dim), half};
    }
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    assert_int_equal(ty_safetensors_write(path, t, s.n_entries, NULL, 0, NULL), 0);
    assert_int_equal(ty_file_read(of_case(name, "config.json"), &config, NULL), 0);
    snprintf(path, sizeof path, "%s/config.json", folder);
    assert_int_equal(ty_file_write(path, config.data, config.len, 0644, NULL), 0);
    for (size_t i = 0; i < s.n_entries; i++)
        free(t[i].data);
    free(t);
    ty_buf_fini(&config);
    ty_safetensors_close(&s);
}

static void test_16_bits(void **state)
{
    char folder[] = "/tmp/trainyard-test-XXXXXX";
    ty_model *half, *whole;
    ty_error err = {0};
    (void)state;
    assert_non_null(mkdtemp(folder));
    halve("gpt2-words", folder);
    assert_int_equal(ty_model_open(GOLDEN "/gpt2-words", &whole, &err), 0);
    assert_int_equal(ty_model_open(folder, &half, &err), 0);
    assert_int_equal(ty_model_n_weights(half), ty_model_n_weights(whole));
    for (int i = 0; i < ty_model_n_weights(half); i++) {
        const ty_model_value *a = ty_model_weight(whole, i), *b = ty_model_weight(half, i);
        float x, y;
        memcpy(&x, a->data, sizeof x);
        memcpy(&y, b->data, sizeof y);
        assert_true(y == ty_bf16_to_f32(ty_f32_to_bf16(x)));
    }
    /* What takes memory of its own is no page of the file. */
    assert_true(ty_model_is_mapped(whole));
    assert_false(ty_model_is_mapped(half));
    ty_model_free(half);
    ty_model_free(whole);
    ty_file_remove_tree(folder, NULL);
}

/* How long texts may be: as many as the table has positions, but for RoBERTa, whose first one is pad_token_id + 1. */
static void test_lengths(void **state)
{
    static const struct {
        const char *name;
        int64_t most;
    } rows[] = {{"bert-words", 16}, {"gpt2-words", 16}, {"roberta-words", 16}, {"mpnet-words", 16}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        folder_case c = open_case(rows[i].name);
        assert_int_equal(ty_model_preparation_of(c.model)->max_length, rows[i].most);
        close_case(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_transformers), cmocka_unit_test(test_16_bits),
                                       cmocka_unit_test(test_lengths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
