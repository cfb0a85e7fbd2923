/* job_parts.h - what the files that read a job share. Private to job.c, derive.c, pack.c and the check_*.c. */
#ifndef TY_ESTIMATOR_SPEC_JOB_PARTS_H
#define TY_ESTIMATOR_SPEC_JOB_PARTS_H

#include "estimator_spec/job.h"

typedef struct job_reader {
    ty_arena *a;
    ty_jobspec *job;
    const ty_jobspec_world *world;
    ty_error *err;
} job_reader;

/* An error at the value of a row, or at the file if it has none. Returns -1. */
int ty_job_refuse(job_reader *rd, ty_field_id id, ty_code code, const char *fmt, ...) TY_PRINTF(4, 5);
/* The same for a channel or group. */
int ty_job_refuse_item(job_reader *rd, const ty_jobspec_item *item, ty_field_id id, const char *fmt, ...)
    TY_PRINTF(4, 5);
void ty_job_warn(job_reader *rd, const char *fmt, ...) TY_PRINTF(2, 3);

/* What follows from what is given. */
int ty_job_derive(job_reader *rd);
/* What must hold: lists and maps, channels, machines and strategies, files of the source. */
int ty_job_check_maps(job_reader *rd);
int ty_job_check_inputs(job_reader *rd);
int ty_job_check_cluster(job_reader *rd);
int ty_job_check_rest(job_reader *rd);

/* ---- small questions ---- */

static inline const char *job_text(const job_reader *rd, ty_field_id id)
{
    return rd->job->value[id].text;
}
static inline bool job_given(const job_reader *rd, ty_field_id id)
{
    return rd->job->value[id].at != NULL;
}
/* -1, 0, 1: versions by their numbers; "2.11" is before "2.11.1". */
int ty_version_compare(const char *a, const char *b);
/* s3://BUCKET/KEY: bucket into the arena, key within uri; false for anything else. */
bool ty_s3_split(const char *uri, ty_arena *a, const char **bucket, const char **key);
/* A path of the job file: within the folder, unless it is absolute. */
const char *ty_path_within(const char *folder, const char *path, ty_arena *a);

#endif
