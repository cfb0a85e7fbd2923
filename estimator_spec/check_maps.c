/* check_maps.c - maps and lists whose keys are the user's: kinds, counts and lengths of the service. */
#include "estimator_spec/job_parts.h"

#include "base/json.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MAX_KEY = 256, MAX_VALUE = 2500, MAX_VARIABLE = 512 };

typedef struct map_rule {
    ty_field_id id;
    const char *noun;     /* of an entry, in messages */
    const char *key_form; /* of forms.def, or NULL */
    const char *value_form;
    double key_min, key_max, value_min, value_max;
    bool any_value; /* lists and maps too */
} map_rule;

static const map_rule maps[] = {
    {TY_FIELD_HYPERPARAMETERS, "hyperparameter", NULL, NULL, 1, MAX_KEY, 0, 0, true},
    {TY_FIELD_RAW_HYPERPARAMETERS, "hyperparameter", NULL, NULL, 1, MAX_KEY, 0, MAX_VALUE, false},
    {TY_FIELD_ENVIRONMENT, "variable", "variable", NULL, 1, MAX_VARIABLE, 0, MAX_VARIABLE, false},
    {TY_FIELD_TAGS, "tag", "tag", "tag", 1, 128, 0, 256, false},
    {TY_FIELD_METRICS, "metric", NULL, NULL, 1, 255, 1, 500, false},
};

static const struct {
    ty_field_id id;
    double max;
    const char *form;
} lists[] = {
    {TY_FIELD_SUBNETS, 32, "id"},    {TY_FIELD_SECURITY_GROUPS, 32, "id"}, {TY_FIELD_ENTRYPOINT, 256, NULL},
    {TY_FIELD_ARGUMENTS, 256, NULL}, {TY_FIELD_DEPENDENCIES, 4096, NULL},  {TY_FIELD_DIST_GROUPS, 64, NULL},
};

/* ---- secrets ---- */

static bool contains_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (; *text; text++)
        if (strncasecmp(text, word, n) == 0)
            return true;
    return false;
}

/* Names, never values: what a warning prints may end in a log. */
static void warn_of_secret(job_reader *rd, const ty_doc *d)
{
    static const char *const words[] = {"secret",  "password", "passwd",      "token",
                                        "api_key", "apikey",   "private_key", "credential"};
    char place[TY_ERROR_PLACE_BYTES];
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (contains_word(d->key, words[i])) {
            ty_job_warn(rd,
                        "%s: \"%s\" looks like a secret: who may describe the job can read it; a secrets manager "
                        "and the job's role keep it",
                        ty_doc_place(d, place, sizeof place), d->key);
            return;
        }
}

/* ---- maps ---- */

static int check_entry(job_reader *rd, const map_rule *rule, const ty_doc *d)
{
    char what[400], found[160];
    snprintf(what, sizeof what, "name of %s \"%.300s\"", rule->noun, d->key);
    if (ty_form_check(rule->key_form, d->key, rule->key_min, rule->key_max, d, what, rd->err) < 0)
        return -1;
    bool is_scalar = d->kind != TY_DOC_LIST && d->kind != TY_DOC_MAP;
    if (!rule->any_value && (!is_scalar || d->kind == TY_DOC_NULL))
        return ty_doc_error(d, rd->err, TY_E_TYPE, NULL, "%s \"%s\": expected text, found %s", rule->noun, d->key,
                            ty_doc_describe(d, found, sizeof found));
    snprintf(what, sizeof what, "%s \"%.300s\"", rule->noun, d->key);
    if (is_scalar && ty_form_check(rule->value_form, d->raw, rule->value_min, rule->value_max, d, what, rd->err) < 0)
        return -1;
    if (rule->id != TY_FIELD_TAGS && rule->id != TY_FIELD_METRICS)
        warn_of_secret(rd, d);
    return 0;
}

