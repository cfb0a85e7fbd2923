/* cmodel_load.c - runs the system compiler on a model.c. See cmodel_load.h.
 *
 * Work is done in a folder of its own under $TMPDIR: trainyard/model.h as text from this program, and the object, which
 * is removed once it is loaded. The compiler leads a process group, so that a time-out ends its children too.
 */
#define _GNU_SOURCE
#include "compiler/import/cmodel_load.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/toolchain.h"

#define TY_MODEL_TYPES_ONLY
#include "include/trainyard/model.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* The header's text, NUL-terminated. */
__asm__(".pushsection .rodata\n"
        ".global ty_cmodel_header\n"
        "ty_cmodel_header: .incbin \"include/trainyard/model.h\"\n"
        ".byte 0\n"
        ".popsection\n");

#define LOAD_TARGET "model"

enum { LOOK_MS = 50 };
enum { OUTPUT_BYTES = 1 << 16, DETAIL_BYTES = 1200, DETAIL_LINES = 14, PATH_BYTES = 512, RULE_BYTES = 1 << 16 };

/* ---- a child with a time limit ---------------------------------------------------------------------------------- */

static int load_start(const char *const *argv, const char **env, int out_fd, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
    posix_spawn_file_actions_adddup2(&actions, out_fd, 2);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    int rc = posix_spawnp(pid, argv[0], &actions, &attr, (char *const *)argv, (char *const *)env);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

static bool load_is_over(int64_t deadline_ms)
{
    return ty_clock_ms() >= deadline_ms || ty_toolchain_is_over();
}

/* Reads until the pipe ends; false if it is over before. What does not fit is read and dropped. */
static bool load_drain(int fd, int64_t deadline_ms, ty_buf *output)
{
    while (!load_is_over(deadline_ms)) {
        char chunk[4096];
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, LOOK_MS) <= 0)
            continue;
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n > 0)
            ty_buf_add(output, chunk, (size_t)n);
        else if (n == 0 || errno != EINTR)
            return true;
    }
    return false;
}

