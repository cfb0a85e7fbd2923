/* libraries.c - opens NVIDIA's libraries. See libraries.h. */
#include "compiler/target/cuda/libraries.h"

#include "base/arena.h"
#include "base/dl.h"
#include "base/home.h"

#include <glob.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SONAMES = 2, MAX_NAMES = 64, UNFIT_BYTES = 256 };

/* A set of major versions of CUDA; what belongs to none, 0, is in each. */
typedef uint32_t versions;
#define VERSIONS_ALL UINT32_MAX

static versions versions_of(int cuda)
{
    return (versions)1 << (cuda < 31 ? cuda : 31);
}

static bool versions_have(versions set, int cuda)
{
    return cuda == 0 || (set & versions_of(cuda));
}

typedef struct library_name {
    const char *soname;
    int cuda; /* the major version of CUDA that it belongs to; 0: it does not say */
} library_name;

/* A library: its sonames, the newest first, and its table. */
typedef struct library {
    library_name name[MAX_SONAMES];
    const ty_dl_symbol *symbols;
    size_t n_symbols;
    void *table;
    int (*ask)(void); /* for its major version of CUDA, where the soname does not say; or NULL */
    bool is_driver;
    void *handle; /* NULL: it is not open */
    int cuda;     /* of what is open, as above */
    ty_error why; /* of NVRTC and cuBLASLt, once they were looked for: why it is not open */
} library;

#define ROW(result, fn, parameters) {.name = #fn, .offset = offsetof(TABLE, fn)},
#define TABLE                       ty_cu
static const ty_dl_symbol cu_symbols[] = {TY_CU_FUNCTIONS(ROW)};
#undef TABLE
#define TABLE ty_nvrtc
static const ty_dl_symbol nvrtc_symbols[] = {TY_NVRTC_FUNCTIONS(ROW)};
#undef TABLE
#define TABLE ty_cublaslt
static const ty_dl_symbol cublaslt_symbols[] = {TY_CUBLASLT_FUNCTIONS(ROW)};
#undef TABLE
#define TABLE ty_cudnn
static const ty_dl_symbol cudnn_symbols[] = {TY_CUDNN_FUNCTIONS(ROW)};
#undef TABLE
#define TABLE ty_nccl
static const ty_dl_symbol nccl_symbols[] = {TY_NCCL_FUNCTIONS(ROW)};
#undef TABLE
#undef ROW

static ty_cu cu;
static ty_nvrtc nvrtc;
static ty_cublaslt cublaslt;
static ty_cudnn cudnn;
static ty_nccl nccl;

static int cudnn_ask(void)
{
    return (int)(cudnn.cudnnGetCudartVersion() / 1000);
}

#define LIBRARY(name) \
    .symbols = name##_symbols, .n_symbols = sizeof name##_symbols / sizeof *name##_symbols, .table = &name
static library cu_library = {{{"libcuda.so.1", 0}}, LIBRARY(cu), .is_driver = true};
static library nvrtc_library = {{{"libnvrtc.so.13", 13}, {"libnvrtc.so.12", 12}}, LIBRARY(nvrtc)};
static library cublaslt_library = {{{"libcublasLt.so.13", 13}, {"libcublasLt.so.12", 12}}, LIBRARY(cublaslt)};
static library cudnn_library = {{{"libcudnn.so.9", 0}}, LIBRARY(cudnn), .ask = cudnn_ask};
static library nccl_library = {{{"libnccl.so.2", 0}}, LIBRARY(nccl)};

/* ---- where to look ---- */

/* Paths in the order in which they are tried; only files that are there, beside the bare sonames. */
typedef struct search {
    ty_arena arena;
    library_name name[MAX_NAMES];
    int n;
} search;

static void search_add(search *s, const char *path, int cuda)
{
    if (s->n < MAX_NAMES)
        s->name[s->n++] = (library_name){ty_arena_strdup(&s->arena, path), cuda};
}

/* A folder's name has no wildcards, whatever is in it. */
static const char *search_quote(search *s, const char *folder, size_t length)
{
    char *quoted = ty_arena_alloc(&s->arena, 2 * length + 1), *p = quoted;
    for (size_t i = 0; i < length; i++) {
        if (strchr("*?[\\", folder[i]))
            *p++ = '\\';
        *p++ = folder[i];
    }
    *p = 0;
    return quoted;
}

/* Files of the library's names in folders of the pattern below the quoted folder, the newest name first; of folders
 * that differ in their version (cuda-12.9, cuda-13.0) the last one first. */
