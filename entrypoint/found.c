/* found.c - see found.h. */
#include "entrypoint/found.h"

#include "base/log.h"
#include "container/input/format.h"
#include "container/input/map/map.h"
#include "container/input/media.h"
#include "container/input/transform.h"
#include "entrypoint/found_texts.h"

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

const char *ty_found_wanted(const ty_recipe *r, const ty_model *m, int i)
{
    const char *input = ty_model_input(m, i)->name;
    for (int k = 0; k < r->n_inputs; k++)
        if (strcmp(r->inputs[k].input, input) == 0)
            return r->inputs[k].field;
    return input;
}

/* How many numbers the input takes that a field of lists feeds; 0: it feeds none, or one of another rank or any length.
 */
static int64_t found_length(const ty_recipe *r, const ty_model *m, const char *field)
{
    int n = ty_model_n_inputs(m);
    for (int i = 0; i < n; i++) {
        const ty_model_value *input = ty_model_input(m, i);
        bool feeds = n == 1 || strcmp(ty_found_wanted(r, m, i), field) == 0;
        if (feeds && input->rank == 2 && input->dim[1] > 0)
            return input->dim[1];
    }
    return 0;
}

static void found_take_length(const ty_recipe *r, const ty_model *m, ty_field *f)
{
    f->max_length = ty_found_is_target(f->name) ? 0 : found_length(r, m, f->name);
    if (f->max_length > 0)
        ty_log_info("data",
                    "field \"%s\": lists are filled up with 0, or cut, to the %lld numbers that the model takes",
                    f->name, (long long)f->max_length);
}

/* Texts are nothing that feeds a model but for a target's, which are names of classes, unless the model has a
 * tokenizer; lists of texts are nothing that does. media: of pictures and sounds. */
