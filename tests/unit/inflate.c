/* inflate.c - gzip, zlib and Zstandard in pieces of any size; cut, damaged, too large, followed by something else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/input/bytes.h"
#include "container/input/inflate.h"
#include "input_files.h"

#include <zlib.h>

/* 60 lines "line N of a text that is squeezed" with N = 0..6, as `zstd --check` writes them: the first 1000 bytes, a
 * frame to be skipped, the rest. */
/* clang-format off */
static const uint8_t zstd_frames[] = {
    40, 181, 47, 253, 4, 88, 205, 3, 0, 66, 196, 14, 21, 144, 53, 121, 91, 182, 25, 216, 144, 31, 62, 164, 187,
    203, 38, 69, 136, 179, 235, 173, 140, 3, 69, 154, 120, 86, 164, 137, 103, 69, 154, 120, 86, 164, 137, 103,
    245, 53, 92, 2, 97, 3, 187, 135, 113, 126, 248, 77, 136, 126, 3, 182, 79, 62, 20, 167, 175, 225, 18, 29, 0,
    128, 16, 48, 30, 24, 25, 24, 5, 140, 7, 70, 6, 70, 1, 227, 129, 145, 129, 81, 192, 120, 96, 100, 96, 20, 48,
    30, 24, 25, 24, 5, 140, 7, 70, 6, 70, 1, 227, 129, 145, 129, 81, 192, 120, 96, 100, 96, 20, 48, 30, 24, 25,
    24, 5, 202, 168, 202, 12, 4, 19, 105, 80, 42, 77, 24, 3, 0, 0, 0, 1, 2, 3, 40, 181, 47, 253, 4, 88, 245, 3, 0,
    244, 3, 120, 116, 32, 116, 104, 97, 116, 32, 105, 115, 32, 115, 113, 117, 101, 101, 122, 101, 100, 10, 108,
    105, 110, 101, 32, 50, 32, 111, 102, 32, 97, 32, 116, 101, 51, 52, 53, 54, 48, 49, 50, 51, 52, 53, 54, 48, 49,
    50, 51, 52, 53, 54, 48, 49, 50, 51, 52, 53, 54, 48, 49, 50, 51, 30, 0, 128, 17, 48, 30, 24, 25, 24, 5, 140, 7,
    70, 6, 70, 1, 227, 129, 145, 129, 81, 192, 120, 96, 100, 96, 20, 48, 30, 24, 25, 24, 5, 140, 7, 70, 6, 70, 1,
    227, 129, 145, 129, 81, 192, 120, 96, 100, 96, 20, 48, 30, 24, 25, 24, 5, 140, 87, 101, 81, 79, 21, 114, 202,
    189,
};
/* clang-format on */

static uint8_t plain[4096];
static size_t n_plain;

typedef struct squeezed {
    ty_packing packing;
    uint8_t bytes[4096];
    size_t n;
} squeezed;

static void deflate_to(squeezed *s, const uint8_t *from, size_t n, int window_bits)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)from;
    z.avail_in = (uInt)n;
    z.next_out = s->bytes + s->n;
    z.avail_out = (uInt)(sizeof s->bytes - s->n);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    s->n += z.total_out;
    deflateEnd(&z);
}

static squeezed squeeze(ty_packing packing)
{
    squeezed s = {.packing = packing};
    if (packing == TY_PACKING_ZSTD) {
        memcpy(s.bytes, zstd_frames, s.n = sizeof zstd_frames);
    } else if (packing == TY_PACKING_ZLIB) {
        deflate_to(&s, plain, n_plain, 15);
    } else {
        deflate_to(&s, plain, 1000, 31);
        deflate_to(&s, plain + 1000, n_plain - 1000, 31);
    }
    return s;
}

static const ty_packing packings[] = {TY_PACKING_GZIP, TY_PACKING_ZLIB, TY_PACKING_ZSTD};
enum { N_PACKINGS = sizeof packings / sizeof packings[0] };

static int setup(void **state)
{
    for (int i = 0; i < 60; i++)
        n_plain += (size_t)sprintf((char *)plain + n_plain, "line %d of a text that is squeezed\n", i % 7);
    return files_setup(state);
}

