/* rows.c - see rows.h. */
#include "container/input/parquet/rows.h"

#include "base/crew.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int parquet_find_column(const parquet_file *f, const char *name)
{
    size_t n = strlen(name);
    int bytes = -1;
    for (int i = 0; i < f->n_columns; i++) {
        if (strcmp(f->column[i].name, name) == 0)
            return i;
        if (strncmp(f->column[i].name, name, n) == 0 && strcmp(f->column[i].name + n, ".bytes") == 0)
            bytes = i;
    }
    return bytes;
}

/* A column of a row group. */
typedef struct rows_part {
    const parquet_opened *opened;
    int group, column;
    parquet_values *to;
    int path; /* number of the file */
    int of;   /* of the group among all */
} rows_part;

/* Memory that goes from one column to the next: allocating it anew costs more than decoding. */
typedef struct rows_pool {
    pthread_mutex_t lock;
    parquet_room *room; /* [n_rooms] that nobody uses */
    int n_rooms;
    parquet_values *spare; /* [n_spare] */
    int n_spare, most;
    int failed; /* the first part that has; -1: none */
    ty_error error;
} rows_pool;

static void rows_take(rows_pool *pool, parquet_room *room, parquet_values *v)
{
    pthread_mutex_lock(&pool->lock);
    *room = pool->n_rooms > 0 ? pool->room[--pool->n_rooms] : (parquet_room){0};
    *v = pool->n_spare > 0 ? pool->spare[--pool->n_spare] : (parquet_values){0};
    pthread_mutex_unlock(&pool->lock);
}

static void rows_put(rows_pool *pool, const parquet_room *room)
{
    pthread_mutex_lock(&pool->lock);
    pool->room[pool->n_rooms++] = *room;
    pthread_mutex_unlock(&pool->lock);
}

static int rows_pool_new(rows_pool *pool, int n_threads, int n_columns)
{
    *pool = (rows_pool){.lock = PTHREAD_MUTEX_INITIALIZER, .failed = -1, .most = n_columns * (n_threads + 1)};
    pool->room = calloc((size_t)n_threads + 1, sizeof *pool->room);
    pool->spare = calloc((size_t)pool->most + 1, sizeof *pool->spare);
    return pool->room && pool->spare ? 0 : -1;
}

static void rows_pool_free(rows_pool *pool)
{
    for (int i = 0; i < pool->n_rooms; i++)
        parquet_room_fini(&pool->room[i]);
    for (int i = 0; i < pool->n_spare; i++)
        parquet_values_fini(&pool->spare[i]);
    free(pool->room);
    free(pool->spare);
    pthread_mutex_destroy(&pool->lock);
}

void parquet_rows_give_back(parquet_rows *r, int group)
{
    pthread_mutex_lock(&r->pool->lock);
    for (int c = 0; c < r->n_columns; c++) {
        parquet_values *v = &r->group[group].value[c];
        if (r->pool->n_spare < r->pool->most)
            r->pool->spare[r->pool->n_spare++] = *v;
        else
            parquet_values_fini(v);
        *v = (parquet_values){0};
    }
    pthread_mutex_unlock(&r->pool->lock);
}

static void rows_note_error(parquet_rows *r, int part, const ty_error *error)
{
    pthread_mutex_lock(&r->pool->lock);
    if (r->pool->failed < 0 || part < r->pool->failed) {
        r->pool->failed = part;
        r->pool->error = *error;
    }
    pthread_mutex_unlock(&r->pool->lock);
    atomic_store(&r->failed, true);
}

static void rows_run(const ty_job *job)
{
    rows_part *p = job->to;
    parquet_rows *r = job->shared;
    parquet_room room;
    rows_take(r->pool, &room, p->to);
    ty_error error = {0};
    int rc = parquet_opened_read(p->opened, p->group, p->column, 0, &room, p->to, &error);
    rows_put(r->pool, &room);
    if (rc < 0)
        rows_note_error(r, (int)(p - r->part), &error);
    if (atomic_fetch_sub(&r->group[p->of].left, 1) == 1 && r->done && !atomic_load(&r->failed))
        r->done(r->ctx, p->of);
}

