/* session_stream.c - a session whose data come as a stream.
 *
 * How long an epoch is shows when it ends, and where ranks have parts of different lengths it ends elsewhere on each.
 * A step takes all ranks, so before each batch every rank says what it has: a batch and more behind it, its last batch,
 * or none; and all conclude the same from the least of that (remainder: drop, the epoch ends with the first rank's) or
 * the most (join and pad, with the last one's; who has none goes on with rows that do not count). The word travels
 * while the step is computed. Ranks that share each batch (rows of it) end together by themselves and exchange nothing.
 */
#include "base/log.h"
#include "base/quantity.h"
#include "entrypoint/length.h"
#include "entrypoint/session.h"
#include "entrypoint/stop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a rank says of the batch to come. */
enum { HAS_NONE, HAS_LAST, HAS_MORE };

enum { LOOK_MS = 100 }; /* between two looks whether to stop */

/* ---- opening ---- */

static int refuse_few_channels(const ty_session *s, const ty_recipe_data *d, int n_alike, int wanted, ty_error *err)
{
    char names[320];
    ty_doc_error(d->at, err, TY_E_CHANNEL, NULL,
                 "%d ranks of each host read channel \"%s\" in Pipe mode, and %d channel%s called so or with a number "
                 "behind it: one FIFO has one reader",
                 wanted, d->channel, n_alike, n_alike == 1 ? " is" : "s are");
    ty_error_help(err,
                  "two readers would get bytes of each other's records. Give the job channels %s, %s-1 ... %s-%d, or "
                  "set processes_per_host: %d; channels of this job: %s",
                  d->channel, d->channel, d->channel, wanted - 1, n_alike,
                  ty_channel_names(s->job, names, sizeof names));
    return -1;
}

/* More channels than ranks: the platform waits for a reader for an hour and fails the job. */
static void tell_spare_channels(const ty_session *s, const ty_recipe_data *d, int n_alike, int locals)
{
    if (n_alike > locals && ty_session_leads(s))
        ty_log_warning("data",
                       "%d channels are called like \"%s\", and only %d rank%s of a host read%s them: the others "
                       "will be read by nobody",
                       n_alike, d->channel, locals, locals == 1 ? "" : "s", locals == 1 ? "s" : "");
}

static const char *folder_of(ty_session *s, const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? ty_arena_printf(&s->arena, "%.*s", (int)(slash - path), path) : ".";
}

static int open_stream(ty_session *s, const ty_recipe_data *d, ty_session_stream *out, ty_error *err)
{
    const ty_data_source *files = &out->source.files;
    const ty_job_channel *c = out->source.channel;
    bool is_pipe = out->source.mode == TY_JOB_PIPE;
    ty_stream_config config = {.paths = files->paths,
                               .n_paths = is_pipe ? 0 : files->n_paths,
                               .pattern = files->pattern,
                               .fast_file = out->source.mode == TY_JOB_FAST_FILE,
                               .channel = is_pipe ? c->name : NULL,
                               .input_folder = is_pipe ? folder_of(s, c->path) : NULL,
                               .state_folder = s->pipe_state_folder ? s->pipe_state_folder : s->job->pipe_state_folder,
                               .timeout_ms = d->pipe_timeout * 1000,
                               .format = files->format,
                               .content_type = files->content_type,
                               .fields = files->fields,
                               .n_fields = files->n_fields,
                               .csv_delimiter = files->csv_delimiter,
                               .index_base = files->index_base,
                               .index = files->index,
                               .agree = files->agree,
                               .lenient = files->lenient,
                               .csv_missing = files->csv_missing,
                               .blank_lines = files->blank_lines,
                               .memory_bytes = (size_t)ty_input_shuffle_bytes(s->recipe.data_memory_bytes),
                               .skip_bad = files->skip_bad,
                               .max_bad = files->max_bad,
                               .wrapped = c && c->record_io,
                               .attributes = d->attributes,
                               .n_attributes = d->n_attributes};
    if (files->csv_header == TY_CSV_HEADER_YES) {
        ty_doc_error(d->at, err, TY_E_CONFIG, NULL, "header: yes, and %s is read as a stream, which has no first line",
                     out->name);
        return ty_error_help(err, "name fields by columns' numbers and take the header out, or say access: random");
    }
    if (ty_stream_open(&config, &out->stream, err) < 0)
        return -1;
    const ty_stream *st = out->stream;
    out->face = (ty_dataset){.format = st->format,
                             .n_fields = st->n_fields,
                             .field = (ty_field_info *)st->field,
                             .index = st->index,
                             .fingerprint = st->fingerprint};
    return 0;
}

