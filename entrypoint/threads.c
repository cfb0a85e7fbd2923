/* threads.c - see threads.h. */
#include "entrypoint/threads.h"

#include "base/home.h"

#include <stdlib.h>
#include <unistd.h>

#define MARK  "TY_THREADS_SETTLED"
#define SPINS "20000" /* about a tenth of a millisecond: longer than the gap between two kernels */

void ty_threads_settle(char **argv)
{
    if (getenv(MARK)) {
        unsetenv(MARK);
        unsetenv("GOMP_SPINCOUNT");
        return;
    }
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT"))
        return;
    const char *self = ty_home_program(); /* by its own name, for those who look at ps */
    if (!*self)
        return;
    setenv(MARK, "1", 1);
    setenv("GOMP_SPINCOUNT", SPINS, 1);
    execv(self, argv);
    unsetenv(MARK);
    unsetenv("GOMP_SPINCOUNT");
}
