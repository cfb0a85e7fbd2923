/* agent_meet.c - how hosts find each other: the leader listens and says who is missing, the others knock twice a
 * second.
 *
 * Names are looked up in the background (resolver.h). A stranger costs a descriptor, 72 bytes and five seconds, and one
 * line in the log for each address and reason. */
#define _GNU_SOURCE
#include "dist/agent/agent_state.h"

#include "base/version.h"

#include "base/log.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EARLY_KNOCK_MS = 100, EARLY_KNOCKS = 5, KNOCK_MS = 500, TELL_MS = 10000, LONELY_LINKS = 64 };

/* ---- this host ---- */

static int leader_port(const agent *a)
{
    int port = a->o->hosts[0].port ? a->o->hosts[0].port : a->o->port;
    return port ? port : TY_AGENT_PORT;
}

static void fill_address(agent *a, const ty_interface *list, int n, int chosen)
{
    ty_hello *h = &a->hello;
    snprintf(h->interface, sizeof h->interface, "%s", list[chosen].name);
    snprintf(h->address, sizeof h->address, "%s", list[chosen].address);
    h->mtu = list[chosen].mtu;
    h->speed_mbit = list[chosen].speed_mbit;
    for (int i = 0; i < n && h->n_addresses < TY_HELLO_ADDRESSES; i++)
        if (!list[i].loopback && list[i].up)
            snprintf(h->addresses[h->n_addresses++], TY_ADDRESS_TEXT_BYTES, "%s", list[i].address);
}

/* With a given address (tests on one machine) its interface is the wish. */
static const char *interface_of(const ty_interface *list, int n, const char *address)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].address, address) == 0)
            return list[i].name;
    return NULL;
}

static int choose_address(agent *a)
{
    ty_interface *list;
    int n, n_own = 0, chosen;
    const char *const *own = NULL, *failure;
    const ty_agent_host *self = &a->o->hosts[a->o->self];
    if (ty_interfaces_list(&a->arena, &list, &n, a->err) < 0)
        return -1;
    ty_address_wish wish = {.user = a->o->interface, .platform = a->o->platform_interface};
    if (self->address && !wish.user)
        wish.user = interface_of(list, n, self->address);
    if (!wish.user) {
        ty_address_resolve(self->name, &a->arena, &own, &n_own, &failure);
        wish.own = own;
        wish.n_own = n_own;
        wish.default_route = ty_default_route(&a->arena);
    }
    if (ty_address_choose(list, n, &wish, &chosen, &a->why_interface, a->err) < 0)
        return -1;
    fill_address(a, list, n, chosen);
    if (self->address)
        snprintf(a->hello.address, sizeof a->hello.address, "%s", self->address);
    return 0;
}

static void add_fact(ty_hello *h, const char *name, const char *value)
{
    if (h->n_facts == TY_HELLO_FACTS)
        return;
    ty_hello_fact *fact = &h->facts[h->n_facts++];
    snprintf(fact->name, sizeof fact->name, "%s", name);
    snprintf(fact->value, sizeof fact->value, "%s", value);
}

static void fill_hello(agent *a)
{
    ty_hello *h = &a->hello;
    h->host = a->o->self;
    snprintf(h->name, sizeof h->name, "%s", a->o->hosts[a->o->self].name);
    cpu_set_t cores;
    h->cores = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
    h->memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    add_fact(h, "version of trainyard", TY_VERSION);
    ty_buf map;
    ty_buf_init(&map, TY_FACT_VALUE_BYTES - 1);
    for (int i = 0; i < a->o->n_hosts && !map.failed; i++)
        ty_buf_addf(&map, "%s%s:%d", i ? "," : "", a->host_name[i], a->o->hosts[i].ranks);
    add_fact(h, "list of hosts and their ranks", map.data); /* of many hosts, the first ones */
    ty_buf_fini(&map);
    for (int i = 0; i < a->o->n_facts; i++)
        add_fact(h, a->o->facts[i].name, a->o->facts[i].value);
}

/* ---- the leader's door ---- */

