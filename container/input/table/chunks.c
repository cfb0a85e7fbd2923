/* chunks.c - the chunks of a file, parsed side by side and put together in order. */
#include "container/input/table/table.h"

#include "base/crew.h"

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
        bool is_whole = c->at == c->to || (c->stops_at_bound && c->n_rows == c->bound);
        if (!is_whole) {
            *rest = c;
            return 0;
        }
    }
    return 0;
}

static int64_t chunk_line_of(const table_chunk *c)
{
    int64_t line = c->line;
    for (const char *p = c->from; (p = memchr(p, '\n', (size_t)(c->at - p))) != NULL; p++)
        line++;
    return line;
}

/* One reader from `from` on, where quotes did not tell the truth. */
static int chunks_rest(table_impl *t, table_file *file, const table_chunk *from, ty_error *err)
{
    table_chunk *chunk;
    const table_chunk *rest;
    int64_t n = table_split(from->at, from->end, chunk_line_of(from), t->n_columns, 0, &chunk);
    int rc = n < 0 ? chunk_no_memory(1, err) : chunks_reserve(t, chunk, n, err);
    for (int64_t i = 0; rc == 0 && i < n; i++) {
        chunk[i].name = from->name;
        table_parse(t, &chunk[i]);
    }
    rc = rc < 0 ? rc : chunks_take(t, file, chunk, n, &rest, err);
    if (rc == 0 && rest)
        rc = ty_error_set(err, TY_E_INTERNAL, "more records than lines were counted");
    for (int64_t i = 0; i < n; i++)
        table_chunk_fini(&chunk[i]);
    free(chunk);
    return rc;
}

int table_load_records(table_impl *t, table_file *file, const ty_csv *c, int64_t most, int n_threads, ty_error *err)
{
    table_chunk *chunk;
    const table_chunk *rest = NULL;
    const char *end = most > 0 ? c->at : c->end;
    bool one_reader = t->ds->bad.skip || t->learns; /* who counts, or learns, in order */
    size_t bytes = one_reader ? 0 : TABLE_CHUNK_BYTES;
    int64_t n = table_split(c->at, end, c->line, t->n_columns, bytes, &chunk);
    if (n >= 0 && most > 0) {
        n = 1;
        chunk[0] = (table_chunk){.from = c->at, .to = c->end, .end = c->end, .line = c->line, .bound = most};
        chunk[0].stops_at_bound = true;
    }
    for (int64_t i = 0; i < n; i++)
        chunk[i].name = c->name;
    int rc = n < 0 ? chunk_no_memory(1, err) : chunks_reserve(t, chunk, n, err);
    if (rc == 0 && n > 0)
        rc = chunks_parse(t, chunk, n, n_threads, err);
    if (rc == 0)
        rc = chunks_take(t, file, chunk, n, &rest, err);
    if (rc == 0 && rest)
        rc = chunks_rest(t, file, rest, err);
    for (int64_t i = 0; i < n; i++)
        table_chunk_fini(&chunk[i]);
    free(chunk);
    return rc;
}
