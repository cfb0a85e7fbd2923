/* session_ring.c - the rings of batches of a session: threads that decode, depth, memory, and what waits for what. */
#include "base/log.h"
#include "base/quantity.h"
#include "entrypoint/local_process.h"
#include "entrypoint/memory.h"
#include "entrypoint/session.h"

#include <stdio.h>
#include <stdlib.h>

/* More than that many threads would have no batch each in the largest ring. */
enum { RING_MOST_WORKERS = 14, RING_LEAST_DEPTH = 3, RING_MOST_DEPTH = 16 };
#define RING_MEMORY_SHARE 0.1 /* of the run's memory, where the recipe does not say it */

/* Of what the recipe gives the input, for the shuffle buffer of a stream, and for an evaluation between steps. They
 * depend on the recipe alone, since the order of a stream depends on what its buffer holds. */
enum { SHUFFLE_PART = 2, EVALUATION_PART = 4 };

uint64_t ty_input_shuffle_bytes(uint64_t memory_said)
{
    return memory_said / SHUFFLE_PART;
}

uint64_t ty_input_ring_bytes(const ty_recipe *r, bool is_evaluation, uint64_t kept)
{
    uint64_t said = r->data_memory_bytes, evaluation = r->validation.given ? said / EVALUATION_PART : 0;
    uint64_t mine = is_evaluation ? evaluation : said - evaluation;
    return said == 0 ? 0 : mine > kept ? mine - kept : 1;
}

/* Cores of this rank, which decoding and computing share: one waits while the other works. */
static int ring_cores(const ty_session *s)
{
    const char *said = getenv("OMP_NUM_THREADS");
    int cores = ty_local_cores(), said_cores = said ? atoi(said) : 0;
    int locals = ty_company_local_size(s->job->company);
    if (said_cores > 0)
        return said_cores < cores ? said_cores : cores;
    return locals > 1 && cores > locals ? cores / locals : cores;
}

int ty_ring_workers(int cores)
{
    return cores < RING_MOST_WORKERS ? cores : RING_MOST_WORKERS;
}

int ty_session_max_workers(const ty_session *s)
{
    if (s->recipe.data_threads > 0)
        return (int)s->recipe.data_threads;
    return ty_ring_workers(ring_cores(s));
}

int ty_ring_depth(int max_workers, uint64_t batch_bytes, uint64_t memory_said, uint64_t memory_limit)
{
    uint64_t memory = memory_said ? memory_said : (uint64_t)(RING_MEMORY_SHARE * (double)memory_limit);
    int depth = max_workers > 1 ? max_workers + 2 : RING_LEAST_DEPTH, least = memory_said ? 2 : RING_LEAST_DEPTH;
    uint64_t fit = batch_bytes > 0 ? memory / batch_bytes : RING_MOST_DEPTH;
    depth = depth > RING_MOST_DEPTH ? RING_MOST_DEPTH : depth;
    depth = fit < (uint64_t)depth ? (int)fit : depth;
    return depth < least ? least : depth;
}

int ty_session_ring_depth(const ty_session *s, uint64_t batch_bytes)
{
    const char *why;
    return ty_ring_depth(ty_session_max_workers(s), batch_bytes, s->recipe.data_memory_bytes, ty_memory_limit(&why));
}

uint64_t ty_session_batch_bytes(const ty_dataset *d, int64_t rows)
{
    uint64_t row = sizeof(int64_t); /* the sample's number */
    for (int i = 0; d && i < d->n_fields; i++)
        row += ty_type_bytes(&d->field[i].type);
    return row * (uint64_t)rows;
}

/* That the tuner may come to. */
static int ring_most_depth(const ty_session *s, uint64_t batch_bytes)
{
    const char *why;
    uint64_t said = s->recipe.data_memory_bytes, memory = (uint64_t)(RING_MEMORY_SHARE * (double)ty_memory_limit(&why));
    uint64_t fit = batch_bytes > 0 ? (said ? said : memory) / batch_bytes : RING_MOST_DEPTH;
    return fit < RING_MOST_DEPTH ? (int)fit : RING_MOST_DEPTH;
}

/* Even without data_memory nobody means the batches alone to be more than there is: rows of LibSVM are as wide as the
 * largest index of the data says. */
