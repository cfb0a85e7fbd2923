/* Who is waited for and why, which hosts cannot do one job, which addresses are on several of them; messages there and
 * back, and cut anywhere. */
#include "dist/agent/meeting.h"
#include "dist/agent/preflight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const names[] = {"algo-1", "algo-2", "algo-3"};

static ty_hello make_hello(int host, const char *address, const char *program)
{
    ty_hello h = {.host = host,
                  .interface = "eth0",
                  .n_facts = 1,
                  .facts = {{.name = "program"}},
                  .n_addresses = 2,
                  .addresses = {"172.17.0.1"},
                  .cores = 8,
                  .memory_bytes = INT64_C(1) << 40,
                  .look_port = 40001};
    snprintf(h.name, sizeof h.name, "%s", names[host]);
    snprintf(h.address, sizeof h.address, "%s", address);
    snprintf(h.addresses[1], sizeof h.addresses[1], "%s", address);
    snprintf(h.facts[0].value, sizeof h.facts[0].value, "%s", program);
    return h;
}

static void test_missing(void **state)
{
    (void)state;
    ty_arrival arrivals[20] = {{.here = true}, {.reason = "name unresolved"}, {.reason = "10.0.1.9 has not called"}};
    const char *many[20];
    char text[512];
    for (int i = 0; i < 20; i++)
        many[i] = "h";
    assert_int_equal(ty_meeting_missing(arrivals, names, 3, text, sizeof text), 2);
    assert_string_equal(text, "algo-2 (name unresolved), algo-3 (10.0.1.9 has not called)");
    assert_int_equal(ty_meeting_missing(arrivals, names, 1, text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_int_equal(ty_meeting_missing(arrivals, many, 20, text, sizeof text), 19);
    assert_non_null(strstr(text, " and 11 more"));
}

static void test_compare(void **state)
{
    (void)state;
    const struct {
        const char *address, *program, *error;
    } rows[] = {
        {"10.0.0.2", "aa", NULL},
        {"10.0.0.2", "bb", "program differs: algo-1 has \"aa\", algo-2 has \"bb\""},
        {"10.0.0.1", "aa", "algo-1 and algo-2 both have the address 10.0.0.1 on \"eth0\""},
        {"127.0.0.1", "aa", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_hello one = make_hello(0, i == 3 ? "127.0.0.1" : "10.0.0.1", "aa"),
                 two = make_hello(1, rows[i].address, rows[i].program);
        ty_arrival arrivals[3] = {{.here = true, .hello = &one}, {.here = true, .hello = &two}, {0}};
        ty_error err = {0};
        assert_int_equal(ty_meeting_compare(arrivals, 3, 1, &err), rows[i].error ? -1 : 0);
        if (rows[i].error)
            assert_non_null(strstr(err.message, rows[i].error));
    }
    /* What only one side tells of is a difference, whichever side that is. */
    ty_hello one = make_hello(0, "10.0.0.1", "aa"), two = make_hello(1, "10.0.0.2", "aa");
    ty_arrival arrivals[2] = {{.here = true, .hello = &one}, {.here = true, .hello = &two}};
    two.n_facts = 0;
    ty_error err = {0};
    assert_int_equal(ty_meeting_compare(arrivals, 2, 1, &err), -1);
    assert_non_null(strstr(err.message, "\"absent\""));
    two.n_facts = 1;
    one.n_facts = 0;
    assert_int_equal(ty_meeting_compare(arrivals, 2, 1, &err), -1);
}

static void test_shared(void **state)
{
    (void)state;
    ty_hello h[3] = {make_hello(0, "10.0.0.1", "a"), make_hello(1, "10.0.0.2", "a"), make_hello(2, "10.0.0.3", "a")};
    ty_arrival arrivals[3] = {
        {.here = true, .hello = &h[0]}, {.here = true, .hello = &h[1]}, {.here = true, .hello = &h[2]}};
    char text[256];
    ty_meeting_shared(arrivals, names, 3, text, sizeof text);
    assert_string_equal(text, "172.17.0.1 (algo-1, algo-2, algo-3)");
    ty_meeting_shared(arrivals, names, 1, text, sizeof text);
    assert_string_equal(text, "");
}

/* Written, read back, and refused at every shorter length. */
static void test_messages(void **state)
{
    (void)state;
    static ty_hello hello, hello_back;
    hello = make_hello(1, "10.0.0.2", "sha256:aa");
    ty_exit exit = {.rank = 5, .pid = 312, .wait_status = 9, .step = -1, .phase = TY_PHASE_SAVE, .text = "tex\x1bt"};
    ty_agent_end end = {.status = 137, .failed = true, .first = {.rank = -1, .host = 1, .step = -1, .text = "lost"}};
    ty_look look = {.shm_bytes = -1, .ptrace_scope = -1, .n_pairs = 1, .pairs = {{.host = 2, .clock_us = -5}}};
    for (int kind = 0; kind < 4; kind++) {
        ty_buf b;
        ty_buf_init(&b, 65536);
        kind == 0   ? ty_put_hello(&b, &hello)
        : kind == 1 ? ty_put_exit(&b, &exit)
        : kind == 2 ? ty_put_end(&b, &end)
                    : ty_put_look(&b, &look);
        for (size_t n = 0; n <= b.len; n++) {
            ty_reader r = {.at = (const uint8_t *)b.data, .end = (const uint8_t *)b.data + n};
            ty_exit exit_back;
            ty_agent_end end_back;
            ty_look look_back;
            int rc = kind == 0   ? ty_get_hello(&r, &hello_back, NULL)
                     : kind == 1 ? ty_get_exit(&r, &exit_back, NULL)
                     : kind == 2 ? ty_get_end_of_job(&r, &end_back, NULL)
                                 : ty_get_look(&r, &look_back, NULL);
            assert_int_equal(rc, n == b.len ? 0 : -1);
            if (n < b.len)
                continue;
            if (kind == 0)
                assert_memory_equal(&hello, &hello_back, sizeof hello);
            if (kind == 1)
                assert_true(exit_back.step == -1 && exit_back.phase == TY_PHASE_SAVE &&
                            strcmp(exit_back.text, "tex?t") == 0);
            if (kind == 2)
                assert_true(end_back.failed && !end_back.stopped && end_back.first.rank == -1 &&
                            end_back.first.step == -1);
            if (kind == 3)
                assert_true(look_back.shm_bytes == -1 && look_back.pairs[0].clock_us == -5);
        }
        ty_buf_fini(&b);
    }
}

static void test_look_table(void **state)
{
    (void)state;
    ty_hello h[2] = {make_hello(0, "10.0.0.1", "a"), make_hello(1, "10.0.0.2", "a")};
    const ty_hello *hellos[2] = {&h[0], &h[1]};
    ty_look looks[2] = {{.shm_bytes = 64 << 20,
                         .files = 1 << 20,
                         .n_pairs = 3,
                         .pairs = {{.host = 1, .round_us = 210, .mbyte_s = 1180, .path_mtu = 1500, .clock_us = 300},
                                   {.host = 1, .round_us = 210, .mbyte_s = 1180},
                                   {.host = 1, .mbyte_s = 100, .clock_us = -2500000}}},
                        {.shm_bytes = INT64_C(1) << 34,
                         .files = 256,
                         .n_pairs = 1,
                         .pairs = {{.host = 0, .failure = "Connection refused"}}}};
    const int ranks[2] = {4, 4};
    ty_buf table, warnings;
    ty_buf_init(&table, 65536);
    ty_buf_init(&warnings, 65536);
    ty_look_table(looks, hellos, ranks, 2, &table, &warnings);
    assert_non_null(
        strstr(table.data, "look: algo-1 -> algo-2: 0.21 ms there and back, 1180 MB/s, MTU 1500, clock +0 ms\n"));
    static const char *const told[] = {"algo-1 has 64 MB free in /dev/shm for 4 ranks",
                                       "algo-2 may open 256 files only", "algo-1 -> algo-2 is slow: 100 MB/s",
                                       "clocks of algo-1 and algo-2 are 2.5 s apart",
                                       "algo-2 does not reach algo-1 on a high port: Connection refused"};
    for (size_t i = 0; i < 5; i++)
        if (!strstr(warnings.data, told[i]))
            fail_msg("not in: %s", warnings.data);
    ty_buf_fini(&table);
    ty_buf_fini(&warnings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing),  cmocka_unit_test(test_compare),    cmocka_unit_test(test_shared),
        cmocka_unit_test(test_messages), cmocka_unit_test(test_look_table),
    };
    return cmocka_run_group_tests_name("meeting", tests, NULL, NULL);
}
