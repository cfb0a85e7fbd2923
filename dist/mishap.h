/* mishap.h - a fault that somebody asked for: a rank ends, hangs or is told to stop when it reports a step.
 *
 * TRAINYARD_FAULT=kill:rank=1,step=50 in the environment of all hosts; `trainyard local --fault` sets it. The rank
 * meets it by itself, so that it happens in this very step, wherever the rank runs, and never twice: ranks that are
 * started anew after a failure are not told of it.
 *
 *     kill   the rank ends as by the kernel's hand (KILL)
 *     stop   the rank hangs (STOP), which the others have to notice
 *     term   the rank is told to stop (TERM)
 */
#ifndef TY_DIST_MISHAP_H
#define TY_DIST_MISHAP_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define TY_MISHAP_VARIABLE "TRAINYARD_FAULT"
/* What the rank's log line begins with, for whoever wants to know whether it has happened. */
#define TY_MISHAP_MARK "injected fault:"

typedef struct ty_mishap {
    int signal;   /* 0: none, or it has happened */
    int rank;     /* that it is for */
    int64_t step; /* from 1; one that is passed over counts with the next that is reported */
} ty_mishap;

/* "kill:rank=1,step=50"; rank and step in any order. TY_E_USAGE. */
int ty_mishap_parse(const char *text, ty_mishap *out, ty_error *err);
/* Of the variable, if it is for this process: rank RANK of the environment, or 0 where there is none. */
void ty_mishap_from_environment(ty_mishap *out);
/* A step is reported: if it is the one, says so in the log and sends the signal to this process. */
void ty_mishap_meet(ty_mishap *m, int64_t step);

#endif
