/* tf_farmhash.h - the 64-bit fingerprint that TensorFlow uses. Never against malice. */
#ifndef TY_COMPILER_IMPORT_TENSORFLOW_TF_FARMHASH_H
#define TY_COMPILER_IMPORT_TENSORFLOW_TF_FARMHASH_H

#include <stddef.h>
#include <stdint.h>

/* As Farm::Fingerprint64. */
uint64_t tf_farmhash(const void *bytes, size_t n);

#endif
