/* session_served.c - what is different in a session whose weights live in parameter servers. */
#include "entrypoint/length.h"
#include "entrypoint/served.h"
#include "entrypoint/session.h"
#include "entrypoint/stop.h"

static bool is_job(const ty_session *s)
{
    return ty_served_is_job(s->job->served);
}

bool ty_session_leads(const ty_session *s)
{
    return is_job(s) ? s->job->served->worker == 0 : ty_company_leads(s->job->company);
}

/* A step of the servers is one gradient of any worker, or in sync mode the mean of those of all workers. Either way it
 * is computed from batch_size rows. */
int ty_session_share_batch(ty_session *s, ty_error *err)
{
    int64_t batch = s->recipe.batch_size, workers = is_job(s) ? s->job->served->workers : 1;
    s->whole_batch = batch;
    if (!is_job(s) || s->job->served->mode != TY_SERVER_SYNC)
        return 0;
    if (batch % workers) {
        ty_error_set(err, TY_E_CONFIG, "batch_size is %lld, which %lld workers cannot share evenly", (long long)batch,
                     (long long)workers);
        return ty_error_help(err, "take a multiple of %lld; or server_mode: async, where each has whole batches",
                             (long long)workers);
    }
    s->recipe.batch_size = batch / workers;
    return 0;
}

int64_t ty_session_updates(const ty_session *s)
{
    return is_job(s) && s->job->served->mode != TY_SERVER_SYNC ? s->job->served->workers : 1;
}

int ty_session_list_served(ty_session *s, ty_error *err)
{
    const char *name;
    ty_tensor t;
    int n = 0;
    if (!s->job->served)
        return 0;
    if (ty_company_size(s->job->company) > 1)
        return ty_error_set(err, TY_E_CONFIG, "parameter servers: a worker is one rank, this is one of %d",
                            ty_company_size(s->job->company));
    if (s->on_gpu) {
        ty_error_set(err, TY_E_CONFIG, "parameter servers: workers train on CPUs");
        return ty_error_help(err, "device: cpu");
    }
    if (s->spec.schedule.kind == TY_SCHED_PLATEAU && is_job(s))
        return ty_error_set(err, TY_E_CONFIG,
                            "parameter servers: schedule plateau is not for them, since only one "
                            "worker evaluates");
    if (s->recipe.early.patience > 0 || s->recipe.export_best)
        return ty_error_set(err, TY_E_CONFIG, "parameter servers: %s is not for them, since the weights are theirs",
                            s->recipe.early.patience > 0 ? "early_stopping" : "export.weights: best");
    if (ty_served_new(s->job->served, &s->served_rule, s->program, &s->served, err) < 0)
        return -1;
    while (ty_served_state(s->served, n, &name, &t))
        n++;
    ty_named_tensor *state = TY_NEW_ARRAY(&s->arena, ty_named_tensor, s->n_state + (size_t)n);
    for (size_t i = 0; i < s->n_state; i++)
        state[i] = s->state[i];
    for (int i = 0; i < n; i++) {
        ty_served_state(s->served, i, &name, &t);
        state[s->n_state++] = (ty_named_tensor){.name = name, .type = t.type, .data = t.data};
    }
    s->state = state;
    return 0;
}

/* Workers that make each step together, of data of which each host has its own: as many batches for all. */
static int agree_on_epoch(ty_session *s, ty_error *err)
{
    const ty_doc *at;
    const char *key = ty_length_needed(&s->recipe, &at);
    bool most = s->recipe.train.remainder != TY_REMAINDER_DROP;
    int64_t mine = s->loop.batches_per_epoch, all = mine, other = mine;
    if (!s->train_sharded || !ty_served_in_step(s->job->served))
        return 0;
    if (ty_served_agree(s->served, most, &all, err) < 0 || ty_served_agree(s->served, !most, &other, err) < 0)
        return -1;
    if (key && all != other) {
        ty_error_set(err, TY_E_CONFIG,
                     "parameter servers: %s depends on how long an epoch is, which is %lld batches on one worker and "
                     "%lld on another",
                     key, (long long)(most ? other : all), (long long)(most ? all : other));
        return ty_error_help(err, "replicate the channel, give hosts equal parts, or say it in steps");
    }
    ty_session_set_epoch(s, all);
    return 0;
}

int ty_session_open_served(ty_session *s, ty_error *err)
{
    if (!s->served)
        return 0;
    if (is_job(s))
        ty_stop_ends_after(TY_STOP_NEVER); /* who has said hello says goodbye */
    ty_served_start start = {s->loop.first_step, s->loop.first_epoch, s->loop.first_batch};
    if (ty_served_open(s->served, s->resumed, &start, err) < 0)
        return -1;
    s->loop.first_step = start.step;
    s->loop.first_epoch = start.epoch;
    s->loop.first_batch = start.batch;
    s->steps_done = s->loop.first_step;
    return agree_on_epoch(s, err);
}

int ty_session_join(ty_session *s, int64_t step, ty_error *err)
{
    bool stopped = ty_stop_count() > 0;
    return s->served && (ty_session_is_last(s, step) || stopped) ? ty_served_join(s->served, stopped, err) : 0;
}
