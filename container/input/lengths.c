/* lengths.c - see lengths.h. Threads take blocks of samples until none is left. */
#include "container/input/lengths.h"

#include "base/crew.h"
#include "container/input/map/map.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTHS_BLOCK = 256, LENGTHS_MAX_THREADS = 64 };

ty_filled ty_filled_of(const ty_field *declared, int field)
{
    const ty_map_spec *map = declared->map ? ty_map_declared(declared->map) : NULL;
    ty_filled f = {.field = field, .fill = declared->missing_given ? declared->missing : 0};
    if (map && map->max_length > 0) {
        f.fill = map->pad;
        f.left = map->left;
    }
    return f;
}

/* ---- one row ---- */

/* The bytes of a whole number in a type of so many; false: it has no such number. */
static bool whole_element(double fill, size_t bytes, bool is_signed, uint8_t out[8])
{
    double above = ldexp(1, (int)(8 * bytes) - is_signed);
    if (!(fill >= (is_signed ? -above : 0) && fill < above) || fill != floor(fill))
        return false;
    int64_t number = fill < 0x1p63 ? (int64_t)fill : (int64_t)(uint64_t)fill;
    memcpy(out, &number, sizeof number); /* its lower bytes come first */
    return true;
}

/* The bytes of an element that fills up; false: there is no such element of that type. */
static bool fill_element(ty_dtype dtype, double fill, uint8_t out[8])
{
    float single = (float)fill;
    memset(out, 0, 8);
    switch (dtype) {
    case TY_F64:
        memcpy(out, &fill, sizeof fill);
        return true;
    case TY_F32:
        memcpy(out, &single, sizeof single);
        return true;
    case TY_F16:
    case TY_BF16:
    case TY_BOOL:
        return fill == 0;
    default:
        return whole_element(fill, ty_dtype_bytes(dtype), ty_dtype_is_signed(dtype), out);
    }
}

/* A field as it is looked at. */
typedef struct lengths_row {
    ty_filled filled;
    int64_t columns;
    size_t column_bytes;
    uint8_t *filling; /* a column of it; NULL: rows of this type have none */
} lengths_row;

static uint32_t row_length(const lengths_row *r, const uint8_t *row)
{
    int64_t n = r->columns;
    while (r->filling && n > 0) {
        const uint8_t *outer = row + (size_t)(r->filled.left ? r->columns - n : n - 1) * r->column_bytes;
        if (memcmp(outer, r->filling, r->column_bytes) != 0)
            break;
        n--;
    }
    return (uint32_t)n;
}

static int row_of(const ty_dataset *ds, const ty_filled *f, lengths_row *out, ty_error *err)
{
    const ty_field_info *info = &ds->field[f->field];
    uint8_t element[8];
    size_t bytes = ty_dtype_bytes((ty_dtype)info->type.dtype);
    *out = (lengths_row){.filled = *f, .columns = info->type.dim[0], .column_bytes = info->row_bytes};
    out->column_bytes /= (size_t)info->type.dim[0];
    if (!fill_element((ty_dtype)info->type.dtype, f->fill, element))
        return 0;
    out->filling = malloc(out->column_bytes);
    if (!out->filling)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a column of %zu bytes", out->column_bytes);
    for (size_t at = 0; at < out->column_bytes; at += bytes)
        memcpy(out->filling + at, element, bytes);
    return 0;
}

/* ---- all rows ---- */

typedef struct lengths_work {
    const ty_dataset *ds;
    const lengths_row *row;
    int n_rows;
    int64_t n; /* samples that are looked at */
    uint32_t *length;
    pthread_mutex_t lock; /* of what follows */
    int64_t next;         /* that nobody has looked at */
    bool failed;
    ty_error err; /* of the first sample at fault */
    int64_t at_fault;
} lengths_work;

static int64_t take_block(lengths_work *w)
{
    pthread_mutex_lock(&w->lock);
    int64_t first = w->failed ? w->n : w->next;
    w->next += LENGTHS_BLOCK;
    pthread_mutex_unlock(&w->lock);
    return first;
}

