/* session_shards.c - checkpoints to which each rank writes its part (container/output/checkpoint.h).
 *
 * A part lies in its own host's folder, which may be everybody's or nobody else's: hosts may share a disk, or have one
 * each that is mirrored to one place and came back from there whole, or not. So nothing is taken for granted. For each
 * file that is to be read the ranks ask who has it, and the first that has it whole gives its content to the others.
 *
 * Saving: each writes, all tell each other how that went, rank 0 writes the manifest, then the first rank of every
 * other host writes the same one, by which old checkpoints are known there. Rank 0's is the one that counts.
 */
#include "base/file.h"
#include "base/log.h"
#include "container/output/rankfile.h"
#include "entrypoint/session.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* ---- saving ---- */

/* What a rank tells of its part; equal on machines of one kind, which ranks are. */
typedef struct shard_news {
    int32_t failed;
    char text[200];
    ty_manifest_file file;
} shard_news;

static bool is_first_of_host(const ty_session *s)
{
    return ty_company_local_rank(s->job->company) == 0;
}

static void write_part(ty_session *s, int64_t step, ty_arena *a, shard_news *news)
{
    ty_error err = {0};
    ty_named_tensor *parts = TY_NEW_ARRAY(a, ty_named_tensor, s->n_state + 1);
    size_t n = ty_checkpoint_parts(s->state, s->n_state, s->checkpoints.rank, s->checkpoints.world_size, parts);
    *news = (shard_news){0};
    news->failed = ty_checkpoint_write_rank(&s->checkpoints, step, parts, n, &news->file, &err) < 0;
    if (news->failed)
        snprintf(news->text, sizeof news->text, "%.199s", err.message);
}

/* Rank 0 first: others may have the same folder, and find nothing left to do. */
static int commit(ty_session *s, const ty_train_state *state, const ty_manifest_file *files, ty_error *err)
{
    ty_company *c = s->job->company;
    ty_error own = {0};
    shard_news news = {0};
    if (ty_company_leads(c) && ty_checkpoint_commit(&s->checkpoints, state, files, &own) < 0) {
        news.failed = 1;
        snprintf(news.text, sizeof news.text, "%.199s", own.message);
    }
    if (ty_company_share(c, "manifest", &news, sizeof news, err) < 0)
        return -1;
    if (news.failed)
        return ty_error_set(err, TY_E_CHECKPOINT, "%s", news.text);
    if (!ty_company_leads(c) && is_first_of_host(s) && ty_checkpoint_commit(&s->checkpoints, state, files, &own) < 0)
        ty_log_warning("checkpoint", "%s", own.message);
    return 0;
}

static int retain(ty_session *s, int64_t step, ty_error *err)
{
    ty_company *c = s->job->company;
    ty_error own = {0};
    if (ty_company_leads(c) && ty_checkpoints_retain(&s->checkpoints, step, &own) < 0)
        ty_log_warning("checkpoint", "an older one could not be deleted: %s", own.message);
    if (ty_company_meet(c, "checkpoint", err) < 0)
        return -1;
    if (!ty_company_leads(c) && is_first_of_host(s) && ty_checkpoints_retain(&s->checkpoints, step, &own) < 0)
        ty_log_debug("checkpoint", "an older one could not be deleted: %s", own.message);
    return 0;
}

static int save_together(ty_session *s, const ty_train_state *state, ty_arena *a, ty_error *err)
{
    ty_company *c = s->job->company;
    ty_train_state of_rank_0 = *state;
    int n = ty_company_size(c), failed = -1;
    shard_news mine, *all = TY_NEW_ARRAY(a, shard_news, n);
    ty_manifest_file *files = TY_NEW_ARRAY(a, ty_manifest_file, n);
    write_part(s, state->step, a, &mine);
    if (ty_company_gather(c, "parts", &mine, sizeof mine, all, err) < 0 ||
        ty_company_share(c, "state", &of_rank_0, sizeof of_rank_0, err) < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        files[i] = all[i].file;
        failed = failed < 0 && all[i].failed ? i : failed;
    }
    if (failed >= 0)
        return ty_error_set(err, TY_E_CHECKPOINT, "rank %d could not write its part: %s", failed, all[failed].text);
    return commit(s, &of_rank_0, files, err);
}

int ty_session_save_parts(ty_session *s, const ty_train_state *state, ty_error *err)
{
    ty_checkpoints *c = &s->checkpoints;
    ty_arena arena;
    ty_arena_init(&arena);
    int rc = save_together(s, state, &arena, err);
    ty_arena_fini(&arena);
    if (rc < 0) {
        ty_checkpoint_abandon(c, state->step);
        c->n_failed++;
        return ty_error_wrap(err, "checkpoint at step %" PRId64, state->step);
    }
    c->n_failed = 0;
    return retain(s, state->step, err);
}

/* ---- restoring ---- */

