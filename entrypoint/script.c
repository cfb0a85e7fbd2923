/* script.c - from the name of the user's program to the command that runs it. */
#define _GNU_SOURCE
#include "entrypoint/script.h"

#include "base/buf.h"
#include "base/executable.h"
#include "base/file.h"
#include "base/home.h"
#include "base/log.h"
#include "base/toolchain.h"
#include "container/config/exit_status.h"
#include "container/config/redact.h"
#include "entrypoint/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HELPER_OUTPUT_BYTES = 1 << 16, REPORT_LINES_BYTES = 700, COMPILER_WORDS = 16 };

static bool ends_with(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n > m && strcmp(s + n - m, suffix) == 0;
}

static int count_args(const char *const *args)
{
    int n = 0;
    while (args && args[n])
        n++;
    return n;
}

static const char *const *join_head(ty_arena *a, const char *const *head, int n_head, const char *const *args)
{
    int n_args = count_args(args);
    const char **argv = TY_NEW_ARRAY(a, const char *, n_head + n_args + 1);
    memcpy(argv, head, (size_t)n_head * sizeof *argv);
    if (n_args > 0)
        memcpy(argv + n_head, args, (size_t)n_args * sizeof *argv);
    return argv;
}

/* {head..., args...}; head ends at its first NULL. */
static const char *const *join_argv(ty_arena *a, const char *const head[4], const char *const *args)
{
    return join_head(a, head, count_args(head), args);
}

static const char *in_code_folder(const ty_script *s, ty_arena *a, const char *name)
{
    return name[0] == '/' ? name : ty_arena_printf(a, "%s/%s", s->code_folder, name);
}

/* The first of the names that PATH leads to, or NULL. */
static const char *find_in_path(ty_arena *a, const char *const *names)
{
    const char *path = getenv("PATH");
    path = path && *path ? path : "/usr/local/bin:/usr/bin:/bin";
    for (; *names; names++)
        for (const char *p = path; *p;) {
            size_t n = strcspn(p, ":");
            const char *file = ty_arena_printf(a, "%.*s/%s", (int)n, p, *names);
            if (n > 0 && access(file, X_OK) == 0 && !ty_file_is_folder(file))
                return file;
            p += n + (p[n] == ':');
        }
    return NULL;
}

static int find_python(const ty_script *s, ty_arena *a, const char **out, ty_error *err)
{
    static const char *const names[] = {"python", "python3", NULL};
    *out = find_in_path(a, names);
    if (*out)
        return 0;
    ty_error_set(err, TY_E_USER_PROGRAM, "ExecuteUserScriptError: \"%s\" needs Python, and this image has none",
                 s->program);
    return ty_error_help(
        err, "build an image FROM this one with python3 installed, or use a shell script, a program or train.c");
}

/* Runs an installer or compiler; its output becomes the detail of the error. */
static int run_helper(const char *const *argv, const char *cwd, const char *error_class, ty_error *err)
{
    ty_buf output;
    int wait_status = 0;
    ty_buf_init(&output, HELPER_OUTPUT_BYTES);
    int rc = ty_spawn_capture(argv, cwd, true, &output, &wait_status, err);
    int status = rc < 0 ? 0 : ty_exit_status_of_wait(wait_status);
    if (rc < 0)
        ty_error_wrap(err, "%s", error_class);
    if (status != 0) {
        rc = ty_error_set(err, TY_E_USER_PROGRAM, "%s: \"%s\" ended with exit code %d", error_class, argv[0], status);
        /* A compiler says the cause first, an installer says it last; most of a compiler's output fits. */
        const char *text = output.data;
        if (output.len > REPORT_LINES_BYTES && strcmp(error_class, "CompileError") != 0)
            text += output.len - REPORT_LINES_BYTES;
        for (size_t used = 0; *text && used < REPORT_LINES_BYTES;) {
            int n = (int)strcspn(text, "\n");
            ty_error_detail(err, "%.*s", n, text);
            used += (size_t)n + 1;
            text += n + (text[n] == '\n');
        }
    }
    ty_buf_fini(&output);
    return rc;
}

static int install_requirements(const ty_script *s, ty_arena *a, const char *python, ty_error *err)
{
    const char *file = in_code_folder(s, a, "requirements.txt");
    if (!ty_file_exists(file))
        return 0;
    ty_log_info("script", "installing requirements.txt");
    const char *const argv[] = {python, "-m", "pip", "install", "-r", "requirements.txt", NULL};
    return run_helper(argv, s->code_folder, "InstallRequirementsError", err);
}

/* Makes the file executable where we may, as the toolkit does. What counts is whether it is executable afterwards. */
static int make_executable(const char *path, ty_error *err)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "ExecuteUserScriptError: \"%s\"", path);
    if (access(path, X_OK) < 0)
        chmod(path, (st.st_mode & 07777) | 0111);
    return 0;
}

