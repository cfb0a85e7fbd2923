/* A model of 512 MiB is ready to compile within half a second of CPU time, and its weights are not copied. The file is
 * sparse: nobody may read the weights, so they need not be there. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/compiler.h"
#include "compiler/passes/step.h"
#include "tests/unit/onnx_model.h"

#include <time.h>
#include <unistd.h>

enum { LAYERS = 8, WIDTH = 4096 };

static const size_t weight_bytes = (size_t)WIDTH * WIDTH * 4;

/* Head of an initializer; its raw data follow. */
static void put_weight_head(ty_buf *out, const char *name)
{
    uint8_t head[TY_WIRE_HEAD_BYTES];
    ty_buf t;
    ty_buf_init(&t, 4096);
    put_int(&t, 1, WIDTH);
    put_int(&t, 1, WIDTH);
    put_int(&t, 2, 1);
    put_text(&t, 8, name);
    ty_buf_add(&t, head, ty_wire_put_head(head, 9, weight_bytes));
    ty_buf_add(out, head, ty_wire_put_head(head, 5, t.len + weight_bytes));
    ty_buf_add(out, t.data, t.len);
    ty_buf_fini(&t);
}

/* Products in a row, with holes for weights. */
static void write_model(FILE *f)
{
    model_text m;
    uint8_t head[TY_WIRE_HEAD_BYTES];
    ty_buf weight[LAYERS], file;
    size_t n;
    model_begin(&m, 18);
    model_input(&m, "x0", 1, 2, (int64_t[]){-1, WIDTH});
    for (int i = 0; i < LAYERS; i++) {
        char in[64], out[32], name[32];
        snprintf(in, sizeof in, "x%d,layer%d.weight", i, i);
        snprintf(out, sizeof out, "x%d", i + 1);
        snprintf(name, sizeof name, "layer%d.weight", i);
        model_node(&m, "MatMul", in, out, name);
        ty_buf_init(&weight[i], 4096);
        put_weight_head(&weight[i], name);
    }
    model_output(&m, "x8", 1);
    n = m.graph.len;
    for (int i = 0; i < LAYERS; i++)
        n += weight[i].len + weight_bytes;
    ty_buf_init(&file, 1 << 16);
    put_int(&file, 1, 8);
    ty_buf opset;
    ty_buf_init(&opset, 64);
    put_text(&opset, 1, "");
    put_int(&opset, 2, 18);
    put_sub(&file, 8, &opset);
    ty_buf_add(&file, head, ty_wire_put_head(head, 7, n));
    ty_buf_add(&file, m.graph.data, m.graph.len);
    assert_int_equal(fwrite(file.data, 1, file.len, f), file.len);
    for (int i = 0; i < LAYERS; i++) {
        assert_int_equal(fwrite(weight[i].data, 1, weight[i].len, f), weight[i].len);
        assert_int_equal(fseek(f, (long)weight_bytes, SEEK_CUR), 0);
        ty_buf_fini(&weight[i]);
    }
    fflush(f);
    assert_int_equal(ftruncate(fileno(f), ftell(f)), 0);
    ty_buf_fini(&file);
    ty_buf_fini(&m.graph);
    ty_buf_fini(&m.file);
    ty_buf_fini(&m.attrs);
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Of the process, in KiB: memory of its own and of mapped files. */
static long resident_kib(const char *what)
{
    char line[256];
    long kib = -1;
    size_t n = strlen(what);
    FILE *f = fopen("/proc/self/status", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, what, n) == 0)
            kib = atol(line + n);
    fclose(f);
    assert_true(kib >= 0);
    return kib;
}

static void test_large(void **state)
{
    (void)state;
    char path[] = "/tmp/onnx-large-XXXXXX";
    ty_error err = {0};
    ty_model *model;
    ty_step step = {0};
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "wb");
    assert_non_null(f);
    write_model(f);
    fclose(f);
    double start = cpu_seconds();
    long own = resident_kib("RssAnon:"), mapped = resident_kib("RssFile:");
    int rc = ty_model_open(path, &model, &err);
    unlink(path);
    if (rc < 0)
        fail_msg("%s: %s", err.place, err.message);
    ty_binding binding = {"x0", ty_type_make(TY_F32, 2, (int64_t[]){1, WIDTH})};
    ty_loss_term loss = {.kind = TY_LOSS_MEAN, .output = "x8", .weight = 1};
    ty_train_spec spec = {.inputs = &binding,
                          .n_inputs = 1,
                          .loss = &loss,
                          .n_loss = 1,
                          .optimizer = {.kind = TY_OPT_SGD, .lr = 1e-3},
                          .accumulate = 1};
    if (ty_step_build(model, &spec, &step, &err) < 0)
        fail_msg("%s: %s", err.place, err.message);
    double seconds = cpu_seconds() - start;
    own = resident_kib("RssAnon:") - own;
    mapped = resident_kib("RssFile:") - mapped;
    print_message("512 MiB: %.3f s, %ld KiB of memory, %ld KiB of the file\n", seconds, own, mapped);
    assert_true(seconds < 0.5);
#ifndef __SANITIZE_ADDRESS__
    assert_true(own < 16 * 1024);
    assert_true(mapped < 16 * 1024);
#endif
    assert_int_equal(step.n_trained, (int64_t)LAYERS * WIDTH * WIDTH);
    ty_graph_free(step.g);
    ty_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_large)};
    return cmocka_run_group_tests_name("onnx_large", tests, NULL, NULL);
}
