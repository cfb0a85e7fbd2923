/* ranks_child.c - see ranks_child.h. */
#include "dist/agent/ranks_child.h"

#include "base/child.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static int place_streams(void *ctx)
{
    const ty_ranks_child *o = ctx;
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(o->stdout_fd, STDOUT_FILENO) < 0 ||
        dup2(o->stderr_fd, STDERR_FILENO) < 0)
        return -1;
    if (nothing > STDERR_FILENO)
        close(nothing);
    return 0;
}

int ty_ranks_child_start(const ty_ranks_child *o, pid_t *pid, ty_error *err)
{
    ty_ranks_child streams = *o;
    ty_child_program p = {.argv = o->argv,
                          .envp = o->envp,
                          .cwd = o->cwd,
                          .own_group = true,
                          .death_signal = SIGKILL,
                          .prepare = place_streams,
                          .ctx = &streams};
    return ty_child_start(&p, pid, NULL, err);
}
