/* source.h - the bytes of one pass over files, or of one FIFO, in blocks that a thread reads ahead.
 *
 * A few blocks of fixed size go round between the thread, which fills them, and one consumer. Files are read from end
 * to end with large reads and never mapped; while one is read the next is open already. Compressed ones are inflated on
 * the way. Errors arrive in their place in the sequence, and name the file.
 */
#ifndef TY_CONTAINER_INPUT_STREAM_SOURCE_H
#define TY_CONTAINER_INPUT_STREAM_SOURCE_H

#include "container/input/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TY_BLOCK_BYTES      ((size_t)1 << 20)
#define TY_BLOCK_FAST_BYTES ((size_t)4 << 20)
/* Before the data of every block there is room for so many bytes, which is the consumer's. */
#define TY_BLOCK_HEAD ((size_t)64 << 10)
/* Memory of a source with such blocks: those on their way, and what is inflated of. */
size_t ty_source_bytes(size_t block_bytes);

#define TY_SOURCE_IDLE_MS 600000

typedef struct ty_block {
    uint8_t *data;
    size_t n;        /* 0 only where a file has no bytes */
    int file;        /* which of the list; 0 of a FIFO */
    int64_t at;      /* where it begins in the file, inflated */
    bool ends_file;  /* nothing of the file follows */
    bool ends_files; /* nor of any other */
} ty_block;

typedef struct ty_source_config {
    const ty_data_file *files; /* [n_files], read in the order that `which` says; borrowed for the life of the source */
    const int *which;
    int n_files;
    const char *fifo;   /* instead of files: copied */
    int64_t timeout_ms; /* that a FIFO may let wait: to appear, for a writer, for more bytes */
    size_t block_bytes;
    size_t head_bytes; /* that a FIFO's first block has at least, unless fewer come; 0: those that tell a compression */
    /* Parquet: rows of the files, packed so; borrowed. NULL: bytes as they lie there. */
    const struct parquet_packing *packing;
    int64_t idle_ms; /* no block taken for so long while all are full is told in a warning; 0: TY_SOURCE_IDLE_MS */
} ty_source_config;

typedef struct ty_source ty_source;

int ty_source_open(const ty_source_config *config, ty_source **out, ty_error *err);
/* Ends the thread and closes everything; the writer of a FIFO sees EPIPE. NULL is fine. False: it was of a FIFO that
 * nobody had opened for writing. */
bool ty_source_close(ty_source *s);

/* The next block: 1, 0 at the end, -1. A block is valid until the second call after it. */
int ty_source_next(ty_source *s, ty_block *out, ty_error *err);
/* The first block as the next call will give it, before any was taken: as ty_source_next. */
int ty_source_peek(ty_source *s, ty_block *out, ty_error *err);
/* From any thread: who waits in ty_source_next gets 0 soon, and so does every later call. */
void ty_source_stop(ty_source *s);
/* Time that the consumer has waited. */
int64_t ty_source_waited_ns(const ty_source *s);

#endif
