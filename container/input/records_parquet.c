/* records_parquet.c - rows of Parquet files (parquet/rows.h): a field is one column or several, as in a table, or one
 * whose rows are lists of any length, or bytes that are a picture or a sound.
 *
 * The columns that fields use are decoded when the data are opened, and stay in memory as they are stored; those that
 * no field uses are not looked at. A row's frame is a place in memory that nothing is read at: its distance from the
 * first row's is its number.
 */
#include "base/crew.h"
#include "container/input/parquet/blocks.h"
#include "container/input/records_parquet.h"

#include <sys/mman.h>

static const uint8_t *rows_base(const records_impl *impl)
{
    return impl->file[0].bytes.data;
}

/* ---- opening ---- */

static int parquet_open_files(records_impl *impl, parquet_rows *r, ty_arena *a, ty_error *err)
{
    const char **path = TY_NEW_ARRAY(a, const char *, impl->n_files);
    r->opened = TY_NEW_ARRAY(a, parquet_opened, impl->n_files);
    r->path = path;
    for (r->n_files = 0; r->n_files < impl->n_files; r->n_files++) {
        const ty_data_file *file = impl->file[r->n_files].file;
        path[r->n_files] = file->path;
        if (parquet_opened_open(file->path, file->n_bytes, a, &r->opened[r->n_files], err) < 0)
            return -1;
        parquet_opened_rest(&r->opened[r->n_files]);
    }
    return 0;
}

static void parquet_close_files(parquet_rows *r)
{
    for (int i = 0; i < r->n_files; i++)
        ty_bytes_close(&r->opened[i].whole); /* how many rows it has is still asked */
}

