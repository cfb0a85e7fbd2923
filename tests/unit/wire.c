/* The protobuf reader: what it takes, what it refuses and how it says so. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/import/wire.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct leaf {
    int64_t number;
    const char *name;
} leaf;

typedef struct tree {
    int64_t number;
    bool has_number;
    float ratio;
    const char *name;
    ty_bytes blob;
    leaf *one;
    struct tree *self;
    ty_wire_list ints, floats, doubles, names, leaves;
    ty_bytes raw;
} tree;

static const ty_wire_field leaf_fields[] = {
    {1, TY_WIRE_INT, offsetof(leaf, number), "number", NULL, 0},
    {2, TY_WIRE_TEXT, offsetof(leaf, name), "name", NULL, 0},
};
static const ty_wire_message leaf_message = {"Leaf", sizeof(leaf), leaf_fields, 2, TY_WIRE_NO_RAW};
static const ty_wire_message tree_message;
static const ty_wire_field tree_fields[] = {
    {1, TY_WIRE_INT, offsetof(tree, number), "number", NULL, offsetof(tree, has_number)},
    {2, TY_WIRE_FLOAT, offsetof(tree, ratio), "ratio", NULL, 0},
    {3, TY_WIRE_TEXT, offsetof(tree, name), "name", NULL, 0},
    {4, TY_WIRE_BYTES, offsetof(tree, blob), "blob", NULL, 0},
    {5, TY_WIRE_SUB, offsetof(tree, one), "one", &leaf_message, 0},
    {6, TY_WIRE_INTS, offsetof(tree, ints), "ints", NULL, 0},
    {7, TY_WIRE_FIXED32S, offsetof(tree, floats), "floats", NULL, 0},
    {8, TY_WIRE_FIXED64S, offsetof(tree, doubles), "doubles", NULL, 0},
    {9, TY_WIRE_TEXTS, offsetof(tree, names), "names", NULL, 0},
    {10, TY_WIRE_SUBS, offsetof(tree, leaves), "leaves", &leaf_message, 0},
    {11, TY_WIRE_SUB, offsetof(tree, self), "self", &tree_message, 0},
};
static const ty_wire_message tree_message = {"Tree", sizeof(tree), tree_fields, TY_WIRE_COUNT(tree_fields),
                                             offsetof(tree, raw)};

static ty_arena arena;

static int setup(void **state)
{
    (void)state;
    ty_arena_init(&arena);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ty_arena_fini(&arena);
    return 0;
}

/* Bytes are copied to memory of exactly their size, so that sanitizers see any step beyond. */
static int read_tree(const char *bytes, size_t n, tree *t, ty_error *err)
{
    memset(t, 0, sizeof *t);
    void *exact = ty_arena_copy(&arena, bytes, n);
    return ty_wire_read(&tree_message, (ty_bytes){exact, n}, &arena, 1 << 20, t, err);
}

#define READ(text, t, err) read_tree(text, sizeof(text) - 1, t, err)

static void test_scalars(void **state)
{
    (void)state;
    tree t;
    assert_int_equal(READ("\x08\x96\x01\x15\x00\x00\x80\x3f\x1a\x02hi\x22\x03\x01\x00\x02", &t, NULL), 0);
    assert_int_equal(t.number, 150);
    assert_true(t.has_number);
    assert_true(t.ratio == 1.0f);
    assert_string_equal(t.name, "hi");
    assert_int_equal(t.blob.n, 3);
    assert_int_equal(t.raw.n, 17);
}

static void test_absent_is_default(void **state)
{
    (void)state;
    tree t;
    assert_int_equal(READ("", &t, NULL), 0);
    assert_string_equal(t.name, "");
    assert_false(t.has_number);
    assert_null(t.one);
}

static void test_negative_and_last_wins(void **state)
{
    (void)state;
    tree t;
    assert_int_equal(READ("\x08\x05\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", &t, NULL), 0);
    assert_int_equal(t.number, -1);
}

static void test_packed_and_unpacked_mix(void **state)
{
    (void)state;
    tree t;
    assert_int_equal(READ("\x30\x01\x32\x03\x02\xac\x02\x30\x04", &t, NULL), 0);
    const int64_t *v = t.ints.data;
    assert_int_equal(t.ints.n, 4);
    assert_true(v[0] == 1 && v[1] == 2 && v[2] == 300 && v[3] == 4);
    assert_int_equal(READ("\x3d\x00\x00\x80\x3f\x3a\x08\x00\x00\x00\x40\x00\x00\x40\x40", &t, NULL), 0);
    float f[3];
    assert_int_equal(t.floats.n, 3);
    memcpy(f, t.floats.data, sizeof f);
    assert_true(f[0] == 1 && f[1] == 2 && f[2] == 3);
}

static void test_packed_floats_stay_in_place(void **state)
{
    (void)state;
    tree t;
    assert_int_equal(READ("\x3a\x04\x00\x00\x80\x3f", &t, NULL), 0);
    assert_int_equal(t.floats.n, 1);
    assert_ptr_equal(t.floats.data, t.raw.data + 2);
}