/* Feeds pieces of n_piece bytes and takes pieces of n_take; -1 as the calls. */
static int inflate_in_pieces(const squeezed *s, size_t n_piece, size_t n_take, uint64_t max, uint8_t *out,
                             size_t *n_out, ty_error *err)
{
    ty_inflate z;
    size_t at = 0, n = 0;
    *n_out = 0;
    if (ty_inflate_init(&z, s->packing, max, err) < 0)
        return -1;
    int rc;
    while ((rc = ty_inflate_take(&z, out + *n_out, n_take, &n, err)) == 0) {
        *n_out += n;
        assert_true(*n_out <= n_plain);
        if (n == n_take)
            continue;
        if (at == s->n)
            break;
        size_t piece = n_piece < s->n - at ? n_piece : s->n - at;
        ty_inflate_feed(&z, s->bytes + at, piece);
        at += piece;
    }
    rc = rc == 0 ? ty_inflate_end(&z, err) : rc;
    ty_inflate_fini(&z);
    return rc;
}

static void pieces_of_any_size_give_the_same(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 3, 7, 100, 1 << 20};
    static uint8_t out[8192 + (1 << 20)];
    for (int k = 0; k < N_PACKINGS; k++) {
        squeezed s = squeeze(packings[k]);
        assert_int_equal(ty_packing_of(s.bytes, s.n), packings[k]);
        for (size_t i = 0; i < 6; i++)
            for (size_t j = 0; j < 6; j++) {
                size_t n;
                ty_error err = {0};
                assert_ok(inflate_in_pieces(&s, sizes[i], sizes[j], 0, out, &n, &err), &err);
                assert_int_equal(n, n_plain);
                assert_memory_equal(out, plain, n_plain);
            }
    }
}

/* Declares 15,616 bytes, and ends with an empty block: in pieces the library says nothing. */
static void a_frame_gives_what_it_declares(void **state)
{
    (void)state;
    static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x60, 0, 0x3b, 1, 0, 0};
    squeezed s = {.packing = TY_PACKING_ZSTD, .n = sizeof frame};
    uint8_t out[64];
    memcpy(s.bytes, frame, sizeof frame);
    for (size_t piece = 1; piece <= sizeof frame; piece++) {
        size_t n;
        ty_error err = {0};
        assert_int_equal(inflate_in_pieces(&s, piece, 8, 0, out, &n, &err), -1);
        assert_int_equal(err.code, TY_E_DATA);
    }
}

static void what_is_cut_off_is_refused(void **state)
{
    (void)state;
    uint8_t out[8192];
    for (int k = 0; k < N_PACKINGS; k++) {
        const squeezed whole = squeeze(packings[k]);
        for (size_t n = 1, n_out; n < whole.n; n++) {
            squeezed s = whole;
            s.n = n;
            ty_error err = {0};
            int rc = inflate_in_pieces(&s, 50, 1000, 0, out, &n_out, &err);
            if (rc == 0) { /* between members, and in front of and behind what is skipped */
                assert_true(packings[k] != TY_PACKING_ZLIB && n_out == 1000);
                continue;
            }
            assert_int_equal(err.code, TY_E_DATA);
            assert_says(&err, "unexpected end");
            assert_says(&err, ty_packing_name(packings[k]));
        }
    }
}

static void damage_is_refused_or_harmless(void **state)
{
    (void)state;
    uint8_t out[8192];
    for (int k = 0; k < N_PACKINGS; k++) {
        const squeezed whole = squeeze(packings[k]);
        int n_refused = 0;
        for (size_t at = 0, n_out; at < whole.n; at++) {
            squeezed s = whole;
            s.bytes[at] ^= 0x10;
            ty_error err = {0};
            if (inflate_in_pieces(&s, 64, 512, n_plain, out, &n_out, &err) < 0)
                n_refused++, assert_true(err.code == TY_E_DATA || err.code == TY_E_LIMIT);
            else /* a header's time, a window's size, bytes that are skipped */
                assert_memory_equal(out, plain, n_out);
        }
        assert_true(n_refused > (int)whole.n * 3 / 4);
    }
}

