/* command_job_estimate.c - `trainyard job estimate FILE`: how long a job will take and what that costs, from some steps
 * of its recipe on this machine. What cannot be known here is said, not guessed. */
#define _GNU_SOURCE
#include "base/json.h"
#include "base/log.h"
#include "base/quantity.h"
#include "entrypoint/cache_folder.h"
#include "entrypoint/command_job.h"
#include "entrypoint/device.h"
#include "entrypoint/managed.h"
#include "entrypoint/managed_recipe.h"
#include "entrypoint/probe.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_STEPS = 20 };

#define BUSY 1.0 /* load average */

typedef struct estimate {
    const ty_jobspec *job;
    ty_arena *a;
    ty_session session;
    ty_probe probe;
    int steps;
    double price, speed, network; /* 0: not given */
    int64_t instances;
    double there_s;        /* a step on the job's machines, without exchanges */
    double exchange_bytes; /* that a machine sends, and gets, each step */
    double exchange_s;     /* 0: the network is not known, or there is one machine */
    int64_t n_evaluations, n_checkpoints, checkpoint_bytes;
    double evaluation_s; /* of all */
    double total_s, hours, most_hours;
} estimate;

/* ---- what is asked ---- */

static int take_positive(const ty_arguments_given *given, int option, const char *name, double *out, ty_error *err)
{
    const char *text = given->value[option];
    char *end;
    if (!text)
        return 0;
    *out = strtod(text, &end);
    if (end != text && *end == 0 && isfinite(*out) && *out > 0)
        return 0;
    return ty_error_set(err, TY_E_USAGE, "%s needs a number above 0, found \"%.60s\"", name, text);
}

static int take_steps(const ty_arguments_given *given, int *out, ty_error *err)
{
    const char *text = given->value[TY_JOB_STEPS];
    char *end;
    *out = DEFAULT_STEPS;
    if (!text)
        return 0;
    errno = 0;
    long n = strtol(text, &end, 10);
    *out = (int)n;
    if (errno == 0 && end != text && *end == 0 && n >= 1 && n <= TY_PROBE_MAX_STEPS)
        return 0;
    return ty_error_set(err, TY_E_USAGE, "--steps needs a number from 1 to %d, found \"%.60s\"", TY_PROBE_MAX_STEPS,
                        text);
}

static int take_options(estimate *e, const ty_arguments_given *given, ty_error *err)
{
    e->speed = 1;
    if (take_steps(given, &e->steps, err) < 0 || take_positive(given, TY_JOB_PRICE, "--price", &e->price, err) < 0 ||
        take_positive(given, TY_JOB_SPEED, "--speed", &e->speed, err) < 0)
        return -1;
    return take_positive(given, TY_JOB_NETWORK, "--network", &e->network, err);
}

/* ---- arithmetic ---- */

static int64_t count_instances(const ty_jobspec *job)
{
    int64_t n = 0;
    for (int i = 0; i < job->n_groups; i++)
        n += job->groups[i].value[TY_FIELD_GROUP_COUNT].integer;
    return job->n_groups ? n : job->value[TY_FIELD_INSTANCE_COUNT].integer;
}

/* How often something is due in a whole training, and once more at its end if it is not due there. */
static int64_t count_due(const ty_session *s, const ty_cadence *c, bool at_end)
{
    int64_t n = 0;
    ty_loop_plan whole = s->loop, *plan = &whole;
    whole.total_steps = s->known_steps;
    whole.batches_per_epoch = s->known_epoch > 0 ? s->known_epoch : INT64_MAX;
    ty_loop_position before = ty_loop_position_at(plan, plan->total_steps - 1);
    ty_loop_position after = ty_loop_position_at(plan, plan->total_steps);
    if (c->n > 0)
        n = c->epochs ? after.epoch / c->n : plan->total_steps / c->n;
    return n + (at_end && !ty_cadence_due(c, &before, &after));
}

/* A ring sends 2 (n - 1) / n of the gradients of each machine (Patarasuk, Yuan: Bandwidth optimal all-reduce, 2009). */
static void find_exchange(estimate *e)
{
    double n = (double)e->instances;
    if (e->instances < 2)
        return;
    e->exchange_bytes = 2 * (n - 1) / n * 4 * (double)ty_program_report(e->session.program)->n_trained;
    if (e->network > 0)
        e->exchange_s = e->exchange_bytes * 8 / (e->network * 1e9);
}

