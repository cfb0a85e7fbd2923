/* command_profile.c - `trainyard profile RECIPE`: where the time of a training step goes, by layer and kind of work. */
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/quantity.h"
#include "entrypoint/cache_folder.h"
#include "entrypoint/command.h"
#include "entrypoint/device.h"
#include "entrypoint/overrides.h"
#include "entrypoint/profile.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DATA_DIR, STEPS, TRACE, HTML, COMPILED, DUMP, JSON, N_OPTIONS };

static const ty_option options[N_OPTIONS] = {
    [DATA_DIR] = {"--data-dir", "DIR", "folder that has the channels as folders or files", false},
    [STEPS] = {"--steps", "N", "steps that are timed, after 3 that are not (default 10)", false},
    [TRACE] = {"--trace", "FILE", "write every timed call as a time line for Perfetto or chrome://tracing", false},
    [HTML] = {"--html", "FILE", "write the report as a page: roofline, tape, layers down to fused operations", false},
    [COMPILED] = {"--compiled", "DIR", "use kernels that `trainyard compile` left there, and no C compiler", false},
    [DUMP] = {"--dump-dir", "DIR", "write graphs, kernels and memory plan of the compiler there", false},
    [JSON] = {"--json", NULL, "one JSON object on stdout", false},
};

enum { DEFAULT_STEPS = 10, SHOWN_LAYERS = 30, MAX_TEXT_MB = 1024 };

#define BUSY 1.0 /* load average */

typedef struct profiled {
    ty_arena *arena;
    ty_session session;
    ty_profile profile;
    int steps;
} profiled;

static double share(const ty_profile *p, double ms)
{
    return p->calls_ms > 0 ? 100 * ms / p->calls_ms : 0;
}

static double reached(const ty_profile_row *r)
{
    return r->ms > 0 ? 100 * r->floor_ms / r->ms : 0;
}

/* ---- text ---- */

static void print_totals(const ty_profile *p)
{
    ty_profile_row row[TY_N_WORKS];
    bool first = true;
    printf("  step        %.3f ms, the median of %d (%.3f to %.3f); waiting for a batch %.3f ms\n", p->step_ms,
           p->n_steps, p->step_min_ms, p->step_max_ms, p->wait_ms);
    memcpy(row, p->work, sizeof row);
    printf("  of which    ");
    for (int i = 0; i < TY_N_WORKS; i++)
        if (row[i].calls > 0) {
            printf("%s%s %.1f %%", first ? "" : ", ", row[i].name, share(p, row[i].ms));
            first = false;
        }
    puts("");
}

static void print_head(const char *name)
{
    printf("\n  %9s %7s %6s %9s %9s %12s %9s %8s  %s\n", "ms", "share", "calls", "FLOP", "bytes", "FLOP/s", "B/s",
           "reached", name);
}

static void print_row(const ty_profile *p, const ty_profile_row *r)
{
    char flop[32], bytes[32], flop_rate[32], byte_rate[32];
    double seconds = r->ms > 0 ? 1e-3 * r->ms : 1e-9;
    printf("  %9.3f %5.1f %% %6d %9s %9s %12s %9s %6.0f %%  %s\n", r->ms, share(p, r->ms), r->calls,
           ty_si_text(r->flop, "", flop, sizeof flop), ty_si_text(r->bytes, "", bytes, sizeof bytes),
           ty_si_text(r->flop / seconds, "", flop_rate, sizeof flop_rate),
           ty_si_text(r->bytes / seconds, "", byte_rate, sizeof byte_rate), reached(r), r->name);
}

static void print_layers(const ty_profile *p)
{
    ty_profile_row others = {0};
    int shown = p->n_layers > SHOWN_LAYERS + 1 ? SHOWN_LAYERS : p->n_layers;
    print_head("layer: forward, gradient, update");
    for (int i = 0; i < shown; i++)
        print_row(p, &p->layer[i]);
    for (int i = shown; i < p->n_layers; i++) {
        others.calls += p->layer[i].calls;
        others.ms += p->layer[i].ms;
        others.floor_ms += p->layer[i].floor_ms;
        others.flop += p->layer[i].flop;
        others.bytes += p->layer[i].bytes;
    }
    char name[64];
    snprintf(name, sizeof name, "%d others (--json has all)", p->n_layers - shown);
    others.name = name;
    if (shown < p->n_layers)
        print_row(p, &others);
}

