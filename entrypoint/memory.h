/* memory.h - what this process holds, and what it may hold. By the kernel's account; bytes. */
#ifndef TY_ENTRYPOINT_MEMORY_H
#define TY_ENTRYPOINT_MEMORY_H

#include <stddef.h>
#include <stdint.h>

typedef struct ty_memory {
    uint64_t resident;  /* now, with pages of mapped files */
    uint64_t anonymous; /* of these: the process's own, which cannot be taken back */
    uint64_t peak;      /* most that was resident */
} ty_memory;

ty_memory ty_memory_now(void);

/* The smallest limit of the control groups (version 2 or 1) that the process lies in, else what the system has
 * available. *why: "limit of the container", "available". */
uint64_t ty_memory_limit(const char **why);
/* For tests: root of the file system that is looked at. */
uint64_t ty_memory_limit_at(const char *root, const char **why);

#endif
