/* zip.c - archives written and read back, zip64, and everything that ty_zip_check refuses. Reading as such, deflated
 * members and damaged archives: input_arrays.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/zip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const ty_zip_limits LIMITS = {
    .max_entries = 100, .max_total_bytes = 1 << 20, .free_bytes = 1 << 12, .max_ratio = 100};

static int sink_buf(void *ctx, const void *bytes, size_t n, ty_error *err)
{
    return ty_buf_add(ctx, bytes, n) < 0 ? ty_error_set(err, TY_E_LIMIT, "full") : 0;
}

static void assert_says(const ty_error *err, const char *what)
{
    if (!strstr(err->message, what))
        fail_msg("\"%s\" does not say \"%s\"", err->message, what);
}

static void assert_member(const ty_zip *z, const char *name, const char *content)
{
    ty_zip_entry e;
    ty_error err = {0};
    bool found;
    const uint8_t *out;
    uint8_t *owned;
    assert_int_equal(ty_zip_find(z, name, &e, &found, &err), 0);
    assert_true(found);
    assert_int_equal(ty_zip_read(z, &e, 1 << 20, &out, &owned, &err), 0);
    assert_int_equal(e.plain_bytes, strlen(content));
    assert_memory_equal(out, content, strlen(content));
    free(owned);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    ty_buf out, again;
    ty_zip_writer w;
    ty_zip z;
    ty_zip_entry e;
    ty_error err = {0};
    bool found;
    ty_buf_init(&out, 1 << 16), ty_buf_init(&again, 1 << 16);
    ty_zip_writer_init(&w, sink_buf, &out);
    assert_int_equal(ty_zip_writer_add(&w, "metadata.json", TY_ZIP_NO_TIME, "{}", 2, &err), 0);
    assert_int_equal(ty_zip_writer_add(&w, "a/b.bin", 0x5b7a6321, "bytes", 5, &err), 0);
    assert_int_equal(ty_zip_writer_add(&w, "empty", TY_ZIP_NO_TIME, NULL, 0, &err), 0);
    assert_int_equal(ty_zip_writer_finish(&w, &err), 0);
    ty_zip_writer_fini(&w);
    assert_int_equal(ty_zip_open((uint8_t *)out.data, out.len, &z, &err), 0);
    assert_int_equal(ty_zip_check(&z, &LIMITS, &err), 0);
    assert_int_equal(z.n_entries, 3);
    assert_member(&z, "metadata.json", "{}");
    assert_member(&z, "a/b.bin", "bytes");
    assert_member(&z, "empty", "");
    assert_int_equal(ty_zip_find(&z, "a/b", &e, &found, &err), 0);
    assert_false(found);
    /* Copied member by member the archive is the same. */
    ty_zip_walk walk = {0};
    ty_zip_writer_init(&w, sink_buf, &again);
    while (ty_zip_next(&z, &walk, &e, &err) == 1)
        assert_int_equal(ty_zip_writer_copy(&w, &z, &e, &err), 0);
    assert_int_equal(ty_zip_writer_finish(&w, &err), 0);
    ty_zip_writer_fini(&w);
    assert_int_equal(again.len, out.len);
    assert_memory_equal(again.data, out.data, out.len);
    ty_buf_fini(&out), ty_buf_fini(&again);
}

static void many_members_need_zip64(void **state)
{
    (void)state;
    ty_buf out;
    ty_zip_writer w;
    ty_zip z;
    ty_zip_walk walk = {0};
    ty_zip_entry e;
    ty_error err = {0};
    int n = 0;
    ty_buf_init(&out, 16 << 20);
    ty_zip_writer_init(&w, sink_buf, &out);
    for (int i = 0; i < 66000; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        assert_int_equal(ty_zip_writer_add(&w, name, TY_ZIP_NO_TIME, NULL, 0, &err), 0);
    }
    assert_int_equal(ty_zip_writer_finish(&w, &err), 0);
    ty_zip_writer_fini(&w);
    assert_int_equal(ty_zip_open((uint8_t *)out.data, out.len, &z, &err), 0);
    while (ty_zip_next(&z, &walk, &e, &err) == 1)
        n++;
    assert_int_equal(n, 66000);
    assert_int_equal(ty_zip_check(&z, &LIMITS, &err), -1);
    assert_says(&err, "66000 members, at most 100");
    ty_buf_fini(&out);
}

