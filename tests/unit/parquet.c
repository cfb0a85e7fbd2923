/* parquet.c - Parquet files of several writers, value by value as pyarrow reads them (tests/golden/parquet), and what
 * is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/input/parquet/bits.h"
#include "container/input/parquet/parquet.h"
#include "container/input/parquet/thrift.h"
#include "golden_file.h"
#include "parquet_spelled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 22 };

static void golden(const char *name, ty_buf *out)
{
    golden_read("parquet", name, out);
}

/* ---- as pyarrow ---- */

/* Memory goes from one column to the next. */
static void spell_file(const char *name, const parquet_file *f, ty_buf *out)
{
    parquet_room room = {0};
    parquet_values v = {0};
    for (int c = 0; c < f->n_columns; c++) {
        if (f->column[c].odd)
            continue;
        ty_buf_addf(out, "%s:", f->column[c].name);
        for (int g = 0; g < f->n_groups; g++) {
            ty_error err = {0};
            if (parquet_read(f, g, c, 0, &room, &v, &err) < 0)
                fail_msg("%s: group %d: %s", name, g, err.message);
            assert_int_equal(v.n_rows, f->group[g].n_rows);
            spell_rows(&v, out);
        }
        ty_buf_adds(out, f->n_rows == 0 ? " \n" : "\n");
    }
    ty_buf_addc(out, 0);
    parquet_values_fini(&v);
    parquet_room_fini(&room);
}

static const char *const files[][2] = {
    {"plain.parquet", "types.txt"},
    {"snappy.parquet", "types.txt"},
    {"gzip.parquet", "types.txt"},
    {"brotli.parquet", "types.txt"},
    {"zstd.parquet", "types.txt"},
    {"lz4.parquet", "types.txt"},
    {"delta.parquet", "types.txt"},
    {"split.parquet", "types.txt"},
    {"one_group.parquet", "types.txt"},
    {"int96.parquet", "int96.parquet.txt"},
    {"empty.parquet", "empty.parquet.txt"},
    {"polars.parquet", "polars.parquet.txt"},
    {"fastparquet.parquet", "fastparquet.parquet.txt"},
    {"duckdb.parquet", "duckdb.parquet.txt"},
    {"nested.parquet", "nested.parquet.txt"},
};
#define N_FILES (sizeof files / sizeof files[0])

static void values_are_as_pyarrow_reads_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_FILES; i++) {
        ty_buf bytes, expected, found;
        ty_arena a;
        parquet_file f;
        ty_error err = {0};
        golden(files[i][0], &bytes), golden(files[i][1], &expected);
        ty_buf_addc(&expected, 0);
        ty_buf_init(&found, MAX_BYTES);
        ty_arena_init(&a);
        if (parquet_open((const uint8_t *)bytes.data, bytes.len, &a, &f, &err) < 0)
            fail_msg("%s: %s", files[i][0], err.message);
        spell_file(files[i][0], &f, &found);
        compare_lines(files[i][0], found.data, expected.data);
        ty_arena_fini(&a);
        ty_buf_fini(&bytes), ty_buf_fini(&expected), ty_buf_fini(&found);
    }
}

static void some_rows_take_some_pages(void **state)
{
    static const char *const names[] = {"i64", "text", "ids"};
    ty_buf bytes;
    ty_arena a;
    parquet_file f;
    parquet_room room = {0};
    ty_error err = {0};
    (void)state;
    golden("plain.parquet", &bytes);
    ty_arena_init(&a);
    assert_int_equal(parquet_open((const uint8_t *)bytes.data, bytes.len, &a, &f, &err), 0);
    for (int i = 0; i < 3; i++)
        for (int c = 0; c < f.n_columns; c++) {
            parquet_values v = {0};
            if (strcmp(f.column[c].name, names[i]) != 0)
                continue;
            assert_int_equal(parquet_read(&f, 0, c, 2, &room, &v, &err), 0);
            if (v.n_rows < 2 || v.n_rows >= f.group[0].n_rows)
                fail_msg("%s: %d rows", names[i], (int)v.n_rows);
            parquet_values_fini(&v);
        }
    parquet_room_fini(&room);
    ty_arena_fini(&a);
    ty_buf_fini(&bytes);
}

