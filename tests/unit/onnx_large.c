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

#include <math.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { LAYERS = 8, WIDTH = 4096 };            /* 512 MiB */
enum { MANY_LAYERS = 400, MANY_WIDTH = 256 }; /* 100 MiB, as many nodes as a ResNet-50 */

static const size_t weight_bytes = (size_t)WIDTH * WIDTH * 4;

/* Head of an initializer; its raw data follow. */
static void put_weight_head(ty_buf *out, const char *name, int width)
{
    size_t n_bytes = (size_t)width * (size_t)width * 4;
    uint8_t head[TY_WIRE_HEAD_BYTES];
    ty_buf t;
    ty_buf_init(&t, 4096);
    put_int(&t, 1, width);
    put_int(&t, 1, width);
    put_int(&t, 2, 1);
    put_text(&t, 8, name);
    ty_buf_add(&t, head, ty_wire_put_head(head, 9, n_bytes));
    ty_buf_add(out, head, ty_wire_put_head(head, 5, t.len + n_bytes));
    ty_buf_add(out, t.data, t.len);
    ty_buf_fini(&t);
}

/* Products in a row, with holes for weights. */
static void write_model(FILE *f, int layers, int width)
{
    size_t n_bytes = (size_t)width * (size_t)width * 4;
    model_text m;
    uint8_t head[TY_WIRE_HEAD_BYTES];
    ty_buf *weight = calloc((size_t)layers, sizeof *weight), file;
    size_t n;
    model_begin(&m, 18);
    put_text(&m.graph, 10, "o"); /* a doc string: few weights lie at a multiple of 4 */
    model_input(&m, "x0", 1, 2, (int64_t[]){-1, width});
    for (int i = 0; i < layers; i++) {
        char in[64], out[32], name[32];
        snprintf(in, sizeof in, "x%d,layer%d.weight", i, i);
        snprintf(out, sizeof out, "x%d", i + 1);
        snprintf(name, sizeof name, "layer%d.weight", i);
        model_node(&m, "MatMul", in, out, name);
        ty_buf_init(&weight[i], 4096);
        put_weight_head(&weight[i], name, width);
    }
    char last[32];
    snprintf(last, sizeof last, "x%d", layers);
    model_output(&m, last, 1);
    n = m.graph.len;
    for (int i = 0; i < layers; i++)
        n += weight[i].len + n_bytes;
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
    for (int i = 0; i < layers; i++) {
        assert_int_equal(fwrite(weight[i].data, 1, weight[i].len, f), weight[i].len);
        assert_int_equal(fseek(f, (long)n_bytes, SEEK_CUR), 0);
        ty_buf_fini(&weight[i]);
    }
    fflush(f);
    assert_int_equal(ftruncate(fileno(f), ftell(f)), 0);
    ty_buf_fini(&file);
    ty_buf_fini(&m.graph);
    ty_buf_fini(&m.file);
    ty_buf_fini(&m.attrs);
    free(weight);
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

/* As it is applied, weights are constants, which stay in the file wherever they lie. */
static void infer_large(const ty_model *model, const ty_binding *binding)
{
    ty_error err = {0};
    ty_step step;
    double start = cpu_seconds();
    long own = resident_kib("RssAnon:"), mapped = resident_kib("RssFile:");
    int unaligned = 0;
    for (int i = 0; i < LAYERS; i++)
        unaligned += (uintptr_t)ty_model_weight(model, i)->data % 4 != 0;
    assert_true(unaligned >= LAYERS / 2);
    if (ty_step_build_infer(model, binding, 1, &step, &err) < 0)
        fail_msg("%s: %s", err.place, err.message);
    double seconds = cpu_seconds() - start;
    own = resident_kib("RssAnon:") - own;
    mapped = resident_kib("RssFile:") - mapped;
    print_message("to infer: %.3f s, %ld KiB of memory, %ld KiB of the file\n", seconds, own, mapped);
    assert_true(seconds < 0.5);
#ifndef __SANITIZE_ADDRESS__
    assert_true(own < 16 * 1024);
    assert_true(mapped < 16 * 1024);
#endif
    ty_step_fini(&step);
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
    write_model(f, LAYERS, WIDTH);
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
    ty_step_fini(&step);
    infer_large(model, &binding);
    ty_model_free(model);
}

/* What `trainyard check` asks: layers, arithmetic, the gradient's too, within 100 ms. */
static void test_summary(void **state)
{
    (void)state;
    char path[] = "/tmp/onnx-large-XXXXXX";
    ty_error err = {0};
    ty_model *model;
    ty_model_summary summary;
    ty_arena a;
    ty_arena_init(&a);
    FILE *f = fdopen(mkstemp(path), "wb");
    assert_non_null(f);
    write_model(f, MANY_LAYERS, MANY_WIDTH);
    fclose(f);
    double start = cpu_seconds();
    int rc = ty_model_open(path, &model, &err);
    unlink(path);
    if (rc < 0 || ty_model_summarize(model, &(ty_summary_options){0}, &a, &summary, &err) < 0)
        fail_msg("%s: %s", err.place, err.message);
    double seconds = cpu_seconds() - start, product = 2.0 * MANY_WIDTH * MANY_WIDTH;
    print_message("summary of 100 MiB: %.3f s\n", seconds);
    assert_int_equal(summary.n_faults_all, 0);
    assert_int_equal(summary.n_layers, MANY_LAYERS);
    assert_true(summary.forward_flop[TY_WORK_PRODUCT] == MANY_LAYERS * product);
    assert_true(summary.backward_flop[TY_WORK_PRODUCT] == (2 * MANY_LAYERS - 1) * product);
#if defined __OPTIMIZE__ && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__ && !defined TY_DEBUG
    assert_true(seconds < 0.1);
#endif
    ty_model_free(model);
    ty_arena_fini(&a);
}

/* ---- weights at any address ---- */

/* Weights begin where the bytes before them end: at each of the four offsets. Products, a table, an addition and a
 * convolution read them there; the interpreter copies what it reads. */
static ty_model *open_unaligned(int offset)
{
    static float numbers[64 * 64 * 9];
    char path[] = "/tmp/onnx-unaligned-XXXXXX";
    ty_error err = {0};
    ty_model *model;
    model_text m;
    model_begin(&m, 18);
    put_text(&m.graph, 10, &"xxx"[3 - offset]); /* a doc string shifts what follows */
    for (int i = 0; i < 64 * 64 * 9; i++)
        numbers[i] = (float)((i * 37) % 101 - 50) / 64;
    model_input(&m, "x", 1, SHAPE(2, 64));
    model_input(&m, "row", 7, SHAPE(2));
    model_input(&m, "image", 1, SHAPE(1, 64, 5, 5));
    model_floats(&m, "w", SHAPE(64, 64), numbers);
    model_floats(&m, "table", SHAPE(64, 64), numbers + 100);
    model_floats(&m, "shift", SHAPE(2, 64 * 64), numbers + 200);
    model_floats(&m, "window", SHAPE(64, 64, 3, 3), numbers);
    model_node(&m, "MatMul", "x,w", "xw", "");
    model_node(&m, "Gather", "table,row", "rows", "");
    model_node(&m, "Add", "xw,rows", "a", "");
    model_node(&m, "MatMul", "w,table", "wt", "");
    model_node(&m, "MatMul", "a,wt", "y", "");
    model_node(&m, "ReduceMean", "shift", "mean", "");
    model_node(&m, "Conv", "image,window", "z", "");
    model_output(&m, "y", 1);
    model_output(&m, "z", 1);
    model_output(&m, "mean", 1);
    model_end(&m);
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "wb");
    assert_int_equal(fwrite(m.file.data, 1, m.file.len, f), m.file.len);
    fclose(f);
    int rc = ty_model_open(path, &model, &err);
    unlink(path);
    if (rc < 0)
        fail_msg("%s: %s", err.place, err.message);
    ty_buf_fini(&m.file);
    return model;
}

