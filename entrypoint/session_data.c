/* session_data.c - the data of a session: opened by number or as a stream, batches, steps. */
#include "entrypoint/channel.h"
#include "entrypoint/found.h"
#include "entrypoint/length.h"
#include "entrypoint/memory.h"
#include "entrypoint/session.h"

#include "base/file.h"
#include "base/log.h"
#include "container/input/subset.h"
#include "container/input/survey.h"
#include "container/input/format.h"

#include <stdio.h>
#include <string.h>

enum {
    SESSION_REPORT_STEPS = 50, /* between metric lines, where nobody knows how many steps there are */
    SESSION_MANY_STEPS = 1 << 20
};

/* ---- where they are ---- */

static int refuse_channel(ty_session *s, const ty_recipe_data *d, ty_error *err)
{
    char known[320];
    ty_doc_error(d->at, err, TY_E_CHANNEL, NULL, "input channel \"%s\" does not exist", d->channel);
    if (s->job->n_channels > 0)
        return ty_error_help(err, "channels of this job: %s", ty_channel_names(s->job, known, sizeof known));
    return ty_error_help(
        err, "name the folder: data.train.path in the recipe, or --data-dir=DIR with a folder for each channel");
}

ty_place ty_session_place(const ty_session *s)
{
    const ty_company *c = s->job->company;
    const ty_served_options *o = s->job->served;
    if (ty_served_is_job(o))
        return (ty_place){o->host, o->hosts, o->local, o->locals, o->worker, o->workers};
    return (ty_place){ty_company_host(c),       ty_company_hosts(c), ty_company_local_rank(c),
                      ty_company_local_size(c), ty_company_rank(c),  ty_company_size(c)};
}

/* Without a job's configuration a channel in Pipe mode shows by its first FIFO alone. */
static const ty_job_channel *channel_of_folder(ty_session *s, const ty_recipe_data *d)
{
    ty_job_channel *c = TY_NEW(&s->arena, ty_job_channel);
    *c = (ty_job_channel){.name = d->channel,
                          .path = ty_arena_printf(&s->arena, "%s/%s", s->job->data_folder, d->channel),
                          .content_type = ""};
    if (ty_file_exists(c->path) || !ty_channel_has_fifo(c->path))
        return c;
    c->mode = TY_JOB_PIPE;
    s->pipe_state_folder = ty_arena_printf(&s->arena, "%s/.pipe_state", s->job->data_folder);
    /* There is no container whose end would be that of the count: a FIFO 0 begins anew. */
    if (ty_file_exists(ty_arena_printf(&s->arena, "%s_0", c->path)))
        ty_file_remove(ty_arena_printf(&s->arena, "%s/.%s-pipe_mode-state", s->pipe_state_folder, c->name), NULL);
    return c;
}

/* Where d lies: what to open, but for its fields. */
static int find_source(ty_session *s, const ty_recipe_data *d, ty_session_source *out, ty_error *err)
{
    ty_place place = ty_session_place(s);
    *out = (ty_session_source){.n_alike = 1};
    if (!d->path && d->channel)
        out->channel = ty_channel_of_rank(s->job, d->channel, &place, &out->n_alike);
    if (!d->path && !out->channel && out->n_alike == 0 && s->job->data_folder) {
        out->channel = channel_of_folder(s, d);
        out->n_alike = 1;
    }
    if (!d->path && !out->channel && out->n_alike == 0)
        return refuse_channel(s, d, err);
    const char **path = TY_NEW(&s->arena, const char *);
    *path = d->path ? d->path : out->channel ? out->channel->path : NULL;
    out->mode = d->path ? TY_JOB_FILE : out->channel ? out->channel->mode : TY_JOB_PIPE;
    out->sharded = place.ranks > 1 && out->channel && out->channel->sharded;
    out->files = (ty_data_source){
        .paths = path,
        .n_paths = 1,
        .pattern = d->pattern,
        .windows = d->windows,
        .format = d->format,
        .content_type = out->channel ? out->channel->content_type : NULL,
        .csv_header = (ty_csv_header)d->header,
        .index_base = (ty_index_base)d->index_base,
        .csv_delimiter = d->delimiter ? d->delimiter[0] : 0,
        .lenient = d->lenient,
        .csv_missing = d->missing_values,
        .blank_lines = d->blank_lines,
        .skip_bad = d->skip_bad,
        .max_bad = d->max_bad,
        .no_map = out->mode == TY_JOB_FAST_FILE,
    };
    return 0;
}

