/* complain.h - showing an error: to people on stderr, to programs as JSON. */
#ifndef TY_ENTRYPOINT_COMPLAIN_H
#define TY_ENTRYPOINT_COMPLAIN_H

#include "base/error.h"

#include <stdbool.h>

/* "error[E0107]: ..." on stderr; the first word red and bold on a terminal that wants colour (NO_COLOR, TERM=dumb
 * respected). Returns the exit status of the code. */
int ty_complain(const ty_error *err);
/* {"error": {"code": "E0107", "message": ..., "place": ..., "detail": ..., "help": ...}} on stdout. Returns the same.
 */
int ty_complain_json(const ty_error *err);
/* How a command ends that failed: in words, or as JSON where that was asked for. What was wrong with the command line
 * itself is told in words always and returns TY_EXIT_USAGE_ERROR. */
int ty_complain_of_command(const ty_error *err, bool as_json);

#endif
