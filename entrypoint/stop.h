/* stop.h - being asked to stop: TERM, INT, HUP and QUIT only raise a count; whoever works looks at it between two
 * steps.
 *
 * The first request means: end well, with a checkpoint. The second: leave out everything but the checkpoint. The third
 * ends the process at once.
 *
 * C compilers that make kernels or a model are ended by the first (ty_toolchain_ends_if).
 *
 * The four signals are blocked in every thread and a thread of their own waits for them: nothing may be pushed onto the
 * stack of a thread that multiplies. oneDNN's sgemm for AVX-512 lets the stack pointer walk through its workspace on
 * the heap (95 of 100 signals find it there at 128 x 128 x 128), and the frame of a handler, some 3 KB, would be
 * written over whatever the heap holds below.
 */
#ifndef TY_ENTRYPOINT_STOP_H
#define TY_ENTRYPOINT_STOP_H

#include "base/error.h"

/* Call it before any other thread starts: threads inherit the mask. Fails with TY_E_LIMIT where no thread can start. */
int ty_stop_install(ty_error *err);

/* Takes it back, before another program takes the process's place: a signal acts as it did before from here on, and
 * every one that came earlier is counted. Nothing happens where it is not installed. */
void ty_stop_uninstall(void);

/* The first request ends the process, with 128 + signal: at once (0), so many milliseconds later, or never, as at the
 * start. For where nothing would be lost yet. A time is for a request that may come while this process and others make
 * up their minds: who then says never has not been asked too late, and goes on. It counts for a request that has come
 * already, too. Times are looked at every 200 ms. */
enum { TY_STOP_NEVER = -1 };
void ty_stop_ends_after(int ms);

/* A request ends the process where this says so, too, at once or as soon as it does; asked by the thread that waits for
 * signals. NULL: never.
 * When it returns, nobody asks what was given before. */
void ty_stop_ends_if(bool (*is_over)(void));

int ty_stop_count(void);
int ty_stop_signal(void); /* the first that came; 0: none */

#endif