/* The types of a stream that other ranks of this host read are those of the training data. */
static int take_types(ty_session *s, ty_session_stream *out, ty_error *err)
{
    if (s->recipe.validation.fields != s->recipe.train.fields) {
        ty_doc_error(s->recipe.validation.at, err, TY_E_CONFIG, NULL,
                     "data.validation has fields of its own, and is read by one rank of each host alone");
        return ty_error_help(err, "fields: same, or a channel for each rank");
    }
    out->face = (ty_dataset){.format = s->train->format, .n_fields = s->train->n_fields, .field = s->train->field};
    return 0;
}

/* Where files say how many records they have, and all ranks share these, nobody else needs to. */
static void take_length(ty_recipe_data *d, const ty_session_stream *st)
{
    if (d->samples == 0 && !d->skip_bad && !st->source.sharded && d->shard != TY_PART_NONE)
        d->samples = st->stream->n_records;
}

int ty_session_open_stream(ty_session *s, const ty_recipe_data *d, const ty_session_source *source,
                           ty_session_stream *out, ty_error *err)
{
    ty_place place = ty_session_place(s);
    bool is_train = d == &s->recipe.train, is_pipe = source->mode == TY_JOB_PIPE;
    *out = (ty_session_stream){.is_on = true, .name = is_train ? "data.train" : "data.validation", .source = *source};
    bool few = is_pipe && source->n_alike < place.locals;
    if (few && is_train)
        return refuse_few_channels(s, d, source->n_alike, place.locals, err);
    /* Of workers of parameter servers the first one evaluates. */
    bool others_evaluate = !is_train && is_pipe && ty_served_is_job(s->job->served) && !ty_session_leads(s);
    if (is_pipe && (s->job->plan_only || s->compile_to || s->cache_note)) {
        ty_doc_error(
            d->at, err, TY_E_CONFIG, NULL,
            "channel \"%s\" is in Pipe mode: shapes and types of what it holds are known when it is read, which "
            "would take an epoch from the training",
            d->channel);
        return ty_error_help(err, "say --%s.path=FILE, with some of the same records", out->name);
    }
    out->is_idle = (few && place.local > 0) || others_evaluate;
    if (is_pipe)
        tell_spare_channels(s, d, source->n_alike, place.locals);
    if (out->is_idle)
        return take_types(s, out, err);
    if (open_stream(s, d, out, err) < 0)
        return -1;
    take_length(is_train ? &s->recipe.train : &s->recipe.validation, out);
    return 0;
}

/* ---- parts ---- */

/* Whether each rank's channel has data of its own: as they begin alike or not. */
static int find_own_data(ty_session *s, const ty_session_stream *st, const ty_place *p, bool *own, ty_error *err)
{
    uint64_t mine = st->stream ? st->stream->first_hash : 0, *all;
    int32_t locals = p->locals;
    bool alike = true, distinct = true;
    if (ty_served_is_job(s->job->served)) {
        ty_error_set(err, TY_E_CONFIG,
                     "%s: whether its channels have the same data cannot be asked among workers of "
                     "parameter servers",
                     st->name);
        return ty_error_help(err, "say shard: record if all of a host's channels have the same data, none if each has "
                                  "its own");
    }
    all = TY_NEW_ARRAY(&s->arena, uint64_t, p->ranks);
    if (ty_company_gather(s->job->company, "first records", &mine, sizeof mine, all, err) < 0)
        return -1;
    for (int i = 0; i < p->ranks; i++)
        for (int k = i - i % locals; k < i; k++)
            *(all[k] == all[i] ? &distinct : &alike) = false;
    if (!alike && !distinct) {
        ty_error_set(err, TY_E_CONFIG, "%s: some of a host's channels begin with the same record and some do not",
                     st->name);
        return ty_error_help(err, "say shard: record if all have the same data, none if each has its own");
    }
    *own = distinct;
    return 0;
}

