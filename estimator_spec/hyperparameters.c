/* hyperparameters.c - rows of fields.def that begin with '#', and the user's own values. */
#include "estimator_spec/hyperparameters.h"

#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COUNT = 100, MAX_TEXT = 2500, ROOM = 512 };

typedef struct collector {
    const ty_jobspec *job;
    ty_arena *a;
    ty_hyperparameter *list;
    int n;
    ty_error *err;
} collector;

static const char *json_of_string(collector *c, const char *text)
{
    ty_buf out;
    ty_buf_init(&out, 1 << 20);
    ty_json_add_string(&out, text, TY_JSON_PYTHON);
    const char *json = ty_arena_strdup(c->a, out.data);
    ty_buf_fini(&out);
    return json;
}

static const char *json_of(collector *c, const ty_doc *d)
{
    ty_buf out;
    ty_buf_init(&out, 1 << 21);
    ty_json_add_doc(&out, d, TY_JSON_PYTHON);
    const char *json = ty_arena_strdup(c->a, out.data);
    ty_buf_fini(&out);
    return json;
}

static int add(collector *c, const char *name, const char *text, const char *origin, const ty_doc *at)
{
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->list[i].name, name) == 0) {
            const ty_doc *here = at ? at : c->list[i].at;
            if (!here)
                return 0;
            ty_doc_error_key(here, c->err, TY_E_DUPLICATE, NULL, "hyperparameter \"%s\" is given twice", name);
            return ty_error_help(c->err, "it also follows from %s", at ? c->list[i].origin : origin);
        }
    if (c->n == ROOM)
        return ty_error_set(c->err, TY_E_LIMIT, "too many hyperparameters");
    c->list[c->n++] = (ty_hyperparameter){name, text, origin, at};
    return 0;
}

/* ---- the user's ---- */

static int add_own(collector *c, ty_field_id id, bool raw)
{
    const ty_doc *map = c->job->value[id].node;
    char text[TY_ERROR_PLACE_BYTES];
    for (size_t i = 0; i < ty_doc_len(map); i++) {
        const ty_doc *d = &map->items[i];
        const char *origin = ty_arena_strdup(c->a, ty_bind_origin_text(d, text, sizeof text));
        if (add(c, d->key, raw ? d->raw : json_of(c, d), origin, d) < 0)
            return -1;
    }
    return 0;
}

/* ---- by the table ---- */

static ty_field_id section_of(ty_field_id id)
{
    for (int i = 0; i < TY_N_FIELDS; i++) {
        const ty_field_row *f = &ty_fields[i];
        size_t n = strlen(f->section), k = strlen(f->key);
        const char *want = ty_fields[id].section;
        const char *rest = n ? want + n + 1 : want;
        bool inside = n == 0 || (strncmp(want, f->section, n) == 0 && want[n] == '.');
        if (inside && strlen(rest) == k && strcmp(rest, f->key) == 0)
            return (ty_field_id)i;
    }
    return id;
}

static const char *json_of_row(collector *c, ty_field_id id)
{
    const ty_field_value *v = &c->job->value[id];
    if (ty_fields[id].type == TY_FIELD_TEXT)
        return json_of_string(c, v->text);
    return ty_field_text(id, v, c->a);
}

static int add_row(collector *c, ty_field_id id)
{
    const ty_field_row *f = &ty_fields[id];
    const ty_field_value *v = &c->job->value[id];
    ty_field_id section = section_of(id);
    if (!f->body || f->body[0] != '#' || f->send == TY_SEND_OWN || !ty_jobspec_has(c->job, section))
        return 0;
    if (f->send == TY_SEND_TRUE && v->integer == 0 && !v->boolean)
        return 0;
    const char *origin = v->at ? v->origin : ty_arena_printf(c->a, "derived from %s", f->section);
    return add(c, f->body + 1, json_of_row(c, id), origin, NULL);
}

/* ---- by rules ---- */

