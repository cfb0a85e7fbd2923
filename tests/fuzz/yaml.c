/* The YAML reader, then what stands on it: JSON output, binding by a table, overrides. */
#include "base/yaml.h"
#include "base/bind.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

struct settings {
    bool flag;
    int64_t count;
    double rate;
    const char *name;
    int mode;
    const ty_doc *rest;
};

static const char *const modes[] = {"fast", "exact", NULL};
static const ty_bind_row rows[] = {
    {"flag", TY_BIND_BOOL, offsetof(struct settings, flag), "true", .help = "a flag"},
    {"count", TY_BIND_INT, offsetof(struct settings, count), "3", .min = 1, .max = 64, .help = "a count"},
    {"rate", TY_BIND_FLOAT, offsetof(struct settings, rate), "1e-3", .max = 1, .above_min = true, .help = "a rate"},
    {"name", TY_BIND_STRING, offsetof(struct settings, name), NULL, .help = "a name"},
    {"mode", TY_BIND_CHOICE, offsetof(struct settings, mode), "fast", .choices = modes, .help = "a mode"},
    {"rest", TY_BIND_NODE, offsetof(struct settings, rest), NULL, .help = "anything"},
};

static void take_warning(void *context, const ty_error *warning)
{
    (void)context;
    if (!warning->message[0] || !warning->help[0])
        abort();
}

/* The first line of the input also serves as an override: path=value. */
static void override_from(ty_arena *arena, ty_doc *root, const char *data, size_t size)
{
    size_t len = 0;
    while (len < size && data[len] != '\n')
        len++;
    char *line = ty_arena_strndup(arena, data, len);
    char *equals = strchr(line, '=');
    if (!equals)
        return;
    *equals = 0;
    ty_error err = {0};
    if (ty_doc_override(arena, root, line, equals + 1, "argument", &err) < 0 && err.code == TY_E_NONE)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ty_arena arena;
    ty_arena_init(&arena);
    ty_doc *d = ty_doc_new_map(&arena, "arguments");
    ty_error err = {0};
    if (ty_yaml_parse(&arena, "fuzz.yaml", (const char *)data, size, NULL, take_warning, NULL, &d, &err) < 0 &&
        (err.code == TY_E_NONE || !err.message[0]))
        abort();
    override_from(&arena, d, (const char *)data, size);
    struct settings settings;
    const ty_doc *origin[6];
    (void)ty_bind(rows, 6, "", d, &settings, origin, &err);
    ty_buf out;
    ty_buf_init(&out, (size_t)64 << 20);
    if (ty_json_add_doc(&out, d, TY_JSON_PYTHON) < 0)
        abort();
    ty_buf_fini(&out);
    ty_arena_fini(&arena);
    return 0;
}
