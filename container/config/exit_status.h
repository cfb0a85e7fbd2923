/* exit_status.h - what the number means with which a training container ends.
 *
 * 0 completes the job, anything else fails it. The numbers follow sysexits.h, and 128+n says "killed by signal n", so
 * that a script around the container can tell wrong settings from a full disk from an unlucky moment.
 * What went wrong inside us is a ty_code; ty_error_exit_status() turns it into one of these.
 */
#ifndef TY_CONTAINER_CONFIG_EXIT_STATUS_H
#define TY_CONTAINER_CONFIG_EXIT_STATUS_H

#include <stdbool.h>
#include <stddef.h>

enum {
#define EXIT_STATUS(name, number, meaning) TY_EXIT_##name = number,
#include "container/config/exit_status.def"
#undef EXIT_STATUS
};

/* The exit status to end with for a child that ended with this status from waitpid(): its own code, or 128 + signal. */
int ty_exit_status_of_wait(int wait_status);
/* True if a run that ended like this may well succeed when it is simply started again. */
bool ty_exit_status_is_temporary(int exit_status);
/* "SIGKILL"; NULL for a number that is no signal. Real-time signals are "SIGRTMIN+n", in a static per-thread buffer. */
const char *ty_signal_name(int signal_number);
/* "exit code 3", "exit code 78 (the configuration is wrong)", "killed by SIGKILL (often: out of memory)". Writes at
 * most n bytes with the NUL. */
void ty_exit_status_text(int exit_status, char *out, size_t n);

#endif
