/* flow.c - see flow.h. */
#include "container/input/parquet/flow.h"

#include "base/crew.h"
#include "container/input/frame.h"
#include "container/input/parquet/opened.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { FLOW_TILE = 256, FLOW_READERS = 2 }; /* readers: the crew's thread, and who waits for it */

/* A column of a row group on its way into memory. */
typedef struct flow_part {
    parquet_flow *flow;
    const parquet_opened *opened;
    int group, column; /* of the file */
    parquet_values *to;
    int rc;
    ty_error error;
} flow_part;

/* A row group that is being read, or has been. */
typedef struct flow_group {
    int file, group;
    ty_crew *crew; /* that reads it; NULL: all is there, or nobody has begun */
    ty_job *job;   /* [n_columns] */
    flow_part *part;
    parquet_values *value;
} flow_group;

struct parquet_flow {
    parquet_flow_config config;
    parquet_opened opened[2]; /* file i is in place i % 2 */
    ty_arena footer[2];
    int opened_file[2]; /* -1: none */
    int *column[2];     /* [n_columns] the wanted ones in it */
    flow_group side[2];
    int now;             /* which side goes out */
    int file;            /* that goes out */
    int64_t row, n_rows; /* of the group that goes out: those before `row` have gone */
    uint8_t *rest;       /* of a row that did not fit */
    size_t n_rest, rest_at, rest_room;
    parquet_room room[FLOW_READERS];
    atomic_flag taken[FLOW_READERS];
};

static const ty_data_file *flow_file(const parquet_flow *f, int i)
{
    return &f->config.files[f->config.which[i]];
}

/* ---- files ---- */

static void flow_close_file(parquet_flow *f, int place)
{
    parquet_opened_close(&f->opened[place]);
    ty_arena_fini(&f->footer[place]);
    f->opened_file[place] = -1;
}

/* File i, open, with its columns found. */
static int flow_open_file(parquet_flow *f, int i, ty_error *err)
{
    const parquet_packing *p = f->config.packing;
    int place = i % 2;
    if (f->opened_file[place] == i)
        return 0;
    flow_close_file(f, place);
    const ty_data_file *file = flow_file(f, i);
    if (parquet_opened_open(file->path, file->n_bytes, &f->footer[place], &f->opened[place], err) < 0)
        return -1;
    for (int c = 0; c < p->n_columns; c++) {
        int k = parquet_match_column(&f->opened[place].file, p->column[c], p->like, err);
        if (k < 0) {
            flow_close_file(f, place);
            return ty_error_at(err, "%s", flow_file(f, i)->path);
        }
        f->column[place][c] = k;
    }
    f->opened_file[place] = i;
    return 0;
}

/* The first row group from `group` on that has rows; -1: there is none. */
static int flow_next_group(const parquet_file *file, int group)
{
    while (group < file->n_groups && file->group[group].n_rows == 0)
        group++;
    return group < file->n_groups ? group : -1;
}

/* ---- row groups ---- */

static void flow_run(const ty_job *job)
{
    flow_part *p = job->to;
    int k = 0;
    while (atomic_flag_test_and_set(&p->flow->taken[k])) /* one is free: there are as many as readers */
        k = (k + 1) % FLOW_READERS;
    p->rc = parquet_opened_read(p->opened, p->group, p->column, 0, &p->flow->room[k], p->to, &p->error);
    atomic_flag_clear(&p->flow->taken[k]);
}

static int flow_start(parquet_flow *f, flow_group *g, int file, int group, ty_error *err)
{
    int n = f->config.packing->n_columns;
    for (int c = 0; c < n; c++) {
        g->part[c] = (flow_part){.flow = f,
                                 .opened = &f->opened[file % 2],
                                 .group = group,
                                 .column = f->column[file % 2][c],
                                 .to = &g->value[c]};
        g->job[c] = (ty_job){.run = flow_run, .to = &g->part[c]};
    }
    g->file = file;
    g->group = group;
    g->crew = ty_crew_start(g->job, n, FLOW_READERS - 1);
    return g->crew ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for %d columns of a row group", n);
}

/* Helps until it is there. */
static int flow_wait(parquet_flow *f, flow_group *g, ty_error *err)
{
    ty_crew_end(g->crew);
    g->crew = NULL;
    for (int c = 0; c < f->config.packing->n_columns; c++)
        if (g->part[c].rc < 0) {
            *err = g->part[c].error;
            return ty_error_at(err, "%s", flow_file(f, g->file)->path);
        }
    return 0;
}

/* The file's group behind the one that goes out; -1: it has no more. */
static int flow_upcoming(const parquet_flow *f)
{
    const flow_group *g = &f->side[f->now];
    return flow_next_group(&f->opened[f->file % 2].file, g->file == f->file ? g->group + 1 : 0);
}

/* Begins what follows the group that goes out. What is wrong with the next file is told when its turn comes. */
static void flow_read_ahead(parquet_flow *f)
{
    flow_group *g = &f->side[!f->now];
    ty_error ignored = {0};
    int file = f->file, group = flow_upcoming(f);
    if (group < 0 && ++file < f->config.n_files && flow_open_file(f, file, &ignored) == 0)
        group = flow_next_group(&f->opened[file % 2].file, 0);
    if (group >= 0)
        flow_start(f, g, file, group, &ignored);
}

/* The next group of the file goes out. 1, 0: it has no more, -1. */
static int flow_take_group(parquet_flow *f, ty_error *err)
{
    flow_group *ahead = &f->side[!f->now];
    int group = flow_upcoming(f);
    if (group < 0)
        return 0;
    if (!ahead->crew && flow_start(f, ahead, f->file, group, err) < 0)
        return -1;
    if (flow_wait(f, ahead, err) < 0)
        return -1;
    f->now = !f->now;
    f->row = 0;
    f->n_rows = f->opened[f->file % 2].file.group[group].n_rows;
    flow_read_ahead(f);
    return 1;
}

