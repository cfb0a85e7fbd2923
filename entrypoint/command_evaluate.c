/* command_evaluate.c - `trainyard evaluate RECIPE [MODEL]`: loss and metrics of a model on data.validation. */
#include "base/json.h"
#include "base/quantity.h"
#include "entrypoint/cache_folder.h"
#include "entrypoint/command.h"
#include "entrypoint/device.h"
#include "entrypoint/overrides.h"
#include "entrypoint/session.h"
#include "entrypoint/tally.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DATA_DIR, COMPILED, JSON, N_OPTIONS };

static const ty_option options[N_OPTIONS] = {
    [DATA_DIR] = {"--data-dir", "DIR", "folder that has the channels as folders or files", false},
    [COMPILED] = {"--compiled", "DIR", "use kernels that `trainyard compile` left there, and no C compiler", false},
    [JSON] = {"--json", NULL, "one JSON object on stdout", false},
};

static void print_text(ty_session *s)
{
    char count[32] = "all";
    if (!s->validation_stream.is_on)
        ty_count_text(s->validation->n_samples, count, sizeof count);
    printf("%s: %s samples of data.validation, in batches of %lld\n", s->recipe.path, count,
           (long long)s->recipe.batch_size);
    printf("  model       %s (%s)\n", s->recipe.model, ty_model_format(s->model));
    printf("  device      %s\n", ty_device_text(s));
    for (int i = 0; i < s->n_latest; i++) {
        bool is_share = i > 0 && ty_tally_is_share(s->recipe.metrics[i - 1].kind);
        printf(is_share ? "  %-11s %.2f %%\n" : "  %-11s %.9g\n", s->latest[i].name,
               is_share ? 100 * s->latest[i].value : s->latest[i].value);
    }
    printf("  time        %.3f s\n", s->times.evaluate_s);
}

static void print_json(ty_session *s)
{
    ty_buf out;
    ty_json_writer w;
    ty_buf_init(&out, 1 << 20);
    ty_json_writer_init(&w, &out, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    ty_json_put_int(&w, "schema", 1);
    ty_json_put_string(&w, "recipe", s->recipe.path);
    ty_json_put_string(&w, "model", s->recipe.model);
    ty_json_put_string(&w, "device", ty_device_text(s));
    if (!s->validation_stream.is_on)
        ty_json_put_int(&w, "samples", s->validation->n_samples);
    ty_json_put_float(&w, "seconds", s->times.evaluate_s);
    ty_json_open_map(&w, "values");
    for (int i = 0; i < s->n_latest; i++)
        ty_json_put_float(&w, s->latest[i].name, s->latest[i].value);
    ty_json_close(&w);
    ty_json_close(&w);
    puts(out.data);
    ty_buf_fini(&out);
}

/* MODEL is named from where the command is run, the recipe's from where that lies. */
static int take_model(const char *model, ty_arena *a, ty_job *job, ty_error *err)
{
    char real[PATH_MAX];
    if (!model)
        return 0;
    if (!realpath(model, real))
        return ty_error_set(err, TY_E_IO, "%s: %s", model, strerror(errno));
    ty_recipe_override *all = TY_NEW_ARRAY(a, ty_recipe_override, job->n_overrides + 1);
    for (int i = 0; i < job->n_overrides; i++)
        all[i] = job->overrides[i];
    all[job->n_overrides++] = (ty_recipe_override){"model", ty_arena_strdup(a, real), "argument MODEL"};
    job->overrides = all;
    return 0;
}

static int evaluate(ty_session *s, bool json, ty_error *err)
{
    bool abandoned = false;
    if (!s->validation)
        return ty_error_set(err, TY_E_CONFIG, "%s has no data.validation to evaluate on", s->recipe.path);
    if (ty_session_measure(s, &abandoned, err) < 0)
        return -1;
    if (abandoned)
        return ty_error_set(err, TY_E_STOPPED, "stopped before the end of data.validation");
    (json ? print_json : print_text)(s);
    return 0;
}

static int run(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    ty_job job = {.recipe_path = given->words[0],
                  .data_folder = given->value[DATA_DIR],
                  .compiled_folder = given->value[COMPILED],
                  .cache_folder = ty_cache_folder(a)};
    if (ty_overrides_take(given, a, &job, err) < 0 || take_model(given->words[1], a, &job, err) < 0)
        return -1;
    ty_session s = {.job = &job, .evaluated_step = -1};
    ty_arena_init(&s.arena);
    int rc = ty_session_open_for_steps(&s, err);
    if (rc == 0)
        rc = evaluate(&s, given->value[JSON] != NULL, err);
    ty_session_close(&s);
    return rc;
}

static const char page[] =
    "Applies a model to data.validation of a recipe and prints the loss and the recipe's metrics, as they are after "
    "an\n"
    "epoch of training. MODEL is a model file or folder, such as a trained one; left out: the recipe's own. Nothing "
    "is\n"
    "trained and nothing is written. Other data:\n"
    "--data.validation.path=FILE, or --data.validation.channel=NAME.\n"
    "\n"
    "--json has these keys, and may get more: schema 1, recipe, model, device, samples (not of a stream), seconds,\n"
    "values {loss, and each metric by its name}.\n"
    "\n"
    "    trainyard evaluate train.yaml run/model/model.onnx --data-dir=data\n"
    "    trainyard evaluate train.yaml run/model/model.onnx --data.validation.path=test.csv --json\n";

const ty_command_row ty_command_evaluate = {"evaluate",
                                            "RECIPE [MODEL] [--key=value ...]",
                                            "loss and metrics of a model on the validation data",
                                            page,
                                            options,
                                            N_OPTIONS,
                                            1,
                                            2,
                                            true,
                                            false,
                                            run};