static int prepare_command(const ty_script *s, ty_arena *a, ty_command *out, ty_error *err)
{
    if (make_executable(in_code_folder(s, a, s->program), err) < 0)
        return -1;
    const char *name = s->program[0] == '/' ? s->program : ty_arena_printf(a, "./%s", s->program);
    const char *const head[4] = {name};
    out->argv = join_argv(a, head, s->args);
    out->shell_argv0 = name;
    return 0;
}

static int prepare_package(const ty_script *s, ty_arena *a, ty_command *out, ty_error *err)
{
    const char *python;
    if (find_python(s, a, &python, err) < 0 || install_requirements(s, a, python, err) < 0)
        return -1;
    ty_log_info("script", "installing the package of setup.py");
    const char *const install[] = {python, "-m", "pip", "install", ".", NULL};
    if (run_helper(install, s->code_folder, "InstallModuleError", err) < 0)
        return -1;
    char *module = ty_arena_strdup(a, s->program);
    if (ends_with(module, ".py"))
        module[strlen(module) - 3] = 0;
    const char *const head[4] = {python, "-m", module};
    out->is_python = true;
    out->argv = join_argv(a, head, s->args);
    return 0;
}

static int prepare_python(const ty_script *s, ty_arena *a, ty_command *out, ty_error *err)
{
    const char *python;
    if (find_python(s, a, &python, err) < 0 || install_requirements(s, a, python, err) < 0)
        return -1;
    const char *const head[4] = {python, s->program};
    out->is_python = true;
    out->argv = join_argv(a, head, s->args);
    return 0;
}

/* A temporary folder of our own; it lives as long as the container. */
static int make_build_folder(ty_arena *a, const char **out, ty_error *err)
{
    char *folder = ty_arena_printf(a, "%s/trainyard-XXXXXX", ty_toolchain_folder());
    if (!mkdtemp(folder))
        return ty_error_errno(err, TY_E_NONE, errno, "cannot create a folder for the compiled program: \"%s\"", folder);
    *out = folder;
    return 0;
}

/* The folder is mounted noexec. The descriptor stays open until the program has taken our place. */
static int execute_from_memory(const char *binary, ty_arena *a, ty_command *out, ty_error *err)
{
    int fd;
    if (ty_executable_copy(binary, &fd, err) < 0)
        return ty_error_help(err,
                             "the folder of the compiled program is mounted noexec; set TMPDIR to one that is not");
    out->path = ty_arena_printf(a, "/proc/self/fd/%d", fd);
    return 0;
}

/* The library for programs of many ranks, if it lies beside us; a program that does not use it is not linked with it.
 */
static void add_library(const char *argv[COMPILER_WORDS], ty_arena *a)
{
    const char *home = ty_home_folder();
    int n = count_args(argv);
    const char *const words[] = {ty_arena_printf(a, "-I%s/include", home), ty_arena_printf(a, "-L%s/lib", home),
                                 ty_arena_printf(a, "-Wl,-rpath,%s/lib", home), "-Wl,--as-needed", "-ltrainyard"};
    bool is_here = ty_file_exists(ty_arena_printf(a, "%s/include/trainyard/trainyard.h", home)) &&
                   ty_file_exists(ty_arena_printf(a, "%s/lib/libtrainyard.so", home));
    for (size_t i = 0; is_here && i < sizeof words / sizeof *words; i++)
        argv[n++] = words[i];
}

static int prepare_c(const ty_script *s, ty_arena *a, ty_command *out, ty_error *err)
{
    const char *folder = NULL, *cc = ty_toolchain_cc();
    const char *const names[] = {cc, "gcc", NULL};
    const char *compiler = strchr(cc, '/') ? cc : find_in_path(a, names);
    if (!compiler) {
        ty_error_set(err, TY_E_COMPILER, "\"%s\" needs a C compiler, and this image has none", s->program);
        return ty_error_help(err, "install gcc and libc6-dev in the image, or set CC to the compiler");
    }
    if (make_build_folder(a, &folder, err) < 0)
        return -1;
    const char *slash = strrchr(s->program, '/');
    char *binary = ty_arena_printf(a, "%s/%s", folder, slash ? slash + 1 : s->program);
    binary[strlen(binary) - 2] = 0; /* without ".c" */
    ty_log_info("script", "compiling %s", s->program);
    const char *argv[COMPILER_WORDS] = {compiler, "-O2", "-I.", "-o", binary, s->program, "-lm", "-pthread"};
    add_library(argv, a);
    if (run_helper(argv, s->code_folder, "CompileError", err) < 0)
        return -1;
    const char *const head[4] = {binary};
    out->argv = join_argv(a, head, s->args);
    return ty_executable_is_forbidden(binary) ? execute_from_memory(binary, a, out, err) : 0;
}

typedef int prepare(const ty_script *s, ty_arena *a, ty_command *out, ty_error *err);

static const struct {
    const char *suffix; /* NULL: any */
    const char *needs;  /* a file in the code folder, or NULL */
    prepare *prepare;
} kinds[] = {
    {".sh", NULL, prepare_command}, {NULL, "setup.py", prepare_package}, {".py", NULL, prepare_python},
    {".c", NULL, prepare_c},        {NULL, NULL, prepare_command},
};