/* ---- by number, or as they come ---- */

/* Formats and sizes matter only where the recipe leaves the choice, and what is wrong with files is told by who opens
 * them. */
static void look_at_files(ty_session *s, const ty_recipe_data *d, const ty_session_source *source, ty_access_facts *f)
{
    ty_error ignored = {0};
    ty_data_file *files;
    const ty_format *format;
    int n;
    if (f->wanted != TY_ACCESS_AUTO || f->mode == TY_JOB_PIPE ||
        ty_files_list(source->files.paths, 1, &s->arena, &files, &n, &ignored) < 0 ||
        ty_format_detect(&source->files, files, n, &format, &ignored) < 0 || !format)
        return;
    const ty_data_file *first = NULL;
    f->is_records = ty_access_is_records(format->name);
    f->is_decoded = ty_format_is_columns(format->name);
    for (int i = 0; i < n; i++) {
        if (source->files.pattern && !ty_file_matches(&files[i], source->files.pattern))
            continue;
        f->bytes += (uint64_t)files[i].n_bytes;
        first = first ? first : &files[i];
    }
    f->needs_length = f->needs_length && !(f->is_decoded && !source->sharded && !d->skip_bad);
    if (f->is_decoded && first)
        f->bytes = (uint64_t)((double)f->bytes * ty_parquet_measure(first->path, d->fields, d->n_fields).growth);
}

static int choose_access(ty_session *s, const ty_recipe_data *d, const ty_session_source *source, bool *streams,
                         ty_error *err)
{
    const char *why, *memory;
    const ty_doc *at;
    bool is_train = d == &s->recipe.train;
    ty_access_facts f = {.wanted = (ty_access)d->access,
                         .mode = source->mode,
                         .memory_bytes = s->recipe.memory_bytes ? s->recipe.memory_bytes : ty_memory_limit(&memory),
                         .needs_length = is_train && ty_length_needed(&s->recipe, &at) != NULL};
    look_at_files(s, d, source, &f);
    *streams = ty_access_streams(&f, &why);
    if (d->access == TY_ACCESS_RANDOM && source->mode == TY_JOB_PIPE) {
        ty_doc_error(d->at, err, TY_E_CONFIG, NULL, "access: random, and channel \"%s\" is in Pipe mode", d->channel);
        return ty_error_help(err, "a FIFO is read once, from its beginning to its end: access: stream, or give the "
                                  "channel the mode File or FastFile");
    }
    if (*streams)
        ty_log_info("data", "data.%s is read as a stream: %s", is_train ? "train" : "validation", why);
    return 0;
}

/* An empty number would be NaN, and the loss with it, some steps later. */
static int refuse_missing(const ty_dataset *ds, const ty_field *fields, ty_error *err)
{
    char place[TY_ERROR_PLACE_BYTES];
    for (int i = 0; i < ds->n_fields; i++) {
        const ty_field_info *info = &ds->field[i];
        if (info->n_missing == 0 || fields[i].missing_given)
            continue;
        ty_error_set(err, TY_E_DATA, "field \"%s\": %lld values are missing, expected a number in each", info->name,
                     (long long)info->n_missing);
        ty_error_at(err, "%s", ty_dataset_place(ds, i, info->first_missing, place, sizeof place));
        return ty_error_help(err, "say what stands for them: missing: 0");
    }
    return 0;
}

