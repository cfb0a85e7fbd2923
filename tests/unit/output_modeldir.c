/* The model folder: whole files, the list last, exact errors. */
#include "output_scratch.h"

#include "base/hash.h"
#include "base/json.h"
#include "container/output/modeldir.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_publish(void **state)
{
    ty_error err;
    ty_modeldir *md;
    const ty_metric metrics[] = {{"accuracy", 0.97}};
    const ty_modelinfo info = {.format = "onnx",
                               .origin = "model \"x\".onnx",
                               .recipe_json = "{\"epochs\": 3}",
                               .version = "1",
                               .step = 12,
                               .epoch = 3,
                               .metrics = metrics,
                               .n_metrics = 1};
    const char *dir = in(state, "a/model");
    assert_ok(ty_modeldir_check(dir, &err));
    assert_ok(ty_modeldir_open(dir, &md, &err));
    assert_ok(ty_modeldir_put(md, "labels.txt", "text", "one\n", 4, &err));
    assert_ok(ty_modeldir_put(md, "deep/er/labels.txt", "text", "", 0, &err));
    put_file(ty_modeldir_path(md, "model.onnx"), "0123456789", 10);
    assert_ok(ty_modeldir_add(md, "model.onnx", "onnx", &err));
    assert_ok(ty_modeldir_put(md, "labels.txt", "text", "two two\n", 8, &err)); /* again: the newer bytes count */
    assert_false(ty_file_exists(in(state, "a/model/model.json")));
    assert_ok(ty_modeldir_commit(md, &info, &err));
    ty_modeldir_free(md);

    ty_arena arena;
    ty_doc *doc;
    ty_arena_init(&arena);
    assert_ok(ty_json_read(&arena, in(state, "a/model/model.json"), NULL, &doc, &err));
    const ty_doc *files = ty_doc_find(doc, "files");
    assert_int_equal(ty_doc_len(files), 3);
    for (size_t i = 0; i < 3; i++) {
        const ty_doc *file = ty_doc_at(files, i);
        char path[1024], hex[TY_SHA256_HEX_BYTES];
        uint8_t digest[TY_SHA256_BYTES];
        snprintf(path, sizeof path, "%s/%s", dir, ty_doc_find(file, "name")->string);
        assert_int_equal(ty_file_size(path), ty_doc_find(file, "bytes")->integer);
        assert_ok(ty_sha256_file(path, digest, &err));
        assert_string_equal(ty_sha256_hex(digest, hex), ty_doc_find(file, "sha256")->string);
    }
    assert_string_equal(ty_doc_find(doc, "origin")->string, "model \"x\".onnx");
    assert_int_equal(ty_doc_find(ty_doc_find(doc, "recipe"), "epochs")->integer, 3);
    assert_true(ty_doc_find(ty_doc_find(doc, "metrics"), "accuracy")->number == 0.97);
    ty_arena_fini(&arena);
}

/* While a new model is being written, the old list does not vouch for it; what killed writers left goes. */
static void test_replace(void **state)
{
    ty_error err;
    ty_modeldir *md;
    put_file(in(state, "model.json"), "{}", 2);
    put_file(in(state, ".model.onnx.tmp-17-3"), "half", 4);
    put_file(in(state, "users.txt"), "mine", 4);
    assert_ok(ty_modeldir_open(*state, &md, &err));
    assert_false(ty_file_exists(in(state, "model.json")));
    assert_false(ty_file_exists(in(state, ".model.onnx.tmp-17-3")));
    assert_true(ty_file_exists(in(state, "users.txt")));
    ty_modeldir_free(md);
    ty_modeldir_free(NULL);
}

static void test_names(void **state)
{
    ty_error err;
    ty_modeldir *md;
    static const char *const bad[] = {"", "/x", "..", "../x", "a/../b", "a//b", "a/", ".", "./a", "model.json"};
    assert_ok(ty_modeldir_open(*state, &md, &err));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_error(ty_modeldir_put(md, bad[i], "text", "x", 1, &err), TY_E_CONFIG, "within the model folder");
    assert_ok(ty_modeldir_put(md, ".hidden", "text", "x", 1, &err));
    assert_ok(ty_modeldir_put(md, "..a/b..", "text", "x", 1, &err));
    assert_error(ty_modeldir_add(md, "absent", "text", &err), TY_E_NOT_FOUND, "absent");
    ty_modeldir_free(md);
}

static void test_unwritable(void **state)
{
    ty_error err;
    put_file(in(state, "file"), "x", 1);
    assert_error(ty_modeldir_check(in(state, "file"), &err), err.code, "model folder");
    if (geteuid() != 0)
        skip(); /* cannot become another user */
    const char *dir = in(state, "model");
    mkdir(dir, 0755);
    chmod(*state, 0755);
    pid_t child = fork();
    if (child == 0) {
        if (setgid(65534) < 0 || setuid(65534) < 0)
            _exit(2);
        err = (ty_error){0};
        int rc = ty_modeldir_check(dir, &err);
        _exit(rc == -1 && err.code == TY_E_PERMISSION && strstr(err.message, "ermission denied") ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {SCRATCH_TEST(test_publish), SCRATCH_TEST(test_replace), SCRATCH_TEST(test_names),
                                       SCRATCH_TEST(test_unwritable)};
    return cmocka_run_group_tests_name("output: model folder", tests, NULL, NULL);
}
