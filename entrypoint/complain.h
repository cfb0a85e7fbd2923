/* complain.h - showing an error: to people on stderr, to programs as JSON. */
#ifndef TY_ENTRYPOINT_COMPLAIN_H
#define TY_ENTRYPOINT_COMPLAIN_H

#include "base/error.h"

/* "error[E0107]: ..." on stderr; the first word red and bold on a terminal that wants colour (NO_COLOR, TERM=dumb
 * respected). Returns the exit status of the code. */
int ty_complain(const ty_error *err);
/* {"error": {"code": "E0107", "message": ..., "place": ..., "detail": ..., "help": ...}} on stdout. Returns the same.
 */
int ty_complain_json(const ty_error *err);

#endif