/* NaN and infinities that a file spells out: with where, since the loss will only say that it is one. */
static void tell_not_finite(const ty_dataset *ds, const char *section)
{
    char place[TY_ERROR_PLACE_BYTES];
    for (int i = 0; i < ds->n_fields; i++) {
        const ty_field_info *info = &ds->field[i];
        if (info->n_not_finite > 0)
            ty_log_warning("data", "%s: field \"%s\": %lld values are not finite, the first at %s", section, info->name,
                           (long long)info->n_not_finite,
                           ty_dataset_place(ds, i, info->first_not_finite, place, sizeof place));
    }
}

void ty_session_explain_not_finite(const ty_session *s, ty_error *err)
{
    char place[TY_ERROR_PLACE_BYTES];
    const ty_dataset *ds = s->train;
    for (int i = 0; ds && err->code == TY_E_NOT_FINITE && i < ds->n_fields; i++)
        if (ds->field[i].n_not_finite > 0) {
            ty_error_wrap(err, "data.train has values that are not finite in field \"%s\"", ds->field[i].name);
            ty_error_at(err, "%s", ty_dataset_place(ds, i, ds->field[i].first_not_finite, place, sizeof place));
            return;
        }
}

/* Whether ranks may see other training data than this one: hosts with files of their own, or in Pipe mode ranks with
 * channels of their own, of which nobody knows before they are read. */
static bool may_be_a_part(const ty_session *s, const ty_session_source *source)
{
    bool is_pipe = source->mode == TY_JOB_PIPE && !s->train && s->job->company;
    return source->sharded || (is_pipe && ty_company_size(s->job->company) > 1);
}

/* Whether MXNet's labels are classes is decided by the training data, where nobody has declared it. */
static const ty_field *like_training(ty_session *s, const ty_field *fields, int n)
{
    if (!s->train || strcmp(s->train->format, "mxnet") != 0)
        return fields;
    ty_field *out = ty_arena_copy(&s->arena, fields, (size_t)n * sizeof *out);
    for (int i = 0; i < n; i++) {
        int k = out[i].dtype_given || out[i].map ? -1 : ty_dataset_find(s->train, out[i].name);
        if (k < 0 || s->train->field[k].image || out[i].audio)
            continue;
        out[i].dtype = (ty_dtype)s->train->field[k].type.dtype;
        out[i].dtype_given = true;
    }
    return out;
}

static int open_data(ty_session *s, const ty_recipe_data *d, ty_dataset **out, bool *sharded, ty_session_stream *stream,
                     ty_error *err)
{
    ty_session_source source;
    bool streams;
    if (find_source(s, d, &source, err) < 0 || choose_access(s, d, &source, &streams, err) < 0)
        return -1;
    *sharded = source.sharded;
    source.files.fields = like_training(s, ty_spec_fields(&s->recipe, &s->plan, d, &s->arena), d->n_fields);
    source.files.n_fields = d->n_fields;
    if (ty_session_prepare_transforms(s, source.files.fields, source.files.n_fields, may_be_a_part(s, &source),
                                      &source.files, err) < 0)
        return -1;
    if (s->train)
        source.files.index = s->train->index;
    if (streams) {
        bool is_train = !s->train;
        *sharded = false;
        *out = &stream->face;
        if (ty_session_open_stream(s, d, &source, stream, err) < 0)
            return -1;
        if (is_train)
            ty_session_describe_transforms(source.files.fields, source.files.n_fields);
        return 0;
    }
    source.files.like = s->train_stream.is_on ? NULL : s->train; /* NULL for the training data themselves */
    source.files.keep = ty_session_keep(s, d);
    if (ty_dataset_open(&source.files, out, err) < 0)
        return -1;
    ty_session_tell_kept(s, *out, source.files.like ? "data.validation" : "data.train");
    if (!source.files.like)
        ty_session_describe_transforms(source.files.fields, source.files.n_fields);
    tell_not_finite(*out, source.files.like ? "data.validation" : "data.train");
    return refuse_missing(*out, source.files.fields, err);
}

