/* S3 without a service: names of buckets, keys and files, addresses, checksums, what answers and notes may say. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "estimator_spec/aws/checksum.h"
#include "estimator_spec/aws/s3_note.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ty_arena arena;
static ty_error err;

static int set_up(void **state)
{
    (void)state;
    static const char *const names[] = {"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3",         "AWS_PROFILE",
                                        "AWS_CONFIG_FILE",  "AWS_SHARED_CREDENTIALS_FILE", "AWS_USE_FIPS_ENDPOINT",
                                        "AWS_REGION"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
    ty_arena_init(&arena);
    err = (ty_error){0};
    return setenv("HOME", "/nonexistent", 1);
}

static int tear_down(void **state)
{
    (void)state;
    ty_arena_fini(&arena);
    return 0;
}

/* ---- checksums ---- */

static void test_checksums(void **state)
{
    (void)state;
    /* Check values of the CRC catalogue (reveng.sourceforge.io), the SHA-256 of NIST's example "abc". */
    static const struct {
        ty_checksum_kind kind;
        const char *bytes, *text;
    } rows[] = {
        {TY_CHECKSUM_CRC32, "123456789", "y/Q5Jg=="},
        {TY_CHECKSUM_CRC32C, "123456789", "4waSgw=="},
        {TY_CHECKSUM_CRC64NVME, "123456789", "rosUhgp5mIg="},
        {TY_CHECKSUM_CRC64NVME, "", "AAAAAAAAAAA="},
        {TY_CHECKSUM_SHA256, "abc", "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="},
        {TY_CHECKSUM_NONE, "abc", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t piece = 1; piece <= 9; piece++) {
            ty_checksum c;
            char text[TY_CHECKSUM_TEXT_BYTES];
            assert_int_equal(ty_checksum_init(&c, rows[i].kind, &err), 0);
            for (size_t at = 0, n = strlen(rows[i].bytes); at < n; at += piece)
                ty_checksum_add(&c, rows[i].bytes + at, n - at < piece ? n - at : piece);
            assert_string_equal(ty_checksum_final(&c, text), rows[i].text);
        }
}

static void test_crc64_by_bits(void **state)
{
    (void)state;
    uint8_t bytes[67];
    for (size_t n = 0; n < sizeof bytes; n++) {
        bytes[n] = (uint8_t)(n * 37 + 11);
        uint64_t crc = ~UINT64_C(0);
        for (size_t i = 0; i < n; i++) {
            crc ^= bytes[i];
            for (int bit = 0; bit < 8; bit++)
                crc = crc & 1 ? crc >> 1 ^ UINT64_C(0x9a6c9329ac4bc9b5) : crc >> 1;
        }
        assert_true(ty_crc64nvme(0, bytes, n) == ~crc);
    }
}

/* ---- names ---- */

static void test_places(void **state)
{
    (void)state;
    ty_s3_place at;
    assert_int_equal(ty_s3_parse("s3://my-bucket/a//b c%20+é/", &arena, &at, &err), 0);
    assert_string_equal(at.bucket, "my-bucket");
    assert_string_equal(at.key, "a//b c%20+é/");
    assert_int_equal(ty_s3_parse("s3://my.bucket", &arena, &at, &err), 0);
    assert_string_equal(at.key, "");
    static const char *const wrong[] = {
        "s3://",      "s3:///k",    "s3://ab/k",   "s3://a..b/k", "s3://a@evil.com/k",    "s3://a:1",
        "s3://-ab/k", "s3://a b/k", "https://b/k", "b/k",         "s3://arn:aws:s3:::b/k"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(ty_s3_parse(wrong[i], &arena, &at, &err), -1);
        assert_int_equal(err.code, TY_E_CONFIG);
    }
}

static void test_keys(void **state)
{
    (void)state;
    char key[TY_S3_MAX_KEY_BYTES + 2];
    memset(key, 'k', sizeof key);
    key[TY_S3_MAX_KEY_BYTES + 1] = 0;
    assert_int_equal(ty_s3_check_key(key, &err), -1);
    key[TY_S3_MAX_KEY_BYTES] = 0;
    assert_int_equal(ty_s3_check_key(key, &err), 0);
    assert_int_equal(ty_s3_check_key("", &err), -1);
    assert_int_equal(ty_s3_check_key("a\xff", &err), -1);
}

static void test_names_below(void **state)
{
    (void)state;
    static const struct {
        const char *prefix, *key, *name;
    } rows[] = {
        {"data/train", "data/train/x/y", "x/y"},
        {"data/train/", "data/train/x/y", "x/y"},
        {"data/train", "data/train", "train"},
        {"train", "train", "train"},
        {"data/tr", "data/train/x", "train/x"},
        {"data/train", "data/train-1.csv", "train-1.csv"},
        {"data/train", "data/train//x", "x"},
        {"data/train/", "data/train//x//y", "x/y"},
        {"data", "data/sub/", "sub/"},
        {"", "a/b", "a/b"},
        {"", "/a", "a"},
        {"", "...", "..."},
        {"p/", "p/.hidden/..x", ".hidden/..x"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *name = NULL;
        assert_int_equal(ty_s3_name_below(rows[i].prefix, rows[i].key, &arena, &name, &err), 0);
        assert_string_equal(name, rows[i].name);
    }
    char late[300] = "a/";
    memset(late + 2, 'n', 256);
    const char *const wrong[] = {"..", "../x", "a/../../x", "a/..", "./a", "a/./b", "/", "//", late};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const char *name;
        assert_int_equal(ty_s3_name_below("", wrong[i], &arena, &name, &err), -1);
        assert_int_equal(err.code, TY_E_REFUSED);
    }
    late[2 + 255] = 0;
    const char *name;
    assert_int_equal(ty_s3_name_below("", late, &arena, &name, &err), 0);
}

static void test_parts(void **state)
{
    (void)state;
    static const uint64_t mib = 1 << 20;
    assert_int_equal(ty_s3_part_bytes(17 * mib), 8 * mib);
    assert_int_equal(ty_s3_part_bytes(80000 * mib), 8 * mib);
    assert_int_equal(ty_s3_part_bytes(80000 * mib + 1), 9 * mib);
    uint64_t most = 5 * mib * mib, part = ty_s3_part_bytes(most); /* the largest object there can be: 5 TiB */
    assert_true((most + part - 1) / part <= 10000 && part < 5000 * mib && part % mib == 0);
}

/* ---- addresses ---- */

static const char *address(const char *bucket, const char *region)
{
    ty_aws *aws = NULL;
    ty_s3 *s3 = NULL;
    const char *url = "", *path = "";
    assert_int_equal(ty_aws_open(&(ty_aws_options){.region = region}, &aws, &err), 0);
    assert_int_equal(ty_s3_open(aws, &(ty_s3_options){0}, &s3, &err), 0);
    int rc = ty_s3_address(s3, bucket, region, &arena, &url, &path, &err);
    ty_s3_close(s3);
    ty_aws_close(aws);
    return rc < 0 ? "refused" : ty_arena_printf(&arena, "%s%s", url, path);
}

static void test_addresses(void **state)
{
    (void)state;
    assert_string_equal(address("b-1", "eu-west-1"), "https://b-1.s3.eu-west-1.amazonaws.com");
    assert_string_equal(address("b.1", "eu-west-1"), "https://s3.eu-west-1.amazonaws.com/b.1");
    assert_string_equal(address("Old_one", "us-east-1"), "https://s3.us-east-1.amazonaws.com/Old_one");
    assert_string_equal(address("b-1", "cn-north-1"), "https://b-1.s3.cn-north-1.amazonaws.com.cn");
    assert_string_equal(address("b/x", "eu-west-1"), "refused");
    setenv("AWS_ENDPOINT_URL_S3", "https://minio.example.com:9000/base/", 1);
    assert_string_equal(address("b-1", "eu-west-1"), "https://minio.example.com:9000/base/b-1");
    char name[] = "/tmp/aws-s3-XXXXXX";
    int fd = mkstemp(name);
    FILE *f = fdopen(fd, "w");
    fputs("[default]\ns3 =\n  addressing_style = virtual\n", f);
    fclose(f);
    setenv("AWS_CONFIG_FILE", name, 1);
    assert_string_equal(address("b-1", "eu-west-1"), "https://b-1.minio.example.com:9000/base");
    remove(name);
}

/* ---- answers ---- */

static void test_pages(void **state)
{
    (void)state;
    static const char text[] =
        "<?xml version=\"1.0\"?><ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
        "<NextContinuationToken>t=+/</NextContinuationToken>"
        "<Contents><Key>a+b%2Fc%2B%C3%A9%25</Key><LastModified>2015-08-30T12:36:00.000Z</LastModified>"
        "<ETag>&quot;e-2&quot;</ETag><Size>9223372036854775807</Size></Contents>"
        "<Contents><Key>z</Key><Size>0</Size></Contents></ListBucketResult>";
    ty_s3_page page;
    assert_int_equal(ty_s3_read_page(text, strlen(text), &arena, &page, &err), 0);
    assert_int_equal(page.n, 2);
    assert_string_equal(page.objects[0].key, "a b/c+é%");
    assert_true(page.objects[0].n_bytes == INT64_MAX);
    assert_string_equal(page.objects[0].etag, "\"e-2\"");
    assert_true(page.objects[0].modified_ms == INT64_C(1440938160000));
    assert_string_equal(page.next, "t=+/");
    static const char plain[] = "<ListBucketResult><Contents><Key>a+b%20</Key><Size>1</Size></Contents>"
                                "<IsTruncated>false</IsTruncated></ListBucketResult>";
    assert_int_equal(ty_s3_read_page(plain, strlen(plain), &arena, &page, &err), 0);
    assert_string_equal(page.objects[0].key, "a+b%20");
    assert_null(page.next);
}

#define PAGE(inner)  "<ListBucketResult><EncodingType>url</EncodingType>" inner "</ListBucketResult>"
#define KEY(key)     PAGE("<Contents><Key>" key "</Key><Size>1</Size></Contents>")
#define PARTS(inner) "<ListPartsResult>" inner "</ListPartsResult>"
#define PART(number, size, etag) \
    PARTS("<Part><PartNumber>" number "</PartNumber><Size>" size "</Size><ETag>" etag "</ETag></Part>")
#define ID(id) "<InitiateMultipartUploadResult><UploadId>" id "</UploadId></InitiateMultipartUploadResult>"

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        char reader;
        const char *text, *message;
    } rows[] = {
        {'l', "", "no XML as it is expected: no element"},
        {'l', "<html></html>", "it is called \"html\""},
        {'l', PAGE("<Contents><Key>a</Key><Size>1</Size>"), "an element is closed that is not open"},
        {'l', KEY("a%0"), "a key \"a%0\""},
        {'l', KEY("a%zz"), "a key \"a%zz\""},
        {'l', KEY("a%00b"), "a key \"a%00b\""},
        {'l', KEY(""), "a key"},
        {'l', PAGE("<Contents><Key>a</Key><Size>-1</Size></Contents>"), "a size \"-1\""},
        {'l', PAGE("<Contents><Key>a</Key><Size>9223372036854775808</Size></Contents>"), "a size"},
        {'l', PAGE("<Contents><Key>a</Key></Contents>"), "a size"},
        {'l', PAGE("<Contents><Key>a</Key><Size>1</Size><ETag>a&#10;b</ETag></Contents>"), "an ETag"},
        {'l', PAGE("<IsTruncated>true</IsTruncated>"), "there is more, but no token for it"},
        {'p', PART("0", "1", "e"), "a part's number \"0\""},
        {'p', PART("10001", "1", "e"), "a part's number \"10001\""},
        {'p', PART("1", "1e3", "e"), "a size \"1e3\""},
        {'p', PART("1", "1", ""), "an ETag"},
        {'p', PART("1", "1", "&lt;x"), "an ETag \"<x\""},
        {'p', "<ListPartsOther/>", "it is called \"ListPartsOther\""},
        {'p', PARTS("<IsTruncated>true</IsTruncated>"), "where the next page begins"},
        {'u', ID(""), "an upload's id"},
        {'u', ID("a b"), "an upload's id \"a b\""},
        {'u', KEY("a"), "it is called \"ListBucketResult\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_s3_page page;
        ty_s3_part_page parts;
        const char *id;
        size_t len = strlen(rows[i].text);
        err = (ty_error){0};
        int rc = rows[i].reader == 'l'   ? ty_s3_read_page(rows[i].text, len, &arena, &page, &err)
                 : rows[i].reader == 'p' ? ty_s3_read_parts(rows[i].text, len, &arena, &parts, &err)
                                         : ty_s3_read_upload(rows[i].text, len, &arena, &id, &err);
        assert_int_equal(rc, -1);
        assert_int_equal(err.code, TY_E_SERVICE);
        if (!strstr(err.message, rows[i].message))
            fail_msg("expected \"%s\" in \"%s\"", rows[i].message, err.message);
    }
}

