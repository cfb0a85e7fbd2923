/* winograd.c - see winograd.h. The transforms themselves are winograd_tile.def, made once for each width of vectors. */
#include "compiler/target/cpu/winograd.h"

#include "base/tensor.h"

#include <stddef.h>
#include <string.h>

/* A and B: the points that are not 0; N: products of a point's distances to the others. */
#define POINT_A  0.625f
#define POINT_B  1.5f
#define POINT_A2 (POINT_A * POINT_A)
#define POINT_B2 (POINT_B * POINT_B)
#define POINT_A3 (POINT_A2 * POINT_A)
#define POINT_B3 (POINT_B2 * POINT_B)
#define POINT_N0 (POINT_A2 * POINT_B2)
#define POINT_NA (2 * POINT_A2 * (POINT_A2 - POINT_B2))
#define POINT_NB (2 * POINT_B2 * (POINT_B2 - POINT_A2))

#define WINOGRAD_NAME   winograd_plain
#define WINOGRAD_TARGET __attribute__((unused))
#define WINOGRAD_LANES  4
#include "compiler/target/cpu/winograd_tile.def"

#if defined(__x86_64__)
#define WINOGRAD_NAME   winograd_avx2
#define WINOGRAD_TARGET __attribute__((target("avx2,fma")))
#define WINOGRAD_LANES  8
#include "compiler/target/cpu/winograd_tile.def"

#define WINOGRAD_NAME   winograd_avx512
#define WINOGRAD_TARGET __attribute__((target("avx512f,fma")))
#define WINOGRAD_LANES  16
#include "compiler/target/cpu/winograd_tile.def"
#endif

const ty_winograd_kernels *ty_winograd_for(int strip)
{
#if defined(__x86_64__)
    if (strip == 2 * winograd_avx512.lanes)
        return &winograd_avx512;
    if (strip == 2 * winograd_avx2.lanes)
        return &winograd_avx2;
#endif
    return strip == 2 * winograd_plain.lanes ? &winograd_plain : NULL;
}
