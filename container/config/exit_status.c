/* exit_status.c - exit statuses and signal names. */
#define _GNU_SOURCE 1 /* sigabbrev_np */

#include "container/config/exit_status.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

int ty_exit_status_of_wait(int wait_status)
{
    if (WIFEXITED(wait_status))
        return WEXITSTATUS(wait_status);
    if (WIFSIGNALED(wait_status))
        return 128 + WTERMSIG(wait_status);
    return TY_EXIT_INTERNAL; /* stopped or continued: has not ended, the caller asked too early */
}

bool ty_exit_status_is_temporary(int exit_status)
{
    return exit_status == TY_EXIT_TEMPORARY || exit_status == TY_EXIT_UNAVAILABLE || exit_status == 128 + SIGTERM;
}

const char *ty_signal_name(int signal_number)
{
    static _Thread_local char name[24];
    const char *abbreviation;

    if (signal_number >= SIGRTMIN && signal_number <= SIGRTMAX) {
        snprintf(name, sizeof name, "SIGRTMIN+%d", signal_number - SIGRTMIN);
        return name;
    }
    abbreviation = sigabbrev_np(signal_number);
    if (abbreviation == NULL)
        return NULL;
    snprintf(name, sizeof name, "SIG%s", abbreviation);
    return name;
}

static const char *exit_meaning(int exit_status)
{
    static const struct {
        int number;
        const char *meaning;
    } rows[] = {
#define EXIT_STATUS(name, number, meaning) {number, meaning},
#include "container/config/exit_status.def"
#undef EXIT_STATUS
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].number == exit_status)
            return rows[i].meaning;
    return NULL;
}

void ty_exit_status_text(int exit_status, char *out, size_t n)
{
    const char *signal_name = exit_status > 128 ? ty_signal_name(exit_status - 128) : NULL;
    const char *meaning = exit_meaning(exit_status);

    if (signal_name != NULL)
        snprintf(out, n, "killed by %s%s", signal_name, exit_status == 128 + SIGKILL ? " (often: out of memory)" : "");
    else if (meaning != NULL && exit_status != TY_EXIT_FAILED)
        snprintf(out, n, "exit code %d (%s)", exit_status, meaning);
    else
        snprintf(out, n, "exit code %d", exit_status);
}
