/* The files of AWS's tools, the XML of its services, and what is made of both: profiles, regions, addresses, keys. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "estimator_spec/aws/credentials.h"
#include "estimator_spec/aws/profile.h"
#include "estimator_spec/aws/xml.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ty_arena arena;
static ty_error err;

static int set_up(void **state)
{
    (void)state;
    ty_arena_init(&arena);
    err = (ty_error){0};
    extern char **environ;
    for (char **e = environ; *e;) {
        if (strncmp(*e, "AWS_", 4) != 0) {
            e++;
            continue;
        }
        char *name = strndup(*e, strcspn(*e, "="));
        unsetenv(name);
        free(name);
    }
    return setenv("HOME", "/nonexistent", 1);
}

static int tear_down(void **state)
{
    (void)state;
    ty_arena_wipe(&arena);
    return 0;
}

/* ---- INI ---- */

static void test_ini(void **state)
{
    (void)state;
    static const char text[] =
        "# first\n[default]\nRegion = eu-west-1 \nkey: value = x\n\n[profile b]\ns3 =\n"
        "    addressing_style = path\n    ; aside\n    max=3\nlong = a\n  b # no comment\n[empty]\n";
    ty_ini ini;
    assert_int_equal(ty_ini_parse(&arena, "config", text, strlen(text), &ini, &err), 0);
    assert_string_equal(ty_ini_get(&ini, "default", "region"), "eu-west-1");
    assert_string_equal(ty_ini_get(&ini, "default", "key"), "value = x");
    assert_string_equal(ty_ini_get(&ini, "profile b", "s3.addressing_style"), "path");
    assert_string_equal(ty_ini_get(&ini, "profile b", "s3.max"), "3");
    assert_string_equal(ty_ini_get(&ini, "profile b", "long"), "a\nb # no comment");
    assert_true(ty_ini_has(&ini, "empty"));
    assert_null(ty_ini_get(&ini, "empty", "region"));
}

static void test_ini_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message, *place;
    } cases[] = {{"[a\n", "without \"]\"", "f:1"},
                 {"k = 1\n", "before the first", "f:1"},
                 {"[a]\nSECRETWORD\n", "expected \"key = value\"", "f:2"},
                 {"[a]\n= SECRETWORD\n", "without a key", "f:2"},
                 {"[a]\nk=SECRETWORD\nK=SECRETWORD\n", "in the section already", "f:3"},
                 {"[a]\n[b]\n[a]\n", "in the file already", "f:3"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ty_ini ini;
        ty_error e = {0};
        assert_int_equal(ty_ini_parse(&arena, "f", cases[i].text, strlen(cases[i].text), &ini, &e), -1);
        assert_non_null(strstr(e.message, cases[i].message));
        assert_string_equal(e.place, cases[i].place);
        assert_null(strstr(e.message, "SECRETWORD"));
        assert_null(strstr(e.detail, "SECRETWORD"));
    }
}

/* ---- XML ---- */

static void test_xml(void **state)
{
    (void)state;
    static const char text[] = "<?xml version=\"1.0\"?><!-- x --><R xmlns='u'><A>1 &lt;&amp;&#x20AC;&#65;</A><B/>"
                               "<A a='>'> two </A><C><D><![CDATA[<&>]]></D></C></R>\n";
    ty_xml *root;
    assert_int_equal(ty_xml_parse(&arena, "t", text, strlen(text), &root, &err), 0);
    assert_string_equal(root->name, "R");
    const ty_xml *a = ty_xml_find(root, "A");
    assert_string_equal(a->text, "1 <&\u20acA");
    assert_string_equal(ty_xml_again(a)->text, " two ");
    assert_null(ty_xml_again(ty_xml_again(a)));
    assert_string_equal(ty_xml_text(root, "B"), "");
    assert_string_equal(ty_xml_text(ty_xml_find(root, "C"), "D"), "<&>");
    assert_string_equal(ty_xml_text(ty_xml_find(NULL, "C"), "D"), "");
}

