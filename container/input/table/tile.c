/* tile.c - many records at once, a field at a time, where nothing but plain numbers is wanted.
 *
 * A tile is what records the walk has separators of. Its numbers are read straight into the rows of their field; those
 * that are odd are tried once more by themselves, or are empty. A record with any other goes by itself afterwards, over
 * what is in its row, so that faults are found in the order of the file, by the code that words them.
 */
#include "container/input/convert.h"
#include "container/input/header.h"
#include "container/input/number.h"
#include "container/input/table/mask.h"
#include "container/input/table/walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TILE_NUMBERS = WALK_LANE_BYTES, TILE_MARGIN = 16 };

/* A field's part of a tile. */
typedef struct tile_part {
    uint8_t *odd;     /* bits by number */
    int n_odd;        /* that are still set */
    bool powers;      /* expected in the next tile too */
    int64_t min, max; /* of a field of whole numbers */
} tile_part;

struct walk_tile {
    tile_part *part; /* [n_fields] */
    uint32_t pair[TILE_NUMBERS + 8];
    uint8_t odd[TILE_NUMBERS / 8];   /* of all fields: 8 or more numbers each */
    uint8_t alone[TILE_NUMBERS / 8]; /* bits by record: it goes by itself */
    union {
        double real[TILE_NUMBERS];
        int64_t whole[TILE_NUMBERS];
    } stage; /* on the way to another type */
};

static bool tile_fits(const table_impl *t)
{
    bool fits = !t->ds->bad.skip && !t->learns && !t->has_missing_numbers && t->n_slots > 0;
    for (int i = 0; i < t->n_fields; i++)
        fits = fits && (t->field[i].kind == TABLE_FLOAT || t->field[i].kind == TABLE_INTEGER);
    /* every field begins with a byte of bits of its own */
    return fits && t->n_slots + 8 * (int64_t)t->n_fields <= TILE_NUMBERS;
}

int walk_tile_new(const table_impl *t, walk_tile **out)
{
    *out = NULL;
    if (!tile_fits(t))
        return 0;
    walk_tile *tile = malloc(sizeof *tile);
    tile_part *part = calloc((size_t)t->n_fields, sizeof *part);
    if (!tile || !part) {
        free(tile);
        free(part);
        return -1;
    }
    tile->part = part;
    *out = tile;
    return 0;
}

void walk_tile_free(walk_tile *tile)
{
    if (tile)
        free(tile->part);
    free(tile);
}

static bool tile_bit(const uint8_t *bits, int64_t i)
{
    return bits[i / 8] >> (i % 8) & 1;
}

/* ---- its records ---- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* How many records from csv.at on are as they should be and in this chunk. */
static int64_t tile_records(table_walk *w)
{
    const table_impl *t = w->t;
    const table_chunk *chunk = w->chunk;
    const char *at = w->csv.at;
    if (at - chunk->from < TILE_MARGIN)
        return 0;
    if (at != w->lane_at || (w->used_ends == w->n_ends && at != w->lane))
        w->ways->look(w, at);
    int64_t columns = t->n_columns, n = 0, most = (TILE_NUMBERS - 8 * t->n_fields) / t->n_slots;
    most = least(most, least(w->n_ends - w->used_ends, (w->n - w->used) / columns));
    most = least(most, chunk->bound - chunk->n_rows);
    const uint16_t *end_at = w->end_at + w->used_ends, *place = w->place + w->used;
    while (n < most && end_at[n] == place[(n + 1) * columns])
        n++;
    while (n > 0 && w->lane + end_at[n - 1] >= chunk->to)
        n--;
    for (int64_t i = 0; columns == 1 && i < n; i++) { /* a blank line is no record */
        char first = w->lane[(uint16_t)(w->place[w->used + i] + 1)];
        n = first == '\n' || first == '\r' ? i : n;
    }
    return n;
}

/* ---- its numbers ---- */

/* Eight pairs of neighbours. */
static inline void tile_neighbours(uint32_t *pair, const uint16_t *place)
{
#if defined(__SSE2__)
    __m128i from = _mm_loadu_si128((const __m128i *)(const void *)place);
    __m128i to = _mm_loadu_si128((const __m128i *)(const void *)(place + 1));
    _mm_storeu_si128((__m128i *)(void *)pair, _mm_unpacklo_epi16(from, to));
    _mm_storeu_si128((__m128i *)(void *)(pair + 4), _mm_unpackhi_epi16(from, to));
#else
    for (int i = 0; i < 8; i++)
        pair[i] = place[i] | (uint32_t)place[i + 1] << 16;
#endif
}

