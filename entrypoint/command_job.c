/* command_job.c - `trainyard job show FILE`: what a job file comes to, and where every value is from. */
#define _GNU_SOURCE
#include "base/json.h"
#include "entrypoint/command.h"
#include "entrypoint/managed.h"
#include "estimator_spec/show.h"

#include <stdio.h>
#include <string.h>

enum { ORIGIN, JSON, KEYS, N_OPTIONS };

static const ty_option options[N_OPTIONS] = {
    [ORIGIN] = {"--origin", NULL, "say where each value comes from", false},
    [JSON] = {"--json", NULL, "one JSON object on stdout, with origins", false},
    [KEYS] = {"--keys", NULL, "list every key of a job file with its limits, and end", false},
};

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
    if (!given->words[1])
        return ty_error_set(err, TY_E_USAGE, "`job show` needs a job file");
    if (ty_managed_load(given->words[1], a, &job, err) < 0 || ty_jobspec_settings(&job, a, &list, &n, err) < 0)
        return -1;
    if (given->value[JSON]) {
        print_json(&job, list, n);
        return 0;
    }
    ty_managed_warn(&job);
    print_text(list, n, given->value[ORIGIN] != NULL);
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

static int run(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    const char *verb = given->words[0];
    if (given->value[KEYS])
        return print_keys(err);
    if (!verb || strcmp(verb, "show") != 0) {
        ty_error_set(err, TY_E_USAGE, "`job` has no \"%s\"", verb ? verb : "");
        return ty_error_help(err, "write `trainyard job show job.yaml`");
    }
    return show(given, a, err);
}

const ty_command_row ty_command_job = {"job",
                                       "show FILE",
                                       "show what a job file comes to, and where every value is from",
                                       "A job file describes a managed training job (CreateTrainingJob). Nothing is "
                                       "asked of a service: names, limits and\n"
                                       "rules are checked here. `trainyard job --keys` lists what may be in it.\n\n"
                                       "    trainyard job show job.yaml --origin\n",
                                       options,
                                       N_OPTIONS,
                                       0,
                                       2,
                                       false,
                                       false,
                                       run};