static void test_regions_of_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text, *region;
    } rows[] = {
        {"<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-north-1</Region></Error>", "eu-north-1"},
        {"<Error><Endpoint>b.s3.eu-west-2.amazonaws.com</Endpoint></Error>", "eu-west-2"},
        {"<Error><Endpoint>b.s3-us-west-2.amazonaws.com</Endpoint></Error>", "us-west-2"},
        {"<Error><Endpoint>b.s3.amazonaws.com</Endpoint></Error>", NULL},
        {"<Error><Endpoint>s3.evil.com</Endpoint></Error>", NULL},
        {"<Error><Region>evil.com/</Region></Error>", NULL},
        {"<Error/>", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *region = ty_s3_read_region(rows[i].text, strlen(rows[i].text), &arena);
        assert_string_equal(region ? region : "none", rows[i].region ? rows[i].region : "none");
    }
    assert_true(ty_s3_is_error("  <Error><Code>InternalError</Code></Error>", 42));
    assert_false(ty_s3_is_error("<CompleteMultipartUploadResult/>", 32));
}

static void test_dates(void **state)
{
    (void)state;
    assert_true(ty_s3_parse_date("Sun, 30 Aug 2015 12:36:00 GMT") == INT64_C(1440938160000));
    assert_true(ty_s3_parse_date("30 Aug 2015") == -1);
}

