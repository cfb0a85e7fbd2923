/* panel.c - see panel.h. The loops themselves are panel_tile.def, made once for each width of vectors. */
#include "compiler/target/cpu/panel.h"

#include <string.h>

#define PANEL_NAME           panel_plain
#define PANEL_TEXT           "plain"
#define PANEL_TARGET         __attribute__((unused))
#define PANEL_LANES          4
#define PANEL_ROWS           6
#define PANEL_ADD(sum, a, b) sum += (a) * (b)
#define PANEL_PAIRS          0
#include "compiler/target/cpu/panel_tile.def"

#if defined(__x86_64__)
/* In so many words, and in the order of the source: left to itself, gcc loads one number of every row before it
 * multiplies, or adds into another register; sums then go through memory, and a core of a Zen 3 multiplies at two
 * thirds of its speed instead of 96 %. */
#define PANEL_FUSED(sum, a, b) __asm__ volatile("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b))

#define PANEL_NAME   panel_avx2
#define PANEL_TEXT   "avx2"
#define PANEL_TARGET __attribute__((target("avx2,fma")))
#define PANEL_LANES  8
#define PANEL_ROWS   6
#define PANEL_ADD    PANEL_FUSED
#define PANEL_PAIRS  0
#include "compiler/target/cpu/panel_tile.def"

#define PANEL_NAME   panel_avx512
#define PANEL_TEXT   "avx512"
#define PANEL_TARGET __attribute__((target("avx512f,fma")))
#define PANEL_LANES  16
#define PANEL_ROWS   12
#define PANEL_ADD    PANEL_FUSED
#define PANEL_PAIRS  0
#include "compiler/target/cpu/panel_tile.def"

#define PANEL_DOTS(sum, a, b) __asm__ volatile("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b))
#define PANEL_NAME            panel_pairs
#define PANEL_TEXT            "bfloat16"
#define PANEL_TARGET          __attribute__((target("avx512f,fma")))
#define PANEL_LANES           16
#define PANEL_ROWS            12
#define PANEL_ADD             PANEL_DOTS
#define PANEL_PAIRS           1
#include "compiler/target/cpu/panel_tile.def"
#endif

int ty_panel_usable(const ty_panel_kernels *out[TY_PANEL_KINDS])
{
    int n = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        out[n++] = &panel_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        out[n++] = &panel_avx2;
#endif
    out[n++] = &panel_plain;
    return n;
}

const ty_panel_kernels *ty_panel_best(void)
{
    const ty_panel_kernels *all[TY_PANEL_KINDS];
    ty_panel_usable(all);
    return all[0];
}

const ty_panel_kernels *ty_panel_pairs(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bf16"))
        return &panel_pairs;
#endif
    return NULL;
}