static void note_failure(lengths_work *w, int64_t first, const ty_error *err)
{
    pthread_mutex_lock(&w->lock);
    if (!w->failed || first < w->at_fault) {
        w->err = *err;
        w->at_fault = first;
    }
    w->failed = true;
    pthread_mutex_unlock(&w->lock);
}

static int measure_block(lengths_work *w, const lengths_row *r, int64_t first, int n, uint8_t *rows, ty_error *err)
{
    int64_t samples[LENGTHS_BLOCK];
    for (int i = 0; i < n; i++)
        samples[i] = (int64_t)((__int128)(first + i) * w->ds->n_samples / w->n);
    if (ty_dataset_read(w->ds, r->filled.field, samples, n, rows, err) < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        uint32_t length = row_length(r, rows + (size_t)i * (size_t)r->columns * r->column_bytes);
        if (length > w->length[first + i])
            w->length[first + i] = length;
    }
    return 0;
}

static size_t room(const lengths_work *w)
{
    size_t most = 0;
    for (int i = 0; i < w->n_rows; i++) {
        size_t bytes = (size_t)w->row[i].columns * w->row[i].column_bytes;
        most = bytes > most ? bytes : most;
    }
    return most * LENGTHS_BLOCK;
}

static void measure(const ty_job *job)
{
    lengths_work *w = job->shared;
    ty_error err = {0};
    uint8_t *rows = malloc(room(w));
    if (!rows) {
        ty_error_set(&err, TY_E_LIMIT, "no memory for %d samples", LENGTHS_BLOCK);
        note_failure(w, 0, &err);
        return;
    }
    for (int64_t first; (first = take_block(w)) < w->n;) {
        int64_t left = w->n - first;
        for (int i = 0; i < w->n_rows; i++)
            if (measure_block(w, &w->row[i], first, (int)(left < LENGTHS_BLOCK ? left : LENGTHS_BLOCK), rows, &err) <
                0) {
                note_failure(w, first, &err);
                break;
            }
    }
    free(rows);
}

static int measure_all(lengths_work *w, int n_threads, ty_error *err)
{
    ty_job jobs[LENGTHS_MAX_THREADS];
    int n = n_threads > 0 ? n_threads : ty_crew_processors();
    n = n < LENGTHS_MAX_THREADS ? n : LENGTHS_MAX_THREADS;
    for (int i = 0; i < n; i++)
        jobs[i] = (ty_job){.run = measure, .shared = w};
    ty_crew *crew = ty_crew_start(jobs, n, n - 1);
    if (!crew)
        return ty_error_set(err, TY_E_LIMIT, "no memory to measure samples with");
    ty_crew_end(crew);
    if (w->failed && err)
        *err = w->err;
    return w->failed ? -1 : 0;
}

int ty_lengths_measure(const ty_dataset *ds, const ty_filled *filled, int n_filled, int n_threads, int64_t n,
                       uint32_t *length, ty_error *err)
{
    lengths_work w = {.ds = ds, .n_rows = n_filled, .n = n, .length = length};
    lengths_row *row = calloc((size_t)n_filled + 1, sizeof *row);
    int rc = row ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory to measure %d fields", n_filled);
    memset(length, 0, (size_t)n * sizeof *length);
    for (int i = 0; i < n_filled && rc == 0; i++)
        rc = row_of(ds, &filled[i], &row[i], err);
    w.row = row;
    if (rc == 0) {
        pthread_mutex_init(&w.lock, NULL);
        rc = measure_all(&w, n_threads, err);
        pthread_mutex_destroy(&w.lock);
    }
    for (int i = 0; row && i < n_filled; i++)
        free(row[i].filling);
    free(row);
    return rc;
}

/* ---- cutting ---- */

void ty_filled_cut(const ty_filled *f, const void *from, int64_t n_rows, int64_t longest, int64_t length,
                   size_t inner_bytes, void *to)
{
    size_t row = (size_t)longest * inner_bytes, kept = (size_t)length * inner_bytes;
    const char *at = (const char *)from + (f->left ? row - kept : 0);
    for (int64_t i = 0; i < n_rows; i++)
        memcpy((char *)to + (size_t)i * kept, at + (size_t)i * row, kept);
}
