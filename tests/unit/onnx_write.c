/* The writer: the same file where nothing changed, only other weights where something did. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/onnx_model.h"

#include <unistd.h>

static int sink_add(void *ctx, const void *bytes, size_t n, ty_error *err)
{
    (void)err;
    return ty_buf_add(ctx, bytes, n);
}

static int sink_full(void *ctx, const void *bytes, size_t n, ty_error *err)
{
    (void)ctx, (void)bytes;
    return ty_error_set(err, TY_E_NO_SPACE, "no room for %zu bytes", n);
}

static void write_to(const ty_onnx *m, const ty_onnx_payload *payloads, int n, ty_buf *out)
{
    ty_error err = {0};
    ty_buf_init(out, 1 << 26);
    if (ty_onnx_write(m, payloads, n, sink_add, out, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(out->len, ty_onnx_written_bytes(m, payloads, n));
}

/* A model whose weights use every storage: raw, float_data, int64_data. */
static void begin_mixed(model_text *t)
{
    ty_buf w;
    model_begin(t, 18);
    model_input(t, "x", 1, SHAPE(2));
    model_floats(t, "raw", SHAPE(2), (float[]){1, 2});
    ty_buf_init(&w, 4096);
    put_int(&w, 1, 2);
    put_int(&w, 2, 1);
    put_bytes(&w, 4, (float[]){3, 4}, 8);
    put_text(&w, 8, "packed");
    put_text(&w, 12, "a doc string");
    put_sub(&t->graph, 5, &w);
    ty_buf_init(&w, 4096);
    put_int(&w, 1, 2);
    put_int(&w, 2, 1);
    put_float(&w, 4, 5);
    put_float(&w, 4, 6);
    put_text(&w, 8, "single");
    put_sub(&t->graph, 5, &w);
    ty_buf_init(&w, 4096);
    put_int(&w, 1, 3);
    put_int(&w, 2, 7);
    put_bytes(&w, 7, "\x01\x02\x03", 3);
    put_text(&w, 8, "ints");
    put_sub(&t->graph, 5, &w);
    model_node(t, "Add", "x,raw", "y", "");
    model_output(t, "y", 1);
    put_text(&t->file, 99, "a field of the future");
}

static void test_nothing_changed(void **state)
{
    (void)state;
    model_text t;
    ty_buf out;
    begin_mixed(&t);
    ty_onnx *m = model_open(&t);
    write_to(m, NULL, 0, &out);
    assert_int_equal(out.len, t.file.len);
    assert_memory_equal(out.data, t.file.data, t.file.len);
    ty_buf_fini(&out);
    ty_onnx_free(m);
    ty_buf_fini(&t.file);
}

/* raw_data and packed float_data keep their place and size, so only the payload's bytes differ. */
static void test_only_the_payload_differs(void **state)
{
    (void)state;
    model_text t;
    ty_buf out;
    const float fresh[] = {70, 80};
    begin_mixed(&t);
    ty_onnx *m = model_open(&t);
    for (int i = 0; i < 2; i++) {
        ty_onnx_payload p = {i, fresh};
        write_to(m, &p, 1, &out);
        assert_int_equal(out.len, t.file.len);
        size_t at = (size_t)((const char *)ty_onnx_initializer_at(m, i)->data - t.file.data);
        assert_memory_equal(out.data + at, fresh, 8);
        memcpy(out.data + at, ty_onnx_initializer_at(m, i)->data, 8);
        assert_memory_equal(out.data, t.file.data, out.len);
        ty_buf_fini(&out);
    }
    ty_onnx_free(m);
    ty_buf_fini(&t.file);
}

static void test_all_storages_read_back(void **state)
{
    (void)state;
    model_text t;
    ty_buf out;
    ty_onnx *again;
    const float fresh[] = {70, 80};
    const int64_t ints[] = {-1, 1 << 20, 5};
    begin_mixed(&t);
    ty_onnx *m = model_open(&t);
    ty_onnx_payload p[] = {{0, fresh}, {1, fresh}, {2, fresh}, {3, ints}};
    write_to(m, p, 4, &out);
    assert_int_equal(ty_onnx_open_memory("again", out.data, out.len, &again, NULL), 0);
    for (int i = 0; i < 3; i++)
        assert_memory_equal(ty_onnx_initializer_at(again, i)->data, fresh, 8);
    assert_memory_equal(ty_onnx_initializer_at(again, 3)->data, ints, 24);
    assert_string_equal(ty_onnx_initializer_at(again, 1)->name, "packed");
    ty_onnx_free(again);
    ty_buf_fini(&out);
    ty_onnx_free(m);
    ty_buf_fini(&t.file);
}

