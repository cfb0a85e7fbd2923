/* session_text.c - the banner before a run and the summary after it. */
#include "base/file.h"
#include "base/quantity.h"
#include "entrypoint/budget.h"
#include "entrypoint/device.h"
#include "entrypoint/export.h"
#include "entrypoint/memory.h"
#include "entrypoint/session.h"
#include "entrypoint/stop.h"
#include "entrypoint/tally.h"
#include "base/version.h"

#include <stdio.h>
#include <string.h>

static const char *seconds_text(double s, char *out, size_t n)
{
    return ty_duration_text((int64_t)(s * 1e6), out, n);
}

static void add_gpu_memory(const ty_budget *need, ty_buf *out)
{
    char t[7][32];
    ty_buf_addf(out, "  GPU memory  %s at least: weights and moments %s, temporaries %s, workspace %s, constants %s, ",
                ty_bytes_text(need->total_bytes, t[0], 32), ty_bytes_text(need->state_bytes, t[1], 32),
                ty_bytes_text(need->slab_bytes, t[2], 32), ty_bytes_text(need->scratch_bytes, t[3], 32),
                ty_bytes_text(need->constant_bytes, t[4], 32));
    ty_buf_addf(out, "batches %s, kernels and libraries %s", ty_bytes_text(need->batch_bytes, t[5], 32),
                ty_bytes_text(need->code_bytes, t[6], 32));
    if (need->n_gpus > 1)
        ty_buf_addf(out, ", on each of %d GPUs", need->n_gpus);
    ty_buf_addc(out, '\n');
}

static void add_memory(ty_session *s, ty_buf *out)
{
    char t[7][32];
    ty_budget need = ty_budget_of_program(s, s->program);
    s->announced_bytes = need.host_bytes + need.mapped_bytes;
    if (need.on_gpu)
        add_gpu_memory(&need, out);
    ty_buf_addf(out, "  memory      %s at the peak: weights and moments %s, ",
                ty_bytes_text(s->announced_bytes, t[0], 32), ty_bytes_text(need.state_bytes, t[1], 32));
    if (need.on_gpu)
        ty_buf_addf(out, "pinned %s, ", ty_bytes_text(need.pinned_bytes, t[2], 32));
    else
        ty_buf_addf(out, "temporaries %s, workspace %s, ", ty_bytes_text(need.slab_bytes, t[2], 32),
                    ty_bytes_text(need.scratch_bytes, t[3], 32));
    ty_buf_addf(out, "input %s, program and graphs %s, mapped files %s\n", ty_bytes_text(need.input_bytes, t[4], 32),
                ty_bytes_text(need.process_bytes, t[5], 32), ty_bytes_text(need.mapped_bytes, t[6], 32));
}

static const char *data_text(const ty_dataset *d, const ty_session_stream *stream, char *out, size_t n)
{
    return stream->is_on ? ty_session_stream_text(stream, out, n) : ty_dataset_summary(d, out, n);
}

/* Of a stream the steps are those that the recipe speaks of; nobody knows how many it has. */
static void add_plan(const ty_session *s, ty_buf *out)
{
    const char *about = s->train_stream.is_on && s->recipe.max_steps == 0 ? "about " : "";
    if (s->known_steps > 0)
        ty_buf_addf(out, "  plan        %s%lld steps", about, (long long)s->known_steps);
    else
        ty_buf_addf(out, "  plan        as many steps as the stream has");
    ty_buf_addf(out, " of %lld rows, %lld epochs, seed %lld\n",
                (long long)(s->recipe.batch_size * s->recipe.accumulate), (long long)s->recipe.epochs,
                (long long)s->recipe.seed);
}

/* Float32 products on a GPU run where there are fewest units for them: what would not is named, once. */
static void add_precision(const ty_session *s, ty_buf *out)
{
    if (s->on_gpu && s->recipe.precision == TY_PRECISION_FLOAT32 && !s->recipe.tf32 && s->gpu[0].capability >= 80)
        ty_buf_adds(out,
                    "  precision   float32, which tensor cores do not multiply: bfloat16, or tf32: true, is faster\n");
}

