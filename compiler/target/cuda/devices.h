/* devices.h - the GPUs of this machine, as the driver tells them. */
#ifndef TY_TARGET_CUDA_DEVICES_H
#define TY_TARGET_CUDA_DEVICES_H

#include "compiler/machine.h"

/* Returns how many there are; with 0 *why says the reason. Everything is the arena's. A device that NVRTC cannot
 * compile for, or whose facts the driver refuses, has a remark; so have all where the driver is older than the
 * libraries. */
int ty_cuda_devices(ty_arena *a, const ty_machine_gpu **out, const char **why);

#endif
