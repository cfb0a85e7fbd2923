/* tf_table.c - reading LevelDB's table format. */
#include "compiler/import/tensorflow/tf_table.h"

#include "base/hash.h"

#include <inttypes.h>
#include <string.h>

#define MAX_KEY_BYTES  ((size_t)1 << 16)
#define MAX_KEYS_BYTES ((size_t)1 << 28) /* of all keys: prefixes that are shared are written out */
#define MAGIC          UINT64_C(0xdb4775248b80fb57)

typedef struct reader {
    ty_bytes file;
    ty_arena *arena;
    size_t key_bytes, block_bytes;
    ty_error *err;
} reader;

/* Rows of one block. */
typedef struct rows {
    tf_table_row *row;
    size_t n, room;
} rows;

/* What lies in an unpacked block has no place in the file. */
static int fail(const reader *r, const uint8_t *at, const char *what)
{
    ty_error_set(r->err, TY_E_MODEL_FILE, "%s", what);
    if (at >= r->file.data && at <= r->file.data + r->file.n)
        return ty_error_at(r->err, "byte %zu", (size_t)(at - r->file.data));
    return -1;
}

static bool take_varint(ty_bytes *in, uint64_t *out)
{
    uint64_t v = 0;
    for (size_t i = 0; i < in->n && i < 10; i++) {
        v |= (uint64_t)(in->data[i] & 0x7f) << (7 * i);
        if (!(in->data[i] & 0x80)) {
            in->data += i + 1;
            in->n -= i + 1;
            *out = v;
            return true;
        }
    }
    return false;
}

