/* data_plan.h - what a job will do with its data: from where, how, in which order, how often, with how much memory.
 *
 * A pure function of the job's facts, for `trainyard data plan` and for tests. It decides nothing of its own: access
 * and parts are those of channel.h, orders those of sampler.h and stream.h, threads those of tuner.h.
 */
#ifndef TY_ENTRYPOINT_DATA_PLAN_H
#define TY_ENTRYPOINT_DATA_PLAN_H

#include "entrypoint/channel.h"

/* What is known of one section of a recipe's data. */
typedef struct ty_data_plan_facts {
    bool is_train;
    const char *format;        /* "tfrecord"; NULL: not known before the FIFO is read */
    bool is_table;             /* csv: parsed when it is opened */
    ty_access_facts access;    /* mode, wanted access, bytes, memory */
    ty_stream_part_facts part; /* hosts and processes, files, shards */
    int n_alike;               /* Pipe mode: channels like this one */
    int64_t samples;           /* of all hosts; 0: not known */
    int64_t batch_size;        /* rows of all ranks together; 0: auto, not known here */
    int64_t epochs;
    int64_t shuffle_rows; /* of a stream's buffer */
    bool shuffles;
    int remainder;          /* ty_remainder; not of evaluation, which pads */
    uint64_t row_bytes;     /* of a sample in a batch; 0: not known */
    int depth;              /* batches in the ring */
    uint64_t shuffle_limit; /* that a stream's buffer may take */
    uint64_t block_bytes;   /* that reading a stream takes */
    uint64_t work_bytes;    /* that a thread decodes in, beside rows; 0: next to none, or not known */
    uint64_t memory_said;   /* data_memory; 0: left out */
    int workers, max_workers;
    int cores; /* of a host */
} ty_data_plan_facts;

typedef struct ty_data_plan_stage {
    const char *name; /* "shard" */
    char what[200], why[200];
} ty_data_plan_stage;

enum { TY_DATA_PLAN_STAGES = 7 };

typedef struct ty_data_plan {
    bool streams;
    const char *why_access;
    ty_stream_part part;                           /* of the rank that the facts are about */
    ty_data_plan_stage stage[TY_DATA_PLAN_STAGES]; /* in the order in which they happen */
    int64_t rank_rows;                             /* of a batch, on a rank; 0: not known */
    int64_t batches;                               /* of an epoch; 0: not known before it ends */
    bool is_agreed;                                /* ranks agree on that number, since their data may differ */
    uint64_t ring_bytes;                           /* on a rank; 0: not known */
    uint64_t order_bytes;                          /* numbers of samples, or the buffer of a stream at most */
    uint64_t block_bytes;                          /* of a stream: what is being read */
    uint64_t work_bytes;                           /* that threads decode in at most */
    char problem[200];                             /* why the job would be refused; "": it would not */
} ty_data_plan;

void ty_data_plan_make(const ty_data_plan_facts *facts, ty_data_plan *out);

#endif
