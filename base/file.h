/* file.h - files whole, durable, bounded.
 *
 * Reading never trusts a size: a regular file (or, where stated, a pipe) is read up to the buffer's own maximum.
 * Writing is atomic and durable. Seven steps, and the error names the one that failed:
 *     create a temporary name in the same folder, write, fsync, close, rename over the target, fsync the folder;
 *     on any failure unlink the temporary.
 * If you crash at any point the target holds either the old bytes or the new ones, never a mixture. What may be left is
 * a temporary file `.NAME.tmp-PID-N`; ty_file_is_temporary recognises its name. A failed fsync is final: the pages
 * count as clean afterwards, so that nothing here ever tries it a second time on the same file.
 */
#ifndef TY_BASE_FILE_H
#define TY_BASE_FILE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Appends the whole file to `out`. Refuses what is not a regular file, and what does not fit out->max_bytes
 * (TY_E_LIMIT). On failure the content of `out` is unspecified. */
int ty_file_read(const char *path, ty_buf *out, ty_error *err);

/* Replaces path by these bytes, durably. mode as in open(2), before the umask: 0644. */
int ty_file_write(const char *path, const void *bytes, size_t n_bytes, mode_t mode, ty_error *err);

/* The same for files that are too big to hold at once.
 *
 *     ty_file_writer w;
 *     if (ty_file_writer_open(&w, path, 0644, err) < 0)
 *         return -1;
 *     if (ty_file_writer_add(&w, head, head_bytes, err) < 0 || ty_file_writer_add(&w, data, data_bytes, err) < 0) {
 *         ty_file_writer_abandon(&w);
 *         return -1;
 *     }
 *     return ty_file_writer_commit(&w, err);
 *
 * Abandon after a failed commit, or twice, does nothing. */
typedef struct ty_file_writer {
    int fd;           /* the temporary file; write to it yourself only if you keep n_bytes true */
    int folder_fd;    /* private */
    uint64_t n_bytes; /* written so far */
    char *path;       /* private, owned */
    char *temporary;  /* private, owned: name within the folder */
    const char *name; /* private: within path */
} ty_file_writer;

int ty_file_writer_open(ty_file_writer *w, const char *path, mode_t mode, ty_error *err);
int ty_file_writer_add(ty_file_writer *w, const void *bytes, size_t n_bytes, ty_error *err);
int ty_file_writer_commit(ty_file_writer *w, ty_error *err);
void ty_file_writer_abandon(ty_file_writer *w);
/* Whether the file could be written now: for who works long before there is something to write. Leaves nothing. */
int ty_file_try(const char *path, ty_error *err);
/* Whether a file of this name (no folder) is what a crashed writer leaves. */
bool ty_file_is_temporary(const char *name);

/* A folder that appears under its name complete, with all that was written into it before.
 *
 *     ty_file_folder w;
 *     if (ty_file_folder_open(&w, path, err) < 0)
 *         return -1;
 *     write files below w.temporary
 *     return rc == 0 ? ty_file_folder_commit(&w, err) : (ty_file_folder_abandon(&w), -1);
 *
 * What stood under the name is gone after commit, which makes all below durable. Abandon after commit does nothing. */
typedef struct ty_file_folder {
    char *temporary; /* owned: where it is while it is filled, beside its later place */
    char *path;      /* private, owned */
} ty_file_folder;

int ty_file_folder_open(ty_file_folder *w, const char *path, ty_error *err);
int ty_file_folder_commit(ty_file_folder *w, ty_error *err);
void ty_file_folder_abandon(ty_file_folder *w);

/* All bytes to a descriptor, through short writes, EINTR and a full non-blocking pipe. `what` names the target in the
 * error. */
int ty_file_write_all(int fd, const void *bytes, size_t n_bytes, const char *what, ty_error *err);

/* mkdir -p. An existing folder is success; parents get `mode` as well. */
int ty_file_mkdirs(const char *path, mode_t mode, ty_error *err);
/* Removes a file or a folder with all below it; symbolic links are removed, never followed. An absent path is success.
 */
int ty_file_remove_tree(const char *path, ty_error *err);
/* Removes one file; an absent one is success. */
int ty_file_remove(const char *path, ty_error *err);
/* The content of a file, links followed, in a new file of its own: complete or absent. What was there is replaced. */
int ty_file_copy(const char *from, const char *to, ty_error *err);
/* The same, or a second name of the same file where that is possible: for files that nobody writes in place. `to`
 * must not be there. */
int ty_file_share(const char *from, const char *to, ty_error *err);
/* fsync of a folder, which makes names in it durable. */
int ty_file_sync_folder(const char *path, ty_error *err);

typedef struct ty_file_entry {
    const char *name;
    char kind;        /* 'f' regular, 'd' folder, 'l' symbolic link, 'o' other */
    uint64_t n_bytes; /* of regular files */
} ty_file_entry;

/* What is in a folder ("." and ".." left out), sorted by name as bytes. Refuses more than a million entries. */
int ty_file_list(const char *path, ty_arena *arena, ty_file_entry **entries, size_t *n_entries, ty_error *err);

bool ty_file_exists(const char *path);    /* anything of that name, links followed */
bool ty_file_is_folder(const char *path); /* links followed */
int64_t ty_file_size(const char *path);   /* of a regular file, links followed; -1 otherwise */

/* A file as memory, read only. Bytes stay valid until ty_file_unmap. If someone truncates the file meanwhile, touching
 * the lost part is a SIGBUS: map only files that nobody writes in place (models, data). */
typedef struct ty_file_view {
    const uint8_t *bytes; /* never NULL after success */
    size_t n_bytes;
} ty_file_view;

int ty_file_map(const char *path, ty_file_view *out, ty_error *err);
void ty_file_unmap(ty_file_view *view);

#endif
