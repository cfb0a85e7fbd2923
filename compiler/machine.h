/* machine.h - what this machine has for the compiler: processor, libraries that are opened at run time, GPUs; and what
 * the lack of each costs.
 *
 *     ty_machine_facts m;
 *     ty_machine_look(NULL, &arena, &m);
 *     for (int i = 0; i < m.n_parts; i++)      m.part[i].title, .version, .where, or .why_not and .without
 *     for (int i = 0; i < m.n_gpus; i++)       m.gpu[i].name, .capability, .bytes
 *
 * Looking opens the libraries, which takes some hundred milliseconds where CUDA is installed, and starts no GPU: only
 * the driver is asked. Nothing that is missing is an error.
 */
#ifndef TY_COMPILER_MACHINE_H
#define TY_COMPILER_MACHINE_H

#include "base/arena.h"
#include "base/error.h"
#include "compiler/compiler.h"

#include <stdbool.h>
#include <stdint.h>

/* A library or program. */
typedef struct ty_machine_part {
    const char *title;   /* "cuDNN" */
    const char *version; /* "9.14.0"; NULL if it was not found */
    const char *where;   /* path of its file; "" if unknown */
    const char *why_not; /* not found: the reason, in the loader's words */
    const char *without; /* what cannot be done without it */
    bool is_needed;      /* to train on the CPU */
} ty_machine_part;

typedef struct ty_machine_gpu {
    int number;       /* as the driver counts, after CUDA_VISIBLE_DEVICES */
    const char *name; /* "NVIDIA H200" */
    const char *uuid; /* "GPU-8-4-4-4-12 hexadecimal digits" */
    int capability;   /* compute capability, 90 for 9.0 */
    int n_multiprocessors;
    int64_t bytes;      /* of memory */
    const char *remark; /* NULL, or why it cannot be used with what was found */
} ty_machine_gpu;

typedef struct ty_machine_facts {
    const char *processor;  /* "AMD EPYC" */
    const char *extensions; /* of those that kernels and products use: "AVX-512, AVX512-BF16" */
    int threads;            /* processors that this process may run on */
    const ty_machine_part *part;
    int n_parts;
    const ty_machine_gpu *gpu;
    int n_gpus;
    const char *no_gpu; /* NULL, or why there is none: "the driver finds no device" */
} ty_machine_facts;

/* cc: the C compiler, NULL for base/toolchain.h's; it is tried. */
void ty_machine_look(const char *cc, ty_arena *a, ty_machine_facts *out);

/* The GPU to train on. wanted: its number, or -1: the first that can be used. TY_E_NOT_FOUND with the reason where
 * driver, NVRTC or cuBLASLt is missing, the driver is older than they are, where there is no such device, or NVRTC
 * cannot compile for it. */
int ty_machine_find_gpu(int wanted, ty_arena *a, ty_machine_gpu *out, ty_error *err);
/* GPUs that train together, a replica on each. wanted[n_wanted]: their numbers; n_wanted 0: all that can be used and
 * are of the first one's compute capability. More than one need NCCL. Errors as above; TY_E_CONFIG: they differ in
 * compute capability, or `how` is not for so many; TY_E_LIBRARY: there is no NCCL. */
int ty_machine_find_gpus(const int *wanted, int n_wanted, ty_cross_device how, ty_arena *a, ty_machine_gpu **out,
                         int *n_out, ty_error *err);
/* The GPU of one of n_places processes that share this host's, place 0 the first of those that the list above would be
 * made of, which several hosts may exchange with by NCCL. TY_E_NOT_FOUND where there are fewer GPUs than places; other
 * errors as above. */
int ty_machine_find_gpu_at(const int *wanted, int n_wanted, int place, int n_places, ty_arena *a, ty_machine_gpu *out,
                           ty_error *err);
const char *ty_cross_device_text(ty_cross_device how); /* "hierarchical_copy" */
/* Memory of a GPU that is free while this process has it open, which takes some itself; and all there is. */
int ty_machine_gpu_memory(int number, size_t *free_bytes, size_t *total_bytes, ty_error *err);

/* What this machine can do at most, measured in some 100 ms: a product of oneDNN, a copy by all threads. */
typedef struct ty_machine_ceilings {
    int threads;
    double flop_per_s;  /* f32 */
    double bytes_per_s; /* read and written */
} ty_machine_ceilings;

int ty_machine_measure(int threads, ty_machine_ceilings *out, ty_error *err);

#endif