/* An archive of more than 4 GiB in memory of which only headers are ever touched. */
typedef struct sparse {
    uint8_t *at;
    uint64_t n;
} sparse;

static int sink_sparse(void *ctx, const void *bytes, size_t n, ty_error *err)
{
    sparse *s = ctx;
    (void)err;
    if (n < 4096)
        memcpy(s->at + s->n, bytes, n);
    s->n += n;
    return 0;
}

static void members_beyond_4_gib_need_zip64(void **state)
{
    (void)state;
    const uint64_t large = (1ull << 32) + 4096, room = 2 * large + (1 << 20);
    uint8_t *memory = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint8_t *source =
        mmap(NULL, large + 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || source == MAP_FAILED)
        skip();
    memcpy(source, "PK\3\4", 4);
    ty_zip from = {.data = source, .n = large + 64};
    ty_zip_entry e = {.name = "large", .name_bytes = 5, .packed_bytes = large, .plain_bytes = large};
    sparse s = {.at = memory};
    ty_zip_writer w;
    ty_zip z;
    ty_zip_walk walk = {0};
    ty_error err = {0};
    ty_zip_writer_init(&w, sink_sparse, &s);
    assert_int_equal(ty_zip_writer_copy(&w, &from, &e, &err), 0);
    e.name = "again";
    assert_int_equal(ty_zip_writer_copy(&w, &from, &e, &err), 0);
    assert_int_equal(ty_zip_writer_add(&w, "small", TY_ZIP_NO_TIME, "x", 1, &err), 0);
    assert_int_equal(ty_zip_writer_finish(&w, &err), 0);
    ty_zip_writer_fini(&w);
    assert_int_equal(ty_zip_open(memory, s.n, &z, &err), 0);
    assert_int_equal(ty_zip_next(&z, &walk, &e, &err), 1);
    assert_true(e.plain_bytes == large && e.packed_bytes == large && e.header_at == 0);
    assert_int_equal(ty_zip_next(&z, &walk, &e, &err), 1);
    assert_true(e.plain_bytes == large && e.header_at > large);
    assert_member(&z, "small", "x");
    assert_int_equal(
        ty_zip_check(&z, &(ty_zip_limits){.max_entries = 9, .max_total_bytes = 1ull << 40, .max_ratio = 100}, &err), 0);
    munmap(memory, room);
    munmap(source, large + 64);
}

/* ---- refusals: an archive of one or two members, damaged in one way ---- */

static size_t build(uint8_t *b, size_t room, const char *first, const char *second)
{
    ty_buf out;
    ty_zip_writer w;
    ty_buf_init(&out, room);
    ty_zip_writer_init(&w, sink_buf, &out);
    ty_zip_writer_add(&w, first, TY_ZIP_NO_TIME, "one", 3, NULL);
    if (second)
        ty_zip_writer_add(&w, second, TY_ZIP_NO_TIME, "two", 3, NULL);
    assert_int_equal(ty_zip_writer_finish(&w, NULL), 0);
    ty_zip_writer_fini(&w);
    memcpy(b, out.data, out.len);
    size_t n = out.len;
    ty_buf_fini(&out);
    return n;
}

static void assert_refused(const uint8_t *b, size_t n, const ty_zip_limits *limits, const char *says)
{
    ty_zip z;
    ty_error err = {0};
    assert_int_equal(ty_zip_open(b, n, &z, &err), 0);
    assert_int_equal(ty_zip_check(&z, limits, &err), -1);
    assert_says(&err, says);
}