static void find_checkpoints(estimate *e)
{
    ty_session *s = &e->session;
    e->n_checkpoints = count_due(s, &s->loop.checkpoint, true);
    for (int i = 0; i < ty_program_n_states(s->program); i++) {
        const char *name;
        ty_tensor t = ty_program_state(s->program, i, &name);
        e->checkpoint_bytes += (int64_t)ty_type_bytes(&t.type);
    }
}

/* Of the validation data; a stream has as many as the recipe says. */
static int64_t count_samples(const ty_session *s)
{
    if (s->validation_stream.is_on && s->recipe.validation.samples == 0)
        ty_log_warning("data",
                       "data.validation is a stream, whose length nobody has said (samples: N): evaluations are "
                       "not counted");
    return s->validation_stream.is_on ? s->recipe.validation.samples : s->validation->n_samples;
}

static void find_all(estimate *e)
{
    const ty_session *s = &e->session;
    const ty_probe *p = &e->probe;
    double share = (double)e->instances * e->speed;
    e->there_s = p->step_s / share;
    find_exchange(e);
    find_checkpoints(e);
    if (s->validation) {
        int64_t rows = s->recipe.batch_size, batches = (count_samples(s) + rows - 1) / rows;
        e->n_evaluations = count_due(s, &s->loop.evaluate, true);
        e->evaluation_s = (double)e->n_evaluations * (double)batches * p->batch_s / share;
    }
    double opening_s = p->opening_s / e->speed;
    e->total_s = opening_s + (double)s->known_steps * (e->there_s + e->exchange_s) + e->evaluation_s;
    e->hours = (double)e->instances * e->total_s / 3600;
    e->most_hours = (double)e->instances * (double)e->job->value[TY_FIELD_MAX_RUN].integer / 3600;
}

static bool fits_max_run(const estimate *e)
{
    return e->total_s <= (double)e->job->value[TY_FIELD_MAX_RUN].integer;
}

/* ---- text ---- */

static const char *duration(double s, char *out, size_t n)
{
    return ty_duration_text(s < 9e12 ? (int64_t)(s * 1e6) : INT64_MAX, out, n);
}

static const char *machine_of(const estimate *e)
{
    const char *type = e->job->value[TY_FIELD_INSTANCE_TYPE].text;
    return type ? type : "machines of several kinds";
}

static void print_steps(estimate *e)
{
    char a[32], b[32], c[32];
    const ty_session *s = &e->session;
    const ty_probe *p = &e->probe;
    printf("  here        %s\n", ty_device_text(&e->session));
    printf("  opening     %s, of which compiling %s; the first step %s\n", duration(p->opening_s, a, sizeof a),
           duration(p->compile_s, b, sizeof b), duration(p->first_s, c, sizeof c));
    printf("  step        %s, the median of %d", duration(p->step_s, a, sizeof a), p->n_steps);
    printf(" (%s to %s), batch %lld\n", duration(p->step_min_s, a, sizeof a), duration(p->step_max_s, b, sizeof b),
           (long long)s->recipe.batch_size);
    printf("  there       %s, on %lld x %s", duration(e->there_s, a, sizeof a), (long long)e->instances, machine_of(e));
    printf(e->speed == 1 ? ", taken to be as fast as this one\n" : ", %g times as fast as this one\n", e->speed);
    if (e->instances > 1 && e->exchange_s > 0)
        printf("  exchange    %s a step: each machine sends %s, at %g Gbit/s, with nothing computed meanwhile\n",
               duration(e->exchange_s, a, sizeof a), ty_bytes_text((uint64_t)e->exchange_bytes, b, sizeof b),
               e->network);
    else if (e->instances > 1)
        printf("  exchange    not counted: each machine sends %s a step (--network says how fast)\n",
               ty_bytes_text((uint64_t)e->exchange_bytes, b, sizeof b));
}

