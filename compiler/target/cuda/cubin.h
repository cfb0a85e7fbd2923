/* cubin.h - which functions machine code for a GPU lacks, without asking the driver: tools that watch the driver
 * (compute-sanitizer) take each "not found" for an error of the program.
 *
 * A cubin is an ELF file of 64 bits (docs.nvidia.com/cuda/cuda-binary-utilities, refspecs.linuxbase.org/elf).
 */
#ifndef TY_TARGET_CUDA_CUBIN_H
#define TY_TARGET_CUDA_CUBIN_H

#include <stdbool.h>
#include <stddef.h>

/* Whether none of its string tables has that name, to its end. False too where they cannot be read: the driver knows
 * then. */
bool ty_cubin_lacks(const void *cubin, size_t bytes, const char *name);

#endif
