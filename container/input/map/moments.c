/* moments.c - see moments.h. */
#include "container/input/map/moments.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* splitmix64's finisher: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014. */
static uint64_t moments_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void moments_thin(map_moments *m)
{
    int64_t n = 0;
    m->threshold = (m->threshold ? m->threshold : UINT64_MAX) >> 1;
    for (int64_t i = 0; i < m->n_kept; i++)
        if (m->kept[i].hash <= m->threshold)
            m->kept[n++] = m->kept[i];
    m->n_kept = n;
}

static int moments_keep(map_moments *m, map_kept kept, ty_error *err)
{
    while (m->n_kept >= m->limit)
        moments_thin(m);
    if (m->threshold && kept.hash > m->threshold)
        return 0;
    if (m->n_kept == m->room) {
        int64_t room = m->room ? m->room * 2 : 1024;
        map_kept *grown = realloc(m->kept, (size_t)room * sizeof *grown);
        if (!grown)
            return ty_error_set(err, TY_E_LIMIT, "no memory for %lld values of which a quantile is wanted",
                                (long long)room);
        m->kept = grown;
        m->room = room;
    }
    m->kept[m->n_kept++] = kept;
    return 0;
}

/* Knuth's two-sum: s + e is a + b, exactly. */
static double pair_error(double a, double b, double s)
{
    double of_b = s - a;
    return (a - (s - of_b)) + (b - of_b);
}

static map_pair pair_add(map_pair a, map_pair b)
{
    double s = a.hi + b.hi, e = pair_error(a.hi, b.hi, s) + (a.lo + b.lo);
    double hi = s + e;
    return (map_pair){hi, e - (hi - s)};
}

int map_moments_see(map_moments *m, double v, uint64_t number, ty_error *err)
{
    double square = v * v;
    m->min = m->n == 0 || v < m->min ? v : m->min;
    m->max = m->n == 0 || v > m->max ? v : m->max;
    m->n++;
    m->sum = pair_add(m->sum, (map_pair){v, 0});
    m->squares = pair_add(m->squares, (map_pair){square, fma(v, v, -square)});
    return m->keeps ? moments_keep(m, (map_kept){v, moments_mix(number)}, err) : 0;
}

int map_moments_join(map_moments *m, const map_moments *other, ty_error *err)
{
    if (other->n == 0)
        return 0;
    m->min = m->n == 0 || other->min < m->min ? other->min : m->min;
    m->max = m->n == 0 || other->max > m->max ? other->max : m->max;
    m->sum = pair_add(m->sum, other->sum);
    m->squares = pair_add(m->squares, other->squares);
    m->n += other->n;
    while (m->keeps && other->threshold && (!m->threshold || m->threshold > other->threshold))
        moments_thin(m);
    for (int64_t i = 0; m->keeps && i < other->n_kept; i++)
        if (moments_keep(m, other->kept[i], err) < 0)
            return -1;
    return 0;
}

static map_pair moments_mean(const map_moments *m)
{
    double n = (double)m->n, hi = m->sum.hi / n;
    return (map_pair){hi, (fma(-hi, n, m->sum.hi) + m->sum.lo) / n};
}

double map_moments_mean(const map_moments *m)
{
    map_pair mean = moments_mean(m);
    return m->n > 0 ? mean.hi + mean.lo : 0;
}

/* The squares less sum times mean, each a pair. Beyond the square root of the largest double there is no such number.
 */
double map_moments_deviation(const map_moments *m)
{
    map_pair mean = moments_mean(m);
    double product = m->sum.hi * mean.hi;
    double lo = fma(m->sum.hi, mean.hi, -product) + (m->sum.hi * mean.lo + m->sum.lo * mean.hi);
    double left = (m->squares.hi - product) + (m->squares.lo - lo);
    if (m->n == 0 || left <= 0)
        return 0;
    return isfinite(left) ? sqrt(left / (double)m->n) : INFINITY;
}

static int moments_compare(const void *a, const void *b)
{
    double x = ((const map_kept *)a)->v, y = ((const map_kept *)b)->v;
    return (x > y) - (x < y);
}

void map_moments_sort(map_moments *m)
{
    if (m->n_kept > 1)
        qsort(m->kept, (size_t)m->n_kept, sizeof *m->kept, moments_compare);
}

double map_moments_quantile(const map_moments *m, double q)
{
    if (m->n_kept == 0)
        return 0;
    double at = q * (double)(m->n_kept - 1);
    int64_t low = (int64_t)floor(at);
    int64_t high = low + 1 < m->n_kept ? low + 1 : low;
    double part = at - (double)low, a = m->kept[low].v, b = m->kept[high].v;
    return part < 0.5 ? a + (b - a) * part : b - (b - a) * (1 - part); /* numpy's, which is exact at both ends */
}

double map_moments_most_frequent(const map_moments *m)
{
    double best = m->n_kept > 0 ? m->kept[0].v : 0;
    int64_t most = 0, from = 0;
    for (int64_t i = 0; i <= m->n_kept; i++) {
        if (i < m->n_kept && m->kept[i].v == m->kept[from].v)
            continue;
        if (i - from > most) {
            most = i - from;
            best = m->kept[from].v;
        }
        from = i;
    }
    return best;
}

void map_moments_drop(map_moments *m)
{
    free(m->kept);
    m->kept = NULL;
    m->n_kept = m->room = 0;
}