static void tile_column(uint32_t *pair, const uint16_t *place, int64_t n, int64_t columns)
{
    for (int64_t r = 0; r < n; r++, place += columns)
        pair[r] = place[0] | (uint32_t)place[1] << 16;
}

/* Of columns that follow each other. What is written too much the next record writes over. */
static void tile_run(uint32_t *pair, const uint16_t *place, int64_t n, int64_t columns, int32_t each)
{
    for (int64_t r = 0; r < n; r++, pair += each, place += columns)
        for (int32_t k = 0; k < each; k += 8)
            tile_neighbours(pair + k, place + k);
}

static void tile_any(uint32_t *pair, const uint16_t *place, int64_t n, int64_t columns, const table_field *tf)
{
    for (int64_t r = 0; r < n; r++, place += columns)
        for (int32_t k = 0; k < tf->n_elems; k++)
            *pair++ = place[tf->column[k]] | (uint32_t)place[tf->column[k] + 1] << 16;
}

/* A carriage return before a line end belongs to that. */
static void tile_returns(const char *lane, uint32_t *pair, int64_t n, int32_t each)
{
    for (int64_t r = 0; r < n; r++, pair += each)
        *pair -= (uint32_t)(lane[(*pair >> 16) - 1] == '\r') << 16;
}

/* The separators around the numbers of a field, in the order of its rows. */
static int tile_pairs(const table_walk *w, const table_field *tf, int64_t n, uint32_t *pair)
{
    int64_t columns = w->t->n_columns;
    const uint16_t *place = w->place + w->used;
    bool follow = true;
    for (int32_t k = 1; k < tf->n_elems; k++)
        follow = follow && tf->column[k] == tf->column[0] + k;
    if (tf->n_elems == 1)
        tile_column(pair, place + tf->column[0], n, columns);
    else if (follow)
        tile_run(pair, place + tf->column[0], n, columns, tf->n_elems);
    else
        tile_any(pair, place, n, columns, tf);
    for (int32_t k = 0; k < tf->n_elems; k++)
        if (tf->column[k] + 1 == columns)
            tile_returns(w->lane, pair + k, n, tf->n_elems);
    int numbers = (int)(n * tf->n_elems);
    for (int k = 0; k < 8; k++)
        pair[numbers + k] = pair[0];
    return numbers;
}
static size_t tile_text(const walk_numbers *t, int i, const char **p)
{
    *p = t->lane + (uint16_t)(t->pair[i] + 1);
    return (size_t)(t->lane + (t->pair[i] >> 16) - *p);
}

/* One that is odd, once more: as the lane does it. False: it is empty or unusual. */
static bool tile_real(const table_walk *w, const walk_numbers *t, int i, double *out)
{
    const char *p;
    size_t n = tile_text(t, i, &p);
    return n > 0 && (ty_number_between(p, p + n, t->begin, out) || ty_number_plain(p, w->csv.end, out) == p + n);
}

static bool tile_whole(const walk_numbers *t, int i, int64_t *out)
{
    const char *p;
    size_t n = tile_text(t, i, &p);
    return n > 0 && ty_integer_between(p, p + n, t->begin, out);
}

/* An empty one is missing, where that is no fault: its value, as rows.c has it. */
static bool tile_missing(const table_walk *w, const table_field *tf, const walk_numbers *t, int i, double *out)
{
    const char *p;
    if (tile_text(t, i, &p) > 0 || !ty_csv_is_missing(&w->t->missing, p, 0) ||
        (tf->kind == TABLE_INTEGER && !tf->declared->missing_given))
        return false;
    *out = tf->declared->missing_given ? tf->declared->missing : (double)NAN;
    return true;
}

/* ---- its fields ---- */

/* Where the numbers of a field are read to. */
typedef struct tile_target {
    float *single;
    double *real;
    int64_t *whole;
} tile_target;

static void tile_put(const tile_target *to, int i, double v)
{
    if (to->single)
        to->single[i] = (float)v;
    else
        to->real[i] = v;
}

static void tile_put_whole(const tile_target *to, tile_part *part, int i, int64_t v)
{
    to->whole[i] = v;
    part->min = v < part->min ? v : part->min;
    part->max = v > part->max ? v : part->max;
}

/* Number i is odd: reads it again, or puts what stands for an empty one, which stays odd. False: it is unusual. */
static bool tile_try(const table_walk *w, const table_field *tf, const walk_numbers *t, const tile_target *to,
                     tile_part *part, int i)
{
    int64_t whole = 0;
    double v = 0;
    bool is_missing = tile_missing(w, tf, t, i, &v);
    if (!is_missing && !(to->whole ? tile_whole(t, i, &whole) : tile_real(w, t, i, &v)))
        return false;
    if (to->whole)
        tile_put_whole(to, part, i, is_missing ? (int64_t)v : whole);
    else
        tile_put(to, i, v);
    if (!is_missing) {
        t->odd[i / 8] ^= (uint8_t)(1 << i % 8);
        part->n_odd--;
    }
    return true;
}