static void test_xml_refusals(void **state)
{
    (void)state;
    static const char *const cases[] = {"",
                                        "text",
                                        "<a>",
                                        "<a><b></a>",
                                        "<a>&x;</a>",
                                        "<a b='>",
                                        "<a>&#0;</a>",
                                        "<a>&#xD800;</a>",
                                        "<!DOCTYPE a><a/>",
                                        "<a></ab>",
                                        "<a>&lt</a>",
                                        "<a><!-- </a>",
                                        "< a/>"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ty_xml *root;
        ty_error e = {0};
        assert_int_equal(ty_xml_parse(&arena, "t", cases[i], strlen(cases[i]), &root, &e), -1);
        assert_int_equal(e.code, TY_E_SYNTAX);
    }
}

/* ---- profiles ---- */

static const char *write_file(const char *text)
{
    char *path = ty_arena_strdup(&arena, "/tmp/trainyard-aws-XXXXXX");
    int fd = mkstemp(path);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return path;
}

static void test_profiles(void **state)
{
    (void)state;
    const char *config = write_file("[default]\nregion = eu-west-1\n[profile two]\nregion = us-gov-west-1\n"
                                    "[profile \"in quotes\"]\nregion = cn-north-1\n[three]\nregion = no\n");
    const char *keys = write_file("[two]\naws_access_key_id = A\n");
    setenv("AWS_CONFIG_FILE", config, 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", keys, 1);
    ty_profile p;
    assert_int_equal(ty_profile_read(&arena, NULL, NULL, &p, &err), 0);
    assert_string_equal(p.region, "eu-west-1");
    assert_int_equal(ty_profile_read(&arena, "two", NULL, &p, &err), 0);
    assert_string_equal(p.region, "us-gov-west-1");
    assert_string_equal(ty_profile_get(&p, NULL, "aws_access_key_id"), "A");
    assert_int_equal(ty_profile_read(&arena, "in quotes", NULL, &p, &err), 0);
    assert_string_equal(p.region, "cn-north-1");
    setenv("AWS_DEFAULT_REGION", "ap-south-1", 1);
    assert_int_equal(ty_profile_read(&arena, NULL, NULL, &p, &err), 0);
    assert_string_equal(p.region, "ap-south-1");
    setenv("AWS_REGION", "ap-south-2", 1);
    assert_int_equal(ty_profile_read(&arena, NULL, NULL, &p, &err), 0);
    assert_string_equal(p.region, "ap-south-2");
    assert_int_equal(ty_profile_read(&arena, NULL, "eu-north-1", &p, &err), 0);
    assert_string_equal(p.region, "eu-north-1");
    setenv("AWS_PROFILE", "tow", 1);
    assert_int_equal(ty_profile_read(&arena, NULL, NULL, &p, &err), -1);
    assert_int_equal(err.code, TY_E_CREDENTIALS);
    assert_string_equal(err.help, "did you mean \"two\"?");
    unlink(config);
    unlink(keys);
}

static void test_regions_are_checked(void **state)
{
    (void)state;
    ty_profile p;
    static const char *const wrong[] = {"eu-west-1.evil.com/", "EU", "a b", "-x", "x@y"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(ty_profile_read(&arena, NULL, wrong[i], &p, &err), -1);
    const char *region;
    assert_int_equal(ty_profile_read(&arena, NULL, NULL, &p, &err), 0);
    assert_int_equal(ty_profile_region(&p, &region, &err), -1);
    assert_non_null(strstr(err.help, "AWS_REGION"));
}

static const char *endpoint(const ty_service *service, const char *region)
{
    ty_profile p;
    const char *url = NULL;
    bool is_own;
    err = (ty_error){0};
    assert_int_equal(ty_profile_read(&arena, NULL, region, &p, &err), 0);
    return ty_profile_endpoint(&p, service, region, &arena, &url, &is_own, &err) < 0 ? "refused" : url;
}

static void test_endpoints(void **state)
{
    (void)state;
    assert_string_equal(endpoint(&ty_service_sagemaker, "eu-west-1"), "https://api.sagemaker.eu-west-1.amazonaws.com");
    assert_string_equal(endpoint(&ty_service_logs, "cn-north-1"), "https://logs.cn-north-1.amazonaws.com.cn");
    assert_string_equal(endpoint(&ty_service_sts, "us-gov-west-1"), "https://sts.us-gov-west-1.amazonaws.com");
    assert_string_equal(ty_region_partition("us-gov-east-1"), "aws-us-gov");
    assert_string_equal(ty_region_partition("cn-north-1"), "aws-cn");
    assert_string_equal(ty_region_partition("eu-west-1"), "aws");
    setenv("AWS_USE_FIPS_ENDPOINT", "true", 1);
    assert_string_equal(endpoint(&ty_service_sagemaker, "us-east-1"),
                        "https://api-fips.sagemaker.us-east-1.amazonaws.com");
    setenv("AWS_ENDPOINT_URL", "https://all.example.com/", 1);
    setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9000", 1);
    assert_string_equal(endpoint(&ty_service_s3, "eu-west-1"), "http://127.0.0.1:9000");
    assert_string_equal(endpoint(&ty_service_sts, "eu-west-1"), "https://all.example.com");
    static const char *const wrong[] = {"http://example.com", "http://127.0.0.1.evil.com", "http://localhost@evil.com",
                                        "ftp://x", "https://"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        setenv("AWS_ENDPOINT_URL_S3", wrong[i], 1);
        assert_string_equal(endpoint(&ty_service_s3, "eu-west-1"), "refused");
        assert_int_equal(err.code, TY_E_CONFIG);
    }
    setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true", 1);
    assert_string_equal(endpoint(&ty_service_s3, "us-east-1"), "https://s3-fips.us-east-1.amazonaws.com");
}

static void test_endpoints_of_profiles(void **state)
{
    (void)state;
    const char *config = write_file("[default]\nservices = mine\nendpoint_url = https://profile.example.com\n"
                                    "[services mine]\ncloudwatch_logs =\n  endpoint_url = https://logs.example.com\n");
    setenv("AWS_CONFIG_FILE", config, 1);
    assert_string_equal(endpoint(&ty_service_logs, "eu-west-1"), "https://logs.example.com");
    assert_string_equal(endpoint(&ty_service_s3, "eu-west-1"), "https://profile.example.com");
    unlink(config);
}

static void test_times(void **state)
{
    (void)state;
    assert_int_equal(ty_time_parse("2015-08-30T12:36:00Z"), INT64_C(1440938160000));
    assert_int_equal(ty_time_parse("2015-08-30T12:36:00.123Z"), INT64_C(1440938160000));
    assert_int_equal(ty_time_parse("2015-08-30T14:36:00+02:00"), INT64_C(1440938160000));
    assert_int_equal(ty_time_parse("2015-08-30T10:06:00-02:30"), INT64_C(1440938160000));
    assert_int_equal(ty_time_parse("tomorrow"), -1);
    assert_int_equal(ty_time_parse("2015-08-30T12:36:00 or so"), -1);
}

static void test_secrets(void **state)
{
    (void)state;
    ty_secret s = {0};
    assert_false(ty_secret_is_set(&s));
    assert_string_equal(ty_secret_reveal(&s), "");
    assert_int_equal(ty_secret_set(&s, "wordX", 4, &err), 0);
    assert_string_equal(ty_secret_reveal(&s), "word");
    assert_int_equal(ty_secret_set(&s, "", 0, &err), 0);
    assert_false(ty_secret_is_set(&s));
    ty_secret_drop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ini, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ini_refusals, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_xml, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_xml_refusals, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_profiles, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_regions_are_checked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_endpoints, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_endpoints_of_profiles, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_times, set_up, tear_down),
        cmocka_unit_test(test_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
