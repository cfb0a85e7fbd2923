/* meeting.c - texts and comparisons of a meeting. A newcomer's facts are compared with those of one host that is
 * there: equality is transitive, so that says as much as all pairs. */
#include "dist/agent/meeting.h"

#include <stdio.h>
#include <string.h>

enum { TOLD = 8 }; /* of a thousand hosts that are not there, the first few are enough */

int ty_meeting_missing(const ty_arrival *arrivals, const char *const *host_name, int n, char *out, size_t n_bytes)
{
    ty_buf b;
    ty_buf_init(&b, n_bytes - 1);
    int missing = 0;
    for (int i = 0; i < n; i++) {
        if (arrivals[i].here || missing++ >= TOLD)
            continue;
        ty_buf_addf(&b, "%s%s (%s)", missing > 1 ? ", " : "", host_name[i], arrivals[i].reason);
    }
    if (missing > TOLD)
        ty_buf_addf(&b, " and %d more", missing - TOLD);
    snprintf(out, n_bytes, "%s", b.data);
    ty_buf_fini(&b);
    return missing;
}

static const char *find_fact(const ty_hello *h, const char *name)
{
    for (int i = 0; i < h->n_facts; i++)
        if (strcmp(h->facts[i].name, name) == 0)
            return h->facts[i].value;
    return "absent";
}

/* Differences of b from a, in the facts that a names. */
static int compare_facts(const ty_hello *a, const ty_hello *b, ty_error *err)
{
    for (int i = 0; i < a->n_facts; i++) {
        const char *other = find_fact(b, a->facts[i].name);
        if (strcmp(a->facts[i].value, other) != 0)
            return ty_error_set(err, TY_E_CONFIG, "%s differs: %s has \"%s\", %s has \"%s\"", a->facts[i].name, a->name,
                                a->facts[i].value, b->name, other);
    }
    return 0;
}

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

static int compare_addresses(const ty_hello *one, const ty_hello *other, ty_error *err)
{
    if (strcmp(one->address, other->address) != 0 || is_loopback(one->address))
        return 0;
    ty_error_set(err, TY_E_CONFIG,
                 "%s and %s both have the address %s on \"%s\": it is not the one by which they reach each other",
                 one->name, other->name, other->address, other->interface);
    return ty_error_help(err, "name the interface that the hosts share");
}

int ty_meeting_compare(const ty_arrival *arrivals, int n, int newcomer, ty_error *err)
{
    const ty_hello *own = arrivals[newcomer].hello;
    bool facts_compared = false;
    for (int i = 0; i < n; i++) {
        if (!arrivals[i].here || i == newcomer)
            continue;
        const ty_hello *other = arrivals[i].hello;
        if (!facts_compared && (compare_facts(other, own, err) < 0 || compare_facts(own, other, err) < 0))
            return -1;
        facts_compared = true;
        if (compare_addresses(other, own, err) < 0)
            return -1;
    }
    return 0;
}

static bool has_address(const ty_hello *h, const char *address)
{
    for (int i = 0; i < h->n_addresses; i++)
        if (strcmp(h->addresses[i], address) == 0)
            return true;
    return false;
}

/* Appends the address and its hosts, if host i is the first of several that have it. */
static void add_shared(const ty_arrival *arrivals, const char *const *host_name, int n, int i, const char *address,
                       ty_buf *b)
{
    int count = 0;
    for (int k = 0; k < n; k++) {
        if (!arrivals[k].here || !has_address(arrivals[k].hello, address))
            continue;
        if (k < i)
            return;
        if (count++ == 1)
            ty_buf_addf(b, "%s%s (%s, %s", b->len ? ", " : "", address, host_name[i], host_name[k]);
        else if (count == 4)
            ty_buf_adds(b, " ...");
        else if (count == 3)
            ty_buf_addf(b, ", %s", host_name[k]);
    }
    if (count > 1)
        ty_buf_addc(b, ')');
}

void ty_meeting_shared(const ty_arrival *arrivals, const char *const *host_name, int n, char *out, size_t n_bytes)
{
    ty_buf b;
    ty_buf_init(&b, n_bytes - 1);
    for (int i = 0; i < n; i++)
        for (int k = 0; arrivals[i].here && k < arrivals[i].hello->n_addresses; k++)
            add_shared(arrivals, host_name, n, i, arrivals[i].hello->addresses[k], &b);
    snprintf(out, n_bytes, "%s", b.data);
    ty_buf_fini(&b);
}
