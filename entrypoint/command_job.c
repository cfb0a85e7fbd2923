/* command_job.c - `trainyard job VERB FILE`: job files without asking a service. What a file comes to is shown here;
 * the other verbs are in files of their own. */
#define _GNU_SOURCE
#include "entrypoint/command_job.h"

#include "base/json.h"
#include "entrypoint/managed.h"
#include "entrypoint/verbs.h"
#include "estimator_spec/show.h"

#include <stdio.h>
#include <string.h>

static const ty_option options[TY_N_JOB_OPTIONS] = {
    [TY_JOB_ORIGIN] = {"--origin", NULL, "show: say where each value comes from", false},
    [TY_JOB_KEYS] = {"--keys", NULL, "list every key of a job file with its limits, and end", false},
    [TY_JOB_OUTPUT] = {"-o", "FILE", "from-sdk: write the job file there", false},
    [TY_JOB_DATA_DIR] = {"--data-dir", "DIR", "estimate: folder that has the channels as folders or files", false},
    [TY_JOB_PRICE] = {"--price", "USD", "estimate: of one machine, an hour", false},
    [TY_JOB_STEPS] = {"--steps", "N", "estimate: steps that are timed, after 5 that are not (default 20)", false},
    [TY_JOB_SPEED] = {"--speed", "FACTOR", "estimate: how many times as fast as this machine one of the job's is",
                      false},
    [TY_JOB_NETWORK] = {"--network", "GBIT", "estimate: 10^9 bits a second between machines", false},
    [TY_JOB_JSON] = {"--json", NULL, "show, estimate: one JSON object on stdout", false},
};

/* ---- show ---- */

static void print_json(const ty_jobspec *job, const ty_jobspec_setting *list, int n)
{
    ty_buf out;
    ty_json_writer w;
    ty_buf_init(&out, 1 << 24);
    ty_json_writer_init(&w, &out, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    ty_json_open_list(&w, "settings");
    for (int i = 0; i < n; i++) {
        ty_json_open_map(&w, NULL);
        ty_json_put_string(&w, "key", list[i].key);
        ty_json_put_string(&w, "value", list[i].value);
        ty_json_put_string(&w, "origin", list[i].origin);
        ty_json_close(&w);
    }
    ty_json_close(&w);
    ty_json_open_list(&w, "warnings");
    for (int i = 0; i < job->n_warnings; i++)
        ty_json_put_string(&w, NULL, job->warnings[i]);
    ty_json_close(&w);
    ty_json_close(&w);
    puts(out.data);
    ty_buf_fini(&out);
}

static void print_text(const ty_jobspec_setting *list, int n, bool with_origin)
{
    int width = 0;
    for (int i = 0; i < n; i++)
        width = (int)strlen(list[i].key) > width ? (int)strlen(list[i].key) : width;
    for (int i = 0; i < n; i++)
        if (with_origin)
            printf("%-*s  %-32s  %s\n", width, list[i].key, list[i].value, list[i].origin);
        else
            printf("%-*s  %s\n", width, list[i].key, list[i].value);
}

static int show(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    ty_jobspec job;
    ty_jobspec_setting *list;
    int n;
    if (ty_managed_load(given->words[1], a, &job, err) < 0 || ty_jobspec_settings(&job, a, &list, &n, err) < 0)
        return -1;
    if (given->value[TY_JOB_JSON]) {
        print_json(&job, list, n);
        return 0;
    }
    ty_managed_warn(&job);
    print_text(list, n, given->value[TY_JOB_ORIGIN] != NULL);
    return 0;
}

static int print_keys(ty_error *err)
{
    ty_buf out;
    ty_buf_init(&out, 1 << 20);
    int rc = ty_fields_help(&out, err);
    fputs(out.data, stdout);
    ty_buf_fini(&out);
    return rc;
}

/* ---- verbs ---- */

#define BIT TY_VERB_TAKES

static const ty_verb verbs[] = {
    {"show", "a job file", 1, BIT(TY_JOB_ORIGIN) | BIT(TY_JOB_JSON), show},
    {"from-sdk", "a request as JSON", 1, BIT(TY_JOB_OUTPUT), ty_job_from_sdk},
    {"estimate", "a job file", 1,
     BIT(TY_JOB_DATA_DIR) | BIT(TY_JOB_PRICE) | BIT(TY_JOB_STEPS) | BIT(TY_JOB_SPEED) | BIT(TY_JOB_NETWORK) |
         BIT(TY_JOB_JSON),
     ty_job_estimate},
};

static int run(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    if (given->value[TY_JOB_KEYS])
        return print_keys(err);
    return ty_verbs_run(&ty_command_job, verbs, sizeof verbs / sizeof verbs[0],
                        "write `trainyard job show job.yaml`, or from-sdk or estimate in place of show", given, a, err);
}

static const char page[] =
    "A job file describes a managed training job (CreateTrainingJob). Nothing is asked of a service: names, limits "
    "and\n"
    "rules are checked here, and the recipe that goes along is read. `trainyard job --keys` lists what may be in a "
    "file.\n\n"
    "show      what a job file comes to, and where every value is from\n"
    "from-sdk  the body of a CreateTrainingJob request, as the Python SDK makes it, or an answer of\n"
    "          DescribeTrainingJob, as a job file: it comes to the same request, which is checked. What no key says\n"
    "          stands under `request`; members that the service adds to an answer are left out, and named\n"
    "estimate  time and cost of the job's recipe, from some of its steps on this machine with your data. For other\n"
    "          machines say how fast they are (--speed); several share each batch, and --network adds the time of\n"
    "          their exchanges, as if nothing were computed meanwhile. Not in it, since nobody knows it here: the "
    "time\n"
    "          to get machines, image and data, interruptions, and the upload of the model\n\n"
    "--json of estimate has these keys, and may get more: schema 1, job, recipe, device, instance_type, instances,\n"
    "speed, batch_size, steps, timed_steps, opening_s (of it compile_s), first_step_s, step_s (here, the median),\n"
    "step_min_s, step_max_s, step_there_s, exchange_bytes (of a machine, a step), exchange_s (null: no --network),\n"
    "evaluations, evaluation_s (of all), checkpoints, checkpoint_bytes, total_s, machine_hours, price (null), cost\n"
    "(null), max_run_s, fits_max_run, most_cost (null: no price), spot, max_wait_s (null), load_average.\n\n"
    "    trainyard job show job.yaml --origin\n"
    "    trainyard job from-sdk request.json -o job.yaml\n"
    "    trainyard job estimate job.yaml --data-dir=data --price=1.41 --speed=8\n";

const ty_command_row ty_command_job = {
    "job", "VERB FILE", "show a job file, make one of a request, estimate time and cost",
    page,  options,     TY_N_JOB_OPTIONS,
    0,     2,           false,
    false, run};
