/* environment.c - fills environment.def's table. */
#define _GNU_SOURCE 1 /* newlocale's towupper_l */

#include "container/config/environment.h"

#include "container/config/python_text.h"
#include "container/config/utf8.h"

#include <ctype.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>

#define VALUE_MAX_BYTES ((size_t)256 << 20)

/* ---- makers of values, for the rows of environment.def ---- */

static ty_value text(ty_arena *a, const char *s)
{
    return ty_value_string(a, s);
}

static ty_value texts(ty_arena *a, const char *const *strings, size_t n)
{
    return ty_value_strings(a, strings, n);
}

static ty_value current_group_hosts(ty_arena *a, const ty_resources *r)
{
    const ty_instance_group *group = ty_resources_group(r, r->current_group);

    return group == NULL ? ty_value_list() : texts(a, group->hosts, group->n_hosts);
}

static ty_value group_names(ty_arena *a, const ty_resources *r)
{
    ty_value list = ty_value_list();

    for (size_t i = 0; i < r->n_groups; i++)
        ty_value_push(a, &list, text(a, r->groups[i].name));
    return list;
}

static ty_value groups_by_name(ty_arena *a, const ty_resources *r)
{
    ty_value dict = ty_value_dict();

    for (size_t i = 0; i < r->n_groups; i++)
        ty_value_put(a, &dict, text(a, r->groups[i].name), r->groups_raw.items[i]);
    return dict;
}

static ty_value channel_names(ty_arena *a, const ty_channels *c)
{
    ty_value list = ty_value_list();

    for (size_t i = 0; i < c->n_items; i++)
        ty_value_push(a, &list, text(a, c->items[i].name));
    return list;
}

static ty_value channel_folders(ty_arena *a, const ty_channels *c)
{
    ty_value dict = ty_value_dict();

    for (size_t i = 0; i < c->n_items; i++)
        ty_value_put(a, &dict, text(a, c->items[i].name), text(a, c->items[i].path));
    return dict;
}

/* Python's `mp_parameters and mp_parameters != "{}"`: None and "" are handed through. */
static ty_value model_parallel(ty_arena *a, const char *mp_parameters)
{
    if (mp_parameters == NULL || mp_parameters[0] == '\0')
        return text(a, mp_parameters);
    return ty_value_bool(strcmp(mp_parameters, "{}") != 0);
}

static ty_value python_path(ty_arena *a, const char *code, const char *inherited)
{
    if (inherited == NULL || inherited[0] == '\0')
        return text(a, code);
    return text(a, ty_arena_printf(a, "%s:%s", code, inherited));
}

/* ---- collecting ---- */

typedef struct entry {
    ty_variable variable;
    size_t order; /* of two with one name the later counts; names made shell-friendly come before all */
} entry;

typedef struct collector {
    ty_arena *arena;
    entry *entries; /* [n] */
    size_t n, cap;
    size_t n_ordered;
    const char **left_out; /* [n_left_out] */
    size_t n_left_out;
    locale_t unicode; /* 0 if the system has none */
} collector;

static void collect_grow(collector *c)
{
    size_t cap = c->cap == 0 ? 256 : 2 * c->cap;
    entry *entries = TY_NEW_ARRAY(c->arena, entry, cap);
    const char **left_out = TY_NEW_ARRAY(c->arena, const char *, cap);

    if (c->n > 0)
        memcpy(entries, c->entries, c->n * sizeof *entries);
    if (c->n_left_out > 0)
        memcpy(left_out, c->left_out, c->n_left_out * sizeof *left_out);
    c->entries = entries;
    c->left_out = left_out;
    c->cap = cap;
}

static void collect_entry(collector *c, const char *name, const char *value, size_t order)
{
    if (c->n + c->n_left_out == c->cap)
        collect_grow(c);
    if (strlen(name) + strlen(value) + 2 > TY_ENVIRONMENT_STRING_MAX_BYTES)
        c->left_out[c->n_left_out++] = name;
    else
        c->entries[c->n++] = (entry){.variable = {name, value}, .order = order};
}

static bool collect_is_shell_name(const char *name)
{
    for (; *name != '\0'; name++)
        if (!isalnum((unsigned char)*name) && *name != '_')
            return false;
    return true;
}

static const char *collect_shell_name(ty_arena *a, const char *name)
{
    char *copy = ty_arena_strdup(a, name), *to = copy;
    uint32_t cp;

    for (size_t n = strlen(name); n > 0;) {
        size_t len = ty_utf8_next(name, n, &cp);
        *to++ = cp < 0x80 && isalnum((int)cp) ? (char)cp : '_';
        name += len;
        n -= len;
    }
    *to = '\0';
    return copy;
}

/* A name with '=' inside cannot stand in an environment; its shell-friendly form can. */
static void collect(collector *c, const char *name, const char *value)
{
    if (strchr(name, '=') == NULL)
        collect_entry(c, name, value, ++c->n_ordered);
    if (!collect_is_shell_name(name))
        collect_entry(c, collect_shell_name(c->arena, name), value, 0);
}

