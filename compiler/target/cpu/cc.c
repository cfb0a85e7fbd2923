/* cc.c - runs the system compiler. See cc.h. */
#define _GNU_SOURCE
#include "compiler/target/cpu/cc.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/hash.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* No -ffast-math, ever: it folds isfinite() away and links a start-up object that sets flush-to-zero for the process.
 */
static const char *const cc_flags[] = {
    "-std=gnu17",
    "-O2",
    "-ftree-vectorize",
    "-fvect-cost-model=dynamic",
    "-march=native",
    "-mprefer-vector-width=512",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
    "-fwrapv",
    "-fno-semantic-interposition",
    "-fopenmp-simd",
    "-fvisibility=hidden",
    "-fPIC",
    "-shared",
    "-w",
    "-pipe",
    "-fno-asynchronous-unwind-tables",
    "-fcf-protection=none",
};
#define CC_N_FLAGS    (sizeof cc_flags / sizeof *cc_flags)
#define CC_PATH_BYTES 512

/* Compilers at work, or a library that was found. */
struct ty_cc_job {
    ty_cc_options opt;
    ty_cc_library lib;         /* of a hit */
    char dir[CC_PATH_BYTES];   /* where they write; "" if nothing is compiled */
    char entry[CC_PATH_BYTES]; /* of the cache, to be; "" without one */
    pid_t pid[TY_CC_MAX_UNITS];
    int n, n_started;
};

static int cc_spawn(const ty_cc_options *opt, const char *source, const char *object, const char *log, pid_t *pid,
                    ty_error *err)
{
    const char *argv[CC_N_FLAGS + 8];
    size_t n = 0;
    argv[n++] = opt->cc;
    for (size_t i = 0; i < CC_N_FLAGS; i++)
        argv[n++] = cc_flags[i];
    argv[n++] = "-o";
    argv[n++] = object;
    argv[n++] = source;
    argv[n] = NULL;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    int rc = posix_spawnp(pid, opt->cc, &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (rc == 0)
        return 0;
    ty_error_errno(err, TY_E_COMPILER, rc, "starting the C compiler \"%s\"", opt->cc);
    return ty_error_help(err, "install gcc, or set CC to a C compiler");
}

static int cc_wait(pid_t pid, const char *log, ty_error *err)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return ty_error_errno(err, TY_E_COMPILER, errno, "waiting for the C compiler");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    char line[400] = "";
    FILE *f = fopen(log, "r");
    if (f) {
        size_t n = fread(line, 1, sizeof line - 1, f);
        line[n] = 0;
        fclose(f);
    }
    if (WIFSIGNALED(status))
        return ty_error_set(err, TY_E_COMPILER, "the C compiler was ended by signal %d: %s", WTERMSIG(status), line);
    return ty_error_set(err, TY_E_COMPILER, "the C compiler failed with status %d: %s", WEXITSTATUS(status), line);
}

static int cc_path(char *out, const char *dir, int unit, const char *suffix, ty_error *err)
{
    if (snprintf(out, CC_PATH_BYTES, "%s/k%d%s", dir, unit, suffix) >= CC_PATH_BYTES)
        return ty_error_set(err, TY_E_LIMIT, "path of the compiler's work folder is too long: %s", dir);
    return 0;
}

static int cc_write_source(const char *dir, int unit, const char *text, char *path, ty_error *err)
{
    if (cc_path(path, dir, unit, ".c", err) < 0)
        return -1;
    FILE *f = fopen(path, "w");
    if (!f)
        return ty_error_errno(err, TY_E_NONE, errno, "writing kernels to %s", path);
    bool wrote = fputs(text, f) >= 0;
    if (fclose(f) != 0 || !wrote)
        return ty_error_errno(err, TY_E_NONE, errno, "writing kernels to %s", path);
    return 0;
}

/* Starts a compiler for each text. What was started is in the job, also after a failure. */
static int cc_compile(ty_cc_job *job, const char *const *text, ty_error *err)
{
    char source[CC_PATH_BYTES], object[CC_PATH_BYTES], log[CC_PATH_BYTES];
    for (; job->n_started < job->n; job->n_started++) {
        int unit = job->n_started;
        if (cc_write_source(job->dir, unit, text[unit], source, err) < 0 ||
            cc_path(object, job->dir, unit, ".so", err) < 0 || cc_path(log, job->dir, unit, ".log", err) < 0 ||
            cc_spawn(&job->opt, source, object, log, &job->pid[unit], err) < 0)
            return -1;
    }
    return 0;
}