void meet_stranger(agent *a, const connection *c, const char *why)
{
    char key[sizeof a->lead.strangers[0]];
    const char *colon = strrchr(c->from, ':');
    snprintf(key, sizeof key, "%.*s: %.60s", colon ? (int)(colon - c->from) : 0, c->from, why);
    for (int i = 0; i < a->lead.n_strangers; i++)
        if (strcmp(a->lead.strangers[i], key) == 0)
            return;
    if (a->lead.n_strangers == (int)(sizeof a->lead.strangers / sizeof a->lead.strangers[0]))
        return;
    memcpy(a->lead.strangers[a->lead.n_strangers++], key, sizeof key);
    ty_log_warning("dist", "a connection from %s was refused: %s (told once for each address)", c->from, why);
}

/* Who has named an interface may well use addresses that no name leads to. */
static bool knows(agent *a, const char *address)
{
    return a->o->interface || ty_resolver_owner(a->resolver, address) >= 0;
}

static int count_strangers(const agent *a)
{
    int n = 0;
    for (const connection *c = a->connections; c; c = c->next)
        n += !c->dead && c->host < 0;
    return n;
}

static void accept_one(agent *a, int fd, const struct sockaddr_storage *from)
{
    char address[TY_ADDRESS_TEXT_BYTES], text[TY_ADDRESS_TEXT_BYTES + 8];
    ty_address_text(from, address);
    int port = ntohs(from->ss_family == AF_INET ? ((const struct sockaddr_in *)from)->sin_port
                                                : ((const struct sockaddr_in6 *)from)->sin6_port);
    snprintf(text, sizeof text, "%s:%d", address, port);
    connection stand_in = {.fd = -1};
    snprintf(stand_in.from, sizeof stand_in.from, "%s", text);
    if (!knows(a, address)) {
        if (ty_resolver_complete(a->resolver)) /* else it may be one whose name is not known yet: it will call again */
            meet_stranger(a, &stand_in, "no host of this job has this address");
    } else if (count_strangers(a) >= LONELY_LINKS + a->o->n_hosts)
        meet_stranger(a, &stand_in, "too many connections that have not said who they are");
    else {
        connection *c = connection_new(a, fd, true, text);
        if (c)
            connection_flush(a, c);
        return;
    }
    close(fd);
}

static void door(agent *a, void *owner, uint32_t events)
{
    (void)owner;
    (void)events;
    for (int i = 0; i < 64; i++) {
        struct sockaddr_storage from = {0};
        socklen_t n = sizeof from;
        int fd = accept4(a->lead.listen_fd, (struct sockaddr *)&from, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        accept_one(a, fd, &from);
    }
}

static int open_door(agent *a)
{
    struct sockaddr_storage address;
    socklen_t n_bytes;
    int one = 1, port = leader_port(a);
    if (ty_address_parse(a->hello.address, port, &address, &n_bytes) < 0)
        return ty_error_set(a->err, TY_E_CONFIG, "\"%s\" is not an address to listen on", a->hello.address);
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, n_bytes) < 0 || listen(fd, 1024) < 0) {
        int number = errno;
        if (fd >= 0)
            close(fd);
        return ty_error_errno(a->err, TY_E_CREATE, number, "cannot listen on %s port %d", a->hello.address, port);
    }
    a->lead.listen_fd = fd;
    a->lead.listen_source = (source){door, NULL};
    return agent_watch(a, fd, &a->lead.listen_source, EPOLLIN, true, a->err);
}

/* ---- prepare ---- */

static void start_preflight(agent *a)
{
    ty_error err = {0};
    if (!a->o->preflight)
        return;
    if (ty_preflight_start(a->key, a->hello.address, a->o->self, &a->preflight, &a->hello.look_port, &err) < 0)
        ty_log_warning("dist", "no look at the network: %s", err.message);
}

static int start_resolver(agent *a)
{
    const char **fixed = TY_NEW_ARRAY(&a->arena, const char *, a->o->n_hosts);
    for (int i = 0; i < a->o->n_hosts; i++)
        fixed[i] = a->o->hosts[i].address;
    /* A member looks for the leader alone. */
    return ty_resolver_start(a->host_name, fixed, a->leads ? a->o->n_hosts : 1, &a->resolver, a->err);
}

