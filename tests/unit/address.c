/* Which interface a job uses: the rules as a table, and what this machine says of itself. */
#include "dist/agent/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define LO                                                                 \
    {                                                                      \
        .name = "lo", .address = "127.0.0.1", .up = true, .loopback = true \
    }
#define LO6                                                                      \
    {                                                                            \
        .name = "lo", .address = "::1", .up = true, .loopback = true, .v6 = true \
    }
#define ETH0                                              \
    {                                                     \
        .name = "eth0", .address = "10.0.1.7", .up = true \
    }
#define ETH0_6                                                       \
    {                                                                \
        .name = "eth0", .address = "fd00::7", .up = true, .v6 = true \
    }
#define ETH1                                              \
    {                                                     \
        .name = "eth1", .address = "10.0.2.7", .up = true \
    }
#define DOWN                                  \
    {                                         \
        .name = "eth9", .address = "10.0.9.7" \
    }
#define DOCKER                                                 \
    {                                                          \
        .name = "docker0", .address = "172.17.0.1", .up = true \
    }
#define BRIDGE                                                 \
    {                                                          \
        .name = "br-12ab", .address = "172.18.0.1", .up = true \
    }

typedef struct choice_case {
    const char *name;
    ty_interface list[8];
    const char *user, *platform, *own, *route, *shared;
    const char *expected, *why; /* address; NULL: an error that contains `why` */
} choice_case;

static const choice_case cases[] = {
    {"one interface", {LO, ETH0}, .expected = "10.0.1.7", .why = "the only one"},
    {"docker's bridge is none", {LO, DOCKER, ETH0}, .expected = "10.0.1.7", .why = "the only one"},
    {"nor are others", {LO, BRIDGE, DOCKER, ETH0}, .expected = "10.0.1.7", .why = "the only one"},
    {"the user's word",
     {LO, ETH0, ETH1},
     .user = "eth1",
     .platform = "eth0",
     .expected = "10.0.2.7",
     .why = "asked for"},
    {"loopback for who asks", {LO, ETH0}, .user = "lo", .expected = "127.0.0.1", .why = "asked for"},
    {"a bridge for who asks", {LO, DOCKER}, .user = "docker0", .expected = "172.17.0.1", .why = "asked for"},
    {"the user's is absent", {LO, ETH0}, .user = "ib0", .why = "no interface \"ib0\""},
    {"the platform's",
     {LO, ETH0, ETH1},
     .platform = "eth1",
     .own = "10.0.1.7",
     .expected = "10.0.2.7",
     .why = "of resourceconfig.json"},
    {"the platform's is absent",
     {LO, ETH0, ETH1},
     .platform = "ethwe",
     .own = "10.0.2.7",
     .expected = "10.0.2.7",
     .why = "of this host's name"},
    {"the name before the route",
     {LO, ETH0, ETH1},
     .own = "10.0.2.7",
     .route = "eth0",
     .expected = "10.0.2.7",
     .why = "of this host's name"},
    {"a name that is loopback",
     {LO, ETH0, ETH1},
     .own = "127.0.0.1",
     .route = "eth1",
     .expected = "10.0.2.7",
     .why = "of the default route"},
    {"a name on docker's bridge",
     {LO, DOCKER, ETH0},
     .own = "172.17.0.1",
     .expected = "10.0.1.7",
     .why = "the only one"},
    {"an address of several hosts",
     {LO, ETH0, ETH1},
     .own = "10.0.1.7",
     .shared = "10.0.1.7",
     .expected = "10.0.2.7",
     .why = "the only one"},
    {"route by an address of several",
     {LO, ETH0, ETH1},
     .route = "eth0",
     .shared = "10.0.1.7",
     .expected = "10.0.2.7",
     .why = "the only one"},
    {"two, and nothing tells", {LO, ETH0, ETH1}, .why = "none of the 3 addresses"},
    {"down", {LO, DOWN, ETH0}, .route = "eth9", .expected = "10.0.1.7", .why = "the only one"},
    {"IPv4 before IPv6", {LO, LO6, ETH0_6, ETH0}, .expected = "10.0.1.7", .why = "the only one"},
    {"IPv4 of the user's", {LO, ETH0_6, ETH0}, .user = "eth0", .expected = "10.0.1.7", .why = "asked for"},
    {"IPv6 if there is nothing else", {LO, LO6, ETH0_6}, .expected = "fd00::7", .why = "the only one"},
    {"IPv6 by its name", {LO, ETH0_6, ETH1}, .own = "fd00::7", .expected = "fd00::7", .why = "of this host's name"},
    {"nothing but loopback", {LO, LO6}, .own = "127.0.0.1", .route = "lo", .why = "none of the 2 addresses"},
    {"nothing", {{0}}, .why = "none of the 0 addresses"},
};

static void test_choice(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const choice_case *c = &cases[i];
        int n = 0, chosen;
        while (n < 8 && c->list[n].name)
            n++;
        ty_address_wish wish = {.user = c->user,
                                .platform = c->platform,
                                .own = &c->own,
                                .n_own = c->own != NULL,
                                .default_route = c->route,
                                .shared = &c->shared,
                                .n_shared = c->shared != NULL};
        const char *why = "";
        ty_error err = {0};
        int rc = ty_address_choose(c->list, n, &wish, &chosen, &why, &err);
        if (rc != (c->expected ? 0 : -1) || (rc == 0 && strcmp(c->list[chosen].address, c->expected) != 0) ||
            !strstr(rc == 0 ? why : err.message, c->why))
            fail_msg("%s: %s (%s)", c->name, rc == 0 ? c->list[chosen].address : err.message, why);
    }
}

static void test_numeric(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out; /* NULL: refused */
    } rows[] = {{"10.0.1.7", "10.0.1.7"}, {"fd00::7", "fd00::7"}, {"::ffff:10.0.1.7", "10.0.1.7"},
                {"algo-1", NULL},         {"10.0.1", NULL},       {"", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sockaddr_storage address;
        socklen_t n_bytes;
        char text[TY_ADDRESS_TEXT_BYTES];
        assert_int_equal(ty_address_parse(rows[i].in, 7777, &address, &n_bytes), rows[i].out ? 0 : -1);
        if (rows[i].out)
            assert_string_equal(ty_address_text(&address, text), rows[i].out);
    }
}

static void test_machine(void **state)
{
    (void)state;
    ty_arena arena;
    ty_arena_init(&arena);
    ty_interface *list;
    int n, loopbacks = 0;
    assert_int_equal(ty_interfaces_list(&arena, &list, &n, NULL), 0);
    for (int i = 0; i < n; i++)
        loopbacks += list[i].loopback && list[i].up && strcmp(list[i].address, "127.0.0.1") == 0;
    assert_int_equal(loopbacks, 1);
    ty_default_route(&arena);
    const char *const *addresses, *failure;
    ty_address_resolve("127.0.0.1", &arena, &addresses, &n, &failure);
    assert_true(n == 1 && !failure && strcmp(addresses[0], "127.0.0.1") == 0);
    ty_address_resolve("no-such-host.invalid", &arena, &addresses, &n, &failure);
    assert_true(n == 0 && failure);
    ty_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_numeric),
        cmocka_unit_test(test_machine),
    };
    return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
