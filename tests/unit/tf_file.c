/* What TensorFlow's files are made of: the checkpoint's index, Snappy, the fingerprint's hash, TensorProto. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/import/tensorflow/tf_farmhash.h"
#include "compiler/import/tensorflow/tf_proto.h"
#include "compiler/import/tensorflow/tf_table.h"

#include <string.h>

/* The index of a checkpoint with `step` (int64) and `w` (float32 [2]), as TensorFlow writes it. */
static const uint8_t index_file[] = {
    0x00, 0x00, 0x06, 0x08, 0x01, 0x1a, 0x02, 0x08, 0x01, 0x00, 0x04, 0x0b, 0x73, 0x74, 0x65, 0x70, 0x08, 0x09,
    0x12, 0x00, 0x28, 0x08, 0x35, 0xbb, 0xd7, 0x9f, 0x11, 0x00, 0x01, 0x11, 0x77, 0x08, 0x01, 0x12, 0x04, 0x12,
    0x02, 0x08, 0x02, 0x20, 0x08, 0x28, 0x08, 0x35, 0x45, 0x3f, 0x16, 0x88, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00,
    0x00, 0x00, 0x00, 0xfd, 0xbd, 0x40, 0x19, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0xc0, 0xf2,
    0xa1, 0xb0, 0x00, 0x01, 0x02, 0x78, 0x00, 0x38, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0xaf,
    0x80, 0x49, 0xf0, 0x3d, 0x08, 0x4a, 0x0e, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb};

static void test_table(void **state)
{
    (void)state;
    ty_arena arena;
    tf_table t;
    ty_error err = {0};
    ty_arena_init(&arena);
    assert_int_equal(tf_table_read((ty_bytes){index_file, sizeof index_file}, &arena, &t, &err), 0);
    assert_int_equal(t.n_rows, 3);
    assert_int_equal(t.row[0].key.n, 0);
    assert_string_equal((const char *)t.row[1].key.data, "step");
    assert_string_equal((const char *)t.row[2].key.data, "w");
    const uint8_t *block = t.block[0].data;
    ty_bytes again = tf_table_write(&t, &block, &arena);
    assert_int_equal(again.n, sizeof index_file);
    assert_memory_equal(again.data, index_file, sizeof index_file);
    ty_arena_fini(&arena);
}

/* No byte may change, and no end may be missing, unseen: but the padding, which says nothing. */
static void test_table_damaged(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof index_file; i++) {
        uint8_t bytes[sizeof index_file];
        ty_arena arena;
        tf_table t;
        ty_error err = {0};
        ty_arena_init(&arena);
        memcpy(bytes, index_file, sizeof bytes);
        bytes[i] ^= 0x40;
        bool is_padding = i >= 97 && i < sizeof index_file - 8;
        assert_int_equal(tf_table_read((ty_bytes){bytes, sizeof bytes}, &arena, &t, &err), is_padding ? 0 : -1);
        assert_int_equal(tf_table_read((ty_bytes){index_file, i}, &arena, &t, &err), -1);
        assert_true(err.message[0]);
        ty_arena_fini(&arena);
    }
}

static void test_snappy(void **state)
{
    (void)state;
    static const uint8_t packed[] = {0x0c, 0x08, 'a', 'b', 'c', 0x16, 0x03, 0x00, 0x08, 'x', 'y', 'z'};
    static const uint8_t beyond[] = {0x0c, 0x08, 'a', 'b', 'c', 0x16, 0x04, 0x00};
    ty_arena arena;
    ty_bytes out;
    ty_arena_init(&arena);
    assert_true(tf_snappy_read((ty_bytes){packed, sizeof packed}, &arena, &out));
    assert_int_equal(out.n, 12);
    assert_memory_equal(out.data, "abcabcabcxyz", 12);
    assert_false(tf_snappy_read((ty_bytes){beyond, sizeof beyond}, &arena, &out));
    assert_false(tf_snappy_read((ty_bytes){packed, sizeof packed - 1}, &arena, &out));
    assert_false(tf_snappy_read((ty_bytes){(const uint8_t *)"\xff\xff\xff\xff\x0f", 5}, &arena, &out));
    ty_arena_fini(&arena);
}

/* By tf.fingerprint of TensorFlow 2.21 on bytes (37 i + 11) mod 256. */
static void test_farmhash(void **state)
{
    (void)state;
    static const struct {
        size_t n;
        uint64_t hash;
    } known[] = {
        {0, UINT64_C(0x9ae16a3b2f90404f)},   {1, UINT64_C(0x4271b80e2915c76a)},    {3, UINT64_C(0x373a2b2a12e0c581)},
        {4, UINT64_C(0xcc1e778137ae6d69)},   {7, UINT64_C(0x960838fbc6d9c975)},    {8, UINT64_C(0x7d507025ed4eecfd)},
        {12, UINT64_C(0x12a0d52d6f922439)},  {16, UINT64_C(0xd836480326a974d6)},   {17, UINT64_C(0x5cded6cb65c9dac6)},
        {31, UINT64_C(0x52a467e87c92d522)},  {32, UINT64_C(0xa03300e1b2be6da7)},   {33, UINT64_C(0x839154ca67815696)},
        {63, UINT64_C(0x7cf64a4bd1b2b67e)},  {64, UINT64_C(0x000f03eac52d3535)},   {65, UINT64_C(0xfb360c5023f60db6)},
        {127, UINT64_C(0xd70e348fcbf64d04)}, {128, UINT64_C(0x33ef435f17af1739)},  {129, UINT64_C(0xc30a81b637d2e4dd)},
        {200, UINT64_C(0x51320a19a60cbd6e)}, {1000, UINT64_C(0xc6dbd344bb8f49f4)},
    };
    uint8_t bytes[1000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37 + 11);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_true(tf_farmhash(bytes, known[i].n) == known[i].hash);
}

static int read_tensor(const void *bytes, size_t n, ty_arena *arena, ty_type *type, const void **data, ty_error *err)
{
    tf_tensor *t = TY_NEW(arena, tf_tensor);
    assert_int_equal(tf_read(&tf_tensor_message, (ty_bytes){bytes, n}, arena, t, err), 0);
    return tf_tensor_value(t, arena, type, data, err);
}

/* A list that is shorter than the shape goes on with its last element. */
static void test_tensor(void **state)
{
    (void)state;
    static const uint8_t spread[] = {0x08, 3, 0x12, 4, 0x12, 2, 0x08, 4, 0x3a, 2, 5, 7};
    static const uint8_t too_many[] = {0x08, 3, 0x12, 4, 0x12, 2, 0x08, 1, 0x3a, 2, 5, 7};
    static const uint8_t huge[] = {0x08, 3, 0x12, 8, 0x12, 6, 0x08, 0x80, 0x80, 0x80, 0x80, 0x7f, 0x3a, 1, 5};
    static const int32_t expected[] = {5, 7, 7, 7};
    ty_arena arena;
    ty_type type;
    const void *data;
    ty_error err = {0};
    ty_arena_init(&arena);
    assert_int_equal(read_tensor(spread, sizeof spread, &arena, &type, &data, &err), 0);
    assert_int_equal(ty_type_elems(&type), 4);
    assert_memory_equal(data, expected, sizeof expected);
    assert_int_equal(read_tensor(too_many, sizeof too_many, &arena, &type, &data, &err), -1);
    assert_int_equal(read_tensor(huge, sizeof huge, &arena, &type, &data, &err), -1);
    ty_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),    cmocka_unit_test(test_table_damaged), cmocka_unit_test(test_snappy),
        cmocka_unit_test(test_farmhash), cmocka_unit_test(test_tensor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
