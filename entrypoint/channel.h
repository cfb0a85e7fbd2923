/* channel.h - which channel of the job a data section reads, how, and what of it each rank takes.
 *
 * Pure functions of the job's facts, so that `trainyard data plan` can print and tests can try what a job will do.
 *
 *   access   samples by number, or a stream: in the order in which they come, each epoch once through
 *   choice   in Pipe mode a FIFO has one reader. Ranks of a host need a channel each: those that are called like the
 *            training channel but for a number at the end (train, train-1 ... train-10), by that number
 *   part     of what the ranks would all read, each takes its own. Sources: the sharding rules of SageMaker's
 *            PipeModeDataset and of its DeepFM sample:
 *
 *              own data on each channel of a host?   sharded by object key?   a rank takes
 *              yes                                   yes                      all that it reads
 *              yes                                   no                       its host's part, of all hosts
 *              no                                    yes                      its part, of the ranks of its host
 *              no                                    no                       its part, of all ranks
 */
#ifndef TY_ENTRYPOINT_CHANNEL_H
#define TY_ENTRYPOINT_CHANNEL_H

#include "base/arena.h"
#include "entrypoint/job.h"
#include "entrypoint/recipe.h"

/* Where a rank is. A session that trains alone: {0, 1, 0, 1}. */
typedef struct ty_place {
    int host, hosts, local, locals, rank, ranks;
} ty_place;

/* The channel that a section names, or NULL if the job has none that matches. Pipe mode: that of place->local; NULL
 * with *n_alike smaller than place->locals: there is none for this rank. *n_alike: channels that match, 1 where the
 * mode is not Pipe. */
const ty_job_channel *ty_channel_of_rank(const ty_job *job, const char *name, const ty_place *place, int *n_alike);
/* "train, train-1, test", in the order of their numbers. Returns out. */
const char *ty_channel_names(const ty_job *job, char *out, size_t n);

/* Whether there is a FIFO <path>_<number>. */
bool ty_channel_has_fifo(const char *path);

/* What is known of a source when it is decided how it is read. */
typedef struct ty_access_facts {
    ty_access wanted;
    ty_job_mode mode;
    bool is_records;       /* ty_access_is_records */
    uint64_t bytes;        /* of all files; if decoded, of what they become; Pipe mode: 0 */
    uint64_t memory_bytes; /* what the run may take */
    bool needs_length;     /* a schedule depends on how long an epoch is, and nobody says it */
    bool is_decoded;       /* ty_format_is_columns: by number, all that is wanted is in memory, in FastFile mode too */
} ty_access_facts;

/* tfrecord, recordio, mxnet, libsvm, jsonlines, lines, parquet, arrow: a format that streams and need not be walked. */
bool ty_access_is_records(const char *format);
/* Whether it is a stream; *why says why, for the log. */
bool ty_access_streams(const ty_access_facts *f, const char **why);

/* What a rank takes of a stream: part `index` of `n`, whole files or rows of each batch that all n share. */
typedef struct ty_stream_part {
    int64_t index, n;
    bool by_file;
    bool is_uneven; /* parts of other ranks may have more batches */
    char why[160];
} ty_stream_part;

typedef struct ty_stream_part_facts {
    ty_part_rule wanted;
    ty_place place;
    bool own_data;   /* each rank of a host reads data that no other rank of it does */
    bool sharded;    /* by object key: each host has files of its own */
    bool one_reader; /* the first rank of each host reads, the others do not */
    int n_files;     /* 0: a pipe */
    bool even_files; /* the largest is at most a fifth larger than the smallest */
} ty_stream_part_facts;

ty_stream_part ty_stream_part_of(const ty_stream_part_facts *f);

#endif
