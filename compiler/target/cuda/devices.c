/* devices.c - asks the driver. See devices.h. */
#include "compiler/target/cuda/devices.h"

#include "compiler/target/cuda/gpu.h"
#include "compiler/target/cuda/libraries.h"
#include "compiler/target/cuda/nccl.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ARCHS = 64, NAME_BYTES = 128, UUID_BYTES = 48 };

/* What NVRTC compiles for: 75 for sm_75, ascending. */
typedef struct devices_archs {
    int arch[MAX_ARCHS], n;
    int major, minor; /* of NVRTC */
} devices_archs;

static void devices_ask_archs(devices_archs *out)
{
    const ty_nvrtc *lib;
    int n = 0;
    *out = (devices_archs){0};
    if (ty_nvrtc_get(&lib, NULL) < 0 || lib->nvrtcVersion(&out->major, &out->minor) != 0 ||
        lib->nvrtcGetNumSupportedArchs(&n) != 0 || n > MAX_ARCHS || lib->nvrtcGetSupportedArchs(out->arch) != 0)
        return;
    out->n = n;
}

static const char *devices_remark(const devices_archs *archs, int capability, ty_arena *a)
{
    if (ty_libraries_unfit())
        return ty_libraries_unfit();
    if (archs->n == 0)
        return "no kernels can be compiled for it: there is no NVRTC";
    for (int i = 0; i < archs->n; i++)
        if (archs->arch[i] == capability)
            return NULL;
    if (capability < archs->arch[0])
        return ty_arena_printf(a, "CUDA %d compiles for compute capability %d.%d and up: use libraries of CUDA %d",
                               archs->major, archs->arch[0] / 10, archs->arch[0] % 10, archs->major - 1);
    return ty_arena_printf(a, "NVRTC %d.%d does not know compute capability %d.%d: use newer libraries", archs->major,
                           archs->minor, capability / 10, capability % 10);
}

/* As nvidia-smi writes it: GPU-8-4-4-4-12. */
static const char *devices_uuid_text(const char uuid[TY_CU_UUID_BYTES], ty_arena *a)
{
    char text[UUID_BYTES] = "GPU-";
    for (int i = 0; i < TY_CU_UUID_BYTES; i++) {
        size_t used = strlen(text);
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        snprintf(text + used, sizeof text - used, "%s%02x", dash ? "-" : "", (unsigned char)uuid[i]);
    }
    return ty_arena_strdup(a, text);
}

static const char *devices_error(const ty_cu *lib, const char *what, unsigned error, ty_arena *a)
{
    const char *text = NULL;
    if (lib->cuGetErrorString(error, &text) != TY_CU_SUCCESS || !text)
        text = "no text for it";
    return ty_arena_printf(a, "%s: error %u of the driver (%s)", what, error, text);
}

