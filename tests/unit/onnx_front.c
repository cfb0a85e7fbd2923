/* Preprocessing in front of an ONNX graph: what nodes make of numbers is what arithmetic makes of them; names, shapes
 * and types of raw inputs; what is refused. `tests/entrypoint/preprocessing.sh` has ONNX Runtime judge texts, too. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/export/front.h"
#include "base/file.h"
#include "compiler/compiler.h"
#include "tests/unit/onnx_model.h"

#include <unistd.h>

static char folder[300], in[320], out[320];
static ty_arena arena;

static int make_folder(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/trainyard-test-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder))
        return -1;
    snprintf(in, sizeof in, "%s/in.onnx", folder);
    snprintf(out, sizeof out, "%s/out.onnx", folder);
    ty_arena_init(&arena);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    ty_arena_fini(&arena);
    return ty_file_remove_tree(folder, NULL);
}

/* A model that adds 0 to its input of the type: f32 (1) or i64 (7) [N, dims]. */
static void write_model(int64_t opset, int type, const char *input, int rank, const int64_t *dim)
{
    model_text t;
    model_begin(&t, opset);
    model_input(&t, input, type, rank, dim);
    model_output(&t, "y", type);
    model_node(&t, "Identity", input, "y", "");
    model_end(&t);
    assert_int_equal(ty_file_write(in, t.file.data, t.file.len, 0644, NULL), 0);
    ty_buf_fini(&t.file);
}

static ty_model *put_front(const ty_onnx_front *f)
{
    ty_model *m;
    ty_error err = {0};
    if (ty_onnx_write_front(in, out, f, 1, &arena, &err) < 0 || ty_model_open(out, &m, &err) < 0)
        fail_msg("%s: %s", err.place, err.message);
    return m;
}

/* The output for the raw rows; the caller frees the program. */
static ty_tensor answer(const ty_model *m, int rank, const int64_t *dim, const double *raw, ty_program **program)
{
    ty_error err = {0};
    ty_binding b = {ty_model_input(m, 0)->name, ty_type_make(TY_F64, rank, dim)};
    ty_compile_options opt = {.backend = TY_BACKEND_INTERPRETER};
    const void *data[] = {raw};
    if (ty_compile_infer(m, &b, 1, &opt, program, &err) < 0 || ty_program_run(*program, TY_RUN_EVAL, data, &err) < 0)
        fail_msg("%s: %s", err.place, err.message);
    return *ty_program_output(*program, TY_RUN_EVAL, "y");
}

static void test_numbers(void **state)
{
    (void)state;
    static const double fill[] = {4, 0}, shift[] = {1, 2}, divisor[] = {2, 4};
    static const double raw[] = {1, 2, (double)NAN, (double)NAN, -7, 1000};
    ty_onnx_front f = {.input = "x",
                       .row = ty_type_make(TY_F32, 1, (int64_t[]){2}),
                       .raw_rank = 1,
                       .raw_dim = {2},
                       .fill = fill,
                       .n_fill = 2,
                       .scale = 0.5,
                       .offset = 1,
                       .is_clipped = true,
                       .low = 0,
                       .high = 20,
                       .log1p = true,
                       .shift = shift,
                       .divisor = divisor,
                       .n_stats = 2};
    write_model(18, 1, "x", SHAPE(-1, 2));
    ty_model *m = put_front(&f);
    ty_program *program;
    assert_string_equal(ty_model_input(m, 0)->name, "x_raw");
    assert_int_equal(ty_model_input(m, 0)->dtype, TY_F64);
    assert_int_equal(ty_model_input(m, 0)->dim[0], -1);
    ty_tensor y = answer(m, SHAPE(3, 2), raw, &program);
    assert_int_equal(y.type.dtype, TY_F32);
    for (int i = 0; i < 6; i++) {
        double v = (isnan(raw[i]) ? fill[i % 2] : raw[i]) * 0.5 + 1;
        v = (log1p(v < 0 ? 0 : v > 20 ? 20 : v) - shift[i % 2]) / divisor[i % 2];
        assert_float_equal(((const float *)y.data)[i], (float)v, 1e-6);
    }
    ty_program_free(program);
    ty_model_free(m);
}