static void print_text(profiled *d)
{
    const ty_session *s = &d->session;
    const ty_profile *p = &d->profile;
    char a[32], b[32];
    printf("%s: %s (%s), batch %s", s->recipe.path, s->recipe.model, ty_model_format(s->model),
           ty_count_text(s->recipe.batch_size, a, sizeof a));
    printf(s->recipe.accumulate > 1 ? ", %lld micro-batches a step\n" : "\n", (long long)s->recipe.accumulate);
    printf("  device      %s\n", ty_device_text(&d->session));
    if (ty_session_lengths_text(&d->session))
        printf("  lengths     %s\n", ty_session_lengths_text(&d->session));
    print_totals(p);
    print_layers(p);
    print_head("kind of work");
    for (int i = 0; i < TY_N_WORKS; i++)
        if (p->work[i].calls > 0)
            print_row(p, &p->work[i]);
    if (p->n_choices > 0)
        print_head("library call: what was chosen for its shape");
    for (int i = 0; i < p->n_choices; i++)
        print_row(p, &p->choice[i]);
    if (s->on_gpu && s->n_gpus > 1)
        printf("\n  note        a call's time is that on the GPU, of %d, where it took longest; a sum that they share "
               "lasts "
               "until\n              the last of them has come\n",
               s->n_gpus);
    if (s->on_gpu)
        puts("\n  note        on a GPU calls are timed one by one, in steps of their own: a short one lasts as long as "
             "the\n              host takes to ask for the next; the step above is one graph. Ceilings are not "
             "measured");
    else
        printf("\n  ceilings    %s of a large product, %s of a copy, measured before and after with %d threads\n",
               ty_si_text(p->machine.flop_per_s, "FLOP/s", a, sizeof a),
               ty_si_text(p->machine.bytes_per_s, "B/s", b, sizeof b), p->machine.threads);
    if (p->load >= BUSY)
        printf("  note        the load average was %.1f before the first step: others may have slowed it down\n",
               p->load);
}

/* ---- JSON ---- */

static void put_row(ty_json_writer *w, const ty_profile *p, const ty_profile_row *r)
{
    ty_json_put_int(w, "calls", r->calls);
    ty_json_put_float(w, "ms", r->ms);
    ty_json_put_float(w, "share", share(p, r->ms));
    for (int i = 0; i < TY_N_PHASES; i++) {
        char key[32];
        snprintf(key, sizeof key, "%s_ms", ty_profile_phase_text((ty_phase)i));
        ty_json_put_float(w, key, r->phase_ms[i]);
    }
    ty_json_put_float(w, "flop", r->flop);
    ty_json_put_float(w, "bytes", r->bytes);
    ty_json_put_float(w, "at_least_ms", r->floor_ms);
    ty_json_put_float(w, "reached", reached(r));
}

static void put_list(ty_json_writer *w, const ty_profile *p, const char *key, const char *of,
                     const ty_profile_row *rows, int n)
{
    ty_json_open_list(w, key);
    for (int i = 0; i < n; i++) {
        ty_json_open_map(w, NULL);
        ty_json_put_string(w, of, rows[i].name);
        put_row(w, p, &rows[i]);
        ty_json_close(w);
    }
    ty_json_close(w);
}

static void put_rows(ty_json_writer *w, const ty_profile *p)
{
    ty_json_open_map(w, "work");
    for (int i = 0; i < TY_N_WORKS; i++)
        if (p->work[i].calls > 0) {
            ty_json_open_map(w, p->work[i].name);
            put_row(w, p, &p->work[i]);
            ty_json_close(w);
        }
    ty_json_close(w);
    put_list(w, p, "layers", "layer", p->layer, p->n_layers);
    put_list(w, p, "choices", "choice", p->choice, p->n_choices);
}