static void print_total(const estimate *e)
{
    char a[32], b[32];
    const ty_session *s = &e->session;
    const ty_field_value *v = e->job->value;
    printf("  training    %s steps", ty_count_text(s->known_steps, a, sizeof a));
    if (e->n_evaluations > 0)
        printf(", %s evaluations (%s)", ty_count_text(e->n_evaluations, a, sizeof a),
               duration(e->evaluation_s, b, sizeof b));
    printf(", %s checkpoints", ty_count_text(e->n_checkpoints, a, sizeof a));
    printf(" of %s\n", ty_bytes_text((uint64_t)e->checkpoint_bytes, a, sizeof a));
    printf("  time        %s\n", duration(e->total_s, a, sizeof a));
    if (e->price > 0)
        printf("  cost        %.2f USD: %.3f machine hours at %g USD; until max_run_seconds it can become %.2f USD\n",
               e->hours * e->price, e->hours, e->price, e->most_hours * e->price);
    else
        printf("  cost        %.3f machine hours (--price says what one costs)\n", e->hours);
    if (v[TY_FIELD_SPOT].boolean)
        printf("  spot        the job waits for machines and goes on after interruptions until max_wait_seconds: %s "
               "in all;\n              the price is the one you gave\n",
               duration((double)v[TY_FIELD_MAX_WAIT].integer, a, sizeof a));
}

static void print_notes(const estimate *e)
{
    char a[32];
    puts("  not in it   getting machines, image and data, writing checkpoints, uploading the model");
    if (!fits_max_run(e))
        printf("  warning     the job is stopped after max_run_seconds: %s\n",
               duration((double)e->job->value[TY_FIELD_MAX_RUN].integer, a, sizeof a));
    if (e->probe.load >= BUSY)
        printf("  note        the load average was %.1f before the first step: others may have slowed it down\n",
               e->probe.load);
}

/* ---- JSON ---- */

static void put_optional(ty_json_writer *w, const char *key, bool known, double value)
{
    if (known)
        ty_json_put_float(w, key, value);
    else
        ty_json_put_null(w, key);
}

static void put_probe(ty_json_writer *w, const estimate *e)
{
    const ty_probe *p = &e->probe;
    ty_json_put_int(w, "timed_steps", p->n_steps);
    ty_json_put_float(w, "opening_s", p->opening_s);
    ty_json_put_float(w, "compile_s", p->compile_s);
    ty_json_put_float(w, "first_step_s", p->first_s);
    ty_json_put_float(w, "step_s", p->step_s);
    ty_json_put_float(w, "step_min_s", p->step_min_s);
    ty_json_put_float(w, "step_max_s", p->step_max_s);
    ty_json_put_float(w, "load_average", p->load);
}

static void put_total(ty_json_writer *w, const estimate *e)
{
    const ty_field_value *v = e->job->value;
    bool spot = v[TY_FIELD_SPOT].boolean, priced = e->price > 0;
    ty_json_put_float(w, "step_there_s", e->there_s);
    ty_json_put_float(w, "exchange_bytes", e->exchange_bytes);
    put_optional(w, "exchange_s", e->instances < 2 || e->network > 0, e->exchange_s);
    ty_json_put_int(w, "evaluations", e->n_evaluations);
    ty_json_put_float(w, "evaluation_s", e->evaluation_s);
    ty_json_put_int(w, "checkpoints", e->n_checkpoints);
    ty_json_put_int(w, "checkpoint_bytes", e->checkpoint_bytes);
    ty_json_put_float(w, "total_s", e->total_s);
    ty_json_put_float(w, "machine_hours", e->hours);
    put_optional(w, "price", priced, e->price);
    put_optional(w, "cost", priced, e->hours * e->price);
    ty_json_put_int(w, "max_run_s", v[TY_FIELD_MAX_RUN].integer);
    ty_json_put_bool(w, "fits_max_run", fits_max_run(e));
    put_optional(w, "most_cost", priced, e->most_hours * e->price);
    ty_json_put_bool(w, "spot", spot);
    put_optional(w, "max_wait_s", spot, (double)v[TY_FIELD_MAX_WAIT].integer);
}