static bool is_on(const collector *c, ty_field_id section, ty_field_id enabled)
{
    return ty_jobspec_has(c->job, section) && c->job->value[enabled].boolean;
}

static bool is_framework(const collector *c, const char *name)
{
    return strcmp(c->job->value[TY_FIELD_FRAMEWORK_NAME].text, name) == 0;
}

static int add_type(collector *c)
{
    const char *type = c->job->value[TY_FIELD_INSTANCE_TYPE].text;
    return add(c, "sagemaker_instance_type", type ? json_of_string(c, type) : "null",
               type ? c->job->value[TY_FIELD_INSTANCE_TYPE].origin : "derived from resources", NULL);
}

/* PyTorch's estimator makes pytorchddp the data parallel library, Hugging Face's starts it by itself; both put it, and
 * torch_distributed, in place of the other strategies. */
static int add_torch(collector *c, bool *instead)
{
    bool ddp = is_on(c, TY_FIELD_DDP, TY_FIELD_DDP_ENABLED), pytorch = is_framework(c, "pytorch");
    bool torch = is_on(c, TY_FIELD_TORCH, TY_FIELD_TORCH_ENABLED) && !ty_jobspec_has(c->job, TY_FIELD_DDP);
    *instead = (ddp && !pytorch) || (torch && !ty_jobspec_has(c->job, TY_FIELD_SMD));
    if (ddp && !pytorch &&
        add(c, "sagemaker_pytorch_ddp_enabled", "true", c->job->value[TY_FIELD_DDP].origin, NULL) < 0)
        return -1;
    if (torch && add(c, "sagemaker_torch_distributed_enabled", "true", c->job->value[TY_FIELD_TORCH].origin, NULL) < 0)
        return -1;
    return (ddp && !pytorch) || torch ? add_type(c) : 0;
}

static int add_smddp(collector *c)
{
    bool as_ddp = ty_jobspec_has(c->job, TY_FIELD_DDP) && is_framework(c, "pytorch");
    ty_field_id section = as_ddp ? TY_FIELD_DDP : TY_FIELD_SMDDP;
    const ty_field_value *v = c->job->value;
    bool on = v[as_ddp ? TY_FIELD_DDP_ENABLED : TY_FIELD_SMDDP_ENABLED].boolean;
    if (!ty_jobspec_has(c->job, section))
        return 0;
    if (as_ddp &&
        add(c, "sagemaker_distributed_dataparallel_enabled", on ? "true" : "false", v[section].origin, NULL) < 0)
        return -1;
    const char *options = v[as_ddp ? TY_FIELD_DDP_OPTIONS : TY_FIELD_SMDDP_OPTIONS].text;
    if (on && add(c, "sagemaker_distributed_dataparallel_custom_mpi_options", json_of_string(c, options),
                  v[section].origin, NULL) < 0)
        return -1;
    return add_type(c);
}

/* With one group there is nothing to choose. */
static int add_groups(collector *c)
{
    const ty_field_value *v = &c->job->value[TY_FIELD_DIST_GROUPS];
    bool strategy = is_on(c, TY_FIELD_MPI, TY_FIELD_MPI_ENABLED) || is_on(c, TY_FIELD_SMDDP, TY_FIELD_SMDDP_ENABLED) ||
                    is_on(c, TY_FIELD_DDP, TY_FIELD_DDP_ENABLED);
    if (v->node)
        return add(c, "sagemaker_distribution_instance_groups", json_of(c, v->node), v->origin, NULL);
    if (!strategy || c->job->n_groups != 1)
        return 0;
    const char *name = ty_arena_printf(c->a, "[%s]", json_of_string(c, c->job->groups[0].name));
    return add(c, "sagemaker_distribution_instance_groups", name, "derived from resources.instance_groups", NULL);
}