/* What rank 0 asks the others for. */
typedef struct shard_question {
    int32_t file; /* -1: no more questions */
    int32_t world_size;
    int64_t step;
    ty_manifest_file expected;
    char folder[64]; /* "step-00001200" */
} shard_question;

typedef struct shard_answer {
    int32_t failed, fault;
    char text[200];
} shard_answer;

/* The first rank behind `after` that has the file in its folder; the number of ranks: nobody has. */
static int find_owner(ty_session *s, const shard_question *q, const char *path, int64_t after, int64_t *owner,
                      ty_error *err)
{
    ty_company *c = s->job->company;
    char file[PATH_MAX + 40];
    snprintf(file, sizeof file, "%s/%s", path, q->expected.name);
    bool is_here = ty_company_rank(c) > after && ty_file_size(file) == (int64_t)q->expected.n_bytes;
    *owner = is_here ? ty_company_rank(c) : ty_company_size(c);
    return ty_company_least(c, "checkpoint", owner, err);
}

static void read_part(const shard_question *q, const char *path, const ty_named_tensor *parts, size_t n,
                      shard_answer *answer)
{
    const ty_rankfile_id id = {.rank = q->file, .world_size = q->world_size, .step = q->step};
    ty_rankfile_fault fault = TY_RANKFILE_FINE;
    ty_error err = {0};
    answer->failed = ty_rankfile_read(path, &id, &q->expected, parts, n, &fault, &err) < 0;
    answer->fault = (int32_t)fault;
    snprintf(answer->text, sizeof answer->text, "%.199s", answer->failed ? err.message : "");
}

/* By all ranks, with the same question; the parts' numbers are then those of the file on all of them. */
static int answer_together(ty_session *s, const shard_question *q, const ty_named_tensor *parts, size_t n,
                           ty_rankfile_fault *fault, ty_error *err)
{
    ty_company *c = s->job->company;
    char path[PATH_MAX];
    shard_answer answer = {.failed = 1, .fault = TY_RANKFILE_DAMAGED, .text = "no host has it"};
    snprintf(path, sizeof path, "%s/%s", s->checkpoints.dir, q->folder);
    for (int64_t owner = -1;;) {
        if (find_owner(s, q, path, owner, &owner, err) < 0)
            return -1;
        if (owner == ty_company_size(c))
            break;
        if (owner == ty_company_rank(c))
            read_part(q, path, parts, n, &answer);
        if (ty_company_share_of(c, (int)owner, "part", &answer, sizeof answer, err) < 0)
            return -1;
        for (size_t i = 0; i < n && !answer.failed; i++)
            if (ty_company_share_of(c, (int)owner, parts[i].name, parts[i].data, ty_type_bytes(&parts[i].type), err) <
                0)
                return -1;
        if (!answer.failed)
            return 0;
        if (answer.fault == TY_RANKFILE_MISMATCH)
            break;
    }
    *fault = (ty_rankfile_fault)answer.fault;
    return ty_error_set(err, TY_E_CHECKPOINT, "%s: %s", q->expected.name, answer.text);
}

static int fetch_part(void *ctx, const char *path, const ty_manifest *m, int file, const ty_named_tensor *parts,
                      size_t n_parts, ty_rankfile_fault *fault, ty_error *err)
{
    ty_session *s = ctx;
    const char *slash = strrchr(path, '/');
    shard_question q = {.file = file, .world_size = m->world_size, .step = m->state.step, .expected = m->files[file]};
    snprintf(q.folder, sizeof q.folder, "%s", slash ? slash + 1 : path);
    *fault = TY_RANKFILE_FINE; /* unless it is the file's: a rank that is gone damages no checkpoint */
    return ty_company_share(s->job->company, "question", &q, sizeof q, err) < 0
               ? -1
               : answer_together(s, &q, parts, n_parts, fault, err);
}

void ty_session_fetch_parts(ty_session *s)
{
    if (!s->job->company)
        return;
    s->checkpoints.fetch = fetch_part;
    s->checkpoints.fetch_ctx = s;
}

int ty_session_end_questions(ty_session *s, ty_error *err)
{
    shard_question none = {.file = -1};
    return ty_company_share(s->job->company, "question", &none, sizeof none, err);
}

int ty_session_answer_questions(ty_session *s, ty_error *err)
{
    ty_named_tensor *parts = TY_NEW_ARRAY(&s->arena, ty_named_tensor, s->n_state + 1);
    for (;;) {
        shard_question q = {.file = -1};
        ty_rankfile_fault fault = TY_RANKFILE_FINE;
        ty_error wrong = {0}; /* rank 0 has it too, and decides what follows */
        if (ty_company_share(s->job->company, "question", &q, sizeof q, err) < 0)
            return -1;
        if (q.file < 0)
            return 0;
        size_t n = ty_checkpoint_parts(s->state, s->n_state, q.file, q.world_size, parts);
        if (answer_together(s, &q, parts, n, &fault, &wrong) < 0 && fault == TY_RANKFILE_FINE) {
            *err = wrong; /* not the file but the company is at fault */
            return -1;
        }
    }
}