/* The records of those that are unusual go by themselves. */
static void tile_again(const table_walk *w, const table_field *tf, const walk_numbers *t, const tile_target *to,
                       tile_part *part)
{
    for (int byte = 0; byte < (t->n + 7) / 8; byte++)
        for (unsigned left = t->odd[byte]; left; left &= left - 1) {
            int i = 8 * byte + __builtin_ctz(left), record = i / tf->n_elems;
            if (!tile_try(w, tf, t, to, part, i))
                w->tile->alone[record / 8] |= (uint8_t)(1 << record % 8);
        }
}

static void tile_convert(const table_field *tf, ty_dtype dtype, const tile_target *from, void *to, int64_t n)
{
    double scale = tf->declared->scale, offset = tf->declared->offset;
    if (from->whole) {
        ty_convert_from_i64(dtype, from->whole, to, n);
        return;
    }
    if (scale != 1.0 || offset != 0.0)
        for (int64_t i = 0; i < n; i++)
            from->real[i] = from->real[i] * scale + offset;
    if (dtype == TY_F32)
        for (int64_t i = 0; i < n; i++)
            ((float *)to)[i] = (float)from->real[i];
    else
        ty_convert_from_f64(dtype, from->real, to, n);
}

static void tile_field(const table_walk *w, int field, int64_t n, uint8_t *odd)
{
    walk_tile *tile = w->tile;
    const table_field *tf = &w->t->field[field];
    const ty_field_info *info = &w->t->ds->field[field];
    tile_part *part = &tile->part[field];
    ty_dtype dtype = (ty_dtype)info->type.dtype;
    void *rows = tf->data + (size_t)(w->chunk->first + w->chunk->n_rows) * info->row_bytes;
    bool is_whole = tf->kind == TABLE_INTEGER, as_is = tf->declared->scale == 1.0 && tf->declared->offset == 0.0;
    tile_target to = {NULL, NULL, NULL};
    if (is_whole)
        to.whole = dtype == TY_I64 ? rows : tile->stage.whole;
    else if (as_is && dtype == TY_F32)
        to.single = rows;
    else
        to.real = as_is && dtype == TY_F64 ? rows : tile->stage.real;
    walk_numbers t = {.lane = w->lane, .begin = w->chunk->from, .pair = tile->pair, .odd = odd, .powers = part->powers};
    t.n = tile_pairs(w, tf, n, tile->pair);
    part->odd = odd;
    part->n_odd = is_whole    ? w->ways->whole(&t, to.whole)
                  : to.single ? w->ways->single(&t, to.single)
                              : w->ways->real(&t, to.real);
    part->powers = t.powers;
    part->min = t.min;
    part->max = t.max;
    if (part->n_odd > 0)
        tile_again(w, tf, &t, &to, part);
    if ((void *)to.whole != rows && (void *)to.single != rows && (void *)to.real != rows)
        tile_convert(tf, dtype, &to, rows, t.n);
}

/* ---- what was seen ---- */

/* Numbers that are still odd are missing, but for those of records that went by themselves. */
static void tile_note_missing(const table_walk *w, int field, int64_t first, int64_t n)
{
    const tile_part *part = &w->tile->part[field];
    ty_field_info *seen = &w->chunk->seen[field];
    int32_t each = w->t->field[field].n_elems;
    for (int64_t byte = 0; byte < (n * each + 7) / 8; byte++)
        for (unsigned left = part->odd[byte]; left; left &= left - 1) {
            int64_t record = (8 * byte + __builtin_ctz(left)) / each;
            if (tile_bit(w->tile->alone, record))
                continue;
            if (seen->n_missing++ == 0 || first + record < seen->first_missing)
                seen->first_missing = first + record;
        }
}

/* The first row of the tile that holds the value. */
static int64_t tile_row_of(const table_walk *w, int field, int64_t first, int64_t n, int64_t value)
{
    const table_field *tf = &w->t->field[field];
    const ty_field_info *info = &w->t->ds->field[field];
    const uint8_t *rows = tf->data + (size_t)(w->chunk->first + first) * info->row_bytes;
    int64_t *whole = w->tile->stage.whole, i = 0;
    ty_convert_to_i64((ty_dtype)info->type.dtype, rows, whole, n * tf->n_elems);
    while (i < n * tf->n_elems - 1 && whole[i] != value)
        i++;
    return first + i / tf->n_elems;
}