static void test_external_comes_inside(void **state)
{
    (void)state;
    char dir[] = "/tmp/onnx_write_XXXXXX", model[64], data[64];
    model_text t;
    ty_buf w, pair, out;
    ty_onnx *m, *again;
    ty_error err = {0};
    const float weights[] = {1, 2, 3};
    assert_non_null(mkdtemp(dir));
    snprintf(model, sizeof model, "%s/m.onnx", dir);
    snprintf(data, sizeof data, "%s/w.bin", dir);
    model_begin(&t, 18);
    ty_buf_init(&w, 4096);
    ty_buf_init(&pair, 4096);
    put_int(&w, 1, 3);
    put_int(&w, 2, 1);
    put_text(&w, 8, "w");
    put_text(&pair, 1, "location");
    put_text(&pair, 2, "w.bin");
    put_sub(&w, 13, &pair);
    put_int(&w, 14, 1);
    put_sub(&t.graph, 5, &w);
    model_end(&t);
    FILE *f = fopen(model, "wb"), *d = fopen(data, "wb");
    fwrite(t.file.data, 1, t.file.len, f);
    fwrite(weights, 4, 3, d);
    fclose(f);
    fclose(d);
    assert_int_equal(ty_onnx_open(model, &m, &err), 0);
    write_to(m, NULL, 0, &out);
    assert_int_equal(ty_onnx_open_memory("inside", out.data, out.len, &again, &err), 0);
    assert_memory_equal(ty_onnx_initializer_at(again, 0)->data, weights, 12);
    ty_onnx_free(again);
    ty_buf_fini(&out);
    ty_onnx_free(m);
    ty_buf_fini(&t.file);
    unlink(model);
    unlink(data);
    rmdir(dir);
}

/* Weights of 1 KiB and more go to the second file, new bytes and old ones; the smaller stay. */
static void test_two_files_read_back(void **state)
{
    (void)state;
    char dir[] = "/tmp/onnx_write_XXXXXX", model[64], data[64];
    static float big[3][300];
    model_text t;
    ty_buf out, outside;
    ty_onnx *again;
    ty_error err = {0};
    for (int i = 0; i < 900; i++)
        big[i / 300][i % 300] = (float)i;
    model_begin(&t, 18);
    model_input(&t, "x", 1, SHAPE(300));
    model_floats(&t, "kept", SHAPE(300), big[0]);
    model_floats(&t, "small", SHAPE(2), big[1]);
    model_floats(&t, "fresh", SHAPE(300), big[1]);
    model_node(&t, "Add", "x,kept", "y", "");
    model_output(&t, "y", 1);
    ty_onnx *m = model_open(&t);
    assert_false(ty_onnx_needs_two_files(m));
    ty_onnx_payload p = {2, big[2]};
    ty_buf_init(&out, 1 << 20);
    ty_buf_init(&outside, 1 << 20);
    if (ty_onnx_write_two_files(m, &p, 1, "w.data", sink_add, &out, sink_add, &outside, &err) < 0)
        fail_msg("%s", err.message);
    assert_true(out.len < 1024);
    assert_int_equal(outside.len, 4096 + 1200);
    assert_non_null(mkdtemp(dir));
    snprintf(model, sizeof model, "%s/m.onnx", dir);
    snprintf(data, sizeof data, "%s/w.data", dir);
    FILE *f = fopen(model, "wb"), *d = fopen(data, "wb");
    fwrite(out.data, 1, out.len, f);
    fwrite(outside.data, 1, outside.len, d);
    fclose(f);
    fclose(d);
    if (ty_onnx_open(model, &again, &err) < 0)
        fail_msg("%s", err.message);
    assert_memory_equal(ty_onnx_initializer_at(again, 0)->data, big[0], 1200);
    assert_memory_equal(ty_onnx_initializer_at(again, 1)->data, big[1], 8);
    assert_memory_equal(ty_onnx_initializer_at(again, 2)->data, big[2], 1200);
    assert_string_equal(ty_onnx_initializer_at(again, 2)->name, "fresh");
    assert_int_equal(((uintptr_t)ty_onnx_initializer_at(again, 2)->data) % 4096, 0);
    ty_onnx_free(again);
    ty_onnx_free(m);
    ty_buf_fini(&out);
    ty_buf_fini(&outside);
    ty_buf_fini(&t.file);
    unlink(model);
    unlink(data);
    rmdir(dir);
}

static void test_sink_error_stops(void **state)
{
    (void)state;
    model_text t;
    ty_error err = {0};
    begin_mixed(&t);
    ty_onnx *m = model_open(&t);
    assert_int_equal(ty_onnx_write(m, NULL, 0, sink_full, NULL, &err), -1);
    assert_int_equal(err.code, TY_E_NO_SPACE);
    ty_onnx_free(m);
    ty_buf_fini(&t.file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_changed),        cmocka_unit_test(test_only_the_payload_differs),
        cmocka_unit_test(test_all_storages_read_back), cmocka_unit_test(test_external_comes_inside),
        cmocka_unit_test(test_two_files_read_back),    cmocka_unit_test(test_sink_error_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