/* Waits for all, also after a failure: nobody is left behind. */
static int cc_wait_all(ty_cc_job *job, ty_error *err)
{
    char log[CC_PATH_BYTES];
    int rc = 0;
    for (int i = 0; i < job->n_started; i++) {
        cc_path(log, job->dir, i, ".log", NULL);
        if (cc_wait(job->pid[i], log, rc == 0 ? err : NULL) < 0)
            rc = -1;
    }
    job->n_started = 0;
    return rc;
}

/* Loads a copy in memory: what lies on a noexec mount (docker's --tmpfs is one) can be read, but not mapped as code.
 * The descriptor stays open as long as the code: under a /proc name used again the loader would find the first code. */
static void *cc_open_copy(const char *object, int *copy_fd)
{
    char name[64];
    struct stat st;
    void *handle = NULL;
    int from = open(object, O_RDONLY | O_CLOEXEC);
    int to = from < 0 ? -1 : memfd_create("kernels", MFD_CLOEXEC);
    if (to >= 0 && fstat(from, &st) == 0 && sendfile(to, from, NULL, (size_t)st.st_size) == st.st_size) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", to);
        handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (from >= 0)
        close(from);
    if (!handle && to >= 0)
        close(to);
    *copy_fd = handle ? to : -1;
    return handle;
}

static bool cc_is_noexec(const char *dir)
{
    struct statvfs mount;
    return statvfs(dir, &mount) == 0 && (mount.f_flag & ST_NOEXEC);
}

static int cc_open(const char *dir, int n, ty_cc_library *out, ty_error *err)
{
    char object[CC_PATH_BYTES];
    bool noexec = cc_is_noexec(dir);
    for (int i = 0; i < n; i++) {
        int copy_fd = -1;
        if (cc_path(object, dir, i, ".so", err) < 0)
            return -1;
        void *handle = noexec ? cc_open_copy(object, &copy_fd) : dlopen(object, RTLD_NOW | RTLD_LOCAL);
        if (!handle) {
            const char *reason = dlerror();
            ty_error_set(err, TY_E_COMPILER, "loading compiled kernels: %s", reason ? reason : strerror(errno));
            ty_cc_close(out);
            return noexec ? ty_error_help(err, "%s is mounted noexec; set TMPDIR to a folder that is not", dir) : -1;
        }
        out->copy_fd[out->n_handles] = copy_fd;
        out->handle[out->n_handles++] = handle;
    }
    return 0;
}

/* What decides the objects beside the text: flags, compiler and the CPU's features. */
static int cc_key(const char *const *text, int n, const ty_cc_options *opt, char *hex, ty_error *err)
{
    ty_buf b;
    ty_buf_init(&b, 1u << 30);
    ty_buf_addf(&b, "%s\n", opt->cc);
    for (size_t i = 0; i < CC_N_FLAGS; i++)
        ty_buf_addf(&b, "%s ", cc_flags[i]);
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[4096];
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "flags", 5) == 0 || strncmp(line, "model name", 10) == 0) {
            ty_buf_adds(&b, line);
            if (line[0] == 'f')
                break;
        }
    if (f)
        fclose(f);
    for (int i = 0; i < n; i++)
        ty_buf_addf(&b, "\n--%zu--\n%s", strlen(text[i]), text[i]);
    uint8_t digest[TY_SHA256_BYTES];
    int rc = ty_sha256_bytes(b.data, b.len, digest, err);
    ty_sha256_hex(digest, hex);
    ty_buf_fini(&b);
    return rc;
}

/* The finished folder becomes the entry by one rename; who comes second finds it there and is content. */
static void cc_publish(const char *dir, int n, const char *entry)
{
    char path[CC_PATH_BYTES];
    for (int i = 0; i < n; i++) {
        if (cc_path(path, dir, i, ".log", NULL) == 0)
            unlink(path);
        if (cc_path(path, dir, i, ".c", NULL) == 0)
            unlink(path);
    }
    if (rename(dir, entry) != 0)
        ty_file_remove_tree(dir, NULL);
}

