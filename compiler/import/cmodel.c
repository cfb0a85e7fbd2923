/* cmodel.c - opening a model.c: compile, rehearse, list, weights; and importing it. */
#define _GNU_SOURCE
#include "compiler/import/cmodel.h"

#include "base/clock.h"
#include "base/log.h"
#include "compiler/import/cmodel_kept.h"
#include "compiler/import/cmodel_lists.h"
#include "compiler/import/cmodel_load.h"
#include "compiler/import/cmodel_weights.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FREE_TRAIN = 32, FREE_EVAL = 64, SOURCE_BYTES = 4 << 20, KEPT_OBJECT_BYTES = 4096 };

struct ty_cmodel {
    ty_arena arena;
    const char *path;
    cmodel_object object;
    ty_buf source;
    cmodel_weights file;
    ty_cmodel_lists lists;
    char format[160];
};

/* ---- running model() -------------------------------------------------------------------------------------------- */

/* The line of the user's source under the message, if it is a line of this file. */
static void show_line(const ty_cmodel *m, ty_error *err)
{
    size_t n = strlen(m->path);
    const char *text = m->source.data;
    if (err->detail[0] || strncmp(err->place, m->path, n) != 0 || err->place[n] != ':')
        return;
    int line = atoi(err->place + n + 1);
    for (int i = 1; i < line && *text; i++) {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    if (line > 0 && *text)
        ty_error_detail(err, "%5d | %.*s", line, (int)strcspn(text, "\n"), text);
}

static void run_model(void *ctx, cmodel_net *net)
{
    const ty_cmodel *m = ctx;
    cmodel_build(net, m->object.model);
    if (!net->failed)
        return;
    ty_error_at(&net->error, "%s", m->path);
    show_line(m, &net->error);
}

static cmodel_source source_of(const ty_cmodel *m)
{
    return (cmodel_source){m->path, run_model, (void *)(uintptr_t)m, FREE_TRAIN, FREE_EVAL};
}

/* ---- rehearsal -------------------------------------------------------------------------------------------------- */

typedef struct rehearsal {
    volatile bool done;
    char place[CMODEL_PLACE_BYTES];
    cmodel_net net[2];
} rehearsal;

static void rehearse_child(const ty_cmodel *m, rehearsal *r)
{
    ty_arena arena;
    const cmodel_source source = source_of(m);
    ty_arena_init(&arena);
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_DFL); /* a crash must end the child, not enter a handler of ours */
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, 1);
    for (int i = 0; i < 2; i++) {
        r->net[i].place = r->place;
        cmodel_rehearse(&source, &r->net[i], &arena, i ? TY_MODEL_EVAL : TY_MODEL_TRAIN);
    }
    r->done = true;
    syscall(SYS_exit_group, 0); /* this child only, and without what our exit handlers would do */
}

static int rehearse_seconds(void)
{
    const char *text = getenv("TRAINYARD_MODEL_S");
    long s = text ? strtol(text, NULL, 10) : 0;
    return s > 0 && s < INT_MAX ? (int)s : CMODEL_REHEARSE_S;
}

