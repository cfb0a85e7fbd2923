/* serve.h - a channel in Pipe mode, fed from files of this machine as the platform feeds it from S3.
 *
 * For each epoch e there is one FIFO, INTO/CHANNEL_e. It is written once somebody has opened it: all objects one behind
 * the other, in order of their names or newly shuffled, compressed ones inflated, each as one RecordIO record if that
 * is asked for; or the attributes of each line of an augmented manifest, a record each. Closing it ends the epoch. A
 * reader that closes its end earlier gets the next epoch. Source: the Pipe mode chapters of SageMaker's guide and
 * sagemaker-tensorflow-extensions.
 */
#ifndef TY_CONTAINER_INPUT_SERVE_SERVE_H
#define TY_CONTAINER_INPUT_SERVE_SERVE_H

#include "base/error.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* The generator's stream for the order of objects. */
#define TY_STREAM_SERVE 0x53525645u

typedef struct ty_serve_config {
    const char *const
        *paths; /* folders, which are walked as those of channels, and files; with attributes: manifests */
    int n_paths;
    const char *into, *channel; /* the folder, made if need be, and the FIFOs' name in front of _0, _1 ... */
    int64_t epochs;             /* 0: until it is stopped */
    bool shuffle;               /* objects, or lines of a manifest, in another order each epoch */
    uint64_t seed;
    bool wrap;                     /* objects as RecordIO records */
    bool is_verbatim;              /* compressed objects as they are */
    const char *const *attributes; /* of an augmented manifest, as the job lists them; "-ref" at the end: the object */
    int n_attributes;
    int64_t shard, n_shards; /* ShardedByS3Key: objects (lines) shard, shard + n_shards ...; 0 shards count as 1 */
    const volatile sig_atomic_t *stop; /* set by a signal that interrupts calls; NULL: never */
} ty_serve_config;

typedef struct ty_serve_told {
    int64_t n_objects; /* of an epoch of this shard */
    int64_t n_epochs;  /* that were opened */
    int64_t n_left;    /* of those, how many the reader left before their end */
    uint64_t n_bytes;  /* written */
    double waited_s;   /* for a reader to open */
    double written_s;  /* while one was there */
} ty_serve_told;

/* Returns when all epochs are over or it was stopped; no FIFO of its own is left then. The caller ignores SIGPIPE.
 * TY_E_DATA for a manifest's line, with its place: of the first epoch before anything is served. */
int ty_serve_channel(const ty_serve_config *config, ty_serve_told *told, ty_error *err);

#endif
