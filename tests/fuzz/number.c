/* Decimal text: the quick ways give what the slow one gives, to the last bit, and the slow one what the C library does.
 */
#include "container/input/number.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *begin = (const char *)data, *end = begin + size;
    if (size > 4096)
        return 0;
    for (const char *p = begin; p < end; p++) {
        check_scan(p, end);
        check_real(p, end);
        check_whole(p, end);
        for (const char *stop = p; stop <= end && stop < p + 20; stop++)
            check_between(p, stop, begin);
    }
    return 0;
}
