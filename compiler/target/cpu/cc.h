/* cc.h - the system's C compiler at work: texts become shared objects in a folder.
 *
 * All translation units are compiled at the same time, one process each, straight to shared objects.
 */
#ifndef TY_TARGET_CPU_CC_H
#define TY_TARGET_CPU_CC_H

#include "base/arena.h"
#include "base/error.h"

#define TY_CC_MAX_UNITS 64

typedef struct ty_cc_options {
    const char *cc;       /* program, found in PATH */
    const char *work_dir; /* where a temporary folder is made */
} ty_cc_options;

typedef struct ty_cc_job ty_cc_job;

/* Starts n <= TY_CC_MAX_UNITS compilers. text may be freed when it returns. */
int ty_cc_start(const char *const *text, int n, const ty_cc_options *opt, ty_cc_job **out, ty_error *err);
/* Waits for all. Then k0.so ... k<n-1>.so are in the folder, until the job is abandoned. A failure carries the
 * compiler's first lines; TY_E_STOPPED: ty_toolchain_is_over() said so, and none is left. */
int ty_cc_wait(ty_cc_job *job, ty_error *err);
const char *ty_cc_folder(const ty_cc_job *job);
int ty_cc_n_units(const ty_cc_job *job);
/* Ends compilers that still run and removes the folder; NULL is fine. */
void ty_cc_abandon(ty_cc_job *job);

/* Leaves the texts in a folder, for reading. */
void ty_cc_keep(const char *const *text, int n, const char *dir);
/* The flags, as one line: they decide the objects. */
const char *ty_cc_flags(ty_arena *a);

#endif
