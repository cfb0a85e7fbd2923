/* pack.h - sourcedir.tar.gz: the program or recipe of a job, with all that lies beside it.
 *
 * What a job leaves is packed the same way (model.tar.gz).
 *
 * Reproducible: the same files give the same bytes, whoever packs them, when and where. Names are sorted, times and
 * owners are 0, modes are 0644 or 0755, symbolic links are followed as the SDK does. The format is POSIX ustar, with a
 * pax header for names of more than 100 bytes.
 *
 *     ty_packed_file *files;
 *     int n;
 *     if (ty_pack_list(&job, arena, &files, &n, err) < 0 || ty_pack_write(files, n, &archive, err) < 0)
 *         return -1;
 */
#ifndef TY_ESTIMATOR_SPEC_PACK_H
#define TY_ESTIMATOR_SPEC_PACK_H

#include "base/buf.h"
#include "estimator_spec/job.h"

typedef struct ty_packed_file {
    const char *name; /* in the archive */
    const char *path; /* here */
    uint64_t n_bytes; /* 0 for folders */
    bool is_folder;
    bool is_executable;
} ty_packed_file;

/* More than these is data, which belongs into a channel. */
#define TY_PACK_MAX_FILES 20000
#define TY_PACK_MAX_BYTES ((uint64_t)1 << 30)
/* Of a folder that a job has left. One file has at most 8 GiB, which is what a ustar header can say. */
#define TY_PACK_MAX_LEFT_FILES 200000
#define TY_PACK_MAX_FILE_BYTES (((uint64_t)1 << 33) - 1)

/* What goes along: the source's folder, or the program alone, and the dependencies; sorted by name. */
int ty_pack_list(const ty_jobspec *job, ty_arena *a, ty_packed_file **files, int *n, ty_error *err);
/* All below a folder, sorted by name: what a job has left, or a channel's files. Links are followed. */
int ty_pack_list_folder(const char *folder, ty_arena *a, ty_packed_file **files, int *n, ty_error *err);
/* Appends the archive. Refuses a file whose size has changed since it was listed. */
int ty_pack_write(const ty_packed_file *files, int n, ty_buf *out, ty_error *err);
/* The same into a file, complete or absent, a piece at a time. */
int ty_pack_save(const ty_packed_file *files, int n, const char *path, ty_error *err);

#endif