static int rehearse_wait(pid_t pid, int *status)
{
    int64_t deadline_ms = ty_clock_ms() + 1000 * (int64_t)rehearse_seconds();
    for (;;) {
        pid_t got = waitpid(pid, status, WNOHANG);
        if (got == pid)
            return 0;
        if (got < 0 && errno != EINTR)
            return -1;
        if (ty_clock_ms() >= deadline_ms)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    kill(pid, SIGKILL);
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        ;
    return 1;
}

/* What commonly is behind a signal. */
static const char *rehearse_hint(int signal)
{
    static const struct {
        int signal;
        const char *hint;
    } rows[] = {
        {SIGSEGV, "look for a pointer that is not set, an index past an array, or a call of itself without an end"},
        {SIGBUS, "look for a pointer that is not set, or an index past an array"},
        {SIGFPE, "look for a division of integers by zero"},
        {SIGABRT, "look for an assert that does not hold, or memory that is freed twice"},
        {SIGKILL, "look for a loop without an end that takes memory"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].signal == signal)
            return rows[i].hint;
    return "look at what model() does there";
}

static int rehearse_judge(const ty_cmodel *m, const rehearsal *r, int waited, int status, ty_error *err)
{
    if (r->done)
        return 0;
    const char *after = r->place[0] ? "; this was the last call before" : "";
    if (waited == 1) {
        ty_error_set(err, TY_E_MODEL_FILE, "model() did not end within %d s%s", rehearse_seconds(), after);
        ty_error_help(err, "look for a loop without an end; TRAINYARD_MODEL_S=600 in the environment gives it 600 s");
    } else if (waited == 0 && WIFSIGNALED(status)) {
        ty_error_set(err, TY_E_MODEL_FILE, "model() crashed: signal %d (%s)%s", WTERMSIG(status),
                     strsignal(WTERMSIG(status)), after);
        ty_error_help(err, "%s", rehearse_hint(WTERMSIG(status)));
    } else {
        ty_error_set(err, TY_E_MODEL_FILE, "model() ended its process instead of returning%s", after);
        ty_error_help(err, "let it return; what cannot be is told by ty_fail(net, \"...\")");
    }
    if (r->place[0])
        ty_error_at(err, "%.*s", CMODEL_PLACE_BYTES, r->place);
    ty_error_at(err, "%s", m->path);
    show_line(m, err);
    return -1;
}

static int rehearse(const ty_cmodel *m, ty_error *err)
{
    rehearsal *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (r == MAP_FAILED)
        return ty_error_errno(err, TY_E_LIMIT, errno, "memory to try a model");
    int status = 0, rc;
    pid_t pid = fork();
    if (pid == 0)
        rehearse_child(m, r);
    if (pid < 0)
        rc = ty_error_errno(err, TY_E_LIMIT, errno, "a process to try a model");
    else {
        int waited = rehearse_wait(pid, &status);
        rc = rehearse_judge(m, r, waited, status, err);
    }
    munmap(r, sizeof *r);
    return rc;
}

/* ---- weights ---------------------------------------------------------------------------------------------------- */

static bool weight_known(const void *ctx, const char *name)
{
    const ty_cmodel_lists *l = ctx;
    for (int i = 0; i < l->n_weights; i++)
        if (strcmp(l->weight[i].name, name) == 0)
            return true;
    return false;
}

static int fill_weights(ty_cmodel *m, const cmodel_net *net, ty_error *err)
{
    int missing = 0;
    if (cmodel_weights_open(m->path, &m->file, err) < 0 ||
        cmodel_weights_all_known(&m->file, weight_known, &m->lists, err) < 0)
        return -1;
    for (int i = 0; i < m->lists.n_weights; i++) {
        const cmodel_value *w = &net->weight.at[i];
        if (cmodel_weights_find(&m->file, w->name, &w->type, &m->lists.weight[i].data, err) < 0)
            return -1;
        if (m->lists.weight[i].data)
            continue;
        float *data = TY_NEW_ARRAY(&m->arena, float, ty_type_elems(&w->type));
        cmodel_initialize(w->name, &w->type, w->init, net->init_seed, data);
        m->lists.weight[i].data = data;
        missing++;
    }
    const char *slash = m->file.path ? strrchr(m->file.path, '/') : NULL;
    snprintf(m->format, sizeof m->format, "C source%s%.100s", m->file.path ? ", weights of " : "",
             !m->file.path ? ""
             : slash       ? slash + 1
                           : m->file.path);
    if (m->file.path && missing)
        ty_log_info("model", "%s: %d of %d weights are not in it and start as the source says", m->file.path, missing,
                    m->lists.n_weights);
    return 0;
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

static int open_lists(ty_cmodel *m, ty_error *err)
{
    const cmodel_source source = source_of(m);
    cmodel_net *net = TY_NEW(&m->arena, cmodel_net);
    if (cmodel_list_all(&source, &m->arena, net, &m->lists, err) < 0)
        return -1;
    m->lists.format = m->format;
    return fill_weights(m, net, err);
}

static int open_code(ty_cmodel *m, const char *kept, ty_error *err)
{
    char object[KEPT_OBJECT_BYTES];
    int found = kept ? cmodel_find_kept(kept, &m->source, object, sizeof object, err) : 0;
    if (found < 0)
        return -1;
    int rc = found ? cmodel_load_object(m->path, object, &m->object, err)
                   : cmodel_load(m->path, NULL, CMODEL_COMPILE_MS, &m->object, err);
    if (rc < 0 || m->object.model)
        return rc;
    ty_error_set(err, TY_E_MODEL_FILE, "there are layers in it, and no function model");
    ty_error_at(err, "%s", m->path);
    return ty_error_help(err, "name the Keras file as the model, and this one as `layers`");
}

int ty_cmodel_open(const char *path, const char *kept, ty_cmodel **out, ty_error *err)
{
    ty_error local;
    err = err ? err : &local;
    ty_cmodel *m = calloc(1, sizeof *m);
    *out = NULL;
    if (!m)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a model");
    ty_arena_init(&m->arena);
    ty_arena_init(&m->file.arena);
    ty_buf_init(&m->source, SOURCE_BYTES);
    m->path = ty_arena_strdup(&m->arena, path);
    if (ty_file_read(path, &m->source, err) < 0 || open_code(m, kept, err) < 0 || rehearse(m, err) < 0 ||
        open_lists(m, err) < 0) {
        ty_cmodel_free(m);
        return -1;
    }
    *out = m;
    return 0;
}

void ty_cmodel_free(ty_cmodel *m)
{
    if (!m)
        return;
    cmodel_unload(&m->object);
    cmodel_weights_close(&m->file);
    ty_buf_fini(&m->source);
    ty_arena_fini(&m->arena);
    free(m);
}

int ty_cmodel_keep(const ty_cmodel *m, const char *folder, ty_error *err)
{
    const char *why = m->object.reads_files               ? "includes files of its own"
                      : cmodel_may_read_files(&m->source) ? "has what may read files in it (assembly, #embed or <../>)"
                                                          : NULL;
    if (!why)
        return cmodel_keep(folder, &m->source, m->object.file, err);
    ty_log_warning("model", "%s %s: its code is not kept, and a machine without a C compiler cannot open it", m->path,
                   why);
    return cmodel_keep_none(folder, err);
}

const ty_cmodel_lists *ty_cmodel_list(const ty_cmodel *m)
{
    return &m->lists;
}

const char *ty_cmodel_source(const ty_cmodel *m, size_t *n_bytes)
{
    *n_bytes = m->source.len;
    return m->source.data;
}

int ty_cmodel_import(const ty_cmodel *m, ty_graph *g, const ty_model_binding *b, ty_model_values *values, ty_error *err)
{
    const cmodel_source source = source_of(m);
    return cmodel_import_bound(&source, &m->lists, g, b, values, err);
}
