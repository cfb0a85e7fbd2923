/* cc.h - the system C compiler, turned from C text to functions in this process.
 *
 * The text is cut into one translation unit a core; all are compiled at the same time, each straight to a shared
 * object. With a cache folder the objects are kept under the hash of everything that decides them (text, flags,
 * compiler, CPU) and found again; entries are written under a temporary name and renamed, and any difference is a miss.
 */
#ifndef TY_TARGET_CPU_CC_H
#define TY_TARGET_CPU_CC_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct ty_cc_options {
    const char *cc;        /* program, found in PATH */
    const char *work_dir;  /* where a temporary folder is made */
    const char *cache_dir; /* NULL: none */
    const char *keep_dir;  /* sources are left here too, for reading; NULL: not */
} ty_cc_options;

#define TY_CC_MAX_UNITS 64

typedef struct ty_cc_library {
    void *handle[TY_CC_MAX_UNITS];
    int copy_fd[TY_CC_MAX_UNITS]; /* of the copy in memory that a handle was loaded from, or -1 */
    int n_handles;
    bool cache_hit;
} ty_cc_library;

/* Compilers at work. */
typedef struct ty_cc_job ty_cc_job;

/* Starts the compilation of n translation units, or finds them in the cache. text may be freed when it returns. */
int ty_cc_start(const char *const *text, int n, const ty_cc_options *opt, ty_cc_job **out, ty_error *err);
/* Waits for the end and loads the objects; the job is gone afterwards. A failure carries the compiler's first lines. */
int ty_cc_finish(ty_cc_job *job, ty_cc_library *out, ty_error *err);
/* Ends the compilers and removes what they wrote; NULL is fine. */
void ty_cc_abandon(ty_cc_job *job);
/* Whether ty_cc_start would find these units in the cache. */
int ty_cc_find(const char *const *text, int n, const ty_cc_options *opt, bool *found, ty_error *err);
/* A function by name; NULL if no unit has it. */
void *ty_cc_symbol(const ty_cc_library *lib, const char *name);
void ty_cc_close(ty_cc_library *lib);

#endif
