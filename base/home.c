/* home.c - see home.h. */
#include "base/home.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

static char home[4096];
static pthread_once_t home_once = PTHREAD_ONCE_INIT;

static void find_home(void)
{
    ssize_t n = readlink("/proc/self/exe", home, sizeof home - 1); /* what is cut off has no program in it */
    home[n > 0 ? n : 0] = 0;
    for (int level = 0; level < 2; level++) {
        char *slash = strrchr(home, '/');
        if (slash)
            *slash = 0;
    }
}

const char *ty_home_folder(void)
{
    pthread_once(&home_once, find_home);
    return home;
}