static const char *rows_what(parquet_form f)
{
    return f == PARQUET_AS_BYTES ? "texts" : "numbers";
}

int parquet_match_column(const parquet_file *f, const parquet_column *wanted, const char *like, ty_error *err)
{
    int k = parquet_find_column(f, wanted->name);
    if (k < 0)
        return ty_error_set(err, TY_E_DATA, "the file has no column \"%s\", which \"%s\" has", wanted->name, like);
    const parquet_column *found = &f->column[k];
    bool alike = (wanted->form == PARQUET_AS_BYTES) == (found->form == PARQUET_AS_BYTES) &&
                 (wanted->max_rep > 0) == (found->max_rep > 0);
    if (alike)
        return k;
    return ty_error_set(err, TY_E_DATA, "column \"%s\" holds %s%s here, and %s%s in \"%s\"", wanted->name,
                        found->max_rep > 0 ? "lists of " : "", rows_what(found->form),
                        wanted->max_rep > 0 ? "lists of " : "", rows_what(wanted->form), like);
}

parquet_form parquet_join(parquet_form a, parquet_form b)
{
    bool whole = a <= PARQUET_AS_I64 && b <= PARQUET_AS_I64;
    return a == b ? a : whole ? PARQUET_AS_I64 : PARQUET_AS_F64;
}

/* Row groups that have rows, and what is to be read of each. */
int parquet_rows_plan(parquet_rows *r, ty_arena *a, ty_error *err)
{
    int64_t n_groups = 0;
    r->n_groups = r->n_parts = 0;
    r->n_rows = 0;
    for (int i = 0; i < r->n_files; i++)
        n_groups += r->opened[i].file.n_groups;
    if (n_groups * (r->n_columns + 1) >= INT_MAX)
        return ty_error_set(err, TY_E_LIMIT, "%lld row groups of %d columns are too many", (long long)n_groups,
                            r->n_columns);
    r->group = TY_NEW_ARRAY(a, rows_group, n_groups + 1);
    r->part = TY_NEW_ARRAY(a, rows_part, n_groups * r->n_columns + 1);
    r->form = TY_NEW_ARRAY(a, parquet_form, r->n_columns + 1);
    for (int c = 0; c < r->n_columns; c++)
        r->form[c] = r->column[c]->form;
    for (int i = 0; i < (r->first_only ? 1 : r->n_files); i++)
        for (int g = 0; g < r->opened[i].file.n_groups; g++) {
            const parquet_group *from = &r->opened[i].file.group[g];
            if (from->n_rows == 0 || (r->first_only && r->n_groups == 1))
                continue;
            rows_group *to = &r->group[r->n_groups++];
            to->first = r->n_rows;
            to->n = from->n_rows;
            to->value = TY_NEW_ARRAY(a, parquet_values, r->n_columns + 1);
            to->left = r->n_columns;
            r->n_rows += from->n_rows;
            for (int c = 0; c < r->n_columns; c++) {
                int k = parquet_match_column(&r->opened[i].file, r->column[c], r->path[0], err);
                if (k < 0)
                    return ty_error_at(err, "%s", r->path[i]);
                r->form[c] = parquet_join(r->form[c], r->opened[i].file.column[k].form);
                r->part[r->n_parts++] = (rows_part){.opened = &r->opened[i],
                                                    .group = g,
                                                    .column = k,
                                                    .to = &to->value[c],
                                                    .path = i,
                                                    .of = r->n_groups - 1};
            }
        }
    return 0;
}

static void rows_look(const parquet_rows *r, rows_group *g, ty_arena *a)
{
    g->plain = TY_NEW_ARRAY(a, const void *, r->n_columns + 1);
    for (int c = 0; c < r->n_columns; c++) {
        const parquet_values *v = &g->value[c];
        g->has_nulls |= v->null != NULL;
        if (!v->null && !v->first && v->form == r->form[c])
            g->plain[c] = v->v;
    }
}

