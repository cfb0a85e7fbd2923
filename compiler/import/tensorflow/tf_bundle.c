/* tf_bundle.c - reading a checkpoint of TensorFlow. */
#include "compiler/import/tensorflow/tf_bundle.h"

#include "base/hash.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MAX_SHARDS = 100000 };

static int entry_fail(const tf_bundle *b, const tf_entry *e, ty_error *err)
{
    ty_error_wrap(err, "tensor \"%.200s\"", e->key);
    return ty_error_at(err, "%s.index", b->prefix);
}

const char *tf_bundle_shard_path(ty_arena *arena, const char *prefix, int shard, int n_shards)
{
    return ty_arena_printf(arena, "%s.data-%05d-of-%05d", prefix, shard, n_shards);
}

/* ---- opening ------------------------------------------------------------------------------------------------------
 */

static int open_shards(tf_bundle *b, int64_t n, ty_error *err)
{
    if (n < 1 || n > MAX_SHARDS)
        return ty_error_set(err, TY_E_MODEL_FILE, "expected 1 to %d shards, found %" PRId64, MAX_SHARDS, n);
    b->shard = TY_NEW_ARRAY(&b->arena, ty_file_view, n);
    for (; b->n_shards < n; b->n_shards++) {
        const char *path = tf_bundle_shard_path(&b->arena, b->prefix, b->n_shards, (int)n);
        if (ty_file_map(path, &b->shard[b->n_shards], err) < 0)
            return ty_error_wrap(err, "shard %d of %" PRId64, b->n_shards, n);
    }
    return 0;
}

static int read_header(tf_bundle *b, ty_error *err)
{
    tf_bundle_header header = {0};
    if (b->table.n_rows == 0 || b->table.row[0].key.n != 0)
        return ty_error_set(err, TY_E_MODEL_FILE, "expected a header under the empty key, found none");
    if (tf_read(&tf_bundle_header_message, b->table.row[0].value, &b->arena, &header, err) < 0)
        return -1;
    if (header.endianness != 0)
        return ty_error_set(err, TY_E_UNSUPPORTED, "its numbers are big-endian; only little-endian ones can be read");
    return open_shards(b, header.n_shards, err);
}

/* Where the CRC stands in the index, so that a new one can take its place. */
static const uint8_t *find_crc(ty_bytes value)
{
    const uint8_t *at = NULL;
    ty_wire_item item;
    while (ty_wire_next(&value, &item, NULL) > 0)
        if (item.number == 6 && item.type == 5)
            at = item.body.data;
    return at;
}

static int read_type(tf_entry *e, ty_error *err)
{
    int rank;
    int64_t dim[TY_MAX_RANK];
    e->type = (ty_type){.dtype = TY_N_DTYPES};
    ty_dtype dtype = tf_dtype(e->record.data_type);
    if (dtype == TY_N_DTYPES || e->record.data_type >= TF_REF)
        return 0;
    if (!tf_read_shape(e->record.shape, &rank, dim) || rank < 0)
        return ty_error_set(err, TY_E_UNSUPPORTED, "its shape is unknown, or has more than %d dimensions", TY_MAX_RANK);
    if (ty_dims_elems_checked(rank, dim, ty_dtype_bytes(dtype)) < 0)
        return ty_error_set(err, TY_E_MODEL_FILE, "its dimensions are negative or too large");
    e->type = ty_type_make(dtype, rank, dim);
    return 0;
}

static int place_entry(const tf_bundle *b, tf_entry *e, ty_error *err)
{
    const tf_bundle_record *r = &e->record;
    if (r->slices.n > 0)
        return 0;
    if (r->shard < 0 || r->shard >= b->n_shards)
        return ty_error_set(err, TY_E_MODEL_FILE, "expected a shard below %d, found %" PRId64, b->n_shards, r->shard);
    uint64_t room = b->shard[r->shard].n_bytes;
    if (r->offset < 0 || r->size < 0 || (uint64_t)r->offset > room || (uint64_t)r->size > room - (uint64_t)r->offset)
        return ty_error_set(err, TY_E_MODEL_FILE,
                            "expected it within the %" PRIu64 " bytes of shard %" PRId64 ", found offset %" PRId64
                            ", size %" PRId64,
                            room, r->shard, r->offset, r->size);
    if (e->type.dtype != TY_N_DTYPES && (size_t)r->size != ty_type_bytes(&e->type))
        return ty_error_set(err, TY_E_MODEL_FILE, "expected %zu bytes for its shape, found %" PRId64,
                            ty_type_bytes(&e->type), r->size);
    e->data = b->shard[r->shard].bytes + r->offset;
    return 0;
}

