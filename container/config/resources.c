/* resources.c - reads resourceconfig.json in all its ages: three keys, groups, topology. */
#include "container/config/resources.h"

#include "base/suggest.h"

#include <stdlib.h>
#include <string.h>

#define RESOURCE_HOSTS_MAX 100000

static const ty_doc *resource_find(const ty_doc *map, const char *key)
{
    const ty_doc *d = ty_doc_find(map, key);

    return d != NULL && d->kind == TY_DOC_NULL ? NULL : d; /* null counts as absent */
}

static const ty_doc *resource_require(const ty_doc *map, const char *key, ty_error *err)
{
    const ty_doc *d = resource_find(map, key);

    if (d == NULL)
        ty_doc_error(map, err, TY_E_MISSING_KEY, NULL, "\"%s\" is missing", key);
    return d;
}

static int resource_name(ty_arena *a, const ty_doc *d, const char **out, ty_error *err)
{
    const char *text;

    if (ty_doc_string(d, &text, err) < 0)
        return -1;
    if (text[0] == '\0')
        return ty_doc_error(d, err, TY_E_RANGE, NULL, "expected a name, found an empty string");
    *out = ty_arena_strdup(a, text);
    return 0;
}

/* A key whose absence is normal in old files. */
static int resource_optional(ty_arena *a, const ty_doc *map, const char *key, const char *fallback, const char **out,
                             ty_error *err)
{
    const ty_doc *d = resource_find(map, key);

    *out = fallback;
    return d == NULL ? 0 : resource_name(a, d, out, err);
}