static void collect_value(collector *c, const char *name, const ty_value *v)
{
    ty_buf value;

    ty_buf_init(&value, VALUE_MAX_BYTES);
    if (ty_python_environment(&value, v) < 0)
        ty_buf_clear(&value);
    collect(c, name, ty_arena_strdup(c->arena, value.data));
    ty_buf_fini(&value);
}

/* prefix + str.upper(name). One character becomes one character; the few that Python turns into two ("ß") stay. */
static const char *collect_upper(const collector *c, const char *prefix, const char *name)
{
    ty_buf out;

    ty_buf_init(&out, VALUE_MAX_BYTES);
    ty_buf_adds(&out, prefix);
    for (size_t n = strlen(name); n > 0;) {
        char bytes[4];
        uint32_t cp;
        size_t len = ty_utf8_next(name, n, &cp);
        uint32_t upper = cp < 0x80                   ? (uint32_t)toupper((int)cp)
                         : c->unicode != (locale_t)0 ? (uint32_t)towupper_l((wint_t)cp, c->unicode)
                                                     : cp;
        if (upper == cp)
            ty_buf_add(&out, name, len);
        else
            ty_buf_add(&out, bytes, ty_utf8_put(bytes, upper));
        name += len;
        n -= len;
    }
    const char *copy = ty_arena_strdup(c->arena, out.data);
    ty_buf_fini(&out);
    return copy;
}

/* One row of the table: the variable, and its place in SM_TRAINING_ENV. */
static void collect_row(collector *c, ty_value *training, const char *name, const char *property, ty_value value)
{
    if (property != NULL)
        ty_value_put(c->arena, training, text(c->arena, property), value);
    if (name != NULL)
        collect_value(c, name, &value);
}

static void collect_table(collector *c, const ty_environment_sources *s)
{
    ty_arena *a = c->arena;
    ty_value training = ty_value_dict();

#define VARIABLE(name, property, value) collect_row(c, &training, name, property, value);
#include "container/config/environment.def"
#undef VARIABLE
    collect_value(c, "SM_TRAINING_ENV", &training);
}

static void collect_varying(collector *c, const ty_environment_sources *s)
{
    const ty_value *topology = &s->resources->topology;
    const ty_value *user = &s->hyperparameters->user, *declared = &s->channels->whole;

    if (ty_reserved_flag(topology, NULL))
        collect_value(c, "SM_TOPOLOGY", topology);
    for (size_t i = 0; i < declared->n; i++) /* in the order of the file: of "a" and "A" the later wins */
        collect(c, collect_upper(c, "SM_CHANNEL_", declared->keys[i].text),
                ty_channels_find(s->channels, declared->keys[i].text, NULL)->path);
    for (size_t i = 0; i < user->n; i++)
        collect_value(c, collect_upper(c, "SM_HP_", user->keys[i].text), &user->items[i]);
}

/* ---- finishing ---- */

static int entry_compare(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int order = strcmp(x->variable.name, y->variable.name);

    return order != 0 ? order : (x->order > y->order) - (x->order < y->order);
}

static void collect_finish(collector *c, ty_environment *e)
{
    ty_variable *items = TY_NEW_ARRAY(c->arena, ty_variable, c->n + 1);

    qsort(c->entries, c->n, sizeof *c->entries, entry_compare);
    for (size_t i = 0; i < c->n; i++) {
        if (e->n_items > 0 && strcmp(items[e->n_items - 1].name, c->entries[i].variable.name) == 0)
            e->n_items--;
        items[e->n_items++] = c->entries[i].variable;
    }
    e->items = items;
    e->left_out = c->left_out;
    e->n_left_out = c->n_left_out;
}

void ty_environment_init(ty_environment *e, ty_arena *a, const ty_environment_sources *sources)
{
    collector c = {.arena = a, .unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0)};

    *e = (ty_environment){0};
    collect_table(&c, sources);
    collect_varying(&c, sources);
    collect_finish(&c, e);
    if (c.unicode != (locale_t)0)
        freelocale(c.unicode);
}

static int variable_compare(const void *key, const void *item)
{
    return strcmp(key, ((const ty_variable *)item)->name);
}

const char *ty_environment_get(const ty_environment *e, const char *name)
{
    const ty_variable *v = bsearch(name, e->items, e->n_items, sizeof *e->items, variable_compare);

    return v == NULL ? NULL : v->value;
}

static bool environment_overrides(const ty_environment *e, const char *string)
{
    char name[512];
    size_t len = strcspn(string, "=");

    if (len >= sizeof name)
        return false;
    memcpy(name, string, len);
    name[len] = '\0';
    return ty_environment_get(e, name) != NULL;
}

char **ty_environment_block(const ty_environment *e, ty_arena *a, const char *const *inherited)
{
    size_t n = 0, n_inherited = 0;

    while (inherited[n_inherited] != NULL)
        n_inherited++;

    char **block = TY_NEW_ARRAY(a, char *, n_inherited + e->n_items + 1);

    for (size_t i = 0; i < n_inherited; i++)
        if (!environment_overrides(e, inherited[i]))
            block[n++] = ty_arena_strdup(a, inherited[i]);
    for (size_t i = 0; i < e->n_items; i++)
        block[n++] = ty_arena_printf(a, "%s=%s", e->items[i].name, e->items[i].value);
    return block;
}