/* Fields that were found in the training data are those of the validation data, whose labels must stand where theirs
 * do. What else is wrong with that channel is told when it is opened. */
static int check_label_size(ty_session *s, const ty_session_source *train, ty_error *err)
{
    const ty_recipe_data *d = &s->recipe.validation;
    ty_session_source source;
    ty_error ignored = {0};
    int64_t mine, theirs;
    if (!d->given || d->fields != s->recipe.train.fields || find_source(s, d, &source, &ignored) < 0)
        return 0;
    if (ty_content_label_size(train->files.content_type, &theirs, err) < 0 ||
        ty_content_label_size(source.files.content_type, &mine, err) < 0)
        return ty_error_wrap(err, "data.validation");
    if (mine < 0 || theirs < 0 || mine == theirs)
        return 0;
    ty_doc_error(d->at, err, TY_E_CONFIG, NULL,
                 "data.validation: its content type says label_size=%lld, and that of data.train label_size=%lld",
                 (long long)mine, (long long)theirs);
    return ty_error_help(err, "give both channels the same, or declare the fields of each");
}

/* Columns of fields that the recipe declares. What else is wrong with the channel is told when it is opened. */
static int find_columns(ty_session *s, ty_error *err)
{
    ty_session_source source;
    ty_error ignored = {0};
    if (find_source(s, &s->recipe.train, &source, &ignored) < 0)
        return 0;
    if (ty_found_label_columns(&s->recipe, &source.files, source.mode == TY_JOB_PIPE, &s->arena, err) < 0)
        return ty_error_wrap(err, "data.train");
    return check_label_size(s, &source, err);
}

/* Data of which the recipe names no fields, or not which columns they are. */
int ty_session_find_fields(ty_session *s, ty_error *err)
{
    ty_session_source source;
    const ty_recipe_data *d = &s->recipe.train;
    if (d->n_fields > 0)
        return find_columns(s, err);
    if (find_source(s, d, &source, err) < 0)
        return ty_error_wrap(err, "data.train");
    if (source.mode == TY_JOB_PIPE) {
        int found = ty_found_fields_of_pipe(&s->recipe, s->model, &source.files, &s->arena, err);
        if (found != 0)
            return found < 0 ? ty_error_wrap(err, "data.train") : check_label_size(s, &source, err);
        ty_doc_error(d->at, err, TY_E_CONFIG, NULL, "channel \"%s\" is in Pipe mode, and data.train declares no fields",
                     d->channel);
        return ty_error_help(err,
                             "a FIFO cannot be looked into before it is read: data.train.fields: {NAME: {...}, ...}");
    }
    if (ty_found_fields(&s->recipe, s->model, &source.files, &s->arena, err) < 0)
        return ty_error_wrap(err, "data.train");
    return check_label_size(s, &source, err);
}

/* Which field of a data set feeds which input; both sets must give the same shapes. */
static int map_fields(ty_session *s, const ty_dataset *ds, const char *which, const int **out, ty_error *err)
{
    int *map = TY_NEW_ARRAY(&s->arena, int, s->plan.n_feeds);
    for (int i = 0; i < s->plan.n_feeds; i++) {
        const char *field = s->plan.feeds[i].field;
        map[i] = ty_dataset_find(ds, field);
        if (map[i] < 0)
            return ty_error_set(err, TY_E_CONFIG, "data.%s declares no field \"%s\"", which, field);
        const ty_type *found = &ds->field[map[i]].type;
        const ty_type *wanted = &s->train->field[ty_dataset_find(s->train, field)].type;
        char found_text[160], wanted_text[160];
        if (!ty_type_same(found, wanted))
            return ty_error_set(err, TY_E_SHAPE, "field \"%s\" is %s in data.%s and %s in data.train", field,
                                ty_type_text(found, found_text, sizeof found_text), which,
                                ty_type_text(wanted, wanted_text, sizeof wanted_text));
    }
    *out = map;
    return 0;
}

