/* job.h - one training job for the built-in trainer: what is asked for, and where everything lies.
 *
 * Made by the worker from /opt/ml and its hyperparameters, or by the command line from its arguments; the trainer sees
 * no difference. All strings are borrowed for the length of the run.
 */
#ifndef TY_ENTRYPOINT_JOB_H
#define TY_ENTRYPOINT_JOB_H

#include "base/buf.h"
#include "base/error.h"
#include "entrypoint/override.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As in a job's configuration (container/config/channels.h). */
typedef enum ty_job_mode { TY_JOB_FILE, TY_JOB_FAST_FILE, TY_JOB_PIPE } ty_job_mode;

/* Where a channel's files lie; Pipe mode: what their FIFOs are called, but for _<epoch>. */
typedef struct ty_job_channel {
    const char *name, *path;
    const char *content_type; /* "" if not given */
    ty_job_mode mode;
    bool sharded;   /* each host has files of its own */
    bool record_io; /* Pipe mode: whole objects come as records */
} ty_job_channel;

typedef struct ty_job {
    const char *recipe_path;
    const ty_recipe_override *overrides;
    int n_overrides;
    const ty_job_channel *channels; /* [n_channels] */
    int n_channels;
    const char *pipe_state_folder; /* number of each channel's next FIFO in Pipe mode; NULL: the platform's */
    const char *data_folder;       /* a channel that is not listed is the folder of its name in here; NULL: refused */
    const char *model_folder;      /* the trained model goes here */
    const char *checkpoint_folder;
    const char *output_folder; /* metrics.jsonl */
    const char *tensorboard_folder;
    const char *name;            /* of the job, for the banner; NULL */
    const char *dump_folder;     /* NULL: none */
    const char *cache_folder;    /* NULL: none; the recipe's own wins */
    const char *compiled_folder; /* kernels compiled before; NULL: as the recipe says */
    int64_t replay_step;         /* 0: none. Else the state before this step (1 is the first) is restored, to look on */
    bool fresh;                  /* remove older checkpoints and metrics and start anew */
    bool plan_only;              /* the session is opened to plan, not to train */
    struct ty_company *company;  /* the ranks that train together, this one among them (company.h); NULL: alone */
    const struct ty_served_options *served; /* weights live in parameter servers (served.h); NULL: here */
    const char *progress;                   /* "auto", "plain", "bar", "none", "json" */
} ty_job;

typedef enum ty_job_end { TY_JOB_COMPLETE, TY_JOB_STOPPED } ty_job_end;

/* Trains to the end or until it is told to stop. phase (may be NULL) and step tell, after a failure, how far it came.
 */
typedef struct ty_job_progress {
    const char *phase; /* "recipe", "data", "model", "compile", "restore", "train", "export" */
    long long step;    /* -1: none */
} ty_job_progress;

/* What the cache has for a job: its kernels, or why not; of its data a line for each section of which an index can be
 * kept. */
typedef struct ty_job_cache {
    bool has_kernels;
    ty_buf *kernels, *data;
} ty_job_cache;

/* precompile.c: opens a job as far as compiling. output_folder: compiled kernels are left there; NULL: nothing is
 * compiled, and *cache says what is there. Folders for results are not needed. */
int ty_job_compile(const ty_job *job, const char *output_folder, ty_job_cache *cache, ty_error *err);

int ty_job_train(const ty_job *job, ty_job_end *end, ty_job_progress *progress, ty_error *err);

#endif
