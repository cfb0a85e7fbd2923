/* session_company.c - what a session settles with the ranks that it trains with. */
#include "base/log.h"
#include "entrypoint/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t ty_session_rows(const ty_session *s)
{
    return s->recipe.batch_size / ty_company_size(s->job->company);
}

/* Of samples that all ranks see, a rank takes its rows of each global batch; of those that only its host has, it and
 * the other ranks of the host share each batch of the host. */
ty_sampler_config ty_session_sampler(const ty_session *s, bool validation)
{
    const ty_company *c = s->job->company;
    const ty_served_options *served = s->job->served;
    bool of_host = validation ? s->validation_sharded : s->train_sharded;
    ty_sampler_config config = {.n_samples = (validation ? s->validation : s->train)->n_samples,
                                .batch_size = ty_session_rows(s),
                                .shard = of_host ? ty_company_local_rank(c) : ty_company_rank(c),
                                .n_shards = of_host ? ty_company_local_size(c) : ty_company_size(c),
                                .tail = TY_TAIL_PAD};
    if (ty_served_is_job(served) && !validation) {
        config.shard = of_host ? served->local : served->worker;
        config.n_shards = of_host ? served->locals : served->workers;
    }
    if (validation) {
        ty_session_order_lengths(s, true, &config);
        return config;
    }
    config.shuffle = s->recipe.train.shuffle;
    config.seed = (uint64_t)s->recipe.seed;
    config.stream = TY_STREAM_SHUFFLE;
    config.tail = s->recipe.train.remainder == TY_REMAINDER_DROP ? TY_TAIL_DROP : TY_TAIL_PAD;
    config.epoch_batches = s->epoch_batches;
    ty_session_order_lengths(s, false, &config);
    return config;
}

bool ty_session_sees_waits(const ty_session *s)
{
    return s->job->company && !s->on_gpu;
}

/* ---- recipe and data ---- */

