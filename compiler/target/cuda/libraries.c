/* libraries.c - opens NVIDIA's libraries. See libraries.h. */
#include "compiler/target/cuda/libraries.h"

#include "base/dl.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_SONAMES = 3, MAX_FOLDERS = 2, PATH_BYTES = 512 };

/* A library: its sonames, the newest first, and its table. */
typedef struct library {
    const char *soname[MAX_SONAMES];
    const ty_dl_symbol *symbols;
    size_t n_symbols;
    void *table;
    bool is_driver; /* only where the loader looks: the toolkit's stub of it is no driver */
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

/* All paths to try: each soname by itself, then in each folder. */
static int library_open(library *l, ty_error *err)
{
    char path[MAX_SONAMES * MAX_FOLDERS][PATH_BYTES];
    const char *name[MAX_SONAMES * (MAX_FOLDERS + 1) + 1], *folder[MAX_FOLDERS];
    const char *home = getenv("CUDA_HOME");
    int n = 0, n_paths = 0, n_folders = 0;
    void *handle;
    if (home && *home)
        folder[n_folders++] = home;
    folder[n_folders++] = "/usr/local/cuda";
    for (int i = 0; i < MAX_SONAMES && l->soname[i]; i++)
        name[n++] = l->soname[i];
    for (int f = 0; f < n_folders && !l->is_driver; f++)
        for (int i = 0; i < MAX_SONAMES && l->soname[i]; i++) {
            snprintf(path[n_paths], PATH_BYTES, "%s/lib64/%s", folder[f], l->soname[i]);
            name[n++] = path[n_paths++];
        }
    name[n] = NULL;
    l->open = l->open || ty_dl_open(name, l->symbols, l->n_symbols, l->table, &handle, err) == 0;
    return l->open ? 0 : -1;
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
GETTER(cudnn)
GETTER(nccl)