static int print_json(estimate *e, ty_error *err)
{
    ty_buf out;
    ty_json_writer w;
    ty_buf_init(&out, 1 << 20);
    ty_json_writer_init(&w, &out, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    ty_json_put_int(&w, "schema", 1);
    ty_json_put_string(&w, "job", e->job->file);
    ty_json_put_string(&w, "recipe", e->session.recipe.path);
    ty_json_put_string(&w, "device", ty_device_text(&e->session));
    ty_json_put_string(&w, "instance_type", e->job->value[TY_FIELD_INSTANCE_TYPE].text);
    ty_json_put_int(&w, "instances", e->instances);
    ty_json_put_float(&w, "speed", e->speed);
    ty_json_put_int(&w, "batch_size", e->session.recipe.batch_size);
    ty_json_put_int(&w, "steps", e->session.loop.total_steps);
    put_probe(&w, e);
    put_total(&w, e);
    ty_json_close(&w);
    int rc = out.failed ? ty_error_set(err, TY_E_LIMIT, "the estimate is too large") : 0;
    if (rc == 0)
        puts(out.data);
    ty_buf_fini(&out);
    return rc;
}

/* ---- the verb ---- */

static int find_recipe(const estimate *e, ty_managed_recipe *out, ty_error *err)
{
    if (ty_managed_recipe_find(e->job, e->a, out, err) < 0)
        return -1;
    if (out->path)
        return 0;
    ty_error_set(err, TY_E_CONFIG, "no recipe of this machine goes along: nothing can be tried here");
    ty_error_at(err, "%s", e->job->file);
    return ty_error_help(err,
                         "an estimate needs source.recipe, in a folder here; what a program does is its own affair");
}

/* Servers' workers do not wait for each other, so that steps of one machine say nothing about all. */
static int refuse_servers(const estimate *e, ty_error *err)
{
    bool by_job = ty_jobspec_has(e->job, TY_FIELD_PS) && e->job->value[TY_FIELD_PS_ENABLED].boolean;
    if (!by_job && e->session.recipe.strategy != TY_STRATEGY_PARAMETER_SERVER)
        return 0;
    return ty_error_set(err, TY_E_UNSUPPORTED, "with parameter servers the time is not foretold");
}

static int probe(estimate *e, const ty_arguments_given *given, ty_error *err)
{
    ty_managed_recipe along;
    if (find_recipe(e, &along, err) < 0)
        return -1;
    ty_job job = {.recipe_path = along.path,
                  .overrides = along.overrides,
                  .n_overrides = along.n_overrides,
                  .data_folder = given->value[TY_JOB_DATA_DIR],
                  .cache_folder = ty_cache_folder(e->a)};
    double start_s = ty_session_now_s();
    e->session = (ty_session){.job = &job, .evaluated_step = -1};
    ty_arena_init(&e->session.arena);
    int rc = ty_session_open_for_steps(&e->session, err);
    if (rc == 0)
        rc = refuse_servers(e, err);
    if (rc == 0 && e->session.known_steps == 0) {
        rc = ty_error_set(err, TY_E_CONFIG, "data.train is a stream, which does not say how long it is");
        ty_error_help(err, "write data.train.samples: N, of an epoch, or max_steps: N");
    }
    if (rc == 0)
        rc = ty_probe_run(&e->session, e->steps, start_s, &e->probe, err);
    if (rc == 0)
        find_all(e);
    if (rc == 0 && given->value[TY_JOB_JSON]) {
        rc = print_json(e, err);
    } else if (rc == 0) {
        printf("%s: %s (%s)\n", e->job->file, e->session.recipe.path, ty_model_format(e->session.model));
        print_steps(e);
        print_total(e);
        print_notes(e);
    }
    ty_session_close(&e->session);
    return rc;
}

int ty_job_estimate(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    ty_jobspec *job = TY_NEW(a, ty_jobspec);
    estimate *e = TY_NEW(a, estimate);
    *e = (estimate){.job = job, .a = a};
    if (take_options(e, given, err) < 0 || ty_managed_load(given->words[1], a, job, err) < 0)
        return -1;
    e->instances = count_instances(job);
    if (!given->value[TY_JOB_JSON])
        ty_managed_warn(job);
    return probe(e, given, err);
}
