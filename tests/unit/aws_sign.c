/* Signature Version 4 against the vectors that AWS has published: its test suite, and the examples of S3's manual. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hash.h"
#include "estimator_spec/aws/sign.h"

#include <stdio.h>
#include <string.h>

#define TOKEN                                                                                                          \
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwt" \
    "hAx7mSEI/qkPpKPi/"                                                                                                \
    "kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXA"                 \
    "kiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="
#define UNRESERVED "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define FORM       "application/x-www-form-urlencoded"

typedef struct vector {
    const char *name, *method, *path, *query;
    const char *headers; /* "name:value" a line; host and x-amz-date are added */
    const char *body, *names, *signature;
} vector;

/* aws-sig-v4-test-suite. Paths and queries as they are sent, that is encoded once. */
static const vector suite[] = {
    {"get-vanilla", "GET", "/", "", "", "", "host;x-amz-date",
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"get-vanilla-empty-query-key", "GET", "/", "Param1=value1", "", "", "host;x-amz-date",
     "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
    {"get-vanilla-query-order-key", "GET", "/", "Param1=value2&Param1=Value1", "", "", "host;x-amz-date",
     "eedbc4e291e521cf13422ffca22be7d2eb8146eecf653089df300a15b2382bd1"},
    {"get-vanilla-query-order-key-case", "GET", "/", "Param2=value2&Param1=value1", "", "", "host;x-amz-date",
     "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
    {"get-vanilla-query-order-value", "GET", "/", "Param1=value2&Param1=value1", "", "", "host;x-amz-date",
     "5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694"},
    {"get-vanilla-query-unreserved", "GET", "/", UNRESERVED "=" UNRESERVED, "", "", "host;x-amz-date",
     "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"},
    {"get-vanilla-utf8-query", "GET", "/", "%E1%88%B4=bar", "", "", "host;x-amz-date",
     "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
    {"get-header-key-duplicate", "GET", "/", "", "My-Header1:value2\nMy-Header1:value2\nMy-Header1:value1", "",
     "host;my-header1;x-amz-date", "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"},
    {"get-header-value-order", "GET", "/", "",
     "My-Header1:value4\nMy-Header1:value1\nMy-Header1:value3\nMy-Header1:value2", "", "host;my-header1;x-amz-date",
     "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01"},
    {"get-header-value-trim", "GET", "/", "", "My-Header1: value1\nMy-Header2: \"a   b   c\"", "",
     "host;my-header1;my-header2;x-amz-date", "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
    {"get-unreserved", "GET", "/" UNRESERVED, "", "", "", "host;x-amz-date",
     "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
    {"get-relative", "GET", "/example/..", "", "", "", "host;x-amz-date",
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"get-slash-pointless-dot", "GET", "/./example", "", "", "", "host;x-amz-date",
     "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5"},
    {"get-slashes", "GET", "//example//", "", "", "", "host;x-amz-date",
     "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"},
    {"post-vanilla", "POST", "/", "", "", "", "host;x-amz-date",
     "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
    {"post-vanilla-query", "POST", "/", "Param1=value1", "", "", "host;x-amz-date",
     "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"},
    {"post-header-key-sort", "POST", "/", "", "My-Header1:value1", "", "host;my-header1;x-amz-date",
     "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"},
    {"post-header-value-case", "POST", "/", "", "My-Header1:VALUE1", "", "host;my-header1;x-amz-date",
     "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d"},
    {"post-x-www-form-urlencoded", "POST", "/", "", "Content-Type:" FORM, "Param1=value1",
     "content-type;host;x-amz-date", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
    {"post-x-www-form-urlencoded-parameters", "POST", "/", "", "Content-Type:" FORM "; charset=utf8", "Param1=value1",
     "content-type;host;x-amz-date", "1a72ec8f64bd914b0e42e42607c7fbce7fb2c7465f63e3092b3b0d39fa77a6fe"},
    {"post-sts-header-before", "POST", "/", "", "X-Amz-Security-Token:" TOKEN, "",
     "host;x-amz-date;x-amz-security-token", "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"},
};

static void split_headers(char *text, ty_headers *h)
{
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *colon = strchr(line, ':');
        *colon = 0;
        ty_headers_add(h, line, colon + 1);
    }
}

static void assert_signed(const ty_sign_key *key, const ty_sign_request *request, const char *names,
                          const char *signature)
{
    char expected[1024];
    ty_buf found;
    ty_buf_init(&found, 1 << 16);
    snprintf(expected, sizeof expected,
             "AWS4-HMAC-SHA256 Credential=%s/%.8s/%s/%s/aws4_request, SignedHeaders=%s, Signature=%s", key->access_key,
             key->time, key->region, key->service, names, signature);
    assert_int_equal(ty_sign(key, request, &found, NULL), 0);
    assert_string_equal(found.data, expected);
    ty_buf_fini(&found);
}

static void check_vector(const vector *v)
{
    ty_secret secret = {0};
    ty_headers headers = {0};
    char text[1024], hash[TY_SHA256_HEX_BYTES];
    uint8_t digest[TY_SHA256_BYTES];
    snprintf(text, sizeof text, "%s", v->headers);
    ty_headers_add(&headers, "Host", "example.amazonaws.com");
    split_headers(text, &headers);
    ty_headers_add(&headers, "X-Amz-Date", "20150830T123600Z");
    ty_secret_set(&secret, "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", 40, NULL);
    ty_sha256_bytes(v->body, strlen(v->body), digest, NULL);
    ty_sign_key key = {"AKIDEXAMPLE", &secret, "us-east-1", "service", "20150830T123600Z"};
    ty_sign_request request = {v->method, v->path, v->query, headers.at, headers.n, ty_sha256_hex(digest, hash), false};
    print_message("  %s\n", v->name);
    assert_signed(&key, &request, v->names, v->signature);
    ty_secret_drop(&secret);
}

static void test_published_suite(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof suite / sizeof suite[0]; i++)
        check_vector(&suite[i]);
}

/* S3's manual, "Examples: Signature Calculations in AWS Signature Version 4". */
static void test_s3_examples(void **state)
{
    (void)state;
    const char *empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    const char *welcome = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    ty_secret secret = {0};
    ty_secret_set(&secret, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", 40, NULL);
    ty_sign_key key = {"AKIAIOSFODNN7EXAMPLE", &secret, "us-east-1", "s3", "20130524T000000Z"};
    ty_header get[] = {{"Host", "examplebucket.s3.amazonaws.com"},
                       {"Range", "bytes=0-9"},
                       {"x-amz-content-sha256", empty},
                       {"x-amz-date", "20130524T000000Z"}};
    assert_signed(&key, &(ty_sign_request){"GET", "/test.txt", "", get, 4, empty, true},
                  "host;range;x-amz-content-sha256;x-amz-date",
                  "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    ty_header put[] = {{"Date", "Fri, 24 May 2013 00:00:00 GMT"},
                       {"Host", "examplebucket.s3.amazonaws.com"},
                       {"x-amz-date", "20130524T000000Z"},
                       {"x-amz-storage-class", "REDUCED_REDUNDANCY"},
                       {"x-amz-content-sha256", welcome}};
    assert_signed(&key, &(ty_sign_request){"PUT", "/test%24file.text", "", put, 5, welcome, true},
                  "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
                  "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
    ty_header list[] = {{"Host", "examplebucket.s3.amazonaws.com"},
                        {"x-amz-content-sha256", empty},
                        {"x-amz-date", "20130524T000000Z"}};
    assert_signed(&key, &(ty_sign_request){"GET", "/", "lifecycle", list, 3, empty, true},
                  "host;x-amz-content-sha256;x-amz-date",
                  "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    assert_signed(&key, &(ty_sign_request){"GET", "/", "prefix=J&max-keys=2", list, 3, empty, true},
                  "host;x-amz-content-sha256;x-amz-date",
                  "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
    ty_secret_drop(&secret);
}

static void test_canonical_paths(void **state)
{
    (void)state;
    static const struct {
        const char *sent;
        bool as_is;
        const char *signs;
    } cases[] = {{"", false, "/"},           {"/a%20b", false, "/a%2520b"}, {"/a%20b", true, "/a%20b"},
                 {"/a//b/", true, "/a//b/"}, {"/a//b/", false, "/a/b/"},    {"/a/../../b", false, "/b"},
                 {"/a/.", false, "/a"}};
    ty_header host = {"host", "h"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ty_buf out;
        char line[64];
        ty_buf_init(&out, 4096);
        ty_sign_request r = {"GET", cases[i].sent, "", &host, 1, TY_SIGN_UNSIGNED_PAYLOAD, cases[i].as_is};
        assert_int_equal(ty_sign_canonical(&r, &out, NULL, NULL), 0);
        assert_int_equal(sscanf(out.data, "GET\n%63[^\n]\n", line), 1);
        assert_string_equal(line, cases[i].signs);
        assert_non_null(strstr(out.data, "\nhost\nUNSIGNED-PAYLOAD"));
        ty_buf_fini(&out);
    }
}

static void test_time_and_limits(void **state)
{
    (void)state;
    char time[TY_SIGN_TIME_BYTES];
    assert_string_equal(ty_sign_time(INT64_C(1440938160999), time), "20150830T123600Z");
    ty_error err = {0};
    ty_buf out;
    ty_buf_init(&out, 1 << 21);
    static char query[3000];
    for (size_t i = 0; i < sizeof query - 1; i++)
        query[i] = i % 2 ? '&' : 'a';
    ty_sign_request r = {"GET", "/", query, NULL, 0, TY_SIGN_UNSIGNED_PAYLOAD, true};
    assert_int_equal(ty_sign_canonical(&r, &out, NULL, &err), -1);
    assert_int_equal(err.code, TY_E_LIMIT);
    ty_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_suite),
        cmocka_unit_test(test_s3_examples),
        cmocka_unit_test(test_canonical_paths),
        cmocka_unit_test(test_time_and_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
