/* objects.c - finds, compiles, loads and keeps the objects of kernels. See objects.h. */
#define _GNU_SOURCE
#include "compiler/target/cpu/objects.h"

#include "compiler/target/cached.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OBJECTS_PATH_BYTES = 512 };

struct ty_objects_job {
    ty_objects_options opt;
    ty_arena arena;
    ty_cached cached;
    ty_cc_job *cc; /* at work; NULL: found */
    ty_objects found;
};

/* ---- what is looked for ---- */

static int objects_key(ty_objects_job *job, ty_error *err)
{
    const ty_objects_options *opt = &job->opt;
    ty_cache_key_add_machine(&job->cached.key, &job->arena, opt->cc.cc);
    ty_cache_key_add(&job->cached.key, &job->arena, true, "compiler flags", ty_cc_flags(&job->arena));
    for (int i = 0; i < opt->n_facts; i++)
        ty_cache_key_add(&job->cached.key, &job->arena, false, opt->fact[i].name, opt->fact[i].value);
    ty_cache_key_add(&job->cached.key, &job->arena, true, "kernels", opt->kernels);
    return ty_cache_key_hex(&job->cached.key, job->cached.hex, err);
}

static int objects_new(const ty_objects_options *opt, ty_objects_job **out, ty_error *err)
{
    ty_arena arena;
    ty_arena_init(&arena);
    ty_objects_job *job = TY_NEW(&arena, ty_objects_job);
    job->arena = arena;
    job->opt = *opt;
    if (opt->cache_dir && !opt->cache_dir[strspn(opt->cache_dir, ":")])
        job->opt.cache_dir = NULL;
    job->cached = (ty_cached){.arena = &job->arena,
                              .dirs = job->opt.cache_dir,
                              .max_bytes = opt->cache_max_bytes,
                              .note = opt->note,
                              .lock = -1};
    *out = job;
    if (job->opt.cache_dir || opt->compiled_dir || opt->output_dir)
        return objects_key(job, err);
    return 0;
}

/* ---- loading ---- */

static int objects_load(const char *folder, const char *const *name, int n, ty_objects *out, ty_error *err)
{
    char path[OBJECTS_PATH_BYTES];
    for (int i = 0; i < n; i++) {
        if (snprintf(path, sizeof path, "%s/%s", folder, name[i]) >= (int)sizeof path) {
            ty_objects_close(out);
            return ty_error_set(err, TY_E_LIMIT, "the path of compiled kernels is too long: %s", folder);
        }
        if (ty_shared_object_open(path, &out->object[out->n], err) < 0) {
            ty_objects_close(out);
            return -1;
        }
        out->n++;
    }
    return 0;
}

static int objects_load_entry(void *to, const char *folder, const ty_cache_entry *entry, ty_error *err)
{
    ty_objects *found = to;
    if (objects_load(folder, entry->file, entry->n_files, found, err) < 0)
        return -1;
    found->cache_hit = true;
    return 0;
}

/* ---- compiled before ---- */

static int objects_refuse(const char *dir, ty_buf *text, ty_error *err)
{
    ty_error_set(err, TY_E_COMPILED, "%s", text->data ? text->data : "");
    ty_error_at(err, "%s", dir);
    ty_buf_fini(text);
    return ty_error_help(err, "compile it again on such a machine and with this recipe: trainyard compile");
}

