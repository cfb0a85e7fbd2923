/* libraries.c - opens NVIDIA's libraries. See libraries.h. */
#include "compiler/target/cuda/libraries.h"

#include "base/arena.h"
#include "base/dl.h"
#include "base/home.h"

#include <glob.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SONAMES = 3, MAX_NAMES = 64 };

/* A library: its sonames, the newest first, and its table. */
typedef struct library {
    const char *soname[MAX_SONAMES];
    const ty_dl_symbol *symbols;
    size_t n_symbols;
    void *table;
    bool is_driver;
    bool open;
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

#define LIBRARY(name) \
    .symbols = name##_symbols, .n_symbols = sizeof name##_symbols / sizeof *name##_symbols, .table = &name
static library cu_library = {{"libcuda.so.1"}, LIBRARY(cu), .is_driver = true};
static library nvrtc_library = {{"libnvrtc.so.13", "libnvrtc.so.12"}, LIBRARY(nvrtc)};
static library cublaslt_library = {{"libcublasLt.so.13", "libcublasLt.so.12"}, LIBRARY(cublaslt)};
static library cudnn_library = {{"libcudnn.so.9"}, LIBRARY(cudnn)};
static library nccl_library = {{"libnccl.so.2"}, LIBRARY(nccl)};

/* ---- where to look ---- */

/* Paths in the order in which they are tried; only files that are there, beside the bare sonames. */
typedef struct search {
    ty_arena arena;
    const char *name[MAX_NAMES + 1];
    int n;
} search;

static void search_add(search *s, const char *name)
{
    if (s->n < MAX_NAMES)
        s->name[s->n++] = ty_arena_strdup(&s->arena, name);
    s->name[s->n] = NULL;
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
    for (int i = 0; i < MAX_SONAMES && l->soname[i]; i++) {
        glob_t found;
        if (glob(ty_arena_printf(&s->arena, "%s%s/%s", folder, pattern, l->soname[i]), 0, NULL, &found) != 0)
            continue;
        for (size_t k = found.gl_pathc; k-- > 0;)
            search_add(s, found.gl_pathv[k]);
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
    for (int i = 0; i < MAX_SONAMES && l->soname[i]; i++)
        search_add(s, l->soname[i]);
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

/* Called with the lock. */
static void library_find(library *l, ty_error *err)
{
    search s = {.n = 0};
    void *handle;
    ty_arena_init(&s.arena);
    search_fill(&s, l);
    l->open = ty_dl_open(s.name, l->symbols, l->n_symbols, l->table, &handle, err) == 0;
    ty_arena_fini(&s.arena);
}

static int library_open(library *l, ty_error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!l->open)
        library_find(l, err);
    bool open = l->open;
    pthread_mutex_unlock(&lock);
    return open ? 0 : -1;
}

#define GETTER(name)                                          \
    int ty_##name##_get(const ty_##name **out, ty_error *err) \
    {                                                         \
        *out = &name;                                         \
        return library_open(&name##_library, err);            \
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
    library_open(&nvrtc_library, NULL);
    library_open(&cublaslt_library, NULL);
    return library_open(&cudnn_library, err);
}

void ty_library_version(size_t version, char *out)
{
    snprintf(out, TY_LIBRARY_VERSION_BYTES, "%zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
}
