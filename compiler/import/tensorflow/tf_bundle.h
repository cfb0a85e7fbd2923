/* tf_bundle.h - a checkpoint of TensorFlow (TensorBundle): PREFIX.index, a table of what is where, and shards
 * PREFIX.data-NNNNN-of-MMMMM with the bytes of the tensors.
 *
 * Shards are mapped, not copied. A tensor's CRC is checked when it is asked for. Tensors that were saved in slices
 * (partitioned variables) are joined. Sources: output-formats of TensorFlow 2.21 (tensor_bundle.proto,
 * tensor_slice.proto, lib/strings/ordered_code for the keys of slices).
 */
#ifndef TY_COMPILER_IMPORT_TENSORFLOW_TF_BUNDLE_H
#define TY_COMPILER_IMPORT_TENSORFLOW_TF_BUNDLE_H

#include "base/file.h"
#include "compiler/import/tensorflow/tf_proto.h"
#include "compiler/import/tensorflow/tf_table.h"

typedef struct tf_entry {
    const char *key; /* a name; of slices: encoded bytes, cut at the first NUL */
    ty_bytes full_key;
    tf_bundle_record record;
    ty_type type;        /* dtype TY_N_DTYPES: one that we have not */
    const uint8_t *crc;  /* of the record, in the index; NULL: not written, which means 0 */
    const uint8_t *data; /* in its shard; NULL: the whole of a tensor in slices */
    bool is_checked;
} tf_entry;

typedef struct tf_bundle {
    const char *prefix;
    ty_file_view index;
    ty_file_view *shard;
    int n_shards;
    tf_table table;
    tf_entry *entry; /* ascending by full_key */
    int n_entries;
    ty_arena arena;
} tf_bundle;

int tf_bundle_open(const char *prefix, tf_bundle *out, ty_error *err);
void tf_bundle_close(tf_bundle *b);
/* Gives mapped pages of the shards back to the system. */
void tf_bundle_drop_pages(const tf_bundle *b);

/* NULL: there is none. */
tf_entry *tf_bundle_find(const tf_bundle *b, const char *key);
/* Checks CRCs and gives the bytes of a tensor of ours: in its shard, or joined in the arena if it lies in slices. */
int tf_bundle_value(tf_bundle *b, tf_entry *e, ty_arena *arena, const void **data, ty_error *err);
/* The entry of one slice of a tensor; NULL: it was not saved so. start, length: one a dim; length -1: all of it. */
tf_entry *tf_bundle_find_slice(const tf_bundle *b, const tf_entry *whole, const int64_t *start, const int64_t *length);
/* CRC of text and other tensors whose bytes we do not read. */
int tf_bundle_check(tf_bundle *b, tf_entry *e, ty_error *err);

/* Path of a shard. */
const char *tf_bundle_shard_path(ty_arena *arena, const char *prefix, int shard, int n_shards);

/* New bytes for an entry with data of its own: as many as its type has; NULL keeps the old. */
typedef const void *tf_find_entry(void *ctx, const tf_entry *e);
/* The same checkpoint under another prefix with other bytes: shards and index keep their layout, CRCs follow. The index
 * comes last. */
int tf_bundle_write(const tf_bundle *b, const char *prefix, tf_find_entry *find, void *ctx, ty_error *err);

#endif