int meet_prepare(agent *a)
{
    fill_hello(a);
    if (a->o->n_hosts > 1) {
        if (choose_address(a) < 0 || start_resolver(a) < 0)
            return -1;
        ty_log_info("dist", "%s uses %s (%s), %s, MTU %d", a->hello.name, a->hello.interface, a->why_interface,
                    a->hello.address, a->hello.mtu);
        start_preflight(a);
    }
    if (!a->leads)
        return 0;
    a->lead.arrivals[0] = (ty_arrival){.here = true, .hello = &a->hello};
    if (a->o->n_hosts > 1)
        return open_door(a);
    lead_all_here(a);
    return 0;
}

/* ---- knocking ---- */

static int bind_to_own(agent *a, int fd, int family)
{
    struct sockaddr_storage own;
    socklen_t n_bytes;
    if (ty_address_parse(a->hello.address, 0, &own, &n_bytes) < 0 || own.ss_family != family)
        return 0;
    return bind(fd, (const struct sockaddr *)&own, n_bytes);
}

static void knock(agent *a)
{
    char address[TY_ADDRESS_TEXT_BYTES], failure[64];
    struct sockaddr_storage leader;
    socklen_t n_bytes;
    if (!ty_resolver_get(a->resolver, 0, address, failure)) {
        snprintf(a->waits_for, sizeof a->waits_for, "%s (name unresolved: %s)", a->host_name[0], failure);
        return;
    }
    if (ty_address_parse(address, leader_port(a), &leader, &n_bytes) < 0)
        return;
    int fd = socket(leader.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind_to_own(a, fd, leader.ss_family) < 0 ||
        (connect(fd, (const struct sockaddr *)&leader, n_bytes) < 0 && errno != EINPROGRESS)) {
        snprintf(a->waits_for, sizeof a->waits_for, "%s (%s: %s)", a->host_name[0], address, strerror(errno));
        if (fd >= 0)
            close(fd);
        return;
    }
    a->to_leader = connection_new(a, fd, false, address);
}

void meet_tick(agent *a)
{
    if (!a->leads && !a->to_leader && a->now_ms >= a->knock_ms) {
        a->knock_ms = a->now_ms + (a->knocks++ < EARLY_KNOCKS ? EARLY_KNOCK_MS : KNOCK_MS);
        knock(a);
    }
    if (!a->leads && a->leave_ms && a->now_ms >= a->leave_ms) {
        ty_error_set(a->err, TY_E_STOPPED, "asked to stop while waiting for %s",
                     a->waits_for[0] ? a->waits_for : "the other hosts");
        agent_over(a, -1);
        return;
    }
    /* Who does not prove himself in time; for a member, a leader that takes no notice. */
    for (connection *c = a->connections; c; c = c->next)
        if (!c->dead && c->host < 0 && c->link.state != TY_LINK_OPEN && a->now_ms - c->born_ms > TY_LINK_STRANGER_MS) {
            connection_drop(a, c);
            agent_on_lost(a, c, TY_E_IO, "no greeting within 5 s");
        }
}

/* ---- waiting ---- */

static void update_reasons(agent *a)
{
    for (int i = 1; i < a->o->n_hosts; i++) {
        char address[TY_ADDRESS_TEXT_BYTES], failure[64];
        ty_arrival *at = &a->lead.arrivals[i];
        if (at->here)
            continue;
        if (!ty_resolver_get(a->resolver, i, address, failure))
            snprintf(at->reason, sizeof at->reason, "name unresolved");
        else if (!at->reason[0] || strcmp(at->reason, "name unresolved") == 0)
            snprintf(at->reason, sizeof at->reason, "%s has not called", address);
    }
}

void meet_tell_missing(agent *a)
{
    update_reasons(a);
    ty_meeting_missing(a->lead.arrivals, a->host_name, a->o->n_hosts, a->waits_for, sizeof a->waits_for);
}

