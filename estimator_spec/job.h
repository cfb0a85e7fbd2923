/* job.h - a managed training job as a file describes it: job.yaml.
 *
 * Reading is three steps, all of them offline (but for a role's name, if the world says whom to ask): the file's values
 * by the table of fields.def; what follows from them (name, region, bucket, where the archive goes); what must hold
 * between them (the service's limits, the rules of SageMaker's Python SDK). Every value keeps its origin. What can be
 * done with a job: show.h, request.h, pack.h.
 *
 *     ty_jobspec_world world = {.now_ms = now, .variable = my_getenv};
 *     ty_jobspec job;
 *     if (ty_jobspec_load("job.yaml", &world, arena, &job, err) < 0)
 *         return -1;
 *     puts(job.value[TY_FIELD_NAME].text);
 */
#ifndef TY_ESTIMATOR_SPEC_JOB_H
#define TY_ESTIMATOR_SPEC_JOB_H

#include "estimator_spec/fields.h"

/* What a job takes from around it. */
typedef struct ty_jobspec_world {
    int64_t now_ms;                            /* since 1970; what a derived name ends with */
    const char *(*variable)(const char *name); /* as getenv; NULL: no variable is set */
    /* The ARN of a role that is given by its name alone, in the arena; NULL: nobody can be asked, `account` is needed.
     */
    int (*find_role)(void *ctx, const char *region, const char *name, ty_arena *arena, const char **arn, ty_error *err);
    void *ctx;
    bool is_local; /* the job is for this machine: channels may be files of it, and what only the service needs (image,
                      role, region, machines) may be missing */
} ty_jobspec_world;

/* A channel or an instance group. */
typedef struct ty_jobspec_item {
    const char *name;
    const ty_doc *at; /* NULL: derived */
    ty_field_value value[TY_N_FIELDS];
} ty_jobspec_item;

/* The program or recipe that goes along. */
typedef struct ty_jobspec_source {
    bool is_given;
    bool is_packed;      /* an archive is made and uploaded; else it lies in S3 already */
    const char *program; /* as the container is told */
    const char *bucket;  /* where the archive goes or lies */
    const char *key;
    const char *uri;
    const char *told;    /* sagemaker_submit_directory: the uri, or a path in the container */
    const char *kms_key; /* for the upload; NULL: the account's own for S3 */
} ty_jobspec_source;

enum { TY_JOBSPEC_MAX_WARNINGS = 64 };

typedef struct ty_jobspec {
    const char *file;   /* as in messages */
    const char *folder; /* that relative paths begin at */
    ty_field_value value[TY_N_FIELDS];
    ty_jobspec_item *channels; /* [n_channels], those of model and source included */
    int n_channels;
    ty_jobspec_item *groups; /* [n_groups] */
    int n_groups;
    ty_jobspec_source source;
    bool has_debugger, has_profiler; /* as sent: a region may lack them, a strategy may exclude them */
    const char *warnings[TY_JOBSPEC_MAX_WARNINGS];
    int n_warnings;
} ty_jobspec;

#define TY_JOBSPEC_MAX_BYTES ((size_t)1 << 20)

/* Reads, derives and checks. Everything lives in the arena. */
int ty_jobspec_load(const char *path, const ty_jobspec_world *world, ty_arena *a, ty_jobspec *out, ty_error *err);
/* The same from text. folder: that relative paths begin at; NULL: files of the source are not looked for. */
int ty_jobspec_parse(const char *name, const char *text, size_t len, const char *folder, const ty_jobspec_world *world,
                     ty_arena *a, ty_jobspec *out, ty_error *err);

/* Where the recipe lies that goes along; NULL: none does, or it lies in S3 already. */
const char *ty_jobspec_recipe_path(const ty_jobspec *job, ty_arena *a);
/* A value that the file does not give, for a row of lists or maps. origin: "derived from source.recipe". */
void ty_jobspec_derive_node(ty_jobspec *job, ty_field_id id, const ty_doc *node, const char *origin);
/* A further warning; those beyond TY_JOBSPEC_MAX_WARNINGS are dropped. */
void ty_jobspec_warn(ty_jobspec *job, const char *text);

/* Whether the file has a section. */
static inline bool ty_jobspec_has(const ty_jobspec *job, ty_field_id section)
{
    return job->value[section].node != NULL;
}

#endif