static bool load_reap(pid_t pid, int64_t deadline_ms, int *status)
{
    for (;;) {
        pid_t got = waitpid(pid, status, WNOHANG);
        if (got == pid)
            return true;
        if ((got < 0 && errno != EINTR) || load_is_over(deadline_ms))
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* Compilers speak English to us: the place of the first error is read from their words. */
static const char **load_environment(ty_arena *a)
{
    int n = 0, kept = 0;
    while (environ[n])
        n++;
    const char **env = TY_NEW_ARRAY(a, const char *, n + 2);
    for (int i = 0; i < n; i++)
        if (strncmp(environ[i], "LC_ALL=", 7) != 0)
            env[kept++] = environ[i];
    env[kept] = "LC_ALL=C";
    return env;
}

static int load_run(const char *const *argv, int64_t timeout_ms, ty_buf *output, int *status, ty_error *err)
{
    int fds[2];
    pid_t pid;
    ty_arena arena;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "pipe to the C compiler");
    ty_arena_init(&arena);
    int rc = load_start(argv, load_environment(&arena), fds[1], &pid);
    ty_arena_fini(&arena);
    close(fds[1]);
    if (rc != 0) {
        close(fds[0]);
        ty_error_errno(err, TY_E_COMPILER, rc, "starting the C compiler \"%s\"", argv[0]);
        return ty_error_help(err, "a model.c needs a C compiler: install gcc and libc6-dev, or set CC to one");
    }
    int64_t deadline_ms = ty_clock_ms() + timeout_ms;
    bool in_time = load_drain(fds[0], deadline_ms, output) && load_reap(pid, deadline_ms, status);
    close(fds[0]);
    if (in_time)
        return 0;
    kill(-pid, SIGKILL);
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        ;
    if (ty_toolchain_is_over())
        return ty_error_set(err, TY_E_STOPPED, "stopped while the C compiler was at work");
    return ty_error_set(err, TY_E_COMPILER, "the C compiler \"%s\" did not end within %.1f s", argv[0],
                        (double)timeout_ms * 1e-3);
}

/* ---- what the compiler said ------------------------------------------------------------------------------------- */

/* Where the line begins that says why: an error, or a name that the linker has not found. */
static const char *load_find_line(const char *text, const char **reason)
{
    const char *at = strstr(text, "undefined reference");
    *reason = at;
    if (!at && (at = strstr(text, "error: ")))
        *reason = at + strlen("error: ");
    while (at && at > text && at[-1] != '\n')
        at--;
    return at;
}

/* "model.c:5:9: error: ..." gives its beginning. */
static void load_place(const char *line, const char *reason, const char *path, ty_error *err)
{
    const char *end = line ? strstr(line, ": fatal error: ") : NULL;
    if (line && (!end || end > reason))
        end = strstr(line, ": error: ");
    if (end && end < reason && strncmp(line, "collect2", 8) != 0)
        ty_error_at(err, "%.*s", (int)(end - line), line);
    ty_error_at(err, "%s", path);
}

/* Without notes: they only walk through the macros of the header. */
static void load_details(const char *text, ty_error *err)
{
    size_t used = 0;
    bool shown = true;
    for (int i = 0; *text && i < DETAIL_LINES && used < DETAIL_BYTES;) {
        size_t n = strcspn(text, "\n");
        if (memmem(text, n, ": note: ", 8))
            shown = false;
        else if (memmem(text, n, ": error: ", 9) || memmem(text, n, ": warning: ", 11))
            shown = true;
        if (shown) {
            ty_error_detail(err, "%.*s", (int)(n < 200 ? n : 200), text);
            used += n + 1;
            i++;
        }
        text += n + (text[n] == '\n');
    }
}

static int load_refuse(const char *path, const char *text, int status, ty_error *err)
{
    const char *reason = NULL, *line = load_find_line(text, &reason);
    if (WIFSIGNALED(status))
        ty_error_set(err, TY_E_COMPILER, "the C compiler was ended by signal %d", WTERMSIG(status));
    else if (reason)
        ty_error_set(err, TY_E_MODEL_FILE, "%.*s", (int)strcspn(reason, "\n"), reason);
    else
        ty_error_set(err, TY_E_MODEL_FILE, "the C compiler refused it with status %d", WEXITSTATUS(status));
    load_place(line, reason, path, err);
    load_details(line ? line : text, err);
    return ty_error_help(err, "the language of a model.c is described in trainyard/model.h");
}

static int load_compile(const char *path, const char *cc, const char *dir, const char *object, const char *rule,
                        int64_t timeout_ms, ty_error *err)
{
    char include[PATH_BYTES + 2];
    snprintf(include, sizeof include, "-I%s", dir);
    const char *const argv[] = {cc,
                                "-std=gnu17",
                                "-O1",
                                "-Wall",
                                "-Werror=int-conversion",
                                "-Werror=implicit-function-declaration",
                                "-Werror=incompatible-pointer-types",
                                "-fPIC",
                                "-shared",
                                "-fvisibility=hidden",
                                include,
                                "-MMD",
                                "-MT",
                                LOAD_TARGET,
                                "-MF",
                                rule,
                                "-o",
                                object,
                                "-x",
                                "c",
                                path,
                                "-x",
                                "none",
                                "-lm",
                                "-Wl,-z,defs",
                                NULL};
    ty_buf output;
    int status = 0;
    ty_buf_init(&output, OUTPUT_BYTES);
    int rc = load_run(argv, timeout_ms, &output, &status, err);
    if (rc == 0 && status != 0)
        rc = load_refuse(path, output.data, status, err);
    else if (rc == 0 && output.len > 0)
        ty_log_warning("model", "%.1500s", output.data);
    ty_buf_fini(&output);
    return rc;
}

/* ---- what the compiler read ------------------------------------------------------------------------------------- */

/* The end of a word of a rule of make, in which blanks of names are escaped. */
static const char *rule_word_end(const char *at)
{
    while (*at && !strchr(" \t\r\n", *at) && !(at[0] == '\\' && at[1] == '\n'))
        at += at[0] == '\\' && at[1] ? 2 : 1;
    return at;
}

/* Whether the word is this name: blanks and # have a backslash in front there, and of a dollar there are two. */
static bool rule_word_is(const char *at, const char *end, const char *name)
{
    for (; at < end && *name; at++, name++) {
        if ((at[0] == '\\' && strchr(" \t#", at[1])) || (at[0] == '$' && at[1] == '$'))
            at++;
        if (*at != *name)
            return false;
    }
    return at == end && !*name;
}

/* Whether the rule has anything but the source and, behind it, our header. Headers of the system are not in it. */
static bool rule_has_more(const char *rule, const char *header)
{
    int n = 0;
    bool ends_with_header = false;
    const char *at = rule + strlen(LOAD_TARGET ":");
    while (*(at += strspn(at, " \t\r\n"))) {
        const char *end = rule_word_end(at);
        if (end == at) { /* the line goes on */
            at += 2;
            continue;
        }
        ends_with_header = rule_word_is(at, end, header);
        at = end;
        n++;
    }
    return n != 2 || !ends_with_header;
}

/* A compiler that does not say what it has read may have read anything. */
static bool load_reads_files(const char *path, const char *header)
{
    ty_buf rule;
    ty_buf_init(&rule, RULE_BYTES);
    bool known = ty_file_read(path, &rule, NULL) == 0 && rule.len > strlen(LOAD_TARGET ":") &&
                 strncmp(rule.data, LOAD_TARGET ":", strlen(LOAD_TARGET ":")) == 0;
    bool more = !known || rule_has_more(rule.data, header);
    ty_buf_fini(&rule);
    return more;
}

/* ---- loading ---------------------------------------------------------------------------------------------------- */

static int load_symbols(const char *path, cmodel_object *o, ty_error *err)
{
    const int *version = dlsym(o->code.handle, "ty_model_version");
    void *function = dlsym(o->code.handle, "model"), *layers = dlsym(o->code.handle, "trainyard_layers");
    if (!function && !layers) {
        ty_error_set(err, TY_E_MODEL_FILE, "there is no function model in it");
        ty_error_at(err, "%s", path);
        return ty_error_help(err, "write: #include <trainyard/model.h>, then void model(ty_net *net) { ... }");
    }
    if (!version || *version != TY_MODEL_VERSION) {
        ty_error_set(err, TY_E_MODEL_FILE, "expected version %d of trainyard/model.h, found %d", TY_MODEL_VERSION,
                     version ? *version : 0);
        ty_error_at(err, "%s", path);
        return ty_error_help(err, "include <trainyard/model.h> and no copy of it");
    }
    memcpy(&o->model, &function, sizeof function);
    memcpy(&o->layers, &layers, sizeof layers);
    return 0;
}

int cmodel_load_object(const char *path, const char *object, cmodel_object *o, ty_error *err)
{
    *o = (cmodel_object){.file = -1};
    if (ty_shared_object_open(object, &o->code, err) < 0)
        return ty_error_wrap(err, "%s", path);
    o->file = open(object, O_RDONLY | O_CLOEXEC);
    int rc = o->file < 0 ? ty_error_errno(err, TY_E_NONE, errno, "%s", object) : load_symbols(path, o, err);
    if (rc < 0)
        cmodel_unload(o);
    return rc;
}

static int load_in(const char *path, const char *cc, const char *dir, int64_t timeout_ms, cmodel_object *out,
                   ty_error *err)
{
    char folder[PATH_BYTES], header[PATH_BYTES], object[PATH_BYTES], rule[PATH_BYTES];
    if (snprintf(folder, sizeof folder, "%s/trainyard", dir) >= PATH_BYTES - 16)
        return ty_error_set(err, TY_E_LIMIT, "the path of the folder for temporary files is too long: %s", dir);
    snprintf(header, sizeof header, "%.490s/model.h", folder);
    snprintf(object, sizeof object, "%.490s/model.so", dir);
    snprintf(rule, sizeof rule, "%.490s/model.d", dir);
    if (ty_file_mkdirs(folder, 0700, err) < 0 ||
        ty_file_write(header, ty_cmodel_header, strlen(ty_cmodel_header), 0600, err) < 0)
        return -1;
    if (load_compile(path, cc, dir, object, rule, timeout_ms, err) < 0 ||
        cmodel_load_object(path, object, out, err) < 0)
        return -1;
    out->reads_files = load_reads_files(rule, header);
    return 0;
}

int cmodel_load(const char *path, const char *cc, int64_t timeout_ms, cmodel_object *out, ty_error *err)
{
    char dir[PATH_BYTES];
    *out = (cmodel_object){0};
    const char *base = ty_toolchain_folder();
    if (snprintf(dir, sizeof dir, "%s/ty-model-XXXXXX", base) >= (int)sizeof dir || !mkdtemp(dir))
        return ty_error_errno(err, TY_E_NONE, errno, "making a folder to compile a model in %s", base);
    int rc = load_in(path, cc ? cc : ty_toolchain_cc(), dir, timeout_ms, out, err);
    ty_file_remove_tree(dir, NULL);
    return rc;
}

void cmodel_unload(cmodel_object *o)
{
    if (o->code.handle && o->file >= 0)
        close(o->file);
    ty_shared_object_close(&o->code);
    *o = (cmodel_object){0};
}
