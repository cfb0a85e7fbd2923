/* collect.h - what the hosts of a job have left, brought together as the platform does it when they have ended.
 *
 *     INTO/model.tar.gz   /opt/ml/model of all hosts (INTO/model/ with output.compression NONE)
 *     INTO/output/        /opt/ml/output of all hosts: data/, failure, failure.json ...
 *     INTO/checkpoints/   only if the job has a place for them: what the next run with this folder begins with
 *
 * Files become second names of those in the trees, or copies; a name that several hosts have is the first one's, and
 * counted where that loses something.
 */
#ifndef TY_ESTIMATOR_SPEC_COLLECT_H
#define TY_ESTIMATOR_SPEC_COLLECT_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>

typedef struct ty_collect_host {
    const char *tree;        /* its /opt/ml */
    const char *checkpoints; /* NULL: they are not kept */
} ty_collect_host;

typedef struct ty_collect {
    const ty_collect_host *hosts; /* [n_hosts]: whoever should be believed first, such as who failed */
    int n_hosts;
    const char *into;
    bool as_files;     /* the model stays a folder */
    int n_clashes;     /* out: files of model and output/data that another host has under the same name */
    const char *model; /* out: where the model is; NULL: there is none */
} ty_collect;

/* Whether INTO is free of an earlier run's results. TY_E_CREATE with what lies there. */
int ty_collect_check(const char *into, ty_arena *a, ty_error *err);
/* Checkpoints of an earlier run, if INTO has any, to where a host finds them. */
int ty_collect_restore(const char *into, const char *checkpoints, ty_arena *a, ty_error *err);
int ty_collect_all(ty_collect *c, ty_arena *a, ty_error *err);

#endif
