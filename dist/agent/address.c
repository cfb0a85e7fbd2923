/* address.c - interfaces are listed by the system, chosen by a table of rules.
 *
 * The choice is a function of lists of texts, so that every trap can be a row of a test; only ty_interfaces_list,
 * ty_default_route and ty_address_resolve ask the machine. */
#define _GNU_SOURCE
#include "dist/agent/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the machine ---- */

/* A number out of /sys/class/net/NAME/WHAT, 0 if there is none. */
static int read_number(const char *name, const char *what)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/class/net/%s/%s", name, what);
    FILE *file = fopen(path, "re");
    long value = 0;
    if (file && fscanf(file, "%ld", &value) != 1)
        value = 0;
    if (file)
        fclose(file);
    return value > 0 && value < 100000000 ? (int)value : 0;
}

const char *ty_address_text(const struct sockaddr_storage *address, char out[TY_ADDRESS_TEXT_BYTES])
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    if (address->ss_family == AF_INET)
        inet_ntop(AF_INET, &v4->sin_addr, out, TY_ADDRESS_TEXT_BYTES);
    else if (address->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
        inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], out, TY_ADDRESS_TEXT_BYTES);
    else if (address->ss_family == AF_INET6)
        inet_ntop(AF_INET6, &v6->sin6_addr, out, TY_ADDRESS_TEXT_BYTES);
    else
        memcpy(out, "?", 2);
    return out;
}

int ty_address_parse(const char *address, int port, struct sockaddr_storage *out, socklen_t *n_bytes)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        *n_bytes = sizeof *v4;
        return 0;
    }
    if (inet_pton(AF_INET6, address, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        *n_bytes = sizeof *v6;
        return 0;
    }
    return -1;
}

static bool is_listed(const struct ifaddrs *i)
{
    if (!i->ifa_addr || (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
        return false;
    return i->ifa_addr->sa_family == AF_INET ||
           !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)i->ifa_addr)->sin6_addr);
}

int ty_interfaces_list(ty_arena *a, ty_interface **list, int *n, ty_error *err)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot list the network interfaces");
    *n = 0;
    for (const struct ifaddrs *i = all; i; i = i->ifa_next)
        *n += is_listed(i);
    *list = TY_NEW_ARRAY(a, ty_interface, *n);
    ty_interface *at = *list;
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        if (!is_listed(i))
            continue;
        char text[TY_ADDRESS_TEXT_BYTES];
        bool v6 = i->ifa_addr->sa_family == AF_INET6;
        struct sockaddr_storage address = {0};
        memcpy(&address, i->ifa_addr, v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
        *at++ = (ty_interface){.name = ty_arena_strdup(a, i->ifa_name),
                               .address = ty_arena_strdup(a, ty_address_text(&address, text)),
                               .up = i->ifa_flags & IFF_UP,
                               .loopback = i->ifa_flags & IFF_LOOPBACK,
                               .v6 = v6,
                               .mtu = read_number(i->ifa_name, "mtu"),
                               .speed_mbit = read_number(i->ifa_name, "speed")};
    }
    freeifaddrs(all);
    return 0;
}

/* Rows of /proc/net/route: name, destination and gateway as hexadecimal numbers, ..., mask as the eighth. */
const char *ty_default_route(ty_arena *a)
{
    FILE *file = fopen("/proc/net/route", "re");
    char line[256], name[32];
    const char *found = NULL;
    while (file && !found && fgets(line, sizeof line, file)) {
        unsigned long destination, mask;
        if (sscanf(line, "%31s %lx %*x %*x %*d %*d %*d %lx", name, &destination, &mask) == 3 && destination == 0 &&
            mask == 0)
            found = ty_arena_strdup(a, name);
    }
    if (file)
        fclose(file);
    return found;
}

void ty_address_resolve(const char *host, ty_arena *a, const char *const **addresses, int *n, const char **failure)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *found = NULL;
    *n = 0;
    *addresses = NULL;
    *failure = NULL;
    int rc = getaddrinfo(host, NULL, &hints, &found);
    if (rc != 0) {
        *failure = rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc);
        return;
    }
    int count = 0;
    for (const struct addrinfo *i = found; i; i = i->ai_next)
        count++;
    const char **texts = TY_NEW_ARRAY(a, const char *, count);
    for (int family = 0; family < 2; family++)
        for (const struct addrinfo *i = found; i; i = i->ai_next) {
            struct sockaddr_storage address = {0};
            char text[TY_ADDRESS_TEXT_BYTES];
            if (i->ai_family != (family == 0 ? AF_INET : AF_INET6) || i->ai_addrlen > sizeof address)
                continue;
            memcpy(&address, i->ai_addr, i->ai_addrlen);
            texts[(*n)++] = ty_arena_strdup(a, ty_address_text(&address, text));
        }
    freeaddrinfo(found);
    *addresses = texts;
}

