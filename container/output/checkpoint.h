/* checkpoint.h - save the state of a run so that no crash can take it away, and find it again.
 *
 *     /opt/ml/checkpoints/step-00001200/rank-00000.bin     the tensors of each rank (rankfile.h)
 *     /opt/ml/checkpoints/step-00001200/MANIFEST.json      written last (manifest.h)
 *
 * A checkpoint is complete or absent, for every instant at which a process is killed or power is lost: each file goes
 * through a temporary name, fsync and rename, and the folders are synced; only what a manifest lists with matching
 * size and SHA-256 counts. No folder is ever renamed, because the folder may be mirrored file by file to S3, which has
 * no rename and no order: any subset of the files may come back on another machine.
 *
 * On start:
 *     ty_checkpoints ckpt = {.dir = dir, .keep = 3, .world_size = 1};
 *     ty_checkpoints_open(&ckpt, err);
 *     ty_checkpoint_restore(&ckpt, tensors, n, &arena, &restored, err);     // log restored.skipped
 *     ty_checkpoints_tidy(&ckpt, &arena, &notes, err);                      // rank 0; log the notes
 * In the training loop, between two steps:
 *     if (ty_checkpoint_save(&ckpt, &state, tensors, n, &err) < 0) {
 *         log(&err);
 *         if (ty_checkpoints_must_stop(&ckpt)) ...
 *     }
 *
 * A save may be asked for between any two steps, but not from a signal handler.
 */
#ifndef TY_CONTAINER_OUTPUT_CHECKPOINT_H
#define TY_CONTAINER_OUTPUT_CHECKPOINT_H

#include "base/arena.h"
#include "base/error.h"
#include "container/output/manifest.h"
#include "base/named_tensor.h"
#include "container/output/rankfile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ty_checkpoint_policy {
    TY_CHECKPOINT_WARN, /* go on without; two failed saves in a row stop the run */
    TY_CHECKPOINT_STOP, /* the first failed save stops the run */
} ty_checkpoint_policy;

/* Gets the tensors of one file of a checkpoint, from wherever it lies: `parts` are filled with what rank `file` of
 * those that saved it had written. As ty_rankfile_read, whose faults it tells; TY_RANKFILE_FINE with -1: no file is at
 * fault, but whoever was asked for it does not answer. */
typedef int ty_checkpoint_fetch(void *ctx, const char *path, const ty_manifest *m, int file,
                                const ty_named_tensor *parts, size_t n_parts, ty_rankfile_fault *fault, ty_error *err);

typedef struct ty_checkpoints {
    const char *dir; /* the folder of all checkpoints */
    int keep;        /* how many complete ones to keep; below 1: all */
    int64_t also;    /* the one of this step stays, too, as long as it says so; 0: none */
    ty_checkpoint_policy on_error;
    int rank, world_size;       /* world_size 0 counts as 1 */
    int64_t before;             /* only checkpoints of earlier steps than this are restored; 0: all */
    int64_t only;               /* only that of this step is; 0: any */
    int n_failed;               /* saves that failed in a row; kept by ty_checkpoint_save */
    ty_checkpoint_fetch *fetch; /* for checkpoints of several ranks; NULL: all files lie in the folder */
    void *fetch_ctx;
} ty_checkpoints;

/* Lines to be logged, in an arena of the caller. */
typedef struct ty_checkpoint_notes {
    const char **lines;
    size_t n_lines;
} ty_checkpoint_notes;

/* Makes the folder if needed and checks that files can be made in it. */
int ty_checkpoints_open(ty_checkpoints *c, ty_error *err);

/* Saves `tensors` and `state` as step-%08d of state->step, then deletes what retention no longer keeps. Success means
 * durable. When the very same content is already there, it is left alone. On failure what was written is removed and
 * the older checkpoints are as they were; when the disk is full the message names the bytes needed and free. A failure
 * to delete an old checkpoint is reported too, but does not count against the policy: the new one is saved. For a world
 * of one rank; several use the two halves below. */
int ty_checkpoint_save(ty_checkpoints *c, const ty_train_state *state, const ty_named_tensor *tensors, size_t n_tensors,
                       ty_error *err);
/* Whether the policy says to stop after the saves that failed. */
bool ty_checkpoints_must_stop(const ty_checkpoints *c);

/* A save by many ranks that have the same tensors divides them: of n elements rank r of R has those from n * r / R up
 * to n * (r + 1) / R, as one dimension, and leaves out tensors of which it has none. R = 1: the tensors as they are.
 * Into parts[n_tensors]; returns how many there are. */
size_t ty_checkpoint_parts(const ty_named_tensor *tensors, size_t n_tensors, int rank, int world_size,
                           ty_named_tensor *parts);

/* The halves of such a save: every rank writes its parts into its own folder, which may be everybody's, and sends *out
 * to rank 0; when all could, rank 0 commits with the lines in the order of ranks. After a failure anywhere every rank
 * abandons. */
int ty_checkpoint_write_rank(const ty_checkpoints *c, int64_t step, const ty_named_tensor *tensors, size_t n_tensors,
                             ty_manifest_file *out, ty_error *err);
int ty_checkpoint_commit(const ty_checkpoints *c, const ty_train_state *state, const ty_manifest_file *files,
                         ty_error *err);
void ty_checkpoint_abandon(const ty_checkpoints *c, int64_t step);

/* Deletes all complete checkpoints before `newest_step` but the keep - 1 newest, each manifest first, so that a
 * half-deleted one is seen as what it is. Later ones are left alone and not counted: after a restore only damaged ones
 * can be later, and they must not push out good ones. */
int ty_checkpoints_retain(const ty_checkpoints *c, int64_t newest_step, ty_error *err);

/* Removes what a killed process left: temporary files, folders without a manifest. A note for each. */
int ty_checkpoints_tidy(const ty_checkpoints *c, ty_arena *arena, ty_checkpoint_notes *notes, ty_error *err);

typedef struct ty_checkpoint_entry {
    int64_t step;
    const char *path;  /* of its folder */
    bool has_manifest; /* it may still be damaged: see ty_checkpoint_verify */
} ty_checkpoint_entry;

/* All folders named like checkpoints, newest first, in `arena`. A folder that is not there is an empty list. */
int ty_checkpoints_list(const char *dir, ty_arena *arena, ty_checkpoint_entry **list, size_t *n, ty_error *err);

/* Checks one completely: manifest, every file, every hash. `out` (may be NULL) receives the manifest, in `arena`. */
int ty_checkpoint_verify(const char *path, ty_arena *arena, ty_manifest *out, ty_error *err);

typedef struct ty_checkpoint_restored {
    bool found; /* false: no folder of ours is there, a new run may begin */
    const char *path;
    ty_train_state state;
    ty_checkpoint_notes skipped; /* "step-00001300: rank-00000.bin: SHA-256 differs ...", newest first */
} ty_checkpoint_restored;

/* Fills `tensors` from the newest valid checkpoint. found = false when no save was ever acknowledged here: the folder
 * is empty, or holds only folders without a manifest. Fails when there are manifests but no valid checkpoint (then the
 * tensors' content is undefined), with the error of `fetch` when that got no answer, which says nothing of any
 * checkpoint, and when the newest whole one belongs to other tensors: names, types and shapes must be those of the
 * model exactly, and the message says which is not. It does not matter how many ranks saved it and how many there are
 * now. */
int ty_checkpoint_restore(const ty_checkpoints *c, const ty_named_tensor *tensors, size_t n_tensors, ty_arena *arena,
                          ty_checkpoint_restored *out, ty_error *err);

#endif
