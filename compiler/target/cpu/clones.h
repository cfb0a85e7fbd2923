/* clones.h - one loop, compiled for several instruction sets.
 *
 * TY_CPU_CLONES in front of a function makes the compiler emit it for each level of vector instructions; the loader
 * picks one at start. It belongs on leaf functions whose arithmetic has no products that are added (a fused
 * multiply-add would round differently from machine to machine). Debug and sanitizer builds have one plain copy,
 * because the loader's choice runs before a sanitizer is ready; so has clang, which has no such attribute.
 */
#ifndef TY_TARGET_CPU_CLONES_H
#define TY_TARGET_CPU_CLONES_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(TY_DEBUG) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TY_CPU_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TY_CPU_CLONES
#endif

/* For helpers of such a function: they must become part of it to be compiled as it is. */
#define TY_CPU_INLINE static inline __attribute__((always_inline))

#endif