static void test_buckets(void **state)
{
    (void)state;
    static const double boundary[] = {0, 10}, raw[] = {-1, 0, 9.99, 10, (double)NAN};
    static const int64_t ids[] = {0, 1, 1, 2, 3};
    ty_onnx_front f = {.input = "x",
                       .row = ty_type_make(TY_I64, 0, NULL),
                       .scale = 1,
                       .has_buckets = true,
                       .boundary = boundary,
                       .n_boundaries = 2};
    write_model(18, 7, "x", SHAPE(-1));
    ty_model *m = put_front(&f);
    ty_program *program;
    ty_tensor y = answer(m, SHAPE(5), raw, &program);
    assert_int_equal(y.type.rank, 1);
    assert_memory_equal(y.data, ids, sizeof ids);
    ty_program_free(program);
    ty_model_free(m);
}

static void test_one_hot(void **state)
{
    (void)state;
    static const double raw[] = {2, 0};
    static const float rows[] = {0, 0, 1, 1, 0, 0};
    ty_onnx_front f = {.input = "x", .row = ty_type_make(TY_F32, 1, (int64_t[]){3}), .scale = 1, .one_hot = 3};
    write_model(18, 1, "x", SHAPE(-1, 3));
    ty_model *m = put_front(&f);
    ty_program *program;
    ty_tensor y = answer(m, SHAPE(2), raw, &program);
    assert_memory_equal(y.data, rows, sizeof rows);
    ty_program_free(program);
    ty_model_free(m);
}

/* Our importer knows no texts: the file is listed alone. */
static void test_words(void **state)
{
    (void)state;
    static const char *const words[] = {"red", "green"};
    ty_onnx_front f = {.input = "x",
                       .row = ty_type_make(TY_I64, 0, NULL),
                       .is_text = true,
                       .scale = 1,
                       .word = words,
                       .n_words = 2,
                       .first_id = 1,
                       .has_other = true};
    ty_onnx *m;
    write_model(18, 7, "x", SHAPE(-1));
    assert_int_equal(ty_onnx_write_front(in, out, &f, 1, &arena, NULL), 0);
    assert_int_equal(ty_onnx_open(out, &m, NULL), 0);
    assert_int_equal(ty_onnx_n_inputs(m), 1);
    assert_string_equal(ty_onnx_input(m, 0)->name, "x_raw");
    assert_int_equal(ty_onnx_input(m, 0)->dtype, TY_N_DTYPES);
    assert_int_equal(ty_onnx_n_nodes(m), 3);
    ty_onnx_free(m);
}

static void test_names(void **state)
{
    (void)state;
    ty_onnx_front f = {.input = "a", .row = ty_type_make(TY_F32, 0, NULL), .scale = 2};
    model_text t;
    ty_onnx *m;
    model_begin(&t, 18);
    model_input(&t, "a", 1, SHAPE(-1));
    model_input(&t, "a_raw", 1, SHAPE(-1));
    model_output(&t, "y", 1);
    model_node(&t, "Add", "a,a_raw", "y", "");
    model_end(&t);
    assert_int_equal(ty_file_write(in, t.file.data, t.file.len, 0644, NULL), 0);
    ty_buf_fini(&t.file);
    assert_int_equal(ty_onnx_write_front(in, out, &f, 1, &arena, NULL), 0);
    assert_int_equal(ty_onnx_open(out, &m, NULL), 0);
    assert_string_equal(ty_onnx_input(m, 0)->name, "a_raw_");
    assert_string_equal(ty_onnx_input(m, 1)->name, "a_raw");
    ty_onnx_free(m);
}

static void test_refusals(void **state)
{
    (void)state;
    ty_onnx_front f = {.input = "x", .row = ty_type_make(TY_F32, 0, NULL), .scale = 2};
    ty_error err = {0};
    write_model(12, 1, "x", SHAPE(-1));
    assert_int_equal(ty_onnx_write_front(in, out, &f, 1, &arena, &err), -1);
    assert_int_equal(err.code, TY_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "operator set 12"));
    write_model(18, 1, "z", SHAPE(-1));
    err = (ty_error){0};
    assert_int_equal(ty_onnx_write_front(in, out, &f, 1, &arena, &err), -1);
    assert_non_null(strstr(err.message, "no input \"x\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_buckets), cmocka_unit_test(test_one_hot),
        cmocka_unit_test(test_words),   cmocka_unit_test(test_names),   cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
