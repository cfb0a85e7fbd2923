/* data_plan.c - a sentence and a reason for each stage. */
#include "entrypoint/data_plan.h"

#include "container/input/sampler.h"

#include <stdio.h>
#include <string.h>

static void plan_say(ty_data_plan_stage *s, const char *name, const char *why)
{
    s->name = name;
    snprintf(s->why, sizeof s->why, "%s", why);
}

static void plan_shard(const ty_data_plan_facts *f, ty_data_plan *p, ty_data_plan_stage *s)
{
    const ty_place *at = &f->part.place;
    plan_say(s, "shard", at->ranks > 1 ? p->part.why : "there is nobody to share them with");
    if (p->part.n == 1)
        snprintf(s->what, sizeof s->what, "nothing is left out: %s",
                 at->ranks > 1 ? "all that the rank reads" : "one rank");
    else if (p->streams && p->part.by_file)
        snprintf(s->what, sizeof s->what, "files %lld, %lld, %lld ... of %d", (long long)p->part.index,
                 (long long)(p->part.index + p->part.n), (long long)(p->part.index + 2 * p->part.n), f->part.n_files);
    else
        snprintf(s->what, sizeof s->what, "rows of each batch: rank %d takes part %lld of %lld", at->rank,
                 (long long)p->part.index + 1, (long long)p->part.n);
    if (!p->streams && p->part.n > 1)
        snprintf(s->why, sizeof s->why,
                 "%s, and numbers are divided, not bytes: the same batches on any number of ranks",
                 f->part.sharded ? "each host has files of its own" : "all ranks see the same data");
}

static void plan_cache(const ty_data_plan_facts *f, const ty_data_plan *p, ty_data_plan_stage *s)
{
    bool is_pipe = f->access.mode == TY_JOB_PIPE;
    if (!p->streams && f->is_table) {
        snprintf(s->what, sizeof s->what, "parsed columns, in memory");
        plan_say(s, "cache", "text is parsed once, when it is opened and checked, and not in every epoch");
    } else if (!p->streams && f->access.is_decoded) {
        snprintf(s->what, sizeof s->what, "decoded columns, in memory");
        plan_say(s, "cache", "pages are decoded once, and samples are found by number");
    } else if (!p->streams) {
        snprintf(s->what, sizeof s->what,
                 f->access.mode == TY_JOB_FAST_FILE ? "files as they are, in memory" : "files as they are, mapped");
        plan_say(s, "cache", "records are decoded faster than a cache of decoded ones could be read");
    } else {
        snprintf(s->what, sizeof s->what, "none");
        plan_say(s, "cache",
                 is_pipe ? "the platform sends each epoch anew"
                         : "the data need not fit in memory: each epoch reads them");
    }
}

static void plan_shuffle(const ty_data_plan_facts *f, ty_data_plan *p, ty_data_plan_stage *s)
{
    if (!f->shuffles) {
        snprintf(s->what, sizeof s->what, "none");
        plan_say(s, "shuffle", f->is_train ? "the recipe says so" : "evaluation needs none");
    } else if (p->streams) {
        snprintf(s->what, sizeof s->what, "a buffer of %lld samples", (long long)f->shuffle_rows);
        plan_say(
            s, "shuffle",
            "a stream has no numbers to permute; behind the parts by file, before rows are divided and batches cut");
        p->order_bytes = f->shuffle_limit;
    } else {
        snprintf(s->what, sizeof s->what, "all samples, a new permutation of numbers each epoch");
        plan_say(s, "shuffle", "before batches are cut, so that batches differ; nothing is copied but numbers");
        p->order_bytes = ty_sampler_table_bytes(f->samples);
    }
}

static void plan_batch(const ty_data_plan_facts *f, const ty_data_plan *p, ty_data_plan_stage *s)
{
    static const char *const tails[] = {"the last one is left out where it is not full",
                                        "the last one is filled up with samples from the start",
                                        "the last one is filled up with rows that do not count"};
    const char *tail = tails[f->is_train ? f->remainder : TY_REMAINDER_JOIN];
    if (p->rank_rows > 0)
        snprintf(s->what, sizeof s->what, "%lld rows on each rank; %s", (long long)p->rank_rows, tail);
    else
        snprintf(s->what, sizeof s->what, "as many rows as fit (batch_size: auto); %s", tail);
    plan_say(s, "batch", "before parsing: numbers are grouped, not tensors, and a batch is parsed at once");
}

static void plan_parse(const ty_data_plan_facts *f, const ty_data_plan *p, ty_data_plan_stage *s)
{
    if (f->workers == f->max_workers)
        snprintf(s->what, sizeof s->what, "%d thread%s (data_threads)", f->workers, f->workers == 1 ? "" : "s");
    else
        snprintf(s->what, sizeof s->what, "%d to %d threads, by who waits for whom", f->workers, f->max_workers);
    plan_say(s, "parse",
             p->streams
                 ? "whole batches side by side, straight to where the step reads them; each value is checked here"
                 : "whole batches side by side, straight to where the step reads them");
}

