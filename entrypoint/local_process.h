/* local_process.h - what a host of a local job is told in its environment, and what it needs as a process of ours. */
#ifndef TY_ENTRYPOINT_LOCAL_PROCESS_H
#define TY_ENTRYPOINT_LOCAL_PROCESS_H

#include "base/arena.h"
#include "base/error.h"
#include "estimator_spec/stage.h"

typedef struct ty_local_variables {
    const char **list;  /* NAME=VALUE, NULL-terminated */
    const char **names; /* of those that are the job's, NULL-terminated */
    int n, n_names;
} ty_local_variables;

/* This process's variables, without marks of another job, then the job's: its environment, name, region, fault. */
void ty_local_variables_init(ty_local_variables *v, const ty_stage *s, const char *fault, ty_arena *a);
void ty_local_variables_copy(const ty_local_variables *from, ty_local_variables *to, ty_arena *a);
void ty_local_variables_set(ty_local_variables *v, const char *name, const char *value, ty_arena *a);

/* What keeps the job's links to itself: random, for TRAINYARD_SECRET. NULL: the system has no random numbers. */
const char *ty_local_secret(ty_arena *a);
/* "algo-1=127.0.0.1:23456,...", free at this moment, for TRAINYARD_HOST_ADDRESSES. */
int ty_local_addresses(const ty_stage *s, const char **out, ty_arena *a, ty_error *err);
/* Cores that this process may use. */
int ty_local_cores(void);
/* `trainyard data serve-pipe`, which plays the platform for a channel in Pipe mode. */
int ty_local_feeder(const ty_stage_host *h, const ty_stage_feed *f, const char *const **out, ty_arena *a,
                    ty_error *err);
/* The program `train` beside this one, with these words. */
int ty_local_command(const char *const *words, const char *const **out, ty_arena *a, ty_error *err);

#endif