static uint32_t read_u32(const uint8_t *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

/* The block that a handle (offset and size as varints) names, its CRC checked. All blocks together are no larger than
 * the file: one that is named again and again would cost its bytes each time. */
static int find_block(reader *r, ty_bytes *handle, ty_bytes *block)
{
    const uint8_t *at = handle->data;
    uint64_t offset, size;
    if (!take_varint(handle, &offset) || !take_varint(handle, &size))
        return fail(r, at, "the address of a block is cut short");
    size_t room = r->file.n - TF_TABLE_FOOTER_BYTES;
    if (offset > room || size > room - offset || room - offset - size < TF_TABLE_TRAILER_BYTES)
        return fail(r, at, "the address of a block lies outside of the file");
    if ((r->block_bytes += (size_t)size + TF_TABLE_TRAILER_BYTES) > r->file.n)
        return fail(r, at, "its blocks overlap");
    *block = (ty_bytes){r->file.data + offset, (size_t)size};
    const uint8_t *trailer = block->data + size;
    if (trailer[0] > 1)
        return fail(r, trailer, "a block is compressed in an unknown way");
    if (ty_crc32c_mask(ty_crc32c(ty_crc32c(0, block->data, (size_t)size), trailer, 1)) != read_u32(trailer + 1))
        return fail(r, block->data, "a block's CRC does not match: the file is damaged");
    if (trailer[0] == 1 && !tf_snappy_read(*block, r->arena, block))
        return fail(r, trailer, "a block compressed with Snappy is damaged");
    return 0;
}

static int add_row(reader *r, rows *out, ty_bytes key, ty_bytes value)
{
    if (out->n == out->room) {
        size_t room = out->room ? 2 * out->room : 64;
        tf_table_row *grown = TY_NEW_ARRAY(r->arena, tf_table_row, room);
        if (out->n)
            memcpy(grown, out->row, out->n * sizeof *grown);
        out->row = grown;
        out->room = room;
    }
    out->row[out->n++] = (tf_table_row){key, value};
    return 0;
}

static int compare_keys(ty_bytes a, ty_bytes b)
{
    int order = memcmp(a.data, b.data, a.n < b.n ? a.n : b.n);
    return order ? order : a.n < b.n ? -1 : a.n > b.n;
}

static int read_entry(reader *r, ty_bytes *in, ty_bytes last, ty_bytes *key, ty_bytes *value)
{
    const uint8_t *at = in->data;
    uint64_t shared, own, size;
    if (!take_varint(in, &shared) || !take_varint(in, &own) || !take_varint(in, &size))
        return fail(r, at, "an entry is cut short");
    if (shared > last.n || own > in->n || size > in->n - own)
        return fail(r, at, "an entry reaches beyond its block");
    if (shared + own > MAX_KEY_BYTES || (r->key_bytes += shared + own + 1) > MAX_KEYS_BYTES)
        return fail(r, at, "its keys are too long");
    uint8_t *text = ty_arena_alloc(r->arena, (size_t)(shared + own) + 1);
    if (shared)
        memcpy(text, last.data, (size_t)shared);
    memcpy(text + shared, in->data, (size_t)own);
    *key = (ty_bytes){text, (size_t)(shared + own)};
    *value = (ty_bytes){in->data + own, (size_t)size};
    in->data += own + size;
    in->n -= (size_t)(own + size);
    return 0;
}

static int read_block(reader *r, ty_bytes block, rows *out)
{
    if (block.n < 4)
        return fail(r, block.data, "a block is too short");
    uint64_t n_restarts = read_u32(block.data + block.n - 4);
    if (n_restarts > (block.n - 4) / 4)
        return fail(r, block.data, "a block has more restart points than bytes");
    ty_bytes in = {block.data, block.n - 4 - (size_t)n_restarts * 4}, last = {(const uint8_t *)"", 0};
    bool is_first = true;
    while (in.n > 0) {
        ty_bytes key = {0}, value = {0};
        const uint8_t *at = in.data;
        if (read_entry(r, &in, last, &key, &value) < 0)
            return -1;
        if (!is_first && compare_keys(last, key) >= 0)
            return fail(r, at, "its keys are not in ascending order");
        if (add_row(r, out, key, value) < 0)
            return -1;
        last = key;
        is_first = false;
    }
    return 0;
}

/* Blocks follow each other: the keys of one are behind those of the one before. */
static int read_blocks(reader *r, const rows *index, ty_bytes meta, tf_table *out)
{
    rows all = {0};
    ty_bytes *blocks = TY_NEW_ARRAY(r->arena, ty_bytes, index->n + 1);
    for (size_t i = 0; i < index->n; i++) {
        ty_bytes handle = index->row[i].value;
        size_t before = all.n;
        if (find_block(r, &handle, &blocks[i]) < 0 || read_block(r, blocks[i], &all) < 0)
            return -1;
        if (before && all.n > before && compare_keys(all.row[before - 1].key, all.row[before].key) >= 0)
            return fail(r, blocks[i].data, "its blocks are not in ascending order");
    }
    *out = (tf_table){all.row, all.n, blocks, index->row, index->n, meta};
    return 0;
}

int tf_table_read(ty_bytes file, ty_arena *arena, tf_table *out, ty_error *err)
{
    reader r = {.file = file, .arena = arena, .err = err};
    if (file.n < TF_TABLE_FOOTER_BYTES)
        return ty_error_set(err, TY_E_MODEL_FILE, "expected a table of at least %d bytes, found %zu",
                            TF_TABLE_FOOTER_BYTES, file.n);
    ty_bytes footer = {file.data + file.n - TF_TABLE_FOOTER_BYTES, TF_TABLE_FOOTER_BYTES - 8};
    uint64_t magic;
    memcpy(&magic, footer.data + footer.n, sizeof magic);
    if (magic != MAGIC)
        return fail(&r, footer.data + footer.n, "expected the magic number of a checkpoint's index, found another");
    ty_bytes block, meta;
    rows index = {0};
    if (find_block(&r, &footer, &meta) < 0 || find_block(&r, &footer, &block) < 0 || read_block(&r, block, &index) < 0)
        return -1;
    return read_blocks(&r, &index, meta, out);
}

/* ---- writing ---- */

typedef struct writer {
    uint8_t *out;
    size_t n;
} writer;

static void put(writer *w, const void *bytes, size_t n)
{
    memcpy(w->out + w->n, bytes, n);
    w->n += n;
}

/* A block with its trailer; the handle (two varints) says where. */
static size_t put_block(writer *w, const uint8_t *block, size_t n, uint8_t *handle)
{
    size_t k = ty_wire_put_varint(handle, w->n);
    k += ty_wire_put_varint(handle + k, n);
    uint8_t kind = 0;
    uint32_t crc = ty_crc32c_mask(ty_crc32c(ty_crc32c(0, block, n), &kind, 1));
    put(w, block, n);
    put(w, &kind, 1);
    put(w, &crc, sizeof crc);
    return k;
}

/* One entry of the index block, which shares nothing with the one before. */
static void put_index_entry(writer *w, ty_bytes key, const uint8_t *handle, size_t n)
{
    w->out[w->n++] = 0;
    w->n += ty_wire_put_varint(w->out + w->n, key.n);
    w->n += ty_wire_put_varint(w->out + w->n, n);
    put(w, key.data, key.n);
    put(w, handle, n);
}

static void put_restarts(writer *w, const uint32_t *at, uint32_t n)
{
    static const uint32_t none;
    put(w, n ? at : &none, (n ? n : 1) * sizeof *at);
    n = n ? n : 1;
    put(w, &n, sizeof n);
}

ty_bytes tf_table_write(const tf_table *t, const uint8_t *const *block, ty_arena *arena)
{
    size_t room = TF_TABLE_FOOTER_BYTES + t->meta.n + 64, index_room = 64;
    for (size_t i = 0; i < t->n_blocks; i++) {
        room += t->block[i].n + TF_TABLE_TRAILER_BYTES;
        index_room += t->index[i].key.n + 64;
    }
    writer w = {.out = ty_arena_alloc(arena, room + index_room)}, index = {.out = ty_arena_alloc(arena, index_room)};
    uint32_t *restart = TY_NEW_ARRAY(arena, uint32_t, t->n_blocks);
    uint8_t handle[32], footer[TF_TABLE_FOOTER_BYTES] = {0};
    for (size_t i = 0; i < t->n_blocks; i++) {
        size_t n = put_block(&w, block[i], t->block[i].n, handle);
        restart[i] = (uint32_t)index.n;
        put_index_entry(&index, t->index[i].key, handle, n);
    }
    put_restarts(&index, restart, (uint32_t)t->n_blocks);
    size_t n = put_block(&w, t->meta.data, t->meta.n, footer);
    put_block(&w, index.out, index.n, footer + n);
    memcpy(footer + TF_TABLE_FOOTER_BYTES - 8, &(uint64_t){MAGIC}, 8);
    put(&w, footer, sizeof footer);
    return (ty_bytes){w.out, w.n};
}