static void search_glob(search *s, const char *folder, const char *pattern, const library *l)
{
    for (int i = 0; i < MAX_SONAMES && l->name[i].soname; i++) {
        glob_t found;
        if (glob(ty_arena_printf(&s->arena, "%s%s/%s", folder, pattern, l->name[i].soname), 0, NULL, &found) != 0)
            continue;
        for (size_t k = found.gl_pathc; k-- > 0;)
            search_add(s, found.gl_pathv[k], l->name[i].cuda);
        globfree(&found);
    }
}

/* Folders that the user names: toolkits, libraries, or what pip has filled. */
static void search_named(search *s, const char *folders, const library *l)
{
    static const char *const patterns[] = {"", "/lib64", "/lib", "/nvidia/*/lib", "/*/lib"};
    for (const char *p = folders; p && *p;) {
        size_t n = strcspn(p, ":");
        const char *folder = search_quote(s, p, n);
        for (size_t i = 0; n > 0 && i < sizeof patterns / sizeof *patterns; i++)
            search_glob(s, folder, patterns[i], l);
        p += n + (p[n] == ':');
    }
}

/* All names to try. The driver's library is where the loader looks and nowhere else: a toolkit has a stub of it, which
 * is no driver. */
static void search_fill(search *s, const library *l)
{
    const char *home = ty_home_folder(), *cuda_home = getenv("CUDA_HOME");
    if (!l->is_driver)
        search_named(s, getenv("TRAINYARD_CUDA_DIR"), l);
    for (int i = 0; i < MAX_SONAMES && l->name[i].soname; i++)
        search_add(s, l->name[i].soname, l->name[i].cuda);
    if (l->is_driver)
        return;
    if (*home) {
        search_glob(s, search_quote(s, home, strlen(home)), "/nvidia/*/lib", l);
        search_glob(s, search_quote(s, home, strlen(home)), "/../nvidia/*/lib", l);
    }
    if (cuda_home && *cuda_home)
        search_glob(s, search_quote(s, cuda_home, strlen(cuda_home)), "/lib64", l);
    search_glob(s, "/usr/local/cuda", "/lib64", l);
    search_glob(s, "/usr/local/cuda-", "*/lib64", l);
}

/* ---- which version of CUDA; called with the lock ---- */

/* The first branch of the driver for each major version of CUDA: within one every driver runs what was built for it,
 * and newer ones do too (NVIDIA, CUDA Compatibility, "Minor Version Compatibility"). */
static const struct {
    int cuda, driver;
} driver_branches[] = {{12, 525}, {13, 580}};

static int driver_branch(int cuda)
{
    size_t i = 0;
    while (i + 1 < sizeof driver_branches / sizeof *driver_branches && driver_branches[i].cuda < cuda)
        i++;
    return driver_branches[i].driver;
}

static void library_close(library *l)
{
    ty_dl_close(l->handle);
    l->handle = NULL;
}

/* One file, if it is of these versions of CUDA. */
static void library_open_file(library *l, const library_name *file, versions set, ty_error *err)
{
    const char *const name[] = {file->soname, NULL};
    if (ty_dl_open(name, l->symbols, l->n_symbols, l->table, &l->handle, err) < 0)
        return;
    l->cuda = l->ask ? l->ask() : file->cuda;
    if (versions_have(set, l->cuda))
        return;
    ty_error_set(err, TY_E_NOT_FOUND, "%s is of CUDA %d: driver %d or newer is needed", file->soname, l->cuda,
                 driver_branch(l->cuda));
    library_close(l);
}

/* The first that is there of these versions of CUDA; else the loader's words about the first name, or about the last
 * path that leads to a file. One that lacks functions is no reason to take another: whoever put it there is told. */
static bool library_open(library *l, versions set, ty_error *err)
{
    search s = {.n = 0};
    ty_error why = {0};
    bool first = true;
    ty_arena_init(&s.arena);
    search_fill(&s, l);
    for (int i = 0; i < s.n && !l->handle && why.code != TY_E_LIBRARY; i++) {
        if (!versions_have(set, s.name[i].cuda))
            continue;
        library_open_file(l, &s.name[i], set, &why);
        if (err && !l->handle && (first || why.code == TY_E_LIBRARY || strchr(s.name[i].soname, '/')))
            *err = why;
        first = false;
    }
    ty_arena_fini(&s.arena);
    return l->handle != NULL;
}

/* 12040 of a driver of CUDA 12.4; 0: there is none, or it does not say. */
static int driver_version(void)
{
    int version = 0;
    if (!cu_library.handle && !library_open(&cu_library, VERSIONS_ALL, NULL))
        return 0;
    return cu.cuDriverGetVersion(&version) == TY_CU_SUCCESS ? version : 0;
}

