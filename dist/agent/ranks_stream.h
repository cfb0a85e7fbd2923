/* ranks_stream.h - what one rank writes to standard output or standard error, on its way to whole lines. */
#ifndef TY_DIST_AGENT_RANKS_STREAM_H
#define TY_DIST_AGENT_RANKS_STREAM_H

#include "dist/agent/tag.h"

typedef struct ty_ranks_stream {
    ty_tag tag;
    int fd;        /* our end; -1: it has ended */
    int theirs;    /* the rank's end, until the rank was started; -1 afterwards */
    bool listened; /* the owner's mark: the descriptor is in its epoll set */
} ty_ranks_stream;

/* fd: 1 or 2, as which the rank gets its end. terminal: a pseudo terminal, where there is one, else a pipe. */
int ty_ranks_stream_open(ty_ranks_stream *s, int rank, int fd, bool terminal, ty_error *err);
/* Reads what is there, up to max_bytes, without waiting, and appends complete lines. At the end of the stream it closes
 * it; `last` ends it even if somebody else still holds the other end. */
void ty_ranks_stream_read(ty_ranks_stream *s, size_t max_bytes, bool last, ty_buf *lines);
/* The rank has its end now. */
void ty_ranks_stream_started(ty_ranks_stream *s);
void ty_ranks_stream_fini(ty_ranks_stream *s);

#endif