static void put_calls(ty_json_writer *w, const ty_profile *p)
{
    ty_json_open_list(w, "tape_calls");
    for (int i = 0; i < p->n_calls; i++) {
        const ty_profile_call *c = &p->call[i];
        ty_json_open_map(w, NULL);
        ty_json_put_string(w, "tape", ty_profile_tape_text(c->tape));
        ty_json_put_int(w, "runs", c->times);
        ty_json_put_string(w, "name", c->info.name);
        ty_json_put_string(w, "how", c->info.how);
        ty_json_put_string(w, "what", c->facts.text);
        ty_json_put_string(w, "work", ty_work_text(c->facts.work));
        ty_json_put_string(w, "phase", ty_profile_phase_text(c->facts.phase));
        ty_json_put_string(w, "layer", c->layer);
        ty_json_put_string(w, "origin", c->facts.origin);
        ty_json_put_int(w, "threads", c->info.threads);
        ty_json_put_float(w, "call_ms", c->ms);
        ty_json_put_float(w, "call_flop", c->facts.flop);
        ty_json_put_float(w, "call_bytes", c->bytes);
        ty_json_put_float(w, "call_at_least_ms", c->floor_ms);
        ty_json_close(w);
    }
    ty_json_close(w);
}

static void put_all(ty_json_writer *w, const profiled *d)
{
    const ty_profile *p = &d->profile;
    ty_json_open_map(w, NULL);
    ty_json_put_int(w, "schema", 1);
    ty_json_put_string(w, "recipe", d->session.recipe.path);
    ty_json_put_string(w, "model", d->session.recipe.model);
    ty_json_put_int(w, "batch_size", d->session.recipe.batch_size);
    ty_json_put_int(w, "accumulate", d->session.recipe.accumulate);
    ty_json_put_int(w, "steps", p->n_steps);
    ty_json_put_int(w, "warm_up_steps", TY_PROFILE_WARM_UP);
    ty_json_put_float(w, "step_ms", p->step_ms);
    ty_json_put_float(w, "step_min_ms", p->step_min_ms);
    ty_json_put_float(w, "step_max_ms", p->step_max_ms);
    ty_json_put_float(w, "wait_ms", p->wait_ms);
    ty_json_put_float(w, "calls_ms", p->calls_ms);
    ty_json_put_float(w, "loss", p->loss);
    ty_json_put_float(w, "load_average", p->load);
    ty_json_open_map(w, "machine");
    ty_json_put_int(w, "threads", p->machine.threads);
    ty_json_put_float(w, "flop_per_s", p->machine.flop_per_s);
    ty_json_put_float(w, "bytes_per_s", p->machine.bytes_per_s);
    ty_json_close(w);
    put_rows(w, p);
    put_calls(w, p);
    ty_json_close(w);
}

static int print_json(const profiled *d, ty_error *err)
{
    ty_buf out;
    ty_json_writer w;
    ty_buf_init(&out, (size_t)MAX_TEXT_MB << 20);
    ty_json_writer_init(&w, &out, TY_JSON_SPACED);
    put_all(&w, d);
    int rc = out.failed ? ty_error_set(err, TY_E_LIMIT, "the report is too large") : 0;
    if (rc == 0)
        puts(out.data);
    ty_buf_fini(&out);
    return rc;
}

static int write_page(profiled *d, const char *path, ty_error *err)
{
    ty_buf out;
    ty_buf_init(&out, (size_t)MAX_TEXT_MB << 20);
    int rc = ty_profile_html(&d->session, &d->profile, &out, err);
    if (rc == 0)
        rc = out.failed ? ty_error_set(err, TY_E_LIMIT, "the page is too large")
                        : ty_file_write(path, out.data, out.len, 0644, err);
    ty_buf_fini(&out);
    return rc;
}

static int write_trace(const profiled *d, const char *path, ty_error *err)
{
    ty_buf out;
    ty_buf_init(&out, (size_t)MAX_TEXT_MB << 20);
    ty_profile_trace(&d->profile, &out);
    int rc = out.failed ? ty_error_help(err, "time fewer steps (--steps)")
                        : ty_file_write(path, out.data, out.len, 0644, err);
    ty_buf_fini(&out);
    return rc;
}

/* ---- the command ---- */

static int parse_steps(const char *text, int *out, ty_error *err)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    *out = (int)n;
    if (errno == 0 && *end == 0 && end != text && n >= 1 && n <= TY_PROFILE_MAX_STEPS)
        return 0;
    return ty_error_set(err, TY_E_USAGE, "--steps needs a number from 1 to %d, found \"%s\"", TY_PROFILE_MAX_STEPS,
                        text);
}

