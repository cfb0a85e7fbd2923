/* records_parquet_stream.c - rows of Parquet files that stream by, each packed (parquet/packing.h).
 *
 * What a data set knows of its columns a stream has to know too, before it has seen the rows: so the footers of all
 * files are read when it begins, and files that do not have the columns of the first are refused.
 */
#include "base/crew.h"
#include "container/input/parquet/opened.h"
#include "container/input/parquet/packing.h"
#include "container/input/records_parquet.h"

#include <stdlib.h>

/* ---- footers ---- */

enum { FOOTER_THREADS = 8 }; /* that wait, for an object store perhaps, more than they compute */

/* What there is to know of a file that is not the first. */
typedef struct footer_look {
    const parquet_rows *rows;
    const ty_data_file *file;
    parquet_form *form; /* [n_columns] */
    int64_t n_rows, group_bytes;
    ty_error *error; /* of malloc; NULL: none, or no memory for it */
    int rc;
} footer_look;

/* Memory of the largest row group. column: [n] */
static int64_t footer_group_bytes(const parquet_file *f, const int *column, int n)
{
    int64_t most = 0;
    for (int g = 0; g < f->n_groups; g++) {
        int64_t bytes = parquet_group_memory(f, g, column, n);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static int footer_look_at(footer_look *l, ty_error *err)
{
    parquet_opened o;
    ty_arena a;
    ty_arena_init(&a);
    int n = l->rows->n_columns, *column = TY_NEW_ARRAY(&a, int, n + 1);
    int rc = parquet_opened_open(l->file->path, l->file->n_bytes, &a, &o, err);
    for (int c = 0; rc == 0 && c < n; c++) {
        column[c] = parquet_match_column(&o.file, l->rows->column[c], l->rows->path[0], err);
        rc = column[c] < 0 ? ty_error_at(err, "%s", l->file->path) : 0;
        if (rc == 0)
            l->form[c] = o.file.column[column[c]].form;
    }
    l->n_rows = o.file.n_rows;
    l->group_bytes = rc == 0 ? footer_group_bytes(&o.file, column, n) : 0;
    parquet_opened_close(&o);
    ty_arena_fini(&a);
    return rc;
}

static void footer_run(const ty_job *job)
{
    footer_look *l = job->to;
    ty_error error = {0};
    l->rc = footer_look_at(l, &error);
    if (l->rc < 0 && (l->error = malloc(sizeof error)) != NULL)
        *l->error = error;
}

/* All files but the first, side by side. */
static int footer_look_at_all(footer_look *look, int n, ty_error *err)
{
    ty_job *job = calloc((size_t)n + 1, sizeof *job);
    for (int i = 0; job && i < n; i++)
        job[i] = (ty_job){.run = footer_run, .to = &look[i]};
    ty_crew *crew = job ? ty_crew_start(job, n, n < FOOTER_THREADS ? n : FOOTER_THREADS) : NULL;
    ty_crew_end(crew);
    free(job);
    if (!crew)
        return ty_error_set(err, TY_E_LIMIT, "no memory to look at %d files", n);
    int rc = 0;
    for (int i = 0; i < n; i++) {
        if (rc == 0 && look[i].rc < 0 && look[i].error && err)
            *err = *look[i].error;
        else if (rc == 0 && look[i].rc < 0)
            ty_error_set(err, TY_E_LIMIT, "no memory to look at %d files", n);
        rc = rc < 0 ? rc : look[i].rc;
        free(look[i].error);
    }
    return rc;
}

/* As what columns are packed, how many rows there are and what a row group takes, when all files have been looked at.
 */
static int footer_join(parquet_rows *r, const ty_data_file *files, int n_files, int64_t *group_bytes, ty_arena *a,
                       ty_error *err)
{
    footer_look *look = calloc((size_t)n_files, sizeof *look);
    if (!look)
        return ty_error_set(err, TY_E_LIMIT, "no memory to look at %d files", n_files);
    for (int i = 1; i < n_files; i++)
        look[i - 1] =
            (footer_look){.rows = r, .file = &files[i], .form = TY_NEW_ARRAY(a, parquet_form, r->n_columns + 1)};
    int rc = footer_look_at_all(look, n_files - 1, err);
    for (int i = 0; rc == 0 && i < n_files - 1; i++) {
        r->n_rows += look[i].n_rows;
        *group_bytes = look[i].group_bytes > *group_bytes ? look[i].group_bytes : *group_bytes;
        for (int c = 0; c < r->n_columns; c++)
            r->form[c] = parquet_join(r->form[c], look[i].form[c]);
    }
    free(look);
    return rc;
}

static int begin_with(const parquet_opened *first, records_impl *impl, parquet_rows *r, const ty_data_file *files,
                      int n_files, int64_t *group_bytes, ty_error *err)
{
    ty_arena *a = impl->arena;
    if (parquet_fields_take(&first->file, impl, r, a, err) < 0)
        return ty_error_at(err, "%s", files[0].path);
    const parquet_column **kept = TY_NEW_ARRAY(a, const parquet_column *, r->n_columns + 1);
    r->form = TY_NEW_ARRAY(a, parquet_form, r->n_columns + 1);
    int *column = TY_NEW_ARRAY(a, int, r->n_columns + 1);
    r->n_rows = first->file.n_rows;
    for (int c = 0; c < r->n_columns; c++) {
        parquet_column *copy = ty_arena_copy(a, r->column[c], sizeof *copy);
        copy->name = ty_arena_strdup(a, copy->name);
        copy->odd = copy->odd ? ty_arena_strdup(a, copy->odd) : NULL;
        kept[c] = copy;
        r->form[c] = copy->form;
        column[c] = (int)(r->column[c] - first->file.column);
    }
    r->column = kept;
    *group_bytes = footer_group_bytes(&first->file, column, r->n_columns);
    return footer_join(r, files, n_files, group_bytes, a, err);
}

int parquet_stream_begin(records_impl *impl, const ty_data_file *files, int n_files, ty_error *err)
{
    ty_arena *a = impl->arena;
    parquet_opened first;
    ty_arena footer;
    const char **path = TY_NEW(a, const char *);
    parquet_rows *r = TY_NEW(a, parquet_rows);
    *path = files[0].path;
    *r = (parquet_rows){.path = path, .n_files = 1};
    int64_t group_bytes = 0;
    ty_arena_init(&footer);
    int rc = parquet_opened_open(files[0].path, files[0].n_bytes, &footer, &first, err);
    if (rc == 0)
        rc = begin_with(&first, impl, r, files, n_files, &group_bytes, err);
    parquet_opened_close(&first);
    ty_arena_fini(&footer);
    if (rc < 0)
        return -1;
    parquet_fields_decode_as(r, impl);
    parquet_packing *p = TY_NEW(a, parquet_packing);
    parquet_packing_init(p, r, a);
    p->group_bytes = group_bytes;
    impl->rows = r;
    impl->packing = p;
    return 0;
}

/* ---- rows ---- */

static int parquet_stream_find(records_look *look, const ty_frame *record, ty_error *err)
{
    parquet_unpacked *u = &look->unpacked;
    if (parquet_unpack_row(look->impl->packing, u, record->data, record->n, err) < 0)
        return -1;
    return parquet_row_find(look, &(rows_group){.n = 1, .value = u->v, .plain = u->plain, .has_nulls = u->has_nulls}, 0,
                            err);
}

const records_kind records_parquet_stream = {.framing = TY_FRAMES_PACKED,
                                             .has_parts = true,
                                             .find = parquet_stream_find,
                                             .count = parquet_row_count,
                                             .decode = parquet_row_decode,
                                             .cells = parquet_row_cells,
                                             .encoded = parquet_row_encoded};
