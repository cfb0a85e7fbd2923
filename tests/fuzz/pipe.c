/* The file that says which FIFO of a channel comes next, as somebody may have left it. */
#include "base/file.h"
#include "container/input/stream/pipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

static void leave(void)
{
    ty_file_remove_tree(folder, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[128];
    ty_error err = {0};
    ty_pipe p;
    int64_t a, b;
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "/tmp/ty-fuzz-pipe-XXXXXX");
        if (!mkdtemp(folder))
            abort();
        atexit(leave);
    }
    snprintf(path, sizeof path, "%s/.train-pipe_mode-state", folder);
    if (ty_file_write(path, data, size, 0644, &err) < 0 || ty_pipe_open(&p, "train", folder, folder, &err) < 0)
        abort();
    if (ty_pipe_next(&p, &a, &err) == 0) {
        int rc = ty_pipe_next(&p, &b, &err); /* refused behind the last number */
        if (a < 0 || (rc == 0 ? b != a + 1 : !err.message[0]))
            abort();
    } else if (!err.message[0]) {
        abort();
    }
    ty_pipe_close(&p);
    return 0;
}