static int profile(const ty_arguments_given *given, profiled *d, ty_error *err)
{
    ty_job job = {.recipe_path = given->words[0],
                  .data_folder = given->value[DATA_DIR],
                  .dump_folder = given->value[DUMP],
                  .compiled_folder = given->value[COMPILED],
                  .cache_folder = ty_cache_folder(d->arena)};
    d->steps = DEFAULT_STEPS;
    if ((given->value[STEPS] && parse_steps(given->value[STEPS], &d->steps, err) < 0) ||
        ty_overrides_take(given, d->arena, &job, err) < 0 ||
        (given->value[TRACE] && ty_file_try(given->value[TRACE], err) < 0) ||
        (given->value[HTML] && ty_file_try(given->value[HTML], err) < 0))
        return -1;
    d->session = (ty_session){.job = &job, .evaluated_step = -1};
    ty_arena_init(&d->session.arena);
    int rc = ty_session_open_for_steps(&d->session, err);
    if (rc == 0)
        rc = ty_profile_measure(&d->session, d->steps, &d->profile, err);
    if (rc == 0 && !isfinite(d->profile.loss))
        ty_log_warning("profile", "the loss is not finite: times may differ from those of a training that works");
    if (rc == 0 && given->value[TRACE])
        rc = write_trace(d, given->value[TRACE], err);
    if (rc == 0 && given->value[HTML])
        rc = write_page(d, given->value[HTML], err);
    if (rc == 0 && given->value[JSON])
        rc = print_json(d, err);
    else if (rc == 0)
        print_text(d);
    ty_session_close(&d->session);
    return rc;
}

static int run(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    profiled d = {.arena = a};
    return profile(given, &d, err);
}

static const char page[] =
    "Compiles the recipe as training would, trains some steps on its data in memory, and times every call. Nothing\n"
    "of a training is written, and checkpoints are not read.\n"
    "\n"
    "A row adds up its calls, each with its median. FLOP and bytes are of a step. Bytes are what must move at least:\n"
    "what comes from a cache can be faster than memory. Reached: the least time of the calls at this machine's\n"
    "ceilings (arithmetic of a large float32 product, for products, convolutions and recurrent layers; memory\n"
    "traffic of a copy, for all), in percent of the time they took. A kernel that computes something for two layers\n"
    "counts for one of them. What stands last are calls of libraries, by what was chosen for their shapes.\n"
    "\n"
    "--json has these keys, and may get more: schema 1, recipe, model, batch_size, accumulate, steps, warm_up_steps,\n"
    "step_ms (median), step_min_ms, step_max_ms, wait_ms (for batches), calls_ms (sum of all calls), loss,\n"
    "load_average (of the minute before), machine {threads, flop_per_s, bytes_per_s},\n"
    "work {KIND: calls, ms, share (percent of calls_ms), forward_ms, gradient_ms, update_ms, flop, bytes,\n"
    "at_least_ms, reached (percent)}, layers [layer, and as work; the largest first],\n"
    "choices [choice, and as work],\n"
    "tape_calls [tape, runs (a step), name, how, what, work, phase, layer, origin, threads, call_ms, call_flop,\n"
    "call_bytes, call_at_least_ms]. A kernel is called as in the files of --dump-dir.\n"
    "\n"
    "--trace writes Chrome's Trace Event Format (ui.perfetto.dev, chrome://tracing): an event a call with name, kind\n"
    "of work, layer, FLOP and bytes; a lane for each tape, and one for waiting for data.\n"
    "\n"
    "--html writes one page without network or script: kinds of work, every call against the machine's ceilings\n"
    "(roofline), the tape of a step with its memory, and layers that unfold into calls and fused operations.\n"
    "\n"
    "    trainyard profile train.yaml --data-dir=data\n"
    "    trainyard profile train.yaml --data-dir=data --html profile.html\n"
    "    trainyard profile train.yaml --data-dir=data --steps=50 --trace trace.json\n";

const ty_command_row ty_command_profile = {"profile",
                                           "RECIPE [--key=value ...]",
                                           "where the time of a training step goes, by layer and kind of work",
                                           page,
                                           options,
                                           N_OPTIONS,
                                           1,
                                           1,
                                           true,
                                           false,
                                           run};