static int cc_fresh(ty_cc_job *job, const char *const *text, ty_error *err)
{
    const char *base = job->opt.cache_dir ? job->opt.cache_dir : job->opt.work_dir;
    if (job->opt.cache_dir && ty_file_mkdirs(job->opt.cache_dir, 0700, err) < 0)
        return ty_error_wrap(err, "kernel cache");
    if (snprintf(job->dir, sizeof job->dir, "%s/ty-kernels-XXXXXX", base) >= (int)sizeof job->dir ||
        !mkdtemp(job->dir)) {
        job->dir[0] = 0;
        return ty_error_errno(err, TY_E_NONE, errno, "making a work folder for kernels in %s", base);
    }
    return cc_compile(job, text, err);
}

static void cc_keep(const char *const *text, int n, const char *dir)
{
    char path[CC_PATH_BYTES];
    if (ty_file_mkdirs(dir, 0755, NULL) < 0)
        return;
    for (int i = 0; i < n; i++)
        cc_write_source(dir, i, text[i], path, NULL);
}

/* The folder of the cache that holds, or would hold, these units. */
static int cc_entry(const char *const *text, int n, const ty_cc_options *opt, char *entry, ty_error *err)
{
    char hex[TY_SHA256_HEX_BYTES];
    if (cc_key(text, n, opt, hex, err) < 0)
        return -1;
    if (snprintf(entry, CC_PATH_BYTES, "%s/%s", opt->cache_dir, hex) >= CC_PATH_BYTES)
        return ty_error_set(err, TY_E_LIMIT, "path of the kernel cache is too long: %s", opt->cache_dir);
    return 0;
}

int ty_cc_find(const char *const *text, int n, const ty_cc_options *opt, bool *found, ty_error *err)
{
    char entry[CC_PATH_BYTES];
    *found = false;
    if (!opt->cache_dir)
        return 0;
    if (cc_entry(text, n, opt, entry, err) < 0)
        return -1;
    *found = ty_file_is_folder(entry);
    return 0;
}

static int cc_begin(ty_cc_job *job, const char *const *text, ty_error *err)
{
    if (job->opt.keep_dir)
        cc_keep(text, job->n, job->opt.keep_dir);
    if (!job->opt.cache_dir)
        return cc_fresh(job, text, err);
    if (cc_entry(text, job->n, &job->opt, job->entry, err) < 0)
        return -1;
    if (ty_file_is_folder(job->entry) && cc_open(job->entry, job->n, &job->lib, NULL) == 0) {
        job->lib.cache_hit = true;
        return 0;
    }
    return cc_fresh(job, text, err);
}

int ty_cc_start(const char *const *text, int n, const ty_cc_options *opt, ty_cc_job **out, ty_error *err)
{
    ty_cc_job *job = calloc(1, sizeof *job);
    if (!job)
        return ty_error_set(err, TY_E_LIMIT, "no memory to start the C compiler");
    job->opt = *opt;
    job->n = n;
    if (cc_begin(job, text, err) < 0) {
        ty_cc_abandon(job);
        return -1;
    }
    *out = job;
    return 0;
}

int ty_cc_finish(ty_cc_job *job, ty_cc_library *out, ty_error *err)
{
    int rc = cc_wait_all(job, err);
    if (rc == 0 && job->dir[0])
        rc = cc_open(job->dir, job->n, &job->lib, err);
    if (rc == 0 && job->dir[0] && job->entry[0]) {
        cc_publish(job->dir, job->n, job->entry);
        job->dir[0] = 0;
    }
    if (rc == 0) {
        *out = job->lib;
        job->lib.n_handles = 0;
    }
    ty_cc_abandon(job);
    return rc;
}

void ty_cc_abandon(ty_cc_job *job)
{
    if (!job)
        return;
    for (int i = 0; i < job->n_started; i++)
        kill(job->pid[i], SIGTERM);
    cc_wait_all(job, NULL);
    if (job->dir[0])
        ty_file_remove_tree(job->dir, NULL);
    ty_cc_close(&job->lib);
    free(job);
}

void *ty_cc_symbol(const ty_cc_library *lib, const char *name)
{
    for (int i = 0; i < lib->n_handles; i++) {
        void *found = dlsym(lib->handle[i], name);
        if (found)
            return found;
    }
    return NULL;
}

void ty_cc_close(ty_cc_library *lib)
{
    for (int i = 0; i < lib->n_handles; i++) {
        dlclose(lib->handle[i]);
        if (lib->copy_fd[i] >= 0)
            close(lib->copy_fd[i]);
    }
    lib->n_handles = 0;
}
