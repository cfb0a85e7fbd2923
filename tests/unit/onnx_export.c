/* The ONNX files that we write: for every model here the same outputs as the model itself, at two batch sizes, when the
 * file is read again; what follows the batch, what cannot, what is refused. `tests/export/judge.py` has ONNX Runtime
 * judge more. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/export/onnx.h"
#include "base/file.h"
#include "compiler/compiler.h"
#include "tests/unit/onnx_model.h"

#include <unistd.h>

enum { MAX_INPUTS = 8 };

static char folder[300];

static int make_folder(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/trainyard-test-XXXXXX", base ? base : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return ty_file_remove_tree(folder, NULL);
}

static const char *in_folder(const char *name)
{
    static char path[4][400];
    static int turn;
    char *out = path[turn++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", folder, name);
    return out;
}

static ty_model *open_model(const char *path)
{
    ty_model *m;
    ty_error err = {0};
    if (ty_model_open(path, &m, &err) < 0)
        fail_msg("%s: %s: %s", path, err.place, err.message);
    return m;
}

/* A model with inputs bound at some batch size. */
typedef struct applied {
    ty_binding binding[MAX_INPUTS];
    const void *data[MAX_INPUTS];
    ty_program *program;
} applied;

/* Small numbers; integers are 0 or 1, which any table has. */
static void *fill(const ty_type *t, int seed)
{
    int64_t n = ty_type_elems(t);
    uint8_t *data = calloc((size_t)n + 1, 8);
    assert_non_null(data);
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)(i + 1) * 2654435761u ^ (uint32_t)seed * 40503u;
        float f = (float)(bits >> 8) / (float)(1 << 24) - 0.5f;
        int64_t whole = bits >> 20 & 1;
        if (t->dtype == TY_F32)
            memcpy(data + 4 * i, &f, 4);
        else if (!ty_dtype_is_float((ty_dtype)t->dtype))
            memcpy(data + (size_t)i * ty_dtype_bytes((ty_dtype)t->dtype), &whole, ty_dtype_bytes((ty_dtype)t->dtype));
    }
    return data;
}

static void apply(const ty_model *m, int64_t batch, applied *out, const char *name)
{
    ty_error err = {0};
    int n = ty_model_n_inputs(m);
    assert_true(n <= MAX_INPUTS);
    for (int i = 0; i < n; i++) {
        const ty_model_value *v = ty_model_input(m, i);
        ty_type t = {.dtype = (uint8_t)v->dtype, .rank = (uint8_t)v->rank};
        for (int k = 0; k < v->rank; k++)
            t.dim[k] = v->dim[k] < 0 ? batch : v->dim[k];
        out->binding[i] = (ty_binding){v->name, t};
        out->data[i] = fill(&t, i);
    }
    ty_compile_options opt = {.backend = TY_BACKEND_INTERPRETER};
    if (ty_compile_infer(m, out->binding, n, &opt, &out->program, &err) < 0 ||
        ty_program_run(out->program, TY_RUN_EVAL, out->data, &err) < 0)
        fail_msg("%s: %s %s", name, err.place, err.message);
}

static void leave(const ty_model *m, applied *a)
{
    for (int i = 0; i < ty_model_n_inputs(m); i++)
        free((void *)a->data[i]);
    ty_program_free(a->program);
}

static void expect_near(const ty_tensor *x, const ty_tensor *y, const char *name)
{
    assert_true(ty_type_same(&x->type, &y->type));
    if (x->type.dtype != TY_F32) {
        assert_memory_equal(x->data, y->data, ty_type_bytes(&x->type));
        return;
    }
    const float *a = x->data, *b = y->data;
    double scale = 1e-6;
    for (int64_t i = 0; i < ty_type_elems(&x->type); i++)
        scale = fabs(a[i]) > scale && isfinite(a[i]) ? fabs(a[i]) : scale;
    for (int64_t i = 0; i < ty_type_elems(&x->type); i++)
        if (!(fabs((double)a[i] - b[i]) <= 2e-5 * scale) && a[i] != b[i] && !(isnan(a[i]) && isnan(b[i])))
            fail_msg("%s: element %lld: expected %g, found %g", name, (long long)i, a[i], b[i]);
}

static void expect_applied_alike(const ty_model *m, const ty_model *written, int64_t batch, const char *name)
{
    applied x = {0}, y = {0};
    apply(m, batch, &x, name);
    apply(written, batch, &y, name);
    for (int i = 0; i < ty_model_n_outputs(m); i++) {
        const char *output = ty_model_output(m, i)->name;
        const ty_tensor *t = ty_program_output(y.program, TY_RUN_EVAL, output);
        if (!t)
            fail_msg("%s: output %s is gone", name, output);
        expect_near(ty_program_output(x.program, TY_RUN_EVAL, output), t, name);
    }
    leave(m, &x);
    leave(written, &y);
}

