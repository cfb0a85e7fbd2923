/* input_blocks.c - frames of records over blocks of bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "container/input/stream/cursor.h"
#include "input_files.h"

static ty_buf new_buf(void)
{
    ty_buf b;
    ty_buf_init(&b, 1 << 22);
    return b;
}

typedef struct heard {
    int64_t n;
    uint64_t hash;
    ty_error err;
} heard;

static void hear(heard *h, const uint8_t *data, size_t n, int64_t at)
{
    h->n++;
    h->hash = ty_fnv1a(ty_fnv1a(h->hash, data, n), &at, sizeof at);
}

static heard hear_whole(const ty_buf *b, ty_framing how)
{
    heard h = {.hash = TY_FNV_START};
    ty_frames f = {.bytes = (const uint8_t *)b->data, .n = b->len, .how = how, .unchecked = true};
    ty_frame r;
    while (ty_frames_next(&f, &r, &h.err) == 1)
        hear(&h, r.data, r.n, (int64_t)r.at);
    ty_frames_fini(&f);
    return h;
}

static heard hear_blocks(const char *path, size_t n, ty_framing how, size_t block_bytes)
{
    static const int first = 0;
    heard h = {.hash = TY_FNV_START};
    ty_data_file file = {path, path, (int64_t)n};
    ty_source_config config = {.files = &file, .which = &first, .n_files = 1, .block_bytes = block_bytes};
    ty_source *source;
    ty_cursor cursor = {.how = how};
    ty_cursor_record r;
    assert_ok(ty_source_open(&config, &source, &h.err), &h.err);
    ty_cursor_start(&cursor, source);
    while (ty_cursor_next(&cursor, &r, &h.err) == 1)
        hear(&h, r.data, r.n, r.at);
    ty_cursor_end(&cursor);
    return h;
}

static ty_buf framed(ty_framing how, size_t longest)
{
    static const uint8_t magic[4] = {0x0a, 0x23, 0xd7, 0xce};
    ty_buf b = new_buf();
    for (uint32_t i = 0; i < 40; i++) {
        size_t n = (size_t)(i * 2654435761u >> 8) % longest;
        uint64_t wide = n;
        uint32_t head = ty_crc32c_mask(ty_crc32c(0, &wide, 8)), kind = i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : 3;
        uint32_t word = kind << 29 | (uint32_t)n;
        if (how == TY_FRAMES_TFRECORD) {
            ty_buf_add(&b, &wide, 8);
            ty_buf_add(&b, &head, 4);
        } else if (how != TY_FRAMES_LINES) {
            ty_buf_add(&b, magic, 4);
            ty_buf_add(&b, &word, 4);
        }
        size_t padded = how == TY_FRAMES_TFRECORD ? n + 4 : how == TY_FRAMES_LINES ? n : (n + 3) / 4 * 4;
        for (size_t k = 0; k < padded; k++)
            ty_buf_addc(&b, (char)('a' + (i + k) % 26));
        if (how == TY_FRAMES_LINES)
            ty_buf_adds(&b, i % 4 ? "\n" : "\r\n");
    }
    return b;
}

/* Whole, damaged anywhere and cut anywhere: blocks of any size give the records and the error that memory gives. */
static void blocks_do_not_matter(void **state)
{
    (void)state;
    static const size_t blocks[] = {1, 7, 700, 5000}, longest[] = {30, 3000, 200000};
    for (int how = TY_FRAMES_TFRECORD; how <= TY_FRAMES_LINES; how++)
        for (int l = 0; l < 3; l++) {
            ty_buf b = framed((ty_framing)how, longest[l]);
            uint32_t random = 12345;
            for (int round = 0; round < 9; round++) {
                ty_buf damaged = new_buf();
                random = random * 1664525 + 1013904223;
                ty_buf_add(&damaged, b.data, round % 2 ? b.len : b.len - random % b.len);
                if (round % 3 == 1)
                    damaged.data[(random >> 4) % damaged.len] ^= 0x10;
                files_put("framed", damaged.data, damaged.len);
                heard whole = hear_whole(&damaged, (ty_framing)how);
                for (int k = 2 * l < 3 ? 2 * l : 3; k < 4; k++) {
                    heard parts = hear_blocks(files_path("framed"), damaged.len, (ty_framing)how, blocks[k]);
                    assert_int_equal(parts.n, whole.n);
                    assert_true(parts.hash == whole.hash);
                    assert_int_equal(parts.err.code, whole.err.code);
                    assert_string_equal(parts.err.message, whole.err.message);
                }
                ty_buf_fini(&damaged);
            }
            ty_buf_fini(&b);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_do_not_matter),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
