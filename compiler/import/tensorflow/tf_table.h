/* tf_table.h - the sorted table in which a checkpoint keeps its index (LevelDB's format).
 *
 *     data blocks, metaindex block, index block    each followed by 5 bytes: compression (0 none, 1 Snappy), masked
 *                                                  CRC-32C of the block and that byte
 *     footer of 48 bytes                           where metaindex and index are, padding, magic number
 *
 * A block is a row of entries (varints shared, own, value size; own bytes of the key; value) where a key begins with
 * the first `shared` bytes of the one before, then offsets of entries with shared = 0 and their number. The index block
 * says where the data blocks are.
 */
#ifndef TY_COMPILER_IMPORT_TENSORFLOW_TF_TABLE_H
#define TY_COMPILER_IMPORT_TENSORFLOW_TF_TABLE_H

#include "compiler/import/wire.h"

#include <stdbool.h>

#define TF_TABLE_TRAILER_BYTES 5
#define TF_TABLE_FOOTER_BYTES  48

typedef struct tf_table_row {
    ty_bytes key;   /* in the arena; a NUL follows that does not count */
    ty_bytes value; /* in its block */
} tf_table_row;

typedef struct tf_table {
    const tf_table_row *row; /* keys strictly ascending as bytes */
    size_t n_rows;
    const ty_bytes *block;     /* data blocks without their trailers: in the file, or unpacked in the arena */
    const tf_table_row *index; /* one a data block */
    size_t n_blocks;
    ty_bytes meta;
} tf_table;

/* Reads a whole table. Every offset, length, order of keys and CRC is checked. */
int tf_table_read(ty_bytes file, ty_arena *arena, tf_table *out, ty_error *err);
/* The bytes of the table as a file again, not compressed, with other bytes in its data blocks: block[i] has as many as
 * t->block[i]. Of a table that TensorFlow wrote without compression and that has the same data: the same file. */
ty_bytes tf_table_write(const tf_table *t, const uint8_t *const *block, ty_arena *arena);

/* Unpacks Snappy. False: damaged. */
bool tf_snappy_read(ty_bytes in, ty_arena *arena, ty_bytes *out);

#endif
