/* home.c - see home.h. */
#include "base/home.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

static char program[4096], home[4096];
static pthread_once_t home_once = PTHREAD_ONCE_INIT;

static void find_home(void)
{
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 && n < (ssize_t)sizeof program - 1 ? n : 0] = 0; /* what is cut off names nothing */
    strcpy(home, program);
    for (int level = 0; level < 2; level++) {
        char *slash = strrchr(home, '/');
        if (slash)
            *slash = 0;
    }
}

const char *ty_home_program(void)
{
    pthread_once(&home_once, find_home);
    return program;
}

const char *ty_home_folder(void)
{
    pthread_once(&home_once, find_home);
    return home;
}
