/* hardware.c - counts CPUs and GPUs.
 *
 * GPUs are counted by the driver's management library, which is what `nvidia-smi --list-gpus` prints lines from. The
 * host's container runtime mounts it into the container; where it is absent there is no GPU. Never guess from the
 * instance type.
 */
#include "container/config/hardware.h"

#include "base/dl.h"

#include <unistd.h>

/* The few entries of nvml.h that are needed; all return 0 for success. */
struct nvml {
    int (*init)(void);
    int (*device_count)(unsigned int *count);
    int (*shutdown)(void);
};

static int hardware_count_gpus(void)
{
    static const ty_dl_symbol symbols[] = {
        {"nvmlInit_v2", offsetof(struct nvml, init), false},
        {"nvmlDeviceGetCount_v2", offsetof(struct nvml, device_count), false},
        {"nvmlShutdown", offsetof(struct nvml, shutdown), false},
    };
    static const char *const names[] = {"libnvidia-ml.so.1", NULL};
    struct nvml nvml;
    void *handle;
    unsigned int count = 0;

    if (ty_dl_open(names, symbols, sizeof symbols / sizeof symbols[0], &nvml, &handle, NULL) < 0)
        return 0;
    if (nvml.init() == 0) {
        if (nvml.device_count(&count) != 0)
            count = 0;
        nvml.shutdown();
    }
    ty_dl_close(handle);
    return count > 1024 ? 0 : (int)count;
}

ty_hardware ty_hardware_detect(void)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    return (ty_hardware){.num_cpus = cpus < 1 ? 1 : (int)cpus, .num_gpus = hardware_count_gpus()};
}
