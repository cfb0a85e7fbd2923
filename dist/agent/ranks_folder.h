/* ranks_folder.h - folders that live as long as a process, also if it is killed. */
#ifndef TY_DIST_AGENT_RANKS_FOLDER_H
#define TY_DIST_AGENT_RANKS_FOLDER_H

#include "base/error.h"

enum { TY_RANKS_FOLDER_BYTES = 256 };

typedef struct ty_ranks_folder {
    char path[TY_RANKS_FOLDER_BYTES]; /* "": none */
    int fd;                           /* holds the lock that says "in use" */
} ty_ranks_folder;

/* Makes <parent>/trainyard-ranks-XXXXXX with mode 0700, after removing those in `parent` that belong to nobody any
 * more. A folder is in use while a process has it locked (flock), which works across PID namespaces that share /tmp. */
int ty_ranks_folder_make(ty_ranks_folder *f, const char *parent, ty_error *err);
/* Removes it with its contents; nothing if there is none. */
void ty_ranks_folder_remove(ty_ranks_folder *f);

#endif
