/* fault.h - failures with the codes of trainyard.h.
 *
 * In this folder a function that can fail returns TRAINYARD_OK or one of the negative codes of the public header, and
 * has then filled *err, whose text the program is shown.
 */
#ifndef TY_DIST_API_FAULT_H
#define TY_DIST_API_FAULT_H

#include "base/error.h"
#include "include/trainyard/trainyard.h"

/* Fills *err and returns `code`, so that `return ty_fault(...)` reads well. */
int ty_fault(ty_error *err, int code, const char *fmt, ...) TY_PRINTF(3, 4);

#endif
