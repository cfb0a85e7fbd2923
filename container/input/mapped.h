/* mapped.h - data files that are mapped, and what happens when somebody makes one of them shorter.
 *
 * Reading a page that the file no longer has is a SIGBUS, which ends a process without a word. Ours puts pages of zeros
 * there instead and notes the file; whoever has read asks afterwards, and has an ordinary error that names it:
 *
 *     m = ty_mapped_watch(p, n, path);
 *     ... read from p ...
 *     if (ty_mapped_check(err) < 0)       a load and a compare where nothing has happened
 *         return -1;                      what was read is not to be used
 *     ty_mapped_forget(m);
 *     munmap(p, n);
 *
 * The first call installs a handler for SIGBUS; faults outside watched files go to the one before it.
 */
#ifndef TY_CONTAINER_INPUT_MAPPED_H
#define TY_CONTAINER_INPUT_MAPPED_H

#include "base/error.h"

typedef struct ty_mapped ty_mapped;

/* The whole mapping [p, p + n) of a file. NULL without memory: then it is not watched. Any thread. */
ty_mapped *ty_mapped_watch(const void *p, size_t n, const char *path);
/* Before it is unmapped. NULL is fine. */
void ty_mapped_forget(ty_mapped *m);
/* Refuses (TY_E_DATA) if a part that is gone was read of a file that is still watched. Replaces what err says: what was
 * wrong with zeros is no news. */
int ty_mapped_check(ty_error *err);

#endif
