/* chunks.c - the chunks of a file, parsed side by side and put together in order; or one after the other by one reader,
 * who need not know where records end before he is there. */
#include "container/input/table/table.h"

#include "base/crew.h"
#include "base/pages.h"

#include <stdlib.h>
#include <string.h>

static void chunk_job(const ty_job *job)
{
    table_parse(job->from, job->to);
}

static int chunk_no_memory(int64_t n, ty_error *err)
{
    return ty_error_set(err, TY_E_LIMIT, "no memory to read %lld pieces of a file", (long long)n);
}

static int chunks_parse(const table_impl *t, table_chunk *chunk, int64_t n, int n_threads, ty_error *err)
{
    ty_job *jobs = calloc((size_t)n, sizeof *jobs);
    for (int64_t i = 0; jobs && i < n; i++)
        jobs[i] = (ty_job){.run = chunk_job, .to = &chunk[i], .from = t};
    int others = n_threads - 1 < n - 1 ? n_threads - 1 : (int)n - 1;
    ty_crew *crew = jobs ? ty_crew_start(jobs, (int)n, others) : NULL;
    ty_crew_end(crew);
    free(jobs);
    return crew ? 0 : chunk_no_memory(n, err);
}

/* ---- together ---- */

static int chunk_add_jump(table_file *file, int64_t sample, int64_t line, ty_error *err)
{
    if (file->n_jumps > 0) {
        const table_jump *last = &file->jump[file->n_jumps - 1];
        if (last->line + (sample - last->sample) == line)
            return 0;
    }
    if (file->n_jumps == file->cap_jumps) {
        int64_t cap = file->cap_jumps == 0 ? 4 : file->cap_jumps * 2;
        table_jump *grown = realloc(file->jump, (size_t)cap * sizeof *grown);
        if (grown == NULL)
            return ty_error_set(err, TY_E_LIMIT, "no memory for the line numbers of %lld records", (long long)cap);
        file->jump = grown;
        file->cap_jumps = cap;
    }
    file->jump[file->n_jumps++] = (table_jump){sample, line};
    return 0;
}

/* The chunk's rows become the next samples. */
static int chunk_take(table_impl *t, table_file *file, const table_chunk *chunk, ty_error *err)
{
    int64_t first = t->ds->n_samples;
    for (int i = 0; i < t->n_fields; i++) {
        size_t row = t->ds->field[i].row_bytes;
        if (chunk->first != first)
            memmove(t->field[i].data + (size_t)first * row, t->field[i].data + (size_t)chunk->first * row,
                    (size_t)chunk->n_rows * row);
        ty_field_info_take(&t->ds->field[i], &chunk->seen[i], first);
    }
    for (int64_t i = 0; i < chunk->n_jumps; i++)
        if (chunk_add_jump(file, first + chunk->jump[i].sample, chunk->jump[i].line, err) < 0)
            return -1;
    t->ds->n_samples += chunk->n_rows;
    return 0;
}

/* All of them are reserved one behind the other, from the samples that are there. */
static int chunks_reserve(table_impl *t, table_chunk *chunk, int64_t n, ty_error *err)
{
    int64_t rows = t->ds->n_samples;
    for (int64_t i = 0; i < n; i++) {
        chunk[i].first = rows;
        rows += chunk[i].bound;
    }
    return rows > t->capacity ? table_reserve(t, rows, err) : 0;
}

/* Takes what chunks found, up to the first that did not end where it should: *rest is where that one ended, or NULL. */
static int chunks_take(table_impl *t, table_file *file, const table_chunk *chunk, int64_t n, const table_chunk **rest,
                       ty_error *err)
{
    *rest = NULL;
    for (int64_t i = 0; i < n; i++) {
        const table_chunk *c = &chunk[i];
        if (c->rc < 0) {
            *err = c->error;
            return -1;
        }
        if (chunk_take(t, file, c, err) < 0)
            return -1;
        if (c->at != c->to) {
            *rest = c;
            return 0;
        }
    }
    return 0;
}

/* ---- one reader, piece by piece ---- */

enum { TURN_BYTES = 4 << 20, TURN_FIRST = 128 << 10, TURN_AHEAD = 16 };

/* Where one reader is. */
typedef struct turn {
    const char *at;
    int64_t line;
    int64_t n_bytes, n_rows; /* read */
    int64_t present;         /* samples up to there have memory */
} turn;