static int read_entries(tf_bundle *b, ty_error *err)
{
    b->entry = TY_NEW_ARRAY(&b->arena, tf_entry, b->table.n_rows);
    for (size_t i = 1; i < b->table.n_rows; i++) {
        tf_entry *e = &b->entry[b->n_entries++];
        e->full_key = b->table.row[i].key;
        e->key = (const char *)e->full_key.data;
        e->crc = find_crc(b->table.row[i].value);
        if (tf_read(&tf_bundle_record_message, b->table.row[i].value, &b->arena, &e->record, err) < 0 ||
            read_type(e, err) < 0 || place_entry(b, e, err) < 0)
            return entry_fail(b, e, err);
    }
    return 0;
}

int tf_bundle_open(const char *prefix, tf_bundle *b, ty_error *err)
{
    *b = (tf_bundle){0};
    ty_arena_init(&b->arena);
    b->prefix = ty_arena_strdup(&b->arena, prefix);
    const char *path = ty_arena_printf(&b->arena, "%s.index", prefix);
    if (ty_file_map(path, &b->index, err) < 0)
        return -1;
    ty_bytes file = {b->index.bytes, b->index.n_bytes};
    if (tf_table_read(file, &b->arena, &b->table, err) < 0 || read_header(b, err) < 0 || read_entries(b, err) < 0) {
        if (err && strncmp(err->place, "byte ", 5) == 0) {
            char at[TY_ERROR_PLACE_BYTES];
            memcpy(at, err->place, sizeof at);
            err->place[0] = 0;
            return ty_error_at(err, "%.200s: %.80s", path, at);
        }
        return ty_error_at(err, "%s", path);
    }
    return 0;
}

void tf_bundle_close(tf_bundle *b)
{
    for (int i = 0; i < b->n_shards; i++)
        ty_file_unmap(&b->shard[i]);
    if (b->index.bytes)
        ty_file_unmap(&b->index);
    ty_arena_fini(&b->arena);
    *b = (tf_bundle){0};
}

void tf_bundle_drop_pages(const tf_bundle *b)
{
    for (int i = 0; i < b->n_shards; i++)
        if (b->shard[i].n_bytes)
            madvise((void *)(uintptr_t)b->shard[i].bytes, b->shard[i].n_bytes, MADV_DONTNEED);
}

/* ---- finding ------------------------------------------------------------------------------------------------------
 */