static void test_repeated_messages_interleave(void **state)
{
    (void)state;
    tree t;
    assert_int_equal(READ("\x52\x02\x08\x01\x4a\x01"
                          "a"
                          "\x52\x03\x12\x01"
                          "b"
                          "\x4a\x01"
                          "c",
                          &t, NULL),
                     0);
    assert_int_equal(t.leaves.n, 2);
    assert_int_equal(((const leaf *)t.leaves.data)[0].number, 1);
    assert_string_equal(((const leaf *)t.leaves.data)[1].name, "b");
    assert_string_equal(((const char *const *)t.names.data)[1], "c");
}

static void test_singular_message_merges(void **state)
{
    (void)state;
    tree t;
    assert_int_equal(READ("\x2a\x02\x08\x07\x2a\x03\x12\x01x", &t, NULL), 0);
    assert_int_equal(t.one->number, 7);
    assert_string_equal(t.one->name, "x");
}

static void test_unknown_fields_are_skipped(void **state)
{
    (void)state;
    tree t;
    assert_int_equal(READ("\xa0\x06\x01\xa1\x06"
                          "12345678"
                          "\xa2\x06\x02zz\xa5\x06"
                          "1234"
                          "\x08\x03",
                          &t, NULL),
                     0);
    assert_int_equal(t.number, 3);
}

static void expect_refusal(const char *bytes, size_t n, const char *message, const char *place)
{
    tree t;
    ty_error err = {0};
    assert_int_equal(read_tree(bytes, n, &t, &err), -1);
    assert_non_null(strstr(err.message, message));
    if (place)
        assert_string_equal(err.place, place);
}

static void test_refusals(void **state)
{
    (void)state;
#define REFUSE(bytes, message, place) expect_refusal(bytes, sizeof(bytes) - 1, message, place)
    REFUSE("\x08", "cut short", "byte 0");
    REFUSE("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "longer than 10 bytes", "byte 0");
    REFUSE("\x08\x01\x1a\x05xx", "claims 5 bytes where 2 are left", "byte 2");
    REFUSE("\x22\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "claims", "byte 0");
    REFUSE("\x00\x01", "field number 0", "byte 0");
    REFUSE("\x0b\x0c", "wire type 3", "byte 0");
    REFUSE("\x0e", "wire type 6", "byte 0");
    REFUSE("\x0a\x01"
           "a",
           "Tree.number: has the wrong wire type", "byte 0");
    REFUSE("\x1a\x03"
           "a\0b",
           "zero byte", "byte 2");
    REFUSE("\x32\x02\x01\x80", "packed numbers are cut short", "byte 0");
    REFUSE("\x2a\x01\x08\x2a\x01\x07", "one of its pieces is damaged", NULL);
    REFUSE("\x3a\x03"
           "abc",
           "no multiple", "byte 0");
    REFUSE("\x32\x0b\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "longer than 10 bytes", "byte 0");
}

/* Nested 30,000 deep, such a file kills parsers that recurse without a limit. */
static void test_nesting_ends_at_100(void **state)
{
    (void)state;
    enum { LEVELS = 30000 };
    uint8_t *bytes = malloc(LEVELS * 5);
    size_t n = 0, at = LEVELS * 5;
    for (int i = 0; i < LEVELS; i++) {
        uint8_t head[TY_WIRE_HEAD_BYTES];
        size_t len = ty_wire_put_head(head, 11, n);
        at -= len;
        memcpy(bytes + at, head, len);
        n += len;
    }
    expect_refusal((const char *)bytes + at, n, "deeper than 100", NULL);
    free(bytes);
}

static void test_memory_is_bounded(void **state)
{
    (void)state;
    char bytes[4000];
    tree t;
    ty_error err = {0};
    for (size_t i = 0; i < sizeof bytes; i += 2)
        memcpy(bytes + i, "\x52\x00", 2);
    memset(&t, 0, sizeof t);
    assert_int_equal(ty_wire_read(&tree_message, (ty_bytes){(uint8_t *)bytes, sizeof bytes}, &arena, 4096, &t, &err),
                     -1);
    assert_int_equal(err.code, TY_E_LIMIT);
}

static void test_writing(void **state)
{
    (void)state;
    static const uint64_t values[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        uint8_t out[TY_WIRE_HEAD_BYTES];
        assert_int_equal(ty_wire_put_varint(out, values[i]), ty_wire_varint_bytes(values[i]));
    }
    uint8_t head[TY_WIRE_HEAD_BYTES];
    assert_int_equal(ty_wire_put_head(head, 7, 300), 3);
    assert_memory_equal(head, "\x3a\xac\x02", 3);
    assert_int_equal(ty_wire_head_bytes(7, 300), 3);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_scalars),
        TEST(test_absent_is_default),
        TEST(test_negative_and_last_wins),
        TEST(test_packed_and_unpacked_mix),
        TEST(test_packed_floats_stay_in_place),
        TEST(test_repeated_messages_interleave),
        TEST(test_singular_message_merges),
        TEST(test_unknown_fields_are_skipped),
        TEST(test_refusals),
        TEST(test_nesting_ends_at_100),
        TEST(test_memory_is_bounded),
        TEST(test_writing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
