/* train.c - the program `train`: PID 1 of the training container.
 *
 * It reads no file of the job and links no large library. All it does: start `trainyard worker`, which lies beside
 * it and becomes the built-in trainer or the user's program, stand between it and the platform (supervise.h), and
 * report how it ended: exit code and /opt/ml/output/failure. A reader of foreign bytes that crashes, crashes there and
 * is reported here.
 *
 *     train [train] [--key=value ...]   run the job under /opt/ml (or $SAGEMAKER_BASE_DIR)
 *     train COMMAND ...                 any other command of `trainyard`, supervised in the same way
 */
#define _GNU_SOURCE
#include "base/arena.h"
#include "base/home.h"
#include "container/config/exit_status.h"
#include "entrypoint/report.h"
#include "entrypoint/supervise.h"
#include "base/version.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    GRACE_MS = 112000, /* the platform kills 120 s after its TERM; this leaves time for the report */
    LEFTOVER_MS = 2000,
    USAGE_STATUS = 2,
};

static const char help_text[] =
    "usage: train [train] [--key=value ...]\n"
    "\n"
    "Runs the training job that lies under /opt/ml (or $SAGEMAKER_BASE_DIR), as a SageMaker training\n"
    "container does: the user's program if one is named (SAGEMAKER_PROGRAM or the hyperparameter\n"
    "sagemaker_program), else the built-in trainer with the job's train.yaml.\n"
    "Arguments --key=value override keys of the recipe (`trainyard help recipe` lists them).\n"
    "Any other first word is a command of trainyard, run under the same supervision:\n"
    "    train check model.onnx\n"
    "\n"
    "environment:\n"
    "  SAGEMAKER_BASE_DIR   folder in place of /opt/ml\n"
    "  SAGEMAKER_PROGRAM    program to run, relative to the code folder\n"
    "  TRAINYARD_GRACE_S    seconds from TERM to KILL (default 112)\n";

/* "<folder of this program>/trainyard". */
static int find_sibling(char *out, size_t n, ty_error *err)
{
    const char *self = ty_home_program(), *slash = strrchr(self, '/');
    if (!slash)
        return ty_error_set(err, TY_E_INTERNAL, "cannot tell where this program lies: /proc/self/exe");
    if (snprintf(out, n, "%.*s/trainyard", (int)(slash - self), self) >= (int)n)
        return ty_error_set(err, TY_E_LIMIT, "the path of this program is too long");
    return 0;
}

static int grace_ms(void)
{
    const char *text = getenv("TRAINYARD_GRACE_S");
    char *end;
    if (!text || !*text)
        return GRACE_MS;
    errno = 0;
    double seconds = strtod(text, &end);
    if (errno || *end || !(seconds >= 0 && seconds <= 1e6)) {
        fprintf(stderr, "train: TRAINYARD_GRACE_S is \"%s\", expected seconds; using %d\n", text, GRACE_MS / 1000);
        return GRACE_MS;
    }
    return (int)(seconds * 1000);
}

/* Child's arguments: {trainyard, worker, rest...} or {trainyard, command, rest...}. */
static const char **child_argv(ty_arena *a, char *sibling, int argc, char **argv, bool is_job)
{
    const char **out = TY_NEW_ARRAY(a, const char *, argc + 3);
    int n = 0, from = 1;
    out[n++] = sibling;
    if (is_job) {
        out[n++] = "worker";
        from = argc > 1 && strcmp(argv[1], "train") == 0 ? 2 : 1;
    }
    for (int i = from; i < argc; i++)
        out[n++] = argv[i];
    return out;
}

static int run(int argc, char **argv, const sigset_t *child_mask, bool is_job)
{
    static char sibling[PATH_MAX];
    static ty_supervise_result result;
    ty_error err = {0};
    ty_arena a;
    ty_arena_init(&a);
    int exec_status = 71;
    int rc = find_sibling(sibling, sizeof sibling, &err);
    if (rc == 0) {
        ty_supervise_options o = {.argv = child_argv(&a, sibling, argc, argv, is_job),
                                  .grace_ms = grace_ms(),
                                  .leftover_ms = LEFTOVER_MS,
                                  .note_fd_name = is_job ? TY_NOTE_FD_VARIABLE : NULL};
        rc = ty_supervise(&o, child_mask, &result, &exec_status, &err);
    }
    int status = rc == 0 ? ty_exit_status_of_wait(result.wait_status) : exec_status;
    if (is_job)
        ty_report_end(rc == 0 ? &result : NULL, &err, status);
    else if (rc < 0)
        fprintf(stderr, "train: %s\n", err.message);
    ty_arena_fini(&a);
    return status;
}

int main(int argc, char **argv)
{
    sigset_t before;
    ty_supervise_block(&before);
    const char *word = argc > 1 ? argv[1] : "train";
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return fputs(help_text, stdout) < 0;
    if (strcmp(word, "--version") == 0)
        return printf("%s\n", TY_VERSION_LINE) < 0;
    if (strcmp(word, "serve") == 0) {
        fputs("train: this image trains; it does not serve models (the platform started it with \"serve\")\n"
              "help: host the files of model.tar.gz with an inference image, such as ONNX Runtime or Triton\n",
              stderr);
        return USAGE_STATUS;
    }
    return run(argc, argv, &before, strcmp(word, "train") == 0 || strncmp(word, "--", 2) == 0);
}
