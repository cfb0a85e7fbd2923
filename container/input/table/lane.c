/* lane.c - records whose fields are where they should be: separators first, 64 bytes at a time, then numbers whose ends
 * are known.
 *
 * Where a number ends does not depend on reading it then, so that the processor reads several at once. The loops are
 * lane.def, made once for each kind of processor; all give the same.
 */
#include "container/input/table/lane.h"

int lane_other(table_walk *w, const char *p, const char *end, const table_target *target, ty_error *err)
{
    bool quoted = end - p >= 2 && *p == '"' && end[-1] == '"';
    const char *line = w->csv.line_start;
    ty_csv_field f = {.text = p + quoted, .n = (size_t)(end - p) - 2 * quoted, .line = w->csv.line, .quoted = quoted};
    for (const char *feed = w->csv.at;
         w->n_breaks > 0 && feed < p && (feed = memchr(feed, '\n', (size_t)(p - feed)));) {
        line = ++feed;
        f.line++;
    }
    f.column = p - line + 1;
    return walk_store_slow(w, &f, target, err);
}

/* ---- any processor ---- */

/* Appends the set bits, eight at a time: that many are common, and more than are set do no harm. */
static inline __attribute__((always_inline)) int lane_append(uint16_t *to, int n, uint64_t mask, int at)
{
    int after = n + __builtin_popcountll(mask);
    while (n < after) {
        for (int i = 0; i < 8; i++) {
            to[n + i] = (uint16_t)(at + (mask ? __builtin_ctzll(mask) : 0));
            mask &= mask - 1;
        }
        n += 8;
    }
    return after;
}

#define LANE_NAME(x) lane_any_##x
#define LANE_TARGET  __attribute__((unused))
#define LANE_MASK    mask_of
#define LANE_PARITY  mask_parity
#define LANE_APPEND  lane_append
#define LANE_FEW     lane_append
#define LANE_NUMBER  ty_number_between
#include "container/input/table/lane.def"

/* ---- AVX2 ---- */

#if defined(__x86_64__)
LANE_AVX2 static inline uint64_t lane_avx2_mask(const char *p, char c)
{
    __m256i all = _mm256_set1_epi8(c);
    __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)p);
    __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32));
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, all)) |
           (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, all)) << 32;
}

/* The same with instructions that take no bit to be set, `each` at a time. */
LANE_AVX2 static inline __attribute__((always_inline)) int lane_avx2_append_by(uint16_t *to, int n, uint64_t mask,
                                                                               int at, int each)
{
    int after = n + (int)_mm_popcnt_u64(mask);
    for (; n < after; n += each)
        for (int i = 0; i < each; i++) {
            to[n + i] = (uint16_t)(at + (int)_tzcnt_u64(mask));
            mask = _blsr_u64(mask);
        }
    return after;
}

LANE_AVX2 static inline int lane_avx2_append(uint16_t *to, int n, uint64_t mask, int at)
{
    return lane_avx2_append_by(to, n, mask, at, 8);
}

/* Line ends: one or two. */
LANE_AVX2 static inline int lane_avx2_append_few(uint16_t *to, int n, uint64_t mask, int at)
{
    return lane_avx2_append_by(to, n, mask, at, 2);
}

#define LANE_NAME(x) lane_avx2_##x
#define LANE_TARGET  LANE_AVX2
#define LANE_MASK    lane_avx2_mask
#define LANE_PARITY  lane_avx2_parity
#define LANE_APPEND  lane_avx2_append
#define LANE_FEW     lane_avx2_append_few
#define LANE_NUMBER  lane_avx2_between
#define LANE_NO_NUMBERS
#include "container/input/table/lane.def"

static const walk_ways lane_avx2 = {"avx2",         lane_avx2_count,  lane_avx2_look, lane_avx2_record,
                                    walk_four_real, walk_four_single, walk_four_whole};
#endif

static const walk_ways lane_any = {"any",         lane_any_count,  lane_any_look, lane_any_record,
                                   lane_any_real, lane_any_single, lane_any_whole};
static const walk_ways lane_alone = {
    .name = "alone", .count = lane_any_count, .look = lane_any_look, .record = lane_any_record};

/* ---- the choice ---- */

int walk_ways_taken;

const walk_ways *walk_ways_number(int i)
{
    const walk_ways *there[4] = {NULL}, *wide = walk_ways_wide();
    int n = 0;
    if (wide)
        there[n++] = wide;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt") &&
        __builtin_cpu_supports("pclmul"))
        there[n++] = &lane_avx2;
#endif
    there[n++] = &lane_any;
    there[n++] = &lane_alone;
    return i < n ? there[i] : NULL;
}
