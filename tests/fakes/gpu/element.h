/* element.h - what the stand-ins for cuBLASLt and cuDNN share: numbers in memory, and the way to the stand-in driver.
 */
#ifndef TY_TESTS_FAKES_GPU_ELEMENT_H
#define TY_TESTS_FAKES_GPU_ELEMENT_H

#include "tests/fakes/fake.h"

#include "base/tensor.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What of the driver a library's handle holds. */
typedef struct fake_driver {
    fake_do_fn *work;
    fake_check_fn *check;
    fake_take_fn *take;
    fake_is_captured_fn *is_captured;
    fake_hold_fn *hold;
    fake_device_fn *now;
    int device; /* that was current when the handle was made */
} fake_driver;

/* False without the driver in this process. */
static inline bool fake_driver_find(fake_driver *out)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *work = driver ? dlsym(driver, "fake_do") : NULL, *check = driver ? dlsym(driver, "fake_check") : NULL;
    void *take = driver ? dlsym(driver, "fake_take") : NULL;
    memcpy(&out->work, &work, sizeof work);
    memcpy(&out->check, &check, sizeof check);
    void *device = driver ? dlsym(driver, "fake_device") : NULL;
    void *captured = driver ? dlsym(driver, "fake_is_captured") : NULL;
    void *hold = driver ? dlsym(driver, "fake_hold") : NULL;
    memcpy(&out->is_captured, &captured, sizeof captured);
    memcpy(&out->hold, &hold, sizeof hold);
    memcpy(&out->take, &take, sizeof take);
    memcpy(&out->now, &device, sizeof device);
    out->device = device ? out->now() : -1;
    return work && check && take && device && captured && hold;
}

/* A handle is its device's. */
static inline void fake_driver_is_current(const fake_driver *d, const char *what)
{
    if (d->now() == d->device)
        return;
    fprintf(stderr, "stand-in driver: %s with a handle of device %d while device %d is current\n", what, d->device,
            d->now());
    abort();
}

static inline double element_get(const char *at, int64_t i, ty_dtype type)
{
    uint16_t half;
    float f;
    double d;
    at += (size_t)i * ty_dtype_bytes(type);
    if (type == TY_F64)
        return memcpy(&d, at, sizeof d), d;
    if (type == TY_F32)
        return memcpy(&f, at, sizeof f), f;
    memcpy(&half, at, sizeof half);
    return type == TY_F16 ? ty_f16_to_f32(half) : ty_bf16_to_f32(half);
}

static inline void element_put(char *at, int64_t i, ty_dtype type, double value)
{
    float f = (float)value;
    uint16_t half = type == TY_F16 ? ty_f32_to_f16(f) : ty_f32_to_bf16(f);
    const void *from = type == TY_F64 ? (const void *)&value : type == TY_F32 ? (const void *)&f : &half;
    memcpy(at + (size_t)i * ty_dtype_bytes(type), from, ty_dtype_bytes(type));
}

#endif
