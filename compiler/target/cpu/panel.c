/* panel.c - see panel.h. The loop itself is panel_tile.def, made once for each width of vectors. */
#include "compiler/target/cpu/panel.h"

#define PANEL_NAME   panel_plain
#define PANEL_TARGET __attribute__((unused))
#define PANEL_LANES  4
#define PANEL_ROWS   6
#include "compiler/target/cpu/panel_tile.def"

#if defined(__x86_64__)
#define PANEL_NAME   panel_avx2
#define PANEL_TARGET __attribute__((target("avx2,fma")))
#define PANEL_LANES  8
#define PANEL_ROWS   6
#include "compiler/target/cpu/panel_tile.def"

#define PANEL_NAME   panel_avx512
#define PANEL_TARGET __attribute__((target("avx512f,fma")))
#define PANEL_LANES  16
#define PANEL_ROWS   12
#include "compiler/target/cpu/panel_tile.def"
#endif

ty_panel_fn *ty_panel_best(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return panel_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return panel_avx2;
#endif
    return panel_plain;
}

void ty_panel_pack(float *panel, const float *b, int64_t k, int64_t k_step, int64_t n, int64_t n_step)
{
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < TY_PANEL; j++)
            panel[i * TY_PANEL + j] = j < n ? b[i * k_step + j * n_step] : 0.0f;
}