static int resource_compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int resource_refuse_repeats(const ty_doc *list, const char *const *names, size_t n, ty_error *err)
{
    const char **sorted = calloc(n + 1, sizeof *sorted);
    int rc = 0;

    if (sorted == NULL)
        return ty_error_set(err, TY_E_LIMIT, "out of memory");
    for (size_t i = 0; i < n; i++)
        sorted[i] = names[i];
    qsort(sorted, n, sizeof *sorted, resource_compare_names);
    for (size_t i = 1; rc == 0 && i < n; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            rc = ty_doc_error(list, err, TY_E_RANGE, NULL, "host \"%s\" is listed twice", sorted[i]);
    free(sorted);
    return rc;
}

static int resource_hosts(ty_arena *a, const ty_doc *list, const char *const **out, size_t *n_out, ty_error *err)
{
    if (ty_doc_expect(list, TY_DOC_LIST, err) < 0)
        return -1;
    if (list->n_items > RESOURCE_HOSTS_MAX)
        return ty_doc_error(list, err, TY_E_RANGE, NULL, "%u hosts, at most %d are allowed", list->n_items,
                            RESOURCE_HOSTS_MAX);

    const char **hosts = TY_NEW_ARRAY(a, const char *, list->n_items + 1);

    for (size_t i = 0; i < list->n_items; i++)
        if (resource_name(a, &list->items[i], &hosts[i], err) < 0)
            return -1;
    *out = hosts;
    *n_out = list->n_items;
    return resource_refuse_repeats(list, hosts, list->n_items, err);
}

static int resource_group(ty_arena *a, const ty_doc *d, ty_instance_group *group, ty_error *err)
{
    const ty_doc *name, *hosts;

    if (ty_doc_expect(d, TY_DOC_MAP, err) < 0 || (name = resource_require(d, "instance_group_name", err)) == NULL ||
        (hosts = resource_require(d, "hosts", err)) == NULL)
        return -1;
    if (resource_name(a, name, &group->name, err) < 0 ||
        resource_optional(a, d, "instance_type", "", &group->instance_type, err) < 0)
        return -1;
    return resource_hosts(a, hosts, &group->hosts, &group->n_hosts, err);
}

static int resource_groups(ty_resources *r, ty_arena *a, const ty_doc *list, ty_error *err)
{
    r->groups_raw = ty_value_list();
    if (list == NULL)
        return 0;
    if (ty_doc_expect(list, TY_DOC_LIST, err) < 0)
        return -1;
    if (list->n_items > 100)
        return ty_doc_error(list, err, TY_E_RANGE, NULL, "%u instance groups, at most 100 are allowed", list->n_items);

    ty_instance_group *groups = TY_NEW_ARRAY(a, ty_instance_group, list->n_items);

    r->groups = groups;
    for (size_t i = 0; i < list->n_items; i++) {
        if (resource_group(a, &list->items[i], &groups[i], err) < 0)
            return -1;
        if (ty_resources_group(r, groups[i].name) != NULL)
            return ty_doc_error(&list->items[i], err, TY_E_RANGE, NULL, "instance group \"%s\" is listed twice",
                                groups[i].name);
        r->n_groups = i + 1;
    }
    r->groups_raw = ty_value_from_doc(a, list);
    return 0;
}

static int resource_find_self(ty_resources *r, const ty_doc *current, ty_error *err)
{
    for (size_t i = 0; i < r->n_hosts; i++)
        if (strcmp(r->hosts[i], r->current_host) == 0) {
            r->host_index = i;
            return 0;
        }

    const char *near = ty_suggest(r->current_host, r->hosts, r->n_hosts);
    ty_doc_error(current, err, TY_E_CONFIG, NULL, "\"current_host\" is \"%s\", which is not among the %zu \"hosts\"",
                 r->current_host, r->n_hosts);
    return near == NULL ? -1 : ty_error_help(err, "did you mean \"%s\"?", near);
}

static void resource_single_host(ty_resources *r, ty_arena *a)
{
    static const char *const hosts[] = {"localhost"};

    *r = (ty_resources){.current_host = hosts[0],
                        .hosts = hosts,
                        .n_hosts = 1,
                        .instance_type = "local",
                        .current_group = "homogeneousCluster",
                        .network_interface = "eth0"};
    r->groups_raw = ty_value_list();
    r->topology = ty_value_list();
    r->whole = ty_value_dict();
    ty_value_put(a, &r->whole, ty_value_string(a, "current_host"), ty_value_string(a, hosts[0]));
    ty_value_put(a, &r->whole, ty_value_string(a, "hosts"), ty_value_strings(a, hosts, 1));
}

/* "current_instance_group" is how the toolkit's self-made local file spells it. */
static int resource_current_group(ty_resources *r, ty_arena *a, const ty_doc *doc, ty_error *err)
{
    const char *older;

    if (resource_optional(a, doc, "current_instance_group", "homogeneousCluster", &older, err) < 0)
        return -1;
    return resource_optional(a, doc, "current_group_name", older, &r->current_group, err);
}

int ty_resources_init(ty_resources *r, ty_arena *a, const ty_doc *doc, ty_error *err)
{
    const ty_doc *hosts, *current, *topology;

    *r = (ty_resources){0};
    if (doc == NULL) {
        resource_single_host(r, a);
        return 0;
    }
    if (ty_doc_expect(doc, TY_DOC_MAP, err) < 0 || (hosts = resource_require(doc, "hosts", err)) == NULL ||
        (current = resource_require(doc, "current_host", err)) == NULL)
        return -1;
    if (resource_hosts(a, hosts, &r->hosts, &r->n_hosts, err) < 0 ||
        resource_name(a, current, &r->current_host, err) < 0)
        return -1;
    if (r->n_hosts == 0)
        return ty_doc_error(hosts, err, TY_E_RANGE, NULL, "\"hosts\" is empty, expected at least one host");
    if (resource_find_self(r, current, err) < 0 || resource_current_group(r, a, doc, err) < 0 ||
        resource_optional(a, doc, "current_instance_type", "local", &r->instance_type, err) < 0 ||
        resource_optional(a, doc, "network_interface_name", "eth0", &r->network_interface, err) < 0 ||
        resource_groups(r, a, resource_find(doc, "instance_groups"), err) < 0)
        return -1;
    topology = ty_doc_find(doc, "topology");
    r->topology = topology == NULL ? ty_value_list() : ty_value_from_doc(a, topology);
    r->whole = ty_value_from_doc(a, doc);
    return 0;
}

const ty_instance_group *ty_resources_group(const ty_resources *r, const char *name)
{
    for (size_t i = 0; i < r->n_groups; i++)
        if (strcmp(r->groups[i].name, name) == 0)
            return &r->groups[i];
    return NULL;
}
