/* found.c - see found.h. */
#include "entrypoint/found.h"

#include "base/log.h"
#include "container/input/image/plan.h"
#include "container/input/map/map.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

bool ty_found_is_target(const char *field)
{
    static const char *const usual[] = {"y", "label", "labels", "target", "targets", "class", "y_train", "outcome"};
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (strcasecmp(usual[i], field) == 0)
            return true;
    return false;
}

bool ty_found_is_number(const char *field, char prefix, int i)
{
    char name[16];
    snprintf(name, sizeof name, "%c%d", prefix, i);
    return strcmp(field, name) == 0;
}

/* ---- arrays ---- */

/* Texts are nothing that feeds a model but for a target's, which are names of classes. plan: of pictures. */
static int found_arrays(const ty_data_survey *s, ty_image_plan *plan, ty_arena *a, ty_recipe_data *d, ty_error *err)
{
    ty_field *fields = TY_NEW_ARRAY(a, ty_field, s->n_parts + 1);
    for (int i = 0; i < s->n_parts; i++) {
        const ty_data_part *part = &s->part[i];
        ty_map_spec classes = {.field = part->name, .way = TY_MAP_CLASSES, .scale = 1.0};
        if (part->is_text && !ty_found_is_target(part->name))
            continue;
        ty_field *f = &fields[d->n_fields++];
        *f = ty_field_make(part->name);
        f->file = part->file;
        f->image = part->is_picture ? plan : NULL;
        if (part->is_text && ty_map_new(&classes, a, &f->map, err) < 0)
            return -1;
    }
    d->fields = fields;
    return 0;
}

/* ---- pictures ---- */

/* What the model's only picture-like input wants: [N, C, H, W], or [N, H, W, C]. */
static void found_plan(const ty_model *m, ty_image_plan *p)
{
    const ty_model_value *in = ty_model_n_inputs(m) > 0 ? ty_model_input(m, 0) : NULL;
    if (in == NULL || in->rank != 4)
        return;
    p->hwc = in->dim[3] >= 1 && in->dim[3] <= 4 && !(in->dim[1] >= 1 && in->dim[1] <= 4);
    int64_t channels = in->dim[p->hwc ? 3 : 1], height = in->dim[p->hwc ? 1 : 2], width = in->dim[p->hwc ? 2 : 3];
    if (channels >= 1 && channels <= 4)
        p->channels = (int)channels;
    if (height >= 1 && width >= 1 && height <= 16384 && width <= 16384) {
        p->height = (int)height;
        p->width = (int)width;
    }
}

static int found_pictures(const ty_data_survey *s, const ty_model *m, ty_arena *a, ty_recipe_data *d, ty_error *err)
{
    ty_image_plan *p = TY_NEW(a, ty_image_plan);
    *p = ty_image_plan_make();
    found_plan(m, p);
    if (found_arrays(s, p, a, d, err) < 0)
        return -1;
    ty_log_info("data",
                "no fields are declared: pictures become %d x %d pixels of %d channels (0: as they are), %s, "
                "value / 255%s",
                p->height, p->width, p->channels, p->hwc ? "HWC" : "CHW",
                strcmp(s->format, "images") == 0 ? "; folders are classes" : "");
    return 0;
}

/* ---- tables ---- */

static int found_column(const ty_data_survey *s, const char *name)
{
    for (int i = 0; name && i < s->n_parts; i++)
        if (s->part[i].name && strcmp(s->part[i].name, name) == 0)
            return i;
    return -1;
}

/* The field that the recipe, or by its name the model, wants for input i. */
static const char *found_wanted(const ty_recipe *r, const ty_model *m, int i)
{
    const char *input = ty_model_input(m, i)->name;
    for (int k = 0; k < r->n_inputs; k++)
        if (strcmp(r->inputs[k].input, input) == 0)
            return r->inputs[k].field;
    return input;
}

static bool found_feeds(const ty_recipe *r, const ty_model *m, const char *column)
{
    for (int i = 0; i < ty_model_n_inputs(m); i++)
        if (strcmp(found_wanted(r, m, i), column) == 0)
            return true;
    return false;
}

static bool found_all_inputs(const ty_recipe *r, const ty_model *m, const ty_data_survey *s)
{
    for (int i = 0; i < ty_model_n_inputs(m); i++)
        if (found_column(s, found_wanted(r, m, i)) < 0)
            return false;
    return ty_model_n_inputs(m) > 0;
}

/* The column that the recipe names; -1: it names none. */
static int found_named_target(const ty_recipe *r, const ty_data_survey *s)
{
    for (int i = 0; i < r->n_loss; i++) {
        int named = found_column(s, r->loss[i].term.target);
        if (named >= 0)
            return named;
    }
    return -1;
}

/* The column of a usual name, the only one that feeds nothing, or the first one. */
static int found_usual_target(const ty_recipe *r, const ty_model *m, const ty_data_survey *s)
{
    int rest = -1, n_rest = 0;
    for (int i = 0; i < s->n_parts && s->part[i].name; i++) {
        if (ty_found_is_target(s->part[i].name))
            return i;
        if (!found_feeds(r, m, s->part[i].name))
            rest = i, n_rest++;
    }
    return n_rest == 1 ? rest : 0;
}

static int found_target(const ty_recipe *r, const ty_model *m, const ty_data_survey *s, ty_arena *a, int *out,
                        ty_error *err)
{
    const char **names = NULL;
    int32_t *column, n;
    if (!r->train.target) {
        *out = found_named_target(r, s);
        *out = *out >= 0 ? *out : found_usual_target(r, m, s);
        return 0;
    }
    if (s->part[0].name)
        names = TY_NEW_ARRAY(a, const char *, s->n_parts);
    for (int i = 0; names && i < s->n_parts; i++)
        names[i] = s->part[i].name;
    if (ty_columns_resolve(r->train.target, names, s->n_parts, a, &column, &n, err) < 0)
        return ty_error_wrap(err, "target");
    *out = column[0];
    return n == 1 ? 0 : ty_error_set(err, TY_E_CONFIG, "target: expected one column, found %d", (int)n);
}