static int export_to(const ty_model *m, const char *path, const ty_onnx_export *opt, ty_onnx_exported *done,
                     ty_error *err)
{
    ty_arena a;
    ty_arena_init(&a);
    int rc = ty_onnx_export_model(m, path, opt, &a, done, err);
    if (done->why_static)
        done->why_static = "static";
    ty_arena_fini(&a);
    return rc;
}

static void round_trip(const char *path, int opset)
{
    ty_error err = {0};
    ty_onnx_exported done;
    ty_model *m = open_model(path);
    const char *out = in_folder("out.onnx");
    if (export_to(m, out, &(ty_onnx_export){.opset = opset}, &done, &err) < 0)
        fail_msg("%s: %s %s", path, err.place, err.message);
    bool is_free = ty_model_input(m, 0)->dim[0] < 0;
    if (done.why_static || is_free != (done.batch == 0))
        fail_msg("%s: the batch is fixed", path);
    ty_model *written = open_model(out);
    expect_applied_alike(m, written, is_free ? 3 : 1, path);
    if (is_free)
        expect_applied_alike(m, written, 2, path);
    ty_model_free(written);
    ty_model_free(m);
}

static void round_trip_folder(const char *folder_path, int opset)
{
    ty_arena a;
    ty_error err = {0};
    ty_file_entry *entry;
    size_t n;
    ty_arena_init(&a);
    assert_int_equal(ty_file_list(folder_path, &a, &entry, &n, &err), 0);
    for (size_t i = 0; i < n; i++)
        if (strstr(entry[i].name, ".onnx"))
            round_trip(ty_arena_printf(&a, "%s/%s", folder_path, entry[i].name), opset);
    ty_arena_fini(&a);
}

static void test_composites(void **state)
{
    (void)state;
    round_trip_folder("tests/golden/raise", 0);
}

static void test_composites_apart(void **state)
{
    (void)state;
    round_trip_folder("tests/golden/raise", TY_ONNX_EXPORT_MIN_OPSET);
}

static void test_models(void **state)
{
    (void)state;
    round_trip_folder("tests/fuzz/corpus/step", 0);
    round_trip("examples/digits/model.onnx", TY_ONNX_EXPORT_MAX_OPSET);
    round_trip("examples/gpt-c/model.c", 0);
}

/* ---- what follows the batch -------------------------------------------------------------------------------------- */

/* The model in the file, of one node or a few, opened; path: where it lies. */
static ty_model *open_bytes(model_text *t)
{
    model_end(t);
    const char *path = in_folder("in.onnx");
    assert_int_equal(ty_file_write(path, t->file.data, t->file.len, 0644, NULL), 0);
    ty_buf_fini(&t->file);
    return open_model(path);
}

static void expect_follows(model_text *t, const char *name)
{
    ty_error err = {0};
    ty_onnx_exported done;
    ty_model *m = open_bytes(t);
    const char *out = in_folder("out.onnx");
    if (export_to(m, out, &(ty_onnx_export){0}, &done, &err) < 0)
        fail_msg("%s: %s", name, err.message);
    assert_null(done.why_static);
    ty_model *written = open_model(out);
    expect_applied_alike(m, written, 2, name);
    expect_applied_alike(m, written, 5, name);
    ty_model_free(written);
    ty_model_free(m);
}

static void begin(model_text *t)
{
    model_begin(t, 18);
    model_input(t, "x", 1, SHAPE(-1, 4));
    model_output(t, "y", 1);
}

/* [x's rows] as an int64 of one element, "n". */
static void add_rows(model_text *t)
{
    model_ints(t, "zero", 1, (int64_t[]){0});
    model_ints(t, "one", 1, (int64_t[]){1});
    model_node(t, "Shape", "x", "shape", "");
    model_node(t, "Slice", "shape,zero,one", "n", "");
}

static void test_reshape_follows(void **state)
{
    (void)state;
    model_text t;
    begin(&t); /* [N, 4] to [2, N, 2]: no -1 in front of what does not */
    model_ints(&t, "two", 1, (int64_t[]){2});
    add_rows(&t);
    attr_int(&t, "axis", 0);
    model_node(&t, "Concat", "two,n,two", "to", "");
    model_node(&t, "Reshape", "x,to", "y", "");
    expect_follows(&t, "reshape");
}

static void test_rows_are_counted(void **state)
{
    (void)state;
    model_text t;
    begin(&t); /* the number of each row is added to it */
    add_rows(&t);
    model_node(&t, "Squeeze", "n,zero", "limit", "");
    model_node(&t, "Squeeze", "zero,zero", "from", "");
    model_node(&t, "Squeeze", "one,zero", "by", "");
    model_node(&t, "Range", "from,limit,by", "rows", "");
    attr_int(&t, "to", 1);
    model_node(&t, "Cast", "rows", "floats", "");
    model_node(&t, "Unsqueeze", "floats,one", "column", "");
    model_node(&t, "Add", "x,column", "y", "");
    expect_follows(&t, "rows");
}

