/* jail.h - a function on bytes from anywhere, run in a child that can do nothing but compute.
 *
 * For libraries that parse files and are known to crash on hostile ones. The child is a fork of the calling process, so
 * it sees all memory that the caller has mapped (a file, new bytes for it) and needs no descriptor. In it, in this
 * order:
 *     signals as by default, no environment, no descriptors (the first three lead to /dev/null)
 *     prepare()          opens libraries; reads nothing of the file
 *     limits on memory and processor time; no file may be written, no descriptor opened, no process started; no core
 *     no_new_privs and a seccomp filter: memory, clocks and the end are all that the system still does for it. No file,
 *         no network, no program, no signal to others
 *     run()              does the work and leaves its result in memory that both share
 * It is killed when its time is over and when the thread that waits for it ends. What comes back is either an error
 * that run() set, or its bytes, or an error that says how the child ended. Nothing that a child leaves can be trusted
 * further than its bytes are checked: whoever calls this checks them.
 *
 *     ty_jail j = {.reader = "the HDF5 library", .task = "reading model.h5", .prepare = open_library, .run = list,
 *                  .ctx = &file, .max_bytes = 64 << 20};
 *     ty_jail_result r;
 *     if (ty_jail_run(&j, &r, err) < 0) ...
 *     decode(r.bytes, r.n_bytes) ... ty_jail_release(&r);
 *
 * From any thread, also of a process with many: malloc and the loader work in the child (glibc takes care of their
 * locks); whatever else the process had under lock at the time must not be touched by prepare() and run(). A kernel
 * that knows no seccomp (ENOSYS, EINVAL) leaves the limits alone; any other refusal is an error.
 */
#ifndef TY_BASE_JAIL_H
#define TY_BASE_JAIL_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* What run() leaves behind. Zeros at first; memory that is not touched costs nothing. */
typedef struct ty_jail_result {
    uint8_t *bytes;   /* aligned to pages */
    size_t n_bytes;   /* as run() set it, at most max_bytes */
    size_t max_bytes; /* private to the caller's side */
} ty_jail_result;

typedef struct ty_jail {
    const char *reader;                       /* who may crash: "the HDF5 library" */
    const char *task;                         /* what it does then: "reading model.keras: model.weights.h5" */
    int (*prepare)(void *ctx, ty_error *err); /* may be NULL */
    int (*run)(void *ctx, ty_jail_result *out, ty_error *err);
    void *ctx;
    size_t max_bytes;    /* of the result. More than the system has to give is cut to what it has */
    size_t memory_bytes; /* that the child may map beside what the caller has; 0: TY_JAIL_MEMORY_BYTES */
    int cpu_seconds;     /* 0: TY_JAIL_CPU_SECONDS */
    int wall_seconds;    /* 0: TY_JAIL_WALL_SECONDS */
} ty_jail;

#define TY_JAIL_MEMORY_BYTES ((size_t)1 << 30)
#define TY_JAIL_CPU_SECONDS  60
#define TY_JAIL_WALL_SECONDS 300 /* on machines that are busy with something else */

/* On failure *out needs no release. */
int ty_jail_run(const ty_jail *jail, ty_jail_result *out, ty_error *err);
/* For {0} too. */
void ty_jail_release(ty_jail_result *r);

#endif