/* ---- notes ---- */

#define SHA "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

static void test_notes(void **state)
{
    (void)state;
    static const char head[] = "trainyard upload 1\nwhat " SHA "\nid x/y=\n";
    static const struct {
        const char *more;
        size_t n_parts;
    } rows[] = {
        {"", 0},
        {"part 1 " SHA " \"e\"\npart 3 " SHA " \"f\"\n", 2},
        {"part 1 " SHA " \"e\"\npart 3 " SHA " \"f\"", 1}, /* cut off */
        {"part 0 " SHA " \"e\"\n", 0},
        {"part 10001 " SHA " \"e\"\n", 0},
        {"part 1 9f86 \"e\"\n", 0},
        {"part 1 " SHA " e e\n", 0},
        {"\npart 1 " SHA " \"e\"\n", 0},
    };
    ty_s3_note note = {.fd = -1};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *text = ty_arena_printf(&arena, "%s%s", head, rows[i].more);
        ty_s3_note_read(text, strlen(text), &arena, &note);
        assert_string_equal(note.what, SHA);
        assert_string_equal(note.upload_id, "x/y=");
        assert_int_equal(note.n_parts, rows[i].n_parts);
    }
    static const char *const none[] = {"", "trainyard upload 2\nwhat " SHA "\nid x\n", "trainyard upload 1\nid x\n",
                                       "trainyard upload 1\nwhat " SHA "\nid x"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        ty_s3_note_read(none[i], strlen(none[i]), &arena, &note);
        assert_string_equal(note.upload_id, "");
    }
}