static void test_slice_follows(void **state)
{
    (void)state;
    model_text t;
    begin(&t); /* all rows but the last, less the mean of all rows */
    add_rows(&t);
    model_node(&t, "Sub", "n,one", "end", "");
    model_node(&t, "Slice", "x,zero,end", "rest", "");
    attr_int(&t, "keepdims", 1);
    model_node(&t, "ReduceMean", "x,zero", "mean", "");
    model_node(&t, "Sub", "rest,mean", "y", "");
    expect_follows(&t, "slice");
}

/* A table of its own for each batch size: the file is for one, and says why. */
static void test_fixed_batch(void **state)
{
    (void)state;
    model_text t;
    ty_error err = {0};
    ty_onnx_exported done;
    begin(&t);
    add_rows(&t);
    model_node(&t, "Squeeze", "n,zero", "limit", "");
    model_node(&t, "Squeeze", "zero,zero", "from", "");
    model_node(&t, "Squeeze", "one,zero", "by", "");
    model_node(&t, "Range", "from,limit,by", "rows", "");
    model_node(&t, "Mul", "rows,rows", "squares", "");
    attr_int(&t, "to", 1);
    model_node(&t, "Cast", "squares", "floats", "");
    model_node(&t, "Unsqueeze", "floats,one", "column", "");
    model_node(&t, "Add", "x,column", "y", "");
    ty_model *m = open_bytes(&t);
    const char *out = in_folder("out.onnx");
    if (export_to(m, out, &(ty_onnx_export){0}, &done, &err) < 0)
        fail_msg("%s", err.message);
    assert_non_null(done.why_static);
    assert_int_equal(done.batch, 1);
    assert_int_equal(export_to(m, out, &(ty_onnx_export){.batch = 3}, &done, &err), 0);
    assert_null(done.why_static);
    assert_int_equal(done.batch, 3);
    ty_model *written = open_model(out);
    assert_int_equal(ty_model_input(written, 0)->dim[0], 3);
    expect_applied_alike(m, written, 3, "fixed");
    ty_model_free(written);
    ty_model_free(m);
}

static void test_names_are_kept(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_onnx_exported done;
    ty_model *m = open_model("examples/digits/model.onnx");
    const char *out = in_folder("out.onnx");
    assert_int_equal(export_to(m, out, &(ty_onnx_export){0}, &done, &err), 0);
    assert_int_equal(done.n_unused, 0);
    ty_model *written = open_model(out);
    assert_string_equal(ty_model_input(written, 0)->dim_name[0], "batch");
    for (int i = 0; i < ty_model_n_weights(m); i++) {
        const ty_model_value *w = ty_model_weight(m, i), *v = NULL;
        for (int k = 0; k < ty_model_n_weights(written); k++)
            if (strcmp(ty_model_weight(written, k)->name, w->name) == 0) {
                v = ty_model_weight(written, k);
                assert_int_equal(ty_model_weight_is_running(written, k), ty_model_weight_is_running(m, i));
            }
        if (!v)
            fail_msg("%s is gone", w->name);
        assert_int_equal(v->trainable_hint, w->trainable_hint);
    }
    for (int k = 0; k < ty_model_n_weights(written); k++) /* what is new is not trained */
        assert_true(!ty_model_weight(written, k)->trainable_hint ||
                    strncmp(ty_model_weight(written, k)->name, "constant", 8) != 0);
    ty_model_free(written);
    ty_model_free(m);
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static void test_refusals(void **state)
{
    (void)state;
    model_text t;
    ty_error err = {0};
    ty_onnx_exported done;
    const char *out = in_folder("never.onnx");
    begin(&t);
    model_node(&t, "RandomNormalLike", "x", "noise", "noise");
    model_node(&t, "Add", "x,noise", "y", "");
    ty_model *m = open_bytes(&t);
    assert_int_equal(export_to(m, out, &(ty_onnx_export){0}, &done, &err), -1);
    assert_int_equal(err.code, TY_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "\"rng\""));
    assert_non_null(strstr(err.place, "noise"));
    assert_int_equal(export_to(m, out, &(ty_onnx_export){.opset = 9}, &done, &err), -1);
    assert_int_equal(err.code, TY_E_CONFIG);
    ty_model_free(m);
    model_begin(&t, 18);
    model_input(&t, "x", 1, SHAPE(2, 4));
    model_input(&t, "z", 1, SHAPE(-1, 4));
    model_output(&t, "y", 1);
    model_node(&t, "Add", "x,z", "y", "");
    m = open_bytes(&t);
    assert_int_equal(export_to(m, out, &(ty_onnx_export){0}, &done, &err), -1); /* [2, 4] + [37, 4] */
    ty_model_free(m);
    assert_false(ty_file_exists(out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_composites),       cmocka_unit_test(test_composites_apart),
        cmocka_unit_test(test_models),           cmocka_unit_test(test_reshape_follows),
        cmocka_unit_test(test_rows_are_counted), cmocka_unit_test(test_slice_follows),
        cmocka_unit_test(test_fixed_batch),      cmocka_unit_test(test_names_are_kept),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
