/* Hashes against their standards' own vectors. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *hex_of(const char *text)
{
    static char hex[TY_SHA256_HEX_BYTES];
    uint8_t digest[TY_SHA256_BYTES];
    assert_int_equal(ty_sha256_bytes(text, strlen(text), digest, NULL), 0);
    return ty_sha256_hex(digest, hex);
}

/* FIPS 180-4 examples. */
static void test_sha256(void **state)
{
    (void)state;
    assert_string_equal(hex_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_string_equal(hex_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_string_equal(hex_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
                        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void test_sha256_in_pieces_and_of_files(void **state)
{
    (void)state;
    char path[] = "/tmp/trainyard-hash-XXXXXX";
    close(mkstemp(path));
    size_t n_bytes = 700000;
    char *bytes = malloc(n_bytes);
    for (size_t i = 0; i < n_bytes; i++)
        bytes[i] = (char)(i * 7 % 251);
    uint8_t whole[TY_SHA256_BYTES], pieces[TY_SHA256_BYTES], file[TY_SHA256_BYTES];
    assert_int_equal(ty_sha256_bytes(bytes, n_bytes, whole, NULL), 0);
    ty_sha256 h;
    assert_int_equal(ty_sha256_init(&h, NULL), 0);
    for (size_t at = 0; at < n_bytes; at += 1000)
        ty_sha256_add(&h, bytes + at, 1000);
    ty_sha256_final(&h, pieces);
    assert_memory_equal(whole, pieces, sizeof whole);
    assert_int_equal(ty_file_write(path, bytes, n_bytes, 0600, NULL), 0);
    assert_int_equal(ty_sha256_file(path, file, NULL), 0);
    assert_memory_equal(whole, file, sizeof whole);
    unlink(path);
    ty_error err = {0};
    assert_int_equal(ty_sha256_file(path, file, &err), -1);
    assert_int_equal(err.code, TY_E_NOT_FOUND);
    assert_int_equal(ty_sha256_file("/", file, &err), -1);
    free(bytes);
}

/* RFC 3720, B.4, and the check value of the CRC catalogue. */
/* RFC 4231, cases 1, 2 and 6. */
static void test_hmac(void **state)
{
    (void)state;
    static const struct {
        uint8_t byte; /* 0: the key is a text */
        size_t n_bytes;
        const char *key, *text, *code;
    } rows[] = {
        {0x0b, 20, NULL, "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {0, 4, "Jefe", "what do ya want for nothing?",
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {0xaa, 131, NULL, "Test Using Larger Than Block-Size Key - Hash Key First",
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t key[131], code[TY_SHA256_BYTES], other[TY_SHA256_BYTES];
        char hex[TY_SHA256_HEX_BYTES];
        memset(key, rows[i].byte, sizeof key);
        if (rows[i].key)
            memcpy(key, rows[i].key, rows[i].n_bytes);
        assert_int_equal(ty_hmac_sha256(key, rows[i].n_bytes, rows[i].text, strlen(rows[i].text), code, NULL), 0);
        assert_string_equal(ty_sha256_hex(code, hex), rows[i].code);
        memcpy(other, code, sizeof code);
        assert_true(ty_same_code(code, other));
        for (size_t k = 0; k < sizeof other; k++) {
            other[k] ^= 0x80;
            assert_false(ty_same_code(code, other));
            other[k] ^= 0x80;
        }
    }
}

static void test_crc32c(void **state)
{
    (void)state;
    uint8_t bytes[48];
    memset(bytes, 0, 32);
    assert_int_equal(ty_crc32c(0, bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, 32);
    assert_int_equal(ty_crc32c(0, bytes, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    assert_int_equal(ty_crc32c(0, bytes, 32), 0x46dd794e);
    assert_int_equal(ty_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(ty_crc32c(0, "", 0), 0);
    assert_int_equal(ty_crc32c_mask(0xe3069283), ((0xe3069283u >> 15) | (0xe3069283u << 17)) + 0xa282ead8u);
}

static void test_crc32c_table_agrees_with_the_instruction(void **state)
{
    (void)state;
    uint8_t bytes[30000]; /* long ones are summed in three lanes */
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * i + i / 251 + 3);
    for (size_t from = 0; from < 9; from++)
        for (size_t n = 0; n + from <= sizeof bytes; n += n < 300 ? 7 : n < 1600 ? 61 : 997)
            assert_int_equal(ty_crc32c(5, bytes + from, n), ty_crc32c_by_table(5, bytes + from, n));
    assert_int_equal(ty_crc32c(ty_crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
    assert_int_equal(ty_crc32c_by_table(0, "123456789", 9), 0xe3069283);
}

static void test_fnv(void **state)
{
    (void)state;
    assert_true(ty_fnv1a(TY_FNV_START, "", 0) == UINT64_C(0xcbf29ce484222325));
    assert_true(ty_fnv1a(TY_FNV_START, "a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(ty_fnv1a(TY_FNV_START, "foobar", 6) == UINT64_C(0x85944171f73967e8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256), cmocka_unit_test(test_sha256_in_pieces_and_of_files),
        cmocka_unit_test(test_crc32c), cmocka_unit_test(test_crc32c_table_agrees_with_the_instruction),
        cmocka_unit_test(test_fnv),    cmocka_unit_test(test_hmac),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
