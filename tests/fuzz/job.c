/* A job file: YAML, the table of its keys, what follows, what must hold, and the request that it comes to. */
#include "base/json.h"
#include "base/log.h"
#include "estimator_spec/request.h"
#include "estimator_spec/show.h"
#include "estimator_spec/tree.h"

#include <stdlib.h>
#include <string.h>

static void refused(const ty_error *err)
{
    if (err->code == TY_E_NONE || err->code == TY_E_INTERNAL || !err->message[0])
        abort();
}

static const char *variable(const char *name)
{
    return strcmp(name, "AWS_REGION") == 0 ? "eu-west-1" : NULL;
}

/* What a job comes to is a map with what the service must have, and every setting has a value and an origin. */
static void use(const ty_jobspec *job, ty_arena *a)
{
    ty_doc body;
    ty_jobspec_setting *list;
    ty_error err = {0};
    int n;
    if (ty_jobspec_request(job, a, &body, &err) < 0 || ty_jobspec_settings(job, a, &list, &n, &err) < 0)
        abort();
    if (!job->value[TY_FIELD_REQUEST].node &&
        (!ty_tree_find(&body, "TrainingJobName") || !ty_tree_find(&body, "RoleArn") ||
         !ty_tree_find(&body, "OutputDataConfig.S3OutputPath") ||
         !ty_tree_find(&body, "ResourceConfig.VolumeSizeInGB")))
        abort();
    for (int i = 0; i < n; i++)
        if (!list[i].key || !list[i].value || !list[i].origin)
            abort();
    ty_buf out;
    ty_buf_init(&out, (size_t)64 << 20);
    ty_json_add_lines(&out, &body, 0);
    ty_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const ty_jobspec_world world = {.now_ms = 1773480413589, .variable = variable};
    ty_arena a;
    ty_error err = {0};
    ty_arena_init(&a);
    ty_log_set_level(TY_LOG_QUIET);
    ty_jobspec *job = TY_NEW(&a, ty_jobspec);
    if (ty_jobspec_parse("job.yaml", (const char *)data, size, NULL, &world, &a, job, &err) < 0)
        refused(&err);
    else
        use(job, &a);
    ty_arena_fini(&a);
    return 0;
}