/* ---- the choice ---- */

static bool contains(const char *const *list, int n, const char *text)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i], text) == 0)
            return true;
    return false;
}

/* Interfaces that container engines and hypervisors make for themselves. */
static bool is_inner(const char *name)
{
    static const char *const beginnings[] = {"docker", "veth", "br-", "virbr", "cni", "flannel", "cali"};
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return strcmp(name, "lo") == 0;
}

/* Why an entry is never chosen by itself; NULL: it may be. */
static const char *exclusion(const ty_interface *i, const ty_address_wish *wish)
{
    if (i->loopback)
        return "loopback";
    if (!i->up)
        return "down";
    if (contains(wish->shared, wish->n_shared, i->address))
        return "other hosts have this address too";
    return is_inner(i->name) ? "of this host alone" : NULL;
}

/* The entry of an interface, IPv4 before IPv6; -1: none. `any`: also those that are not chosen by themselves. */
static int find_interface(const ty_interface *list, int n, const ty_address_wish *wish, const char *name, bool any)
{
    for (int v6 = 0; v6 < 2; v6++)
        for (int i = 0; i < n; i++)
            if (list[i].v6 == (v6 == 1) && strcmp(list[i].name, name) == 0 && (any || !exclusion(&list[i], wish)))
                return i;
    return -1;
}

static int find_own(const ty_interface *list, int n, const ty_address_wish *wish)
{
    for (int v6 = 0; v6 < 2; v6++)
        for (int i = 0; i < n; i++)
            if (list[i].v6 == (v6 == 1) && contains(wish->own, wish->n_own, list[i].address) &&
                !exclusion(&list[i], wish))
                return i;
    return -1;
}

/* The only interface that is left: several addresses of it are no doubt, several interfaces are. */
static int find_only(const ty_interface *list, int n, const ty_address_wish *wish)
{
    int found = -1;
    for (int i = 0; i < n; i++) {
        if (exclusion(&list[i], wish))
            continue;
        if (found >= 0 && strcmp(list[found].name, list[i].name) != 0)
            return -1;
        if (found < 0 || (list[found].v6 && !list[i].v6))
            found = i;
    }
    return found;
}

static int complain(const ty_interface *list, int n, const ty_address_wish *wish, ty_error *err)
{
    if (wish->user)
        ty_error_set(err, TY_E_NOT_FOUND, "network: there is no interface \"%s\" with an address", wish->user);
    else
        ty_error_set(err, TY_E_NOT_FOUND, "network: none of the %d addresses of this host is sure to be the job's", n);
    for (int i = 0; i < n; i++) {
        const char *why = exclusion(&list[i], wish);
        ty_error_detail(err, "%-12s %s%s%s%s", list[i].name, list[i].address, why ? " (" : "", why ? why : "",
                        why ? ")" : "");
    }
    return ty_error_help(err, "name the interface that the hosts share");
}

int ty_address_choose(const ty_interface *list, int n, const ty_address_wish *wish, int *chosen, const char **why,
                      ty_error *err)
{
    *chosen = -1;
    if (wish->user) {
        *chosen = find_interface(list, n, wish, wish->user, true);
        *why = "asked for";
        return *chosen < 0 ? complain(list, n, wish, err) : 0;
    }
    if (wish->platform) {
        *chosen = find_interface(list, n, wish, wish->platform, true);
        *why = "of resourceconfig.json";
    }
    if (*chosen < 0) {
        *chosen = find_own(list, n, wish);
        *why = "of this host's name";
    }
    if (*chosen < 0 && wish->default_route) {
        *chosen = find_interface(list, n, wish, wish->default_route, false);
        *why = "of the default route";
    }
    if (*chosen < 0) {
        *chosen = find_only(list, n, wish);
        *why = "the only one";
    }
    return *chosen < 0 ? complain(list, n, wish, err) : 0;
}