void ty_session_banner(ty_session *s, ty_buf *out)
{
    const ty_compile_report *c = ty_program_report(s->program);
    char a[160], b[160], d[32], found[320];
    ty_buf_addf(out, "%s%s%s\n", TY_VERSION_LINE, s->job->name ? ", job " : "", s->job->name ? s->job->name : "");
    ty_buf_addf(out, "  model       %s (%s, %lld nodes), %s numbers trained\n", s->recipe.model,
                ty_model_format(s->model), (long long)ty_model_n_nodes(s->model),
                ty_count_text(c->n_trained, a, sizeof a));
    if (ty_composite_count_text(&c->found, found, sizeof found)[0])
        ty_buf_addf(out, "  found       %s\n", found);
    for (int i = 0; i < ty_model_n_warnings(s->model); i++)
        ty_buf_addf(out, "  warning     %s\n              %s\n", ty_model_warning_at(s->model, i)->text,
                    ty_model_warning_at(s->model, i)->help);
    ty_buf_addf(out, "  train       %s\n", data_text(s->train, &s->train_stream, a, sizeof a));
    if (s->validation && s->recipe.validation.split > 0)
        ty_buf_addf(out, "  validation  %s samples, split off\n", ty_count_text(s->validation->n_samples, b, sizeof b));
    else if (s->validation)
        ty_buf_addf(out, "  validation  %s\n", data_text(s->validation, &s->validation_stream, b, sizeof b));
    add_plan(s, out);
    if (s->batch_reason)
        ty_buf_addf(out, "  batch       %lld rows: %s\n", (long long)s->recipe.batch_size, s->batch_reason);
    ty_buf_addf(out, "  compiled    %d kernels, %d library calls in %s%s\n", c->n_kernels, c->n_library_calls,
                seconds_text(s->times.compile_s, d, sizeof d), c->cache_hit ? " (from the cache)" : "");
    ty_buf_addf(out, "  device      %s\n", ty_device_text(s));
    add_precision(s, out);
    add_memory(s, out);
    if (c->chunk.rows > 0)
        ty_buf_addf(out, "  chunks      %lld of %lld rows of logits at a time: %s, not %s\n", (long long)c->chunk.rows,
                    (long long)c->chunk.of_rows, ty_bytes_text(c->chunk.bytes, a, sizeof a),
                    ty_bytes_text(c->chunk.of_bytes, b, sizeof b));
    if (c->remat.n_lines > 0)
        ty_buf_addf(out,
                    "  again       %.1f %% more arithmetic: backward computes %d parts of forward again, temporaries "
                    "%s, not %s\n",
                    100 * c->remat.share, c->remat.n_lines, ty_bytes_text(c->remat.with_bytes, a, sizeof a),
                    ty_bytes_text(c->remat.without_bytes, b, sizeof b));
    ty_buf_addf(out, "  checkpoints %s%s\n", s->checkpoints.dir, s->resumed ? "" : " (none to resume from)");
}

static void add_result(const ty_session *s, ty_job_end end, ty_buf *out)
{
    char count[32];
    if (end == TY_JOB_STOPPED)
        ty_buf_addf(out,
                    s->known_steps > 0 ? "stopped after step %s of %lld, on request\n"
                                       : "stopped after step %s%.0lld, on request\n",
                    ty_count_text(s->steps_done, count, sizeof count), (long long)s->known_steps);
    else
        ty_buf_addf(out, "complete: %s steps%s\n", ty_count_text(s->steps_done, count, sizeof count),
                    s->loop.enough ? ", and no better evaluation for long enough (early_stopping)" : "");
    if (s->written.step != s->steps_done)
        ty_buf_addf(out, "  weights     of step %lld, the best evaluation\n", (long long)s->written.step);
    if (s->evaluated_step >= 0) {
        ty_buf_addf(out, "  validation ");
        for (int i = 0; i < s->n_latest; i++) {
            bool is_share = i > 0 && ty_tally_is_share(s->recipe.metrics[i - 1].kind);
            ty_buf_addf(out, is_share ? " %s %.2f %%" : " %s %.5g", s->latest[i].name,
                        is_share ? 100 * s->latest[i].value : s->latest[i].value);
        }
        int best = s->recipe.best_value;
        bool best_is_share = best > 0 && ty_tally_is_share(s->recipe.metrics[best - 1].kind);
        if (s->has_best)
            ty_buf_addf(out, best_is_share ? "  (best %.2f %% at step %lld)" : "  (best %.5g at step %lld)",
                        best_is_share ? 100 * s->best : s->best, (long long)s->best_step);
        ty_buf_addc(out, '\n');
    }
}

