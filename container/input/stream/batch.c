/* batch.c - records of a batch: kept as bytes, then decoded by a worker. */
#include "base/hash.h"
#include "container/input/convert.h"
#include "container/input/mixing.h"
#include "container/input/stream/opened.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum { TFRECORD_CHECKSUM = 4 };

static bool stream_has_checksums(const stream_opened *s)
{
    return s->cursor.how == TY_FRAMES_TFRECORD && s->cursor.n_attributes == 0;
}

size_t stream_bytes_of(const stream_opened *s, size_t n)
{
    return n + (stream_has_checksums(s) ? TFRECORD_CHECKSUM : 0);
}

/* A row of each field. */
static int batch_open_row(stream_batch *b, const stream_opened *s, ty_error *err)
{
    b->other_row = calloc((size_t)s->stream.n_fields + 1, sizeof *b->other_row); /* the last is NULL */
    bool ok = b->other_row != NULL;
    for (int i = 0; ok && i < s->stream.n_fields; i++)
        ok = (b->other_row[i] = malloc(s->field[i].row_bytes + 1)) != NULL;
    return ok ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory to mix pictures");
}

int stream_batch_open(const stream_opened *s, int64_t n_rows, int64_t n_global, bool mixes, stream_batch **out,
                      ty_error *err)
{
    stream_batch *b = calloc(1, sizeof *b);
    *out = b;
    if (!b || !(b->record = calloc((size_t)n_rows, sizeof *b->record)))
        return ty_error_set(err, TY_E_LIMIT, "no memory for a batch of %lld samples", (long long)n_rows);
    if (n_global > 0 && !(b->other = calloc((size_t)n_global, sizeof *b->other)))
        return ty_error_set(err, TY_E_LIMIT, "no memory for batches of %lld samples", (long long)n_global);
    if (mixes && batch_open_row(b, s, err) < 0)
        return -1;
    b->has_look = true;
    return records_look_init(&b->look, &s->records, -1, err);
}

void stream_batch_close(stream_batch *b)
{
    if (!b)
        return;
    if (b->has_look)
        records_look_fini(&b->look);
    for (void **row = b->other_row; row && *row; row++)
        free(*row);
    free(b->other_row);
    free(b->other);
    free(b->record);
    free(b->bytes);
    free(b);
}

int stream_batch_add(stream_batch *b, const stream_opened *s, const uint8_t *data, const stream_record *r, bool is_mine,
                     ty_error *err)
{
    size_t n = stream_bytes_of(s, r->n);
    if (b->n_bytes + n > b->room) {
        size_t room = b->n_bytes + n + (b->n_bytes + n) / 8;
        uint8_t *grown = realloc(b->bytes, room);
        if (!grown)
            return ty_error_set(err, TY_E_LIMIT, "no memory for a batch of more than %zu bytes", b->n_bytes);
        b->bytes = grown;
        b->room = room;
    }
    memcpy(b->bytes + b->n_bytes, data, n);
    stream_record here = *r;
    here.offset = b->n_bytes;
    if (is_mine)
        b->record[b->n_records++] = here;
    if (b->other)
        b->other[b->n_other++] = here;
    b->n_bytes += n;
    return 0;
}

size_t stream_batch_bytes(const stream_batch *b)
{
    return b->room + records_look_bytes(&b->look);
}

/* ---- decoding ---- */

int stream_check_sum(const stream_opened *s, const uint8_t *data, size_t n, ty_error *err)
{
    uint32_t found;
    if (!stream_has_checksums(s))
        return 0;
    memcpy(&found, data + n, sizeof found);
    if (ty_crc32c_mask(ty_crc32c(0, data, n)) == le32toh(found))
        return 0;
    return ty_error_set(err, TY_E_DATA_VALUE, "the checksum of its payload does not match");
}

static bool range_holds(const ty_stream_range *r, int64_t v)
{
    return (v >= r->min && v <= r->max) || (r->has_also && v == r->also);
}

/* An integer field's values in one row. */
static int decode_check_range(const ty_stream_range *r, const ty_field_info *f, const char *row, ty_error *err)
{
    int64_t n = ty_type_elems(&f->type);
    size_t each = ty_dtype_bytes((ty_dtype)f->type.dtype);
    for (int64_t i = 0; i < n; i++) {
        int64_t v;
        double real;
        if (f->type.dtype == TY_I64) {
            memcpy(&v, row + (size_t)i * each, sizeof v);
        } else {
            ty_convert_to_f64((ty_dtype)f->type.dtype, row + (size_t)i * each, &real, 1);
            v = real >= 0x1p63 ? INT64_MAX : (int64_t)real;
        }
        if (range_holds(r, v))
            continue;
        ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": found %lld, expected %lld to %lld (%s)", f->name,
                     (long long)v, (long long)r->min, (long long)r->max, r->what);
        return ty_error_help(err, "check its column and the model's size");
    }
    return 0;
}