static int refuse_absent(const ty_script *s, const char *path, ty_error *err)
{
    ty_error_set(err, TY_E_NOT_FOUND, "ExecuteUserScriptError: the program \"%s\" is not in the code folder",
                 s->program);
    ty_error_at(err, "%s", path);
    ty_arena a;
    ty_file_entry *entries;
    size_t n = 0;
    ty_arena_init(&a);
    if (ty_file_list(s->code_folder, &a, &entries, &n, NULL) < 0 || n == 0)
        ty_error_help(err, "put the code into %s, or name its archive in sagemaker_submit_directory", s->code_folder);
    else {
        char found[256] = "";
        for (size_t i = 0; i < n && i < 8; i++)
            snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", i ? ", " : "", entries[i].name);
        ty_error_help(err, "the folder holds: %s%s", found, n > 8 ? ", ..." : "");
    }
    ty_arena_fini(&a);
    return -1;
}

int ty_script_prepare(const ty_script *s, ty_arena *a, ty_command *out, ty_error *err)
{
    *out = (ty_command){.cwd = s->code_folder};
    const char *path = in_code_folder(s, a, s->program);
    bool is_package = ty_file_exists(in_code_folder(s, a, "setup.py"));
    if (!is_package && (!ty_file_exists(path) || ty_file_is_folder(path)))
        return refuse_absent(s, path, err);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        if ((!kinds[k].suffix || ends_with(s->program, kinds[k].suffix)) &&
            (!kinds[k].needs || ty_file_exists(in_code_folder(s, a, kinds[k].needs))))
            return kinds[k].prepare(s, a, out, err);
    return -1; /* not reached: the last row takes all */
}

/* ---- one of several ranks ---- */

static bool has_mpi4py(const char *python)
{
    const char *const argv[] = {
        python, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('mpi4py') is None)", NULL};
    ty_buf output;
    int wait_status = -1;
    ty_buf_init(&output, HELPER_OUTPUT_BYTES);
    int rc = ty_spawn_capture(argv, NULL, false, &output, &wait_status, NULL);
    ty_buf_fini(&output);
    return rc == 0 && wait_status == 0;
}

void ty_script_as_rank(ty_command *c, bool data_parallel, ty_arena *a)
{
    static const char *const names[] = {"smddprun", NULL};
    const char *runner = data_parallel && !c->path ? find_in_path(a, names) : NULL;
    const char *head[4] = {NULL};
    int n = 0;
    if (runner)
        head[n++] = "smddprun";
    if (c->is_python && has_mpi4py(c->argv[0])) {
        head[n++] = c->argv[0];
        head[n++] = "-m";
        head[n++] = "mpi4py";
        c->argv++;
    }
    if (n > 0)
        c->argv = join_head(a, head, n, c->argv);
}

int ty_script_execute(const ty_command *c, int *exec_status, ty_error *err)
{
    *exec_status = TY_EXIT_CANNOT_EXECUTE;
    if (c->cwd && chdir(c->cwd) < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot enter the code folder \"%s\"", c->cwd);
    fflush(NULL);
    execv(c->path ? c->path : c->argv[0], (char *const *)c->argv);
    if (errno == ENOEXEC && c->shell_argv0) {
        int n = count_args(c->argv);
        const char *argv[n + 2];
        argv[0] = "/bin/sh";
        memcpy(argv + 1, c->argv, (size_t)(n + 1) * sizeof *argv);
        execv(argv[0], (char *const *)argv);
    }
    int exec_errno = errno;
    *exec_status = ty_exec_status(exec_errno);
    ty_error_errno(err, TY_E_USER_PROGRAM, exec_errno, "ExecuteUserScriptError: cannot execute \"%s\"", c->argv[0]);
    if (exec_errno == EACCES)
        return ty_error_help(err, "make the file executable (chmod +x), and look whether its folder is mounted noexec");
    if (exec_errno == ENOENT)
        return ty_error_help(err, "the interpreter named in its first line (#!) is not in this image");
    return -1;
}

const char *ty_command_text(const ty_command *c, ty_arena *a)
{
    ty_buf text;
    ty_buf_init(&text, 1 << 20);
    bool hide = false;
    for (int i = 0; c->argv[i]; i++) {
        const char *word = c->argv[i];
        const char *equals = word[0] == '-' ? strchr(word, '=') : NULL;
        bool names_secret = word[0] == '-' && ty_name_is_secret(ty_arena_strndup(a, word, strcspn(word, "=")));
        ty_buf_adds(&text, i ? " " : "");
        if (hide)
            ty_buf_adds(&text, "xxx");
        else if (names_secret && equals)
            ty_buf_addf(&text, "%.*s=xxx", (int)(equals - word), word);
        else
            ty_buf_adds(&text, *word ? word : "''");
        hide = names_secret && !equals && !hide;
    }
    const char *out = ty_arena_strdup(a, text.data);
    ty_buf_fini(&text);
    return out;
}