static int found_arrays(const ty_recipe *r, const ty_model *m, const ty_data_survey *s, ty_media media, ty_arena *a,
                        ty_recipe_data *d, ty_error *err)
{
    ty_field *fields = TY_NEW_ARRAY(a, ty_field, s->n_parts + TY_FOUND_MAX_TOKEN_FIELDS);
    bool wants_texts = ty_found_wants_texts(r, m, s);
    for (int i = 0; i < s->n_parts; i++) {
        const ty_data_part *part = &s->part[i];
        if (wants_texts && (ty_found_makes_labels(m) || !ty_found_is_target(part->name)))
            continue;
        ty_map_spec classes = {.field = part->name, .way = TY_MAP_CLASSES, .scale = 1.0};
        if (part->is_text && (part->is_list || !ty_found_is_target(part->name)))
            continue;
        ty_field *f = &fields[d->n_fields++];
        *f = ty_field_make(part->name);
        f->file = part->file;
        f->image = part->is_picture ? media.image : NULL;
        f->audio = part->is_sound ? media.audio : NULL;
        if (part->is_list)
            found_take_length(r, m, f);
        if (part->is_text && ty_map_new(&classes, a, &f->map, err) < 0)
            return -1;
    }
    d->fields = fields;
    return wants_texts ? ty_found_texts(r, m, s, 0, 0, a, fields, &d->n_fields, err) : 0;
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

/* As the files beside the model say; false: they say nothing. */
static bool found_normalization(const ty_model *m, ty_image_plan *p)
{
    const ty_model_preparation *say = ty_model_preparation_of(m);
    if (!say || !say->has_normalization || (p->channels != 3 && p->channels != 1))
        return false;
    p->n_mean = p->n_std = p->channels;
    for (int i = 0; i < p->channels; i++) {
        p->mean[i] = say->mean[i];
        p->std[i] = say->std[i];
    }
    return true;
}

static ty_image_plan *found_pictures(const ty_data_survey *s, const ty_model *m, ty_arena *a)
{
    ty_image_plan *p = TY_NEW(a, ty_image_plan);
    *p = ty_image_plan_make();
    found_plan(m, p);
    bool is_normal = found_normalization(m, p);
    ty_log_info("data",
                "no fields are declared: pictures become %d x %d pixels of %d channels (0: as they are), %s, "
                "value / 255%s%s",
                p->height, p->width, p->channels, p->hwc ? "HWC" : "CHW",
                is_normal ? " less the mean and over the deviation that stand beside the model" : "",
                strcmp(s->format, "images") == 0 ? "; folders are classes" : "");
    return p;
}

/* ---- sounds ---- */

/* What the model's first input wants: [N, T], [N, C, T] or [N, T, C], of which time is the longer. */
static void found_audio_plan(const ty_model *m, ty_audio_plan *p)
{
    const ty_model_value *in = ty_model_n_inputs(m) > 0 ? ty_model_input(m, 0) : NULL;
    if (in == NULL || in->rank < 2 || in->rank > 3)
        return;
    bool last = in->rank == 3 && in->dim[2] >= 1 && in->dim[2] <= TY_AUDIO_MAX_CHANNELS &&
                !(in->dim[1] >= 1 && in->dim[1] <= TY_AUDIO_MAX_CHANNELS);
    int64_t time = in->dim[in->rank == 2 || last ? 1 : 2], channels = in->rank == 2 ? 1 : in->dim[last ? 2 : 1];
    p->layout = in->rank == 2 ? TY_AUDIO_T : last ? TY_AUDIO_TC : TY_AUDIO_CT;
    if (channels >= 1 && channels <= TY_AUDIO_MAX_CHANNELS)
        p->channels = (int)channels;
    if (time >= 1 && time <= TY_AUDIO_MAX_SAMPLES)
        p->length = time;
}

static ty_audio_plan *found_sounds(const ty_data_survey *s, const ty_model *m, ty_arena *a)
{
    static const char *const layouts[] = {"T or CT", "T", "CT", "TC"};
    ty_audio_plan *p = TY_NEW(a, ty_audio_plan);
    *p = ty_audio_plan_make();
    found_audio_plan(m, p);
    ty_log_info("data",
                "no fields are declared: sounds become %lld frames of %d channels (0: as they are), %s, at the rate of "
                "the first%s",
                (long long)p->length, p->channels, layouts[p->layout],
                strcmp(s->format, "audio") == 0 ? "; folders are classes" : "");
    return p;
}

/* ---- tables ---- */

int ty_found_part(const ty_data_survey *s, const char *name)
{
    for (int i = 0; name && i < s->n_parts; i++)
        if (s->part[i].name && strcmp(s->part[i].name, name) == 0)
            return i;
    return -1;
}

static bool found_feeds(const ty_recipe *r, const ty_model *m, const char *column)
{
    for (int i = 0; i < ty_model_n_inputs(m); i++)
        if (strcmp(ty_found_wanted(r, m, i), column) == 0)
            return true;
    return false;
}

static bool found_all_inputs(const ty_recipe *r, const ty_model *m, const ty_data_survey *s)
{
    for (int i = 0; i < ty_model_n_inputs(m); i++)
        if (ty_found_part(s, ty_found_wanted(r, m, i)) < 0)
            return false;
    return ty_model_n_inputs(m) > 0;
}

/* The column that the recipe names; -1: it names none. */
static int found_named_target(const ty_recipe *r, const ty_data_survey *s)
{
    for (int i = 0; i < r->n_loss; i++) {
        int named = ty_found_part(s, r->loss[i].term.target);
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

/* The columns of a target. */
typedef struct found_labels {
    int first, n;
} found_labels;

/* label_size: of the channel's content type; -1: none. */
static int found_target(const ty_recipe *r, const ty_model *m, const ty_data_survey *s, int64_t label_size, ty_arena *a,
                        found_labels *out, ty_error *err)
{
    const char **names = NULL;
    int32_t *column, n;
    if (!r->train.target) {
        int named = found_named_target(r, s);
        *out = (found_labels){named >= 0 || label_size >= 0 ? named : found_usual_target(r, m, s), 1};
        if (named < 0 && label_size >= 0)
            *out = (found_labels){0, (int)label_size};
        if (out->n < s->n_parts)
            return 0;
        return ty_error_set(err, TY_E_CONFIG,
                            "label_size=%d of the channel's content type, and the table has %d columns", out->n,
                            s->n_parts);
    }
    if (s->part[0].name)
        names = TY_NEW_ARRAY(a, const char *, s->n_parts);
    for (int i = 0; names && i < s->n_parts; i++)
        names[i] = s->part[i].name;
    if (ty_columns_resolve(r->train.target, names, s->n_parts, a, &column, &n, err) < 0)
        return ty_error_wrap(err, "target");
    *out = (found_labels){column[0], 1};
    return n == 1 ? 0 : ty_error_set(err, TY_E_CONFIG, "target: expected one column, found %d", (int)n);
}

static ty_field found_column_field(const char *name, int column, ty_arena *a)
{
    ty_field f = ty_field_make(name);
    f.columns = ty_arena_printf(a, "%d", column);
    return f;
}

/* A label that is a text becomes a class number. */
static int found_target_field(const ty_data_survey *s, const char *name, found_labels l, ty_arena *a, ty_field *out,
                              ty_error *err)
{
    *out = found_column_field(name, l.first, a);
    ty_map_spec spec = {.field = name, .scale = 1, .way = TY_MAP_CLASSES};
    if (l.n > 1)
        out->columns = ty_arena_printf(a, "%d-%d", l.first, l.first + l.n - 1);
    return l.n == 1 && s->part[l.first].is_text ? ty_map_new(&spec, a, &out->map, err) : 0;
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

static bool found_is_label(found_labels l, int column)
{
    return column >= l.first && column < l.first + l.n;
}

/* NULL: there is none. */
static const char *found_target_name(const ty_data_survey *s, found_labels l)
{
    return l.n == 0 ? NULL : l.n == 1 && s->part[l.first].name ? s->part[l.first].name : "target";
}

static int found_named_columns(const ty_recipe *r, const ty_model *m, const ty_data_survey *s, found_labels l,
                               ty_arena *a, ty_recipe_data *d, ty_error *err)
{
    int n = 0;
    ty_field *fields = TY_NEW_ARRAY(a, ty_field, s->n_parts + 1);
    d->target = found_target_name(s, l);
    if (l.n > 0 && found_target_field(s, d->target, l, a, &fields[n++], err) < 0)
        return -1;
    for (int i = 0; i < s->n_parts; i++) {
        if (found_is_label(l, i) || !found_feeds(r, m, s->part[i].name))
            continue;
        if (s->part[i].is_text)
            return found_refuse_text(s, i, err);
        fields[n++] = found_column_field(s->part[i].name, i, a);
    }
    d->fields = fields;
    d->n_fields = n;
    return 0;
}

/* All columns but the target's, as ty_columns_resolve reads them. */
static const char *found_others(found_labels l, int n, ty_arena *a)
{
    int behind = l.first + l.n;
    const char *before = l.first == 0 ? "" : ty_arena_printf(a, "0-%d", l.first - 1);
    const char *after = behind == n ? "" : ty_arena_printf(a, "%d-%d", behind, n - 1);
    return ty_arena_printf(a, "%s%s%s", before, *before && *after ? "," : "", after);
}

static int found_features(const ty_data_survey *s, found_labels l, ty_arena *a, ty_recipe_data *d, ty_error *err)
{
    for (int i = 0; i < s->n_parts; i++)
        if (!(l.n == 1 && i == l.first) && s->part[i].is_text)
            return found_refuse_text(s, i, err);
    const char *name = found_target_name(s, l);
    ty_field *fields = TY_NEW_ARRAY(a, ty_field, 2);
    fields[0] = ty_field_make(name && strcmp(name, "features") == 0 ? "inputs" : "features");
    fields[0].columns = found_others(l, s->n_parts, a);
    d->target = name;
    d->fields = fields;
    d->n_fields = l.n > 0 ? 2 : 1;
    return l.n > 0 ? found_target_field(s, name, l, a, &fields[1], err) : 0;
}

static void found_tell(const ty_data_survey *s, found_labels l)
{
    const char *name = l.n == 1 ? s->part[l.first].name : NULL;
    if (l.n == 0)
        ty_log_info("data", "no fields are declared: label_size=0 of the content type: no column is a target");
    else if (l.n > 1)
        ty_log_info("data", "no fields are declared: the target is columns 0 to %d: label_size=%d", l.n - 1, l.n);
    else
        ty_log_info("data", "no fields are declared: the target is column %d%s%s%s", l.first, name ? ", \"" : "",
                    name ? name : "", name ? "\"" : "");
}

/* A table with a column of text, for a model with a tokenizer. */
static int found_text_table(const ty_recipe *r, const ty_model *m, const ty_data_survey *s, int64_t label_size,
                            ty_arena *a, ty_recipe_data *d, ty_error *err)
{
    found_labels l = {0, 0};
    ty_field *fields = TY_NEW_ARRAY(a, ty_field, 1 + TY_FOUND_MAX_TOKEN_FIELDS);
    bool makes_labels = ty_found_makes_labels(m);
    if (!makes_labels && found_target(r, m, s, label_size, a, &l, err) < 0)
        return -1;
    d->fields = fields;
    d->target = makes_labels ? ty_found_label(m) : found_target_name(s, l);
    if (!makes_labels)
        found_tell(s, l);
    if (l.n > 0 && found_target_field(s, d->target, l, a, &fields[d->n_fields++], err) < 0)
        return -1;
    return ty_found_texts(r, m, s, l.first, l.n, a, fields, &d->n_fields, err);
}

static int found_table(const ty_recipe *r, const ty_model *m, const ty_data_survey *s, const char *content_type,
                       ty_arena *a, ty_recipe_data *d, ty_error *err)
{
    int64_t label_size;
    found_labels l;
    if (ty_content_label_size(content_type, &label_size, err) < 0)
        return -1;
    if (ty_found_wants_texts(r, m, s))
        return found_text_table(r, m, s, label_size, a, d, err);
    bool by_name = found_all_inputs(r, m, s);
    if (s->n_parts < 2 || (!by_name && ty_model_n_inputs(m) != 1)) {
        ty_error_set(err, TY_E_CONFIG, "which of the table's %d columns feed the model's %d inputs cannot be told",
                     s->n_parts, ty_model_n_inputs(m));
        return ty_error_help(err, "declare them, data.train.fields: {NAME: {columns: 0-3}, ...}, or give the file a "
                                  "header with the inputs' names");
    }
    if (found_target(r, m, s, label_size, a, &l, err) < 0)
        return -1;
    found_tell(s, l);
    return by_name ? found_named_columns(r, m, s, l, a, d, err) : found_features(s, l, a, d, err);
}

static void found_share(ty_recipe *r)
{
    if (!r->validation.given || r->validation.n_fields > 0)
        return;
    r->validation.fields = r->train.fields;
    r->validation.n_fields = r->train.n_fields;
}

int ty_found_fields_of_pipe(ty_recipe *r, const ty_model *m, const ty_data_source *source, ty_arena *a, ty_error *err)
{
    const ty_format *format = NULL;
    int64_t size;
    if (ty_content_label_size(source->content_type, &size, err) < 0 ||
        ty_format_detect(source, NULL, 0, &format, err) < 0)
        return -1;
    if (!format || strcmp(format->name, "csv") != 0 || ty_model_n_inputs(m) != 1 || r->train.target)
        return 0;
    found_labels l = {0, size < 0 ? 1 : (int)size};
    ty_field *fields = TY_NEW_ARRAY(a, ty_field, 2);
    fields[0] = ty_field_make("features");
    fields[0].columns = ty_arena_printf(a, "%d--1", l.n);
    fields[1] = ty_field_make("target");
    fields[1].columns = l.n > 1 ? ty_arena_printf(a, "0-%d", l.n - 1) : "0";
    r->train.target = l.n > 0 ? "target" : NULL;
    r->train.fields = fields;
    r->train.n_fields = l.n > 0 ? 2 : 1;
    found_tell(&(ty_data_survey){.part = &(ty_data_part){.name = NULL}, .n_parts = 1}, l);
    found_share(r);
    return 1;
}

/* ---- declared fields, and how many labels the content type says there are ---- */

static bool found_names_target(const ty_recipe *r, const char *field)
{
    bool is_named = r->train.target != NULL;
    if (is_named && strcmp(r->train.target, field) == 0)
        return true;
    for (int i = 0; i < r->n_loss; i++) {
        const char *target = r->loss[i].term.target;
        is_named = is_named || target;
        if (target && strcmp(target, field) == 0)
            return true;
    }
    return !is_named && ty_found_is_target(field);
}

/* Of a table without a header. */
static bool found_are_labels(const ty_field *f, int64_t n_labels, int n_columns, ty_arena *a)
{
    int32_t *column, n;
    if (ty_columns_resolve(f->columns, NULL, n_columns, a, &column, &n, NULL) < 0)
        return true; /* who opens the data tells what is wrong with them */
    bool same = n == n_labels;
    for (int32_t i = 0; same && i < n; i++)
        same = column[i] == i;
    return same;
}

static int found_refuse_columns(const char *first, const char *second, int64_t n_labels, ty_error *err)
{
    if (n_labels == 0)
        ty_error_set(err, TY_E_CONFIG, "label_size=0 of the channel's content type: no column is left for field \"%s\"",
                     first);
    else
        ty_error_set(
            err, TY_E_CONFIG,
            "label_size=%lld of the channel's content type does not say which columns fields \"%s\" and \"%s\" "
            "are",
            (long long)n_labels, first, second);
    return ty_error_help(err, "declare them: %s: {columns: 0-3}", first);
}

/* Gives the open fields their columns. */
static int found_give_columns(const ty_recipe *r, ty_field *fields, int n, int64_t n_labels, ty_arena *a, ty_error *err)
{
    ty_field *open[2] = {NULL, NULL}; /* the target, the other */
    for (int i = 0; i < n; i++) {
        ty_field **mine = &open[!found_names_target(r, fields[i].name)];
        if (fields[i].columns || ty_field_is_cross(&fields[i]))
            continue;
        if (*mine || (n_labels == 0 && mine == &open[0]))
            return found_refuse_columns(fields[i].name, *mine ? (*mine)->name : "", n_labels, err);
        *mine = &fields[i];
    }
    if (open[0])
        open[0]->columns = n_labels == 1 ? "0" : ty_arena_printf(a, "0-%lld", (long long)n_labels - 1);
    if (open[1])
        open[1]->columns = ty_arena_printf(a, "%lld--1", (long long)n_labels);
    for (int i = 0; i < 2; i++)
        if (open[i])
            ty_log_info("data", "field \"%s\": columns %s: label_size=%lld of the content type", open[i]->name,
                        open[i]->columns, (long long)n_labels);
    return 0;
}

int ty_found_label_columns(ty_recipe *r, const ty_data_source *source, bool is_pipe, ty_arena *a, ty_error *err)
{
    ty_recipe_data *d = &r->train;
    const ty_format *format = NULL;
    ty_data_survey survey = {0};
    ty_error ignored = {0};
    int64_t n_labels;
    if (ty_content_label_size(source->content_type, &n_labels, err) < 0)
        return -1;
    if (n_labels < 0 || (is_pipe && (ty_format_detect(source, NULL, 0, &format, &ignored) < 0 || !format ||
                                     strcmp(format->name, "csv") != 0)))
        return 0;
    if (!is_pipe && (ty_data_survey_make(source, a, &survey, &ignored) < 0 || !survey.is_table || survey.part[0].name))
        return 0;
    ty_field *fields = ty_arena_copy(a, d->fields, (size_t)d->n_fields * sizeof *fields);
    for (int i = 0; i < d->n_fields; i++)
        if (!is_pipe && fields[i].columns && found_names_target(r, fields[i].name) &&
            !found_are_labels(&fields[i], n_labels, survey.n_parts, a))
            ty_log_warning("data",
                           "field \"%s\" has columns %s, and the channel's content type says label_size=%lld: the "
                           "recipe counts",
                           fields[i].name, fields[i].columns, (long long)n_labels);
    if (found_give_columns(r, fields, d->n_fields, n_labels, a, err) < 0)
        return -1;
    if (r->validation.fields == d->fields)
        r->validation.fields = fields;
    d->fields = fields;
    return 0;
}

int ty_found_fields(ty_recipe *r, const ty_model *m, const ty_data_source *source, ty_arena *a, ty_error *err)
{
    ty_data_survey survey;
    if (ty_data_survey_make(source, a, &survey, err) < 0)
        return -1;
    if (!survey.is_table && survey.n_parts == 0)
        return ty_error_set(err, TY_E_DATA, "the %s data hold no array", survey.format);
    if (survey.is_table && found_table(r, m, &survey, source->content_type, a, &r->train, err) < 0)
        return -1;
    ty_media media = {0};
    for (int i = 0; i < survey.n_parts; i++) {
        if (survey.part[i].is_picture && !media.image)
            media.image = found_pictures(&survey, m, a);
        if (survey.part[i].is_sound && !media.audio)
            media.audio = found_sounds(&survey, m, a);
    }
    if (!survey.is_table && found_arrays(r, m, &survey, media, a, &r->train, err) < 0)
        return -1;
    found_share(r);
    return 0;
}