static int check_map(job_reader *rd, const map_rule *rule)
{
    const ty_doc *map = rd->job->value[rule->id].node;
    if (!map)
        return 0;
    if (ty_doc_expect(map, TY_DOC_MAP, rd->err) < 0)
        return ty_error_wrap(rd->err, "%s", ty_fields[rule->id].key);
    for (uint32_t i = 0; i < map->n_items; i++)
        if (check_entry(rd, rule, &map->items[i]) < 0)
            return -1;
    return 0;
}

/* The service keeps this prefix for itself. */
static int check_tags(job_reader *rd)
{
    const ty_doc *tags = rd->job->value[TY_FIELD_TAGS].node;
    for (size_t i = 0; i < ty_doc_len(tags); i++)
        if (strncasecmp(tags->items[i].key, "aws:", 4) == 0)
            return ty_doc_error_key(&tags->items[i], rd->err, TY_E_RANGE, NULL,
                                    "tag \"%s\": names that begin with aws: are the platform's own",
                                    tags->items[i].key);
    return 0;
}

/* Parentheses as the service's expressions need them: balanced, and one group that is the number. */
static int check_metric(job_reader *rd, const ty_doc *d)
{
    int depth = 0, n_groups = 0;
    bool in_class = false;
    for (const char *p = d->raw; *p && depth >= 0; p++) {
        if (*p == '\\' && p[1])
            p++;
        else if (in_class)
            in_class = *p != ']' || p[-1] == '[';
        else if (*p == '[')
            in_class = true;
        else if (*p == '(') {
            depth++;
            n_groups += p[1] != '?';
        } else if (*p == ')')
            depth--;
    }
    if (depth != 0 || in_class)
        return ty_doc_error(d, rd->err, TY_E_RANGE, NULL, "metric \"%s\": the expression's %s do not match", d->key,
                            in_class ? "brackets" : "parentheses");
    if (n_groups == 0) {
        ty_doc_error(d, rd->err, TY_E_RANGE, NULL, "metric \"%s\": the expression has no group for the number", d->key);
        return ty_error_help(rd->err, "write \" %s=([-+0-9.eE]+)\"", d->key);
    }
    return 0;
}

/* ---- lists ---- */

static int check_list(job_reader *rd, const char *key, const ty_doc *list, double max, const char *form)
{
    char what[160];
    if (!list)
        return 0;
    if (ty_doc_expect(list, TY_DOC_LIST, rd->err) < 0)
        return ty_error_wrap(rd->err, "%s", key);
    for (uint32_t i = 0; i < list->n_items; i++) {
        const char *text;
        snprintf(what, sizeof what, "%s[%u]", key, i);
        if (ty_doc_string(&list->items[i], &text, rd->err) < 0)
            return ty_error_wrap(rd->err, "%s", what);
        if (ty_form_check(form, text, 0, max, &list->items[i], what, rd->err) < 0)
            return -1;
    }
    return 0;
}

int ty_job_check_maps(job_reader *rd)
{
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++)
        if (check_map(rd, &maps[i]) < 0)
            return -1;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (check_list(rd, ty_fields[lists[i].id].key, rd->job->value[lists[i].id].node, lists[i].max, lists[i].form) <
            0)
            return -1;
    for (int c = 0; c < rd->job->n_channels; c++)
        if (check_list(rd, "attributes", rd->job->channels[c].value[TY_FIELD_CHANNEL_ATTRIBUTES].node, 256, NULL) < 0 ||
            check_list(rd, "instance_groups", rd->job->channels[c].value[TY_FIELD_CHANNEL_GROUPS].node, 64, NULL) < 0)
            return -1;
    const ty_doc *metrics = rd->job->value[TY_FIELD_METRICS].node, *request = rd->job->value[TY_FIELD_REQUEST].node;
    for (size_t i = 0; i < ty_doc_len(metrics); i++)
        if (check_metric(rd, &metrics->items[i]) < 0)
            return -1;
    if (request && ty_doc_expect(request, TY_DOC_MAP, rd->err) < 0)
        return ty_error_wrap(rd->err, "request");
    return check_tags(rd);
}