/* Rows of so many bytes, if they are like those before. */
static int64_t turn_guess(const turn *r, int64_t bytes)
{
    return r->n_bytes > 0 ? (int64_t)((double)r->n_rows / (double)r->n_bytes * (double)bytes) : 0;
}

/* Room for `bound` rows, and for all that are to be expected: their memory a good deal at a time. */
static int turn_reserve(table_impl *t, turn *r, const char *end, int64_t bound, ty_error *err)
{
    int64_t n = t->ds->n_samples, guess = turn_guess(r, end - r->at);
    if (n + bound > t->capacity && table_reserve(t, n + bound + guess + guess / 32, err) < 0)
        return -1;
    int64_t piece = turn_guess(r, TURN_BYTES), from = r->present > n ? r->present : n;
    if (n + piece <= r->present || guess == 0)
        return 0;
    int64_t more = guess < TURN_AHEAD * piece ? guess : TURN_AHEAD * piece;
    r->present = n + more < t->capacity ? n + more : t->capacity;
    for (int i = 0; i < t->n_fields; i++) {
        size_t row = t->ds->field[i].row_bytes;
        ty_pages_expect_update(t->field[i].data + (size_t)from * row, (size_t)(r->present - from) * row);
    }
    return 0;
}

/* All records from `at` on, `most` of them if that is not 0, by this thread. */
static int chunks_in_turn(table_impl *t, table_file *file, const ty_csv *c, int64_t most, ty_error *err)
{
    turn r = {.at = c->at, .line = c->line};
    while (r.at < c->end && (most == 0 || r.n_rows < most)) {
        int64_t piece = r.n_bytes > 0 ? TURN_BYTES : TURN_FIRST;
        const char *to = c->end - r.at > piece ? r.at + piece : c->end;
        int64_t bound = (to - r.at) / t->n_columns + 1;
        bound = most > 0 && most - r.n_rows < bound ? most - r.n_rows : bound;
        if (turn_reserve(t, &r, c->end, bound, err) < 0)
            return -1;
        table_chunk chunk = {.from = r.at, .to = to, .end = c->end, .name = c->name, .line = r.line, .bound = bound};
        chunk.first = t->ds->n_samples;
        chunk.goes_on = true;
        table_parse(t, &chunk);
        int rc = chunk.rc;
        if (rc < 0)
            *err = chunk.error;
        else
            rc = chunk_take(t, file, &chunk, err);
        r.n_bytes += chunk.at - r.at;
        r.n_rows += chunk.n_rows;
        r.at = chunk.at;
        r.line = chunk.line_at;
        table_chunk_fini(&chunk);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* ---- a file ---- */

static int chunks_side_by_side(table_impl *t, table_file *file, const ty_csv *c, int n_threads, ty_error *err)
{
    table_chunk *chunk;
    const table_chunk *rest = NULL;
    int64_t n = table_split(c->at, c->end, c->line, t->n_columns, TABLE_CHUNK_BYTES, &chunk);
    for (int64_t i = 0; i < n; i++)
        chunk[i].name = c->name;
    int rc = n < 0 ? chunk_no_memory(1, err) : chunks_reserve(t, chunk, n, err);
    if (rc == 0 && n > 0)
        rc = chunks_parse(t, chunk, n, n_threads, err);
    if (rc == 0)
        rc = chunks_take(t, file, chunk, n, &rest, err);
    if (rc == 0 && rest) { /* quotes did not tell the truth */
        ty_csv from = *c;
        from.at = rest->at;
        from.line = rest->line_at;
        rc = chunks_in_turn(t, file, &from, 0, err);
    }
    for (int64_t i = 0; i < n; i++)
        table_chunk_fini(&chunk[i]);
    free(chunk);
    return rc;
}

int table_load_records(table_impl *t, table_file *file, const ty_csv *c, int64_t most, int n_threads, ty_error *err)
{
    bool one_reader = t->ds->bad.skip || t->learns; /* who counts, or learns, in order */
    if (one_reader || most > 0 || n_threads == 1 || c->end - c->at <= TABLE_CHUNK_BYTES)
        return chunks_in_turn(t, file, c, most, err);
    return chunks_side_by_side(t, file, c, n_threads, err);
}