static int objects_of_folder(ty_objects_job *job, ty_error *err)
{
    static const char features[] = "processor features";
    const char *dir = job->opt.compiled_dir;
    ty_cache_entry entry;
    ty_buf text;
    if (ty_cache_read(dir, &job->arena, &entry, err) < 0)
        return ty_error_wrap(err, "folder of compiled kernels");
    ty_buf_init(&text, 1 << 16);
    const char *then = ty_cache_key_value(&entry.key, features), *now = ty_cache_key_value(&job->cached.key, features);
    const char *kernels = ty_cache_key_value(&entry.key, "kernels");
    if (ty_cache_missing_words(then ? then : "", now,
                               "this processor lacks what the kernels were compiled for: ", &text))
        return objects_refuse(dir, &text, err);
    if (!kernels || strcmp(kernels, job->opt.kernels) != 0) {
        ty_buf_adds(&text, "compiled for another step: ");
        ty_cache_difference(&entry.key, &job->cached.key, TY_CACHE_STEP, &text);
        return objects_refuse(dir, &text, err);
    }
    if (ty_cache_verify(dir, &entry, err) < 0 || objects_load(dir, entry.file, entry.n_files, &job->found, err) < 0) {
        err->code = TY_E_COMPILED;
        ty_buf_fini(&text);
        return -1;
    }
    ty_buf_fini(&text);
    job->found.cache_hit = true;
    return 0;
}

/* ---- compiling ---- */

static int objects_begin(ty_objects_job *job, const char *const *text, int n, ty_error *err)
{
    const ty_objects_options *opt = &job->opt;
    if (opt->keep_dir)
        ty_cc_keep(text, n, opt->keep_dir);
    if (opt->output_dir)
        return ty_cc_start(text, n, &opt->cc, &job->cc, err);
    if (opt->compiled_dir)
        return objects_of_folder(job, err);
    if (!opt->cache_dir)
        return ty_cc_start(text, n, &opt->cc, &job->cc, err);
    if (ty_cached_find(&job->cached, objects_load_entry, &job->found))
        return 0;
    return ty_cc_start(text, n, &opt->cc, &job->cc, err);
}

int ty_objects_start(const char *const *text, int n, const ty_objects_options *opt, ty_objects_job **out, ty_error *err)
{
    ty_objects_job *job;
    if (objects_new(opt, &job, err) < 0 || objects_begin(job, text, n, err) < 0) {
        ty_objects_abandon(job);
        return -1;
    }
    *out = job;
    return 0;
}

/* ---- keeping ---- */

static int objects_await(ty_objects_job *job, ty_error *err)
{
    const char *name[TY_CC_MAX_UNITS];
    if (ty_cc_wait(job->cc, err) < 0)
        return -1;
    for (int i = 0; i < ty_cc_n_units(job->cc); i++)
        name[i] = ty_arena_printf(&job->arena, "k%d.so", i);
    if (objects_load(ty_cc_folder(job->cc), name, ty_cc_n_units(job->cc), &job->found, err) < 0)
        return -1;
    ty_cache_objects made = {.suffix = ".so", .n = ty_cc_n_units(job->cc), .folder = ty_cc_folder(job->cc)};
    if (job->opt.output_dir)
        return ty_cache_store(&made, &job->cached.key, job->opt.output_dir, err);
    ty_cached_keep(&job->cached, &made);
    return 0;
}

int ty_objects_finish(ty_objects_job *job, ty_objects *out, ty_error *err)
{
    int rc = job->cc ? objects_await(job, err) : 0;
    if (rc == 0) {
        *out = job->found;
        job->found.n = 0;
    }
    ty_objects_abandon(job);
    return rc;
}

void ty_objects_abandon(ty_objects_job *job)
{
    if (!job)
        return;
    ty_cc_abandon(job->cc);
    ty_cached_end(&job->cached);
    ty_objects_close(&job->found);
    ty_arena arena = job->arena;
    ty_arena_fini(&arena);
}

int ty_objects_find(const ty_objects_options *opt, bool *found, ty_error *err)
{
    ty_objects_job *job;
    int rc = objects_new(opt, &job, err);
    *found = rc == 0 && ty_cached_is_there(&job->cached);
    ty_objects_abandon(job);
    return rc;
}

/* ---- functions ---- */

void *ty_objects_symbol(const ty_objects *o, const char *name)
{
    for (int i = 0; i < o->n; i++) {
        void *found = dlsym(o->object[i].handle, name);
        if (found)
            return found;
    }
    return NULL;
}

void ty_objects_close(ty_objects *o)
{
    for (int i = 0; i < o->n; i++)
        ty_shared_object_close(&o->object[i]);
    o->n = 0;
}
