/* tag.h - many ranks' output on one stream: whole lines, each with its rank in front, as `mpirun --tag-output` prints:
 *
 *     [1,0]<stdout>:epoch 1 loss 0.31
 *     [1,3]<stderr>:warning: ...
 *
 * A line is handed on when it is complete, so lines of several ranks never mix and none is cut where a pipe happened to
 * deliver it in parts. A line longer than TY_TAG_LINE_BYTES is cut there, and its rest is a line of its own. The last
 * line of a process that ends without a newline gets one.
 */
#ifndef TY_DIST_AGENT_TAG_H
#define TY_DIST_AGENT_TAG_H

#include "base/buf.h"

#include <stdbool.h>

enum { TY_TAG_LINE_BYTES = 1 << 20 };

/* One stream of one rank. */
typedef struct ty_tag {
    int rank, fd;   /* fd: 1 or 2 */
    bool plain;     /* lines are whole, but get no tag */
    ty_buf partial; /* a line that has begun */
} ty_tag;

void ty_tag_init(ty_tag *t, int rank, int fd);
void ty_tag_fini(ty_tag *t);
/* Takes bytes as they came and appends the lines that are complete by now, tagged, to `lines`. At the end of the
 * stream call it with `last`, which completes what has begun. -1: `lines` has no room. */
int ty_tag_feed(ty_tag *t, const char *bytes, size_t n_bytes, bool last, ty_buf *lines);

/* A thread that writes to our stdout and stderr, so that who adds lines never waits for whoever reads them. */
typedef struct ty_tag_writer ty_tag_writer;

/* room_fd: an eventfd that is written to when ty_tag_writer_is_full() becomes false. -1: nobody wants to know. */
int ty_tag_writer_open(ty_tag_writer **w, int room_fd, ty_error *err);
/* Lines for fd 1 or 2, copied, written in this order and never mixed. */
void ty_tag_writer_add(ty_tag_writer *w, int fd, const char *lines, size_t n_bytes);
/* More than TY_TAG_WRITER_BYTES wait: whoever has a choice should stop reading. */
bool ty_tag_writer_is_full(ty_tag_writer *w);
/* Waits until all is written; a reader that takes nothing for 5 seconds makes it give up. NULL is fine. */
void ty_tag_writer_close(ty_tag_writer *w);

enum { TY_TAG_WRITER_BYTES = 4 << 20 };

#endif