static int agree_on_part(ty_session *s, const ty_recipe_data *d, ty_session_stream *st, ty_error *err)
{
    ty_place place = ty_session_place(s);
    bool is_train = d == &s->recipe.train, is_pipe = st->source.mode == TY_JOB_PIPE;
    if (!st->is_on)
        return 0;
    if (ty_served_is_job(s->job->served) && !is_train) /* worker 0 evaluates for all */
        place = (ty_place){0, 1, 0, 1, 0, 1};
    ty_stream_part_facts f = {.wanted = (ty_part_rule)d->shard,
                              .place = place,
                              .sharded = st->source.sharded,
                              .one_reader = is_pipe && st->source.n_alike < place.locals,
                              .n_files = st->stream ? st->stream->n_files : 0,
                              .even_files = st->stream && st->stream->even_files};
    if (is_pipe && place.locals > 1 && !f.one_reader && f.wanted == TY_PART_AUTO &&
        find_own_data(s, st, &place, &f.own_data, err) < 0)
        return -1;
    if (f.wanted == TY_PART_FILE && is_pipe) {
        ty_doc_error(d->at, err, TY_E_CONFIG, NULL, "shard: file, and a FIFO does not show where files end");
        return ty_error_help(err, "shard: record");
    }
    st->part = ty_stream_part_of(&f);
    if (place.ranks > 1)
        ty_log_info("data", "%s: part %lld of %lld: %s", st->name, (long long)st->part.index + 1, (long long)st->part.n,
                    st->part.why);
    return 0;
}

int ty_session_agree_on_parts(ty_session *s, ty_error *err)
{
    return agree_on_part(s, &s->recipe.train, &s->train_stream, err) < 0 ||
                   agree_on_part(s, &s->recipe.validation, &s->validation_stream, err) < 0
               ? -1
               : 0;
}

void ty_session_stream_hash(const ty_session *s, ty_buf *out)
{
    const ty_session_stream *st = &s->train_stream;
    const ty_recipe_data *d = &s->recipe.train;
    bool by_rank = st->part.by_file || st->part.is_uneven; /* else the order is the same on any number of ranks */
    ty_buf_addf(out, " stream %s%s buffer %lld", st->face.format, st->source.mode == TY_JOB_PIPE ? " pipe" : "",
                (long long)(d->shuffle ? d->shuffle_buffer : 0));
    if (d->shuffle && s->recipe.data_memory_bytes > 0)
        ty_buf_addf(out, " of %llu bytes", (unsigned long long)ty_input_shuffle_bytes(s->recipe.data_memory_bytes));
    if (by_rank)
        ty_buf_addf(out, " part of %lld%s, %d ranks", (long long)st->part.n, st->part.by_file ? " by file" : "",
                    ty_session_place(s).ranks);
}

/* ---- steps ---- */

static int refuse_length(const ty_session *s, const char *key, const ty_doc *at, ty_error *err)
{
    const char *text = "depends on how long an epoch is, and data.train is a stream, which does not say it";
    if (at)
        ty_doc_error(at, err, TY_E_CONFIG, NULL, "%s %s", key, text);
    else
        ty_error_set(err, TY_E_CONFIG, "%s %s", key, text);
    return ty_error_help(err,
                         "write data.train.samples: N, the samples of an epoch on all ranks; or max_steps: N with "
                         "steps in place of epochs in the schedule; or access: random%s",
                         s->train_stream.source.mode == TY_JOB_PIPE ? " with a channel in File mode" : "");
}

int ty_session_plan_stream(ty_session *s, ty_error *err)
{
    const ty_recipe *r = &s->recipe;
    const ty_doc *at;
    const char *key = ty_length_needed(r, &at);
    bool served = ty_served_is_job(s->job->served);
    int64_t rows = ty_session_rows(s) * (served ? s->job->served->workers : ty_company_size(s->job->company));
    if (key)
        return refuse_length(s, key, at, err);
    s->known_epoch = r->train.samples / rows;
    if (r->train.remainder != TY_REMAINDER_DROP)
        s->known_epoch = (r->train.samples + rows - 1) / rows;
    if (r->train.samples > 0 && s->known_epoch == 0)
        return ty_error_set(err, TY_E_CONFIG, "data.train.samples is %lld, fewer than one batch of %lld",
                            (long long)r->train.samples, (long long)rows);
    s->known_steps = s->known_epoch > INT64_MAX / r->epochs ? INT64_MAX : s->known_epoch * r->epochs;
    s->known_steps /= r->accumulate;
    if (r->max_steps > 0 && (s->known_steps == 0 || s->known_steps > r->max_steps))
        s->known_steps = r->max_steps;
    s->loop = (ty_loop_plan){.total_steps = r->max_steps, .epochs = r->epochs};
    ty_session_plan_cadences(s);
    return 0;
}

/* ---- batches ---- */

