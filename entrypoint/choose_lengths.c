/* choose_lengths.c - see choose_lengths.h. Dynamic programming: the best k lengths up to a place end with the best k -
 * 1 up to an earlier one.
 */
#include "entrypoint/choose_lengths.h"

#include <math.h>

/* Places where a length may be: multiples of some number, and the longest. One more length must save so much. */
enum { CHOOSE_PLACES = 128, CHOOSE_MULTIPLE = 8 };
#define CHOOSE_SAVES 0.02

typedef struct choose {
    int64_t place[CHOOSE_PLACES + 1];
    double samples[CHOOSE_PLACES + 1]; /* no longer than the place */
    int n;
    double columns[TY_CHOSEN_LENGTHS][CHOOSE_PLACES + 1]; /* of all samples up to a place, with k + 1 lengths */
    int before[TY_CHOSEN_LENGTHS][CHOOSE_PLACES + 1];     /* the place of the length before; -1: none */
} choose;

static void choose_places(choose *c, const uint32_t *count, int64_t longest)
{
    int64_t most = CHOOSE_PLACES * CHOOSE_MULTIPLE;
    int64_t step = CHOOSE_MULTIPLE * (longest <= most ? 1 : (longest + most - 1) / most), length = 0;
    double samples = 0;
    while (length < longest) {
        int64_t end = length + step < longest ? length + step : longest;
        for (int64_t i = length ? length + 1 : 0; i <= end; i++)
            samples += count[i];
        length = c->place[c->n] = end;
        c->samples[c->n++] = samples;
    }
}

static void choose_one(choose *c, int k, int at)
{
    double *best = &c->columns[k][at];
    *best = k == 0 ? c->samples[at] * (double)c->place[at] : INFINITY;
    c->before[k][at] = -1;
    for (int i = 0; k > 0 && i < at; i++) {
        double columns = c->columns[k - 1][i] + (c->samples[at] - c->samples[i]) * (double)c->place[at];
        if (columns < *best) {
            *best = columns;
            c->before[k][at] = i;
        }
    }
}

int ty_choose_lengths(const uint32_t *count, int64_t longest, int64_t out[TY_CHOSEN_LENGTHS])
{
    choose c = {.n = 0};
    choose_places(&c, count, longest);
    int k = 0, last = c.n - 1;
    for (int at = 0; at < c.n; at++)
        choose_one(&c, 0, at);
    for (int more = 1; more < TY_CHOSEN_LENGTHS; more++) {
        for (int at = 0; at < c.n; at++)
            choose_one(&c, more, at);
        if (!(c.columns[more][last] < (1 - CHOOSE_SAVES) * c.columns[more - 1][last]))
            break;
        k = more;
    }
    for (int i = k, at = last; i >= 0; at = c.before[i][at], i--)
        out[i] = c.place[at];
    return k + 1;
}