/* A share of the training data, which are not trained on. */
static int split_data(ty_session *s, ty_error *err)
{
    ty_dataset *rest, *split;
    const ty_recipe_data *d = &s->recipe.validation;
    if (s->train_stream.is_on) {
        ty_doc_error(d->at, err, TY_E_CONFIG, NULL, "data.validation.split: data.train is read as a stream");
        return ty_error_help(err, "data.train.access: random, or validation data of its own");
    }
    if (ty_dataset_split(s->train, d->split, (uint64_t)s->recipe.seed, &rest, &split, err) < 0)
        return ty_error_wrap(err, "data.validation.split");
    s->train = rest;
    s->validation = split;
    s->validation_sharded = s->train_sharded;
    return 0;
}

int ty_session_open_data(ty_session *s, ty_error *err)
{
    double start = ty_session_now_s();
    if (open_data(s, &s->recipe.train, &s->train, &s->train_sharded, &s->train_stream, err) < 0)
        return ty_error_wrap(err, "data.train");
    if (s->recipe.validation.split > 0 && split_data(s, err) < 0)
        return -1;
    if (s->recipe.validation.given && s->recipe.validation.split == 0 &&
        open_data(s, &s->recipe.validation, &s->validation, &s->validation_sharded, &s->validation_stream, err) < 0)
        return ty_error_wrap(err, "data.validation");
    if (s->validation && !s->validation_stream.is_on && s->validation->n_samples == 0) {
        ty_log_warning("data", "data.validation has no samples: nothing is evaluated");
        ty_dataset_close(s->validation);
        s->validation = NULL;
    }
    if (!s->validation && s->recipe.n_metrics > 0)
        ty_log_warning("data", "metrics are computed on data.validation, and there is none");
    s->times.data_s = ty_session_now_s() - start;
    if (map_fields(s, s->train, "train", &s->train_field, err) < 0)
        return -1;
    return s->validation ? map_fields(s, s->validation, "validation", &s->validation_field, err) : 0;
}

/* How many batches an epoch has, which is agreed among ranks. */
static int count_batches(ty_session *s, int64_t *batches, ty_error *err)
{
    ty_sampler sampler;
    ty_sampler_config config = ty_session_sampler(s, false);
    if (ty_sampler_init(&sampler, &config, err) < 0)
        return ty_error_wrap(err, "data.train");
    *batches = sampler.n_batches;
    ty_sampler_fini(&sampler);
    if (s->train_sharded && ty_session_agree_on_epoch(s, batches, err) < 0)
        return -1;
    s->epoch_batches = s->train_sharded ? *batches : 0;
    return 0;
}

static int64_t count_steps(const ty_recipe *r, int64_t batches)
{
    int64_t total = batches > INT64_MAX / r->epochs ? INT64_MAX : batches * r->epochs;
    total /= r->accumulate;
    return r->max_steps > 0 && total > r->max_steps ? r->max_steps : total;
}

void ty_session_set_epoch(ty_session *s, int64_t batches)
{
    s->epoch_batches = s->known_epoch = s->loop.batches_per_epoch = batches;
    s->known_steps = s->loop.total_steps = count_steps(&s->recipe, batches);
    ty_session_plan_cadences(s);
}

/* How many batches and steps there will be. */
int ty_session_plan_steps(ty_session *s, ty_error *err)
{
    const ty_recipe *r = &s->recipe;
    int64_t batches, total;
    if (s->train_stream.is_on)
        return ty_session_plan_stream(s, err);
    if (count_batches(s, &batches, err) < 0)
        return -1;
    total = count_steps(r, batches);
    if (total < 1)
        return ty_error_set(err, TY_E_CONFIG, "accumulate is %lld, but all epochs together have only %lld batches",
                            (long long)r->accumulate, (long long)(batches * r->epochs));
    s->known_epoch = batches;
    s->known_steps = total;
    s->loop = (ty_loop_plan){.total_steps = total, .batches_per_epoch = batches};
    ty_session_plan_cadences(s);
    return 0;
}

