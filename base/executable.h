/* executable.h - code from a file, also where the file lies on a mount that is noexec.
 *
 * docker's --tmpfs and hardened hosts mount /tmp so: what a compiler wrote there can be read, but neither mapped as
 * code nor executed. A copy in memory can (memfd_create), under a name in /proc that lives as long as its descriptor.
 */
#ifndef TY_BASE_EXECUTABLE_H
#define TY_BASE_EXECUTABLE_H

#include "base/error.h"

#include <stdbool.h>

/* Whether the mount of this file or folder forbids executing. */
bool ty_executable_is_forbidden(const char *path);

/* A copy in memory. *fd is close-on-exec and the caller's; /proc/self/fd/<fd> can be executed and mapped while it is
 * open. */
int ty_executable_copy(const char *path, int *fd, ty_error *err);

/* A shared object in this process. */
typedef struct ty_shared_object {
    void *handle; /* for dlsym; NULL: none */
    int copy_fd;  /* of the copy in memory it was loaded from, or -1. Stays open with it: under a /proc name used again
                     the loader would find the first code */
} ty_shared_object;

/* Loads with RTLD_NOW | RTLD_LOCAL. TY_E_COMPILER with the loader's reason. */
int ty_shared_object_open(const char *path, ty_shared_object *out, ty_error *err);
void ty_shared_object_close(ty_shared_object *o);

#endif