static ty_program *run_unaligned(const ty_model *m, ty_backend backend)
{
    static float x[128], image[64 * 25];
    static const int64_t row[2] = {3, 63};
    ty_binding in[3] = {{"x", ty_type_make(TY_F32, 2, (int64_t[]){2, 64})},
                        {"row", ty_type_make(TY_I64, 1, (int64_t[]){2})},
                        {"image", ty_type_make(TY_F32, 4, (int64_t[]){1, 64, 5, 5})}};
    ty_program *p;
    ty_error err = {0};
    for (int i = 0; i < 64 * 25; i++)
        x[i % 128] = image[i] = (float)((i * 29) % 17 - 8) / 8;
    if (ty_compile_infer(m, in, 3, &(ty_compile_options){.backend = backend, .threads = 1}, &p, &err) < 0 ||
        ty_program_run(p, TY_RUN_EVAL, (const void *[]){x, row, image}, &err) < 0)
        fail_msg("%s: %s", err.place, err.message);
    return p;
}

static void test_weights_at_any_address(void **state)
{
    (void)state;
    static const char *const outputs[] = {"y", "z", "mean"};
    unsigned seen = 0;
    for (int offset = 0; offset < 4; offset++) {
        ty_model *m = open_unaligned(offset);
        for (int i = 0; i < ty_model_n_weights(m); i++)
            seen |= 1u << (uintptr_t)ty_model_weight(m, i)->data % 4;
        ty_program *a = run_unaligned(m, TY_BACKEND_INTERPRETER), *b = run_unaligned(m, TY_BACKEND_CPU);
        for (int k = 0; k < 3; k++) {
            const ty_tensor *want = ty_program_output(a, TY_RUN_EVAL, outputs[k]);
            const ty_tensor *got = ty_program_output(b, TY_RUN_EVAL, outputs[k]);
            for (int64_t i = 0; i < ty_type_elems(&want->type); i++) {
                float x = ((const float *)want->data)[i], y = ((const float *)got->data)[i];
                if (!(fabsf(x - y) <= 1e-3f * (1 + fabsf(x))))
                    fail_msg("offset %d, %s[%d]: %g, compiled %g", offset, outputs[k], (int)i, (double)x, (double)y);
            }
        }
        ty_program_free(a);
        ty_program_free(b);
        ty_model_free(m);
    }
    assert_int_equal(seen, 15); /* the file is laid out as meant */
}

