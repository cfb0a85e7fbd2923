/* Decimal text: the quick ways give what the slow one gives, to the last bit, and the slow one what the C library does.
 */
#include "container/input/number.h"
#include "container/input/table/walk.h"

#include <stdlib.h>

static void same(const char *a, double x, const char *b, double y)
{
    if (a != b || memcmp(&x, &y, sizeof x) != 0)
        abort();
}

/* As strtod has it, where the text is one that both read. */
static void check_scan(const char *p, const char *end)
{
    double v, w = 0;
    const char *after = ty_number_scan(p, end, &v);
    size_t n = after ? (size_t)(after - p) : 0;
    if (!after || n > 200)
        return;
    if (after > end)
        abort();
    char copy[201];
    memcpy(copy, p, n);
    copy[n] = 0;
    char *stop;
    w = strtod(copy, &stop);
    if (stop != copy + n)
        abort();
    if (v == v || w == w)
        same(after, v, after, w);
}

static void check_real(const char *p, const char *end)
{
    double v, w = 0;
    const char *slow = ty_number_scan(p, end, &w), *quick = ty_number_plain(p, end, &v);
    if (quick)
        same(quick, v, slow, w);
}

static void check_whole(const char *p, const char *end)
{
    int64_t v, w = 0;
    const char *slow = ty_integer_scan(p, end, &w), *quick = ty_integer_plain(p, end, &v);
    if (quick && (quick != slow || v != w))
        abort();
}

/* The text between two places, with what stands before it in reach. */
static void check_between(const char *p, const char *end, const char *begin)
{
    double v, w = 0;
    int64_t i, k = 0;
    if (p == end)
        return;
    const char *slow = ty_number_scan(p, end, &w);
    if (ty_number_between(p, end, begin, &v))
        same(end, v, slow, w);
    if (ty_integer_between(p, end, begin, &i) && (ty_integer_scan(p, end, &k) != end || i != k))
        abort();
}

enum { MOST = 64 };

static bool is_odd(const walk_numbers *t, int i)
{
    return t->odd[i / 8] >> (i % 8) & 1;
}

static void check_many(const walk_ways *ways, walk_numbers *t)
{
    double real[MOST], want = 0;
    float single[MOST];
    int64_t whole[MOST], k = 0;
    uint8_t odd[3][MOST / 8];
    walk_numbers s = *t, w = *t;
    t->odd = odd[0], s.odd = odd[1], w.odd = odd[2];
    ways->real(t, real);
    ways->single(&s, single);
    ways->whole(&w, whole);
    for (int i = 0; i < t->n; i++) {
        const char *p = t->lane + (t->pair[i] & 0xffff) + 1, *end = t->lane + (t->pair[i] >> 16);
        const char *after = ty_number_scan(p, end, &want); /* on its own: arguments have no order */
        if (!is_odd(t, i))
            same(end, real[i], after, want);
        if (!is_odd(&s, i) && (after != end || single[i] != (float)want))
            abort();
        if (!is_odd(&w, i) && (ty_integer_scan(p, end, &k) != end || whole[i] != k))
            abort();
    }
}

/* The texts between commas, by all ways to read several. */
static void check_ways(const char *begin, size_t size)
{
    static char copy[16 + 4096 + 64];
    uint32_t pair[MOST + 8];
    walk_numbers t = {.lane = copy, .begin = copy, .pair = pair};
    size_t before = 15;
    memset(copy, ',', sizeof copy);
    memcpy(copy + 16, begin, size);
    for (size_t i = 16; i <= 16 + size && t.n < MOST; i++)
        if (copy[i] == ',') {
            pair[t.n++] = (uint32_t)before | (uint32_t)i << 16;
            before = i;
        }
    for (int i = 0; i < 8; i++)
        pair[t.n + i] = pair[0];
    const walk_ways *ways;
    for (int i = 0; (ways = walk_ways_number(i)) && ways->real; i++)
        for (int powers = 0; powers < 2; powers++) {
            t.powers = powers;
            check_many(ways, &t);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *begin = (const char *)data, *end = begin + size;
    if (size > 4096)
        return 0;
    check_ways(begin, size);
    for (const char *p = begin; p < end; p++) {
        check_scan(p, end);
        check_real(p, end);
        check_whole(p, end);
        for (const char *stop = p; stop <= end && stop < p + 20; stop++)
            check_between(p, stop, begin);
    }
    return 0;
}