/* What the driver runs; without one nothing is run, only compiled. */
static versions driver_runs(int version)
{
    return version == 0 ? VERSIONS_ALL : 2 * versions_of(version / 1000) - 1;
}

/* Of libraries that the driver is too old for. */
static const char *driver_unfit_text(int version, const char *what, int cuda, char *out)
{
    int n = snprintf(out, UNFIT_BYTES, "the driver is of CUDA %d.%d, %s of CUDA %d: driver %d or newer", version / 1000,
                     version % 1000 / 10, what, cuda, driver_branch(cuda));
    if (version / 1000 >= driver_branches[0].cuda)
        snprintf(out + n, UNFIT_BYTES - (size_t)n, ", or libraries of CUDA %d", version / 1000);
    return out;
}

/* ---- NVRTC and cuBLASLt, of one version ---- */

static char toolkit_unfit[UNFIT_BYTES]; /* why there is no such pair though there are libraries; "" */

/* The pair whose NVRTC comes first. */
static bool toolkit_open(versions set)
{
    while (library_open(&nvrtc_library, set, NULL)) {
        if (library_open(&cublaslt_library, versions_of(nvrtc_library.cuda), NULL))
            return true;
        set &= ~versions_of(nvrtc_library.cuda);
        library_close(&nvrtc_library);
    }
    return false;
}

/* Whether it is there for newer drivers: of the oldest such version, since that asks for least. */
static void toolkit_look_beyond(library *l, int version)
{
    for (int i = MAX_SONAMES; i-- > 0 && !l->handle;) {
        int cuda = l->name[i].cuda;
        if (versions_have(driver_runs(version), cuda) || !library_open(l, versions_of(cuda), NULL))
            continue;
        library_close(l);
        ty_error_set(&l->why, TY_E_NOT_FOUND, "%s", driver_unfit_text(version, "the libraries", cuda, toolkit_unfit));
        return;
    }
    if (!l->handle && l->why.code == TY_E_NONE)
        library_open(l, VERSIONS_ALL, &l->why); /* for the loader's words alone */
}

/* Looked for once, since others hold what was found. Where there is no pair each is opened by itself, to be shown. */
static void toolkit_find(void)
{
    static bool found;
    if (found)
        return;
    found = true;
    int version = driver_version();
    if (version > 0 && toolkit_open(driver_runs(version)))
        return;
    bool nvrtc_is_open = library_open(&nvrtc_library, driver_runs(version), &nvrtc_library.why);
    bool cublaslt_is_open = library_open(&cublaslt_library, driver_runs(version), &cublaslt_library.why);
    if (version > 0 && nvrtc_is_open && cublaslt_is_open)
        snprintf(toolkit_unfit, sizeof toolkit_unfit,
                 "NVRTC is of CUDA %d, cuBLASLt of CUDA %d: both of one are needed", nvrtc_library.cuda,
                 cublaslt_library.cuda);
    toolkit_look_beyond(&nvrtc_library, version);
    toolkit_look_beyond(&cublaslt_library, version);
}

/* ---- for all ---- */

static pthread_mutex_t libraries_lock = PTHREAD_MUTEX_INITIALIZER;

static int library_get(library *l, ty_error *err)
{
    bool is_toolkit = l == &nvrtc_library || l == &cublaslt_library;
    pthread_mutex_lock(&libraries_lock);
    if (is_toolkit)
        toolkit_find();
    else if (!l->handle)
        library_open(l, l->is_driver ? VERSIONS_ALL : driver_runs(driver_version()), err);
    bool open = l->handle != NULL;
    if (is_toolkit && !open && err)
        *err = l->why;
    pthread_mutex_unlock(&libraries_lock);
    return open ? 0 : -1;
}

#define GETTER(name)                                          \
    int ty_##name##_get(const ty_##name **out, ty_error *err) \
    {                                                         \
        *out = &name;                                         \
        return library_get(&name##_library, err);             \
    }
GETTER(cu)
GETTER(nvrtc)
GETTER(cublaslt)
GETTER(nccl)

/* cuDNN asks the loader for NVRTC and cuBLASLt by their sonames, and gets those that are open already wherever they
 * were found. Its own parts it finds beside itself. */
int ty_cudnn_get(const ty_cudnn **out, ty_error *err)
{
    *out = &cudnn;
    library_get(&nvrtc_library, NULL);
    library_get(&cublaslt_library, NULL);
    return library_get(&cudnn_library, err);
}

const char *ty_libraries_unfit(void)
{
    library_get(&nvrtc_library, NULL);
    return toolkit_unfit[0] ? toolkit_unfit : NULL;
}

void ty_library_version(size_t version, char *out)
{
    snprintf(out, TY_LIBRARY_VERSION_BYTES, "%zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
}
