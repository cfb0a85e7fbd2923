/* pipe.h - whose turn it is on a channel in Pipe mode: one reader, and the number of the FIFO that comes next.
 *
 * The number outlives a reader, not the container: it stands in <state>/.<channel>-pipe_mode-state as decimal text, and
 * is read and raised by one under flock of .<channel>-pipe_mode-lock, as PipeModeDataset of SageMaker's TensorFlow
 * extensions does, so that programs may take turns. That nobody reads a channel twice at once, which would deal its
 * bytes out at random, is guarded by flock of .<channel>-pipe_mode-reader, held as long as the pipe is open.
 */
#ifndef TY_CONTAINER_INPUT_STREAM_PIPE_H
#define TY_CONTAINER_INPUT_STREAM_PIPE_H

#include "base/error.h"

#include <stdint.h>

#define TY_PIPE_INPUT_FOLDER "/opt/ml/input/data"
#define TY_PIPE_STATE_FOLDER "/opt/ml/pipe_state"
#define TY_PIPE_PATH_BYTES   4096

typedef struct ty_pipe {
    /* Private. */
    char channel[256];
    char input_folder[TY_PIPE_PATH_BYTES / 2], state_folder[TY_PIPE_PATH_BYTES / 2];
    int reader_fd; /* -1: not open */
} ty_pipe;

/* Folders: NULL for the platform's. Makes the state's folder. TY_E_CHANNEL if somebody else reads the channel. */
int ty_pipe_open(ty_pipe *p, const char *channel, const char *input_folder, const char *state_folder, ty_error *err);
/* The number of the FIFO that comes next; the one behind it comes next then. */
int ty_pipe_next(ty_pipe *p, int64_t *number, ty_error *err);
/* That FIFO was not read after all, since nobody wrote to it: it comes next again. */
int ty_pipe_give_back(ty_pipe *p, int64_t number, ty_error *err);
/* <input>/<channel>_<number>. Returns out. */
const char *ty_pipe_path(const ty_pipe *p, int64_t number, char out[TY_PIPE_PATH_BYTES]);
void ty_pipe_close(ty_pipe *p);

#endif