static int give_up(agent *a, double seconds)
{
    if (a->leads) {
        int missing =
            ty_meeting_missing(a->lead.arrivals, a->host_name, a->o->n_hosts, a->waits_for, sizeof a->waits_for);
        ty_error_set(a->err, TY_E_CONFIG, "%d of %d hosts did not arrive within %.0f s: %s", missing, a->o->n_hosts,
                     seconds, a->waits_for);
    } else {
        ty_error_set(a->err, TY_E_CONFIG, "the job did not begin within %.0f s; waited for %s", seconds, a->waits_for);
    }
    return ty_error_help(a->err, "see whether those hosts started, and that port %d is open between the hosts",
                         leader_port(a));
}

void meet_second(agent *a)
{
    int64_t waited_ms = a->now_ms - a->began_ms;
    if (a->leads && a->lead.told_end)
        return;
    if (a->leads) {
        meet_tell_missing(a);
        ty_buf text;
        ty_buf_init(&text, 1024);
        ty_put_text(&text, a->waits_for);
        agent_tell_all(a, TY_MESSAGE_BEAT, &text);
        ty_buf_fini(&text);
    }
    if (waited_ms - a->told_waiting_ms >= TELL_MS && a->waits_for[0]) {
        a->told_waiting_ms = waited_ms;
        ty_log_info("dist", "waiting for %s, %lld s", a->waits_for, (long long)(waited_ms / 1000));
    }
    /* A member gives the leader time to say it better. */
    if (waited_ms < a->o->meet_ms + (a->leads ? 0 : 5000))
        return;
    give_up(a, (double)waited_ms / 1000);
    if (a->leads)
        lead_refuse(a, a->err->message);
    agent_over(a, -1);
}

/* ---- arrivals ---- */

static void refuse_one(agent *a, connection *c, const char *text)
{
    ty_buf b;
    ty_buf_init(&b, 4096);
    ty_put_text(&b, text);
    ty_link_send(&c->link, TY_MESSAGE_REFUSE, b.data, b.len, NULL);
    ty_buf_fini(&b);
    c->last_words = true;
    connection_flush(a, c);
}

/* Why this host may not come in; NULL: it may. */
static const char *objection(agent *a, const ty_hello *hello, char text[512])
{
    if (hello->host <= 0 || hello->host >= a->o->n_hosts ||
        strcmp(hello->name, a->host_name[hello->host > 0 && hello->host < a->o->n_hosts ? hello->host : 0]) != 0) {
        snprintf(text, 512,
                 "the leader %s knows no host \"%s\" with number %d: the hosts have different lists of hosts",
                 a->host_name[0], hello->name, hello->host);
        return text;
    }
    if (a->phase != PHASE_MEET) {
        snprintf(text, 512, "the job has begun without %s", hello->name);
        return text;
    }
    const connection *other = a->lead.member[hello->host];
    if (!other)
        return NULL;
    snprintf(text, 512, "%s is here already, from %s", hello->name, other->from);
    return text;
}

void meet_hello(agent *a, connection *c, const ty_hello *hello)
{
    char text[512];
    ty_error err = {0};
    if (objection(a, hello, text)) {
        ty_log_warning("dist", "%s from %s was refused: %s", hello->name, c->from, text);
        refuse_one(a, c, text);
        return;
    }
    ty_arrival *at = &a->lead.arrivals[hello->host];
    if (!at->hello)
        at->hello = TY_NEW(&a->arena, ty_hello);
    *at->hello = *hello;
    at->here = true;
    c->host = hello->host;
    a->lead.member[hello->host] = c;
    ty_log_info("dist", "%s is here: %s %s, %d cores, %.1f GB of memory", hello->name, hello->interface, hello->address,
                hello->cores, (double)hello->memory_bytes / 1e9);
    if (a->lead.told_end) {
        lead_say_goodbye(a, hello->host);
        return;
    }
    if (ty_meeting_compare(a->lead.arrivals, a->o->n_hosts, hello->host, &err) < 0) {
        *a->err = err;
        lead_refuse(a, err.message);
        agent_over(a, -1);
        return;
    }
    for (int i = 0; i < a->o->n_hosts; i++)
        if (!a->lead.arrivals[i].here)
            return;
    lead_all_here(a);
}
