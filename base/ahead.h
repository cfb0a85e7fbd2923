/* ahead.h - files are read from the disk before anybody needs them.
 *
 *     ty_ahead_read(fd, n_bytes);   the disk is busy from now on; fd may be closed
 *     ...                           the mapping is walked: most of its pages are there, or on their way
 *
 * A page that is missing is otherwise read when it is touched, and its reader waits: one request after the other, where
 * a disk is several times as fast with many. What is in memory already costs a microsecond for each piece.
 */
#ifndef TY_BASE_AHEAD_H
#define TY_BASE_AHEAD_H

#include <stddef.h>

/* Asks for the first n_bytes of a regular file on a thread of its own, in order, and returns at once. At most a GiB:
 * what is read too early has gone again when it is needed. It is advice: where there is no thread, or no such advice
 * for a file, nothing happens. Small files are left to whoever reads them. */
void ty_ahead_read(int fd, size_t n_bytes);

#endif
