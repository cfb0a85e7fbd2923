/* toolchain.c - see toolchain.h. */
#include "base/toolchain.h"

#include "base/home.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char bundled[4096 + 16]; /* "": there is none */
static pthread_once_t bundled_once = PTHREAD_ONCE_INIT;

static void find_bundled(void)
{
    snprintf(bundled, sizeof bundled, "%s/cc/bin/cc", ty_home_folder());
    if (access(bundled, X_OK) < 0)
        bundled[0] = 0;
}

const char *ty_toolchain_cc(void)
{
    const char *cc = getenv("CC");
    if (cc && *cc)
        return cc;
    pthread_once(&bundled_once, find_bundled);
    return *bundled ? bundled : "cc";
}

const char *ty_toolchain_folder(void)
{
    const char *tmp = getenv("TMPDIR");
    return tmp && *tmp ? tmp : "/tmp";
}
