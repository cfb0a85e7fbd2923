/* input_feeder.h - a thread that serves files as FIFOs, as the platform does in Pipe mode. The including file defines
 * _GNU_SOURCE. */
#ifndef TY_TESTS_UNIT_INPUT_FEEDER_H
#define TY_TESTS_UNIT_INPUT_FEEDER_H

#include "container/input/serve/serve.h"
#include "input_streams.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

typedef struct feeder {
    ty_serve_config config;
    pthread_t thread;
    ty_error err;
    int rc;
    volatile sig_atomic_t stop;
    const char *paths[1];
    char path[512], into[512];
} feeder;

/* In the feeder's own thread: what its signal sets. */
static _Thread_local volatile sig_atomic_t *feeder_stop;
static inline void feeder_signal(int sig)
{
    (void)sig;
    if (feeder_stop)
        *feeder_stop = 1;
}

static inline void *feeder_main(void *arg)
{
    feeder *f = arg;
    ty_serve_told told;
    feeder_stop = &f->stop;
    f->rc = ty_serve_channel(&f->config, &told, &f->err);
    return NULL;
}

/* epochs 0: until it is told to stop. */
static inline void feed(feeder *f, const char *path, int64_t epochs)
{
    struct sigaction a = {.sa_handler = feeder_signal};
    sigaction(SIGUSR1, &a, NULL);
    signal(SIGPIPE, SIG_IGN);
    snprintf(f->path, sizeof f->path, "%s", path);
    f->paths[0] = f->path;
    ty_file_remove_tree(files_path("input"), NULL);
    ty_file_remove_tree(files_path("state"), NULL);
    snprintf(f->into, sizeof f->into, "%s", files_path("input"));
    f->config.paths = f->paths;
    f->config.n_paths = 1;
    f->config.into = f->into;
    f->config.channel = "train";
    f->config.epochs = epochs;
    f->config.stop = &f->stop;
    assert_int_equal(pthread_create(&f->thread, NULL, feeder_main, f), 0);
}

/* The files that put_files(k) has made. */
static inline void feed_kind(feeder *f, kind k, int64_t epochs)
{
    f->config.attributes = attributes;
    f->config.n_attributes = k == ATTRIBUTES ? 2 : 0;
    feed(f, files_path("data"), epochs);
}

/* It has served all of its epochs. */
static inline void fed(feeder *f)
{
    pthread_join(f->thread, NULL);
    assert_ok(f->rc, &f->err);
}

/* It is told to stop, whatever it waits for. */
static inline void unfeed(feeder *f)
{
    while (pthread_tryjoin_np(f->thread, NULL) == EBUSY) {
        pthread_kill(f->thread, SIGUSR1);
        usleep(1000);
    }
}

static inline ty_stream_config pipe_of(kind k)
{
    static char input[512], state[512];
    ty_stream_config c = config_of(k);
    snprintf(input, sizeof input, "%s", files_path("input"));
    snprintf(state, sizeof state, "%s", files_path("state"));
    c.paths = NULL;
    c.n_paths = 0;
    c.channel = "train";
    c.input_folder = input;
    c.state_folder = state;
    return c;
}

static inline int64_t next_fifo(void)
{
    ty_buf text = read_back("state/.train-pipe_mode-state");
    int64_t n = atoll(text.data);
    ty_buf_fini(&text);
    return n;
}

#endif