/* What may differ from host to host without changing a number of the training. */
static bool is_of_the_host(const char *key)
{
    static const char *const keys[] = {"threads",
                                       "memory",
                                       "cache",
                                       "compiled",
                                       "tensorboard",
                                       "distributed.interface",
                                       "data_threads",
                                       "data_memory",
                                       "data.train.keep_index",
                                       "data.validation.keep_index"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static void add_data(const ty_dataset *d, const ty_session_stream *stream, bool sharded, const char *name, ty_buf *out)
{
    /* What the buffer holds decides the order. An evaluation has none, and may be read by some ranks alone. */
    if (stream->is_on && stream->stream && strcmp(name, "train") == 0)
        ty_buf_addf(out, "data.%s: a shuffle buffer of %zu bytes at most (data_memory)\n", name,
                    stream->stream->memory_bytes);
    if (!d)
        ty_buf_addf(out, "data.%s: none\n", name);
    else if (stream->is_on && (stream->source.sharded || stream->source.mode == TY_JOB_PIPE))
        ty_buf_addf(out, "data.%s: a stream of %s\n", name, d->format);
    else if (stream->is_on)
        ty_buf_addf(out, "data.%s: a stream of %s, files %016llx\n", name, d->format,
                    (unsigned long long)d->fingerprint);
    else if (sharded)
        ty_buf_addf(out, "data.%s: each host has its own files\n", name);
    else
        ty_buf_addf(out, "data.%s: %lld samples, %s, files %016llx\n", name, (long long)d->n_samples, d->format,
                    (unsigned long long)d->fingerprint);
}

/* What each host has found out by itself of the fields that declare it not. */
static void add_types(const ty_dataset *d, const char *name, ty_buf *out)
{
    char type[160];
    for (int i = 0; d && i < d->n_fields; i++)
        ty_buf_addf(out, "data.%s.%s: %s\n", name, d->field[i].name,
                    ty_type_text(&d->field[i].type, type, sizeof type));
}

static int agree_on_types(ty_session *s, ty_error *err)
{
    ty_buf text;
    ty_buf_init(&text, 1 << 20);
    add_types(s->train, "train", &text);
    add_types(s->validation, "validation", &text);
    int rc = text.failed ? ty_error_set(err, TY_E_LIMIT, "more fields than can be compared")
                         : ty_company_compare(s->job->company, "types of fields", text.data, err);
    ty_buf_fini(&text);
    if (rc < 0 && err->code == TY_E_GRAPH) {
        err->code = TY_E_CONFIG;
        err->help[0] = 0; /* which speaks of programs */
        ty_error_help(err,
                      "hosts have data of their own, which do not look alike: declare type and shape of the field");
    }
    return rc;
}

/* A value of several lines would be cut into lines that have no name. */
static void add_setting(const ty_setting *setting, ty_buf *out)
{
    ty_buf_addf(out, "%s: ", setting->key);
    for (const char *p = setting->value; *p; p++)
        ty_buf_addc(out, *p == '\n' ? ' ' : *p);
    ty_buf_addc(out, '\n');
}

static int agree_on_samples(ty_session *s, ty_error *err)
{
    ty_company *c = s->job->company;
    int64_t of_this_host = ty_company_local_rank(c) == 0 ? s->train->n_samples : 0;
    if (!s->train_sharded)
        return 0;
    if (ty_company_total(c, "samples", &of_this_host, err) < 0)
        return -1;
    s->n_samples = of_this_host;
    ty_log_info("data", "this host has %lld of %lld samples", (long long)s->train->n_samples, (long long)s->n_samples);
    return 0;
}

int ty_session_agree_on_data(ty_session *s, ty_error *err)
{
    ty_buf text;
    s->n_samples = s->train->n_samples;
    if (!s->job->company)
        return ty_session_agree_on_parts(s, err);
    ty_buf_init(&text, 1 << 20);
    for (int i = 0; i < s->recipe.n_settings; i++)
        if (!is_of_the_host(s->recipe.settings[i].key))
            add_setting(&s->recipe.settings[i], &text);
    add_data(s->train, &s->train_stream, s->train_sharded, "train", &text);
    add_data(s->validation, &s->validation_stream, s->validation_sharded, "validation", &text);
    int rc = text.failed ? ty_error_set(err, TY_E_LIMIT, "the recipe has more settings than can be compared")
                         : ty_company_compare(s->job->company, "recipe and data", text.data, err);
    if (rc < 0 && err->code == TY_E_GRAPH) /* what differs is a setting or a file */
        err->code = TY_E_CONFIG;
    ty_buf_fini(&text);
    return rc < 0 || agree_on_types(s, err) < 0 || agree_on_samples(s, err) < 0 ? -1
                                                                                : ty_session_agree_on_parts(s, err);
}

int ty_session_agree_on_epoch(ty_session *s, int64_t *batches, ty_error *err)
{
    bool drop = s->recipe.train.remainder == TY_REMAINDER_DROP;
    int rc = (drop ? ty_company_least : ty_company_most)(s->job->company, "batches of an epoch", batches, err);
    return rc < 0 ? -1 : 0;
}

int ty_session_agree_on_batch(ty_session *s, ty_error *err)
{
    return ty_company_least(s->job->company, "batch_size", &s->recipe.batch_size, err);
}

/* ---- the program ---- */

/* Of all programs, one behind the other, as they were numbered. */
static void expect_exchanges(ty_session *s)
{
    int n = 0, total = 0;
    for (int i = 0; ty_session_program(s, i); i++, total += n)
        ty_program_exchanges(ty_session_program(s, i), &n);
    ty_exchange_call *all = TY_NEW_ARRAY(&s->arena, ty_exchange_call, total + 1);
    for (int i = total = 0; ty_session_program(s, i); i++, total += n) {
        const ty_exchange_call *calls = ty_program_exchanges(ty_session_program(s, i), &n);
        memcpy(all + total, calls, sizeof *calls * (size_t)n);
    }
    ty_company_expect(s->job->company, all, total);
}

int ty_session_agree_on_schedule(ty_session *s, ty_error *err)
{
    ty_buf text;
    int rc = 0;
    if (!s->job->company || s->cache_note)
        return 0;
    expect_exchanges(s);
    ty_buf_init(&text, 64 << 20);
    for (int i = 0; ty_session_program(s, i) && rc == 0; i++)
        rc = ty_program_schedule(ty_session_program(s, i), &text, err);
    if (rc == 0)
        rc = ty_company_compare(s->job->company, "schedules", text.data, err);
    ty_buf_fini(&text);
    return rc;
}

/* ---- states in parts ---- */

int ty_session_gather_state(ty_session *s, ty_error *err)
{
    for (size_t i = 0; i < s->n_state; i++) {
        int64_t elems = ty_program_whole_elems(s->program, (int)i);
        if (elems == 0)
            continue;
        s->state[i].type = ty_type_make(TY_F32, 1, &elems);
        s->state[i].data = malloc((size_t)elems * sizeof(float));
        if (!s->state[i].data)
            return ty_error_set(err, TY_E_LIMIT, "no memory for the whole of state \"%s\", %lld numbers",
                                s->state[i].name, (long long)elems);
        if (ty_program_gather_state(s->program, (int)i, s->state[i].data, err) < 0)
            return -1;
    }
    return 0;
}

void ty_session_release_state(ty_session *s)
{
    for (size_t i = 0; i < s->n_state; i++)
        if (ty_program_whole_elems(s->program, (int)i) > 0) {
            free(s->state[i].data);
            s->state[i].data = NULL;
        }
}

/* ---- the beginning ---- */

/* Bytes of rank 0, as they are: the same program on the same kind of machine, which was compared. */
typedef struct start {
    int64_t step, epoch, batch, best_step, n_worse;
    double best;
    int32_t resumed, has_best;
} start;

static void take_parts(ty_session *s)
{
    for (size_t i = 0; i < s->n_state; i++)
        if (ty_program_whole_elems(s->program, (int)i) > 0)
            ty_program_take_part(s->program, (int)i, s->state[i].data);
}

int ty_session_share_state(ty_session *s, ty_error *err)
{
    ty_company *c = s->job->company;
    start from = {s->loop.first_step, s->loop.first_epoch, s->loop.first_batch, s->best_step, s->n_worse, s->best,
                  s->resumed,         s->has_best};
    if (!c) {
        take_parts(s);
        return 0;
    }
    if (ty_company_share(c, "position", &from, sizeof from, err) < 0)
        return -1;
    s->loop.first_step = from.step;
    s->loop.first_epoch = from.epoch;
    s->loop.first_batch = from.batch;
    s->best_step = from.best_step;
    s->n_worse = from.n_worse;
    s->best = from.best;
    s->resumed = from.resumed;
    s->has_best = from.has_best;
    for (size_t i = 0; i < s->n_state; i++)
        if (ty_company_share(c, s->state[i].name, s->state[i].data, ty_type_bytes(&s->state[i].type), err) < 0)
            return -1;
    take_parts(s);
    return 0;
}