static int decode_row(stream_opened *s, const ty_stream_order *order, int64_t epoch, stream_batch *b,
                      const stream_record *r, int64_t row, void *const *out, ty_error *err)
{
    const uint8_t *data = b->bytes + r->offset;
    ty_frame frame = {.data = data, .n = r->n, .at = (size_t)r->at, .record = r->record};
    if (stream_check_sum(s, data, r->n, err) < 0)
        return -1;
    b->look.draw = (ty_chance){order->seed, epoch, r->number, order->augment};
    if (s->records.kind->find(&b->look, &frame, err) < 0)
        return -1;
    for (int i = 0; i < s->records.n_fields; i++) {
        const ty_map *map = s->records.field[i].declared.map;
        char *to = (char *)out[i] + (size_t)row * s->field[i].row_bytes;
        if (records_put(&b->look, i, &s->field[i], to, err) < 0)
            return -1;
        if (map && ty_map_hides(map))
            ty_map_hide(map, &s->field[i].type, to, &b->look.draw);
    }
    if (stream_put_crosses(s, row, out, err) < 0)
        return -1;
    for (int i = 0; i < order->n_ranges; i++) {
        const ty_field_info *f = &s->field[order->range[i].field];
        const char *at = (const char *)out[order->range[i].field] + (size_t)row * f->row_bytes;
        if (f->is_integer && decode_check_range(&order->range[i], f, at, err) < 0)
            return -1;
    }
    return 0;
}

static int decode_leave_out(stream_opened *s, int64_t epoch, const stream_record *r, ty_error *err)
{
    char place[TY_ERROR_PLACE_BYTES];
    ty_error_at(err, "%s", stream_place(s, r, place, sizeof place));
    pthread_mutex_lock(&s->lock);
    ty_bad_begin_pass(&s->stream.bad, epoch);
    int rc = ty_bad_leave_out(&s->stream.bad, err);
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/* Rows behind the valid ones repeat these. */
static void decode_pad(const stream_opened *s, int64_t n_valid, int64_t n_rows, int64_t *samples, void *const *out)
{
    for (int64_t row = n_valid; row < n_rows; row++) {
        samples[row] = n_valid > 0 ? samples[row % n_valid] : 0;
        for (int i = 0; i < s->stream.n_fields; i++) {
            size_t each = s->field[i].row_bytes;
            char *to = (char *)out[i] + (size_t)row * each;
            if (n_valid > 0)
                memcpy(to, (char *)out[i] + (size_t)(row % n_valid) * each, each);
            else
                memset(to, 0, each);
        }
    }
}

/* The row that decode_row has made, mixed with another of the global batch, which is augmented as it would be by
 * itself. One that is bad is left out where it is a row: here nothing comes of it. */
static int decode_mix(stream_opened *s, const ty_stream_order *order, int64_t epoch, stream_batch *b, int64_t row,
                      void *const *out, ty_error *err)
{
    ty_image_mixing m;
    ty_error bad = {0};
    ty_image_plan_mixing(s->field[s->mixed].image, &b->look.draw, b->n_other, &m);
    if (m.share >= 1.0)
        return 0;
    if (decode_row(s, order, epoch, b, &b->other[m.other], 0, b->other_row, &bad) < 0) {
        char place[TY_ERROR_PLACE_BYTES];
        if (s->stream.bad.skip && bad.code == TY_E_DATA_VALUE)
            return 0;
        ty_error_at(&bad, "%s", stream_place(s, &b->other[m.other], place, sizeof place));
        if (err)
            *err = bad;
        return -1;
    }
    for (int i = 0; i < s->stream.n_fields; i++)
        if (ty_mixing_takes(&s->field[i]))
            ty_mixing_blend(&s->field[i], &m, (float *)((char *)out[i] + (size_t)row * s->field[i].row_bytes),
                            b->other_row[i]);
    return 0;
}

int stream_decode(stream_opened *s, const ty_stream_order *order, ty_position at, stream_batch *b, int64_t *samples,
                  void *const *out, int64_t *n_valid, ty_error *err)
{
    int64_t n = 0;
    for (int64_t i = 0; i < b->n_records; i++) {
        stream_record r = b->record[i];
        if (decode_row(s, order, at.epoch, b, &r, n, out, err) < 0) {
            if (decode_leave_out(s, at.epoch, &r, err) < 0)
                return -1;
            continue;
        }
        if (b->other_row && decode_mix(s, order, at.epoch, b, n, out, err) < 0)
            return -1;
        b->record[n] = r;
        samples[n++] = r.number;
    }
    b->n_records = *n_valid = n;
    decode_pad(s, n, order->n_rows, samples, out);
    return 0;
}
