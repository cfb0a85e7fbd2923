/* ranks_server.h - between the PMIx plug-in, whose threads call when they like, and the agent's one thread: what was
 * asked lies here until it is taken, and an eventfd says so. */
#ifndef TY_DIST_AGENT_RANKS_SERVER_H
#define TY_DIST_AGENT_RANKS_SERVER_H

#include "base/buf.h"
#include "dist/agent/ranks.h"

typedef struct ty_ranks_server ty_ranks_server;

/* Opens the plug-in and its server, if that is not done yet, and registers the job of the options, of which nothing is
 * kept. folder: for session files. wake_fd: the eventfd. */
int ty_ranks_server_open(ty_ranks_server **s, const ty_ranks_options *o, const char *folder, int wake_fd,
                         ty_error *err);
/* As in pmix.h. */
int ty_ranks_server_environment(ty_ranks_server *s, int rank, char ***variables, ty_error *err);
void ty_ranks_server_free_environment(ty_ranks_server *s, char **variables);

/* Takes what waits; false: nothing. A fence's blob is appended to `blob`. */
bool ty_ranks_server_take_fence(ty_ranks_server *s, uint64_t *fence, ty_buf *blob);
typedef struct ty_ranks_abort {
    int rank, status;
    char text[256];
} ty_ranks_abort;
bool ty_ranks_server_take_abort(ty_ranks_server *s, ty_ranks_abort *abort);

void ty_ranks_server_answer(ty_ranks_server *s, uint64_t fence, const void *all, size_t n_bytes);
/* The job only; NULL is fine. */
void ty_ranks_server_close(ty_ranks_server *s);

#endif
