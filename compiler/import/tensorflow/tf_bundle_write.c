/* tf_bundle_write.c - a checkpoint again, with other bytes in some tensors.
 *
 * Tensors keep their sizes, so shards keep their layout, and in the index only CRCs change, which have a fixed width:
 * it is written with the same blocks, not compressed.
 */
#include "base/hash.h"
#include "compiler/import/tensorflow/tf_bundle.h"

#include <stdlib.h>
#include <string.h>

typedef struct rewriter {
    const tf_bundle *b;
    const void **data; /* by entry; NULL: as it is */
    uint8_t **block;   /* of the table, with new CRCs */
    ty_arena arena;
} rewriter;

static int compare_places(const void *x, const void *y)
{
    const tf_entry *a = *(const tf_entry *const *)x, *b = *(const tf_entry *const *)y;
    return a->record.offset < b->record.offset ? -1 : a->record.offset > b->record.offset;
}

/* Entries with new bytes in a shard, by where they lie. Text and the like cannot be among them. */
static size_t list_changed(rewriter *r, int shard, const tf_entry **out)
{
    size_t n = 0;
    for (int i = 0; i < r->b->n_entries; i++)
        if (r->data[i] && r->b->entry[i].data && r->b->entry[i].record.shard == shard)
            out[n++] = &r->b->entry[i];
    qsort(out, n, sizeof(out[0]), compare_places);
    return n;
}

static int write_shard(rewriter *r, int shard, ty_file_writer *w, ty_error *err)
{
    const ty_file_view *old = &r->b->shard[shard];
    const tf_entry **changed = TY_NEW_ARRAY(&r->arena, const tf_entry *, r->b->n_entries);
    size_t n = list_changed(r, shard, changed), at = 0;
    for (size_t i = 0; i < n; i++) {
        size_t from = (size_t)changed[i]->record.offset, size = (size_t)changed[i]->record.size;
        if (from < at)
            return ty_error_set(err, TY_E_MODEL_FILE, "tensor \"%.200s\" lies where another does", changed[i]->key);
        if (ty_file_writer_add(w, old->bytes + at, from - at, err) < 0 ||
            ty_file_writer_add(w, r->data[changed[i] - r->b->entry], size, err) < 0)
            return -1;
        at = from + size;
    }
    return ty_file_writer_add(w, old->bytes + at, old->n_bytes - at, err);
}

static int write_shards(rewriter *r, const char *prefix, ty_error *err)
{
    for (int i = 0; i < r->b->n_shards; i++) {
        ty_file_writer w;
        if (ty_file_writer_open(&w, tf_bundle_shard_path(&r->arena, prefix, i, r->b->n_shards), 0644, err) < 0)
            return -1;
        int rc = write_shard(r, i, &w, err);
        if (rc == 0)
            rc = ty_file_writer_commit(&w, err);
        ty_file_writer_abandon(&w);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* Puts a CRC where the old one stands, in the copy of its block. */
static int put_crc(rewriter *r, const tf_entry *e, uint32_t crc, ty_error *err)
{
    const tf_table *t = &r->b->table;
    for (size_t i = 0; e->crc && i < t->n_blocks; i++)
        if (e->crc >= t->block[i].data && e->crc < t->block[i].data + t->block[i].n) {
            memcpy(r->block[i] + (e->crc - t->block[i].data), &crc, sizeof crc);
            return 0;
        }
    return ty_error_set(err, TY_E_UNSUPPORTED, "tensor \"%.200s\" has no CRC in the index, and no place for one",
                        e->key);
}

static int write_index(rewriter *r, const char *prefix, ty_error *err)
{
    const tf_table *t = &r->b->table;
    for (int i = 0; i < r->b->n_entries; i++) {
        const tf_entry *e = &r->b->entry[i];
        if (!r->data[i] || !e->data)
            continue;
        if (put_crc(r, e, ty_crc32c_mask(ty_crc32c(0, r->data[i], (size_t)e->record.size)), err) < 0)
            return -1;
    }
    ty_bytes file = tf_table_write(t, (const uint8_t *const *)r->block, &r->arena);
    return ty_file_write(ty_arena_printf(&r->arena, "%s.index", prefix), file.data, file.n, 0644, err);
}

int tf_bundle_write(const tf_bundle *b, const char *prefix, tf_find_entry *find, void *ctx, ty_error *err)
{
    rewriter r = {.b = b};
    ty_arena_init(&r.arena);
    r.data = TY_NEW_ARRAY(&r.arena, const void *, b->n_entries);
    r.block = TY_NEW_ARRAY(&r.arena, uint8_t *, b->table.n_blocks);
    for (int i = 0; i < b->n_entries; i++)
        r.data[i] = b->entry[i].data && b->entry[i].type.dtype != TY_N_DTYPES ? find(ctx, &b->entry[i]) : NULL;
    for (size_t i = 0; i < b->table.n_blocks; i++)
        r.block[i] = ty_arena_copy(&r.arena, b->table.block[i].data, b->table.block[i].n);
    int rc = write_shards(&r, prefix, err) < 0 ? -1 : write_index(&r, prefix, err);
    ty_arena_fini(&r.arena);
    return rc;
}