static void add_time(const ty_session *s, ty_buf *out)
{
    const ty_session_times *t = &s->times;
    const struct {
        const char *name;
        double s;
    } parts[] = {{"data", t->data_s},         {"compile", t->compile_s},   {"input wait", t->input_wait_s},
                 {"compute", t->compute_s},   {"evaluate", t->evaluate_s}, {"checkpoints", t->checkpoint_s},
                 {"model files", t->export_s}};
    char text[32];
    double total = ty_session_now_s() - t->started_s;
    ty_buf_addf(out, "  time        %s:", seconds_text(total, text, sizeof text));
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        ty_buf_addf(out, "%s %s %s (%.0f %%)", i ? "," : "", parts[i].name, seconds_text(parts[i].s, text, sizeof text),
                    total > 0 ? 100 * parts[i].s / total : 0);
    ty_buf_addc(out, '\n');
    if (t->first_step_s > 0)
        ty_buf_addf(out, "  first step  after %s\n", seconds_text(t->first_step_s, text, sizeof text));
    int64_t steps = s->steps_done - s->loop.first_step;
    double busy = t->compute_s + t->input_wait_s;
    if (ty_session_sees_waits(s) && steps > 0) {
        double waited = ty_company_waited_s(s->job->company);
        ty_buf_addf(out, "  comm        %s a step exposed (%.0f %%), on %d ranks\n",
                    seconds_text(waited / (double)steps, text, sizeof text), busy > 0 ? 100 * waited / busy : 0,
                    ty_company_size(s->job->company));
    }
    if (steps > 0 && busy > 0) {
        double rows = (double)(steps * s->recipe.accumulate * s->recipe.batch_size);
        ty_buf_addf(out, "  speed       %s samples/s, %s a step\n",
                    ty_count_text((int64_t)(rows / busy), text, sizeof text),
                    seconds_text(busy / (double)steps, (char[32]){0}, 32));
    }
}

static void add_bad(const ty_bad *bad, const char *what, ty_buf *out)
{
    if (bad->n > 0)
        ty_buf_addf(out, "  bad records %lld left out of %s, the first: %s\n", (long long)bad->n, what, bad->first);
}

/* The command that applies the trained model: to raw rows, where the transforms lie beside it. */
static void add_run(const ty_session *s, ty_buf *out)
{
    const ty_model *m = s->model;
    char learnt[4096];
    int n = snprintf(learnt, sizeof learnt, "%s/preprocessing.json", s->job->model_folder);
    bool raw = n < (int)sizeof learnt && ty_file_exists(learnt);
    const char *signature = s->recipe.choice.signature, *layers = s->recipe.choice.layers;
    ty_buf_addf(out, "  trainyard run %s/%s", s->job->model_folder, ty_model_artifact(m));
    if (signature)
        ty_buf_addf(out, " --signature %s", signature);
    if (layers)
        ty_buf_addf(out, " --layers %s", layers);
    if (raw)
        ty_buf_adds(out, " --data FILE");
    int n_inputs = raw ? 0 : ty_model_n_inputs(m);
    for (int i = 0; i < n_inputs; i++)
        if (!ty_model_input(m, i)->only_trains)
            ty_buf_addf(out, " --input %s=%s.npy", ty_model_input(m, i)->name,
                        n_inputs == 1 ? "batch" : ty_model_input(m, i)->name);
    ty_buf_adds(out, " --output-dir predictions\n");
}

void ty_session_summary(const ty_session *s, ty_job_end end, bool exported, ty_buf *out)
{
    char planned[32], real[32];
    add_result(s, end, out);
    if (s->lengths.n > 0) {
        ty_buf_adds(out, "  lengths     ");
        ty_session_add_lengths(s, out);
        ty_buf_addc(out, '\n');
    }
    add_time(s, out);
    add_bad(ty_session_bad(s, false), "data.train", out);
    add_bad(ty_session_bad(s, true), "data.validation", out);
    ty_buf_addf(out, "  memory      peak %s, announced were %s\n",
                ty_bytes_text(ty_memory_now().peak, real, sizeof real),
                ty_bytes_text(s->announced_bytes, planned, sizeof planned));
    ty_buf_adds(out, "files\n");
    if (exported)
        ty_export_list(s->job->model_folder, out);
    ty_export_list(s->job->output_folder, out);
    ty_buf_adds(out, "next\n");
    if (end == TY_JOB_STOPPED)
        ty_buf_adds(out, "  the same command again goes on from the checkpoint\n");
    if (exported)
        add_run(s, out);
}
