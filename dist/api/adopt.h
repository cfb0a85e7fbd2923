/* adopt.h - ranks that are threads of one process, for tests: what runs under mpirun runs in one program too. */
#ifndef TY_DIST_API_ADOPT_H
#define TY_DIST_API_ADOPT_H

#include "dist/api/world.h"

/* From here on this thread's calls of the public functions mean this world; NULL: the process's again. */
void ty_api_adopt(ty_world *world);

#endif