/* What is as small or as large as in records of this tile that went by themselves may stand before these. */
static void tile_note_range(const table_walk *w, int field, int64_t first, int64_t n)
{
    const tile_part *part = &w->tile->part[field];
    ty_field_info *seen = &w->chunk->seen[field];
    if (part->min > part->max)
        return;
    if (seen->min_sample < 0 || part->min < seen->min || (part->min == seen->min && seen->min_sample >= first)) {
        seen->min = part->min;
        seen->min_sample = tile_row_of(w, field, first, n, part->min);
    }
    if (seen->max_sample < 0 || part->max > seen->max || (part->max == seen->max && seen->max_sample >= first)) {
        seen->max = part->max;
        seen->max_sample = tile_row_of(w, field, first, n, part->max);
    }
}

static void tile_note(const table_walk *w, int64_t first, int64_t n)
{
    for (int i = 0; i < w->t->n_fields; i++) {
        if (w->tile->part[i].n_odd > 0)
            tile_note_missing(w, i, first, n);
        if (w->t->field[i].kind == TABLE_INTEGER)
            tile_note_range(w, i, first, n);
    }
}

/* ---- the tile ---- */

/* A whole number that does not fit is a fault, and which fault comes first is found record by record. */
static bool tile_has_misfit(const table_walk *w)
{
    bool misfit = false;
    for (int i = 0; i < w->t->n_fields; i++) {
        const table_field *tf = &w->t->field[i];
        const tile_part *part = &w->tile->part[i];
        misfit = misfit ||
                 (tf->kind == TABLE_INTEGER && part->min <= part->max && (part->min < tf->min || part->max > tf->max));
    }
    return misfit;
}

/* The walk moves behind n records. */
static void tile_pass(table_walk *w, int64_t n)
{
    w->used += (int)(n * w->t->n_columns);
    w->used_ends += (int)n;
    w->csv.line += n + walk_breaks(w, w->place[w->used]);
    w->csv.at = w->csv.line_start = w->lane_at = w->lane + w->place[w->used] + 1;
    w->chunk->n_rows += n;
}

/* Reads the record at csv.at by itself. */
static int tile_alone(table_walk *w, ty_error *err)
{
    int used = w->used, used_ends = w->used_ends, used_breaks = w->used_breaks;
    ty_csv csv = w->csv;
    if (walk_record(w, err) < 0)
        return -1;
    w->chunk->n_rows--;
    w->used = used;
    w->used_ends = used_ends;
    w->used_breaks = used_breaks;
    w->csv = csv;
    tile_pass(w, 1);
    return 0;
}

/* Records of which none goes by itself, up to the first behind which lines do not follow. At most n; how many? */
static int64_t tile_lines(const table_walk *w, int64_t n)
{
    if (w->used_breaks == w->n_breaks)
        return n;
    const uint16_t *end_at = w->end_at + w->used_ends;
    uint16_t at = w->break_at[w->used_breaks];
    int64_t i = 0;
    while (i < n && end_at[i] < at)
        i++;
    return i < n ? i + 1 : n;
}

/* In the order of the file: records that go by themselves, and the lines of the others. */
static int tile_finish(table_walk *w, int64_t n, bool any_alone, ty_error *err)
{
    int64_t i = 0, last = w->chunk->n_rows + n;
    for (; w->chunk->n_rows < last; i = n - (last - w->chunk->n_rows)) {
        if (any_alone && tile_bit(w->tile->alone, i)) {
            if (tile_alone(w, err) < 0)
                return -1;
            continue;
        }
        if (walk_note_line(w->chunk, w->csv.line, err) < 0)
            return -1;
        tile_pass(w, any_alone ? 1 : tile_lines(w, n - i));
    }
    return 0;
}

int64_t walk_tile_read(table_walk *w, ty_error *err)
{
    walk_tile *tile = w->tile;
    int64_t n = tile_records(w), first = w->chunk->n_rows;
    if (n == 0)
        return 0;
    uint8_t *odd = tile->odd;
    memset(tile->alone, 0, (size_t)(n + 7) / 8);
    for (int i = 0; i < w->t->n_fields; i++) {
        tile_field(w, i, n, odd);
        odd += (n * w->t->field[i].n_elems + 7) / 8;
    }
    if (tile_has_misfit(w))
        memset(tile->alone, 0xff, (size_t)(n + 7) / 8);
    bool any_alone = false;
    for (int64_t i = 0; i < (n + 7) / 8; i++)
        any_alone = any_alone || tile->alone[i];
    if (tile_finish(w, n, any_alone, err) < 0)
        return -1;
    tile_note(w, first, n);
    return n;
}