static void plan_repeat(const ty_data_plan_facts *f, const ty_data_plan *p, ty_data_plan_stage *s)
{
    if (!f->is_train)
        snprintf(s->what, sizeof s->what, "once an evaluation");
    else if (f->access.mode == TY_JOB_PIPE)
        snprintf(s->what, sizeof s->what, "%lld epoch%s, a FIFO each", (long long)f->epochs, f->epochs == 1 ? "" : "s");
    else
        snprintf(s->what, sizeof s->what, "%lld epoch%s", (long long)f->epochs, f->epochs == 1 ? "" : "s");
    plan_say(s, "repeat",
             p->is_agreed ? "behind batches: no batch mixes epochs, and ranks agree on where one ends"
                          : "behind batches: no batch mixes epochs");
}

static void plan_prefetch(const ty_data_plan_facts *f, ty_data_plan *p, ty_data_plan_stage *s)
{
    p->ring_bytes = (uint64_t)p->rank_rows * f->row_bytes * (uint64_t)f->depth;
    p->block_bytes = p->streams ? f->block_bytes : 0;
    p->work_bytes = f->work_bytes * (uint64_t)f->max_workers;
    snprintf(s->what, sizeof s->what, "a ring of %d batches", f->depth);
    plan_say(s, "prefetch", "last, so that all before it runs beside the step, across the ends of epochs too");
}

/* Ranks that share data divide global batches, which are as many for each; else they agree on the least. */
static void plan_count(const ty_data_plan_facts *f, ty_data_plan *p)
{
    int64_t global = f->batch_size, samples = f->samples;
    int ranks = f->part.place.ranks > 0 ? f->part.place.ranks : 1;
    p->rank_rows = global > 0 ? global / ranks : 0;
    p->is_agreed = ranks > 1 && (p->streams ? p->part.is_uneven : f->part.sharded);
    if (samples <= 0 || p->rank_rows <= 0)
        return;
    bool drops = f->is_train && f->remainder == TY_REMAINDER_DROP;
    global = p->rank_rows * ranks;
    p->batches = drops ? samples / global : (samples + global - 1) / global;
}

static void plan_problem(const ty_data_plan_facts *f, ty_data_plan *p)
{
    const ty_place *at = &f->part.place;
    int ranks = at->ranks > 0 ? at->ranks : 1;
    if (f->access.mode == TY_JOB_PIPE && at->locals > 1 && f->n_alike > 1 && f->n_alike < at->locals)
        snprintf(p->problem, sizeof p->problem,
                 "%d processes a host and %d channels: a FIFO has one reader, so each process needs a channel",
                 at->locals, f->n_alike);
    else if (f->batch_size > 0 && f->batch_size % ranks != 0)
        snprintf(p->problem, sizeof p->problem, "batch_size %lld cannot be divided among %d ranks",
                 (long long)f->batch_size, ranks);
    else if (f->is_train && f->samples > 0 && f->batch_size > 0 && p->batches == 0)
        snprintf(p->problem, sizeof p->problem, "%lld samples are fewer than a batch of %lld", (long long)f->samples,
                 (long long)f->batch_size);
}

/* Without a stream ranks take rows of each global batch: of all ranks, or of their host where hosts have their own. */
static ty_stream_part plan_part(const ty_data_plan_facts *f, bool streams)
{
    const ty_place *at = &f->part.place;
    ty_stream_part part = ty_stream_part_of(&f->part);
    if (!streams) {
        part.by_file = false;
        part.index = f->part.sharded ? at->local : at->rank;
        part.n = f->part.sharded ? at->locals : at->ranks;
    }
    if (part.n < 1)
        part.n = 1;
    return part;
}

void ty_data_plan_make(const ty_data_plan_facts *f, ty_data_plan *p)
{
    *p = (ty_data_plan){.problem = ""};
    p->streams = ty_access_streams(&f->access, &p->why_access);
    p->part = plan_part(f, p->streams);
    plan_count(f, p);
    ty_data_plan_stage *s = p->stage;
    plan_shard(f, p, s++);
    plan_cache(f, p, s++);
    plan_shuffle(f, p, s++);
    plan_batch(f, p, s++);
    plan_parse(f, p, s++);
    plan_repeat(f, p, s++);
    plan_prefetch(f, p, s++);
    if (p->streams && !p->part.by_file && p->part.n > 1) { /* rows are divided behind the buffer */
        ty_data_plan_stage shard = p->stage[0];
        p->stage[0] = p->stage[1];
        p->stage[1] = p->stage[2];
        p->stage[2] = shard;
    }
    plan_problem(f, p);
}
