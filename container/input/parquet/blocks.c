/* blocks.c - see blocks.h. */
#include "container/input/parquet/blocks.h"

#include "base/pages.h"
#include "container/input/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_TILE = 1024, BLOCK_ALIGN = 2 << 20 };

/* What is wrong with the first row of a group that is. There may be a hundred thousand groups, and none with a fault.
 */
typedef struct block_fault {
    int64_t row;     /* in the group */
    ty_error *error; /* of malloc; NULL: none, or no memory for it */
    bool is_there;
} block_fault;

/* Some rows of one column on their way into a field. */
typedef struct block_tile {
    const block_field *field;
    ty_field_info *seen;
    block_fault *fault;
    const parquet_rows *rows;
    int32_t k; /* which of the field's columns */
    int64_t from, n;
    const parquet_values *v;
    ty_dtype dtype;
    union {
        double real[BLOCK_TILE];
        int64_t whole[BLOCK_TILE];
        char made[BLOCK_TILE * 8];
    } in, out;
} block_tile;

static bool tile_is_null(const block_tile *t, int64_t i)
{
    return t->v->null && t->v->null[t->from + i];
}

static int tile_refuse(block_tile *t, int64_t i, const char *what)
{
    if (t->fault->is_there && t->fault->row <= t->from + i)
        return -1;
    free(t->fault->error);
    t->fault->error = calloc(1, sizeof *t->fault->error);
    ty_error_set(t->fault->error, TY_E_DATA_VALUE, "field \"%s\": column \"%s\" %s", t->field->declared->name,
                 t->rows->column[t->field->column[t->k]]->name, what);
    t->fault->row = t->from + i;
    t->fault->is_there = true;
    return -1;
}

/* ---- numbers of a column ---- */

static void tile_reals(block_tile *t)
{
    static const ty_dtype dtypes[] = {TY_I32, TY_I64, TY_F32, TY_F64};
    size_t each = parquet_form_bytes(t->v->form);
    ty_convert_to_f64(dtypes[t->v->form], (const char *)t->v->v + (size_t)t->from * each, t->in.real, t->n);
}

/* What stands for no value; -1: nothing does. */
static int tile_fill_in(block_tile *t)
{
    const ty_field *d = t->field->declared;
    double value = t->field->n_columns == 1 ? d->missing : d->missing * d->scale + d->offset;
    for (int64_t i = 0; t->v->null && i < t->n; i++) {
        if (!t->v->null[t->from + i])
            continue;
        if (!d->missing_given) {
            tile_refuse(t, i, "has no value (null)");
            return ty_error_help(t->fault->error, "say what stands for it: missing: 0");
        }
        if (t->seen->n_missing++ == 0)
            t->seen->first_missing = t->from + i;
        t->in.real[i] = value;
    }
    return 0;
}

static void tile_scale(block_tile *t)
{
    double scale = t->field->declared->scale, offset = t->field->declared->offset;
    for (int64_t i = 0; (scale != 1.0 || offset != 0.0) && i < t->n; i++)
        t->in.real[i] = t->in.real[i] * scale + offset;
}

static void tile_note_odd(block_tile *t)
{
    int64_t odd = 0;
    for (int64_t i = 0; i < t->n; i++)
        odd += !isfinite(t->in.real[i]);
    for (int64_t i = 0; odd > 0 && i < t->n; i++) {
        if (isfinite(t->in.real[i]) || tile_is_null(t, i))
            continue;
        int64_t row = t->from + i;
        if (t->seen->n_not_finite++ == 0 || row < t->seen->first_not_finite)
            t->seen->first_not_finite = row;
    }
}

/* ---- whole numbers ---- */

static void tile_note(block_tile *t, int64_t low, int64_t high)
{
    ty_field_info *s = t->seen;
    bool lower = s->min_sample < 0 || low <= s->min, higher = s->max_sample < 0 || high >= s->max;
    for (int64_t i = 0; (lower || higher) && i < t->n; i++) {
        int64_t v = t->in.whole[i], row = t->from + i;
        if (s->min_sample < 0 || v < s->min || (v == s->min && row < s->min_sample))
            s->min = v, s->min_sample = row;
        if (s->max_sample < 0 || v > s->max || (v == s->max && row < s->max_sample))
            s->max = v, s->max_sample = row;
    }
}

