/* show.c - rows, items of maps, and hyperparameters as they are sent. */
#include "estimator_spec/show.h"

#include "base/json.h"
#include "estimator_spec/hyperparameters.h"

#include <string.h>

enum { MAX_SETTINGS = 2048 };

typedef struct shower {
    const ty_jobspec *job;
    ty_arena *a;
    ty_jobspec_setting *list;
    int n;
} shower;

static void show(shower *s, const char *key, const char *value, const char *origin)
{
    if (s->n < MAX_SETTINGS)
        s->list[s->n++] = (ty_jobspec_setting){key, value, origin};
}

static const char *text_of(shower *s, const ty_doc *d)
{
    if (d->kind != TY_DOC_LIST && d->kind != TY_DOC_MAP)
        return d->raw;
    ty_buf out;
    ty_buf_init(&out, 1 << 21);
    ty_json_add_doc(&out, d, TY_JSON_SPACED);
    const char *text = ty_arena_strdup(s->a, out.data);
    ty_buf_fini(&out);
    return text;
}

/* A channel from S3 has no access mode, one from a file system no distribution. */
static bool is_of_other_kind(ty_field_id id, const ty_field_value *values)
{
    bool of_s3 = id == TY_FIELD_CHANNEL_TYPE || id == TY_FIELD_CHANNEL_DISTRIBUTION;
    return values[TY_FIELD_CHANNEL_S3].text ? id == TY_FIELD_CHANNEL_ACCESS : of_s3;
}

static void show_values(shower *s, const char *section, const char *prefix, const ty_field_value *values)
{
    for (int id = 0; id < TY_N_FIELDS; id++) {
        const ty_field_row *f = &ty_fields[id];
        const ty_field_value *v = &values[id];
        if (strcmp(f->section, section) != 0 || !v->origin)
            continue;
        const char *key = *prefix ? ty_arena_printf(s->a, "%s.%s", prefix, f->key) : f->key;
        const char *value = f->type == TY_FIELD_NODE
                                ? v->node && v->node->kind == TY_DOC_LIST ? text_of(s, v->node) : NULL
                                : ty_field_text((ty_field_id)id, v, s->a);
        if (value && id != TY_FIELD_INSTANCE_GROUPS && !is_of_other_kind((ty_field_id)id, values))
            show(s, key, value, v->origin);
    }
}

static void show_map(shower *s, ty_field_id id)
{
    const ty_doc *map = s->job->value[id].node;
    char origin[TY_ERROR_PLACE_BYTES];
    for (size_t i = 0; i < ty_doc_len(map); i++)
        show(s, ty_arena_printf(s->a, "%s.%s", ty_fields[id].key, map->items[i].key), text_of(s, &map->items[i]),
             s->job->value[id].at ? ty_arena_strdup(s->a, ty_bind_origin_text(&map->items[i], origin, sizeof origin))
                                  : s->job->value[id].origin);
}

static int show_hyperparameters(shower *s, ty_error *err)
{
    ty_hyperparameter *list;
    int n;
    if (ty_hyperparameters(s->job, s->a, &list, &n, err) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        show(s, ty_arena_printf(s->a, "hyperparameters.%s", list[i].name), list[i].text, list[i].origin);
    return 0;
}

static bool is_before(const char *section, int id)
{
    for (int i = 0; i < id; i++)
        if (strcmp(ty_fields[i].section, section) == 0)
            return true;
    return false;
}

/* Sections whose defaults say nothing where the file does not have them. */
static bool is_shown(const shower *s, const char *section)
{
    static const char *const always[] = {"", "framework", "resources", "output", "stopping", "network"};
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
        if (strcmp(section, always[i]) == 0)
            return true;
    for (int id = 0; id < TY_N_FIELDS; id++)
        if (strcmp(ty_fields[id].section, section) == 0 && s->job->value[id].at)
            return true;
    return false;
}

int ty_jobspec_settings(const ty_jobspec *job, ty_arena *a, ty_jobspec_setting **out, int *n, ty_error *err)
{
    shower s = {job, a, TY_NEW_ARRAY(a, ty_jobspec_setting, MAX_SETTINGS), 0};
    static const ty_field_id maps[] = {TY_FIELD_ENVIRONMENT, TY_FIELD_TAGS, TY_FIELD_METRICS, TY_FIELD_REQUEST};
    for (int id = 0; id < TY_N_FIELDS; id++) {
        const char *section = ty_fields[id].section;
        if (!strchr(section, '*') && !is_before(section, id) && is_shown(&s, section))
            show_values(&s, section, section, job->value);
    }
    for (int i = 0; i < job->n_groups; i++)
        show_values(&s, "resources.instance_groups.*",
                    ty_arena_printf(a, "resources.instance_groups.%s", job->groups[i].name), job->groups[i].value);
    for (int i = 0; i < job->n_channels; i++)
        show_values(&s, "inputs.*", ty_arena_printf(a, "inputs.%s", job->channels[i].name), job->channels[i].value);
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++)
        show_map(&s, maps[i]);
    if (job->source.uri)
        show(&s, "source.archive", job->source.uri,
             job->source.is_packed ? "derived from name and output.path" : job->value[TY_FIELD_SOURCE_URI].origin);
    if (show_hyperparameters(&s, err) < 0)
        return -1;
    *out = s.list;
    *n = s.n;
    return 0;
}