static ty_field found_column_field(const char *name, int column, ty_arena *a)
{
    ty_field f = ty_field_make(name);
    f.columns = ty_arena_printf(a, "%d", column);
    return f;
}

/* Labels that are texts become class numbers. */
static int found_target_field(const ty_data_survey *s, const char *name, int column, ty_arena *a, ty_field *out,
                              ty_error *err)
{
    *out = found_column_field(name, column, a);
    ty_map_spec spec = {.field = name, .scale = 1, .way = TY_MAP_CLASSES};
    return s->part[column].is_text ? ty_map_new(&spec, a, &out->map, err) : 0;
}

/* What becomes of any other text is the user's to say. */
static int found_refuse_text(const ty_data_survey *s, int column, ty_error *err)
{
    const char *name = s->part[column].name;
    ty_error_set(err, TY_E_CONFIG, "column %d%s%s%s holds text, which feeds no model as it is", column,
                 name ? ", \"" : "", name ? name : "", name ? "\"," : "");
    return ty_error_help(err,
                         "declare the fields, and what becomes of it: data.train.fields: {%s: {%svocabulary: "
                         "auto}, ...}, hash: N in its place, or leave it out",
                         name ? name : "NAME", name ? "" : "columns: N, ");
}

static int found_named_columns(const ty_recipe *r, const ty_model *m, const ty_data_survey *s, int target, ty_arena *a,
                               ty_recipe_data *d, ty_error *err)
{
    int n = 0;
    ty_field *fields = TY_NEW_ARRAY(a, ty_field, s->n_parts);
    for (int i = 0; i < s->n_parts; i++) {
        if (i == target && found_target_field(s, s->part[i].name, i, a, &fields[n++], err) < 0)
            return -1;
        if (i == target || !found_feeds(r, m, s->part[i].name))
            continue;
        if (s->part[i].is_text)
            return found_refuse_text(s, i, err);
        fields[n++] = found_column_field(s->part[i].name, i, a);
    }
    d->target = s->part[target].name;
    d->fields = fields;
    d->n_fields = n;
    return 0;
}

/* All columns but the target's, as ty_columns_resolve reads them. */
static const char *found_others(int target, int n, ty_arena *a)
{
    const char *before = target == 0 ? "" : ty_arena_printf(a, "0-%d", target - 1);
    const char *after = target == n - 1 ? "" : ty_arena_printf(a, "%d-%d", target + 1, n - 1);
    return ty_arena_printf(a, "%s%s%s", before, *before && *after ? "," : "", after);
}

static int found_features(const ty_data_survey *s, int target, ty_arena *a, ty_recipe_data *d, ty_error *err)
{
    for (int i = 0; i < s->n_parts; i++)
        if (i != target && s->part[i].is_text)
            return found_refuse_text(s, i, err);
    const char *name = s->part[target].name ? s->part[target].name : "target";
    ty_field *fields = TY_NEW_ARRAY(a, ty_field, 2);
    fields[0] = ty_field_make(strcmp(name, "features") == 0 ? "inputs" : "features");
    fields[0].columns = found_others(target, s->n_parts, a);
    d->target = name;
    d->fields = fields;
    d->n_fields = 2;
    return found_target_field(s, name, target, a, &fields[1], err);
}

static int found_table(const ty_recipe *r, const ty_model *m, const ty_data_survey *s, ty_arena *a, ty_recipe_data *d,
                       ty_error *err)
{
    bool by_name = found_all_inputs(r, m, s);
    if (s->n_parts < 2 || (!by_name && ty_model_n_inputs(m) != 1)) {
        ty_error_set(err, TY_E_CONFIG, "which of the table's %d columns feed the model's %d inputs cannot be told",
                     s->n_parts, ty_model_n_inputs(m));
        return ty_error_help(err, "declare them, data.train.fields: {NAME: {columns: 0-3}, ...}, or give the file a "
                                  "header with the inputs' names");
    }
    int target = 0;
    if (found_target(r, m, s, a, &target, err) < 0)
        return -1;
    ty_log_info("data", "no fields are declared: the target is column %d%s%s%s", target,
                s->part[target].name ? ", \"" : "", s->part[target].name ? s->part[target].name : "",
                s->part[target].name ? "\"" : "");
    return by_name ? found_named_columns(r, m, s, target, a, d, err) : found_features(s, target, a, d, err);
}

int ty_found_fields(ty_recipe *r, const ty_model *m, const ty_data_source *source, ty_arena *a, ty_error *err)
{
    ty_data_survey survey;
    if (ty_data_survey_make(source, a, &survey, err) < 0)
        return -1;
    if (!survey.is_table && survey.n_parts == 0)
        return ty_error_set(err, TY_E_DATA, "the %s data hold no array", survey.format);
    if (survey.is_table && found_table(r, m, &survey, a, &r->train, err) < 0)
        return -1;
    bool has_pictures = false;
    for (int i = 0; i < survey.n_parts; i++)
        has_pictures = has_pictures || survey.part[i].is_picture;
    if (has_pictures && found_pictures(&survey, m, a, &r->train, err) < 0)
        return -1;
    if (!survey.is_table && !has_pictures && found_arrays(&survey, NULL, a, &r->train, err) < 0)
        return -1;
    if (r->validation.given && r->validation.n_fields == 0) {
        r->validation.fields = r->train.fields;
        r->validation.n_fields = r->train.n_fields;
    }
    return 0;
}