static tf_entry *find_key(const tf_bundle *b, ty_bytes key)
{
    int low = 0, high = b->n_entries;
    while (low < high) {
        int middle = low + (high - low) / 2;
        ty_bytes at = b->entry[middle].full_key;
        int order = memcmp(key.data, at.data, key.n < at.n ? key.n : at.n);
        if (order == 0 && key.n == at.n)
            return &b->entry[middle];
        if (order < 0 || (order == 0 && key.n < at.n))
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

tf_entry *tf_bundle_find(const tf_bundle *b, const char *key)
{
    return find_key(b, (ty_bytes){(const uint8_t *)key, strlen(key)});
}

/* Ordered code, in which TensorFlow writes the keys of slices: 0, name, rank, then start and length of each dim. */
static size_t put_number(uint8_t *out, uint64_t v)
{
    size_t n = 0;
    for (uint64_t rest = v; rest; rest >>= 8)
        n++;
    out[0] = (uint8_t)n;
    for (size_t i = 0; i < n; i++)
        out[1 + i] = (uint8_t)(v >> (8 * (n - 1 - i)));
    return n + 1;
}

static size_t put_text(uint8_t *out, const char *text)
{
    size_t n = 0;
    for (const uint8_t *c = (const uint8_t *)text; *c; c++) {
        out[n++] = *c;
        if (*c == 0xff)
            out[n++] = 0;
    }
    out[n++] = 0;
    out[n++] = 1;
    return n;
}

/* A number takes n bytes if its magnitude has fewer than 7 n bits; the count stands in the leading bits. */
static size_t put_signed(uint8_t *out, int64_t v)
{
    static const uint8_t head[11][2] = {{0, 0},    {0x80, 0}, {0xc0, 0}, {0xe0, 0},    {0xf0, 0},   {0xf8, 0},
                                        {0xfc, 0}, {0xfe, 0}, {0xff, 0}, {0xff, 0x80}, {0xff, 0xc0}};
    uint64_t magnitude = v < 0 ? ~(uint64_t)v : (uint64_t)v;
    size_t bits = 0;
    for (; magnitude; magnitude >>= 1)
        bits++;
    size_t n = bits / 7 + 1;
    for (size_t i = 0; i < n; i++) {
        size_t shift = 8 * (n - 1 - i);
        out[i] = shift > 56 ? (v < 0 ? 0xff : 0) : (uint8_t)((uint64_t)v >> shift);
    }
    out[0] ^= head[n][0];
    if (n > 1)
        out[1] ^= head[n][1];
    return n;
}

tf_entry *tf_bundle_find_slice(const tf_bundle *b, const tf_entry *whole, const int64_t *start, const int64_t *length)
{
    uint8_t *key = malloc(2 * strlen(whole->key) + 32 + 20 * TY_MAX_RANK);
    if (!key)
        return NULL;
    size_t n = put_number(key, 0);
    n += put_text(key + n, whole->key);
    n += put_number(key + n, whole->type.rank);
    for (int i = 0; i < whole->type.rank; i++) {
        n += put_signed(key + n, length[i] < 0 ? 0 : start[i]);
        n += put_signed(key + n, length[i]);
    }
    tf_entry *e = find_key(b, (ty_bytes){key, n});
    free(key);
    return e;
}

/* ---- values -------------------------------------------------------------------------------------------------------
 */

static int check_sum(tf_entry *e, uint32_t found, ty_error *err)
{
    uint32_t expected = 0;
    if (e->crc)
        memcpy(&expected, e->crc, sizeof expected);
    if (found != expected)
        return ty_error_set(err, TY_E_MODEL_FILE,
                            "its CRC does not match: expected %08x, found %08x; its bytes are damaged", expected,
                            found);
    e->is_checked = true;
    return 0;
}

/* Text: lengths as varints, a CRC of the lengths as 4 (from 2^32 on 8) bytes each, the characters. The entry's CRC runs
 * over those lengths, the four bytes of their CRC, and the characters. */
static int check_texts(tf_entry *e, uint64_t n, ty_error *err)
{
    ty_bytes in = {e->data, (size_t)e->record.size};
    uint32_t crc = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t length = 0;
        size_t k = 0;
        for (; k < in.n && k < 10; k++) {
            length |= (uint64_t)(in.data[k] & 0x7f) << (7 * k);
            if (!(in.data[k] & 0x80))
                break;
        }
        if (k >= in.n || k == 10)
            return ty_error_set(err, TY_E_MODEL_FILE, "the lengths of its texts are cut short");
        in.data += k + 1;
        in.n -= k + 1;
        crc = ty_crc32c(crc, &length, length > UINT32_MAX ? 8 : 4);
    }
    if (in.n < 4)
        return ty_error_set(err, TY_E_MODEL_FILE, "the lengths of its texts are cut short");
    return check_sum(e, ty_crc32c_mask(ty_crc32c(crc, in.data, in.n)), err);
}

int tf_bundle_check(tf_bundle *b, tf_entry *e, ty_error *err)
{
    if (e->is_checked || !e->data)
        return 0;
    int rank, rc;
    int64_t dim[TY_MAX_RANK], n;
    if (e->record.data_type != TF_STRING)
        rc = check_sum(e, ty_crc32c_mask(ty_crc32c(0, e->data, (size_t)e->record.size)), err);
    else if (!tf_read_shape(e->record.shape, &rank, dim) || rank < 0 || (n = ty_dims_elems_checked(rank, dim, 1)) < 0 ||
             n > e->record.size)
        rc = ty_error_set(err, TY_E_MODEL_FILE, "its shape is unknown or larger than its bytes");
    else
        rc = check_texts(e, (uint64_t)n, err);
    return rc < 0 ? entry_fail(b, e, err) : 0;
}

/* Copies a block of `part` to where it stands in `whole`, row by row of the last axis. */
static void join_slice(uint8_t *to, const ty_type *whole, const int64_t *start, const uint8_t *from,
                       const int64_t *length, size_t elem_bytes)
{
    int64_t at[TY_MAX_RANK] = {0};
    int last = whole->rank - 1;
    size_t row = (size_t)length[last] * elem_bytes;
    for (;;) {
        int64_t offset = 0;
        for (int i = 0; i <= last; i++)
            offset = offset * whole->dim[i] + start[i] + (i < last ? at[i] : 0);
        memcpy(to + (size_t)offset * elem_bytes, from, row);
        from += row;
        int axis = last - 1;
        while (axis >= 0 && ++at[axis] == length[axis])
            at[axis--] = 0;
        if (axis < 0)
            return;
    }
}

static int read_slice(tf_bundle *b, const tf_entry *whole, const tf_slice *slice, uint8_t *to, int64_t *n_joined,
                      ty_error *err)
{
    int64_t start[TY_MAX_RANK] = {0}, length[TY_MAX_RANK] = {0}, size[TY_MAX_RANK] = {0}, n = 1;
    if ((int)slice->extents.n != whole->type.rank || whole->type.rank == 0)
        return ty_error_set(err, TY_E_MODEL_FILE, "expected slices of %d dimensions, found %zu", whole->type.rank,
                            slice->extents.n);
    for (int i = 0; i < whole->type.rank; i++) {
        const tf_extent *x = TF_AT(slice->extents, tf_extent, i);
        length[i] = x->has_length ? x->length : -1;
        start[i] = x->has_length ? x->start : 0;
        size[i] = x->has_length ? x->length : whole->type.dim[i];
        if (start[i] < 0 || size[i] < 1 || size[i] > whole->type.dim[i] || start[i] > whole->type.dim[i] - size[i])
            return ty_error_set(err, TY_E_MODEL_FILE, "one of its slices reaches beyond dimension %d", i);
        n *= size[i];
    }
    if ((*n_joined += n) > ty_type_elems(&whole->type))
        return ty_error_set(err, TY_E_MODEL_FILE, "its slices have more elements together than its shape");
    tf_entry *part = tf_bundle_find_slice(b, whole, start, length);
    if (!part || !part->data || part->type.dtype != whole->type.dtype || ty_type_elems(&part->type) != n)
        return ty_error_set(err, TY_E_MODEL_FILE, "one of its slices is missing, or of another type or shape");
    if (tf_bundle_check(b, part, err) < 0)
        return -1;
    join_slice(to, &whole->type, start, part->data, size, ty_dtype_bytes(whole->type.dtype));
    return 0;
}

/* Slices of a partitioned variable do not overlap, so that their elements add up to the whole. */
static int join_slices(tf_bundle *b, tf_entry *e, ty_arena *arena, const void **data, ty_error *err)
{
    int64_t n = 0, n_file = 0;
    for (int i = 0; i < b->n_shards; i++)
        n_file += (int64_t)b->shard[i].n_bytes;
    if (ty_type_bytes(&e->type) > (size_t)n_file)
        return ty_error_set(err, TY_E_MODEL_FILE, "it is larger than all shards together");
    uint8_t *whole = ty_arena_alloc(arena, ty_type_bytes(&e->type));
    for (size_t i = 0; i < e->record.slices.n; i++)
        if (read_slice(b, e, TF_AT(e->record.slices, tf_slice, i), whole, &n, err) < 0)
            return -1;
    if (n != ty_type_elems(&e->type))
        return ty_error_set(err, TY_E_MODEL_FILE,
                            "its slices have %" PRId64 " elements together, its shape has %" PRId64, n,
                            ty_type_elems(&e->type));
    *data = whole;
    return 0;
}

int tf_bundle_value(tf_bundle *b, tf_entry *e, ty_arena *arena, const void **data, ty_error *err)
{
    *data = e->data;
    if (e->data)
        return tf_bundle_check(b, e, err);
    if (e->type.dtype == TY_N_DTYPES)
        return 0;
    return join_slices(b, e, arena, data, err) < 0 ? entry_fail(b, e, err) : 0;
}