/* Values that the program cannot take are refused when they are decoded: nobody has looked at them before. */
static void set_ranges(ty_session *s, const ty_session_stream *st, const int *fields, ty_stream_order *order)
{
    ty_stream_range *ranges = TY_NEW_ARRAY(&s->arena, ty_stream_range, s->plan.n_feeds);
    order->range = ranges;
    for (int i = 0; i < s->plan.n_feeds; i++) {
        const ty_input_range *range = ty_program_input_range(s->program, i);
        if (range && st->face.field[fields[i]].is_integer)
            ranges[order->n_ranges++] = (ty_stream_range){.field = fields[i],
                                                          .min = range->lo,
                                                          .max = range->hi,
                                                          .has_also = range->has_also,
                                                          .also = range->also,
                                                          .what = range->what};
    }
}

static int make_feed(ty_session *s, ty_session_stream *st, bool is_train, ty_data_feed **out, ty_error *err)
{
    const ty_recipe_data *d = is_train ? &s->recipe.train : &s->recipe.validation;
    st->order = (ty_stream_order){.n_rows = ty_session_rows(s),
                                  .tail = is_train && d->remainder == TY_REMAINDER_DROP ? TY_TAIL_DROP : TY_TAIL_PAD,
                                  .fills = is_train && d->remainder == TY_REMAINDER_PAD,
                                  .shard_by = st->part.by_file ? TY_SHARD_FILES : TY_SHARD_ROWS,
                                  .shard = st->part.index,
                                  .n_shards = st->part.n,
                                  .shuffle_rows = is_train && d->shuffle ? d->shuffle_buffer : 0,
                                  .seed = (uint64_t)s->recipe.seed,
                                  .augment = is_train};
    set_ranges(s, st, is_train ? s->train_field : s->validation_field, &st->order);
    return ty_stream_feed(st->stream, &st->order, out, err);
}

int ty_session_start_stream(ty_session *s, ty_error *err)
{
    ty_session_stream *st = &s->train_stream;
    s->at = (ty_position){s->loop.first_epoch, s->loop.first_batch};
    if (s->at.epoch >= s->recipe.epochs || (s->loop.total_steps > 0 && s->loop.first_step >= s->loop.total_steps)) {
        st->ended = true; /* nothing is left to train */
        return 0;
    }
    if (s->at.batch > 0)
        ty_log_info("data", "data.train: passing over %lld batches of epoch %lld, which were trained before",
                    (long long)s->at.batch, (long long)s->at.epoch);
    if (s->resumed && s->at.epoch > 0 && st->source.mode == TY_JOB_PIPE && st->part.n >= 1)
        ty_log_info("data",
                    "data.train: the next FIFO is taken for epoch %lld: the order is that of a run that was not "
                    "interrupted if the platform sends each epoch in the same order",
                    (long long)s->at.epoch);
    if (make_feed(s, st, true, &st->feed, err) < 0)
        return -1;
    return ty_session_start_ring(
        s, (ty_prefetch_config){.feed = st->feed, .start = s->at, .until_epoch = s->recipe.epochs}, err);
}

/* Rows of a rank that has run out: zeros, of which none counts. */
static int make_idle(ty_session *s, ty_session_stream *st, ty_error *err)
{
    int64_t rows = ty_session_rows(s);
    if (st->idle.field)
        return 0;
    ty_tensor *field = TY_NEW_ARRAY(&s->arena, ty_tensor, st->face.n_fields);
    for (int i = 0; i < st->face.n_fields; i++) {
        const ty_type *one = &st->face.field[i].type;
        int64_t dim[TY_MAX_RANK] = {rows};
        memcpy(dim + 1, one->dim, sizeof *dim * (size_t)one->rank);
        field[i].type = ty_type_make((ty_dtype)one->dtype, one->rank + 1, dim);
        size_t bytes = (ty_type_bytes(&field[i].type) + TY_BATCH_ALIGN) / TY_BATCH_ALIGN * TY_BATCH_ALIGN;
        field[i].data = aligned_alloc(TY_BATCH_ALIGN, bytes);
        if (!field[i].data)
            return ty_error_set(err, TY_E_LIMIT, "no memory for a batch of %lld rows that do not count",
                                (long long)rows);
        memset(field[i].data, 0, bytes);
    }
    st->idle = (ty_batch){.n_rows = rows,
                          .n_fields = st->face.n_fields,
                          .field = field,
                          .samples = TY_NEW_ARRAY(&s->arena, int64_t, rows)};
    return 0;
}