static bool flow_has_more(const parquet_flow *f)
{
    return f->rest_at < f->n_rest || f->row < f->n_rows || flow_upcoming(f) >= 0;
}

/* ---- opening ---- */

static int flow_side_init(flow_group *g, int n_columns)
{
    g->file = -1;
    g->job = calloc((size_t)n_columns + 1, sizeof *g->job);
    g->part = calloc((size_t)n_columns + 1, sizeof *g->part);
    g->value = calloc((size_t)n_columns + 1, sizeof *g->value);
    return g->job && g->part && g->value ? 0 : -1;
}

static void flow_side_fini(flow_group *g, int n_columns)
{
    ty_crew_drop(g->crew);
    for (int c = 0; g->value && c < n_columns; c++)
        parquet_values_fini(&g->value[c]);
    free(g->job);
    free(g->part);
    free(g->value);
}

int parquet_flow_open(const parquet_flow_config *config, parquet_flow **out, ty_error *err)
{
    int n = config->packing->n_columns, rc = 0;
    parquet_flow *f = calloc(1, sizeof *f);
    if (!f)
        return ty_error_set(err, TY_E_LIMIT, "no memory to read data");
    f->config = *config;
    for (int i = 0; i < 2; i++) {
        f->opened[i].fd = f->opened_file[i] = -1;
        ty_arena_init(&f->footer[i]);
        f->column[i] = calloc((size_t)n + 1, sizeof *f->column[i]);
        rc |= f->column[i] ? flow_side_init(&f->side[i], n) : -1;
    }
    for (int i = 0; i < FLOW_READERS; i++)
        atomic_flag_clear(&f->taken[i]);
    *out = f;
    if (rc == 0)
        return 0;
    parquet_flow_close(f);
    return ty_error_set(err, TY_E_LIMIT, "no memory for %d columns of a row group", n);
}

void parquet_flow_close(parquet_flow *f)
{
    if (!f)
        return;
    for (int i = 0; i < 2; i++)
        flow_side_fini(&f->side[i], f->config.packing->n_columns);
    for (int i = 0; i < 2; i++) {
        flow_close_file(f, i);
        free(f->column[i]);
    }
    for (int i = 0; i < FLOW_READERS; i++)
        parquet_room_fini(&f->room[i]);
    free(f->rest);
    free(f);
}

int parquet_flow_begin(parquet_flow *f, int i, ty_error *err)
{
    f->file = i;
    f->row = f->n_rows = 0;
    return flow_open_file(f, i, err);
}

/* ---- bytes ---- */

/* What was left of a row. */
static size_t flow_drain(parquet_flow *f, uint8_t *out, size_t n)
{
    size_t left = f->n_rest - f->rest_at, some = left < n ? left : n;
    if (some > 0)
        memcpy(out, f->rest + f->rest_at, some);
    f->rest_at += some;
    return some;
}

/* The next row does not fit: it goes out in parts. */
static int flow_put_by(parquet_flow *f, size_t n_bytes, ty_error *err)
{
    static const size_t at = 0;
    flow_group *g = &f->side[f->now];
    if (n_bytes > TY_FRAME_MAX_BYTES) {
        ty_error_set(err, TY_E_LIMIT, "a row takes %zu bytes, expected at most %llu", n_bytes,
                     (unsigned long long)TY_FRAME_MAX_BYTES);
        return ty_error_at(err, "%s", flow_file(f, f->file)->path);
    }
    if (n_bytes > f->rest_room) {
        free(f->rest);
        f->rest = malloc(n_bytes);
        f->rest_room = f->rest ? n_bytes : 0;
    }
    if (!f->rest)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a row of %zu bytes", n_bytes);
    parquet_pack_rows(f->config.packing, g->value, f->row++, 1, &at, f->rest);
    f->n_rest = n_bytes;
    f->rest_at = 0;
    return 0;
}

/* Rows that fit into n bytes as a whole, at most FLOW_TILE, or else the next one is put by. Bytes in *got. */
static int flow_put_rows(parquet_flow *f, uint8_t *out, size_t n, size_t *got, ty_error *err)
{
    size_t at[FLOW_TILE], end = 0, bytes = 0;
    flow_group *g = &f->side[f->now];
    int64_t rows = 0, most = f->n_rows - f->row < FLOW_TILE ? f->n_rows - f->row : FLOW_TILE;
    while (rows < most) {
        bytes = parquet_packed_bytes(f->config.packing, g->value, f->row + rows);
        if (bytes > n - end)
            break;
        at[rows++] = end;
        end += bytes;
    }
    *got = end;
    if (rows == 0)
        return flow_put_by(f, bytes, err);
    parquet_pack_rows(f->config.packing, g->value, f->row, rows, at, out);
    f->row += rows;
    return 0;
}

int parquet_flow_fill(parquet_flow *f, uint8_t *out, size_t n, size_t *got, bool *ends, ty_error *err)
{
    int rc = 1;
    *got = 0;
    for (size_t some; rc > 0 && *got < n; *got += some) {
        some = flow_drain(f, out + *got, n - *got);
        if (some == 0 && f->row == f->n_rows)
            rc = flow_take_group(f, err);
        else if (some == 0)
            rc = flow_put_rows(f, out + *got, n - *got, &some, err) < 0 ? -1 : 1;
    }
    *ends = rc >= 0 && !flow_has_more(f);
    return rc < 0 ? -1 : 0;
}
