/* objects.h - functions for kernels: from a folder that was compiled before, from the cache, or from the C compiler.
 *
 *     ty_objects_start(text, n, &options, &job, err);     looks; starts the C compiler if nothing is found
 *     ...                                                 other work
 *     ty_objects_finish(job, &objects, err);              waits, loads, keeps what is new
 *     fn = ty_objects_symbol(&objects, "ty_k_...");
 *
 * A cache that is damaged, full or not to be written costs a line in the log and the time to compile, never the run.
 */
#ifndef TY_TARGET_CPU_OBJECTS_H
#define TY_TARGET_CPU_OBJECTS_H

#include "base/buf.h"
#include "base/executable.h"
#include "compiler/target/cache.h"
#include "compiler/target/cpu/cc.h"

typedef struct ty_objects_options {
    ty_cc_options cc;
    const char *cache_dir;      /* folders, separated by ':': the first is written (not if it is empty, ":DIR"), all
                                   are looked into; NULL, "": none */
    int64_t cache_max_bytes;    /* of the first folder; 0: 256 MiB */
    const char *compiled_dir;   /* made by output_dir: nothing else is used, and no C compiler; NULL: none */
    const char *output_dir;     /* what was compiled is left here; neither cache nor compiled_dir is read; NULL: not */
    const char *keep_dir;       /* sources are left here too, for reading; NULL: not */
    const char *kernels;        /* hex SHA-256 of all kernels, however they are cut into units */
    const ty_cache_field *fact; /* what the kernels come from, for explanations */
    int n_facts;
    ty_buf *note; /* gets a line in words: why the cache had nothing; NULL: the log gets it */
} ty_objects_options;

typedef struct ty_objects {
    ty_shared_object object[TY_CC_MAX_UNITS];
    int n;
    bool cache_hit; /* or compiled before */
} ty_objects;

typedef struct ty_objects_job ty_objects_job;

/* text may be freed when it returns; the strings of the options must live until the job ends. */
int ty_objects_start(const char *const *text, int n, const ty_objects_options *opt, ty_objects_job **out,
                     ty_error *err);
/* The job is gone afterwards, also after a failure. */
int ty_objects_finish(ty_objects_job *job, ty_objects *out, ty_error *err);
/* Ends the compilers and removes what they wrote; NULL is fine. */
void ty_objects_abandon(ty_objects_job *job);
/* Whether ty_objects_start would find them; if not, the note says why. */
int ty_objects_find(const ty_objects_options *opt, bool *found, ty_error *err);

/* A function by name; NULL if no object has it. */
void *ty_objects_symbol(const ty_objects *o, const char *name);
void ty_objects_close(ty_objects *o);

#endif