/* ---- refusals ---- */

static const struct refused {
    const char *bytes;
    size_t n;
    const char *says;
} refused[] = {
    {"", 0, "it does not begin with PAR1"},
    {"PAR2PAR1....PAR1", 16, "it does not begin with PAR1"},
    {"PARE\0\0\0\0PARE", 12, "is encrypted"},
    {"PAR1", 4, "does not end with PAR1"},
    {"PAR1\0\0\0\0PAR", 11, "does not end with PAR1"},
    {"PAR1\1\0\0\0PAR1", 12, "it is longer than the file"},
    {"PAR1\0\0\0\0PAR1", 12, "it ends early"},
    {"PAR1\0\1\0\0\0PAR1", 13, "it ends early"},
    /* field 2: a list of one struct without children: a schema without columns */
    {"PAR1\x29\x1c\x48\1r\x15\0\0\0\x09\0\0\0PAR1", 21, "it has no columns"},
    /* the same with 3 children that are not there */
    {"PAR1\x29\x1c\x48\1r\x15\6\0\0\x09\0\0\0PAR1", 21, "fewer elements than it says"},
    {"PAR1\x29\xfc\xff\xff\xff\xff\7\0\x08\0\0\0PAR1", 20, "it has no schema"},
};

static void what_is_no_parquet_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        ty_arena a;
        parquet_file f;
        ty_error err = {0};
        ty_arena_init(&a);
        assert_int_equal(parquet_open((const uint8_t *)refused[i].bytes, refused[i].n, &a, &f, &err), -1);
        if (strstr(err.message, refused[i].says) == NULL)
            fail_msg("expected \"%s\", found \"%s\"", refused[i].says, err.message);
        ty_arena_fini(&a);
    }
}

/* Reads all of it; 0: nothing was found to be wrong. */
static int read_all(const uint8_t *bytes, size_t n, ty_error *err)
{
    ty_arena a;
    parquet_file f;
    parquet_room room = {0};
    ty_arena_init(&a);
    int rc = parquet_open(bytes, n, &a, &f, err);
    for (int g = 0; rc == 0 && g < f.n_groups; g++)
        for (int c = 0; rc == 0 && c < f.n_columns; c++) {
            parquet_values v = {0};
            if (!f.column[c].odd && (rc = parquet_read(&f, g, c, 0, &room, &v, err)) == 0)
                parquet_values_fini(&v);
        }
    parquet_room_fini(&room);
    ty_arena_fini(&a);
    return rc;
}

static void damaged_bytes_are_found(void **state)
{
    static const char *const some[] = {"plain.parquet", "snappy.parquet", "gzip.parquet", "delta.parquet",
                                       "lz4.parquet"};
    (void)state;
    for (int i = 0; i < 5; i++) {
        ty_buf bytes;
        int n_found = 0, n_tried = 0;
        golden(some[i], &bytes);
        uint8_t *p = malloc(bytes.len);
        for (size_t at = 5; at < bytes.len; at += 61, n_tried++) {
            ty_error err = {0};
            memcpy(p, bytes.data, bytes.len);
            p[at] ^= (uint8_t)(1 << at % 8);
            if (read_all(p, bytes.len, &err) < 0) {
                assert_true(err.code != TY_E_NONE && err.code != TY_E_INTERNAL && err.message[0]);
                n_found++;
            }
        }
        if (n_found * 3 <
            n_tried) /* pages have checksums; much of the footer (names, statistics) is nobody's business */
            fail_msg("%s: %d of %d", some[i], n_found, n_tried);
        for (size_t n = 0; n < bytes.len; n += 97) {
            ty_error err = {0};
            assert_int_equal(read_all((const uint8_t *)bytes.data, n, &err), -1);
        }
        free(p);
        ty_buf_fini(&bytes);
    }
}