static int tile_check(block_tile *t)
{
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (int64_t i = 0; i < t->n; i++) {
        low = t->in.whole[i] < low ? t->in.whole[i] : low;
        high = t->in.whole[i] > high ? t->in.whole[i] : high;
    }
    for (int64_t i = 0; (low < t->field->min || high > t->field->max) && i < t->n; i++)
        if (t->in.whole[i] < t->field->min || t->in.whole[i] > t->field->max)
            return tile_refuse(t, i, "has a value that does not fit the field's type");
    tile_note(t, low, high);
    return 0;
}

static int tile_whole_of_reals(block_tile *t)
{
    for (int64_t i = 0; i < t->n; i++) {
        double v = t->in.real[i];
        if (!(v >= -0x1p63 && v < 0x1p63 && v == floor(v)))
            return tile_refuse(t, i, "has a value that is no whole number");
        t->in.whole[i] = (int64_t)v;
    }
    return 0;
}

static int tile_wholes(block_tile *t)
{
    const ty_field *d = t->field->declared;
    bool is_whole = t->v->form == PARQUET_AS_I32 || t->v->form == PARQUET_AS_I64;
    if (is_whole && d->scale == 1.0 && d->offset == 0.0 && !t->v->null) {
        const char *from = (const char *)t->v->v + (size_t)t->from * parquet_form_bytes(t->v->form);
        ty_convert_to_i64(t->v->form == PARQUET_AS_I32 ? TY_I32 : TY_I64, from, t->in.whole, t->n);
        return tile_check(t);
    }
    tile_reals(t);
    tile_scale(t);
    if (tile_fill_in(t) < 0 || tile_whole_of_reals(t) < 0)
        return -1;
    for (int64_t i = 0; is_whole && t->v->form == PARQUET_AS_I64 && d->scale == 1.0 && d->offset == 0.0 && i < t->n;
         i++)
        if (!tile_is_null(t, i)) /* all of 64 bits */
            t->in.whole[i] = ((const int64_t *)t->v->v)[t->from + i];
    return tile_check(t);
}

/* ---- into rows ---- */

#define STORE(type)                    \
    for (int64_t i = 0; i < t->n; i++) \
    memcpy(to + (size_t)i * row_bytes, (const type *)(const void *)from + i, sizeof(type))

static void tile_store(const block_tile *t, const char *from, size_t each, size_t row_bytes, uint8_t *to)
{
    switch (each) {
    case 8:
        STORE(int64_t);
        break;
    case 4:
        STORE(int32_t);
        break;
    case 2:
        STORE(int16_t);
        break;
    default:
        STORE(int8_t);
    }
}

/* Floats that stay floats are not converted. */
static bool tile_is_plain(const block_tile *t)
{
    const ty_field *d = t->field->declared;
    return t->dtype == TY_F32 && t->v->form == PARQUET_AS_F32 && !t->v->null && d->scale == 1.0 && d->offset == 0.0;
}

typedef uint32_t tile_bits __attribute__((vector_size(32)));

/* Those are not whose exponent has all bits set. */
static bool tile_all_finite(const float *v, int64_t n)
{
    const uint32_t exponent = 0x7f800000;
    tile_bits odd = {0}, bits = {0};
    int64_t i = 0, step = (int64_t)(sizeof bits / sizeof bits[0]);
    for (; i + step <= n; i += step) {
        memcpy(&bits, v + i, sizeof bits);
        odd |= (tile_bits)((bits & exponent) == exponent);
    }
    bits = (tile_bits){0};
    memcpy(&bits, v + i, (size_t)(n - i) * sizeof *v);
    odd |= (tile_bits)((bits & exponent) == exponent);
    for (int k = 1; k < step; k++)
        odd[0] |= odd[k];
    return odd[0] == 0;
}

static int tile_make(block_tile *t, size_t row_bytes, uint8_t *to)
{
    size_t each = ty_dtype_bytes(t->dtype);
    const float *plain = (const float *)t->v->v + t->from;
    if (tile_is_plain(t) && tile_all_finite(plain, t->n)) {
        tile_store(t, (const char *)plain, each, row_bytes, to);
        return 0;
    }
    if (ty_dtype_is_integer(t->dtype)) {
        if (tile_wholes(t) < 0)
            return -1;
        ty_convert_from_i64(t->dtype, t->in.whole, t->out.made, t->n);
    } else {
        tile_reals(t);
        tile_scale(t);
        if (tile_fill_in(t) < 0)
            return -1;
        tile_note_odd(t);
        ty_convert_from_f64(t->dtype, t->in.real, t->out.made, t->n);
    }
    tile_store(t, t->out.made, each, row_bytes, to);
    return 0;
}