static int refuse_empty(const ty_session *s, const ty_batch *batch, ty_error *err)
{
    const ty_session_stream *st = &s->train_stream;
    const char *whose = st->part.n > 1 ? "this rank's part of " : "";
    ty_error_set(err, TY_E_DATA, "%s%s has %lld samples in epoch %lld, fewer than one batch of %lld", whose, st->name,
                 (long long)batch->epoch_records, (long long)s->at.epoch, (long long)batch->n_rows);
    return ty_error_help(err, st->part.is_uneven
                                  ? "take a smaller batch_size, fewer ranks or more files; with remainder: "
                                    "join or pad a rank without samples takes part with rows that do not count"
                                  : "take a smaller batch_size");
}

/* A FIFO may give nothing for minutes, in which a run that is told to stop must be over. Ranks that compute together,
 * or with servers, leave together: they look at this before each step alone. */
static bool leaves(ty_session *s)
{
    if (s->job->company || s->served)
        return false;
    while (!ty_prefetch_wait(s->batches, LOOK_MS))
        if (ty_stop_count() > 0)
            return true;
    return false;
}

static bool asks(const ty_session *s)
{
    return s->train_stream.is_on && s->train_stream.part.is_uneven &&
           (s->job->company || ty_served_in_step(s->job->served));
}

/* What this rank says of its batch. */
static int has_what(const ty_session *s, const ty_batch *batch)
{
    bool has_none = batch == &s->train_stream.idle || batch->n_valid == 0;
    return has_none ? HAS_NONE : batch->ends_epoch ? HAS_LAST : HAS_MORE;
}

/* Workers of servers hear the answer before the step: what they push it for has to be known. */
static int ask_workers(ty_session *s, const ty_batch *batch, ty_error *err)
{
    if (!asks(s) || !s->served)
        return 0;
    s->word = has_what(s, batch);
    if (ty_served_agree(s->served, s->recipe.train.remainder != TY_REMAINDER_DROP, &s->word, err) == 0)
        return 0;
    return err->code == TY_E_STOPPED ? TY_LOOP_STOPPED : -1;
}

int ty_session_next_batch(ty_session *s, const ty_batch **out, ty_error *err)
{
    ty_session_stream *st = &s->train_stream;
    if (!st->next && !st->ended) {
        if (leaves(s))
            return TY_LOOP_STOPPED;
        if (ty_prefetch_next(s->batches, &st->next, err) < 0)
            return ty_error_wrap(err, "data.train");
        st->ended = st->next == NULL;
    }
    bool is_ours = st->next && st->next->at.epoch <= s->at.epoch;
    if (!is_ours && !st->part.is_uneven)
        return ty_error_set(err, TY_E_INTERNAL, "the training data ended early");
    if (!is_ours && make_idle(s, st, err) < 0)
        return -1;
    *out = is_ours ? st->next : &st->idle;
    /* A whole epoch without a row of this rank; of batches that ranks share the first rank's rows come first. */
    bool alone = !st->part.is_uneven && st->part.index == 0;
    if (is_ours && st->next->n_valid == 0 && (s->recipe.train.remainder == TY_REMAINDER_DROP || alone))
        return refuse_empty(s, st->next, err);
    return ask_workers(s, *out, err);
}

void ty_session_release(ty_session_stream *st, ty_prefetch *batches, const ty_batch *batch)
{
    if (st->is_on && batch == &st->idle)
        return;
    st->next = NULL;
    ty_prefetch_release(batches, batch);
}

int ty_session_ask_epoch(ty_session *s, const ty_batch *batch, ty_error *err)
{
    bool drop = s->recipe.train.remainder == TY_REMAINDER_DROP;
    return asks(s) ? ty_company_ask(s->job->company, "batches left", !drop, has_what(s, batch), err) : 0;
}

static void tell_epoch(ty_session *s, int64_t records)
{
    int64_t said = s->recipe.train.samples;
    bool is_whole = s->train_stream.part.n == 1 || !s->train_stream.part.by_file;
    if (s->at.epoch > s->loop.first_epoch || records == 0)
        return;
    if (said > 0 && is_whole && !s->train_stream.part.is_uneven && records != said)
        ty_log_warning("data",
                       "epoch %lld of data.train had %lld samples, and data.train.samples says %lld: schedules "
                       "follow what is said",
                       (long long)s->at.epoch, (long long)records, (long long)said);
    else
        ty_log_info("data", "epoch %lld of data.train had %lld samples", (long long)s->at.epoch, (long long)records);
}