/* ---- beyond 2 GiB ---- */

enum { BEYOND = 33 }; /* weights of 64 MiB */

/* The first weight as one that was trained; the others keep the file's bytes. */
static const void *find_first(void *ctx, const char *name, const ty_type *type)
{
    (void)type;
    return strcmp(name, "w0") == 0 ? ctx : NULL;
}

/* A model whose weights lie in a file of 2 GiB and more, sparse but for the first number of each. */
static void write_beyond(const char *path, const char *data_path)
{
    model_text m;
    model_begin(&m, 18);
    model_input(&m, "x", 1, 2, (int64_t[]){-1, WIDTH});
    FILE *d = fopen(data_path, "wb");
    assert_non_null(d);
    for (int i = 0; i < BEYOND; i++) {
        char name[16], at[32];
        const char *pair[2][2] = {{"location", "w.bin"}, {"offset", at}};
        float first = (float)(i + 1);
        ty_buf w, entry;
        snprintf(name, sizeof name, "w%d", i);
        snprintf(at, sizeof at, "%zu", (size_t)i * weight_bytes);
        ty_buf_init(&w, 4096);
        put_int(&w, 1, WIDTH);
        put_int(&w, 1, WIDTH);
        put_int(&w, 2, 1);
        put_text(&w, 8, name);
        for (int k = 0; k < 2; k++) {
            ty_buf_init(&entry, 256);
            put_text(&entry, 1, pair[k][0]);
            put_text(&entry, 2, pair[k][1]);
            put_sub(&w, 13, &entry);
        }
        put_int(&w, 14, 1);
        put_sub(&m.graph, 5, &w);
        assert_int_equal(fseek(d, (long)((size_t)i * weight_bytes), SEEK_SET), 0);
        fwrite(&first, sizeof first, 1, d);
    }
    model_node(&m, "MatMul", "x,w0", "y", "");
    model_output(&m, "y", 1);
    model_end(&m);
    fflush(d);
    assert_int_equal(ftruncate(fileno(d), (long)(BEYOND * weight_bytes)), 0);
    fclose(d);
    FILE *f = fopen(path, "wb");
    assert_int_equal(fwrite(m.file.data, 1, m.file.len, f), m.file.len);
    fclose(f);
    ty_buf_fini(&m.file);
}

static void test_beyond_two_gib_is_written_back(void **state)
{
    (void)state;
    char dir[] = "/tmp/onnx-beyond-XXXXXX", path[64], data[64], out[64], out_data[80];
    struct statvfs fs;
    ty_model *m, *again;
    ty_error err = {0};
    if (statvfs("/tmp", &fs) < 0 || (uint64_t)fs.f_bavail * fs.f_frsize < (uint64_t)6 << 30) {
        print_message("skip: /tmp has less than 6 GiB\n");
        skip();
    }
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/m.onnx", dir);
    snprintf(data, sizeof data, "%s/w.bin", dir);
    snprintf(out, sizeof out, "%s/out.onnx", dir);
    snprintf(out_data, sizeof out_data, "%s" TY_MODEL_DATA_SUFFIX, out);
    write_beyond(path, data);
    float *fresh = calloc(1, weight_bytes);
    assert_non_null(fresh);
    fresh[0] = -7;
    fresh[WIDTH * WIDTH - 1] = -8;
    long own = resident_kib("RssAnon:");
    int rc = ty_model_open(path, &m, &err);
    bool two = rc == 0 && ty_model_has_data_file(m);
    if (rc == 0)
        rc = ty_model_write(m, out, find_first, fresh, &err);
    own = resident_kib("RssAnon:") - own;
    if (rc == 0)
        rc = ty_model_open(out, &again, &err);
    unlink(path);
    unlink(data);
    unlink(out);
    unlink(out_data);
    rmdir(dir);
    if (rc < 0)
        fail_msg("%s: %s", err.place, err.message);
    assert_true(two);
    print_message("%zu MiB: %ld KiB of memory\n", BEYOND * weight_bytes >> 20, own);
#ifndef __SANITIZE_ADDRESS__
    assert_true(own < 16 * 1024);
#endif
    assert_int_equal(ty_model_n_weights(again), BEYOND);
    for (int i = 0; i < BEYOND; i++) {
        const float *w = ty_model_weight(again, i)->data;
        float first = i == 0 ? -7 : (float)(i + 1), last = i == 0 ? -8 : 0;
        if (w[0] != first || w[WIDTH * WIDTH - 1] != last)
            fail_msg("weight %d: %g ... %g", i, w[0], w[WIDTH * WIDTH - 1]);
    }
    free(fresh);
    ty_model_free(again);
    ty_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_large), cmocka_unit_test(test_summary),
                                       cmocka_unit_test(test_weights_at_any_address),
                                       cmocka_unit_test(test_beyond_two_gib_is_written_back)};
    return cmocka_run_group_tests_name("onnx_large", tests, NULL, NULL);
}
