/* report.h - what `train` leaves behind when its child has ended: the failure file, the success file, a last line.
 *
 * The child may send one note to its supervisor before it becomes the user's program: lines "key value", so that the
 * report can name the program and its command. A failure text that is already there (the trainer's own, which knows
 * more, or the user's) stays.
 */
#ifndef TY_ENTRYPOINT_REPORT_H
#define TY_ENTRYPOINT_REPORT_H

#include "base/error.h"
#include "entrypoint/supervise.h"

/* Variable with the number of the note pipe. */
#define TY_NOTE_FD_VARIABLE "TRAINYARD_NOTE_FD"

/* result NULL: the child could not be started, err says why. status: what `train` will exit with. */
void ty_report_end(const ty_supervise_result *result, const ty_error *err, int status);

/* The child's side, at its start: helpers that it runs do not inherit the pipe. */
void ty_note_keep(void);
/* Sends the note, once: the program's name and its command line as one text, secrets masked by the caller. Closes
 * the pipe and removes the variable, so that the program does not see them. Does nothing without a supervisor. */
void ty_note_send(const char *program, const char *command);
/* Sends that the job was stopped by this signal on another host: a supervisor that saw none takes it for its own. */
void ty_note_stopped(int signal);

#endif
