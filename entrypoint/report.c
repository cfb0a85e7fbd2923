/* report.c - composing the end of a job from what the supervisor saw. */
#define _GNU_SOURCE
#include "entrypoint/report.h"

#include "base/arena.h"
#include "container/config/exit_status.h"
#include "container/config/failure.h"
#include "container/config/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TAIL_MAX_BYTES = 700 };

/* The value of "key " in the note, copied out; "" if it is not there. */
static void note_value(const char *note, const char *key, char *out, size_t n)
{
    size_t key_len = strlen(key);
    out[0] = 0;
    for (const char *line = note; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, key_len) == 0 && line[key_len] == ' ') {
            const char *value = line + key_len + 1;
            snprintf(out, n, "%.*s", (int)strcspn(value, "\n"), value);
            return;
        }
    }
}

static void fill_error(const ty_supervise_result *r, ty_error *err)
{
    char program[256], command[600];
    note_value(r->note, "program", program, sizeof program);
    note_value(r->note, "command", command, sizeof command);
    char cause[128] = "";
    if (r->killed)
        snprintf(cause, sizeof cause, " did not end in time after %s", ty_signal_name(r->stop_signal));
    else if (r->memory_exhausted)
        snprintf(cause, sizeof cause, " ran out of memory (limit of the container's control group)");
    if (program[0]) {
        ty_error_set(err, TY_E_USER_PROGRAM, "ExecuteUserScriptError: %s%s", program, cause);
        ty_error_at(err, "Command \"%.180s%s\"", command, strlen(command) > 180 ? "..." : "");
    } else {
        ty_error_set(err, r->memory_exhausted ? TY_E_LIMIT : TY_E_INTERNAL, "the built-in trainer%s", cause);
    }
    if (r->memory_exhausted)
        ty_error_help(err, "choose a smaller batch_size, or auto, or an instance with more memory");
}

static int64_t wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void say_failure(const ty_error *err, int status)
{
    char how[128];
    ty_exit_status_text(status, how, sizeof how);
    dprintf(STDERR_FILENO, "train: %s: %s\n", err->message, how);
}

static void write_failure(const ty_supervise_result *r, const ty_error *err, const ty_paths *paths, int status)
{
    ty_buf tail;
    ty_buf_init(&tail, TY_TAIL_BYTES);
    if (r)
        ty_stderr_tail_lines(&r->tail, TAIL_MAX_BYTES, &tail);
    ty_failure failure = ty_failure_none();
    failure.error = err;
    failure.exit_status = status;
    failure.time_ms = wall_ms();
    failure.stderr_tail = tail.len > 0 ? tail.data : NULL;
    ty_error write_err = {0};
    ty_failure_outcome outcome = TY_FAILURE_KEPT;
    if (ty_paths_create(paths, &write_err) < 0 ||
        ty_failure_write(&failure, paths->failure, paths->failure_json, &outcome, &write_err) < 0)
        dprintf(STDERR_FILENO, "train: no failure file: %s\n", write_err.message);
    if (outcome == TY_FAILURE_WRITTEN)
        say_failure(err, status);
    ty_buf_fini(&tail);
}

static void write_success(const ty_paths *paths)
{
    int fd = open(paths->success, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd >= 0)
        close(fd);
}

/* A program that was told to stop and ended by that signal, or by the exit code that stands for it, did what it was
 * told. */
static bool ended_as_told(const ty_supervise_result *r, int status)
{
    char number[16];
    note_value(r->note, "stopped", number, sizeof number);
    if (number[0] && status == 128 + (int)strtol(number, NULL, 10))
        return true;
    return r->stop_signal != 0 && !r->killed && status == 128 + r->stop_signal;
}

void ty_report_end(const ty_supervise_result *r, const ty_error *err, int status)
{
    ty_arena a;
    ty_paths paths;
    ty_arena_init(&a);
    ty_paths_init(&paths, &a, getenv(TY_PATHS_BASE_VARIABLE));
    ty_error failed = {0};
    if (r && r->leftovers > 0)
        dprintf(STDERR_FILENO, "train: %d process%s outlived the program and %s ended\n", r->leftovers,
                r->leftovers == 1 ? "" : "es", r->leftovers == 1 ? "was" : "were");
    if (status == 0)
        write_success(&paths);
    else if (!r)
        write_failure(NULL, err, &paths, status);
    else if (!ended_as_told(r, status)) {
        fill_error(r, &failed);
        write_failure(r, &failed, &paths, status);
    }
    dprintf(STDERR_FILENO, "train: exit status %d after %.1f s\n", status, r ? r->run_s : 0.0);
    ty_arena_fini(&a);
}

static int note_fd(void)
{
    const char *number = getenv(TY_NOTE_FD_VARIABLE);
    int fd = number ? (int)strtol(number, NULL, 10) : -1;
    return fd > STDERR_FILENO ? fd : -1;
}

void ty_note_keep(void)
{
    if (note_fd() >= 0)
        fcntl(note_fd(), F_SETFD, FD_CLOEXEC);
}

static void note_close_with(const char *note, size_t n)
{
    int fd = note_fd();
    unsetenv(TY_NOTE_FD_VARIABLE);
    if (fd < 0)
        return;
    ssize_t written = write(fd, note, n);
    (void)written; /* without the note the report only lacks the name */
    close(fd);
}

void ty_note_send(const char *program, const char *command)
{
    char note[TY_NOTE_BYTES / 4];
    int n = snprintf(note, sizeof note, "program %.200s\ncommand %.600s\n", program, command);
    note_close_with(note, (size_t)n);
}

void ty_note_stopped(int signal)
{
    char note[32];
    int n = snprintf(note, sizeof note, "stopped %d\n", signal);
    note_close_with(note, (size_t)n);
}
