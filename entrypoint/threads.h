/* threads.h - how long idle compute threads spin before they sleep.
 *
 * GCC's OpenMP spins for milliseconds by default. That is right on a machine of our own; where something else wants the
 * cores, every short kernel then waits for a thread that spins in its place, and a step takes ten times as long. A
 * bounded spin costs nothing on an idle machine and keeps a busy one usable. libgomp reads its settings while it is
 * loaded, so that the only way to set them is to start again.
 */
#ifndef TY_ENTRYPOINT_THREADS_H
#define TY_ENTRYPOINT_THREADS_H

/* Starts this program again with a bounded spin, unless the user has set OMP_WAIT_POLICY or GOMP_SPINCOUNT. Returns in
 * the second life, with the environment as it was in the first, or at once if the system refuses (that only costs
 * speed). Call it first thing in main, before threads and open files. */
void ty_threads_settle(char **argv);

#endif
