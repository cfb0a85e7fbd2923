/* A request, or an answer about a job, as a job file: what is made reads as a job file and comes to the same request.
 */
#include "base/json.h"
#include "base/log.h"
#include "estimator_spec/from_request.h"
#include "estimator_spec/request.h"

#include <stdlib.h>
#include <string.h>

static const char *variable(const char *name)
{
    return strcmp(name, "AWS_REGION") == 0 ? "eu-west-1" : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const ty_jobspec_world world = {.now_ms = 1773480413589, .variable = variable};
    ty_arena a;
    ty_buf out;
    ty_doc body;
    ty_error err = {0};
    ty_arena_init(&a);
    ty_buf_init(&out, TY_JOBSPEC_MAX_BYTES);
    ty_log_set_level(TY_LOG_QUIET);
    if (ty_jobspec_from_request("request.json", (const char *)data, size, &world, &a, &out, &err) < 0) {
        if (err.code == TY_E_NONE || err.code == TY_E_INTERNAL || !err.message[0])
            abort();
    } else {
        ty_jobspec *job = TY_NEW(&a, ty_jobspec);
        if (ty_jobspec_parse("job.yaml", out.data, out.len, NULL, &world, &a, job, &err) < 0 ||
            ty_jobspec_request(job, &a, &body, &err) < 0)
            abort();
    }
    ty_buf_fini(&out);
    ty_arena_fini(&a);
    return 0;
}