static void test_notes_in_files(void **state)
{
    (void)state;
    char folder[] = "/tmp/aws-s3-XXXXXX";
    ty_s3_note one, two;
    assert_non_null(mkdtemp(folder));
    const char *notes = ty_arena_printf(&arena, "%s/notes", folder);
    ty_s3_note_open(notes, "n", &arena, &one);
    assert_non_null(one.path);
    ty_s3_note_begin(&one, SHA, "id-1");
    ty_s3_note_add(&one, 2, SHA, "\"e\"");
    ty_s3_note_open(notes, "n", &arena, &two); /* held by another */
    assert_null(two.path);
    ty_s3_note_close(&one, false);
    ty_s3_note_open(notes, "n", &arena, &two);
    assert_string_equal(two.upload_id, "id-1");
    assert_int_equal(two.n_parts, 1);
    assert_int_equal(two.parts[0].number, 2);
    ty_s3_note_close(&two, true);
    ty_s3_note_open(notes, "n", &arena, &two);
    assert_string_equal(two.upload_id, "");
    ty_s3_note_close(&two, true);
    remove(notes);
    remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_checksums, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_crc64_by_bits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_places, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_keys, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names_below, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_parts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_addresses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refusals, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_regions_of_errors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_dates, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_notes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_notes_in_files, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
