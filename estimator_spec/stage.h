/* stage.h - the /opt/ml trees of a job's hosts, laid on this machine as the platform lays them on its own.
 *
 * All is read from the body of CreateTrainingJob (request.h), which is all that the platform knows, too: hosts and
 * their groups, channels, hyperparameters, checkpoints. What a channel holds comes from here: a folder or file in place
 * of what lies in S3, which the caller fetches where there is none.
 *
 *     ty_stage s = {.job = &job, .body = &body, .folder = "/work/run/hosts", .interface = "lo"};
 *     if (ty_stage_hosts(&s, arena, err) < 0 || ty_stage_lay(&s, arena, err) < 0)
 *         return -1;
 *     s.hosts[0].tree is /work/run/hosts/algo-1
 *
 *     FOLDER/algo-1/input/config/          hyperparameters, hosts, channels, checkpoint's and TensorBoard's places
 *     FOLDER/algo-1/input/data/CHANNEL    a link to the folder; a folder of links for files and shares
 *     FOLDER/channels/CHANNEL             what was fetched or packed, for all hosts
 *
 * Trees for containers have no links that lead out of them, which would lead nowhere there: a folder is a mount, and
 * files of a share are second names of the same file, or copies.
 */
#ifndef TY_ESTIMATOR_SPEC_STAGE_H
#define TY_ESTIMATOR_SPEC_STAGE_H

#include "estimator_spec/job.h"

#define TY_STAGE_MAX_HOSTS 64
#define TY_STAGE_MOUNTS    32 /* of a host: channels, checkpoints */

/* A folder of this machine that a container sees at `to`. */
typedef struct ty_stage_mount {
    const char *from, *to;
    bool is_writable;
} ty_stage_mount;

/* A channel in Pipe mode: what has to be fed into the FIFOs TREE/input/data/CHANNEL_0, _1 ... while the host runs. */
typedef struct ty_stage_feed {
    const char *channel, *from; /* from: a folder, a file or an augmented manifest of this machine */
    int share, n_shares;        /* objects that the host gets */
    bool wraps, inflates;
    const char *seed;       /* objects in another order each epoch; NULL: in theirs */
    const char *attributes; /* "image-ref,label": from is a manifest; else NULL */
} ty_stage_feed;

typedef struct ty_stage_host {
    const char *name; /* algo-1 */
    const char *group, *instance_type;
    const char *tree;        /* its /opt/ml, absolute */
    const char *checkpoints; /* a folder here */
    ty_stage_mount mounts[TY_STAGE_MOUNTS];
    int n_mounts;
    ty_stage_feed feeds[TY_STAGE_MOUNTS];
    int n_feeds;
} ty_stage_host;

/* A folder or file of this machine as the content of a channel. */
typedef struct ty_stage_input {
    const char *channel, *path;
} ty_stage_input;

typedef struct ty_stage {
    const ty_jobspec *job;
    const ty_doc *body;
    const char *folder;           /* absolute; made if it is not there */
    int nodes;                    /* hosts in place of what the job says; 0: as it says */
    const char *interface;        /* that hosts are told */
    bool in_containers;           /* trees will lie at /opt/ml, else where they are */
    const ty_stage_input *inputs; /* [n_inputs]; these win over what the job file says */
    int n_inputs;
    /* Fetches all under an s3:// address into a folder that is there; NULL: such channels are refused. */
    int (*fetch)(void *ctx, const char *uri, const char *folder, ty_error *err);
    void *ctx;
    ty_stage_host *hosts; /* out: [n_hosts], sorted by name as bytes, as resourceconfig.json has them */
    int n_hosts;
} ty_stage;

/* Who the hosts are. Touches no file. */
int ty_stage_hosts(ty_stage *s, ty_arena *a, ty_error *err);
/* Lays all trees. Refuses before it fetches anything: an input of a channel that the job does not have, a channel that
 * cannot be given here (manifests and file systems without a folder). */
int ty_stage_lay(ty_stage *s, ty_arena *a, ty_error *err);

#endif
