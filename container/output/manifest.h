/* manifest.h - MANIFEST.json: what makes a folder of files a checkpoint.
 *
 * It is written last and lists every file with size and SHA-256, so a checkpoint is complete exactly when its manifest
 * is there and every line of it holds. Its own SHA-256 over all bytes before stands in its last line:
 *
 *     {
 *       "format": "trainyard-checkpoint",
 *       "version": 2,
 *       "step": 1200,
 *       "world_size": 1,
 *       "position": {"epoch": 3, "batch": 17, "seed": "1", "rng": "0", "best_metric": 0.97, "best_step": 1100,
 *                    "worse": 1},
 *       "plan_hash": "...",
 *       "recipe_hash": "...",
 *       "run": "seed 1, batch_size 64, ...",
 *       "files": [
 *         {"name": "rank-00000.bin", "bytes": 4096, "sha256": "..."}
 *       ],
 *       "sha256": "..."
 *     }
 *
 * 64-bit words stand as text, since JSON readers round numbers past 2^53. "worse" stands only where it is not 0.
 * Version 1, which is still read, has no "run".
 */
#ifndef TY_CONTAINER_OUTPUT_MANIFEST_H
#define TY_CONTAINER_OUTPUT_MANIFEST_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TY_MANIFEST_NAME       "MANIFEST.json"
#define TY_MANIFEST_MAX_BYTES  (4u << 20)
#define TY_MANIFEST_HASH_BYTES 65   /* of a hash as text, with its NUL */
#define TY_MANIFEST_RUN_BYTES  1024 /* of `run`, with its NUL */
#define TY_MANIFEST_WORLD_MAX  16384

/* What a run needs besides its tensors to go on with the same bits. */
typedef struct ty_train_state {
    int64_t step;
    int64_t epoch; /* the epoch being worked on */
    int64_t batch; /* batches of this epoch already consumed */
    uint64_t seed;
    uint64_t rng; /* caller's word: position of a generator that counts on its own; 0 if all follow the step */
    bool has_best;
    double best_metric;
    int64_t best_step;
    int64_t n_worse; /* evaluations since best_step that count and were no better: for early stopping */
    char plan_hash[TY_MANIFEST_HASH_BYTES];   /* of the memory plan, graph and layout of weights; "" if unused.
                                                 [0-9a-zA-Z_.:-] only */
    char recipe_hash[TY_MANIFEST_HASH_BYTES]; /* of the recipe; likewise */
    char run[TY_MANIFEST_RUN_BYTES];          /* for people, what recipe_hash is made of: "name value, name value", in
                                                 printable ASCII; "" if nobody has said it */
} ty_train_state;

typedef struct ty_manifest_file {
    char name[32]; /* "rank-00003.bin", nothing else */
    uint64_t n_bytes;
    char sha256[TY_MANIFEST_HASH_BYTES]; /* lower-case hex */
} ty_manifest_file;

typedef struct ty_manifest {
    ty_train_state state;
    int world_size;
    const ty_manifest_file *files; /* world_size of them, in the order of ranks */
} ty_manifest;

/* "rank-00003.bin" into name[32]. */
void ty_manifest_file_name(int rank, char name[32]);

/* Appends the manifest's text. */
int ty_manifest_format(const ty_manifest *m, ty_buf *out, ty_error *err);
/* Parses and checks a text: its hash, every key, no key besides, one file for each rank. `path` is for messages. The
 * files are allocated in `arena`. */
int ty_manifest_parse(const char *text, size_t n_bytes, const char *path, ty_arena *arena, ty_manifest *out,
                      ty_error *err);

#endif
