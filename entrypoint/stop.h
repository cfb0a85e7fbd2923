/* stop.h - being asked to stop: TERM, INT, HUP and QUIT only raise a count; whoever works looks at it between two
 * steps.
 *
 * The first request means: end well, with a checkpoint. The second: leave out everything but the checkpoint. The third
 * ends the process at once.
 */
#ifndef TY_ENTRYPOINT_STOP_H
#define TY_ENTRYPOINT_STOP_H

void ty_stop_install(void);
int ty_stop_count(void);
int ty_stop_signal(void); /* the first that came; 0: none */

#endif