int ty_session_pass_batch(ty_session *s, const ty_batch *batch, bool *ends, ty_error *err)
{
    ty_session_stream *st = &s->train_stream;
    int all = s->served ? (int)s->word : HAS_MORE;
    bool is_idle = batch == &st->idle, was_last = is_idle || batch->ends_epoch;
    int64_t records = was_last && !is_idle ? batch->epoch_records : 0;
    if (asks(s) && ty_company_answer(s->job->company, &all, err) < 0)
        return -1;
    if (asks(s) && all == HAS_NONE)
        return ty_error_set(err, TY_E_DATA, "no rank has a sample in epoch %lld of data.train", (long long)s->at.epoch);
    *ends = asks(s) ? all == HAS_LAST : was_last;
    ty_session_release(st, s->batches, batch);
    if (*ends && !was_last) {
        ty_log_info("data", "epoch %lld of data.train ends after %lld batches, with which another rank's part ends",
                    (long long)s->at.epoch, (long long)s->at.batch + 1);
        ty_prefetch_skip_epoch(s->batches);
    }
    if (records > 0)
        tell_epoch(s, records);
    s->at = *ends ? (ty_position){s->at.epoch + 1, 0} : (ty_position){s->at.epoch, s->at.batch + 1};
    return 0;
}

bool ty_session_has_idle_rows(const ty_session *s)
{
    const ty_recipe_data *d = &s->recipe.train;
    return s->train_stream.is_on && (d->skip_bad || (asks(s) && d->remainder != TY_REMAINDER_DROP));
}

/* ---- evaluation ---- */

int ty_session_start_evaluation(ty_session *s, ty_prefetch **batches, ty_data_feed **feed, ty_error *err)
{
    ty_session_stream *st = &s->validation_stream;
    st->next = NULL;
    st->ended = st->is_idle;
    *batches = NULL;
    *feed = NULL;
    if (st->is_idle)
        return 0;
    if (make_feed(s, st, false, feed, err) < 0)
        return -1;
    ty_prefetch_config config = {.feed = *feed, .until_epoch = 1};
    if (ty_session_set_ring(s, &st->face, ty_session_rows(s), &config, err) < 0)
        return -1;
    return ty_prefetch_start(&config, batches, err);
}

int ty_session_next_evaluated(ty_session *s, ty_prefetch *batches, const ty_batch **out, ty_error *err)
{
    ty_session_stream *st = &s->validation_stream;
    *out = NULL;
    if (!st->ended && ty_prefetch_next(batches, &st->next, err) < 0)
        return -1;
    st->ended |= st->next == NULL;
    int64_t has = !st->ended;
    if (st->part.is_uneven && ty_company_most(s->job->company, "batches of an evaluation", &has, err) < 0)
        return -1;
    if (!has || (st->ended && !st->part.is_uneven))
        return 0;
    if (st->ended && make_idle(s, st, err) < 0)
        return -1;
    *out = st->ended ? &st->idle : st->next;
    return 0;
}

/* ---- the rest ---- */

const ty_bad *ty_session_bad(const ty_session *s, bool validation)
{
    static const ty_bad none;
    const ty_session_stream *st = validation ? &s->validation_stream : &s->train_stream;
    const ty_dataset *ds = validation ? s->validation : s->train;
    if (st->is_on)
        return st->stream ? &st->stream->bad : &none;
    return ds ? &ds->bad : &none;
}

const char *ty_session_stream_text(const ty_session_stream *st, char *out, size_t n)
{
    char bytes[32];
    const char *format = st->face.format ? st->face.format : "";
    if (st->is_idle)
        snprintf(out, n, "read by other ranks of this host");
    else if (st->source.mode == TY_JOB_PIPE)
        snprintf(out, n, "a stream of %s, channel %s in Pipe mode", format, st->source.channel->name);
    else
        snprintf(out, n, "a stream of %s, %d file%s, %s", format, st->stream->n_files,
                 st->stream->n_files == 1 ? "" : "s",
                 ty_bytes_text((uint64_t)st->stream->file_bytes, bytes, sizeof bytes));
    return out;
}

static void close_stream(ty_session_stream *st)
{
    for (int i = 0; i < st->idle.n_fields; i++)
        free(st->idle.field[i].data);
    ty_data_feed_close(st->feed);
    ty_stream_close(st->stream);
}

void ty_session_close_streams(ty_session *s)
{
    close_stream(&s->train_stream);
    close_stream(&s->validation_stream);
}