int64_t ty_session_epoch_steps(const ty_session *s)
{
    int64_t accumulate = s->loop.accumulate > 0 ? s->loop.accumulate : 1;
    return s->known_epoch > accumulate ? s->known_epoch / accumulate : 1;
}

int64_t ty_session_all_steps(const ty_session *s)
{
    return s->known_steps > 0 ? s->known_steps : SESSION_MANY_STEPS;
}

bool ty_session_is_last(const ty_session *s, int64_t step)
{
    return s->loop.total_steps > 0 && step >= s->loop.total_steps;
}

void ty_session_plan_cadences(ty_session *s)
{
    const ty_recipe *r = &s->recipe;
    int64_t some = s->known_steps > 100 ? s->known_steps / 100 : 1;
    if (s->known_steps == 0)
        some = SESSION_REPORT_STEPS;
    s->loop.accumulate = r->accumulate;
    s->loop.report = (ty_cadence){r->log_every > 0 ? r->log_every : some, false};
    s->loop.evaluate = (ty_cadence){s->validation ? r->evaluate_every.n : 0, r->evaluate_every.epochs};
    s->loop.checkpoint = (ty_cadence){r->checkpoint_every.n, r->checkpoint_every.epochs};
}

/* Before anything is trained: no label beyond the classes, no id beyond its table. */
static int check_range(const ty_session *s, const ty_dataset *ds, const int *fields, int feed, ty_error *err)
{
    const ty_field_info *info = &ds->field[fields[feed]];
    const ty_input_range *range = ty_program_input_range(s->program, feed);
    if (!range || !info->is_integer)
        return 0;
    int64_t lo = range->lo, hi = range->hi;
    if (range->has_also && range->also == info->min && range->also < lo)
        lo = range->also;
    if (range->has_also && range->also == info->max && range->also > hi)
        hi = range->also;
    if (ty_dataset_check_range(ds, fields[feed], lo, hi, range->what, err) == 0)
        return 0;
    const ty_model_preparation *p = ty_model_preparation_of(s->model);
    bool has_classes = p && (p->labels == TY_LABELS_GIVEN || p->labels == TY_LABELS_TAGS);
    if (!has_classes || !s->plan.feeds[feed].is_label || info->max <= hi || !err)
        return -1;
    err->help[0] = 0; /* this one says more */
    return ty_error_help(err, "the recipe's `labels: %lld` gives the model's head as many classes",
                         (long long)info->max + 1);
}

int ty_session_check_ranges(ty_session *s, ty_error *err)
{
    for (int i = 0; i < s->plan.n_feeds; i++) {
        if (!s->train_stream.is_on && check_range(s, s->train, s->train_field, i, err) < 0)
            return ty_error_wrap(err, "data.train");
        if (s->validation && !s->validation_stream.is_on &&
            check_range(s, s->validation, s->validation_field, i, err) < 0)
            return ty_error_wrap(err, "data.validation");
    }
    return 0;
}

int ty_session_start_ring(ty_session *s, ty_prefetch_config config, ty_error *err)
{
    if (ty_session_set_ring(s, s->train, ty_session_rows(s), &config, err) < 0 ||
        ty_prefetch_start(&config, &s->batches, err) < 0)
        return ty_error_wrap(err, "data.train");
    ty_session_tell_ring(s);
    return 0;
}

int ty_session_start_batches(ty_session *s, ty_error *err)
{
    ty_loop_position at = ty_loop_position_at(&s->loop, s->loop.first_step);
    if (s->train_stream.is_on)
        return ty_session_start_stream(s, err);
    return ty_session_start_ring(s,
                                 (ty_prefetch_config){.dataset = s->train,
                                                      .sampler = ty_session_sampler(s, false),
                                                      .augment = true,
                                                      .start = {at.epoch, at.batch}},
                                 err);
}