static int add_source(collector *c)
{
    const ty_jobspec_source *s = &c->job->source;
    const ty_field_value *v = c->job->value;
    const char *from = v[v[TY_FIELD_PROGRAM].at ? TY_FIELD_PROGRAM : TY_FIELD_RECIPE].origin;
    const char *where = s->is_packed ? "derived from name and output.path" : v[TY_FIELD_SOURCE_URI].origin;
    if (!s->is_given)
        return 0;
    const struct {
        const char *name, *text, *origin;
    } rows[] = {
        {"sagemaker_submit_directory", json_of_string(c, s->told), where},
        {"sagemaker_program", json_of_string(c, s->program), from},
        {"sagemaker_container_log_level", ty_field_text(TY_FIELD_LOG_LEVEL, &v[TY_FIELD_LOG_LEVEL], c->a),
         v[TY_FIELD_LOG_LEVEL].origin},
        {"sagemaker_job_name", json_of_string(c, v[TY_FIELD_NAME].text), v[TY_FIELD_NAME].origin},
        {"sagemaker_region", json_of_string(c, v[TY_FIELD_REGION].text), v[TY_FIELD_REGION].origin},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (add(c, rows[i].name, rows[i].text, rows[i].origin, NULL) < 0)
            return -1;
    return 0;
}

static int add_model_dir(collector *c)
{
    const ty_field_value *v = &c->job->value[TY_FIELD_MODEL_DIR];
    return v->text && strcmp(v->text, "false") != 0 ? add(c, "model_dir", json_of_string(c, v->text), v->origin, NULL)
                                                    : 0;
}

/* ---- all ---- */

static int compare_names(const void *x, const void *y)
{
    return strcmp(((const ty_hyperparameter *)x)->name, ((const ty_hyperparameter *)y)->name);
}

static int check_lengths(const collector *c)
{
    for (int i = 0; i < c->n; i++) {
        const ty_hyperparameter *h = &c->list[i];
        size_t len = strlen(h->text);
        if (len <= MAX_TEXT)
            continue;
        if (h->at)
            return ty_doc_error(h->at, c->err, TY_E_LIMIT, NULL,
                                "hyperparameter \"%s\": expected at most %d characters as JSON, found %zu", h->name,
                                MAX_TEXT, len);
        return ty_error_set(c->err, TY_E_LIMIT, "hyperparameter \"%s\" (%s): expected at most %d characters, found %zu",
                            h->name, h->origin, MAX_TEXT, len);
    }
    if (c->n > MAX_COUNT) {
        ty_error_set(c->err, TY_E_LIMIT, "expected at most %d hyperparameters, found %d", MAX_COUNT, c->n);
        ty_error_at(c->err, "%s", c->job->file);
        return ty_error_help(c->err, "source, distribution and compiler count too, as sagemaker_ names");
    }
    return 0;
}

int ty_hyperparameters(const ty_jobspec *job, ty_arena *a, ty_hyperparameter **out, int *n, ty_error *err)
{
    collector c = {job, a, TY_NEW_ARRAY(a, ty_hyperparameter, ROOM), 0, err};
    bool instead;
    if (add_own(&c, TY_FIELD_HYPERPARAMETERS, false) < 0 || add_own(&c, TY_FIELD_RAW_HYPERPARAMETERS, true) < 0 ||
        add_source(&c) < 0 || add_model_dir(&c) < 0 || add_torch(&c, &instead) < 0)
        return -1;
    for (int id = 0; id < TY_N_FIELDS; id++) {
        bool is_strategy = strncmp(ty_fields[id].section, "distribution", 12) == 0;
        if (!(is_strategy && instead) && add_row(&c, (ty_field_id)id) < 0)
            return -1;
    }
    if (!instead && (add_groups(&c) < 0 || add_smddp(&c) < 0))
        return -1;
    qsort(c.list, (size_t)c.n, sizeof *c.list, compare_names);
    *out = c.list;
    *n = c.n;
    return check_lengths(&c);
}