static void names_that_lead_astray_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *says;
    } rows[] = {{"/etc/passwd", "member \"/etc/passwd\": has an absolute name"},
                {"../x", "\"..\""},
                {"a/../../x", "\"..\""},
                {"a/..", "\"..\""},
                {"./x", "\".\""},
                {"a//x", "empty part"},
                {"a\\x", "backslash"},
                {"C:x", "drive"},
                {"a\nb", "control"},
                {"a\x7f", "control"},
                {"", "no name"}};
    uint8_t b[1024];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_refused(b, build(b, sizeof b, rows[i].name, NULL), &LIMITS, rows[i].says);
    size_t n = build(b, sizeof b, "a#b", NULL);
    for (size_t at = 0; at < n; at++)
        b[at] = b[at] == '#' ? 0 : b[at];
    assert_refused(b, n, &LIMITS, "NUL");
    static const char *const good[] = {"a", "a/b", "a/", "..a", "a..", ".hidden", "...", "\xc3\xa4.json"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ty_zip z;
        ty_error err = {0};
        assert_int_equal(ty_zip_open(b, build(b, sizeof b, good[i], NULL), &z, &err), 0);
        if (ty_zip_check(&z, &LIMITS, &err) < 0)
            fail_msg("\"%s\" is refused: %s", good[i], err.message);
    }
}

static uint8_t *record_of(uint8_t *b, size_t n)
{
    for (size_t at = 0; at + 4 < n; at++)
        if (memcmp(b + at, "PK\1\2", 4) == 0)
            return b + at;
    return NULL;
}

static void headers_that_contradict_are_refused(void **state)
{
    (void)state;
    uint8_t b[1024];
    assert_refused(b, build(b, sizeof b, "a", "a"), &LIMITS, "member \"a\": is there twice");
    size_t n = build(b, sizeof b, "a", "b");
    record_of(b, n)[41] = 0xa1; /* S_IFLNK */
    assert_refused(b, n, &LIMITS, "member \"a\": is a symbolic link");
    record_of(b, n)[41] = 0x21; /* S_IFCHR */
    assert_refused(b, n, &LIMITS, "a device");
    n = build(b, sizeof b, "a", "b");
    b[30] = 'c';
    assert_refused(b, n, &LIMITS, "another name in its own header");
    n = build(b, sizeof b, "a", "b");
    b[22] = 4;
    assert_refused(b, n, &LIMITS, "another method or size");
    b[22] = 3, b[8] = 8;
    assert_refused(b, n, &LIMITS, "another method or size");
    n = build(b, sizeof b, "a", "b");
    record_of(b, n)[10] = b[8] = 12;
    assert_refused(b, n, &LIMITS, "compression method 12");
    n = build(b, sizeof b, "a", "b");
    record_of(b, n)[20] = 20, record_of(b, n)[24] = b[22] = 20;
    assert_refused(b, n, &LIMITS, "shares bytes");
    n = build(b, sizeof b, "a", NULL);
    memmove(b + 16, b, n);
    uint8_t *end = b + 16 + n - 22, *record = record_of(b + 16, n);
    record[42] = 16, end[16] = (uint8_t)(end[16] + 16);
    assert_refused(b, n + 16, &LIMITS, "16 bytes stand in front");
}

static void sizes_beyond_limits_are_refused(void **state)
{
    (void)state;
    uint8_t b[1024];
    size_t n = build(b, sizeof b, "a", "b");
    ty_zip_limits few = LIMITS, small = LIMITS;
    few.max_entries = 1, small.max_total_bytes = 5;
    assert_refused(b, n, &few, "2 members, at most 1");
    assert_refused(b, n, &small, "member \"b\": 3 bytes bring all members beyond the limit of 5");
    /* 3 packed bytes that promise 4,097 */
    record_of(b, n)[25] = b[23] = 0x10, record_of(b, n)[24] = b[22] = 1, record_of(b, n)[10] = b[8] = 8;
    assert_refused(b, n, &LIMITS, "3 bytes would inflate to 4097, at most 100 times");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(many_members_need_zip64),
        cmocka_unit_test(members_beyond_4_gib_need_zip64),
        cmocka_unit_test(names_that_lead_astray_are_refused),
        cmocka_unit_test(headers_that_contradict_are_refused),
        cmocka_unit_test(sizes_beyond_limits_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
