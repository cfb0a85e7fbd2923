/* safetensors: the reference's vector, round trips, and everything a reader must refuse. */
#include "output_scratch.h"

#include "base/safetensors.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

static const char vector[72] = "\x38\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}  "
                               "\x00\x00\x80\x3f\x00\x00\x00\xc0";

static ty_type type_of(ty_dtype dtype, int rank, int64_t a, int64_t b)
{
    const int64_t dim[2] = {a, b};
    return ty_type_make(dtype, rank, dim);
}

static void test_vector(void **state)
{
    ty_error err;
    float data[2] = {1, -2};
    const ty_named_tensor t = {"w", type_of(TY_F32, 1, 2, 0), data};
    size_t n;
    assert_ok(ty_safetensors_write(in(state, "m.safetensors"), &t, 1, NULL, 0, &err));
    char *bytes = get_file(in(state, "m.safetensors"), &n);
    assert_int_equal(n, sizeof vector);
    assert_memory_equal(bytes, vector, sizeof vector);
    free(bytes);
}

static void test_order_and_metadata(void **state)
{
    ty_error err;
    double d[1] = {1};
    float f[2] = {2, 3};
    int64_t l[1] = {4};
    uint8_t u[3] = {5, 6, 7};
    const ty_named_tensor list[] = {
        {"u", type_of(TY_U8, 1, 3, 0), u},        {"b\"\n", type_of(TY_F32, 1, 2, 0), f},
        {"none", type_of(TY_F32, 2, 0, 7), NULL}, {"d", type_of(TY_F64, 0, 0, 0), d},
        {"l", type_of(TY_I64, 1, 1, 0), l},       {"a", type_of(TY_F32, 1, 1, 0), f},
    };
    const ty_safetensors_meta meta[] = {{"format", "pt"}, {"by", "us"}};
    const char *path = in(state, "m.safetensors");
    assert_ok(ty_safetensors_write(path, list, 6, meta, 2, &err));
    size_t n;
    char *bytes = get_file(path, &n);
    assert_int_equal(bytes[0] % 8, 0);
    const char *expected = "{\"__metadata__\":{\"format\":\"pt\",\"by\":\"us\"},"
                           "\"l\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},\"d\":{\"dtype\":\"F64\","
                           "\"shape\":[],\"data_offsets\":[8,16]},"
                           "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[16,20]},"
                           "\"b\\\"\\n\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[20,28]},"
                           "\"none\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[28,28]},"
                           "\"u\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[28,31]}}";
    assert_memory_equal(bytes + 8, expected, strlen(expected));
    free(bytes);
    ty_safetensors s;
    assert_ok(ty_safetensors_open(path, &s, &err));
    assert_int_equal(s.n_entries, 6);
    assert_int_equal(s.n_meta, 2);
    assert_string_equal(s.meta[0].value, "pt");
    for (size_t i = 0; i < 6; i++) {
        const ty_safetensors_entry *e = ty_safetensors_find(&s, list[i].name);
        assert_non_null(e);
        assert_true(ty_type_same(&e->type, &list[i].type));
        assert_int_equal(e->n_bytes, ty_type_bytes(&list[i].type));
        if (e->n_bytes)
            assert_memory_equal(e->data, list[i].data, e->n_bytes);
    }
    assert_null(ty_safetensors_find(&s, "x"));
    ty_safetensors_close(&s);
}

static void test_write_refused(void **state)
{
    ty_error err;
    float f[1] = {1};
    const ty_named_tensor twice[] = {{"a", type_of(TY_F32, 1, 1, 0), f}, {"a", type_of(TY_F32, 1, 1, 0), f}};
    const ty_named_tensor reserved = {"__metadata__", type_of(TY_F32, 1, 1, 0), f};
    const char *path = in(state, "m.safetensors");
    assert_error(ty_safetensors_write(path, twice, 2, NULL, 0, &err), TY_E_DUPLICATE, "two tensors are called \"a\"");
    assert_error(ty_safetensors_write(path, &reserved, 1, NULL, 0, &err), TY_E_CONFIG, "keeps that name");
    assert_false(ty_file_exists(path));
    assert_error(ty_safetensors_write(in(state, "no/m.safetensors"), twice, 1, NULL, 0, &err), TY_E_NOT_FOUND, "no");
    /* A user without the right to write: the old file stays. */
    assert_ok(ty_safetensors_write(path, twice, 1, NULL, 0, &err));
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
            _exit(2);
        else if (geteuid() != 65534)
            _exit(2);
        int rc = ty_safetensors_write(path, twice, 1, NULL, 0, &err);
        _exit(rc == -1 && err.code == TY_E_PERMISSION ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2)
        skip(); /* not root: cannot become another user */
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(ty_file_exists(path));
}

/* A file of this header, with n_data bytes behind it. */
static int parse(const char *header, size_t n_data, ty_error *err)
{
    char bytes[2048] = {0};
    uint64_t n = strlen(header);
    memcpy(bytes, &n, 8);
    memcpy(bytes + 8, header, n);
    ty_safetensors s;
    *err = (ty_error){0};
    int rc = ty_safetensors_parse(bytes, 8 + n + n_data, "x.safetensors", &s, err);
    if (rc == 0)
        ty_safetensors_close(&s);
    return rc;
}