static int check_room(const ty_dataset *d, int64_t rows, int depth, ty_error *err)
{
    const char *why;
    char batch_text[32], row_text[32], limit_text[32];
    uint64_t batch = ty_session_batch_bytes(d, rows), limit = ty_memory_limit(&why);
    if (limit == 0 || batch <= limit / (uint64_t)depth)
        return 0;
    ty_error_set(err, TY_E_LIMIT,
                 "%d batches of %s each, %lld rows of %s, are more than the memory of this run: %s (%s)", depth,
                 ty_bytes_text(batch, batch_text, sizeof batch_text), (long long)rows,
                 ty_bytes_text(ty_session_batch_bytes(d, 1), row_text, sizeof row_text),
                 ty_bytes_text(limit, limit_text, sizeof limit_text), why);
    return ty_error_help(err,
                         "take a smaller batch_size or narrower fields: of LibSVM's rows that are nearly all zeros the "
                         "entries as they stand, fields ids and values, each with max_length: N");
}

int ty_session_set_ring(ty_session *s, const ty_dataset *d, int64_t rows, ty_prefetch_config *c, ty_error *err)
{
    c->depth = ty_session_ring_depth(s, ty_session_batch_bytes(d, rows));
    c->max_depth = s->recipe.data_threads > 0 ? 0 : ring_most_depth(s, ty_session_batch_bytes(d, rows));
    c->max_workers = ty_session_max_workers(s);
    c->n_workers = s->recipe.data_threads > 0 ? c->max_workers : 1;
    c->memory_bytes = (size_t)ty_input_ring_bytes(&s->recipe, s->batches != NULL, 0);
    if (s->batches) { /* an evaluation: as many as training has come to */
        ty_prefetch_waits w;
        ty_prefetch_measure(s->batches, &w);
        c->n_workers = w.n_workers;
    }
    return check_room(d, rows, c->depth, err);
}

/* What the input takes at most, and of what that consists. */
static void tell_memory(const ty_session *s)
{
    const ty_session_stream *st = &s->train_stream;
    bool shuffles = st->is_on && st->order.shuffle_rows > 0;
    uint64_t shuffle = shuffles ? st->stream->memory_bytes : 0;
    uint64_t order = st->is_on || !s->recipe.train.shuffle ? 0 : ty_sampler_table_bytes(s->train->n_samples);
    const struct {
        const char *before, *of;
        uint64_t bytes;
    } part[] = {{"", "of batches", ty_prefetch_bytes(s->batches)},
                {"", "that threads decode in", ty_prefetch_work_bytes(s->batches)},
                {"", "of blocks that are read", st->feed ? st->feed->kept_bytes - shuffle : 0},
                {"up to ", "in the shuffle buffer", shuffle},
                {"", "for the order of all samples", order}};
    char line[400] = "", text[32];
    size_t n = 0;
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++)
        if (i == 0 || part[i].bytes > 0)
            n += (size_t)snprintf(line + n, sizeof line - n, "%s%s%s %s", i ? ", " : "", part[i].before,
                                  ty_bytes_text(part[i].bytes, text, sizeof text), part[i].of);
    if (s->recipe.data_memory_bytes)
        snprintf(line + n, sizeof line - n, ", of %s (data_memory)",
                 ty_bytes_text(s->recipe.data_memory_bytes, text, sizeof text));
    ty_log_info("input", "memory: %s", line);
}

void ty_session_tell_ring(ty_session *s)
{
    char text[32];
    int max = ty_prefetch_max_workers(s->batches), cores = ring_cores(s);
    s->tuner = (ty_tuner){.is_fixed = s->recipe.data_threads > 0};
    ty_log_info("input", "%s%d thread%s decode%s beside %d that compute, on %d core%s; a ring of %d batches, %s",
                s->tuner.is_fixed || max == 1 ? "" : "1 to ", max, max == 1 ? "" : "s", max == 1 ? "s" : "",
                s->recipe.threads > 0 ? (int)s->recipe.threads : cores, cores, cores == 1 ? "" : "s",
                ty_prefetch_depth(s->batches), ty_bytes_text(ty_prefetch_bytes(s->batches), text, sizeof text));
    tell_memory(s);
}

const char *ty_session_input_cause(const ty_session *s)
{
    ty_prefetch_waits w;
    if (!s->batches)
        return NULL;
    ty_prefetch_measure(s->batches, &w);
    return w.cause;
}