/* Places for all rows, in addresses that take no memory. */
static int parquet_place_rows(records_impl *impl, const parquet_rows *r, ty_error *err)
{
    size_t n = (size_t)r->n_rows, at = 0;
    uint8_t *base = mmap(NULL, n > 0 ? n : 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return ty_error_set(err, TY_E_LIMIT, "no addresses for %zu rows", n);
    for (int i = 0; i < impl->n_files; i++) {
        size_t rows = !r->first_only ? (size_t)r->opened[i].file.n_rows : i == 0 ? n : 0;
        impl->file[i].bytes = (ty_bytes){.data = base + at, .n = rows};
        at += rows;
    }
    return 0;
}

static int64_t parquet_longest(const parquet_rows *r, int32_t column)
{
    int64_t most = 1;
    for (int g = 0; g < r->n_groups; g++) {
        const parquet_values *v = &r->group[g].value[column];
        for (int64_t i = 0; v->first && i < v->n_rows; i++)
            most = v->first[i + 1] - v->first[i] > most ? v->first[i + 1] - v->first[i] : most;
    }
    return most;
}

static void parquet_take_longest(records_impl *impl, const parquet_rows *r)
{
    for (int i = 0; i < impl->n_fields; i++) {
        records_field *f = &impl->field[i];
        bool is_list = r->column[f->column[0]]->max_rep > 0;
        if (is_list && !f->declared.map && !f->declared.shape_given && f->declared.max_length == 0)
            f->declared.max_length = parquet_longest(r, f->column[0]);
    }
}

/* ---- blocks ---- */

/* Whether all that the field has are numbers, one a column. */
static bool parquet_is_numbers(const records_field *f, const parquet_rows *r)
{
    const ty_field *d = &f->declared;
    int64_t elems = d->shape_given ? ty_dims_elems_checked(d->rank, d->dim, 8) : f->n_columns;
    for (int32_t k = 0; k < f->n_columns; k++)
        if (r->column[f->column[k]]->max_rep > 0)
            return false;
    return !d->map && !ty_media_is(&f->media) && d->max_length == 0 && elems == f->n_columns;
}

static bool parquet_takes_blocks(const records_impl *impl, const ty_data_source *src, const parquet_rows *r)
{
    bool all = !src->types_only && !src->skip_bad;
    for (int i = 0; i < impl->n_fields; i++)
        all = all && parquet_is_numbers(&impl->field[i], r);
    return all;
}

static int parquet_read_blocks(ty_dataset *ds, parquet_rows *r, int n_threads, ty_error *err)
{
    records_impl *impl = ds->impl;
    parquet_blocks *b = impl->blocks = TY_NEW(&ds->arena, parquet_blocks);
    *b = (parquet_blocks){.rows = r, .info = ds->field, .n_fields = impl->n_fields};
    b->field = TY_NEW_ARRAY(&ds->arena, block_field, impl->n_fields);
    for (int i = 0; i < impl->n_fields; i++) {
        records_field *f = &impl->field[i];
        if (records_settle(f, &(records_cell){.dtype = f->decoded}, f->n_columns, &ds->field[i], err) < 0)
            return -1;
        b->field[i] = (block_field){.declared = &f->declared, .column = f->column, .n_columns = f->n_columns};
        b->field[i].min = f->min;
        b->field[i].max = f->max;
    }
    if (parquet_blocks_read(b, n_threads, &ds->arena, err) < 0)
        return -1;
    ds->n_samples = r->n_rows;
    for (int i = 0; i < impl->n_fields; i++)
        ds->stats.memory_bytes += r->n_rows * (int64_t)ds->field[i].row_bytes;
    return 0;
}

static int parquet_read_all(ty_dataset *ds, const ty_data_source *src, parquet_rows *r, ty_error *err)
{
    records_impl *impl = ds->impl;
    int n_threads = src->n_threads > 0 ? src->n_threads : ty_crew_processors();
    if (parquet_fields_take(&r->opened[0].file, impl, r, &ds->arena, err) < 0)
        return ty_error_at(err, "%s", r->path[0]);
    r->first_only = src->types_only;
    if (parquet_rows_plan(r, &ds->arena, err) < 0)
        return -1;
    parquet_fields_decode_as(r, impl);
    if (parquet_takes_blocks(impl, src, r))
        return parquet_read_blocks(ds, r, n_threads, err);
    if (parquet_rows_read(r, n_threads, &ds->arena, err) < 0)
        return -1;
    ds->stats.memory_bytes = parquet_rows_bytes(r);
    if (src->any_length)
        parquet_take_longest(impl, r);
    return 0;
}

static int parquet_prepare(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    records_impl *impl = ds->impl;
    parquet_rows *r = TY_NEW(&ds->arena, parquet_rows);
    int rc = parquet_open_files(impl, r, &ds->arena, err);
    if (rc == 0)
        rc = parquet_read_all(ds, src, r, err);
    parquet_close_files(r);
    if (rc < 0)
        return -1;
    impl->rows = r;
    return impl->blocks != NULL ? 0 : parquet_place_rows(impl, r, err);
}

static void parquet_fini(records_impl *impl)
{
    if (impl->blocks != NULL)
        parquet_blocks_fini(impl->blocks);
    if (impl->rows == NULL || impl->blocks != NULL) /* not opened, or in blocks */
        return;
    size_t n = (size_t)impl->rows->n_rows;
    if (rows_base(impl) != NULL)
        munmap((void *)(uintptr_t)rows_base(impl), n > 0 ? n : 1);
    for (int i = 0; i < impl->n_files; i++)
        impl->file[i].bytes = (ty_bytes){0};
    parquet_rows_fini(impl->rows);
}

static const uint8_t *parquet_rows_of(const records_impl *impl, int field)
{
    return impl->blocks ? impl->blocks->field[field].data : NULL;
}

static void parquet_place(const records_impl *impl, int64_t row, char *out, size_t n)
{
    parquet_rows_place(impl->rows, row, out, n);
}

static int parquet_find(records_look *look, const ty_frame *record, ty_error *err)
{
    const records_impl *impl = look->impl;
    int64_t row = record->data - rows_base(impl);
    const rows_group *g = parquet_rows_group(impl->rows, row);
    return parquet_row_find(look, g, row - g->first, err);
}

const records_kind records_parquet = {.framing = TY_FRAMES_ROWS,
                                      .has_parts = true,
                                      .opens_files = true,
                                      .fini = parquet_fini,
                                      .block = parquet_rows_of,
                                      .block_place = parquet_place,
                                      .prepare = parquet_prepare,
                                      .find = parquet_find,
                                      .count = parquet_row_count,
                                      .decode = parquet_row_decode,
                                      .cells = parquet_row_cells,
                                      .encoded = parquet_row_encoded};