int parquet_rows_read(parquet_rows *r, int n_threads, ty_arena *a, ty_error *err)
{
    rows_part *parts = r->part;
    int n = r->n_parts, rc = 0;
    rows_pool pool;
    r->failed = false;
    r->pool = &pool;
    n_threads = n_threads > n ? n + 1 : n_threads;
    ty_job *jobs = calloc((size_t)n + 1, sizeof *jobs);
    bool has_pool = rows_pool_new(&pool, n_threads, r->n_columns) == 0;
    for (int i = 0; jobs && i < n; i++)
        jobs[i] = (ty_job){.run = rows_run, .to = &parts[i], .shared = r};
    ty_crew *crew = jobs && has_pool ? ty_crew_start(jobs, n, n_threads - 1) : NULL;
    ty_crew_end(crew);
    rows_pool_free(&pool);
    r->pool = NULL;
    free(jobs);
    if (crew == NULL)
        rc = ty_error_set(err, TY_E_LIMIT, "no memory for %d columns of row groups", n);
    if (rc == 0 && pool.failed >= 0) {
        if (err)
            *err = pool.error;
        rc = ty_error_at(err, "%s", r->path[parts[pool.failed].path]);
    }
    for (int g = 0; rc == 0 && g < r->n_groups; g++)
        rows_look(r, &r->group[g], a);
    if (rc < 0)
        parquet_rows_fini(r);
    return rc;
}

void parquet_rows_fini(parquet_rows *r)
{
    for (int g = 0; g < r->n_groups; g++)
        for (int c = 0; c < r->n_columns; c++)
            parquet_values_fini(&r->group[g].value[c]);
    r->n_groups = 0;
}

const rows_group *parquet_rows_group(const parquet_rows *r, int64_t row)
{
    int low = 0, high = r->n_groups - 1;
    while (low < high) {
        int mid = (low + high + 1) / 2;
        if (r->group[mid].first <= row)
            low = mid;
        else
            high = mid - 1;
    }
    return &r->group[low];
}

void parquet_rows_place(const parquet_rows *r, int64_t row, char *out, size_t n)
{
    int file = 0;
    while (file < r->n_files - 1 && row >= r->opened[file].file.n_rows)
        row -= r->opened[file++].file.n_rows;
    snprintf(out, n, "%s: row %lld", r->path[file], (long long)row);
}

int64_t parquet_rows_bytes(const parquet_rows *r)
{
    int64_t n = 0;
    for (int g = 0; g < r->n_groups; g++)
        for (int c = 0; c < r->n_columns; c++) {
            const parquet_values *v = &r->group[g].value[c];
            n += v->room * (int64_t)(parquet_form_bytes(v->form) + (v->null != NULL)) + (int64_t)v->bytes_room +
                 (v->first ? (v->n_rows + 1) * (int64_t)sizeof *v->first : 0);
        }
    return n;
}

int64_t parquet_chunk_memory(const parquet_file *f, int group, int column)
{
    const parquet_column *c = &f->column[column];
    const parquet_chunk *chunk = &f->group[group].chunk[column];
    double n = (double)chunk->n_values * (double)parquet_form_bytes(c->form);
    n += c->form == PARQUET_AS_BYTES && chunk->n_unpacked > 0 ? (double)chunk->n_unpacked : 0.0;
    n += c->max_rep > 0 ? (double)f->group[group].n_rows * (double)sizeof(int64_t) : 0.0;
    return n < 0x1p62 ? (int64_t)n : (int64_t)1 << 62;
}

int64_t parquet_group_memory(const parquet_file *f, int group, const int *column, int n)
{
    int64_t bytes = 0;
    for (int c = 0; c < n; c++)
        if (__builtin_add_overflow(bytes, parquet_chunk_memory(f, group, column[c]), &bytes))
            return INT64_MAX;
    return bytes;
}
