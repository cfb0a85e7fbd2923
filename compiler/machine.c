/* machine.c - looks at the machine. See machine.h. */
#define _GNU_SOURCE
#include "compiler/machine.h"

#include "base/toolchain.h"
#include "compiler/import/keras/hdf5_list.h"
#include "compiler/target/cpu/cc.h"
#include "compiler/target/cpu/onednn.h"
#include "compiler/target/cuda/devices.h"
#include "compiler/target/cuda/libraries.h"

#include <dlfcn.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

/* What a part says of itself: a version, and an address in its file. */
typedef struct machine_answer {
    const char *version;
    const void *address; /* NULL: `where` is set */
    const char *where;
} machine_answer;

typedef int machine_ask(const char *cc, ty_arena *a, machine_answer *out, ty_error *err);

/* ---- parts ---- */

/* The version is what the compiler puts into a kernel that says it: so it is tried as kernels try it. */
static int ask_cc(const char *cc, ty_arena *a, machine_answer *out, ty_error *err)
{
    static const char *const text[] = {
        "__attribute__((visibility(\"default\"))) const char ty_version[] = __VERSION__;"};
    ty_cc_options options = {.cc = cc, .work_dir = ty_toolchain_folder()};
    ty_cc_job *job;
    if (ty_cc_start(text, 1, &options, &job, err) < 0)
        return -1;
    int rc = ty_cc_wait(job, err);
    void *object = rc == 0 ? dlopen(ty_arena_printf(a, "%s/k0.so", ty_cc_folder(job)), RTLD_NOW | RTLD_LOCAL) : NULL;
    const char *version = object ? dlsym(object, "ty_version") : NULL;
    if (rc == 0 && !version)
        rc = ty_error_set(err, TY_E_COMPILER, "what the C compiler \"%s\" made cannot be loaded: %s", cc, dlerror());
    *out = (machine_answer){.version = version ? ty_arena_strdup(a, version) : NULL, .where = cc};
    if (object)
        dlclose(object);
    ty_cc_abandon(job);
    return rc;
}

static int ask_onednn(const char *cc, ty_arena *a, machine_answer *out, ty_error *err)
{
    (void)cc;
    const ty_onednn *lib;
    if (ty_onednn_get(&lib, err) < 0)
        return -1;
    const dnnl_version_t *v = lib->version();
    *out = (machine_answer){ty_arena_printf(a, "%d.%d.%d", v->major, v->minor, v->patch), (const void *)v, NULL};
    return 0;
}

static int ask_hdf5(const char *cc, ty_arena *a, machine_answer *out, ty_error *err)
{
    (void)cc;
    return hdf5_look(a, &out->version, &out->where, err);
}

static int ask_driver(const char *cc, ty_arena *a, machine_answer *out, ty_error *err)
{
    (void)cc;
    const ty_cu *lib;
    int version = 0;
    if (ty_cu_get(&lib, err) < 0)
        return -1;
    if (lib->cuDriverGetVersion(&version) != TY_CU_SUCCESS)
        return ty_error_set(err, TY_E_LIBRARY, "libcuda.so.1 does not tell its version");
    *out = (machine_answer){ty_arena_printf(a, "CUDA %d.%d", version / 1000, version % 1000 / 10),
                            *(const void *const *)&lib->cuInit, NULL};
    return 0;
}

static int ask_nvrtc(const char *cc, ty_arena *a, machine_answer *out, ty_error *err)
{
    (void)cc;
    const ty_nvrtc *lib;
    int major = 0, minor = 0;
    if (ty_nvrtc_get(&lib, err) < 0)
        return -1;
    lib->nvrtcVersion(&major, &minor);
    *out = (machine_answer){ty_arena_printf(a, "%d.%d", major, minor), *(const void *const *)&lib->nvrtcVersion, NULL};
    return 0;
}

static const char *machine_dotted(ty_arena *a, size_t version)
{
    char text[TY_LIBRARY_VERSION_BYTES];
    ty_library_version(version, text);
    return ty_arena_strdup(a, text);
}

static int ask_cublaslt(const char *cc, ty_arena *a, machine_answer *out, ty_error *err)
{
    (void)cc;
    const ty_cublaslt *lib;
    if (ty_cublaslt_get(&lib, err) < 0)
        return -1;
    *out = (machine_answer){machine_dotted(a, lib->cublasLtGetVersion()),
                            *(const void *const *)&lib->cublasLtGetVersion, NULL};
    return 0;
}

