/* tf_config.c - contract, sections 12.2 and 12.3. */
#include "container/config/tf_config.h"

#include "container/config/python_text.h"

#define PORT_MIRRORED 8890
#define PORT_TASK     2222
#define PORT_SERVER   2223

static void tf_put(ty_arena *a, ty_value *dict, const char *key, ty_value item)
{
    ty_value_put(a, dict, ty_value_string(a, key), item);
}

static ty_value tf_addresses(ty_arena *a, const char *const *hosts, size_t n, int port)
{
    ty_value list = ty_value_list();

    for (size_t i = 0; i < n; i++)
        ty_value_push(a, &list, ty_value_string(a, ty_arena_printf(a, "%s:%d", hosts[i], port)));
    return list;
}

static const char *tf_render(ty_arena *a, ty_value cluster, const char *type, size_t index)
{
    ty_value task = ty_value_dict(), root = ty_value_dict();
    ty_buf text;

    tf_put(a, &task, "index", ty_value_int(a, (int64_t)index));
    tf_put(a, &task, "type", ty_value_string(a, type));
    tf_put(a, &root, "cluster", cluster);
    tf_put(a, &root, "environment", ty_value_string(a, "cloud"));
    tf_put(a, &root, "task", task);
    ty_buf_init(&text, (size_t)64 << 20);
    ty_python_json(&text, &root);
    const char *copy = ty_arena_strdup(a, text.data);
    ty_buf_fini(&text);
    return copy;
}

const char *ty_tf_config_mirrored(ty_arena *a, const char *const *hosts, size_t n_hosts, size_t index)
{
    ty_value cluster = ty_value_dict();

    tf_put(a, &cluster, "worker", tf_addresses(a, hosts, n_hosts, PORT_MIRRORED));
    return tf_render(a, cluster, "worker", index);
}

const char *ty_tf_config_parameter_server(ty_arena *a, const char *const *hosts, size_t n_hosts, size_t index,
                                          bool is_server)
{
    ty_value cluster = ty_value_dict();

    if (n_hosts < 2)
        return NULL;
    tf_put(a, &cluster, "master", tf_addresses(a, hosts, 1, PORT_TASK));
    tf_put(a, &cluster, "ps", tf_addresses(a, hosts, n_hosts, PORT_SERVER));
    tf_put(a, &cluster, "worker", tf_addresses(a, hosts + 1, n_hosts - 1, PORT_TASK));
    if (is_server)
        return tf_render(a, cluster, "ps", index);
    return index == 0 ? tf_render(a, cluster, "master", 0) : tf_render(a, cluster, "worker", index - 1);
}
