/* session_batch.c - `batch_size: auto`: the largest batch that the memory holds, and the one of before after a restart.
 */
#include "base/file.h"
#include "base/log.h"
#include "base/quantity.h"
#include "entrypoint/budget.h"
#include "entrypoint/device.h"
#include "entrypoint/memory.h"
#include "entrypoint/session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The hash of the newest readable checkpoint's run; "" if there is none. */
static void newest_run(ty_session *s, char *hash)
{
    ty_checkpoint_entry *list;
    size_t n = 0;
    hash[0] = 0;
    if (s->job->fresh || !s->job->checkpoint_folder ||
        ty_checkpoints_list(s->job->checkpoint_folder, &s->arena, &list, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n && !hash[0]; i++) {
        ty_buf text;
        ty_manifest m;
        const char *path = ty_arena_printf(&s->arena, "%s/%s", list[i].path, TY_MANIFEST_NAME);
        ty_buf_init(&text, TY_MANIFEST_MAX_BYTES);
        if (ty_file_read(path, &text, NULL) == 0 &&
            ty_manifest_parse(text.data, text.len, path, &s->arena, &m, NULL) == 0)
            memcpy(hash, m.state.recipe_hash, sizeof m.state.recipe_hash);
        ty_buf_fini(&text);
    }
}

/* A checkpoint bears the hash of its run, batch size included: the size that gives the same hash is the one it had. 0:
 * there is no checkpoint, or it is of another run. */
static int64_t batch_of_checkpoint(ty_session *s, int64_t max_batch)
{
    char wanted[TY_MANIFEST_HASH_BYTES], hash[TY_MANIFEST_HASH_BYTES];
    newest_run(s, wanted);
    int n = ty_device_replicas(s);
    for (int64_t b = n; wanted[0] && b <= max_batch; b += b < 8 * n ? n : 8 * n)
        if (ty_session_hash(s, b, hash, NULL) == 0 && strcmp(hash, wanted) == 0)
            return b;
    return 0;
}

int ty_session_memory(const ty_session *s, uint64_t *limit, const char **why, ty_error *err)
{
    *why = "the recipe's memory";
    *limit = s->recipe.memory_bytes;
    if (*limit)
        return 0;
    *why = s->n_gpus > 1 ? "free memory of each GPU" : "free memory of the GPU";
    if (s->on_gpu)
        return ty_device_memory(s, limit, err);
    *limit = ty_memory_limit(why) / (uint64_t)ty_company_local_size(s->job->company);
    return 0;
}

static int choose_largest(ty_session *s, int64_t max_batch, ty_error *err)
{
    const char *why;
    char limit_text[32], total_text[32];
    ty_budget b;
    ty_budget_list *known = TY_NEW(&s->arena, ty_budget_list);
    uint64_t limit;
    if (ty_session_memory(s, &limit, &why, err) < 0)
        return -1;
    ty_bytes_text(limit, limit_text, sizeof limit_text);
    s->batch_limit_bytes = (uint64_t)(TY_BUDGET_SHARE * (double)limit);
    if (ty_budget_largest(s, (uint64_t)(TY_BUDGET_SHARE * (double)limit), max_batch, known, &b, err) < 0)
        return ty_error_wrap(err, "batch_size: auto");
    if (b.batch == 0) {
        ty_error_set(err, TY_E_LIMIT, "batch_size: auto: one row%s needs %s, the limit is %s (%s)",
                     s->on_gpu && s->n_gpus > 1 ? " on each GPU" : "",
                     ty_bytes_text(known->known[0].total_bytes, total_text, sizeof total_text), limit_text, why);
        return ty_error_help(err, "give the run more memory, or take a smaller model");
    }
    s->recipe.batch_size = b.batch;
    ty_bytes_text(b.total_bytes, total_text, sizeof total_text);
    int64_t step = 8 * (int64_t)ty_device_replicas(s);
    bool is_all = b.batch == max_batch || b.batch + step > max_batch;
    s->batch_reason = is_all ? ty_arena_printf(&s->arena, "all %lld samples would fit: %s of %s (%s)",
                                               (long long)max_batch, total_text, limit_text, why)
                             : ty_arena_printf(&s->arena, "the largest multiple of %lld that fits: %s of %s (%s)",
                                               (long long)step, total_text, limit_text, why);
    return 0;
}

static int choose(ty_session *s, ty_error *err)
{
    int64_t n_samples = s->train_stream.is_on ? s->recipe.train.samples : s->train->n_samples;
    int64_t max_batch = n_samples < 1 << 24 ? n_samples : 1 << 24;
    if (s->train_stream.is_on && n_samples == 0) {
        ty_error_set(err, TY_E_CONFIG,
                     "batch_size: auto, and data.train is a stream, which does not say how many samples "
                     "it has");
        return ty_error_help(err, "write data.train.samples: N, of an epoch on all ranks; or a batch_size");
    }
    if (max_batch < 1)
        return ty_error_set(err, TY_E_DATA, "batch_size: auto: data.train has no samples");
    if (max_batch < ty_device_replicas(s))
        return ty_error_set(err, TY_E_DATA, "batch_size: auto: data.train has %lld samples, fewer than there are %s",
                            (long long)max_batch, s->on_gpu ? "GPUs" : "ranks");
    int64_t before = batch_of_checkpoint(s, max_batch);
    if (before == 0)
        return choose_largest(s, max_batch, err) < 0 &&
                       (!ty_device_give_up(s, err) || choose_largest(s, max_batch, err) < 0)
                   ? -1
                   : 0;
    s->recipe.batch_size = before;
    s->batch_reason = "that of the checkpoint";
    return 0;
}

/* Linear: Goyal et al., Accurate, Large Minibatch SGD (2017). Root: Krizhevsky, One weird trick (2014), and what Adam's
 * noise scale asks for. */
static void scale_rate(ty_session *s)
{
    char before[32], after[32];
    double ratio = (double)s->recipe.batch_size / (double)s->recipe.batch_base;
    double lr = s->recipe.optimizer.lr;
    if (s->recipe.batch_rule == TY_BATCH_RULE_NONE)
        return;
    s->recipe.optimizer.lr *= s->recipe.batch_rule == TY_BATCH_RULE_LINEAR ? ratio : sqrt(ratio);
    snprintf(before, sizeof before, "%.6g", lr);
    snprintf(after, sizeof after, "%.6g", s->recipe.optimizer.lr);
    ty_log_info("recipe", "lr %s for batches of %lld becomes %s for %lld (batch_size_rule)", before,
                (long long)s->recipe.batch_base, after, (long long)s->recipe.batch_size);
}

int ty_session_choose_batch(ty_session *s, ty_error *err)
{
    if (s->recipe.batch_auto && (choose(s, err) < 0 || ty_session_agree_on_batch(s, err) < 0))
        return -1;
    if (s->batch_reason)
        ty_log_info("recipe", "batch_size auto is %lld: %s", (long long)s->recipe.batch_size, s->batch_reason);
    scale_rate(s);
    return 0;
}