static int ask_cudnn(const char *cc, ty_arena *a, machine_answer *out, ty_error *err)
{
    (void)cc;
    const ty_cudnn *lib;
    if (ty_cudnn_get(&lib, err) < 0)
        return -1;
    *out =
        (machine_answer){machine_dotted(a, lib->cudnnGetVersion()), *(const void *const *)&lib->cudnnGetVersion, NULL};
    return 0;
}

static int ask_nccl(const char *cc, ty_arena *a, machine_answer *out, ty_error *err)
{
    (void)cc;
    const ty_nccl *lib;
    int version = 0;
    if (ty_nccl_get(&lib, err) < 0)
        return -1;
    lib->ncclGetVersion(&version);
    *out = (machine_answer){machine_dotted(a, (size_t)version), *(const void *const *)&lib->ncclGetVersion, NULL};
    return 0;
}

static const struct {
    const char *title, *without;
    machine_ask *ask;
    bool is_needed;
} machine_parts[] = {
    {"C compiler", "no kernels: only the slow interpreter runs (debug: interpret)", ask_cc, true},
    {"oneDNN", "no products and no convolutions", ask_onednn, true},
    {"HDF5", "no models of Keras", ask_hdf5, false},
    {"GPU driver", "no GPU", ask_driver, false},
    {"NVRTC", "no kernels for GPUs", ask_nvrtc, false},
    {"cuBLASLt", "no products on GPUs", ask_cublaslt, false},
    {"cuDNN", "no convolutions on GPUs", ask_cudnn, false},
    {"NCCL", "one GPU at a time", ask_nccl, false},
};
enum { MACHINE_N_PARTS = sizeof machine_parts / sizeof *machine_parts };

static const char *machine_file_of(const void *address, ty_arena *a)
{
    Dl_info info;
    return address && dladdr(address, &info) && info.dli_fname ? ty_arena_strdup(a, info.dli_fname) : "";
}

static void machine_ask_part(int i, const char *cc, ty_arena *a, ty_machine_part *out)
{
    machine_answer answer = {0};
    ty_error why = {0};
    bool found = machine_parts[i].ask(cc, a, &answer, &why) == 0;
    *out = (ty_machine_part){.title = machine_parts[i].title,
                             .version = found ? answer.version : NULL,
                             .where = !found         ? ""
                                      : answer.where ? answer.where
                                                     : machine_file_of(answer.address, a),
                             .why_not = found ? NULL : ty_arena_strdup(a, why.message),
                             .without = machine_parts[i].without,
                             .is_needed = machine_parts[i].is_needed};
}

/* ---- processor ---- */

static const char *machine_processor(ty_arena *a)
{
    char line[1024];
    const char *name = NULL;
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && !name && fgets(line, sizeof line, f))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            line[strcspn(line, "\n")] = 0;
            name = ty_arena_strdup(a, strchr(line, ':') + 1 + strspn(strchr(line, ':') + 1, " "));
        }
    if (f)
        fclose(f);
    return name ? name : "unknown processor";
}

static const char *machine_extensions(ty_arena *a)
{
    const char *all = "";
#if defined __x86_64__
    const struct {
        const char *name;
        bool has;
    } row[] = {
        {"AVX2", __builtin_cpu_supports("avx2")},
        {"AVX-512", __builtin_cpu_supports("avx512f")},
        {"AVX512-BF16", __builtin_cpu_supports("avx512bf16")},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (row[i].has)
            all = ty_arena_printf(a, "%s%s%s", all, *all ? ", " : "", row[i].name);
#else
    (void)a;
#endif
    return all;
}

void ty_machine_look(const char *cc, ty_arena *a, ty_machine_facts *out)
{
    ty_machine_part *part = TY_NEW_ARRAY(a, ty_machine_part, MACHINE_N_PARTS);
    if (!cc)
        cc = ty_toolchain_cc();
    *out = (ty_machine_facts){.processor = machine_processor(a),
                              .extensions = machine_extensions(a),
                              .threads = omp_get_num_procs(),
                              .part = part,
                              .n_parts = MACHINE_N_PARTS};
    for (int i = 0; i < MACHINE_N_PARTS; i++)
        machine_ask_part(i, cc, a, &part[i]);
    out->n_gpus = ty_cuda_devices(a, &out->gpu, &out->no_gpu);
}