static void devices_ask(const ty_cu *lib, int number, const devices_archs *archs, ty_arena *a, ty_machine_gpu *out)
{
    char name[NAME_BYTES] = "";
    CUdevice device;
    char uuid[TY_CU_UUID_BYTES] = {0};
    size_t bytes = 0;
    int major = 0, minor = 0;
    *out = (ty_machine_gpu){.number = number, .name = "", .uuid = ""};
    unsigned error = lib->cuDeviceGet(&device, number);
    error = error ? error : lib->cuDeviceGetName(name, sizeof name, device);
    error = error ? error : lib->cuDeviceGetUuid((struct CUuuid_st *)uuid, device);
    error = error ? error : lib->cuDeviceTotalMem_v2(&bytes, device);
    error = error ? error : lib->cuDeviceGetAttribute(&major, TY_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    error = error ? error : lib->cuDeviceGetAttribute(&minor, TY_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    error = error ? error
                  : lib->cuDeviceGetAttribute(&out->n_multiprocessors, TY_CU_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    if (error) {
        out->remark = devices_error(lib, "the device cannot be asked", error, a);
        return;
    }
    out->name = ty_arena_strdup(a, name);
    out->uuid = devices_uuid_text(uuid, a);
    out->bytes = (int64_t)bytes;
    out->capability = 10 * major + minor;
    out->remark = devices_remark(archs, out->capability, a);
}

int ty_cuda_devices(ty_arena *a, const ty_machine_gpu **out, const char **why)
{
    const ty_cu *lib;
    devices_archs archs;
    int n = 0;
    *out = NULL;
    *why = "there is no driver";
    if (ty_cu_get(&lib, NULL) < 0)
        return 0;
    unsigned error = lib->cuInit(0);
    *why = "the driver finds no device";
    if (error == TY_CU_ERROR_NO_DEVICE)
        return 0;
    if (error == TY_CU_SUCCESS)
        error = lib->cuDeviceGetCount(&n);
    if (error != TY_CU_SUCCESS) {
        *why = devices_error(lib, "the driver does not start", error, a);
        return 0;
    }
    devices_ask_archs(&archs);
    ty_machine_gpu *gpu = TY_NEW_ARRAY(a, ty_machine_gpu, n + 1);
    for (int i = 0; i < n; i++)
        devices_ask(lib, i, &archs, a, &gpu[i]);
    *out = gpu;
    *why = n > 0 ? NULL : *why;
    return n;
}

static int devices_check_libraries(ty_error *err)
{
    const ty_cu *cu;
    const ty_nvrtc *nvrtc;
    const ty_cublaslt *cublaslt;
    if (ty_cu_get(&cu, err) < 0)
        return ty_error_wrap(err, "no GPU driver");
    if (ty_libraries_unfit())
        return ty_error_set(err, TY_E_NOT_FOUND, "%s", ty_libraries_unfit());
    if (ty_nvrtc_get(&nvrtc, err) < 0)
        return ty_error_wrap(err, "no NVRTC");
    return ty_cublaslt_get(&cublaslt, err) < 0 ? ty_error_wrap(err, "no cuBLASLt") : 0;
}

int ty_machine_find_gpu(int wanted, ty_arena *a, ty_machine_gpu *out, ty_error *err)
{
    const ty_machine_gpu *gpu;
    const char *why;
    if (devices_check_libraries(err) < 0)
        return -1;
    int n = ty_cuda_devices(a, &gpu, &why);
    if (n == 0)
        return ty_error_set(err, TY_E_NOT_FOUND, "%s", why);
    if (wanted >= n)
        return ty_error_set(err, TY_E_NOT_FOUND, "there is no GPU number %d: the driver shows %d", wanted, n);
    int number = wanted < 0 ? 0 : wanted;
    while (wanted < 0 && number + 1 < n && gpu[number].remark)
        number++;
    *out = gpu[number];
    return out->remark ? ty_error_set(err, TY_E_NOT_FOUND, "GPU %d: %s", number, out->remark) : 0;
}

/* Kernels are compiled once, for all of them. */
static int devices_check_alike(const ty_machine_gpu *gpu, int n, ty_error *err)
{
    for (int i = 1; i < n; i++)
        if (gpu[i].capability != gpu[0].capability) {
            ty_error_set(err, TY_E_CONFIG,
                         "GPUs that train together are of one compute capability: GPU %d has %d.%d, GPU %d has %d.%d",
                         gpu[0].number, gpu[0].capability / 10, gpu[0].capability % 10, gpu[i].number,
                         gpu[i].capability / 10, gpu[i].capability % 10);
            return ty_error_help(err, "`trainyard doctor` lists them: name those that are alike");
        }
    return 0;
}

/* Those that are wanted, or all that can be used and are like the first. */
static int devices_find(const int *wanted, int n_wanted, ty_arena *a, ty_machine_gpu *gpu, ty_error *err)
{
    const ty_machine_gpu *all;
    const char *why;
    int n = 0;
    if (n_wanted > TY_MAX_GPUS)
        return ty_error_set(err, TY_E_RANGE, "GPUs: expected 1 to %d, found %d", TY_MAX_GPUS, n_wanted);
    for (; n < n_wanted; n++)
        if (ty_machine_find_gpu(wanted[n], a, &gpu[n], err) < 0)
            return -1;
    if (n_wanted == 0 && ty_machine_find_gpu(-1, a, &gpu[n++], err) < 0)
        return -1;
    int there = n_wanted == 0 ? ty_cuda_devices(a, &all, &why) : 0;
    for (int i = gpu[0].number + 1; i < there && n < TY_MAX_GPUS; i++)
        if (!all[i].remark && all[i].capability == gpu[0].capability)
            gpu[n++] = all[i];
    return n;
}

int ty_machine_find_gpus(const int *wanted, int n_wanted, ty_cross_device how, ty_arena *a, ty_machine_gpu **out,
                         int *n_out, ty_error *err)
{
    ty_machine_gpu *gpu = TY_NEW_ARRAY(a, ty_machine_gpu, TY_MAX_GPUS);
    int n = devices_find(wanted, n_wanted, a, gpu, err);
    if (n < 0)
        return -1;
    *out = gpu;
    *n_out = n;
    return devices_check_alike(gpu, n, err) < 0 || (n > 1 && ty_nccl_check(n, how, err) < 0) ? -1 : 0;
}

int ty_machine_find_gpu_at(const int *wanted, int n_wanted, int place, int n_places, ty_arena *a, ty_machine_gpu *out,
                           ty_error *err)
{
    const ty_nccl *nccl;
    ty_machine_gpu *gpu = TY_NEW_ARRAY(a, ty_machine_gpu, TY_MAX_GPUS);
    int n = devices_find(wanted, n_wanted, a, gpu, err);
    if (n < 0)
        return -1;
    if (n < n_places) {
        ty_error_set(err, TY_E_NOT_FOUND, "%d ranks on this host, each with a GPU of its own, and %d GPU%s", n_places,
                     n, n == 1 ? "" : "s");
        return ty_error_help(err, "`trainyard doctor` lists the GPUs; processes_per_host: %d makes as many ranks", n);
    }
    *out = gpu[place];
    return ty_nccl_get(&nccl, err) < 0 ? ty_error_wrap(err, "ranks exchange gradients by NCCL") : 0;
}

int ty_machine_gpu_memory(int number, size_t *free_bytes, size_t *total_bytes, ty_error *err)
{
    ty_gpu gpu;
    if (ty_gpu_open(number, &gpu, err) < 0)
        return -1;
    int rc = ty_gpu_status(&gpu, gpu.cu->cuMemGetInfo_v2(free_bytes, total_bytes), "asking for free memory", err);
    ty_gpu_close(&gpu);
    return rc;
}
