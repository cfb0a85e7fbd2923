/* command_replay.c - `trainyard replay STEP RECIPE`: one step again, and where its first NaN or infinity came from. */
#include "base/json.h"
#include "base/quantity.h"
#include "container/config/paths.h"
#include "entrypoint/cache_folder.h"
#include "entrypoint/command.h"
#include "entrypoint/device.h"
#include "entrypoint/overrides.h"
#include "entrypoint/replay.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { DATA_DIR, OUTPUT_DIR, COMPILED, DUMP, JSON, N_OPTIONS };

static const ty_option options[N_OPTIONS] = {
    [DATA_DIR] = {"--data-dir", "DIR", "folder that has the channels as folders or files", false},
    [OUTPUT_DIR] = {"--output-dir", "DIR", "where training wrote, whose checkpoints/ is read (default run)", false},
    [COMPILED] = {"--compiled", "DIR", "use kernels that `trainyard compile` left there, and no C compiler", false},
    [DUMP] = {"--dump-dir", "DIR", "write graphs, kernels and memory plan of the compiler there", false},
    [JSON] = {"--json", NULL, "one JSON object on stdout", false},
};

typedef struct replayed {
    ty_arena *arena;
    ty_session session;
    ty_replay replay;
} replayed;

/* ---- text ---- */

static void print_from(const replayed *r)
{
    const ty_session *s = &r->session;
    if (s->restored_from)
        printf("  from        %s\n", s->restored_from);
    else
        puts("  from        the model's own weights: there is no checkpoint before this step");
    if (r->replay.at.step > r->replay.from_step)
        printf("  again       %lld steps before it, unchecked\n", (long long)(r->replay.at.step - r->replay.from_step));
}

static void print_found(const replayed *r)
{
    const ty_session *s = &r->session;
    char values[32], numbers[32];
    ty_buf text;
    if (s->check.n_bad == 0 && !r->replay.is_wrong) {
        printf("  nothing is wrong: %s numbers in %s values, all finite\n",
               ty_count_text(s->check.n_numbers, numbers, sizeof numbers),
               ty_count_text(s->check.n_values, values, sizeof values));
        return;
    }
    ty_buf_init(&text, 1 << 16);
    ty_session_explain(s, &text);
    fputs(text.data, stdout);
    ty_buf_fini(&text);
    if (!r->replay.is_wrong)
        puts("which reaches neither the loss nor a weight");
}

static void print_text(replayed *r)
{
    const ty_session *s = &r->session;
    const ty_step_result *result = &r->replay.result;
    printf("%s: step %lld (epoch %lld, batch %lld, %lld rows)%s\n", s->recipe.path, (long long)r->replay.at.step + 1,
           (long long)r->replay.at.epoch, (long long)r->replay.at.batch,
           (long long)(s->recipe.batch_size * s->recipe.accumulate),
           s->recipe.debug == TY_DEBUG_INTERPRET ? ", interpreted" : "");
    printf("  device      %s\n", ty_device_text(&r->session));
    print_from(r);
    printf("  loss        %.9g, lr %g", result->loss, result->lr);
    if (isnan(result->grad_norm))
        printf(", grad_norm nan");
    else if (result->grad_norm >= 0)
        printf(", grad_norm %g", result->grad_norm);
    if (result->loss_scale > 0)
        printf(", loss_scale %g", result->loss_scale);
    puts("");
    print_found(r);
}

/* ---- JSON ---- */

static void put_numbers(ty_json_writer *w, const ty_numbers *n)
{
    ty_json_put_string(w, "value", n->text);
    ty_json_put_int(w, "n", n->n);
    ty_json_put_int(w, "n_nan", n->n_nan);
    ty_json_put_int(w, "n_inf", n->n_inf);
    ty_json_put_float(w, "least", n->lo);
    ty_json_put_float(w, "most", n->hi);
}

static void put_bad(ty_json_writer *w, const ty_bad_value *bad, const char *sample)
{
    static const char *const phase[TY_N_PHASES] = {"forward", "gradient", "update"};
    char type[160];
    ty_json_open_map(w, NULL);
    ty_json_put_string(w, "found", isnan(bad->value) ? "nan" : bad->value > 0 ? "inf" : "-inf");
    ty_json_put_string(w, "layer", bad->layer);
    ty_json_put_string(w, "op", bad->op);
    ty_json_put_string(w, "phase", phase[bad->phase]);
    ty_json_put_string(w, "type", ty_type_text(&bad->type, type, sizeof type));
    ty_json_open_list(w, "index");
    for (int k = 0; k < bad->type.rank; k++)
        ty_json_put_int(w, NULL, bad->index[k]);
    ty_json_close(w);
    ty_json_put_string(w, "sample", sample);
    put_numbers(w, &bad->result);
    ty_json_open_list(w, "operands");
    for (int i = 0; i < bad->n_operands; i++) {
        ty_json_open_map(w, NULL);
        put_numbers(w, &bad->operand[i]);
        ty_json_close(w);
    }
    ty_json_close(w);
    ty_json_close(w);
}

