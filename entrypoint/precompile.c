/* precompile.c - a job opened as far as its compiled kernels. See job.h. */
#include "entrypoint/job.h"
#include "entrypoint/session.h"

int ty_job_compile(const ty_job *job, const char *output_folder, ty_job_cache *cache, ty_error *err)
{
    ty_session s = {.job = job, .compile_to = output_folder, .evaluated_step = -1};
    s.cache_note = cache ? cache->kernels : NULL;
    s.index_note = cache ? cache->data : NULL;
    ty_arena_init(&s.arena);
    int rc = ty_session_open_to_compile(&s, err);
    if (rc == 0 && output_folder)
        rc = ty_model_keep(s.model, output_folder, err);
    if (rc == 0 && cache)
        cache->has_kernels = ty_program_report(s.program)->cache_hit;
    ty_session_close(&s);
    return rc;
}