/* ---- groups ---- */

static void block_fill(parquet_blocks *b, int f, int group, block_tile *t)
{
    const block_field *field = &b->field[f];
    const rows_group *g = &b->rows->group[group];
    const ty_type *type = &b->info[f].type;
    size_t row_bytes = b->info[f].row_bytes;
    *t = (block_tile){.field = field, .seen = &field->seen[group], .fault = &b->fault[group], .rows = b->rows};
    t->dtype = (ty_dtype)type->dtype;
    ty_field_info_reset(t->seen);
    for (t->from = 0; t->from < g->n; t->from += BLOCK_TILE) {
        t->n = g->n - t->from < BLOCK_TILE ? g->n - t->from : BLOCK_TILE;
        uint8_t *to = field->data + (size_t)(g->first + t->from) * row_bytes;
        for (t->k = 0; t->k < field->n_columns; t->k++) {
            t->v = &g->value[field->column[t->k]];
            if (tile_make(t, row_bytes, to + (size_t)t->k * ty_dtype_bytes(t->dtype)) < 0)
                return;
        }
    }
}

static void block_done(void *ctx, int group)
{
    parquet_blocks *b = ctx;
    block_tile *t = malloc(sizeof *t);
    if (t == NULL)
        b->fault[group].is_there = true;
    for (int f = 0; t && f < b->n_fields; f++)
        block_fill(b, f, group, t);
    free(t);
    parquet_rows_give_back(b->rows, group);
}

static int blocks_new(parquet_blocks *b, ty_arena *a, ty_error *err)
{
    int64_t n = b->rows->n_rows;
    b->n_faults = b->rows->n_groups;
    b->fault = TY_NEW_ARRAY(a, block_fault, b->n_faults + 1);
    for (int f = 0; f < b->n_fields; f++) {
        size_t bytes;
        if (__builtin_mul_overflow((size_t)n, b->info[f].row_bytes, &bytes) || bytes > (size_t)INT64_MAX / 2)
            return ty_error_set(err, TY_E_LIMIT, "%lld rows are too many for memory", (long long)n);
        size_t room = (bytes + BLOCK_ALIGN) / BLOCK_ALIGN * BLOCK_ALIGN;
        b->field[f].data = bytes < BLOCK_ALIGN ? malloc(bytes + 1) : aligned_alloc(BLOCK_ALIGN, room);
        if (b->field[f].data == NULL)
            return ty_error_set(err, TY_E_LIMIT, "no memory for %lld rows of field \"%s\", %zu bytes", (long long)n,
                                b->info[f].name, bytes);
        if (bytes >= BLOCK_ALIGN)
            ty_pages_expect_update(b->field[f].data, BLOCK_ALIGN);
        b->field[f].seen = TY_NEW_ARRAY(a, ty_field_info, b->rows->n_groups + 1);
    }
    return 0;
}

/* Where a group's rows stand, as the place of a fault. */
static int blocks_refuse(const parquet_blocks *b, int group, ty_error *err)
{
    const block_fault *fault = &b->fault[group];
    char place[TY_ERROR_PLACE_BYTES];
    parquet_rows_place(b->rows, b->rows->group[group].first + fault->row, place, sizeof place);
    if (fault->error == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a row group");
    if (err)
        *err = *fault->error;
    return ty_error_at(err, "%s", place);
}

int parquet_blocks_read(parquet_blocks *b, int n_threads, ty_arena *a, ty_error *err)
{
    parquet_rows *r = b->rows;
    r->done = block_done;
    r->ctx = b;
    if (blocks_new(b, a, err) < 0 || parquet_rows_read(r, n_threads, a, err) < 0)
        return -1;
    for (int g = 0; g < r->n_groups; g++) {
        if (b->fault[g].is_there)
            return blocks_refuse(b, g, err);
        for (int f = 0; f < b->n_fields; f++)
            ty_field_info_take(&b->info[f], &b->field[f].seen[g], r->group[g].first);
    }
    return 0;
}

void parquet_blocks_fini(parquet_blocks *b)
{
    for (int f = 0; f < b->n_fields; f++) {
        free(b->field[f].data);
        b->field[f].data = NULL;
    }
    for (int g = 0; g < b->n_faults; g++)
        free(b->fault[g].error);
    b->n_faults = 0;
}
