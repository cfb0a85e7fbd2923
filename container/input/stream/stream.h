/* stream.h - records that come one after the other, from files read from end to end or from the FIFOs of a channel.
 *
 * A data set (dataset.h) looks at everything before the first step and then reads samples by number. A stream does
 * neither: it knows the types from the first records, checks every value when it is decoded, and an epoch ends where
 * the bytes end. It takes what has frames of its own: TFRecord, RecordIO, LibSVM, JSON Lines, CSV without a header,
 * MXNet's pictures; and of files Parquet, whose rows it makes such.
 *
 *     ty_stream *s;
 *     if (ty_stream_open(&config, &s, err) < 0) ...            types are known; nothing has been consumed
 *     ty_stream_order order = {.n_rows = 128, .shuffle_rows = 10000, .seed = seed};
 *     if (ty_stream_feed(s, &order, &feed, err) < 0) ...       give it to a prefetch; close it after that
 *     ...                                                      another feed, for the next evaluation
 *     ty_stream_close(s);
 *
 * One feed at a time. A feed over files starts at any position. Over a channel in Pipe mode the FIFO that comes next is
 * the epoch that start() names, of which it passes over the batches before the position: exact as long as the platform
 * sends the same order again.
 */
#ifndef TY_CONTAINER_INPUT_STREAM_STREAM_H
#define TY_CONTAINER_INPUT_STREAM_STREAM_H

#include "container/input/feed.h"

#define TY_STREAM_TIMEOUT_MS   120000
#define TY_STREAM_MEMORY_BYTES ((size_t)1 << 30)
/* The generator's stream for what leaves the shuffle buffer. */
#define TY_STREAM_BUFFER 0x53425546u

struct ty_image_sums;

/* What to read. All is borrowed for the time of the call. */
typedef struct ty_stream_config {
    /* Files ... */
    const char *const *paths; /* folders of channels or plain files */
    int n_paths;
    const char *pattern; /* take only files that match this shell pattern; NULL: all */
    bool fast_file;      /* fetched from an object store while they are read: larger blocks */
    /* ... or the FIFOs <input_folder>/<channel>_<number> of a channel in Pipe mode. */
    const char *channel;      /* NULL: files */
    const char *input_folder; /* NULL: /opt/ml/input/data */
    const char *state_folder; /* of the number of the next FIFO; NULL: /opt/ml/pipe_state */
    int64_t timeout_ms;       /* that a FIFO may let wait: to appear, to be opened, to go on; 0: TY_STREAM_TIMEOUT_MS */

    const char *format;       /* NULL: by content type; of files also by extension; then by first bytes */
    const char *content_type; /* NULL or "" where there is none */
    const ty_field *fields;
    int n_fields;
    char csv_delimiter; /* 0: a comma */
    ty_csv_missing csv_missing;
    ty_index_base index_base;      /* LibSVM */
    ty_index_kept index;           /* given: of the data that these are to be like */
    ty_agree agree;                /* as ty_data_source's */
    bool lenient;                  /* LibSVM: as ty_data_source's */
    bool blank_lines;              /* lines: as ty_data_source's */
    bool wrapped;                  /* RecordWrapperType RecordIO: each object is the payload of a RecordIO record */
    const char *const *attributes; /* of an augmented manifest, in their order: each is a RecordIO record, and as many
                                      are a sample. A field's name, or its member, is its attribute's */
    int n_attributes;
    size_t memory_bytes; /* that the shuffle buffer may take; 0: TY_STREAM_MEMORY_BYTES */
    bool skip_bad;       /* bad records are left out (bad.h), max_bad of them at most; their batches have fewer rows */
    int64_t max_bad;
    size_t block_bytes; /* of a read; 0: TY_BLOCK_BYTES, or TY_BLOCK_FAST_BYTES with fast_file */
} ty_stream_config;

/* How the records of an epoch are divided among n shards. ROWS: records pass the shuffle buffer and are cut into
 * batches of n * n_rows; shard r takes rows r * n_rows to (r + 1) * n_rows - 1 of each. All shards have as many
 * batches, and the order is the same for every division of the same global batch. RECORDS: shard r keeps records r, r +
 * n, ... FILES: files r, r + n, ...; not for channels in Pipe mode. With these two shards may have different numbers of
 * batches. */
typedef enum ty_stream_shard { TY_SHARD_ROWS, TY_SHARD_RECORDS, TY_SHARD_FILES } ty_stream_shard;

/* An integer field must lie in [min, max]; `what` says what it is used for: "label". */
typedef struct ty_stream_range {
    int field;
    int64_t min, max;
    bool has_also; /* a value outside is right too: of labels that do not count */
    int64_t also;
    const char *what;
} ty_stream_range;

/* Which records make which batch. Borrowed for the life of the feed. */
typedef struct ty_stream_order {
    int64_t n_rows; /* of a batch */
    ty_tail tail;   /* PAD: the last batch repeats rows of its own, which do not count */
    bool fills;     /* with PAD: they count. By rows, the free places of all shards take the rows of the whole batch in
                       turn, so that n shards train what one would */
    ty_stream_shard shard_by;
    int64_t shard, n_shards; /* n_shards 0 counts as 1 */
    int64_t shuffle_rows;    /* records in the shuffle buffer, or as many as its memory holds; 0: as they come */
    uint64_t seed;
    bool augment; /* ty_pick */
    const ty_stream_range *range;
    int n_ranges;
} ty_stream_order;

/* Read-only for everybody. */
typedef struct ty_stream {
    const char *format; /* "tfrecord" */
    int n_fields;
    const ty_field_info *field; /* types; nothing is known of values */
    int n_files;                /* 0: Pipe mode */
    int64_t file_bytes;
    int64_t n_records;    /* of all files, where they say it: Parquet; 0: nobody knows */
    size_t read_bytes;    /* memory of what is being read: blocks; of Parquet two row groups */
    size_t memory_bytes;  /* that the shuffle buffer may take */
    bool even_files;      /* the largest is at most 20 % larger than the smallest */
    uint64_t first_hash;  /* of the first record: channels that begin alike hold the same data, as good as surely */
    uint64_t fingerprint; /* as ty_dataset's; in Pipe mode of the channel's name in place of files */
    ty_index_kept index;  /* LibSVM, where it follows from the data or is declared */
    ty_bad bad;           /* what was left out so far; while a prefetch runs its workers write here */
} ty_stream;

/* Reads the first records, which decide types; of a channel in Pipe mode that opens the next FIFO. A channel that
 * somebody else is reading is refused. Where transforms have to learn of all data, or LibSVM's rows have no declared
 * width, files are read from end to end before, once; in Pipe mode that is refused. On success *out must be closed. */
int ty_stream_open(const ty_stream_config *config, ty_stream **out, ty_error *err);
/* NULL is fine. */
void ty_stream_close(ty_stream *stream);

/* The stream must outlive the feed. */
int ty_stream_feed(ty_stream *stream, const ty_stream_order *order, ty_data_feed **out, ty_error *err);

#endif