static void print_json(replayed *r)
{
    const ty_session *s = &r->session;
    ty_buf out;
    ty_json_writer w;
    ty_buf_init(&out, 1 << 20);
    ty_json_writer_init(&w, &out, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    ty_json_put_int(&w, "schema", 1);
    ty_json_put_string(&w, "recipe", s->recipe.path);
    ty_json_put_string(&w, "device", ty_device_text(&r->session));
    ty_json_put_int(&w, "step", r->replay.at.step + 1);
    ty_json_put_int(&w, "epoch", r->replay.at.epoch);
    ty_json_put_int(&w, "batch", r->replay.at.batch);
    ty_json_put_string(&w, "checkpoint", s->restored_from);
    ty_json_put_int(&w, "checkpoint_step", r->replay.from_step);
    ty_json_put_float(&w, "loss", r->replay.result.loss);
    ty_json_put_float(&w, "lr", r->replay.result.lr);
    ty_json_put_float(&w, "grad_norm", r->replay.result.grad_norm);
    ty_json_put_bool(&w, "wrong", r->replay.is_wrong);
    ty_json_put_int(&w, "numbers", s->check.n_numbers);
    ty_json_open_list(&w, "first");
    for (int i = 0; i < s->check.n_bad; i++)
        put_bad(&w, &s->check.bad[i], s->bad_sample[i]);
    ty_json_close(&w);
    ty_json_close(&w);
    puts(out.data);
    ty_buf_fini(&out);
}

/* ---- the command ---- */

static int parse_step(const char *text, int64_t *out, ty_error *err)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    if (errno == 0 && *end == 0 && end != text && *out >= 1)
        return 0;
    return ty_error_set(err, TY_E_USAGE, "expected the number of a step, 1 or more, found \"%s\"", text);
}

static int replay(const ty_arguments_given *given, replayed *r, ty_error *err)
{
    ty_paths paths;
    ty_job job = {.recipe_path = given->words[1],
                  .data_folder = given->value[DATA_DIR],
                  .dump_folder = given->value[DUMP],
                  .compiled_folder = given->value[COMPILED],
                  .cache_folder = ty_cache_folder(r->arena)};
    if (parse_step(given->words[0], &job.replay_step, err) < 0 || ty_overrides_take(given, r->arena, &job, err) < 0)
        return -1;
    ty_paths_init(&paths, r->arena, given->value[OUTPUT_DIR] ? given->value[OUTPUT_DIR] : "run");
    job.checkpoint_folder = paths.checkpoints;
    r->session = (ty_session){.job = &job, .evaluated_step = -1};
    ty_arena_init(&r->session.arena);
    int rc = ty_session_open_for_steps(&r->session, err);
    if (rc == 0)
        rc = ty_replay_run(&r->session, &r->replay, err);
    if (rc == 0)
        (given->value[JSON] ? print_json : print_text)(r);
    if (rc == 0 && r->replay.is_wrong)
        rc = ty_error_exit_status(TY_E_NOT_FINITE);
    ty_session_close(&r->session);
    return rc;
}

static int run(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    replayed r = {.arena = a};
    return replay(given, &r, err);
}

static const char page[] =
    "Takes the newest checkpoint before the step (or the model's own weights), runs the steps between as training ran\n"
    "them, then the step itself with every value looked at: the same bits, the same batch, the same random numbers.\n"
    "Names the first NaN and the first infinity that no operand explains, by layer, operation and index, with the "
    "sample\n"
    "of its row and the range of each operand. STEP counts from 1, as messages do (\"the loss is nan at step 38\").\n"
    "Settings must be those of the training. --debug=interpret computes it operation by operation in double, rounded\n"
    "after each, without compiled kernels. Nothing is written.\n"
    "\n"
    "The exit status is 0 if loss, gradient norm, weights and moments are finite after the step, 65 if one is not.\n"
    "\n"
    "--json has these keys, and may get more: schema 1, recipe, device, step, epoch, batch, checkpoint (null: none),\n"
    "checkpoint_step, loss, lr, grad_norm, wrong, numbers (looked at), first [found (nan, inf, -inf), layer, op, "
    "phase,\n"
    "type, index, sample, value, n, n_nan, n_inf, least, most (of the finite ones), operands [value, n, n_nan, n_inf,\n"
    "least, most]].\n"
    "\n"
    "    trainyard replay 38 train.yaml --data-dir=data\n"
    "    trainyard replay 1200 train.yaml --output-dir=/opt/ml --debug=interpret\n";

const ty_command_row ty_command_replay = {"replay",
                                          "STEP RECIPE [--key=value ...]",
                                          "one step again: where its first NaN or infinity came from",
                                          page,
                                          options,
                                          N_OPTIONS,
                                          2,
                                          2,
                                          true,
                                          false,
                                          run};