static void the_limit_is_exact(void **state)
{
    (void)state;
    uint8_t out[8192];
    for (int k = 0; k < N_PACKINGS; k++) {
        squeezed s = squeeze(packings[k]);
        size_t n;
        ty_error err = {0};
        assert_ok(inflate_in_pieces(&s, 10, 4096, n_plain, out, &n, &err), &err);
        assert_int_equal(inflate_in_pieces(&s, 10, 4096, n_plain - 1, out, &n, &err), -1);
        assert_int_equal(err.code, TY_E_LIMIT);
        assert_says(&err, "grow past the limit of");
    }
}

static void foreign_bytes_behind_the_end_are_refused(void **state)
{
    (void)state;
    uint8_t out[8192];
    for (int k = 0; k < N_PACKINGS; k++) {
        squeezed s = squeeze(packings[k]);
        size_t n;
        ty_error err = {0};
        memcpy(s.bytes + s.n, "tail", 4);
        s.n += 4;
        assert_int_equal(inflate_in_pieces(&s, 1 << 20, 1 << 12, 0, out, &n, &err), -1);
        assert_int_equal(err.code, TY_E_DATA);
        assert_says(&err, "follow the last member, at byte");
    }
}

/* Data that begin like zlib's two bytes, and are not. */
static void weak_evidence_is_held_against_what_follows(void **state)
{
    (void)state;
    static const uint8_t record[] = {0x78, 0x01, 0, 0, 0, 0, 0, 0, 0x9c, 0x13, 0xc4, 0x7a, 10, 200, 1};
    static const uint8_t ids[] = {0x78, 0x9c, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0};
    assert_int_equal(ty_packing_of(record, sizeof record), TY_PACKING_NONE);
    assert_int_equal(ty_packing_of(ids, sizeof ids), TY_PACKING_NONE);
    assert_int_equal(ty_packing_of((const uint8_t *)"x^2 + y^2 = z^2\n", 16), TY_PACKING_NONE);
    assert_int_equal(ty_packing_of((const uint8_t *)"", 0), TY_PACKING_NONE);
    assert_int_equal(ty_packing_suffix("a.csv.gz"), 3);
    assert_int_equal(ty_packing_suffix("a.tfrecord.ZST"), 4);
    assert_int_equal(ty_packing_suffix(".gz"), 0);
    assert_int_equal(ty_packing_suffix("a.csv"), 0);
}

static void files_are_known_by_their_bytes_not_their_names(void **state)
{
    (void)state;
    for (int k = 0; k < N_PACKINGS; k++) {
        squeezed s = squeeze(packings[k]);
        ty_bytes b;
        ty_error err = {0};
        uint8_t head[4096];
        files_put("named-anyhow", s.bytes, s.n);
        assert_ok(ty_bytes_open(files_path("named-anyhow"), NULL, &b, &err), &err);
        assert_int_equal(b.n, n_plain);
        assert_memory_equal(b.data, plain, n_plain);
        assert_int_equal(b.file_bytes, s.n);
        ty_bytes_close(&b);
        ty_bytes_options options = {.max_inflated_bytes = n_plain - 1};
        assert_int_equal(ty_bytes_open(files_path("named-anyhow"), &options, &b, &err), -1);
        assert_says(&err, "named-anyhow");
        assert_int_equal(ty_bytes_head(files_path("named-anyhow"), head, 100), 100);
        assert_memory_equal(head, plain, 100);
        assert_int_equal(ty_bytes_head(files_path("named-anyhow"), head, sizeof head), n_plain);
    }
    files_puts("short", "abc");
    uint8_t head[8];
    assert_int_equal(ty_bytes_head(files_path("short"), head, sizeof head), 3);
    assert_int_equal(ty_bytes_head(files_path("absent"), head, sizeof head), 0);
    assert_int_equal(ty_bytes_head(files_folder, head, sizeof head), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_any_size_give_the_same),
        cmocka_unit_test(a_frame_gives_what_it_declares),
        cmocka_unit_test(what_is_cut_off_is_refused),
        cmocka_unit_test(damage_is_refused_or_harmless),
        cmocka_unit_test(the_limit_is_exact),
        cmocka_unit_test(foreign_bytes_behind_the_end_are_refused),
        cmocka_unit_test(weak_evidence_is_held_against_what_follows),
        cmocka_unit_test(files_are_known_by_their_bytes_not_their_names),
    };
    return cmocka_run_group_tests(tests, setup, files_teardown);
}
