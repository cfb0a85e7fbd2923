/* fake.h - what the stand-ins for NVIDIA's libraries have in common. */
#ifndef TY_TESTS_FAKES_FAKE_H
#define TY_TESTS_FAKES_FAKE_H

#include "compiler/target/cuda/api.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the stand-in for NVRTC hands out as machine code: this, then a shared object. */
#define FAKE_MAGIC 0x454B4146u
#define FAKE_NAMES 0x454D414Eu /* instead, if nothing runs: a line a kernel, its name and number of parameters */
typedef struct fake_image {
    uint32_t magic;
    size_t bytes;
} fake_image;

/* Work of a stream: now, or when the graph that is being captured is started. given: bytes, copied. */
typedef void fake_work_fn(const void *given);
typedef unsigned fake_do_fn(CUstream stream, fake_work_fn *run, const void *given, size_t bytes, const char *text);
fake_do_fn fake_do;

/* Whether work of a stream becomes part of a graph now. */
typedef bool fake_is_captured_fn(CUstream stream);
fake_is_captured_fn fake_is_captured;

/* What a library takes of the current device's memory. */
typedef void fake_hold_fn(size_t bytes);
fake_hold_fn fake_hold;

/* Milliseconds that work takes, for events. */
typedef void fake_take_fn(CUstream stream, double ms);
fake_take_fn fake_take;

size_t fake_gpu_bytes(int number); /* memory of a GPU */
unsigned fake_is_forked(void);     /* what a driver answers to a fork of its process; 0 else */
typedef int fake_device_fn(void);  /* number of the current context's device; -1: there is none */
fake_device_fn fake_device;
/* Ends the process unless these bytes are inside live memory of the device or pinned memory. */
typedef void fake_check_fn(const void *at, size_t bytes, const char *what);
fake_check_fn fake_check;
/* Ends the process with a message. */
void fake_wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