static void test_valid(void **state)
{
    (void)state;
    ty_error err;
    assert_ok(parse("{}", 0, &err));
    assert_ok(parse("{}        ", 0, &err));
    assert_ok(parse("{\"__metadata__\":{}}", 0, &err));
    assert_ok(parse("{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, &err));
    assert_ok(parse("{\"a\":{\"dtype\":\"F32\",\"shape\":[0,9],\"data_offsets\":[0,0]}}", 0, &err));
    assert_ok(parse("{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3, &err));
    assert_ok(parse("{\"a\":{\"dtype\":\"F4\",\"shape\":[4],\"data_offsets\":[0,2]}}", 2, &err));
    assert_ok(parse("{\"b\":{\"data_offsets\":[2,3],\"dtype\":\"U8\",\"shape\":[1]},"
                    "\"a\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[0,2]}}",
                    3, &err));
}

#define T(dtype, shape, offsets) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t n_data;
        const char *text;
    } rows[] = {
        {"", 0, "expected '{'"},
        {" {}", 0, "expected '{'"},
        {"[]", 0, "expected '{'"},
        {"{} x", 0, "header"},
        {"{}", 1, "the tensors take 0 bytes, the file has 1"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") "}", 5, "take 4 bytes, the file has 5"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") "}", 3, "expected begin <= end <= 3"},
        {"{\"a\":" T("F32", "[1]", "[4,8]") "}", 8, "expected data at offset 0"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("F32", "[1]", "[2,6]") "}", 6, "expected data at offset 4"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("F32", "[1]", "[5,9]") "}", 9, "expected data at offset 4"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("F32", "[1]", "[0,4]") "}", 4, "expected data at offset 4"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"a\":" T("F32", "[1]", "[4,8]") "}", 8, "header"},
        {"{\"a\":" T("F32", "[2]", "[0,4]") "}", 4, "need 64 bits, the offsets hold 4 bytes"},
        {"{\"a\":" T("F32", "[1]", "[4,0]") "}", 4, "expected begin <= end"},
        {"{\"a\":" T("F4", "[3]", "[0,1]") "}", 1, "need 12 bits"},
        {"{\"a\":" T("F99", "[1]", "[0,4]") "}", 4, "unknown dtype \"F99\""},
        {"{\"a\":" T("F32", "[-1]", "[0,4]") "}", 4, "expected a whole number"},
        {"{\"a\":" T("F32", "[1.0]", "[0,4]") "}", 4, "expected integer"},
        {"{\"a\":" T("F32", "[1]", "[0,4.5]") "}", 4, "expected integer"},
        {"{\"a\":" T("F32", "[1]", "[0]") "}", 4, "expected [begin, end]"},
        {"{\"a\":" T("F32", "[4611686018427387904,4]", "[0,0]") "}", 0, "past 64 bits"},
        {"{\"a\":" T("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, "at most 8 dimensions"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "expected a key \"data_offsets\""},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", 4, "found \"x\""},
        {"{\"a\":3}", 4, "tensor \"a\""},
        {"{\"__metadata__\":{\"a\":1}}", 0, "__metadata__"},
        {"{\"__metadata__\":[]}", 0, "__metadata__"},
        {"{\"a\":{\"dtype\":[[[[\"F32\"]]]]}}", 4, "header"},
        {"{\"\xff\":" T("F32", "[1]", "[0,4]") "}", 4, "header"},
    };
    ty_error err;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_error(parse(rows[i].header, rows[i].n_data, &err), err.code, rows[i].text);
        assert_non_null(strstr(err.place, "x.safetensors"));
    }
}

static void test_truncated_and_flipped(void **state)
{
    (void)state;
    ty_error err;
    ty_safetensors s;
    for (size_t n = 0; n < sizeof vector; n++)
        assert_int_equal(ty_safetensors_parse(vector, n, "x", &s, &err), -1);
    char bytes[sizeof vector];
    for (size_t i = 0; i < 8; i++) /* a wrong length of the header */
        for (int bit = 0; bit < 8; bit++) {
            memcpy(bytes, vector, sizeof bytes);
            bytes[i] ^= (char)(1 << bit);
            assert_int_equal(ty_safetensors_parse(bytes, sizeof bytes, "x", &s, &err), -1);
        }
}

/* Many tensors: neither writing nor reading may be quadratic. */
static void test_many(void **state)
{
    ty_error err;
    enum { N = 20000 };
    ty_named_tensor *list = calloc(N, sizeof *list);
    float data[1] = {1};
    for (int i = 0; i < N; i++) {
        char name[32];
        snprintf(name, sizeof name, "layer.%d.weight", i);
        list[i] = (ty_named_tensor){strdup(name), type_of(TY_F32, 1, 1, 0), data};
    }
    ty_safetensors s;
    assert_ok(ty_safetensors_write(in(state, "m"), list, N, NULL, 0, &err));
    assert_ok(ty_safetensors_open(in(state, "m"), &s, &err));
    assert_int_equal(s.n_entries, N);
    ty_safetensors_close(&s);
    for (int i = 0; i < N; i++)
        free((char *)list[i].name);
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_vector),        SCRATCH_TEST(test_order_and_metadata),
        SCRATCH_TEST(test_write_refused), cmocka_unit_test(test_valid),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_truncated_and_flipped),
        SCRATCH_TEST(test_many),
    };
    return cmocka_run_group_tests_name("output: safetensors", tests, NULL, NULL);
}
