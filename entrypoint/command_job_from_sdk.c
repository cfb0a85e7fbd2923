/* command_job_from_sdk.c - `trainyard job from-sdk FILE`: a request that another client made, as a job file. */
#define _GNU_SOURCE
#include "base/file.h"
#include "entrypoint/command_job.h"
#include "entrypoint/managed.h"
#include "estimator_spec/from_request.h"

#include <stdio.h>

int ty_job_from_sdk(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    const char *path = given->words[1], *to = given->value[TY_JOB_OUTPUT];
    ty_jobspec_world world = ty_managed_world();
    ty_buf text, out;
    ty_buf_init(&text, TY_REQUEST_MAX_BYTES);
    ty_buf_init(&out, TY_JOBSPEC_MAX_BYTES);
    int rc = ty_file_read(path, &text, err);
    if (rc == 0)
        rc = ty_jobspec_from_request(path, text.data, text.len, &world, a, &out, err);
    if (rc == 0 && to)
        rc = ty_file_write(to, out.data, out.len, 0644, err);
    else if (rc == 0)
        fputs(out.data, stdout);
    ty_buf_fini(&text);
    ty_buf_fini(&out);
    return rc;
}