/* ---- bits ---- */

static void runs_and_groups_are_mixed(void **state)
{
    /* Encodings.md's example of 0 to 7 in three bits, between runs */
    static const uint8_t bytes[] = {5 << 1, 3, 1 << 1 | 1, 0x88, 0xc6, 0xfa, 2 << 1, 7};
    const uint8_t *p = bytes, *end = bytes + sizeof bytes;
    uint32_t v[15];
    (void)state;
    assert_true(bits_hybrid(&p, end, 3, 15, v));
    for (uint32_t i = 0; i < 15; i++)
        assert_int_equal(v[i], i < 5 ? 3 : i < 13 ? i - 5 : 7);
    assert_ptr_equal(p, end);
    p = bytes;
    assert_false(bits_hybrid(&p, end, 3, 16, v));
    p = bytes;
    assert_false(bits_hybrid(&p, end - 3, 3, 13, v));
    static const uint8_t none[] = {0, 0};
    p = none;
    assert_false(bits_hybrid(&p, none + 2, 3, 1, v));
    assert_int_equal(bits_width(0), 0);
    assert_int_equal(bits_width(1), 1);
    assert_int_equal(bits_width(7), 3);
    assert_int_equal(bits_width(8), 4);
}

static void differences_are_added(void **state)
{
    /* Encodings.md: 7, 5, 3, 1, 2, 3, 4, 5: a first value of 7, the least difference -2, then 0 0 0 3 3 3 3 in two bits
     */
    static const uint8_t bytes[] = {0x80, 1, 4, 8, 14, 3, 2, 0, 0, 0, 0xc0, 0x3f, 0, 0, 0, 0, 0, 0};
    const int64_t expected[] = {7, 5, 3, 1, 2, 3, 4, 5};
    const uint8_t *p = bytes, *end = bytes + sizeof bytes;
    int64_t v[9];
    (void)state;
    assert_true(bits_delta(&p, end, 8, v));
    assert_memory_equal(v, expected, sizeof expected);
    p = bytes;
    assert_false(bits_delta(&p, end, 9, v));
    p = bytes;
    assert_false(bits_delta(&p, bytes + 11, 8, v));
}

static void structs_are_skipped_and_end(void **state)
{
    /* 1: {2: [true, false]}, 5: "ab", 9: a map of one, then the end; and 40 structs in each other */
    static const uint8_t bytes[] = {0x1c, 0x29, 0x21, 1, 2, 0, 0x48, 2, 'a', 'b', 0x4b, 1, 0x58, 4, 1, 'x', 0};
    uint8_t deep[80];
    thrift t = {.p = bytes, .end = bytes + sizeof bytes};
    thrift_field f = {0};
    int n = 0;
    (void)state;
    while (thrift_next(&t, &f)) {
        n = 10 * n + f.id;
        thrift_skip(&t, f.type);
    }
    assert_true(!t.failed && n == 159 && t.p == t.end);
    memset(deep, 0x1c, 40), memset(deep + 40, 0, 40);
    t = (thrift){.p = deep, .end = deep + sizeof deep};
    f = (thrift_field){0};
    assert_true(thrift_next(&t, &f));
    thrift_skip(&t, f.type);
    assert_true(t.failed && !thrift_next(&t, &f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_as_pyarrow_reads_them), cmocka_unit_test(some_rows_take_some_pages),
        cmocka_unit_test(what_is_no_parquet_is_refused),    cmocka_unit_test(damaged_bytes_are_found),
        cmocka_unit_test(runs_and_groups_are_mixed),        cmocka_unit_test(differences_are_added),
        cmocka_unit_test(structs_are_skipped_and_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
